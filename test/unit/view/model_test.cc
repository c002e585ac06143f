// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Keys lead through the tables, and the choice follows its row.
#include "uet_top/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/view/top_harness.h"

namespace uet::top {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr std::size_t kPage = 4;

class ModelTest : public testing::Test {
 protected:
  ModelTest() {
    model_.feed(reading(false), 0);
    model_.feed(reading(true), 1);
  }
  void press(std::initializer_list<Key> keys) {
    for (const Key key : keys) model_.press(key, kPage);
  }
  std::string chosen_text() const {
    return model_.table().rows.at(model_.chosen()).cells.at(0).text;
  }

  Model model_;
};

TEST_F(ModelTest, BeginsWithTheBusiestProcess) {
  EXPECT_EQ(model_.level(), Level::Processes);
  EXPECT_EQ(model_.path(), "processes");
  EXPECT_EQ(chosen_text(), "20");
  EXPECT_EQ(model_.table().headings.at(model_.sorted_column()).name, "sent_B/s");
}

TEST_F(ModelTest, EnterLeadsDownAndBackUp) {
  press({Key::Enter});
  EXPECT_EQ(model_.path(), "processes > 20 alpha: domains");
  EXPECT_THAT(model_.table().rows, SizeIs(2));
  press({Key::Enter});
  EXPECT_EQ(model_.level(), Level::Peers);
  EXPECT_THAT(model_.table().rows, SizeIs(2));
  press({Key::Enter});
  EXPECT_EQ(model_.path(), "processes > 20 alpha > 10.0.0.2:4793 > 10.0.1.1:4793: numbers");
  press({Key::Enter});  // no further
  EXPECT_EQ(model_.level(), Level::Numbers);
  press({Key::Back, Key::Back, Key::Back, Key::Back, Key::Back});
  EXPECT_EQ(model_.path(), "processes");
}

TEST_F(ModelTest, CountersAreThoseOfTheChosenDomain) {
  press({Key::Counters});  // a process has none
  EXPECT_EQ(model_.level(), Level::Processes);
  press({Key::ByDomain, Key::Counters});
  EXPECT_EQ(model_.path(), "domains > 10.0.0.2:4793: counters");
  EXPECT_THAT(model_.table().rows, SizeIs(2));
}

TEST_F(ModelTest, ChoiceFollowsItsRow) {
  press({Key::ByDomain, Key::Down});
  EXPECT_EQ(chosen_text(), "10.0.0.3:4793");
  view::Reading next = reading(true);
  next.domains[2].monotonic_ns += 1'000'000'000;
  next.domains[2].counters[0].value += 1'000'000;  // now the busiest
  model_.feed(next, 1);
  EXPECT_EQ(model_.chosen(), 0U);
  EXPECT_EQ(chosen_text(), "10.0.0.3:4793");
  next.domains.pop_back();
  model_.feed(next, 1);
  EXPECT_NE(chosen_text(), "10.0.0.3:4793");
}

TEST_F(ModelTest, ColumnsAreChosenInARoundAndByName) {
  press({Key::ByDomain});
  const std::size_t before = model_.sorted_column();
  press({Key::Left});
  EXPECT_EQ(model_.sorted_column(), before - 1);
  for (std::size_t i = 0; i < model_.table().headings.size(); ++i) press({Key::Right});
  EXPECT_EQ(model_.sorted_column(), before - 1);
  EXPECT_TRUE(model_.sort_by("address"));
  EXPECT_EQ(chosen_text(), "10.0.0.1:4793");
  press({Key::Reverse});
  EXPECT_TRUE(model_.reversed());
  EXPECT_EQ(chosen_text(), "10.0.0.3:4793");
  EXPECT_FALSE(model_.sort_by("apples"));
}

TEST_F(ModelTest, ScreenShowsTheChosenRow) {
  press({Key::ByPeer});
  EXPECT_EQ(model_.first_row(kPage), 0U);
  press({Key::PageDown});
  EXPECT_EQ(model_.chosen(), kPage);
  EXPECT_EQ(model_.first_row(kPage), 1U);
  press({Key::Last});
  EXPECT_EQ(model_.first_row(kPage), 2U);
  press({Key::Up});
  EXPECT_EQ(model_.first_row(kPage), 2U);
  press({Key::First});
  EXPECT_EQ(model_.first_row(kPage), 0U);
  EXPECT_EQ(model_.first_row(0), 0U);
  EXPECT_EQ(model_.first_row(100), 0U);
}

TEST_F(ModelTest, HistoryKeepsTheLastSamplesOfRowsThatAreThere) {
  const std::string key = model_.table().rows[0].key;
  EXPECT_THAT(model_.history(key), ElementsAre(0, 3'100));
  for (std::size_t i = 0; i < Model::kHistory; ++i) model_.feed(reading(true), 1);
  EXPECT_THAT(model_.history(key), SizeIs(Model::kHistory));
  EXPECT_EQ(model_.history(key).back(), 0);
  model_.feed({}, 1);
  EXPECT_THAT(model_.history(key), IsEmpty());
}

TEST_F(ModelTest, NothingToShowIsNoFault) {
  model_.feed({}, 1);
  press({Key::Down, Key::Enter, Key::Last, Key::Right, Key::ByPeer, Key::PageUp, Key::Counters});
  EXPECT_THAT(model_.table().rows, IsEmpty());
  EXPECT_EQ(model_.first_row(kPage), 0U);
}

// 64 processes with 256 peers each.
TEST(ModelSize, ManyPeersHaveRows) {
  Model model;
  for (const bool second : {false, true}) {
    view::Reading all;
    for (std::int64_t pid = 1; pid <= 64; ++pid) {
      view::Domain domain = make_domain(pid, "many", "10.0.0.1:4793", second ? 100 : 0);
      domain.monotonic_ns += second ? 1'000'000'000 : 0;
      domain.peers.clear();
      for (int i = 0; i < 256; ++i) {
        domain.peers.push_back(view::make_peer("10.1.0." + std::to_string(i) + ":4793"));
      }
      all.domains.push_back(std::move(domain));
    }
    model.feed(std::move(all), 1);
  }
  EXPECT_THAT(model.table().rows, SizeIs(64));
  model.press(Key::ByPeer, kPage);
  EXPECT_THAT(model.table().rows, SizeIs(64 * 256));
}

}  // namespace
}  // namespace uet::top
