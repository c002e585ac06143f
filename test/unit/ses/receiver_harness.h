// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What the objects of the receiver need around them when they are tested alone: a context, the
// states of messages, receives, and a Delivery that only keeps lists.
#pragma once

#include "uet/ses/arriving.h"
#include "uet/ses/context.h"
#include "uet/ses/counters.h"
#include "uet/ses/posted_receives.h"
#include "unit/ses/harness.h"

namespace uet::ses::test {

class ReceiverTest : public ::testing::Test {
 protected:
  explicit ReceiverTest(const Parameters& with = small_parameters()) : parameters(with) {
    messages.attach(delivery);
    view.pdc = kPdc;
    view.source = address_of(1);
  }
  void TearDown() override {
    EXPECT_EQ(messages.in_use(), 0u);
    EXPECT_EQ(receives.bound(), 0u);
    EXPECT_EQ(context.receives.count, 0u);
    EXPECT_EQ(delivery.locks, 0);
    EXPECT_EQ(pieces.in_use(), 0u);
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
};

}  // namespace uet::ses::test
