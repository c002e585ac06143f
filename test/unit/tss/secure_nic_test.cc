// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Two Feps with transport security between them and their NICs.
#include "tss/secure_nic.h"
#include "ses/initiator.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <functional>
#include <memory>

#include "unit/fep/fep_harness.h"
#include "unit/tss/tss_testing.h"

namespace uet::tss {
namespace {

using fep::MemoryNic;
using fep::Sink;

constexpr std::uint32_t kSdi = 0xABCD;
const Bytes kCanary = counting(0xC1, 24);

bool holds(std::span<const std::byte> bytes, std::span<const std::byte> wanted) {
  return !std::ranges::search(bytes, wanted).empty();
}

DomainConfig cluster_member(std::uint32_t ssi) {
  DomainConfig config;
  config.sdi = kSdi;
  config.ssi = ssi;
  return config;
}

// A Fep, its table of secure domains, and a NIC that is memory.
class SecuredNode {
 public:
  SecuredNode(std::uint8_t last_byte, std::uint32_t ssi)
      : SecuredNode(last_byte, cluster_member(ssi)) {}
  SecuredNode(std::uint8_t last_byte, const DomainConfig& config) : nic(last_byte) {
    EXPECT_TRUE(table.add(config).ok());
    if (config.client) {
      install_derived(config);
    } else {
      install(false, known_key());
    }
    EXPECT_TRUE(domain().activate(false, fep::kStart).ok());
    secure = std::make_unique<SecureNic>(nic, table, kSdi, true, wire::kDefaultTrimMarks);
    fep = std::make_unique<fep::Fep>(fep::small_config(last_byte), *secure, fep::kStart);
    const auto opened = fep->ses().open_context({.job = fep::kJob,
                                                 .more_jobs = {},
                                                 .pid_on_fep = PidOnFep{1},
                                                 .resource_index = ResourceIndex{0},
                                                 .initiator = InitiatorId{5},
                                                 .mode = DeliveryMode::Rud,
                                                 .tx_size = 128,
                                                 .rx_size = 128},
                                                sink);
    EXPECT_TRUE(opened.ok());
    context = opened.value();
    fep->ses().enable(*context);
  }
  void install(bool an, const Key& key) { EXPECT_TRUE(domain().install(an, key, {}).ok()); }
  // The key that the management gives to a client of the domain of known_key().
  void install_derived(const DomainConfig& config) {
    KeyMaterial derived;
    Result<Kdf> kdf = Kdf::make(known_key());
    const Identity identity{nic.local_address().ip, config.ssi};
    EXPECT_TRUE(kdf.value().derive(KeyMode::Server, {0, 0, identity}, derived));
    EXPECT_TRUE(domain().install(false, derived, {}).ok());
  }
  SecureDomain& domain() { return *table.find(kSdi); }

  MemoryNic nic;
  SdTable table;
  Sink sink;
  std::unique_ptr<SecureNic> secure;
  std::unique_ptr<fep::Fep> fep;
  ses::Context* context = nullptr;
};

class SecurePair : public testing::Test {
 protected:
  SecurePair() : SecurePair(cluster_member(11), cluster_member(12)) {}
  SecurePair(const DomainConfig& of_a, const DomainConfig& of_b) : a(1, of_a), b(2, of_b) {
    a.nic.peer = &b.nic;
    b.nic.peer = &a.nic;
    peer = {.fep = b.nic.local_address(),
            .pid_on_fep = PidOnFep{1},
            .resource_index = ResourceIndex{0},
            .initiator = InitiatorId{5}};
    for (MemoryNic* nic : {&a.nic, &b.nic}) {
      nic->on_the_way = [this](RxPacket& packet) {
        ++seen;
        clear += !packet.bytes.empty() && std::to_integer<int>(packet.bytes[0]) >> 3 != 1;
        canaries += holds(packet.bytes, kCanary);
        if (change) change(packet);
      };
    }
  }
  void post(Bytes& from, Bytes& to) {
    const ses::IoSlice source{from.data(), from.size()};
    const ses::IoSlice target{to.data(), to.size()};
    ses::ReceiveOp receive;
    receive.local = {&target, 1};
    ASSERT_TRUE(b.fep->ses().receive(*b.context, receive, now).ok());
    ses::SendOp send;
    send.peer = &peer;
    send.local = {&source, 1};
    ASSERT_TRUE(a.fep->ses().initiator().post(*a.context, send, now).ok());
  }
  // Both ends have completed `count` operations.
  bool done(std::size_t count) const {
    return a.sink.all.size() == count && b.sink.all.size() == count;
  }
  bool run(const std::function<bool()>& end, Duration limit = fep::seconds(5)) {
    for (const Time last = now + limit; !end() && now < last; now += fep::microseconds(16)) {
      a.fep->progress(now);
      b.fep->progress(now);
    }
    return end();
  }
  // Text with the canary in each packet.
  static Bytes text(std::size_t bytes) {
    Bytes data(bytes);
    for (std::size_t i = 0; i < bytes; ++i) data[i] = kCanary[i % kCanary.size()];
    return data;
  }

  SecuredNode a;
  SecuredNode b;
  ses::Peer peer;
  Time now = fep::kStart;
  std::function<void(RxPacket&)> change;
  std::size_t seen = 0;
  std::size_t clear = 0;
  std::size_t canaries = 0;
};

// A NIC in the native form, as FramedNic says so: by port 0.
class NativeNic final : public nic::Nic {
 public:
  explicit NativeNic(nic::Nic& inner) : inner_(inner) {}
  std::size_t rx_burst(std::span<RxPacket> out, Time now) override {
    const std::size_t count = inner_.rx_burst(out, now);
    for (RxPacket& packet : out.first(count)) packet.source.port = 0;
    return count;
  }
  std::size_t tx_burst(std::span<const Packet* const> in) override { return inner_.tx_burst(in); }
  std::uint16_t source_port_for(const Packet&) override { return 0; }
  const nic::NicCaps& caps() const override { return inner_.caps(); }
  FepAddress local_address() const override { return inner_.local_address(); }

 private:
  nic::Nic& inner_;
};

// TSS-4, WIRE 1.1: the AAD has the entropy header instead of ports; the Fep sees the usual port.
TEST_F(SecurePair, Tss4_NativeFormIsSealedWithItsEntropy) {
  SdTable table;
  DomainConfig config;
  config.sdi = kSdi;
  config.ssi = 11;
  ASSERT_TRUE(table.add(config).ok());
  ASSERT_TRUE(table.find(kSdi)->install(false, known_key(), {}).ok());
  ASSERT_TRUE(table.find(kSdi)->activate(false, fep::kStart).ok());
  NativeNic from(a.nic);
  NativeNic to(b.nic);
  SecureNic sender(from, a.table, kSdi, true, wire::kDefaultTrimMarks);
  SecureNic receiver(to, b.table, kSdi, true, wire::kDefaultTrimMarks);
  EXPECT_EQ(sender.source_port_for(Packet()), kUetUdpPort);

  Packet packet;
  packet.to = b.nic.local_address();
  packet.entropy = 0x4242;
  std::copy(kCanary.begin(), kCanary.end(), packet.append(kCanary.size()));
  std::vector<OpenVerdict> verdicts;
  change = [&](RxPacket& sealed) {
    Bytes room(sealed.bytes.size());
    const OuterFields native = native_fields(a.nic.local_address().ip, b.nic.local_address().ip,
                                             nic::source_port(a.nic.caps(), kUetUdpPort, 0x4242));
    const OuterFields udp = udp_fields(a.nic.local_address(), b.nic.local_address());
    verdicts.push_back(table.open(native, sealed.bytes, false, room, now).verdict);
    verdicts.push_back(table.open(udp, sealed.bytes, false, room, now).verdict);
    sealed.entropy = nic::source_port(a.nic.caps(), kUetUdpPort, 0x4242);
  };
  const std::array<const Packet*, 1> one{&packet};
  ASSERT_EQ(sender.tx_burst(one), 1U);
  std::array<RxPacket, 4> arrived;
  ASSERT_EQ(receiver.rx_burst(arrived, now), 1U);
  EXPECT_EQ(verdicts, (std::vector{OpenVerdict::Opened, OpenVerdict::AuthFail}));
  EXPECT_TRUE(std::ranges::equal(arrived[0].bytes, kCanary));
  EXPECT_EQ(arrived[0].source, a.nic.local_address());
}

// TSS-9: requests, ACKs and control packets; no plain byte of a payload on the wire.
TEST_F(SecurePair, Tss3And9_EveryPacketIsProtected) {
  Bytes from = text(100'000);
  Bytes to(from.size());
  post(from, to);
  ASSERT_TRUE(run([&] { return done(1); }));
  EXPECT_EQ(to, from);
  a.fep->begin_close(now);
  b.fep->begin_close(now);
  ASSERT_TRUE(run([&] { return a.fep->closed() && b.fep->closed(); }));
  EXPECT_GT(seen, 100U);
  EXPECT_EQ(clear, 0U);
  EXPECT_EQ(canaries, 0U);
  EXPECT_EQ(a.domain().counters().out_auth, b.domain().counters().in_auth);
  EXPECT_EQ(b.domain().counters().out_auth, a.domain().counters().in_auth);
}

// TSS-16 to TSS-21: a client with its derived key, and a server that derives the same one. With and
// without SSIs.
class ServerPair : public SecurePair {
 protected:
  explicit ServerPair(std::optional<std::uint32_t> ssi)
      : SecurePair(of_client(ssi), of_server(ssi)) {}
  static DomainConfig of_client(std::optional<std::uint32_t> ssi) {
    DomainConfig config;
    config.sdi = kSdi;
    config.mode = KeyMode::Server;
    config.client = true;
    config.ssi = ssi;
    return config;
  }
  static DomainConfig of_server(std::optional<std::uint32_t> ssi) {
    DomainConfig config;
    config.sdi = kSdi;
    config.mode = KeyMode::Server;
    if (ssi) config.clients = {{MemoryNic(1).local_address().ip, *ssi}, {ipv4(10, 0, 0, 3), 13}};
    return config;
  }
  void transfer_and_close() {
    Bytes from = text(100'000);
    Bytes to(from.size());
    post(from, to);
    ASSERT_TRUE(run([&] { return done(1); }));
    EXPECT_EQ(to, from);
    a.fep->begin_close(now);
    b.fep->begin_close(now);
    ASSERT_TRUE(run([&] { return a.fep->closed() && b.fep->closed(); }));
    EXPECT_GT(seen, 100U);
    EXPECT_EQ(clear + canaries, 0U);
    EXPECT_EQ(a.domain().counters().out_auth, b.domain().counters().in_auth);
    EXPECT_EQ(b.domain().counters().out_auth, a.domain().counters().in_auth);
    EXPECT_GT(a.domain().counters().in_auth, 0U);
  }
};
struct ServerPairBySsi : ServerPair {
  ServerPairBySsi() : ServerPair(11) {}
};
struct ServerPairByAddress : ServerPair {
  ServerPairByAddress() : ServerPair(std::nullopt) {}
};

TEST_F(ServerPairBySsi, Tss17And18_ClientServer_MessagesAndClose) { transfer_and_close(); }

TEST_F(ServerPairByAddress, Tss20And21_ClientServer_MessagesAndClose) { transfer_and_close(); }

// TSS-21: what the server and this client say to each other is noise to another client. Another
// table with the server's key opens what the client says, so the packets are given as they came.
TEST_F(ServerPairBySsi, Tss21_AnotherClientOpensNothing) {
  SecuredNode other(3, of_client(13));
  SecuredNode twin(2, of_server(11));
  const FepAddress from = a.nic.local_address();
  change = [&](RxPacket& packet) {
    const bool up = packet.source == from;
    const OuterFields fields = udp_fields(packet.source, up ? b.nic.local_address() : from);
    Bytes out(packet.bytes.size());
    EXPECT_NE(other.table.open(fields, packet.bytes, false, out, now).verdict, OpenVerdict::Opened);
    if (!up) return;
    EXPECT_EQ(twin.table.open(fields, packet.bytes, false, out, now).verdict, OpenVerdict::Opened);
  };
  transfer_and_close();
  EXPECT_EQ(other.domain().counters().in_auth, 0U);
  EXPECT_GT(other.domain().counters().in_auth_fail, 0U);
  EXPECT_EQ(twin.domain().counters().in_auth, b.domain().counters().in_auth);
}

// TSS-35, TSS-39: lost and damaged packets are sent again as new packets, and nothing is answered.
TEST_F(SecurePair, Tss35And39_DamageIsDroppedAndRepaired) {
  Bytes bad(2048);
  std::size_t damaged = 0;
  change = [&](RxPacket& packet) {
    if (seen % 10 != 0) return;
    std::ranges::copy(packet.bytes, bad.begin());
    bad[packet.bytes.size() / 2] ^= std::byte{4};
    packet.bytes = std::span(bad).first(packet.bytes.size());
    ++damaged;
  };
  Bytes from = text(50'000);
  Bytes to(from.size());
  post(from, to);
  ASSERT_TRUE(run([&] { return done(1); }, fep::seconds(60)));
  EXPECT_EQ(to, from);
  EXPECT_GT(damaged, 5U);
  EXPECT_EQ(a.domain().counters().in_auth_fail + b.domain().counters().in_auth_fail, damaged);
  EXPECT_THAT(a.fep->stats().pds.nacks_sent, testing::Each(0U));
  EXPECT_THAT(b.fep->stats().pds.nacks_sent, testing::Each(0U));
}

// TSS-5 at a FEP: marks and other classes do no harm.
TEST_F(SecurePair, Tss5_EcnAndDscpMayChange) {
  change = [](RxPacket& packet) {
    packet.ecn = Ecn::Ce;
    packet.dscp = 46;
  };
  Bytes from = text(5000);
  Bytes to(from.size());
  post(from, to);
  ASSERT_TRUE(run([&] { return done(1); }));
  EXPECT_EQ(b.domain().counters().in_auth_fail, 0U);
}

// TSS-53 to TSS-57: a rotation each millisecond of a long transfer drops nothing.
TEST_F(SecurePair, Tss53_RotationUnderLoadDropsNothing) {
  Bytes from = text(200'000);
  Bytes to(from.size());
  bool an = false;
  std::size_t messages = 0;
  for (std::uint8_t turn = 1; turn <= 20; ++turn) {
    an = !an;
    const Key key = key_of(counting(turn, kKeyBytes));
    a.install(an, key);
    b.install(an, key);
    post(from, to);
    const Time half = now + fep::microseconds(500);
    run([&] { return now >= half; });
    ASSERT_TRUE(a.domain().activate(an, now).ok());
    const Time later = now + fep::microseconds(300);
    run([&] { return now >= later; });
    ASSERT_TRUE(b.domain().activate(an, now).ok());
    ++messages;
    ASSERT_TRUE(run([&] { return done(messages); })) << int{turn};
    now += a.domain().config().guard + fep::milliseconds(1);
    a.fep->progress(now);
    b.fep->progress(now);
    ASSERT_FALSE(a.domain().has_key(!an));
  }
  for (SecuredNode* node : {&a, &b}) {
    EXPECT_EQ(node->domain().counters().in_auth_fail, 0U);
    EXPECT_EQ(node->domain().counters().in_invalid_sa, 0U);
    EXPECT_EQ(node->fep->stats().pds.rto_retransmissions, 0U);
  }
}

// TSS-46, TSS-47: an old packet is authentic; PDS drops the duplicate.
TEST_F(SecurePair, Tss46And47_Replay_DeliversNothingTwice) {
  Bytes from = text(20'000);
  Bytes to(from.size());
  Bytes copy;
  change = [&](RxPacket& packet) {  // each tenth packet is an old one
    if (seen == 3) copy.assign(packet.bytes.begin(), packet.bytes.end());
    if (seen > 3 && seen % 10 == 0) packet.bytes = copy;
  };
  post(from, to);
  ASSERT_TRUE(run([&] { return done(1); }, fep::seconds(60)));
  EXPECT_EQ(to, from);
  EXPECT_EQ(b.sink.all.size(), 1U);
}

// Step 2 and TSS-39: an unprotected packet is dropped without an answer.
TEST_F(SecurePair, Step2_UnprotectedPacketIsDropped) {
  const Bytes plain = from_hex("1000000100000001000200000000000000000000");
  change = [&](RxPacket& packet) { packet.bytes = plain; };
  Bytes from = text(100);
  Bytes to(from.size());
  post(from, to);
  EXPECT_FALSE(run([&] { return b.sink.all.size() == 1; }, fep::milliseconds(20)));
  EXPECT_GT(b.table.port_counters().in_rx_encryption_bypass, 0U);
  EXPECT_EQ(b.nic.sent, 0U);
}

// A NIC to which packets in clear come, as many as the test says.
class FloodedNic final : public nic::Nic {
 public:
  explicit FloodedNic(nic::Nic& inner) : inner_(inner) {}
  std::size_t rx_burst(std::span<RxPacket> out, Time) override {
    const std::size_t count = std::min(out.size(), left);
    left -= count;
    for (RxPacket& packet : out.first(count)) packet.bytes = plain_;
    return count;
  }
  std::size_t tx_burst(std::span<const Packet* const> in) override { return in.size(); }
  void thin_out_unprotected(bool on) override { calls.push_back(on); }
  const nic::NicCaps& caps() const override { return inner_.caps(); }
  FepAddress local_address() const override { return inner_.local_address(); }

  std::size_t left = 0;
  std::vector<bool> calls;

 private:
  nic::Nic& inner_;
  const Bytes plain_ = from_hex("1000000100000001000200000000000000000000");
};

TEST_F(SecurePair, Tss73_FloodIsThinnedOutUntilItEnds) {
  FloodedNic flooded(b.nic);
  SecureNic receiver(flooded, b.table, kSdi, true, wire::kDefaultTrimMarks);
  const auto arrive = [&](std::size_t count) {
    std::array<RxPacket, nic::kRxBurst> out;
    flooded.left = count;
    do {
      EXPECT_EQ(receiver.rx_burst(out, now), 0U);
    } while (flooded.left > 0);
    now += fep::milliseconds(1);
  };
  for (int i = 0; i < 300; ++i) arrive(9);  // 900 in 100 ms
  EXPECT_TRUE(flooded.calls.empty());
  for (int i = 0; i < 20; ++i) arrive(100);
  EXPECT_EQ(flooded.calls, std::vector{true});
  for (int i = 0; i < 300; ++i) arrive(1);  // a 16th of 16 each
  EXPECT_EQ(flooded.calls, std::vector{true});
  for (int i = 0; i < 400; ++i) arrive(i % 2);
  EXPECT_EQ(flooded.calls, (std::vector{true, false}));
}

// TSS-11, TSS-43: a packet of another secure domain that this FEP has, too.
TEST_F(SecurePair, Tss11_PacketOfAnotherDomainIsABindingFailure) {
  DomainConfig other;
  other.sdi = 5;
  for (SecuredNode* node : {&a, &b}) {
    ASSERT_TRUE(node->table.add(other).ok());
    ASSERT_TRUE(node->table.find(5)->install(false, key_of(counting(9, kKeyBytes)), {}).ok());
  }
  ASSERT_TRUE(a.table.find(5)->activate(false, now).ok());
  SecureNic stranger(a.nic, a.table, 5, false, {});
  Packet packet;
  packet.reset();
  std::fill_n(packet.append(20), 20, std::byte{0x10});
  packet.to = b.nic.local_address();
  const Packet* const one = &packet;
  EXPECT_EQ(stranger.tx_burst({&one, 1}), 1U);
  b.fep->progress(now);
  EXPECT_EQ(b.table.find(5)->counters().in_binding_failure, 1U);
  EXPECT_EQ(b.nic.sent, 0U);
}

// TSS-10: the NACK for a packet that no PDC takes is protected, under the SDI of that packet.
TEST_F(SecurePair, Tss10_NackWithoutPdcIsProtected) {
  wire::RequestHeader request;
  request.dpdcid = PdcId{77};
  request.spdcid = PdcId{3};
  Packet packet;
  packet.reset();
  std::array<std::byte, 64> header;
  const std::size_t bytes = request.encode(header.data());
  std::copy_n(header.begin(), bytes, packet.append(bytes));
  packet.to = b.nic.local_address();
  const Packet* const one = &packet;
  EXPECT_EQ(a.secure->tx_burst({&one, 1}), 1U);
  b.fep->progress(now);
  ASSERT_EQ(b.nic.sent, 1U);
  std::array<RxPacket, 1> answer;
  ASSERT_EQ(a.secure->rx_burst(answer, now), 1U);
  EXPECT_EQ(clear, 0U);
  EXPECT_EQ(std::to_integer<unsigned>(answer[0].bytes[0]) >> 3,
            wire::to_underlying(wire::PdsType::Nack));
}

// TSS-36, TSS-37: without an active key, packets are dropped and counted; the NIC takes the burst.
TEST_F(SecurePair, Tss36_PacketsThatCannotBeSealedAreDropped) {
  ASSERT_TRUE(a.table.remove(kSdi).ok());
  Packet packet;
  packet.reset();
  packet.append(12);
  packet.to = b.nic.local_address();
  const std::array<const Packet*, 2> burst = {&packet, &packet};
  EXPECT_EQ(a.secure->tx_burst(burst), 2U);
  EXPECT_EQ(a.nic.sent, 0U);
  EXPECT_EQ(a.table.port_counters().out_errored, 2U);
}

// A packet is sent again from its own bytes, and its payload is memory of the application.
TEST_F(SecurePair, Tss35_SealingLeavesThePacketAlone) {
  const Bytes plain = text(1000);
  Bytes payload = plain;
  Packet packet;
  packet.reset();
  std::copy(kCanary.begin(), kCanary.end(), packet.append(kCanary.size()));
  packet.payload[0] = {payload.data(), static_cast<std::uint32_t>(payload.size())};
  packet.to = b.nic.local_address();
  const std::array<const Packet*, 1> burst = {&packet};
  ASSERT_EQ(a.secure->tx_burst(burst), 1U);
  EXPECT_TRUE(std::ranges::equal(packet.head(), kCanary));
  EXPECT_EQ(payload, plain);
  EXPECT_EQ(packet.payload[0].data, payload.data());
}

// A NIC that remembers the packets that it has handed over, and their bytes.
class RememberingNic final : public nic::Nic {
 public:
  explicit RememberingNic(nic::Nic& inner) : inner_(inner) {}
  std::size_t rx_burst(std::span<RxPacket> out, Time now) override {
    const std::size_t count = inner_.rx_burst(out, now);
    for (const RxPacket& packet : out.first(count)) {
      views.push_back(packet.bytes);
      contents.emplace_back(packet.bytes.begin(), packet.bytes.end());
    }
    return count;
  }
  std::size_t tx_burst(std::span<const Packet* const> in) override { return inner_.tx_burst(in); }
  const nic::NicCaps& caps() const override { return inner_.caps(); }
  FepAddress local_address() const override { return inner_.local_address(); }

  std::vector<std::span<const std::byte>> views;
  std::vector<Bytes> contents;

 private:
  nic::Nic& inner_;
};

// TSS-40: the memory of the NIC, which others may write meanwhile, is neither read after the check
// of the ICV nor written.
TEST_F(SecurePair, Tss40_PlainTextIsInAPrivateBuffer) {
  RememberingNic from(b.nic);
  SecureNic receiver(from, b.table, kSdi, true, wire::kDefaultTrimMarks);
  const Bytes plain = text(200);
  Packet packet;
  packet.reset();
  packet.payload[0] = {plain.data(), static_cast<std::uint32_t>(plain.size())};
  packet.to = b.nic.local_address();
  const std::array<const Packet*, 2> burst = {&packet, &packet};
  ASSERT_EQ(a.secure->tx_burst(burst), 2U);
  std::array<RxPacket, 4> arrived;
  ASSERT_EQ(receiver.rx_burst(arrived, now), 2U);
  ASSERT_EQ(from.views.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_TRUE(std::ranges::equal(arrived[i].bytes, plain));
    EXPECT_TRUE(std::ranges::equal(from.views[i], from.contents[i]));
    const std::byte* const at = arrived[i].bytes.data();
    EXPECT_TRUE(at + plain.size() <= from.views[i].data() ||
                at >= from.views[i].data() + from.views[i].size());
  }
}

// A full NIC: the prefix is that of the inner NIC, and the rest is sealed again.
TEST_F(SecurePair, Tss35_RefusedPacketTakesANewTsc) {
  Packet packet;
  packet.reset();
  packet.append(12);
  packet.to = b.nic.local_address();
  const std::array<const Packet*, 3> burst = {&packet, &packet, &packet};
  a.nic.accept = 1;
  EXPECT_EQ(a.secure->tx_burst(burst), 1U);
  EXPECT_EQ(a.domain().position(false)->tsc, 4U);
  EXPECT_EQ(a.secure->tx_burst(std::span(burst).subspan(1)), 1U);
  EXPECT_EQ(a.domain().position(false)->tsc, 6U);
}

TEST_F(SecurePair, Tss61And63_CapabilitiesShrink) {
  MemoryNic nic(9);
  nic.capabilities.reads_registered_memory = true;
  const SecureNic with(nic, a.table, kSdi, true, {});
  const SecureNic without(nic, a.table, kSdi, false, {});
  EXPECT_EQ(with.caps().ip_mtu, 9000U - 32);
  EXPECT_EQ(without.caps().ip_mtu, 9000U - 28);
  EXPECT_FALSE(with.caps().reads_registered_memory);
}

// A request of this job to be sealed under `sdi`.
void write_request(Packet& packet, JobId job, const FepAddress& to, std::uint32_t sdi) {
  packet.reset();
  wire::SesRequest ses;
  ses.job_id = job;
  packet.append_with(64, [&](std::byte* at) { return ses.encode(at); });
  const wire::UudHeader header{.next_hdr = wire::NextHdr::RequestStd};
  header.encode(packet.prepend(sizeof(wire::PdsUud)));
  packet.to = to;
  packet.to.sdi = sdi;
}

// TSS-67: the JobIDs that a secure domain may use are a property of that domain.
TEST_F(SecurePair, Tss67_JobNotInDomain_IsABindingFailure) {
  DomainConfig other;
  other.sdi = 5;
  other.jobs = {3};
  for (SecuredNode* node : {&a, &b}) {
    ASSERT_TRUE(node->table.add(other).ok());
    ASSERT_TRUE(node->table.find(5)->install(false, key_of(counting(9, kKeyBytes)), {}).ok());
    ASSERT_TRUE(node->table.find(5)->activate(false, now).ok());
    node->secure->use(5);
  }
  std::array<RxPacket, 2> arrived;
  for (const std::uint32_t job : {3U, 4U}) {
    Packet packet;
    write_request(packet, JobId{job}, b.nic.local_address(), 5);
    const Packet* const one = &packet;
    ASSERT_EQ(a.secure->tx_burst({&one, 1}), 1U);
    const std::size_t count = b.secure->rx_burst(arrived, now);
    ASSERT_EQ(count, job == 3 ? 1U : 0U);
  }
  EXPECT_EQ(b.table.find(5)->counters().in_binding_failure, 1U);
  EXPECT_EQ(b.nic.sent, 0U);
}

// TSS-11: a packet is sealed under the SDI of its destination, its source has the SDI with which it
// was opened, and the FEP's own domain is 0 at both.
TEST_F(SecurePair, Tss11_DestinationAndSourceNameTheDomain) {
  DomainConfig other;
  other.sdi = 5;
  for (SecuredNode* node : {&a, &b}) {
    ASSERT_TRUE(node->table.add(other).ok());
    ASSERT_TRUE(node->table.find(5)->install(false, key_of(counting(9, kKeyBytes)), {}).ok());
    ASSERT_TRUE(node->table.find(5)->activate(false, now).ok());
  }
  std::array<RxPacket, 2> arrived;
  const auto pass = [&](std::uint32_t sdi) {
    Packet packet;
    write_request(packet, JobId{1}, b.nic.local_address(), sdi);
    const Packet* const one = &packet;
    EXPECT_EQ(a.secure->tx_burst({&one, 1}), 1U);
    return b.secure->rx_burst(arrived, now);
  };
  ASSERT_EQ(pass(0), 1U);
  EXPECT_EQ(arrived[0].source.sdi, 0U);
  EXPECT_EQ(pass(5), 0U) << "b does not use it";
  b.secure->use(5);
  ASSERT_EQ(pass(5), 1U);
  EXPECT_EQ(arrived[0].source.sdi, 5U);
  EXPECT_EQ(a.table.find(5)->counters().out_auth, 2U);
  b.secure->drop(5);
  EXPECT_EQ(pass(5), 0U);
  EXPECT_EQ(b.table.find(5)->counters().in_binding_failure, 2U);
}

// PDS-153, TSS-13: a trimmed packet is dropped without a NACK and counted apart; PDS repairs the
// loss.
TEST_F(SecurePair, Pds153AndTss13_TrimmedPacketsAreLost) {
  std::size_t trimmed = 0;
  change = [&](RxPacket& packet) {
    if (seen % 7 != 0) return;
    packet.trimmed = true;
    packet.bytes = packet.bytes.first(16);
    ++trimmed;
  };
  Bytes from = text(50'000);
  Bytes to(from.size());
  post(from, to);
  ASSERT_TRUE(run([&] { return done(1); }, fep::seconds(60)));
  EXPECT_EQ(to, from);
  EXPECT_GT(trimmed, 3U);
  EXPECT_EQ(a.table.port_counters().in_trimmed + b.table.port_counters().in_trimmed, trimmed);
  EXPECT_EQ(a.domain().counters().in_auth_fail + b.domain().counters().in_auth_fail, 0U);
  EXPECT_THAT(a.fep->stats().pds.nacks_sent, testing::Each(0U));
  EXPECT_THAT(b.fep->stats().pds.nacks_sent, testing::Each(0U));
}

}  // namespace
}  // namespace uet::tss
