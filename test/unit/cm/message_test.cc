// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "cm/message.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace uet::cm {
namespace {

FepAddress fep(std::uint8_t last, std::uint16_t port) {
  FepAddress address;
  address.ip.bytes = {10, 0, 0, last};
  address.port = port;
  return address;
}

Message example() {
  Message message;
  message.type = MessageType::Accept;
  message.job = JobId{0x010203};
  message.to = 0x1122334455667788;
  message.from = 0x99AABBCCDDEEFF00;
  message.answers = av::default_address(fep(1, 4800), ResourceIndex{7});
  message.endpoint = av::default_address(fep(1, 4800), ResourceIndex{9});
  const std::vector<std::byte> data(5, std::byte{0x5A});
  message.data = Data(data);
  return message;
}

std::vector<std::byte> bytes_of(const Message& message) {
  MessageBytes bytes;
  const std::size_t length = encode(message, bytes);
  return {bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(length)};
}

TEST(CmMessage, Cm10_FieldsStandWhereTheRuleSays) {
  const std::vector<std::byte> bytes = bytes_of(example());
  ASSERT_EQ(bytes.size(), kHeaderBytes + 5);
  const auto at = [&](std::size_t i) { return static_cast<unsigned>(bytes[i]); };
  EXPECT_EQ(at(0), 1U);  // version
  EXPECT_EQ(at(1), 4U);  // Accept
  EXPECT_EQ(at(2) << 8 | at(3), 5U);
  EXPECT_EQ(at(4), 0U);
  EXPECT_EQ(at(5) << 16 | at(6) << 8 | at(7), 0x010203U);
  EXPECT_EQ(at(8), 0x11U);
  EXPECT_EQ(at(15), 0x88U);
  EXPECT_EQ(at(16), 0x99U);
  EXPECT_EQ(at(23), 0x00U);
  const av::AddressBytes answers = av::encode(example().answers);
  EXPECT_TRUE(std::equal(answers.begin(), answers.end(), bytes.begin() + 32));
  const av::AddressBytes endpoint = av::encode(example().endpoint);
  EXPECT_TRUE(std::equal(endpoint.begin(), endpoint.end(), bytes.begin() + 64));
  EXPECT_EQ(at(96), 0x5AU);
}

TEST(CmMessage, Cm10_DecodeInvertsEncode) {
  const auto message = decode(bytes_of(example()), fep(1, 4800));
  ASSERT_TRUE(message);
  EXPECT_EQ(message->type, MessageType::Accept);
  EXPECT_EQ(message->job, JobId{0x010203});
  EXPECT_EQ(message->to, example().to);
  EXPECT_EQ(message->from, example().from);
  EXPECT_EQ(message->answers, example().answers);
  EXPECT_EQ(message->endpoint, example().endpoint);
  ASSERT_EQ(message->data.length, 5U);
  EXPECT_EQ(message->data.view()[4], std::byte{0x5A});
}

TEST(CmMessage, Cm11_AddressesAreThoseOfTheSource) {
  const auto message = decode(bytes_of(example()), fep(2, 4999));
  ASSERT_TRUE(message);
  EXPECT_EQ(message->answers.fep(), fep(2, 4999));
  EXPECT_EQ(message->endpoint.fep(), fep(2, 4999));
  EXPECT_EQ(message->endpoint.start_resource_index, ResourceIndex{9});
}

TEST(CmMessage, Cm10_BytesOfNoMessageAreRefused) {
  const std::vector<std::byte> good = bytes_of(example());
  const auto refused = [&](std::size_t at, unsigned value) {
    std::vector<std::byte> bad = good;
    bad[at] = static_cast<std::byte>(value);
    return !decode(bad, fep(1, 4800));
  };
  EXPECT_TRUE(refused(0, 2));       // version
  EXPECT_TRUE(refused(1, 0));       // type
  EXPECT_TRUE(refused(1, 8));       // type
  EXPECT_TRUE(refused(3, 4));       // shorter data than there are
  EXPECT_TRUE(refused(3, 6));       // longer
  EXPECT_TRUE(refused(32 + 1, 0));  // no member of `answers` is valid
  EXPECT_TRUE(refused(64 + 1, 0));  // nor of `endpoint`
  EXPECT_FALSE(refused(4, 0xFF));   // a reason that is not known
  for (std::size_t length = 0; length < good.size(); ++length) {
    EXPECT_FALSE(decode(std::span(good).first(length), fep(1, 4800))) << length;
  }
}

TEST(CmMessage, Cm10_DataBeyondTheBoundAreRefused) {
  std::vector<std::byte> bytes = bytes_of(example());
  bytes.resize(kHeaderBytes + kMaxData + 1);
  bytes[2] = static_cast<std::byte>((kMaxData + 1) >> 8);
  bytes[3] = static_cast<std::byte>((kMaxData + 1) & 0xFF);
  EXPECT_FALSE(decode(bytes, fep(1, 4800)));
}

}  // namespace
}  // namespace uet::cm
