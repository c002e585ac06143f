// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Pages become domains with all their numbers; broken pages become problems.
#include "live_view/domain.h"

#include <set>

#include "live/fields.h"
#include "unit/live/live_harness.h"
#include "unit/view/view_harness.h"

namespace uet::view {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

using DomainTest = live::LiveTest;

TEST(PeerColumns, NamesAreDifferentAndHaveMeanings) {
  std::set<std::string> names;
  for (const Column& column : peer_columns()) {
    EXPECT_TRUE(names.insert(column.name).second) << column.name;
    EXPECT_FALSE(column.meaning.empty());
  }
  EXPECT_TRUE(peer_columns()[peer_column("window_bytes")].gauge);
  EXPECT_FALSE(peer_columns()[peer_column("nacks_received_trimmed")].gauge);
  EXPECT_EQ(peer_column("apples"), peer_columns().size());
}

TEST_F(DomainTest, PageBecomesADomain) {
  const auto page = make_page();
  live::PeerRecord peer{.ip = {10, 0, 0, 2}, .port = 4793};
  peer.rtt_ns = 77;
  peer.nacks_received[0x01] = 3;
  peer.nacks_received[0x1F] = 1;  // codes without a name are one number
  peer.nacks_received[0x0C] = 1;
  const std::uint64_t values[] = {3, 4};
  page->update(values, {&peer, 1}, 12, time_from_ns(5'000));
  Reading reading = read_domains(::getpid());
  EXPECT_THAT(reading.problems, IsEmpty());
  ASSERT_THAT(reading.domains, SizeIs(1));
  Domain& domain = reading.domains[0];
  EXPECT_EQ(domain.pid, ::getpid());
  EXPECT_EQ(domain.owner, live::Owner::Running);
  EXPECT_EQ(domain.monotonic_ns, 5'000U);
  EXPECT_EQ(domain.peers_known, 12U);
  EXPECT_EQ(domain.address, "10.0.0.1:4793");
  ASSERT_THAT(domain.counters, SizeIs(2));
  EXPECT_EQ(domain.counters[1].value, 4U);
  ASSERT_THAT(domain.peers, SizeIs(1));
  EXPECT_EQ(domain.peers[0].name, "10.0.0.2:4793");
  EXPECT_EQ(value_of(domain.peers[0], "rtt_ns"), 77U);
  EXPECT_EQ(value_of(domain.peers[0], "nacks_received_trimmed"), 3U);
  EXPECT_EQ(value_of(domain.peers[0], "nacks_received_other"), 2U);
}

TEST_F(DomainTest, BrokenPageIsAProblemAndHidesNoOther) {
  const auto good = make_page();
  const auto broken = make_page();
  spoil(broken->file(), offsetof(live::Head, version), std::uint32_t{99});
  const Reading reading = read_domains();
  EXPECT_THAT(reading.domains, SizeIs(testing::Ge(1U)));
  EXPECT_THAT(reading.problems, testing::Contains(HasSubstr("has another version of the layout")));
}

TEST_F(DomainTest, TextsHoldNoOrdersToATerminal) {
  std::string why;
  const auto page = live::PageWriter::create({"eth\x1b[2J", "udp", "a"}, {}, why);
  EXPECT_EQ(read_domains(::getpid()).domains.at(0).interface, "eth?[2J");
}

TEST(SameDomain, TellsAnOldPageOfTheSameNameApart) {
  const Domain domain = make_domain();
  Domain later = domain;
  later.updated_ns = 9;
  EXPECT_TRUE(same_domain(domain, later));
  later.start_time = 1;
  EXPECT_FALSE(same_domain(domain, later));
}

}  // namespace
}  // namespace uet::view
