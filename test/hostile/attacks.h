// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The attacks that the suite of hostile hosts makes. Each goes on until it is told to stop.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "stranger.h"

namespace uet::hostile {

// The bytes that may go to the invented addresses of an attack.
enum class Reflected : std::uint8_t {
  Anything,  // it speaks in no such name
  Three,     // three bytes for each that came from there
  Rudi,      // and the budget of RUDI beyond that (PDS-222)
};

struct Attack {
  const char* name;  // letters and digits
  double packets_per_second;
  void (*run)(Stranger& stranger, const std::function<bool()>& goes_on);
  Reflected most = Reflected::Anything;
  // For scripts/hostile alone: of its rate before, the peer keeps so much during the attack; a
  // newcomer is answered within this time (0: any).
  double kept_rate = 0.8;
  double contact_ms = 0;
  // The counter of a victim with a guard (back end xdp) that counts most of the packets.
  const char* stopped = nullptr;
};

std::span<const Attack> attacks();

}  // namespace uet::hostile
