// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The table of counters of TSS section 9: nothing missing, and the manual page says the same.
#include "security/security_counters.h"

#include <gmock/gmock.h>

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace uet::prov {
namespace {

TEST(SecurityCounters, EveryMemberHasARow) {
  constexpr std::size_t kMembers =
      (sizeof(tss::PortCounters) + sizeof(tss::DomainCounters) + sizeof(tss::KeyCacheCounters)) /
      sizeof(std::uint64_t);
  EXPECT_EQ(security_counter_names().size(), kMembers);
}

TEST(SecurityCounters, AreThoseOfTheTable) {
  tss::SdTable table;
  std::array<std::byte, 40> out;
  const std::array<std::byte, 20> clear{std::byte{0x10}};
  const tss::OuterFields outer = tss::udp_fields({{{10, 0, 0, 7}}, 1}, {{{10, 0, 0, 9}}, 2});
  table.open(outer, clear, false, out, {});
  table.seal(7, outer, {}, out);
  table.seal(7, outer, {}, out);
  std::vector<std::uint64_t> values(security_counter_names().size());
  read_security_counters(&table, 7, values);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::string name(security_counter_names()[i].name);
    const std::uint64_t wanted = name == "tss_in_rx_encryption_bypass" ? 1U
                                 : name == "tss_port_out_errored"      ? 2U
                                                                       : 0U;
    EXPECT_EQ(values[i], wanted) << name;
  }
  read_security_counters(nullptr, 7, values);
  EXPECT_THAT(values, testing::Each(0U));
}

TEST(SecurityCounters, TheManualPageHasTheSameNamesAndMeanings) {
  std::ifstream file(UET_SOURCE_DIR "/prov/uet/fi_uet.7");
  const std::string manual{std::istreambuf_iterator<char>(file), {}};
  std::string rows;
  for (const fep::CounterName& counter : security_counter_names()) {
    EXPECT_TRUE(counter.name.starts_with("tss_")) << counter.name;
    rows.append(counter.name).append("|").append(counter.meaning).append("\n");
  }
  EXPECT_THAT(manual, testing::HasSubstr(rows));
}

}  // namespace
}  // namespace uet::prov
