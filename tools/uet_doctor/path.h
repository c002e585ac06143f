// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The path to another process that runs uet_doctor, on this machine or another: UDP probes, then
// messages and RMA over the provider. The two meet over TCP.
#pragma once

#include <string>

#include "host.h"
#include "provider_log.h"
#include "report.h"

namespace uet::doctor {

// From this process to itself at `address`.
void examine_self(Report& report, const LocalAddress& address);
// To `uet_doctor --serve` on `host`, which listens on TCP `port`.
void examine_peer(Report& report, const std::string& host, const std::string& port);
// Answers one client after the other; ends with the process only.
[[noreturn]] void serve(const std::string& port, Report& report, ProviderLog& log);

}  // namespace uet::doctor
