// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// uet_engine: runs the protocol for applications with FI_UET_ENGINE=process. The command line and
// signals; the applications are host.h's, each of their domains tenant.h's.
#include <sys/signalfd.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <stdexcept>
#include <string>

#include "../command_line.h"
#include "host.h"
#include "nic/module.h"
#include "process/control.h"
#include "settings/params.h"

namespace {

using namespace uet;  // NOLINT(google-build-using-namespace)

// Where libfabric finds the provider: in FI_PROVIDER_PATH, or where it was installed.
std::string directory_of_provider() {
  const char* const paths = std::getenv("FI_PROVIDER_PATH");
  std::istringstream list(paths != nullptr ? paths : "");
  for (std::string directory; std::getline(list, directory, ':');) {
    if (std::filesystem::exists(directory + "/libuet-fi.so")) return directory;
  }
  return UET_PROVIDER_DIR;
}

int run(int argc, char** argv) {
  CLI::App app("Runs the UET protocol for applications with FI_UET_ENGINE=process");
  std::string path;
  bool all_users = false;
  app.add_option("--socket", path,
                 "where applications find it (uet-engine.UID in the run-time directory; with "
                 "--all-users /run/uet/engine)");
  app.add_flag("--all-users", all_users, "serve the applications of all users; for root");
  if (const auto status = tools::parse(app, argc, argv)) return *status;
  if (path.empty()) {
    const auto usual = prov::engine_sockets("");
    path = all_users ? usual.back() : usual.front();
  }
  // Libraries that libfabric is linked with may call exit() in a handler.
  for (const int number : {SIGINT, SIGTERM}) std::signal(number, SIG_DFL);
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGINT);
  sigaddset(&ends, SIGTERM);
  sigprocmask(SIG_BLOCK, &ends, nullptr);
  const nic::FileDescriptor stop(signalfd(-1, &ends, SFD_CLOEXEC));
  prov::define_params();
  if (!prov::load_params()) throw std::runtime_error("a setting is broken; FI_LOG_LEVEL=warn");
  nic::look_for_modules_in(directory_of_provider());
  std::string why;
  const nic::FileDescriptor listener = prov::listen_at(path, all_users, why);
  if (!listener.valid()) throw std::runtime_error(why);
  std::printf("serving at %s\n", path.c_str());
  std::fflush(stdout);
  engine::Host(all_users).run(listener.get(), stop.get());
  ::unlink(path.c_str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return uet::tools::run_program("uet_engine", run, argc, argv); }
