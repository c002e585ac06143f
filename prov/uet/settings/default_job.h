// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The JobID of endpoints whose application gives none (no auth_key, no FI_UET_JOB_ID): that of the
// parallel job that a launcher started, else the well-known job (SES-163). Decides by names that
// launchers give to their jobs; knows no libfabric and none of the launchers' protocols.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "uet/base/types.h"

namespace uet::prov {

// Of programs without a launcher: they meet on any two hosts without a setting. It is also the
// default of the reference provider (SES-142).
inline constexpr JobId kWellKnownJob{1};

// The launcher, as far as a process sees it: environment variables by name, those of
// launcher_variables() at least. A variable that is empty counts as not set.
struct Launch {
  std::map<std::string, std::string, std::less<>> variables;
  // "host:port" of the mpiexec of Hydra that this process descends from; empty: none.
  std::string hydra_port;
  std::uint32_t uid = 0;  // of this process
};

struct DefaultJob {
  JobId job = kWellKnownJob;
  std::string source;  // in words, for the log: the variable and its value
};

// Equal at all ranks of a job, on every host, and for jobs that one of its ranks spawns. A JobID
// that follows from the name of a job is a hash of 0x800000 to 0xFFFFFE, so that it is never the
// well-known job nor a small number that a user would choose.
DefaultJob default_job(const Launch& launch);

// The names that default_job looks at.
std::span<const char* const> launcher_variables();

// Of this process: environment, ancestors (/proc) and user.
Launch launch_of_this_process();

// The value behind "--control-port" in a command line whose words each end with a 0 byte, as
// /proc/PID/cmdline gives it, if its program is hydra_pmi_proxy; else empty.
std::string hydra_port_of(std::string_view command_line);

}  // namespace uet::prov
