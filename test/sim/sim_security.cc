// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "sim/sim_security.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>  // memmem

namespace uet::sim {
namespace {

constexpr std::size_t kCanaryBytes = 12;

void require(const Result<void>& result) {
  if (!result.ok()) std::abort();  // a mistake of the plan
}

bool holds(std::span<const std::byte> bytes, std::span<const std::byte> wanted) {
  return memmem(bytes.data(), bytes.size(), wanted.data(), wanted.size()) != nullptr;
}

// Bytes that are likely to be found by chance prove nothing.
bool is_telling(std::span<const std::byte> canary) {
  return std::count(canary.begin(), canary.end(), canary[0]) <
         static_cast<std::ptrdiff_t>(canary.size());
}

// Both ends and the middle of a packet: headers, payload, the last bytes of a payload.
bool shows(std::span<const std::byte> wire, std::span<const std::byte> plain) {
  if (plain.size() < kCanaryBytes) return false;
  const std::size_t last = plain.size() - kCanaryBytes;
  for (const std::size_t at : {std::size_t{0}, last / 2, last}) {
    const auto canary = plain.subspan(at, kCanaryBytes);
    if (is_telling(canary) && holds(wire, canary)) return true;
  }
  return false;
}

}  // namespace

SecuredNic::SecuredNic(SimNic& nic, const NodeSecurity& security, Time now)
    : sdi_(security.domain.sdi),
      secure_(nic, table_, security.domain.sdi, security.domain.uses_ssi(),
              wire::kDefaultTrimMarks),
      tap_(secure_, nic) {
  require(table_.add(security.domain));
  for (const NodeKey& key : security.keys) {
    require(install(key.an, key.key, key.epoch));
  }
  require(domain().activate(security.keys.front().an, now));
}

Result<void> SecuredNic::install(bool an, const tss::Key& key, std::uint16_t epoch) {
  const Result<void> result = domain().install(
      an, key, {.history = tss::SenderStart::History::Fresh, .epoch = epoch, .next_tsc = 0});
  if (result.ok()) std::memcpy(&names_[an ? 1 : 0], key.bytes().data(), sizeof names_[0]);
  return result;
}

std::size_t SecuredNic::Tap::tx_burst(std::span<const Packet* const> in) {
  std::vector<std::byte> plain;
  for (std::size_t i = 0; i < in.size(); ++i) {
    const auto head = in[i]->head();
    plain.assign(head.begin(), head.end());
    for (const Slice& slice : in[i]->payload) {
      plain.insert(plain.end(), slice.data, slice.data + slice.length);
    }
    bottom_.show_plain(plain);
    if (below_.tx_burst(in.subspan(i, 1)) == 0) return i;
  }
  return in.size();
}

std::string WireSecrecy::judge(const SimPacket& packet, std::uint64_t key_name) {
  wire::SecurityHeader header;
  if (!wire::SecurityHeader::decode(packet.bytes, header)) return "TSS-9: a packet in clear";
  if (shows(packet.bytes, packet.plain)) return "TSS-3: plain bytes on the wire";
  const std::uint64_t place = std::uint64_t{header.epoch} << 48 | header.counter;
  std::uint64_t& last = last_[{packet.source.ip.bytes, key_name}];
  if (place <= last) return "TSS-32: an IV twice";
  last = place;
  return {};
}

void flip_bit(SimPacket& packet, Rng& rng) {
  const auto bit = rng.below(8 * packet.bytes.size());
  packet.bytes[bit / 8] ^= static_cast<std::byte>(0x80 >> bit % 8);
}

}  // namespace uet::sim
