// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Every number of the walkthrough (see walkthrough.h).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/walkthrough.h"
#include "uet/wire/ses.h"

namespace uet::sim {
namespace {

using testing::HasSubstr;
using testing::Not;
using Cast = WalkthroughCast;

class WalkthroughTest : public testing::Test {
 protected:
  WalkthroughTest() { walk_.write(&mark_); }

  std::vector<Seen> packets(int from) const {
    std::vector<Seen> found;
    for (const Seen& seen : walk_.sent) {
      if (seen.from == from) found.push_back(seen);
    }
    return found;
  }

  int mark_ = 0;
  Walkthrough walk_;
};

TEST_F(WalkthroughTest, FourRequestsThenAcksAndNothingElse) {
  EXPECT_EQ(packets(0).size(), 4u);
  EXPECT_GE(packets(1).size(), 1u);
  for (const Seen& seen : packets(0)) EXPECT_TRUE(seen.request.has_value());
  for (const Seen& seen : packets(1)) EXPECT_TRUE(seen.ack.has_value());
}

TEST_F(WalkthroughTest, AddressesPortsAndTrafficClasses) {
  for (const Seen& seen : walk_.sent) {
    const bool forward = seen.from == 0;
    EXPECT_EQ(seen.packet.source, address_of(forward ? 0 : 1, 11));
    EXPECT_EQ(seen.packet.destination, address_of(forward ? 1 : 0, 11));
    EXPECT_EQ(seen.packet.destination.port, 4793);
    EXPECT_EQ(seen.packet.dscp,
              forward ? walk_.config().pds.dscp_data : walk_.config().pds.dscp_control);  // PDS-160
  }
  EXPECT_NE(walk_.config().pds.dscp_data, walk_.config().pds.dscp_control);
  // PDS-103: an ACK reuses the entropy value of a request.
  EXPECT_EQ(packets(1).back().packet.entropy, packets(0).back().packet.entropy);
}

TEST_F(WalkthroughTest, PdsHeadersOfTheRequests) {
  const auto requests = packets(0);
  ASSERT_EQ(requests.size(), 4u);
  for (std::uint16_t i = 0; i < 4; ++i) {
    const wire::RequestHeader& pds = *requests[i].request;
    EXPECT_EQ(pds.type, wire::PdsType::RudReq);
    EXPECT_EQ(pds.next_hdr, wire::NextHdr::RequestStd);
    EXPECT_TRUE(pds.syn);
    EXPECT_FALSE(pds.retx);
    EXPECT_EQ(pds.ar, i == 3);
    EXPECT_EQ(pds.psn.value, 0x12000u + i);
    EXPECT_EQ(pds.psn_offset, i);
    EXPECT_EQ(pds.spdcid.value, 0x4001);
  }
}

TEST_F(WalkthroughTest, SesHeadersOfTheRequests) {
  const auto requests = packets(0);
  ASSERT_EQ(requests.size(), 4u);
  for (std::uint32_t i = 0; i < 4; ++i) {
    wire::SesRequest ses;
    ASSERT_TRUE(wire::SesRequest::decode(wire::NextHdr::RequestStd, requests[i].rest(), ses));
    EXPECT_EQ(ses.opcode, wire::SesOpcode::Write);
    EXPECT_TRUE(ses.rel);
    EXPECT_EQ(ses.job_id.value, 101u);
    EXPECT_EQ(ses.pid_on_fep.value, 2);
    EXPECT_EQ(ses.resource_index.value, 0x00A);
    EXPECT_EQ(ses.ri_generation.value, 1);
    EXPECT_EQ(ses.initiator.value, 0u);
    EXPECT_EQ(ses.message_id.value, 1);
    EXPECT_EQ(ses.match_bits, 0xACCE5u);
    EXPECT_EQ(ses.buffer_offset, 0u);
    EXPECT_EQ(ses.request_length, 16384u);
    EXPECT_EQ(ses.som, i == 0);
    EXPECT_EQ(ses.eom, i == 3);
    EXPECT_EQ(ses.payload.size(), 4096u);
    if (i > 0) {
      EXPECT_EQ(ses.message_offset, i * 4096);
      EXPECT_EQ(ses.payload_length, 4096u);
    }
  }
}

TEST_F(WalkthroughTest, ResponseRidesInTheAck) {
  ASSERT_FALSE(packets(1).empty());
  const Seen last = packets(1).back();
  const wire::AckHeader& pds = *last.ack;
  EXPECT_EQ(pds.spdcid.value, 0x8001);
  EXPECT_EQ(pds.dpdcid.value, 0x4001);
  EXPECT_EQ(pds.cack_psn.value, 0x12003u);
  EXPECT_EQ(pds.ack_psn().value, 0x12003u);
  EXPECT_EQ(pds.req, wire::AckRequestCode::None);
  ASSERT_EQ(pds.next_hdr, wire::NextHdr::Response);
  wire::SesResponseHeader ses;
  ASSERT_TRUE(wire::SesResponseHeader::decode(pds.next_hdr, last.rest(), ses));
  EXPECT_EQ(ses.opcode, wire::ResponseOpcode::DefaultResponse);
  EXPECT_EQ(ses.list, wire::List::Expected);
  EXPECT_EQ(ses.return_code, wire::ReturnCode::Ok);
  EXPECT_EQ(ses.message_id.value, 1);
  EXPECT_EQ(ses.job_id.value, 101u);
  EXPECT_EQ(ses.modified_length, 16384u);
}

TEST_F(WalkthroughTest, FiWrite_CompletesOnceWithContextAndData) {
  ASSERT_EQ(walk_.initiator.completions.size(), 1u);
  EXPECT_EQ(walk_.initiator.completions[0].context, &mark_);
  EXPECT_EQ(walk_.initiator.completions[0].status, ses::Status::Ok);
  EXPECT_EQ(walk_.initiator.completions[0].kind, ses::Kind::Write);
  EXPECT_TRUE(walk_.target.completions.empty());  // SES-79
  EXPECT_EQ(walk_.source, walk_.region);
}

TEST_F(WalkthroughTest, SecondWriteUsesTheEstablishedPdc) {
  walk_.sent.clear();
  walk_.write(&mark_);
  const auto requests = packets(0);
  ASSERT_EQ(requests.size(), 4u);
  for (std::uint32_t i = 0; i < 4; ++i) {
    const wire::RequestHeader& pds = *requests[i].request;
    EXPECT_FALSE(pds.syn);
    EXPECT_EQ(pds.spdcid.value, 0x4001);
    EXPECT_EQ(pds.dpdcid.value, 0x8001);
    EXPECT_EQ(pds.psn.value, 0x12004 + i);
    // PDS-34: everything of the first write is acknowledged.
    EXPECT_EQ(pds.clear_psn().value, 0x12003u);
  }
  EXPECT_EQ(walk_.initiator.completions.size(), 2u);
}

TEST(WalkthroughStory, TellsEachPacketAndEndsWell) {
  const std::string story = tell_walkthrough();
  EXPECT_THAT(story, HasSubstr("RUD_REQ"));
  EXPECT_THAT(story, HasSubstr("DEFAULT_RESPONSE"));
  EXPECT_THAT(story, HasSubstr("equals the source"));
  EXPECT_THAT(story, Not(HasSubstr("DIFFERS")));
}

}  // namespace
}  // namespace uet::sim
