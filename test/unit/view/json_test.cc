// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Domains survive the way to JSON and back; other texts are refused with a reason.
#include "live_view/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "live_view/change.h"
#include "unit/view/view_harness.h"

namespace uet::view {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

TEST(ViewJson, DomainsComeBack) {
  const Domain domain = make_domain();
  const std::string text = to_json({{domain}, {"/dev/shm/x: is damaged"}});
  EXPECT_THAT(text, HasSubstr("is damaged"));
  const std::vector<Domain> back = from_json(text);
  ASSERT_THAT(back, SizeIs(1));
  EXPECT_TRUE(same_domain(domain, back[0]));
  EXPECT_EQ(back[0].owner, live::Owner::Running);
  EXPECT_EQ(back[0].program, "solver");
  EXPECT_EQ(back[0].updated_ns, domain.updated_ns);
  const Change change = change_between(domain, back[0]);
  EXPECT_THAT(change.counters, IsEmpty());
  EXPECT_THAT(change.peers, IsEmpty());
  EXPECT_THAT(back[0].counters, SizeIs(3));
}

TEST(ViewJson, LaterVersionsMayHaveMoreAndLess) {
  std::string text = to_json({{make_domain()}, {}});
  const std::string number = "\"rtt_ns\": 12340,";
  ASSERT_NE(text.find(number), std::string::npos);
  text.replace(text.find(number), number.size(), "\"apples\": 3,");
  Domain back = from_json(text).at(0);
  EXPECT_EQ(value_of(back.peers[0], "rtt_ns"), 0U);
}

TEST(ViewJson, NamesThatAreNotUtf8AreShownNevertheless) {
  Domain domain = make_domain();
  domain.program = "\xff";
  EXPECT_EQ(from_json(to_json({{domain}, {}})).at(0).program, "\xEF\xBF\xBD");
}

TEST(ViewJson, OtherTextsAreRefused) {
  for (const char* text : {"", "[]", "{\"domains\": 3}", "{\"domains\": [{\"pid\": 1}]}", "{"}) {
    EXPECT_THROW(from_json(text), std::runtime_error) << text;
  }
}

}  // namespace
}  // namespace uet::view
