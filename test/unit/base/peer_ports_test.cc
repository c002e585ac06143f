// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "base/peer_ports.h"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

namespace uet {
namespace {

constexpr std::uint16_t kForeign = 49150;  // the constant of the consortium's provider

FepAddress at(std::uint16_t port, std::uint8_t host = 1) {
  return {.ip = {.bytes = {10, 0, 0, host}}, .port = port};
}

TEST(PeerPorts, Wire11_ReplyGoesToTheSourcePortInOurRange) {
  PeerPorts ports;
  ports.add(at(kForeign));
  for (const std::uint16_t port : {4793, 4794, 5816, 5817, 5848}) {
    EXPECT_EQ(ports.reply_address(at(port)), at(port));
  }
}

TEST(PeerPorts, Wire11_ReplyToAStrangerGoesTo4793) {
  PeerPorts ports;
  ports.add(at(kForeign, 2));
  for (const std::uint16_t port : {0, 4792, 5849, 49150, 49152, 65535}) {
    EXPECT_EQ(ports.reply_address(at(port)), at(4793)) << port;
  }
}

TEST(PeerPorts, Wire11_ReplyGoesToThePortOfAKnownPeer) {
  PeerPorts ports;
  ports.add(at(50'000));
  ports.add(at(kForeign));
  ports.add(at(40'000, 2));
  EXPECT_EQ(ports.reply_address(at(0x4242)), at(kForeign)) << "the lowest";
  EXPECT_EQ(ports.reply_address(at(50'000)), at(50'000)) << "it sent from there";
  EXPECT_EQ(ports.reply_address(at(50'000, 2)), at(40'000, 2));
}

TEST(PeerPorts, Wire11_AllFepsOfTheAddressAreLookedAt) {
  PeerPorts ports;
  const auto seen = [&](const FepAddress& source) {
    std::vector<std::uint16_t> all;
    ports.find_if(source, [&](const FepAddress& fep) {
      EXPECT_EQ(fep.ip, source.ip);
      all.push_back(fep.port);
      return false;
    });
    return all;
  };
  EXPECT_TRUE(seen(at(0x4242)).empty());
  ports.add(at(50'000));
  ports.add(at(kForeign));
  ports.add(at(40'000, 2));
  EXPECT_EQ(seen(at(0x4242)), (std::vector<std::uint16_t>{kForeign, 50'000, 4793}));
  EXPECT_TRUE(seen(at(4794)).empty()) << "one of our ports";
  const auto wanted = [](const FepAddress& fep) { return fep.port == 50'000; };
  EXPECT_EQ(ports.find_if(at(0x4242), wanted), at(50'000));
  EXPECT_EQ(ports.find_if(at(0x4242, 2), wanted), std::nullopt);
}

TEST(PeerPorts, Wire11_APeerIsKnownUntilItsLastRemoval) {
  PeerPorts ports;
  ports.remove(at(kForeign));
  ports.add(at(kForeign));
  ports.add(at(kForeign));
  ports.remove(at(kForeign));
  EXPECT_EQ(ports.reply_address(at(0x4242)), at(kForeign));
  ports.remove(at(kForeign));
  EXPECT_EQ(ports.reply_address(at(0x4242)), at(4793));
}

TEST(PeerPorts, Wire11_AFepOfAnyPortMaySendFromAnyPort) {
  const PeerPorts ports;
  for (const std::uint16_t peer : {4793, 49150}) {
    for (const std::uint16_t source : {0, 4792, 5849, 49152, 65535}) {
      EXPECT_TRUE(ports.may_be_from(at(peer), at(source))) << peer << ' ' << source;
    }
    EXPECT_FALSE(ports.may_be_from(at(peer), at(4794))) << "a port of another process";
    EXPECT_FALSE(ports.may_be_from(at(peer), at(peer, 2)));
  }
}

TEST(PeerPorts, Wire11_OurProcessesSendFromTheirOwnPort) {
  const PeerPorts ports;
  for (const std::uint16_t source : {0, 4793, 4795, 49152}) {
    EXPECT_FALSE(ports.may_be_from(at(4794), at(source))) << source;
  }
  EXPECT_TRUE(ports.may_be_from(at(4794), at(4794)));
}

TEST(PeerPorts, Wire11_OurRangeMayBeginElsewhere) {
  const PeerPorts ports(20'000);
  for (const std::uint16_t port : {4793, 5848, 20'000, 21'023}) {
    EXPECT_EQ(ports.reply_address(at(port)), at(port));
  }
  for (const std::uint16_t port : {19'999, 21'024}) {
    EXPECT_EQ(ports.reply_address(at(port)), at(4793));
  }
  EXPECT_FALSE(ports.may_be_from(at(20'000), at(20'001)));
  EXPECT_FALSE(ports.may_be_from(at(20'000), at(50'000)));
}

// TSS-11: the same address under another SDI is another peer, and is answered under its SDI
// (TSS-10).
TEST(PeerPorts, Tss10And11_PeersOfAnotherSdiAreOthers) {
  const auto of_domain = [](std::uint16_t port, std::uint32_t sdi) {
    FepAddress fep = at(port);
    fep.sdi = sdi;
    return fep;
  };
  PeerPorts ports;
  EXPECT_EQ(ports.reply_address(of_domain(50'000, 5)), of_domain(4793, 5));
  ports.add(of_domain(50'000, 5));
  ports.add(of_domain(40'000, 0));
  EXPECT_EQ(ports.reply_address(of_domain(0x4242, 5)), of_domain(50'000, 5));
  EXPECT_EQ(ports.reply_address(of_domain(0x4242, 0)), of_domain(40'000, 0));
  EXPECT_EQ(ports.reply_address(of_domain(0x4242, 6)), of_domain(4793, 6));
  EXPECT_TRUE(ports.may_be_from(of_domain(50'000, 5), of_domain(50'000, 5)));
  EXPECT_FALSE(ports.may_be_from(of_domain(50'000, 5), of_domain(50'000, 0)));
  std::vector<std::uint16_t> seen;
  ports.find_if(of_domain(0x4242, 5), [&](const FepAddress& fep) {
    EXPECT_EQ(fep.sdi, 5U);
    seen.push_back(fep.port);
    return false;
  });
  EXPECT_EQ(seen, (std::vector<std::uint16_t>{50'000, 4793}));
}

// The port of this host that a packet came to is that of the answer, and distinguishes peers.
TEST(PeerPorts, Wire11_AnswersLeaveFromThePortThatWasAskedAt) {
  PeerPorts ports;
  ports.add(at(kForeign, 2));
  for (const std::uint8_t host : {1, 2}) {
    for (const std::uint16_t port : {4793, 0x4242}) {
      FepAddress source = at(port, host);
      const FepAddress plain = ports.reply_address(source);
      EXPECT_EQ(plain.via, 0);
      source.via = 3;
      FepAddress wanted = plain;
      wanted.via = 3;
      EXPECT_EQ(ports.reply_address(source), wanted);
      EXPECT_TRUE(ports.may_be_from(wanted, source));
      EXPECT_FALSE(ports.may_be_from(plain, source));
      EXPECT_TRUE(is_same_fep(plain, wanted));
    }
  }
  FepAddress source = at(0x4242, 2);
  source.via = 3;
  const auto found = ports.find_if(source, [](const FepAddress& fep) { return fep.via == 3; });
  ASSERT_TRUE(found);
  EXPECT_EQ(found->port, kForeign);
}

}  // namespace
}  // namespace uet
