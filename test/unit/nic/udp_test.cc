// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// UdpNic over the real kernel on loopback; for what a healthy kernel does not do (full queue, no
// segmentation, no route) an unwilling sendmmsg takes its place.
#include "nic/udp.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>

#include <cerrno>
#include <thread>

#include "nic/clock.h"
#include "nic_testing.h"

namespace uet::nic {
namespace {

using ::testing::HasSubstr;

std::unique_ptr<UdpNic> open_udp(const UdpOptions& options) {
  std::string message;
  auto nic = UdpNic::open(options, message);
  EXPECT_TRUE(nic.ok()) << message;
  return nic ? std::move(nic).value() : nullptr;
}

UdpOptions own_options() {
  UdpOptions options;
  options.ip = own_loopback_address();
  return options;
}

// Receives until `count` packets have come or two seconds pass without any.
std::vector<Arrival> receive(UdpNic& nic, std::size_t count, std::size_t room = kRxBurst) {
  std::vector<Arrival> arrivals;
  std::vector<RxPacket> out(room);
  while (arrivals.size() < count) {
    const std::size_t n = nic.rx_burst(out, Time{});
    for (std::size_t i = 0; i < n; ++i) arrivals.emplace_back(out[i]);
    if (n > 0 || nic.next_deadline() != kNever) continue;
    pollfd wait{nic.wait_fd(), POLLIN, 0};
    if (::poll(&wait, 1, 2000) <= 0) break;
  }
  return arrivals;
}

void expect_same(const std::vector<Arrival>& arrivals, const PacketSet& packets) {
  ASSERT_EQ(arrivals.size(), packets.all().size());
  for (std::size_t i = 0; i < arrivals.size(); ++i) {
    EXPECT_EQ(arrivals[i].bytes, packets.bytes(i)) << "packet " << i;
  }
}

struct Pair {
  std::unique_ptr<UdpNic> sender;
  std::unique_ptr<UdpNic> receiver;
  FepAddress to() const { return receiver->local_address(); }
};

Pair open_pair(UdpOptions options = own_options()) {
  Pair pair;
  pair.receiver = open_udp(options);
  pair.sender = open_udp(options);
  return pair;
}

TEST(UdpNic, Burst_EqualPacketsArriveCompleteAndInOrder) {
  const Pair pair = open_pair();
  PacketSet packets;
  for (int i = 0; i < 64; ++i) packets.add(pair.to(), 56, 1024);
  ASSERT_EQ(pair.sender->tx_burst(packets.all()), 64U);
  const auto arrivals = receive(*pair.receiver, 64);
  expect_same(arrivals, packets);
  EXPECT_EQ(arrivals[0].source, pair.sender->local_address());
  EXPECT_EQ(arrivals[0].entropy, pair.sender->local_address().port);
  EXPECT_EQ(pair.sender->counters().packets_sent, 64U);
  EXPECT_EQ(pair.sender->counters().bytes_sent, 64U * 1080);
  EXPECT_EQ(pair.receiver->counters().packets_received, 64U);
  EXPECT_EQ(pair.receiver->counters().bytes_received, 64U * 1080);
}

// Short ones take another way into the kernel.
TEST(UdpNic, Burst_OnePacketArrivesWholeWhateverItsLength) {
  const Pair pair = open_pair();
  PacketSet packets;
  for (const std::size_t length : {0, 1, 455, 456, 457, 4000}) packets.add(pair.to(), 56, length);
  for (std::size_t i = 0; i < packets.all().size(); ++i) {
    ASSERT_EQ(pair.sender->tx_burst(packets.all().subspan(i, 1)), 1U);
  }
  expect_same(receive(*pair.receiver, packets.all().size()), packets);
  EXPECT_EQ(pair.sender->counters().packets_sent, packets.all().size());
}

// The first is asked for alone.
TEST(UdpNic, RxBurst_BatchAfterIdle_IsTakenInOrder) {
  const Pair pair = open_pair();
  std::array<RxPacket, kRxBurst> out;
  EXPECT_EQ(pair.receiver->rx_burst(out, Time{}), 0U);
  PacketSet packets;
  for (std::size_t i = 0; i < 40; ++i) packets.add(pair.to(), 56, 100 + i);  // no trains
  ASSERT_EQ(pair.sender->tx_burst(packets.all()), 40U);
  expect_same(receive(*pair.receiver, 40), packets);
  EXPECT_EQ(pair.receiver->rx_burst(out, Time{}), 0U);
}

Time monotonic() { return Time(read_clock(CLOCK_MONOTONIC)); }

Duration g_pause{};
Time g_left{};

int send_and_pause(int fd, mmsghdr* messages, unsigned count, int flags) {
  const int sent = ::sendmmsg(fd, messages, count, flags);
  g_left = monotonic();
  std::this_thread::sleep_for(g_pause);
  return sent;
}

// When the last of 16 packets is said to have left in the last of these calls, after the kernel had
// them all.
Duration last_departure(std::initializer_list<int> pauses_ms) {
  UdpOptions options = own_options();
  options.send_messages = send_and_pause;
  const Pair pair = open_pair(options);
  PacketSet packets;
  for (int i = 0; i < 16; ++i) packets.add(pair.to(), 56, 1024);
  for (const int pause_ms : pauses_ms) {
    g_pause = std::chrono::milliseconds(pause_ms);
    EXPECT_EQ(pair.sender->tx_burst(packets.all()), 16U);
  }
  return packets.all().back()->sent - g_left;
}

// CMS-712: a processor that is taken away in the call does not make packets leave later.
TEST(UdpNic, Cms712_APausedCallDelaysNoDeparture) {
  EXPECT_LE(last_departure({0, 0, 100}), std::chrono::milliseconds(20));
}

// CMS-712: a path that carries packets four times more slowly than before does.
TEST(UdpNic, Cms712_ASlowCallIsSharedOut) {
  EXPECT_GE(last_departure({20, 20, 80}), std::chrono::milliseconds(60));
}

// CMS-712: however late the receiver looks, it learns when they came.
TEST(UdpNic, Cms712_TimesOfDepartureAndArrivalAreKnown) {
  const Duration error = std::chrono::milliseconds(1);  // two clocks, read one after the other
  const Pair pair = open_pair();
  bool known = false;
  // The kernel begins to note arrivals a little after it was asked to.
  for (int attempt = 0; attempt < 100 && !known; ++attempt) {
    PacketSet packets;
    for (int i = 0; i < 8; ++i) packets.add(pair.to(), 56, 1024);
    const Time before = monotonic();
    ASSERT_EQ(pair.sender->tx_burst(packets.all()), 8U);
    const Time after = monotonic();
    Time last = before;
    for (const Packet* packet : packets.all()) {
      EXPECT_GE(packet->sent, last);
      last = packet->sent;
    }
    EXPECT_LE(last, after);
    while (monotonic() < after + std::chrono::milliseconds(5)) ::sched_yield();
    const auto arrivals = receive(*pair.receiver, 8);
    ASSERT_EQ(arrivals.size(), 8U);
    known = true;
    for (const Arrival& arrival : arrivals) {
      EXPECT_GE(arrival.arrived, before - error);
      known = known && arrival.arrived <= after + error;
    }
  }
  EXPECT_TRUE(known);
}

TEST(UdpNic, ArrivalsOnLoopbackAreToldOnlyWhereAskedFor) {
  UdpOptions options = own_options();
  options.arrival_times_on_loopback = false;
  const Pair pair = open_pair(options);
  for (int attempt = 0; attempt < 100; ++attempt) {
    PacketSet packets;
    packets.add(pair.to(), 56, 64);
    ASSERT_EQ(pair.sender->tx_burst(packets.all()), 1U);
    const auto arrivals = receive(*pair.receiver, 1);
    ASSERT_EQ(arrivals.size(), 1U);
    ASSERT_EQ(arrivals[0].arrived, Time{});
    // The kernel would begin to note arrivals a little after it was asked to.
    if (attempt > 90) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

TEST(UdpNic, Burst_TrainsOf8KiBPayloadArrive) {
  const Pair pair = open_pair();
  PacketSet packets;
  for (int i = 0; i < 40; ++i) packets.add(pair.to(), 56, 8192);
  packets.add(pair.to(), 56, 100);
  ASSERT_EQ(pair.sender->tx_burst(packets.all()), 41U);
  expect_same(receive(*pair.receiver, 41), packets);
  // No train was too long for the kernel.
  EXPECT_EQ(pair.sender->counters().kernel_errors, 0U);
  EXPECT_EQ(pair.sender->counters().gso_switched_off, 0U);
}

// The kernel shrinks the control buffer of a datagram to the bytes used, and writes more control
// messages for a train than for one packet: the ECN marks would no longer fit.
TEST(UdpNic, Burst_TrainAfterSinglePacket_KeepsMarks) {
  const Pair pair = open_pair();
  for (const std::size_t count : {1, 4, 1, 4}) {
    PacketSet packets;
    for (std::size_t i = 0; i < count; ++i) {
      packets.add(pair.to(), 56, 1024);
      packets.last().ecn = Ecn::Ect0;
    }
    ASSERT_EQ(pair.sender->tx_burst(packets.all()), count);
    const auto arrivals = receive(*pair.receiver, count);
    expect_same(arrivals, packets);
    for (const Arrival& arrival : arrivals) EXPECT_EQ(arrival.ecn, Ecn::Ect0);
  }
}

TEST(UdpNic, Burst_MixedSizesTwoSlicesAndNoPayload) {
  const Pair pair = open_pair();
  PacketSet packets;
  const std::size_t sizes[] = {0,    1,    1000, 1000, 1000,  7,     7, 1000,
                               2000, 8192, 8192, 0,    60000, 60000, 3};
  for (const std::size_t size : sizes) packets.add(pair.to(), 12, size / 3, size - size / 3);
  packets.add(pair.to(), 0, 500);
  ASSERT_EQ(pair.sender->tx_burst(packets.all()), packets.all().size());
  expect_same(receive(*pair.receiver, packets.all().size()), packets);
}

TEST(UdpNic, Burst_TwoReceiversInTurn) {
  const Pair pair = open_pair();
  const auto other = open_udp(own_options());
  PacketSet packets;
  for (int i = 0; i < 10; ++i) {
    packets.add(i % 2 == 0 ? pair.to() : other->local_address(), 8, 50);
  }
  ASSERT_EQ(pair.sender->tx_burst(packets.all()), 10U);
  const auto even = receive(*pair.receiver, 5);
  const auto odd = receive(*other, 5);
  ASSERT_EQ(even.size(), 5U);
  ASSERT_EQ(odd.size(), 5U);
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(even[i].bytes, packets.bytes(2 * i));
    EXPECT_EQ(odd[i].bytes, packets.bytes(2 * i + 1));
  }
}

TEST(UdpNic, Burst_LongerThanOneBatch) {
  const Pair pair = open_pair();
  PacketSet packets;
  for (int i = 0; i < 200; ++i) packets.add(pair.to(), 20, 300);
  ASSERT_EQ(pair.sender->tx_burst(packets.all()), 200U);
  expect_same(receive(*pair.receiver, 200), packets);
}

TEST(UdpNic, Burst_WithoutSegmentationAndCoalescing) {
  UdpOptions options = own_options();
  options.gso = options.gro = false;
  const Pair pair = open_pair(options);
  PacketSet packets;
  for (int i = 0; i < 64; ++i) packets.add(pair.to(), 56, 1024);
  ASSERT_EQ(pair.sender->tx_burst(packets.all()), 64U);
  expect_same(receive(*pair.receiver, 64), packets);
}

// WIRE 1.3: data ECN-capable, control packets with DSCP 46, CE seen by the receiver.
void expect_tos_seen(const UdpOptions& options, bool alone) {
  const Pair pair = open_pair(options);
  PacketSet packets;
  const Ecn ecn[] = {Ecn::NotEct, Ecn::Ect0, Ecn::Ect0, Ecn::Ect1, Ecn::Ce, Ecn::Ce};
  const std::uint8_t dscp[] = {0, 0, 0, 46, 46, 63};
  for (std::size_t i = 0; i < std::size(ecn); ++i) {
    packets.add(pair.to(), 56, 200);
    packets.last().ecn = ecn[i];
    packets.last().dscp = dscp[i];
  }
  const std::size_t burst = alone ? 1 : std::size(ecn);
  for (std::size_t i = 0; i < std::size(ecn); i += burst) {
    ASSERT_EQ(pair.sender->tx_burst(packets.all().subspan(i, burst)), burst);
  }
  const auto arrivals = receive(*pair.receiver, std::size(ecn));
  expect_same(arrivals, packets);
  for (std::size_t i = 0; i < std::size(ecn); ++i) {
    EXPECT_EQ(arrivals[i].ecn, ecn[i]) << i;
    EXPECT_EQ(arrivals[i].dscp, dscp[i]) << i;
  }
}

// Whatever most packets are said to have.
void expect_tos_seen(UdpOptions options) {
  for (const int usual : {0, 2, 46 << 2, 63 << 2 | 3}) {
    options.usual_tos = static_cast<std::uint8_t>(usual);
    for (const bool alone : {false, true}) expect_tos_seen(options, alone);
  }
}

TEST(UdpNic, Wire13_TosReachesTheReceiverOverIpv4) { expect_tos_seen(own_options()); }

// A mark of one packet in a train does not apply to the other packets.
TEST(UdpNic, Cms701_CoalescedPacketsKeepTheirOwnMarks) {
  const Pair pair = open_pair();
  PacketSet packets;
  const auto ecn_of = [](int i) { return i == 20 || i == 41 ? Ecn::Ce : Ecn::Ect0; };
  for (int i = 0; i < 60; ++i) {
    packets.add(pair.to(), 56, 1024);
    packets.last().ecn = ecn_of(i);
  }
  ASSERT_EQ(pair.sender->tx_burst(packets.all()), 60U);
  const auto arrivals = receive(*pair.receiver, 60);
  expect_same(arrivals, packets);
  for (int i = 0; i < 60; ++i) EXPECT_EQ(arrivals[static_cast<std::size_t>(i)].ecn, ecn_of(i)) << i;
}

bool has_ipv6_loopback() {
  UdpOptions options;
  options.ip = ipv6_loopback();
  std::string message;
  return UdpNic::open(options, message).ok();
}

TEST(UdpNic, Wire13_TosReachesTheReceiverOverIpv6) {
  if (!has_ipv6_loopback()) GTEST_SKIP() << "this host has no ::1";
  UdpOptions options;
  options.ip = ipv6_loopback();
  expect_tos_seen(options);
}

TEST(UdpNic, Burst_Ipv6TrainsArrive) {
  if (!has_ipv6_loopback()) GTEST_SKIP() << "this host has no ::1";
  UdpOptions options;
  options.ip = ipv6_loopback();
  const Pair pair = open_pair(options);
  PacketSet packets;
  for (int i = 0; i < 30; ++i) packets.add(pair.to(), 56, 4096);
  ASSERT_EQ(pair.sender->tx_burst(packets.all()), 30U);
  const auto arrivals = receive(*pair.receiver, 30);
  expect_same(arrivals, packets);
  EXPECT_EQ(arrivals[0].source, pair.sender->local_address());
}

TEST(UdpNic, RxBurst_SmallOutKeepsTheRestForLater) {
  const Pair pair = open_pair();
  PacketSet packets;
  for (int i = 0; i < 50; ++i) packets.add(pair.to(), 16, 700);
  ASSERT_EQ(pair.sender->tx_burst(packets.all()), 50U);
  expect_same(receive(*pair.receiver, 50, 3), packets);
  EXPECT_EQ(pair.receiver->next_deadline(), kNever);
}

TEST(UdpNic, RxBurst_ViewsLastUntilTheNextBurst) {
  const Pair pair = open_pair();
  PacketSet packets;
  for (int i = 0; i < 8; ++i) packets.add(pair.to(), 16, 700);
  ASSERT_EQ(pair.sender->tx_burst(packets.all()), 8U);
  std::array<RxPacket, 4> out;
  ASSERT_EQ(pair.receiver->rx_burst(out, Time{}), 4U);
  EXPECT_EQ(pair.receiver->next_deadline(), Time{}) << "packets wait although the socket is empty";
  ASSERT_EQ(pair.receiver->rx_burst(out, Time{}), 4U);
  // New packets must not overwrite those just handed out.
  ASSERT_EQ(pair.sender->tx_burst(packets.all()), 8U);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(Arrival(out[i]).bytes, packets.bytes(4 + i));
}

TEST(UdpNic, RxBurst_EmptyDatagramIsSkipped) {
  const Pair pair = open_pair();
  PacketSet packets;
  packets.add(pair.to(), 0, 0);
  packets.add(pair.to(), 10, 10);
  ASSERT_EQ(pair.sender->tx_burst(packets.all()), 2U);
  const auto arrivals = receive(*pair.receiver, 1);
  ASSERT_EQ(arrivals.size(), 1U);
  EXPECT_EQ(arrivals[0].bytes, packets.bytes(1));
}

TEST(UdpNic, RxBurst_NothingThere) {
  const auto nic = open_udp(own_options());
  std::array<RxPacket, 4> out;
  EXPECT_EQ(nic->rx_burst(out, Time{}), 0U);
  EXPECT_EQ(nic->counters().kernel_errors, 0U);
}

TEST(UdpNic, RxBurst_TinyReceiveBufferLosesAndCounts) {
  UdpOptions options = own_options();
  options.receive_buffer_bytes = 4096;
  options.gso = false;
  const Pair pair = open_pair(options);
  PacketSet packets;
  for (int i = 0; i < 64; ++i) packets.add(pair.to(), 56, 4096);
  ASSERT_EQ(pair.sender->tx_burst(packets.all()), 64U);
  std::array<RxPacket, kRxBurst> out;
  EXPECT_LT(pair.receiver->rx_burst(out, Time{}), 64U);
  // The kernel tells the number of lost packets with the next one that it keeps.
  ASSERT_EQ(pair.sender->tx_burst(packets.all().first(1)), 1U);
  receive(*pair.receiver, 1);
  EXPECT_GT(pair.receiver->counters().receive_overflows, 0U);
}

// The unwilling kernel. A scripted errno is returned once, in order; 0 means: send for real, but at
// most `g_most_messages`. When the script is used up, everything is sent.
std::vector<int> g_script;
std::size_t g_script_at = 0;
unsigned g_most_messages = 1000;
unsigned g_calls = 0;
bool g_segmentation_works = true;

bool has_segment_option(const mmsghdr* messages, unsigned count) {
  for (unsigned i = 0; i < count; ++i) {
    msghdr header = messages[i].msg_hdr;
    for (cmsghdr* c = CMSG_FIRSTHDR(&header); c != nullptr; c = CMSG_NXTHDR(&header, c)) {
      if (c->cmsg_level == IPPROTO_UDP) return true;
    }
  }
  return false;
}

int unwilling_send(int fd, mmsghdr* messages, unsigned count, int flags) {
  ++g_calls;
  const int error = g_script_at < g_script.size() ? g_script[g_script_at++] : 0;
  if (error == 0 && !g_segmentation_works && has_segment_option(messages, 1)) {
    errno = EIO;
    return -1;
  }
  if (error != 0) {
    errno = error;
    return -1;
  }
  return ::sendmmsg(fd, messages, std::min(count, g_most_messages), flags);
}

Pair open_unwilling_pair(std::vector<int> script, unsigned most_messages = 1000) {
  g_script = std::move(script);
  g_script_at = 0;
  g_calls = 0;
  g_most_messages = most_messages;
  g_segmentation_works = true;
  UdpOptions options = own_options();
  options.send_messages = unwilling_send;
  return open_pair(options);
}

TEST(UdpNic, TxBurst_FullQueue_ShorterPrefixNoLoss) {
  for (const int error : {EAGAIN, ENOBUFS}) {
    const Pair pair = open_unwilling_pair({0, error, error}, 2);
    PacketSet packets;
    for (int i = 0; i < 20; ++i) packets.add(pair.to(), 10, static_cast<std::size_t>(10 + i));
    std::size_t sent = pair.sender->tx_burst(packets.all());
    EXPECT_EQ(sent, 2U);
    EXPECT_EQ(pair.sender->tx_burst(packets.all().subspan(sent)), 0U);
    sent += pair.sender->tx_burst(packets.all().subspan(sent));
    EXPECT_EQ(sent, 20U);
    expect_same(receive(*pair.receiver, 20), packets);
    EXPECT_EQ(pair.sender->counters().sends_refused, 2U);
    EXPECT_EQ(pair.sender->counters().packets_dropped, 0U);
    EXPECT_EQ(pair.sender->counters().kernel_errors, 0U);
  }
}

TEST(UdpNic, TxBurst_InterruptedCallIsRepeated) {
  const Pair pair = open_unwilling_pair({EINTR});
  PacketSet packets;
  packets.add(pair.to(), 10, 10);
  EXPECT_EQ(pair.sender->tx_burst(packets.all()), 1U);
  expect_same(receive(*pair.receiver, 1), packets);
}

TEST(UdpNic, TxBurst_NoSegmentation_SendsSinglePackets) {
  const Pair pair = open_unwilling_pair({});
  g_segmentation_works = false;
  PacketSet packets;
  for (int i = 0; i < 20; ++i) packets.add(pair.to(), 10, 100);
  EXPECT_EQ(pair.sender->tx_burst(packets.all()), 20U);
  expect_same(receive(*pair.receiver, 20), packets);
  EXPECT_EQ(pair.sender->counters().gso_switched_off, 1U);
  EXPECT_EQ(pair.sender->counters().packets_dropped, 0U);
  g_calls = 0;
  EXPECT_EQ(pair.sender->tx_burst(packets.all()), 20U);
  EXPECT_EQ(g_calls, 1U) << "segmentation must not be tried again";
}

std::vector<unsigned> g_slices;  // of each message that record_slices has sent

int record_slices(int fd, mmsghdr* messages, unsigned count, int flags) {
  for (unsigned i = 0; i < count; ++i) {
    g_slices.push_back(static_cast<unsigned>(messages[i].msg_hdr.msg_iovlen));
  }
  return ::sendmmsg(fd, messages, count, flags);
}

TEST(UdpNic, TxBurst_ARetransmissionLeavesAlone) {
  UdpOptions options = own_options();
  options.send_messages = record_slices;
  const Pair pair = open_pair(options);
  PacketSet packets;
  for (int i = 0; i < 8; ++i) {
    packets.add(pair.to(), 10, 100);
    packets.last().sent_again = i == 2 || i == 5 || i == 6;
  }
  g_slices.clear();
  EXPECT_EQ(pair.sender->tx_burst(packets.all()), 8U);
  expect_same(receive(*pair.receiver, 8), packets);
  EXPECT_EQ(g_slices, (std::vector<unsigned>{4, 2, 4, 2, 2, 2})) << "head and payload of each";
}

TEST(UdpNic, TxBurst_TooLongForPath_KeepsSegmentation) {
  const Pair pair = open_unwilling_pair({EMSGSIZE, EMSGSIZE});  // the train, then its first packet
  PacketSet packets;
  for (int i = 0; i < 5; ++i) packets.add(pair.to(), 10, 100);
  EXPECT_EQ(pair.sender->tx_burst(packets.all()), 5U);
  EXPECT_EQ(pair.sender->counters().gso_switched_off, 0U);
  EXPECT_EQ(pair.sender->counters().packets_dropped, 1U);
  EXPECT_EQ(receive(*pair.receiver, 4).size(), 4U);
}

TEST(UdpNic, TxBurst_ImpossiblePacket_DroppedAndCounted) {
  const Pair pair = open_unwilling_pair({ENETUNREACH});
  PacketSet packets;
  packets.add(pair.to(), 10, 10);
  packets.add(pair.to(), 10, 20);
  EXPECT_EQ(pair.sender->tx_burst(packets.all()), 2U);
  EXPECT_EQ(pair.sender->counters().packets_dropped, 1U);
  EXPECT_EQ(pair.sender->counters().kernel_errors, 1U);
  const auto arrivals = receive(*pair.receiver, 1);
  ASSERT_EQ(arrivals.size(), 1U);
  EXPECT_EQ(arrivals[0].bytes, packets.bytes(1));
}

TEST(UdpNic, TxBurst_RealKernel_RefusesTooLongOrNoPort) {
  const Pair pair = open_pair();
  PacketSet packets;
  packets.add(pair.to(), 56, 65507);                       // 56 bytes too long
  packets.add(FepAddress{pair.to().ip, 0}, 56, 10);        // no port
  packets.add(FepAddress{ipv6_loopback(), 4793}, 56, 10);  // other family
  packets.add(pair.to(), 56, 10);
  EXPECT_EQ(pair.sender->tx_burst(packets.all()), 4U);
  EXPECT_EQ(pair.sender->counters().packets_dropped, 3U);
  const auto arrivals = receive(*pair.receiver, 1);
  ASSERT_EQ(arrivals.size(), 1U);
  EXPECT_EQ(arrivals[0].bytes, packets.bytes(3));
}

TEST(UdpNic, Open_WithoutPortTakes4793ThenTheNextFree) {
  const auto first = open_udp(own_options());
  const auto second = open_udp(own_options());
  EXPECT_EQ(first->local_address().port, 4793);
  EXPECT_EQ(second->local_address().port, 4794);
  EXPECT_EQ(first->local_address().ip, own_loopback_address());
}

TEST(UdpNic, Open_TakenPortIsAddressInUse) {
  UdpOptions options = own_options();
  options.port = 5000;
  const auto holder = open_udp(options);
  std::string message;
  const auto refused = UdpNic::open(options, message);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error(), Error::AddressInUse);
  EXPECT_THAT(message, HasSubstr("5000"));
}

TEST(UdpNic, Open_ForeignAndWildcardAddressesAreRefused) {
  UdpOptions options;
  options.ip = ipv4(203, 0, 113, 7);  // documentation range: on no host
  std::string message;
  const auto foreign = UdpNic::open(options, message);
  ASSERT_FALSE(foreign.ok());
  EXPECT_EQ(foreign.error(), Error::NoDevice);
  EXPECT_THAT(message, HasSubstr("203.0.113.7"));
  const auto wildcard = UdpNic::open(UdpOptions{}, message);
  ASSERT_FALSE(wildcard.ok());
  EXPECT_EQ(wildcard.error(), Error::Invalid);
}

TEST(UdpNic, Open_CapsTellTheInterface) {
  UdpOptions options = own_options();
  options.receive_buffer_bytes = 100'000;
  const auto nic = open_udp(options);
  EXPECT_TRUE(nic->caps().loopback);
  EXPECT_TRUE(nic->caps().ecn);
  EXPECT_FALSE(nic->caps().per_packet_entropy);
  EXPECT_GE(nic->caps().ip_mtu, 1500U);
  EXPECT_EQ(nic->caps().receive_credit_bytes, 100'000U);
}

// For back ends that take the frames of an interface themselves.
TEST(UdpNic, Open_ExcludedInterfaceBringsNothing) {
  UdpOptions options = own_options();
  options.excluded_interface = static_cast<int>(::if_nametoindex("lo"));
  ASSERT_NE(options.excluded_interface, 0);
  const auto deaf = open_udp(options);
  options.excluded_interface += 1;
  const auto hearing = open_udp(options);
  const auto sender = open_udp(own_options());
  PacketSet packets;
  packets.add(deaf->local_address(), 12, 30);
  packets.add(hearing->local_address(), 12, 30);
  ASSERT_EQ(sender->tx_burst(packets.all()), 2U);  // loopback delivers within the call
  EXPECT_EQ(receive(*hearing, 1).size(), 1U);
  std::array<RxPacket, 4> out;
  EXPECT_EQ(deaf->rx_burst(out, Time{}), 0U);
}

// The first byte of a packet with a security header is 0x08 to 0x0F (TSS-3).
TEST(UdpNic, Tss73_FloodIsThinnedOutInTheSocket) {
  UdpOptions options = own_options();
  options.gso = options.gro = false;
  const Pair pair = open_pair(options);
  Packet clear;
  Packet sealed;
  for (Packet* packet : {&clear, &sealed}) {
    packet->reset();
    *packet->append(20) = packet == &clear ? std::byte{0x10} : std::byte{0x0B};
    packet->to = pair.to();
  }
  const auto count_clear = [&] {
    std::size_t arrived = 0;
    for (int round = 0; round < 20; ++round) {
      std::array<const Packet*, 33> burst;
      burst.fill(&clear);
      burst.back() = &sealed;
      EXPECT_EQ(pair.sender->tx_burst(burst), burst.size());
      for (bool last = false; !last;) {
        const auto one = receive(*pair.receiver, 1, 1);
        if (one.empty()) {
          ADD_FAILURE() << "the sealed packet is lost";
          return arrived;
        }
        last = one[0].bytes[0] == std::byte{0x0B};
        arrived += last ? 0 : 1;
      }
    }
    return arrived;
  };
  EXPECT_EQ(count_clear(), 640U);
  pair.receiver->thin_out_unprotected(true);
  const std::size_t sample = count_clear();  // 40 on average
  EXPECT_GT(sample, 5U);
  EXPECT_LT(sample, 160U);
  EXPECT_EQ(pair.receiver->counters().receive_overflows, 640U - sample);
  pair.receiver->thin_out_unprotected(false);
  EXPECT_EQ(count_clear(), 640U);
}

TEST(UdpNic, Open_DescriptorClosesOnExec) {
  const auto nic = open_udp(own_options());
  EXPECT_NE(::fcntl(nic->wait_fd(), F_GETFD) & FD_CLOEXEC, 0);
}

}  // namespace
}  // namespace uet::nic
