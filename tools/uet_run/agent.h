// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The agent: the parent of one rank on the rank's host.
#pragma once

namespace uet::run {

// Reads an order from standard input, starts the program, and ends with its status (128 and the
// number of the signal that ended it; 127: it cannot be started). When standard input ends,
// whatever the reason, or a signal to end comes, the program and all its descendants end: SIGTERM,
// and SIGKILL two seconds later. Nothing that the program has started outlives it.
int run_agent();

}  // namespace uet::run
