// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The table of what an operator may change: each row reads and writes a place of its own.
#include "fep/tunables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

namespace uet::fep {
namespace {

using testing::HasSubstr;

// The present value of every row, by name. Whole numbers and switches as such.
std::map<std::string, std::string> values_of(const Config& config) {
  std::map<std::string, std::string> values;
  Config copy = config;
  for (const Tunable& row : tunables()) {
    if (const auto* whole = std::get_if<Tunable::Whole>(&row.kind)) {
      values[row.name] = std::to_string(whole->read(copy));
    } else if (const auto* real = std::get_if<Tunable::Real>(&row.kind)) {
      values[row.name] = text_of(real->at(copy));
    } else if (const auto* choice = std::get_if<Tunable::Choice>(&row.kind)) {
      values[row.name] = choice->read(copy);
    } else {
      values[row.name] = std::get<Tunable::Switch>(row.kind).at(copy) ? "yes" : "no";
    }
  }
  return values;
}

// Another value than the default one that is allowed.
std::string other_value(const Tunable& row) {
  const std::string preset = default_text(row);
  if (const auto* whole = std::get_if<Tunable::Whole>(&row.kind)) {
    const std::string high = std::to_string(whole->high);
    return preset == high ? std::to_string(whole->low) : high;
  }
  if (const auto* real = std::get_if<Tunable::Real>(&row.kind)) {
    return preset == text_of(real->high) ? text_of(real->low) : text_of(real->high);
  }
  if (std::holds_alternative<Tunable::Choice>(row.kind)) return "63";
  return preset == "yes" ? "no" : "yes";
}

TEST(Tunables, EachRowChangesItsOwnPlaceAndNoOther) {
  const auto before = values_of(Config{});
  for (const Tunable& row : tunables()) {
    Config config;
    const std::string value = other_value(row);
    EXPECT_EQ(tune(config, std::string(row.name) + "=" + value), std::nullopt) << row.name;
    auto expected = before;
    expected[row.name] = value;
    EXPECT_EQ(values_of(config), expected) << row.name;
  }
}

TEST(Tunables, NamesAreLowerCaseAndDiffer) {
  std::set<std::string> seen;
  for (const Tunable& row : tunables()) {
    const std::string name = row.name;
    EXPECT_TRUE(seen.insert(name).second) << name;
    EXPECT_EQ(name.find_first_not_of("abcdefghijklmnopqrstuvwxyz_"), std::string::npos) << name;
  }
}

// The bounds of the table must permit the defaults.
TEST(Tunables, DefaultsAreAllowed) {
  for (const Tunable& row : tunables()) {
    Config config;
    EXPECT_TRUE(set_value(config, row, default_text(row))) << row.name << " " << default_text(row);
    EXPECT_EQ(values_of(config), values_of(Config{})) << row.name;
  }
  EXPECT_EQ(find_conflict(Config{}), std::nullopt);
}

TEST(Tune, LaterSettingsCount) {
  Config config;
  EXPECT_EQ(tune(config, "cc_gamma=0.5,retries=3,cc_gamma=0.25"), std::nullopt);
  EXPECT_EQ(config.cms.tuning.gamma, 0.25);
  EXPECT_EQ(config.ses.retries, 3);
}

TEST(Tune, RefusesWithNearNamesAndRange) {
  Config config;
  EXPECT_EQ(tune(config, "cc_gama=0.5"), "'cc_gama' is not a parameter; did you mean cc_gamma?");
  EXPECT_EQ(tune(config, "cc_gamma=2"), "cc_gamma=2 is not valid; allowed: 0 to 1");
  EXPECT_EQ(tune(config, "cc_gamma="), "cc_gamma= is not valid; allowed: 0 to 1");
  EXPECT_EQ(tune(config, "cc_gamma"), "'cc_gamma' is not valid; allowed: name=value");
}

// 0 stands for "not known" where a rate or a round-trip time is.
TEST(Tune, ZeroTakesRatesAndTheBaseRttBack) {
  Config config;
  EXPECT_EQ(tune(config, "cc_base_rtt_us=12,cc_remote_rate_mbps=100"), std::nullopt);
  EXPECT_EQ(config.cms.base_rtt, std::chrono::microseconds(12));
  EXPECT_EQ(config.cms.remote_rate_bps, 100'000'000U);
  EXPECT_EQ(tune(config, "cc_base_rtt_us=0,cc_remote_rate_mbps=0"), std::nullopt);
  EXPECT_EQ(config.cms.base_rtt, std::nullopt);
  EXPECT_EQ(config.cms.remote_rate_bps, UINT64_MAX);
}

// 0 stands for Tombstone_Time.
TEST(Tune, Pds217_SafetyTimeIsInMilliseconds) {
  Config config;
  EXPECT_EQ(tune(config, "syn_retx_safety_ms=2500"), std::nullopt);
  EXPECT_EQ(config.pds.syn_retx_safety_time, std::chrono::milliseconds(2500));
  EXPECT_EQ(tune(config, "syn_retx_safety_ms=0"), std::nullopt);
  EXPECT_EQ(config.pds.syn_retx_safety_time, std::nullopt);
  EXPECT_THAT(tune(config, "syn_retx_safety_ms=86400001").value_or(""), HasSubstr("0 to 86400000"));
}

TEST(Tune, Pds218_MprZeroStandsForFewerThan128) {
  Config config;
  EXPECT_EQ(tune(config, "mpr_zero_psns=127"), std::nullopt);
  EXPECT_EQ(config.pds.mpr_zero_psns, 127);
  EXPECT_THAT(tune(config, "mpr_zero_psns=128").value_or(""), HasSubstr("0 to 127"));
}

// CMS-304, CMS-231, CMS-419.
TEST(FindConflict, LimitsComeInTheirOrder) {
  const auto conflict = [](const char* list) {
    Config config;
    EXPECT_EQ(tune(config, list), std::nullopt);
    return find_conflict(config).value_or("");
  };
  EXPECT_THAT(conflict("cc_pend_low=0.8"), HasSubstr("cc_pend_low must be less"));
  EXPECT_THAT(conflict("cc_restore_below=0.3"), HasSubstr("cc_restore_below must not"));
  EXPECT_THAT(conflict("cc_backlog_low_bytes=5000000"), HasSubstr("cc_backlog_low_bytes"));
  EXPECT_THAT(conflict("cc_path_ban_s=61"), HasSubstr("cc_path_ban_s must not"));
}

}  // namespace
}  // namespace uet::fep
