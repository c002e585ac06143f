// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Two netlink sockets: one asks, one listens to changes. A change of routes, addresses or of the
// link discards all entries, so that they are asked again; a change of a neighbour updates entries.
#include "nic/framed/next_hops.h"

#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <netlink/addr.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>
#include <netlink/route/link.h>
#include <netlink/route/neighbour.h>
#include <netlink/route/nexthop.h>
#include <netlink/route/route.h>
#include <netlink/socket.h>

#include <cstring>

namespace uet::nic {

void NetlinkSocketFree::operator()(nl_sock* socket) const { nl_socket_free(socket); }

namespace {

constexpr int kUsableStates =
    NUD_REACHABLE | NUD_STALE | NUD_DELAY | NUD_PROBE | NUD_PERMANENT | NUD_NOARP;

struct AddressFree {
  void operator()(nl_addr* address) const { nl_addr_put(address); }
};
struct MessageFree {
  void operator()(nl_msg* message) const { nlmsg_free(message); }
};
struct RouteFree {
  void operator()(rtnl_route* route) const { rtnl_route_put(route); }
};
struct NeighbourFree {
  void operator()(rtnl_neigh* neighbour) const { rtnl_neigh_put(neighbour); }
};
using Address = std::unique_ptr<nl_addr, AddressFree>;
using Message = std::unique_ptr<nl_msg, MessageFree>;
using Route = std::unique_ptr<rtnl_route, RouteFree>;
using Neighbour = std::unique_ptr<rtnl_neigh, NeighbourFree>;

int family_of(const FabricAddress& ip) { return ip.is_ipv6 ? AF_INET6 : AF_INET; }

Address to_netlink(const FabricAddress& ip) {
  return Address(nl_addr_build(family_of(ip), ip.bytes.data(), ip.is_ipv6 ? 16 : 4));
}

std::optional<FabricAddress> from_netlink(nl_addr* address) {
  if (address == nullptr) return {};
  FabricAddress ip;
  ip.is_ipv6 = nl_addr_get_family(address) == AF_INET6;
  const std::size_t length = ip.is_ipv6 ? 16 : 4;
  if (nl_addr_get_len(address) != length) return {};
  std::memcpy(ip.bytes.data(), nl_addr_get_binary_addr(address), length);
  return ip;
}

Route parse_route(nl_msg* message) {
  rtnl_route* route = nullptr;
  return Route(rtnl_route_parse(nlmsg_hdr(message), &route) == 0 ? route : nullptr);
}

Neighbour parse_neighbour(nl_msg* message) {
  rtnl_neigh* neighbour = nullptr;
  return Neighbour(rtnl_neigh_parse(nlmsg_hdr(message), &neighbour) == 0 ? neighbour : nullptr);
}

// Its MAC address, if the kernel would use it.
std::optional<wire::MacAddress> mac_of(rtnl_neigh* neighbour) {
  if ((rtnl_neigh_get_state(neighbour) & kUsableStates) == 0) return {};
  nl_addr* const address = rtnl_neigh_get_lladdr(neighbour);
  wire::MacAddress mac;
  if (address == nullptr || nl_addr_get_len(address) != mac.size()) return {};
  std::memcpy(mac.data(), nl_addr_get_binary_addr(address), mac.size());
  return mac;
}

// Sends one question and gives its answer, which is one message, to `take`. False: there is none.
template <class Take>
bool ask(nl_sock* socket, nl_msg* question, Take take) {
  const auto on_answer = [](nl_msg* answer, void* context) -> int {
    (*static_cast<Take*>(context))(answer);
    return NL_STOP;
  };
  nl_socket_modify_cb(socket, NL_CB_VALID, NL_CB_CUSTOM, on_answer, &take);
  if (nl_send_auto(socket, question) < 0) return false;
  return nl_recvmsgs_default(socket) >= 0;
}

int connect_netlink(nl_sock* socket) {
  nl_socket_disable_auto_ack(socket);
  if (const int error = nl_connect(socket, NETLINK_ROUTE); error != 0) return error;
  return nl_socket_set_nonblocking(socket);
}

}  // namespace

Result<std::unique_ptr<NextHops>> NextHops::open(int interface_index, const FabricAddress& source,
                                                 std::string& message) {
  Socket queries(nl_socket_alloc());
  Socket changes(nl_socket_alloc());
  if (!queries || !changes) return Error::NoMemory;
  int error = connect_netlink(queries.get());
  if (error == 0) error = connect_netlink(changes.get());
  if (error == 0) {
    nl_socket_disable_seq_check(changes.get());
    error =
        nl_socket_add_memberships(changes.get(), RTNLGRP_NEIGH, RTNLGRP_LINK, RTNLGRP_IPV4_ROUTE,
                                  RTNLGRP_IPV6_ROUTE, RTNLGRP_IPV4_IFADDR, RTNLGRP_IPV6_IFADDR, 0);
  }
  if (error != 0) {
    message = std::string("cannot ask the kernel for routes and neighbours through netlink: ") +
              nl_geterror(error);
    return Error::Io;
  }
  return std::unique_ptr<NextHops>(
      new NextHops(std::move(queries), std::move(changes), interface_index, source));
}

NextHops::NextHops(Socket queries, Socket changes, int interface_index, const FabricAddress& source)
    : queries_(std::move(queries)),
      changes_(std::move(changes)),
      interface_index_(interface_index),
      source_(source) {
  const auto on_message = [](nl_msg* message, void* self) -> int {
    static_cast<NextHops*>(self)->on_change(message);
    return NL_OK;
  };
  nl_socket_modify_cb(changes_.get(), NL_CB_VALID, NL_CB_CUSTOM, on_message, this);
}

void NextHops::look_up(const FabricAddress& destination) {
  auto found = entries_.find(destination);
  if (found == entries_.end()) {
    if (entries_.size() >= kMostEntries) forget_all();
    Entry entry;
    if (const auto next = ask_route(destination)) {
      entry.next = *next;
      entry.hop.way = Way::Unresolved;
      ask_neighbour(*next, entry);
    }
    found = entries_.emplace(destination, entry).first;
  }
  last_destination_ = destination;
  last_ = &found->second;
}

// The address of the next hop, if it is reached over our interface.
std::optional<FabricAddress> NextHops::ask_route(const FabricAddress& destination) {
  const Message question(nlmsg_alloc_simple(RTM_GETROUTE, 0));
  const Address to = to_netlink(destination);
  const Address from = to_netlink(source_);
  if (!question || !to || !from) return {};
  const std::uint8_t bits = destination.is_ipv6 ? 128 : 32;
  rtmsg header{};
  header.rtm_family = static_cast<std::uint8_t>(family_of(destination));
  header.rtm_dst_len = bits;
  header.rtm_src_len = bits;
  if (nlmsg_append(question.get(), &header, sizeof header, NLMSG_ALIGNTO) < 0 ||
      nla_put_addr(question.get(), RTA_DST, to.get()) < 0 ||
      nla_put_addr(question.get(), RTA_SRC, from.get()) < 0) {
    return {};
  }
  std::optional<FabricAddress> next;
  ask(queries_.get(), question.get(), [&](nl_msg* answer) {
    const Route route = parse_route(answer);
    if (!route || rtnl_route_get_type(route.get()) != RTN_UNICAST) return;
    rtnl_nexthop* const hop = rtnl_route_nexthop_n(route.get(), 0);
    if (hop == nullptr || rtnl_route_nh_get_ifindex(hop) != interface_index_) return;
    next = from_netlink(rtnl_route_nh_get_gateway(hop));
    if (!next) next = from_netlink(rtnl_route_nh_get_via(hop));
    if (!next) next = destination;
  });
  return next;
}

void NextHops::ask_neighbour(const FabricAddress& next, Entry& entry) {
  const Message question(nlmsg_alloc_simple(RTM_GETNEIGH, 0));
  const Address to = to_netlink(next);
  if (!question || !to) return;
  ndmsg header{};
  header.ndm_family = static_cast<std::uint8_t>(family_of(next));
  header.ndm_ifindex = interface_index_;
  if (nlmsg_append(question.get(), &header, sizeof header, NLMSG_ALIGNTO) < 0 ||
      nla_put_addr(question.get(), NDA_DST, to.get()) < 0) {
    return;
  }
  ask(queries_.get(), question.get(), [&](nl_msg* answer) {
    const Neighbour neighbour = parse_neighbour(answer);
    const auto mac = neighbour ? mac_of(neighbour.get()) : std::nullopt;
    if (!mac) return;
    entry.hop = {.way = Way::Frame, .mac = *mac};
    entry.doubtful = (rtnl_neigh_get_state(neighbour.get()) & NUD_STALE) != 0;
  });
}

void NextHops::refresh() {
  int error = 0;
  while (error == 0) error = nl_recvmsgs_default(changes_.get());
  // Notifications were lost, which leaves nothing certain.
  if (error != -NLE_AGAIN) forget_all();
}

void NextHops::on_change(nl_msg* message) {
  const int type = nlmsg_hdr(message)->nlmsg_type;
  if (type == RTM_NEWLINK || type == RTM_DELLINK) {
    const auto* link = static_cast<const ifinfomsg*>(nlmsg_data(nlmsg_hdr(message)));
    if (link->ifi_index == interface_index_) forget_all();
    return;
  }
  if (type != RTM_NEWNEIGH && type != RTM_DELNEIGH) {
    forget_all();
    return;
  }
  const Neighbour neighbour = parse_neighbour(message);
  if (!neighbour || rtnl_neigh_get_ifindex(neighbour.get()) != interface_index_) return;
  const auto next = from_netlink(rtnl_neigh_get_dst(neighbour.get()));
  if (!next) return;
  const auto mac = type == RTM_NEWNEIGH ? mac_of(neighbour.get()) : std::nullopt;
  const bool stale = (rtnl_neigh_get_state(neighbour.get()) & NUD_STALE) != 0;
  for (auto& [destination, entry] : entries_) {
    if (entry.hop.way == Way::Kernel || !(entry.next == *next)) continue;
    entry.hop = mac ? Hop{.way = Way::Frame, .mac = *mac} : Hop{.way = Way::Unresolved};
    entry.doubtful = mac && stale;
  }
}

void NextHops::forget_all() {
  entries_.clear();
  last_ = nullptr;
}

}  // namespace uet::nic
