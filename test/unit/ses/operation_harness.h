// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What the objects of the initiator need around them when they are tested alone: a table of
// operations, a context and a Delivery that only keeps lists.
#pragma once

#include "ses/context.h"
#include "ses/operation_table.h"
#include "unit/ses/harness.h"

namespace uet::ses::test {

class OperationTest : public ::testing::Test {
 protected:
  explicit OperationTest(const ContextConfig& config = small_config()) : context(config, sink) {}
  void TearDown() override {
    while (!context.transmitting.empty()) close(context.transmitting.front());
    EXPECT_TRUE(operations.empty());
  }

  // An operation of the context to node `to`, on kPdc.
  TxMessage& open(std::uint64_t length = 0, Kind kind = Kind::Send, std::uint8_t to = 2) {
    TxMessage& message = *operations.take();
    message.context = &context;
    message.kind = kind;
    message.mode = context.config.mode;
    message.length = length;
    message.iov_count = 0;
    message.to = address_of(to);
    message.pdc = kPdc;
    message.header.job_id = context.config.job;
    message.header.initiator = context.config.initiator;
    message.header.opcode = kind == Kind::Read ? SesOpcode::Read : SesOpcode::Send;
    message.header.request_length = static_cast<std::uint32_t>(length);
    context.transmitting.push_back(message);
    ++context.transmitting_count;
    return message;
  }
  // Frees the message, which the object under test does not use any more.
  void close(TxMessage& message) {
    IntrusiveList<TxMessage, OutstandingTag>::remove(message);
    --context.transmitting_count;
    operations.give_back(message);
  }

  Parameters parameters = small_parameters();
  Sink sink;
  Lists delivery;
  Counters counters;
  Context context;
  OperationTable operations{8, 2, nullptr};
};

}  // namespace uet::ses::test
