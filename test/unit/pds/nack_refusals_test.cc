// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Receiver credit to a peer that does not know it and refuses it (PDS-221); for the other control
// packets see base_rtt_probe_test.cc and the foreign peer of the simulator.
#include "unit/pds/pds_harness.h"

namespace uet::pds::testing {
namespace {

using wire::CpType;
using wire::PdsType;

class RefusedCredit : public Bench {
 protected:
  RefusedCredit() {
    cms::Parameters cms;
    cms.algorithm = cms::Algorithm::Rccc;
    cms.mtu_bytes = 1024 + 128;
    cms.base_rtt = microseconds(100);
    build(test_parameters(), cms);
  }
  // A PDC whose speculative allowance is over and that has nothing in flight.
  void open_without_credit() {
    open();
    ASSERT_FALSE(node->manager->find(pdc)->ccc().ccc->may_send(1024));
  }
  static std::vector<wire::ControlHeader> controls_of(const std::vector<Sent>& sent, CpType type) {
    std::vector<wire::ControlHeader> found = controls(sent);
    std::erase_if(found, [&](const auto& header) { return header.ctl_type != type; });
    return found;
  }
};

// A peer that refuses the question knows no credit: it is not asked again, nor is its next PDC.
TEST_F(RefusedCredit, Pds221_CreditRequestIsNotRepeated) {
  open_without_credit();
  TestMessage& message = send(100, DeliveryMode::Rud, 1024);
  turn();
  ASSERT_EQ(controls_of(after(microseconds(250)), CpType::CreditRequest).size(), 1U);
  const auto sent = answer_to(nack(NackCode::UnexpEvent, 0));  // the PSN of a Credit Request
  EXPECT_NE(node->manager->find(pdc), nullptr);
  EXPECT_EQ(counters().credit_fallbacks, 1U);
  EXPECT_EQ(message.made, 100U) << "the NSCC window permits it";
  for (const Sent& packet : sent) EXPECT_EQ(packet.type(), PdsType::RudReq);
  EXPECT_TRUE(controls_of(after(milliseconds(5)), CpType::CreditRequest).empty());
  send(3, DeliveryMode::Rod);
  for (const Sent& packet : turn()) EXPECT_EQ(packet.type(), PdsType::RodReq);
  EXPECT_EQ(counters().credit_requests_sent, 1U);
}

// Each refused request goes again in the form without credit; a late refusal of the form before
// ends nothing.
TEST_F(RefusedCredit, Pds221_RequestsGoAgainWithoutCredit) {
  TestMessage& message = send(10, DeliveryMode::Rud, 1024);
  const auto first = requests(turn());
  ASSERT_EQ(first.size(), 10U);
  std::vector<wire::RequestHeader> again;
  for (int copy = 0; copy < 2; ++copy) {
    for (const wire::RequestHeader& refused : first) {
      wire::NackHeader refusal = nack(NackCode::UnexpEvent, refused.psn.value);
      refusal.spdcid = PdcId{0};
      refusal.dpdcid = refused.spdcid;
      receive(refusal);
    }
    for (const wire::RequestHeader& request : requests(after(microseconds(100)))) {
      again.push_back(request);
    }
  }
  ASSERT_EQ(again.size(), 10U) << "once each";
  for (const wire::RequestHeader& request : again) {
    EXPECT_EQ(request.type, PdsType::RudReq);
    EXPECT_TRUE(request.syn);
  }
  pdc = again[0].spdcid;
  const Psn last = first[9].psn;
  receive(ack(last.value, last.value));
  EXPECT_EQ(message.responses, 10U);
  EXPECT_EQ(node->manager->find(pdc)->ccc().ccc->inflight_bytes(), 0);
  send(2, DeliveryMode::Rod);
  for (const Sent& packet : turn()) EXPECT_EQ(packet.type(), PdsType::RodReq);
  EXPECT_EQ(counters().credit_fallbacks, 1U);
}

}  // namespace
}  // namespace uet::pds::testing
