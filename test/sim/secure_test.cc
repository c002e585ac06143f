// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Transport security between whole FEPs: rotation under load, members without the key, replay of
// all that was captured; and the oracle of the wire, which must be able to complain.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>
#include <vector>

#include "sim/key_management.h"
#include "sim/stage.h"

namespace uet::sim {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::uint32_t kSdi = 7;

tss::Key key_of(std::uint8_t fill) {
  tss::Key key;
  for (std::byte& byte : key.writable()) byte = std::byte{fill};
  return key;
}

NodeSecurity member(std::uint8_t key) {
  NodeSecurity security;
  security.domain.sdi = kSdi;
  security.domain.guard = milliseconds(100);
  security.keys.push_back({.an = false, .key = key_of(key), .epoch = 0});
  return security;
}

StageConfig secured() {
  StageConfig config;
  config.fep.pds.start_psn.reset();
  config.security = [](int) { return member(1); };
  return config;
}

std::uint64_t retransmissions(Stage& stage) {
  std::uint64_t sum = 0;
  for (int node = 0; node < stage.world().node_count(); ++node) {
    const pds::Counters counters = stage.counters(node);
    sum += counters.rto_retransmissions + counters.nack_retransmissions +
           counters.inferred_loss_retransmissions;
  }
  return sum;
}

std::uint64_t bad_packets(Stage& stage, int node) {
  const tss::DomainCounters& in = stage.world().secured(node)->domain().counters();
  const tss::PortCounters& port = stage.world().secured(node)->table().port_counters();
  return in.in_auth_fail + in.in_late + in.in_invalid + in.in_invalid_sa + in.in_binding_failure +
         port.in_errored + port.in_rx_encryption_bypass + port.in_trimmed;
}

// Writes of 20,000 bytes, two in flight, without a pause until `end`. The number of completions.
std::size_t write_until(Stage& stage, Time end) {
  stage.actor(0).sink.completions.clear();
  stage.sent.clear();
  std::size_t posted = 0;
  std::size_t done = 0;
  while (stage.world().now() < end && !testing::Test::HasFailure()) {
    while (posted < done + 2) {
      EXPECT_TRUE(stage.write(0, 1, posted % 2 * 20'000, 20'000).ok());
      ++posted;
    }
    if (!stage.completes(0, ++done)) ADD_FAILURE() << "a write does not complete";
  }
  if (!stage.completes(0, posted)) ADD_FAILURE() << "a last write does not complete";
  for (const ses::Completion& completion : stage.actor(0).sink.completions) {
    EXPECT_EQ(completion.status, ses::Status::Ok);
  }
  return posted;
}

// A rotation each second under load, 100 times: no failed operation, and no more retransmissions
// than without. The members take each of the two steps within the skew; the wire is busy from
// before the first step until after the last one, and idle for the rest of the second.
TEST(SecureFeps, Tss53And57_HundredRotations_LoseNothing) {
  std::array<std::uint64_t, 2> again{};
  for (const bool rotates : {false, true}) {
    Stage stage(secured());
    SecurityPlan plan;
    plan.guard = milliseconds(100);
    plan.skew = microseconds(300);
    if (rotates) plan.rotation = seconds(1);
    KeyManagement keys(stage.world(), plan, 5,
                       [](const std::string& what) { ADD_FAILURE() << what; });
    const Time begin = stage.world().now();
    keys.start();
    for (int second = 1; second <= 100 && !HasFailure(); ++second) {
      const Time rotation = begin + seconds(second);
      stage.world().run_for(rotation - microseconds(100) - stage.world().now());
      const std::uint64_t before = keys.rotations();
      EXPECT_GE(write_until(stage, rotation + 2 * plan.skew + microseconds(100)), 4U);
      EXPECT_EQ(keys.rotations(), before + (rotates ? 1 : 0));
    }
    again[rotates ? 1 : 0] = retransmissions(stage);
    EXPECT_EQ(bad_packets(stage, 0) + bad_packets(stage, 1), 0U);
    EXPECT_EQ(stage.world().complaint(), "");
  }
  EXPECT_EQ(again[0], again[1]);
}

// A member of the domain that does not have the key opens nothing of what it hears.
TEST(SecureFeps, Tss1_AMemberWithoutTheKeySeesOnlyNoise) {
  StageConfig config = secured();
  config.nodes = 3;
  config.security = [](int node) { return member(node == 2 ? 9 : 1); };
  Stage stage(config);
  ASSERT_TRUE(stage.write(0, 1, 0, 20'000).ok());
  ASSERT_TRUE(stage.completes(0, 1));
  const std::vector<Seen> heard = stage.sent;
  for (const Seen& seen : heard) stage.world().inject(seen.packet, 2, microseconds(10));
  stage.world().run_for(milliseconds(10));
  EXPECT_GT(heard.size(), 20U);
  EXPECT_EQ(stage.world().secured(2)->domain().counters().in_auth_fail, heard.size());
  EXPECT_EQ(stage.world().secured(2)->domain().counters().in_auth, 0U);
  EXPECT_EQ(stage.sent.size(), heard.size()) << "nothing is answered";
}

// TSS-39, TSS-40 at a FEP: each flipped bit of a protected packet is dropped and counted once,
// delivers nothing, and is not answered.
TEST(SecureFeps, Tss39And40_EachFlippedBitIsDroppedSilently) {
  Stage stage(secured());
  ASSERT_TRUE(stage.write(0, 1, 0, 100).ok());
  ASSERT_TRUE(stage.completes(0, 1));
  const auto request = stage.requests(0).at(0);
  const std::size_t sent = stage.sent.size();
  const pds::Counters before = stage.counters(1);
  std::size_t flips = 0;
  for (std::size_t bit = 0; bit < 8 * request.packet.bytes.size(); ++bit, ++flips) {
    SimPacket spoiled = request.packet;
    spoiled.bytes[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    stage.world().inject(spoiled, 1, Duration(0));
  }
  for (int bit = 0; bit < 32; ++bit, ++flips) {  // of the source address
    SimPacket spoiled = request.packet;
    spoiled.source.ip.bytes[static_cast<std::size_t>(bit / 8)] ^=
        static_cast<std::uint8_t>(1 << bit % 8);
    stage.world().inject(spoiled, 1, Duration(0));
  }
  for (int bit = 0; bit < 16; ++bit, ++flips) {
    SimPacket spoiled = request.packet;
    spoiled.source.port = static_cast<std::uint16_t>(spoiled.source.port ^ 1 << bit);
    stage.world().inject(spoiled, 1, Duration(0));
  }
  stage.world().run_for(milliseconds(10));
  EXPECT_EQ(bad_packets(stage, 1), flips);
  EXPECT_EQ(stage.counters(1).packets_received, before.packets_received);
  EXPECT_EQ(stage.sent.size(), sent);
}

// TSS-5 at a FEP.
TEST(SecureFeps, Tss5_DscpAndEcnMayChange) {
  Stage stage(secured());
  stage.world().filter = [&](const Sighting& sighting) {
    SimPacket changed = *sighting.packet;
    changed.dscp = 9;
    changed.ecn = Ecn::Ce;
    stage.world().inject(changed, sighting.to, microseconds(100));
    return true;
  };
  ASSERT_TRUE(stage.write(0, 1, 0, 20'000).ok());
  ASSERT_TRUE(stage.completes(0, 1));
  EXPECT_EQ(bad_packets(stage, 0) + bad_packets(stage, 1), 0U);
}

// TSS-46, TSS-47, TSS-49: all that was captured comes again, during the transfer, after the close
// and after the tombstones: no byte reaches SES.
TEST(SecureFeps, Tss49_AReplayedCaptureDeliversNothing) {
  for (const bool random_start : {false, true}) {
    StageConfig config = secured();
    config.fep.pds.random_start = random_start;
    Stage stage(config);
    const auto replay = [&] {
      const std::vector<Seen> captured = stage.sent;
      const auto delivered = [&] {
        return stage.counters(0).requests_delivered + stage.counters(1).requests_delivered;
      };
      const std::uint64_t before = delivered();
      Duration delay{0};
      for (const Seen& seen : captured) {
        stage.world().inject(seen.packet, seen.to, delay += microseconds(3));
      }
      stage.world().run_for(seconds(1));
      EXPECT_EQ(delivered(), before);
      stage.sent = captured;
    };
    ASSERT_TRUE(stage.write(0, 1, 0, 50'000).ok());
    ASSERT_TRUE(stage.read(0, 1, 0, 50'000).ok());
    ASSERT_TRUE(stage.completes(0, 2));
    std::vector<std::byte>& target = stage.actor(1).memory;
    std::fill(target.begin(), target.end(), std::byte{0x5A});  // a replayed write would be seen
    replay();
    for (int node : {0, 1}) stage.fep(node).begin_close(stage.world().now());
    for (int node : {0, 1}) stage.world().posted(node);
    stage.world().run_for(seconds(1));
    replay();
    stage.world().run_for(seconds(60));
    replay();
    EXPECT_TRUE(std::all_of(target.begin(), target.end(),
                            [](std::byte byte) { return byte == std::byte{0x5A}; }));
    EXPECT_EQ(stage.counters(0).pdcs_accepted + stage.counters(1).pdcs_accepted, 1U);
  }
}

// ---- the oracle of the wire ---------------------------------------------------------------------

SimPacket sealed(std::uint64_t tsc) {
  SimPacket packet;
  packet.bytes.resize(100);
  const wire::SecurityHeader header{.sp = false, .an = false, .sdi = kSdi, .counter = tsc};
  header.encode(packet.bytes.data());
  packet.plain.resize(80);
  for (std::size_t i = 0; i < packet.plain.size(); ++i) {
    packet.plain[i] = static_cast<std::byte>(i + 1);
  }
  return packet;
}

TEST(WireSecrecy, Tss71_PlainBytesAreFound) {
  EXPECT_EQ(WireSecrecy().judge(sealed(1), 1), "");
  SimPacket leaks = sealed(1);
  std::copy_n(leaks.plain.begin() + 60, 20, leaks.bytes.begin() + 33);
  EXPECT_NE(WireSecrecy().judge(leaks, 1), "");
  SimPacket clear = sealed(1);
  clear.bytes[0] = std::byte{2 << 3};
  EXPECT_NE(WireSecrecy().judge(clear, 1), "");
}

TEST(WireSecrecy, AnIvThatComesTwiceIsFound) {
  WireSecrecy secrecy;
  EXPECT_EQ(secrecy.judge(sealed(5), 1), "");
  EXPECT_EQ(secrecy.judge(sealed(6), 1), "");
  EXPECT_EQ(secrecy.judge(sealed(1), 2), "") << "another key";
  EXPECT_NE(secrecy.judge(sealed(6), 1), "");
  EXPECT_NE(secrecy.judge(sealed(1), 2), "");
}

}  // namespace
}  // namespace uet::sim
