// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The table of counters: nothing missing, nothing twice, and the manual page says the same.
#include "fep/stats.h"

#include <gtest/gtest.h>

#include <cctype>
#include <cstring>
#include <fstream>
#include <numeric>
#include <set>
#include <sstream>
#include <vector>

namespace uet::fep {
namespace {

std::vector<std::uint64_t> values_of(const Stats& stats) {
  std::vector<std::uint64_t> values(counter_names().size());
  read_counters(stats, values);
  return values;
}

std::uint64_t value_of(const Stats& stats, const std::string& name) {
  const auto names = counter_names();
  const auto values = values_of(stats);
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i].name == name) return values[i];
  }
  ADD_FAILURE() << "no counter " << name;
  return 0;
}

TEST(CounterTable, EveryMemberIsReadByExactlyOneRow) {
  static_assert(sizeof(Stats) % sizeof(std::uint64_t) == 0);
  for (std::size_t word = 0; word < sizeof(Stats) / sizeof(std::uint64_t); ++word) {
    Stats stats;
    const std::uint64_t one = 1;
    std::memcpy(reinterpret_cast<std::byte*>(&stats) + word * sizeof one, &one, sizeof one);
    const auto values = values_of(stats);
    ASSERT_EQ(std::accumulate(values.begin(), values.end(), std::uint64_t{0}), 1U)
        << "word " << word << " of fep::Stats: give its member one row in src/fep/stats.cc";
  }
}

TEST(CounterTable, NamesAreWordsThatBeginWithTheirModule) {
  std::set<std::string> seen;
  for (const CounterName& counter : counter_names()) {
    EXPECT_TRUE(seen.emplace(counter.name).second) << counter.name;
    const std::string_view module = counter.name.substr(0, 4);
    const bool known = module == "pds_" || module == "cms_" || module == "ses_" || module == "nic_";
    EXPECT_TRUE(known) << counter.name;
    for (const char c : counter.name) {
      EXPECT_TRUE(std::islower(c) || std::isdigit(c) || c == '_') << counter.name;
    }
    EXPECT_FALSE(counter.meaning.empty()) << counter.name;
  }
}

TEST(CounterTable, MeaningsStandAlone) {
  for (const CounterName& counter : counter_names()) {
    for (const char* word :
         {"it ", "its ", "they ", "their ", "also ", "and ", "or ", "the same"}) {
      EXPECT_FALSE(counter.meaning.starts_with(word)) << counter.name << ": " << counter.meaning;
    }
  }
}

TEST(CounterTable, NackCodesAreCountedByNameAndTheRestTogether) {
  Stats stats;
  stats.pds.nacks_sent[0x01] = 3;
  stats.pds.nacks_sent[0x02] = 4;
  stats.pds.nacks_received[0x0D] = 5;
  stats.pds.nacks_received[0x0C] = 6;  // reserved
  stats.pds.nacks_received[0x00] = 7;
  EXPECT_EQ(value_of(stats, "pds_nacks_sent_trimmed"), 3U);
  EXPECT_EQ(value_of(stats, "pds_nacks_sent_trimmed_lasthop"), 4U);
  EXPECT_EQ(value_of(stats, "pds_nacks_sent_other"), 0U);
  EXPECT_EQ(value_of(stats, "pds_nacks_received_rod_ooo"), 5U);
  EXPECT_EQ(value_of(stats, "pds_nacks_received_other"), 13U);
}

// The rows of the manual page: name, bar, meaning. The NACK codes are there as two
// lines for all codes.
TEST(CounterTable, TheManualPageHasTheSameNamesAndMeanings) {
  std::ifstream file(UET_SOURCE_DIR "/prov/uet/fi_uet.7");
  std::stringstream text;
  text << file.rdbuf();
  const std::string manual = text.str();
  std::string expected;
  for (const CounterName& counter : counter_names()) {
    if (counter.name.starts_with("pds_nacks_sent_")) continue;
    if (counter.name.starts_with("pds_nacks_received_")) continue;
    expected.append(counter.name).append("|").append(counter.meaning).append("\n");
  }
  EXPECT_NE(manual.find(expected), std::string::npos)
      << "prov/uet/fi_uet.7, COUNTERS: put these lines there\n"
      << expected;
  EXPECT_NE(manual.find("pds_nacks_sent_CODE|"), std::string::npos);
  EXPECT_NE(manual.find("pds_nacks_received_CODE|"), std::string::npos);
}

}  // namespace
}  // namespace uet::fep
