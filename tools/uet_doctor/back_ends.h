// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Which NIC back ends beside kernel UDP are installed, and whether they start here.
#pragma once

#include "report.h"

namespace uet::doctor {

// Tries each module beside the provider in a child process, since some change it for good.
void examine_back_ends(Report& report);

}  // namespace uet::doctor
