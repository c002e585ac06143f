// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// FI_MULTI_RECV, fi_msg(3): one buffer takes many messages and comes back when it is nearly full.
#include <array>

#include "common.h"

using namespace fabtests;

namespace {

constexpr std::size_t kBuffer = 64 * 1024;
constexpr std::size_t kMinimum = 4 * 1024;
constexpr int kMessages = 400;

std::size_t length_of(int number) { return static_cast<std::size_t>(number * 37 % kMinimum); }

ssize_t post(Node& node, Bytes& buffer) {
  const iovec piece{buffer.data(), buffer.size()};
  fi_msg message{};
  message.msg_iov = &piece;
  message.iov_count = 1;
  message.addr = FI_ADDR_UNSPEC;
  message.context = &buffer;
  return fi_recvmsg(node.ep, &message, FI_MULTI_RECV);
}

// Two buffers in turn. Each message is where its completion says, all come in order, and no message
// lies in a buffer that has been given back.
void receive_all(Node& node) {
  std::size_t minimum = kMinimum;
  OK(fi_setopt(&node.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &minimum, sizeof minimum));
  std::array<Bytes, 2> buffers{Bytes(kBuffer), Bytes(kBuffer)};
  for (Bytes& buffer : buffers) POST(node, post(node, buffer));
  node.meet();
  int released = 0;
  for (int number = 0; number < kMessages;) {
    const fi_cq_tagged_entry entry = node.completion(node.rx);
    Bytes& buffer = *static_cast<Bytes*>(entry.op_context);
    if ((entry.flags & FI_RECV) != 0) {
      const auto* data = static_cast<const std::byte*>(entry.buf);
      CHECK(entry.len == length_of(number));
      CHECK(data >= buffer.data() && data + entry.len <= buffer.data() + kBuffer);
      CHECK(same(std::span(data, entry.len), static_cast<std::uint64_t>(number)));
      ++number;
    }
    if ((entry.flags & FI_MULTI_RECV) != 0) {
      CHECK(&buffer == &buffers[static_cast<std::size_t>(released % 2)]);
      ++released;
      POST(node, post(node, buffer));
    }
  }
  CHECK(released >= 5);
}

void many_messages(Link& link) {
  Setup setup;
  setup.hints = [](fi_info& hints) {
    hints.caps = FI_MSG | FI_MULTI_RECV;
    hints.tx_attr->msg_order = FI_ORDER_SAS;
    hints.rx_attr->msg_order = FI_ORDER_SAS;
  };
  Node node(link, setup);
  node.connect();
  if (link.server()) {
    receive_all(node);
  } else {
    node.meet();
    for (int number = 0; number < kMessages; ++number) {
      const Bytes message = pattern(length_of(number), static_cast<std::uint64_t>(number));
      POST(node, fi_send(node.ep, message.data(), message.size(), nullptr, node.peer, nullptr));
      node.completion(node.tx);
    }
  }
  node.meet();
}

// A cancelled buffer ends with FI_ECANCELED.
void cancel(Link& link) {
  Setup setup;
  setup.hints = [](fi_info& hints) { hints.caps = FI_MSG | FI_MULTI_RECV; };
  Node node(link, setup);
  node.connect();
  if (link.server()) {
    Bytes buffer(kBuffer);
    POST(node, post(node, buffer));
    OK(fi_cancel(&node.ep->fid, &buffer));
    const fi_cq_err_entry error = node.error(node.rx);
    CHECK(error.err == FI_ECANCELED && error.op_context == &buffer);
  }
  node.meet();
}

constexpr Case kCases[] = {{"many_messages", many_messages}, {"cancel", cancel}};

}  // namespace

int main(int argc, char** argv) { return run_cases(argc, argv, kCases); }
