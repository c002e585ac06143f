// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// FI_EP_DGRAM: messages may be lost, come twice or in another order; but what comes is whole and says
// who sent it.
#include <algorithm>

#include "common.h"

using namespace fabtests;

namespace {

constexpr std::size_t kReceives = 64;

Setup datagrams() {
  Setup setup;
  setup.hints = [](fi_info& hints) {
    hints.ep_attr->type = FI_EP_DGRAM;
    hints.caps = FI_MSG | FI_SOURCE;
  };
  return setup;
}

// Messages of every size up to the largest, numbered in their first bytes.
void sizes(Link& link) {
  Node node(link, datagrams());
  const std::size_t largest = node.info->ep_attr->max_msg_size;
  CHECK(largest >= 500);
  node.connect();
  const std::size_t lengths[] = {4, 64, 500, largest};
  constexpr std::uint32_t kRounds = 10;
  if (link.server()) {
    std::vector<Bytes> buffers(kReceives, Bytes(largest));
    for (Bytes& buffer : buffers) {
      POST(node, fi_recv(node.ep, buffer.data(), largest, nullptr, FI_ADDR_UNSPEC, &buffer));
    }
    node.meet();
    int received = 0;
    // The other side has sent everything when it meets us; what is on its way comes soon.
    node.meet();
    const Clock::time_point end = Clock::now() + std::chrono::milliseconds(200);
    while (Clock::now() < end) {
      fi_cq_tagged_entry entry{};
      fi_addr_t source = FI_ADDR_NOTAVAIL;
      if (fi_cq_readfrom(node.rx, &entry, 1, &source) != 1) continue;
      const Bytes& buffer = *static_cast<const Bytes*>(entry.op_context);
      std::uint32_t number = 0;
      std::copy_n(buffer.begin(), 4, reinterpret_cast<std::byte*>(&number));
      CHECK(number < 4 * kRounds);
      CHECK(entry.len == lengths[number % 4]);
      CHECK(same(std::span(buffer).subspan(4, entry.len - 4), number));
      CHECK(source == node.peer);
      ++received;
    }
    CHECK(received > 0);
  } else {
    node.meet();
    for (std::uint32_t number = 0; number < 4 * kRounds; ++number) {
      const std::size_t length = lengths[number % 4];
      Bytes message = pattern(length - 4, number);
      const auto* bytes = reinterpret_cast<const std::byte*>(&number);
      message.insert(message.begin(), bytes, bytes + 4);
      POST(node, fi_send(node.ep, message.data(), length, nullptr, node.peer, nullptr));
      node.completion(node.tx);
    }
    node.meet();
  }
  node.meet();
}

// One byte too many is refused by the call.
void too_long(Link& link) {
  Node node(link, datagrams());
  node.connect();
  const Bytes message(node.info->ep_attr->max_msg_size + 1);
  RETURNS(-FI_EMSGSIZE,
          fi_send(node.ep, message.data(), message.size(), nullptr, node.peer, nullptr));
  node.meet();
}

constexpr Case kCases[] = {{"sizes", sizes}, {"too_long", too_long}};

}  // namespace

int main(int argc, char** argv) { return run_cases(argc, argv, kCases); }
