// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "tss/key_rotation.h"

#include <gmock/gmock.h>

#include "unit/tss/tss_testing.h"

namespace uet::tss {
namespace {

using testing::HasSubstr;

KeyFile new_file() {
  KeyFile file;
  DomainConfig config;
  config.sdi = 7;
  EXPECT_EQ(new_key_file(config, known_key(), file), "");
  return file;
}
Key numbered(std::uint8_t number) { return key_of(counting(number, kKeyBytes)); }

TEST(KeyRotation, NewFileCanBeReadAgain) {
  const KeyFile file = new_file();
  const std::string text = to_text(file, KeyText::Secret);
  KeyFile again;
  ASSERT_EQ(parse_key_file(text, again), "");
  EXPECT_EQ(to_text(again, KeyText::Secret), text);
  EXPECT_EQ(again.domains[0].active, false);
}

// TSS-53: a member that reads every version of the file never drops a packet of another one.
TEST(KeyRotation, Tss53_MembersThatReadLateAreServed) {
  KeyFile file = new_file();
  SdTable early;
  SdTable late;
  ASSERT_EQ(apply(file, early, {}), "");
  ASSERT_EQ(apply(file, late, {}), "");
  const OuterFields outer = udp_fields({ipv4(10, 0, 0, 1), 4793}, {ipv4(10, 0, 0, 2), 4793});
  const auto passes = [&outer](SdTable& from, SdTable& to) {
    const Bytes plain = counting(0, 50);
    const Slice piece{plain.data(), 50};
    Bytes packet(100);
    Bytes opened(100);
    const SealResult sealed = from.seal(7, outer, {&piece, 1}, packet);
    return to.open(outer, std::span(packet).first(sealed.bytes), false, opened, {}).verdict ==
           OpenVerdict::Opened;
  };
  for (std::uint8_t turn = 1; turn < 6; ++turn) {
    const Time now = time_from_ns(turn * 100'000'000'000);
    early.expire(now);
    late.expire(now);
    ASSERT_EQ(install_next_key(file, {}, numbered(turn)), "");
    ASSERT_EQ(apply(file, early, now), "");
    ASSERT_TRUE(passes(early, late) && passes(late, early));
    ASSERT_EQ(apply(file, late, now), "");
    ASSERT_EQ(activate_next_key(file, {}), "");
    ASSERT_EQ(apply(file, early, now), "");
    ASSERT_TRUE(passes(early, late) && passes(late, early));
    ASSERT_EQ(apply(file, late, now), "");
    ASSERT_TRUE(passes(early, late) && passes(late, early));
  }
}

TEST(KeyRotation, StepsInTheWrongOrderAreRefused) {
  KeyFile file = new_file();
  EXPECT_THAT(activate_next_key(file, {}), HasSubstr("install it first"));
  ASSERT_EQ(install_next_key(file, 7, numbered(1)), "");
  EXPECT_THAT(install_next_key(file, 7, numbered(2)), HasSubstr("activate it first"));
  EXPECT_THAT(install_next_key(file, 8, numbered(2)), HasSubstr("no domain"));
  file.domains.push_back(file.domains[0]);
  EXPECT_THAT(activate_next_key(file, {}), HasSubstr("name its SDI"));
  file.domains[0].active.reset();
  EXPECT_THAT(activate_next_key(file, 7), HasSubstr("no active key"));
}

TEST(KeyRotation, Tss18_ClientKeysAreNotMadeHere) {
  KeyFile file;
  DomainConfig config;
  config.mode = KeyMode::Server;
  config.client = true;
  EXPECT_THAT(new_key_file(config, known_key(), file), HasSubstr("derived"));
  config.sdi = kMaxSdi + 1;
  EXPECT_THAT(new_key_file(config, known_key(), file), HasSubstr("24 bits"));
  file.domains.emplace_back().config.mode = KeyMode::Server;
  file.domains[0].config.client = true;
  EXPECT_THAT(install_next_key(file, {}, numbered(2)), HasSubstr("derived"));
}

}  // namespace
}  // namespace uet::tss
