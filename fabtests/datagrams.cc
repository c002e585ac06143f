// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// FI_EP_DGRAM: messages that arrive whole, or not at all, and whose senders hear nothing of it. The
// programs repeat what got lost, as users of datagrams must, so that they run over any network.
#include <array>
#include <optional>

#include "common.h"

using namespace fabtests;

namespace {

constexpr std::chrono::milliseconds kRepeat{20};

Setup datagrams() {
  Setup setup;
  setup.hints = [](fi_info& hints) {
    hints.ep_attr->type = FI_EP_DGRAM;
    hints.caps = FI_MSG;
    hints.tx_attr->msg_order = 0;
    hints.rx_attr->msg_order = 0;
  };
  return setup;
}

// The next completion of `queue`, if one comes within kRepeat.
std::optional<fi_cq_tagged_entry> soon(fid_cq* queue) {
  fi_cq_tagged_entry entry{};
  for (const auto start = Clock::now(); Clock::now() - start < kRepeat;) {
    const ssize_t result = fi_cq_read(queue, &entry, 1);
    if (result == 1) return entry;
    CHECK(result == -FI_EAGAIN);
  }
  return {};
}

// Answers what comes with the same bytes and data, until told to stop by data `end`.
void echo(Node& node, std::uint64_t end) {
  Bytes buffer(node.info->ep_attr->max_msg_size);
  for (;;) {
    POST(node, fi_recv(node.ep, buffer.data(), buffer.size(), nullptr, node.peer, nullptr));
    const fi_cq_tagged_entry entry = node.completion(node.rx);
    CHECK((entry.flags & (FI_MSG | FI_RECV)) == (FI_MSG | FI_RECV));
    CHECK((entry.flags & FI_REMOTE_CQ_DATA) != 0);
    if (entry.data == end) return;
    CHECK(same(std::span(buffer).first(entry.len), entry.data));
    POST(node,
         fi_senddata(node.ep, buffer.data(), entry.len, nullptr, entry.data, node.peer, nullptr));
    node.completion(node.tx);
  }
}

// Sends until the answer to this number is there. Answers to earlier ones may still come. A receive
// is always posted, before and afterwards.
void ask(Node& node, Bytes& in, std::size_t size, std::uint64_t number) {
  const Bytes out = pattern(size, number);
  const auto start = Clock::now();
  for (bool answered = false; !answered;) {
    CHECK(Clock::now() - start < kPatience);
    POST(node, fi_senddata(node.ep, out.data(), size, nullptr, number, node.peer, nullptr));
    const fi_cq_tagged_entry left = node.completion(node.tx);
    CHECK((left.flags & (FI_MSG | FI_SEND)) == (FI_MSG | FI_SEND));
    while (!answered) {
      const auto entry = soon(node.rx);
      if (!entry) break;  // lost, one way or the other
      CHECK(entry->data <= number);
      CHECK(same(std::span(in).first(entry->len), entry->data));
      answered = entry->data == number;
      CHECK(!answered || entry->len == size);
      POST(node, fi_recv(node.ep, in.data(), in.size(), nullptr, node.peer, nullptr));
    }
  }
}

// All sizes that fit, to the peer and back.
void sizes(Link& link) {
  Node node(link, datagrams());
  node.connect();
  constexpr std::uint64_t kEnd = 1000;
  if (link.server()) {
    echo(node, kEnd);
    link.send_value(true);
    link.meet();
    return;
  }
  const std::size_t most = node.info->ep_attr->max_msg_size;
  Bytes in(most);
  POST(node, fi_recv(node.ep, in.data(), in.size(), nullptr, node.peer, nullptr));
  std::uint64_t number = 0;
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{64}, most - 1, most}) {
    ask(node, in, size, ++number);
  }
  // The last one may get lost as well, but not all of these.
  const std::uint8_t byte = 0;
  for (int i = 0; i < 20; ++i) POST(node, fi_injectdata(node.ep, &byte, 1, kEnd, node.peer));
  CHECK(link.receive_value<bool>(&node));
  link.meet();
}

// The endpoint states its limits and refuses other calls.
void limits(Link& link) {
  Node node(link, datagrams());
  node.connect();
  CHECK(node.info->ep_attr->type == FI_EP_DGRAM);
  CHECK(node.info->ep_attr->msg_prefix_size == 0);
  CHECK((node.info->caps & (FI_TAGGED | FI_RMA | FI_ATOMIC)) == 0);
  CHECK(node.info->tx_attr->msg_order == 0);
  const std::size_t most = node.info->ep_attr->max_msg_size;
  Bytes buffer(most + 1);
  RETURNS(-FI_EMSGSIZE, fi_send(node.ep, buffer.data(), most + 1, nullptr, node.peer, nullptr));
  iovec piece{buffer.data(), 1};
  fi_msg message{};
  message.msg_iov = &piece;
  message.iov_count = 1;
  message.addr = node.peer;
  RETURNS(-FI_EINVAL, fi_sendmsg(node.ep, &message, FI_DELIVERY_COMPLETE));
  RETURNS(-FI_ENOSYS, fi_tsend(node.ep, buffer.data(), 1, nullptr, node.peer, 0, nullptr));
  RETURNS(-FI_ENOSYS, fi_write(node.ep, buffer.data(), 1, nullptr, node.peer, 0, 0, nullptr));
  node.meet();
}

// Without a receive they wait in the order of arrival, as far as they came.
void unexpected(Link& link) {
  constexpr std::uint64_t kMessages = 50;
  Node node(link, datagrams());
  node.connect();
  if (link.server()) {
    node.meet();
    Bytes buffer(100);
    std::size_t received = 0;
    int context = 0;
    for (;;) {
      POST(node, fi_recv(node.ep, buffer.data(), buffer.size(), nullptr, node.peer, &context));
      const auto entry = soon(node.rx);
      if (!entry) break;
      CHECK(entry->len == 100 && entry->data < kMessages && same(buffer, entry->data));
      ++received;
    }
    CHECK(received > kMessages / 2);
    OK(fi_cancel(&node.ep->fid, &context));
    CHECK(node.error(node.rx).err == FI_ECANCELED);
  } else {
    for (std::uint64_t i = 0; i < kMessages; ++i) {
      const Bytes buffer = pattern(100, i);
      POST(node, fi_senddata(node.ep, buffer.data(), 100, nullptr, i, node.peer, nullptr));
      node.completion(node.tx);
    }
    node.meet();
  }
  node.meet();
}

constexpr std::array kCases{
    Case{"sizes", sizes},
    Case{"limits", limits},
    Case{"unexpected", unexpected},
};

}  // namespace

int main(int argc, char** argv) { return run_cases(argc, argv, kCases); }
