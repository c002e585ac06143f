// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// FI_THREAD_SAFE: many threads use one endpoint and its queues. FI_PROGRESS_AUTO: the provider
// serves its peers while the application is busy with something else.
#include <array>
#include <atomic>
#include <thread>

#include "common.h"

using namespace fabtests;

namespace {

constexpr int kThreads = 4;
constexpr int kRounds = 200;

// Each thread echoes messages of its own tag; completions go to the thread that reads them.
void one_endpoint(Link& link) {
  Setup setup;
  setup.hints = [](fi_info& hints) { hints.domain_attr->threading = FI_THREAD_SAFE; };
  Node node(link, setup);
  node.connect();
  std::array<std::atomic<int>, kThreads> sent{};
  std::array<std::atomic<int>, kThreads> received{};
  const auto wait_for = [&](fid_cq* queue, std::atomic<int>& mine, int target) {
    const Clock::time_point end = Clock::now() + kPatience;
    while (mine.load() < target) {
      fi_cq_tagged_entry entry{};
      const ssize_t result = fi_cq_read(queue, &entry, 1);
      CHECK(result == 1 || result == -FI_EAGAIN);
      if (result == 1) ++*static_cast<std::atomic<int>*>(entry.op_context);
      CHECK(Clock::now() < end);
    }
  };
  const auto work = [&](int thread) {
    const auto tag = static_cast<std::uint64_t>(thread);
    std::atomic<int>& my_sends = sent[tag];
    std::atomic<int>& my_receives = received[tag];
    Bytes buffer(5000);
    for (int round = 0; round < kRounds; ++round) {
      const std::uint64_t seed = tag * 1000 + static_cast<std::uint64_t>(round);
      if (!link.server()) {
        buffer = pattern(5000, seed);
        POST(node, fi_tsend(node.ep, buffer.data(), 5000, nullptr, node.peer, tag, &my_sends));
        wait_for(node.tx, my_sends, round + 1);
        buffer.assign(5000, std::byte{0});
      }
      POST(node, fi_trecv(node.ep, buffer.data(), 5000, nullptr, node.peer, tag, 0, &my_receives));
      wait_for(node.rx, my_receives, round + 1);
      CHECK(same(buffer, seed));
      if (link.server()) {
        POST(node, fi_tsend(node.ep, buffer.data(), 5000, nullptr, node.peer, tag, &my_sends));
        wait_for(node.tx, my_sends, round + 1);
      }
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back(work, i);
  for (std::thread& thread : threads) thread.join();
  node.meet();
}

// The server calls nothing while the client writes into its memory, reads it back and sends.
void automatic_progress(Link& link) {
  Setup setup;
  setup.hints = [](fi_info& hints) {
    hints.domain_attr->data_progress = FI_PROGRESS_AUTO;
    hints.domain_attr->control_progress = FI_PROGRESS_AUTO;
  };
  Node node(link, setup);
  node.connect();
  Bytes memory(100'000);
  if (link.server()) {
    const Region region(node, memory, FI_REMOTE_READ | FI_REMOTE_WRITE, 1);
    Bytes buffer(100'000);
    POST(node, fi_recv(node.ep, buffer.data(), buffer.size(), nullptr, node.peer, nullptr));
    link.send_value(region.remote);
    link.receive_value<char>();  // sleeps until the client has done everything
    CHECK(same(memory, 1));
    fi_cq_tagged_entry entry{};
    RETURNS(1, fi_cq_read(node.rx, &entry, 1));
    CHECK(same(buffer, 2));
  } else {
    const Remote there = link.receive_value<Remote>(&node);
    memory = pattern(100'000, 1);
    POST(node, fi_write(node.ep, memory.data(), memory.size(), nullptr, node.peer, there.address,
                        there.key, nullptr));
    node.completion(node.tx);
    Bytes back(100'000);
    POST(node, fi_read(node.ep, back.data(), back.size(), nullptr, node.peer, there.address,
                       there.key, nullptr));
    node.completion(node.tx);
    CHECK(same(back, 1));
    back = pattern(100'000, 2);
    POST(node, fi_send(node.ep, back.data(), back.size(), nullptr, node.peer, nullptr));
    node.completion(node.tx);
    link.send_value('d');
  }
  link.meet();
}

constexpr Case kCases[] = {{"one_endpoint", one_endpoint},
                           {"automatic_progress", automatic_progress}};

}  // namespace

int main(int argc, char** argv) { return run_cases(argc, argv, kCases); }
