// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Request packets -> checks -> memory, completions and responses. Finds the message of a packet and
// passes what is checked to the object of its kind: the receiver, RmaTarget, AtomicTarget or
// MessageReads. Knows no PSN and sends nothing but the answers to reads.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ri/mr_table.h"
#include "ri/ri_table.h"
#include "ses/arriving.h"
#include "ses/atomic_target.h"
#include "ses/context.h"
#include "ses/counters.h"
#include "ses/initiator.h"
#include "ses/message.h"
#include "ses/message_reads.h"
#include "ses/parameters.h"
#include "ses/read_answers.h"
#include "ses/receiver.h"
#include "ses/request_checks.h"
#include "ses/return_code.h"
#include "ses/rma_target.h"
#include "ses/target_errors.h"
#include "uet/base/result.h"
#include "uet/base/time.h"
#include "uet/pds/api.h"
#include "uet/ses/api.h"

namespace uet::ses {

class Target final : private pds::MessageOwner {
 public:
  // The referenced objects outlive this one.
  Target(const Parameters& parameters, PieceStore& pieces, ri::MrTable& regions,
         const ri::RiTable& contexts, Initiator& initiator, Counters& counters);
  ~Target() override;
  void attach(pds::Delivery& delivery) {
    messages_.attach(delivery);
    answers_.attach(delivery);
  }

  // Where receives are posted and cancelled.
  Receiver& receiver() { return receiver_; }
  const Receiver& receiver() const { return receiver_; }

  // The call of PDS (pds::Client) for a request packet in the forward direction.
  pds::Response rx_req(const pds::RequestView& view, Time now);
  void pdc_closed(PdcId pdc, bool orderly);

  // No message arrives, waits or is bound; receives may be posted.
  bool idle() const;

 private:
  using View = pds::RequestView;
  using Request = wire::SesRequest;

  // pds::MessageOwner of the read answers. Each is one packet, done however it ends.
  pds::PacketPlan next_packet(pds::Message& answer, Packet& packet,
                              pds::PreparedPacket& prepared) override;
  pds::Verdict rx_rsp(pds::Message& answer, std::uint32_t tag, const pds::ResponseView& response,
                      Time now) override;
  void pds_error(pds::Message& answer, std::uint32_t tag, pds::PdsError error, Time now) override;
  void message_failed(pds::Message& answer, pds::PdsError error, Time now) override;

  bool take_datagram(const View& view, Time now);
  pds::Response on_send(const View& view, const Request& request, Context& context, Time now);
  pds::Response on_msg_error(const View& view, const Request& request);
  pds::Response on_restart(const View& view, const Request& request, Time now);
  pds::Response on_later_packet(const View& view, const Request& request, RxMessage& message);
  pds::Response on_later_write(const Request& request, RxMessage& message);
  pds::Response fail(const Request& request, RxMessage& message, wire::ReturnCode code);

  const std::uint32_t payload_mtu_;
  ri::MrTable& regions_;
  const RequestChecks checks_;
  Initiator& initiator_;
  Counters& counters_;
  ArrivingMessages messages_;
  Receiver receiver_;
  ReadAnswers answers_;
  TargetErrors errors_;
  RmaTarget rma_;
  AtomicTarget atomics_;
  MessageReads reads_;
};

}  // namespace uet::ses
