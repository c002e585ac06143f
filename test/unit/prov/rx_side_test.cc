// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Calls that the receive side refuses before it posts anything; the end-to-end tests post.
#include "objects/rx_side.h"

#include <gtest/gtest.h>

#include "domain_testing.h"

namespace uet::prov {
namespace {

struct Rx : ::testing::Test {
  OpenDomain domain;
  Owned<fid_ep> ep = domain.open_endpoint();
  EpState state{.engine = domain.engine(), .caps = FI_MSG};
  EpBindings bindings{domain.engine(), EndpointRole::Both};
  EpOptions options{{.max_msg_size = 100}, 0};
  RxSide rx{state, bindings, options, EndpointFid::from(ep.get()).endpoint()};

  ssize_t receive(std::uint64_t flags) {
    RxCall call;
    call.flags = flags;
    return rx.receive(call);
  }
};

TEST_F(Rx, NothingIsPostedBeforeItIsEnabled) {
  EXPECT_EQ(receive(0), -FI_EOPBADSTATE);
  EXPECT_EQ(receive(FI_TRIGGER), -FI_EOPBADSTATE);
}

TEST_F(Rx, WrongCallTakesNoSlot) {
  state.may_receive = true;
  EXPECT_EQ(receive(FI_DISCARD), -FI_EINVAL);
  EXPECT_EQ(receive(FI_CLAIM), -FI_EINVAL) << "without a context";
  EXPECT_EQ(bindings.rx_in_progress(), 0U);
}

TEST_F(Rx, TriggeredReceiveNeedsTheCapability) {
  state.enabled = true;
  EXPECT_EQ(receive(FI_TRIGGER), -FI_EINVAL);
}

TEST_F(Rx, SizeLeftIsNeverNegative) {
  EXPECT_EQ(rx.size_left(), -FI_EOPBADSTATE);
  state.may_receive = true;
  state.config.rx_size = 1;
  EXPECT_TRUE(bindings.take_rx());
  EXPECT_TRUE(bindings.take_rx());
  EXPECT_EQ(rx.size_left(), 0);
}

}  // namespace
}  // namespace uet::prov
