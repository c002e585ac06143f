// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Kernel UDP sockets of several NICs at one port, over loopback: the kernel gives each packet to
// the NIC whose PDC it is for.
#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "nic/middleware.h"
#include "nic/udp.h"
#include "nic_testing.h"
#include "uet/wire/pds.h"

namespace uet::nic {
namespace {

constexpr PdcIdShare kShare{.number = 2, .bits = 2};
constexpr PdcIdShare kOther{.number = 3, .bits = 2};
constexpr std::uint8_t kVia = 7;
constexpr std::uint8_t kOtherVia = 8;

std::unique_ptr<UdpNic> open_nic_at(const FabricAddress& ip, std::uint16_t port = 0) {
  UdpOptions options;
  options.ip = ip;
  options.port = port;
  std::string message;
  auto nic = UdpNic::open(options, message);
  EXPECT_TRUE(nic.ok()) << message;
  return nic ? std::move(nic).value() : nullptr;
}

class PortSharing : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(lender_->caps().lends_port);
    lend(*borrower_, kVia, kShare);
    lend(*second_, kOtherVia, kOther);
  }
  void lend(UdpNic& borrower, std::uint8_t via, const PdcIdShare& share) {
    const LentSocket lent = lender_->lend_port(share);
    ASSERT_GE(lent.fd, 0);
    ASSERT_TRUE(borrower.borrow_port(lent, via, share));
  }
  // The NIC that gets a packet for the port which `write` has written.
  const Nic* taker(const std::function<std::size_t(std::byte*)>& write) {
    std::array<std::byte, 64> bytes{};
    const std::size_t length = write(bytes.data());
    Packet packet;
    packet.reset();
    std::copy_n(bytes.begin(), length, packet.append(length));
    packet.to = lender_->local_address();
    const Packet* const one = &packet;
    EXPECT_EQ(peer_->tx_burst({&one, 1}), 1U);
    for (int turn = 0; turn < 200; ++turn) {
      for (UdpNic* const nic : {lender_.get(), borrower_.get(), second_.get()}) {
        std::array<RxPacket, kRxBurst> out;
        if (nic->rx_burst(out, Time{}) == 0) continue;
        EXPECT_EQ(out[0].bytes.size(), length);
        FepAddress source = peer_->local_address();
        source.via = nic == borrower_.get() ? kVia : nic == second_.get() ? kOtherVia : 0;
        EXPECT_EQ(out[0].source, source);
        return nic;
      }
      ::poll(nullptr, 0, 10);
    }
    return nullptr;
  }
  template <class Header>
  const Nic* taker_of(const Header& header) {
    return taker([&](std::byte* out) { return header.encode(out); });
  }

  const std::array<std::byte, 500> payload_{};
  const FabricAddress ip_ = own_loopback_address();
  std::unique_ptr<UdpNic> lender_ = open_nic_at(ip_);
  std::unique_ptr<UdpNic> borrower_ = open_nic_at(ip_);
  std::unique_ptr<UdpNic> second_ = open_nic_at(ip_);
  std::unique_ptr<UdpNic> peer_ = open_nic_at(ip_);
};

TEST_F(PortSharing, Pds27_PacketsGoToTheNicOfTheirPdc) {
  struct Case {
    std::uint16_t id;
    const Nic* taker;
  };
  const std::vector<Case> cases = {{0x0001, lender_.get()},   {0x7FFF, lender_.get()},
                                   {0x8000, borrower_.get()}, {0xBFFF, borrower_.get()},
                                   {0xC000, second_.get()},   {0xFFFF, second_.get()}};
  for (const auto& [id, wanted] : cases) {
    const PdcId dpdcid{id};
    const PdcId spdcid{static_cast<std::uint16_t>(~id)};
    for (const auto type : {wire::PdsType::RudReq, wire::PdsType::RodReq, wire::PdsType::RudCcReq,
                            wire::PdsType::RodCcReq}) {
      wire::RequestHeader request;
      request.type = type;
      request.spdcid = spdcid;
      request.dpdcid = dpdcid;
      EXPECT_EQ(taker_of(request), wanted) << id;
    }
    for (const auto type : {wire::PdsType::Ack, wire::PdsType::AckCc, wire::PdsType::AckCcx}) {
      EXPECT_EQ(taker([&](std::byte* out) {
                  wire::AckHeader ack;
                  ack.type = type;
                  ack.spdcid = spdcid;
                  ack.dpdcid = dpdcid;
                  ack.encode(out);
                  return wire::pds_header_bytes(type);
                }),
                wanted)
          << id;
    }
    for (const auto type : {wire::PdsType::Nack, wire::PdsType::NackCcx}) {
      wire::NackHeader nack;
      nack.type = type;
      nack.spdcid = spdcid;
      nack.dpdcid = dpdcid;
      EXPECT_EQ(taker_of(nack), wanted) << id;
    }
    wire::ControlHeader control;
    control.spdcid = spdcid;
    control.dpdcid = dpdcid;
    EXPECT_EQ(taker_of(control), wanted) << id;
  }
}

TEST_F(PortSharing, Pds183_AnswersToRudiGoToTheNicOfTheirRequest) {
  for (const auto& [first, wanted] : std::vector<std::pair<std::uint32_t, const Nic*>>{
           {0, lender_.get()}, {2, borrower_.get()}, {3, second_.get()}}) {
    const std::uint32_t id = first << 30 | 4711;
    wire::RudiHeader response;
    response.type = wire::PdsType::RudiResp;
    response.pkt_id = id;
    EXPECT_EQ(taker_of(response), wanted) << first;
    wire::NackHeader nack;
    nack.nt = true;
    nack.nack_psn = Psn{id};
    EXPECT_EQ(taker_of(nack), wanted) << first;
  }
}

// The FEP of the port gets packets that open a PDC or need none, whatever stands where a PDCID
// would.
TEST_F(PortSharing, Pds66_WhatNamesNoPdcGoesToTheLender) {
  wire::RequestHeader syn;
  syn.syn = true;
  syn.pdc_info = 0x8;
  EXPECT_EQ(taker_of(syn), lender_.get());
  wire::ControlHeader control;
  control.syn = true;
  control.pdc_info = 0x8;
  EXPECT_EQ(taker_of(control), lender_.get());
  wire::RudiHeader request;
  request.type = wire::PdsType::RudiReq;
  request.pkt_id = 0x80000000;
  EXPECT_EQ(taker_of(request), lender_.get());
  EXPECT_EQ(taker_of(wire::UudHeader{}), lender_.get());
  for (const std::size_t length : {1, 2, 11}) {
    EXPECT_EQ(taker([&](std::byte* out) {
                std::fill_n(out, length, std::byte{0x38});  // the type of an ACK
                return length;
              }),
              lender_.get())
        << length;
  }
  EXPECT_EQ(taker([&](std::byte* out) {
              std::fill_n(out, 20, std::byte{0xFF});  // of no type
              return std::size_t{20};
            }),
            lender_.get());
}

// A burst has packets for both ports; the peer sees the port that each was to leave from.
TEST_F(PortSharing, PacketsLeaveFromThePortOfTheirVia) {
  PacketSet packets;
  for (int i = 0; i < 12; ++i) {
    packets.add(peer_->local_address(), 56, 100);
    packets.last().to.via = i % 3 == 0 ? kVia : 0;
    EXPECT_EQ(borrower_->source_port_for(packets.last()),
              (i % 3 == 0 ? lender_ : borrower_)->local_address().port);
  }
  ASSERT_EQ(borrower_->tx_burst(packets.all()), 12U);
  std::size_t arrived = 0;
  std::array<RxPacket, kRxBurst> out;
  for (int turn = 0; turn < 200 && arrived < 12; ++turn) {
    const std::size_t count = peer_->rx_burst(out, Time{});
    for (std::size_t i = 0; i < count; ++i, ++arrived) {
      EXPECT_EQ(out[i].source.port, (arrived % 3 == 0 ? lender_ : borrower_)->local_address().port);
    }
    if (count == 0) ::poll(nullptr, 0, 10);
  }
  EXPECT_EQ(arrived, 12U);
}

// The kernel chooses the socket of a train by its first packet.
TEST_F(PortSharing, PacketsOfATrainGoToTheirNics) {
  constexpr std::size_t kPackets = 30;
  PacketSet packets;
  for (std::size_t i = 0; i < kPackets; ++i) {
    packets.add(lender_->local_address(), 12, 500);
    wire::RequestHeader request;
    request.dpdcid = PdcId{static_cast<std::uint16_t>(0x4000 * (1 + i % 3))};
    request.psn = Psn{static_cast<std::uint32_t>(i)};
    packets.last().reset();
    packets.last().payload[0] = {payload_.data(), 500};
    request.encode(packets.last().append(12));
  }
  ASSERT_EQ(peer_->tx_burst(packets.all()), kPackets);
  std::array<std::vector<std::uint32_t>, 3> psns;
  const std::array<UdpNic*, 3> nics = {lender_.get(), borrower_.get(), second_.get()};
  for (int turn = 0; turn < 200; ++turn) {
    std::size_t taken = 0;
    for (std::size_t nic = 0; nic < nics.size(); ++nic) {
      std::array<RxPacket, 4> out;  // smaller than what is handed on at a time
      const std::size_t count = nics[nic]->rx_burst(out, Time{});
      for (std::size_t i = 0; i < count; ++i) {
        wire::RequestHeader request;
        ASSERT_TRUE(wire::RequestHeader::decode(out[i].bytes, request));
        EXPECT_EQ(request.dpdcid.value, 0x4000 * (1 + nic));
        EXPECT_EQ(out[i].source.via, nic == 0 ? 0 : nic == 1 ? kVia : kOtherVia);
        psns[nic].push_back(request.psn.value);
      }
      taken += count;
    }
    if (taken == 0) ::poll(nullptr, 0, 5);
    if (psns[0].size() + psns[1].size() + psns[2].size() == kPackets) break;
  }
  for (std::size_t nic = 0; nic < nics.size(); ++nic) {
    std::sort(psns[nic].begin(), psns[nic].end());
    ASSERT_EQ(psns[nic].size(), kPackets / 3) << nic;
    for (std::size_t i = 0; i < kPackets / 3; ++i) EXPECT_EQ(psns[nic][i], 3 * i + nic);
    EXPECT_EQ(nics[nic]->next_deadline(), kNever) << "nothing is left";
  }
}

// Checksum and capture have the port that a packet left from or came to.
TEST_F(PortSharing, ChecksumsAndCapturesHaveThePortOfTheVia) {
  const std::string file = ::testing::TempDir() + "port_sharing.pcapng";
  std::string message;
  const FepAddress lender = lender_->local_address();
  const FepAddress peer = peer_->local_address();
  auto capture = PcapNic::open(std::move(borrower_), file, "lo", 0, message);
  ASSERT_TRUE(capture.ok()) << message;
  CrcNic near(std::move(capture).value(), {});
  CrcNic far(std::move(peer_), {});
  EXPECT_EQ(near.port_of(kVia), lender.port);
  const auto expect_arrival = [](Nic& nic, std::size_t length) {
    std::array<RxPacket, kRxBurst> out;
    for (int turn = 0; turn < 200; ++turn) {
      if (nic.rx_burst(out, Time{}) == 0) {
        ::poll(nullptr, 0, 10);
        continue;
      }
      EXPECT_EQ(out[0].bytes.size(), length);
      return;
    }
    ADD_FAILURE() << "nothing came; CRC errors: " << nic.counters().crc_errors;
  };
  PacketSet packets;
  packets.add(peer, 56, 100);
  packets.last().to.via = kVia;
  ASSERT_EQ(near.tx_burst(packets.all()), 1U);
  expect_arrival(far, 156);
  wire::AckHeader ack;
  ack.dpdcid = PdcId{0x8001};
  PacketSet answer;
  answer.add(lender, 12, 0);
  answer.last().reset();
  ack.encode(answer.last().append(12));
  ASSERT_EQ(far.tx_burst(answer.all()), 1U);
  expect_arrival(near, 12);
  std::ifstream captured(file, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(captured)), {});
  const auto both = [](std::uint16_t from, std::uint16_t to) {
    return std::string{static_cast<char>(from >> 8), static_cast<char>(from),
                       static_cast<char>(to >> 8), static_cast<char>(to)};
  };
  EXPECT_NE(bytes.find(both(lender.port, peer.port)), std::string::npos);
  EXPECT_NE(bytes.find(both(peer.port, lender.port)), std::string::npos);
  std::remove(file.c_str());
}

// The port of another process is in use, though sockets of this one share it.
TEST_F(PortSharing, PortIsInUseForAllOthers) {
  UdpOptions options;
  options.ip = ip_;
  options.port = lender_->local_address().port;
  std::string message;
  EXPECT_EQ(UdpNic::open(options, message).error(), Error::AddressInUse);
}

TEST_F(PortSharing, NoPortTakesABurstWholeEveryTime) {
  PacketSet own;
  PacketSet borrowed;
  for (std::size_t i = 0; i < 2 * kRxBurst; ++i) {
    own.add(borrower_->local_address(), 56, 0);
    borrowed.add(lender_->local_address(), 12, 0);
    wire::AckHeader ack;
    ack.dpdcid = PdcId{0x8001};
    borrowed.last().reset();
    ack.encode(borrowed.last().append(12));
  }
  ASSERT_EQ(peer_->tx_burst(own.all()), own.all().size());
  ASSERT_EQ(peer_->tx_burst(borrowed.all()), borrowed.all().size());
  ::poll(nullptr, 0, 50);
  std::array<std::size_t, 2> taken{};
  std::array<RxPacket, 16> out;
  for (int turn = 0; turn < 4; ++turn) {
    const std::size_t count = borrower_->rx_burst(out, Time{});
    for (std::size_t i = 0; i < count; ++i) ++taken[out[i].source.via == kVia ? 1 : 0];
  }
  EXPECT_GT(taken[0], 0U);
  EXPECT_GT(taken[1], 0U);
}

// The port of a slot is shared with other processes.
TEST(PortLending, OnlyOfAPortOfItsOwn) {
  UdpOptions options;
  options.ip = own_loopback_address();
  options.bind = [&](int, int, std::string&) -> Result<UdpBinding> {
    return UdpBinding{.address = {.ip = options.ip, .port = kFirstSlotPort}, .dropped = {}};
  };
  std::string message;
  const auto shared = UdpNic::open(options, message);
  ASSERT_TRUE(shared.ok()) << message;
  EXPECT_FALSE(shared.value()->caps().lends_port);
  FakeNic fake(FepAddress{});
  EXPECT_EQ(fake.lend_port(kShare).fd, -EOPNOTSUPP);
}

}  // namespace
}  // namespace uet::nic
