// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "netsim/mpi_module.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <stdexcept>

namespace uet::netsim {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFile = "libuet-sim-mpi.so";

// Beside the program, as in the directory of a build, or where it is installed.
fs::path module_file() {
  std::error_code ignored;
  const fs::path beside = fs::read_symlink("/proc/self/exe", ignored).parent_path() / kFile;
  if (fs::exists(beside, ignored)) return beside;
  return fs::path(UET_SIM_MODULE_DIR) / kFile;
}

[[noreturn]] void fail(const std::string& why, const std::string& remedy) {
  throw std::runtime_error("mpirun: " + why + "; " + remedy + ", or use --threads without mpirun");
}

}  // namespace

bool started_by_mpi() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}) {
    const char* const size = std::getenv(name);
    if (size != nullptr && std::atol(size) > 1) return true;
  }
  return false;
}

MpiRanks join_mpi() {
  const fs::path file = module_file();
  std::error_code ignored;
  if (!fs::exists(file, ignored)) {
    fail(file.string() + " is not there", "install the package of uet-sim for MPI");
  }
  void* const handle = ::dlopen(file.c_str(), RTLD_NOW | RTLD_GLOBAL | RTLD_NODELETE);
  if (handle == nullptr) {
    const char* const why = ::dlerror();
    fail(why != nullptr ? why : "the module cannot be loaded",
         "install the MPI that it was built for");
  }
  auto* const entry = reinterpret_cast<MpiEntry>(::dlsym(handle, kMpiEntryName));
  auto* const end = reinterpret_cast<MpiExit>(::dlsym(handle, kMpiExitName));
  Exchange* const exchange = entry != nullptr && end != nullptr ? entry(__VERSION__) : nullptr;
  if (exchange == nullptr) {
    fail(file.string() + " is not of the same build as uet-sim", "install both from one");
  }
  return {.exchange = exchange, .end = end};
}

}  // namespace uet::netsim
