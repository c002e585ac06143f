// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Which missing packets an endpoint that closes waits for.
#include "pds/gaps.h"

#include "unit/pds/pds_harness.h"

namespace uet::pds::testing {
namespace {

class GapsTest : public Bench {
 protected:
  bool over() const { return node->manager->demultiplexer().gaps().over(now); }
  void note() { node->manager->demultiplexer().gaps().note(now); }
};

TEST_F(GapsTest, Pds235_NoGapNothingToWaitFor) {
  note();
  EXPECT_TRUE(over());
  accept(333);
  receive(request(334));
  note();
  EXPECT_TRUE(over());
}

TEST_F(GapsTest, Pds235_EndsWithTheMissingPacket) {
  for (const DeliveryMode mode : {DeliveryMode::Rud, DeliveryMode::Rod}) {
    build(test_parameters());
    accept(333, mode);
    receive(request(335));
    receive(request(337));
    note();
    EXPECT_FALSE(over());
    receive(request(334));
    EXPECT_FALSE(over());
    receive(request(339));  // 338 was not known to be missing
    receive(request(336));
    EXPECT_TRUE(over());
  }
}

// A response that is not cleared holds CACK, but nothing is missing.
TEST_F(GapsTest, Pds235_StoredResponseIsNoGap) {
  accept(333);
  node->client.respond = [](const Delivered&) { return guaranteed_response(1); };
  receive(request(334));
  receive(request(335));
  note();
  EXPECT_TRUE(over());
}

TEST_F(GapsTest, Pds235_IsWaitedForOnceHoweverManyClose) {
  accept(333);
  receive(request(335));
  note();
  now += Gaps::kPatience - std::chrono::milliseconds(1);
  note();  // another endpoint
  EXPECT_FALSE(over());
  now += std::chrono::milliseconds(1);
  EXPECT_TRUE(over());
  note();
  EXPECT_TRUE(over());
  receive(request(334));
  receive(request(337));
  note();  // a new gap
  EXPECT_FALSE(over());
}

TEST_F(GapsTest, Pds235_EndsWithThePdc) {
  accept(333);
  receive(request(335));
  note();
  ASSERT_FALSE(over());
  node->manager->abort(pdc, now);
  turn();
  EXPECT_TRUE(over());
}

}  // namespace
}  // namespace uet::pds::testing
