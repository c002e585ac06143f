// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "schedule.h"

#include <gmock/gmock.h>

namespace uet::keyd {
namespace {

using std::chrono::seconds;

const Rotation kRotation{seconds(100), seconds(10)};

tss::Key secret_of(std::uint8_t first) {
  tss::Key key;
  key.writable()[0] = static_cast<std::byte>(first);
  return key;
}
tss::Key key_of(const tss::Key& secret, const Job& job, std::uint64_t number) {
  tss::Key key;
  EXPECT_TRUE(derive_key(secret, job, number, key));
  return key;
}
tss::DomainEntry domain_at(seconds now) {
  tss::KeyFile file;
  EXPECT_TRUE(key_file_of(secret_of(1), {5, 1000}, 3, keys_at(now, kRotation), kRotation, file));
  return file.domains.at(0);
}

TEST(KeydSchedule, Tss53_NextKeyComesHalfAnIntervalEarly) {
  EXPECT_EQ(keys_at(seconds(700), kRotation), (LiveKeys{7, true, false}));
  EXPECT_EQ(keys_at(seconds(709), kRotation), (LiveKeys{7, true, false}));
  EXPECT_EQ(keys_at(seconds(710), kRotation), (LiveKeys{7, false, false}));
  EXPECT_EQ(keys_at(seconds(749), kRotation), (LiveKeys{7, false, false}));
  EXPECT_EQ(keys_at(seconds(750), kRotation), (LiveKeys{7, false, true}));
  EXPECT_EQ(keys_at(seconds(799), kRotation), (LiveKeys{7, false, true}));
}

TEST(KeydSchedule, Tss56_SlotIsFreeBeforeTheNextKey) {
  EXPECT_EQ(reason_against(kRotation), nullptr);
  EXPECT_NE(reason_against({seconds(7), seconds(1)}), nullptr);
  EXPECT_NE(reason_against({seconds(100), seconds(0)}), nullptr);
  EXPECT_EQ(reason_against({seconds(100), seconds(48)}), nullptr);
  EXPECT_NE(reason_against({seconds(100), seconds(49)}), nullptr);
}

TEST(KeydSchedule, KeysDifferByJobUserNumberAndSecret) {
  const tss::Key secret = secret_of(1);
  const tss::Key key = key_of(secret, {5, 1000}, 7);
  const auto same = [&key](const tss::Key& other) {
    return tss::equal_secrets(key.bytes(), other.bytes());
  };
  EXPECT_TRUE(same(key_of(secret, {5, 1000}, 7)));
  EXPECT_FALSE(same(key_of(secret, {6, 1000}, 7)));
  EXPECT_FALSE(same(key_of(secret, {5, 1001}, 7)));
  EXPECT_FALSE(same(key_of(secret, {5, 1000}, 8)));
  EXPECT_FALSE(same(key_of(secret_of(2), {5, 1000}, 7)));
}

TEST(KeydSchedule, FileSaysTheKeysOfTheMoment) {
  const tss::DomainEntry early = domain_at(seconds(705));
  EXPECT_EQ(early.config.sdi, 5U);
  EXPECT_EQ(early.active, true);  // 7 is odd
  ASSERT_TRUE(early.keys[0] && early.keys[1]);
  EXPECT_EQ(early.keys[1]->start.epoch, 3U);
  const tss::DomainEntry quiet = domain_at(seconds(720));
  EXPECT_FALSE(quiet.keys[0]);
  const tss::DomainEntry late = domain_at(seconds(760));
  ASSERT_TRUE(late.keys[0] && late.keys[1]);
  const auto key = [](const tss::DomainEntry& entry, int an) {
    return entry.keys[an]->material.key.bytes();
  };
  EXPECT_TRUE(tss::equal_secrets(key(early, 1), key(late, 1)));
  EXPECT_FALSE(tss::equal_secrets(key(early, 0), key(late, 0)));
  EXPECT_TRUE(tss::equal_secrets(key(late, 0), key(domain_at(seconds(800)), 0)));
}

// A member that reads each version of the file one second late, as providers do, never drops a
// packet of one that reads at once, and the other way round.
TEST(KeydSchedule, Tss53_MembersOneSecondApart_Interoperate) {
  tss::SdTable early;
  tss::SdTable late;
  const auto apply_at = [](tss::SdTable& table, seconds now) {
    tss::KeyFile file;
    file.domains.push_back(domain_at(now));
    const Time moment = Time{} + now;
    table.expire(moment);
    EXPECT_EQ(apply(file, table, moment), "") << now.count();
  };
  FabricAddress a;
  a.bytes[0] = 10;
  FabricAddress b = a;
  b.bytes[3] = 1;
  const tss::OuterFields outer = tss::udp_fields({a, 4793}, {b, 4793});
  const std::array<std::byte, 40> plain{};
  const Slice text{plain.data(), plain.size()};
  const auto passes = [&](tss::SdTable& from, tss::SdTable& to, seconds now) {
    std::array<std::byte, 100> sealed;
    std::array<std::byte, 100> opened;
    const auto result = from.seal(5, outer, {&text, 1}, sealed);
    const auto got =
        to.open(outer, std::span(sealed).first(result.bytes), false, opened, Time{} + now);
    return got.verdict == tss::OpenVerdict::Opened;
  };
  for (seconds now(700); now < seconds(1100); ++now) {
    apply_at(early, now);
    apply_at(late, now - seconds(1));
    EXPECT_TRUE(passes(early, late, now)) << now.count();
    EXPECT_TRUE(passes(late, early, now)) << now.count();
  }
}

TEST(KeydSchedule, SdiHas24BitsAndIsNeverZero) {
  EXPECT_EQ(sdi_of(0x12345678), 0x345678U);
  EXPECT_EQ(sdi_of(0x1000000), 0xFFFFFFU);
}

}  // namespace
}  // namespace uet::keyd
