// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The command line of uet-sim: what it may say, and the network and traffic that it asks for.
#pragma once

#include <cstdint>
#include <string>

#include "netsim/network.h"
#include "netsim/sweep.h"
#include "netsim/traffic.h"

namespace uet::netsim {

// Everything ready to run.
struct RunSetup {
  SweepSetup sweep;  // with a file: nothing below counts
  NetworkConfig network;
  Traffic traffic;
  std::string matrix_file;    // not empty: write the traffic there instead of running it
  std::uint32_t threads = 1;  // that share the network
  Picoseconds limit = 0;
  std::string trace_file;   // empty = none
  std::string report_file;  // empty = none
  Picoseconds trace_interval = 0;
  bool csv = false;
  bool json = false;
  bool quiet = false;  // no progress line
};

struct ParseResult {
  bool run = false;  // false: print `text` and end with `status`
  int status = 0;
  std::string text;
};

// Reads arguments, the matrix file if one is named, and fills `setup`.
ParseResult parse_command_line(int argc, const char* const* argv, RunSetup& setup);

}  // namespace uet::netsim
