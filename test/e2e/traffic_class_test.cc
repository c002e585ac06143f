// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The traffic class of an endpoint or of its domain, as the packets on the wire carry it: read from
// a capture of the provider's own, frame by frame.
#include <gtest/gtest.h>

#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>

#include "capture/capture.h"
#include "objects.h"

namespace uet::e2e {
namespace {

constexpr std::uint8_t kDscp = 18;

// Sends one message between two domains of which the first has the class, and captures what it
// sends and receives. The file is complete when its domain has been closed.
void send_captured(const std::string& file, bool of_domain) {
  ASSERT_EQ(setenv("FI_UET_PCAP", file.c_str(), 1), 0);
  Side a({.hints = [of_domain](fi_info& hints) {
    (of_domain ? hints.domain_attr->tclass : hints.tx_attr->tclass) = fi_tc_dscp_set(kDscp);
  }});
  ASSERT_EQ(unsetenv("FI_UET_PCAP"), 0);
  Side b;
  const auto from = a.open_endpoint(0);
  const auto to = b.open_endpoint(0);
  char room[4] = "";
  ASSERT_EQ(fi_recv(to.get(), room, sizeof room, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
  ASSERT_EQ(fi_send(from.get(), "abc", 4, nullptr, a.insert(*to), nullptr), 0);
  a.next(b);
}

// Data packets are the ones that switches may mark (ECN-capable).
TEST(TrafficClass, Ses130_ClassOfEndpointOrDomain_SetsDataDscp) {
  const std::string file =
      testing::TempDir() + "uet_traffic_class_" + std::to_string(getpid()) + ".pcapng";
  for (const bool of_domain : {false, true}) {
    ASSERT_NO_FATAL_FAILURE(send_captured(file, of_domain));
    std::string why;
    std::optional<CaptureReader> capture = CaptureReader::open(file, why);
    ASSERT_TRUE(capture) << why;
    std::size_t data = 0;
    while (const auto packet = capture->next()) {
      const wire::FrameFields& fields = packet->frame.fields;
      if (fields.ecn == Ecn::NotEct) continue;
      ++data;
      EXPECT_EQ(fields.dscp, kDscp) << "frame " << packet->frame_number;
    }
    EXPECT_EQ(capture->problem(), "");
    EXPECT_GT(data, 0U) << "of " << capture->others() << " frames that are not UET";
    EXPECT_EQ(std::remove(file.c_str()), 0);
  }
}

}  // namespace
}  // namespace uet::e2e
