// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Which of the three request headers a message gets, and that the target takes it.
#include "unit/ses/harness.h"

namespace uet::ses::test {
namespace {

constexpr std::uint64_t kOptimizedKey = std::uint64_t{1} << 62 | 0x123;

class HeaderTest : public TwoNodes {
 protected:
  Peer to_b(bool optimized = true) const {
    Peer peer = b.peer();
    peer.optimized = optimized;
    return peer;
  }
  template <class Op>
  Op op_of(const Peer& peer, const IoSlice& slice) {
    Op op;
    op.peer = &peer;
    op.local = {&slice, 1};
    return op;
  }
  // The header of the only packet; it is delivered and must succeed.
  NextHdr delivered() {
    const std::vector<Sent> sent = a.packets();
    EXPECT_EQ(sent.size(), 1u);
    EXPECT_EQ(code_of(deliver(a, b, sent.at(0))), ReturnCode::Ok);
    EXPECT_EQ(a.sink.all.size(), 1u);
    EXPECT_EQ(a.sink.all.at(0).status, Status::Ok);
    a.sink.all.clear();
    return sent[0].next_hdr;
  }
  NextHdr send(std::size_t length, bool optimized = true, std::optional<std::uint64_t> tag = {},
               std::optional<std::uint64_t> data = {}) {
    Bytes memory = pattern(length);
    Bytes buffer(length);
    EXPECT_TRUE(b.receive({slice_of(buffer)}, tag));
    const Peer peer = to_b(optimized);
    const IoSlice slice = slice_of(memory);
    auto op = op_of<SendOp>(peer, slice);
    op.tag = tag;
    op.data = data;
    EXPECT_TRUE(a.ses.initiator().post(*a.context, op, kNow));
    const NextHdr next_hdr = delivered();
    EXPECT_EQ(buffer, memory);
    const Completion& received = b.sink.all.back();
    EXPECT_EQ(received.tag, tag.value_or(0));
    EXPECT_EQ(received.has_data, data.has_value());
    EXPECT_EQ(received.data, data.value_or(0));
    EXPECT_EQ(received.source_initiator, small_config().initiator);
    return next_hdr;
  }
  NextHdr write(Rkey key, std::uint64_t offset, std::optional<std::uint64_t> data = {},
                Part part = Part::Whole) {
    Bytes memory = pattern(32);
    const Peer peer = to_b();
    const IoSlice slice = slice_of(memory);
    auto op = op_of<RmaOp>(peer, slice);
    op.key = key;
    op.remote_offset = offset;
    op.data = data;
    op.part = part;
    EXPECT_TRUE(a.ses.initiator().post(*a.context, op, kNow));
    const NextHdr next_hdr = delivered();
    EXPECT_TRUE(std::equal(memory.begin(), memory.end(), region.begin() + std::ptrdiff_t(offset)));
    std::fill(region.begin(), region.end(), std::byte{});
    return next_hdr;
  }
  void expose_optimized(std::optional<ResourceIndex> through = {}) {
    ri::MemoryRegion memory;
    memory.base = region.data();
    memory.length = region.size();
    memory.access = ri::kRemoteRead | ri::kRemoteWrite;
    memory.ri = through;
    ASSERT_TRUE(b.regions.add_with_key(memory, Rkey{kOptimizedKey}).ok());
  }
  Bytes region = Bytes(256);
};

TEST_F(HeaderTest, Ses3_OnePacketToAblePeer_IsMedium) {
  EXPECT_EQ(send(0), NextHdr::RequestMedium);
  EXPECT_EQ(send(kMtu), NextHdr::RequestMedium);
  EXPECT_EQ(send(64, true, 0xFFEE'DDCC'BBAA'9988), NextHdr::RequestMedium);
  EXPECT_EQ(send(64, true, 7, 0x1122'3344'5566'7788), NextHdr::RequestMedium);
  expect_idle();
}

TEST_F(HeaderTest, Ses5_Ses151_OthersGetStandardHeaders) {
  EXPECT_EQ(send(64, false), NextHdr::RequestStd);
  Bytes memory(kMtu + 1);
  const Peer peer = to_b();
  const IoSlice slice = slice_of(memory);
  ASSERT_TRUE(a.ses.initiator().post(*a.context, op_of<SendOp>(peer, slice), kNow));
  for (const Sent& sent : a.packets()) {
    EXPECT_EQ(sent.next_hdr, NextHdr::RequestStd) << "two packets need a message id";
    a.answered(sent, {});
  }
}

TEST_F(HeaderTest, Ses4_LengthFieldOf14BitsMeans8191Bytes) {
  Parameters parameters = small_parameters();
  parameters.payload_mtu = 8192;
  Node large(3, parameters);
  for (const std::size_t length : {std::size_t{8191}, std::size_t{8192}}) {
    Bytes memory = pattern(length);
    const Peer peer = to_b();
    const IoSlice slice = slice_of(memory);
    ASSERT_TRUE(large.ses.initiator().post(*large.context, op_of<SendOp>(peer, slice), kNow));
    const std::vector<Sent> sent = large.packets();
    ASSERT_EQ(sent.size(), 1u);
    EXPECT_EQ(sent[0].next_hdr, length == 8191 ? NextHdr::RequestMedium : NextHdr::RequestStd);
    EXPECT_EQ(sent[0].request().request_length, length);
    large.answered(sent[0], {});
  }
}

TEST_F(HeaderTest, Ses5_WritesThroughAnOptimizedKeyAreSmall) {
  expose_optimized();
  EXPECT_EQ(write(Rkey{kOptimizedKey}, 100), NextHdr::RequestSmall);
  // A small header has no place for data, a medium one for data or an offset.
  EXPECT_EQ(write(Rkey{kOptimizedKey}, 0, 5), NextHdr::RequestMedium);
  EXPECT_EQ(b.sink.all.back().data, 5u);
  EXPECT_EQ(write(Rkey{kOptimizedKey}, 100, 5), NextHdr::RequestStd);
  const Rkey plain = b.expose(region);
  EXPECT_EQ(write(plain, 100), NextHdr::RequestMedium);
  expect_idle();
}

// Its address says so (WIRE 4.2); other peers take more.
TEST_F(HeaderTest, Ses32_PeerOfOneMtuGetsNoLongerMessage) {
  Bytes memory(kMtu + 1);
  Peer peer = to_b();
  const auto send = [&](std::size_t length) {
    const IoSlice slice{memory.data(), length};
    return a.ses.initiator().post(*a.context, op_of<SendOp>(peer, slice), kNow);
  };
  EXPECT_TRUE(send(kMtu + 1));
  peer.one_mtu = true;
  EXPECT_EQ(send(kMtu + 1).error(), Error::TooLong);
  EXPECT_TRUE(send(kMtu));
  for (const Sent& sent : a.packets()) a.answered(sent, {});
}

// header_data says so, which short headers have no place for. Immediate data go with the last part.
TEST_F(HeaderTest, Ses162_PartOfAnOperationHasTheStandardHeader) {
  expose_optimized();
  EXPECT_EQ(write(Rkey{kOptimizedKey}, 100, {}, Part::Inside), NextHdr::RequestStd);
  EXPECT_TRUE(b.sink.accesses.empty());
  EXPECT_EQ(write(Rkey{kOptimizedKey}, 0, {}, Part::RegionEnd), NextHdr::RequestStd);
  EXPECT_EQ(write(Rkey{kOptimizedKey}, 0, 5, Part::Inside), NextHdr::RequestMedium);
  EXPECT_EQ(b.sink.all.back().data, 5u);
  expect_idle();
}

TEST_F(HeaderTest, Ses135_SmallRequest_UsesIndexOfTheRegion) {
  ContextConfig config = small_config();
  config.resource_index = ResourceIndex{20};
  Context* second = b.ses.open_context(config, b.sink).value();
  b.ses.enable(*second);
  expose_optimized(config.resource_index);
  EXPECT_EQ(write(Rkey{kOptimizedKey}, 0), NextHdr::RequestSmall);
  b.ses.close_context(*second, kNow);
}

TEST_F(HeaderTest, Ses6_WhatBringsDataBackKeepsItsMessageId) {
  expose_optimized();
  Bytes memory(32);
  const Peer peer = to_b();
  const IoSlice slice = slice_of(memory);
  auto op = op_of<RmaOp>(peer, slice);
  op.kind = Kind::Read;
  op.key = Rkey{kOptimizedKey};
  ASSERT_TRUE(a.ses.initiator().post(*a.context, op, kNow));
  const std::vector<Sent> sent = a.packets();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].next_hdr, NextHdr::RequestStd);
  deliver(a, b, sent[0]);
  exchange();
  EXPECT_EQ(a.sink.all.size(), 1u);
  expect_idle();
}

TEST_F(HeaderTest, Ses8_StandardOnlyWhenSoConfigured) {
  Parameters parameters = small_parameters();
  parameters.short_headers = false;
  Node plain(3, parameters);
  const Peer peer = to_b();
  SendOp op;
  op.peer = &peer;
  ASSERT_TRUE(plain.ses.initiator().post(*plain.context, op, kNow));
  const std::vector<Sent> sent = plain.packets();
  EXPECT_EQ(sent.at(0).next_hdr, NextHdr::RequestStd);
  plain.answered(sent[0], {});
}

// SES-7: nothing that could be given up in the middle.
TEST_F(HeaderTest, Ses7_RefusedMedium_NoMsgErrorFollows) {
  const Peer peer = to_b();
  SendOp op;
  op.peer = &peer;
  op.tag = 1;
  ASSERT_TRUE(a.ses.initiator().post(*a.context, op, kNow));
  const std::vector<Sent> sent = a.packets();
  wire::SesResponseHeader header;
  header.opcode = wire::ResponseOpcode::Response;
  header.return_code = ReturnCode::Dropped;
  pds::Response response;
  response.next_hdr = NextHdr::Response;
  response.length = static_cast<std::uint8_t>(header.encode(response.bytes.data()));
  a.answered(sent.at(0), response);
  EXPECT_TRUE(a.packets().empty());
  ASSERT_EQ(a.sink.all.size(), 1u);
  EXPECT_EQ(a.sink.all[0].return_code, ReturnCode::Dropped);
  expect_idle();
}

}  // namespace
}  // namespace uet::ses::test
