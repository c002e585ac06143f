// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Three hosts: a victim, its legitimate peer, and a stranger who attacks. Whatever the attack, each
// operation of the peer ends well with the right data, and a newcomer gets its first answer. The
// rate of the peer before, during and after the attack is printed, not judged: scripts/hostile
// does.
//
// Runs inside in_network with three hosts. UET_HOSTILE_SECONDS=N: length of each phase (1).
// UET_HOSTILE_RATE=N: packets of the stranger in a second, instead of those of the attack.
#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

#include "attacks.h"
#include "e2e/harness.h"

namespace uet::hostile {
namespace {

using e2e::Channel;
using e2e::ChannelPair;
using e2e::Clock;
using e2e::Event;
using e2e::Node;
using e2e::require;

constexpr std::size_t kMessage = 4096;
constexpr std::size_t kWrite = 65536;
constexpr std::uint64_t kEcho = 1;   // tag of a message that the victim sends back
constexpr std::uint64_t kHello = 2;  // of a newcomer's name
constexpr std::uint64_t kRegionKey = 77;
constexpr std::uint64_t kStrangersKey = 78;  // of a region that the stranger knows
constexpr std::uint64_t kIdempotentKey = std::uint64_t{1} << 63 | 79;  // of the same, for RUDI
constexpr std::chrono::seconds kLongest{15};  // of one operation, attacked or not

double phase_seconds() {
  const char* seconds = std::getenv("UET_HOSTILE_SECONDS");
  return seconds == nullptr ? 1 : std::strtod(seconds, nullptr);
}

double packets_per_second(const Attack& attack) {
  const char* rate = std::getenv("UET_HOSTILE_RATE");
  return rate == nullptr ? attack.packets_per_second : std::strtod(rate, nullptr);
}

double since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

Event await(Node& node, const char* what) {
  const Clock::time_point begin = Clock::now();
  for (;;) {
    if (const auto event = node.poll()) {
      require(event->error == 0, std::string(what) + ": " + fi_strerror(event->error));
      return *event;
    }
    require(Clock::now() - begin < kLongest, std::string(what) + " did not end in 15 s");
  }
}

// Returns what comes with the tag kEcho to the peer, and greets newcomers.
class Victim {
 public:
  Victim() : written_(kWrite), known_(kWrite), secret_(kWrite) {
    e2e::fill_pattern(secret_, kSecretSeed);
    region_ = node_.expose(written_.data(), written_.size(), kRegionKey);
    strangers_ = node_.expose(known_.data(), known_.size(), kStrangersKey);
    idempotent_ = node_.expose(known_.data(), known_.size(), kIdempotentKey);
    for (std::size_t i = 0; i < messages_.size(); ++i) post(i);
  }

  // Until `control` has something to say.
  void serve(const Attack& attack, Channel& peer, Channel& control, Channel& stranger) {
    peer_ = node_.connect(peer);
    peer.send(e2e::RemoteRegion{region_.address, region_.key});
    Knowledge known;
    known.victim = e2e::udp_address(node_.name());
    known.peer = peer.receive<sockaddr_in>(&node_);
    known.key = strangers_.key;
    known.address = strangers_.address;
    known.idempotent_key = idempotent_.key;
    stranger.send(known);
    // Answers to addresses that no host has leave by way of the stranger's host.
    const auto by = stranger.receive<in_addr>(&node_);
    const std::string route = std::string("ip route replace 10.100.0.0/14 via ") + ::inet_ntoa(by);
    require(std::system(route.c_str()) == 0, route);
    peer.send('r');
    while (!control.readable()) take();
    control.receive<char>();
    e2e::require_pattern(secret_, kSecretSeed, "memory that no peer may write");
    std::printf(
        "victim: %llu packets received; strays dropped %llu, SYNs dropped %llu; CPU %.2f s\n",
        count("nic_packets_received"), count("nic_strays_dropped"), count("nic_syns_dropped"),
        static_cast<double>(std::clock()) / CLOCKS_PER_SEC);
    const bool guarded = std::string(node_.info->nic->device_attr->driver) == "xdp";
    require(attack.stopped == nullptr || !guarded || count(attack.stopped) > kStopped,
            "the guard did not stop the attack");
  }

 private:
  static constexpr std::uint64_t kSecretSeed = 4242;
  static constexpr std::uint64_t kStopped = 2000;  // packets of an attack, at least

  unsigned long long count(const char* name) { return node_.counter(name); }

  void post(std::size_t slot) {
    node_.post("receiving", [&] {
      return fi_trecv(node_.ep.get(), messages_[slot].data(), kMessage, nullptr, FI_ADDR_UNSPEC, 0,
                      kEcho | kHello, messages_[slot].data());
    });
  }
  void take() {
    const auto event = node_.poll();
    if (!event) return;
    require(event->error == 0, std::string("victim: ") + fi_strerror(event->error));
    auto& message = *static_cast<std::array<std::byte, kMessage>*>(event->context);
    const auto slot = static_cast<std::size_t>(&message - messages_.data());
    if ((event->flags & FI_SEND) != 0) {
      post(slot);
      return;
    }
    const bool hello = event->tag == kHello;
    const fi_addr_t to = hello ? node_.insert(std::span(message).first(event->length)) : peer_;
    node_.post("answering", [&] {
      return fi_tsend(node_.ep.get(), message.data(), event->length, nullptr, to, event->tag,
                      message.data());
    });
  }

  Node node_;
  std::array<std::array<std::byte, kMessage>, 8> messages_;
  std::vector<std::byte> written_;
  std::vector<std::byte> known_;
  std::vector<std::byte> secret_;
  e2e::Region region_;
  e2e::Region strangers_;
  e2e::Region idempotent_;
  fi_addr_t peer_ = FI_ADDR_UNSPEC;
};

// One round: a message and its echo, a write and a read of what was written; all data checked.
class Client {
 public:
  explicit Client(Channel& victim) : to_(node_.connect(victim)) {
    region_ = victim.receive<e2e::RemoteRegion>(&node_);
    victim.send(e2e::udp_address(node_.name()));
    victim.receive<char>(&node_);
  }

  // Rounds per second, for so long.
  double rate(double seconds) {
    const Clock::time_point begin = Clock::now();
    std::uint64_t rounds = 0;
    for (; since(begin) < seconds; ++rounds) round();
    return static_cast<double>(rounds) / since(begin);
  }
  double longest_round_seconds() const { return longest_; }
  void let_pass(double seconds) {
    const Clock::time_point begin = Clock::now();
    while (since(begin) < seconds) node_.keep_events();
  }

  // How long another endpoint waits for the victim's answer to its first message.
  double first_contact_seconds(std::span<const std::byte> victim_name) {
    Node newcomer;
    const fi_addr_t victim = newcomer.insert(victim_name);
    const std::vector<std::byte> name = newcomer.name();
    std::vector<std::byte> answer(kMessage);
    const Clock::time_point begin = Clock::now();
    newcomer.post("receiving", [&] {
      return fi_trecv(newcomer.ep.get(), answer.data(), answer.size(), nullptr, FI_ADDR_UNSPEC,
                      kHello, 0, answer.data());
    });
    newcomer.post("greeting", [&] {
      return fi_tsend(newcomer.ep.get(), name.data(), name.size(), nullptr, victim, kHello,
                      nullptr);
    });
    for (int i = 0; i < 2; ++i) await(newcomer, "first contact of a newcomer");
    return since(begin);
  }
  std::vector<std::byte> name_of_victim() {
    std::vector<std::byte> name(256);
    std::size_t length = name.size();
    e2e::check(fi_av_lookup(node_.av.get(), to_, name.data(), &length), "fi_av_lookup");
    name.resize(length);
    return name;
  }

 private:
  void round() {
    const Clock::time_point begin = Clock::now();
    ++seed_;
    e2e::fill_pattern(message_, seed_);
    node_.post("receiving", [&] {
      return fi_trecv(node_.ep.get(), echo_.data(), echo_.size(), nullptr, to_, kEcho, 0, nullptr);
    });
    node_.post("sending", [&] {
      return fi_tsend(node_.ep.get(), message_.data(), message_.size(), nullptr, to_, kEcho,
                      nullptr);
    });
    for (int i = 0; i < 2; ++i) await(node_, "message and echo");
    e2e::require_pattern(echo_, seed_, "echo");
    e2e::fill_pattern(write_, seed_);
    node_.post("writing", [&] {
      return fi_write(node_.ep.get(), write_.data(), write_.size(), nullptr, to_, region_.address,
                      region_.key, nullptr);
    });
    await(node_, "write");
    node_.post("reading", [&] {
      return fi_read(node_.ep.get(), read_.data(), read_.size(), nullptr, to_, region_.address,
                     region_.key, nullptr);
    });
    await(node_, "read");
    e2e::require_pattern(read_, seed_, "what was read");
    longest_ = std::max(longest_, since(begin));
  }

  Node node_;
  const fi_addr_t to_;
  e2e::RemoteRegion region_;
  std::vector<std::byte> message_ = std::vector<std::byte>(kMessage);
  std::vector<std::byte> echo_ = std::vector<std::byte>(kMessage);
  std::vector<std::byte> write_ = std::vector<std::byte>(kWrite);
  std::vector<std::byte> read_ = std::vector<std::byte>(kWrite);
  std::uint64_t seed_ = 0;
  double longest_ = 0;
};

void work(const Attack& attack, Channel& victim, Channel& stop_victim, Channel& stranger) {
  const double seconds = phase_seconds();
  Client client(victim);
  client.rate(0.2);
  const double before = client.rate(2 * seconds);
  stranger.send('b');
  const double during = client.rate(3 * seconds);
  const double first_contact = client.first_contact_seconds(client.name_of_victim());
  stranger.send('e');
  const auto packets = stranger.receive<std::uint64_t>();
  client.let_pass(seconds);
  const double after = client.rate(2 * seconds);
  stop_victim.send('s');
  std::printf(
      "attack %-16s %8llu packets; rounds/s before %.0f, during %.2f, after %.2f of it; "
      "first contact %.1f ms; longest round %.1f ms; marks %.2f and %.0f ms\n",
      attack.name, static_cast<unsigned long long>(packets), before, during / before,
      after / before, first_contact * 1e3, client.longest_round_seconds() * 1e3, attack.kept_rate,
      attack.contact_ms);
}

void strike(const Attack& attack, Channel& victim, Channel& peer) {
  auto known = victim.receive<Knowledge>();
  ::inet_aton(e2e::own_address().c_str(), &known.own);
  victim.send(known.own);
  Stranger stranger(known, packets_per_second(attack));
  peer.receive<char>();
  const Clock::time_point begin = Clock::now();
  const FrameBytes before = frame_bytes();
  stranger.begin();
  attack.run(stranger, [&] { return !peer.readable(); });
  const FrameBytes after = frame_bytes();
  const auto sent = static_cast<double>(after.sent - before.sent);
  const auto came = static_cast<double>(after.came - before.came);
  std::printf("reflected %-16s %.2f bytes for each that was sent\n", attack.name, came / sent);
  const double budget = attack.most == Reflected::Rudi ? 64 * 1024 + 1e6 * since(begin) : 0;
  require(attack.most == Reflected::Anything || came <= 3 * sent + budget,
          "the victim sends too much to invented sources");
  peer.receive<char>();
  peer.send(stranger.sent());
}

class HostileHosts : public testing::TestWithParam<Attack> {};

TEST_P(HostileHosts, ThePeerIsServed) {
  if (std::getenv("UET_E2E_HOSTS") == nullptr) GTEST_SKIP() << "needs the hosts of in_network";
  ChannelPair peers;
  ChannelPair stops;
  ChannelPair knowledge;
  ChannelPair orders;
  constexpr std::chrono::seconds kDeadline{240};
  e2e::Process victim(
      "victim", {}, [&] { Victim().serve(GetParam(), peers.left, stops.left, knowledge.left); },
      kDeadline);
  e2e::Process client(
      "client", {}, [&] { work(GetParam(), peers.right, stops.right, orders.left); }, kDeadline);
  e2e::Process stranger(
      "stranger", {}, [&] { strike(GetParam(), knowledge.right, orders.right); }, kDeadline);
  EXPECT_EQ(e2e::wait_for_all({&victim, &client, &stranger}), "");
}

INSTANTIATE_TEST_SUITE_P(All, HostileHosts, testing::ValuesIn(attacks()),
                         [](const auto& attack) { return attack.param.name; });

}  // namespace
}  // namespace uet::hostile
