// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// All PDCs of a FEP: selection, opening, accepting, closing; the way from a packet to its PDC and
// from a message to its PDC (PDS sections 4, 6, 11, 16), or past all PDCs (UUD). One thread.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>

#include "uet/base/growing_table.h"
#include "uet/base/keyed_sequence.h"
#include "uet/base/packet.h"
#include "uet/base/slab.h"
#include "uet/base/slot_array.h"
#include "uet/base/slot_list.h"
#include "uet/base/timer_wheel.h"
#include "uet/base/zeroed_array.h"
#include "uet/cms/ccc.h"
#include "uet/pds/api.h"
#include "uet/pds/ccc_pool.h"
#include "uet/pds/counters.h"
#include "uet/pds/credits.h"
#include "uet/pds/datagrams.h"
#include "uet/pds/outbox.h"
#include "uet/pds/parameters.h"
#include "uet/pds/pdc.h"
#include "uet/pds/rudi.h"

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
  void kick(PdcId pdc) override;
  void hurry(PdcId pdc) override;
  void lock(PdcId pdc) override;
  void unlock(PdcId pdc) override;
  void watch(PdcId pdc) override;
  void unwatch(PdcId pdc) override;
  Result<PdcId> connect(const Destination& destination, Time now) override;
  bool proved(PdcId pdc) override;
  void abort(PdcId pdc, Time now) override;

  void on_packet(const RxPacket& packet, Time now);
  // Sends from PDCs, in turn and bounded (design section 7). True if a packet was sent.
  bool pump(Time now);
  // Frees PDCs whose end has come, without sending.
  void bury_finished(Time now);
  // True if a timer fired.
  bool expire(Time now);
  // A PDC or a datagram waits for its turn.
  bool has_ready() const { return !ready_.empty() || datagrams_.waiting() || rudi_.has_ready(); }
  // To be called when packets have left the outbox: datagrams among them are done.
  void answer_datagrams(Time now) {
    if (!datagrams_.empty()) datagrams_.answer_taken(now);
  }
  Time next_deadline() const {
    return std::min({wheel_.next_deadline(), rudi_.next_deadline(), credits_.next_deadline()});
  }

  // connect() ahead of the first message.
  Result<void> open_ahead(const Destination& destination, Time now);
  // Begins to close the PDCs that lead to `address`. Later messages to it open new PDCs:
  // another process may be there then, which would refuse the old ones (PDS-134).
  void forget(const FepAddress& address, Time now);
  // The application knows this FEP, or knows it no more; each learn() needs its unlearn(). Answers
  // to requests of a FEP at a port of its own go there only if it is known (WIRE 1.1).
  void learn(const FepAddress& address) { environment_.peer_ports.add(address); }
  void unlearn(const FepAddress& address) { environment_.peer_ports.remove(address); }
  // Gives up at once what the connections of a peer have carried: that peer cannot answer any more.
  // Its address may belong to another process by now, whose PDCs go on.
  void on_peer_lost(const LostPeer& lost, Time now);
  // Starts closing every PDC.
  void begin_close_all(Time now);
  std::size_t open_pdcs() const { return open_.in_use(); }
  std::size_t open_cccs() const { return cccs_.in_use(); }
  // No packet outstanding, no message queued, nothing stored.
  bool quiescent() const;
  const Counters& counters() const { return counters_; }
  const CccPool& contexts() const { return cccs_; }
  // How full the memory behind is; before each pass that may send.
  void set_receive_load(const cms::ReceiveLoad& load);
  // For tests: the PDC with this local id, or nullptr.
  Pdc* find(PdcId id);

 private:
  static constexpr std::size_t kTombstones = 4096;
  static constexpr std::uint32_t kTurnPackets = 32;  // of one PDC before the next has its turn
  static constexpr std::uint16_t kNoSlot = 0xFFFF;
  // A target PDC that is not proved after so long may be dropped for another one (Pdc::proved). Its
  // initiator has long repeated its SYN by then if the ACK was lost.
  static constexpr Duration kUnprovedPatience = std::chrono::seconds(2);

  struct PeerKey {  // of a PDC that the peer opened (PDS-24)
    FepAddress address;
    PdcId spdcid;
    friend bool operator==(const PeerKey&, const PeerKey&) = default;
  };
  struct PeerKeyHash {
    std::size_t operator()(const PeerKey& key) const noexcept;
  };
  struct DestinationHash {
    std::size_t operator()(const Destination& destination) const noexcept;
  };
  struct Outgoing {               // what is remembered of a destination
    std::optional<Psn> last_psn;  // of the previous PDC (PDS-53)
    PdcId first;                  // of those open, the one used least recently; 0: none is
    std::unique_ptr<RudiFlow> rudi;
  };
  // By PDC id: the number of something, or kNoSlot. Few ids are in use, so it is touched here and
  // there only.
  class NumberOfId {
   public:
    std::uint16_t operator[](std::uint16_t id) const {
      return static_cast<std::uint16_t>(plus_one_[id] - 1);
    }
    void set(std::uint16_t id, std::uint16_t number) {
      plus_one_[id] = static_cast<std::uint16_t>(number + 1);
    }

   private:
    ZeroedArray<std::uint16_t> plus_one_{65536};
  };
  struct Tombstone {  // PDS-175
    PdcId id;
    PeerKey peer;
    Role role = Role::Target;
    Psn start_psn;
    Psn close_psn;
    Time until{};
  };

  Result<void> send_to(Message& message, const Destination& destination, Time now);
  void take(const RxPacket& packet, Time now);
  Outgoing& outgoing_to(const Destination& destination);
  // The PDC after `id` among those of its destination; 0 after the last.
  PdcId next_there(PdcId id) const { return pdcs_[slot_of_id_[id.value]].next_there(); }
  void append(Outgoing& outgoing, Pdc& pdc);
  void remove(Outgoing& outgoing, Pdc& pdc);
  Pdc* open(const Destination& destination, Time now);
  Pdc* choose(Outgoing& outgoing, const Destination& destination, bool is_long, Time now);
  Pdc* accept(const PeerKey& peer, DeliveryMode mode, const Incoming& syn, Psn start_psn, Time now);
  Pdc* create(Role role, PdcId peer_id, const Destination& destination, Psn start_psn, Time now);
  bool pump_pdcs(std::size_t turns, Time now);
  void bury(Pdc& pdc, Time now);
  // Removes the first PDC from the queue of ready PDCs. The queue must not be empty.
  Pdc& next_ready();
  void relieve_shortage(Time now);
  bool drop_oldest_unproved(Time now);
  void drop_unproved(Pdc& pdc, Time now);
  bool may_relieve_for_syn(Time now);
  bool may_close_watched(Time now);
  void relieve_responses(std::uint64_t host, Time now);
  void relieve_long_shortage(Time now);
  PdcId allocate_id();
  Psn choose_start_psn(const Outgoing& outgoing);
  RudiFlow* rudi_flow(const Destination& destination, Time now);
  void drop_idle_rudi_flows(Time now);
  void prove_address(RudiFlow& flow, Time now);

  void on_request_packet(const RxPacket& packet, Time now);
  void on_ack_packet(const RxPacket& packet, Time now);
  void on_nack_packet(const RxPacket& packet, Time now);
  void on_control_packet(const RxPacket& packet, Time now);
  void on_credit_packet(Pdc& pdc, const wire::ControlHeader& header, Time now);
  void on_datagram_packet(const RxPacket& packet, Time now);
  void on_rudi_packet(const RxPacket& packet, Time now);
  void on_rudi_request(const RxPacket& packet, const wire::RudiHeader& header, Time now);
  void refuse_rudi(const RxPacket& packet, const wire::RudiHeader& header, NackCode code);
  void note_peer(const Pdc& pdc);
  PeerKey peer_of_syn(const FepAddress& source, PdcId spdcid, Psn start_psn) const;
  Pdc* resolve_syn(const RxPacket& packet, PdcId spdcid, DeliveryMode mode, Psn start_psn,
                   const Incoming& request, Time now);
  Pdc* resolve(const RxPacket& packet, PdcId spdcid, PdcId dpdcid, const Incoming& request,
               Time now);
  void on_tombstone(const Tombstone& tombstone, const RxPacket& packet, const PeerKey& from,
                    const Incoming& request);
  void refuse(const RxPacket& packet, NackCode code, PdcId spdcid, const PacketMeta& refused,
              PdcId own = {});
  Pdc* live(PdcId id, Time now);
  const Tombstone* tombstone(PdcId id, Time now) const;

  const Parameters parameters_;
  const cms::Parameters cms_;
  Counters counters_;
  TimerWheel wheel_;
  KeyedSequence secret_;  // PDC ids and first PSNs
  TxWindow::Pool tx_records_;
  RxWindow::Pool rx_entries_;
  IntrusiveList<SharedCcc, ReadyTag> ready_;
  SharedPool<Response> stored_responses_;
  SharedPool<EarlyPacket> early_packets_;
  Slab<AckDue> waiting_acks_;
  std::unique_ptr<std::byte[]> early_storage_;
  Rng& rng_;
  Environment environment_;
  Credits credits_;
  Datagrams datagrams_;
  Rudi rudi_;
  const RxPacket* rudi_request_ = nullptr;  // the one that rx_req is being called for
  wire::RudiHeader rudi_response_;          // and the header of its response
  bool rudi_responded_ = false;
  bool rudi_first_ = false;  // RUDI and PDCs go first by turns

  SlotArray<Pdc> pdcs_;
  IndexedPool<std::byte> slot_numbers_;
  Quota open_;                                // slots in use
  Quota bitmaps_;                             // of them, receive windows: may be fewer
  NackCode shortage_ = NackCode::NoPdcAvail;  // why create() last failed
  Time short_since_ = kNever;                 // no message could open a PDC since
  Time short_at_{};                           // the last time that one could not

  NumberOfId slot_of_id_;
  NumberOfId tombstone_of_id_;
  std::size_t tombstone_count_;
  ZeroedArray<Tombstone> tombstones_;
  std::size_t next_tombstone_ = 0;
  std::optional<std::uint16_t> next_id_;  // empty: drawn
  SlotList unproved_;                     // slots of target PDCs, oldest first; some are proved
  Time next_relief_{};                    // when a SYN may have an idle PDC closed again
  Time next_watched_relief_{};  // when one that is watched may be closed, whatever else closes
  Time next_response_relief_{};
  Time next_unproved_{};  // when one more is taken, if there are many
  using OutgoingTable = GrowingTable<Destination, Outgoing, DestinationHash>;
  OutgoingTable outgoing_;
  OutgoingTable::Element* last_outgoing_ = nullptr;           // that was asked for
  std::unordered_map<PeerKey, PdcId, PeerKeyHash> accepted_;  // tombstones included
  std::unordered_map<PeerKey, PdcId, PeerKeyHash> opened_;    // that their peer has answered
  CccPool cccs_;
};

}  // namespace uet::pds
