// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Untagged messages: every call of fi_msg(3), their completions, cancelling, truncation.
#include <array>

#include "common.h"

using namespace fabtests;

namespace {

constexpr std::size_t kSizes[] = {0, 1, 64, 4000, 100'000, 1 << 20};

// fi_send and fi_recv of all sizes; the receive completion says how long the message was.
void sizes(Link& link) {
  Node node(link);
  node.connect();
  for (const std::size_t size : kSizes) {
    int context = 0;
    if (link.server()) {
      Bytes buffer(size + 10);
      POST(node, fi_recv(node.ep, buffer.data(), buffer.size(), nullptr, node.peer, &context));
      const fi_cq_tagged_entry entry = node.completion(node.rx);
      CHECK(entry.op_context == &context);
      CHECK(entry.len == size);
      CHECK((entry.flags & (FI_MSG | FI_RECV)) == (FI_MSG | FI_RECV));
      CHECK(same(std::span(buffer).first(size), size));
    } else {
      const Bytes buffer = pattern(size, size);
      POST(node, fi_send(node.ep, buffer.data(), size, nullptr, node.peer, &context));
      const fi_cq_tagged_entry entry = node.completion(node.tx);
      CHECK(entry.op_context == &context);
      CHECK((entry.flags & (FI_MSG | FI_SEND)) == (FI_MSG | FI_SEND));
    }
  }
  node.meet();
}

void send_every_way(Node& node) {
  Bytes buffer = pattern(300, 1);
  std::array<iovec, 3> pieces{
      {{buffer.data(), 100}, {buffer.data() + 100, 50}, {buffer.data() + 150, 150}}};
  int context = 0;
  POST(node, fi_send(node.ep, buffer.data(), 300, nullptr, node.peer, &context));
  node.completion(node.tx);
  POST(node, fi_sendv(node.ep, pieces.data(), nullptr, 3, node.peer, &context));
  node.completion(node.tx);
  fi_msg message{};
  message.msg_iov = pieces.data();
  message.iov_count = 3;
  message.addr = node.peer;
  message.context = &context;
  message.data = 3;
  POST(node, fi_sendmsg(node.ep, &message, FI_REMOTE_CQ_DATA));
  node.completion(node.tx);
  POST(node, fi_senddata(node.ep, buffer.data(), 300, nullptr, 4, node.peer, &context));
  node.completion(node.tx);
  // Injected: the buffer is free at once, and no completion tells the end.
  CHECK(node.info->tx_attr->inject_size >= 64);
  Bytes small = pattern(64, 2);
  POST(node, fi_inject(node.ep, small.data(), 64, node.peer));
  small.assign(64, std::byte{0});
  small = pattern(64, 2);
  POST(node, fi_injectdata(node.ep, small.data(), 64, 6, node.peer));
  small.assign(64, std::byte{0});
  node.meet();
  CHECK(node.stays_empty(node.tx));
}

void receive_every_way(Node& node) {
  Bytes buffer(400);
  std::array<iovec, 2> pieces{{{buffer.data(), 170}, {buffer.data() + 170, 230}}};
  fi_msg message{};
  message.msg_iov = pieces.data();
  message.iov_count = 2;
  message.addr = node.peer;
  for (std::uint64_t number = 1; number <= 6; ++number) {
    int context = 0;
    message.context = &context;
    switch (number % 3) {
      case 0:
        POST(node, fi_recv(node.ep, buffer.data(), 400, nullptr, node.peer, &context));
        break;
      case 1:
        POST(node, fi_recvv(node.ep, pieces.data(), nullptr, 2, node.peer, &context));
        break;
      default:
        POST(node, fi_recvmsg(node.ep, &message, 0));
    }
    const fi_cq_tagged_entry entry = node.completion(node.rx);
    const bool small = number >= 5;
    CHECK(entry.len == (small ? 64U : 300U));
    CHECK(same(std::span(buffer).first(entry.len), small ? 2 : 1));
    const bool has_data = number == 3 || number == 4 || number == 6;
    CHECK(((entry.flags & FI_REMOTE_CQ_DATA) != 0) == has_data);
    if (has_data) CHECK(entry.data == number);
  }
  node.meet();
}

void every_call(Link& link) {
  Node node(link);
  node.connect();
  link.server() ? receive_every_way(node) : send_every_way(node);
}

// FI_ORDER_SAS: the receives take the messages in the order in which they were sent, whether they
// were posted before the messages came or after.
void order(Link& link) {
  constexpr int kMessages = 200;
  Setup setup;
  setup.hints = [](fi_info& hints) {
    hints.tx_attr->msg_order = FI_ORDER_SAS;
    hints.rx_attr->msg_order = FI_ORDER_SAS;
  };
  Node node(link, setup);
  node.connect();
  std::array<int, kMessages> numbers{};
  if (!link.server()) {
    for (int i = 0; i < kMessages; ++i) POST(node, fi_inject(node.ep, &i, sizeof i, node.peer));
  } else {
    for (int& number : numbers) {
      POST(node, fi_recv(node.ep, &number, sizeof number, nullptr, FI_ADDR_UNSPEC, &number));
    }
    for (int i = 0; i < kMessages; ++i) {
      CHECK(node.completion(node.rx).op_context == &numbers[i]);
      CHECK(numbers[i] == i);
    }
  }
  node.meet();
}

// FI_SELECTIVE_COMPLETION: an entry is written only where FI_COMPLETION asks for it.
void selective(Link& link) {
  Setup setup;
  setup.tx_bind_flags = FI_SELECTIVE_COMPLETION;
  Node node(link, setup);
  node.connect();
  std::uint32_t word = 7;
  iovec piece{&word, sizeof word};
  int context = 0;
  fi_msg message{};
  message.msg_iov = &piece;
  message.iov_count = 1;
  message.addr = node.peer;
  message.context = &context;
  if (link.server()) {
    for (int i = 0; i < 3; ++i) {
      POST(node, fi_recv(node.ep, &word, sizeof word, nullptr, node.peer, nullptr));
      node.completion(node.rx);
    }
  } else {
    POST(node, fi_send(node.ep, &word, sizeof word, nullptr, node.peer, nullptr));
    POST(node, fi_sendmsg(node.ep, &message, 0));
    POST(node, fi_sendmsg(node.ep, &message, FI_COMPLETION));
    CHECK(node.completion(node.tx).op_context == &context);
    CHECK(node.stays_empty(node.tx));
  }
  node.meet();
}

// A cancelled receive ends with FI_ECANCELED and takes no message any more.
void cancel(Link& link) {
  Node node(link);
  node.connect();
  if (link.server()) {
    int first = 0;
    int second = 0;
    int value = 0;
    int other = 0;
    POST(node, fi_recv(node.ep, &value, sizeof value, nullptr, node.peer, &first));
    POST(node, fi_recv(node.ep, &other, sizeof other, nullptr, node.peer, &second));
    OK(fi_cancel(&node.ep->fid, &first));
    const fi_cq_err_entry error = node.error(node.rx);
    CHECK(error.err == FI_ECANCELED);
    CHECK(error.op_context == &first);
    node.meet();
    CHECK(node.completion(node.rx).op_context == &second);
    CHECK(other == 42 && value == 0);
  } else {
    node.meet();
    const int value = 42;
    POST(node, fi_inject(node.ep, &value, sizeof value, node.peer));
  }
  node.meet();
}

// A message longer than its receive: FI_ETRUNC, what fits is there, olen says what does not.
void truncation(Link& link) {
  Node node(link);
  node.connect();
  int context = 0;
  if (link.server()) {
    Bytes buffer(100);
    POST(node, fi_recv(node.ep, buffer.data(), 100, nullptr, node.peer, &context));
    const fi_cq_err_entry error = node.error(node.rx);
    CHECK(error.err == FI_ETRUNC);
    CHECK(error.op_context == &context);
    CHECK(error.len == 100 && error.olen == 156);
    CHECK(same(buffer, 9));
    // The endpoint goes on.
    POST(node, fi_recv(node.ep, buffer.data(), 100, nullptr, node.peer, &context));
    CHECK(node.completion(node.rx).len == 50);
  } else {
    const Bytes buffer = pattern(256, 9);
    POST(node, fi_send(node.ep, buffer.data(), 256, nullptr, node.peer, &context));
    POST(node, fi_inject(node.ep, buffer.data(), 50, node.peer));
    CHECK(node.completion(node.tx).op_context == &context);
  }
  node.meet();
}

constexpr Case kCases[] = {{"sizes", sizes},   {"every_call", every_call},
                           {"order", order},   {"selective", selective},
                           {"cancel", cancel}, {"truncation", truncation}};

}  // namespace

int main(int argc, char** argv) { return run_cases(argc, argv, kCases); }
