// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A device with a transmit queue for control packets takes them while that for data is full. Runs
// inside in_network, on two hosts: verbs over the stand-in, whose queue pairs that receive send
// nothing; dpdk over net_ring, whose queues are not read.
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <string>

#include "e2e/harness.h"
#include "nic/registry.h"

namespace uet::e2e {
namespace {

struct Device {
  const char* name;
  const char* options;
  std::size_t queue;     // packets that fit the queue for data at most
  std::size_t arriving;  // control packets that reach the other host
};

class ControlQueue : public ::testing::TestWithParam<Device> {};

FabricAddress own_ip() {
  std::string message;
  const auto interfaces = nic::list_interfaces(message);
  require(static_cast<bool>(interfaces), message);
  for (const nic::Interface& interface : interfaces.value()) {
    if (interface.name == "eth0") return interface.addresses.at(0).ip;
  }
  fail("no eth0");
}

constexpr std::size_t kControlBytes = 64;
constexpr std::size_t kDataBytes = 96;

void fill(Packet& packet, const FepAddress& to, bool control) {
  packet.reset();
  packet.append(control ? kControlBytes : kDataBytes);
  packet.to = to;
  packet.control = control;
}

// Offers one packet; true if the NIC takes it.
bool offer(nic::Nic& nic, const FepAddress& to, bool control) {
  Packet packet;
  fill(packet, to, control);
  const std::array<const Packet*, 1> burst{&packet};
  return nic.tx_burst(burst) == 1;
}

Time now() { return Time(std::chrono::duration_cast<Duration>(Clock::now().time_since_epoch())); }

void await_control(nic::Nic& nic, std::size_t wanted) {
  const auto limit = Clock::now() + kDeadline;
  std::array<RxPacket, nic::kRxBurst> burst;
  for (std::size_t came = 0; came < wanted;) {
    const std::size_t count = nic.rx_burst(burst, now());
    for (std::size_t i = 0; i < count; ++i) came += burst[i].bytes.size() == kControlBytes;
    require(Clock::now() < limit, std::to_string(came) + " control packets came");
  }
}

// The kernel carries packets until it knows the next hop.
void reach(nic::Nic& nic, const FepAddress& to) {
  const auto limit = Clock::now() + kDeadline;
  for (;;) {
    const std::uint64_t before = nic.counters().kernel_packets_sent;
    require(offer(nic, to, false), "a packet was refused at the start");
    if (nic.counters().kernel_packets_sent == before) return;
    require(Clock::now() < limit, "the next hop stays unknown");
    std::array<RxPacket, nic::kRxBurst> none;
    nic.rx_burst(none, now());
  }
}

TEST_P(ControlQueue, TakesControlWhileDataIsRefused) {
  ChannelPair channels;
  const Device& device = GetParam();
  Process other("other", {}, [&] {
    nic::NicConfig config;
    config.ip = own_ip();
    std::string message;
    auto opened = nic::open_nic(config, message);
    require(static_cast<bool>(opened), message);
    channels.left.send(opened.value()->local_address());
    await_control(*opened.value(), device.arriving);
    channels.left.receive<char>();
  });
  Process sender("sender", {{"UET_FAKE_VERBS", "stalls"}}, [&] {
    const auto to = channels.right.receive<FepAddress>();
    nic::NicConfig config;
    config.back_end = device.name;
    config.options = device.options;
    config.modules = std::getenv("FI_PROVIDER_PATH");
    config.ip = own_ip();
    std::string message;
    auto opened = nic::open_nic(config, message);
    require(static_cast<bool>(opened), message);
    nic::Nic& nic = *opened.value();
    reach(nic, to);
    std::size_t taken = 0;
    while (taken <= device.queue && offer(nic, to, false)) ++taken;
    require(taken <= device.queue, "the queue for data takes all");
    require(offer(nic, to, true), "a control packet was refused with the data");
    require(!offer(nic, to, false), "data was taken after it");
    Packet data;
    Packet control;
    fill(data, to, false);
    fill(control, to, true);
    const std::array<const Packet*, 3> burst{&control, &data, &control};
    require(nic.tx_burst(burst) == 1, "not the control packet alone was taken");
    channels.right.send('e');
  });
  EXPECT_EQ(wait_for_all({&other, &sender}), "");
}

INSTANTIATE_TEST_SUITE_P(All, ControlQueue,
                         ::testing::Values(Device{"verbs", "", 1024, 2},
                                           Device{"dpdk", "net_ring0", 8192, 0}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace uet::e2e
