// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Received-byte counts, service times and round trip samples.
#include "cms/rtt.h"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>

namespace uet::cms {
namespace {

using std::chrono::microseconds;

Time at_us(std::int64_t us) { return time_from_ns(us * 1000); }

TEST(NewlyReceived, Cms110_DifferenceInUnitsOf256) {
  EXPECT_EQ(newly_received(0, 4), (ReceivedBytes{1024, 4}));
  EXPECT_EQ(newly_received(4, 4), (ReceivedBytes{0, 4}));
}

TEST(NewlyReceived, Cms110_WrapOf24Bits) {
  EXPECT_EQ(newly_received(0xFFFFFE, 0x000002), (ReceivedBytes{1024, 2}));
}

TEST(NewlyReceived, Cms110_OlderAckIsZeroAndLastStays) {
  EXPECT_EQ(newly_received(100, 99), (ReceivedBytes{0, 100}));
  EXPECT_EQ(newly_received(2, 0xFFFFFE), (ReceivedBytes{0, 2}));
}

TEST(NewlyReceived, Cms110_HalfTheRangeIsTheLimit) {
  EXPECT_EQ(newly_received(0, 0x7FFFFF), (ReceivedBytes{std::uint64_t{0x7FFFFF} * 256, 0x7FFFFF}));
  EXPECT_EQ(newly_received(0, 0x800000), (ReceivedBytes{0, 0}));
}

TEST(EncodeRcvdBytes, Cms111_RoundsUpAndWraps) {
  EXPECT_EQ(encode_rcvd_bytes(0), 0U);
  EXPECT_EQ(encode_rcvd_bytes(1), 1U);
  EXPECT_EQ(encode_rcvd_bytes(256), 1U);
  EXPECT_EQ(encode_rcvd_bytes(257), 2U);
  EXPECT_EQ(encode_rcvd_bytes(std::uint64_t{1} << 32), 0U);
  EXPECT_EQ(encode_rcvd_bytes((std::uint64_t{1} << 32) + 300), 2U);
}

// Section 8.4 property 4: what all ACKs report is the sum, rounded up once.
TEST(NewlyReceived, Cms112_LostAcksAreMadeUpForByTheNext) {
  std::uint64_t count = 0;
  std::uint64_t reported = 0;
  std::uint32_t last = 0;
  for (int packet = 1; packet <= 1000; ++packet) {
    count += 1400;
    if (packet % 3 != 0 && packet != 1000) continue;  // the others' ACKs are lost
    const ReceivedBytes update = newly_received(last, encode_rcvd_bytes(count));
    reported += update.newly_received_bytes;
    last = update.last;
  }
  EXPECT_EQ(reported, (count + 255) / 256 * 256);
}

TEST(EncodeServiceTime, Cms713_RoundsToNearestAndNeverToZero) {
  EXPECT_EQ(encode_service_time(Duration(0)), 1);
  EXPECT_EQ(encode_service_time(Duration(63)), 1);
  EXPECT_EQ(encode_service_time(Duration(191)), 1);
  EXPECT_EQ(encode_service_time(Duration(192)), 2);
  EXPECT_EQ(encode_service_time(Duration(2048)), 16);
}

TEST(EncodeServiceTime, Cms712_TooLongIsFfff) {
  EXPECT_EQ(encode_service_time(Duration(65534 * 128)), 65534);
  EXPECT_EQ(encode_service_time(Duration(65535 * 128)), kServiceTimeTooLong);
  EXPECT_EQ(encode_service_time(Duration(65535 * 128 + 64)), kServiceTimeTooLong);
  EXPECT_EQ(encode_service_time(std::chrono::hours(1)), kServiceTimeTooLong);
  EXPECT_EQ(encode_service_time(Duration::max()), kServiceTimeTooLong);
}

TEST(EncodeServiceTime, Cms713_NegativeTimeIsNoMeasurement) {
  EXPECT_EQ(encode_service_time(Duration(-1)), kServiceTimeInvalid);
}

// Example 9 of CMS 2.6.
TEST(RttSample, Cms113_Example9) {
  EXPECT_EQ(rtt_sample({.sent = 2, .latest = at_us(100)}, true, at_us(130), 31), Duration(26'032));
  EXPECT_EQ(rtt_sample({.sent = 2, .latest = at_us(100)}, false, at_us(130), 31), std::nullopt);
  EXPECT_EQ(rtt_sample({.sent = 2, .latest = at_us(100)}, true, at_us(130), 0), std::nullopt);
  EXPECT_EQ(rtt_sample({.sent = 2, .latest = at_us(100)}, true, at_us(130), 0xFFFF), std::nullopt);
}

TEST(RttSample, Cms113_WhichTransmissionIsAnsweredMustBeKnown) {
  EXPECT_EQ(rtt_sample({.sent = 1, .latest = at_us(100)}, false, at_us(130), 31), Duration(26'032));
  EXPECT_EQ(rtt_sample({.sent = 1, .latest = at_us(100)}, true, at_us(130), 31), std::nullopt);
  EXPECT_EQ(rtt_sample({.sent = 3, .latest = at_us(100)}, true, at_us(130), 31), std::nullopt);
  EXPECT_EQ(rtt_sample({.sent = 3, .latest = at_us(100)}, false, at_us(130), 31), std::nullopt);
  EXPECT_EQ(rtt_sample({.sent = 0, .latest = at_us(100)}, false, at_us(130), 31), std::nullopt);
}

// A round trip in which all earlier transmissions are known to have been trimmed is known, however
// often the packet was sent: under incast there may be no other one.
TEST(RttSample, Cms113_TrimmedTransmissionsAreNotAnswered) {
  const auto sample = [](std::uint32_t sent, std::uint32_t trimmed, bool retx) {
    return rtt_sample({.sent = sent, .trimmed = trimmed, .latest = at_us(100)}, retx, at_us(130),
                      31);
  };
  EXPECT_EQ(sample(4, 3, true), Duration(26'032));
  EXPECT_EQ(sample(4, 2, true), std::nullopt) << "two may be answered";
  EXPECT_EQ(sample(4, 4, true), std::nullopt) << "the one that arrived was trimmed, too";
  EXPECT_EQ(sample(4, 3, false), std::nullopt) << "the first one is answered";
  EXPECT_EQ(sample(1, 0, true), std::nullopt);
}

// Any but the first transmission may be answered: the latest counts if its answer can have come.
TEST(RttSample, Cms113_SentOften_AnswersTheLatest) {
  const auto sample = [](std::uint32_t sent, bool retx, std::optional<Duration> base_rtt) {
    return rtt_sample({.sent = sent, .latest = at_us(100)}, retx, at_us(130), 31, base_rtt);
  };
  EXPECT_EQ(sample(3, true, microseconds(20)), Duration(26'032));
  EXPECT_EQ(sample(300, true, microseconds(20)), Duration(26'032));
  EXPECT_EQ(sample(3, true, microseconds(28)), microseconds(28)) << "noise of an empty network";
  EXPECT_EQ(sample(3, true, microseconds(30)), std::nullopt) << "too early for the latest";
  EXPECT_EQ(sample(3, true, std::nullopt), std::nullopt) << "base RTT not known";
  EXPECT_EQ(sample(3, false, microseconds(20)), std::nullopt) << "the first one is answered";
  EXPECT_EQ(sample(2, true, microseconds(30)), Duration(26'032)) << "only one can be answered";
}

TEST(RttSample, Cms113_RestartedTimeOut_TellsNoRoundTrip) {
  EXPECT_EQ(rtt_sample({.sent = 1, .latest = at_us(100), .timed = false}, false, at_us(130), 31),
            std::nullopt);
  EXPECT_EQ(
      trimmed_rtt({.sent = 1, .trimmed = 1, .latest = at_us(100), .timed = false}, at_us(112)),
      std::nullopt);
}

TEST(RttSample, Cms130_TrimTellsTheRoundTripIfAllWereTrimmed) {
  const auto sample = [](std::uint32_t sent, std::uint32_t trimmed, int at) {
    return trimmed_rtt({.sent = sent, .trimmed = trimmed, .latest = at_us(100)}, at_us(at));
  };
  EXPECT_EQ(sample(1, 1, 112), Duration(12'000));
  EXPECT_EQ(sample(3, 3, 112), Duration(12'000));
  EXPECT_EQ(sample(3, 2, 112), std::nullopt);
  EXPECT_EQ(sample(1, 1, 100), std::nullopt);
}

TEST(RttSample, Cms113_NotPositiveIsInvalid) {
  EXPECT_EQ(rtt_sample({.sent = 1, .latest = at_us(100)}, false, at_us(100) + Duration(128), 1),
            std::nullopt);
  EXPECT_EQ(rtt_sample({.sent = 1, .latest = at_us(100)}, false, at_us(100) + Duration(129), 1),
            Duration(1));
  EXPECT_EQ(rtt_sample({.sent = 1, .latest = at_us(100)}, false, at_us(99), 1), std::nullopt);
}

}  // namespace
}  // namespace uet::cms
