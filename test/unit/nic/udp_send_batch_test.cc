// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// How packets become messages of sendmmsg, without a kernel.
#include "nic/udp_send_batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/udp.h>

#include "nic_testing.h"

namespace uet::nic {
namespace {

const FepAddress kPeer{ipv4(127, 0, 0, 2), 4793};
const FepAddress kOther{ipv4(127, 0, 0, 3), 4793};
constexpr std::uint8_t kUsualTos = tos_of(10, Ecn::Ect0);

struct SendBatch : ::testing::Test {
  // A packet of 20 + `payload` bytes with the usual TOS.
  Packet& add(std::size_t payload, const FepAddress& to = kPeer) {
    packets.add(to, 20, payload);
    packets.last().dscp = 10;
    packets.last().ecn = Ecn::Ect0;
    return packets.last();
  }
  // Packets in each message.
  std::vector<std::size_t> fill(bool trains = true) {
    const std::size_t messages = batch.fill(packets.all(), trains);
    std::vector<std::size_t> sizes;
    for (std::size_t i = 0; i < messages; ++i) {
      sizes.push_back(batch.contents(i + 1).packets - batch.contents(i).packets);
    }
    return sizes;
  }
  // The value of a control message; nothing if the message has none of the type.
  template <class T>
  std::optional<T> control(std::size_t message, int level, int type) {
    msghdr& header = batch.messages()[message].msg_hdr;
    if (header.msg_controllen == 0) return {};
    for (cmsghdr* item = CMSG_FIRSTHDR(&header); item != nullptr;
         item = CMSG_NXTHDR(&header, item)) {
      if (item->cmsg_level != level || item->cmsg_type != type) continue;
      T value;
      std::memcpy(&value, CMSG_DATA(item), sizeof value);
      return value;
    }
    return {};
  }
  std::optional<std::uint16_t> segment(std::size_t message) {
    return control<std::uint16_t>(message, IPPROTO_UDP, UDP_SEGMENT);
  }
  std::vector<std::byte> bytes_of(std::size_t message) const {
    const msghdr& header = const_cast<UdpSendBatch&>(batch).messages()[message].msg_hdr;
    std::vector<std::byte> whole;
    for (std::size_t i = 0; i < header.msg_iovlen; ++i) {
      const auto* data = static_cast<const std::byte*>(header.msg_iov[i].iov_base);
      whole.insert(whole.end(), data, data + header.msg_iov[i].iov_len);
    }
    return whole;
  }

  PacketSet packets;
  UdpSendBatch batch{false, kUsualTos};
};

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST_F(SendBatch, EqualPacketsShareAMessage) {
  for (int i = 0; i < 3; ++i) add(100);
  EXPECT_THAT(fill(), ElementsAre(3U));
  EXPECT_EQ(segment(0), 120);
  EXPECT_EQ(batch.packets_of_first(), 3U);
  EXPECT_EQ(batch.contents(1).bytes, 360U);
  auto expected = packets.bytes(0);
  for (const std::size_t i : {1U, 2U}) {
    const auto more = packets.bytes(i);
    expected.insert(expected.end(), more.begin(), more.end());
  }
  EXPECT_EQ(bytes_of(0), expected);
}

TEST_F(SendBatch, WithoutTrainsEachPacketIsAMessage) {
  for (int i = 0; i < 3; ++i) add(100);
  EXPECT_THAT(fill(false), ElementsAre(1U, 1U, 1U));
  EXPECT_EQ(segment(0), std::nullopt);
  EXPECT_EQ(bytes_of(2), packets.bytes(2));
}

TEST_F(SendBatch, ShorterPacketEndsTheTrain) {
  add(100);
  add(60);
  add(60);
  EXPECT_THAT(fill(), ElementsAre(2U, 1U));
  EXPECT_EQ(segment(0), 120);
  EXPECT_EQ(segment(1), std::nullopt);
}

TEST_F(SendBatch, LongerPacketBeginsAnotherTrain) {
  add(60);
  add(100);
  EXPECT_THAT(fill(), ElementsAre(1U, 1U));
}

TEST_F(SendBatch, PacketSentAgainLeavesAlone) {
  add(100);
  add(100).sent_again = true;
  add(100);
  EXPECT_THAT(fill(), ElementsAre(1U, 1U, 1U));
}

TEST_F(SendBatch, TrainHasOneDestination) {
  add(100);
  add(100, kOther);
  EXPECT_THAT(fill(), ElementsAre(1U, 1U));
  EXPECT_EQ(read_socket_address(*static_cast<SocketAddress*>(batch.messages()[1].msg_hdr.msg_name)),
            kOther);
}

TEST_F(SendBatch, OtherTosNeedsAControlMessage) {
  add(100);
  add(100).ecn = Ecn::Ce;
  EXPECT_THAT(fill(), ElementsAre(1U, 1U));
  EXPECT_EQ(control<int>(0, IPPROTO_IP, IP_TOS), std::nullopt);
  EXPECT_EQ(control<int>(1, IPPROTO_IP, IP_TOS), tos_of(10, Ecn::Ce));
}

TEST_F(SendBatch, TrainFitsOneIpPacket) {
  for (int i = 0; i < 4; ++i) add(21'816);  // 21,836 bytes: three of them are 65,508
  EXPECT_THAT(fill(), ElementsAre(2U, 2U));
}

// So that the receiver copies the one while the sender copies the other.
TEST_F(SendBatch, FirstInFlightOfOneTrainLeaveAsTwo) {
  for (int i = 0; i < 8; ++i) add(8192).first_in_flight = i == 0;  // 65,696 bytes with headers
  EXPECT_THAT(fill(), ElementsAre(4U, 4U));
}

TEST_F(SendBatch, OthersUnderWayLeaveAsOneTrain) {
  for (int i = 0; i < 7; ++i) add(8192);
  EXPECT_THAT(fill(), ElementsAre(7U));
}

TEST_F(SendBatch, SmallBatchesLeaveAsOneTrain) {
  for (int i = 0; i < 4; ++i) add(8100).first_in_flight = i == 0;
  EXPECT_THAT(fill(), ElementsAre(4U));
}

TEST_F(SendBatch, LargeBatchesHaveNoShortTrain) {
  for (int i = 0; i < 16; ++i) add(8192).first_in_flight = i == 0;  // 131,392 bytes: three trains
  EXPECT_THAT(fill(), ElementsAre(7U, 7U, 2U));
}

TEST_F(SendBatch, OtherAddressFamilyEndsTheBatch) {
  add(100);
  add(100, FepAddress{ipv6_loopback(), 4793});
  add(100);
  EXPECT_THAT(fill(), ElementsAre(1U));
  packets = {};
  add(100, FepAddress{ipv6_loopback(), 4793});
  EXPECT_THAT(fill(), IsEmpty());
}

TEST_F(SendBatch, FillForgetsTheFormerBatch) {
  for (int i = 0; i < 3; ++i) add(100);
  EXPECT_THAT(fill(), ElementsAre(3U));
  packets = {};
  add(7);
  EXPECT_THAT(fill(), ElementsAre(1U));
  EXPECT_EQ(segment(0), std::nullopt);
  EXPECT_EQ(bytes_of(0), packets.bytes(0));
}

}  // namespace
}  // namespace uet::nic
