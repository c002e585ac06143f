// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// FI_UET_CC_ALGORITHM=rccc, both and sird over real sockets, with loss and with a peer that grants
// nothing; swift, which needs no credit. CMS-5, CMS-203, CMS-241.
#include <gtest/gtest.h>

#include <optional>

#include "harness.h"

namespace uet::e2e {
namespace {

constexpr std::size_t kBytes = 300'000;
constexpr std::uint64_t kMessages = 20;

void send_all(Node& node, fi_addr_t peer) {
  std::vector<std::byte> memory(kBytes);
  for (std::uint64_t i = 0; i < kMessages; ++i) {
    const auto bytes = std::span(memory).first(kBytes / (1 + i % 4 * 100));
    fill_pattern(bytes, i);
    node.post("sending", [&] {
      return fi_tsend(node.ep.get(), bytes.data(), bytes.size(), nullptr, peer, i, nullptr);
    });
    node.next("sending");
  }
}

void receive_all(Node& node, fi_addr_t peer) {
  std::vector<std::byte> memory(kBytes);
  for (std::uint64_t i = 0; i < kMessages; ++i) {
    node.post("receiving", [&] {
      return fi_trecv(node.ep.get(), memory.data(), memory.size(), nullptr, peer, i, 0, nullptr);
    });
    const std::size_t bytes = kBytes / (1 + i % 4 * 100);
    require(node.next("receiving").length == bytes, "a message has another length");
    require_pattern(std::span(memory).first(bytes), i, "message");
  }
}

void exchange(const char* of_sender, const char* of_receiver, const char* faults,
              std::optional<bool> granted) {
  ChannelPair pair;
  Process sender("sender", {{"FI_UET_CC_ALGORITHM", of_sender}, {"FI_UET_FAULTS", faults}}, [&] {
    Node node;
    send_all(node, node.connect(pair.left));
    pair.left.meet(&node);
    const bool kept = node.counter("pds_credit_fallbacks") == 0;
    require(kept == granted.value_or(true), "fallback to NSCC");
  });
  Process receiver("receiver", {{"FI_UET_CC_ALGORITHM", of_receiver}, {"FI_UET_FAULTS", faults}},
                   [&] {
                     Node node;
                     receive_all(node, node.connect(pair.right));
                     pair.right.meet(&node);
                     const bool grants = node.counter("pds_credits_sent") > 0;
                     require(grants == granted.value_or(false), "credits");
                   });
  EXPECT_EQ(wait_for_all({&sender, &receiver}), "");
}

TEST(Credit, Cms5_RcccCarriesMessages) { exchange("rccc", "rccc", "", true); }
TEST(Credit, Cms240_BothCarryMessages) { exchange("both", "both", "", true); }
TEST(Credit, Cms203_LossDelaysOnly) { exchange("rccc", "rccc", "loss=1%,seed=7", true); }
TEST(Credit, Sird_CarriesMessagesWithLoss) { exchange("sird", "sird", "loss=1%,seed=7", true); }
TEST(Credit, Sird_WorksWithRccc) {
  exchange("sird", "rccc", "", true);
  exchange("rccc", "sird", "", true);
}
TEST(Credit, Swift_NeedsNone) { exchange("swift", "swift", "loss=1%,seed=7", {}); }
TEST(Credit, Cms241_APeerThatGrantsNothing) { exchange("rccc", "nscc", "", false); }

}  // namespace
}  // namespace uet::e2e
