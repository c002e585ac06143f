// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The traffic of packet_bench.cc once, for a profiler: with
//   valgrind --tool=callgrind --toggle-collect='uet::bench::measured_*' uet_count_packets send
// it sees nothing but the measured end. Prints how many data packets there were.
// Use: uet_count_packets send|receive|again [ROUNDS [PDCS]]
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "packet_rig.h"

int main(int argc, char** argv) {
  using namespace uet::bench;
  const std::string_view what = argc > 1 ? argv[1] : "";
  if (what != "send" && what != "receive" && what != "again") {
    std::fprintf(stderr, "use: %s send|receive|again [ROUNDS [PDCS]]\n", argv[0]);
    return 2;
  }
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 20;
  Traffic traffic;
  traffic.measured = what == "receive" ? End::Receiver : End::Sender;
  traffic.pdcs = argc > 3 ? static_cast<std::size_t>(std::atoi(argv[3])) : 1;
  if (what == "again") {
    traffic.lose_one_in = 8;
    traffic.algorithm = uet::cms::Algorithm::None;
  }
  PacketRig rig(traffic);
  for (int i = 0; i < rounds; ++i) rig.round();
  std::printf("packets: %llu again: %llu\n", static_cast<unsigned long long>(rig.data_packets()),
              static_cast<unsigned long long>(rig.sent_again()));
  return rig.ok() ? 0 : 1;
}
