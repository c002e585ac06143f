// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Threads, waiting and progress: several threads on one endpoint, blocking reads, poll() with
// fi_trywait, counters, and targets that do not call libfabric.
#include <gtest/gtest.h>
#include <poll.h>
#include <time.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <exception>
#include <functional>
#include <thread>

#include "harness.h"

namespace uet::e2e {
namespace {

// ---- threads -----------------------------------------------------------------------------------

constexpr int kThreads = 4;
constexpr std::uint64_t kRounds = 500;  // per thread

std::size_t bytes_of(std::uint64_t round) { return round * 37 % 9000; }

// Reads one completion of any thread: its context is the counter of the owner.
void reap_one(Node& node) {
  fi_cq_tagged_entry entry{};
  const ssize_t count = fi_cq_read(node.cq.get(), &entry, 1);
  if (count == -FI_EAGAIN) {
    std::this_thread::yield();
    return;
  }
  require(count == 1, "an operation failed");
  static_cast<std::atomic<std::uint64_t>*>(entry.op_context)->fetch_add(1);
}

template <class Call>
void post_shared(Node& node, const char* what, Call&& call) {
  for (ssize_t result; (result = call()) != 0;) {
    if (result != -FI_EAGAIN) check(result, what);
    reap_one(node);
  }
}

void ping_pong(Node& node, fi_addr_t peer, std::uint64_t thread, bool first) {
  std::atomic<std::uint64_t> sent = 0;
  std::atomic<std::uint64_t> received = 0;
  std::vector<std::byte> out(9000);
  std::vector<std::byte> in(9000);
  for (std::uint64_t round = 0; round < kRounds; ++round) {
    const std::size_t bytes = bytes_of(round);
    const std::uint64_t tag = thread << 32 | round;
    const auto send = [&] {
      fill_pattern(std::span(out).first(bytes), tag + (first ? 0 : 1));
      post_shared(node, "sending", [&] {
        return fi_tsend(node.ep.get(), out.data(), bytes, nullptr, peer, tag, &sent);
      });
    };
    post_shared(node, "posting a receive", [&] {
      return fi_trecv(node.ep.get(), in.data(), in.size(), nullptr, FI_ADDR_UNSPEC, tag, 0,
                      &received);
    });
    if (first) send();
    while (received.load() <= round) reap_one(node);
    require_pattern(std::span(in).first(bytes), tag + (first ? 1 : 0), "message");
    if (!first) send();
    while (sent.load() <= round) reap_one(node);
  }
}

void run_threads(Channel& channel, bool first, fi_progress progress) {
  NodeOptions options;
  options.threading = FI_THREAD_SAFE;
  options.progress = progress;
  Node node(options);
  const fi_addr_t peer = node.connect(channel);
  std::array<std::exception_ptr, kThreads> errors;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      try {
        ping_pong(node, peer, static_cast<std::uint64_t>(i), first);
      } catch (...) {
        errors[static_cast<std::size_t>(i)] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
  channel.meet(&node);
}

class Threads : public ::testing::TestWithParam<fi_progress> {};

TEST_P(Threads, FourOnOneEndpointPingPong) {
  const fi_progress progress = GetParam();
  ChannelPair channels;
  Process first("first", {}, [&, progress] { run_threads(channels.left, true, progress); });
  Process second("second", {}, [&, progress] { run_threads(channels.right, false, progress); });
  EXPECT_EQ(wait_for_all({&first, &second}), "");
}

INSTANTIATE_TEST_SUITE_P(Progress, Threads, ::testing::Values(FI_PROGRESS_MANUAL, FI_PROGRESS_AUTO),
                         [](const auto& info) {
                           return std::string(info.param == FI_PROGRESS_MANUAL ? "Manual" : "Auto");
                         });

// Every kind of call at once on one endpoint: each thread has its own way to post and to wait.
class MixedThreads : public ::testing::TestWithParam<fi_progress> {};

constexpr std::uint64_t kMixedRounds = 200;

void mixed_side(Channel& channel, fi_progress progress) {
  NodeOptions options;
  options.threading = FI_THREAD_SAFE;
  options.progress = progress;
  options.wait = FI_WAIT_FD;
  options.counters = true;
  Node node(options);
  const fi_addr_t peer = node.connect(channel);
  std::vector<std::byte> memory(5000);
  const Region region = node.expose(memory.data(), memory.size(), 5);
  channel.send(RemoteRegion{region.address, region.key});
  const auto remote = channel.receive<RemoteRegion>(&node);
  std::atomic<std::uint64_t> entries = 0;               // that the readers have taken
  constexpr std::uint64_t kEntries = 4 * kMixedRounds;  // sends, receives, writes, reads
  const auto patiently = [&](const char* what, const std::function<ssize_t()>& call) {
    for (ssize_t result; (result = call()) != 0;) {
      if (result != -FI_EAGAIN) check(result, what);
      fi_cntr_read(node.sent.get());
    }
  };
  std::vector<std::function<void()>> bodies;
  std::vector<std::byte> message(3000);  // read until the last send has completed
  bodies.emplace_back([&] {
    for (std::uint64_t i = 0; i < kMixedRounds; ++i) {
      patiently("sending", [&] {
        return fi_send(node.ep.get(), message.data(), message.size(), nullptr, peer, nullptr);
      });
    }
  });
  bodies.emplace_back([&] {
    static std::array<std::byte, 3000> in;
    for (std::uint64_t i = 0; i < kMixedRounds; ++i) {
      patiently("posting a receive", [&] {
        return fi_recv(node.ep.get(), in.data(), in.size(), nullptr, FI_ADDR_UNSPEC, nullptr);
      });
    }
    check(fi_cntr_wait(node.received.get(), kMixedRounds, 40000), "waiting for messages");
  });
  bodies.emplace_back([&] {
    std::vector<std::byte> out(5000);
    std::vector<std::byte> in(5000);
    for (std::uint64_t i = 0; i < kMixedRounds; ++i) {
      patiently("writing", [&] {
        return fi_write(node.ep.get(), out.data(), out.size(), nullptr, peer, remote.address,
                        remote.key, nullptr);
      });
      patiently("reading", [&] {
        return fi_read(node.ep.get(), in.data(), in.size(), nullptr, peer, remote.address,
                       remote.key, nullptr);
      });
    }
    check(fi_cntr_wait(node.sent.get(), 3 * kMixedRounds, 40000), "waiting for transmits");
  });
  bodies.emplace_back([&] {  // one reader sleeps in a call
    while (entries < kEntries) {
      fi_cq_tagged_entry entry{};
      const ssize_t count = fi_cq_sread(node.cq.get(), &entry, 1, nullptr, 50);
      if (count == 1) ++entries;
      require(count == 1 || count == -FI_EAGAIN, "fi_cq_sread failed");
    }
  });
  bodies.emplace_back([&] {  // the other in poll()
    int fd = -1;
    check(fi_control(&node.cq->fid, FI_GETWAIT, &fd), "FI_GETWAIT");
    while (entries < kEntries) {
      fi_cq_tagged_entry entry{};
      const ssize_t count = fi_cq_read(node.cq.get(), &entry, 1);
      if (count == 1) ++entries;
      require(count == 1 || count == -FI_EAGAIN, "fi_cq_read failed");
      std::array<fid*, 1> fids{&node.cq->fid};
      if (count == 1 || fi_trywait(node.fabric.get(), fids.data(), 1) != 0) continue;
      pollfd poll_fd{fd, POLLIN, 0};
      ::poll(&poll_fd, 1, 50);
    }
  });
  bodies.emplace_back([&] {  // addresses come and go meanwhile
    const std::vector<std::byte> name = node.name();
    for (std::uint64_t i = 0; i < kMixedRounds; ++i) {
      fi_addr_t address = node.insert(name);
      check(fi_av_remove(node.av.get(), &address, 1, 0), "fi_av_remove");
      std::this_thread::yield();
    }
  });
  std::vector<std::exception_ptr> errors(bodies.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < bodies.size(); ++i) {
    threads.emplace_back([&, i] {
      try {
        bodies[i]();
      } catch (...) {
        errors[i] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
  channel.meet(&node);
}

TEST_P(MixedThreads, AllKindsOfCallsOnOneEndpoint) {
  const fi_progress progress = GetParam();
  ChannelPair channels;
  Process first("first", {}, [&, progress] { mixed_side(channels.left, progress); });
  Process second("second", {}, [&, progress] { mixed_side(channels.right, progress); });
  EXPECT_EQ(wait_for_all({&first, &second}), "");
}

INSTANTIATE_TEST_SUITE_P(Progress, MixedThreads,
                         ::testing::Values(FI_PROGRESS_MANUAL, FI_PROGRESS_AUTO),
                         [](const auto& info) {
                           return std::string(info.param == FI_PROGRESS_MANUAL ? "Manual" : "Auto");
                         });

// ---- waiting -----------------------------------------------------------------------------------

constexpr std::chrono::milliseconds kPause{300};
constexpr std::uint64_t kPings = 200;

void post_ping(Node& node, fi_addr_t peer, std::vector<std::byte>& out, std::uint64_t tag) {
  fill_pattern(out, tag);
  node.post("sending", [&] {
    return fi_tsend(node.ep.get(), out.data(), out.size(), nullptr, peer, tag, &out);
  });
}

void post_pong(Node& node, std::vector<std::byte>& in, std::uint64_t tag) {
  node.post("posting a receive", [&] {
    return fi_trecv(node.ep.get(), in.data(), in.size(), nullptr, FI_ADDR_UNSPEC, tag, 0, &in);
  });
}

// Waits in fi_cq_sread.
Event wait_in_sread(Node& node) {
  fi_cq_tagged_entry entry{};
  const ssize_t count = fi_cq_sread(node.cq.get(), &entry, 1, nullptr, 30000);
  check(count, "fi_cq_sread");
  require(count == 1, "fi_cq_sread returned without a completion");
  return {entry.op_context, entry.flags, entry.len, entry.data, entry.tag, 0};
}

// Waits in poll(), the way fi_trywait's manual page shows. `wakeups` counts poll() calls.
Event wait_in_poll(Node& node, std::uint64_t& wakeups) {
  int fd = -1;
  check(fi_control(&node.cq->fid, FI_GETWAIT, &fd), "FI_GETWAIT");
  while (true) {
    if (const auto event = node.poll()) {
      require(event->error == 0, "an operation failed");
      return *event;
    }
    fid* fids[] = {&node.cq->fid};
    const int ready = fi_trywait(node.fabric.get(), fids, 1);
    if (ready == -FI_EAGAIN) continue;
    check(ready, "fi_trywait");
    pollfd entry{fd, POLLIN, 0};
    require(::poll(&entry, 1, 30000) == 1, "poll() timed out: a completion without a wake-up");
    ++wakeups;
  }
}

void wait_side(Channel& channel, bool in_sread, std::size_t bytes) {
  NodeOptions options;
  options.wait = FI_WAIT_FD;
  Node node(options);
  const fi_addr_t peer = node.connect(channel);
  std::vector<std::byte> out(bytes);
  std::vector<std::byte> in(bytes);
  std::uint64_t wakeups = 0;
  const auto wait = [&] { return in_sread ? wait_in_sread(node) : wait_in_poll(node, wakeups); };
  for (std::uint64_t round = 0; round < kPings; ++round) {
    post_pong(node, in, round + 1000);
    post_ping(node, peer, out, round);
    bool sent = false;
    bool received = false;
    while (!sent || !received) (wait().context == &in ? received : sent) = true;
    require_pattern(in, round + 1000, "message");
  }
  // The peer says nothing for a while: a waiter that spins would be woken thousands of times.
  post_pong(node, in, 5000);
  wakeups = 0;
  wait();
  require(wakeups < 100, "poll() came back " + std::to_string(wakeups) + " times for one message");
  channel.meet(&node);
}

void answer_side(Channel& channel, std::size_t bytes) {
  Node node;
  const fi_addr_t peer = node.connect(channel);
  std::vector<std::byte> out(bytes);
  std::vector<std::byte> in(bytes);
  for (std::uint64_t round = 0; round < kPings; ++round) {
    post_pong(node, in, round);
    node.next("a receive");
    require_pattern(in, round, "message");
    post_ping(node, peer, out, round + 1000);
    node.next("a send");
  }
  const Clock::time_point start = Clock::now();
  while (Clock::now() - start < kPause) node.keep_events();
  post_ping(node, peer, out, 5000);
  node.next("a send");
  channel.meet(&node);
}

class Wait : public ::testing::TestWithParam<std::tuple<bool, std::size_t>> {};

TEST_P(Wait, EachCompletionWakesTheWaiter) {
  const auto [in_sread, bytes] = GetParam();
  ChannelPair channels;
  Process waiter("waiter", {}, [&, in_sread = in_sread, bytes = bytes] {
    wait_side(channels.left, in_sread, bytes);
  });
  Process peer("peer", {}, [&, bytes = bytes] { answer_side(channels.right, bytes); });
  EXPECT_EQ(wait_for_all({&waiter, &peer}), "");
}

INSTANTIATE_TEST_SUITE_P(
    All, Wait,
    ::testing::Combine(::testing::Bool(), ::testing::Values(std::size_t{100}, std::size_t{300000})),
    [](const auto& info) {
      return std::string(std::get<0>(info.param) ? "Sread" : "Poll") +
             (std::get<1>(info.param) > 1000 ? "LargeMessage" : "SmallMessage");
    });

TEST(WaitTimeout, SreadOfAnEmptyQueueEndsWhenItShould) {
  Process process("waiter", {}, [] {
    NodeOptions options;
    options.wait = FI_WAIT_FD;
    Node node(options);
    fi_cq_tagged_entry entry{};
    const Clock::time_point start = Clock::now();
    const ssize_t result = fi_cq_sread(node.cq.get(), &entry, 1, nullptr, 200);
    const auto waited = Clock::now() - start;
    require(result == -FI_EAGAIN, "fi_cq_sread returned " + std::to_string(result));
    require(waited >= std::chrono::milliseconds(190), "fi_cq_sread returned too early");
    require(waited < std::chrono::seconds(5), "fi_cq_sread returned too late");
  });
  EXPECT_EQ(process.wait(), "");
}

TEST(WaitSignal, WakesABlockedSread) {
  Process process("waiter", {}, [] {
    NodeOptions options;
    options.wait = FI_WAIT_FD;
    options.threading = FI_THREAD_SAFE;
    Node node(options);
    std::atomic<bool> returned = false;
    ssize_t result = 0;
    std::thread waiter([&] {
      fi_cq_tagged_entry entry{};
      result = fi_cq_sread(node.cq.get(), &entry, 1, nullptr, -1);
      returned = true;
    });
    // Signals until the waiter is back, so that it does not matter when it began to wait.
    while (!returned) {
      check(fi_cq_signal(node.cq.get()), "fi_cq_signal");
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    waiter.join();
    require(result <= 0, "a completion out of nothing");
  });
  EXPECT_EQ(process.wait(), "");
}

TEST(CounterWait, ReturnsAtItsThresholdOrItsTimeout) {
  ChannelPair channels;
  Process waiter("waiter", {}, [&] {
    NodeOptions options;
    options.counters = true;
    Node node(options);
    node.connect(channels.left);
    std::array<std::byte, 2000> memory{};
    const Region region = node.expose(memory.data(), memory.size(), 5);
    channels.left.send(RemoteRegion{region.address, region.key});
    require(fi_cntr_wait(node.received.get(), 1, 100) == -FI_ETIMEDOUT, "no time-out");
    std::vector<std::byte> in(2000);
    for (int i = 0; i < 20; ++i) {
      node.post("posting a receive", [&] {
        return fi_recv(node.ep.get(), in.data(), in.size(), nullptr, FI_ADDR_UNSPEC, nullptr);
      });
    }
    channels.left.meet();
    check(fi_cntr_wait(node.received.get(), 20, 20000), "waiting for 20 messages");
    check(fi_cntr_wait(node.remote_writes.get(), 10, 20000), "waiting for 10 writes");
    require_pattern(memory, 8, "written memory");
    require(fi_cntr_read(node.received.get()) == 20, "the counter went past 20");
    require(fi_cntr_readerr(node.received.get()) == 0, "the error counter moved");
    channels.left.meet(&node);
  });
  Process peer("peer", {}, [&] {
    NodeOptions options;
    options.counters = true;
    Node node(options);
    const fi_addr_t to = node.connect(channels.right);
    const auto remote = channels.right.receive<RemoteRegion>(&node);
    std::vector<std::byte> out(2000);
    fill_pattern(out, 8);
    channels.right.meet(&node);
    for (int i = 0; i < 30; ++i) {
      node.post("sending", [&] {
        return i < 20 ? fi_send(node.ep.get(), out.data(), out.size(), nullptr, to, nullptr)
                      : fi_write(node.ep.get(), out.data(), out.size(), nullptr, to, remote.address,
                                 remote.key, nullptr);
      });
    }
    check(fi_cntr_wait(node.sent.get(), 30, 20000), "waiting for 30 completions");
    channels.right.meet(&node);
  });
  EXPECT_EQ(wait_for_all({&waiter, &peer}), "");
}

// ---- progress ----------------------------------------------------------------------------------

constexpr std::size_t kRmaBytes = 200000;

void write_and_read(Channel& channel) {
  Node node;
  const fi_addr_t peer = node.connect(channel);
  const auto remote = channel.receive<RemoteRegion>(&node);
  node.write_and_read_back(peer, remote, kRmaBytes, 20);
  channel.send('d');
  channel.meet(&node);
}

TEST(Progress, AutomaticServesATargetThatNeverCalls) {
  ChannelPair channels;
  Process target("target", {}, [&] {
    NodeOptions options;
    options.progress = FI_PROGRESS_AUTO;
    Node node(options);
    node.connect(channels.left);
    std::vector<std::byte> memory(kRmaBytes);
    const Region region = node.expose(memory.data(), memory.size(), 5);
    channels.left.send(RemoteRegion{region.address, region.key});
    channels.left.receive<char>();  // no libfabric call from the last line until all is done
    node.see_memory();
    require_pattern(memory, 19, "written memory");
    channels.left.meet(&node);
  });
  Process initiator("initiator", {}, [&] { write_and_read(channels.right); });
  EXPECT_EQ(wait_for_all({&target, &initiator}), "");
}

// Both sides compute; what the application has posted is sent, acknowledged and sent again where
// packets are lost, all without a call.
TEST(Progress, AutoProgress_ComputingInitiatorLosesNothing) {
  const Environment lossy{{"FI_UET_FAULTS", "loss=5%,seed=3"}};
  constexpr std::uint64_t kWrites = 20;
  NodeOptions options;
  options.progress = FI_PROGRESS_AUTO;
  options.counters = true;
  ChannelPair channels;
  Process target("target", lossy, [&] {
    Node node(options);
    node.connect(channels.left);
    std::vector<std::byte> memory(kRmaBytes);
    const Region region = node.expose(memory.data(), memory.size(), 5);
    channels.left.send(RemoteRegion{region.address, region.key});
    // Sleeps all the time: only the progress thread works.
    check(fi_cntr_wait(node.remote_writes.get(), kWrites, 30000), "waiting for the writes");
    require_pattern(memory, kWrites - 1, "written memory");
    channels.left.send('d');
    channels.left.meet(&node);
  });
  Process initiator("initiator", lossy, [&] {
    Node node(options);
    const fi_addr_t peer = node.connect(channels.right);
    const auto remote = channels.right.receive<RemoteRegion>(&node);
    std::vector<std::vector<std::byte>> out(kWrites, std::vector<std::byte>(kRmaBytes));
    for (std::uint64_t i = 0; i < kWrites; ++i) {
      fill_pattern(out[i], i);
      const bool last = i + 1 == kWrites;
      if (last) check(fi_cntr_wait(node.sent.get(), i, 30000), "waiting for the writes before");
      check(fi_write(node.ep.get(), out[i].data(), kRmaBytes, nullptr, peer, remote.address,
                     remote.key, nullptr),
            "fi_write");
    }
    channels.right.receive<char>();  // no libfabric call until the target has everything
    check(fi_cntr_wait(node.sent.get(), kWrites, 30000), "waiting for the last write");
    channels.right.meet(&node);
  });
  EXPECT_EQ(wait_for_all({&target, &initiator}), "");
}

// Time on a processor of this process, all threads.
std::chrono::microseconds processor_time() {
  timespec used{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return std::chrono::seconds(used.tv_sec) + std::chrono::microseconds(used.tv_nsec / 1000);
}

TEST(Progress, IdleAutomaticUsesLessThanAHundredthOfACore) {
  if (built_with_sanitizer()) GTEST_SKIP() << "a sanitizer uses more of the core than the domain";
  ChannelPair channels;
  const auto idle_side = [](Channel& channel) {
    NodeOptions options;
    options.progress = FI_PROGRESS_AUTO;
    Node node(options);
    const fi_addr_t peer = node.connect(channel);
    std::byte byte{};
    node.post("sending", [&] { return fi_inject(node.ep.get(), &byte, 1, peer); });
    node.post("posting a receive",
              [&] { return fi_recv(node.ep.get(), &byte, 1, nullptr, FI_ADDR_UNSPEC, nullptr); });
    node.next("a receive");
    channel.meet(&node);
    std::this_thread::sleep_for(std::chrono::milliseconds(200));  // last acknowledgements
    const auto before = processor_time();
    std::this_thread::sleep_for(std::chrono::seconds(3));
    const auto used = processor_time() - before;
    require(used < std::chrono::milliseconds(30),
            "3 idle seconds took " + std::to_string(used.count()) + " us of a core");
    std::printf("3 idle seconds took %lld us of a core\n", static_cast<long long>(used.count()));
    channel.meet(&node);
  };
  Process first("first", {}, [&] { idle_side(channels.left); });
  Process second("second", {}, [&] { idle_side(channels.right); });
  EXPECT_EQ(wait_for_all({&first, &second}), "");
}

TEST(Progress, ManualTargetBusyFor1500Ms_IsNotGivenUp) {
  ChannelPair channels;
  Process target("target", {}, [&] {
    Node node;
    node.connect(channels.left);
    std::vector<std::byte> memory(kRmaBytes);
    const Region region = node.expose(memory.data(), memory.size(), 5);
    channels.left.send(RemoteRegion{region.address, region.key});
    std::this_thread::sleep_for(std::chrono::milliseconds(1500));
    channels.left.receive<char>(&node);
    node.see_memory();
    require_pattern(memory, 19, "written memory");
    channels.left.meet(&node);
  });
  Process initiator("initiator", {}, [&] { write_and_read(channels.right); });
  EXPECT_EQ(wait_for_all({&target, &initiator}), "");
}

}  // namespace
}  // namespace uet::e2e
