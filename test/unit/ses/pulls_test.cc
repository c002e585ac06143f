// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "ses/pulls.h"

#include "unit/ses/operation_harness.h"

namespace uet::ses::test {
namespace {

struct Client final : PullClient {
  void pulled(RxMessage& message, Status status, bool not_consumed) noexcept override {
    told.push_back({&message, status, not_consumed});
  }
  struct Told {
    RxMessage* message;
    Status status;
    bool not_consumed;
  };
  std::vector<Told> told;
};

class PullsTest : public OperationTest {
 protected:
  PullsTest() {
    pulls.attach(delivery);
    pulls.attach(client);
    message.source = address_of(2);
    message.job = JobId{101};
  }
  void TearDown() override {
    while (!delivery.backlog.empty()) end(queued());
    OperationTest::TearDown();
  }
  TxMessage& queued() { return static_cast<TxMessage&>(*delivery.backlog.front()); }
  void end(TxMessage& operation) {
    delivery.cancel(operation);
    IntrusiveList<TxMessage, OutstandingTag>::remove(operation);
    operations.give_back(operation);
  }

  RxMessage message;
  Client client;
  Pulls pulls{operations};
};

TEST_F(PullsTest, Ses57_ReadNamesTheMemoryOfTheSender) {
  message.rendezvous.read_resource_index = ResourceIndex{10};
  message.rendezvous.read_pid_on_fep = PidOnFep{2};
  message.rendezvous.read_memory_key = Rkey{77};
  message.rendezvous.read_offset = 1000;
  Bytes memory(3 * kMtu);
  const IoSlice slice = slice_of(memory);
  ASSERT_TRUE(pulls.read(message, 500, {&slice, 1}, kNow));
  const wire::SesRequest& header = queued().header;
  EXPECT_EQ(header.opcode, SesOpcode::Read);
  EXPECT_EQ(header.buffer_offset, 1500u);
  EXPECT_EQ(header.match_bits, 77u);
  EXPECT_EQ(header.request_length, memory.size());
  EXPECT_EQ(header.resource_index, ResourceIndex{10});
  EXPECT_EQ(delivery.destination.address, message.source);
  EXPECT_TRUE(delivery.destination.reserved_pool) << "it never waits behind what fills our memory";
}

TEST_F(PullsTest, ClientIsToldOnce) {
  ASSERT_TRUE(pulls.read(message, 0, {}, kNow));
  TxMessage& read = queued();
  read.fail(pds::PdsError::NotConsumed);
  pulls.report_end(read);
  pulls.report_end(read);
  ASSERT_EQ(client.told.size(), 1u);
  EXPECT_EQ(client.told[0].message, &message);
  EXPECT_TRUE(client.told[0].not_consumed);
}

TEST_F(PullsTest, Ses70_RestartCarriesBothTokens) {
  message.initiator = InitiatorId{5};
  message.buffer_offset = std::uint64_t{0x1234} << 32;
  ASSERT_TRUE(pulls.request_restart(message, 0xBEEF, kNow));
  const wire::SesRequest& header = queued().header;
  EXPECT_EQ(header.opcode, SesOpcode::DeferrableRtr);
  EXPECT_EQ(header.initiator_restart_token(), 0x1234u);
  EXPECT_EQ(header.target_restart_token(), 0xBEEFu);
  EXPECT_EQ(header.initiator, InitiatorId{5});
  pulls.forget_restart(message);
  pulls.report_end(queued());
  EXPECT_TRUE(client.told.empty());
}

TEST_F(PullsTest, ForgottenMemoryIsWrittenNoMore) {
  Bytes memory(kMtu);
  const IoSlice slice = slice_of(memory);
  ASSERT_TRUE(pulls.read(message, 0, {&slice, 1}, kNow));
  pulls.forget_memory(message);
  EXPECT_TRUE(queued().slices().empty());
  pulls.report_end(queued());
  EXPECT_EQ(client.told.size(), 1u) << "its end is still reported";
}

TEST_F(PullsTest, WithoutPdcOrOperationItIsTriedAgain) {
  delivery.refuse = true;
  EXPECT_EQ(pulls.read(message, 0, {}, kNow).error(), Error::Again);
  EXPECT_TRUE(operations.empty());
  delivery.refuse = false;
  ASSERT_TRUE(pulls.read(message, 0, {}, kNow));
  ASSERT_TRUE(pulls.read(message, 0, {}, kNow));
  EXPECT_EQ(pulls.read(message, 0, {}, kNow).error(), Error::Again);
  EXPECT_EQ(pulls.request_restart(message, 1, kNow).error(), Error::Again);
}

}  // namespace
}  // namespace uet::ses::test
