// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The sizes and parameters of a Fep.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cms/ccc.h"
#include "pds/parameters.h"
#include "ri/mr_table.h"
#include "ses/parameters.h"
#include "wire/frame.h"

namespace uet::fep {

// Every bound is here. Memory comes as it is needed; the warmed data path allocates nothing.
struct Config {
  pds::Parameters pds;
  cms::Parameters cms;
  ses::Parameters ses;
  std::size_t packets = 8192;  // heads: sent and not yet acknowledged, plus control
  std::size_t buffers = 4096;  // payload buffers of ses.payload_mtu bytes
  std::size_t memory_regions = 65536;
  std::uint64_t seed = 1;  // start PSNs, PDC ids, entropy
  // Of the memory keys that are chosen here: peers see some, and must not learn others from them.
  ri::KeySecret key_secret{};
  // DSCPs that tell trimmed packets (PDS-147); none: only what the NIC marks itself counts.
  wire::TrimMarks trim_marks;
};

// Largest payload MTU (a power of two, 1024 to 8192) whose packets fit an IP packet of `ip_mtu`
// bytes with the largest headers that UET puts in front of it. 0 if not even 1024 fits.
std::uint32_t payload_mtu_for(std::uint32_t ip_mtu);

}  // namespace uet::fep
