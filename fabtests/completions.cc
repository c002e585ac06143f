// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What a completion means, fi_cq(3) and fi_endpoint(3): the levels inject, transmit and delivery;
// FI_FENCE; and the orders that an application may ask for.
#include <array>
#include <atomic>

#include "common.h"

using namespace fabtests;

namespace {

constexpr std::size_t kBytes = 300'000;
constexpr std::uint64_t kLevels[] = {0, FI_INJECT_COMPLETE, FI_TRANSMIT_COMPLETE,
                                     FI_DELIVERY_COMPLETE};

fi_msg_rma write_message(const iovec& piece, const fi_rma_iov& target, fi_addr_t peer) {
  fi_msg_rma message{};
  message.msg_iov = &piece;
  message.iov_count = 1;
  message.addr = peer;
  message.rma_iov = &target;
  message.rma_iov_count = 1;
  return message;
}

// Each level as a flag of the call: one completion, and the message arrives whole.
void levels(Link& link) {
  Node node(link);
  node.connect();
  Bytes buffer(kBytes);
  for (const std::uint64_t level : kLevels) {
    if (link.server()) {
      POST(node, fi_recv(node.ep, buffer.data(), kBytes, nullptr, node.peer, nullptr));
      node.completion(node.rx);
      CHECK(same(buffer, level));
      buffer.assign(kBytes, std::byte{0});
    } else {
      buffer = pattern(kBytes, level);
      const iovec piece{buffer.data(), kBytes};
      fi_msg message{};
      message.msg_iov = &piece;
      message.iov_count = 1;
      message.addr = node.peer;
      message.context = &buffer;
      POST(node, fi_sendmsg(node.ep, &message, level));
      CHECK(node.completion(node.tx).op_context == &buffer);
    }
    node.meet();
  }
}

// The default level of the endpoint, as op_flags of its transmit side.
void default_level(Link& link) {
  for (const std::uint64_t level : kLevels) {
    Setup setup;
    setup.hints = [level](fi_info& hints) { hints.tx_attr->op_flags = level; };
    Node node(link, setup);
    CHECK((node.info->tx_attr->op_flags & level) == level);
    node.connect();
    int value = 1;
    if (link.server()) {
      POST(node, fi_recv(node.ep, &value, sizeof value, nullptr, node.peer, nullptr));
      node.completion(node.rx);
    } else {
      POST(node, fi_send(node.ep, &value, sizeof value, nullptr, node.peer, nullptr));
      node.completion(node.tx);
    }
    node.meet();
  }
}

// FI_DELIVERY_COMPLETE of a write: the data are in the target's memory, to be seen there without
// another call of libfabric.
void delivery_means_placed(Link& link) {
  Node node(link);
  node.connect();
  Bytes memory(kBytes);
  if (link.server()) {
    const Region region(node, memory, FI_REMOTE_WRITE, 1);
    link.send_value(region.remote);
    for (std::uint64_t round = 1; round <= 10; ++round) {
      static_cast<void>(link.receive_value<char>(&node));
      CHECK(same(memory, round));
      link.send_value('n');
    }
  } else {
    const Remote there = link.receive_value<Remote>(&node);
    for (std::uint64_t round = 1; round <= 10; ++round) {
      memory = pattern(kBytes, round);
      const iovec piece{memory.data(), kBytes};
      const fi_rma_iov target{there.address, kBytes, there.key};
      const fi_msg_rma message = write_message(piece, target, node.peer);
      POST(node, fi_writemsg(node.ep, &message, FI_DELIVERY_COMPLETE));
      node.completion(node.tx);
      link.send_value('l');
      static_cast<void>(link.receive_value<char>(&node));
    }
  }
  node.meet();
}

// A fenced write begins when all before it is done: a target that sees its flag sees the data, too.
void fence(Link& link) {
  Setup setup;
  setup.hints = [](fi_info& hints) { hints.caps |= FI_FENCE; };
  Node node(link, setup);
  node.connect();
  Bytes memory(kBytes + 8);
  if (link.server()) {
    const Region region(node, memory, FI_REMOTE_WRITE, 1);
    link.send_value(region.remote);
    for (std::uint8_t round = 1; round <= 10; ++round) {
      std::atomic_ref<std::byte> flag(memory[kBytes]);
      const Clock::time_point end = Clock::now() + kPatience;
      while (flag.load() != std::byte{round}) {
        node.progress();
        CHECK(Clock::now() < end);
      }
      CHECK(same(std::span(memory).first(kBytes), round));
      node.meet();
    }
  } else {
    const Remote there = link.receive_value<Remote>(&node);
    for (std::uint8_t round = 1; round <= 10; ++round) {
      memory = pattern(kBytes, round);
      POST(node, fi_write(node.ep, memory.data(), kBytes, nullptr, node.peer, there.address,
                          there.key, nullptr));
      const std::byte flag{round};
      const iovec piece{const_cast<std::byte*>(&flag), 1};
      const fi_rma_iov target{there.address + kBytes, 1, there.key};
      const fi_msg_rma message = write_message(piece, target, node.peer);
      POST(node, fi_writemsg(node.ep, &message, FI_FENCE));
      node.completion(node.tx);
      node.completion(node.tx);
      node.meet();
    }
  }
  node.meet();
}

// Writes to one place keep their order (FI_ORDER_WAW), and a message follows the writes before it
// (FI_ORDER_SAW): who has received it finds the last value.
void order_of_writes(Link& link) {
  constexpr std::uint64_t kOrder = FI_ORDER_WAW | FI_ORDER_SAW | FI_ORDER_SAS;
  Setup setup;
  setup.hints = [](fi_info& hints) {
    hints.tx_attr->msg_order = kOrder;
    hints.rx_attr->msg_order = kOrder;
    hints.ep_attr->max_order_waw_size = 8;
  };
  Node node(link, setup);
  CHECK(node.info->ep_attr->max_order_waw_size >= 8);
  node.connect();
  std::array<std::uint64_t, 1> memory{};
  if (link.server()) {
    const Region region(node, std::as_writable_bytes(std::span(memory)), FI_REMOTE_WRITE, 1);
    link.send_value(region.remote);
    for (std::uint64_t round = 1; round <= 5; ++round) {
      std::uint64_t last = 0;
      POST(node, fi_recv(node.ep, &last, sizeof last, nullptr, node.peer, nullptr));
      node.completion(node.rx);
      CHECK(last == round * 200 && memory[0] == last);
      node.meet();
    }
  } else {
    const Remote there = link.receive_value<Remote>(&node);
    std::uint64_t value = 0;
    for (int round = 0; round < 5; ++round) {
      for (int i = 0; i < 200; ++i) {
        ++value;
        POST(node, fi_inject_write(node.ep, &value, 8, node.peer, there.address, there.key));
      }
      POST(node, fi_inject(node.ep, &value, 8, node.peer));
      node.meet();
    }
  }
  node.meet();
}

constexpr Case kCases[] = {{"levels", levels},
                           {"default_level", default_level},
                           {"delivery_means_placed", delivery_means_placed},
                           {"fence", fence},
                           {"order_of_writes", order_of_writes}};

}  // namespace

int main(int argc, char** argv) { return run_cases(argc, argv, kCases); }
