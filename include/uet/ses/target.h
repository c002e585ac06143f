// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Request packets -> checks -> memory, completions and responses. Decides who gets a message and
// whether it may touch memory; knows no PSN and sends nothing but the answers to reads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "uet/base/result.h"
#include "uet/base/slab.h"
#include "uet/base/time.h"
#include "uet/pds/api.h"
#include "uet/ri/mr_table.h"
#include "uet/ri/ri_table.h"
#include "uet/ses/api.h"
#include "uet/ses/context.h"
#include "uet/ses/counters.h"
#include "uet/ses/message.h"
#include "uet/ses/parameters.h"
#include "uet/ses/return_code.h"

namespace uet::ses {

// The messages that have arrived in part, by PDC and message id (SES-29).
class ArrivingMessages {
 public:
  explicit ArrivingMessages(std::size_t capacity);
  // nullptr if there is none.
  RxMessage* find(PdcId pdc, MsgId id);
  void insert(RxMessage& message);  // its {pdc, message_id} must not be in
  void remove(RxMessage& message);

  IntrusiveList<RxMessage, ArrivingTag> all;

 private:
  RxMessage** bucket(PdcId pdc, MsgId id);

  std::size_t mask_;
  std::unique_ptr<RxMessage*[]> buckets_;
  RxMessage* last_ = nullptr;  // packets of one message come one after the other
};

class Target {
 public:
  // The referenced objects outlive this one.
  Target(const Parameters& parameters, PieceStore& pieces, ri::MrTable& regions,
         const ri::RiTable& contexts, Counters& counters);
  ~Target();
  void attach(pds::Delivery& delivery) { delivery_ = &delivery; }

  // As in ses.h.
  Result<void> receive(Context& context, const ReceiveOp& op);
  // Cancels the oldest waiting receive with this pointer; false if none.
  bool cancel(Context& context, const void* operation);
  // Ends its receives and messages without completions.
  void close_context(Context& context);

  // What PDS asks (pds::Client): a request packet in the forward direction.
  pds::Response rx_req(const pds::RequestView& view, Time now);
  void pdc_closed(PdcId pdc);
  // Read answers on their way.
  pds::PacketPlan next_packet(ReadAnswer& answer, Packet& packet, pds::PreparedPacket& prepared);
  void answer_done(ReadAnswer& answer);

  // No message arrives, waits or is bound; receives may be posted.
  bool idle() const;

 private:
  using View = pds::RequestView;
  using Request = wire::SesRequest;

  pds::Response on_send(const View& view, const Request& request, Context& context);
  pds::Response on_unexpected(const View& view, const Request& request, Context& context);
  pds::Response on_write(const View& view, const Request& request, Context& context);
  pds::Response on_read(const View& view, const Request& request, Context& context, Time now);
  pds::Response on_msg_error(const View& view, const Request& request);
  pds::Response on_later_packet(const Request& request, RxMessage& message);
  pds::Response on_later_write(const Request& request, RxMessage& message);
  pds::Response error(const Request& request, wire::ReturnCode code, RiGeneration generation = {});
  pds::Response refuse(const View& view, const Request& request, Context& context,
                       wire::ReturnCode code);
  pds::Response fail(const Request& request, RxMessage& message, wire::ReturnCode code);

  pds::Response place_matched(const Request& request, RxMessage& message);
  pds::Response place_unexpected(const Request& request, RxMessage& message);
  pds::Response place_write(const Request& request, RxMessage& message, std::byte* base);
  ri::MrAccess access_memory(const Request& request, const Context& context,
                             std::uint8_t access) const;
  wire::SesResponseHeader answer_header(const View& view, const Request& request,
                                        const ReadPiece& asked);
  Piece* keep(const Request& request, RxMessage& message);

  RxMessage* open(const View& view, const Request& request, Context& context, RxState state);
  void account(RxMessage& message, const Request& request);
  void offer(Context& context, PostedReceive& receive);
  void bind(RxMessage& message, PostedReceive& receive);
  void unbind(RxMessage& message);
  Completion end_receive(RxMessage& message, Status status);
  void complete_receive(RxMessage& message);
  void drop_unexpected(RxMessage& message);
  void end_message(RxMessage& message, wire::ReturnCode code, Status status);
  void stop_awaiting(RxMessage& message);
  void release(RxMessage& message);
  void release(PostedReceive& receive);

  const std::uint32_t payload_mtu_;
  const std::size_t unexpected_limit_bytes_;
  PieceStore& pieces_;
  ri::MrTable& regions_;
  const ri::RiTable& contexts_;
  Counters& counters_;
  pds::Delivery* delivery_ = nullptr;
  Slab<RxMessage> messages_;
  ArrivingMessages arriving_;
  Slab<PostedReceive> receives_;
  Slab<MoreSlices> more_slices_;
  Slab<ReadAnswer> answers_;
  IntrusiveList<ReadAnswer, AnsweringTag> answering_;
  std::size_t bound_receives_ = 0;
  std::uint64_t next_sequence_ = 0;
  std::uint16_t last_answer_id_ = 0;
};

}  // namespace uet::ses
