// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Address formats, fi_getinfo(3) and fi_av(3): the provider's own, text, and socket addresses, over
// IPv4 and, where this host has it, IPv6.
#include <netinet/in.h>
#include <unistd.h>

#include <array>
#include <cstring>

#include "common.h"

using namespace fabtests;

namespace {

void ping(Node& node, Link& link) {
  Bytes buffer(2000);
  if (link.server()) {
    fi_addr_t source = FI_ADDR_NOTAVAIL;
    POST(node, fi_recv(node.ep, buffer.data(), buffer.size(), nullptr, node.peer, nullptr));
    node.completion(node.rx, source);
    CHECK(source == node.peer);
    CHECK(same(buffer, 1));
  } else {
    buffer = pattern(2000, 1);
    POST(node, fi_send(node.ep, buffer.data(), buffer.size(), nullptr, node.peer, nullptr));
    node.completion(node.tx);
  }
  node.meet();
}

Setup with_format(std::uint32_t format) {
  Setup setup;
  setup.hints = [format](fi_info& hints) {
    hints.addr_format = format;
    hints.caps = FI_MSG | FI_SOURCE | FI_DIRECTED_RECV;
  };
  return setup;
}

void own_format(Link& link) {
  Node node(link, with_format(FI_FORMAT_UNSPEC));
  CHECK(node.info->addr_format != FI_FORMAT_UNSPEC);
  node.connect();
  ping(node, link);
}

void text(Link& link) {
  Node node(link, with_format(FI_ADDR_STR));
  CHECK(node.info->addr_format == FI_ADDR_STR);
  node.connect();
  const Bytes name = Node::name_of(node.ep);
  CHECK(name.back() == std::byte{0});  // a string
  ping(node, link);
}

void socket_ipv4(Link& link) {
  for (const std::uint32_t format : {FI_SOCKADDR_IN, FI_SOCKADDR}) {
    Node node(link, with_format(format));
    node.connect();
    const Bytes name = Node::name_of(node.ep);
    CHECK(name.size() == sizeof(sockaddr_in));
    sockaddr_in address{};
    std::memcpy(&address, name.data(), sizeof address);
    CHECK(address.sin_family == AF_INET && address.sin_port != 0);
    ping(node, link);
  }
}

void over_ipv6(Link& link) {
  if (access("/proc/net/if_inet6", R_OK) != 0) return;  // a host without IPv6
  Setup setup = with_format(FI_FORMAT_UNSPEC);
  setup.address = "::1";
  {
    Node node(link, setup);
    node.connect();
    ping(node, link);
  }
  setup.hints = [](fi_info& hints) {
    hints.addr_format = FI_SOCKADDR_IN6;
    hints.caps = FI_MSG | FI_SOURCE | FI_DIRECTED_RECV;
  };
  Node node(link, setup);
  node.connect();
  sockaddr_in6 address{};
  const Bytes name = Node::name_of(node.ep);
  CHECK(name.size() == sizeof address);
  std::memcpy(&address, name.data(), sizeof address);
  CHECK(address.sin6_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&address.sin6_addr));
  ping(node, link);
}

// The client reaches the server by host and service, without having seen its name.
void by_host_and_service(Link& link) {
  constexpr const char* kService = "9228";
  Setup setup;
  setup.service = link.server() ? kService : "";
  Node node(link, setup);
  OK(fi_enable(node.ep));
  const std::string& own = link.address();
  link.send(std::as_bytes(std::span(own)));
  const Bytes bytes = link.receive(&node);
  const std::string other(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  int value = 11;
  if (link.server()) {
    POST(node, fi_recv(node.ep, &value, sizeof value, nullptr, FI_ADDR_UNSPEC, nullptr));
    node.completion(node.rx);
    CHECK(value == 12);
  } else {
    fi_info* hints = fi_dupinfo(node.info);
    fi_info* found = nullptr;
    OK(fi_getinfo(FI_VERSION(1, 17), other.c_str(), kService, 0, hints, &found));
    CHECK(found->dest_addr != nullptr);
    RETURNS(1, fi_av_insert(node.av, found->dest_addr, 1, &node.peer, 0, nullptr));
    fi_freeinfo(found);
    fi_freeinfo(hints);
    value = 12;
    POST(node, fi_send(node.ep, &value, sizeof value, nullptr, node.peer, nullptr));
    node.completion(node.tx);
  }
  node.meet();
}

constexpr Case kCases[] = {{"own_format", own_format},
                           {"text", text},
                           {"socket_ipv4", socket_ipv4},
                           {"over_ipv6", over_ipv6},
                           {"by_host_and_service", by_host_and_service}};

}  // namespace

int main(int argc, char** argv) { return run_cases(argc, argv, kCases); }
