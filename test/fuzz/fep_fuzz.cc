// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A Fep that a hostile peer talks to: whatever arrives, nothing is read or written outside the
// packets and the memory that was exposed (fep_rig.h).
#include "fep_rig.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  uet::fuzz::OnePacketNic nic;
  uet::fuzz::talk(nic, nic, {data, size}, [](std::vector<std::byte>&, std::uint8_t) {});
  return 0;
}
