// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "report.h"

#include <cstdio>

namespace uet::doctor {

void Report::line(const char* mark, const std::string& what) {
  std::printf("  %-5s %s\n", mark, what.c_str());
  std::fflush(stdout);
}

void Report::begin(const std::string& part) {
  std::printf("%s\n", part.c_str());
  std::fflush(stdout);
}

void Report::good(const std::string& what) { line("ok", what); }
void Report::note(const std::string& what) { line("note", what); }

void Report::warn(const std::string& what, const std::string& advice) {
  ++warnings_;
  line("WARN", what);
  line("", "what to do: " + advice);
}

void Report::fail(const std::string& what, const std::string& advice) {
  ++failures_;
  line("FAIL", what);
  line("", "what to do: " + advice);
}

void Report::conclude() const {
  std::printf("%sready; failures: %d, warnings: %d\n", failures_ > 0 ? "not " : "", failures_,
              warnings_);
}

}  // namespace uet::doctor
