// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "tss/secure_domain.h"

#include <gmock/gmock.h>

#include <set>

#include "unit/tss/tss_testing.h"

namespace uet::tss {
namespace {

using testing::Each;
using History = SenderStart::History;

const FabricAddress kServer = ipv4(10, 0, 0, 7);
const FabricAddress kClient = ipv4(10, 0, 0, 9);
const OuterFields kUdp = udp_fields({kServer, 0xC123}, {kClient, 4793});
const OuterFields kBack = udp_fields({kClient, 0xC123}, {kServer, 4793});
const OuterFields kNative = native_fields(kServer, kClient, 0x4242);
const OuterFields kNative6 = native_fields(ipv6(0x2A), ipv6(0x2B), 0x4242);

std::string first_hex(const Bytes& packet, std::size_t count) {
  return to_hex(std::span(packet).first(count));
}

Time at(double seconds) { return time_from_ns(static_cast<std::int64_t>(seconds * 1e9)); }

// One member of a secure domain.
struct Member {
  explicit Member(const DomainConfig& config) : services(64), domain(config, services) {}

  // Installs and activates `key`.
  void start(bool an = false, const Key& key = known_key(), const SenderStart& from = {}) {
    ASSERT_TRUE(domain.install(an, key, from).ok());
    ASSERT_TRUE(domain.activate(an, {}).ok());
  }
  Bytes seal(const OuterFields& outer, const Bytes& plain, SealVerdict expected) {
    const Slice piece{plain.data(), static_cast<std::uint32_t>(plain.size())};
    Bytes out(plain.size() + domain.overhead());
    const SealResult result = domain.seal(outer, {&piece, 1}, out);
    EXPECT_EQ(result.verdict, expected);
    out.resize(result.bytes);
    return out;
  }
  Bytes seal(const OuterFields& outer, const Bytes& plain = counting(0x40, 32)) {
    return seal(outer, plain, SealVerdict::Sealed);
  }
  OpenResult open(const OuterFields& outer, const Bytes& packet, Time now = {}) {
    wire::SecurityHeader header;
    EXPECT_TRUE(wire::SecurityHeader::decode(packet, header));
    plain.assign(packet.size(), std::byte{0xEE});
    const OpenResult result = domain.open(header, outer, packet, plain, now);
    if (result.verdict == OpenVerdict::Opened) plain.resize(result.bytes);
    return result;
  }
  OpenVerdict verdict(const OuterFields& outer, const Bytes& packet, Time now = {}) {
    return open(outer, packet, now).verdict;
  }
  const DomainCounters& counters() const { return domain.counters(); }

  DomainServices services;
  SecureDomain domain;
  Bytes plain;
};

DomainConfig config_of(KeyMode mode, std::uint32_t sdi = 1, std::optional<std::uint32_t> ssi = {}) {
  DomainConfig config;
  config.mode = mode;
  config.sdi = sdi;
  config.ssi = ssi;
  return config;
}

DomainConfig server_config() {
  DomainConfig config = config_of(KeyMode::Server);
  config.clients = {{kClient, 2}};
  return config;
}

DomainConfig client_config(std::uint32_t ssi) {
  DomainConfig config = config_of(KeyMode::Server, 1, ssi);
  config.client = true;
  return config;
}

// The key that the management gives to a client of the domain of known_key().
KeyMaterial client_key(const FabricAddress& address, std::optional<std::uint32_t> ssi) {
  KeyMaterial material;
  Result<Kdf> kdf = Kdf::make(known_key());
  EXPECT_TRUE(kdf.value().derive(KeyMode::Server, {0, 0, {address, ssi}}, material));
  return material;
}

// --- known answers
// --------------------------------------------------------------------------------

struct KnownAnswer {
  const char* id;
  DomainConfig config;
  bool an;
  EpochAndTsc first;
  OuterFields outer;
  const char* header;
  const char* sealed;
};

DomainConfig rekeyed(DomainConfig config, const RekeyRule& rule) {
  config.rekey = rule;
  return config;
}

DomainConfig all_tscs(DomainConfig config) {
  config.tsc = TscRange{1, kTscEnd};
  return config;
}

std::vector<KnownAnswer> known_answers() {
  const RekeyRule short_rule{0xFF00, 8};
  const DomainConfig direct = config_of(KeyMode::Direct);
  const DomainConfig cluster = rekeyed(config_of(KeyMode::Cluster), short_rule);
  const DomainConfig cluster_ssi = rekeyed(config_of(KeyMode::Cluster, 1, 1), short_rule);
  return {
      {"G1",
       direct,
       false,
       {0, 1},
       kUdp,
       "080000010000000000000001",
       "2e1c814d3d79189b1728e35d809ed18891c8ea20f7792081af236aadf34cfc0a"
       "dce4ea5022fa245a16c4bfa63c27c5d5"},
      {"G2",
       rekeyed(config_of(KeyMode::Cluster, 0xABCD, 0xA1B2C3D4), {0xFFFF00, 8}),
       true,
       {3, 0x10203},
       kUdp,
       "0d00abcda1b2c3d40003000000010203",
       "31c5aa65a3546ec9229f1b2fa456d6d78555ba74c968d6919f6f20ae98b8398a"
       "44af2f64ef8de7485f4bcb7b64ba1788"},
      {"N1",
       direct,
       false,
       {0, 1},
       kNative,
       "080000010000000000000001",
       "2e1c814d3d79189b1728e35d809ed18891c8ea20f7792081af236aadf34cfc0a"
       "0dbdb3b327f3b8beb7f7857639daec0f"},
      {"N2",
       cluster,
       false,
       {0, 0x100},
       kNative,
       "080000010000000000000100",
       "4fe7467b4918e122506329acc112e050dae7792218d0511d30f67c19eb281577"
       "6725a134160034a6895412f18472efcb"},
      {"N3",
       cluster_ssi,
       false,
       {0, 0x100},
       kNative,
       "0c000001000000010000000000000100",
       "f2add4fd5994a282465706685bf12517ec02b33b7eb3f546ca20e47f6fe57e73"
       "21deb99f1ddbe7800a5e098560e2db3f"},
      {"N4",
       config_of(KeyMode::Direct, 1, 1),
       false,
       {0, 1},
       kNative6,
       "0c000001000000010000000000000001",
       "eb56868d8a9ba59ca27e55f6a78e7688211cae50bb8b43a42b0b0c1d3c68b365"
       "da393f90f17ab36b69096a1af53d9c5b"},
      {"N5",
       cluster_ssi,
       false,
       {0, 0x100},
       kNative6,
       "0c000001000000010000000000000100",
       "fafcd666d05b0ddc2da39bd23a13a22e282cba76bc331edab8e43f436654a5a5"
       "16cb9bf5729c276cca1b7931daaef110"},
      {"N6",
       all_tscs(rekeyed(config_of(KeyMode::Cluster, 0xFFFFFF), short_rule)),
       true,
       {0xFFFF, 0xFFFFFFFFFFFF},
       kNative,
       "09ffffffffffffffffffffff",
       "f1f2b129c44c7047be8f705b217132a5de67bc98f33456a55bd51928060cb406"
       "227fe90f1f27980fec85c5e531e52120"},
  };
}

// TSS-1 to TSS-6, TSS-14, TSS-15, TSS-29, TSS-30, TSS-32: G1, G2 and N1 to N6, both ways.
TEST(SecureDomain, Tss1To6And14And15_KnownAnswersBothWays) {
  for (const KnownAnswer& answer : known_answers()) {
    SCOPED_TRACE(answer.id);
    Member sender(answer.config);
    sender.start(answer.an, known_key(), {History::Known, answer.first.epoch, answer.first.tsc});
    const Bytes packet = sender.seal(answer.outer);
    EXPECT_EQ(to_hex(packet), std::string(answer.header) + answer.sealed);

    Member receiver(answer.config);
    ASSERT_TRUE(receiver.domain.install(answer.an, known_key(), {}).ok());
    const OpenResult opened = receiver.open(answer.outer, packet);
    ASSERT_EQ(opened.verdict, OpenVerdict::Opened);
    EXPECT_EQ(receiver.plain, counting(0x40, 32));
    EXPECT_EQ(opened.sdi, answer.config.sdi);
    EXPECT_EQ(opened.ssi, answer.config.ssi);
    EXPECT_EQ(opened.an, answer.an);
    EXPECT_EQ(receiver.counters().in_auth, 1U);
    EXPECT_EQ(sender.counters().out_auth, 1U);
  }
}

// TSS-16, TSS-17, TSS-18, TSS-32: S1 and S2. The client has 44 bytes and not the SDK.
TEST(SecureDomain, Tss16To18_KnownAnswersOfServerMode) {
  Member server(server_config());
  server.start(false, known_key(), {History::Known, 0, 0x800000000001});
  Member client(client_config(2));
  ASSERT_TRUE(client.domain.install(false, client_key(kClient, 2), {}).ok());
  ASSERT_TRUE(client.domain.activate(false, {}).ok());
  EXPECT_EQ(client.domain.install(true, known_key(), {}).error(), Error::NotSupported);

  const Bytes down = server.seal(kNative);
  EXPECT_EQ(to_hex(down),
            "0c000001000000020000800000000001"
            "8dcf03cbe6119b860260dc169dd83316bc1cc5b95bb19b01ee0037c209847e42"
            "b880ccab121144eecff9731ebb9e68a6");
  EXPECT_EQ(client.verdict(kNative, down), OpenVerdict::Opened);
  EXPECT_EQ(client.plain, counting(0x40, 32));

  const OuterFields up_fields = native_fields(kClient, kServer, 0x4242);
  const Bytes up = client.seal(up_fields);
  EXPECT_EQ(to_hex(up),
            "0c000001000000020000000000000001"
            "2f8e28a6990fed8dfd2de5c3a0c2c5d56491a931d262d99594c39d8909aa4980"
            "68faf7d4a44bef9eedf803e33fc58260");
  EXPECT_EQ(server.verdict(up_fields, up), OpenVerdict::Opened);
  EXPECT_EQ(server.plain, counting(0x40, 32));
}

// --- modes
// ----------------------------------------------------------------------------------------

// TSS-20, TSS-21: without SSIs, both directions under the key of the client's address.
TEST(SecureDomain, Tss20And21_ServerModeByAddress) {
  Member server(config_of(KeyMode::Server));
  server.start();
  DomainConfig config = config_of(KeyMode::Server);
  config.client = true;
  Member client(config);
  Member other(config);
  ASSERT_TRUE(client.domain.install(false, client_key(kClient, {}), {}).ok());
  ASSERT_TRUE(client.domain.activate(false, {}).ok());
  ASSERT_TRUE(other.domain.install(false, client_key(ipv4(10, 0, 0, 10), {}), {}).ok());

  const Bytes down = server.seal(kUdp);
  EXPECT_EQ(client.verdict(kUdp, down), OpenVerdict::Opened);
  EXPECT_EQ(other.verdict(kUdp, down), OpenVerdict::AuthFail);
  const Bytes up = client.seal(kBack);
  EXPECT_EQ(server.verdict(kBack, up), OpenVerdict::Opened);
  EXPECT_EQ(other.verdict(kBack, up), OpenVerdict::AuthFail);
}

// TSS-43: client 3 has a valid key and pretends to be at the address of client 2.
TEST(SecureDomain, Tss43_SsiCountsOnlyFromItsAddress) {
  DomainConfig config = server_config();
  config.clients.push_back({ipv4(10, 0, 0, 10), 3});
  Member server(config);
  server.start();
  Member client(client_config(3));
  ASSERT_TRUE(client.domain.install(false, client_key(ipv4(10, 0, 0, 10), 3), {}).ok());
  ASSERT_TRUE(client.domain.activate(false, {}).ok());
  const Bytes packet = client.seal(kBack);
  EXPECT_EQ(server.verdict(kBack, packet), OpenVerdict::BindingFailure);
  EXPECT_THAT(Bytes(server.plain.begin(), server.plain.begin() + 32), Each(std::byte{0}));
  EXPECT_EQ(server.counters().in_binding_failure, 1U);
  EXPECT_EQ(server.counters().in_auth, 0U);
}

TEST(SecureDomain, Tss17_ServerKnowsItsClients) {
  Member server(server_config());
  server.start();
  server.seal(udp_fields({kServer, 1}, {ipv4(10, 0, 0, 99), 4793}), counting(0, 8),
              SealVerdict::NoClient);
  EXPECT_EQ(server.counters().out_errored, 1U);
}

// TSS-58: 300 packets, a new key each 256, and no message about it.
TEST(SecureDomain, Tss58_AutomaticRekeyNeedsNoMessage) {
  const DomainConfig config = rekeyed(config_of(KeyMode::Cluster), {0xFF00, 8});
  Member sender(config);
  Member receiver(config);
  sender.start();
  ASSERT_TRUE(receiver.domain.install(false, known_key(), {}).ok());
  for (int i = 0; i < 300; ++i) {
    ASSERT_EQ(receiver.verdict(kUdp, sender.seal(kUdp)), OpenVerdict::Opened) << i;
  }
  EXPECT_EQ(sender.services.cache.counters().misses, 2U);
  EXPECT_EQ(receiver.services.cache.counters().misses, 2U);
}

// TSS-19: in server mode the TSC changes no key.
TEST(SecureDomain, Tss19_ServerModeHasNoRekey) {
  Member server(rekeyed(server_config(), {0xFF00, 8}));
  server.start();
  for (int i = 0; i < 300; ++i) server.seal(kUdp);
  EXPECT_EQ(server.services.cache.counters().misses, 1U);
}

// --- sender
// ---------------------------------------------------------------------------------------

// TSS-35: one packet sealed twice has two TSCs and two texts. TSS-33: no TSC comes again.
TEST(SecureDomain, Tss33And35_EachPacketIsANewOne) {
  Member sender(config_of(KeyMode::Cluster));
  Member receiver(config_of(KeyMode::Cluster));
  sender.start();
  ASSERT_TRUE(receiver.domain.install(false, known_key(), {}).ok());
  const Bytes plain = counting(0, 100);
  std::set<std::string> headers;
  std::set<std::string> texts;
  for (int i = 0; i < 1000; ++i) {
    const Bytes packet = sender.seal(kUdp, plain);
    headers.insert(to_hex(std::span(packet).first(12)));
    texts.insert(to_hex(std::span(packet).subspan(12)));
    ASSERT_EQ(receiver.verdict(kUdp, packet), OpenVerdict::Opened);
    ASSERT_EQ(receiver.plain, plain);
  }
  EXPECT_EQ(headers.size(), 1000U);
  EXPECT_EQ(texts.size(), 1000U);
}

// TSS-34: two processes of one address, by SSIs of their own or by ranges of TSCs.
TEST(SecureDomain, Tss34_ProcessesOfOneAddressShareNoIv) {
  std::set<std::string> headers;
  for (const std::uint32_t process : {1U, 2U}) {
    Member by_ssi(config_of(KeyMode::Direct, 1, process));
    by_ssi.start();
    DomainConfig config = config_of(KeyMode::Direct);
    config.tsc = TscRange{process * 1000, process * 1000 + 1000};
    Member by_range(config);
    by_range.start();
    for (int i = 0; i < 100; ++i) {
      headers.insert(first_hex(by_ssi.seal(kUdp), 16));
      headers.insert(first_hex(by_range.seal(kUdp), 12));
    }
  }
  EXPECT_EQ(headers.size(), 400U);
}

TEST(SecureDomain, Tss36_TransmissionStopsAtTheEndOfTheTscs) {
  DomainConfig config = config_of(KeyMode::Direct);
  config.tsc = TscRange{1, 3};
  Member sender(config);
  sender.start();
  sender.seal(kUdp);
  sender.seal(kUdp);
  sender.seal(kUdp, counting(0, 8), SealVerdict::TscEnd);
  EXPECT_EQ(sender.counters().out_invoke_fail, 1U);
  EXPECT_EQ(sender.counters().out_auth, 2U);
}

TEST(SecureDomain, Tss37_UnknownHistoryNeedsANewerEpoch) {
  Member sender(config_of(KeyMode::Direct));
  ASSERT_TRUE(sender.domain.install(false, known_key(), {History::Unknown, 4}).ok());
  EXPECT_EQ(sender.domain.activate(false, {}).error(), Error::Invalid);
  sender.seal(kUdp, counting(0, 8), SealVerdict::NoKey);
  ASSERT_TRUE(sender.domain.set_epoch(false, 5).ok());
  ASSERT_TRUE(sender.domain.activate(false, {}).ok());
  const Bytes packet = sender.seal(kUdp);
  EXPECT_EQ(to_hex(std::span(packet).subspan(4, 8)), "0005000000000001");
}

TEST(SecureDomain, Tss37_UsedKeyIsNotFreshAgain) {
  Member sender(config_of(KeyMode::Direct));
  sender.start(false);
  sender.start(true, key_of(counting(1, kKeyBytes)));
  ASSERT_TRUE(sender.domain.remove_key(false).ok());
  EXPECT_EQ(sender.domain.install(false, known_key(), {}).error(), Error::KeyInUse);
  EXPECT_TRUE(sender.domain.install(false, known_key(), {History::Known, 0, 100}).ok());
}

// --- rotation
// -------------------------------------------------------------------------------------

class Rotation : public testing::Test {
 protected:
  Rotation() : sender_(config_of(KeyMode::Cluster)), receiver_(config_of(KeyMode::Cluster)) {
    sender_.start(false, first_);
    receiver_.start(false, first_);
  }

  const Key first_ = known_key();
  const Key second_ = key_of(counting(1, kKeyBytes));
  Member sender_;
  Member receiver_;
};

// TSS-53, TSS-54: the receiver has the next key before any sender uses it.
TEST_F(Rotation, Tss53And54_MakeBeforeBreakLosesNothing) {
  const Bytes in_flight = sender_.seal(kUdp);
  ASSERT_TRUE(receiver_.domain.install(true, second_, {}).ok());
  ASSERT_TRUE(sender_.domain.install(true, second_, {}).ok());
  ASSERT_TRUE(sender_.domain.activate(true, at(1)).ok());
  const Bytes next = sender_.seal(kUdp);
  EXPECT_EQ(receiver_.verdict(kUdp, next), OpenVerdict::Opened);
  ASSERT_TRUE(receiver_.domain.activate(true, at(2)).ok());
  EXPECT_EQ(receiver_.verdict(kUdp, in_flight), OpenVerdict::Opened);
}

TEST_F(Rotation, Tss56_OldKeyOpensPacketsUntilTheGuardTimeEnds) {
  const Bytes old = sender_.seal(kUdp);
  ASSERT_TRUE(receiver_.domain.install(true, second_, {}).ok());
  EXPECT_EQ(receiver_.domain.next_deadline(), kNever);
  ASSERT_TRUE(receiver_.domain.activate(true, at(1)).ok());
  EXPECT_EQ(receiver_.domain.next_deadline(), at(11));
  EXPECT_EQ(receiver_.domain.install(false, key_of(counting(2, kKeyBytes)), {}).error(),
            Error::Busy);
  receiver_.domain.expire(at(10.9));
  EXPECT_EQ(receiver_.verdict(kUdp, old), OpenVerdict::Opened);
  receiver_.domain.expire(at(11));
  EXPECT_EQ(receiver_.verdict(kUdp, old), OpenVerdict::NoKey);
  EXPECT_EQ(receiver_.counters().in_invalid_sa, 1U);
  EXPECT_FALSE(receiver_.domain.has_key(false));
  EXPECT_TRUE(receiver_.domain.install(false, key_of(counting(2, kKeyBytes)), {}).ok());
}

// TSS-38, TSS-55, TSS-57: AN, epoch and TSC change together, between two packets.
TEST_F(Rotation, Tss55And57_SwitchChangesAnEpochAndTscTogether) {
  ASSERT_TRUE(sender_.domain.set_epoch(false, 7).ok());
  sender_.seal(kUdp);
  ASSERT_TRUE(sender_.domain.install(true, second_, {}).ok());
  ASSERT_TRUE(sender_.domain.activate(true, at(1)).ok());
  EXPECT_EQ(first_hex(sender_.seal(kUdp), 12), "090000010000000000000001");
  EXPECT_EQ(sender_.domain.active(), true);
}

// A member that goes back to a key goes on with the TSCs of that key.
TEST_F(Rotation, Tss32_KeyThatComesBackRepeatsNoTsc) {
  sender_.seal(kUdp);
  ASSERT_TRUE(sender_.domain.install(true, second_, {}).ok());
  ASSERT_TRUE(sender_.domain.activate(true, at(1)).ok());
  ASSERT_TRUE(sender_.domain.activate(false, at(2)).ok());
  EXPECT_EQ(first_hex(sender_.seal(kUdp), 12), "080000010000000000000002");
  sender_.domain.expire(at(11));
  EXPECT_TRUE(sender_.domain.has_key(false));
  EXPECT_TRUE(sender_.domain.has_key(true));
  sender_.domain.expire(at(12));
  EXPECT_FALSE(sender_.domain.has_key(true));
}

TEST_F(Rotation, InstallOfTheSameKeyChangesNothing) {
  sender_.seal(kUdp);
  EXPECT_TRUE(sender_.domain.install(false, first_, {}).ok());
  EXPECT_EQ(sender_.domain.position(false)->tsc, 2U);
  EXPECT_EQ(sender_.domain.remove_key(false).error(), Error::Busy);
  EXPECT_EQ(sender_.domain.remove_key(true).error(), Error::NotFound);
  EXPECT_EQ(sender_.domain.activate(true, {}).error(), Error::NotFound);
  EXPECT_EQ(sender_.domain.set_epoch(true, 1).error(), Error::NotFound);
}

// --- receive checks
// -------------------------------------------------------------------------------

TEST(SecureDomain, Tss41_OldEpochsAreDroppedWithTheCheckOn) {
  DomainConfig config = config_of(KeyMode::Cluster);
  Member sender(config);
  sender.start(false, known_key(), {History::Fresh, 65530});
  const Bytes packet = sender.seal(kUdp);  // epoch 65530
  config.check_epoch = true;
  Member receiver(config);
  receiver.start(false, known_key(), {History::Fresh, 65530});
  ASSERT_TRUE(receiver.domain.set_epoch(false, 10).ok());  // 16 older: accepted
  EXPECT_EQ(receiver.verdict(kUdp, packet), OpenVerdict::Opened);
  ASSERT_TRUE(receiver.domain.set_epoch(false, 11).ok());
  EXPECT_EQ(receiver.verdict(kUdp, packet), OpenVerdict::Late);
  EXPECT_EQ(receiver.counters().in_late, 1U);
}

TEST(SecureDomain, Tss42_NewerEpochOfAPeerChangesNothing) {
  Member sender(config_of(KeyMode::Cluster));
  Member receiver(config_of(KeyMode::Cluster));
  sender.start();
  receiver.start();
  ASSERT_TRUE(sender.domain.set_epoch(false, 9).ok());
  EXPECT_EQ(receiver.verdict(kUdp, sender.seal(kUdp)), OpenVerdict::Opened);
  EXPECT_EQ(receiver.domain.position(false)->epoch, 0);
}

TEST(SecureDomain, Step7_SsisInUse_PacketWithoutIsInvalid) {
  Member without(config_of(KeyMode::Cluster));
  Member with(config_of(KeyMode::Cluster, 1, 5));
  without.start();
  with.start();
  EXPECT_EQ(with.verdict(kUdp, without.seal(kUdp)), OpenVerdict::Invalid);
  EXPECT_EQ(with.counters().in_invalid, 1U);
}

TEST(SecureDomain, Step5_DisabledDomainDropsBothWays) {
  Member sender(config_of(KeyMode::Cluster));
  Member receiver(config_of(KeyMode::Cluster));
  sender.start();
  receiver.start();
  const Bytes packet = sender.seal(kUdp);
  receiver.domain.enable(false);
  EXPECT_EQ(receiver.verdict(kUdp, packet), OpenVerdict::NoKey);
  receiver.seal(kUdp, counting(0, 8), SealVerdict::NoKey);
  receiver.domain.enable(true);
  EXPECT_EQ(receiver.verdict(kUdp, packet), OpenVerdict::Opened);
}

// TSS-44: the latch of the reference provider, and the rate alarm.
TEST(SecureDomain, Tss44_LatchIsOffByDefault) {
  for (const std::uint64_t latch : {std::uint64_t{0}, std::uint64_t{3}}) {
    DomainConfig config = config_of(KeyMode::Direct);
    config.auth_fail_latch = latch;
    Member member(config);
    member.start();
    const Bytes good = member.seal(kUdp);
    Bytes bad = good;
    bad.back() ^= std::byte{1};
    for (int i = 0; i < 4; ++i) EXPECT_EQ(member.verdict(kUdp, bad), OpenVerdict::AuthFail);
    EXPECT_EQ(member.verdict(kUdp, good), latch == 0 ? OpenVerdict::Opened : OpenVerdict::Invalid);
    member.domain.clear_latch();
    EXPECT_EQ(member.verdict(kUdp, good), OpenVerdict::Opened);
  }
}

TEST(SecureDomain, Tss44_AlarmCountsSecondsOfManyFailures) {
  DomainConfig config = config_of(KeyMode::Direct);
  config.auth_fail_alarm = 3;
  Member member(config);
  member.start();
  Bytes bad = member.seal(kUdp);
  bad.back() ^= std::byte{1};
  for (const double second : {0.0, 0.6, 1.2, 1.3}) member.verdict(kUdp, bad, at(second));
  EXPECT_EQ(member.counters().auth_fail_alarms, 0U);
  for (int i = 0; i < 5; ++i) member.verdict(kUdp, bad, at(1.4));
  EXPECT_EQ(member.counters().auth_fail_alarms, 1U);
  EXPECT_EQ(member.counters().in_auth_fail, 9U);
}

// TSS-31, TSS-46: old packets open again (PDS drops duplicates), and invented sources push out no
// peer.
TEST(SecureDomain, Tss31And46_ReplayOrGarbage_EvictsNoPeer) {
  Member sender(config_of(KeyMode::Cluster));
  Member receiver(config_of(KeyMode::Cluster));
  sender.start();
  receiver.start();
  const Bytes packet = sender.seal(kUdp);
  EXPECT_EQ(receiver.verdict(kUdp, packet), OpenVerdict::Opened);
  OuterFields invented = kUdp;
  for (int i = 0; i < 1000; ++i) {
    invented.source = ipv4(11, 0, static_cast<std::uint8_t>(i >> 8), static_cast<std::uint8_t>(i));
    EXPECT_EQ(receiver.verdict(invented, packet), OpenVerdict::AuthFail);
  }
  const std::uint64_t misses = receiver.services.cache.counters().misses;
  EXPECT_EQ(receiver.verdict(kUdp, packet), OpenVerdict::Opened);
  EXPECT_EQ(receiver.services.cache.counters().misses, misses);
}

TEST(SecureDomainJobs, Tss67_AListAllowsItsJobsAlone) {
  DomainServices services(16);
  DomainConfig config;
  const SecureDomain any(config, services);
  EXPECT_TRUE(any.allows(JobId{3}));
  config.jobs = {9, 3};
  const SecureDomain two(config, services);
  EXPECT_TRUE(two.allows(JobId{3}));
  EXPECT_TRUE(two.allows(JobId{9}));
  EXPECT_FALSE(two.allows(JobId{4}));
  EXPECT_TRUE(two.allows(std::nullopt)) << "an answer belongs to a request";
}

// Gives blocks of three TSCs, `blocks` of them.
class FewTscs final : public TscSource {
 public:
  explicit FewTscs(int blocks) : blocks_(blocks) {}
  std::optional<TscRange> next_block(const TscRequest& request) override {
    last = request;
    if (blocks_-- <= 0) return {};
    next_ = std::max(next_, request.left.first) + 3;
    return TscRange{next_ - 3, next_};
  }
  TscRequest last;

 private:
  int blocks_;
  std::uint64_t next_ = 100;
};

std::uint64_t tsc_of(const Bytes& packet) {
  wire::SecurityHeader header;
  EXPECT_TRUE(wire::SecurityHeader::decode(packet, header));
  return header.counter;
}

TEST(SecureDomain, Tss34And36_Tscs_FromSourceUntilExhausted) {
  FewTscs tscs(2);
  DomainServices services(64, &tscs);
  SecureDomain domain(config_of(KeyMode::Cluster, 1, 9), services);
  ASSERT_TRUE(domain.install(false, known_key(), {History::Known, 4, 50}).ok());
  ASSERT_TRUE(domain.activate(false, {}).ok());
  EXPECT_EQ(tscs.last.epoch, 4);
  EXPECT_EQ(tscs.last.ssi, 9U);
  EXPECT_TRUE(tscs.last.history_told);
  EXPECT_EQ(tscs.last.left.first, 50U);
  EXPECT_EQ(tscs.last.key, Kdf::make(known_key()).value().fingerprint());
  Bytes sealed(100);
  for (std::uint64_t tsc = 100; tsc < 106; ++tsc) {
    ASSERT_EQ(domain.seal(kUdp, {}, sealed).verdict, SealVerdict::Sealed);
    EXPECT_EQ(tsc_of(sealed), tsc);
  }
  EXPECT_EQ(domain.seal(kUdp, {}, sealed).verdict, SealVerdict::TscEnd);
  EXPECT_EQ(domain.counters().out_invoke_fail, 1U);
}

TEST(SecureDomain, Tss37_WithoutATscNoKeyBecomesActive) {
  FewTscs none(0);
  DomainServices services(64, &none);
  SecureDomain domain(config_of(KeyMode::Cluster), services);
  ASSERT_TRUE(domain.install(false, known_key(), {}).ok());
  EXPECT_EQ(domain.activate(false, {}).error(), Error::Io);
  EXPECT_EQ(domain.active(), std::nullopt);
}

TEST(SecureDomain, Tss56_AnAbandonedKeyOpensAndSealsNothing) {
  Member member(config_of(KeyMode::Cluster));
  member.start();
  const Bytes packet = member.seal(kUdp);
  member.domain.abandon_key(false);
  EXPECT_EQ(member.verdict(kUdp, packet), OpenVerdict::NoKey);
  member.seal(kUdp, counting(0x40, 32), SealVerdict::NoKey);
  EXPECT_FALSE(member.domain.has_key(false));
}

}  // namespace
}  // namespace uet::tss
