// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Operations -> messages -> packets, and their answers -> completions. Starts each operation, wires
// the objects that know its cases, and ends it; knows no PSN, window or timer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/trace.h"
#include "ses/context.h"
#include "ses/counters.h"
#include "ses/deferred_sends.h"
#include "ses/fences.h"
#include "ses/generations.h"
#include "ses/long_send_forms.h"
#include "ses/message.h"
#include "ses/operation_check.h"
#include "ses/operation_table.h"
#include "ses/parameters.h"
#include "ses/pulls.h"
#include "ses/reads.h"
#include "ses/rendezvous_source.h"
#include "ses/request_packets.h"
#include "ses/retries.h"
#include "ses/staging.h"
#include "ses/watches.h"
#include "uet/base/intrusive_list.h"
#include "uet/base/result.h"
#include "uet/base/time.h"
#include "uet/pds/api.h"
#include "uet/ses/api.h"

namespace uet::ses {

class Initiator final : public pds::MessageOwner {
 public:
  // The referenced objects outlive this one.
  Initiator(const Parameters& parameters, PieceStore& pieces, Counters& counters);
  ~Initiator() override;
  void attach(pds::Delivery& delivery);
  void keep_trace_in(trace::Ring* ring, const Time* clock) { trace_.keep_in(ring, clock); }

  // Posts a SendOp, an RmaOp or an AtomicOp. The errors of check_operation(); Again: a pool or
  // tx_size is exhausted. On success exactly
  // one Completion follows (none is *written* for inject on success: that is the sink's business).
  template <class Op>
  Result<void> post(Context& context, const Op& op, Time now);
  // As in ses.h; false if there is no such operation.
  bool cancel(Context& context, const void* operation, Time now);
  // Requests prompt ACKs for all operations of the context that are outstanding
  // (`TxOp::prompt_ack`).
  void request_acks_now(Context& context);
  // Ends all its operations without completions; see ses.h.
  void close_context(Context& context, Time now);
  // Posts are checked against these and the mode of their context.
  const OperationLimits& limits() const { return limits_; }

  // pds::MessageOwner of the operations.
  pds::PacketPlan next_packet(pds::Message& message, Packet& packet,
                              pds::PreparedPacket& prepared) override;
  pds::Verdict rx_rsp(pds::Message& message, std::uint32_t tag, const pds::ResponseView& response,
                      Time now) override;
  void pds_error(pds::Message& message, std::uint32_t tag, pds::PdsError error, Time now) override;
  void message_failed(pds::Message& message, pds::PdsError error, Time now) override;
  // The calls of pds::Client that concern operations.
  void pdc_closed(PdcId pdc, std::optional<pds::PdsError> error, Time now);
  // Return data: a request packet in the return direction (SES-83).
  pds::Response rx_data(const pds::RequestView& request, Time now);

  // The sends of this FEP that their targets may read; finish_if_done() follows each change of one.
  RendezvousSource& readable() { return rendezvous_; }
  // Ends the operation if nothing more is to come of it.
  void finish_if_done(TxMessage& message) {
    if (is_over(message)) finish(message, message.status);
  }
  // DEFERRABLE_RTR: the FEP `source` has a receive now for a message that it had put off.
  wire::ReturnCode restart(const wire::SesRequest& request, const FepAddress& source, Time now);
  // The copies of device memory that messages are sent from.
  Staging& staging() { return staging_; }
  // The requests of this FEP to the senders of messages to it: reads and restarts.
  Pulls& pulls() { return pulls_; }

  // As in ses.h.
  void progress(Time now);
  // There is something that progress() is for.
  bool waits() const {
    return fences_.waits() || rendezvous_.waits() || reads_.waits() || deferred_.waits();
  }
  Time next_deadline();

  // Nothing in progress.
  bool idle() const { return operations_.empty(); }

 private:
  // ---- start
  Result<TxMessage*> make(Context& context, const SendOp& op);
  Result<TxMessage*> make(Context& context, const RmaOp& op);
  Result<TxMessage*> make(Context& context, const AtomicOp& op);
  TxMessage* open(Context& context, const TxOp& op, Kind kind);
  pds::Destination choose_way(TxMessage& message);
  bool is_crowded(const Context& context) const;

  // ---- answers
  void on_answer(TxMessage& message, const wire::SesResponseHeader& header, Time now);

  // ---- end
  bool withdraw(TxMessage& message);
  void abandon(TxMessage& message, Time now);
  bool send_error(TxMessage& message, Time now);
  bool ends_now(TxMessage& message, Time now);
  bool is_over(TxMessage& message);
  void note_end_in_trace(const TxMessage& message, Status status);
  void finish(TxMessage& message, Status status);
  void release(TxMessage& message);

  const OperationLimits limits_;
  const std::uint32_t payload_mtu_;
  const bool uses_rudi_;
  const bool short_headers_;
  PieceStore& pieces_;
  Counters& counters_;
  pds::Delivery* delivery_ = nullptr;
  trace::Trace trace_;
  OperationTable operations_;
  Generations generations_;
  Watches watches_;
  Staging staging_;
  Reads reads_;
  RendezvousSource rendezvous_;
  DeferredSends deferred_;
  LongSendForms forms_;
  Fences fences_;
  Retries retries_;
  Pulls pulls_;
  RequestPackets packets_;
  IntrusiveList<TxMessage, OutstandingTag> orphans_;  // of closed contexts, still with PDS
};

}  // namespace uet::ses
