// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The rows of each table, their sums, scopes and orders.
#include "uet_top/table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/view/top_harness.h"

namespace uet::top {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

const Cell& cell(const Table& table, std::size_t row, const std::string& column) {
  return table.rows.at(row).cells.at(table.column(column));
}

std::vector<std::string> texts(const Table& table, const std::string& column) {
  std::vector<std::string> all;
  for (const Row& row : table.rows) all.push_back(row.cells.at(table.column(column)).text);
  return all;
}

TEST(TopTables, EveryRowHasACellForEachHeading) {
  const auto all = samples();
  for (const Table& table :
       {processes(all), domains(all), peers(all), counters(all, key_of(all[0].domain)),
        numbers(all, key_of(all[0].domain, all[0].domain.peers[0]))}) {
    EXPECT_FALSE(table.rows.empty());
    for (const Row& row : table.rows) EXPECT_THAT(row.cells, SizeIs(table.headings.size()));
  }
}

TEST(TopTables, ProcessAddsUpItsDomains) {
  Table table = processes(samples());
  table.sort(table.column("sent_B/s"), false);
  EXPECT_THAT(texts(table, "program"), ElementsAre("alpha", "beta"));
  EXPECT_EQ(cell(table, 0, "domains").number, 2);
  EXPECT_EQ(cell(table, 0, "sent_B/s").number, 3'100);
  EXPECT_EQ(cell(table, 0, "inflight").number, 1'000);
  EXPECT_EQ(cell(table, 0, "oldest").number, 2'000);
  EXPECT_EQ(cell(table, 0, "oldest").text, "2.00us");
  EXPECT_EQ(cell(table, 0, "again/s").text, "-");
  EXPECT_EQ(cell(table, 1, "again/s").number, 7);
  EXPECT_EQ(table.rows[0].traffic, 3'100);
}

TEST(TopTables, NumbersFallAndTextsRiseUnlessReversed) {
  Table table = domains(samples());
  table.sort(table.column("sent_B/s"), false);
  EXPECT_THAT(texts(table, "address"),
              ElementsAre("10.0.0.2:4793", "10.0.0.3:4793", "10.0.0.1:4793"));
  table.sort(table.column("sent_B/s"), true);
  EXPECT_EQ(texts(table, "address")[0], "10.0.0.1:4793");
  table.sort(table.column("address"), false);
  EXPECT_EQ(texts(table, "address")[0], "10.0.0.1:4793");
  table.sort(table.column("pid"), true);
  EXPECT_THAT(texts(table, "pid"), ElementsAre("3", "20", "20"));
  table.sort(table.headings.size(), false);  // no column: nothing changes
  EXPECT_THAT(texts(table, "pid"), ElementsAre("3", "20", "20"));
}

TEST(TopTables, ScopesKeepRowsApart) {
  const auto all = samples();
  const Table whole = processes(all);
  for (const Row& row : whole.rows) {
    const bool alpha = row.cells[1].text == "alpha";
    EXPECT_THAT(domains(all, row.key).rows, SizeIs(alpha ? 2 : 1));
  }
  EXPECT_THAT(peers(all).rows, SizeIs(6));
  EXPECT_THAT(peers(all, key_of(all[1].domain)).rows, SizeIs(2));
  EXPECT_THAT(counters(all, "none").rows, IsEmpty());
}

TEST(TopTables, NumbersOfAPeerHaveValueSpeedAndMeaning) {
  const auto all = samples();
  Table table = numbers(all, key_of(all[2].domain, all[2].domain.peers[0]));
  EXPECT_THAT(table.rows, SizeIs(view::peer_columns().size()));
  for (const Row& row : table.rows) {
    if (row.cells[0].text != "bytes_sent") continue;
    EXPECT_EQ(row.cells[1].text, "2000");
    EXPECT_EQ(row.cells[2].text, "2.00k");
    EXPECT_FALSE(row.cells[3].text.empty());
  }
}

}  // namespace
}  // namespace uet::top
