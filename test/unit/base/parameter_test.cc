// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Tables of parameters: what a value may be, how lists of settings are read, which names are near.
#include "base/parameter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace uet {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

struct Inner {
  std::uint16_t count = 7;
  Duration wait = std::chrono::milliseconds(3);
  double gain = 0.5;
};
struct Target {
  Inner inner;
  double ring = 8;
  bool on = true;
};

constexpr Parameter<Target> kCount{"count", "", whole<Target, &Target::inner, &Inner::count>(1, 9)};
constexpr Parameter<Target> kWait{
    "wait", "", duration<Target, std::chrono::milliseconds, &Target::inner, &Inner::wait>(0, 50)};
constexpr Parameter<Target> kGain{"gain", "", real<Target, &Target::inner, &Inner::gain>(0, 1)};
constexpr Parameter<Target> kRing{"ring", "", whole_real<Target, &Target::ring>(1, 1024)};
constexpr Parameter<Target> kOn{"on", "", on_off<Target, &Target::on>()};

TEST(ParameterTable, ReadsDefaultsFromTheTarget) {
  EXPECT_EQ(default_text(kCount), "7");
  EXPECT_EQ(default_text(kWait), "3");
  EXPECT_EQ(default_text(kGain), "0.5");
  EXPECT_EQ(default_text(kRing), "8");
  EXPECT_EQ(default_text(kOn), "yes");
  EXPECT_EQ(range_text(kCount), "1 to 9");
  EXPECT_EQ(range_text(kRing), "whole numbers from 1 to 1024");
  EXPECT_EQ(range_text(kOn), "yes or no");
}

TEST(ParameterTable, WritesWhatIsInRange) {
  Target target;
  EXPECT_TRUE(set_value(target, kCount, "0x9"));
  EXPECT_EQ(target.inner.count, 9);
  EXPECT_TRUE(set_value(target, kWait, "50"));
  EXPECT_EQ(target.inner.wait, std::chrono::milliseconds(50));
  EXPECT_TRUE(set_value(target, kGain, "0.25"));
  EXPECT_EQ(target.inner.gain, 0.25);
  EXPECT_TRUE(set_value(target, kRing, "16"));
  EXPECT_EQ(target.ring, 16);
  EXPECT_TRUE(set_value(target, kOn, "off"));
  EXPECT_FALSE(target.on);
}

TEST(ParameterTable, LeavesTheTargetWhereItRefuses) {
  Target target;
  for (const char* text : {"0", "10", "", "x", "-1", " 1", "1.0", "65537"}) {
    EXPECT_FALSE(set_value(target, kCount, text)) << text;
  }
  for (const char* text : {"1.01", "-0.1", "1e-3", "nan", "inf", "", ".", "0.5x", "0,5"}) {
    EXPECT_FALSE(set_value(target, kGain, text)) << text;
  }
  for (const char* text : {"0", "8.5", "1025"})
    EXPECT_FALSE(set_value(target, kRing, text)) << text;
  for (const char* text : {"maybe", "", "2"}) EXPECT_FALSE(set_value(target, kOn, text)) << text;
  EXPECT_EQ(target.inner.count, 7);
  EXPECT_EQ(target.inner.gain, 0.5);
  EXPECT_EQ(target.ring, 8);
  EXPECT_TRUE(target.on);
}

// All settings of a list as text, and why it was refused.
std::string settings(std::string_view list) {
  std::string text;
  const auto why = for_each_setting(
      list, [&](std::string_view name, std::string_view value) -> std::optional<std::string> {
        text += std::string(name) + ":" + std::string(value) + ";";
        if (value == "bad") return "refused";
        return {};
      });
  return text + why.value_or("");
}

TEST(ListOfSettings, IsSplitAtCommasAndLines) {
  EXPECT_EQ(settings("a=1,b=2"), "a:1;b:2;");
  EXPECT_EQ(settings(",a=1,,b=2,"), "a:1;b:2;");
  EXPECT_EQ(settings("# head, x=1\n a = 1 , b=2 # x=2\r\n\nc="), "a:1;b:2;c:;");
  EXPECT_EQ(settings(""), "");
}

TEST(ListOfSettings, EndsAtTheFirstRefusal) {
  EXPECT_EQ(settings("a=1,b=bad,c=3"), "a:1;b:bad;refused");
  EXPECT_EQ(settings("a=1,b"), "a:1;'b' is not valid; allowed: name=value");
}

TEST(NearNames, DifferByFewLetters) {
  const std::string_view names[] = {"rto_init_us", "rto_max_us", "cc_gamma", "retries"};
  EXPECT_THAT(near_names("rto_maxus", names), ElementsAre("rto_max_us"));
  EXPECT_THAT(near_names("rto_mnit_us", names), ElementsAre("rto_init_us", "rto_max_us"));
  EXPECT_THAT(near_names("cc_gmama", names), ElementsAre("cc_gamma"));  // two letters swapped
  EXPECT_THAT(near_names("gamma", names), ElementsAre("cc_gamma"));     // a part of the name
  EXPECT_THAT(near_names("something_else", names), IsEmpty());
  EXPECT_THAT(near_names(std::string(100'000, 'r'), names), IsEmpty());
  EXPECT_EQ(near_names_text("cc_gama", names), "; did you mean cc_gamma?");
  EXPECT_EQ(near_names_text("x", names), "");
}

}  // namespace
}  // namespace uet
