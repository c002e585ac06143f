// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// From an arriving packet to the object that takes it: a PDC, RUDI, or SES itself (datagrams).
// Decides which PDC a packet belongs to and what is refused (PDS-24 to 27, PDS-58 to 67, PDS-210).
// Must not know what a PDC does with the packet.
#pragma once

#include "pds/connections.h"
#include "pds/environment.h"
#include "pds/gaps.h"
#include "pds/incoming.h"
#include "pds/rudi.h"
#include "pds/rudi_target.h"
#include "pds/tombstones.h"
#include "uet/base/packet.h"
#include "uet/base/pdc_guard.h"
#include "uet/base/time.h"
#include "uet/pds/api.h"
#include "uet/wire/pds.h"

namespace uet::pds {

class Demultiplexer {
 public:
  // All arguments outlive it.
  Demultiplexer(Environment& environment, Connections& connections, Rudi& rudi,
                RudiTarget& rudi_target)
      : env_(environment),
        connections_(connections),
        pdcs_(connections.pdcs()),
        rudi_(rudi),
        rudi_target_(rudi_target),
        gaps_(pdcs_) {}

  // A packet has arrived; its bytes are valid during the call. If memory is short, the packet is
  // dropped and counted, and its sender repeats it.
  void on_packet(const RxPacket& packet, Time now);
  // ACKs of packets that have arrived leave that wait for the application's reply (LaterAcks).
  // True: there were some.
  bool send_later_acks(Time now);
  // `guard` hears from now on which PDCs are open (PDS-236). It outlives the Demultiplexer.
  void set_guard(PdcGuard& guard);
  // Packets that have not arrived (PDS-235).
  Gaps& gaps() { return gaps_; }

 private:
  void note_in_trace(const Pdc& pdc, const Incoming& request);
  void on_request_packet(const RxPacket& packet, Time now);
  void on_ack_packet(const RxPacket& packet, Time now);
  void on_expected_psn(const Pdc& pdc, const wire::AckHeader& header,
                       std::span<const std::byte> payload);
  void on_nack_packet(const RxPacket& packet, Time now);
  void on_control_packet(const RxPacket& packet, Time now);
  void on_control(Pdc& pdc, const wire::ControlHeader& header, Incoming& request, Time now);
  void on_credit_packet(Pdc& pdc, const wire::ControlHeader& header, Time now);
  void on_datagram_packet(const RxPacket& packet, Time now);
  void on_rudi_packet(const RxPacket& packet, Time now);
  void prove_address(RudiFlow& flow, Time now);

  PeerKey peer_of_syn(const FepAddress& source, PdcId spdcid, Psn start_psn) const;
  Pdc* resolve_syn(const RxPacket& packet, PdcId spdcid, DeliveryMode mode, Psn start_psn,
                   const Incoming& request, Time now);
  bool may_open(const RxPacket& packet, const PeerKey& peer, DeliveryMode mode, Psn start_psn,
                const Incoming& request, Time now);
  Pdc* resolve(const RxPacket& packet, PdcId spdcid, PdcId dpdcid, const Incoming& request,
               Time now);
  Pdc* answerer(PdcId id, const RxPacket& packet, Time now, std::uint64_t& others);
  void on_tombstone(const Tombstone& tombstone, const RxPacket& packet, const PeerKey& from,
                    const Incoming& request);
  void acknowledge_late(const Tombstone& tombstone, Psn cack, const PacketMeta& asked,
                        const Response& response);
  void refuse(const RxPacket& packet, NackCode code, PdcId spdcid, const PacketMeta& refused,
              PdcId own = {}, std::uint32_t payload = 0);
  bool refuses_replayable();

  Environment& env_;
  Connections& connections_;
  PdcTable& pdcs_;
  Rudi& rudi_;
  RudiTarget& rudi_target_;
  Gaps gaps_;
};

}  // namespace uet::pds
