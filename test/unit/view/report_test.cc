// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The text of uet_stats.
#include "uet_stats/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/view/view_harness.h"

namespace uet::stats {
namespace {

using testing::ContainsRegex;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using view::make_domain;

constexpr std::uint64_t kNow = 5'100'000'000;  // 0.1 s after the domain's update

TEST(StatsTitle, SaysWhatIsToBeKnown) {
  view::Domain domain = make_domain();
  EXPECT_EQ(title(domain, kNow), "solver 4711, domain 10.0.0.1:4793 on eth0 (udp)");
  EXPECT_THAT(title(domain, kNow + 4'000'000'000), EndsWith(", numbers 4.10s old"));
  domain.owner = live::Owner::Gone;
  domain.torn = true;
  EXPECT_THAT(title(domain, kNow), HasSubstr("the process has ended"));
  EXPECT_THAT(title(domain, kNow), HasSubstr("perhaps of two moments"));
  domain.updated_ns = 0;
  EXPECT_THAT(title(domain, kNow), HasSubstr("no numbers yet"));
}

TEST(StatsText, ShowsCountersAndPeers) {
  view::Domain domain = make_domain();
  domain.peers_known = 5;
  const std::string text = describe(domain, {}, kNow);
  EXPECT_THAT(text, ContainsRegex("  pds_acks_sent +7\n"));
  EXPECT_THAT(text, Not(HasSubstr("pds_probes_sent")));
  EXPECT_THAT(text, ContainsRegex("  10.0.0.2:4793 +0 +12.3us +0 +0 +2.50M"));
  EXPECT_THAT(text, HasSubstr("and 4 peers with less traffic"));
}

TEST(StatsText, ShowsZerosAndMeaningsOnRequest) {
  const std::string text = describe(make_domain(), {.all = true, .meanings = true}, kNow);
  EXPECT_THAT(text, ContainsRegex("  pds_probes_sent +0  Probes sent\n"));
}

TEST(StatsText, RetransmissionsOfAllCausesAreOneColumn) {
  view::Domain domain = make_domain();
  value_of(domain.peers[0], "rto_retransmissions") = 100;
  value_of(domain.peers[0], "nack_retransmissions") = 20;
  value_of(domain.peers[0], "inferred_loss_retransmissions") = 3;
  EXPECT_THAT(describe(domain, {}, kNow), HasSubstr(" 123 "));
}

TEST(StatsChange, GrowthWithRateAndGaugesWithBothValues) {
  const view::Domain before = make_domain();
  view::Domain now = before;
  now.monotonic_ns += 500'000'000;
  now.counters[0].value = 1'007;
  now.counters[2].value = 8'000;
  value_of(now.peers[0], "bytes_sent") += 10;
  const std::string text = describe(view::change_between(before, now));
  EXPECT_THAT(text, ContainsRegex("  pds_acks_sent +\\+1000 +2.00k/s\n"));
  EXPECT_THAT(text, ContainsRegex("  cms_window_bytes +8000  before 9000\n"));
  EXPECT_THAT(text, ContainsRegex("  peer 10.0.0.2:4793\n +bytes_sent +\\+10 +20/s\n"));
}

TEST(StatsChange, NoRateWithoutAnUpdateBetween) {
  const view::Domain before = make_domain();
  view::Domain now = before;
  now.counters[0].value = 8;
  EXPECT_THAT(describe(view::change_between(before, now)), Not(HasSubstr("/s")));
}

}  // namespace
}  // namespace uet::stats
