// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The frame of a program with subcommands: how it takes its arguments, and how it ends.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <optional>

namespace uet::tools {

inline constexpr int kFailed = 1;
inline constexpr int kUsedWrongly = 2;

// nullopt: go on. Otherwise the exit status: help was asked for, or the arguments are wrong.
inline std::optional<int> parse(CLI::App& app, int argc, char** argv) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kUsedWrongly;
  }
  return {};
}

// The exit status of `run(argc, argv)`; an exception is told as "NAME: why".
template <class Run>
int run_program(const char* name, Run run, int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", name, error.what());
    return kFailed;
  }
}

}  // namespace uet::tools
