// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Opening and closing a thousand times leaves nothing behind, and fork() after fi_domain leaves the
// parent working while the child can neither disturb it nor crash.
#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "harness.h"

namespace uet::e2e {
namespace {

std::size_t entries_of(const char* directory) {
  const std::filesystem::directory_iterator entries(directory);
  return static_cast<std::size_t>(std::distance(begin(entries), end(entries)));
}

// Without the pages of programs and libraries, which the kernel takes away and brings back as it
// likes, and without what malloc() keeps for later: a domain's pools, or nothing, as it happens.
std::size_t resident_bytes() {
  ::malloc_trim(0);
  std::ifstream file("/proc/self/status");
  std::size_t kilobytes = 0;
  for (std::string line; std::getline(file, line);) {
    const bool own = line.starts_with("RssAnon:") || line.starts_with("RssShmem:");
    if (own) kilobytes += std::stoul(line.substr(line.find(':') + 1));
  }
  return kilobytes * 1024;
}

void open_and_close(fi_progress progress, bool talk) {
  NodeOptions options;
  options.progress = progress;
  options.wait = FI_WAIT_FD;
  options.counters = true;
  Node node(options);
  std::vector<std::byte> memory(4096);
  const Region region = node.expose(memory.data(), memory.size(), 3);
  const fi_addr_t self = node.insert(node.name());
  if (!talk) return;
  // Open PDCs and pending receives must not outlive the endpoint either.
  std::vector<std::byte> data(100);
  node.post("sending", [&] {
    return fi_tsend(node.ep.get(), data.data(), data.size(), nullptr, self, 1, nullptr);
  });
  node.post("posting a receive", [&] {
    return fi_trecv(node.ep.get(), memory.data(), memory.size(), nullptr, FI_ADDR_UNSPEC, 1, 0,
                    nullptr);
  });
  node.drain(2, "a message to ourselves");
  node.post("posting a receive", [&] {
    return fi_trecv(node.ep.get(), memory.data(), memory.size(), nullptr, FI_ADDR_UNSPEC, 2, 0,
                    nullptr);
  });
}

class OpenAndClose : public ::testing::TestWithParam<std::tuple<fi_progress, bool>> {};

TEST_P(OpenAndClose, ManyTimesLeavesNoDescriptorThreadOrMemory) {
  const auto [progress, talk] = GetParam();
  Process process("opener", {}, [progress = progress, talk = talk] {
    constexpr int kRounds = 250;  // times four cases: a thousand
    for (int i = 0; i < 10; ++i) open_and_close(progress, talk);
    const std::size_t descriptors = entries_of("/proc/self/fd");
    const std::size_t threads = entries_of("/proc/self/task");
    const std::size_t memory = resident_bytes();
    for (int i = 0; i < kRounds; ++i) open_and_close(progress, talk);
    require(entries_of("/proc/self/fd") == descriptors,
            std::to_string(entries_of("/proc/self/fd")) + " descriptors, before " +
                std::to_string(descriptors));
    require(entries_of("/proc/self/task") == threads, "threads are left");
    const std::size_t grown = resident_bytes() - std::min(memory, resident_bytes());
    require(built_with_sanitizer() || grown < 8U << 20,
            std::to_string(grown) + " bytes more than before");
  });
  EXPECT_EQ(process.wait(), "");
}

INSTANTIATE_TEST_SUITE_P(All, OpenAndClose,
                         ::testing::Combine(::testing::Values(FI_PROGRESS_MANUAL, FI_PROGRESS_AUTO),
                                            ::testing::Bool()),
                         [](const auto& info) {
                           const bool manual = std::get<0>(info.param) == FI_PROGRESS_MANUAL;
                           return std::string(manual ? "Manual" : "Auto") +
                                  (std::get<1>(info.param) ? "WithTraffic" : "Idle");
                         });

// Decision 012: a thread would compete with the application, and bring a lock to FI_THREAD_DOMAIN.
TEST(OpenAndClose, AManualDomainHasNoThreadWhateverItExchanges) {
  ChannelPair pair;
  const auto run = [](Channel& channel) {
    const std::size_t threads = entries_of("/proc/self/task");
    Node node;
    const fi_addr_t peer = node.connect(channel);
    std::byte in{};
    const std::byte out{};
    for (std::uint64_t tag = 0; tag < 200; ++tag) {
      node.post("receiving",
                [&] { return fi_trecv(node.ep.get(), &in, 1, nullptr, peer, tag, 0, nullptr); });
      node.post("sending",
                [&] { return fi_tsend(node.ep.get(), &out, 1, nullptr, peer, tag, nullptr); });
      node.drain(2, "a message each way");
    }
    require(entries_of("/proc/self/task") == threads, "it has started a thread");
    channel.meet(&node);
  };
  Process left("left", {}, [&] { run(pair.left); });
  Process right("right", {}, [&] { run(pair.right); });
  EXPECT_EQ(wait_for_all({&left, &right}), "");
}

// Decision 024: the receiver makes no call after the one that reports the message.
TEST(OpenAndClose, ASendCompletesWhileTheReceiverComputes) {
  ChannelPair pair;
  std::byte byte{};
  Process sender("sender", {}, [&] {
    Node node;
    const fi_addr_t peer = node.connect(pair.left);
    for (std::uint64_t tag = 0; tag < 50; ++tag) {
      node.post("sending",
                [&] { return fi_tsend(node.ep.get(), &byte, 1, nullptr, peer, tag, nullptr); });
      node.next("the end of a send");
      pair.left.send('c');
    }
    pair.left.meet(&node);
  });
  Process receiver("receiver", {}, [&] {
    Node node;
    const fi_addr_t peer = node.connect(pair.right);
    for (std::uint64_t tag = 0; tag < 50; ++tag) {
      node.post("receiving",
                [&] { return fi_trecv(node.ep.get(), &byte, 1, nullptr, peer, tag, 0, nullptr); });
      node.next("a message");
      pair.right.receive<char>();  // blocks, without progress
    }
    pair.right.meet(&node);
  });
  EXPECT_EQ(wait_for_all({&sender, &receiver}), "");
}

TEST(OpenAndClose, FabricDomainAndQueuesInUse_RefuseToClose) {
  Process process("opener", {}, [] {
    Node node;
    require(fi_close(&node.fabric->fid) == -FI_EBUSY, "the fabric closed under its domain");
    require(fi_close(&node.domain->fid) == -FI_EBUSY, "the domain closed under its objects");
    require(fi_close(&node.cq->fid) == -FI_EBUSY, "the CQ closed under its endpoint");
    require(fi_close(&node.av->fid) == -FI_EBUSY, "the AV closed under its endpoint");
  });
  EXPECT_EQ(process.wait(), "");
}

// ---- an endpoint with work
// -----------------------------------------------------------------------

constexpr std::size_t kShared = 1 << 20;  // bytes of the target that both endpoints write to
constexpr std::uint64_t kOwnMessages = 8;
constexpr std::size_t kOwnBytes = 20000;

// A second endpoint of the node's domain, with a queue of its own.
struct SecondEndpoint {
  explicit SecondEndpoint(Node& node) {
    fi_cq_attr attr{};
    attr.format = FI_CQ_FORMAT_TAGGED;
    fid_cq* cq_fid = nullptr;
    check(fi_cq_open(node.domain.get(), &attr, &cq_fid, nullptr), "fi_cq_open");
    cq.reset(cq_fid);
    fid_ep* ep_fid = nullptr;
    check(fi_endpoint(node.domain.get(), node.info.get(), &ep_fid, nullptr), "fi_endpoint");
    ep.reset(ep_fid);
    check(fi_ep_bind(ep_fid, &node.av->fid, 0), "bind AV");
    check(fi_ep_bind(ep_fid, &cq->fid, FI_TRANSMIT | FI_RECV), "bind CQ");
    check(fi_enable(ep_fid), "fi_enable");
  }
  Owned<fid_cq> cq;
  Owned<fid_ep> ep;
};

// The target makes no call while the second endpoint posts operations and closes, and its memory is
// unmapped: none of them can have ended.
void close_with_work(Channel& channel, std::uint64_t order) {
  NodeOptions options;
  options.order = order;
  Node node(options);
  const fi_addr_t peer = node.connect(channel);
  const auto remote = channel.receive<RemoteRegion>(&node);
  std::vector<std::vector<std::byte>> own(kOwnMessages, std::vector<std::byte>(kOwnBytes));
  {
    SecondEndpoint second(node);
    void* const mapped =
        ::mmap(nullptr, kShared, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    require(mapped != MAP_FAILED, "mmap");
    std::byte* const memory = static_cast<std::byte*>(mapped);
    fid_ep* const ep = second.ep.get();
    channel.meet(&node);
    for (std::uint64_t i = 0; i < 4; ++i) {
      node.post("sending", [&] {
        return fi_tsend(ep, memory + i * 1000, 100000, nullptr, peer, 1000 + i, nullptr);
      });
      node.post("sending", [&] { return fi_tsend(ep, memory, 64, nullptr, peer, 1000, nullptr); });
      node.post("writing", [&] {
        return fi_write(ep, memory, 50000, nullptr, peer, remote.address, remote.key, nullptr);
      });
      node.post("reading", [&] {
        return fi_read(ep, memory, 50000, nullptr, peer, remote.address, remote.key, nullptr);
      });
    }
    for (std::uint64_t tag = 0; tag < kOwnMessages; ++tag) {
      fill_pattern(own[tag], tag);
      node.post("sending", [&, tag] {
        return fi_tsend(node.ep.get(), own[tag].data(), kOwnBytes, nullptr, peer, tag, nullptr);
      });
    }
    const Clock::time_point start = Clock::now();
    second.ep.reset();
    require(Clock::now() - start > std::chrono::milliseconds(100), "fi_close waited for nothing");
    require(::munmap(mapped, kShared) == 0, "munmap");
  }
  channel.send('g');
  node.drain(kOwnMessages, "sends of the endpoint that stays");
  require(node.counter("pds_pdcs_failed") == 0, "a PDC has failed");
  node.write_and_read_back(peer, remote, kOwnBytes, 2);
  channel.meet(&node);
}

void be_their_target(Channel& channel, std::uint64_t order) {
  NodeOptions options;
  options.order = order;
  Node node(options);
  node.connect(channel);
  std::vector<std::byte> shared(kShared);
  const Region region = node.expose(shared.data(), shared.size(), 3);
  std::vector<std::vector<std::byte>> in(kOwnMessages, std::vector<std::byte>(kOwnBytes));
  for (std::uint64_t tag = 0; tag < kOwnMessages; ++tag) {
    node.post("posting a receive", [&, tag] {
      return fi_trecv(node.ep.get(), in[tag].data(), kOwnBytes, nullptr, FI_ADDR_UNSPEC, tag, 0,
                      nullptr);
    });
  }
  channel.send(RemoteRegion{region.address, region.key});
  channel.meet(&node);
  channel.receive<char>();  // without progress
  node.drain(kOwnMessages, "messages of the endpoint that stays");
  for (std::uint64_t tag = 0; tag < kOwnMessages; ++tag) require_pattern(in[tag], tag, "message");
  channel.meet(&node);
}

class EndpointWithWork : public ::testing::TestWithParam<std::tuple<bool, bool>> {};

TEST_P(EndpointWithWork, Ses165_ClosesWithoutHarmToOthers) {
  const bool ordered = std::get<0>(GetParam());
  const std::uint64_t order = ordered ? FI_ORDER_SAS : 0;
  Environment environment;
  if (std::get<1>(GetParam())) environment["FI_UET_FAULTS"] = "loss=5%,dup=3%,reorder=5%,seed=11";
  ChannelPair pair;
  Process sender("sender", environment, [&] { close_with_work(pair.left, order); });
  Process target("target", environment, [&] { be_their_target(pair.right, order); });
  EXPECT_EQ(wait_for_all({&sender, &target}), "");
}

INSTANTIATE_TEST_SUITE_P(All, EndpointWithWork,
                         ::testing::Combine(::testing::Bool(), ::testing::Bool()),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param) ? "Ordered" : "Unordered") +
                                  (std::get<1>(info.param) ? "WithFaults" : "");
                         });

// ---- endpoints that close while packets are missing ---------------------------------------------

constexpr std::uint64_t kWords = 8;

void say_words(Channel& channel) {
  Node node;
  const fi_addr_t peer = node.connect(channel);
  channel.meet(&node);
  for (std::uint64_t word = 0; word < kWords; ++word) {
    node.post("sending", [&] {
      return fi_tsend(node.ep.get(), &word, sizeof(word), nullptr, peer, word, nullptr);
    });
  }
  node.drain(kWords, "sends to an endpoint that closes after the last one");
  channel.meet(&node);
}

void close_after_the_last_word(Channel& channel) {
  Node node;
  node.connect(channel);
  std::uint64_t heard = 0;
  node.post("posting a receive", [&] {
    return fi_trecv(node.ep.get(), &heard, sizeof(heard), nullptr, FI_ADDR_UNSPEC, kWords - 1, 0,
                    nullptr);
  });
  channel.meet(&node);
  node.next("the last word");
  node.ep.reset();
  channel.meet(&node);
}

// Sends are not ordered: the last one may come while one before it must be sent again.
TEST(EndpointThatCloses, Pds235_WaitsForPacketsThatAreMissing) {
  for (int seed = 1; seed <= 10; ++seed) {
    ChannelPair pair;
    const std::string faults = "loss=20%,seed=" + std::to_string(seed);
    Process sender("sender", {}, [&] { say_words(pair.left); });
    Process target("target", {{"FI_UET_FAULTS", faults}, {"FI_UET_LOCAL", "off"}},
                   [&] { close_after_the_last_word(pair.right); });
    EXPECT_EQ(wait_for_all({&sender, &target}), "") << faults;
  }
}

// ---- fork --------------------------------------------------------------------------------------

constexpr std::size_t kBytes = 100000;

void send_checked(Node& node, fi_addr_t peer, std::uint64_t tag) {
  std::vector<std::byte> data(kBytes);
  fill_pattern(data, tag);
  node.post("sending", [&] {
    return fi_tsend(node.ep.get(), data.data(), data.size(), nullptr, peer, tag, nullptr);
  });
  node.next("a send");
}

void receive_checked(Node& node, std::uint64_t tag) {
  std::vector<std::byte> data(kBytes);
  node.post("posting a receive", [&] {
    return fi_trecv(node.ep.get(), data.data(), data.size(), nullptr, FI_ADDR_UNSPEC, tag, 0,
                    nullptr);
  });
  node.next("a receive");
  require_pattern(data, tag, "message");
}

// In the child of a fork the domain is dead: calls are refused, closing is allowed.
[[noreturn]] void be_the_child(Node& node, fi_addr_t peer) {
  ::alarm(20);
  char byte = 'x';
  fi_cq_tagged_entry entry{};
  if (fi_tsend(node.ep.get(), &byte, 1, nullptr, peer, 77, nullptr) >= 0) ::_exit(2);
  if (fi_cq_read(node.cq.get(), &entry, 1) >= 0) ::_exit(3);
  if (fi_close(&node.ep.release()->fid) != 0) ::_exit(4);
  if (fi_close(&node.cq.release()->fid) != 0) ::_exit(5);
  if (fi_close(&node.av.release()->fid) != 0) ::_exit(6);
  if (fi_close(&node.domain.release()->fid) != 0) ::_exit(7);
  if (fi_close(&node.fabric.release()->fid) != 0) ::_exit(8);
  ::_exit(0);
}

void fork_in_the_middle(fi_progress progress, Channel& channel) {
  NodeOptions options;
  options.progress = progress;
  Node node(options);
  const fi_addr_t peer = node.connect(channel);
  send_checked(node, peer, 1);

  const pid_t child = ::fork();
  require(child >= 0, "fork");
  if (child == 0) be_the_child(node, peer);
  // Both while the child lives and after it has ended.
  send_checked(node, peer, 2);
  receive_checked(node, 3);
  int status = 0;
  require(::waitpid(child, &status, 0) == child, "waitpid");
  require(WIFEXITED(status), "the forked child died by signal " + std::to_string(WTERMSIG(status)));
  require(WEXITSTATUS(status) == 0,
          "the forked child failed at step " + std::to_string(WEXITSTATUS(status)));
  send_checked(node, peer, 4);
  channel.meet(&node);
}

void answer(Channel& channel) {
  Node node;
  const fi_addr_t peer = node.connect(channel);
  receive_checked(node, 1);
  receive_checked(node, 2);
  send_checked(node, peer, 3);
  receive_checked(node, 4);
  channel.meet(&node);
}

class Fork : public ::testing::TestWithParam<fi_progress> {};

TEST_P(Fork, AfterOpeningLeavesTheParentWorking) {
  if (provider() != "uet") GTEST_SKIP() << "other providers promise nothing about fork";
  const fi_progress progress = GetParam();
  ChannelPair channels;
  Process peer("peer", {}, [&] { answer(channels.left); });
  Process forker("forker", {}, [&, progress] { fork_in_the_middle(progress, channels.right); });
  EXPECT_EQ(wait_for_all({&peer, &forker}), "");
}

INSTANTIATE_TEST_SUITE_P(Progress, Fork, ::testing::Values(FI_PROGRESS_MANUAL, FI_PROGRESS_AUTO),
                         [](const auto& info) {
                           return std::string(info.param == FI_PROGRESS_MANUAL ? "Manual" : "Auto");
                         });

}  // namespace
}  // namespace uet::e2e
