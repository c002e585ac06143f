// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A PDC as the destination of the peer's direction: which packets are delivered, which are
// duplicates, and what their ACKs say (PDS sections 8 to 11, 15). It holds the receive window, the
// stored responses and the reorder buffer of ROD; its AckScheduler decides when an ACK leaves. Must
// not know what this end sends, nor how the PDC closes.
#pragma once

#include <cstdint>
#include <optional>

#include "pds/ack_scheduler.h"
#include "pds/credits.h"
#include "pds/environment.h"
#include "pds/incoming.h"
#include "pds/pdc_core.h"
#include "pds/rx_window.h"
#include "pds/stored_responses.h"
#include "pds/tombstones.h"

namespace uet::pds {

class ReceiveSide {
 public:
  ReceiveSide(PdcCore& core, Psn start_psn);

  // A request or a control packet with a PSN. True: it is the peer's Close Command, in its turn,
  // which remains to be answered (close_arrived).
  [[nodiscard]] bool on_request(Incoming& request, Time now);
  // The response to a packet whose first one was provisional (SES-46).
  void answer(Psn psn, const Response& response);
  void on_clear_command(Psn clear_psn, Time now);
  // A Probe: answered at once with what has arrived, its bitmap from `base` on if that is near.
  void on_probe(std::uint16_t opaque, Psn base, const PacketMeta& probe, Time now);
  // `message`: of the packet asked about, if the peer says so, else 0.
  void on_ack_request(Psn psn, MsgId message, std::uint16_t entropy, Time now);
  // The Close Command `close` is taken: all that is stored is cleared, and its ACK leaves
  // (PDS-170).
  void close_arrived(const PacketMeta& close, Time now);
  // The peer has shown that it hears what is sent to its address: what is stored for it is charged
  // to its host from now on.
  void prove();
  // Nothing has arrived, and Start_PSN is another one (PDS-77).
  void rebase(Psn start_psn);
  // Gives back all that it holds.
  void discard();

  // Which packets of the peer have come.
  const RxWindow& window() const { return rx_; }
  // For the tombstone of the PDC.
  Delivered delivered() const;
  Duration waits_for_clear(Time now) const { return stored_.waits_for_clear(now); }
  // PDS-118: a CLEAR was lost and nothing that would repair it comes.
  void ask_for_clear_if_late(Time now);

  // ACKs of the last time were lost with their rail: their content leaves once more (PDS-227).
  void repeat_acks(Time now);

  // An ACK waits for the turn of the PDC.
  bool ack_is_due() const { return acks_.may_leave(); }
  // Sends it, if one waits.
  void send_waiting_ack(Time now);

  // The peer's context, if its requests name one (credits.h).
  CreditSender* credit_sender() const { return credit_sender_; }
  void set_credit_sender(CreditSender* sender) { credit_sender_ = sender; }

 private:
  Environment& env() const { return core_.env(); }
  void on_duplicate(const Incoming& request, Time now);
  bool deliver(Incoming& request, Time now);
  Response process(Incoming& request, Time now);
  void arrived(const Incoming& request, const Response& response, Time now);
  AckScheduler::Plan plan_ack(const Incoming& request, bool guaranteed);
  AckScheduler::Window ack_window() const;
  bool predecessor_missing(Psn psn) const;
  void infer_loss_here(const PacketMeta& newest);
  void on_clear(Psn clear_psn, Time now);
  void move_cack(Time now);
  void request_clear(Time now);

  void buffer_early(const Incoming& request, Time now);
  void ack_early(const PacketMeta& early, Time now);
  void deliver_early(Time now);

  bool send_ack(const AckDue& due, wire::AckRequestCode code, Time now);
  void owe_ack(const PacketMeta& packet, const Response& response, Time now,
               AckScheduler::Urgency urgency = AckScheduler::Urgency::NextTurn);
  void ack_each(Psn from, const PacketMeta& newest, Time now);
  void resend_ack(PacketMeta asked, const std::optional<RequestName>& name, bool control, Time now);
  wire::AckRequestCode code_for(Psn psn) const;
  Response default_response(Psn psn) const;

  PdcCore& core_;
  CreditSender* credit_sender_ = nullptr;
  [[no_unique_address]] AckScheduler acks_;  // rod_next_ lies in its padding
  Psn rod_next_;                             // next PSN to deliver in order
  [[no_unique_address]] RxWindow rx_;
  std::uint64_t rcvd_bytes_ = 0;  // CMS-111
  [[no_unique_address]] StoredResponses stored_;
  cms::DestinationReport report_;  // CMS-300; what ACKs of what arrives here say
};

}  // namespace uet::pds
