// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "uet/base/check.h"

#undef NDEBUG  // under which the C library does not declare what it fails with
#include <cassert>

namespace uet {

// A plug-in has a definition that is not weak.
[[gnu::weak]] extern const bool assertions_stop = true;

void assertion_failed(const char* condition, const char* file, unsigned line,
                      const char* function) {
  __assert_fail(condition, file, line, function);
}

}  // namespace uet
