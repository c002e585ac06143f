// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// FI_UET_CORES: a domain with two engines. Two domains in one process, on loopback; other tests of
// the data path run with this setting, too (label cores).
#include <gtest/gtest.h>
#include <poll.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_trigger.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "harness.h"
#include "objects.h"

namespace uet::e2e {
namespace {

constexpr std::uint64_t kCaps = FI_MSG | FI_RMA | FI_TAGGED;

void ask_for_threads(fi_info& hints) { hints.domain_attr->threading = FI_THREAD_SAFE; }

class Cores : public testing::Test {
 protected:
  // Each of these calls is a pass of all engines that its queue serves.
  void progress() {
    fi_cq_read(a_.cq.get(), nullptr, 0);
    fi_cq_read(b_.cq.get(), nullptr, 0);
  }
  Owned<fid_mr> expose(void* memory, std::size_t bytes, std::uint64_t key) {
    Owned<fid_mr> region;
    Side::open(region, "fi_mr_reg", [&](auto** out) {
      return fi_mr_reg(b_.domain.get(), memory, bytes, FI_REMOTE_WRITE | FI_REMOTE_READ, 0, key, 0,
                       out, nullptr);
    });
    return region;
  }
  template <class Condition>
  void progress_until(Condition condition, const char* what) {
    const Clock::time_point start = Clock::now();
    while (!condition()) {
      progress();
      ASSERT_LT(Clock::now() - start, kDeadline) << what;
    }
  }
  // The error of a write of one byte.
  int write_byte(fid_ep& ep, fi_addr_t to, std::uint64_t key) {
    check(fi_write(&ep, "x", 1, nullptr, to, 0, key, nullptr), "fi_write");
    return a_.next(b_).error;
  }

  Variable cores_{"FI_UET_CORES", "2"};
  Side a_{{.capabilities = kCaps, .hints = ask_for_threads}};
  Side b_{{.capabilities = kCaps, .hints = ask_for_threads}};
  std::array<Owned<fid_ep>, 2> from_{a_.open_endpoint(0), a_.open_endpoint(0)};
  std::array<Owned<fid_ep>, 2> at_{b_.open_endpoint(0), b_.open_endpoint(0)};
  std::array<fi_addr_t, 2> to_{a_.insert(*at_[0]), a_.insert(*at_[1])};
};

TEST_F(Cores, NewEndpointGoesWhereFewestAre) {
  const std::uint16_t first = udp_port(Side::name_of(*at_[0]));
  const std::uint16_t second = udp_port(Side::name_of(*at_[1]));
  EXPECT_NE(first, second);
  at_[0].reset();
  at_[0] = b_.open_endpoint(0);
  EXPECT_EQ(udp_port(Side::name_of(*at_[0])), first);
}

TEST_F(Cores, OneQueueReportsForBothEngines) {
  for (const auto& from : from_) {
    for (std::size_t i = 0; i < to_.size(); ++i) {
      std::uint64_t received = 0;
      ASSERT_EQ(fi_recv(at_[i].get(), &received, sizeof received, nullptr, FI_ADDR_UNSPEC, &at_),
                0);
      const std::uint64_t sent = 4711 + i;
      ASSERT_EQ(fi_send(from.get(), &sent, sizeof sent, nullptr, to_[i], &from_), 0);
      EXPECT_EQ(a_.next(b_).context, &from_);
      EXPECT_EQ(b_.next(a_).context, &at_);
      EXPECT_EQ(received, sent);
    }
  }
}

// Both ends are endpoints of one domain, so that one thread makes the progress of both engines.
TEST_F(Cores, EndpointReachesItsSibling) {
  const fi_addr_t sibling = b_.insert(*at_[1]);
  char received = 0;
  ASSERT_EQ(fi_inject(at_[0].get(), "x", 1, sibling), 0);
  at_[0].reset();  // waits for the other engine
  ASSERT_EQ(fi_recv(at_[1].get(), &received, 1, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
  EXPECT_EQ(b_.next(a_).error, 0);
  EXPECT_EQ(received, 'x');
}

TEST_F(Cores, OneCounterCountsForBothEngines) {
  Owned<fid_cntr> counter;
  Side::open(counter, "fi_cntr_open",
             [&](auto** out) { return fi_cntr_open(a_.domain.get(), nullptr, out, nullptr); });
  for (const auto& from : from_) ASSERT_EQ(fi_ep_bind(from.get(), &counter->fid, FI_WRITE), 0);
  std::vector<char> memory(8);
  const Owned<fid_mr> region = expose(memory.data(), memory.size(), 7);
  std::atomic<bool> done{false};
  std::thread target([&] {
    while (!done) fi_cq_read(b_.cq.get(), nullptr, 0);
  });
  for (std::size_t i = 0; i < 100; ++i) {
    for (const auto& from : from_) {
      // Engines in threads of their own write at the same time: each to a byte of its own.
      ASSERT_EQ(fi_write(from.get(), "x", 1, nullptr, to_[i % 2], i % 2, 7, nullptr), 0);
    }
  }
  EXPECT_EQ(fi_cntr_wait(counter.get(), 200, 60'000), 0);
  done = true;
  target.join();
  EXPECT_EQ(fi_cntr_read(counter.get()), 200U);
  EXPECT_EQ(fi_cntr_readerr(counter.get()), 0U);
  for (auto& from : from_) from.reset();  // before the counter
}

TEST_F(Cores, OneRegionIsReachedThroughBothEngines) {
  Owned<fid_cntr> writes;
  Side::open(writes, "fi_cntr_open",
             [&](auto** out) { return fi_cntr_open(b_.domain.get(), nullptr, out, nullptr); });
  std::vector<char> memory(2);
  Owned<fid_mr> region = expose(memory.data(), memory.size(), 7);
  ASSERT_EQ(fi_mr_bind(region.get(), &writes->fid, FI_REMOTE_WRITE), 0);
  for (std::size_t i = 0; i < to_.size(); ++i) {
    ASSERT_EQ(fi_write(from_[i].get(), &"xy"[i], 1, nullptr, to_[i], i, 7, nullptr), 0);
    EXPECT_EQ(a_.next(b_).error, 0);
  }
  EXPECT_EQ(memory, (std::vector<char>{'x', 'y'}));
  EXPECT_EQ(fi_cntr_read(writes.get()), 2U);
  region.reset();
  for (std::size_t i = 0; i < to_.size(); ++i) EXPECT_NE(write_byte(*from_[i], to_[i], 7), 0);
}

TEST_F(Cores, RegionOfAnEndpointIsOutOfReachOfTheOther) {
  char memory = 0;
  const Owned<fid_mr> region = expose(&memory, 1, 7);
  ASSERT_EQ(fi_mr_bind(region.get(), &at_[1]->fid, 0), 0);
  EXPECT_NE(write_byte(*from_[0], to_[0], 7), 0);
  EXPECT_EQ(memory, 0);
  EXPECT_EQ(write_byte(*from_[0], to_[1], 7), 0);
  EXPECT_EQ(memory, 'x');
}

TEST_F(Cores, KeyInUseIsRefusedAndFreeAfterwards) {
  char memory = 0;
  Owned<fid_mr> region = expose(&memory, 1, 7);
  fid_mr* second = nullptr;
  EXPECT_EQ(fi_mr_reg(b_.domain.get(), &memory, 1, FI_REMOTE_WRITE, 0, 7, 0, &second, nullptr),
            -FI_ENOKEY);
  EXPECT_EQ(write_byte(*from_[1], to_[1], 7), 0);
  region.reset();
  region = expose(&memory, 1, 7);
  EXPECT_EQ(write_byte(*from_[1], to_[1], 7), 0);
}

TEST_F(Cores, RemovedPeerIsForgottenByBothEngines) {
  ASSERT_EQ(fi_av_remove(a_.av.get(), to_.data(), to_.size(), 0), 0);
  for (const auto& from : from_) {
    EXPECT_NE(fi_inject(from.get(), "x", 1, to_[0]), 0);
  }
  to_[0] = a_.insert(*at_[0]);
  char memory = 0;
  const Owned<fid_mr> region = expose(&memory, 1, 7);
  for (const auto& from : from_) EXPECT_EQ(write_byte(*from, to_[0], 7), 0);
}

// ---- waiting -----------------------------------------------------------------------------------

struct WaitingCores : Cores {
  WaitingCores() {
    for (auto& at : at_) at.reset();
    fi_cq_attr attr{};
    attr.format = FI_CQ_FORMAT_TAGGED;
    attr.wait_obj = FI_WAIT_FD;
    Side::open(b_.cq, "fi_cq_open",
               [&](auto** out) { return fi_cq_open(b_.domain.get(), &attr, out, nullptr); });
    for (std::size_t i = 0; i < at_.size(); ++i) {
      at_[i] = b_.open_endpoint(0);
      to_[i] = a_.insert(*at_[i]);
    }
  }
};

TEST_F(WaitingCores, DescriptorWakesForEitherEngine) {
  int fd = -1;
  ASSERT_EQ(fi_control(&b_.cq->fid, FI_GETWAIT, &fd), 0);
  for (int round = 0; round < 10; ++round) {
    const std::size_t i = static_cast<std::size_t>(round) % at_.size();
    char received = 0;
    ASSERT_EQ(fi_recv(at_[i].get(), &received, 1, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
    ASSERT_EQ(fi_inject(from_[i].get(), "x", 1, to_[i]), 0);
    std::optional<Event> event;
    struct fid* waited = &b_.cq->fid;
    const Clock::time_point start = Clock::now();
    while (!event) {
      ASSERT_LT(Clock::now() - start, kDeadline);
      if (fi_trywait(b_.fabric.get(), &waited, 1) == 0) {
        pollfd sleeping{.fd = fd, .events = POLLIN, .revents = 0};
        ASSERT_EQ(::poll(&sleeping, 1, 60'000), 1) << "round " << round;
      }
      event = b_.poll();
      a_.poll();
    }
    EXPECT_EQ(event->error, 0);
    EXPECT_EQ(received, 'x');
  }
}

TEST_F(WaitingCores, SreadWakesForEitherEngine) {
  for (int round = 0; round < 10; ++round) {
    const std::size_t i = static_cast<std::size_t>(round) % at_.size();
    char received = 0;
    ASSERT_EQ(fi_recv(at_[i].get(), &received, 1, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
    std::thread sender([&] {
      ::usleep(2000);  // until the reader sleeps
      check(fi_inject(from_[i].get(), "x", 1, to_[i]), "fi_inject");
    });
    fi_cq_tagged_entry entry{};
    EXPECT_EQ(fi_cq_sread(b_.cq.get(), &entry, 1, nullptr, 60'000), 1) << "round " << round;
    sender.join();
    a_.poll();
  }
}

// ---- the end -----------------------------------------------------------------------------------

TEST_F(Cores, EndpointClosesWithOperationsUnderWay) {
  std::vector<char> bytes(1 << 20, 'x');
  std::vector<char> memory(2 * bytes.size());  // half for each engine
  const Owned<fid_mr> region = expose(memory.data(), memory.size(), 7);
  for (int i = 0; i < 4; ++i) {
    for (std::size_t each = 0; each < 2; ++each) {
      ASSERT_EQ(fi_write(from_[each].get(), bytes.data(), bytes.size(), nullptr, to_[1 - each],
                         each * bytes.size(), 7, nullptr),
                0);
    }
  }
  from_[0].reset();
  at_[1].reset();
  char received = 0;
  ASSERT_EQ(fi_recv(at_[0].get(), &received, 1, nullptr, FI_ADDR_UNSPEC, &received), 0);
  ASSERT_EQ(fi_inject(from_[1].get(), "x", 1, to_[0]), 0);
  progress_until(
      [&] {
        const auto event = b_.poll();
        return event && event->context == &received;
      },
      "the other endpoint is stuck");
  EXPECT_EQ(received, 'x');
  from_[1].reset();  // before the memory that it sends
}

// ---- threads -----------------------------------------------------------------------------------

// One endpoint of each side with a queue of its own.
struct Lane {
  Lane(Side& a, Side& b) : a_queue(a.open_cq()), b_queue(b.open_cq()) {
    from = open(a, *a_queue);
    at = open(b, *b_queue);
    to = a.insert(*at);
  }
  static Owned<fid_ep> open(Side& side, fid_cq& queue) {
    Owned<fid_ep> ep;
    Side::open(ep, "fi_endpoint", [&](auto** out) {
      return fi_endpoint(side.domain.get(), side.info.get(), out, nullptr);
    });
    check(fi_ep_bind(ep.get(), &side.av->fid, 0), "bind AV");
    check(fi_ep_bind(ep.get(), &queue.fid, FI_TRANSMIT | FI_RECV), "bind CQ");
    check(fi_enable(ep.get()), "fi_enable");
    return ep;
  }
  template <class Call>
  void post(Call call) {
    ssize_t result = 0;
    while ((result = call()) == -FI_EAGAIN) progress();
    check(result, "post");
  }
  void progress() {
    fi_cq_read(a_queue.get(), nullptr, 0);
    fi_cq_read(b_queue.get(), nullptr, 0);
  }
  static void expect_next(fid_cq& queue, fid_cq& other) {
    const Clock::time_point start = Clock::now();
    for (;;) {
      const auto event = Side::poll(queue);
      if (event) return require(event->error == 0, "an operation failed");
      fi_cq_read(&other, nullptr, 0);
      require(Clock::now() - start < kDeadline, "no completion came");
    }
  }

  Owned<fid_cq> a_queue;
  Owned<fid_cq> b_queue;
  Owned<fid_ep> from;
  Owned<fid_ep> at;
  fi_addr_t to = FI_ADDR_UNSPEC;
};

// Writes, sends and receives; the region and the AV are common to both.
TEST_F(Cores, TwoThreadsUseTwoEndpoints) {
  std::array<std::uint64_t, 2> memory{};
  const Owned<fid_mr> region = expose(memory.data(), sizeof memory, 7);
  for (auto& at : at_) at.reset();
  for (auto& from : from_) from.reset();
  std::array<std::thread, 2> threads;
  std::array<std::uint64_t, 2> sums{};
  std::array<Lane, 2> lanes{Lane(a_, b_), Lane(a_, b_)};
  constexpr std::uint64_t kRounds = 2000;
  for (std::size_t number = 0; number < 2; ++number) {
    threads[number] = std::thread([&, number] {
      Lane& lane = lanes[number];
      for (std::uint64_t round = 1; round <= kRounds; ++round) {
        std::uint64_t received = 0;
        lane.post(
            [&] { return fi_recv(lane.at.get(), &received, 8, nullptr, FI_ADDR_UNSPEC, nullptr); });
        lane.post([&] { return fi_send(lane.from.get(), &round, 8, nullptr, lane.to, nullptr); });
        lane.post([&] {
          return fi_write(lane.from.get(), &round, 8, nullptr, lane.to, 8 * number, 7, nullptr);
        });
        Lane::expect_next(*lane.a_queue, *lane.b_queue);
        Lane::expect_next(*lane.a_queue, *lane.b_queue);
        Lane::expect_next(*lane.b_queue, *lane.a_queue);
        sums[number] += received;
      }
    });
  }
  // Meanwhile the tables that both read change.
  for (std::uint64_t key = 100; key < 150; ++key) {
    char byte = 0;
    const Owned<fid_mr> other = expose(&byte, 1, key);
    fi_addr_t address = a_.insert(*lanes[0].at);
    ASSERT_NE(address, FI_ADDR_UNSPEC);
    ::usleep(200);
  }
  for (std::thread& thread : threads) thread.join();
  for (std::size_t number = 0; number < 2; ++number) {
    EXPECT_EQ(sums[number], kRounds * (kRounds + 1) / 2);
    EXPECT_EQ(memory[number], kRounds);
  }
}

// Both threads read the queue, each posts to an endpoint of its own.
TEST_F(Cores, TwoThreadsReadOneQueue) {
  std::array<std::uint64_t, 2> memory{};
  Owned<fid_cntr> writes;
  Side::open(writes, "fi_cntr_open",
             [&](auto** out) { return fi_cntr_open(b_.domain.get(), nullptr, out, nullptr); });
  const Owned<fid_mr> region = expose(memory.data(), sizeof memory, 7);
  ASSERT_EQ(fi_mr_bind(region.get(), &writes->fid, FI_REMOTE_WRITE), 0);
  constexpr std::uint64_t kRounds = 2000;
  std::atomic<std::uint64_t> completed{0};
  std::array<std::thread, 2> threads;
  for (std::size_t number = 0; number < 2; ++number) {
    threads[number] = std::thread([&, number] {
      std::uint64_t posted = 0;
      while (completed < 2 * kRounds) {
        const std::uint64_t value = posted + 1;
        const bool posts = posted < kRounds && fi_inject_write(from_[number].get(), &value, 8,
                                                               to_[number], 8 * number, 7) == 0;
        if (posts) ++posted;
        if (posts) ++completed;
        fi_cq_tagged_entry entry{};
        fi_cq_read(a_.cq.get(), &entry, 1);
        fi_cq_read(b_.cq.get(), nullptr, 0);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  progress_until([&] { return fi_cntr_read(writes.get()) == 2 * kRounds; }, "writes are missing");
  EXPECT_EQ(memory, (std::array<std::uint64_t, 2>{kRounds, kRounds}));
}

// ---- triggered operations ----------------------------------------------------------------------

// The counter moves in one engine, the operation leaves through the other.
class TriggeredCores : public Cores {
 protected:
  TriggeredCores() {
    a_.info->caps |= FI_TRIGGER;
    for (std::size_t i = 0; i < 2; ++i) {
      sent_[i] = open_counter();
      from_[i].reset();  // first, so that the new one has its engine
      from_[i] = a_.open_endpoint(0);
      check(fi_ep_bind(from_[i].get(), &sent_[i]->fid, FI_SEND), "bind counter");
    }
    require(udp_port(Side::name_of(*from_[0])) != udp_port(Side::name_of(*from_[1])),
            "one engine has both");
  }
  ~TriggeredCores() override {
    for (auto& endpoint : from_) endpoint.reset();  // before its counter
  }
  Owned<fid_cntr> open_counter() {
    Owned<fid_cntr> counter;
    Side::open(counter, "fi_cntr_open",
               [&](auto** out) { return fi_cntr_open(a_.domain.get(), nullptr, out, nullptr); });
    return counter;
  }
  void post_receives(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      check(fi_recv(at_[0].get(), &received_[i], 1, nullptr, FI_ADDR_UNSPEC, &received_[i]),
            "fi_recv");
    }
  }
  // `message` from endpoint `from` when `counter` has reached `threshold`.
  void send_when(std::size_t from, const char& message, fid_cntr& counter, std::size_t threshold,
                 fid_cntr* completion = nullptr) {
    works_.push_back(std::make_unique<Deferred>());
    Deferred& deferred = *works_.back();
    deferred.iov = {const_cast<char*>(&message), 1};
    deferred.op.ep = from_[from].get();
    deferred.op.msg.msg_iov = &deferred.iov;
    deferred.op.msg.iov_count = 1;
    deferred.op.msg.addr = to_[0];
    deferred.op.flags = FI_COMPLETION;  // the endpoint's counter counts it, too
    deferred.work.threshold = threshold;
    deferred.work.triggering_cntr = &counter;
    deferred.work.completion_cntr = completion;
    deferred.work.op_type = FI_OP_SEND;
    deferred.work.op.msg = &deferred.op;
    check(fi_control(&a_.domain->fid, FI_QUEUE_WORK, &deferred.work), "FI_QUEUE_WORK");
  }
  fi_deferred_work& last_work() { return works_.back()->work; }
  void send_now(std::size_t from, const char& message) {
    check(fi_send(from_[from].get(), &message, 1, nullptr, to_[0], nullptr), "fi_send");
  }
  std::string expect_messages(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) EXPECT_EQ(b_.next(a_).error, 0);
    return std::string(received_.data(), count);
  }

  struct Deferred {
    iovec iov{};
    fi_op_msg op{};
    fi_deferred_work work{};
  };
  std::array<Owned<fid_cntr>, 2> sent_;
  std::array<char, 256> received_{};
  std::vector<std::unique_ptr<Deferred>> works_;
};

TEST_F(TriggeredCores, CounterOfOneEngineReleasesWorkOfTheOther) {
  post_receives(4);
  send_when(1, "b"[0], *sent_[0], 1);
  send_when(0, "c"[0], *sent_[1], 1);
  send_when(1, "d"[0], *sent_[0], 2);
  progress();
  EXPECT_FALSE(b_.poll());
  send_now(0, "a"[0]);
  EXPECT_EQ(expect_messages(4), "abcd");
}

TEST_F(TriggeredCores, ApplicationMovesTheCounter) {
  post_receives(2);
  const auto counter = open_counter();
  send_when(0, "a"[0], *counter, 1);
  send_when(1, "b"[0], *counter, 2);
  ASSERT_EQ(fi_cntr_add(counter.get(), 1), 0);
  EXPECT_EQ(expect_messages(1), "a");
  ASSERT_EQ(fi_cntr_set(counter.get(), 2), 0);
  EXPECT_EQ(expect_messages(1), "a");
  EXPECT_EQ(received_[1], 'b');
  for (int i = 0; i < 2; ++i) EXPECT_EQ(a_.next(b_).error, 0);  // then the counter is free
}

// The counter is of one engine; the work that it counts waits for the other.
TEST_F(TriggeredCores, WaitForWorkThatAnotherEngineReleases) {
  post_receives(2);
  send_when(1, "x"[0], *sent_[0], 1);
  std::atomic<bool> done{false};
  std::thread target([&] {
    while (!done) b_.poll();
  });
  send_now(0, "x"[0]);
  EXPECT_EQ(fi_cntr_wait(sent_[1].get(), 1, 60'000), 0);
  done = true;
  target.join();
}

// A reader of the last counter of a chain makes the progress of all engines that it needs.
TEST_F(TriggeredCores, WaitForTheEndOfAChain) {
  constexpr std::size_t kLinks = 100;
  post_receives(kLinks + 1);
  std::vector<Owned<fid_cntr>> counters;
  for (std::size_t i = 0; i < kLinks; ++i) {
    fid_cntr& before = i == 0 ? *sent_[0] : *counters.back();
    counters.push_back(open_counter());
    send_when((i + 1) % 2, "x"[0], before, 1, counters.back().get());
  }
  std::atomic<bool> done{false};
  std::thread target([&] {
    while (!done) b_.poll();
  });
  send_now(0, "x"[0]);
  EXPECT_EQ(fi_cntr_wait(counters.back().get(), 1, 60'000), 0);
  done = true;
  target.join();
}

TEST_F(TriggeredCores, CancelledAndFlushedWorkOfAnyEngine) {
  post_receives(2);
  for (std::size_t engine = 0; engine < 2; ++engine) {
    send_when(engine, "x"[0], *sent_[0], 1);
    EXPECT_EQ(fi_control(&a_.domain->fid, FI_CANCEL_WORK, &last_work()), 0);
    EXPECT_EQ(fi_control(&a_.domain->fid, FI_CANCEL_WORK, &last_work()), -FI_ENOENT);
    send_when(engine, "y"[0], *sent_[0], 1);
  }
  EXPECT_EQ(fi_control(&a_.domain->fid, FI_FLUSH_WORK, nullptr), 0);
  send_now(0, "a"[0]);
  send_now(0, "b"[0]);
  EXPECT_EQ(expect_messages(2), "ab");
}

// Each thread uses an endpoint and its counter; the counter releases works of the other thread's
// endpoint meanwhile, and works that have not been released are cancelled.
TEST_F(TriggeredCores, ThreadsReleaseEachOthersWork) {
  constexpr std::size_t kRounds = 120;
  post_receives(2 * kRounds);
  for (std::size_t i = 0; i < kRounds; ++i) {
    for (std::size_t from = 0; from < 2; ++from) send_when(from, "w"[0], *sent_[1 - from], i + 1);
  }
  std::atomic<bool> done{false};
  std::array<std::thread, 2> threads;
  for (std::size_t number = 0; number < 2; ++number) {
    threads[number] = std::thread([&, number] {
      fi_cntr_add(sent_[number].get(), 1);
      while (!done) {
        fi_cntr_read(sent_[number].get());
        const auto& cancelled = works_[works_.size() - 1 - number];
        fi_control(&a_.domain->fid, FI_CANCEL_WORK, &cancelled->work);
      }
    });
  }
  // The last work of each endpoint is cancelled, in time or not.
  expect_messages(2 * kRounds - 2);
  done = true;
  for (std::thread& thread : threads) thread.join();
}

// ---- two processes -----------------------------------------------------------------------------

// A domain with an endpoint in each of its two engines.
struct TwoEngines {
  TwoEngines() {
    Side::open(second, "fi_endpoint", [&](auto** out) {
      return fi_endpoint(node.domain.get(), node.info.get(), out, nullptr);
    });
    check(fi_ep_bind(second.get(), &node.av->fid, 0), "bind AV");
    check(fi_ep_bind(second.get(), &node.cq->fid, FI_TRANSMIT | FI_RECV), "bind CQ");
    check(fi_enable(second.get()), "fi_enable");
    require(udp_port(Side::name_of(*second)) != udp_port(node.name()), "one engine has both");
  }
  fid_ep& endpoint(std::size_t i) const { return i == 0 ? *node.ep : *second; }

  Node node;
  Owned<fid_ep> second;
};

// Each endpoint of one process with each of the other: messages, writes and reads, of one packet
// and of many. Over every NIC and with transport security, where a run sets it.
void meet_all(Channel& channel, std::uint64_t seed) {
  constexpr std::size_t kBytes = 50'000;
  TwoEngines mine;
  Node& node = mine.node;
  std::array<std::vector<std::byte>, 4> arrived;
  std::vector<std::byte> memory(4 * kBytes);
  const Region region = node.expose(memory.data(), memory.size(), 7);
  channel.send(RemoteRegion{region.address, region.key});
  const auto remote = channel.receive<RemoteRegion>(&node);
  std::array<fi_addr_t, 2> peers{};
  for (std::size_t i = 0; i < 2; ++i) {
    channel.send_bytes(Side::name_of(mine.endpoint(i)));
    peers[i] = node.insert(channel.receive_bytes(&node));
  }
  for (std::size_t pair = 0; pair < 4; ++pair) {
    arrived[pair].resize(kBytes);
    node.post("fi_trecv", [&] {
      return fi_trecv(&mine.endpoint(pair / 2), arrived[pair].data(), kBytes, nullptr,
                      FI_ADDR_UNSPEC, pair, 0, nullptr);
    });
  }
  channel.meet(&node);
  std::vector<std::byte> out(kBytes);
  std::vector<std::byte> back(kBytes);
  fill_pattern(out, seed);
  for (std::size_t pair = 0; pair < 4; ++pair) {
    fid_ep& from = mine.endpoint(pair % 2);
    const fi_addr_t to = peers[pair / 2];
    node.post("fi_tsend",
              [&] { return fi_tsend(&from, out.data(), kBytes, nullptr, to, pair, nullptr); });
  }
  node.drain(8, "messages");
  for (std::size_t pair = 0; pair < 4; ++pair) {
    fid_ep& from = mine.endpoint(pair % 2);
    const fi_addr_t to = peers[pair / 2];
    const std::uint64_t at = remote.address + pair * kBytes;
    node.post("fi_write", [&] {
      return fi_write(&from, out.data(), kBytes, nullptr, to, at, remote.key, nullptr);
    });
    node.drain(1, "a write");
    node.post("fi_read", [&] {
      return fi_read(&from, back.data(), kBytes, nullptr, to, at, remote.key, nullptr);
    });
    node.drain(1, "a read");
    require_pattern(back, seed, "a read");
  }
  channel.meet(&node);
  node.see_memory();
  const std::uint64_t other = 3 - seed;
  for (std::size_t pair = 0; pair < 4; ++pair) {
    require_pattern(arrived[pair], other, "a message");
    require_pattern(std::span(memory).subspan(pair * kBytes, kBytes), other, "a write");
  }
  channel.meet(&node);
}

TEST(CoresOfTwoProcesses, EachEngineReachesEach) {
  const Environment two = {{"FI_UET_CORES", "2"}};
  ChannelPair wire;
  Process left("left", two, [&] { meet_all(wire.left, 1); });
  Process right("right", two, [&] { meet_all(wire.right, 2); });
  EXPECT_EQ(wait_for_all({&left, &right}), "");
}

// ---- refusals ----------------------------------------------------------------------------------

// With the back end `nic`, unless that is nullptr.
int open_domain(const char* cores, const char* nic) {
  const std::unique_ptr<fi_info, Node::FreeInfo> hints(fi_allocinfo());
  hints->fabric_attr->prov_name = strdup(provider().c_str());
  fi_info* found = nullptr;
  check(fi_getinfo(FI_VERSION(1, 17), "127.0.0.1", nullptr, FI_SOURCE, hints.get(), &found),
        "fi_getinfo");
  const std::unique_ptr<fi_info, Node::FreeInfo> info(found);
  if (nic != nullptr) {
    free(info->nic->device_attr->driver);
    info->nic->device_attr->driver = strdup(nic);
  }
  const Variable number("FI_UET_CORES", cores);
  return open_and_close_domain(*info);
}

TEST(CoresOfDomain, RefusesWhatNeedsOneEngine) {
  EXPECT_EQ(open_domain("2", "packet:native"), -FI_EOPNOTSUPP);
  EXPECT_EQ(open_domain("2", nullptr), 0);
  EXPECT_EQ(open_domain("65", nullptr), -FI_EINVAL);
  EXPECT_EQ(open_domain("none", nullptr), -FI_EINVAL);
}

}  // namespace
}  // namespace uet::e2e
