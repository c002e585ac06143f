// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Objects that all PDCs of a FEP share: configuration, pools, the outbox, the queue of PDCs that
// may send.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/peer_ports.h"
#include "base/rng.h"
#include "base/shares.h"
#include "base/timer_wheel.h"
#include "base/trace.h"
#include "cms/ccc.h"
#include "cms/destination.h"
#include "pds/ack_scheduler.h"
#include "pds/ccc_pool.h"
#include "pds/counters.h"
#include "pds/early_storage.h"
#include "pds/later_acks.h"
#include "pds/loss_detector.h"
#include "pds/outbox.h"
#include "pds/packet_meta.h"
#include "pds/parameters.h"
#include "pds/peer_limits.h"
#include "pds/proved_hosts.h"
#include "pds/rx_window.h"
#include "pds/turns.h"
#include "pds/tx_window.h"
#include "uet/base/packet.h"
#include "uet/base/slab.h"
#include "uet/pds/api.h"

namespace uet::pds {

class Credits;
class StartPsns;

// ROD: a packet that arrived before its predecessors (PDS-164).
struct EarlyPacket {
  PacketMeta meta;
  std::uint16_t length = 0;  // of its SES header and payload
  std::uint32_t nominal_bytes = 0;
  wire::NextHdr next_hdr{};
};

// State that all PDCs of a FEP share. Owned by Manager.
struct Environment {
  const Parameters& parameters;
  const cms::Parameters& cms;
  Client& client;
  Outbox& outbox;
  PacketPool& packets;
  Counters& counters;
  Rng& rng;
  TimerWheel& wheel;
  SharedPool<Response>& stored_responses;  // guaranteed ones, until cleared (PDS-112)
  SharedPool<EarlyPacket>& early_packets;
  EarlyStorage& early_storage;         // their bytes
  TxWindow::Pool& tx_records;          // of PDCs with something outstanding
  RxWindow::Pool& rx_entries;          // of PDCs that miss something
  AckScheduler::Memory& waiting_acks;  // of PDCs that owe one
  LaterAcks& later_acks;               // of these, those that wait for a reply
  Turns& turns;                        // PDCs that may have something to send
  std::size_t control_reserve;         // packets that data must leave in the pool
  bool packets_short = false;          // the pool had none for data: sending stops for this pass
  Time packets_short_since{};          // Time{}: the last packet that data needed was there
  bool responses_short = false;        // a host had no memory for one more stored response
  std::size_t unproved = 0;            // PDCs (Pdc::proved)
  Credits* credits = nullptr;          // set once, before there is a PDC
  StartPsns* start_psns = nullptr;     // the same; only if PDCs are secured
  cms::DestinationPressure pressure;   // what ACKs say of the memory here (CMS 4.1)
  LossScratch losses;                  // for one look for losses at a time
  PeerLimits peer_limits{};            // limits that refusals of peers have shown
  PeerPorts peer_ports;                // where answers go
  PeerWatcher* peers = nullptr;        // may be none
  ProvedHosts proved_hosts{};          // of PDCs whose peer has answered (PDS-222)
  trace::Trace trace{};
};

// Step 11 of TSS section 6: does a packet from `source` belong to the secure domain of the peer at
// `peer`? A packet that does not is counted; the caller drops it without an answer (TSS-39).
inline bool is_bound(Environment& environment, const FepAddress& peer, const FepAddress& source) {
  if (peer.sdi == source.sdi) return true;
  ++environment.counters.binding_failures;
  return false;
}
// Puts the Expected_PSN of the secure domain behind the header of a closing ACK (PDS-78). False:
// there is none to report, nothing was appended.
bool append_expected_psn(Environment& environment, std::uint32_t sdi, Packet& packet);
// Addresses a packet without an owner (ACK, NACK, unacknowledged control packet) and queues it.
void emit_control(Environment& environment, Packet& packet, const FepAddress& to,
                  std::uint16_t entropy);
// Builds a NACK; spdcid 0 when the sender has no PDC (WIRE 2.5). Counted.
void emit_nack(Environment& environment, const FepAddress& to, wire::NackHeader nack,
               std::uint16_t entropy);

}  // namespace uet::pds
