// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Ranks that are processes of MPI. A module of its own, libuet-sim-mpi.so, has all that needs MPI;
// it is loaded only if mpirun has started the program.
#pragma once

#include <string>

#include "netsim/exchange.h"

namespace uet::netsim {

// An entry of the module: joins the other ranks. The exchange stays until the process ends.
// `build` is that of the program; nullptr if the module has another.
using MpiEntry = Exchange* (*)(const char* build);
inline constexpr const char* kMpiEntryName = "uet_sim_mpi";
// Leaves the other ranks; no exchange after it.
using MpiExit = void (*)();
inline constexpr const char* kMpiExitName = "uet_sim_mpi_end";

struct MpiRanks {
  Exchange* exchange = nullptr;  // nullptr: one rank
  MpiExit end = nullptr;
};

// Has mpirun started this process as one of several?
bool started_by_mpi();
// Loads the module. Throws std::runtime_error, which says what is missing.
MpiRanks join_mpi();

}  // namespace uet::netsim
