// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "tss/secure_nic.h"

#include <algorithm>

#include "tss/job_of.h"
#include "uet/base/check.h"

namespace uet::tss {

SecureNic::SecureNic(nic::Nic& inner, SdTable& table, std::uint32_t sdi, bool has_ssi,
                     const wire::TrimMarks& marks)
    : inner_(inner),
      table_(table),
      sdi_(sdi),
      marks_(marks),
      self_(inner.local_address()),
      caps_(inner.caps()),
      packet_bytes_(inner.caps().ip_mtu),
      opened_(std::make_unique_for_overwrite<std::byte[]>(nic::kRxBurst * packet_bytes_)),
      sealed_(std::make_unique_for_overwrite<std::byte[]>(nic::kTxBurst * packet_bytes_)),
      packets_(std::make_unique<Packet[]>(nic::kTxBurst)) {
  const auto overhead = static_cast<std::uint32_t>(overhead_bytes(has_ssi));
  caps_.ip_mtu -= std::min(caps_.ip_mtu, overhead);
  caps_.reads_registered_memory = false;
  caps_.secured = true;
}

void SecureNic::use(std::uint32_t sdi) {
  UET_ASSERT(sdi != 0 && sdi != sdi_);
  others_.push_back(sdi);
}

void SecureNic::drop(std::uint32_t sdi) {
  const auto at = std::find(others_.begin(), others_.end(), sdi);
  if (at != others_.end()) others_.erase(at);
}

bool SecureNic::is_used(std::uint32_t sdi) const {
  return sdi == sdi_ || std::find(others_.begin(), others_.end(), sdi) != others_.end();
}

// Replaces the bytes of `packet` by its plain text. False: drop it.
bool SecureNic::open(RxPacket& packet, std::size_t place, Time now) {
  if (packet.bytes.size() > packet_bytes_) return false;
  const bool native = packet.source.port == kNativePort;
  const OuterFields outer = native ? native_fields(packet.source.ip, self_.ip, packet.entropy)
                                   : udp_fields(packet.source, wire_address(self_));
  const std::span<std::byte> plain(opened_.get() + place * packet_bytes_, packet_bytes_);
  const bool trimmed = packet.trimmed || marks_.on(packet.dscp);
  const OpenResult result = table_.open(outer, packet.bytes, trimmed, plain, now);
  if (result.verdict == OpenVerdict::Unprotected) ++unprotected_;
  if (result.verdict != OpenVerdict::Opened) return false;
  SecureDomain& domain = *table_.find(result.sdi);
  if (!is_used(result.sdi) || !domain.allows(job_of(plain.first(result.bytes)))) {
    domain.count_binding_failure();
    wipe(plain.first(result.bytes));
    return false;
  }
  packet.bytes = plain.first(result.bytes);
  if (native) packet.source.port = kUetUdpPort;
  packet.source.sdi = result.sdi == sdi_ ? 0 : result.sdi & kMaxSdi;
  return true;
}

// A flood would fill the buffer in front of packets of members (TSS-73).
void SecureNic::judge_flood(Time now) {
  const std::size_t arrived = unprotected_ * (flooded_ ? kFloodSample : 1);
  const bool over = now - counted_since_ >= kFloodTime;
  const bool flood = arrived >= kFlood;
  if (!over && (flooded_ || !flood)) return;
  if (flood != flooded_) inner_.thin_out_unprotected(flood);
  flooded_ = flood;
  unprotected_ = 0;
  counted_since_ = now;
}

std::size_t SecureNic::rx_burst(std::span<RxPacket> out, Time now) {
  if (table_.next_deadline() <= now) table_.expire(now);
  const std::size_t count = inner_.rx_burst(out.first(std::min(out.size(), nic::kRxBurst)), now);
  std::size_t good = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (open(out[i], good, now)) {
      if (good != i) out[good] = out[i];
      ++good;
    }
  }
  if (unprotected_ > 0 || flooded_) judge_flood(now);
  return good;
}

static_assert(kMaxHeaderBytes <= Packet::kHeadroom);

// A copy of `packet` with security header, encrypted text and ICV; nullptr if it cannot be sealed.
const Packet* SecureNic::seal(const Packet& packet, std::size_t place) {
  const auto head = packet.head();
  const std::array<Slice, 3> pieces = {Slice{head.data(), static_cast<std::uint32_t>(head.size())},
                                       packet.payload[0], packet.payload[1]};
  const std::span<std::byte> room(sealed_.get() + place * packet_bytes_, packet_bytes_);
  if (packet.length() + kMaxHeaderBytes + kIcvBytes > room.size()) return nullptr;
  const FepAddress source{self_.ip, inner_.source_port_for(packet)};
  const OuterFields outer = source.port == kNativePort
                                ? native_fields(self_.ip, packet.to.ip,
                                                nic::source_port(caps_, self_.port, packet.entropy))
                                : udp_fields(source, wire_address(packet.to));
  const SealResult result =
      table_.seal(packet.to.sdi == 0 ? sdi_ : packet.to.sdi, outer, pieces, room);
  if (result.verdict != SealVerdict::Sealed) return nullptr;

  Packet& copy = packets_[place];
  copy.reset();
  const std::size_t front = result.bytes - packet.length() - kIcvBytes;
  std::copy_n(room.data(), front, copy.prepend(front));
  copy.payload[0] = {room.data() + front, static_cast<std::uint32_t>(result.bytes - front)};
  copy.to = packet.to;
  copy.to.sdi = 0;
  copy.entropy = packet.entropy;
  copy.ecn = packet.ecn;
  copy.dscp = packet.dscp;
  copy.way = packet.way;
  copy.control = packet.control;
  copy.answers_unknown_peer = packet.answers_unknown_peer;
  copy.sent_again = packet.sent_again;
  copy.first_in_flight = packet.first_in_flight;
  return &copy;
}

std::size_t SecureNic::tx_burst(std::span<const Packet* const> in) {
  std::array<const Packet*, nic::kTxBurst> out;
  std::array<std::size_t, nic::kTxBurst> index;  // in `in` of each packet in `out`
  const std::size_t offered = std::min(in.size(), out.size());
  std::size_t count = 0;
  for (std::size_t i = 0; i < offered; ++i) {
    out[count] = seal(*in[i], count);
    if (out[count] != nullptr) index[count++] = i;
  }
  const std::size_t taken = count > 0 ? inner_.tx_burst({out.data(), count}) : 0;
  for (std::size_t i = 0; i < taken; ++i) {
    in[index[i]]->sent = out[i]->sent;
    in[index[i]]->way = out[i]->way;
    in[index[i]]->rail = out[i]->rail;
  }
  return taken < count ? index[taken] : offered;
}

Time SecureNic::next_deadline() const {
  return std::min(inner_.next_deadline(), table_.next_deadline());
}

}  // namespace uet::tss
