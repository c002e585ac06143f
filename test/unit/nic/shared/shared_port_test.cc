// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Who gets a packet to a shared port: real sockets at an address of this test's own, and the kernel
// running the program, which has no trial runs for programs of this kind.
#include "nic/shared_port.h"
#include "base/peer_ports.h"

#include <gmock/gmock.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>

#include <array>
#include <csignal>
#include <random>
#include <vector>

#include "nic/slot_filter.h"
#include "nic/socket.h"
#include "nic/udp.h"
#include "uet/wire/pds.h"
#include "uet/wire/ses.h"
#include "unit/nic/nic_testing.h"
#include "wire/frame.h"

namespace uet::nic {
namespace {

using ::testing::HasSubstr;
using wire::NextHdr;
using wire::PdsType;
using Bytes = std::vector<std::byte>;

constexpr std::size_t kRoom = 256;
constexpr std::uint16_t kPdcIds = 65536 / kSharedSlots;

FileDescriptor udp_socket() {
  return FileDescriptor(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

bool bind_to(int socket, const FepAddress& address) {
  SocketAddress bound;
  write_socket_address(address, bound);
  return ::bind(socket, &bound.any, socket_address_length(false)) == 0;
}

// A process's two sockets.
struct Member {
  FileDescriptor receiver = udp_socket();
  FileDescriptor sender = udp_socket();
  FepAddress address;
  std::string message;

  Result<FepAddress> join(const FabricAddress& ip, std::optional<std::uint8_t> wanted = {}) {
    const auto joined = join_shared_port(ip, wanted, receiver.get(), sender.get(), message);
    if (!joined) return joined.error();
    return address = joined.value().address;
  }
  std::uint8_t slot() const { return slot_of_port(address.port).value_or(0xFF); }
  // The next packet that has arrived, empty if none has.
  Bytes take() {
    Bytes bytes(kRoom);
    const ssize_t length = ::recv(receiver.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    bytes.resize(length < 0 ? 0 : static_cast<std::size_t>(length));
    return bytes;
  }
};

template <class Header>
Bytes packet_of(const Header& header, const wire::SesRequest* request = nullptr) {
  Bytes bytes(kRoom);
  std::size_t length = header.encode(bytes.data());
  if (request != nullptr) length += request->encode(bytes.data() + length);
  bytes.resize(length);
  return bytes;
}

wire::SesRequest request_to(std::uint16_t pid_on_fep, NextHdr form) {
  wire::SesRequest request;
  request.next_hdr = form;
  request.opcode = form == NextHdr::RequestSmall ? wire::SesOpcode::Write : wire::SesOpcode::Send;
  request.job_id = {0xFFFFFF};
  request.pid_on_fep = {pid_on_fep};
  request.resource_index = {0xFFF};
  request.buffer_offset = ~std::uint64_t{0};
  return request;
}

// One of each kind that reaches the process at `slot`.
std::vector<Bytes> packets_for(std::uint8_t slot) {
  std::vector<Bytes> packets;
  const std::uint16_t other = (slot + 1U) % kSharedSlots;
  const PdcId mine{static_cast<std::uint16_t>(slot * kPdcIds + kPdcIds - 1)};
  const PdcId others{static_cast<std::uint16_t>(other * kPdcIds + 1)};
  const std::uint32_t my_rudi = std::uint32_t{slot} << (32 - kSlotBits) | 7;
  for (const NextHdr form : {NextHdr::RequestSmall, NextHdr::RequestMedium, NextHdr::RequestStd}) {
    for (const std::uint16_t pid : {std::uint16_t{slot}, std::uint16_t(slot + 5 * kSharedSlots)}) {
      const wire::SesRequest request = request_to(pid, form);
      for (const PdsType type :
           {PdsType::RudReq, PdsType::RodReq, PdsType::RudCcReq, PdsType::RodCcReq}) {
        packets.push_back(packet_of(
            wire::RequestHeader{.type = type, .next_hdr = form, .syn = true, .spdcid = others},
            &request));
      }
      packets.push_back(
          packet_of(wire::RudiHeader{.next_hdr = form, .pkt_id = ~my_rudi}, &request));
      packets.push_back(packet_of(wire::UudHeader{.next_hdr = form}, &request));
    }
    // Established: the PDC decides, and not what else is in the packet.
    const wire::SesRequest request = request_to(other, form);
    for (const PdsType type : {PdsType::RudReq, PdsType::RodReq, PdsType::RudCcReq}) {
      packets.push_back(packet_of(
          wire::RequestHeader{.type = type, .next_hdr = form, .spdcid = others, .dpdcid = mine},
          &request));
    }
  }
  for (const PdsType type : {PdsType::Ack, PdsType::AckCc, PdsType::AckCcx}) {
    packets.push_back(packet_of(wire::AckHeader{.type = type, .spdcid = others, .dpdcid = mine}));
  }
  packets.push_back(packet_of(wire::NackHeader{.spdcid = others, .dpdcid = mine}));
  packets.push_back(packet_of(wire::NackHeader{.nt = true, .nack_psn = Psn{my_rudi}}));
  packets.push_back(packet_of(wire::ControlHeader{.spdcid = others, .dpdcid = mine}));
  packets.push_back(packet_of(wire::RudiHeader{.type = PdsType::RudiResp, .pkt_id = my_rudi}));
  return packets;
}

// Loading takes rights.
class SharedPort : public ::testing::Test {
 protected:
  void SetUp() override {
    Member first;
    const auto joined = first.join(ip_);
    if (!joined && joined.error() == Error::NotSupported) GTEST_SKIP() << first.message;
    ASSERT_TRUE(joined) << first.message;
  }

  std::vector<Member> join(std::size_t count) {
    std::vector<Member> members(count);
    for (Member& member : members) EXPECT_TRUE(member.join(ip_)) << member.message;
    return members;
  }

  void send(const Bytes& packet) {
    SocketAddress to;
    write_socket_address({ip_, kUetUdpPort}, to);
    ::sendto(stranger_.get(), packet.data(), packet.size(), 0, &to.any,
             socket_address_length(false));
  }

  std::uint64_t dropped() { return dropped_at_shared_port(ip_).value_or(~std::uint64_t{0}); }

  const FabricAddress ip_ = own_loopback_address();
  FileDescriptor stranger_ = udp_socket();
};

TEST_F(SharedPort, ProcessesTakeSlotsInTurnAndAreNamedByThem) {
  const std::vector<Member> members = join(3);
  for (std::uint8_t i = 0; i < 3; ++i) {
    EXPECT_EQ(members[i].address.ip, ip_);
    EXPECT_EQ(members[i].slot(), i);
    EXPECT_EQ(wire_address(members[i].address).port, kUetUdpPort);
    EXPECT_EQ(PeerPorts{}.reply_address(members[i].address), members[i].address);
  }
}

TEST_F(SharedPort, EachKindOfPacketReachesTheProcessThatItNames) {
  std::vector<Member> members = join(3);
  for (Member& wanted : members) {
    const std::vector<Bytes> packets = packets_for(wanted.slot());
    for (std::size_t i = 0; i < packets.size(); ++i) {
      send(packets[i]);
      for (Member& member : members) {
        const bool mine = &member == &wanted;
        EXPECT_EQ(member.take(), mine ? packets[i] : Bytes()) << i << " at " << int{member.slot()};
      }
    }
  }
  EXPECT_EQ(dropped(), 0U);
}

TEST_F(SharedPort, PacketsForNoProcessAreDroppedAndCounted) {
  std::vector<Member> members = join(2);
  std::vector<Bytes> packets = packets_for(9);  // slot 9 is empty
  packets.push_back({});
  packets.push_back({std::byte{0x10}});
  packets.push_back(packet_of(wire::ControlHeader{.syn = true, .spdcid = PdcId{1}}));
  packets.push_back(packet_of(wire::RequestHeader{.syn = true, .spdcid = PdcId{1}}));
  packets.push_back(packet_of(wire::RudiHeader{}));
  for (const unsigned type : {0, 1, 15, 31}) packets.push_back(Bytes(64, std::byte(type << 3)));
  for (Bytes whole : packets_for(1)) {  // cut off in front of the field that names the slot
    const bool by_pdc = whole.size() == 12 || whole.size() == 16 || whole.size() >= 40;
    whole.resize(by_pdc ? 9 : 3);
    if ((whole[0] >> 3) != std::byte{5} && (whole[0] >> 3) != std::byte{10}) {
      packets.push_back(whole);
    }
  }
  for (const Bytes& packet : packets) send(packet);
  for (Member& member : members) EXPECT_EQ(member.take(), Bytes()) << int{member.slot()};
  EXPECT_EQ(dropped(), packets.size());
}

TEST_F(SharedPort, GarbageReachesOneProcessAtMost) {
  std::vector<Member> members = join(4);
  std::mt19937 random(1);
  std::uint64_t received = 0;
  constexpr std::uint64_t kPackets = 2000;
  for (std::uint64_t i = 0; i < kPackets; ++i) {
    Bytes packet(1 + random() % 60);
    for (std::byte& byte : packet) byte = std::byte(random());
    send(packet);
    for (Member& member : members) received += member.take().empty() ? 0 : 1;
  }
  EXPECT_GT(received, 0U);
  EXPECT_EQ(received + dropped(), kPackets);
}

// No other process gets the packets of a process that has ended; the next process in its slot gets
// only packets that arrive later.
TEST_F(SharedPort, SlotIsEmptyUntilTheNextProcessTakesIt) {
  std::vector<Member> members = join(3);
  const Bytes packet = packets_for(1)[0];
  send(packet);
  members[1] = Member();
  send(packet);
  EXPECT_EQ(dropped(), 1U);
  EXPECT_EQ(members[0].take(), Bytes());
  EXPECT_EQ(members[2].take(), Bytes());
  Member next;
  ASSERT_TRUE(next.join(ip_));
  EXPECT_EQ(next.slot(), 1U);
  EXPECT_EQ(next.take(), Bytes());
  send(packet);
  EXPECT_EQ(next.take(), packet);
}

TEST_F(SharedPort, AKilledProcessLeavesItsSlotOnly) {
  std::vector<Member> members = join(1);
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    Member member;
    const bool joined = member.join(ip_).ok() && member.slot() == 1;
    (void)!::write(ends[1], &joined, 1);
    ::pause();
    ::_exit(0);
  }
  bool joined = false;
  EXPECT_EQ(::read(ends[0], &joined, 1), 1);
  EXPECT_TRUE(joined);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ::close(ends[0]);
  ::close(ends[1]);
  send(packets_for(0)[0]);
  EXPECT_EQ(members[0].take(), packets_for(0)[0]);
  Member next;
  ASSERT_TRUE(next.join(ip_)) << next.message;
  EXPECT_EQ(next.slot(), 1U);
}

TEST_F(SharedPort, AWantedSlotIsThatOneOrNone) {
  Member member;
  ASSERT_TRUE(member.join(ip_, std::uint8_t{7}));
  EXPECT_EQ(member.slot(), 7U);
  Member other;
  const auto refused = other.join(ip_, std::uint8_t{7});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error(), Error::AddressInUse);
  EXPECT_THAT(other.message, HasSubstr("slot 7 at port 4793 of"));
}

TEST_F(SharedPort, WhenAllSlotsAreTakenTheNextIsRefused) {
  const std::vector<Member> members = join(kSharedSlots);
  Member next;
  const auto refused = next.join(ip_);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error(), Error::AddressInUse);
  EXPECT_THAT(next.message, HasSubstr("all 32 slots"));
}

// Foreign sockets with SO_REUSEPORT share a port with all processes of their user: we would receive
// their packets.
TEST_F(SharedPort, APortOfOthersIsLeftToThem) {
  for (const bool shares : {false, true}) {
    const FileDescriptor holder = udp_socket();
    const int on = 1;
    if (shares) ::setsockopt(holder.get(), SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
    ASSERT_TRUE(bind_to(holder.get(), {ip_, kUetUdpPort}));
    Member member;
    const auto refused = member.join(ip_);
    ASSERT_FALSE(refused) << shares;
    EXPECT_EQ(refused.error(), Error::AddressInUse);
    EXPECT_THAT(member.message, HasSubstr("is taken by a socket that does not share it"));
  }
}

TEST_F(SharedPort, AnAddressOfAnotherHostIsRefused) {
  Member member;
  const auto refused = member.join(ipv4(192, 0, 2, 1));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error(), Error::NoDevice);
}

TEST_F(SharedPort, AddressesHaveNothingToDoWithEachOther) {
  FabricAddress elsewhere = ip_;
  elsewhere.bytes[1] ^= 0x80;
  std::vector<Member> members = join(1);
  Member other;
  ASSERT_TRUE(other.join(elsewhere)) << other.message;
  EXPECT_EQ(other.slot(), 0U);
  send(packets_for(0)[0]);
  EXPECT_EQ(other.take(), Bytes());
  EXPECT_EQ(members[0].take(), packets_for(0)[0]);
}

TEST_F(SharedPort, WithTheLastProcessEverythingGoes) {
  {
    const std::vector<Member> members = join(2);
    EXPECT_EQ(dropped_at_shared_port(ip_), 0U);
  }
  EXPECT_FALSE(dropped_at_shared_port(ip_));
  EXPECT_TRUE(bind_to(udp_socket().get(), {ip_, kUetUdpPort})) << "the port is free";
}

TEST_F(SharedPort, WithoutTheRightTheReasonIsTold) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setgroups(0, nullptr) != 0 || ::setuid(65534) != 0) ::_exit(2);
    Member member;
    const auto refused = member.join(ip_);
    const bool told = member.message.find("needs CAP_BPF and CAP_SYS_ADMIN") != std::string::npos;
    ::_exit(!refused && refused.error() == Error::NotSupported && told ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

// The whole back end: packets leave from the port of the slot and arrive at the shared one.
TEST_F(SharedPort, NicsExchangePackets) {
  std::vector<std::unique_ptr<UdpNic>> nics;
  for (int i = 0; i < 2; ++i) {
    UdpOptions options;
    options.ip = ip_;
    options.gro = false;
    options.bind = [&](int receiver, int sender, std::string& message) {
      return join_shared_port(ip_, {}, receiver, sender, message);
    };
    std::string message;
    auto nic = UdpNic::open(options, message);
    ASSERT_TRUE(nic) << message;
    nics.push_back(std::move(nic).value());
  }
  for (std::size_t from = 0; from < 2; ++from) {
    UdpNic& receiver = *nics[1 - from];
    const Bytes bytes = packets_for(static_cast<std::uint8_t>(1 - from))[0];
    Packet packet;
    std::copy(bytes.begin(), bytes.end(), packet.append(bytes.size()));
    packet.to = receiver.local_address();
    const std::array<const Packet*, 1> burst{&packet};
    ASSERT_EQ(nics[from]->tx_burst(burst), 1U);
    pollfd ready{.fd = receiver.wait_fd(), .events = POLLIN, .revents = 0};
    ASSERT_EQ(::poll(&ready, 1, 10'000), 1);
    std::array<RxPacket, 2> arrived;
    ASSERT_EQ(receiver.rx_burst(arrived, Time{}), 1U);
    EXPECT_EQ(Bytes(arrived[0].bytes.begin(), arrived[0].bytes.end()), bytes);
    EXPECT_EQ(arrived[0].source, nics[from]->local_address());
  }
}

// A NIC does not count packets that were dropped before it was opened.
TEST_F(SharedPort, NicsCountWhatIsDroppedAtTheirPort) {
  const std::vector<Member> members = join(1);
  const Bytes packet = packets_for(9)[0];
  send(packet);
  UdpOptions options;
  options.ip = ip_;
  options.bind = [&](int receiver, int sender, std::string& message) {
    return join_shared_port(ip_, {}, receiver, sender, message);
  };
  std::string message;
  const auto nic = UdpNic::open(options, message);
  ASSERT_TRUE(nic) << message;
  EXPECT_EQ(nic.value()->counters().shared_port_dropped, 0U);
  send(packet);
  send(packet);
  EXPECT_EQ(nic.value()->counters().shared_port_dropped, 2U);
  EXPECT_EQ(dropped(), 3U);
}

// A stranger's packets for PDCs that are not open cost their process nothing (PDS-236).
TEST_F(SharedPort, Pds236_GuardDropsStrays) {
  UdpOptions options;
  options.ip = ip_;
  options.bind = [&](int receiver, int sender, std::string& message) {
    return join_shared_port(ip_, {}, receiver, sender, message);
  };
  std::string message;
  const auto first = UdpNic::open(options, message);
  const auto second = UdpNic::open(options, message);
  ASSERT_TRUE(first && second) << message;
  ASSERT_NE(first.value()->guard(), nullptr);
  const auto slot = *slot_of_port(first.value()->local_address().port);
  const PdcId id{static_cast<std::uint16_t>(slot * kPdcIds + 5)};
  const Bytes ack = packet_of(wire::AckHeader{.spdcid = PdcId{9}, .dpdcid = id});
  const auto arrived = [&] {
    std::array<RxPacket, 4> packets;
    send(ack);
    return first.value()->rx_burst(packets, Time{});
  };
  const auto strays = [](const auto& nic) { return nic.value()->counters().strays_dropped; };
  EXPECT_EQ(arrived(), 1U) << "nothing is guarded yet";
  first.value()->guard()->start(4, std::chrono::hours(1));
  EXPECT_EQ(arrived(), 0U);
  first.value()->guard()->open(id);
  EXPECT_EQ(arrived(), 1U);
  first.value()->guard()->close(id);
  EXPECT_EQ(arrived(), 0U);
  EXPECT_EQ(strays(first), 2U);
  EXPECT_EQ(strays(second), 0U);
  EXPECT_EQ(dropped(), 0U) << "they had a process";
}

// The same port, and the same source.
TEST_F(SharedPort, Pds236_GuardLimitsSyns) {
  UdpOptions options;
  options.ip = ip_;
  options.bind = [&](int receiver, int sender, std::string& message) {
    return join_shared_port(ip_, {}, receiver, sender, message);
  };
  std::string message;
  const auto nic = UdpNic::open(options, message);
  ASSERT_TRUE(nic) << message;
  const auto slot = *slot_of_port(nic.value()->local_address().port);
  nic.value()->guard()->start(4, std::chrono::hours(1));
  const wire::SesRequest request = request_to(slot, NextHdr::RequestStd);
  const auto arrived = [&](std::uint16_t spdcid) {
    std::array<RxPacket, 4> packets;
    send(packet_of(wire::RequestHeader{.next_hdr = NextHdr::RequestStd,
                                       .syn = true,
                                       .psn = Psn{70'000},
                                       .spdcid = PdcId{spdcid}},
                   &request));
    return nic.value()->rx_burst(packets, Time{});
  };
  for (std::uint16_t i = 1; i <= 4; ++i) EXPECT_EQ(arrived(i), 1U) << i;
  EXPECT_EQ(arrived(5), 0U);
  EXPECT_EQ(arrived(5), 1U) << "sent again";
  EXPECT_EQ(nic.value()->counters().syns_dropped, 1U);
}

// A packet socket's filter sees whole frames, as does that of any socket: here one end of a pair.
class SlotFilter : public SharedPort, public ::testing::WithParamInterface<bool> {
 protected:
  static constexpr std::uint8_t kSlot = 7;

  void SetUp() override {
    SharedPort::SetUp();
    if (IsSkipped()) return;
    if (GetParam()) {
      self_.is_ipv6 = true;
      for (std::uint8_t i = 0; i < 16; ++i) self_.bytes[i] = static_cast<std::uint8_t>(0x20 + i);
    } else {
      self_ = ipv4(192, 0, 2, 1);
    }
    std::array<int, 2> ends{};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, ends.data()), 0);
    near_ = FileDescriptor(ends[0]);
    far_ = FileDescriptor(ends[1]);
    const FepAddress slot{self_, kFirstSlotPort + kSlot};
    ASSERT_TRUE(take_only_frames_to_slot(near_.get(), slot)) << std::strerror(errno);
  }

  Bytes frame_with(const Bytes& packet, const FabricAddress& to, std::uint16_t port) const {
    wire::FrameFields fields;
    fields.source = to;
    fields.destination = to;
    fields.port = port;
    const std::array pieces{Slice{packet.data(), static_cast<std::uint32_t>(packet.size())}};
    Bytes frame(wire::kMaxFrameHeaderBytes);
    frame.resize(wire::write_frame_headers(frame.data(), {}, fields, pieces));
    frame.insert(frame.end(), packet.begin(), packet.end());
    return frame;
  }
  Bytes frame_with(const Bytes& packet) const { return frame_with(packet, self_, kUetUdpPort); }

  // A whole frame has come, or none.
  bool takes(const Bytes& frame) {
    EXPECT_EQ(::send(far_.get(), frame.data(), frame.size(), 0) >= 0 || errno == EPERM, true);
    Bytes bytes(2 * kRoom);
    const ssize_t length = ::recv(near_.get(), bytes.data(), bytes.size(), 0);
    bytes.resize(length < 0 ? 0 : static_cast<std::size_t>(length));
    EXPECT_TRUE(length < 0 || bytes == frame);
    return length >= 0;
  }

  FabricAddress self_;
  FileDescriptor near_;
  FileDescriptor far_;
};

TEST_P(SlotFilter, EachKindForTheSlot_IsTakenOthersAreNot) {
  for (std::uint8_t slot = 0; slot < kSharedSlots; ++slot) {
    const std::vector<Bytes> packets = packets_for(slot);
    for (std::size_t i = 0; i < packets.size(); ++i) {
      EXPECT_EQ(takes(frame_with(packets[i])), slot == kSlot) << i << " for " << int{slot};
    }
  }
}

TEST_P(SlotFilter, TakesNothingThatIsNotForThePort) {
  const Bytes packet = packets_for(kSlot)[0];
  ASSERT_TRUE(takes(frame_with(packet)));
  FabricAddress other = self_;
  other.bytes[3] ^= 1;
  EXPECT_FALSE(takes(frame_with(packet, other, kUetUdpPort)));
  other = self_;
  if (GetParam()) {
    other.bytes[15] ^= 1;
    EXPECT_FALSE(takes(frame_with(packet, other, kUetUdpPort)));
  }
  EXPECT_FALSE(takes(frame_with(packet, self_, kFirstSlotPort + kSlot)));
  Bytes frame = frame_with(packet);
  const std::size_t protocol_at = GetParam() ? 14 + 6 : 14 + 9;
  frame[protocol_at] = std::byte{6};
  EXPECT_FALSE(takes(frame));
  for (std::size_t length = 1; length < frame_with(packet).size(); ++length) {
    frame = frame_with(packet);
    frame.resize(length);
    takes(frame);  // cut off anywhere: whatever is decided, the kernel reads nothing behind it
  }
}

TEST_P(SlotFilter, FindsThePacketBehindOptionsAndNotInFragments) {
  const Bytes packet = packets_for(kSlot)[0];
  Bytes frame = frame_with(packet);
  if (GetParam()) {
    for (const std::uint8_t kind : {0, 43, 60}) {
      Bytes longer = frame_with(packet);
      const Bytes header = {std::byte{17}, std::byte{1}};  // 16 bytes, then UDP
      longer[14 + 6] = std::byte{kind};
      longer.insert(longer.begin() + 14 + 40, 16, std::byte{0});
      std::copy(header.begin(), header.end(), longer.begin() + 14 + 40);
      EXPECT_TRUE(takes(longer)) << int{kind};
      longer[14 + 40] = std::byte{44};  // a fragment
      EXPECT_FALSE(takes(longer)) << int{kind};
    }
    return;
  }
  frame[14 + 6] = std::byte{0x20};  // more fragments
  EXPECT_FALSE(takes(frame));
  frame = frame_with(packet);
  frame[14 + 7] = std::byte{1};  // not the first
  EXPECT_FALSE(takes(frame));
  frame = frame_with(packet);
  frame[14] = std::byte{0x46};  // 4 bytes of options
  frame.insert(frame.begin() + 14 + 20, 4, std::byte{1});
  EXPECT_TRUE(takes(frame));
}

INSTANTIATE_TEST_SUITE_P(BothFamilies, SlotFilter, ::testing::Bool(),
                         [](const auto& family) { return family.param ? "Ipv6" : "Ipv4"; });

}  // namespace
}  // namespace uet::nic
