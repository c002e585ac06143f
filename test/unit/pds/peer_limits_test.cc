// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "pds/peer_limits.h"

#include <gtest/gtest.h>

namespace uet::pds {
namespace {

FepAddress peer(std::uint8_t network, std::uint8_t host) {
  FepAddress address;
  address.ip.bytes = {10, 0, network, host};
  return address;
}

TEST(PeerLimits, Pds220_RangeIsThatOfThePeerAlone) {
  PeerLimits limits;
  EXPECT_EQ(limits.range(peer(0, 1)), 0);
  limits.set_range(peer(0, 1), 128);
  EXPECT_EQ(limits.range(peer(0, 1)), 128);
  EXPECT_EQ(limits.range(peer(0, 2)), 0);
  limits.forget_range(peer(0, 2));
  EXPECT_EQ(limits.range(peer(0, 1)), 128);
  limits.forget_range(peer(0, 1));
  EXPECT_EQ(limits.range(peer(0, 1)), 0);
}

TEST(PeerLimits, Pds221_RefusalIsOfOneTypeAndPeer) {
  PeerLimits limits;
  limits.note_refusal(peer(0, 1), wire::CpType::Probe);
  EXPECT_TRUE(limits.refuses(peer(0, 1), wire::CpType::Probe));
  EXPECT_FALSE(limits.refuses(peer(0, 1), wire::CpType::Noop));
  EXPECT_FALSE(limits.refuses(peer(0, 2), wire::CpType::Probe));
  limits.note_refusal(peer(0, 1), wire::CpType::Noop);
  EXPECT_TRUE(limits.refuses(peer(0, 1), wire::CpType::Probe));
  EXPECT_TRUE(limits.refuses(peer(0, 1), wire::CpType::Noop));
}

TEST(PeerLimits, LaterPeersTakeThePlacesOfEarlierOnes) {
  PeerLimits limits;
  for (int i = 0; i < 4096; ++i) {
    const FepAddress each = peer(static_cast<std::uint8_t>(i / 256), static_cast<std::uint8_t>(i));
    limits.set_range(each, 128);
    ASSERT_EQ(limits.range(each), 128);
    ASSERT_FALSE(limits.refuses(each, wire::CpType::Probe));
    limits.note_refusal(each, wire::CpType::Probe);
  }
}

TEST(PeerLimits, IndispensablePacketsAreNotOptional) {
  using wire::CpType;
  for (const CpType type :
       {CpType::AckRequest, CpType::Clear, CpType::Close, CpType::CloseRequest}) {
    EXPECT_FALSE(PeerLimits::is_optional(type));
  }
  EXPECT_TRUE(PeerLimits::is_optional(CpType::Probe));
}

}  // namespace
}  // namespace uet::pds
