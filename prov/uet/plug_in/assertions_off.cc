// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Linked into plug-ins that shall not end the process of the application (uet/base/check.h).
#include "uet/base/check.h"

namespace uet {

const bool assertions_stop = false;

}  // namespace uet
