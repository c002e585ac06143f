// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What transport security costs a packet: sealing and opening, and many derived keys in turn. To be
// put beside "openssl speed -evp aes-256-gcm -bytes 4096".
#include <benchmark/benchmark.h>

#include <vector>

#include "tss/sd_table.h"

namespace uet::tss {
namespace {

constexpr std::uint32_t kSdi = 7;
constexpr std::size_t kDerivedKeys = 32'768;

FabricAddress address(std::uint32_t number) {
  FabricAddress out;
  out.bytes = {10, static_cast<std::uint8_t>(number >> 16), static_cast<std::uint8_t>(number >> 8),
               static_cast<std::uint8_t>(number)};
  return out;
}

void add_domain(SdTable& table, const DomainConfig& config) {
  Key key;
  for (std::byte& byte : key.writable()) byte = std::byte{0x42};
  if (!table.add(config).ok() || !table.find(kSdi)->install(false, key, {}).ok() ||
      !table.find(kSdi)->activate(false, {}).ok()) {
    std::abort();
  }
}

DomainConfig config_of(KeyMode mode = KeyMode::Cluster) {
  DomainConfig config;
  config.sdi = kSdi;
  config.mode = mode;
  return config;
}

// One sender, whose derived key is that of 65,536 packets.
void BM_Seal(benchmark::State& state) {
  SdTable table({.derived_keys = kDerivedKeys});
  add_domain(table, config_of());
  const OuterFields outer = udp_fields({address(1), 4793}, {address(2), 4793});
  const std::vector<std::byte> plain(static_cast<std::size_t>(state.range(0)));
  const Slice piece{plain.data(), static_cast<std::uint32_t>(plain.size())};
  std::vector<std::byte> out(plain.size() + kMaxHeaderBytes + kIcvBytes);
  for (auto _ : state) {
    benchmark::DoNotOptimize(table.seal(kSdi, outer, {&piece, 1}, out));
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(BM_Seal)->Arg(64)->Arg(1024)->Arg(4096);

void BM_Open(benchmark::State& state) {
  SdTable table({.derived_keys = kDerivedKeys});
  add_domain(table, config_of());
  const OuterFields outer = udp_fields({address(1), 4793}, {address(2), 4793});
  const std::vector<std::byte> plain(static_cast<std::size_t>(state.range(0)));
  const Slice piece{plain.data(), static_cast<std::uint32_t>(plain.size())};
  std::vector<std::byte> sealed(plain.size() + kMaxHeaderBytes + kIcvBytes);
  std::vector<std::byte> out(sealed.size());
  sealed.resize(table.seal(kSdi, outer, {&piece, 1}, sealed).bytes);
  for (auto _ : state) {
    const OpenResult result = table.open(outer, sealed, false, out, {});
    if (result.verdict != OpenVerdict::Opened) state.SkipWithError("it does not open");
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(BM_Open)->Arg(64)->Arg(1024)->Arg(4096);

// A server with as many clients, each of which has a derived key of its own, in turn.
void BM_SealForClients(benchmark::State& state) {
  SdTable table({.derived_keys = kDerivedKeys});
  DomainConfig config = config_of(KeyMode::Server);
  const auto clients = static_cast<std::uint32_t>(state.range(0));
  for (std::uint32_t i = 0; i < clients; ++i) config.clients.push_back({address(i + 100), i + 1});
  add_domain(table, config);
  const std::vector<std::byte> plain(4096);
  const Slice piece{plain.data(), 4096};
  std::vector<std::byte> out(plain.size() + kMaxHeaderBytes + kIcvBytes);
  std::uint32_t next = 0;
  for (auto _ : state) {
    const OuterFields outer = udp_fields({address(1), 4793}, {address(100 + next), 4793});
    const SealResult result = table.seal(kSdi, outer, {&piece, 1}, out);
    if (result.verdict != SealVerdict::Sealed) state.SkipWithError("it is not sealed");
    next = next + 1 < clients ? next + 1 : 0;
  }
  state.SetBytesProcessed(state.iterations() * 4096);
}
BENCHMARK(BM_SealForClients)->ArgName("pdcs")->Arg(10)->Arg(10'000);

}  // namespace
}  // namespace uet::tss
