// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The job that a plain packet is for (TSS-67): the one field of the semantic header that this
// module reads.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "uet/base/types.h"

namespace uet::tss {

// The JobID of a request, in any delivery mode. `packet`: from the PDS prologue on. nullopt:
// answers and control packets, which belong to a request or a PDC, and packets that are too short
// for a header, which PDS or SES drops.
std::optional<JobId> job_of(std::span<const std::byte> packet);

}  // namespace uet::tss
