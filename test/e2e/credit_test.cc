// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// FI_UET_CC_ALGORITHM=rccc and both over real sockets, with loss and with a peer that grants
// nothing. CMS-5, CMS-203, CMS-241.
#include <gtest/gtest.h>

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

void exchange(const char* of_sender, const char* of_receiver, const char* faults, bool granted) {
  ChannelPair pair;
  Process sender("sender", {{"FI_UET_CC_ALGORITHM", of_sender}, {"FI_UET_FAULTS", faults}}, [&] {
    Node node;
    send_all(node, node.connect(pair.left));
    pair.left.meet(&node);
    require((node.counter("pds_credit_fallbacks") == 0) == granted, "fallback to NSCC");
  });
  Process receiver("receiver", {{"FI_UET_CC_ALGORITHM", of_receiver}, {"FI_UET_FAULTS", faults}},
                   [&] {
                     Node node;
                     receive_all(node, node.connect(pair.right));
                     pair.right.meet(&node);
                     require((node.counter("pds_credits_sent") > 0) == granted, "credits");
                   });
  EXPECT_EQ(wait_for_all({&sender, &receiver}), "");
}

TEST(Credit, Cms5_RcccCarriesMessages) { exchange("rccc", "rccc", "", true); }
TEST(Credit, Cms240_BothCarryMessages) { exchange("both", "both", "", true); }
TEST(Credit, Cms203_LossDelaysOnly) { exchange("rccc", "rccc", "loss=1%,seed=7", true); }
TEST(Credit, Cms241_APeerThatGrantsNothing) { exchange("rccc", "nscc", "", false); }

}  // namespace
}  // namespace uet::e2e
