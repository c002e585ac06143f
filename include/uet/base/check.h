// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// UET_ASSERT: a violated assertion is a programmer error and ends the process. NDEBUG does not
// change that: the assertions are compiled into every build, and all programs of this tree stop
// (tests, simulators, fuzz targets, benchmarks). A plug-in lives inside the process of an
// application, which it never aborts: unless the build says otherwise (UET_ASSERTIONS), it is
// linked with prov/uet/plug_in/assertions_off.cc, and link-time optimisation removes the checks.
#pragma once

namespace uet {

// Whether UET_ASSERT evaluates its condition. Decided when a program is linked: true unless the
// program brings a definition of its own.
extern const bool assertions_stop;

// Prints the condition with its place and ends the process with SIGABRT.
[[noreturn, gnu::cold]] void assertion_failed(const char* condition, const char* file,
                                              unsigned line, const char* function);

}  // namespace uet

// The condition must have no side effects.
#define UET_ASSERT(condition)                                            \
  do {                                                                   \
    if (::uet::assertions_stop && !(condition)) [[unlikely]] {           \
      ::uet::assertion_failed(#condition, __FILE__, __LINE__, __func__); \
    }                                                                    \
  } while (false)
