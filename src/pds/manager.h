// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Packet delivery of a FEP as its neighbours see it: messages of SES come in (Delivery), packets of
// the network come in, packets leave through the outbox. Owns and connects the parts of PDS and
// passes each call on to the part that decides. One thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/keyed_sequence.h"
#include "base/timer_wheel.h"
#include "cms/ccc.h"
#include "pds/ccc_pool.h"
#include "pds/connections.h"
#include "pds/counters.h"
#include "pds/credits.h"
#include "pds/datagrams.h"
#include "pds/demultiplex.h"
#include "pds/early_storage.h"
#include "pds/environment.h"
#include "pds/inspection.h"
#include "pds/outbox.h"
#include "pds/parameters.h"
#include "pds/pdc.h"
#include "pds/rudi.h"
#include "pds/rudi_target.h"
#include "pds/turns.h"
#include "uet/base/packet.h"
#include "uet/base/slab.h"
#include "uet/pds/api.h"

namespace uet::pds {

class Manager final : public Delivery {
 public:
  // All referenced objects outlive the manager. `early_bytes`: largest SES header plus payload of a
  // packet, for packets that must wait for their predecessors (ROD).
  Manager(const Parameters& parameters, const cms::Parameters& cms, Client& client, Outbox& outbox,
          PacketPool& packets, std::size_t early_bytes, Rng& rng, Time now);
  ~Manager() override;

  Result<void> send(Message& message, const Destination& destination, Time now) override;
  Result<void> respond(Message& message, Time now) override;
  Result<void> send_on(PdcId pdc, Message& message, Time now) override;
  void answer(PdcId pdc, Psn psn, const Response& response) override;
  bool cancel(Message& message) override;
  void edit_packets(const Message& message, PacketEditor& editor) override;
  void kick(PdcId pdc) override;
  void request_acks_now(PdcId pdc) override;
  void lock(PdcId pdc) override;
  void unlock(PdcId pdc) override;
  void watch(PdcId pdc) override;
  void unwatch(PdcId pdc) override;
  Result<PdcId> connect(const Destination& destination, Time now) override;
  bool proved(PdcId pdc) override;
  void abort(PdcId pdc, Time now) override;

  // Takes the packets that arrive.
  Demultiplexer& demultiplexer() { return demultiplexer_; }
  // Sends from PDCs, in turn and bounded (design section 7). True if a packet was sent.
  bool pump(Time now);
  // Frees PDCs whose end has come, without sending.
  void free_finished(Time now);
  // True if a timer fired.
  bool expire(Time now);
  // A PDC or a datagram waits for its turn, or an ACK for the application's reply.
  bool has_ready() const {
    return !turns_.empty() || !later_acks_.empty() || datagrams_.waiting() || rudi_.has_ready();
  }
  // To be called when packets have left the outbox: datagrams among them are done.
  void answer_datagrams(Time now) {
    if (!datagrams_.empty()) datagrams_.answer_taken(now);
  }
  Time next_deadline() const {
    return std::min({wheel_.next_deadline(), rudi_.next_deadline(), credits_.next_deadline()});
  }

  // Begins to close the PDCs that lead to `address`. Later messages to it open new PDCs:
  // another process may be there then, which would refuse the old ones (PDS-134).
  void forget(const FepAddress& address, Time now) { connections_.forget(address, now); }
  // The FEPs that the application knows. Answers to requests of a FEP at a port of its own go there
  // only if it is known (WIRE 1.1).
  PeerPorts& peer_ports() { return environment_.peer_ports; }
  // Gives up at once what the connections of a peer have carried: that peer cannot answer any more.
  // Its address may belong to another process by now, whose PDCs go on.
  void on_dead_peer(const DeadPeer& lost, Time now);
  // Packets that left by a lost rail leave again at once, and the ACKs of the last time, too
  // (PDS-227).
  void on_lost_rail(const LostRail& lost, Time now);
  // The host of `address` has reported that no process has that port. Ends PDCs of peers that are
  // watched and do not answer (PDS-234).
  void on_refusal(const FepAddress& address);
  // As StartPsns::key_changed. If memory is short, Start_PSNs stay random.
  void key_changed(std::uint32_t sdi);
  // `watcher` hears of peers that are given up, until another call; nullptr: none does.
  void watch_peers(PeerWatcher* watcher) { environment_.peers = watcher; }
  // Starts closing every PDC.
  void begin_close_all(Time now);
  std::size_t open_pdcs() const { return connections_.admission().open_pdcs(); }
  // No packet outstanding, no message queued, nothing stored.
  bool quiescent() const;
  const Counters& counters() const { return counters_; }
  const CccPool& contexts() const { return connections_.contexts(); }
  // Its trace and its lists, for people.
  Inspection inspect() { return {environment_, connections_}; }
  // How full the memory behind is; before each pass that may send.
  void set_receive_load(const cms::ReceiveLoad& load);
  // For tests: the PDC with this local id, or nullptr.
  Pdc* find(PdcId id) { return connections_.find(id); }

 private:
  // A packet that a secure domain is to protect never leaves in clear (TSS-9).
  bool may_go_to(const Destination& destination) const {
    return destination.address.sdi == 0 || parameters_.secured;
  }

  const Parameters parameters_;
  const cms::Parameters cms_;
  Counters counters_;
  TimerWheel wheel_;
  KeyedSequence secret_;  // PDC ids and first PSNs
  TxWindow::Pool tx_records_;
  RxWindow::Pool rx_entries_;
  Turns turns_;
  SharedPool<Response> stored_responses_;
  SharedPool<EarlyPacket> early_packets_;
  AckScheduler::Memory waiting_acks_;
  LaterAcks later_acks_;
  EarlyStorage early_storage_;
  Rng& rng_;
  Environment environment_;
  Credits credits_;
  Datagrams datagrams_;
  Rudi rudi_;
  RudiTarget rudi_target_;
  Connections connections_;
  Demultiplexer demultiplexer_;
  bool rudi_first_ = false;  // RUDI and PDCs go first by turns
};

}  // namespace uet::pds
