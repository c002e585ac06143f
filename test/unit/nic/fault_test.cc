// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Fault injection: what is lost, doubled and shuffled, and that it repeats.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <numeric>
#include <set>

#include "nic/middleware.h"
#include "nic_testing.h"

namespace uet::nic {
namespace {

using ::testing::HasSubstr;

constexpr std::uint32_t kMany = 20'000;

struct Outcome {
  std::vector<std::uint32_t> delivered;
  FaultNic::Counters counters;
};

// Delivers `count` numbered packets in bursts of 16 that are 10 us apart. Then waits until none
// is held, waking only when next_deadline says so.
Outcome run(const FaultSpec& spec, std::uint32_t count, std::size_t room = kRxBurst) {
  auto* fake = new FakeNic(FepAddress{});
  FaultNic nic(std::unique_ptr<Nic>(fake), spec);
  Outcome result;
  std::vector<RxPacket> out(room);
  Time now = time_from_ns(1'000'000);
  const auto drain = [&] {
    while (const std::size_t n = nic.rx_burst(out, now)) {
      for (std::size_t i = 0; i < n; ++i) result.delivered.push_back(number_of(out[i]));
    }
  };
  for (std::uint32_t i = 0; i < count; ++i) {
    fake->arrive(numbered_bytes(i));
    if (i % 16 == 15) drain();
    if (i % 16 == 15) now += std::chrono::microseconds(10);
  }
  drain();
  while (nic.next_deadline() != kNever) {
    now = std::max(now, nic.next_deadline());
    drain();
  }
  result.counters = nic.fault_counters();
  return result;
}

TEST(FaultNic, NoFaultsChangeNothing) {
  const Outcome result = run(FaultSpec{}, 1000);
  std::vector<std::uint32_t> expected(1000);
  std::iota(expected.begin(), expected.end(), 0U);
  EXPECT_EQ(result.delivered, expected);
}

TEST(FaultNic, SameSeedSameResultOtherSeedOtherResult) {
  FaultSpec spec{.loss = 0.05, .duplicate = 0.02, .reorder = 0.1, .corrupt = 0.01, .seed = 7};
  const Outcome first = run(spec, 2000);
  EXPECT_EQ(first.delivered, run(spec, 2000).delivered);
  spec.seed = 8;
  EXPECT_NE(first.delivered, run(spec, 2000).delivered);
}

TEST(FaultNic, RatesAreAboutRight) {
  const FaultSpec spec{.loss = 0.05, .duplicate = 0.02, .reorder = 0.1, .corrupt = 0.01, .seed = 3};
  const Outcome result = run(spec, kMany);
  EXPECT_EQ(result.counters.seen, kMany);
  EXPECT_NEAR(static_cast<double>(result.counters.lost), 0.05 * kMany, 0.01 * kMany);
  EXPECT_NEAR(static_cast<double>(result.counters.duplicated), 0.02 * kMany, 0.005 * kMany);
  EXPECT_NEAR(static_cast<double>(result.counters.reordered), 0.1 * kMany, 0.02 * kMany);
  EXPECT_NEAR(static_cast<double>(result.counters.corrupted), 0.01 * kMany, 0.004 * kMany);
  EXPECT_EQ(result.delivered.size(),
            kMany - result.counters.lost - result.counters.corrupted + result.counters.duplicated);
}

TEST(FaultNic, LossOfEverythingDeliversNothing) {
  EXPECT_TRUE(run(FaultSpec{.loss = 1}, 500).delivered.empty());
}

TEST(FaultNic, CorruptionIsLossCountedApart) {
  const Outcome result = run(FaultSpec{.corrupt = 1}, 500);
  EXPECT_TRUE(result.delivered.empty());
  EXPECT_EQ(result.counters.corrupted, 500U);
  EXPECT_EQ(result.counters.lost, 0U);
}

// A CRC above is what must find the damage.
TEST(FaultNic, UnderACrcCorruptionIsOneFlippedBit) {
  auto* fake = new FakeNic(FepAddress{});
  FaultNic nic(std::unique_ptr<Nic>(fake), FaultSpec{.corrupt = 1}, {.crc = true});
  std::array<RxPacket, kRxBurst> out;
  const std::vector<std::byte> sent(100, std::byte{0x5A});
  std::set<std::size_t> places;
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < 10; ++i) fake->arrive(sent);
    ASSERT_EQ(nic.rx_burst(out, Time{}), 10U);
    for (int i = 0; i < 10; ++i) {
      ASSERT_EQ(out[i].bytes.size(), sent.size());
      int flipped = 0;
      for (std::size_t at = 0; at < sent.size(); ++at) {
        const auto difference = std::to_integer<unsigned>(out[i].bytes[at] ^ sent[at]);
        flipped += std::popcount(difference);
        if (difference != 0) places.insert(at);
      }
      EXPECT_EQ(flipped, 1);
    }
  }
  EXPECT_GT(places.size(), 50U);
  EXPECT_EQ(nic.fault_counters().corrupted, 200U);
}

// CMS-500, CMS-510: cut, marked, delivered; never what is not trimmable or short already.
TEST(FaultNic, TrimmingCutsAndMarks) {
  auto* fake = new FakeNic(FepAddress{});
  FaultNic nic(std::unique_ptr<Nic>(fake), FaultSpec{.trim = 1},
               {.dscp_trimmable = 4, .marks = {.trimmed = 12, .trimmed_last_hop = 16}});
  std::array<RxPacket, kRxBurst> out;
  std::vector<std::byte> sent(100);
  for (std::size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<std::byte>(i);
  int last_hops = 0;
  for (int round = 0; round < 200; ++round) {
    fake->arrive(sent, {}, 4);
    ASSERT_EQ(nic.rx_burst(out, Time{}), 1U);
    EXPECT_TRUE(out[0].trimmed);
    EXPECT_EQ(out[0].dscp, out[0].trimmed_last_hop ? 16 : 12);
    ASSERT_EQ(out[0].bytes.size(), FaultNic::kTrimmedBytes);
    EXPECT_TRUE(std::equal(out[0].bytes.begin(), out[0].bytes.end(), sent.begin()));
    last_hops += out[0].trimmed_last_hop ? 1 : 0;
  }
  EXPECT_GT(last_hops, 20);
  EXPECT_LT(last_hops, 100);
  EXPECT_EQ(nic.fault_counters().trimmed, 200U);
  fake->arrive(sent, {}, 46);
  fake->arrive(std::vector<std::byte>(FaultNic::kTrimmedBytes), {}, 4);
  ASSERT_EQ(nic.rx_burst(out, Time{}), 2U);
  EXPECT_FALSE(out[0].trimmed);
  EXPECT_EQ(out[0].bytes.size(), sent.size());
  EXPECT_FALSE(out[1].trimmed);
  EXPECT_EQ(nic.fault_counters().trimmed, 200U);
}

TEST(FaultNic, ReorderNeverLoses) {
  for (const double rate : {0.02, 0.5, 1.0}) {
    for (const std::size_t room : {std::size_t{1}, std::size_t{3}, kRxBurst}) {
      Outcome result = run(FaultSpec{.reorder = rate}, 2000, room);
      EXPECT_GT(result.counters.reordered, 0U);
      EXPECT_FALSE(std::is_sorted(result.delivered.begin(), result.delivered.end()));
      std::sort(result.delivered.begin(), result.delivered.end());
      std::vector<std::uint32_t> expected(2000);
      std::iota(expected.begin(), expected.end(), 0U);
      EXPECT_EQ(result.delivered, expected) << rate << " " << room;
    }
  }
}

TEST(FaultNic, LastPacketOfABurstComesAfterOneMillisecond) {
  auto* fake = new FakeNic(FepAddress{});
  FaultNic nic(std::unique_ptr<Nic>(fake), FaultSpec{.reorder = 1});
  std::array<RxPacket, 4> out;
  const Time start = time_from_ns(5'000'000);
  fake->arrive(numbered_bytes(42));
  EXPECT_EQ(nic.rx_burst(out, start), 0U);
  EXPECT_EQ(nic.next_deadline(), start + FaultNic::kLongestHold);
  EXPECT_EQ(nic.rx_burst(out, start + std::chrono::microseconds(999)), 0U);
  ASSERT_EQ(nic.rx_burst(out, start + FaultNic::kLongestHold), 1U);
  EXPECT_EQ(number_of(out[0]), 42U);
  EXPECT_EQ(nic.next_deadline(), kNever);
}

TEST(FaultNic, HeldCopySurvivesTheInnerNicsBuffers) {
  auto* fake = new FakeNic(FepAddress{});
  FaultNic nic(std::unique_ptr<Nic>(fake), FaultSpec{.duplicate = 1});
  std::array<RxPacket, 8> out;
  fake->arrive(std::vector<std::byte>(9000, std::byte{0x5A}), FepAddress{ipv4(1, 2, 3, 4), 5});
  ASSERT_EQ(nic.rx_burst(out, Time{}), 1U);
  EXPECT_EQ(nic.rx_burst(out, Time{}), 0U);  // the inner NIC forgets the original
  ASSERT_EQ(nic.rx_burst(out, Time{} + FaultNic::kLongestHold), 1U);
  EXPECT_EQ(Arrival(out[0]).bytes, std::vector<std::byte>(9000, std::byte{0x5A}));
  EXPECT_EQ(out[0].source, (FepAddress{ipv4(1, 2, 3, 4), 5}));
}

TEST(FaultNic, WitnessSeesWhatIsThrownAway) {
  auto* fake = new FakeNic(FepAddress{});
  FaultNic nic(std::unique_ptr<Nic>(fake), FaultSpec{.loss = 1});
  std::vector<std::string> reasons;
  nic.set_witness([&](const RxPacket& packet, std::string_view why) {
    EXPECT_EQ(number_of(packet), 9U);
    reasons.emplace_back(why);
  });
  fake->arrive(numbered_bytes(9));
  std::array<RxPacket, 4> out;
  EXPECT_EQ(nic.rx_burst(out, Time{}), 0U);
  EXPECT_EQ(reasons, std::vector<std::string>{"lost by fault injection"});
}

TEST(FaultNic, MarksAreForWhatIsEcnCapable) {
  auto* fake = new FakeNic(FepAddress{});
  FaultNic nic(std::unique_ptr<Nic>(fake), FaultSpec{.mark = 0.25});
  std::array<RxPacket, kRxBurst> out;
  const std::vector<std::byte> sent(100);
  std::size_t marked = 0;
  for (int round = 0; round < 1000; ++round) {
    const Ecn ecn = round % 3 == 0 ? Ecn::NotEct : round % 3 == 1 ? Ecn::Ect0 : Ecn::Ect1;
    fake->arrive(sent, {}, 0, ecn);
    ASSERT_EQ(nic.rx_burst(out, Time{}), 1U);
    EXPECT_EQ(out[0].bytes.size(), sent.size());
    if (out[0].ecn == ecn) continue;
    EXPECT_EQ(out[0].ecn, Ecn::Ce);
    EXPECT_NE(ecn, Ecn::NotEct);
    ++marked;
  }
  EXPECT_NEAR(static_cast<double>(marked), 0.25 * 667, 45);
  EXPECT_EQ(nic.fault_counters().marked, marked);
}

TEST(ParseFaultSpec, PercentagesAndFractions) {
  std::string message;
  const auto spec =
      parse_fault_spec("loss=1%,dup=0.5%,reorder=0.02,corrupt=0.1%,mark=3%,seed=7", message);
  ASSERT_TRUE(spec.ok()) << message;
  EXPECT_DOUBLE_EQ(spec.value().loss, 0.01);
  EXPECT_DOUBLE_EQ(spec.value().duplicate, 0.005);
  EXPECT_DOUBLE_EQ(spec.value().reorder, 0.02);
  EXPECT_DOUBLE_EQ(spec.value().corrupt, 0.001);
  EXPECT_DOUBLE_EQ(spec.value().mark, 0.03);
  EXPECT_EQ(spec.value().seed, 7U);
  EXPECT_TRUE(spec.value().any());
}

TEST(ParseFaultSpec, RatesFromNothingToEverything) {
  std::string message;
  EXPECT_FALSE(parse_fault_spec("loss=0", message).value().any());
  EXPECT_EQ(parse_fault_spec("loss=100%", message).value().loss, 1.0);
  EXPECT_EQ(parse_fault_spec("dup=1", message).value().duplicate, 1.0);
}

TEST(ParseFaultSpec, BadItemsAreRefusedByName) {
  for (const char* bad : {"lost=1%", "loss", "loss=", "loss=%", "loss=-1%", "loss=101%", "loss=1.5",
                          "loss=nan", "loss=inf", "loss=1%%", "loss= 1%", "loss=abc", "seed=-1",
                          "seed=1.5", "seed=", "=1%", ""}) {
    std::string message;
    const auto spec = parse_fault_spec(bad, message);
    ASSERT_FALSE(spec.ok()) << bad;
    EXPECT_EQ(spec.error(), Error::Invalid);
    EXPECT_THAT(message, HasSubstr("'" + std::string(bad) + "'"));
    EXPECT_THAT(message, HasSubstr("allowed are loss="));
  }
}

TEST(ParseFaultSpec, TheBadItemOfSeveralIsNamed) {
  std::string message;
  EXPECT_FALSE(parse_fault_spec("loss=1%,speed=3,dup=1%", message).ok());
  EXPECT_THAT(message, HasSubstr("'speed=3'"));
  EXPECT_FALSE(parse_fault_spec("loss=1%,loss=2%", message).ok());
  EXPECT_THAT(message, HasSubstr("'loss=2%'"));
  EXPECT_FALSE(parse_fault_spec("loss=1%,", message).ok());
  EXPECT_FALSE(parse_fault_spec("loss=1%,,dup=1%", message).ok());
}

}  // namespace
}  // namespace uet::nic
