// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Which delivery mode an endpoint's operations take, by the order that its application asks for.
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "harness.h"

namespace uet::e2e {
namespace {

// The first request of a PDC (WIRE 2.1, 2.2), of this type and with a standard header behind it: a
// TAGGED_SEND of one packet (WIRE 3.2). Its SYN, perhaps AR, and clear_psn_offset -1.
bool has_first_send(const std::string& bytes, int type, std::size_t header_bytes) {
  const std::string send{0x09, 0x0B};
  for (const int flags : {0x84, 0x8C}) {
    const std::string begin{static_cast<char>(type << 3 | 1), static_cast<char>(flags), '\xFF',
                            '\xFF'};
    for (std::size_t at = bytes.find(begin); at != std::string::npos;
         at = bytes.find(begin, at + 1)) {
      if (bytes.compare(at + header_bytes, send.size(), send) == 0) return true;
    }
  }
  return false;
}

struct Case {
  const char* name;
  std::uint64_t order;
  bool rod;
};
void PrintTo(const Case& param, std::ostream* out) { *out << param.name; }

class Order : public ::testing::TestWithParam<Case> {};

// SES-124: ROD for any order at all, of whatever kind of operation; RUD where none is asked for.
TEST_P(Order, Ses124_DecidesTheDeliveryMode) {
  if (provider() != "uet") GTEST_SKIP() << "looks at packets of uet";
  if (captures_are_encrypted()) GTEST_SKIP() << "looks into packets, which are encrypted here";
  const std::string capture = ::testing::TempDir() + "uet_order_" + std::to_string(::getpid());
  ChannelPair channels;
  Process receiver("receiver", {}, [&] {
    Node node;
    node.connect(channels.left);
    char room[8] = "";
    check(fi_trecv(node.ep.get(), room, sizeof room, nullptr, FI_ADDR_UNSPEC, 1, 0, nullptr),
          "fi_trecv");
    node.next("the receive");
    channels.left.meet(&node);
  });
  Process sender("sender", {{"tune.short_headers", "no"}, {"FI_UET_PCAP", capture}}, [&] {
    NodeOptions options;
    options.order = GetParam().order;
    Node node(options);
    const fi_addr_t peer = node.connect(channels.right);
    node.post("sending",
              [&] { return fi_tsend(node.ep.get(), "abc", 4, nullptr, peer, 1, nullptr); });
    node.next("the send");
    channels.right.meet(&node);
  });
  EXPECT_EQ(wait_for_all({&receiver, &sender}), "");
  std::ifstream file(capture, std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(file), {});
  constexpr int kRud = 2, kRod = 3, kRudCc = 13, kRodCc = 14;
  EXPECT_EQ(has_first_send(bytes, kRod, 12) || has_first_send(bytes, kRodCc, 16), GetParam().rod);
  EXPECT_EQ(has_first_send(bytes, kRud, 12) || has_first_send(bytes, kRudCc, 16), !GetParam().rod);
  ::unlink(capture.c_str());
}

// A TAGGED_SEND of one packet with this generation and job 1 (WIRE 3.2).
bool has_send_of_generation(const std::string& bytes, char generation) {
  const std::string send{0x09, 0x0B};
  const std::string job{generation, 0, 0, 1};
  for (std::size_t at = bytes.find(send); at != std::string::npos; at = bytes.find(send, at + 1)) {
    if (bytes.compare(at + 4, job.size(), job) == 0) return true;
  }
  return false;
}

// An ordered message that the target has no memory for disables the generation, and the receive
// that is posted next makes it 1: the way to generation 1 through the API (decision 060).
TEST(Generation, Ses52_RefusedOrderedSendReachesOne) {
  if (provider() != "uet") GTEST_SKIP() << "looks at packets of uet";
  if (captures_are_encrypted()) GTEST_SKIP() << "looks into packets, which are encrypted here";
  constexpr std::uint64_t kMessages = 100;
  constexpr std::size_t kBytes = 1000;
  const std::string capture = ::testing::TempDir() + "uet_order_" + std::to_string(::getpid());
  ChannelPair channels;
  const Environment little{{"FI_UET_UNEXPECTED_BYTES", "65536"}, {"tune.no_match", "yes"}};
  Process receiver("receiver", little, [&] {
    Node node;
    node.connect(channels.left);
    const Clock::time_point start = Clock::now();
    while (node.counter("ses_no_match_answered") == 0) {
      node.keep_events();
      require(Clock::now() - start < kDeadline / 2, "no message was refused");
    }
    std::vector<std::byte> room(kBytes);
    for (std::uint64_t i = 0; i < kMessages; ++i) {
      node.post("receiving", [&] {
        return fi_trecv(node.ep.get(), room.data(), kBytes, nullptr, FI_ADDR_UNSPEC, 1, 0, nullptr);
      });
      node.next("the receive");
      require_pattern(room, i, "a message, in order");
    }
    channels.left.meet(&node);
  });
  Process sender("sender", {{"tune.short_headers", "no"}, {"FI_UET_PCAP", capture}}, [&] {
    NodeOptions options;
    options.order = FI_ORDER_SAS;
    Node node(options);
    const fi_addr_t peer = node.connect(channels.right);
    std::vector<std::vector<std::byte>> memory(kMessages, std::vector<std::byte>(kBytes));
    for (std::uint64_t i = 0; i < kMessages; ++i) {
      fill_pattern(memory[i], i);
      node.post("sending", [&] {
        return fi_tsend(node.ep.get(), memory[i].data(), kBytes, nullptr, peer, 1, nullptr);
      });
    }
    node.drain(kMessages, "the sends");
    channels.right.meet(&node);
  });
  EXPECT_EQ(wait_for_all({&receiver, &sender}), "");
  std::ifstream file(capture, std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(file), {});
  EXPECT_TRUE(has_send_of_generation(bytes, 0));
  EXPECT_TRUE(has_send_of_generation(bytes, 1));
  ::unlink(capture.c_str());
}

constexpr Case kCases[] = {{"None", 0, false},
                           {"SendAfterSend", FI_ORDER_SAS, true},
                           {"WriteAfterWrite", FI_ORDER_WAW, true},
                           {"AtomicOnly", FI_ORDER_ATOMIC_WAW, true}};
INSTANTIATE_TEST_SUITE_P(Orders, Order, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace uet::e2e
