// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "provider_log.h"

#include <unistd.h>

#include <array>
#include <cstdlib>

namespace uet::doctor {

ProviderLog::ProviderLog() {
  if (std::getenv("FI_LOG_LEVEL") != nullptr) return;
  file_ = std::tmpfile();
  if (file_ == nullptr) return;
  ::setenv("FI_LOG_LEVEL", "warn", 1);
  standard_error_ = ::dup(STDERR_FILENO);
  ::dup2(::fileno(file_), STDERR_FILENO);
}

ProviderLog::~ProviderLog() {
  if (file_ == nullptr) return;
  ::dup2(standard_error_, STDERR_FILENO);
  ::close(standard_error_);
  std::fclose(file_);
}

// "libfabric:4711:1795303898:ofi_rxm:uet:core:usable_interfaces():297<warn> FI_UET_IFACE=..."
void ProviderLog::flush(Report& report) {
  if (file_ == nullptr) return;
  std::rewind(file_);
  std::array<char, 4096> buffer;
  while (std::fgets(buffer.data(), buffer.size(), file_) != nullptr) {
    std::string line = buffer.data();
    if (!line.empty() && line.back() == '\n') line.pop_back();
    if (!line.starts_with("libfabric:")) {
      ::dprintf(standard_error_, "%s\n", line.c_str());  // of others, such as FI_UET_STATS=exit
      continue;
    }
    const std::size_t text = line.find("<warn> ");
    if (text == std::string::npos || line.find(":uet:") > text) continue;
    line.erase(0, text + 7);
    if (told_.insert(line).second) report.note("the provider says: " + line);
  }
  // The file is shared with standard error: both go on at its beginning.
  std::rewind(file_);
  if (::ftruncate(::fileno(file_), 0) != 0) return;
}

}  // namespace uet::doctor
