// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Transmit and receive contexts that several endpoints share.
#include <gtest/gtest.h>

#include <array>

#include "objects.h"

namespace uet::e2e {
namespace {

// ---- shared transmit contexts ------------------------------------------------------------------

class SharedTransmit : public testing::Test {
 protected:
  static constexpr std::size_t kSize = 16;

  SharedTransmit()
      : a_({.info = [](fi_info& info) { info.ep_attr->tx_ctx_cnt = FI_SHARED_CONTEXT; }}) {
    fi_tx_attr attr{};
    attr.size = kSize;
    Side::open(stx_, "fi_stx_context",
               [&](auto** out) { return fi_stx_context(a_.domain.get(), &attr, out, nullptr); });
    other_ = b_.open_endpoint(0);
    to_other_ = a_.insert(*other_);
  }
  // Not enabled.
  Owned<fid_ep> sharing() {
    Owned<fid_ep> ep;
    Side::open(ep, "fi_endpoint", [&](auto** out) {
      return fi_endpoint(a_.domain.get(), a_.info.get(), out, nullptr);
    });
    check(fi_ep_bind(ep.get(), &a_.av->fid, 0), "bind AV");
    check(fi_ep_bind(ep.get(), &a_.cq->fid, FI_TRANSMIT | FI_RECV), "bind CQ");
    return ep;
  }
  // In progress until receive_all, also with an engine that makes progress by itself.
  ssize_t send_unexpected(fid_ep* ep) {
    char byte = 'x';
    iovec piece{&byte, 1};
    fi_msg message{};
    message.msg_iov = &piece;
    message.iov_count = 1;
    message.addr = to_other_;
    message.context = ep;
    return fi_sendmsg(ep, &message, FI_INJECT | FI_DELIVERY_COMPLETE);
  }
  void receive_all() {
    for (char& byte : received_) {
      check(fi_recv(other_.get(), &byte, 1, nullptr, FI_ADDR_UNSPEC, nullptr), "fi_recv");
    }
  }

  Side a_;
  Side b_;
  std::array<char, kSize> received_{};
  Owned<fid_stx> stx_;
  Owned<fid_ep> other_;
  fi_addr_t to_other_ = 0;
};

TEST_F(SharedTransmit, HoldsTheOperationsOfAllItsEndpoints) {
  const auto first = sharing();
  const auto second = sharing();
  for (const auto& ep : {first.get(), second.get()}) {
    ASSERT_EQ(fi_ep_bind(ep, &stx_->fid, 0), 0);
    ASSERT_EQ(fi_enable(ep), 0);
  }
  for (std::size_t i = 0; i < kSize; ++i) {
    ASSERT_EQ(send_unexpected(i % 2 == 0 ? first.get() : second.get()), 0);
  }
  EXPECT_EQ(send_unexpected(first.get()), -FI_EAGAIN);
  EXPECT_EQ(send_unexpected(second.get()), -FI_EAGAIN);
  receive_all();
  std::size_t of_first = 0;
  for (std::size_t i = 0; i < kSize; ++i) {
    const Event sent = a_.next(b_);
    ASSERT_EQ(sent.error, 0);
    if (sent.context == first.get()) ++of_first;
  }
  EXPECT_EQ(of_first, kSize / 2);
  EXPECT_EQ(fi_inject(second.get(), "x", 1, to_other_), 0);
}

TEST_F(SharedTransmit, MustBeBoundWhereItWasAskedFor) {
  const auto ep = sharing();
  EXPECT_EQ(fi_enable(ep.get()), -FI_EOPBADSTATE);
  EXPECT_EQ(fi_ep_bind(ep.get(), &stx_->fid, FI_TRANSMIT), -FI_EINVAL);
  EXPECT_EQ(fi_ep_bind(ep.get(), &stx_->fid, 0), 0);
  EXPECT_EQ(fi_ep_bind(ep.get(), &stx_->fid, 0), -FI_EINVAL);
  EXPECT_EQ(fi_enable(ep.get()), 0);
}

// As Sandia OpenSHMEM ends. Its endpoints go on with its slots.
TEST_F(SharedTransmit, MayBeClosedBeforeItsEndpoints) {
  const auto first = sharing();
  const auto second = sharing();
  for (fid_ep* ep : {first.get(), second.get()}) {
    ASSERT_EQ(fi_ep_bind(ep, &stx_->fid, 0), 0);
    ASSERT_EQ(fi_enable(ep), 0);
  }
  EXPECT_EQ(fi_close(&stx_.release()->fid), 0);
  for (std::size_t i = 0; i < kSize; ++i) {
    ASSERT_EQ(send_unexpected(i % 2 == 0 ? first.get() : second.get()), 0) << i;
  }
  EXPECT_EQ(send_unexpected(first.get()), -FI_EAGAIN);
  receive_all();
  for (std::size_t i = 0; i < kSize; ++i) ASSERT_EQ(a_.next(b_).error, 0);
}

TEST_F(SharedTransmit, BelongsToItsDomainAndHasItsLimits) {
  Owned<fid_ep> ep;
  Side::open(ep, "fi_endpoint",
             [&](auto** out) { return fi_endpoint(b_.domain.get(), b_.info.get(), out, nullptr); });
  EXPECT_EQ(fi_ep_bind(ep.get(), &stx_->fid, 0), -FI_EDOMAIN);
  fi_tx_attr attr{};
  attr.size = std::size_t{1} << 30;
  fid_stx* stx = nullptr;
  EXPECT_EQ(fi_stx_context(a_.domain.get(), &attr, &stx, nullptr), -FI_EINVAL);
}

// ---- shared receive contexts -------------------------------------------------------------------

class SharedReceive : public testing::Test {
 protected:
  explicit SharedReceive(std::uint64_t flags = 0)
      : a_({.capabilities = FI_MSG | FI_TAGGED | FI_DIRECTED_RECV | FI_SOURCE,
            .info = [](fi_info& info) { info.ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT; }}) {
    Side::open(srx_, "fi_srx_context", [&](auto** out) {
      return fi_srx_context(a_.domain.get(), a_.info->rx_attr, out, nullptr);
    });
    for (int i = 0; i < 2; ++i) {
      queues_[i] = a_.open_cq();
      eps_[i] = plain(*a_.av, *queues_[i], flags);
      check(fi_ep_bind(eps_[i].get(), &srx_->fid, 0), "bind SRX");
      check(fi_enable(eps_[i].get()), "fi_enable");
      senders_[i] = b_.open_endpoint(0);
      from_[i] = a_.insert(*senders_[i]);
      to_[i] = b_.insert(*eps_[i]);
    }
  }
  // Without a shared receive context, not enabled.
  Owned<fid_ep> plain(fid_av& av, fid_cq& queue, std::uint64_t flags = 0) {
    Owned<fid_ep> ep;
    Side::open(ep, "fi_endpoint", [&](auto** out) {
      return fi_endpoint(a_.domain.get(), a_.info.get(), out, nullptr);
    });
    check(fi_ep_bind(ep.get(), &av.fid, 0), "bind AV");
    check(fi_ep_bind(ep.get(), &queue.fid, FI_TRANSMIT | FI_RECV | flags), "bind CQ");
    return ep;
  }
  ssize_t post(int number, std::uint64_t tag = 0) {
    return fi_trecv(srx_.get(), &in_[number], sizeof in_[number], nullptr, FI_ADDR_UNSPEC, tag, 0,
                    &in_[number]);
  }
  void send(int sender, int to, int value, std::uint64_t tag = 0) {
    ASSERT_EQ(fi_tinject(senders_[sender].get(), &value, sizeof value, to_[to], tag), 0);
  }
  Event next(int endpoint) { return Side::next(*queues_[endpoint], b_); }

  Side a_;
  Side b_;
  Owned<fid_ep> srx_;
  Owned<fid_cq> queues_[2];
  Owned<fid_ep> eps_[2];
  Owned<fid_ep> senders_[2];
  fi_addr_t from_[2];
  fi_addr_t to_[2];
  int in_[4] = {-1, -1, -1, -1};
};

TEST_F(SharedReceive, MessagesToAnyEndpointTakeReceivesInTheirOrder) {
  ASSERT_EQ(post(0), 0);
  ASSERT_EQ(post(1), 0);
  send(0, 1, 70);
  EXPECT_EQ(next(1).context, &in_[0]);
  send(0, 0, 71);
  const Event second = next(0);
  EXPECT_EQ(second.context, &in_[1]);
  EXPECT_EQ(second.flags, FI_RECV | FI_TAGGED);
  EXPECT_EQ(in_[0], 70);
  EXPECT_EQ(in_[1], 71);
}

TEST_F(SharedReceive, UnexpectedMessagesWaitForTheirReceive) {
  send(0, 1, 70, 7);
  send(1, 0, 80, 8);
  ASSERT_EQ(post(2, 9), 0);
  send(1, 1, 90, 9);
  EXPECT_EQ(next(1).context, &in_[2]);
  ASSERT_EQ(post(0, 8), 0);
  EXPECT_EQ(next(0).context, &in_[0]);
  ASSERT_EQ(post(1, 7), 0);
  EXPECT_EQ(next(1).context, &in_[1]);
  EXPECT_EQ(in_[0], 80);
  EXPECT_EQ(in_[1], 70);
}

TEST_F(SharedReceive, HonoursTheSource) {
  ASSERT_EQ(fi_recv(srx_.get(), &in_[0], sizeof(int), nullptr, from_[1], &in_[0]), 0);
  ASSERT_EQ(fi_recv(srx_.get(), &in_[1], sizeof(int), nullptr, from_[0], &in_[1]), 0);
  const int value = 5;
  ASSERT_EQ(fi_inject(senders_[0].get(), &value, sizeof value, to_[0]), 0);
  fi_addr_t source = FI_ADDR_UNSPEC;
  EXPECT_EQ(Side::next(*queues_[0], b_, &source).context, &in_[1]);
  EXPECT_EQ(source, from_[0]);
  EXPECT_EQ(fi_recv(srx_.get(), &in_[0], sizeof(int), nullptr, 99, nullptr), -FI_EINVAL);
}

TEST_F(SharedReceive, MultiReceive_ServesAll_FirstReturnsIt) {
  const std::size_t min = 1;
  ASSERT_EQ(fi_setopt(&srx_->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &min, sizeof min), 0);
  const iovec iov{in_, 2 * sizeof(int)};
  fi_msg msg{};
  msg.msg_iov = &iov;
  msg.iov_count = 1;
  msg.addr = FI_ADDR_UNSPEC;
  msg.context = in_;
  ASSERT_EQ(fi_recvmsg(srx_.get(), &msg, FI_MULTI_RECV), 0);
  for (int i = 0; i < 2; ++i) {
    const int value = 60 + i;
    ASSERT_EQ(fi_inject(senders_[0].get(), &value, sizeof value, to_[1]), 0);
    const Event event = next(1);
    EXPECT_EQ(event.flags, FI_RECV | FI_MSG);
    EXPECT_EQ(event.buffer, &in_[i]);
    EXPECT_EQ(in_[i], value);
  }
  const Event release = next(0);
  EXPECT_EQ(release.flags, FI_MULTI_RECV);
  EXPECT_EQ(release.context, in_);
}

TEST_F(SharedReceive, PeekIsAnsweredByTheFirstEndpoint) {
  fi_msg_tagged msg{};
  msg.addr = FI_ADDR_UNSPEC;
  msg.tag = 7;
  fi_context context{};
  msg.context = &context;
  ASSERT_EQ(fi_trecvmsg(srx_.get(), &msg, FI_PEEK), 0);
  EXPECT_EQ(next(0).error, FI_ENOMSG);
  const int value = 70;
  ASSERT_EQ(fi_tsend(senders_[0].get(), &value, sizeof value, nullptr, to_[1], 7, nullptr), 0);
  EXPECT_EQ(b_.next(a_).error, 0);  // the peer's provider has it
  ASSERT_EQ(fi_trecvmsg(srx_.get(), &msg, FI_PEEK | FI_CLAIM | FI_COMPLETION), 0);
  EXPECT_EQ(next(0).length, sizeof(int));
  const iovec iov{in_, sizeof(int)};
  msg.msg_iov = &iov;
  msg.iov_count = 1;
  ASSERT_EQ(fi_trecvmsg(srx_.get(), &msg, FI_CLAIM), 0);
  EXPECT_EQ(next(1).context, &context);
  EXPECT_EQ(in_[0], 70);
}

TEST_F(SharedReceive, CancelledOneIsToldByTheFirstEndpoint) {
  ASSERT_EQ(post(0), 0);
  EXPECT_EQ(fi_cancel(&srx_->fid, &in_[0]), 0);
  const Event event = next(0);
  EXPECT_EQ(event.error, FI_ECANCELED);
  EXPECT_EQ(event.context, &in_[0]);
  EXPECT_EQ(fi_cancel(&srx_->fid, &in_[0]), -FI_ENOENT);
}

TEST_F(SharedReceive, OutlivesItsEndpoints) {
  ASSERT_EQ(post(0), 0);
  ASSERT_EQ(post(1), 0);
  EXPECT_EQ(fi_close(&srx_->fid), -FI_EBUSY);
  eps_[0].reset();
  EXPECT_EQ(fi_close(&queues_[0].release()->fid), 0);
  send(0, 1, 70);
  EXPECT_EQ(next(1).context, &in_[0]);
  EXPECT_EQ(fi_cancel(&srx_->fid, &in_[1]), 0);
  EXPECT_EQ(next(1).error, FI_ECANCELED) << "the other endpoint tells now";
  ASSERT_EQ(post(2), 0);
  eps_[1].reset();
  EXPECT_EQ(fi_close(&queues_[1].release()->fid), 0);
  EXPECT_EQ(fi_close(&a_.av.release()->fid), 0);
  EXPECT_EQ(fi_cancel(&srx_->fid, &in_[2]), 0) << "no endpoint is left to report it";
  EXPECT_EQ(fi_close(&srx_.release()->fid), 0);
}

TEST_F(SharedReceive, ReceivesForItsEndpointsAndDoesNothingElse) {
  EXPECT_EQ(srx_->fid.fclass, std::size_t{FI_CLASS_SRX_CTX});
  EXPECT_EQ(fi_recv(eps_[0].get(), in_, 1, nullptr, FI_ADDR_UNSPEC, nullptr), -FI_EOPBADSTATE);
  EXPECT_EQ(fi_send(srx_.get(), in_, 1, nullptr, 0, nullptr), -FI_ENOSYS);
  EXPECT_EQ(fi_read(srx_.get(), in_, 1, nullptr, 0, 0, 0, nullptr), -FI_ENOSYS);
  std::size_t size = 0;
  std::size_t length = sizeof size;
  EXPECT_EQ(fi_getopt(&srx_->fid, FI_OPT_ENDPOINT, FI_OPT_RX_SIZE, &size, &length), 0);
  EXPECT_EQ(size, a_.info->rx_attr->size);
}

TEST_F(SharedReceive, AskedFor_MustBeBoundWithTheSameAv) {
  fi_av_attr attr{};
  Owned<fid_av> other;
  Side::open(other, "fi_av_open",
             [&](auto** out) { return fi_av_open(a_.domain.get(), &attr, out, nullptr); });
  auto ep = plain(*a_.av, *a_.cq);
  EXPECT_EQ(fi_enable(ep.get()), -FI_EOPBADSTATE);
  EXPECT_EQ(fi_ep_bind(ep.get(), &srx_->fid, 0), 0);
  EXPECT_EQ(fi_ep_bind(ep.get(), &srx_->fid, 0), -FI_EINVAL);
  EXPECT_EQ(fi_enable(ep.get()), 0);
  ep = plain(*other, *a_.cq);
  EXPECT_EQ(fi_ep_bind(ep.get(), &srx_->fid, 0), 0);
  EXPECT_EQ(fi_enable(ep.get()), -FI_EINVAL);
  Owned<fid_ep> stranger;
  Side::open(stranger, "fi_endpoint",
             [&](auto** out) { return fi_endpoint(b_.domain.get(), b_.info.get(), out, nullptr); });
  EXPECT_EQ(fi_ep_bind(stranger.get(), &srx_->fid, 0), -FI_EDOMAIN);
}

class SharedReceiveSelective : public SharedReceive {
 protected:
  SharedReceiveSelective() : SharedReceive(FI_SELECTIVE_COMPLETION) {}
};

TEST_F(SharedReceiveSelective, TellsOnlyOfWhatIsMarked) {
  ASSERT_EQ(post(0), 0);
  iovec iov{&in_[1], sizeof in_[1]};
  fi_msg_tagged msg{};
  msg.msg_iov = &iov;
  msg.iov_count = 1;
  msg.addr = FI_ADDR_UNSPEC;
  msg.context = &in_[1];
  ASSERT_EQ(fi_trecvmsg(srx_.get(), &msg, FI_COMPLETION), 0);
  send(0, 0, 70);
  send(0, 0, 71);
  EXPECT_EQ(next(0).context, &in_[1]);
  EXPECT_EQ(in_[0], 70);
  std::uint64_t flags = FI_RECV | FI_COMPLETION;
  EXPECT_EQ(fi_control(&srx_->fid, FI_SETOPSFLAG, &flags), 0);
  ASSERT_EQ(post(2), 0);
  send(0, 1, 72);
  EXPECT_EQ(next(1).context, &in_[2]);
  flags = FI_TRANSMIT;
  EXPECT_EQ(fi_control(&srx_->fid, FI_GETOPSFLAG, &flags), -FI_EINVAL);
}

}  // namespace
}  // namespace uet::e2e
