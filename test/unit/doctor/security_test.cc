// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "uet_doctor/security.h"

#include <gmock/gmock.h>

namespace uet::doctor {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

// Key 0: none.
SecurityState secured(std::uint8_t key0, std::uint8_t key1, int active, std::int64_t now = 100) {
  SecurityState state;
  state.secured = 1;
  state.keys.sdi = 7;
  state.time_of_day = now;
  for (int an = 0; an < 2; ++an) {
    fi_uet_tss_slot& slot = state.keys.slot[an];
    slot.fingerprint[5] = an == 0 ? key0 : key1;
    slot.has_key = slot.fingerprint[5] != 0 ? 1 : 0;
    slot.active = an == active ? 1 : 0;
  }
  return state;
}
SecurityState clear() { return {}; }
std::string problem(const SecurityState& here, const SecurityState& there) {
  const Agreement agreement = compare(here, there);
  EXPECT_EQ(agreement.problem.empty(), agreement.advice.empty());
  EXPECT_NE(agreement.problem.empty(), agreement.good.empty());
  return agreement.problem;
}

TEST(DoctorSecurity, EndsThatAgreePass) {
  EXPECT_EQ(problem(clear(), clear()), "");
  EXPECT_EQ(problem(secured(1, 0, 0), secured(1, 0, 0)), "");
  EXPECT_EQ(problem(secured(1, 2, 0), secured(1, 2, 1)), "") << "in the middle of a rotation";
}

TEST(DoctorSecurity, Tss68_OneEndInClear) {
  EXPECT_THAT(problem(clear(), secured(1, 0, 0)), StartsWith("the peer requires TSS"));
  EXPECT_THAT(problem(secured(1, 0, 0), clear()), StartsWith("this end requires TSS"));
}

TEST(DoctorSecurity, OtherDomain) {
  SecurityState other = secured(1, 0, 0);
  other.keys.sdi = 8;
  EXPECT_THAT(problem(secured(1, 0, 0), other), HasSubstr("SDI 7 here, 8 there"));
}

TEST(DoctorSecurity, WrongKey) {
  EXPECT_THAT(problem(secured(1, 0, 0), secured(2, 0, 0)), StartsWith("wrong key"));
  EXPECT_THAT(problem(secured(1, 0, 0), secured(0, 2, 1)), StartsWith("wrong key"));
}

TEST(DoctorSecurity, Tss53_ClocksApart) {
  const std::string by_key = problem(secured(1, 0, 0), secured(1, 2, 1));
  EXPECT_THAT(by_key, StartsWith("clocks of rotation apart"));
  EXPECT_THAT(by_key, HasSubstr("differ by 0 s"));
  const std::string by_clock = problem(secured(1, 0, 0, 100), secured(0, 2, 1, 1300));
  EXPECT_THAT(by_clock, StartsWith("clocks of rotation apart"));
  EXPECT_THAT(by_clock, HasSubstr("differ by 1200 s"));
}

}  // namespace
}  // namespace uet::doctor
