// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Every kind of wait object, used the way the manual pages show: processes that only ever block.
// A wake-up that is missed ends in a time-out, which fails.
#include <gtest/gtest.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/fi_eq.h>
#include <signal.h>
#include <sys/socket.h>
#include <time.h>

#include <array>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "harness.h"

namespace uet::e2e {
namespace {

constexpr int kPatience = 30000;  // milliseconds; a longer wait means a lost wake-up

// An object to block on: the object behind `fid` is a CQ, counter, EQ or wait set of this kind.
struct Blocker {
  fid_fabric* fabric;
  struct fid* fid;
  fi_wait_obj kind;
  std::uint64_t sleeps = 0;  // how often it has blocked
};

int get_fd(struct fid* fid) {
  int fd = -1;
  check(fi_control(fid, FI_GETWAIT, &fd), "FI_GETWAIT");
  return fd;
}

int try_wait(Blocker& blocker) {
  std::array<struct fid*, 1> fids{blocker.fid};
  const int result = fi_trywait(blocker.fabric, fids.data(), 1);
  if (result != -FI_EAGAIN) check(result, "fi_trywait");
  return result;
}

// A time-out by itself says only that nothing came; it may be the peer that is stuck.
void require_woken(bool woken, Blocker& blocker) {
  if (!woken) require(try_wait(blocker) == 0, "timed out: news without a wake-up");
  require(woken, "timed out, and there is no news");
}

void block_on_condition(Blocker& blocker) {
  fi_mutex_cond object{};
  check(fi_control(blocker.fid, FI_GETWAIT, &object), "FI_GETWAIT");
  timespec limit{};
  clock_gettime(CLOCK_REALTIME, &limit);
  limit.tv_sec += kPatience / 1000;
  pthread_mutex_lock(object.mutex);
  if (try_wait(blocker) == 0) {
    ++blocker.sleeps;
    require_woken(pthread_cond_timedwait(object.cond, object.mutex, &limit) == 0, blocker);
  }
  pthread_mutex_unlock(object.mutex);
}

void block_on_pollfd(Blocker& blocker) {
  std::array<pollfd, 4> entries{};
  fi_wait_pollfd object{};
  require(fi_control(blocker.fid, FI_GETWAIT, &object) == -FI_ETOOSMALL && object.nfds >= 1,
          "FI_GETWAIT does not say how many descriptors there are");
  require(object.nfds <= entries.size(), "more descriptors than expected");
  object.fd = entries.data();
  check(fi_control(blocker.fid, FI_GETWAIT, &object), "FI_GETWAIT");
  if (try_wait(blocker) != 0) return;
  ++blocker.sleeps;
  require_woken(::poll(entries.data(), object.nfds, kPatience) >= 1, blocker);
}

void block_on_fd(Blocker& blocker) {
  pollfd entry{get_fd(blocker.fid), POLLIN, 0};
  require_woken(::poll(&entry, 1, kPatience) == 1, blocker);
}

// Returns when there may be news; never spins.
void block(Blocker& blocker) {
  switch (blocker.kind) {
    case FI_WAIT_MUTEX_COND:
      return block_on_condition(blocker);
    case FI_WAIT_POLLFD:
      return block_on_pollfd(blocker);
    default:
      if (try_wait(blocker) != 0) return;
      ++blocker.sleeps;
      return block_on_fd(blocker);
  }
}

// ---- queues ------------------------------------------------------------------------------------

struct Kind {
  const char* name;
  fi_wait_obj object;
  fi_wait_obj set = FI_WAIT_NONE;
};
constexpr Kind kKinds[] = {
    {"Unspec", FI_WAIT_UNSPEC},
    {"Fd", FI_WAIT_FD},
    {"Pollfd", FI_WAIT_POLLFD},
    {"MutexCond", FI_WAIT_MUTEX_COND},
    {"Yield", FI_WAIT_YIELD},
    {"SetUnspec", FI_WAIT_SET, FI_WAIT_UNSPEC},
    {"SetFd", FI_WAIT_SET, FI_WAIT_FD},
    {"SetPollfd", FI_WAIT_SET, FI_WAIT_POLLFD},
    {"SetMutexCond", FI_WAIT_SET, FI_WAIT_MUTEX_COND},
    {"SetYield", FI_WAIT_SET, FI_WAIT_YIELD},
};

bool has_object(fi_wait_obj kind) {
  return kind == FI_WAIT_FD || kind == FI_WAIT_POLLFD || kind == FI_WAIT_MUTEX_COND;
}

// Waits for the next completion of `node` in the way that suits `kind`.
void block_for_completion(Node& node, const Kind& kind) {
  fi_cq_tagged_entry entry{};
  for (;;) {
    ssize_t count = 0;
    if (kind.object == FI_WAIT_UNSPEC || kind.object == FI_WAIT_YIELD) {
      count = fi_cq_sread(node.cq.get(), &entry, 1, nullptr, kPatience);
      require(count != -FI_EAGAIN, "fi_cq_sread timed out");
    } else {
      count = fi_cq_read(node.cq.get(), &entry, 1);
    }
    if (count == 1) return;
    if (count != -FI_EAGAIN) check(count, "reading the queue");
    const bool set = kind.object == FI_WAIT_SET;
    if (set && !has_object(kind.set)) {
      check(node.wait_set->ops->wait(node.wait_set.get(), kPatience), "fi_wait");
      continue;
    }
    Blocker blocker{node.fabric.get(), set ? &node.wait_set->fid : &node.cq->fid,
                    set ? kind.set : kind.object};
    block(blocker);
  }
}

NodeOptions options_for(const Kind& kind, fi_progress progress) {
  NodeOptions options;
  options.wait = kind.object;
  options.wait_set = kind.set;
  options.progress = progress;
  return options;
}

constexpr std::uint64_t kRounds = 1500;

// Ping-pong in which each side has a receive and a send to wait for, in any order.
void ping_pong(Channel& channel, const Kind& kind, fi_progress progress, bool first) {
  Node node(options_for(kind, progress));
  const fi_addr_t peer = node.connect(channel);
  std::vector<std::byte> out(64);
  std::vector<std::byte> in(64);
  for (std::uint64_t round = 0; round < kRounds; ++round) {
    const auto send = [&] {
      fill_pattern(out, round);
      check(fi_send(node.ep.get(), out.data(), out.size(), nullptr, peer, nullptr), "fi_send");
    };
    check(fi_recv(node.ep.get(), in.data(), in.size(), nullptr, FI_ADDR_UNSPEC, nullptr),
          "fi_recv");
    if (first) send();
    block_for_completion(node, kind);
    if (!first) send();
    block_for_completion(node, kind);
    require_pattern(in, round, "message");
  }
  channel.meet(&node);
}

class WaitObject : public ::testing::TestWithParam<std::tuple<Kind, fi_progress>> {};

TEST_P(WaitObject, SidesThatOnlyBlockMissNothing) {
  const auto [kind, progress] = GetParam();
  ChannelPair channels;
  Process first("first", {}, [&, kind = kind, progress = progress] {
    ping_pong(channels.left, kind, progress, true);
  });
  Process second("second", {}, [&, kind = kind, progress = progress] {
    ping_pong(channels.right, kind, progress, false);
  });
  EXPECT_EQ(wait_for_all({&first, &second}), "");
}

INSTANTIATE_TEST_SUITE_P(All, WaitObject,
                         ::testing::Combine(::testing::ValuesIn(kKinds),
                                            ::testing::Values(FI_PROGRESS_MANUAL,
                                                              FI_PROGRESS_AUTO)),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param).name) +
                                  (std::get<1>(info.param) == FI_PROGRESS_MANUAL ? "Manual"
                                                                                 : "Auto");
                         });

// ---- everything at once ------------------------------------------------------------------------

constexpr int kNews = 400;

// Messages, writes and user events arrive in turn, each after whatever pause the scheduler makes;
// the waiter blocks on all four objects at once and must see each.
TEST(WaitForSeveral, AQueueACounterAnEqAndAWaitSetMissNothing) {
  ChannelPair channels;
  Process waiter("waiter", {}, [&] {
    NodeOptions options;
    options.wait = FI_WAIT_FD;
    options.counters = true;
    options.threading = FI_THREAD_SAFE;
    Node node(options);
    node.connect(channels.left);
    std::array<std::byte, 8> memory{};
    const Region region = node.expose(memory.data(), memory.size(), 5);
    fi_eq_attr attr{};
    attr.flags = FI_WRITE;
    attr.wait_obj = FI_WAIT_FD;
    fid_eq* eq = nullptr;
    check(fi_eq_open(node.fabric.get(), &attr, &eq, nullptr), "fi_eq_open");
    const Owned<fid_eq> owned_eq(eq);
    fi_wait_attr set_attr{};
    set_attr.wait_obj = FI_WAIT_FD;
    fid_wait* set = nullptr;
    check(node.fabric->ops->wait_open(node.fabric.get(), &set_attr, &set), "fi_wait_open");
    const Owned<fid_wait> owned_set(set);
    fi_cntr_attr counter_attr{};
    counter_attr.wait_obj = FI_WAIT_SET;
    counter_attr.wait_set = set;
    fid_cntr* in_set = nullptr;
    check(fi_cntr_open(node.domain.get(), &counter_attr, &in_set, nullptr), "fi_cntr_open");
    const Owned<fid_cntr> owned_counter(in_set);

    std::vector<std::byte> in(8);
    const auto post = [&] {
      check(fi_recv(node.ep.get(), in.data(), in.size(), nullptr, FI_ADDR_UNSPEC, nullptr),
            "fi_recv");
    };
    for (int i = 0; i < kNews; ++i) post();
    channels.left.send(RemoteRegion{region.address, region.key});
    std::thread writer([&] {
      fi_eq_entry entry{};
      for (int i = 0; i < kNews; ++i) {
        fi_eq_write(eq, FI_NOTIFY, &entry, sizeof entry, 0);
        fi_cntr_add(in_set, 1);
        std::this_thread::yield();
      }
    });
    std::array<struct fid*, 4> fids{&node.cq->fid, &node.remote_writes->fid, &eq->fid, &set->fid};
    std::array<pollfd, 4> fds{};
    for (std::size_t i = 0; i < fids.size(); ++i) fds[i] = {get_fd(fids[i]), POLLIN, 0};
    int messages = 0;
    int events = 0;
    std::uint64_t writes = 0;
    std::uint64_t added = 0;
    std::uint64_t sleeps = 0;
    while (messages < kNews || writes < kNews || events < kNews || added < kNews) {
      fi_cq_tagged_entry completion{};
      while (fi_cq_read(node.cq.get(), &completion, 1) == 1) ++messages;
      writes = fi_cntr_read(node.remote_writes.get());
      added = fi_cntr_read(in_set);
      std::uint32_t number = 0;
      fi_eq_entry entry{};
      while (fi_eq_read(eq, &number, &entry, sizeof entry, 0) > 0) ++events;
      if (messages == kNews && writes == kNews && events == kNews && added == kNews) break;
      const int ready = fi_trywait(node.fabric.get(), fids.data(), fids.size());
      if (ready == -FI_EAGAIN) continue;
      check(ready, "fi_trywait");
      ++sleeps;
      require(::poll(fds.data(), fds.size(), kPatience) >= 1,
              "poll() timed out with " + std::to_string(messages) + " messages, " +
                  std::to_string(writes) + " writes, " + std::to_string(events) + " events, " +
                  std::to_string(added) + " additions");
    }
    writer.join();
    require(sleeps > 0, "the waiter never slept");
    channels.left.meet(&node);
  });
  Process peer("peer", {}, [&] {
    Node node;
    const fi_addr_t to = node.connect(channels.right);
    const auto remote = channels.right.receive<RemoteRegion>(&node);
    std::vector<std::byte> out(8);
    for (int i = 0; i < kNews; ++i) {
      node.post("sending", [&] {
        return fi_send(node.ep.get(), out.data(), out.size(), nullptr, to, nullptr);
      });
      node.next("a send");
      node.post("writing", [&] {
        return fi_write(node.ep.get(), out.data(), out.size(), nullptr, to, remote.address,
                        remote.key, nullptr);
      });
      node.next("a write");
    }
    channels.right.meet(&node);
  });
  EXPECT_EQ(wait_for_all({&waiter, &peer}), "");
}

TEST(WaitForSeveral, FourThreadsInSread_ShareTheCompletions) {
  ChannelPair channels;
  constexpr int kMessages = 2000;
  Process waiter("waiter", {}, [&] {
    NodeOptions options;
    options.wait = FI_WAIT_UNSPEC;
    options.threading = FI_THREAD_SAFE;
    Node node(options);
    node.connect(channels.left);
    std::vector<std::byte> in(8);
    for (int i = 0; i < kMessages; ++i) {
      check(fi_recv(node.ep.get(), in.data(), in.size(), nullptr, FI_ADDR_UNSPEC, nullptr),
            "fi_recv");
    }
    channels.left.send('g');
    std::atomic<int> left = kMessages;
    std::atomic<int> others = 3;  // beside the thread that takes the last completion
    std::atomic<bool> lost = false;
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        while (left > 0) {
          fi_cq_tagged_entry entry{};
          const ssize_t count = fi_cq_sread(node.cq.get(), &entry, 1, nullptr, kPatience);
          if (count == 1 && --left == 0) {
            // No completion is left for the other threads. One may begin its wait after a signal.
            for (; others > 0; std::this_thread::yield()) fi_cq_signal(node.cq.get());
          } else if (count != 1 && left > 0) {
            lost = true;
            break;
          }
        }
        --others;
      });
    }
    for (std::thread& thread : threads) thread.join();
    require(!lost, "a thread timed out while completions were to come");
    channels.left.meet(&node);
  });
  Process peer("peer", {}, [&] {
    Node node;
    const fi_addr_t to = node.connect(channels.right);
    channels.right.receive<char>(&node);
    std::vector<std::byte> out(8);
    for (int i = 0; i < kMessages; ++i) {
      node.post("sending", [&] {
        return fi_send(node.ep.get(), out.data(), out.size(), nullptr, to, nullptr);
      });
      if (i % 50 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    node.drain(kMessages, "sends");
    channels.right.meet(&node);
  });
  EXPECT_EQ(wait_for_all({&waiter, &peer}), "");
}

// ---- one process -------------------------------------------------------------------------------

// Runs `body` in a child, which may call libfabric.
void in_child(const std::function<void()>& body) {
  Process process("child", {}, body);
  EXPECT_EQ(process.wait(), "");
}

std::chrono::milliseconds since(Clock::time_point start) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start);
}

// A node that sends messages to itself.
struct Loop {
  explicit Loop(const NodeOptions& options) : node(options), self(node.insert(node.name())) {}
  void send(int count) {
    for (int i = 0; i < count; ++i) {
      check(fi_recv(node.ep.get(), in.data(), in.size(), nullptr, FI_ADDR_UNSPEC, nullptr),
            "fi_recv");
      check(fi_inject(node.ep.get(), out.data(), out.size(), self), "fi_inject");
    }
  }
  Node node;
  fi_addr_t self;
  std::array<std::byte, 8> out{};
  std::array<std::byte, 8> in{};
};

TEST(Threshold, SreadWaitsForAsManyEntriesAsTheConditionSays) {
  in_child([] {
    NodeOptions options;
    options.wait = FI_WAIT_UNSPEC;
    options.wait_cond = FI_CQ_COND_THRESHOLD;
    options.threading = FI_THREAD_SAFE;
    Loop loop(options);
    std::thread sender([&] {
      for (int i = 0; i < 10; ++i) {
        loop.send(1);
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      }
    });
    std::array<fi_cq_tagged_entry, 16> entries{};
    const auto* wanted = reinterpret_cast<const void*>(std::uintptr_t{10});
    const auto start = Clock::now();
    const ssize_t count =
        fi_cq_sread(loop.node.cq.get(), entries.data(), entries.size(), wanted, kPatience);
    require(since(start) < std::chrono::milliseconds(kPatience), "only the time-out woke it");
    sender.join();
    require(count == 10, "fi_cq_sread returned " + std::to_string(count));
  });
}

TEST(Threshold, ATimeoutReturnsWhatIsThere) {
  in_child([] {
    NodeOptions options;
    options.wait = FI_WAIT_UNSPEC;
    options.wait_cond = FI_CQ_COND_THRESHOLD;
    Loop loop(options);
    loop.send(3);
    std::array<fi_cq_tagged_entry, 16> entries{};
    const auto* wanted = reinterpret_cast<const void*>(std::uintptr_t{10});
    const auto start = Clock::now();
    const ssize_t count =
        fi_cq_sread(loop.node.cq.get(), entries.data(), entries.size(), wanted, 200);
    require(count == 3, "fi_cq_sread returned " + std::to_string(count));
    require(since(start) >= std::chrono::milliseconds(190), "it returned before its time-out");
  });
}

TEST(Counter, OfBytesGrowsByTheLengthOfEachMessage) {
  in_child([] {
    Node node;
    fi_cntr_attr attr{};
    attr.events = static_cast<fi_cntr_events>(1);  // FI_CNTR_EVENTS_BYTES of 1.21
    std::array<Owned<fid_cntr>, 2> counters;
    Owned<fid_ep> ep;
    fid_ep* endpoint = nullptr;
    check(fi_endpoint(node.domain.get(), node.info.get(), &endpoint, nullptr), "fi_endpoint");
    for (Owned<fid_cntr>& counter : counters) {
      fid_cntr* opened = nullptr;
      check(fi_cntr_open(node.domain.get(), &attr, &opened, nullptr), "fi_cntr_open");
      counter.reset(opened);
    }
    ep.reset(endpoint);
    check(fi_ep_bind(endpoint, &counters[0]->fid, FI_SEND), "fi_ep_bind");
    check(fi_ep_bind(endpoint, &counters[1]->fid, FI_RECV), "fi_ep_bind");
    check(fi_ep_bind(endpoint, &node.cq->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
    check(fi_ep_bind(endpoint, &node.av->fid, 0), "fi_ep_bind");
    check(fi_enable(endpoint), "fi_enable");
    std::vector<std::byte> name(256);
    std::size_t size = name.size();
    check(fi_getname(&endpoint->fid, name.data(), &size), "fi_getname");
    const fi_addr_t self = node.insert(std::span(name).first(size));
    std::vector<std::byte> in(20000);
    std::vector<std::byte> out(20000);
    for (const std::size_t bytes : {std::size_t{7}, std::size_t{20000}, std::size_t{0}}) {
      check(fi_recv(endpoint, in.data(), in.size(), nullptr, FI_ADDR_UNSPEC, nullptr), "fi_recv");
      check(fi_send(endpoint, out.data(), bytes, nullptr, self, nullptr), "fi_send");
    }
    node.drain(6, "messages");
    for (const Owned<fid_cntr>& counter : counters) {
      require(fi_cntr_read(counter.get()) == 20007, "not as many bytes as were sent");
    }
  });
}

TEST(Signals, AHandlerEndsAnEndlessSread) {
  in_child([] {
    struct sigaction action {};
    action.sa_handler = [](int) {};
    sigaction(SIGUSR1, &action, nullptr);
    NodeOptions options;
    options.wait = FI_WAIT_UNSPEC;
    Node node(options);
    std::atomic<bool> back = false;
    const pthread_t sleeper = pthread_self();
    std::thread disturber([&] {
      while (!back) {
        pthread_kill(sleeper, SIGUSR1);
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
      }
    });
    fi_cq_tagged_entry entry{};
    const ssize_t count = fi_cq_sread(node.cq.get(), &entry, 1, nullptr, -1);
    back = true;
    disturber.join();
    require(count == -FI_EAGAIN, "fi_cq_sread returned " + std::to_string(count));
  });
}

TEST(SmallQueue, OfOneEntryLosesNothing) {
  in_child([] {
    NodeOptions options;
    options.cq_size = 1;
    Loop loop(options);
    loop.send(500);
    for (int i = 0; i < 500; ++i) loop.node.next("a message");
    require(!loop.node.poll(), "more completions than messages");
  });
}

// How many epoll descriptors of this process watch a UDP socket.
int socket_watchers() {
  int watchers = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fdinfo")) {
    std::ifstream lines(entry.path());
    for (std::string word; lines >> word;) {
      int watched = -1;
      if (word != "tfd:" || !(lines >> watched)) continue;
      int type = 0;
      socklen_t length = sizeof type;
      const bool socket = ::getsockopt(watched, SOL_SOCKET, SO_TYPE, &type, &length) == 0;
      if (socket && type == SOCK_DGRAM) ++watchers;
    }
  }
  return watchers;
}

// If the socket is watched, the kernel reports each packet, which delays the sender.
TEST(Sleep, ItsSocketIsWatchedFromTheFirstTimeOn) {
  for (const char* rings : {"off", "auto"}) {
    Process sleeper("sleeper", {{"FI_UET_LOCAL", rings}}, [] {
      NodeOptions options;
      options.wait = FI_WAIT_UNSPEC;
      Node node(options);
      for (int pass = 0; pass < 1000; ++pass) node.keep_events();
      require(socket_watchers() == 0, "the socket is watched though no thread sleeps");
      // A call whose time is up before it sleeps proves nothing, so that it is made again.
      fi_cq_tagged_entry entry{};
      const Clock::time_point start = Clock::now();
      while (socket_watchers() == 0) {
        require(fi_cq_sread(node.cq.get(), &entry, 1, nullptr, 100) == -FI_EAGAIN, "fi_cq_sread");
        require(since(start) < kDeadline / 2, "the socket is not watched after sleeps");
      }
      for (int i = 0; i < 3; ++i) fi_cq_sread(node.cq.get(), &entry, 1, nullptr, 100);
      require(socket_watchers() == 1, "the socket is watched twice");
    });
    EXPECT_EQ(sleeper.wait(), "") << "FI_UET_LOCAL=" << rings;
  }
}

TEST(WaitSet, ItsMembersMustBeClosedFirst) {
  in_child([] {
    NodeOptions options;
    options.wait = FI_WAIT_SET;
    options.wait_set = FI_WAIT_UNSPEC;
    Node node(options);
    require(fi_close(&node.wait_set->fid) == -FI_EBUSY, "a set with members was closed");
    const auto start = Clock::now();
    require(node.wait_set->ops->wait(node.wait_set.get(), 100) == -FI_ETIMEDOUT, "no time-out");
    require(since(start) >= std::chrono::milliseconds(95), "it returned before its time-out");
  });
}

TEST(WaitSet, SpansSeveralDomains) {
  in_child([] {
    NodeOptions options;
    options.wait_set = FI_WAIT_UNSPEC;
    Node node(options);  // its own queue stays outside
    fid_wait* set = node.wait_set.get();
    struct Part {
      Owned<fid_domain> domain;
      Owned<fid_cntr> counter;
    };
    std::array<Part, 2> parts;
    for (Part& part : parts) {
      fid_domain* domain = nullptr;
      check(fi_domain(node.fabric.get(), node.info.get(), &domain, nullptr), "fi_domain");
      part.domain.reset(domain);
      fi_cntr_attr attr{};
      attr.wait_obj = FI_WAIT_SET;
      attr.wait_set = set;
      fid_cntr* counter = nullptr;
      check(fi_cntr_open(domain, &attr, &counter, nullptr), "fi_cntr_open");
      part.counter.reset(counter);
    }
    for (Part& part : parts) {
      std::thread adder([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        fi_cntr_add(part.counter.get(), 1);
      });
      const int result = set->ops->wait(set, kPatience);
      adder.join();
      check(result, "fi_wait");
      require(fi_cntr_read(part.counter.get()) == 1, "woken, but not by the counter");
    }
    require(set->ops->wait(set, 50) == -FI_ETIMEDOUT, "woken by old news");
  });
}

TEST(PollSet, TellsWhichQueuesAndCountersHaveNews) {
  in_child([] {
    NodeOptions options;
    options.counters = true;
    Loop loop(options);
    Node& node = loop.node;
    node.cq->fid.context = &node.cq;
    node.received->fid.context = &node.received;
    fi_poll_attr attr{};
    fid_poll* set = nullptr;
    check(node.domain->ops->poll_open(node.domain.get(), &attr, &set), "fi_poll_open");
    check(set->ops->poll_add(set, &node.cq->fid, 0), "fi_poll_add");
    check(set->ops->poll_add(set, &node.received->fid, 0), "fi_poll_add");
    require(set->ops->poll_add(set, &node.av->fid, 0) == -FI_EINVAL, "an AV was added");
    require(fi_close(&set->fid) == -FI_EBUSY, "a set with members was closed");
    require(fi_close(&node.received->fid) == -FI_EBUSY, "a member was closed");
    std::array<void*, 4> contexts{};
    const auto poll = [&](int room) { return set->ops->poll(set, contexts.data(), room); };
    require(poll(4) == 0, "news out of nothing");
    loop.send(1);
    bool queue = false;
    bool counter = false;
    const auto start = Clock::now();
    while ((!queue || !counter) && since(start) < kDeadline) {
      const int count = poll(4);
      for (int i = 0; i < count; ++i) {
        queue |= contexts[static_cast<std::size_t>(i)] == &node.cq;
        counter |= contexts[static_cast<std::size_t>(i)] == &node.received;
      }
    }
    require(queue && counter, "no news of the message");
    require(poll(4) == 1 && contexts[0] == &node.cq, "the queue is not empty, the counter at rest");
    require(poll(0) == 0, "more contexts than the array holds");
    check(fi_cntr_add(node.received.get(), 5), "fi_cntr_add");
    require(poll(4) == 1, "the application's own addition counts as news");
    check(set->ops->poll_del(set, &node.cq->fid, 0), "fi_poll_del");
    require(set->ops->poll_del(set, &node.cq->fid, 0) == -FI_EINVAL, "removed twice");
    require(poll(4) == 0, "a queue that was taken out has news");
    check(set->ops->poll_del(set, &node.received->fid, 0), "fi_poll_del");
    check(fi_close(&set->fid), "fi_close");
  });
}

// ---- event queues ------------------------------------------------------------------------------

class EqWaitObject : public ::testing::TestWithParam<Kind> {};

TEST_P(EqWaitObject, EachEventWakesTheReader) {
  const Kind kind = GetParam();
  in_child([kind] {
    NodeOptions options;
    options.wait_set = kind.set;
    Node node(options);
    fi_eq_attr attr{};
    attr.flags = FI_WRITE;
    attr.wait_obj = kind.object;
    attr.wait_set = node.wait_set.get();
    fid_eq* eq = nullptr;
    check(fi_eq_open(node.fabric.get(), &attr, &eq, nullptr), "fi_eq_open");
    const Owned<fid_eq> owned(eq);
    constexpr std::uint64_t kEvents = 300;
    std::thread writer([&] {
      for (std::uint64_t i = 0; i < kEvents; ++i) {
        fi_eq_entry entry{nullptr, nullptr, i};
        fi_eq_write(eq, FI_NOTIFY, &entry, sizeof entry, 0);
        if (i % 3 == 0) std::this_thread::sleep_for(std::chrono::microseconds(200));
      }
    });
    for (std::uint64_t i = 0; i < kEvents;) {
      fi_eq_entry entry{};
      std::uint32_t number = 0;
      ssize_t size = 0;
      if (kind.object == FI_WAIT_UNSPEC || kind.object == FI_WAIT_YIELD) {
        size = fi_eq_sread(eq, &number, &entry, sizeof entry, kPatience, 0);
        require(size != -FI_EAGAIN, "fi_eq_sread timed out");
      } else {
        size = fi_eq_read(eq, &number, &entry, sizeof entry, 0);
      }
      if (size > 0) {
        require(entry.data == i++, "an event out of order");
        continue;
      }
      require(size == -FI_EAGAIN, "fi_eq_read returned " + std::to_string(size));
      const bool set = kind.object == FI_WAIT_SET;
      if (set && !has_object(kind.set)) {
        check(node.wait_set->ops->wait(node.wait_set.get(), kPatience), "fi_wait");
        continue;
      }
      Blocker blocker{node.fabric.get(), set ? &node.wait_set->fid : &eq->fid,
                      set ? kind.set : kind.object};
      block(blocker);
    }
    writer.join();
  });
}

INSTANTIATE_TEST_SUITE_P(All, EqWaitObject, ::testing::ValuesIn(kKinds),
                         [](const auto& info) { return std::string(info.param.name); });

// The target does nothing but read its EQ, in the way that the parameter says.
class EqProgress : public ::testing::TestWithParam<bool> {};

TEST_P(EqProgress, ReadingTheEqServesThePeersWrites) {
  const bool blocking = GetParam();
  ChannelPair channels;
  Process target("target", {}, [&, blocking] {
    Node node;
    fi_eq_attr attr{};
    attr.wait_obj = FI_WAIT_UNSPEC;
    fid_eq* eq = nullptr;
    check(fi_eq_open(node.fabric.get(), &attr, &eq, nullptr), "fi_eq_open");
    check(fi_domain_bind(node.domain.get(), &eq->fid, 0), "fi_domain_bind");
    require(fi_close(&eq->fid) == -FI_EBUSY, "an EQ that is bound was closed");
    node.connect(channels.left);
    std::vector<std::byte> memory(300000);
    Region region = node.expose(memory.data(), memory.size(), 5);
    channels.left.send(RemoteRegion{region.address, region.key});
    while (!channels.left.readable()) {
      std::uint32_t number = 0;
      fi_eq_entry entry{};
      const ssize_t size = blocking ? fi_eq_sread(eq, &number, &entry, sizeof entry, 100, 0)
                                    : fi_eq_read(eq, &number, &entry, sizeof entry, 0);
      require(size == -FI_EAGAIN, "reading the EQ returned " + std::to_string(size));
    }
    channels.left.receive<char>();
    require_pattern(memory, 7, "written memory");
    channels.left.meet(&node);
    region.mr.reset();
    node.ep.reset();
    node.cq.reset();
    node.av.reset();
    node.domain.reset();
    check(fi_close(&eq->fid), "closing the EQ after the domain");
  });
  Process initiator("initiator", {}, [&] {
    Node node;
    const fi_addr_t to = node.connect(channels.right);
    const auto remote = channels.right.receive<RemoteRegion>(&node);
    std::vector<std::byte> out(300000);
    fill_pattern(out, 7);
    node.post("writing", [&] {
      return fi_write(node.ep.get(), out.data(), out.size(), nullptr, to, remote.address,
                      remote.key, nullptr);
    });
    node.next("a write");
    channels.right.send('d');
    channels.right.meet(&node);
  });
  EXPECT_EQ(wait_for_all({&target, &initiator}), "");
}

INSTANTIATE_TEST_SUITE_P(All, EqProgress, ::testing::Bool(), [](const auto& info) {
  return std::string(info.param ? "Sread" : "Read");
});

}  // namespace
}  // namespace uet::e2e
