// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What the provider says through libfabric's log, as lines of the report. libfabric prints nothing
// unless it is asked to, and then much of others; all of it goes to standard error.
#pragma once

#include <cstdio>
#include <set>
#include <string>

#include "report.h"

namespace uet::doctor {

// From its construction on, before the first call of libfabric, standard error goes into a file of
// this object; unless FI_LOG_LEVEL is set, which says that the user wants to read it all.
class ProviderLog {
 public:
  ProviderLog();
  ~ProviderLog();
  ProviderLog(const ProviderLog&) = delete;
  ProviderLog& operator=(const ProviderLog&) = delete;

  // Reports what the provider has said since the last call, each sentence once; passes on what is
  // no message of libfabric.
  void flush(Report& report);

 private:
  std::FILE* file_ = nullptr;
  int standard_error_ = -1;
  std::set<std::string> told_;
};

}  // namespace uet::doctor
