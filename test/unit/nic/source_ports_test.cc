// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Kernel UDP with several ports to send from (CMS-404), over loopback: the receiver's kernel tells
// which port a packet came from.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <fstream>
#include <set>
#include <sstream>

#include "base/peer_ports.h"
#include "nic/udp.h"
#include "nic_testing.h"

namespace uet::nic {
namespace {

using ::testing::HasSubstr;

constexpr std::uint16_t kPorts = 8;

UdpOptions options_of(const FabricAddress& ip, std::uint16_t source_ports = kPorts) {
  UdpOptions options;
  options.ip = ip;
  options.source_ports = source_ports;
  return options;
}

class SourcePorts : public ::testing::Test {
 protected:
  std::unique_ptr<UdpNic> open(const UdpOptions& options) {
    auto nic = UdpNic::open(options, message);
    EXPECT_TRUE(nic.ok()) << message;
    return nic ? std::move(nic).value() : nullptr;
  }
  // The sender at port 4793, the receiver at the next.
  void open_both(const UdpOptions& options) {
    sender = open(options);
    receiver = open(options_of(options.ip, 1));
  }
  // `count` packets of one size with these entropy values, over and over.
  void add(std::size_t count, const std::vector<std::uint16_t>& entropies) {
    for (std::size_t i = 0; i < count; ++i) {
      packets.add(receiver->local_address(), 56, 1024);
      packets.last().entropy = entropies[i % entropies.size()];
    }
  }
  std::vector<Arrival> receive(std::size_t count) {
    std::vector<Arrival> arrivals;
    std::array<RxPacket, kRxBurst> out;
    while (arrivals.size() < count) {
      const std::size_t n = receiver->rx_burst(out, Time{});
      for (std::size_t i = 0; i < n; ++i) arrivals.emplace_back(out[i]);
      if (n > 0) continue;
      pollfd wait{receiver->wait_fd(), POLLIN, 0};
      if (::poll(&wait, 1, 2000) <= 0) break;
    }
    return arrivals;
  }

  std::string message;
  std::unique_ptr<UdpNic> sender;
  std::unique_ptr<UdpNic> receiver;
  PacketSet packets;
};

class SourcePortsOfFamily : public SourcePorts, public ::testing::WithParamInterface<bool> {};

TEST_P(SourcePortsOfFamily, Cms404_Packet_LeavesFromPortOfItsEntropy) {
  const FabricAddress ip = GetParam() ? ipv6_loopback() : own_loopback_address();
  if (!UdpNic::open(options_of(ip, 1), message)) GTEST_SKIP() << message;
  open_both(options_of(ip));
  const NicCaps& caps = sender->caps();
  ASSERT_TRUE(caps.per_packet_entropy);
  ASSERT_EQ(caps.source_ports, kPorts);
  EXPECT_EQ(caps.first_source_port % kPorts, 0);
  EXPECT_GE(caps.first_source_port, 49152);
  std::vector<std::uint16_t> entropies;
  for (int i = 0; i < 64; ++i) entropies.push_back(static_cast<std::uint16_t>(50'001 + 3 * i));
  add(64, entropies);
  ASSERT_EQ(sender->tx_burst(packets.all()), 64U);
  const auto arrivals = receive(64);
  ASSERT_EQ(arrivals.size(), 64U);
  std::set<std::uint16_t> ports;
  for (std::size_t i = 0; i < 64; ++i) {
    const std::uint16_t port = arrivals[i].source.port;
    EXPECT_EQ(arrivals[i].bytes, packets.bytes(i)) << i;
    EXPECT_EQ(port, caps.first_source_port + entropies[i] % kPorts) << i;
    EXPECT_EQ(port, source_port(caps, kUetUdpPort, entropies[i])) << i;
    EXPECT_EQ(PeerPorts{}.reply_address(arrivals[i].source), sender->local_address()) << i;
    ports.insert(port);
  }
  EXPECT_EQ(ports.size(), kPorts);
}
INSTANTIATE_TEST_SUITE_P(All, SourcePortsOfFamily, ::testing::Bool(), [](const auto& info) {
  return std::string(info.param ? "Ipv6" : "Ipv4");
});

// An ACK takes over the source port of its packet; that of a peer without entropy values is none.
TEST_F(SourcePorts, Cms402_PortOfAProcess_IsNoEntropyValue) {
  open_both(options_of(own_loopback_address()));
  add(4, {0, kUetUdpPort, kUetUdpPort + 1, kLastSlotPort});
  ASSERT_EQ(sender->tx_burst(packets.all()), 4U);
  const auto arrivals = receive(4);
  ASSERT_EQ(arrivals.size(), 4U);
  for (const Arrival& arrival : arrivals) EXPECT_EQ(arrival.source, sender->local_address());
}

unsigned g_calls = 0;
int g_error = 0;  // of the second call

int count_sends(int fd, mmsghdr* messages, unsigned count, int flags) {
  if (++g_calls == 2 && g_error != 0) {
    errno = g_error;
    return -1;
  }
  return ::sendmmsg(fd, messages, count, flags);
}

class SourcePortTrains : public SourcePorts {
 protected:
  SourcePortTrains() {
    UdpOptions options = options_of(own_loopback_address());
    options.send_messages = count_sends;
    open_both(options);
    g_calls = 0;
    g_error = 0;
    add(16, {50'000});
    add(16, {50'001});
  }
};

TEST_F(SourcePortTrains, Cms700_EachLeavesAtOnceFromOnePort) {
  ASSERT_EQ(sender->tx_burst(packets.all()), 32U);
  EXPECT_EQ(g_calls, 2U);
  const auto arrivals = receive(32);
  ASSERT_EQ(arrivals.size(), 32U);
  for (std::size_t i = 0; i < 32; ++i) {
    EXPECT_EQ(arrivals[i].bytes, packets.bytes(i)) << i;
    EXPECT_EQ(arrivals[i].source.port % kPorts, i / 16) << i;
  }
}

TEST_F(SourcePortTrains, AFullSocketIsAShorterPrefix) {
  g_error = EAGAIN;
  EXPECT_EQ(sender->tx_burst(packets.all()), 16U);
  EXPECT_EQ(sender->counters().sends_refused, 1U);
  EXPECT_EQ(sender->tx_burst(packets.all().subspan(16)), 16U);
  EXPECT_EQ(receive(32).size(), 32U);
}

// Any other port is by what peers know the process.
TEST_F(SourcePorts, Cms404_OnlyAtThePortOfTheStandard) {
  open_both(options_of(own_loopback_address()));
  const auto third = open(options_of(own_loopback_address()));
  EXPECT_THAT(message, HasSubstr("packets leave from port 4795 alone"));
  EXPECT_FALSE(third->caps().per_packet_entropy);
  EXPECT_EQ(third->caps().source_ports, 0);
}

TEST_F(SourcePorts, Cms404_PortsThatAreTakenArePassedOver) {
  const FabricAddress ip = own_loopback_address();
  sender = open(options_of(ip));
  const std::uint16_t first = sender->caps().first_source_port;
  sender.reset();
  UdpOptions taken = options_of(ip, 1);
  taken.port = static_cast<std::uint16_t>(first + 3);
  const auto other = open(taken);
  sender = open(options_of(ip));
  EXPECT_EQ(sender->caps().source_ports, kPorts);
  EXPECT_NE(sender->caps().first_source_port, first);
}

// Bytes that wait in the socket at this port of IPv4, as the kernel tells; none if it has none.
std::optional<unsigned long> queued_at(std::uint16_t port) {
  std::ostringstream wanted;
  wanted << std::uppercase << std::hex << ':' << port;
  std::ifstream table("/proc/net/udp");
  for (std::string line; std::getline(table, line);) {
    std::istringstream words(line);
    std::string slot, local, remote, state, queues;
    words >> slot >> local >> remote >> state >> queues;
    if (!local.ends_with(wanted.str())) continue;
    return std::stoul(queues.substr(queues.find(':') + 1), nullptr, 16);
  }
  return {};
}

TEST_F(SourcePorts, PacketsToThemAreDropped) {
  open_both(options_of(own_loopback_address()));
  const FepAddress port{sender->local_address().ip, sender->caps().first_source_port};
  for (int i = 0; i < 20; ++i) packets.add(port, 56, 1024);
  ASSERT_EQ(receiver->tx_burst(packets.all()), 20U);
  EXPECT_EQ(queued_at(port.port), 0UL);
  std::array<RxPacket, kRxBurst> out;
  EXPECT_EQ(sender->rx_burst(out, Time{}), 0U);
}

}  // namespace
}  // namespace uet::nic
