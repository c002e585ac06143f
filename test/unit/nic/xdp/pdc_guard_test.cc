// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Which packets of strangers the XDP program drops (PDS-236), by the kernel's own trial run.
#include <bpf/bpf.h>
#include <gtest/gtest.h>
#include <linux/bpf.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <vector>

#include "nic/guard_map.h"
#include "nic/xdp_program.h"
#include "uet/wire/pds.h"
#include "wire/frame.h"

namespace uet::nic {
namespace {

using std::chrono::hours;
using std::chrono::steady_clock;

constexpr std::uint8_t kUdp = 17;
constexpr std::uint32_t kShare = 4;  // new PDCs
constexpr std::uint16_t kOpen = 0x1234;

using Header = std::vector<std::byte>;

Header request(std::uint16_t dpdcid, wire::PdsType type = wire::PdsType::RudReq) {
  wire::RequestHeader header;
  header.type = type;
  header.next_hdr = wire::NextHdr::RequestStd;
  header.psn = Psn{70'000};
  header.spdcid = PdcId{7};
  header.dpdcid = PdcId{dpdcid};
  Header bytes(wire::kMaxPdsHeaderBytes);
  header.encode(bytes.data());
  return bytes;
}

// The packet `ahead` of the PDC that the peer calls `spdcid`.
Header syn(std::uint16_t spdcid, std::uint16_t ahead = 0) {
  wire::RequestHeader header;
  header.next_hdr = wire::NextHdr::RequestStd;
  header.syn = true;
  header.psn = Psn{70'000U + ahead};
  header.psn_offset = ahead;
  header.spdcid = PdcId{spdcid};
  Header bytes(wire::kMaxPdsHeaderBytes);
  header.encode(bytes.data());
  return bytes;
}

Header control(std::uint16_t dpdcid, bool with_syn) {
  wire::ControlHeader header;
  header.ctl_type = wire::CpType::Noop;
  header.syn = with_syn;
  header.psn = Psn{70'000};
  header.spdcid = PdcId{8};
  header.dpdcid = PdcId{with_syn ? std::uint16_t{0} : dpdcid};
  Header bytes(wire::kMaxPdsHeaderBytes);
  header.encode(bytes.data());
  return bytes;
}

Header ack(std::uint16_t dpdcid) {
  wire::AckHeader header;
  header.spdcid = PdcId{7};
  header.dpdcid = PdcId{dpdcid};
  Header bytes(wire::kMaxPdsHeaderBytes);
  header.encode(bytes.data());
  return bytes;
}

Header nack(std::uint16_t dpdcid, bool of_rudi) {
  wire::NackHeader header;
  header.nt = of_rudi;
  header.nack_code = wire::NackCode::NoResource;
  header.dpdcid = PdcId{dpdcid};
  Header bytes(wire::kMaxPdsHeaderBytes);
  header.encode(bytes.data());
  return bytes;
}

Header of_type(wire::PdsType type) {
  Header bytes = request(0);
  bytes[0] = static_cast<std::byte>(static_cast<unsigned>(type) << 3);
  bytes[1] = std::byte{0};
  return bytes;
}

class PdcGuardTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const int error = XdpProgram::load(program_);
    if (error == EPERM || (error == EACCES && ::geteuid() != 0))
      GTEST_SKIP() << "needs CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN: run as root";
    ASSERT_EQ(error, 0);
    socket_ = FileDescriptor(::socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0));
    ASSERT_TRUE(socket_.valid());
    guard_ = GuardMap::make();
    ASSERT_NE(guard_, nullptr);
    take(false);
    guard_->start(kShare, hours(1));
    guard_->open(PdcId{kOpen});
  }

  void take(bool ipv6, const wire::FrameFormat& format = {}) {
    format_ = format;
    self_.ip.is_ipv6 = ipv6;
    const bool native = format.encapsulation == wire::Encapsulation::NativeIp;
    const std::uint8_t protocol = native ? format.native_protocol : kUdp;
    ASSERT_TRUE(program_.give_queue(0, {socket_.get(), guard_->fd(), self_, protocol}));
  }

  // The last verdict about `count` copies of the packet, which the host of this number sends.
  unsigned verdict(const Header& packet, std::uint32_t host = 1, int count = 1) {
    wire::FrameFields fields;
    fields.source = self_.ip;
    std::memcpy(fields.source.bytes.data() + (self_.ip.is_ipv6 ? 12 : 0), &host, sizeof host);
    fields.source.bytes[0] ^= 0x40;
    fields.destination = self_.ip;
    fields.port = self_.port;
    fields.entropy = 50'000;
    const std::array pieces{Slice{packet.data(), static_cast<std::uint32_t>(packet.size())}};
    Header frame(wire::kMaxFrameHeaderBytes);
    frame.resize(wire::write_frame_headers(frame.data(), format_, fields, pieces));
    frame.insert(frame.end(), packet.begin(), packet.end());
    bpf_test_run_opts options{};
    options.sz = sizeof options;
    options.data_in = frame.data();
    options.data_size_in = static_cast<std::uint32_t>(frame.size());
    options.repeat = count;
    EXPECT_EQ(bpf_prog_test_run_opts(program_.program_fd(), &options), 0);
    ns_ = options.duration;
    return options.retval;
  }
  bool passes(const Header& packet, std::uint32_t host = 1) {
    return verdict(packet, host) == XDP_REDIRECT;
  }
  std::uint64_t strays() const { return guard_->dropped(UET_GUARD_STRAY); }
  std::uint64_t syns() const { return guard_->dropped(UET_GUARD_SYN); }

  XdpProgram program_;
  FileDescriptor socket_;
  std::unique_ptr<GuardMap> guard_;
  FepAddress self_{.ip = {.bytes = {10, 85, 0, 1}}, .port = 4793};
  wire::FrameFormat format_;
  std::uint32_t ns_ = 0;  // of one trial run
};

TEST_F(PdcGuardTest, BeforeStart_PassesAll) {
  guard_ = GuardMap::make();
  take(false);
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(passes(ack(9))) << "an ACK for no PDC";
  EXPECT_EQ(strays() + syns(), 0U);
}

TEST_F(PdcGuardTest, Pds236_OpenPdc_PassesAll) {
  for (const Header& packet : {request(kOpen), request(kOpen, wire::PdsType::RodReq), ack(kOpen),
                               nack(kOpen, false), control(kOpen, false)}) {
    EXPECT_EQ(verdict(packet, 1, 20'000), unsigned{XDP_REDIRECT});
  }
  EXPECT_EQ(strays() + syns(), 0U);
}

TEST_F(PdcGuardTest, Pds236_AnswerForNoPdc_IsDropped) {
  EXPECT_FALSE(passes(ack(kOpen + 1)));
  EXPECT_FALSE(passes(nack(kOpen - 1, false)));
  EXPECT_EQ(strays(), 2U);
  guard_->close(PdcId{kOpen});
  EXPECT_FALSE(passes(ack(kOpen)));
  guard_->open(PdcId{kOpen + 1});
  EXPECT_TRUE(passes(ack(kOpen + 1)));
  for (const std::uint16_t id : {0, 31, 32, 0xFFFF}) {
    EXPECT_FALSE(passes(ack(id))) << id;
    guard_->open(PdcId{id});
    EXPECT_TRUE(passes(ack(id))) << id;
  }
}

TEST_F(PdcGuardTest, PacketsWithoutPdc_Pass) {
  using wire::PdsType;
  for (const PdsType type : {PdsType::Tss, PdsType::RudiReq, PdsType::RudiResp, PdsType::UudReq,
                             PdsType::Reserved, static_cast<PdsType>(31)}) {
    EXPECT_TRUE(passes(of_type(type))) << static_cast<int>(type);
  }
  EXPECT_TRUE(passes(nack(9, true))) << "the refusal of a RUDI request";
  Header cut = ack(9);
  cut.resize(11);
  EXPECT_TRUE(passes(cut)) << "the FEP counts it";
}

// The FEP answers it (INV_DPDCID), so that a peer whose PDC is gone hears of it at once.
TEST_F(PdcGuardTest, Pds236_RequestsForNoPdc_PassUpToARate) {
  EXPECT_TRUE(passes(request(9)));
  EXPECT_TRUE(passes(control(9, false)));
  const auto begin = steady_clock::now();
  std::uint32_t passed = 0;
  constexpr std::uint32_t kPackets = 4000;
  for (std::uint32_t i = 0; i < kPackets; ++i) passed += passes(request(9), 100 + i) ? 1 : 0;
  const auto took = std::chrono::duration<double>(steady_clock::now() - begin).count();
  EXPECT_GE(passed, UET_GUARD_STRAY_BURST - 2U);
  EXPECT_LE(passed, UET_GUARD_STRAY_BURST * (1 + took) + 1);
  EXPECT_EQ(strays(), kPackets - passed);
  EXPECT_EQ(syns(), 0U);
}

TEST_F(PdcGuardTest, Pds236_RepeatedRequest_PassesInAFlood) {
  int dropped = 0;
  for (std::uint32_t i = 0; i < 4000 && dropped < 10; ++i) {
    if (passes(request(9), 100 + i)) continue;
    ++dropped;
    EXPECT_TRUE(passes(request(9), 100 + i)) << "the same host again";
  }
  EXPECT_EQ(dropped, 10);
}

TEST_F(PdcGuardTest, Pds236_NewPdcs_PassUpToTheShare) {
  for (std::uint16_t i = 0; i < kShare; ++i) EXPECT_TRUE(passes(syn(1), 100U + i));
  EXPECT_FALSE(passes(syn(1), 200));
  EXPECT_FALSE(passes(control(0, true), 201));
  EXPECT_EQ(syns(), 2U);
  EXPECT_EQ(strays(), 0U);
  EXPECT_TRUE(passes(request(kOpen), 200)) << "others go on";
}

// Sources are invented, PDCs are not repeated.
TEST_F(PdcGuardTest, Pds236_RepeatedSyn_PassesInAFlood) {
  for (std::uint32_t i = 0; i < 4000; ++i) passes(syn(static_cast<std::uint16_t>(i)), 1000 + i);
  EXPECT_EQ(syns(), 4000U - kShare);
  EXPECT_FALSE(passes(syn(5), 1));
  EXPECT_TRUE(passes(syn(5), 1)) << "sent again";
  EXPECT_TRUE(passes(syn(5, 9), 1)) << "a later packet of that PDC";
  EXPECT_FALSE(passes(syn(6), 1)) << "another PDC";
  EXPECT_FALSE(passes(syn(5), 2)) << "another host";
}

TEST_F(PdcGuardTest, Pds236_PaceOfNewPdcs_IsTheShares) {
  guard_->start(2, std::chrono::milliseconds(50));
  const auto begin = steady_clock::now();
  std::uint32_t passed = 0;
  std::uint32_t host = 1000;
  while (steady_clock::now() - begin < std::chrono::milliseconds(400)) {
    passed += passes(syn(1), ++host) ? 1 : 0;
  }
  const auto took = std::chrono::duration<double>(steady_clock::now() - begin).count();
  EXPECT_GE(passed, 2 + 7U);
  EXPECT_LE(passed, 2 + took / 0.05 + 1);
}

// A host that repeats one packet with SYN spends its own tokens.
TEST_F(PdcGuardTest, Pds236_BusyHost_LeavesOthersTheirRate) {
  EXPECT_TRUE(passes(syn(1), 10));
  verdict(syn(1), 10, 50'000);
  const std::uint64_t dropped = syns();
  EXPECT_GT(dropped, 50'000U - 2 * UET_GUARD_SOURCE_BURST);
  EXPECT_TRUE(passes(syn(1), 11));
  EXPECT_TRUE(passes(syn(1), 11));
  EXPECT_EQ(syns(), dropped);
}

TEST_F(PdcGuardTest, EveryForm_IsGuarded) {
  const wire::FrameFormat native{.encapsulation = wire::Encapsulation::NativeIp};
  for (const bool ipv6 : {false, true}) {
    for (const wire::FrameFormat& format : {wire::FrameFormat{}, native}) {
      take(ipv6, format);
      const std::uint64_t before = strays();
      EXPECT_TRUE(passes(ack(kOpen)));
      EXPECT_FALSE(passes(ack(kOpen + 1)));
      EXPECT_EQ(strays(), before + 1);
    }
  }
}

// Every word of an address counts.
TEST_F(PdcGuardTest, Ipv6Sources_DifferInTheLastWord) {
  take(true);
  for (std::uint16_t i = 0; i < kShare; ++i) passes(syn(1), 100U + i);
  EXPECT_FALSE(passes(syn(1), 1));
  EXPECT_TRUE(passes(syn(1), 1));
  EXPECT_FALSE(passes(syn(1), 2));
}

// Its packets go to the kernel, where another back end may have the port by now.
TEST_F(PdcGuardTest, EndedOwner_GuardsNothing) {
  socket_ = FileDescriptor();
  EXPECT_EQ(verdict(ack(9)), unsigned{XDP_PASS});
  EXPECT_EQ(strays(), 0U);
}

// Receive queues spread what comes to one endpoint; what comes in a queue of another one goes to
// the kernel, guarded all the same. Trial runs are in queue 0.
TEST_F(PdcGuardTest, Pds236_PacketInAnotherQueue_IsGuarded) {
  for (const bool ipv6 : {false, true}) {
    const std::unique_ptr<GuardMap> others = GuardMap::make();
    FileDescriptor other(::socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0));
    FepAddress neighbour = self_;
    neighbour.port = 4800;
    neighbour.ip.is_ipv6 = self_.ip.is_ipv6 = ipv6;
    ASSERT_TRUE(program_.give_queue(0, {other.get(), others->fd(), neighbour, kUdp}));
    ASSERT_TRUE(program_.give_queue(5, {socket_.get(), guard_->fd(), self_, kUdp}));
    const std::uint64_t before = strays();
    EXPECT_EQ(verdict(ack(kOpen)), unsigned{XDP_PASS}) << ipv6;
    EXPECT_EQ(verdict(ack(9)), unsigned{XDP_DROP}) << ipv6;
    EXPECT_EQ(strays(), before + 1) << ipv6;
    other = FileDescriptor();
    EXPECT_EQ(verdict(ack(9)), unsigned{XDP_DROP}) << "no process has queue 0, " << ipv6;
    self_.port = 4801;
    EXPECT_EQ(verdict(ack(9)), unsigned{XDP_PASS}) << "it has no queue, " << ipv6;
    self_.port = 4793;
  }
}

TEST_F(PdcGuardTest, EndedOwnerOfAnotherQueue_GuardsNothing) {
  const FepAddress ended = self_;
  FepAddress next = self_;
  next.port = 4800;
  ASSERT_TRUE(program_.give_queue(5, {socket_.get(), guard_->fd(), ended, kUdp}));
  const FileDescriptor socket(::socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0));
  ASSERT_TRUE(program_.give_queue(0, {socket.get(), guard_->fd(), next, kUdp}));
  EXPECT_EQ(verdict(ack(9)), unsigned{XDP_DROP});
  ASSERT_TRUE(program_.give_queue(5, {socket.get(), guard_->fd(), next, kUdp}));
  EXPECT_EQ(verdict(ack(9)), unsigned{XDP_PASS}) << "another endpoint has the queue";
  ASSERT_TRUE(program_.give_queue(5, {socket_.get(), guard_->fd(), ended, kUdp}));
  EXPECT_EQ(verdict(ack(9)), unsigned{XDP_DROP});
  socket_ = FileDescriptor();
  EXPECT_EQ(verdict(ack(9)), unsigned{XDP_PASS}) << "its process has ended";
}

TEST_F(PdcGuardTest, TimeOfAVerdict) {
  const auto note = [&](const char* what, const Header& packet, std::uint32_t host) {
    verdict(packet, host, 1'000'000);
    RecordProperty(what, static_cast<int>(ns_));
    std::printf("[ measured ] %s: %u ns\n", what, ns_);
  };
  guard_ = GuardMap::make();
  take(false);
  note("request, nothing guarded", request(kOpen), 1);
  guard_->start(kShare, hours(1));
  guard_->open(PdcId{kOpen});
  note("request for an open PDC", request(kOpen), 1);
  note("ACK for no PDC, dropped", ack(9), 1);
  note("request for no PDC", request(9), 1);
  note("SYN", syn(1), 1);
  self_.port = 4801;
  note("to no endpoint", ack(9), 1);
  self_.port = 4793;
  EXPECT_GT(strays(), 900'000U);
}

}  // namespace
}  // namespace uet::nic
