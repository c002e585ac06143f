// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// RMA that travels as several messages: longer than one message, or to several remote ranges. One
// message holds 64 KiB here (rma_piece_bytes). Two domains in one process.
#include <gtest/gtest.h>
#include <rdma/fi_rma.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <vector>

#include "objects.h"

namespace uet::e2e {
namespace {

constexpr std::size_t kPiece = 64 << 10;
constexpr std::uint64_t kKey = 5;
constexpr std::uint64_t kOtherKey = 6;
constexpr std::uint64_t kLargeKey = 7;
constexpr int kOptMaxRmaSize = 14;  // FI_OPT_MAX_RMA_SIZE

class CompoundRma : public testing::TestWithParam<std::uint64_t> {
 protected:
  CompoundRma() {
    ep_ = a_.open_endpoint(0);
    Side::open(target_, "fi_endpoint", [&](auto** out) {
      return fi_endpoint(b_.domain.get(), b_.info.get(), out, nullptr);
    });
    check(fi_ep_bind(target_.get(), &b_.av->fid, 0), "bind AV");
    check(fi_ep_bind(target_.get(), &b_.cq->fid, FI_TRANSMIT | FI_RECV), "bind CQ");
    remote_writes_ = open_counter(b_);
    check(fi_ep_bind(target_.get(), &remote_writes_->fid, FI_REMOTE_WRITE), "bind counter");
    check(fi_enable(target_.get()), "fi_enable");
    to_ = a_.insert(*target_);
    expose(there_, kKey, mr_, region_writes_);
    expose(other_, kOtherKey, other_mr_, other_writes_);
    fill_pattern(here_, 1);
  }
  static Owned<fid_cntr> open_counter(Side& side) {
    Owned<fid_cntr> counter;
    Side::open(counter, "fi_cntr_open",
               [&](auto** out) { return fi_cntr_open(side.domain.get(), nullptr, out, nullptr); });
    return counter;
  }
  void expose(std::vector<std::byte>& memory, std::uint64_t key, Owned<fid_mr>& mr,
              Owned<fid_cntr>& counter) {
    Side::open(mr, "fi_mr_reg", [&](auto** out) {
      return fi_mr_reg(b_.domain.get(), memory.data(), memory.size(),
                       FI_REMOTE_READ | FI_REMOTE_WRITE, 0, key, 0, out, nullptr);
    });
    counter = open_counter(b_);
    check(fi_mr_bind(mr.get(), &counter->fid, FI_REMOTE_WRITE), "fi_mr_bind");
  }
  void order(fi_info& info) const {
    info.tx_attr->msg_order = GetParam();
    info.rx_attr->msg_order = GetParam();
  }
  fi_msg_rma message(std::span<const iovec> local, std::span<const fi_rma_iov> remote) {
    fi_msg_rma msg{};
    msg.msg_iov = local.data();
    msg.iov_count = local.size();
    msg.rma_iov = remote.data();
    msg.rma_iov_count = remote.size();
    msg.addr = to_;
    msg.context = this;
    return msg;
  }
  // A whole operation; the only completion at this side.
  Event done() {
    const Event event = a_.next(b_);
    EXPECT_EQ(event.context, this);
    settle();
    EXPECT_FALSE(a_.poll()) << "one completion";
    return event;
  }
  // Posts a write of more pieces than leave at once.
  void write_many_pieces() {
    Side::open(large_mr_, "fi_mr_reg", [&](auto** out) {
      return fi_mr_reg(b_.domain.get(), large_there_.data(), large_there_.size(), FI_REMOTE_WRITE,
                       0, kLargeKey, 0, out, nullptr);
    });
    check(fi_write(ep_.get(), large_.data(), large_.size(), nullptr, to_, 0, kLargeKey, this),
          "fi_write");
  }
  void settle() {
    for (int i = 0; i < 100; ++i) {
      fi_cq_read(a_.cq.get(), nullptr, 0);
      fi_cq_read(b_.cq.get(), nullptr, 0);
    }
  }
  std::uint64_t writes(const Owned<fid_cntr>& counter) { return fi_cntr_read(counter.get()); }
  void expect_counts(std::uint64_t endpoint, std::uint64_t region, std::uint64_t other) {
    EXPECT_EQ(writes(remote_writes_), endpoint);
    EXPECT_EQ(writes(region_writes_), region);
    EXPECT_EQ(writes(other_writes_), other);
  }

  Variable tuning_{"FI_UET_TUNING", "rma_piece_bytes=65536"};
  Side a_{{.hints = [this](fi_info& hints) { order(hints); }}};
  Side b_{{.hints = [this](fi_info& hints) { order(hints); }}};
  Owned<fid_cntr> remote_writes_;
  Owned<fid_cntr> region_writes_;
  Owned<fid_cntr> other_writes_;
  std::vector<std::byte> here_ = std::vector<std::byte>(10 * kPiece + 100);
  std::vector<std::byte> there_ = std::vector<std::byte>(11 * kPiece);
  std::vector<std::byte> other_ = std::vector<std::byte>(kPiece);
  std::vector<std::byte> large_ = std::vector<std::byte>(40 * kPiece);
  std::vector<std::byte> large_there_ = std::vector<std::byte>(large_.size());
  Owned<fid_mr> mr_;
  Owned<fid_mr> other_mr_;
  Owned<fid_mr> large_mr_;
  Owned<fid_ep> target_;
  Owned<fid_ep> ep_;
  fi_addr_t to_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Orders, CompoundRma,
                         testing::Values(0, FI_ORDER_WAW | FI_ORDER_RMA_WAW | FI_ORDER_SAW));

TEST_P(CompoundRma, Ses162_LongWriteHasOneCompletionAndCountsOnce) {
  ASSERT_EQ(fi_write(ep_.get(), here_.data(), here_.size(), nullptr, to_, 7, kKey, this), 0);
  const Event event = done();
  EXPECT_EQ(event.error, 0);
  EXPECT_EQ(event.flags, static_cast<std::uint64_t>(FI_WRITE | FI_RMA));
  require_pattern(std::span(there_).subspan(7, here_.size()), 1, "the written bytes");
  EXPECT_EQ(there_[7 + here_.size()], std::byte{});
  expect_counts(1, 1, 0);
}

TEST_P(CompoundRma, LongReadHasOneCompletion) {
  fill_pattern(there_, 2);
  ASSERT_EQ(fi_read(ep_.get(), here_.data(), here_.size(), nullptr, to_, 0, kKey, this), 0);
  EXPECT_EQ(done().error, 0);
  EXPECT_TRUE(std::equal(here_.begin(), here_.end(), there_.begin()));
}

TEST_P(CompoundRma, Ses162_SeveralRangesCountOncePerRegion) {
  std::array<iovec, 3> local{{{here_.data(), 1000}, {&here_[5000], 10}, {&here_[kPiece], 190}}};
  const std::array<fi_rma_iov, 4> remote{
      {{100, 600, kKey}, {0, 500, kOtherKey}, {1000, 60, kKey}, {2000, 40, kKey}}};
  const fi_msg_rma msg = message(local, remote);
  ASSERT_EQ(fi_writemsg(ep_.get(), &msg, FI_COMPLETION), 0);
  EXPECT_EQ(done().error, 0);
  std::vector<std::byte> sent;
  for (const iovec& piece : local) {
    const auto* from = static_cast<const std::byte*>(piece.iov_base);
    sent.insert(sent.end(), from, from + piece.iov_len);
  }
  EXPECT_TRUE(std::equal(&sent[0], &sent[600], &there_[100]));
  EXPECT_TRUE(std::equal(&sent[600], &sent[1100], &other_[0]));
  EXPECT_TRUE(std::equal(&sent[1100], &sent[1160], &there_[1000]));
  EXPECT_TRUE(std::equal(&sent[1160], &sent[0] + 1200, &there_[2000]));
  expect_counts(1, 1, 1);
}

TEST_P(CompoundRma, SeveralRangesAreReadIntoSeveralBuffers) {
  fill_pattern(there_, 3);
  fill_pattern(other_, 4);
  std::array<iovec, 2> local{{{here_.data(), 300}, {&here_[1000], 700}}};
  const std::array<fi_rma_iov, 2> remote{{{10, 500, kKey}, {20, 500, kOtherKey}}};
  const fi_msg_rma msg = message(local, remote);
  ASSERT_EQ(fi_readmsg(ep_.get(), &msg, FI_COMPLETION), 0);
  EXPECT_EQ(done().error, 0);
  EXPECT_TRUE(std::equal(&here_[0], &here_[300], &there_[10]));
  EXPECT_TRUE(std::equal(&here_[1000], &here_[1200], &there_[310]));
  EXPECT_TRUE(std::equal(&here_[1200], &here_[1700], &other_[20]));
}

TEST_P(CompoundRma, Ses162_ImmediateDataArriveOnceBehindAllBytes) {
  iovec local{here_.data(), here_.size()};
  const fi_rma_iov remote{0, here_.size(), kKey};
  fi_msg_rma msg = message({&local, 1}, {&remote, 1});
  msg.data = 77;
  ASSERT_EQ(fi_writemsg(ep_.get(), &msg, FI_REMOTE_CQ_DATA | FI_COMPLETION), 0);
  const Event event = Side::next(*b_.cq, a_);
  EXPECT_EQ(event.data, 77U);
  EXPECT_EQ(event.flags & FI_REMOTE_CQ_DATA, static_cast<std::uint64_t>(FI_REMOTE_CQ_DATA));
  require_pattern(std::span(there_).first(here_.size()), 1, "the bytes before the data");
  EXPECT_EQ(done().error, 0);
  EXPECT_FALSE(b_.poll()) << "one event";
}

TEST_P(CompoundRma, InjectedRangesAreCopied) {
  std::array<char, 4> text{'a', 'b', 'c', 'd'};
  iovec local{text.data(), text.size()};
  const std::array<fi_rma_iov, 2> remote{{{0, 2, kKey}, {9, 2, kKey}}};
  const fi_msg_rma msg = message({&local, 1}, remote);
  ASSERT_EQ(fi_writemsg(ep_.get(), &msg, FI_INJECT | FI_COMPLETION), 0);
  text.fill('x');
  EXPECT_EQ(done().error, 0);
  EXPECT_EQ(there_[0], std::byte{'a'});
  EXPECT_EQ(there_[1], std::byte{'b'});
  EXPECT_EQ(there_[9], std::byte{'c'});
  EXPECT_EQ(there_[10], std::byte{'d'});
}

TEST_P(CompoundRma, FailureOfOnePieceEndsTheWholeWithOneError) {
  iovec local{here_.data(), 300};
  const std::array<fi_rma_iov, 3> remote{{{0, 100, kKey}, {0, 100, 99}, {200, 100, kKey}}};
  fi_msg_rma msg = message({&local, 1}, remote);
  msg.data = 1;
  ASSERT_EQ(fi_writemsg(ep_.get(), &msg, FI_REMOTE_CQ_DATA | FI_COMPLETION), 0);
  EXPECT_EQ(done().error, FI_ENOKEY);
  EXPECT_FALSE(b_.poll()) << "data of an operation that has failed";
  EXPECT_EQ(there_[200], std::byte{});
  // The endpoint goes on.
  ASSERT_EQ(fi_write(ep_.get(), here_.data(), here_.size(), nullptr, to_, 0, kKey, this), 0);
  EXPECT_EQ(done().error, 0);
}

TEST_P(CompoundRma, LaterOperationsDoNotOvertakeIt) {
  std::array<std::byte, 4> later{};
  fill_pattern(later, 9);
  write_many_pieces();
  const std::size_t end = large_.size() - later.size();
  iovec local{later.data(), later.size()};
  const fi_rma_iov remote{end, later.size(), kLargeKey};
  const fi_msg_rma msg = message({&local, 1}, {&remote, 1});
  ssize_t posted = 0;
  while ((posted = fi_writemsg(ep_.get(), &msg, FI_FENCE | FI_COMPLETION)) == -FI_EAGAIN) {
    fi_cq_read(b_.cq.get(), nullptr, 0);
  }
  ASSERT_EQ(posted, 0);
  EXPECT_EQ(a_.next(b_).error, 0);
  EXPECT_EQ(a_.next(b_).error, 0);
  EXPECT_TRUE(std::equal(later.begin(), later.end(), &large_there_[end]));
}

TEST_P(CompoundRma, CancelledOperationEndsOnce) {
  write_many_pieces();
  ASSERT_EQ(fi_cancel(&ep_->fid, this), 0);
  EXPECT_EQ(done().error, FI_ECANCELED);
}

TEST_P(CompoundRma, LimitsAreEnforced) {
  EXPECT_EQ(a_.info->tx_attr->rma_iov_limit, 4U);
  EXPECT_EQ(a_.info->tx_attr->iov_limit, 4U);
  std::array<iovec, 5> local{};
  local.fill({here_.data(), 1});
  EXPECT_EQ(fi_writev(ep_.get(), local.data(), nullptr, 5, to_, 0, kKey, this), -FI_EINVAL);
  EXPECT_EQ(fi_readv(ep_.get(), local.data(), nullptr, 5, to_, 0, kKey, this), -FI_EINVAL);
  EXPECT_EQ(fi_sendv(ep_.get(), local.data(), nullptr, 5, to_, this), -FI_EINVAL);
  EXPECT_EQ(fi_tsendv(ep_.get(), local.data(), nullptr, 5, to_, 1, this), -FI_EINVAL);
  EXPECT_EQ(fi_recvv(target_.get(), local.data(), nullptr, 5, FI_ADDR_UNSPEC, this), -FI_EINVAL);
  std::array<fi_rma_iov, 5> remote{};
  remote.fill({0, 1, kKey});
  fi_msg_rma msg = message({local.data(), 1}, remote);
  local[0].iov_len = 5;
  EXPECT_EQ(fi_writemsg(ep_.get(), &msg, 0), -FI_EINVAL) << "five ranges";
  msg.rma_iov_count = 4;
  EXPECT_EQ(fi_writemsg(ep_.get(), &msg, 0), -FI_EINVAL) << "ranges and buffers differ in length";
  std::size_t most = 0;
  std::size_t length = sizeof most;
  ASSERT_EQ(fi_getopt(&ep_->fid, FI_OPT_ENDPOINT, kOptMaxRmaSize, &most, &length), 0);
  EXPECT_EQ(most, std::size_t{INT64_MAX});
}

}  // namespace
}  // namespace uet::e2e
