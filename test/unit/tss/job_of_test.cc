// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "tss/job_of.h"

#include <gtest/gtest.h>

#include <vector>

#include "uet/wire/pds.h"
#include "uet/wire/ses.h"

namespace uet::tss {
namespace {

// A packet with this PDS header and an SES request of the form that the header names.
template <class Header>
std::vector<std::byte> packet_with(const Header& header, wire::NextHdr next, std::uint32_t job) {
  std::vector<std::byte> bytes(256);
  std::size_t length = header.encode(bytes.data());
  wire::SesRequest request;
  request.next_hdr = next;
  request.job_id = JobId{job};
  length += request.encode(bytes.data() + length);
  bytes.resize(length);
  return bytes;
}

TEST(JobOf, Tss67_RequestsOfEachModeAndFormNameTheirJob) {
  for (const auto next :
       {wire::NextHdr::RequestSmall, wire::NextHdr::RequestMedium, wire::NextHdr::RequestStd}) {
    for (const auto type : {wire::PdsType::RudReq, wire::PdsType::RodReq, wire::PdsType::RudCcReq,
                            wire::PdsType::RodCcReq}) {
      wire::RequestHeader header;
      header.type = type;
      header.next_hdr = next;
      EXPECT_EQ(job_of(packet_with(header, next, 0xABCDEF)), JobId{0xABCDEF});
    }
    const wire::RudiHeader rudi{.type = wire::PdsType::RudiReq, .next_hdr = next};
    EXPECT_EQ(job_of(packet_with(rudi, next, 7)), JobId{7});
    const wire::UudHeader datagram{.next_hdr = next};
    EXPECT_EQ(job_of(packet_with(datagram, next, 8)), JobId{8});
  }
}

TEST(JobOf, AnswersAndControlPacketsNameNone) {
  wire::AckHeader ack;
  ack.next_hdr = wire::NextHdr::Response;
  EXPECT_EQ(job_of(packet_with(ack, wire::NextHdr::RequestStd, 7)), std::nullopt);
  const wire::RudiHeader answer{.type = wire::PdsType::RudiResp,
                                .next_hdr = wire::NextHdr::RequestStd};
  EXPECT_EQ(job_of(packet_with(answer, wire::NextHdr::RequestStd, 7)), std::nullopt);
  EXPECT_EQ(job_of(packet_with(wire::ControlHeader{}, wire::NextHdr::RequestStd, 7)), std::nullopt);
  wire::RequestHeader data;
  data.next_hdr = wire::NextHdr::ResponseData;
  EXPECT_EQ(job_of(packet_with(data, wire::NextHdr::RequestStd, 7)), std::nullopt);
}

// Each prefix is read within its bounds.
TEST(JobOf, AShortPacketNamesNone) {
  wire::RequestHeader header;
  header.next_hdr = wire::NextHdr::RequestSmall;
  const auto whole = packet_with(header, wire::NextHdr::RequestSmall, 7);
  for (std::size_t length = 0; length < 24; ++length) {
    const std::vector<std::byte> cut(whole.begin(), whole.begin() + static_cast<long>(length));
    EXPECT_EQ(job_of(cut), std::nullopt) << length;
  }
}

}  // namespace
}  // namespace uet::tss
