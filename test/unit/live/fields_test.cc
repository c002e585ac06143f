// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The table of a peer's numbers is complete.
#include "live/fields.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>

namespace uet::live {
namespace {

TEST(PeerFields, EveryNumberHasExactlyOneName) {
  const std::size_t first = offsetof(PeerRecord, pdcs) / sizeof(std::uint64_t);
  const std::size_t last = offsetof(PeerRecord, nacks_received) / sizeof(std::uint64_t);
  std::set<std::string> names;
  for (std::size_t word = first; word < last; ++word) {
    PeerRecord peer;
    const std::uint64_t one = 1;
    std::memcpy(reinterpret_cast<std::byte*>(&peer) + word * sizeof one, &one, sizeof one);
    std::size_t found = 0;
    for (const PeerField& field : peer_fields()) {
      found += peer.*field.value;
      if (peer.*field.value == 0) continue;
      EXPECT_TRUE(names.insert(field.name).second) << field.name;
    }
    EXPECT_EQ(found, 1U) << "word " << word << " of PeerRecord: give it a row in fields.cc";
  }
}

TEST(NackName, HasTheWordsOfTheCode) {
  EXPECT_EQ(nack_name(0x01), "trimmed");
  EXPECT_EQ(nack_name(0x0A), "no_resource");
  EXPECT_EQ(nack_name(0x0C), "other");  // reserved
  EXPECT_EQ(nack_name(kNackCodes - 1), "other");
}

TEST(PeerName, ShowsAddressPortAndSecureDomain) {
  PeerRecord peer{.ip = {10, 0, 0, 1}, .port = 4793};
  EXPECT_EQ(peer_name(peer), "10.0.0.1:4793");
  peer.sdi = 5;
  EXPECT_EQ(peer_name(peer), "10.0.0.1:4793/5");
  PeerRecord six{.ip = {0x20, 0x01, 0x0d, 0xb8}, .port = 1, .is_ipv6 = 1};
  six.ip[15] = 1;
  EXPECT_EQ(peer_name(six), "[2001:db8::1]:1");
}

}  // namespace
}  // namespace uet::live
