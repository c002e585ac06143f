// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// FI_UET_CORES: one endpoint sends by two engines, which divide its peers. Two domains in one
// process on loopback: the first has one endpoint, the second one has four, two at each of its
// ports.
#include <gtest/gtest.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <fstream>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "harness.h"
#include "objects.h"

namespace uet::e2e {
namespace {

constexpr std::uint64_t kCaps =
    FI_MSG | FI_RMA | FI_TAGGED | FI_ATOMIC | FI_SOURCE | FI_DIRECTED_RECV;
constexpr std::size_t kPeers = 4;  // at two ports in turn

void ask_for_threads(fi_info& hints) { hints.domain_attr->threading = FI_THREAD_SAFE; }
void ask_for_order(fi_info& hints) {
  ask_for_threads(hints);
  hints.tx_attr->msg_order = hints.rx_attr->msg_order = FI_ORDER_SAS;
}

// UDP sockets of this network name space that are bound to the port.
std::size_t sockets_at(std::uint16_t port) {
  std::ifstream table("/proc/self/net/udp");
  std::string line;
  std::size_t count = 0;
  while (std::getline(table, line)) {
    unsigned number = 0;
    unsigned address = 0;
    unsigned local = 0;
    if (std::sscanf(line.c_str(), " %u: %x:%x", &number, &address, &local) == 3) {
      count += local == port ? 1 : 0;
    }
  }
  return count;
}

class Divided : public testing::Test {
 protected:
  Divided(void (*hints)(fi_info&) = ask_for_threads)
      : a_({.capabilities = kCaps, .hints = hints}), b_({.capabilities = kCaps, .hints = hints}) {
    from_ = a_.open_endpoint(0);
    for (auto& at : at_) at = b_.open_endpoint(0);
    // Entries take turns at the two engines: both have a peer at each port.
    for (const std::size_t i : {0, 2, 1, 3}) to_[i] = a_.insert(*at_[i]);
    from_at_b_ = b_.insert(*from_);
  }
  // As long as the endpoint has one engine, it has at most one PDC to each of the two ports of the
  // peers, and its port one socket.
  void expect_both_engines() {
    EXPECT_EQ(read_counter(*a_.domain, "pds_pdcs_opened"), 4U);
    EXPECT_EQ(sockets_at(udp_port(Side::name_of(*from_))), 2U);
  }
  Owned<fid_mr> expose(void* memory, std::size_t bytes, std::uint64_t key) {
    Owned<fid_mr> region;
    Side::open(region, "fi_mr_reg", [&](auto** out) {
      return fi_mr_reg(b_.domain.get(), memory, bytes, FI_REMOTE_WRITE | FI_REMOTE_READ, 0, key, 0,
                       out, nullptr);
    });
    return region;
  }
  template <class Call>
  void post(Call call) {
    const Clock::time_point start = Clock::now();
    ssize_t result = 0;
    while ((result = call()) == -FI_EAGAIN) {
      progress();
      ASSERT_LT(Clock::now() - start, kDeadline);
    }
    ASSERT_EQ(result, 0) << fi_strerror(static_cast<int>(-result));
  }
  // Completions that come are kept.
  void progress() {
    while (const auto event = a_.poll()) events_.push_back(*event);
    while (const auto event = b_.poll()) events_at_b_.push_back(*event);
  }
  template <class Condition>
  void progress_until(Condition condition, const char* what) {
    const Clock::time_point start = Clock::now();
    while (!condition()) {
      progress();
      ASSERT_LT(Clock::now() - start, kDeadline) << what;
    }
  }
  void write_and_read();
  void take(std::size_t count, std::size_t count_at_b) {
    progress_until([&] { return events_.size() >= count && events_at_b_.size() >= count_at_b; },
                   "completions are missing");
    for (const auto* events : {&events_, &events_at_b_}) {
      for (const Event& event : *events) EXPECT_EQ(event.error, 0);
    }
  }

  Variable cores_{"FI_UET_CORES", "2"};
  Side a_;
  Side b_;
  Owned<fid_ep> from_;
  std::array<Owned<fid_ep>, kPeers> at_;
  std::array<fi_addr_t, kPeers> to_{};
  fi_addr_t from_at_b_ = FI_ADDR_UNSPEC;
  std::vector<Event> events_;
  std::vector<Event> events_at_b_;
};

// Peers know the sender by one name: a receive that is directed to it takes the message of each.
TEST_F(Divided, AllPeersSeeOneSender) {
  std::array<std::uint64_t, kPeers> received{};
  for (std::size_t i = 0; i < kPeers; ++i) {
    const std::uint64_t sent = 100 + i;
    post([&] { return fi_recv(at_[i].get(), &received[i], 8, nullptr, from_at_b_, &at_[i]); });
    post([&] { return fi_send(from_.get(), &sent, 8, nullptr, to_[i], &to_[i]); });
    fi_addr_t source = FI_ADDR_UNSPEC;
    EXPECT_EQ(Side::next(*b_.cq, a_, &source).error, 0);
    EXPECT_EQ(source, from_at_b_);
    const Event event = a_.next(b_);
    EXPECT_EQ(event.error, 0);
    EXPECT_EQ(event.context, &to_[i]);
    EXPECT_EQ(received[i], 100 + i);
  }
  expect_both_engines();
}

// Messages to the port of the endpoint reach it at its own engine, also while the other engine has
// a socket at that port.
TEST_F(Divided, PeersReachTheEndpoint) {
  for (int round = 0; round < 3; ++round) {
    for (std::size_t i = 0; i < kPeers; ++i) {
      std::uint64_t received = 0;
      std::uint64_t answer = 0;
      const std::uint64_t sent = 100 + i;
      post([&] { return fi_recv(at_[i].get(), &received, 8, nullptr, FI_ADDR_UNSPEC, nullptr); });
      post([&] { return fi_recv(from_.get(), &answer, 8, nullptr, to_[i], nullptr); });
      post([&] { return fi_inject(from_.get(), &sent, 8, to_[i]); });
      EXPECT_EQ(b_.next(a_).error, 0);
      post([&] { return fi_inject(at_[i].get(), &received, 8, from_at_b_); });
      EXPECT_EQ(a_.next(b_).error, 0);
      EXPECT_EQ(answer, 100 + i);
    }
  }
  expect_both_engines();
}

// The region of each peer is written and read.
void Divided::write_and_read() {
  constexpr std::size_t kBytes = 300'000;
  std::vector<std::uint8_t> memory(kPeers * kBytes);
  const Owned<fid_mr> region = expose(memory.data(), memory.size(), 7);
  std::vector<std::uint8_t> bytes(memory.size());
  std::iota(bytes.begin(), bytes.end(), 0);
  std::vector<std::uint8_t> read(memory.size());
  for (std::size_t i = 0; i < kPeers; ++i) {
    const std::size_t at = i * kBytes;
    post(
        [&] { return fi_write(from_.get(), &bytes[at], kBytes, nullptr, to_[i], at, 7, nullptr); });
  }
  take(kPeers, 0);
  EXPECT_EQ(memory, bytes);
  for (std::size_t i = 0; i < kPeers; ++i) {
    const std::size_t at = i * kBytes;
    post([&] { return fi_read(from_.get(), &read[at], kBytes, nullptr, to_[i], at, 7, nullptr); });
  }
  take(2 * kPeers, 0);
  EXPECT_EQ(read, bytes);
  events_.clear();
}

TEST_F(Divided, WritesReadsAndAtomics) {
  write_and_read();
  std::array<std::uint64_t, kPeers> results{};
  const std::uint64_t one = 1;
  std::uint64_t sum = 0;
  const Owned<fid_mr> region = expose(&sum, sizeof sum, 8);
  for (std::size_t i = 0; i < 2 * kPeers; ++i) {
    post([&] {
      return fi_fetch_atomic(from_.get(), &one, 1, nullptr, &results[i % kPeers], nullptr,
                             to_[i % kPeers], 0, 8, FI_UINT64, FI_SUM, nullptr);
    });
  }
  take(2 * kPeers, 0);
  EXPECT_EQ(sum, 2 * kPeers);
  expect_both_engines();
}

// Trains of a peer carry packets for both engines, which the kernel gives to one of them.
struct DividedUnderLoss : Variable, Divided {
  DividedUnderLoss() : Variable("FI_UET_FAULTS", "loss=3%,seed=1") {}
};
TEST_F(DividedUnderLoss, WritesAndReads) {
  for (int round = 0; round < 3; ++round) write_and_read();
  expect_both_engines();
}

// Long messages wait at their targets for a receive, or are sent again: the endpoint's engine,
// which a target would ask for them, does not know those of the other.
TEST_F(Divided, LongMessagesBeforeTheirReceives) {
  constexpr std::size_t kBytes = 4 << 20;
  std::array<std::vector<std::uint8_t>, kPeers> sent;
  std::array<std::vector<std::uint8_t>, kPeers> received;
  for (std::size_t i = 0; i < kPeers; ++i) {
    sent[i].assign(kBytes, static_cast<std::uint8_t>(i + 1));
    received[i].resize(kBytes);
    post(
        [&] { return fi_tsend(from_.get(), sent[i].data(), kBytes, nullptr, to_[i], 5, nullptr); });
  }
  const Clock::time_point start = Clock::now();
  while (Clock::now() - start < std::chrono::milliseconds(100)) progress();
  for (std::size_t i = 0; i < kPeers; ++i) {
    post([&] {
      return fi_trecv(at_[i].get(), received[i].data(), kBytes, nullptr, FI_ADDR_UNSPEC, 5, 0,
                      nullptr);
    });
  }
  take(kPeers, kPeers);
  EXPECT_EQ(received, sent);
  expect_both_engines();
}

// FI_DELIVERY_COMPLETE says that the message is in the receive, whichever engine sends it.
TEST_F(Divided, Ses110_DeliveryIsReportedByAllEngines) {
  std::array<std::uint64_t, kPeers> received{};
  std::vector<std::uint64_t> sent(kPeers, 4711);
  for (std::size_t i = 0; i < kPeers; ++i) {
    iovec piece{.iov_base = &sent[i], .iov_len = 8};
    fi_msg message{};
    message.msg_iov = &piece;
    message.iov_count = 1;
    message.addr = to_[i];
    post([&] { return fi_sendmsg(from_.get(), &message, FI_COMPLETION | FI_DELIVERY_COMPLETE); });
  }
  const Clock::time_point start = Clock::now();
  while (Clock::now() - start < std::chrono::milliseconds(20)) progress();
  EXPECT_TRUE(events_.empty());
  for (std::size_t i = 0; i < kPeers; ++i) {
    post([&] { return fi_recv(at_[i].get(), &received[i], 8, nullptr, FI_ADDR_UNSPEC, nullptr); });
  }
  take(kPeers, kPeers);
  EXPECT_EQ(received[kPeers - 1], 4711U);
  expect_both_engines();
}

// SES-164: a send that no message of SES can carry is read by its target, from the FEP of the
// endpoint. Earlier messages to the peer stay before it.
struct DividedOutsized : Variable, Divided {
  DividedOutsized() : Variable("FI_UET_TUNING", "rma_piece_bytes=65536"), Divided(ask_for_order) {}
};
TEST_F(DividedOutsized, Ses164_SendsToOnePeerStayInOrder) {
  constexpr std::size_t kLong = 200'000;
  constexpr std::size_t kMessages = 9;  // the fifth is long
  std::vector<std::uint8_t> sent(kLong);
  std::iota(sent.begin(), sent.end(), 0);
  std::vector<std::vector<std::uint8_t>> received(kMessages * kPeers);
  for (std::size_t i = 0; i < received.size(); ++i) {
    received[i].resize(kLong);
    post([&] {
      return fi_recv(at_[i % kPeers].get(), received[i].data(), kLong, nullptr, FI_ADDR_UNSPEC,
                     nullptr);
    });
  }
  const auto length_of = [](std::size_t number) { return number == 4 ? kLong : 1000 + number; };
  for (std::size_t number = 0; number < kMessages; ++number) {
    for (const fi_addr_t to : to_) {
      post([&] {
        return fi_send(from_.get(), sent.data(), length_of(number), nullptr, to, nullptr);
      });
    }
  }
  take(kMessages * kPeers, kMessages * kPeers);
  for (std::size_t i = 0; i < received.size(); ++i) {
    const std::size_t length = length_of(i / kPeers);
    EXPECT_TRUE(std::equal(sent.begin(), sent.begin() + static_cast<std::ptrdiff_t>(length),
                           received[i].begin()))
        << i;
    const auto is_untouched = [](std::uint8_t byte) { return byte == 0; };
    EXPECT_TRUE(std::all_of(received[i].begin() + static_cast<std::ptrdiff_t>(length),
                            received[i].end(), is_untouched))
        << i;
  }
  expect_both_engines();
}

TEST_F(Divided, CountersCountAllOperations) {
  Owned<fid_cntr> counter;
  Side::open(counter, "fi_cntr_open",
             [&](auto** out) { return fi_cntr_open(a_.domain.get(), nullptr, out, nullptr); });
  std::array<char, kPeers> memory{};
  const Owned<fid_mr> region = expose(memory.data(), memory.size(), 7);
  const auto write_to_all = [&] {
    for (std::size_t i = 0; i < kPeers; ++i) {
      post([&] { return fi_write(from_.get(), "x", 1, nullptr, to_[i], i, 7, nullptr); });
    }
  };
  write_to_all();
  take(kPeers, 0);
  // Bound when all engines have sent.
  ASSERT_EQ(fi_ep_bind(from_.get(), &counter->fid, FI_WRITE), 0);
  write_to_all();
  take(2 * kPeers, 0);
  EXPECT_EQ(fi_cntr_read(counter.get()), kPeers);
  expect_both_engines();
  from_.reset();  // before the counter
}

// Operations wait for a peer that has stopped to receive; each is cancelled, whichever engine has
// it.
TEST_F(Divided, CancelFindsOperationsOfAllEngines) {
  constexpr std::size_t kOperations = 64;
  std::vector<std::uint8_t> bytes(1 << 20);
  std::array<fi_context2, kPeers> contexts{};
  for (std::size_t i = 0; i < kPeers; ++i) {
    for (std::size_t each = 0; each < kOperations; ++each) {
      void* const context = each + 1 == kOperations ? &contexts[i] : nullptr;
      post([&] {
        return fi_tsend(from_.get(), bytes.data(), bytes.size(), nullptr, to_[i], 5, context);
      });
    }
  }
  for (std::size_t i = 0; i < kPeers; ++i) {
    ASSERT_EQ(fi_cancel(&from_->fid, &contexts[i]), 0) << i;
  }
  const auto is_cancelled = [&](const Event& event) { return event.error == FI_ECANCELED; };
  progress_until(
      [&] { return std::count_if(events_.begin(), events_.end(), is_cancelled) == kPeers; },
      "operations are not cancelled");
  EXPECT_EQ(fi_cancel(&from_->fid, &bytes), -FI_ENOENT);
  from_.reset();  // before what it sends
}

// An application that opens an endpoint for each engine before it sends has no use for it.
TEST_F(Divided, EndpointForEachEngineStaysWhole) {
  const Owned<fid_ep> second = a_.open_endpoint(0);
  for (std::size_t i = 0; i < kPeers; ++i) {
    char received = 0;
    post([&] { return fi_recv(at_[i].get(), &received, 1, nullptr, FI_ADDR_UNSPEC, nullptr); });
    post([&] { return fi_inject(from_.get(), "x", 1, to_[i]); });
    EXPECT_EQ(b_.next(a_).error, 0);
  }
  EXPECT_EQ(read_counter(*a_.domain, "pds_pdcs_opened"), 2U);
  EXPECT_EQ(sockets_at(udp_port(Side::name_of(*from_))), 1U);
}

// The engine that helps gets an endpoint of its own.
TEST_F(Divided, LaterEndpointHasTheEngineThatHelps) {
  std::array<char, kPeers> received{};
  const auto send_to_all = [&](fid_ep& from) {
    for (std::size_t i = 0; i < kPeers; ++i) {
      post(
          [&] { return fi_recv(at_[i].get(), &received[i], 1, nullptr, FI_ADDR_UNSPEC, nullptr); });
      post([&] { return fi_inject(&from, "x", 1, to_[i]); });
      EXPECT_EQ(b_.next(a_).error, 0);
    }
  };
  send_to_all(*from_);
  expect_both_engines();
  Owned<fid_ep> second = a_.open_endpoint(0);
  EXPECT_NE(udp_port(Side::name_of(*second)), udp_port(Side::name_of(*from_)));
  send_to_all(*second);
  send_to_all(*from_);
  second.reset();
  send_to_all(*from_);
}

// Each entry of one address has the same turn: messages to it stay in order.
struct DividedOrder : Divided {
  DividedOrder() : Divided(ask_for_order) {}
};
TEST_F(DividedOrder, TwoEntriesOfOneAddress) {
  constexpr std::uint64_t kMessages = 200;
  const fi_addr_t again = a_.insert(*at_[1]);
  std::vector<std::uint64_t> received(kMessages);
  for (std::uint64_t& each : received) {
    post([&] { return fi_recv(at_[1].get(), &each, 8, nullptr, FI_ADDR_UNSPEC, nullptr); });
  }
  for (std::uint64_t i = 0; i < kMessages; ++i) {
    post([&] { return fi_inject(from_.get(), &i, 8, i % 2 == 0 ? to_[1] : again); });
  }
  progress_until([&] { return events_at_b_.size() == kMessages; }, "messages are missing");
  for (std::uint64_t i = 0; i < kMessages; ++i) EXPECT_EQ(received[i], i);
}

TEST_F(Divided, RemovedPeerIsForgottenByAllEngines) {
  std::array<char, kPeers> memory{};
  const Owned<fid_mr> region = expose(memory.data(), memory.size(), 7);
  for (int round = 0; round < 3; ++round) {
    for (std::size_t i = 0; i < kPeers; ++i) {
      post([&] { return fi_write(from_.get(), "x", 1, nullptr, to_[i], i, 7, nullptr); });
    }
    take((static_cast<std::size_t>(round) + 1) * kPeers, 0);
    ASSERT_EQ(fi_av_remove(a_.av.get(), to_.data(), to_.size(), 0), 0);
    progress_until(
        [&] {
          return read_counter(*a_.domain, "pds_pdcs_closed") ==
                 read_counter(*a_.domain, "pds_pdcs_opened");
        },
        "PDCs to removed peers stay open");
    for (std::size_t i = 0; i < kPeers; ++i) {
      EXPECT_NE(fi_inject(from_.get(), "x", 1, to_[i]), 0);
    }
    for (std::size_t i = 0; i < kPeers; ++i) {
      to_[i] = a_.insert(*at_[kPeers - 1 - i]);  // other turns than before
    }
  }
}

// The peers are gone: every operation ends, those of the other engine, too.
TEST_F(Divided, OperationsEndWhenThePeersDo) {
  std::vector<std::uint8_t> bytes(1 << 20);
  iovec piece{.iov_base = bytes.data(), .iov_len = bytes.size()};
  fi_msg_tagged message{};
  message.msg_iov = &piece;
  message.iov_count = 1;
  for (const fi_addr_t to : to_) {
    message.addr = to;
    // It has not ended while its target merely keeps it.
    post([&] { return fi_tsendmsg(from_.get(), &message, FI_COMPLETION | FI_DELIVERY_COMPLETE); });
  }
  for (auto& at : at_) at.reset();
  progress_until([&] { return events_.size() == kPeers; }, "operations hang");
  for (const Event& event : events_) EXPECT_NE(event.error, 0);
}

// Threads post to all peers by one endpoint and read one queue.
TEST_F(Divided, ThreadsUseOneEndpoint) {
  constexpr std::uint64_t kWrites = 4000;
  constexpr std::size_t kThreads = 2;
  std::array<std::uint64_t, kThreads * kPeers> memory{};
  const Owned<fid_mr> region = expose(memory.data(), sizeof memory, 7);
  std::atomic<std::uint64_t> completed{0};
  std::atomic<bool> failed{false};
  std::atomic<bool> done{false};
  std::thread target([&] {
    while (!done) fi_cq_read(b_.cq.get(), nullptr, 0);
  });
  std::array<std::thread, kThreads> threads;
  for (std::size_t number = 0; number < kThreads; ++number) {
    threads[number] = std::thread([&, number] {
      const auto read_queue = [&] {
        fi_cq_tagged_entry entry{};
        const ssize_t result = fi_cq_read(a_.cq.get(), &entry, 1);
        if (result == 1) ++completed;
        if (result < 0 && result != -FI_EAGAIN) failed = true;
      };
      for (std::uint64_t i = 1; i <= kWrites; ++i) {
        const std::size_t peer = i % kPeers;
        ssize_t result = 0;
        do {
          result = fi_inject_write(from_.get(), &i, 8, to_[peer], 8 * (number * kPeers + peer), 7);
          if (result == -FI_EAGAIN) read_queue();
        } while (result == -FI_EAGAIN && !failed);
        if (result != 0) failed = true;
        if (i % 8 == 0) read_queue();
      }
      for (std::size_t peer = 0; peer < kPeers && !failed; ++peer) {
        ssize_t result = 0;
        do {
          result = fi_write(from_.get(), &kWrites, 8, nullptr, to_[peer],
                            8 * (number * kPeers + peer), 7, nullptr);
          if (result == -FI_EAGAIN) read_queue();
        } while (result == -FI_EAGAIN);
        if (result != 0) failed = true;
      }
      while (completed < kThreads * kPeers && !failed) read_queue();
    });
  }
  for (std::thread& thread : threads) thread.join();
  done = true;
  target.join();
  EXPECT_FALSE(failed);
  for (const std::uint64_t each : memory) EXPECT_EQ(each, kWrites);
  expect_both_engines();
}

}  // namespace
}  // namespace uet::e2e
