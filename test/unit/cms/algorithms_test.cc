// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The table of algorithms: names, texts, and that every row makes a context that keeps what all
// contexts must keep (ccc.h).
#include "cms/algorithms.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "cms/ccc.h"
#include "cms/rccc.h"

namespace uet::cms {
namespace {

using std::chrono::microseconds;
using testing::HasSubstr;

TEST(Algorithms, Names_AreFoundAndListed) {
  EXPECT_EQ(algorithm_named("nscc"), Algorithm::Nscc);
  EXPECT_EQ(algorithm_named("swift"), Algorithm::Swift);
  EXPECT_EQ(algorithm_named("NSCC"), std::nullopt);
  EXPECT_EQ(algorithm_named(""), std::nullopt);
  const std::string names = algorithm_names("!").text.data();
  EXPECT_THAT(names, testing::StartsWith("none, nscc, rccc, both"));
  EXPECT_EQ(names.back(), '!');
  const std::string summaries = algorithm_summaries("Choose: ", ".").text.data();
  for (const AlgorithmRow& row : kAlgorithms) {
    EXPECT_THAT(names, HasSubstr(row.name));
    EXPECT_THAT(summaries, HasSubstr(std::string(row.name) + " " + std::string(row.summary)));
  }
}

class EveryAlgorithm : public testing::TestWithParam<AlgorithmRow> {
 protected:
  static Parameters parameters() {
    Parameters p;
    p.algorithm = GetParam().algorithm;
    p.mtu_bytes = 4096;
    p.link_rate_bps = 100'000'000'000;
    p.base_rtt = microseconds(12);
    p.fixed_window_bytes = 225'000;
    return p;
  }
  static std::unique_ptr<Ccc> make(std::optional<std::uint8_t> ccc_id) {
    return make_ccc(parameters(), Time{}, ccc_id);
  }
};

TEST_P(EveryAlgorithm, Make_CreditOnlyWhereTheRowSaysSo) {
  EXPECT_EQ(make(7)->by_credit() != nullptr, GetParam().credit != Credit::No);
  EXPECT_EQ(make({})->by_credit(), nullptr);
}

// CMS-101, CMS-104, CMS-133: whatever happens the window stays within its bounds, one packet may
// leave with nothing in flight, and each byte leaves the flight once.
TEST_P(EveryAlgorithm, Cms101_WindowAndFlightAreKept) {
  const std::unique_ptr<Ccc> ccc = make({});
  std::int64_t expected = 0;
  Time now{};
  for (int i = 0; i < 3000; ++i) {
    now += microseconds(3);
    if (ccc->may_send(4096)) {
      ccc->on_sent(4096, now);
      expected += 4096;
    }
    if (expected >= 8192 && i % 2 == 1) {
      AckFeedback feedback;
      feedback.newly_received_bytes = 4096;
      feedback.ce = i % 7 == 0;
      if (i % 3 != 0) feedback.rtt = microseconds(12 + i % 90);
      feedback.rcv_cwnd_pend = static_cast<std::uint8_t>(i % 31 == 0 ? 100 : 0);
      if (i % 11 == 0) {
        ccc->on_nack(wire::NackCode::Trimmed, 4096, true, {}, now);
      } else if (i % 13 == 0) {
        ccc->on_inferred_loss(4096, static_cast<LossCause>(i % 4), now);
      } else {
        ccc->on_ack(feedback, now);
      }
      expected -= 4096;
    }
    ASSERT_EQ(ccc->inflight_bytes(), expected);
    ASSERT_GE(ccc->window_bytes(), 4096U);
    ASSERT_LE(ccc->window_bytes(), 225'000U);
  }
  ccc->forget(expected);
  EXPECT_EQ(ccc->inflight_bytes(), 0);
  EXPECT_TRUE(ccc->may_send(8192));
  EXPECT_EQ(ccc->holdings().contexts, 1U);
}

INSTANTIATE_TEST_SUITE_P(Rows, EveryAlgorithm, testing::ValuesIn(kAlgorithms),
                         [](const auto& row) { return std::string(row.param.name); });

}  // namespace
}  // namespace uet::cms
