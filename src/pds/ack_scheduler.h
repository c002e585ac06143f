// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// When a destination sends an ACK: the one place that decides it. Facts about packets that have
// arrived go in; "now", "with the next turn" or "after more bytes" comes out, and the one ACK that
// waits for the turn. The caller builds and sends.
//
// An ACK leaves now, alone, where it cannot be merged with others or answers a question:
// 1. a guaranteed response, an ACK for each (PDS-95), and the answer that follows a provisional
//    response (SES-46);
// 2. a packet behind a response that is not cleared, if one of the reasons from 6 on holds, or if a
//    later packet has requested an ACK: no later ACK could cover the packet (PDS-232);
// 3. a ROD packet that arrives before its predecessors: the first of a gap, together with the NACK
//    ROD_OOO, and those for which one of the reasons 6, 8, 11, 12 holds; names CACK (PDS-164);
// 4. a duplicate that the source has sent again (PDS-96, PDS-203) or an ACK Request (PDS-156), once
//    while the NIC has not taken that answer, unless the first ACK for the packet still waits for
//    the turn (PDS-204); a Probe (CMS-140);
// 5. the Close Command (PDS-170).
//
// An ACK leaves with the next turn of the PDC, as a rule in the pass that received the packet. It
// goes before what the PDC sends itself, so that a reply never delays it. One ACK serves all
// packets since the last turn, names the newest and reports the ECN mark of any:
// 6. the packet requests an ACK (PDS-93), or is sent again (PDS-96);
// 7. the packet has SYN (PDS-94), or is a control packet with a PSN (PDS-155);
// 8. the packet before it is missing (PDS-230);
// 9. it closes the last gap below a packet that has requested an ACK (PDS-98);
// 10. it has an ECN mark (PDS-99);
// 11. half of a window of fewer than 128 PSNs has come since the last ACK (PDS-219);
// 12. ACK_Gen_Trigger bytes have come since the last ACK, or 16 KiB and the packet is small, which
//     counts as ACK_Gen_Min_Pkt_Add bytes (PDS-97, PDS-107). The source of the small packet waits
//     for no answer: the ACK leaves behind the application's reply, or in the next pass if none
//     comes first, since otherwise one reply in 16 would be late;
// 13. a CLEAR has moved CACK over a packet that has requested an ACK, or by a quarter of the window
//     (PDS-231).
//
// All other packets share the ACK of a later packet (reason 12). Their source requests one if it
// needs the answer earlier (PDS-101, PDS-47, CMS-124), or asks after Tail_Loss_Time (PDS-128).
// In ROD the ACK that waits goes before an ACK that leaves now (PDS-167). A packet that is refused
// has a NACK and no ACK (PDS-211). No ACK waits for a time (docs/decisions/024), so that there is
// no deadline here: if the turn finds no packet for the ACK, it stays owed and the PDC stays in
// line, which Fep::next_deadline knows, as it knows the ACKs that wait for a reply (LaterAcks).
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "pds/packet_meta.h"
#include "pds/parameters.h"
#include "uet/base/slab.h"
#include "uet/base/types.h"
#include "uet/pds/api.h"

namespace uet::pds {

// The packet that an ACK answers.
struct AckDue {
  AckDue() {}  // member by member, as SesRequest

  PacketMeta meta;
  std::optional<Psn> sack_trigger{};  // decides the bitmap base if it is not meta.psn (PDS-92)
  std::optional<std::uint16_t> probe_opaque{};  // of the Probe that this answers (PDS-106)
  bool closing = false;                         // it answers the Close Command
  Response response{};
};

class AckScheduler {
 public:
  // ACKs that wait for the turn of their PDC, of all PDCs of a FEP.
  using Memory = Slab<AckDue>;

  enum class Urgency : std::uint8_t {
    AfterBytes,   // a later packet's ACK covers this one
    BehindReply,  // owe() it; it leaves behind the application's reply, or in the next pass
    NextTurn,     // owe() it
    Now,          // an ACK of its own
  };
  // Facts about a request or a control packet with a PSN, besides its marks.
  struct Arrival {
    std::uint32_t payload_bytes = 0;  // SES header included
    bool syn = false;
    bool control = false;  // a control packet that takes a PSN
    bool predecessor_missing = false;
    bool guaranteed = false;   // its response is
    bool behind_held = false;  // CACK is held below it by a response that is not cleared
    bool ordered = false;      // ROD
  };
  // Where the receive window stands after the arrival.
  struct Window {
    Psn cack;
    std::int32_t range = 0;  // MP_RANGE in PSNs
  };
  struct Plan {
    Urgency urgency = Urgency::AfterBytes;
    bool waiting_first = false;  // take() before the ACK that leaves now (PDS-167)
    // Consumed packets from here to the one that has arrived, without it, need ACKs of their own
    // before that of this one (PDS-232). None do if this is not below it.
    Psn uncovered_from;
  };
  // Of a ROD packet that has predecessors missing.
  struct Gap {
    bool ack = false;   // now
    bool nack = false;  // ROD_OOO, behind the ACK (PDS-165, PDS-166)
  };

  explicit AckScheduler(Psn start_psn) { rebase(start_psn); }
  // Nothing has arrived, and Start_PSN is another one (PDS-77).
  void rebase(Psn start_psn) { own_acks_ = reported_cack_ = reported_gap_ = start_psn - 1; }

  // ---- what happens -----------------------------------------------------------------------------

  // A packet was consumed. Counts it. `window` is that after the packet.
  Plan consumed(const Parameters& parameters, const PacketMeta& packet, const Arrival& arrival,
                const Window& window);
  // ROD: the packet came before its predecessors, of which `gap` is the first that is missing.
  // Counts it. Its ECN mark is reported when it is consumed.
  Gap early(const Parameters& parameters, const PacketMeta& packet, const Arrival& arrival, Psn gap,
            const Window& window);
  // A CLEAR up to `clear_psn` has moved CACK. True: an ACK of CACK is to be owed, which waits for
  // the next turn.
  [[nodiscard]] bool cleared(Psn clear_psn, const Window& window);
  // An ACK of any kind has left with this CACK: counts begin again (PDS-97).
  void sent(Psn cack) {
    reported_cack_ = cack;
    counted_bytes_ = 0;
  }
  // True once for each gap: the first report of it, whichever NACK makes it (PDS-133, PDS-165).
  [[nodiscard]] bool reports_gap(Psn gap) { return std::exchange(reported_gap_, gap) != gap; }

  // ---- the ACK that waits -----------------------------------------------------------------------

  bool is_owed() const { return waiting_ != nullptr; }
  // It may leave with the next turn, and does not wait for a reply.
  bool may_leave() const { return is_owed() && !behind_reply_; }
  // It waits for the application's reply (BehindReply), or no more.
  void wait_for_reply(bool waits) { behind_reply_ = waits; }
  // The ACK that waits is the first one for this packet: it answers copies of the packet too, as
  // the answer to the first transmission. So a source whose packets wait for a host learns how long
  // its answers take (PDS-204).
  bool answers_soon(Psn psn, Psn cack) const {
    return is_owed() && psn > reported_cack_ && psn <= cack;
  }
  // The ACK of this packet leaves with the next turn. It replaces an ACK that waits, whose ECN mark
  // it keeps (CMS-721). False: there is no memory for it to wait in, so that it must leave now.
  [[nodiscard]] bool owe(Memory& memory, const PacketMeta& packet, const Response& response);
  // The turn has come. `send` is offered the ACK that waits, if one does: bool(const AckDue&),
  // false if there is no packet to send it in. Then it stays owed.
  template <class Send>
  void take(Memory& memory, Send&& send) {
    behind_reply_ = false;
    if (waiting_ != nullptr && send(std::as_const(*waiting_))) discard(memory);
  }
  // No ACK waits any more. Call it before the end of the object.
  void discard(Memory& memory) {
    if (waiting_ != nullptr) memory.give_back(std::exchange(waiting_, nullptr));
    behind_reply_ = false;
  }

 private:
  // NextTurn, BehindReply, or AfterBytes: no ACK is due.
  Urgency due(const Parameters& parameters, const PacketMeta& packet, const Arrival& arrival,
              const Window& window);
  bool closes_gap_below_ar(const PacketMeta& packet, Psn cack);

  AckDue* waiting_ = nullptr;
  Psn own_acks_;       // up to here, what has arrived above CACK has ACKs of its own
  Psn reported_cack_;  // CACK of the last ACK sent
  Psn ar_behind_gap_;  // the highest packet above CACK that has requested an ACK, if one has
  Psn reported_gap_;   // first missing packet of the last gap that was reported
  std::uint32_t counted_bytes_ : 30 = 0;  // ACK_GEN_COUNT
  bool has_ar_behind_gap_ : 1 = false;
  bool behind_reply_ : 1 = false;  // the ACK that waits does so for the application's reply
};

}  // namespace uet::pds
