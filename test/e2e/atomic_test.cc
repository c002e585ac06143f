// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// fi_atomic(3) through libfabric: every call form, what fi_query_atomic says against what works,
// counters, errors, and exactly once under loss. Two domains in one process, on loopback.
#include <gtest/gtest.h>
#include <rdma/fi_atomic.h>

#include <array>
#include <cstring>
#include <set>

#include "objects.h"

namespace uet::e2e {
namespace {

constexpr int kOps = 20;        // FI_DIFF of 2.x included
constexpr int kDatatypes = 20;  // the 8-bit floats of 2.x included
constexpr std::uint64_t kKey = 77;

class Atomic : public testing::Test {
 protected:
  Atomic() {
    ep_ = a_.open_endpoint(0);
    target_ = b_.open_endpoint(0);
    to_ = a_.insert(*target_);
    mr_ = expose(cells_.data(), sizeof cells_, FI_REMOTE_READ | FI_REMOTE_WRITE, kKey);
  }
  Owned<fid_mr> expose(void* memory, std::size_t bytes, std::uint64_t access, std::uint64_t key) {
    Owned<fid_mr> mr;
    Side::open(mr, "fi_mr_reg", [&](auto** out) {
      return fi_mr_reg(b_.domain.get(), memory, bytes, access, 0, key, 0, out, nullptr);
    });
    return mr;
  }
  // Waits for the completion and checks that it is the one expected.
  void expect_done(std::uint64_t flags, int error = 0) {
    const Event event = a_.next(b_);
    EXPECT_EQ(event.error, error);
    EXPECT_EQ(event.context, this);
    EXPECT_EQ(event.flags, FI_ATOMIC | flags);
  }
  fi_msg_atomic message(const fi_ioc* iov, std::size_t count, const fi_rma_ioc& remote, fi_op op) {
    fi_msg_atomic msg{};
    msg.msg_iov = iov;
    msg.iov_count = count;
    msg.addr = to_;
    msg.rma_iov = &remote;
    msg.rma_iov_count = 1;
    msg.datatype = FI_UINT64;
    msg.op = op;
    msg.context = this;
    return msg;
  }

  Side a_;
  Side b_;
  Owned<fid_ep> ep_;
  Owned<fid_ep> target_;
  fi_addr_t to_ = 0;
  alignas(16) std::array<std::uint64_t, 2048> cells_{};
  Owned<fid_mr> mr_;
};

TEST_F(Atomic, BaseCalls) {
  std::uint64_t values[] = {5, 7};
  ASSERT_EQ(fi_atomic(ep_.get(), values, 2, nullptr, to_, 0, kKey, FI_UINT64, FI_SUM, this), 0);
  expect_done(FI_WRITE);
  EXPECT_EQ(cells_[0], 5U);
  EXPECT_EQ(cells_[1], 7U);

  const fi_ioc iov[] = {{values, 1}, {values + 1, 1}};
  ASSERT_EQ(fi_atomicv(ep_.get(), iov, nullptr, 2, to_, 8, kKey, FI_UINT64, FI_PROD, this), 0);
  expect_done(FI_WRITE);
  EXPECT_EQ(cells_[1], 35U);

  const fi_rma_ioc remote{16, 2, kKey};
  const auto msg = message(iov, 2, remote, FI_ATOMIC_WRITE);
  ASSERT_EQ(fi_atomicmsg(ep_.get(), &msg, FI_INJECT), 0);
  values[0] = values[1] = 0;
  expect_done(FI_WRITE);
  EXPECT_EQ(cells_[2], 5U);
  EXPECT_EQ(cells_[3], 7U);

  const std::uint64_t bits = 6;
  ASSERT_EQ(fi_inject_atomic(ep_.get(), &bits, 1, to_, 24, kKey, FI_UINT64, FI_BXOR), 0);
  std::uint64_t seen = 0;
  ASSERT_EQ(fi_fetch_atomic(ep_.get(), nullptr, 1, nullptr, &seen, nullptr, to_, 0, kKey, FI_UINT64,
                            FI_ATOMIC_READ, this),
            0);
  expect_done(FI_READ);  // and none for the inject
  EXPECT_EQ(seen, 5U);
  while (cells_[3] != 1) ASSERT_EQ(fi_cq_read(b_.cq.get(), nullptr, 0), -FI_EAGAIN);
}

TEST_F(Atomic, FetchCalls) {
  cells_[0] = 100;
  cells_[1] = 200;
  std::uint64_t values[] = {1, 2};
  std::uint64_t old[2] = {};
  ASSERT_EQ(fi_fetch_atomic(ep_.get(), values, 2, nullptr, old, nullptr, to_, 0, kKey, FI_UINT64,
                            FI_SUM, this),
            0);
  expect_done(FI_READ);
  EXPECT_EQ(old[0], 100U);
  EXPECT_EQ(old[1], 200U);

  const fi_ioc iov[] = {{values, 2}};
  fi_ioc results[] = {{old + 1, 1}, {old, 1}};
  ASSERT_EQ(fi_fetch_atomicv(ep_.get(), iov, nullptr, 1, results, nullptr, 2, to_, 0, kKey,
                             FI_UINT64, FI_MAX, this),
            0);
  expect_done(FI_READ);
  EXPECT_EQ(old[1], 101U);
  EXPECT_EQ(old[0], 202U);

  const fi_rma_ioc remote{0, 2, kKey};
  const auto msg = message(iov, 1, remote, FI_ATOMIC_WRITE);
  ASSERT_EQ(fi_fetch_atomicmsg(ep_.get(), &msg, results, nullptr, 2, FI_DELIVERY_COMPLETE), 0);
  expect_done(FI_READ);
  EXPECT_EQ(old[1], 101U);
  EXPECT_EQ(cells_[0], 1U);
  EXPECT_EQ(cells_[1], 2U);
}

TEST_F(Atomic, CompareCalls) {
  cells_[4] = 10;
  std::uint64_t compare = 10;
  std::uint64_t value = 11;
  std::uint64_t old = 0;
  ASSERT_EQ(fi_compare_atomic(ep_.get(), &value, 1, nullptr, &compare, nullptr, &old, nullptr, to_,
                              32, kKey, FI_UINT64, FI_CSWAP, this),
            0);
  expect_done(FI_READ);
  EXPECT_EQ(old, 10U);
  EXPECT_EQ(cells_[4], 11U);

  const fi_ioc iov{&value, 1};
  const fi_ioc comparison{&compare, 1};
  fi_ioc result{&old, 1};
  value = 12;
  ASSERT_EQ(fi_compare_atomicv(ep_.get(), &iov, nullptr, 1, &comparison, nullptr, 1, &result,
                               nullptr, 1, to_, 32, kKey, FI_UINT64, FI_CSWAP, this),
            0);
  expect_done(FI_READ);
  EXPECT_EQ(old, 11U);
  EXPECT_EQ(cells_[4], 11U) << "the comparison failed";

  value = 0xF0;
  compare = 0xFF;
  const fi_rma_ioc remote{32, 1, kKey};
  const auto msg = message(&iov, 1, remote, FI_MSWAP);
  ASSERT_EQ(fi_compare_atomicmsg(ep_.get(), &msg, &comparison, nullptr, 1, &result, nullptr, 1, 0),
            0);
  expect_done(FI_READ);
  EXPECT_EQ(cells_[4], 0xF0U);
}

// Each operation that the query reports as supported works; all others are refused at once.
TEST_F(Atomic, Ses101_QueryTellsTheTruth) {
  alignas(16) std::array<std::byte, 64> operand{};
  alignas(16) std::array<std::byte, 64> compare{};
  alignas(16) std::array<std::byte, 64> result{};
  int supported = 0;
  for (int o = 0; o < kOps + 2; ++o) {
    for (int d = 0; d < kDatatypes + 2; ++d) {
      const auto op = static_cast<fi_op>(o);
      const auto type = static_cast<fi_datatype>(d);
      fi_atomic_attr attr{};
      std::size_t count = 0;
      int said = fi_query_atomic(a_.domain.get(), type, op, &attr, 0);
      EXPECT_EQ(fi_atomicvalid(ep_.get(), type, op, &count), said);
      if (said == 0) {
        EXPECT_EQ(count, attr.count);
      }
      EXPECT_EQ(fi_atomic(ep_.get(), operand.data(), 1, nullptr, to_, 0, kKey, type, op, this),
                said);
      if (said == 0) expect_done(FI_WRITE);
      supported += said == 0;

      said = fi_query_atomic(a_.domain.get(), type, op, &attr, FI_FETCH_ATOMIC);
      EXPECT_EQ(fi_fetch_atomicvalid(ep_.get(), type, op, &count), said);
      EXPECT_EQ(fi_fetch_atomic(ep_.get(), operand.data(), 1, nullptr, result.data(), nullptr, to_,
                                0, kKey, type, op, this),
                said);
      if (said == 0) expect_done(FI_READ);
      supported += said == 0;

      said = fi_query_atomic(a_.domain.get(), type, op, &attr, FI_COMPARE_ATOMIC);
      EXPECT_EQ(fi_compare_atomicvalid(ep_.get(), type, op, &count), said);
      EXPECT_EQ(fi_compare_atomic(ep_.get(), operand.data(), 1, nullptr, compare.data(), nullptr,
                                  result.data(), nullptr, to_, 0, kKey, type, op, this),
                said);
      if (said == 0) {
        expect_done(FI_READ);
        EXPECT_EQ(attr.count, 1U);
      }
      supported += said == 0;
      EXPECT_TRUE(said == 0 || said == -FI_EOPNOTSUPP);
    }
  }
  // 18 types x (8 + 2 ordered + 3 bitwise) base, 1 more fetching, 7 comparing, less what is not
  // defined: counted from the tables of fi_atomic(3).
  const int base = 6 * 18 + 18 + 2 * 15 + 3 * 10;  // SUM PROD LOR LAND LXOR WRITE, DIFF, ...
  const int fetch = base + 18;
  const int swap = 2 * 17 + 4 * 15 + 10;  // LONG_DOUBLE_COMPLEX does not fit
  EXPECT_EQ(supported, base + fetch + swap);
  fi_atomic_attr attr{};
  EXPECT_EQ(fi_query_atomic(a_.domain.get(), FI_INT8, FI_SUM, &attr, FI_TAGGED), -FI_EOPNOTSUPP);
  EXPECT_EQ(
      fi_query_atomic(a_.domain.get(), FI_INT8, FI_SUM, &attr, FI_FETCH_ATOMIC | FI_COMPARE_ATOMIC),
      -FI_EBADFLAGS);
}

TEST_F(Atomic, AsManyElementsAsQuerySays) {
  fi_atomic_attr attr{};
  ASSERT_EQ(fi_query_atomic(a_.domain.get(), FI_UINT64, FI_SUM, &attr, FI_FETCH_ATOMIC), 0);
  EXPECT_EQ(attr.size, 8U);
  ASSERT_LT(attr.count, cells_.size());
  std::vector<std::uint64_t> add(attr.count + 1, 3);
  std::vector<std::uint64_t> old(attr.count + 1, 99);
  cells_.fill(4);
  ASSERT_EQ(fi_fetch_atomic(ep_.get(), add.data(), attr.count, nullptr, old.data(), nullptr, to_, 0,
                            kKey, FI_UINT64, FI_SUM, this),
            0);
  expect_done(FI_READ);
  for (std::size_t i = 0; i < attr.count; ++i) {
    ASSERT_EQ(old[i], 4U);
    ASSERT_EQ(cells_[i], 7U);
  }
  EXPECT_EQ(old[attr.count], 99U);
  EXPECT_EQ(cells_[attr.count], 4U);
  EXPECT_EQ(fi_atomic(ep_.get(), add.data(), attr.count + 1, nullptr, to_, 0, kKey, FI_UINT64,
                      FI_SUM, this),
            -FI_EMSGSIZE);
}

TEST_F(Atomic, ArgumentsThatAreNotPossible) {
  const std::uint64_t value = 1;
  const fi_ioc iov{const_cast<std::uint64_t*>(&value), 1};
  const fi_rma_ioc two{0, 2, kKey};
  auto msg = message(&iov, 1, two, FI_SUM);
  EXPECT_EQ(fi_atomicmsg(ep_.get(), &msg, 0), -FI_EINVAL) << "as many elements as operands";
  const fi_rma_ioc one{0, 1, kKey};
  msg = message(&iov, 1, one, FI_SUM);
  EXPECT_EQ(fi_atomicmsg(ep_.get(), &msg, FI_REMOTE_CQ_DATA), -FI_EINVAL);
  EXPECT_EQ(fi_atomicmsg(ep_.get(), &msg, FI_TAGGED), -FI_EOPNOTSUPP);
  msg.rma_iov_count = 2;
  EXPECT_EQ(fi_atomicmsg(ep_.get(), &msg, 0), -FI_EINVAL);
  EXPECT_EQ(fi_atomic(ep_.get(), &value, 0, nullptr, to_, 0, kKey, FI_UINT64, FI_SUM, this),
            -FI_EINVAL);
  EXPECT_EQ(fi_atomic(ep_.get(), &value, 1, nullptr, 12345, 0, kKey, FI_UINT64, FI_SUM, this),
            -FI_EINVAL);
  EXPECT_FALSE(a_.poll());
}

TEST_F(Atomic, RefusalsOfTheTarget) {
  const std::uint64_t value = 1;
  const auto post = [&](std::uint64_t remote, std::uint64_t key) {
    ASSERT_EQ(fi_atomic(ep_.get(), &value, 1, nullptr, to_, remote, key, FI_UINT64, FI_SUM, this),
              0);
  };
  post(4, kKey);  // SES-92
  expect_done(FI_WRITE, FI_EINVAL);
  post(0, kKey + 1);
  expect_done(FI_WRITE, FI_ENOKEY);
  post(sizeof cells_, kKey);
  expect_done(FI_WRITE, FI_EFAULT);
  const auto readable = expose(cells_.data(), 8, FI_REMOTE_READ, kKey + 2);
  post(0, kKey + 2);  // SES-91
  expect_done(FI_WRITE, FI_EACCES);
  EXPECT_EQ(cells_[0], 0U);
}

TEST_F(Atomic, CountersTellBaseFromFetching) {
  std::array<Owned<fid_cntr>, 4> counters;
  const auto open = [](Side& side, Owned<fid_cntr>& out) {
    Side::open(out, "fi_cntr_open", [&](auto** cntr) {
      return fi_cntr_open(side.domain.get(), nullptr, cntr, nullptr);
    });
  };
  ep_.reset();
  target_.reset();
  for (std::size_t i = 0; i < counters.size(); ++i) open(i < 2 ? a_ : b_, counters[i]);
  const auto endpoint = [](Side& side, fid_cntr& read, std::uint64_t read_flag, fid_cntr& write,
                           std::uint64_t write_flag) {
    Owned<fid_ep> ep;
    Side::open(ep, "fi_endpoint", [&](auto** out) {
      return fi_endpoint(side.domain.get(), side.info.get(), out, nullptr);
    });
    check(fi_ep_bind(ep.get(), &side.av->fid, 0), "bind AV");
    check(fi_ep_bind(ep.get(), &side.cq->fid, FI_TRANSMIT | FI_RECV), "bind CQ");
    check(fi_ep_bind(ep.get(), &read.fid, read_flag), "bind counter");
    check(fi_ep_bind(ep.get(), &write.fid, write_flag), "bind counter");
    check(fi_enable(ep.get()), "fi_enable");
    return ep;
  };
  ep_ = endpoint(a_, *counters[0], FI_READ, *counters[1], FI_WRITE);
  target_ = endpoint(b_, *counters[2], FI_REMOTE_READ, *counters[3], FI_REMOTE_WRITE);
  to_ = a_.insert(*target_);
  std::uint64_t value = 1;
  std::uint64_t old = 0;
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(fi_atomic(ep_.get(), &value, 1, nullptr, to_, 0, kKey, FI_UINT64, FI_SUM, this), 0);
    expect_done(FI_WRITE);
  }
  ASSERT_EQ(fi_fetch_atomic(ep_.get(), &value, 1, nullptr, &old, nullptr, to_, 0, kKey, FI_UINT64,
                            FI_SUM, this),
            0);
  expect_done(FI_READ);
  EXPECT_EQ(fi_cntr_read(counters[0].get()), 1U);
  EXPECT_EQ(fi_cntr_read(counters[1].get()), 3U);
  EXPECT_EQ(fi_cntr_read(counters[2].get()), 1U);
  EXPECT_EQ(fi_cntr_read(counters[3].get()), 3U);
  ep_.reset();  // before the counters
  target_.reset();
}

// SES test idea 4, many times: nothing is added twice, nothing fetched twice, nothing lost.
void add_under_loss(std::uint64_t order) {
  SideOptions options;
  options.hints = [order](fi_info& hints) {
    hints.tx_attr->msg_order = order;
    hints.rx_attr->msg_order = order;
  };
  Side a(options);
  Side b(options);
  const auto ep = a.open_endpoint(0);
  const auto target = b.open_endpoint(0);
  const fi_addr_t to = a.insert(*target);
  constexpr std::size_t kRounds = 400;
  alignas(16) std::array<std::uint64_t, 64> cells{};
  Owned<fid_mr> mr;
  Side::open(mr, "fi_mr_reg", [&](auto** out) {
    return fi_mr_reg(b.domain.get(), cells.data(), sizeof cells, FI_REMOTE_READ | FI_REMOTE_WRITE,
                     0, kKey, 0, out, nullptr);
  });
  const std::array<std::uint64_t, 64> ones = [] {
    std::array<std::uint64_t, 64> all;
    all.fill(1);
    return all;
  }();
  std::vector<std::array<std::uint64_t, 64>> old(kRounds);
  std::size_t completed = 0;
  const auto reap = [&] {
    while (const auto event = a.poll()) {
      require(event->error == 0, "an atomic failed");
      ++completed;
    }
    fi_cq_read(b.cq.get(), nullptr, 0);
  };
  for (std::size_t i = 0; i < kRounds; ++i) {
    const std::size_t count = i % 2 == 0 ? 1 : 64;  // in the ACK, by the return direction
    ssize_t result = -FI_EAGAIN;
    while (result == -FI_EAGAIN) {
      result = fi_fetch_atomic(ep.get(), ones.data(), count, nullptr, old[i].data(), nullptr, to, 0,
                               kKey, FI_UINT64, FI_SUM, &old[i]);
      reap();
    }
    check(result, "fi_fetch_atomic");
    while ((result = fi_atomic(ep.get(), ones.data(), 1, nullptr, to, 8, kKey, FI_UINT64, FI_SUM,
                               nullptr)) == -FI_EAGAIN) {
      reap();
    }
    check(result, "fi_atomic");
  }
  const Clock::time_point start = Clock::now();
  while (completed < 2 * kRounds) {
    reap();
    require(Clock::now() - start < kDeadline, "atomics do not complete");
  }
  std::set<std::uint64_t> seen;
  for (const auto& values : old) seen.insert(values[0]);
  require(seen.size() == kRounds && *seen.rbegin() == kRounds - 1, "a value was fetched twice");
  require(cells[0] == kRounds, "an addition was lost or done twice");
  require(cells[1] == kRounds + kRounds / 2, "an addition was lost or done twice");
  require(cells[63] == kRounds / 2, "an addition was lost or done twice");
}

TEST(AtomicUnderLoss, Idea4_EachAdditionCountsOnce) {
  for (const std::uint64_t order : {std::uint64_t{0}, std::uint64_t{FI_ORDER_ATOMIC_WAW}}) {
    Process child("adder", {{"FI_UET_FAULTS", "loss=5%,dup=3%,reorder=5%,seed=11"}},
                  [order] { add_under_loss(order); });
    EXPECT_EQ(child.wait(), "");
  }
}

}  // namespace
}  // namespace uet::e2e
