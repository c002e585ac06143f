// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Sends longer than one message on the wire can be, which is 64 KiB here (rma_piece_bytes). Two
// domains in one process.
#include <gtest/gtest.h>
#include <rdma/fi_tagged.h>

#include <algorithm>
#include <array>
#include <vector>

#include "objects.h"

namespace uet::e2e {
namespace {

constexpr std::size_t kPiece = 64 << 10;
constexpr std::uint64_t kTag = 7;

struct Piece64k {
  Piece64k() { ::setenv("FI_UET_TUNING", "rma_piece_bytes=65536", 1); }
  ~Piece64k() { ::unsetenv("FI_UET_TUNING"); }
};

class LongSend : public testing::TestWithParam<std::uint64_t> {
 protected:
  LongSend() {
    fill_pattern(out_, 1);
    to_ = a_.insert(*target_);
  }
  void order(fi_info& info) const {
    info.tx_attr->msg_order = GetParam();
    info.rx_attr->msg_order = GetParam();
  }
  void receive(std::span<std::byte> into) {
    check(fi_trecv(target_.get(), into.data(), into.size(), nullptr, FI_ADDR_UNSPEC, kTag, 0, this),
          "fi_trecv");
  }
  void send(std::span<const std::byte> from) {
    check(fi_tsenddata(ep_.get(), from.data(), from.size(), nullptr, 99, to_, kTag, this),
          "fi_tsenddata");
  }
  void settle() {
    for (int i = 0; i < 200; ++i) {
      fi_cq_read(a_.cq.get(), nullptr, 0);
      fi_cq_read(b_.cq.get(), nullptr, 0);
    }
  }
  void expect_one_each(std::size_t length) {
    const Event received = b_.next(a_);
    EXPECT_EQ(received.error, 0);
    EXPECT_EQ(received.length, length);
    EXPECT_EQ(received.data, 99U);
    EXPECT_EQ(received.tag, kTag);
    EXPECT_EQ(a_.next(b_).error, 0);
    settle();
    EXPECT_FALSE(a_.poll()) << "one completion";
    EXPECT_FALSE(b_.poll()) << "one completion";
  }

  Piece64k tuning_;
  Side a_{{.hints = [this](fi_info& hints) { order(hints); }}};
  Side b_{{.hints = [this](fi_info& hints) { order(hints); }}};
  std::vector<std::byte> out_ = std::vector<std::byte>(9 * kPiece + 100);
  std::vector<std::byte> in_ = std::vector<std::byte>(out_.size());
  Owned<fid_ep> target_ = b_.open_endpoint(0);
  Owned<fid_ep> ep_ = a_.open_endpoint(0);
  fi_addr_t to_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Orders, LongSend, testing::Values(0, FI_ORDER_SAS));

TEST_P(LongSend, Ses164_ExpectedSendHasOneCompletionEach) {
  receive(in_);
  send(out_);
  expect_one_each(out_.size());
  EXPECT_EQ(in_, out_);
}

TEST_P(LongSend, Ses164_UnexpectedSendHasOneCompletionEach) {
  send(out_);
  settle();
  receive(in_);
  expect_one_each(out_.size());
  EXPECT_EQ(in_, out_);
}

TEST_P(LongSend, Ses164_SeveralBuffersAtBothEnds) {
  std::array<iovec, 4> from;
  std::array<iovec, 4> to;
  for (std::size_t i = 0; i < 4; ++i) {
    const std::size_t part = out_.size() / 4 - 3;
    const std::size_t rest = i == 3 ? out_.size() - 3 * part : part;
    from[i] = {out_.data() + i * part, rest};
    to[3 - i] = {in_.data() + in_.size() - (i + 1) * part, part};
  }
  to[0] = {in_.data(),
           static_cast<std::size_t>(static_cast<std::byte*>(to[1].iov_base) - in_.data())};
  check(fi_recvv(target_.get(), to.data(), nullptr, 4, FI_ADDR_UNSPEC, this), "fi_recvv");
  check(fi_sendv(ep_.get(), from.data(), nullptr, 4, to_, this), "fi_sendv");
  EXPECT_EQ(b_.next(a_).length, out_.size());
  EXPECT_EQ(a_.next(b_).error, 0);
  EXPECT_EQ(in_, out_);
}

TEST_P(LongSend, Ses164_PeekStatesTheWholeLength) {
  send(out_);
  fi_msg_tagged peek{};
  peek.addr = FI_ADDR_UNSPEC;
  peek.tag = kTag;
  peek.context = this;
  Event found;
  do {
    settle();  // both ends make progress
    check(static_cast<int>(fi_trecvmsg(target_.get(), &peek, FI_PEEK)), "fi_trecvmsg");
    found = b_.next(a_);
  } while (found.error == FI_ENOMSG);
  EXPECT_EQ(found.length, out_.size());
  receive(in_);
  expect_one_each(out_.size());
}

TEST_P(LongSend, Ses164_LaterShortSend_MatchesAfterLongOne) {
  if (GetParam() == 0) GTEST_SKIP() << "without order messages may overtake each other";
  std::vector<std::byte> shorter(100);
  send(out_);
  send(shorter);
  receive(in_);
  std::vector<std::byte> second(100);
  receive(second);
  std::array<std::size_t, 2> lengths{};
  for (std::size_t& length : lengths) length = b_.next(a_).length;
  std::sort(lengths.begin(), lengths.end());
  EXPECT_EQ(lengths[0], shorter.size());
  EXPECT_EQ(lengths[1], out_.size());
  EXPECT_EQ(in_, out_);
}

TEST_P(LongSend, Ses164_MaxMsgSizeIsThatOfTcp) {
  EXPECT_EQ(a_.info->ep_attr->max_msg_size, std::size_t{INT64_MAX});
}

}  // namespace
}  // namespace uet::e2e
