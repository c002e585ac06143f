// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// FI_EP_DGRAM endpoints: what they offer and refuse, and messages that arrive whole, at most once,
// or not at all.
#include <gtest/gtest.h>

#include <algorithm>

#include "harness.h"

namespace uet::e2e {
namespace {

using Info = std::unique_ptr<fi_info, Node::FreeInfo>;

NodeOptions datagrams() {
  NodeOptions options;
  options.type = FI_EP_DGRAM;
  options.capabilities = FI_MSG;
  return options;
}

void* as_context(std::size_t index) { return reinterpret_cast<void*>(index + 1); }
std::size_t from_context(const void* context) {
  return reinterpret_cast<std::uintptr_t>(context) - 1;
}

// A child that has to succeed.
std::string in_child(const Environment& environment, std::function<void()> body) {
  Process child("child", environment, std::move(body));
  return child.wait();
}

// Sends datagram number `i`, whose number travels as CQ data, and waits until it has left.
void send_number(Node& node, fi_addr_t peer, std::span<std::byte> data, std::uint64_t i) {
  fill_pattern(data, i);
  node.post("sending", [&] {
    return fi_senddata(node.ep.get(), data.data(), data.size(), nullptr, i, peer, as_context(i));
  });
  require(from_context(node.next("a datagram's departure").context) == i, "another datagram left");
}

// ---- data --------------------------------------------------------------------------------------

// One at a time, so that no socket buffer overflows: all of them arrive. The sender stays until
// they have been read, since some drivers keep nothing from a peer that has gone (net_memif).
TEST(Datagram, OfEverySizeArriveWholeWithTheirData) {
  ChannelPair channels;
  Process receiver("receiver", {}, [&] {
    Node node(datagrams());
    node.connect(channels.left);
    const std::size_t most = node.info->ep_attr->max_msg_size;
    std::vector<std::byte> memory(most + 1);
    const auto count = channels.left.receive<std::size_t>(&node);
    for (std::size_t i = 0; i < count; ++i) {
      node.post("posting a receive", [&] {
        return fi_recv(node.ep.get(), memory.data(), memory.size(), nullptr, FI_ADDR_UNSPEC,
                       nullptr);
      });
      channels.left.meet(&node);
      const Event event = node.next("a receive");
      require(event.data == i && (event.flags & FI_REMOTE_CQ_DATA) != 0, "other CQ data");
      require(event.flags & FI_RECV && event.flags & FI_MSG, "a completion that is no receive");
      require(event.length == channels.left.receive<std::size_t>(&node), "another length");
      require_pattern(std::span(memory).first(event.length), i, "datagram");
    }
    channels.left.meet(&node);
  });
  Process sender("sender", {}, [&] {
    Node node(datagrams());
    const fi_addr_t peer = node.connect(channels.right);
    const std::size_t most = node.info->ep_attr->max_msg_size;
    const std::size_t sizes[] = {0, 1, 63, 64, 1000, most - 1, most};
    channels.right.send(std::size(sizes));
    std::vector<std::byte> memory(most);
    std::uint64_t number = 0;
    for (const std::size_t bytes : sizes) {
      channels.right.meet(&node);
      send_number(node, peer, std::span(memory).first(bytes), number++);
      channels.right.send(bytes);
    }
    channels.right.meet(&node);
  });
  EXPECT_EQ(wait_for_all({&receiver, &sender}), "");
}

// The provider does not retransmit lost datagrams, and delivers none twice or damaged.
TEST(Datagram, AreLostRatherThanRepeated) {
  if (provider() != "uet") GTEST_SKIP() << "faults are a parameter of uet";
  constexpr std::size_t kCount = 2000;
  constexpr std::size_t kBytes = 200;
  ChannelPair channels;
  Process receiver("receiver", {{"FI_UET_FAULTS", "loss=20%,reorder=5%,seed=5"}}, [&] {
    Node node(datagrams());
    node.connect(channels.left);
    std::vector<std::byte> memory(kCount * kBytes);
    for (std::size_t i = 0; i < kCount; ++i) {
      node.post("posting a receive", [&] {
        return fi_recv(node.ep.get(), memory.data() + i * kBytes, kBytes, nullptr, FI_ADDR_UNSPEC,
                       as_context(i));
      });
    }
    channels.left.meet(&node);
    std::vector<bool> seen(kCount);
    std::size_t received = 0;
    // A marker per round of 50 keeps the socket buffer from overflowing.
    for (std::size_t round = 0; round < kCount / 50; ++round) channels.left.meet(&node);
    for (std::optional<Event> event; (event = node.poll());) {
      require(event->error == 0 && event->length == kBytes, "a damaged datagram");
      require(event->data < kCount && !seen[event->data], "a datagram came twice");
      seen[event->data] = true;
      const std::size_t slot = from_context(event->context);
      require_pattern(std::span(memory).subspan(slot * kBytes, kBytes), event->data, "datagram");
      ++received;
    }
    require(received > kCount / 2 && received < kCount,
            "not the losses that were asked for: " + std::to_string(received) + " came");
  });
  Process sender("sender", {}, [&] {
    Node node(datagrams());
    const fi_addr_t peer = node.connect(channels.right);
    std::vector<std::byte> data(kBytes);
    channels.right.meet(&node);
    for (std::size_t i = 0; i < kCount; ++i) {
      send_number(node, peer, data, i);
      if (i % 50 == 49) channels.right.meet(&node);
    }
  });
  EXPECT_EQ(wait_for_all({&receiver, &sender}), "");
}

// Sends to an endpoint that is gone complete all the same, and the number that waits is bounded.
TEST(Datagram, ToAClosedEndpointLeaveWithoutAnError) {
  EXPECT_EQ(in_child({},
                     [] {
                       std::vector<std::byte> gone;
                       {
                         Node other(datagrams());
                         gone = other.name();
                       }
                       Node node(datagrams());
                       const fi_addr_t peer = node.insert(gone);
                       std::vector<std::byte> data(1000);
                       for (std::uint64_t i = 0; i < 3000; ++i) send_number(node, peer, data, i);
                     }),
            "");
}

TEST(Datagram, UnexpectedOnesWaitForTheirReceive) {
  ChannelPair channels;
  constexpr std::size_t kCount = 100;
  Process receiver("receiver", {}, [&] {
    Node node(datagrams());
    node.connect(channels.left);
    channels.left.meet(&node);
    channels.left.meet(&node);
    std::vector<std::byte> memory(64);
    std::vector<bool> seen(kCount);
    for (std::size_t i = 0; i < kCount; ++i) {
      node.post("posting a receive", [&] {
        return fi_recv(node.ep.get(), memory.data(), memory.size(), nullptr, FI_ADDR_UNSPEC,
                       nullptr);
      });
      const Event event = node.next("a receive");
      require(event.data < kCount && !seen[event.data], "a datagram came twice");
      seen[event.data] = true;
      require_pattern(memory, event.data, "datagram");
    }
    channels.left.meet(&node);
  });
  Process sender("sender", {}, [&] {
    Node node(datagrams());
    const fi_addr_t peer = node.connect(channels.right);
    channels.right.meet(&node);
    std::vector<std::byte> data(64);
    for (std::size_t i = 0; i < kCount; ++i) send_number(node, peer, data, i);
    channels.right.meet(&node);
    channels.right.meet(&node);
  });
  EXPECT_EQ(wait_for_all({&receiver, &sender}), "");
}

// ---- the calls ---------------------------------------------------------------------------------

TEST(Datagram, UnsupportedOperationsAreRefused) {
  EXPECT_EQ(
      in_child({},
               [] {
                 Node node(datagrams());
                 fid_ep* ep = node.ep.get();
                 const fi_addr_t self = node.insert(node.name());
                 const std::size_t most = node.info->ep_attr->max_msg_size;
                 std::vector<std::byte> data(most + 1);
                 const auto send = [&](std::size_t bytes) {
                   return fi_send(ep, data.data(), bytes, nullptr, self, nullptr);
                 };
                 require(send(most + 1) == -FI_EMSGSIZE, "too long a datagram is sent");
                 iovec iov{data.data(), 8};
                 fi_msg msg{};
                 msg.msg_iov = &iov;
                 msg.iov_count = 1;
                 msg.addr = self;
                 require(fi_sendmsg(ep, &msg, FI_DELIVERY_COMPLETE) == -FI_EINVAL,
                         "a datagram with word of its delivery is sent");
                 require(fi_sendmsg(ep, &msg, FI_TRANSMIT_COMPLETE) == 0, "fi_sendmsg");
                 node.next("a datagram's departure");
                 require(fi_tsend(ep, data.data(), 8, nullptr, self, 1, nullptr) == -FI_ENOSYS,
                         "a tagged datagram is sent");
                 require(fi_trecv(ep, data.data(), 8, nullptr, self, 1, 0, nullptr) == -FI_ENOSYS,
                         "a tagged receive is posted");
                 require(fi_write(ep, data.data(), 8, nullptr, self, 0, 0, nullptr) == -FI_ENOSYS,
                         "a write is posted");
                 require(fi_read(ep, data.data(), 8, nullptr, self, 0, 0, nullptr) == -FI_ENOSYS,
                         "a read is posted");
                 std::uint64_t flags = FI_TRANSMIT | FI_DELIVERY_COMPLETE;
                 require(fi_control(&ep->fid, FI_SETOPSFLAG, &flags) == -FI_EINVAL,
                         "word of delivery becomes the default");
               }),
      "");
}

TEST(Datagram, InjectNeedsNoCompletion) {
  EXPECT_EQ(
      in_child({},
               [] {
                 Node node(datagrams());
                 const fi_addr_t self = node.insert(node.name());
                 std::array<std::byte, 32> out{};
                 std::array<std::byte, 32> in{};
                 fill_pattern(out, 9);
                 node.post("posting a receive", [&] {
                   return fi_recv(node.ep.get(), in.data(), in.size(), nullptr, FI_ADDR_UNSPEC,
                                  nullptr);
                 });
                 node.post("injecting",
                           [&] { return fi_inject(node.ep.get(), out.data(), out.size(), self); });
                 out.fill(std::byte{0});
                 require((node.next("a receive").flags & FI_RECV) != 0, "an inject completes");
                 require_pattern(in, 9, "datagram");
                 require(!node.poll(), "an inject completes");
               }),
      "");
}

// One domain, one AV, an endpoint of each type: neither hears what is meant for the other.
TEST(Datagram, ShareADomainAndAnAvWithReliableEndpoints) {
  EXPECT_EQ(
      in_child({},
               [] {
                 Node rdm;
                 Info hints(fi_dupinfo(rdm.info.get()));
                 hints->ep_attr->type = FI_EP_DGRAM;
                 hints->ep_attr->max_msg_size = 0;
                 hints->caps = FI_MSG;
                 hints->tx_attr->caps = hints->rx_attr->caps = 0;
                 fi_info* found = nullptr;
                 check(fi_getinfo(FI_VERSION(1, 17), nullptr, nullptr, 0, hints.get(), &found),
                       "fi_getinfo");
                 const Info info(found);
                 fid_ep* fid = nullptr;
                 // The name of the first endpoint is taken.
                 std::free(std::exchange(found->src_addr, nullptr));
                 found->src_addrlen = 0;
                 check(fi_endpoint(rdm.domain.get(), found, &fid, nullptr), "fi_endpoint");
                 const Owned<fid_ep> dgram(fid);
                 check(fi_ep_bind(fid, &rdm.av->fid, 0), "fi_ep_bind");
                 check(fi_ep_bind(fid, &rdm.cq->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
                 check(fi_enable(fid), "fi_enable");
                 std::array<std::byte, 256> name{};
                 std::size_t length = name.size();
                 check(fi_getname(&fid->fid, name.data(), &length), "fi_getname");
                 const fi_addr_t to_dgram = rdm.insert(std::span(name).first(length));
                 const fi_addr_t to_rdm = rdm.insert(rdm.name());
                 std::uint64_t in_dgram = 0;
                 std::uint64_t in_rdm = 0;
                 const std::uint64_t one = 1;
                 const std::uint64_t two = 2;
                 check(fi_recv(fid, &in_dgram, 8, nullptr, FI_ADDR_UNSPEC, nullptr), "recv");
                 check(fi_recv(rdm.ep.get(), &in_rdm, 8, nullptr, FI_ADDR_UNSPEC, nullptr), "recv");
                 check(fi_send(fid, &one, 8, nullptr, to_rdm, nullptr), "fi_send");
                 check(fi_send(fid, &one, 8, nullptr, to_dgram, nullptr), "fi_send");
                 check(fi_send(rdm.ep.get(), &two, 8, nullptr, to_rdm, nullptr), "fi_send");
                 rdm.drain(5, "sends and receives");
                 require(in_dgram == 1 && in_rdm == 2, "a message at the wrong endpoint");
                 check(fi_send(rdm.ep.get(), &two, 8, nullptr, to_dgram, nullptr), "fi_send");
                 std::optional<Event> event;
                 while (!event) event = rdm.poll();
                 require(event->error == FI_EOPNOTSUPP, "a reliable send to datagrams");
               }),
      "");
}

}  // namespace
}  // namespace uet::e2e
