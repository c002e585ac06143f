// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Tagged messages: every call of fi_tagged(3), tags and masks, receives from one source only, and
// looking at messages before receiving them: FI_PEEK, FI_CLAIM, FI_DISCARD.
#include <array>

#include "common.h"

using namespace fabtests;

namespace {

constexpr std::uint64_t kTag = 0xfedc'ba98'7654'3210;

void every_call(Link& link) {
  Node node(link);
  node.connect();
  Bytes buffer = pattern(500, 1);
  std::array<iovec, 2> pieces{{{buffer.data(), 200}, {buffer.data() + 200, 300}}};
  int context = 0;
  fi_msg_tagged message{};
  message.msg_iov = pieces.data();
  message.iov_count = 2;
  message.addr = node.peer;
  message.context = &context;
  if (!link.server()) {
    POST(node, fi_tsend(node.ep, buffer.data(), 500, nullptr, node.peer, kTag, &context));
    POST(node, fi_tsendv(node.ep, pieces.data(), nullptr, 2, node.peer, kTag + 1, &context));
    message.tag = kTag + 2;
    message.data = 2;
    POST(node, fi_tsendmsg(node.ep, &message, FI_REMOTE_CQ_DATA));
    POST(node, fi_tsenddata(node.ep, buffer.data(), 500, nullptr, 3, node.peer, kTag + 3, nullptr));
    for (int i = 0; i < 4; ++i) {
      CHECK((node.completion(node.tx).flags & (FI_TAGGED | FI_SEND)) == (FI_TAGGED | FI_SEND));
    }
    POST(node, fi_tinject(node.ep, buffer.data(), 50, node.peer, kTag + 4));
    POST(node, fi_tinjectdata(node.ep, buffer.data(), 50, 5, node.peer, kTag + 5));
    CHECK(node.stays_empty(node.tx));
  }
  // Received last to first: tags decide, not the order of arrival.
  for (std::uint64_t number = 6; link.server() && number-- > 0;) {
    buffer.assign(500, std::byte{0});
    message.tag = kTag + number;
    switch (number % 3) {
      case 0:
        POST(node,
             fi_trecv(node.ep, buffer.data(), 500, nullptr, node.peer, kTag + number, 0, &context));
        break;
      case 1:
        POST(node,
             fi_trecvv(node.ep, pieces.data(), nullptr, 2, node.peer, kTag + number, 0, &context));
        break;
      default:
        POST(node, fi_trecvmsg(node.ep, &message, 0));
    }
    const fi_cq_tagged_entry entry = node.completion(node.rx);
    CHECK(entry.op_context == &context);
    CHECK(entry.tag == kTag + number);
    CHECK((entry.flags & (FI_TAGGED | FI_RECV)) == (FI_TAGGED | FI_RECV));
    CHECK(entry.len == (number >= 4 ? 50U : 500U));
    CHECK(same(std::span(buffer).first(entry.len), 1));
    CHECK(((entry.flags & FI_REMOTE_CQ_DATA) != 0) == (number == 2 || number == 3 || number == 5));
    if ((entry.flags & FI_REMOTE_CQ_DATA) != 0) CHECK(entry.data == number);
  }
  node.meet();
}

// Bits set in `ignore` do not matter; of several receives that match the first posted is taken, of
// several messages the first sent.
void masks(Link& link) {
  Setup setup;
  setup.hints = [](fi_info& hints) {
    hints.tx_attr->msg_order = FI_ORDER_SAS;
    hints.rx_attr->msg_order = FI_ORDER_SAS;
  };
  Node node(link, setup);
  node.connect();
  if (link.server()) {
    std::array<int, 3> got{};
    int exact = 0;
    int low = 0;
    int any = 0;
    POST(node, fi_trecv(node.ep, &got[0], sizeof(int), nullptr, node.peer, 0x101, 0, &exact));
    POST(node, fi_trecv(node.ep, &got[1], sizeof(int), nullptr, node.peer, 0x100, 0xff, &low));
    POST(node, fi_trecv(node.ep, &got[2], sizeof(int), nullptr, node.peer, 0, ~0ULL, &any));
    node.meet();
    CHECK(node.completion(node.rx).op_context == &low);
    CHECK(node.completion(node.rx).op_context == &exact);
    CHECK(node.completion(node.rx).op_context == &any);
    CHECK(got[0] == 2 && got[1] == 1 && got[2] == 3);
  } else {
    node.meet();
    const std::array<std::uint64_t, 3> tags{0x1ff, 0x101, 0x102};
    for (int i = 0; i < 3; ++i) {
      const int value = i + 1;
      POST(node, fi_tinject(node.ep, &value, sizeof value, node.peer, tags[i]));
    }
  }
  node.meet();
}

// Untagged messages and tagged ones do not meet.
void two_worlds(Link& link) {
  Node node(link);
  node.connect();
  int tagged = 0;
  int untagged = 0;
  if (link.server()) {
    POST(node, fi_trecv(node.ep, &tagged, sizeof tagged, nullptr, node.peer, 0, ~0ULL, &tagged));
    POST(node, fi_recv(node.ep, &untagged, sizeof untagged, nullptr, node.peer, &untagged));
    node.meet();
    node.completion(node.rx);
    node.completion(node.rx);
    CHECK(tagged == 1 && untagged == 2);
  } else {
    node.meet();
    tagged = 1;
    untagged = 2;
    POST(node, fi_inject(node.ep, &untagged, sizeof untagged, node.peer));
    POST(node, fi_tinject(node.ep, &tagged, sizeof tagged, node.peer, 5));
  }
  node.meet();
}

// FI_DIRECTED_RECV: a receive from one source leaves the messages of others alone; here the other
// source is the server itself.
void directed(Link& link) {
  Setup setup;
  setup.hints = [](fi_info& hints) {
    hints.caps |= FI_DIRECTED_RECV | FI_LOCAL_COMM | FI_REMOTE_COMM;
  };
  Node node(link, setup);
  node.connect();
  if (link.server()) {
    const fi_addr_t self = node.insert(Node::name_of(node.ep));
    int from_peer = 0;
    int from_self = 0;
    POST(node, fi_trecv(node.ep, &from_peer, sizeof(int), nullptr, node.peer, 1, 0, &from_peer));
    POST(node, fi_trecv(node.ep, &from_self, sizeof(int), nullptr, self, 1, 0, &from_self));
    const int mine = 10;
    POST(node, fi_tinject(node.ep, &mine, sizeof mine, self, 1));
    CHECK(node.completion(node.rx).op_context == &from_self);
    node.meet();
    CHECK(node.completion(node.rx).op_context == &from_peer);
    CHECK(from_peer == 20 && from_self == 10);
  } else {
    node.meet();
    const int mine = 20;
    POST(node, fi_tinject(node.ep, &mine, sizeof mine, node.peer, 1));
  }
  node.meet();
}

// Looks for `tag`; the entry or error tells what is there.
void peek(Node& node, std::uint64_t tag, std::uint64_t flags, void* context, void* buffer = nullptr,
          std::size_t bytes = 0) {
  const iovec piece{buffer, bytes};
  fi_msg_tagged message{};
  message.msg_iov = &piece;
  message.iov_count = buffer != nullptr ? 1 : 0;
  message.addr = node.peer;
  message.tag = tag;
  message.context = context;
  POST(node, fi_trecvmsg(node.ep, &message, flags));
}

// FI_PEEK says whether a message is there and leaves it; with FI_CLAIM it is kept for one later
// receive, with FI_DISCARD it is gone.
void peeking(Link& link) {
  Node node(link);
  node.connect();
  if (!link.server()) {
    std::vector<Bytes> messages;  // until their sends complete
    for (std::uint64_t tag = 1; tag <= 4; ++tag) {
      messages.push_back(pattern(tag * 1000, tag));
      const Bytes& message = messages.back();
      POST(node,
           fi_tsend(node.ep, message.data(), message.size(), nullptr, node.peer, tag, nullptr));
    }
    link.send_value('s');
    for (std::size_t i = 0; i < messages.size(); ++i) node.completion(node.tx);
    node.meet();
    return;
  }
  fi_context2 context{};
  peek(node, 99, FI_PEEK, &context);
  fi_cq_err_entry error = node.error(node.rx);
  CHECK(error.err == FI_ENOMSG && error.op_context == &context);
  link.receive_value<char>(&node);
  const auto wait_for = [&](std::uint64_t tag, std::uint64_t flags) {
    // On its way, perhaps: then there is no message yet.
    const Clock::time_point end = Clock::now() + kPatience;
    for (;;) {
      CHECK(Clock::now() < end);
      peek(node, tag, flags, &context);
      fi_cq_tagged_entry entry{};
      const ssize_t result = node.repeat([&] { return fi_cq_read(node.rx, &entry, 1); });
      if (result == 1) return entry;
      CHECK(node.error(node.rx).err == FI_ENOMSG);
    }
  };
  Bytes buffer(4000);
  fi_cq_tagged_entry entry = wait_for(2, FI_PEEK);
  CHECK(entry.len == 2000 && entry.tag == 2 && entry.op_context == &context);
  POST(node, fi_trecv(node.ep, buffer.data(), 4000, nullptr, node.peer, 2, 0, nullptr));
  node.completion(node.rx);
  CHECK(same(std::span(buffer).first(2000), 2));
  // Claimed: a receive of that tag does not get it, the claim does.
  CHECK(wait_for(3, FI_PEEK | FI_CLAIM).len == 3000);
  peek(node, 3, FI_PEEK, &buffer);
  CHECK(node.error(node.rx).err == FI_ENOMSG);
  peek(node, 3, FI_CLAIM, &context, buffer.data(), buffer.size());
  entry = node.completion(node.rx);
  CHECK(entry.len == 3000 && same(std::span(buffer).first(3000), 3));
  // Discarded, at once or after a claim.
  wait_for(1, FI_PEEK | FI_DISCARD);
  peek(node, 1, FI_PEEK, &context);
  CHECK(node.error(node.rx).err == FI_ENOMSG);
  wait_for(4, FI_PEEK | FI_CLAIM);
  peek(node, 4, FI_CLAIM | FI_DISCARD, &context);
  node.completion(node.rx);
  peek(node, 4, FI_PEEK, &context);
  CHECK(node.error(node.rx).err == FI_ENOMSG);
  node.meet();
}

constexpr Case kCases[] = {{"every_call", every_call},
                           {"masks", masks},
                           {"two_worlds", two_worlds},
                           {"directed", directed},
                           {"peeking", peeking}};

}  // namespace

int main(int argc, char** argv) { return run_cases(argc, argv, kCases); }
