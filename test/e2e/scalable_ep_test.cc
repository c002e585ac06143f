// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Scalable endpoints: named receive contexts, who is seen as the source, and what belongs to the
// endpoint and what to its contexts.
#include <gtest/gtest.h>

#include <exception>
#include <thread>

#include "objects.h"

namespace uet::e2e {
namespace {

constexpr int kContexts = 2;
constexpr int kBits = 1;

SideOptions scalable_options(fi_threading threading = FI_THREAD_DOMAIN) {
  SideOptions options;
  options.rx_ctx_bits = kBits;
  options.hints = [threading](fi_info& hints) {
    hints.domain_attr->threading = threading;
    hints.caps = FI_MSG | FI_TAGGED | FI_RMA | FI_SOURCE | FI_NAMED_RX_CTX;
    hints.ep_attr->tx_ctx_cnt = kContexts;
    hints.ep_attr->rx_ctx_cnt = kContexts;
  };
  return options;
}

// A scalable endpoint with all its contexts, each with a CQ of its own, enabled.
struct Scalable : Side {
  explicit Scalable(const SideOptions& options = scalable_options()) : Side(options) {
    open(sep, "fi_scalable_ep",
         [&](auto** out) { return fi_scalable_ep(domain.get(), info.get(), out, nullptr); });
    for (int i = 0; i < kContexts; ++i) {
      open(tx[i], "fi_tx_context",
           [&](auto** out) { return fi_tx_context(sep.get(), i, nullptr, out, nullptr); });
      open(rx[i], "fi_rx_context",
           [&](auto** out) { return fi_rx_context(sep.get(), i, nullptr, out, nullptr); });
      tx_cq[i] = open_cq();
      rx_cq[i] = open_cq();
      check(fi_ep_bind(tx[i].get(), &tx_cq[i]->fid, FI_TRANSMIT), "bind CQ to tx");
      check(fi_ep_bind(rx[i].get(), &rx_cq[i]->fid, FI_RECV), "bind CQ to rx");
    }
    check(fi_scalable_ep_bind(sep.get(), &av->fid, 0), "bind AV");
    check(fi_enable(sep.get()), "enable sep");
    for (int i = 0; i < kContexts; ++i) {
      check(fi_enable(tx[i].get()), "enable tx");
      check(fi_enable(rx[i].get()), "enable rx");
    }
  }

  Owned<fid_cq> tx_cq[kContexts];
  Owned<fid_cq> rx_cq[kContexts];
  Owned<fid_ep> sep;
  Owned<fid_ep> tx[kContexts];
  Owned<fid_ep> rx[kContexts];
};

// Ses15: a peer addresses each receive context by its place in the run of resource indices.
TEST(ScalableEndpoint, Ses15_NamedReceiveContext_TakesItsMessages) {
  Scalable a;
  Scalable b;
  const fi_addr_t b_at_a = a.insert(*b.sep);
  const fi_addr_t a_at_b = b.insert(*a.sep);
  const auto check_way = [](Scalable& from, fi_addr_t peer, Scalable& to, fi_addr_t source) {
    for (std::uint64_t t = 0; t < kContexts; ++t) {
      for (std::uint64_t r = 0; r < kContexts; ++r) {
        std::uint64_t out = 10 * t + r;
        std::uint64_t in = 0;
        const fi_addr_t address = fi_rx_addr(peer, static_cast<int>(r), kBits);
        ASSERT_EQ(fi_trecv(to.rx[r].get(), &in, sizeof in, nullptr, 0, out, 0, &in), 0);
        ASSERT_EQ(fi_tsend(from.tx[t].get(), &out, sizeof out, nullptr, address, out, &out), 0);
        fi_addr_t who = FI_ADDR_UNSPEC;
        const Event got = Side::next(*to.rx_cq[r], from, &who);
        EXPECT_EQ(got.context, &in);
        EXPECT_EQ(got.tag, out);
        EXPECT_EQ(in, out);
        EXPECT_EQ(who, source) << "all transmit contexts are one source (SES-20)";
        EXPECT_EQ(Side::next(*from.tx_cq[t], to).context, &out);
        EXPECT_FALSE(Side::poll(*to.rx_cq[1 - r]));
      }
    }
  };
  check_way(a, b_at_a, b, a_at_b);
  check_way(b, a_at_b, a, b_at_a);
}

TEST(ScalableEndpoint, PlainAddress_ReachesFirstReceiveContext) {
  Scalable a;
  Scalable b;
  const fi_addr_t peer = a.insert(*b.sep);
  char in[8] = "";
  ASSERT_EQ(fi_recv(b.rx[0].get(), in, sizeof in, nullptr, 0, nullptr), 0);
  ASSERT_EQ(fi_inject(a.tx[1].get(), "first", 6, peer), 0);
  EXPECT_EQ(Side::next(*b.rx_cq[0], a).length, 6U);
  EXPECT_STREQ(in, "first");
  char memory[8] = "";
  fid_mr* mr = nullptr;
  ASSERT_EQ(
      fi_mr_reg(b.domain.get(), memory, sizeof memory, FI_REMOTE_WRITE, 0, 5, 0, &mr, nullptr), 0);
  const Owned<fid_mr> owner(mr);
  for (int r = 0; r < kContexts; ++r) {
    ASSERT_EQ(fi_writedata(a.tx[1].get(), "data", 5, nullptr, 77, fi_rx_addr(peer, r, kBits), 0,
                           fi_mr_key(mr), nullptr),
              0);
    EXPECT_EQ(Side::next(*b.rx_cq[r], a).data, 77U);
    EXPECT_EQ(Side::next(*a.tx_cq[1], b).error, 0);
  }
  EXPECT_STREQ(memory, "data");
}

// Ses147: the name states where the run begins and how long it is.
TEST(ScalableEndpoint, Ses147_NameStatesTheRunOfReservedIndices) {
  Scalable a;
  const auto run = Side::name_of(*a.sep);
  EXPECT_EQ(run, Side::name_of(*a.tx[1]));
  EXPECT_EQ(run, Side::name_of(*a.rx[1]));
  const auto index = [](const std::vector<std::byte>& name) { return static_cast<int>(name[23]); };
  EXPECT_EQ(static_cast<int>(run[25]), kContexts);
  const auto plain = a.open_endpoint(0);
  EXPECT_EQ(index(Side::name_of(*plain)), index(run) + kContexts);
  EXPECT_EQ(static_cast<int>(Side::name_of(*plain)[25]), 1);
}

TEST(ScalableEndpoint, ClosesAfterItsContextsOnly) {
  Scalable a;
  EXPECT_EQ(fi_close(&a.sep->fid), -FI_EBUSY);
  for (int i = 0; i < kContexts; ++i) {
    a.tx[i].reset();
    EXPECT_EQ(fi_close(&a.sep->fid), -FI_EBUSY);
    a.rx[i].reset();
  }
  EXPECT_EQ(fi_close(&a.av->fid), -FI_EBUSY);
  EXPECT_EQ(fi_close(&a.sep.release()->fid), 0);
  EXPECT_EQ(fi_close(&a.av.release()->fid), 0);
}

TEST(ScalableEndpoint, EachContextIsOpenOnce) {
  Scalable a;
  fid_ep* ep = nullptr;
  EXPECT_EQ(fi_tx_context(a.sep.get(), 1, nullptr, &ep, nullptr), -FI_EBUSY);
  EXPECT_EQ(fi_tx_context(a.sep.get(), kContexts, nullptr, &ep, nullptr), -FI_EINVAL);
  EXPECT_EQ(fi_rx_context(a.sep.get(), -1, nullptr, &ep, nullptr), -FI_EINVAL);
  a.tx[1].reset();
  fi_tx_attr attr{};
  attr.size = 16;
  ASSERT_EQ(fi_tx_context(a.sep.get(), 1, &attr, &ep, nullptr), 0);
  a.tx[1].reset(ep);
  EXPECT_EQ(attr.size, 16U);
  EXPECT_EQ(attr.inject_size, a.info->tx_attr->inject_size);
  EXPECT_EQ(attr.caps, a.info->tx_attr->caps);
  attr.inject_size = a.info->tx_attr->inject_size + 1;
  a.tx[1].reset();
  EXPECT_EQ(fi_tx_context(a.sep.get(), 1, &attr, &ep, nullptr), -FI_EINVAL);
}

// MPICH (ch4:ofi) gives both sides all that the provider offers, the names of contexts included.
TEST(ScalableEndpoint, ReceiveContextMayBeAskedForNamedContextsToo) {
  Scalable a;
  a.rx[1].reset();
  fi_rx_attr attr = *a.info->rx_attr;
  attr.caps |= FI_NAMED_RX_CTX;
  fid_ep* ep = nullptr;
  ASSERT_EQ(fi_rx_context(a.sep.get(), 1, &attr, &ep, nullptr), 0);
  a.rx[1].reset(ep);
  a.rx[1].reset();
  attr.caps |= FI_SEND;
  EXPECT_EQ(fi_rx_context(a.sep.get(), 1, &attr, &ep, nullptr), -FI_EINVAL);
}

TEST(ScalableEndpoint, ContextsDoOnlyWhatTheyAreFor) {
  Scalable a;
  char byte = 0;
  EXPECT_EQ(a.tx[0]->fid.fclass, std::size_t{FI_CLASS_TX_CTX});
  EXPECT_EQ(a.rx[0]->fid.fclass, std::size_t{FI_CLASS_RX_CTX});
  EXPECT_EQ(a.sep->fid.fclass, std::size_t{FI_CLASS_SEP});
  EXPECT_EQ(fi_recv(a.tx[0].get(), &byte, 1, nullptr, 0, nullptr), -FI_ENOSYS);
  EXPECT_EQ(fi_send(a.rx[0].get(), &byte, 1, nullptr, 0, nullptr), -FI_ENOSYS);
  EXPECT_EQ(fi_write(a.rx[0].get(), &byte, 1, nullptr, 0, 0, 0, nullptr), -FI_ENOSYS);
  EXPECT_EQ(fi_send(a.sep.get(), &byte, 1, nullptr, 0, nullptr), -FI_ENOSYS);
  EXPECT_EQ(fi_cancel(&a.tx[0]->fid, &byte), -FI_ENOENT);
  EXPECT_EQ(fi_cancel(&a.rx[0]->fid, &byte), -FI_ENOENT);
}

TEST(ScalableEndpoint, BindsAnAddressVectorAndContextsTheRest) {
  Side side(scalable_options());
  Owned<fid_ep> sep;
  Owned<fid_ep> tx;
  Side::open(sep, "fi_scalable_ep", [&](auto** out) {
    return fi_scalable_ep(side.domain.get(), side.info.get(), out, nullptr);
  });
  Side::open(tx, "fi_tx_context",
             [&](auto** out) { return fi_tx_context(sep.get(), 0, nullptr, out, nullptr); });
  EXPECT_EQ(fi_ep_bind(tx.get(), &side.cq->fid, FI_TRANSMIT | FI_RECV), -FI_EINVAL);
  EXPECT_EQ(fi_ep_bind(tx.get(), &side.av->fid, 0), -FI_EINVAL);
  EXPECT_EQ(fi_scalable_ep_bind(sep.get(), &side.cq->fid, FI_TRANSMIT), -FI_EINVAL);
  EXPECT_EQ(fi_enable(tx.get()), -FI_ENOAV);
  EXPECT_EQ(fi_enable(sep.get()), -FI_ENOAV);
  Side other;
  EXPECT_EQ(fi_scalable_ep_bind(sep.get(), &other.av->fid, 0), -FI_EDOMAIN);
  EXPECT_EQ(fi_scalable_ep_bind(sep.get(), &side.av->fid, 0), 0);
  EXPECT_EQ(fi_scalable_ep_bind(sep.get(), &side.av->fid, 0), -FI_EINVAL);
  EXPECT_EQ(fi_enable(tx.get()), -FI_ENOCQ);
  EXPECT_EQ(fi_ep_bind(tx.get(), &side.cq->fid, FI_TRANSMIT), 0);
  EXPECT_EQ(fi_enable(tx.get()), 0);
}

// One thread for each context: it sends and receives there, and nowhere else.
class ScalableThreads : public ::testing::TestWithParam<fi_threading> {};

constexpr std::uint64_t kRounds = 300;

void exchange(Scalable& self, fi_addr_t peer, int context, bool first) {
  const fi_addr_t address = fi_rx_addr(peer, context, kBits);
  std::vector<std::byte> out(3000);
  std::vector<std::byte> in(3000);
  const auto seed = [&](std::uint64_t round, bool of_first) {
    return round << 8 | static_cast<std::uint64_t>(context) << 1 | (of_first ? 1U : 0U);
  };
  const auto wait_for = [](fid_cq& queue) {
    const Clock::time_point start = Clock::now();
    for (;;) {
      if (const auto event = Side::poll(queue)) {
        require(event->error == 0, "an operation failed");
        return;
      }
      require(Clock::now() - start < kDeadline, "no completion came");
      std::this_thread::yield();
    }
  };
  const auto send = [&](std::uint64_t round) {
    fill_pattern(out, seed(round, first));
    check(fi_tsend(self.tx[context].get(), out.data(), out.size(), nullptr, address, round, &out),
          "fi_tsend");
    wait_for(*self.tx_cq[context]);
  };
  for (std::uint64_t round = 0; round < kRounds; ++round) {
    check(fi_trecv(self.rx[context].get(), in.data(), in.size(), nullptr, FI_ADDR_UNSPEC, round, 0,
                   &in),
          "fi_trecv");
    if (first) send(round);
    wait_for(*self.rx_cq[context]);
    require_pattern(in, seed(round, !first), "message");
    if (!first) send(round);
  }
}

TEST_P(ScalableThreads, OnOwnContextsDoNotDisturbEachOther) {
  Scalable a(scalable_options(GetParam()));
  Scalable b(scalable_options(GetParam()));
  const fi_addr_t b_at_a = a.insert(*b.sep);
  const fi_addr_t a_at_b = b.insert(*a.sep);
  std::vector<std::string> errors(2 * kContexts);
  std::vector<std::thread> threads;
  for (int i = 0; i < 2 * kContexts; ++i) {
    threads.emplace_back([&, i] {
      try {
        const bool first = i % 2 == 0;
        exchange(first ? a : b, first ? b_at_a : a_at_b, i / 2, first);
      } catch (const std::exception& error) {
        errors[static_cast<std::size_t>(i)] = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& error : errors) EXPECT_EQ(error, "");
}

INSTANTIATE_TEST_SUITE_P(Threading, ScalableThreads,
                         ::testing::Values(FI_THREAD_SAFE, FI_THREAD_COMPLETION),
                         [](const auto& info) {
                           return std::string(info.param == FI_THREAD_SAFE ? "Safe" : "Completion");
                         });

}  // namespace
}  // namespace uet::e2e
