// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "tss/key_file.h"

#include <gmock/gmock.h>

#include "unit/tss/tss_testing.h"

namespace uet::tss {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kFirst = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
constexpr const char* kSecond = "101112131415161718191a1b1c1d1e1f202122232425262728292a2b2c2d2e2f";

std::string file_with(const std::string& lines) { return "uet-tss-keys 1\ndomain 1\n" + lines; }
std::string key_line(int an, const char* key) {
  return "key " + std::to_string(an) + " 0 fresh " + key + "\n";
}

KeyFile parsed(const std::string& text) {
  KeyFile file;
  EXPECT_EQ(parse_key_file(text, file), "");
  return file;
}
std::string problem_of(const std::string& text) {
  KeyFile file;
  return parse_key_file(text, file);
}

constexpr const char* kWhole = R"(uet-tss-keys 1

domain 0xabcd
mode cluster
ipv6
pdc-only
ssi 0xa1b2c3d4
jobs 0x7 0xffffff
rekey 0xffff00 8
tsc 0x1 0x1000
epoch-check 12
alarm 100
guard 7
key 0 3 0x10203 000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f
key 1 0 fresh 101112131415161718191a1b1c1d1e1f202122232425262728292a2b2c2d2e2f
active 0

domain 0x2
mode server
client 0x7 10.0.0.9
client 0x8 fd00::2a
rekey 0xffffffff0000 16
guard 10
)";

TEST(KeyFile, TextOfAParsedFileIsTheFile) {
  const KeyFile file = parsed(kWhole);
  ASSERT_EQ(file.domains.size(), 2U);
  const DomainEntry& first = file.domains[0];
  EXPECT_EQ(first.config.sdi, 0xABCDU);
  EXPECT_EQ(first.config.rekey, (RekeyRule{0xFFFF00, 8}));
  EXPECT_EQ(first.config.guard, std::chrono::seconds(7));
  EXPECT_THAT(first.config.jobs, testing::ElementsAre(7U, 0xFFFFFFU));  // TSS-67
  EXPECT_TRUE(first.config.pdc_only);                                   // TSS-50
  EXPECT_FALSE(file.domains[1].config.pdc_only);
  ASSERT_TRUE(first.keys[0].has_value());
  EXPECT_EQ(to_hex(first.keys[0]->material.key.bytes()), kFirst);
  EXPECT_EQ(first.keys[0]->start.epoch, 3);
  EXPECT_EQ(first.keys[0]->start.next_tsc, 0x10203U);
  EXPECT_EQ(file.domains[1].config.clients[1], (Client{ipv6(0x2A), 8}));
  EXPECT_EQ(to_text(file, KeyText::Secret), kWhole);
}

TEST(KeyFile, CommentsAndSpacesAreNoContent) {
  const KeyFile file = parsed("# a comment\n\n uet-tss-keys\t1 # version\r\ndomain 5 # five\n");
  ASSERT_EQ(file.domains.size(), 1U);
  EXPECT_EQ(file.domains[0].config.sdi, 5U);
}

TEST(KeyFile, Tss18_ClientHas44Bytes) {
  const std::string key = std::string(kFirst) + "aabbccddeeff001122334455";
  const std::string text = file_with("mode client\n" + key_line(0, key.c_str()));
  const KeyFile file = parsed(text);
  EXPECT_EQ(to_hex(file.domains[0].keys[0]->material.mask.bytes()), "aabbccddeeff001122334455");
  EXPECT_THAT(to_text(file, KeyText::Secret), HasSubstr(key));
  EXPECT_EQ(problem_of(file_with("mode client\n" + key_line(0, kFirst))),
            "line 4: a client's key has 88 hexadecimal digits");
}

TEST(KeyFile, ProblemsNameTheLine) {
  EXPECT_EQ(problem_of(""), "line 0: the file is empty");
  EXPECT_EQ(problem_of("uet-tss-keys 2\n"), "line 1: expected as the first line: uet-tss-keys 1");
  EXPECT_EQ(problem_of("uet-tss-keys 1\nmode direct\n"),
            "line 2: a line \"domain SDI\" must come first");
  for (const char* line :
       {"mode fast", "ssi", "ssi 0x100000000", "client 1", "client 1 10.0.0", "rekey 1",
        "rekey 0x1000000000000 1", "tsc 1", "active 2", "guard -1", "guard 86401", "colour 3",
        "domain 1", "domain 0x1000000", "key 2 0 fresh ", "key 0 0 fresh 00", "ipv6 1"}) {
    EXPECT_THAT(problem_of(file_with(std::string(line) + "\n")), HasSubstr("line 3: ")) << line;
  }
  EXPECT_THAT(problem_of(file_with("active 0\n")), HasSubstr("the active key is not there"));
  EXPECT_THAT(problem_of(file_with("mode direct\nipv6\n")), HasSubstr("TSS-22"));
  EXPECT_THAT(problem_of(file_with("tsc 5 5\ndomain 2\n")), HasSubstr("line 4: the range"));
  EXPECT_THAT(problem_of(file_with(key_line(0, kFirst) + key_line(0, kFirst))),
              HasSubstr("this AN came before"));
}

// TSS-60: neither a message nor the listing shows a part of a key.
TEST(KeyFile, Tss60_NoKeyInMessagesAndListings) {
  const std::string bad = std::string(kFirst).substr(2);
  EXPECT_THAT(problem_of(file_with(key_line(0, bad.c_str()))), Not(HasSubstr("010203")));
  const KeyFile file = parsed(kWhole);
  const std::string listing = to_text(file, KeyText::Recognised);
  EXPECT_THAT(listing, Not(HasSubstr("0203040506")));
  EXPECT_THAT(listing, Not(HasSubstr("1314151617")));
  EXPECT_THAT(listing, HasSubstr("key 1 0 fresh fingerprint "));
}

class KeyFileApply : public testing::Test {
 protected:
  std::string apply_lines(const std::string& lines, double seconds) {
    return apply(parsed(file_with(lines)), table_,
                 time_from_ns(static_cast<std::int64_t>(seconds * 1e9)));
  }
  const std::string old_key_ = key_line(0, kFirst);
  const std::string new_key_ = key_line(1, kSecond);
  SdTable table_;
};

TEST_F(KeyFileApply, Tss53_RotationByThreeFiles) {
  EXPECT_EQ(apply_lines(old_key_ + "active 0\n", 0), "");
  SecureDomain* const domain = table_.find(1);
  ASSERT_NE(domain, nullptr);
  EXPECT_EQ(apply_lines(old_key_ + new_key_ + "active 0\n", 1), "");
  EXPECT_TRUE(domain->has_key(true));
  EXPECT_EQ(domain->active(), false);
  EXPECT_EQ(apply_lines(old_key_ + new_key_ + "active 1\n", 2), "");
  EXPECT_EQ(domain->active(), true);
  EXPECT_TRUE(domain->in_guard(false));

  const std::string third =
      key_line(0,
               "ff"
               "0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f");
  EXPECT_THAT(apply_lines(third + new_key_ + "active 1\n", 3), HasSubstr("wait and try again"));
  table_.expire(time_from_ns(12'000'000'000));
  EXPECT_EQ(apply_lines(third + new_key_ + "active 1\n", 12), "");
  EXPECT_TRUE(domain->has_key(false));
}

TEST_F(KeyFileApply, OneFileTwiceChangesNothing) {
  const std::string lines = old_key_ + new_key_ + "active 1\n";
  EXPECT_EQ(apply_lines(old_key_ + "active 0\n", 0), "");
  EXPECT_EQ(apply_lines(lines, 1), "");
  EXPECT_EQ(apply_lines(lines, 2), "");
  EXPECT_EQ(table_.next_deadline(), time_from_ns(11'000'000'000));
  table_.expire(time_from_ns(11'000'000'000));
  EXPECT_EQ(apply_lines(lines, 12), "");  // names the key whose guard time has ended
  EXPECT_FALSE(table_.find(1)->has_key(false));
}

TEST_F(KeyFileApply, KeysAndDomainsThatLeaveTheFileGo) {
  EXPECT_EQ(apply_lines(old_key_ + new_key_ + "active 0\n", 0), "");
  EXPECT_EQ(apply_lines(old_key_ + "active 0\n", 1), "");
  EXPECT_FALSE(table_.find(1)->has_key(true));
  EXPECT_EQ(apply(parsed("uet-tss-keys 1\n"), table_, {}), "");
  EXPECT_EQ(table_.find(1), nullptr);
}

TEST_F(KeyFileApply, Tss37And38_EpochsOfTheFile) {
  const std::string unknown = std::string(" unknown ") + kFirst + "\nactive 0\n";
  EXPECT_THAT(apply_lines("key 0 4" + unknown, 0), HasSubstr("set a newer epoch"));
  EXPECT_EQ(table_.find(1)->active(), std::nullopt);
  EXPECT_EQ(apply_lines("key 0 5" + unknown, 1), "");
  EXPECT_EQ(table_.find(1)->position(false)->epoch, 5);
  EXPECT_THAT(apply_lines("guard 3\nkey 0 5" + unknown, 2), HasSubstr("another SDI"));
}

// A member that has read no file for two rotations: the slots of the file hold other keys than its
// own, and no member seals with those any more.
TEST_F(KeyFileApply, Tss56_MissedRotations_MadeUpForAtOnce) {
  EXPECT_EQ(apply_lines(old_key_ + new_key_ + "active 0\n", 0), "");
  const std::string third = key_line(0,
                                     "ff0102030405060708090a0b0c0d0e0f"
                                     "101112131415161718191a1b1c1d1e1f");
  const std::string fourth = key_line(1,
                                      "fe0102030405060708090a0b0c0d0e0f"
                                      "101112131415161718191a1b1c1d1e1f");
  const KeyFile file = parsed(file_with(third + fourth + "active 0\n"));
  EXPECT_EQ(apply(file, table_, time_from_ns(1)), "");
  const SecureDomain& domain = *table_.find(1);
  EXPECT_EQ(domain.active(), false);
  EXPECT_TRUE(domain.holds(false, file.domains[0].keys[0]->material));
  EXPECT_TRUE(domain.holds(true, file.domains[0].keys[1]->material));
  EXPECT_EQ(table_.next_deadline(), kNever);  // no key has a guard time
}

}  // namespace
}  // namespace uet::tss
