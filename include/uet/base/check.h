// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// UET_ASSERT: programmer errors stop a debug build and the simulator. A release build lives inside
// somebody else's process and never aborts it.
#pragma once

#ifdef NDEBUG
#define UET_ASSERT(condition) \
  do {                        \
    (void)sizeof(condition);  \
  } while (false)
#else
#include <cassert>
#define UET_ASSERT(condition) assert(condition)
#endif
