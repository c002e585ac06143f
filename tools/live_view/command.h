// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The command line of programs that show live pages: common options and exit statuses.
#pragma once

#include <sys/types.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <string>

namespace uet::view {

inline constexpr int kNothingFound = 1;
inline constexpr int kUsedWrongly = 2;

// The positional argument PID; 0: all processes of the user.
inline void add_pid(CLI::App& app, pid_t& pid) {
  app.add_option("pid", pid, "Process; without it all processes of this user")
      ->check(CLI::PositiveNumber);
}

inline CLI::Option* add_json(CLI::App& app, bool& json, const std::string& meaning) {
  return app.add_flag("-j,--json", json, meaning);
}

// Seconds, from `least` to `most`.
inline CLI::Option* add_interval(CLI::App& app, double& seconds, const std::string& meaning,
                                 double least, double most) {
  return app.add_option("-i,--interval", seconds, meaning)
      ->check(CLI::Range(least, most))
      ->capture_default_str();
}

// declare(app) adds the options, run() does the work. Returns the exit status: that of run(), or
// kUsedWrongly, with the reason on standard error, for wrong arguments and exceptions.
template <class Declare, class Run>
int run_command(const std::string& name, const std::string& purpose, int argc, char** argv,
                Declare declare, Run run) {
  try {
    CLI::App app(purpose, name);
    declare(app);
    try {
      app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
      return app.exit(error) == 0 ? 0 : kUsedWrongly;
    }
    return run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", name.c_str(), error.what());
    return kUsedWrongly;
  }
}

}  // namespace uet::view
