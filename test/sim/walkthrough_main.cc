// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// uet_walkthrough: prints the story of one fi_write, packet by packet (see walkthrough.h).
#include <cstdio>

#include "sim/walkthrough.h"

int main() {
  std::fputs(uet::sim::tell_walkthrough().c_str(), stdout);
  return 0;
}
