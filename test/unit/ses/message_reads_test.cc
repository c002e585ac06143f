// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Reads of a message that is being sent: who may read what, and where the bytes come from.
#include "ses/message_reads.h"

#include "unit/ses/rendezvous_harness.h"

namespace uet::ses::test {
namespace {

TEST_F(RendezvousTest, DataOfTheReadPointIntoTheSendersMemory) {
  Bytes out = pattern(8 * kMtu);
  Bytes in(out.size());
  send_unexpected(out);
  ASSERT_TRUE(b.receive({slice_of(in)}));
  for (const Sent& ask : turn(b)) deliver(b, a, ask);
  EXPECT_FALSE(a.delivery.backlog.empty());
  EXPECT_EQ(a.buffers.in_use(), 0u) << "no copy";
  exchange();
  EXPECT_EQ(in, out);
  expect_idle();
}

TEST_F(RendezvousTest, ScatteredMemoryAtBothEnds) {
  for (const std::size_t slices : {2u, 3u, 16u}) {
    Bytes out = pattern(9 * kMtu + 11);
    Bytes in(out.size());
    ASSERT_TRUE(send(out, false, nullptr, slices));
    exchange();
    std::vector<IoSlice> local;
    for (std::size_t at = 0; at < in.size(); at += 700) {
      local.push_back({in.data() + at, std::min<std::size_t>(700, in.size() - at)});
    }
    ASSERT_LE(local.size(), kMaxIoSlices);
    ASSERT_TRUE(b.receive(local));
    exchange();
    EXPECT_EQ(in, out) << slices;
    EXPECT_EQ(a.sink.all.size(), 1u);
    a.sink.all.clear();
    expect_idle();
  }
}

TEST_F(RendezvousTest, InjectedDeliveryCompleteIsReadFromItsCopy) {
  b.context->unexpected_bytes = 32 * kMtu;  // nothing is kept
  Bytes out = pattern(600);
  const Bytes wanted = out;
  Bytes in(out.size());
  ASSERT_TRUE(send(out, true, nullptr, 1, true));
  std::fill(out.begin(), out.end(), std::byte{0});
  exchange();
  ASSERT_TRUE(b.receive({slice_of(in)}));
  exchange();
  EXPECT_EQ(in, wanted);
  b.context->unexpected_bytes -= 32 * kMtu;
  expect_idle();
}

TEST_F(RendezvousTest, Ses60_KeyIsForThisPeerJobAndMessageOnly) {
  Bytes out = pattern(6 * kMtu);
  ASSERT_TRUE(send(out));
  const std::vector<Sent> sent = a.packets();
  const Rkey key = sent[0].request().rendezvous.read_memory_key;
  EXPECT_EQ(read_code(a, Rkey{key.value ^ 0x10000}, 0, 8), ReturnCode::BadMkey);
  EXPECT_EQ(read_code(a, Rkey{key.value ^ 1}, 0, 8), ReturnCode::BadMkey);
  EXPECT_EQ(read_code(a, key, 0, 8, 3), ReturnCode::BadMkey) << "another FEP";
  EXPECT_EQ(read_code(a, key, 0, 8, 2, 102), ReturnCode::BadMkey) << "another job";
  EXPECT_EQ(read_code(a, key, 6 * kMtu, 1), ReturnCode::BadAddr);
  EXPECT_EQ(read_code(a, key, ~std::uint64_t{0}, 8), ReturnCode::BadAddr) << "SES-118";
  EXPECT_EQ(read_code(a, key, 0, 8), ReturnCode::Ok);
  for (const Sent& packet : sent) a.answered(packet, {});
  for (const Sent& packet : a.packets()) a.answered(packet, {});
  EXPECT_TRUE(a.sink.all.empty()) << "who has begun to read must read to the end";
  EXPECT_EQ(read_code(a, key, 6 * kMtu, 0), ReturnCode::Ok);
  ASSERT_EQ(a.sink.all.size(), 1u);
  EXPECT_EQ(read_code(a, key, 6 * kMtu, 0), ReturnCode::BadMkey) << "dead with its message";
  expect_idle();
}

// SES-112: the reader cannot deliver the message, which ends the send with an error.
TEST_F(RendezvousTest, Ses116_ReadOfAMessageIsCheckedInTheSameOrder) {
  Bytes out = pattern(6 * kMtu);
  ASSERT_TRUE(send(out));
  const std::vector<Sent> sent = a.packets();
  const Rkey key = sent[0].request().rendezvous.read_memory_key;
  SesRequest read = a.request_for(SesOpcode::Read);
  read.match_bits = key.value ^ 1;
  read.buffer_offset = out.size();
  read.request_length = 2 * kMtu;
  read.ie = true;
  EXPECT_EQ(code_of(a.take(read, {}, 2)), ReturnCode::OpViolation) << "one packet for two MTUs";
  read.request_length = 8;
  EXPECT_EQ(code_of(a.take(read, {}, 2)), ReturnCode::InitiatorErr);
  read.ie = false;
  EXPECT_EQ(code_of(a.take(read, {}, 2)), ReturnCode::BadMkey);
  read.match_bits = key.value;
  EXPECT_EQ(code_of(a.take(read, {}, 2)), ReturnCode::BadAddr);
  EXPECT_TRUE(a.sink.all.empty());
  read.ie = true;
  EXPECT_EQ(code_of(a.take(read, {}, 2)), ReturnCode::InitiatorErr);
  for (const Sent& packet : sent) a.answered(packet, {});
  for (const Sent& packet : a.packets()) a.answered(packet, {});
  ASSERT_EQ(a.sink.all.size(), 1u);
  EXPECT_EQ(a.sink.all[0].return_code, ReturnCode::Dropped);
  expect_idle();
}

}  // namespace
}  // namespace uet::ses::test
