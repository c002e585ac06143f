// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// DPDK's environment (EAL), which a process can start once, ever. Started so that the program does
// not notice: its threads keep their processors, its signals their handlers, its output its place.
#pragma once

#include <functional>
#include <string>

namespace uet::nic {

// Settings that the first device of the process decides for all later ones.
struct EalChoice {
  std::string pci_address;  // the only one that is looked for; empty = none
};

// Starts EAL, or finds it started. False: `message` says why; nothing of DPDK may be called then.
bool start_eal(const EalChoice& choice, std::string& message);

// Calls `work` in a thread that takes no signals, and waits for it: DPDK starts threads from there,
// and they inherit that. Meanwhile no real-time signal is free: net_tap would have one for each
// packet, which ends what the program waits in (FI_EAGAIN of fi_cq_sread); without one it polls.
// Descriptors that are opened meanwhile are closed on exec.
void without_signals(const std::function<void()>& work);

// The last line that DPDK has logged since the previous call.
std::string take_last_log_line();

}  // namespace uet::nic
