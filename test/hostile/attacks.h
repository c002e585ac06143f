// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The attacks that the suite of hostile hosts makes. Each goes on until it is told to stop.
#pragma once

#include <functional>
#include <span>

#include "stranger.h"

namespace uet::hostile {

struct Attack {
  const char* name;  // letters and digits
  double packets_per_second;
  void (*run)(Stranger& stranger, const std::function<bool()>& goes_on);
  // Its sources are addresses of no host: they get three bytes for each that came from there.
  bool invents_sources = false;
};

std::span<const Attack> attacks();

}  // namespace uet::hostile
