// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "back_ends.h"

#include <poll.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "plug_in.h"

namespace uet::doctor {

namespace {

namespace fs = std::filesystem;

constexpr const char* kPrefix = "libuet-nic-";
constexpr const char* kSuffix = ".so";
constexpr int kPatienceMs = 10'000;
constexpr const char* kStarted = "started on ";

std::vector<std::string> installed() {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(fs::path(provider_file()).parent_path(), error)) {
    const std::string file = entry.path().filename().string();
    if (!file.starts_with(kPrefix) || !file.ends_with(kSuffix)) continue;
    const std::size_t prefix = std::strlen(kPrefix);
    names.push_back(file.substr(prefix, file.size() - prefix - std::strlen(kSuffix)));
  }
  std::sort(names.begin(), names.end());
  return names;
}

// In the child: opens a domain over the back end and says where; the provider's warnings and this
// go to standard error.
void start(const std::string& name) {
  ::setenv("FI_UET_NIC", name.c_str(), 1);
  const Infos hints(fi_allocinfo());
  hints->ep_attr->type = FI_EP_RDM;
  hints->mode = ~std::uint64_t{0};
  hints->fabric_attr->prov_name = ::strdup("uet");  // fi_freeinfo frees it
  fi_info* found = nullptr;
  if (fi_getinfo(FI_VERSION(1, 17), nullptr, nullptr, 0, hints.get(), &found) != 0) return;
  const Infos infos(found);
  fid_fabric* fabric = nullptr;
  fid_domain* domain = nullptr;
  if (fi_fabric(infos->fabric_attr, &fabric, nullptr) != 0) return;
  if (fi_domain(fabric, infos.get(), &domain, nullptr) == 0) {
    ::dprintf(STDERR_FILENO, "%s%s\n", kStarted, infos->domain_attr->name);
    fi_close(&domain->fid);
  }
  fi_close(&fabric->fid);
}

// The text that the child writes until it ends, or until kPatienceMs pass without output.
std::string output_of_trial(const std::string& name) {
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) return "";
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(ends[1], STDERR_FILENO);
    ::close(ends[0]);
    ::close(ends[1]);
    start(name);
    ::_exit(0);
  }
  ::close(ends[1]);
  std::string text;
  std::array<char, 4096> buffer;
  pollfd readable{ends[0], POLLIN, 0};
  while (child > 0 && ::poll(&readable, 1, kPatienceMs) > 0) {
    const ssize_t length = ::read(ends[0], buffer.data(), buffer.size());
    if (length <= 0) break;
    text.append(buffer.data(), static_cast<std::size_t>(length));
  }
  ::close(ends[0]);
  if (child > 0) {
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
  }
  return text;
}

}  // namespace

void examine_back_ends(Report& report) {
  report.begin("NIC back ends beside udp (FI_UET_NIC)");
  for (const std::string& name : installed()) {
    std::istringstream text(output_of_trial(name));
    std::string reason;
    std::string started;
    for (std::string line; std::getline(text, line);) {
      const std::size_t warning = line.find("<warn> ");
      if (line.starts_with(kStarted)) started = line;
      // Each reason comes once for every provider that asks.
      if (warning != std::string::npos && line.find(":uet:") < warning) {
        reason = ": ";
        reason += line.substr(warning + std::strlen("<warn> "));
      }
    }
    if (!started.empty()) {
      report.good(name + " " + started);
      if (!reason.empty()) report.note(name + reason);
    } else {
      report.note(name + " cannot start" + reason);
    }
  }
}

}  // namespace uet::doctor
