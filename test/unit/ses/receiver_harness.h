// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The objects of the receiver without the receiver, and what they need around them: a context, the
// states of messages, and a Delivery that only keeps lists.
#pragma once

#include "ses/arriving.h"
#include "ses/context.h"
#include "ses/counters.h"
#include "ses/deferred_receives.h"
#include "ses/matched_messages.h"
#include "ses/operation_table.h"
#include "ses/posted_receives.h"
#include "ses/pull_queue.h"
#include "ses/pulls.h"
#include "ses/rendezvous_target.h"
#include "ses/unexpected.h"
#include "ses/unexpected_messages.h"
#include "unit/ses/harness.h"

namespace uet::ses::test {

class ReceiverTest : public ::testing::Test {
 protected:
  explicit ReceiverTest(const Parameters& with = small_parameters()) : parameters(with) {
    messages.attach(delivery);
    pulls.attach(delivery);
    pulls.attach(client);
    view.pdc = kPdc;
    view.source = address_of(1);
  }
  void TearDown() override {
    while (!delivery.backlog.empty()) answer();
    EXPECT_EQ(messages.in_use(), 0u);
    EXPECT_EQ(receives.bound(), 0u);
    EXPECT_EQ(context.receives.count, 0u);
    EXPECT_EQ(delivery.locks, 0);
    EXPECT_EQ(pieces.in_use(), 0u);
    EXPECT_EQ(memory.bytes(), 0u);
    EXPECT_EQ(context.parked_count, 0u);
    EXPECT_TRUE(queue.empty());
    EXPECT_TRUE(operations.empty());
  }

  // The first packet of a message of `length` bytes; a packet with all of it if that fits.
  static SesRequest request_of(std::uint16_t id, std::uint32_t length,
                               SesOpcode opcode = SesOpcode::Send) {
    SesRequest request;
    request.opcode = opcode;
    request.message_id = MsgId{id};
    request.job_id = JobId{101};
    request.request_length = length;
    request.som = true;
    request.eom = length <= kMtu;
    return request;
  }
  RxMessage& open(const SesRequest& request, RxState state = RxState::Matched) {
    RxMessage* message = messages.open(view, request, context, state);
    EXPECT_NE(message, nullptr);
    return *message;
  }
  // A receive into `memory`, on no list.
  PostedReceive& receive(Bytes& memory, void* operation = nullptr, std::uint64_t min_free = 0,
                         bool multi = false) {
    const IoSlice slice = slice_of(memory);
    ReceiveOp op;
    op.local = {&slice, 1};
    op.context = operation;
    op.multi = multi;
    op.min_free = min_free;
    return *receives.open(context.receives, op).value();
  }

  // The next packet of a message of `length` bytes, which carries `payload` from byte `offset` on.
  static SesRequest packet_of(std::uint16_t id, std::uint32_t length, std::uint32_t offset,
                              std::span<const std::byte> payload,
                              SesOpcode opcode = SesOpcode::Send) {
    SesRequest request = request_of(id, length, opcode);
    request.som = offset == 0;
    request.eom = offset + payload.size() == length;
    request.message_offset = offset;
    request.payload_length = static_cast<std::uint32_t>(payload.size());
    request.payload = payload;
    return request;
  }
  // The oldest request to a sender that has not been answered.
  TxMessage& asked() { return static_cast<TxMessage&>(*delivery.backlog.front()); }
  // The peer answers that request; the operation is free again.
  void answer() {
    TxMessage& operation = asked();
    delivery.cancel(operation);
    IntrusiveList<TxMessage, OutstandingTag>::remove(operation);
    operations.give_back(operation);
  }

  struct NoClient final : PullClient {
    void pulled(RxMessage&, Status, bool) noexcept override {}
  };

  Parameters parameters;
  BufferPool buffers{kMtu, 16};
  PieceStore pieces{buffers};
  Lists delivery;
  Sink sink;
  Counters counters;
  Context context{small_config(), sink};
  pds::RequestView view;
  ArrivingMessages messages{parameters.rx_messages, pieces, 1};
  PostedReceives receives{parameters.posted_receives, counters};
  NoClient client;
  OperationTable operations{8, 4, nullptr};
  Pulls pulls{operations};
  PullQueue queue{messages};
  Unexpected memory{parameters, pieces};
  RendezvousTarget rendezvous{parameters, messages, queue, pulls};
  DeferredReceives deferred{parameters, messages, memory, receives, queue, pulls, counters};
  UnexpectedMessages unexpected{parameters, messages, memory, rendezvous, deferred, counters};
  MatchedMessages matched{
      {messages, memory, receives, rendezvous, deferred, unexpected}, nullptr, counters};
};

}  // namespace uet::ses::test
