// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The CRC trailer over back ends that own no IP header: appended on the way out, checked and taken
// off on the way in.
#include <algorithm>
#include <cstring>

#include "nic/middleware.h"

namespace uet::nic {

CrcNic::CrcNic(std::unique_ptr<Nic> inner_nic, const wire::TrimMarks& marks)
    : Middleware(std::move(inner_nic)),
      marks_(marks),
      self_(inner().local_address()),
      packets_(std::make_unique<Packet[]>(kTxBurst)),
      storage_(std::make_unique_for_overwrite<std::byte[]>(kTxBurst * kMaxDatagramBytes)) {}

// A packet holds two pieces of payload: the trailer joins the second, which is copied for it.
const Packet& CrcNic::with_trailer(const Packet& packet, std::size_t place) {
  Packet& copy = packets_[place];
  copy.copy_headers(packet);
  const auto head = packet.head();

  FepAddress source = self_;
  source.port = inner().source_port_for(packet);
  const std::array<Slice, 3> pieces = {Slice{head.data(), static_cast<std::uint32_t>(head.size())},
                                       packet.payload[0], packet.payload[1]};
  const auto trailer =
      wire::crc_trailer(wire::udp_packet_crc(source, wire_address(packet.to), pieces));
  std::byte* const start = storage_.get() + place * kMaxDatagramBytes;
  std::byte* end = std::copy_n(packet.payload[1].data, packet.payload[1].length, start);
  end = std::copy(trailer.begin(), trailer.end(), end);
  const Slice last{start, static_cast<std::uint32_t>(end - start)};
  copy.payload = {packet.payload[0], last};
  if (packet.payload[0].length == 0) copy.payload = {last, {}};
  return copy;
}

std::size_t CrcNic::tx_burst(std::span<const Packet* const> in) {
  std::array<const Packet*, kTxBurst> out;
  const std::size_t count = std::min(in.size(), out.size());
  for (std::size_t i = 0; i < count; ++i) out[i] = &with_trailer(*in[i], i);
  const std::size_t taken = inner().tx_burst({out.data(), count});
  for (std::size_t i = 0; i < taken; ++i) {
    in[i]->sent = out[i]->sent;
    in[i]->way = out[i]->way;
  }
  return taken;
}

bool CrcNic::check(RxPacket& packet) const {
  if (packet.trimmed || marks_.on(packet.dscp)) return true;  // its end is gone (WIRE 1.3)
  if (packet.bytes.size() < wire::kCrcTrailerBytes) return false;
  const auto covered = packet.bytes.first(packet.bytes.size() - wire::kCrcTrailerBytes);
  const Slice piece{covered.data(), static_cast<std::uint32_t>(covered.size())};
  FepAddress to = wire_address(self_);
  if (packet.source.via != 0)
    to.port = inner().port_of(static_cast<std::uint8_t>(packet.source.via));
  const auto trailer =
      wire::crc_trailer(wire::udp_packet_crc(packet.source, to, std::span(&piece, 1)));
  if (std::memcmp(trailer.data(), covered.data() + covered.size(), trailer.size()) != 0) {
    return false;
  }
  packet.bytes = covered;
  return true;
}

// PDS-210 step 1: what fails is dropped and counted, never NACKed.
std::size_t CrcNic::rx_burst(std::span<RxPacket> out, Time now) {
  const std::size_t count = inner().rx_burst(out, now);
  std::size_t good = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (check(out[i])) {
      out[good++] = out[i];
    } else {
      ++crc_errors_;
    }
  }
  return good;
}

NicCounters CrcNic::counters() const {
  NicCounters sum = Middleware::counters();
  sum.crc_errors += crc_errors_;
  return sum;
}

}  // namespace uet::nic
