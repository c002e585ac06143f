// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Packets that are damaged or trimmed on the way between two processes: the CRC finds the damage,
// NACKs bring trimmed payload again, and the counters show both.
#include <gtest/gtest.h>

#include <map>

#include "harness.h"

namespace uet::e2e {
namespace {

constexpr std::uint64_t kMessages = 200;

std::size_t bytes_of(std::uint64_t i) { return i * 997 % 60'000; }

void send_all(Node& node, fi_addr_t peer) {
  std::vector<std::byte> memory(60'000);
  for (std::uint64_t i = 0; i < kMessages; ++i) {
    fill_pattern(std::span(memory).first(bytes_of(i)), i);
    node.post("sending", [&] {
      return fi_tsend(node.ep.get(), memory.data(), bytes_of(i), nullptr, peer, i, nullptr);
    });
    node.next("sending");
  }
}

void receive_all(Node& node, fi_addr_t peer) {
  std::vector<std::byte> memory(60'000);
  for (std::uint64_t i = 0; i < kMessages; ++i) {
    node.post("receiving", [&] {
      return fi_trecv(node.ep.get(), memory.data(), memory.size(), nullptr, peer, i, 0, nullptr);
    });
    require(node.next("receiving").length == bytes_of(i), "a message has another length");
    require_pattern(std::span(memory).first(bytes_of(i)), i, "message");
  }
}

Environment with_crc(const char* faults) {
  return {{"FI_UET_CRC", "on"}, {"FI_UET_FAULTS", faults}};
}

TEST(Crc, DamagedPacketsAreDroppedCountedAndSentAgain) {
  ChannelPair pair;
  Process sender("sender", with_crc("corrupt=3%,seed=5"), [&] {
    Node node;
    send_all(node, node.connect(pair.left));
    pair.left.meet(&node);
    require(node.counter("nic_crc_errors") > 0, "no damaged answer was counted");
    require(node.counter("pds_rto_retransmissions") +
                    node.counter("pds_inferred_loss_retransmissions") >
                0,
            "nothing was sent again");
  });
  Process receiver("receiver", with_crc("corrupt=3%,seed=6"), [&] {
    Node node;
    receive_all(node, node.connect(pair.right));
    pair.right.meet(&node);
    require(node.counter("nic_crc_errors") > 0, "no damaged packet was counted");
    require(node.counter("pds_malformed") == 0 && node.counter("ses_malformed") == 0,
            "a damaged packet came through");
  });
  EXPECT_EQ(wait_for_all({&sender, &receiver}), "");
}

TEST(Crc, ServesOnesOwnPacketsToo) {
  Process process("process", with_crc("corrupt=3%,seed=5"), [&] {
    Node node;
    const fi_addr_t self = node.insert(node.name());
    std::vector<std::byte> in(60'000);
    std::vector<std::byte> out(60'000);
    fill_pattern(out, 1);
    node.post("receiving", [&] {
      return fi_trecv(node.ep.get(), in.data(), in.size(), nullptr, self, 1, 0, nullptr);
    });
    node.post("sending", [&] {
      return fi_tsend(node.ep.get(), out.data(), out.size(), nullptr, self, 1, nullptr);
    });
    node.drain(2, "message to oneself");
    require_pattern(in, 1, "message to oneself");
  });
  EXPECT_EQ(process.wait(), "");
}

// Both ends must agree; who does not is dropped, not misunderstood.
TEST(Crc, PacketsWithoutOneAreCountedWhereItIsExpected) {
  ChannelPair pair;
  Process sender("sender", {}, [&] {
    std::vector<std::byte> memory(100);  // outlives the node: the send is never completed
    Node node;
    const fi_addr_t peer = node.connect(pair.left);
    node.post("sending", [&] {
      return fi_tsend(node.ep.get(), memory.data(), 100, nullptr, peer, 1, nullptr);
    });
    pair.left.receive<char>(&node);
    require(node.counter("pds_acks_received") == 0, "it was acknowledged");
  });
  Process receiver("receiver", {{"FI_UET_CRC", "on"}}, [&] {
    Node node;
    node.connect(pair.right);
    const Clock::time_point start = Clock::now();
    while (node.counter("nic_crc_errors") < 3) {
      node.keep_events();
      require(Clock::now() - start < kDeadline, "nothing was counted");
    }
    require(node.counter("pds_packets_received") == 0, "a packet without CRC came through");
    pair.right.send('e');
  });
  EXPECT_EQ(wait_for_all({&sender, &receiver}), "");
}

// PDS-149, PDS-154: the payload comes again because a NACK says so, long before a time-out.
void expect_trimmed_payload_again(const char* crc) {
  ChannelPair pair;
  const auto environment = [&](const char* faults) {
    return Environment{{"FI_UET_CRC", crc},
                       {"FI_UET_CC_TRIMMING", "on"},
                       {"FI_UET_FAULTS", faults},
                       {"FI_UET_RTO_INIT_US", "1000000"}};
  };
  Process sender("sender", environment("trim=5%,seed=7"), [&] {
    Node node;
    send_all(node, node.connect(pair.left));
    pair.left.meet(&node);
    require(node.counter("pds_nacks_received_trimmed") > 0, "no NACK TRIMMED came");
    require(node.counter("pds_nack_retransmissions") > 0, "nothing was sent again for a NACK");
  });
  Process receiver("receiver", environment("trim=5%,seed=8"), [&] {
    Node node;
    receive_all(node, node.connect(pair.right));
    pair.right.meet(&node);
    require(node.counter("pds_trimmed_received") > 0, "no trimmed packet was counted");
    require(node.counter("pds_nacks_sent_trimmed") > 0, "no NACK TRIMMED was sent");
    require(node.counter("nic_crc_errors") == 0, "a trimmed packet's CRC was looked at");
  });
  EXPECT_EQ(wait_for_all({&sender, &receiver}), "");
}

TEST(Trimming, PayloadComesAgain) { expect_trimmed_payload_again("off"); }

TEST(Trimming, PayloadComesAgainUnderACrc) { expect_trimmed_payload_again("on"); }

}  // namespace
}  // namespace uet::e2e
