// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Cost per packet of the two PSN windows: in order, and with every 16th packet late.
#include <benchmark/benchmark.h>

#include "pds/rx_window.h"
#include "pds/tx_window.h"

namespace uet::pds {
namespace {

constexpr std::size_t kRange = 1024;

void TxWindowPutAcknowledgeSlide(benchmark::State& state) {
  TxWindow::Pool pool(kRange, 1);
  pool.reserve(1);
  TxWindow window(pool, Psn{1});
  Packet packet;
  constexpr std::size_t kInFlight = 256;
  while (window.span() < kInFlight) window.put().packet = &packet;
  for (auto _ : state) {
    window.put().packet = &packet;
    TxRecord* record = window.find(window.base());
    benchmark::DoNotOptimize(record);
    record->packet = nullptr;
    window.slide();
  }
  if (window.span() != kInFlight) state.SkipWithError("the window does not slide");
}
BENCHMARK(TxWindowPutAcknowledgeSlide);

// `range(0)`: how many packets a late one is late; 0 = all in order.
void RxWindowMarkAdvance(benchmark::State& state) {
  RxWindow::Pool pool(kRange, 1);
  pool.reserve(1);
  RxWindow window(pool, Psn{1});
  const auto late = static_cast<std::int32_t>(state.range(0));
  Psn next{1};
  for (auto _ : state) {
    Psn psn = next;
    if (late > 0 && next.value % 16 == 0) {
      // Missing for now.
    } else {
      benchmark::DoNotOptimize(window.place(psn));
      window.mark(psn, RxWindow::Slot::Finished);
    }
    if (late > 0 && (next - late).value % 16 == 0 &&
        next.value > static_cast<std::uint32_t>(late)) {
      window.mark(next - late, RxWindow::Slot::Finished);
    }
    window.advance([](std::uint16_t) {});
    ++next;
  }
  benchmark::DoNotOptimize(window.cack_psn());
  if (next - window.cack_psn() > 64) state.SkipWithError("the window does not advance");
}
BENCHMARK(RxWindowMarkAdvance)->Arg(0)->Arg(8);

void RxWindowSackBitmap(benchmark::State& state) {
  RxWindow::Pool pool(kRange, 1);
  pool.reserve(1);
  RxWindow window(pool, Psn{1});
  for (std::uint32_t psn = 2; psn <= 60; psn += 2) window.mark(Psn{psn}, RxWindow::Slot::Finished);
  for (auto _ : state) benchmark::DoNotOptimize(window.bitmap(window.sack_base(Psn{60})));
}
BENCHMARK(RxWindowSackBitmap);

}  // namespace
}  // namespace uet::pds
