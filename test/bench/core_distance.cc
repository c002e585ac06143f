// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// How far the two processors of a measurement are from each other: what it takes to hand a cache
// line from one to the other. A hypervisor may move a machine's processors under one shared cache
// and out of it again within seconds, and everything that two processes do to each other takes up
// to several times as long there, whatever the transport. scripts/bench compares only what was
// measured at one distance.
//
// Use: uet_core_distance
// Prints "distance: N ns", of the first two processors that it may run on; with one alone, 0 ns.
#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kRounds = 41;  // the median counts: a round may lose its processor
constexpr int kHandovers = 2000;     // of a round, there and back

alignas(128) std::atomic<int> turn{0};

void stay_on(int processor) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(processor, &one);
  ::sched_setaffinity(0, sizeof one, &one);
}

std::vector<int> usable_processors() {
  std::vector<int> found;
  cpu_set_t all;
  CPU_ZERO(&all);
  ::sched_getaffinity(0, sizeof all, &all);
  for (int processor = 0; processor < CPU_SETSIZE; ++processor) {
    if (CPU_ISSET(processor, &all)) found.push_back(processor);
  }
  return found;
}

void wait_for(int value) {
  while (turn.load(std::memory_order_acquire) != value) {
  }
}

void answer(int processor) {
  stay_on(processor);
  for (int i = 0; i < static_cast<int>(kRounds) * kHandovers; ++i) {
    wait_for(2 * i + 1);
    turn.store(2 * i + 2, std::memory_order_release);
  }
}

double measure(int own, int other) {
  std::thread partner(answer, other);
  stay_on(own);
  std::array<double, kRounds> rounds{};
  int next = 0;
  for (double& round : rounds) {
    const auto begin = Clock::now();
    for (int i = 0; i < kHandovers; ++i, ++next) {
      turn.store(2 * next + 1, std::memory_order_release);
      wait_for(2 * next + 2);
    }
    round = std::chrono::duration<double, std::nano>(Clock::now() - begin).count();
  }
  partner.join();
  std::nth_element(rounds.begin(), rounds.begin() + kRounds / 2, rounds.end());
  return rounds[kRounds / 2] / (2 * kHandovers);
}

}  // namespace

int main() {
  const std::vector<int> processors = usable_processors();
  const double distance = processors.size() < 2 ? 0 : measure(processors[0], processors[1]);
  std::printf("distance: %.0f ns\n", distance);
  return 0;
}
