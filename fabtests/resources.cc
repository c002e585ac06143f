// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// FI_RM_ENABLED, fi_domain(3): full queues say -FI_EAGAIN and recover, nothing overruns, and a
// receiver that does not receive stops its senders instead of losing messages.
#include "common.h"

using namespace fabtests;

namespace {

// More sends than the transmit queue holds while the receiver waits: -FI_EAGAIN, later all arrive.
void transmit_queue_full(Link& link) {
  Setup setup;
  setup.hints = [](fi_info& hints) {
    hints.tx_attr->size = 8;
    hints.tx_attr->msg_order = FI_ORDER_SAS;
    hints.rx_attr->msg_order = FI_ORDER_SAS;
  };
  Node node(link, setup);
  node.connect();
  constexpr std::size_t kBytes = 200'000;
  constexpr int kMessages = 300;
  Bytes buffer = pattern(kBytes, 1);
  if (!link.server()) {
    int posted = 0;
    ssize_t result = 0;
    // The receiver posts nothing yet, so the queue must fill up.
    while (posted < kMessages && result == 0) {
      result = fi_send(node.ep, buffer.data(), kBytes, nullptr, node.peer, nullptr);
      posted += result == 0 ? 1 : 0;
    }
    CHECK(result == -FI_EAGAIN);
    node.meet();
    while (posted < kMessages) {
      POST(node, fi_send(node.ep, buffer.data(), kBytes, nullptr, node.peer, nullptr));
      ++posted;
      node.completion(node.tx);
    }
  } else {
    node.meet();
    for (int i = 0; i < kMessages; ++i) {
      buffer.assign(kBytes, std::byte{0});
      POST(node, fi_recv(node.ep, buffer.data(), kBytes, nullptr, node.peer, nullptr));
      node.completion(node.rx);
      CHECK(same(buffer, 1));
    }
  }
  node.meet();
}

// More receives than the receive queue holds.
void receive_queue_full(Link& link) {
  Setup setup;
  setup.hints = [](fi_info& hints) { hints.rx_attr->size = 8; };
  Node node(link, setup);
  node.connect();
  int value = 3;
  if (link.server()) {
    int posted = 0;
    ssize_t result = 0;
    while (posted < 1'000'000 && result == 0) {
      result = fi_recv(node.ep, &value, sizeof value, nullptr, node.peer, nullptr);
      posted += result == 0 ? 1 : 0;
    }
    CHECK(result == -FI_EAGAIN);
    CHECK(posted >= 8);
    link.send_value(posted);
    for (int i = 0; i < posted; ++i) node.completion(node.rx);
    OK(fi_recv(node.ep, &value, sizeof value, nullptr, node.peer, nullptr));
    node.completion(node.rx);
  } else {
    const int posted = link.receive_value<int>(&node);
    for (int i = 0; i <= posted; ++i) {
      POST(node, fi_inject(node.ep, &value, sizeof value, node.peer));
    }
  }
  node.meet();
}

// Thousands of messages for which nothing is posted: they wait at the target or at their sender,
// and other traffic of the same peers goes on.
void unexpected_flood(Link& link) {
  Node node(link);
  node.connect();
  constexpr std::uint64_t kMessages = 5000;
  std::uint64_t value = 0;
  if (!link.server()) {
    std::uint64_t sent = 0;
    // Half of them before the receiver begins, or as many as it accepts.
    for (; sent < kMessages / 2; ++sent) {
      if (fi_tinject(node.ep, &sent, sizeof sent, node.peer, sent) != 0) break;
    }
    link.send_value('b');
    for (; sent < kMessages; ++sent) {
      POST(node, fi_tinject(node.ep, &sent, sizeof sent, node.peer, sent));
    }
  } else {
    link.receive_value<char>();  // makes no progress meanwhile
    for (std::uint64_t i = 0; i < kMessages; ++i) {
      POST(node, fi_trecv(node.ep, &value, sizeof value, nullptr, node.peer, i, 0, nullptr));
      node.completion(node.rx);
      CHECK(value == i);
    }
  }
  node.meet();
}

// A completion queue of one entry serves both directions of many operations.
void queue_of_one(Link& link) {
  Setup setup;
  setup.cq.size = 1;
  setup.one_cq = true;
  Node node(link, setup);
  node.connect();
  constexpr int kMessages = 500;
  std::vector<int> values(kMessages);
  int completed = 0;
  for (int i = 0; i < kMessages; ++i) {
    const auto post = [&](auto call) {
      // Reading the queue frees entries.
      for (ssize_t result; (result = call()) != 0;) {
        CHECK(result == -FI_EAGAIN);
        fi_cq_tagged_entry entry{};
        if (fi_cq_read(node.tx, &entry, 1) == 1) ++completed;
      }
    };
    int& value = values[static_cast<std::size_t>(i)];
    post([&] { return fi_recv(node.ep, &value, sizeof value, nullptr, node.peer, nullptr); });
    post([&] { return fi_send(node.ep, &i, sizeof i, nullptr, node.peer, nullptr); });
    // `i` changes only when its message has left: both completions of this round are read.
    while (completed < 2 * (i + 1)) {
      node.completion(node.tx);
      ++completed;
    }
    CHECK(value == i);
  }
  node.meet();
}

constexpr Case kCases[] = {
    {"transmit_queue_full", transmit_queue_full},
    {"receive_queue_full", receive_queue_full},
    {"unexpected_flood", unexpected_flood},
    {"queue_of_one", queue_of_one},
};

}  // namespace

int main(int argc, char** argv) { return run_cases(argc, argv, kCases); }
