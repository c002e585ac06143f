// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Endpoint objects: aliases, and what may be bound, asked and closed when. Two domains in one
// process, on loopback.
#include <gtest/gtest.h>

#include <cstring>

#include "objects.h"

namespace uet::e2e {
namespace {

class Alias : public testing::Test {
 protected:
  Alias() {
    plain_ = a_.open_endpoint(FI_SELECTIVE_COMPLETION);
    other_ = b_.open_endpoint(0);
    to_other_ = a_.insert(*other_);
  }
  Owned<fid_ep> alias(std::uint64_t flags) {
    fid_ep* ep = nullptr;
    EXPECT_EQ(fi_ep_alias(plain_.get(), &ep, flags), 0);
    return Owned<fid_ep>(ep);
  }

  Side a_;
  Side b_;
  Owned<fid_ep> plain_;
  Owned<fid_ep> other_;
  fi_addr_t to_other_ = 0;
  char room_[16] = "";
};

TEST_F(Alias, HasOperationFlagsOfItsOwn) {
  const auto loud = alias(FI_TRANSMIT | FI_COMPLETION);
  std::uint64_t flags = FI_TRANSMIT;
  EXPECT_EQ(fi_control(&loud->fid, FI_GETOPSFLAG, &flags), 0);
  EXPECT_EQ(flags, FI_COMPLETION);
  flags = FI_TRANSMIT;
  EXPECT_EQ(fi_control(&plain_->fid, FI_GETOPSFLAG, &flags), 0);
  EXPECT_EQ(flags, 0U);

  ASSERT_EQ(fi_recv(other_.get(), room_, sizeof room_, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
  ASSERT_EQ(fi_recv(other_.get(), room_, sizeof room_, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
  ASSERT_EQ(fi_send(plain_.get(), "quiet", 6, nullptr, to_other_, &a_), 0);
  ASSERT_EQ(fi_send(loud.get(), "loud", 5, nullptr, to_other_, &b_), 0);
  b_.next(a_);
  b_.next(a_);
  EXPECT_EQ(a_.next(b_).context, &b_);
  EXPECT_FALSE(a_.poll());
}

TEST_F(Alias, KeepsTheEndpointWhenThePlainHandleIsClosed) {
  auto second = alias(0);
  plain_.reset();
  ASSERT_EQ(fi_recv(other_.get(), room_, sizeof room_, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
  ASSERT_EQ(fi_inject(second.get(), "still here", 11, to_other_), 0);
  EXPECT_EQ(b_.next(a_).length, 11U);
  EXPECT_STREQ(room_, "still here");
  EXPECT_EQ(fi_close(&a_.cq->fid), -FI_EBUSY);
  second.reset();
  EXPECT_EQ(fi_close(&a_.cq.release()->fid), 0);
}

TEST_F(Alias, TakesFlagsOfOneSideOnly) {
  fid_ep* ep = nullptr;
  EXPECT_EQ(fi_ep_alias(plain_.get(), &ep, FI_TRANSMIT | FI_RECV), -FI_EINVAL);
  EXPECT_EQ(fi_ep_alias(plain_.get(), &ep, FI_COMPLETION), -FI_EINVAL);
  EXPECT_EQ(fi_ep_alias(plain_.get(), &ep, FI_TRANSMIT | FI_PEEK), -FI_EINVAL);
}

TEST_F(Alias, CancelsWhatAnotherHandlePosted) {
  const auto second = alias(0);
  ASSERT_EQ(fi_recv(plain_.get(), room_, sizeof room_, nullptr, FI_ADDR_UNSPEC, room_), 0);
  EXPECT_EQ(fi_cancel(&second->fid, room_), 0);
  const Event event = a_.next(b_);
  EXPECT_EQ(event.error, FI_ECANCELED);
  EXPECT_EQ(event.context, room_);
}

TEST_F(Alias, ErrorOfAnInjectNamesTheEndpoint) {
  ASSERT_EQ(fi_inject_write(plain_.get(), "x", 1, to_other_, 0, 999), 0);
  const Event event = a_.next(b_);
  EXPECT_EQ(event.error, FI_ENOKEY);
  EXPECT_EQ(event.context, &a_);
}

// ---- options -----------------------------------------------------------------------------------

// The numbers that libfabric 1.18 to 1.22 gave them.
constexpr int kCudaApiPermitted = 10;
constexpr int kSharedMemoryPermitted = 11;
constexpr int kMaxMsgSize = 12;
constexpr int kMaxRmaSize = 14;
constexpr int kMaxAtomicSize = 15;
constexpr int kInjectMsgSize = 16;
constexpr int kInjectTaggedSize = 17;
constexpr int kInjectAtomicSize = 19;

class Options : public testing::Test {
 protected:
  Options() {
    Side::open(ep_, "fi_endpoint", [&](auto** out) {
      return fi_endpoint(a_.domain.get(), a_.info.get(), out, nullptr);
    });
  }
  template <class T>
  T get(int name) {
    T value{};
    std::size_t length = sizeof value;
    EXPECT_EQ(fi_getopt(&ep_->fid, FI_OPT_ENDPOINT, name, &value, &length), 0) << name;
    EXPECT_EQ(length, sizeof value) << name;
    return value;
  }
  template <class T>
  int set(int name, T value) {
    return fi_setopt(&ep_->fid, FI_OPT_ENDPOINT, name, &value, sizeof value);
  }
  void enable() {
    ASSERT_EQ(fi_ep_bind(ep_.get(), &a_.av->fid, 0), 0);
    ASSERT_EQ(fi_ep_bind(ep_.get(), &a_.cq->fid, FI_TRANSMIT | FI_RECV), 0);
    ASSERT_EQ(fi_enable(ep_.get()), 0);
  }

  Side a_;
  Owned<fid_ep> ep_;
};

TEST_F(Options, HaveTheValuesOfTheInfo) {
  EXPECT_EQ(get<std::size_t>(FI_OPT_CM_DATA_SIZE), 0U);
  EXPECT_EQ(get<std::size_t>(FI_OPT_TX_SIZE), a_.info->tx_attr->size);
  EXPECT_EQ(get<std::size_t>(FI_OPT_RX_SIZE), a_.info->rx_attr->size);
  EXPECT_EQ(get<int>(FI_OPT_FI_HMEM_P2P), int{FI_HMEM_P2P_DISABLED}) << "kernel UDP";
  for (int name = kMaxMsgSize; name < kMaxRmaSize; ++name) {
    EXPECT_EQ(get<std::size_t>(name), a_.info->ep_attr->max_msg_size);
  }
  EXPECT_EQ(get<std::size_t>(kMaxRmaSize), std::size_t{INT64_MAX}) << "several messages";
  EXPECT_LE(get<std::size_t>(kMaxAtomicSize), 8192U) << "one packet";
  for (int name = kInjectMsgSize; name <= kInjectAtomicSize; ++name) {
    EXPECT_EQ(get<std::size_t>(name), a_.info->tx_attr->inject_size);
  }
}

TEST_F(Options, ThatAreUnknownAreNoProtocolOption) {
  std::size_t value = 0;
  std::size_t length = sizeof value;
  for (const int name : {static_cast<int>(FI_OPT_BUFFERED_MIN), 20, 1000, -1}) {
    EXPECT_EQ(fi_getopt(&ep_->fid, FI_OPT_ENDPOINT, name, &value, &length), -FI_ENOPROTOOPT);
    EXPECT_EQ(set(name, value), -FI_ENOPROTOOPT) << name;
  }
  EXPECT_EQ(fi_getopt(&ep_->fid, 77, FI_OPT_TX_SIZE, &value, &length), -FI_ENOPROTOOPT);
  EXPECT_EQ(fi_setopt(&ep_->fid, 77, FI_OPT_TX_SIZE, &value, length), -FI_ENOPROTOOPT);
  EXPECT_EQ(set(FI_OPT_CM_DATA_SIZE, value), -FI_ENOPROTOOPT) << "the option is read-only";
}

TEST_F(Options, OfAnotherLengthAreRefused) {
  char small = 0;
  std::size_t length = sizeof small;
  EXPECT_EQ(fi_getopt(&ep_->fid, FI_OPT_ENDPOINT, FI_OPT_TX_SIZE, &small, &length), -FI_ETOOSMALL);
  EXPECT_EQ(length, sizeof(std::size_t));
  EXPECT_EQ(set(FI_OPT_TX_SIZE, small), -FI_EINVAL);
  EXPECT_EQ(set(kInjectMsgSize, small), -FI_EINVAL);
  EXPECT_EQ(set(kCudaApiPermitted, std::size_t{0}), -FI_EINVAL);
}

TEST_F(Options, QueueSizesAreSetBeforeEnable) {
  EXPECT_EQ(set(FI_OPT_TX_SIZE, std::size_t{0}), -FI_EINVAL);
  EXPECT_EQ(set(FI_OPT_TX_SIZE, std::size_t{1} << 30), -FI_EINVAL);
  ASSERT_EQ(set(FI_OPT_TX_SIZE, std::size_t{2}), 0);
  ASSERT_EQ(set(FI_OPT_RX_SIZE, std::size_t{1}), 0);
  EXPECT_EQ(get<std::size_t>(FI_OPT_TX_SIZE), 2U);
  enable();
  EXPECT_EQ(set(FI_OPT_RX_SIZE, std::size_t{4}), -FI_EOPBADSTATE);
  EXPECT_EQ(ep_->ops->tx_size_left(ep_.get()), 2);
  char memory[2];
  ASSERT_EQ(fi_recv(ep_.get(), memory, 1, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
  EXPECT_EQ(fi_recv(ep_.get(), memory, 1, nullptr, FI_ADDR_UNSPEC, nullptr), -FI_EAGAIN);
  EXPECT_EQ(ep_->ops->rx_size_left(ep_.get()), 0);
}

TEST_F(Options, LimitTheSizeOfOneKindOfOperation) {
  enable();
  const fi_addr_t self = a_.insert(*ep_);
  EXPECT_EQ(set(kMaxMsgSize, a_.info->ep_attr->max_msg_size + 1), -FI_EINVAL);
  EXPECT_EQ(set(kInjectMsgSize, a_.info->tx_attr->inject_size + 1), -FI_EINVAL);
  ASSERT_EQ(set(kMaxMsgSize, std::size_t{8}), 0);
  ASSERT_EQ(set(kInjectTaggedSize, std::size_t{4}), 0);
  char memory[9] = "";
  EXPECT_EQ(fi_send(ep_.get(), memory, 9, nullptr, self, nullptr), -FI_EMSGSIZE);
  EXPECT_EQ(fi_tinject(ep_.get(), memory, 5, self, 1), -FI_EINVAL);
  EXPECT_EQ(fi_tsend(ep_.get(), memory, 9, nullptr, self, 1, nullptr), 0);
  EXPECT_EQ(fi_inject(ep_.get(), memory, 8, self), 0);
}

TEST_F(Options, HmemP2p_WithoutSuchNic_IsDisabled) {
  for (const int mode : {FI_HMEM_P2P_DISABLED, FI_HMEM_P2P_PREFERRED, FI_HMEM_P2P_ENABLED}) {
    EXPECT_EQ(set(FI_OPT_FI_HMEM_P2P, mode), 0);
    EXPECT_EQ(get<int>(FI_OPT_FI_HMEM_P2P), int{FI_HMEM_P2P_DISABLED});
  }
  EXPECT_EQ(set(FI_OPT_FI_HMEM_P2P, int{FI_HMEM_P2P_REQUIRED}), -FI_EOPNOTSUPP);
  EXPECT_EQ(set(FI_OPT_FI_HMEM_P2P, 99), -FI_EINVAL);
  EXPECT_EQ(set(FI_OPT_FI_HMEM_P2P, -1), -FI_EINVAL);
}

// fi_endpoint(3): -FI_EINVAL where there is no CUDA.
TEST_F(Options, PermissionToCallCudaIsInvalidWithoutIt) {
  for (const bool allowed : {true, false}) EXPECT_EQ(set(kCudaApiPermitted, allowed), -FI_EINVAL);
}

// The rings to processes of this host belong to the domain.
TEST(SharedMemory, IsForbiddenByTheParameterAlone) {
  const auto check_permission = [](bool rings) {
    const Side side;
    Owned<fid_ep> ep;
    Side::open(ep, "fi_endpoint", [&](auto** out) {
      return fi_endpoint(side.domain.get(), side.info.get(), out, nullptr);
    });
    const auto set = [&](bool permitted) {
      return fi_setopt(&ep->fid, FI_OPT_ENDPOINT, kSharedMemoryPermitted, &permitted, 1);
    };
    require(set(true) == 0, "permission to use rings is refused");
    require(set(false) == (rings ? -FI_EOPNOTSUPP : 0), "the answer is not what the domain does");
    bool used = !rings;
    std::size_t length = 1;
    check(fi_getopt(&ep->fid, FI_OPT_ENDPOINT, kSharedMemoryPermitted, &used, &length), "getopt");
    require(used == rings, "the option is not what the domain does");
  };
  Process with("with", {{"FI_UET_LOCAL", "auto"}}, [&] { check_permission(true); });
  Process without("without", {{"FI_UET_LOCAL", "off"}}, [&] { check_permission(false); });
  EXPECT_EQ(wait_for_all({&with, &without}), "");
}

// ---- binding -----------------------------------------------------------------------------------

TEST(Bind, IsRefusedForWhatDoesNotBelongTogether) {
  Side a;
  Side b;
  Owned<fid_ep> ep;
  Side::open(ep, "fi_endpoint",
             [&](auto** out) { return fi_endpoint(a.domain.get(), a.info.get(), out, nullptr); });
  EXPECT_EQ(fi_ep_bind(ep.get(), &b.cq->fid, FI_TRANSMIT), -FI_EDOMAIN);
  EXPECT_EQ(fi_ep_bind(ep.get(), &b.av->fid, 0), -FI_EDOMAIN);
  EXPECT_EQ(fi_ep_bind(ep.get(), &a.domain->fid, 0), -FI_EINVAL);
  EXPECT_EQ(fi_ep_bind(ep.get(), &a.av->fid, FI_TRANSMIT), -FI_EINVAL);
  EXPECT_EQ(fi_ep_bind(ep.get(), &a.cq->fid, FI_PEEK | FI_TRANSMIT), -FI_EINVAL);
  EXPECT_EQ(fi_ep_bind(ep.get(), &a.av->fid, 0), 0);
  EXPECT_EQ(fi_ep_bind(ep.get(), &a.cq->fid, FI_TRANSMIT), 0);
  EXPECT_EQ(fi_ep_bind(ep.get(), &a.cq->fid, FI_TRANSMIT), -FI_EINVAL);
  EXPECT_EQ(fi_ep_bind(ep.get(), &a.cq->fid, FI_RECV), 0);
  EXPECT_EQ(fi_enable(ep.get()), 0);
  EXPECT_EQ(fi_ep_bind(ep.get(), &a.cq->fid, FI_RECV), -FI_EINVAL);
  EXPECT_EQ(fi_enable(ep.get()), -FI_EOPBADSTATE);
}

Owned<fid_cntr> open_counter(Side& side) {
  Owned<fid_cntr> counter;
  Side::open(counter, "fi_cntr_open",
             [&](auto** out) { return fi_cntr_open(side.domain.get(), nullptr, out, nullptr); });
  return counter;
}

// Sandia OpenSHMEM binds its counters and its shared transmit context so.
class BindAfterEnable : public testing::Test {
 protected:
  // Enabled with `cq_flags` alone, if there are any.
  Owned<fid_ep> enabled(Side& side, std::uint64_t cq_flags) {
    Owned<fid_ep> ep;
    Side::open(ep, "fi_endpoint", [&](auto** out) {
      return fi_endpoint(side.domain.get(), side.info.get(), out, nullptr);
    });
    check(fi_ep_bind(ep.get(), &side.av->fid, 0), "bind AV");
    check(fi_ep_bind(ep.get(), &side.cq->fid, cq_flags), "bind CQ");
    check(fi_enable(ep.get()), "fi_enable");
    return ep;
  }
  void reach(fid_cntr& counter, std::uint64_t value) {
    const Clock::time_point start = Clock::now();
    while (fi_cntr_read(&counter) < value) {
      fi_cq_read(a_.cq.get(), nullptr, 0);
      fi_cq_read(b_.cq.get(), nullptr, 0);
      ASSERT_LT(Clock::now() - start, kDeadline);
    }
    EXPECT_EQ(fi_cntr_read(&counter), value);
  }

  Side a_;
  Side b_;
  char room_[16] = "";
};

TEST_F(BindAfterEnable, CountersCountFromThenOn) {
  const auto ep = enabled(a_, FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION);
  const auto other = enabled(b_, FI_TRANSMIT | FI_RECV);
  const fi_addr_t to = a_.insert(*other);
  ASSERT_EQ(fi_recv(other.get(), room_, 1, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
  ASSERT_EQ(fi_send(ep.get(), "x", 1, nullptr, to, nullptr), 0);  // is under way
  const auto sent = open_counter(a_);
  const auto received = open_counter(b_);
  ASSERT_EQ(fi_ep_bind(ep.get(), &sent->fid, FI_SEND | FI_WRITE), 0);
  ASSERT_EQ(fi_ep_bind(other.get(), &received->fid, FI_RECV | FI_REMOTE_WRITE), 0);
  EXPECT_EQ(fi_ep_bind(ep.get(), &sent->fid, FI_SEND), -FI_EINVAL) << "bound already";
  EXPECT_EQ(fi_close(&sent->fid), -FI_EBUSY);
  ASSERT_EQ(fi_recv(other.get(), room_, 1, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
  ASSERT_EQ(fi_send(ep.get(), "y", 1, nullptr, to, nullptr), 0);
  reach(*sent, 2);
  reach(*received, 2);
}

TEST_F(BindAfterEnable, AQueueForTheOtherSideIsTaken) {
  const auto ep = enabled(a_, FI_RECV);
  const auto other = enabled(b_, FI_TRANSMIT | FI_RECV);
  const fi_addr_t to = a_.insert(*other);
  EXPECT_EQ(fi_send(ep.get(), "x", 1, nullptr, to, nullptr), -FI_EOPBADSTATE);
  EXPECT_EQ(fi_ep_bind(ep.get(), &a_.cq->fid, FI_RECV), -FI_EINVAL) << "a second one";
  ASSERT_EQ(fi_ep_bind(ep.get(), &a_.cq->fid, FI_TRANSMIT), 0);
  ASSERT_EQ(fi_recv(other.get(), room_, 1, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
  ASSERT_EQ(fi_send(ep.get(), "x", 1, nullptr, to, room_), 0);
  EXPECT_EQ(a_.next(b_).context, room_);
}

// The operations in progress have entries in the queue, which holds two at first.
TEST_F(BindAfterEnable, PostedOperationsCompleteInTheQueue) {
  const auto other = enabled(b_, FI_TRANSMIT | FI_RECV);
  Owned<fid_ep> ep;
  Side::open(ep, "fi_endpoint",
             [&](auto** out) { return fi_endpoint(a_.domain.get(), a_.info.get(), out, nullptr); });
  const auto counter = open_counter(a_);
  ASSERT_EQ(fi_ep_bind(ep.get(), &a_.av->fid, 0), 0);
  ASSERT_EQ(fi_ep_bind(ep.get(), &counter->fid, FI_SEND | FI_RECV), 0);
  ASSERT_EQ(fi_enable(ep.get()), 0);
  const fi_addr_t to_self = a_.insert(*ep);
  constexpr std::size_t kMessages = 100;
  for (std::size_t i = 0; i < kMessages; ++i) {
    ASSERT_EQ(fi_recv(ep.get(), room_, 1, nullptr, FI_ADDR_UNSPEC, room_), 0);
  }
  ASSERT_EQ(fi_ep_bind(ep.get(), &a_.cq->fid, FI_RECV), 0);
  for (std::size_t i = 0; i < kMessages; ++i) {
    ssize_t sent = 0;
    do {
      sent = fi_send(ep.get(), "x", 1, nullptr, to_self, nullptr);
    } while (sent == -FI_EAGAIN);
    ASSERT_EQ(sent, 0);
  }
  for (std::size_t i = 0; i < kMessages; ++i) EXPECT_EQ(a_.next(b_).context, room_);
  EXPECT_FALSE(a_.poll());
}

TEST_F(BindAfterEnable, ASharedTransmitContextTakesWhatIsInProgress) {
  fi_tx_attr attr{};
  attr.size = 2;
  Owned<fid_stx> stx;
  Side::open(stx, "fi_stx_context",
             [&](auto** out) { return fi_stx_context(a_.domain.get(), &attr, out, nullptr); });
  const auto ep = enabled(a_, FI_TRANSMIT | FI_RECV);
  const auto other = enabled(b_, FI_TRANSMIT | FI_RECV);
  const fi_addr_t to = a_.insert(*other);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(fi_send(ep.get(), "x", 1, nullptr, to, nullptr), 0);
  ASSERT_EQ(fi_ep_bind(ep.get(), &stx->fid, 0), 0);
  EXPECT_EQ(fi_ep_bind(ep.get(), &stx->fid, 0), -FI_EINVAL);
  EXPECT_EQ(fi_tx_size_left(ep.get()), 0);
  EXPECT_EQ(fi_send(ep.get(), "x", 1, nullptr, to, nullptr), -FI_EAGAIN);
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(fi_recv(other.get(), room_, 1, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
  }
  for (int i = 0; i < 3; ++i) EXPECT_EQ(a_.next(b_).error, 0);
  EXPECT_EQ(fi_tx_size_left(ep.get()), 2);
  EXPECT_EQ(fi_send(ep.get(), "x", 1, nullptr, to, nullptr), 0);
}

// SES-80: the first write is refused, the second one counted.
TEST_F(BindAfterEnable, Ses80_DataAreTakenOnceACounterIsBound) {
  const auto ep = enabled(a_, FI_TRANSMIT | FI_RECV);
  const auto other = enabled(b_, FI_TRANSMIT);
  const fi_addr_t to = a_.insert(*other);
  fid_mr* made = nullptr;
  ASSERT_EQ(
      fi_mr_reg(b_.domain.get(), room_, sizeof room_, FI_REMOTE_WRITE, 0, 5, 0, &made, nullptr), 0);
  const Owned<fid_mr> mr(made);
  ASSERT_EQ(fi_writedata(ep.get(), "x", 1, nullptr, 7, to, 0, 5, nullptr), 0);
  EXPECT_NE(a_.next(b_).error, 0);
  const auto written = open_counter(b_);
  ASSERT_EQ(fi_ep_bind(other.get(), &written->fid, FI_REMOTE_WRITE), 0);
  ASSERT_EQ(fi_writedata(ep.get(), "x", 1, nullptr, 7, to, 0, 5, nullptr), 0);
  EXPECT_EQ(a_.next(b_).error, 0);
  reach(*written, 1);
}

// A target without receive CQ and counter cannot report the data of a write; writes without data
// need no report.
TEST(Bind, Ses80_WriteDataWithoutCqOrCounterAreRefused) {
  enum class Told { Nobody, Queue, Counter };
  constexpr std::uint64_t kKey = 5;
  for (const Told told : {Told::Nobody, Told::Queue, Told::Counter}) {
    Side initiator;
    Side target;
    Owned<fid_cntr> written;
    Side::open(written, "fi_cntr_open", [&](auto** out) {
      return fi_cntr_open(target.domain.get(), nullptr, out, nullptr);
    });
    Owned<fid_ep> ep;
    Side::open(ep, "fi_endpoint", [&](auto** out) {
      return fi_endpoint(target.domain.get(), target.info.get(), out, nullptr);
    });
    ASSERT_EQ(fi_ep_bind(ep.get(), &target.av->fid, 0), 0);
    const std::uint64_t sides = FI_TRANSMIT | (told == Told::Queue ? FI_RECV : 0);
    ASSERT_EQ(fi_ep_bind(ep.get(), &target.cq->fid, sides), 0);
    if (told == Told::Counter) {
      ASSERT_EQ(fi_ep_bind(ep.get(), &written->fid, FI_REMOTE_WRITE), 0);
    }
    ASSERT_EQ(fi_enable(ep.get()), 0);
    char memory[4] = "";
    Owned<fid_mr> mr;
    Side::open(mr, "fi_mr_reg", [&](auto** out) {
      return fi_mr_reg(target.domain.get(), memory, sizeof memory, FI_REMOTE_WRITE, 0, kKey, 0, out,
                       nullptr);
    });
    const auto from = initiator.open_endpoint(0);
    const fi_addr_t to = initiator.insert(*ep);
    ASSERT_EQ(fi_writedata(from.get(), "abc", 4, nullptr, 7, to, 0, kKey, nullptr), 0);
    const bool refused = told == Told::Nobody;
    EXPECT_EQ(initiator.next(target).error, refused ? FI_EACCES : 0);
    EXPECT_STREQ(memory, refused ? "" : "abc");
    ASSERT_EQ(fi_write(from.get(), "def", 4, nullptr, to, 0, kKey, nullptr), 0);
    EXPECT_EQ(initiator.next(target).error, 0);
    EXPECT_STREQ(memory, "def");
  }
}

TEST(Endpoints, OfOneDomainShareQueueAndAddressVector) {
  Side a;
  Side b;
  const auto first = a.open_endpoint(0);
  const auto second = a.open_endpoint(0);
  const auto other = b.open_endpoint(0);
  const fi_addr_t to_other = a.insert(*other);
  const fi_addr_t targets[] = {b.insert(*first), b.insert(*second)};
  char in[2][4] = {};
  char back[4] = "";
  fid_ep* const eps[] = {first.get(), second.get()};
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(fi_recv(eps[i], in[i], 4, nullptr, FI_ADDR_UNSPEC, in[i]), 0);
  }
  for (const int i : {1, 0}) {
    ASSERT_EQ(fi_inject(other.get(), i == 0 ? "one" : "two", 4, targets[i]), 0);
    EXPECT_EQ(a.next(b).context, in[i]);
    ASSERT_EQ(fi_recv(other.get(), back, 4, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
    ASSERT_EQ(fi_send(eps[i], in[i], 4, nullptr, to_other, eps[i]), 0);
    EXPECT_EQ(b.next(a).length, 4U);
    EXPECT_STREQ(back, i == 0 ? "one" : "two");
    EXPECT_EQ(a.next(b).context, eps[i]);
  }
}

}  // namespace
}  // namespace uet::e2e
