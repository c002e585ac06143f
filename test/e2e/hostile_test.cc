// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Anybody can send to a UDP port. Random datagrams and damaged copies of real UET packets, aimed at
// both processes during a transfer, change no byte, fail no operation and end no process.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "harness.h"

namespace uet::e2e {
namespace {

constexpr std::size_t kBytes = 30000;
constexpr std::size_t kWindow = 8;
constexpr std::uint64_t kMinMessages = 500;
constexpr std::uint64_t kDatagrams = 40000;  // to each port, at least

using Bytes = std::vector<std::uint8_t>;

std::vector<Bytes> real_packets() {
  std::ifstream file(std::string(UET_SOURCE_DIR) + "/test/vectors/uet-wire-vectors.json");
  std::vector<Bytes> packets;
  for (const auto& vector : nlohmann::json::parse(file)) {
    const std::string hex = vector.at("hex");
    Bytes packet;
    for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
      packet.push_back(static_cast<std::uint8_t>(std::stoi(hex.substr(i, 2), nullptr, 16)));
    }
    packets.push_back(std::move(packet));
  }
  return packets;
}

// A third is noise, a third a real packet as it is, a third a real packet with bits flipped, bytes
// replaced, the PDC ids drawn again, or its end cut off or made longer.
Bytes draw(std::mt19937_64& random, const std::vector<Bytes>& real) {
  if (random() % 3 == 0) {
    Bytes noise(random() % 2000);
    for (auto& byte : noise) byte = static_cast<std::uint8_t>(random());
    return noise;
  }
  Bytes packet = real[random() % real.size()];
  if (random() % 2 == 0) return packet;
  for (std::uint64_t changes = 1 + random() % 4; changes > 0 && !packet.empty(); --changes) {
    const std::size_t at = random() % packet.size();
    switch (random() % 5) {
      case 0:
        packet[at] ^= static_cast<std::uint8_t>(1U << (random() % 8));
        break;
      case 1:
        packet[at] = static_cast<std::uint8_t>(random());
        break;
      case 2:
        packet.resize(at);
        break;
      case 3:
        packet.resize(packet.size() + random() % 100);
        break;
      default:
        for (std::size_t i = 8; i < std::min<std::size_t>(12, packet.size()); ++i) {
          packet[i] = static_cast<std::uint8_t>(random());
        }
    }
  }
  return packet;
}

// Sends until it is told to stop, at least kDatagrams to each port, from changing source ports:
// some of them in the range where UET processes listen, so that answers come back as well.
void attack(Channel& channel) {
  const auto targets = channel.receive<std::array<sockaddr_in, 2>>();
  const std::vector<Bytes> real = real_packets();
  std::mt19937_64 random(1);
  std::vector<int> sockets;
  for (int i = 0; i < 4; ++i) {
    const int fd = ::socket(AF_INET, SOCK_DGRAM, 0);
    require(fd >= 0, "socket");
    sockaddr_in own{};
    own.sin_family = AF_INET;
    own.sin_addr.s_addr = ::inet_addr(own_address().c_str());
    own.sin_port = htons(static_cast<std::uint16_t>(i == 0 ? 5800 : 0));
    if (::bind(fd, reinterpret_cast<sockaddr*>(&own), sizeof own) == 0) {
      sockets.push_back(fd);
    } else {
      ::close(fd);
    }
  }
  require(!sockets.empty(), "no socket to attack from");
  for (std::uint64_t i = 0; i < kDatagrams || !channel.readable(); ++i) {
    for (const sockaddr_in& to : targets) {
      const Bytes packet = draw(random, real);
      ::sendto(sockets[random() % sockets.size()], packet.data(), packet.size(), MSG_DONTWAIT,
               reinterpret_cast<const sockaddr*>(&to), sizeof to);
    }
    if (i == kDatagrams) channel.send('d');
  }
}

void* as_context(std::size_t index) { return reinterpret_cast<void*>(index + 1); }

// Sends tagged messages and writes until the attack is over; then tells how many.
void send_through(Channel& channel, Channel& attacker) {
  Node node;
  const fi_addr_t peer = node.connect(channel);
  const auto remote = channel.receive<RemoteRegion>(&node);
  const auto peer_address = channel.receive<sockaddr_in>(&node);
  attacker.send(std::array<sockaddr_in, 2>{udp_address(node.name()), peer_address});

  std::vector<std::byte> memory(2 * kWindow * kBytes);
  std::vector<std::size_t> free_slots;
  for (std::size_t slot = 0; slot < kWindow; ++slot) free_slots.push_back(slot);
  std::uint64_t messages = 0;
  std::uint64_t written = 0;
  for (std::uint64_t round = 0; messages < kMinMessages || round % 64 != 0 || !attacker.readable();
       ++round) {
    if (!free_slots.empty()) {
      const std::size_t slot = free_slots.back();
      free_slots.pop_back();
      const auto data = std::span(memory).subspan(slot * kBytes, kBytes);
      fill_pattern(data, messages);
      node.post("sending", [&] {
        return fi_tsend(node.ep.get(), data.data(), kBytes, nullptr, peer, messages,
                        as_context(slot));
      });
      const auto source = std::span(memory).subspan((kWindow + slot) * kBytes, kBytes);
      fill_pattern(source, slot);
      node.post("writing", [&] {
        return fi_write(node.ep.get(), source.data(), kBytes, nullptr, peer,
                        remote.address + slot * kBytes, remote.key, nullptr);
      });
      ++messages;
      ++written;
    }
    const auto event = node.poll();
    if (!event) continue;
    require(event->error == 0, std::string("an operation failed: ") + fi_strerror(event->error));
    if (event->context == nullptr) {
      --written;
    } else {
      free_slots.push_back(reinterpret_cast<std::uintptr_t>(event->context) - 1);
    }
  }
  while (written > 0 || free_slots.size() < kWindow) {
    if (node.next("an operation").context == nullptr) {
      --written;
    } else {
      free_slots.push_back(0);
    }
  }
  channel.send(messages);
  channel.meet(&node);
  attacker.send('s');
}

void receive_through(Channel& channel) {
  Node node;
  node.connect(channel);
  std::vector<std::byte> target(kWindow * kBytes);
  const Region region = node.expose(target.data(), target.size(), 5);
  channel.send(RemoteRegion{region.address, region.key});
  channel.send(udp_address(node.name()));

  std::vector<std::byte> memory(kWindow * kBytes);
  std::uint64_t posted = 0;
  const auto post = [&](std::size_t slot) {
    node.post("posting a receive", [&] {
      return fi_trecv(node.ep.get(), memory.data() + slot * kBytes, kBytes, nullptr, FI_ADDR_UNSPEC,
                      posted, 0, as_context(slot));
    });
    ++posted;
  };
  for (std::size_t slot = 0; slot < kWindow; ++slot) post(slot);
  std::uint64_t received = 0;
  const auto take = [&](const auto& event) {
    require(event.error == 0, std::string("a receive failed: ") + fi_strerror(event.error));
    require(event.length == kBytes, "a message of another length");
    const std::size_t slot = reinterpret_cast<std::uintptr_t>(event.context) - 1;
    require_pattern(std::span(memory).subspan(slot * kBytes, kBytes), event.tag, "message");
    ++received;
    post(slot);
  };
  for (std::uint64_t round = 0; round % 64 != 0 || !channel.readable(); ++round) {
    const auto event = node.poll();
    if (event) take(*event);
  }
  const auto sent = channel.receive<std::uint64_t>();
  // Many may be unexpected: a sender is done when they are kept.
  while (received < sent) take(node.next("a receive"));
  for (std::size_t slot = 0; slot < kWindow; ++slot) {
    require_pattern(std::span(target).subspan(slot * kBytes, kBytes), slot, "written memory");
  }
  require(received == sent && !node.poll(), "more messages than were sent");
  channel.meet(&node);
}

TEST(Hostile, RandomDatagramsDuringTransfer_ChangeNothing) {
  if (provider() != "uet") GTEST_SKIP() << "needs the UDP port of a uet endpoint";
  ChannelPair channels;
  ChannelPair attackers;
  Process receiver("receiver", {}, [&] { receive_through(channels.left); });
  Process sender("sender", {}, [&] { send_through(channels.right, attackers.left); });
  Process attacker("attacker", {}, [&] { attack(attackers.right); });
  EXPECT_EQ(wait_for_all({&receiver, &sender, &attacker}), "");
}

}  // namespace
}  // namespace uet::e2e
