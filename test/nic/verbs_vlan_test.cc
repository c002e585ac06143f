// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Tagged frames through raw-packet queues: the interface is told to be a VLAN, which takes no
// support of it by the kernel. Runs inside in_network, with two hosts and the stand-in for verbs.
#include <gtest/gtest.h>

#include <array>
#include <bitset>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "e2e/harness.h"
#include "nic/framed/framed_nic.h"
#include "nic/verbs_device.h"

namespace uet::e2e {
namespace {

constexpr std::uint16_t kVlan = 7;
constexpr std::uint32_t kPackets = 16;  // fit the buffer of a socket
constexpr std::size_t kPayload = 4000;
constexpr std::chrono::seconds kLimit{20};

Time now() { return Time(std::chrono::duration_cast<Duration>(Clock::now().time_since_epoch())); }

// Over the host's interface, or over what would be its VLAN of this number.
std::unique_ptr<nic::Nic> open_nic(std::uint16_t vlan) {
  std::string message;
  const auto interfaces = nic::list_interfaces(message);
  require(static_cast<bool>(interfaces), message);
  nic::NicConfig config;
  config.back_end = "verbs";
  for (const nic::Interface& interface : interfaces.value()) {
    if (interface.name == "eth0") config.ip = interface.addresses.at(0).ip;
  }
  const auto open_device = [vlan](const nic::FrameDeviceRequest& request, std::string& why) {
    nic::Interface interface = request.interface;
    if (vlan != 0) interface.vlan = nic::VlanOf{interface.index, vlan};
    return nic::VerbsDevice::open({.interface = interface,
                                   .self = request.self,
                                   .format = request.format,
                                   .options = request.options,
                                   .receive_buffer_bytes = request.receive_buffer_bytes,
                                   .send_buffer_bytes = request.send_buffer_bytes},
                                  why);
  };
  auto opened = nic::FramedNic::open(config, open_device, message);
  require(static_cast<bool>(opened), message);
  return std::move(opened).value();
}

void send_numbers(nic::Nic& nic, const FepAddress& to) {
  const std::vector<std::byte> payload(kPayload, std::byte{0x5A});
  Packet packet;
  for (std::uint32_t i = 0; i < kPackets; ++i) {
    packet.reset();
    std::memcpy(packet.append(sizeof i), &i, sizeof i);
    packet.to = to;
    packet.payload[0] = {payload.data(), static_cast<std::uint32_t>(payload.size())};
    const std::array<const Packet*, 1> burst = {&packet};
    while (nic.tx_burst(burst) == 0) continue;
  }
}

using Numbers = std::bitset<kPackets>;

// Adds those that come before everything has, or `until` says that no more will. In any order: a
// sender that is moved to another processor overtakes on the veth what it sent before.
template <class Until>
void receive_numbers(nic::Nic& nic, Numbers& received, Until&& until) {
  std::array<RxPacket, nic::kRxBurst> burst;
  const auto limit = Clock::now() + kLimit;
  while (!received.all() && !until() && Clock::now() < limit) {
    const std::size_t count = nic.rx_burst(burst, now());
    for (std::size_t i = 0; i < count; ++i) {
      std::uint32_t number = 0;
      require(burst[i].bytes.size() == sizeof number + kPayload, "a packet of another length");
      std::memcpy(&number, burst[i].bytes.data(), sizeof number);
      require(!received.test(number), "a packet came twice");
      received.set(number);
    }
  }
}

// The host with the VLAN `to` gets `expected` of the packets from VLAN `from`; VLAN 0 = none.
void exchange(std::uint16_t from, std::uint16_t to, std::uint32_t expected) {
  ChannelPair channels;
  Process receiver("receiver", {}, [&] {
    const auto nic = open_nic(to);
    channels.left.send(nic->local_address());
    Numbers received;
    receive_numbers(*nic, received, [&] { return channels.left.readable(); });
    channels.left.receive<char>();
    receive_numbers(*nic, received, [tries = 0]() mutable {
      return ++tries > 1000;  // what waits in the socket
    });
    require(received.count() == expected, std::to_string(received.count()) + " packets came");
    const nic::NicCounters counters = nic->counters();
    require(counters.frames_refused == 0, "frames were wrong");
    require(counters.kernel_packets_received == 0, "packets came through the kernel");
  });
  Process sender("sender", {}, [&] {
    const auto nic = open_nic(from);
    send_numbers(*nic, channels.right.receive<FepAddress>());
    require(nic->counters().kernel_packets_sent == 0, "packets were left to the kernel");
    channels.right.send('e');
  });
  EXPECT_EQ(wait_for_all({&receiver, &sender}), "") << from << " to " << to;
}

TEST(VerbsVlan, FramesAreTagged) { exchange(kVlan, kVlan, kPackets); }

TEST(VerbsVlan, FramesOfAnotherVlanOrNoneAreNotTaken) {
  exchange(kVlan + 1, kVlan, 0);
  exchange(0, kVlan, 0);
}

}  // namespace
}  // namespace uet::e2e
