// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Host files, places of ranks, and the words of launchers.
#include "uet_run/hosts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

namespace uet::run {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string complaint_about(std::string_view text) {
  try {
    parse_hosts(text);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return {};
}

TEST(JobHosts, AreReadInEachForm) {
  EXPECT_THAT(
      parse_hosts("# all\nnorth\nsouth:3 # near\n\neast slots=2\n2001:db8::1\n"),
      ElementsAre(Host{"north", 1}, Host{"south", 3}, Host{"east", 2}, Host{"2001:db8::1", 1}));
}

TEST(JobHosts, AreRefusedWithTheLine) {
  EXPECT_THAT(complaint_about("a\nb slots=0\n"), HasSubstr("line 2"));
  EXPECT_THAT(complaint_about("a:x"), HasSubstr("line 1"));
  EXPECT_THAT(complaint_about("a 4"), HasSubstr("slots=N"));
  EXPECT_THAT(complaint_about("a:65536"), HasSubstr("slots"));
  EXPECT_THAT(complaint_about("-oProxyCommand=x"), HasSubstr("not the name of a host"));
  EXPECT_THAT(complaint_about("# none\n"), HasSubstr("no host"));
}

TEST(JobHosts, FillTheirSlotsAndBeginAgain) {
  EXPECT_THAT(place_ranks({{"a", 2}, {"b", 1}}, 5), ElementsAre("a", "a", "b", "a", "a"));
  EXPECT_THAT(place_ranks({{"a", 4}}, 1), ElementsAre("a"));
}

TEST(JobHosts, LaunchersAreFilled) {
  EXPECT_THAT(fill_launcher("ssh", "h", "run --agent"), ElementsAre("ssh", "h", "run --agent"));
  EXPECT_THAT(fill_launcher("x {command} on={host}", "h", "run --agent"),
              ElementsAre("x", "run --agent", "on=h"));
  EXPECT_EQ(quoted("a b'c"), "'a b'\\''c'");
}

}  // namespace
}  // namespace uet::run
