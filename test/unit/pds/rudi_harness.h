// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// RUDI packets by hand, for the tests of both ends.
#pragma once

#include <optional>
#include <vector>

#include "unit/pds/pds_harness.h"

namespace uet::pds::testing {

class RudiBench : public Bench {
 protected:
  static std::vector<wire::RudiHeader> headers(const std::vector<Sent>& sent) {
    std::vector<wire::RudiHeader> all;
    for (const Sent& packet : sent) {
      wire::RudiHeader header;
      if (wire::RudiHeader::decode(packet.bytes, header)) all.push_back(header);
    }
    return all;
  }
  // A RUDI packet from the peer (or another address) with `bytes` behind its header.
  void arrive(const wire::RudiHeader& header, std::size_t bytes = 12,
              const std::optional<FepAddress>& from = {}) {
    std::vector<std::byte> packet(sizeof(wire::PdsRudi) + bytes, std::byte{0x77});
    header.encode(packet.data());
    node->receive(packet, from.value_or(peer), now, rx_entropy, rx_ecn, rx_trimmed);
  }
  static wire::RudiHeader request_with(std::uint32_t packet_id) {
    return {.type = wire::PdsType::RudiReq, .next_hdr = NextHdr::RequestStd, .pkt_id = packet_id};
  }
  void respond(std::uint32_t packet_id, const std::optional<FepAddress>& from = {}) {
    arrive({.type = wire::PdsType::RudiResp, .next_hdr = NextHdr::Response, .pkt_id = packet_id},
           12, from);
  }
  void refuse(NackCode code, std::uint32_t packet_id) {
    wire::NackHeader nack;
    nack.nt = true;
    nack.nack_code = code;
    nack.nack_psn = Psn{packet_id};
    receive(nack);
  }
  TestMessage& rudi(std::uint32_t packets) { return send(packets, DeliveryMode::Rudi); }
  void expect_nothing_left() {
    EXPECT_TRUE(turn().empty());
    EXPECT_EQ(node->packets.in_use(), 0U);
    EXPECT_TRUE(node->manager->quiescent());
    EXPECT_FALSE(node->manager->has_ready());
  }
};

}  // namespace uet::pds::testing
