// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// This binary counts allocations: the data path makes none.
#include "fep/fep.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <functional>
#include <new>
#include <vector>

#include "unit/fep/fep_harness.h"

namespace {

std::size_t allocations = 0;

void* allocate(std::size_t bytes) {
  ++allocations;
  return std::malloc(bytes == 0 ? 1 : bytes);
}

void* allocate_or_throw(std::size_t bytes) {
  void* memory = allocate(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(std::size_t bytes) { return allocate_or_throw(bytes); }
void* operator new[](std::size_t bytes) { return allocate_or_throw(bytes); }
// The nothrow operators of AddressSanitizer would match no operator delete of this file.
void* operator new(std::size_t bytes, const std::nothrow_t& /*unused*/) noexcept {
  return allocate(bytes);
}
void* operator new[](std::size_t bytes, const std::nothrow_t& /*unused*/) noexcept {
  return allocate(bytes);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

namespace uet::fep {
namespace {

// ---- operations ---------------------------------------------------------------------------------

// CMS-300, CMS-305, CMS-306: all ACKs of the FEP that fills up ask for less, then say that it is
// over.
TEST_F(FepPair, Cms305_AcksTellHowFullTheNicOfTheReceiverIs) {
  std::vector<std::byte> memory(8192), source = pattern(8192);
  const Rkey key = expose(memory);
  const ses::IoSlice slice{source.data(), source.size()};
  const auto write = [&](int times) {
    for (int i = 0; i < times; ++i) {
      const std::size_t before = a.sink.all.size();
      ASSERT_TRUE(a.fep->ses().initiator().post(*a.context, rma({&slice, 1}, key), now).ok());
      ASSERT_TRUE(run_while_not([&] { return a.sink.all.size() > before; }));
    }
  };
  write(3);
  EXPECT_EQ(b.fep->stats().pds.pend_sent, 0U);
  b.nic.backlog_bytes = 50'000;
  write(3);
  const std::uint64_t penalties = b.fep->stats().pds.pend_sent;
  EXPECT_GE(penalties, 3U);
  EXPECT_EQ(a.fep->stats().cms.pend_received, penalties);
  EXPECT_EQ(b.fep->stats().pds.restores_sent, 0U);
  b.nic.backlog_bytes = 0;
  write(20);
  EXPECT_EQ(b.fep->stats().pds.pend_sent, penalties);
  EXPECT_EQ(b.fep->stats().pds.restores_sent, 8U);
  EXPECT_EQ(a.fep->stats().cms.restores_received, 8U);
  EXPECT_EQ(a.fep->stats().pds.pend_sent, 0U);  // nothing is full there
  expect_clean_close();
}

TEST_F(FepPair, SendArrivesInThePostedBuffer) {
  for (const std::size_t bytes : {0UL, 1UL, 1024UL, 1025UL, 100'000UL}) {
    a.sink.all.clear();
    b.sink.all.clear();
    std::vector<std::byte> from = pattern(bytes);
    std::vector<std::byte> to(bytes + 1);
    const ses::IoSlice source{from.data(), bytes};
    const ses::IoSlice target{to.data(), bytes};
    ASSERT_TRUE(receive({&target, 1}).ok());
    ASSERT_TRUE(send({&source, 1}).ok());
    ASSERT_TRUE(run_while_not([&] { return a.sink.all.size() + b.sink.all.size() == 2; }));
    expect_all_ok();
    EXPECT_EQ(b.sink.all[0].length, bytes);
    EXPECT_TRUE(std::equal(from.begin(), from.end(), to.begin()));
  }
  expect_clean_close();
}

// ---- posts that wait for one another ------------------------------------------------------------

class WaitingPosts : public FepPair {
 protected:
  void post() {
    std::byte byte{};
    const ses::IoSlice source{&byte, 1};
    ses::SendOp op;
    op.peer = &peer;
    op.local = {&source, 1};
    op.inject = true;
    EXPECT_TRUE(a.fep->ses().initiator().post(*a.context, op, now).ok());
    if (a.fep->wants_push_after_post()) a.fep->push(now);
  }
};

// In a row they wait for one another once many are unanswered.
TEST_F(WaitingPosts, ManyWithoutProgressLeaveTogether) {
  for (int i = 0; i < 100; ++i) post();
  EXPECT_LT(a.nic.sent, 100U);
  EXPECT_GE(a.nic.sent, 80U);
  EXPECT_LT(a.nic.tx_bursts, 30U);
  EXPECT_LE(a.fep->next_deadline(), now + microseconds(50));
}

// An answer may be the last call of its sender. No ACK comes for any of these.
TEST_F(WaitingPosts, AnswersLeaveAtOnce) {
  const ses::Peer asking = a.as_peer();
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(a.fep->ses().receive(*a.context, {}, now).ok());
    ses::SendOp question;
    question.peer = &asking;
    ASSERT_TRUE(b.fep->ses().initiator().post(*b.context, question, now).ok());
    b.fep->push(now);
    a.fep->progress(now);
    const std::uint64_t before = a.nic.sent;
    post();
    EXPECT_GT(a.nic.sent, before) << "answer " << i;
  }
}

// ---- ACKs that no sender waits for (PDS-97, PDS-128) --------------------------------------------

class PingPong : public FepPair {
 protected:
  void SetUp() override {
    for (int i = 0; i < 4; ++i) play();  // both PDCs are established
    acks_before_ = acks();
    a.nic.on_the_way = [this](RxPacket& packet) {
      const auto type = static_cast<wire::PdsType>(std::to_integer<int>(packet.bytes[0]) >> 3);
      to_a_.push_back(type);
    };
  }
  // A message of 8 bytes, sent at once.
  void send_from(Node& node, const ses::Peer& to) {
    const ses::IoSlice slice{memory_.data(), memory_.size()};
    ses::SendOp op;
    op.peer = &to;
    op.local = {&slice, 1};
    op.prompt_ack = false;
    ASSERT_TRUE(node.fep->ses().initiator().post(*node.context, op, now).ok());
    node.fep->push(now);
  }
  void expect_message_at(Node& node) {
    const ses::IoSlice slice{memory_.data(), memory_.size()};
    ses::ReceiveOp op;
    op.local = {&slice, 1};
    ASSERT_TRUE(node.fep->ses().receive(*node.context, op, now).ok());
  }
  void a_sends() {
    expect_message_at(b);
    send_from(a, b_);
    b.fep->progress(now);
    now += microseconds(5);
  }
  void b_replies() {
    expect_message_at(a);
    send_from(b, a_);
    a.fep->progress(now);
    now += microseconds(5);
  }
  void play() {
    a_sends();
    b_replies();
  }
  std::uint64_t acks() const { return b.fep->stats().pds.acks_sent; }
  std::uint64_t new_acks() const { return acks() - acks_before_; }

  const ses::Peer a_ = a.as_peer();
  const ses::Peer b_ = b.as_peer();
  std::array<std::byte, 8> memory_{};
  std::uint64_t acks_before_ = 0;
  std::vector<wire::PdsType> to_a_;
};

TEST_F(PingPong, Pds97_AckOfSmallPackets_LeavesBehindReply) {
  for (int i = 0; i < 48; ++i) {
    const std::uint64_t before = acks();
    a_sends();
    ASSERT_EQ(acks(), before) << "before the reply, message " << i;
    b_replies();
  }
  EXPECT_EQ(new_acks(), 3U);
  a.fep->progress(now);
  // Each reply has come as a request of its own, and the ACK behind one.
  ASSERT_EQ(to_a_.size(), 51U);
  EXPECT_EQ(to_a_[0], wire::PdsType::RudReq);
  for (std::size_t i = 1; i < to_a_.size(); ++i) {
    if (to_a_[i] == wire::PdsType::RudReq) continue;
    EXPECT_EQ(to_a_[i], wire::PdsType::AckCc);
    EXPECT_EQ(to_a_[i - 1], wire::PdsType::RudReq) << i;
  }
}

TEST_F(PingPong, Pds97_NoReply_AckLeavesInNextPass) {
  for (int i = 0; i < 48; ++i) {
    const std::uint64_t before = acks();
    a_sends();
    ASSERT_EQ(acks(), before) << "in the pass of message " << i;
    const bool soon = b.fep->next_deadline() <= now + microseconds(60);
    b.fep->progress(now);
    EXPECT_EQ(acks() > before, soon) << i;
    a.fep->progress(now);  // takes it
  }
  EXPECT_EQ(new_acks(), 3U);
}

// A post that sends nothing is no reply.
TEST_F(PingPong, Pds97_PostedReceive_AckWaitsOn) {
  for (int i = 0; i < 16 && new_acks() == 0; ++i) {
    a_sends();
    b.fep->push(now);
    ASSERT_EQ(new_acks(), 0U);
    b_replies();
  }
  EXPECT_EQ(new_acks(), 1U);
}

// Both ends of each message have states then, and PDS ends before SES.
TEST_F(FepPair, EndsWithMessagesInProgress) {
  constexpr std::size_t kBytes = 300'000;
  std::vector<std::byte> from = pattern(kBytes), to(kBytes), remote(kBytes);
  const Rkey key = expose(remote);
  const ses::IoSlice source{from.data(), kBytes};
  const ses::IoSlice target{to.data(), kBytes};
  ASSERT_TRUE(receive({&target, 1}).ok());
  ASSERT_TRUE(send({&source, 1}).ok());  // to the receive
  ASSERT_TRUE(send({&source, 1}).ok());  // to no receive
  ASSERT_TRUE(a.fep->ses().initiator().post(*a.context, rma({&source, 1}, key), now).ok());
  ASSERT_TRUE(
      a.fep->ses().initiator().post(*a.context, rma({&target, 1}, key, ses::Kind::Read), now).ok());
  for (int i = 0; i < 4; ++i) step();
  EXPECT_FALSE(b.fep->ses().idle());
  EXPECT_TRUE(a.sink.all.empty() && b.sink.all.empty());
  b.fep.reset();
  a.fep.reset();
}

TEST_F(FepPair, WriteAndReadReachRegisteredMemory) {
  std::vector<std::byte> remote(50'000);
  const Rkey key = expose(remote);
  std::vector<std::byte> from = pattern(remote.size());
  const ses::IoSlice source{from.data(), from.size()};
  ASSERT_TRUE(a.fep->ses().initiator().post(*a.context, rma({&source, 1}, key), now).ok());
  ASSERT_TRUE(run_while_not([&] { return a.sink.all.size() == 1; }));
  EXPECT_EQ(remote, from);

  std::vector<std::byte> to(remote.size());
  const ses::IoSlice target{to.data(), to.size()};
  ASSERT_TRUE(
      a.fep->ses().initiator().post(*a.context, rma({&target, 1}, key, ses::Kind::Read), now).ok());
  ASSERT_TRUE(run_while_not([&] { return a.sink.all.size() == 2; }));
  expect_all_ok();
  EXPECT_EQ(to, from);
  expect_clean_close();
}

TEST_F(FepPair, LossIsRepaired) {
  Rng rng(3);
  a.nic.lose = b.nic.lose = [&rng] { return rng.chance(0.1); };
  std::vector<std::byte> remote(200'000);
  const Rkey key = expose(remote);
  std::vector<std::byte> from = pattern(remote.size());
  std::vector<std::byte> to(remote.size());
  const ses::IoSlice source{from.data(), from.size()};
  const ses::IoSlice target{to.data(), to.size()};
  ASSERT_TRUE(a.fep->ses().initiator().post(*a.context, rma({&source, 1}, key), now).ok());
  ASSERT_TRUE(run_while_not([&] { return a.sink.all.size() == 1; }, seconds(60)));
  ASSERT_TRUE(
      a.fep->ses().initiator().post(*a.context, rma({&target, 1}, key, ses::Kind::Read), now).ok());
  ASSERT_TRUE(run_while_not([&] { return a.sink.all.size() == 2; }, seconds(60)));
  expect_all_ok();
  EXPECT_EQ(remote, from);
  EXPECT_EQ(to, from);
  EXPECT_GT(
      a.fep->stats().pds.rto_retransmissions + a.fep->stats().pds.inferred_loss_retransmissions,
      0U);
  a.nic.lose = b.nic.lose = nullptr;
  expect_clean_close();
}

// PDS-147: told by its DSCP alone, a trimmed packet is refused and comes again at once.
TEST_F(FepPair, Pds147_TrimmedPacketsAreToldByTheirDscp) {
  Config config = small_config(2);
  config.trim_marks = {.trimmed = 12, .trimmed_last_hop = 16};
  b.fep = std::make_unique<Fep>(config, b.nic, kStart);
  b.open();
  int arrived = 0;
  b.nic.on_the_way = [&arrived](RxPacket& packet) {
    if (packet.bytes.size() < 500 || ++arrived % 3 != 0) return;
    packet.dscp = arrived % 2 == 0 ? 12 : 16;
    packet.bytes = packet.bytes.first(16);
  };
  std::vector<std::byte> remote(50'000);
  const Rkey key = expose(remote);
  std::vector<std::byte> from = pattern(remote.size());
  const ses::IoSlice source{from.data(), from.size()};
  ASSERT_TRUE(a.fep->ses().initiator().post(*a.context, rma({&source, 1}, key), now).ok());
  ASSERT_TRUE(run_while_not([&] { return a.sink.all.size() == 1; }, milliseconds(10)));
  expect_all_ok();
  EXPECT_EQ(remote, from);
  const Stats stats = b.fep->stats();
  EXPECT_GT(stats.pds.trimmed_received, 20U);
  EXPECT_EQ(stats.pds.nacks_sent[0x01] + stats.pds.nacks_sent[0x02], stats.pds.trimmed_received);
  EXPECT_EQ(a.fep->stats().pds.rto_retransmissions, 0U);
  EXPECT_EQ(stats.pds.malformed + stats.ses.malformed, 0U);
}

TEST_F(FepPair, WithoutMarksADscpMeansNothing) {
  b.nic.on_the_way = [](RxPacket& packet) { packet.dscp = 12; };
  std::vector<std::byte> remote(5'000);
  const Rkey key = expose(remote);
  std::vector<std::byte> from = pattern(remote.size());
  const ses::IoSlice source{from.data(), from.size()};
  ASSERT_TRUE(a.fep->ses().initiator().post(*a.context, rma({&source, 1}, key), now).ok());
  ASSERT_TRUE(run_while_not([&] { return a.sink.all.size() == 1; }));
  EXPECT_EQ(remote, from);
  EXPECT_EQ(b.fep->stats().pds.trimmed_received, 0U);
}

// ---- the engine ---------------------------------------------------------------------------------

TEST_F(FepPair, RefusedPacketsStayFirstInLine) {
  a.nic.accept = 1;
  b.nic.accept = 3;
  std::vector<std::byte> from = pattern(60'000);
  std::vector<std::byte> to(from.size());
  const ses::IoSlice source{from.data(), from.size()};
  const ses::IoSlice target{to.data(), to.size()};
  ASSERT_TRUE(receive({&target, 1}).ok());
  ASSERT_TRUE(send({&source, 1}).ok());
  ASSERT_TRUE(run_while_not([&] { return a.sink.all.size() + b.sink.all.size() == 2; }));
  expect_all_ok();
  EXPECT_EQ(to, from);
  EXPECT_EQ(b.fep->stats().pds.duplicates_dropped + b.fep->stats().pds.duplicates_acked, 0U);
  expect_clean_close();
}

// A packet for a PDC that does not exist, as a burst of its own.
struct Stray {
  explicit Stray(const FepAddress& to) : packet(*pool.take()), burst{&packet} {
    packet.reset();
    packet.to = to;
    wire::RequestHeader header;
    header.dpdcid = PdcId{0x7777};
    header.spdcid = PdcId{9};
    header.encode(packet.prepend(sizeof(wire::PdsRequest)));
  }
  ~Stray() { pool.give_back(&packet); }
  Stray(const Stray&) = delete;
  Stray& operator=(const Stray&) = delete;

  PacketPool pool{1};
  Packet& packet;
  std::array<const Packet*, 1> burst;
};

// A host that has not looked for long takes more than one burst in a pass. The time that the pass
// spends itself, with the packets that it sends, is no absence: answers to these would keep it.
TEST_F(FepPair, APassThatSendsForLongEnds) {
  std::vector<std::byte> bytes = pattern(64);
  const ses::IoSlice slice{bytes.data(), bytes.size()};
  const auto packet_for_b = [&] {
    ASSERT_TRUE(send({&slice, 1}).ok());
    a.fep->progress(now);
  };
  b.fep->take(now);
  now += milliseconds(1);
  const Time start = now;
  packet_for_b();
  ASSERT_TRUE(b.fep->take(now));
  EXPECT_TRUE(b.fep->left_some(start)) << "it was away";
  now += milliseconds(1);
  packet_for_b();
  ASSERT_TRUE(b.fep->take(now));
  EXPECT_FALSE(b.fep->left_some(start)) << "it was busy in this pass";
}

// A NIC that tells no times of arrival, and a stream that fills each burst: a host that looks all
// the time takes one burst in a pass, one that was away as many as fit into that time.
TEST_F(FepPair, APassLastsNoLongerThanTheAbsenceBefore) {
  const Stray stray(b.nic.local_address());
  const auto bursts_after = [&](Duration absence) {
    b.fep->take(now);
    now += absence;
    const Time start = now;
    int bursts = 0;
    do {
      for (std::size_t i = 0; i < nic::kRxBurst; ++i) a.nic.tx_burst(stray.burst);
      b.fep->take(now);
      b.fep->push(now);
      now += microseconds(100);
    } while (++bursts < 200 && b.fep->left_some(start));
    return bursts;
  };
  EXPECT_EQ(bursts_after(microseconds(20)), 1);
  EXPECT_EQ(bursts_after(milliseconds(1)), 11);
}

// Packets for unknown PDCs are refused faster than the NIC takes packets.
TEST_F(FepPair, Pds123_RefusalsLeaveSpaceForOtherPackets) {
  const Stray stray(a.nic.local_address());
  a.nic.accept = 4;
  std::vector<std::byte> source = pattern(20 * kPayload), target(20 * kPayload);
  const ses::IoSlice from{source.data(), source.size()}, to{target.data(), target.size()};
  ASSERT_TRUE(receive({&to, 1}).ok());
  ASSERT_TRUE(send({&from, 1}).ok());
  for (int pass = 0; pass < 40 && a.sink.all.empty(); ++pass) {
    for (int i = 0; i < 40; ++i) b.nic.tx_burst(stray.burst);
    step();
  }
  EXPECT_EQ(a.sink.count(ses::Kind::Send), 1U);
  EXPECT_EQ(target, source);
  EXPECT_GT(a.fep->stats().pds.nacks_sent[static_cast<int>(wire::NackCode::InvDpdcid)], 40U)
      << "they have a part of the NIC";
  EXPECT_GT(a.fep->stats().pds.no_packet, 0U) << "and do not pile up";
  a.nic.accept = SIZE_MAX;
  expect_clean_close();
}

struct CountingGuard final : PdcGuard {
  void start(std::uint32_t count, Duration) override { new_pdcs = count; }
  void open(PdcId) override { ++opened; }
  void close(PdcId) override {}
  std::uint32_t new_pdcs = 0;
  int opened = 0;
};

TEST_F(FepPair, Pds236_GuardOfTheNicHearsOfPdcs) {
  CountingGuard guard;
  a.nic.pdc_guard = &guard;
  const Fep fep(small_config(3), a.nic, kStart);
  EXPECT_EQ(guard.new_pdcs, small_config(3).pds.pdc_count / 2);
  EXPECT_EQ(guard.opened, 0);
}

TEST_F(FepPair, FullNicIsTriedAgainSoon) {
  a.nic.accept = 0;
  std::byte byte{};
  const ses::IoSlice source{&byte, 1};
  ASSERT_TRUE(send({&source, 1}).ok());
  a.fep->push(now);
  EXPECT_EQ(a.nic.sent, 0U);
  EXPECT_EQ(a.fep->next_deadline(), now + microseconds(50));
  EXPECT_FALSE(a.fep->quiescent());
  const std::size_t bursts = a.nic.tx_bursts;
  a.fep->progress(now);
  EXPECT_GT(a.nic.tx_bursts, bursts);
  a.nic.accept = SIZE_MAX;
  a.fep->progress(now);
  EXPECT_EQ(a.nic.sent, 1U);
  EXPECT_GT(a.fep->next_deadline(), now + microseconds(50));
}

// Threads that take turns may read clocks that differ a little.
TEST_F(FepPair, TimeBlockedByTheNicIsNeverNegative) {
  std::vector<std::byte> remote(8192);
  const Rkey key = expose(remote);
  std::vector<std::byte> from = pattern(8192);
  const ses::IoSlice source{from.data(), from.size()};
  a.nic.accept = 0;
  ASSERT_TRUE(a.fep->ses().initiator().post(*a.context, rma({&source, 1}, key), now).ok());
  a.fep->progress(now);
  a.nic.accept = SIZE_MAX;
  a.fep->progress(now - Duration(300));
  EXPECT_EQ(a.fep->stats().pds.blocked_by_nic_ns, 0U);

  a.nic.accept = 0;
  ASSERT_TRUE(a.fep->ses().initiator().post(*a.context, rma({&source, 1}, key), now).ok());
  a.fep->progress(now);
  a.nic.accept = SIZE_MAX;
  a.fep->progress(now + Duration(300));
  EXPECT_EQ(a.fep->stats().pds.blocked_by_nic_ns, 300U);
}

TEST_F(FepPair, PushSendsAtOnceAndReceivesNothing) {
  std::byte byte{};
  const ses::IoSlice slice{&byte, 1};
  ASSERT_TRUE(receive({&slice, 1}).ok());
  ASSERT_TRUE(send({&slice, 1}).ok());
  EXPECT_EQ(a.nic.sent, 0U);
  a.fep->push(now);
  EXPECT_EQ(a.nic.sent, 1U);
  b.fep->progress(now);
  a.fep->push(now);
  EXPECT_TRUE(a.sink.all.empty());
  a.fep->progress(now);
  EXPECT_EQ(a.sink.all.size(), 1U);
}

// ---- deadlines ----------------------------------------------------------------------------------

TEST_F(FepPair, NextDeadlineIsTheTimeOutOfWhatWasSent) {
  EXPECT_EQ(a.fep->next_deadline(), kNever);
  std::byte byte{};
  const ses::IoSlice source{&byte, 1};
  ASSERT_TRUE(send({&source, 1}).ok());
  a.fep->push(now);
  EXPECT_GT(a.fep->next_deadline(), now);
  EXPECT_LE(a.fep->next_deadline(), now + milliseconds(20));
  EXPECT_EQ(a.nic.sent, 1U);
  // Woken when asked for and no earlier, it sends the packet again after RTO_Init_Time.
  const Time sent_at = now;
  while (a.nic.sent == 1 && now < sent_at + seconds(1)) {
    now = std::max(now, a.fep->next_deadline());
    a.fep->progress(now);
  }
  EXPECT_EQ(now, sent_at + milliseconds(20));
}

TEST_F(FepPair, NextDeadlineHeedsTheNic) {
  a.nic.wants_attention = now + microseconds(3);
  EXPECT_EQ(a.fep->next_deadline(), now + microseconds(3));
}

TEST_F(FepPair, DeadPeerReportOfNicEndsOperationsAtOnce) {
  std::byte byte{};
  const std::array local{ses::IoSlice{&byte, 1}};
  a.nic.connection = 3;
  ASSERT_TRUE(send(local).ok());
  a.fep->progress(now);
  a.nic.dead_peer = DeadPeer{.address = b.nic.local_address(), .from = 0, .to = 3};
  a.fep->progress(now);
  ASSERT_EQ(a.sink.all.size(), 1U);
  EXPECT_EQ(a.sink.all[0].pds_error, pds::PdsError::PeerLost);
}

TEST_F(FepPair, ProgressSaysWhetherThereWasWork) {
  EXPECT_FALSE(a.fep->progress(now));
  std::byte byte{};
  const ses::IoSlice source{&byte, 1};
  ASSERT_TRUE(send({&source, 1}).ok());
  EXPECT_TRUE(a.fep->progress(now));
  EXPECT_FALSE(a.fep->progress(now));
  EXPECT_TRUE(b.fep->progress(now));
}

TEST_F(FepPair, FreshFepIsClosedAndQuiescent) {
  EXPECT_TRUE(a.fep->quiescent());
  EXPECT_TRUE(a.fep->closed());
  a.fep->begin_close(now);
  EXPECT_TRUE(a.fep->closed());
}

TEST_F(FepPair, BeginCloseEndsPdcsWithAHandshake) {
  std::byte byte{};
  const ses::IoSlice slice{&byte, 1};
  ASSERT_TRUE(receive({&slice, 1}).ok());
  ASSERT_TRUE(send({&slice, 1}).ok());
  ASSERT_TRUE(run_while_not([&] { return a.sink.all.size() + b.sink.all.size() == 2; }));
  EXPECT_FALSE(a.fep->closed());
  a.fep->begin_close(now);
  EXPECT_FALSE(a.fep->closed());
  EXPECT_TRUE(run_while_not([this] { return a.fep->closed() && b.fep->closed(); }));
  EXPECT_EQ(a.fep->stats().pds.pdcs_closed, 1U);
  EXPECT_EQ(b.fep->stats().pds.pdcs_closed, 1U);
  EXPECT_EQ(a.fep->stats().pds.pdcs_failed + b.fep->stats().pds.pdcs_failed, 0U);
}

// ---- datagrams ----------------------------------------------------------------------------------

class DatagramPair : public FepPair {
 protected:
  DatagramPair() : FepPair(DeliveryMode::Uud) {}
};

TEST_F(DatagramPair, Pds192_DatagramsArriveAndEndWhenTheNicHasThem) {
  constexpr std::size_t kCount = 100;
  std::vector<std::byte> from = pattern(kPayload);
  std::vector<std::vector<std::byte>> to(kCount, std::vector<std::byte>(kPayload));
  for (std::vector<std::byte>& buffer : to) {
    const ses::IoSlice target{buffer.data(), buffer.size()};
    ASSERT_TRUE(receive({&target, 1}).ok());
  }
  const ses::IoSlice source{from.data(), from.size()};
  for (std::size_t i = 0; i < kCount; ++i) ASSERT_TRUE(send({&source, 1}).ok());
  EXPECT_TRUE(a.sink.all.empty());
  while (a.fep->next_deadline() != kNever) a.fep->push(now);
  EXPECT_EQ(a.sink.all.size(), kCount);
  ASSERT_TRUE(run_while_not([&] { return b.sink.all.size() == kCount; }));
  expect_all_ok();
  for (const std::vector<std::byte>& buffer : to) EXPECT_EQ(buffer, from);
  EXPECT_EQ(a.nic.sent, kCount);
  EXPECT_EQ(b.nic.sent, 0U);  // nothing answers them (PDS-191)
  EXPECT_EQ(a.fep->stats().pds.datagrams_sent, kCount);
  EXPECT_EQ(b.fep->stats().pds.datagrams_received, kCount);
  expect_clean_close();
}

TEST_F(DatagramPair, AFullNicHoldsThemAndThePostsBack) {
  a.nic.accept = 0;
  std::byte byte{};
  const ses::IoSlice source{&byte, 1};
  std::size_t posted = 0;
  while (send({&source, 1}).ok()) {
    if (a.fep->wants_push_after_post()) a.fep->push(now);
    ++posted;
  }
  EXPECT_EQ(posted, 128U);  // tx_size
  EXPECT_TRUE(a.sink.all.empty());
  EXPECT_LE(a.fep->next_deadline(), now + microseconds(50));
  EXPECT_FALSE(a.fep->closed());
  a.nic.accept = SIZE_MAX;
  ASSERT_TRUE(run_while_not([&] { return a.sink.all.size() == posted; }));
  expect_all_ok();
  EXPECT_TRUE(a.fep->quiescent());
}

TEST_F(DatagramPair, ClosingAContextTakesItsDatagramsBack) {
  a.nic.accept = 0;
  std::byte byte{};
  const ses::IoSlice source{&byte, 1};
  ASSERT_TRUE(send({&source, 1}).ok());
  a.fep->push(now);  // in the outbox
  ASSERT_TRUE(send({&source, 1}).ok());
  a.fep->ses().close_context(*a.context, now);
  EXPECT_TRUE(a.fep->quiescent());
  a.nic.accept = SIZE_MAX;
  a.fep->progress(now);
  EXPECT_EQ(a.nic.sent, 0U);
  EXPECT_TRUE(a.sink.all.empty());
}

// SES-114: nothing follows the cancelled one.
TEST_F(DatagramPair, OneThatTheNicHasNotTakenCanBeCancelled) {
  a.nic.accept = 0;
  std::byte byte{};
  const ses::IoSlice source{&byte, 1};
  ses::SendOp op;
  op.peer = &peer;
  op.local = {&source, 1};
  op.context = &byte;
  ASSERT_TRUE(a.fep->ses().initiator().post(*a.context, op, now).ok());
  a.fep->push(now);
  EXPECT_TRUE(a.fep->ses().cancel(*a.context, &byte, now).ok());
  ASSERT_EQ(a.sink.all.size(), 1U);
  EXPECT_EQ(a.sink.all[0].status, ses::Status::Cancelled);
  EXPECT_FALSE(a.fep->ses().cancel(*a.context, &byte, now).ok());
  a.nic.accept = SIZE_MAX;
  a.fep->progress(now);
  EXPECT_EQ(a.nic.sent, 0U);
  EXPECT_TRUE(a.fep->quiescent());
}

TEST_F(DatagramPair, DatagramsAllocateNothing) {
  std::vector<std::byte> memory(kPayload);
  const ses::IoSlice slice{memory.data(), memory.size()};
  const std::function<bool()> done = [this] {
    return a.sink.all.size() + b.sink.all.size() == expected_completions;
  };
  const auto round = [&] {
    expected_completions += 2;
    EXPECT_TRUE(receive({&slice, 1}).ok());
    EXPECT_TRUE(send({&slice, 1}).ok());
    EXPECT_TRUE(run_while_not(done));
  };
  round();
  const std::size_t before = allocations;
  for (int i = 0; i < 50; ++i) round();
  EXPECT_EQ(allocations, before);
}

// ---- allocation guard ---------------------------------------------------------------------------

TEST_F(FepPair, DataPathAllocatesNothing) {
  std::vector<std::byte> remote(20'000);
  std::vector<std::byte> local = pattern(remote.size());
  std::vector<std::byte> received(remote.size());
  const Rkey key = expose(remote);
  const ses::IoSlice source{local.data(), local.size()};
  const ses::IoSlice target{received.data(), received.size()};
  // References only: a std::function that captures more would allocate itself.
  const std::function<bool()> done = [this] {
    return a.sink.all.size() + b.sink.all.size() == expected_completions;
  };
  const auto round = [&] {
    expected_completions += 4;
    EXPECT_TRUE(receive({&target, 1}).ok());
    EXPECT_TRUE(send({&source, 1}).ok());
    EXPECT_TRUE(a.fep->ses().initiator().post(*a.context, rma({&source, 1}, key), now).ok());
    EXPECT_TRUE(a.fep->ses()
                    .initiator()
                    .post(*a.context, rma({&target, 1}, key, ses::Kind::Read), now)
                    .ok());
    EXPECT_TRUE(run_while_not(done));
  };
  round();  // opens the PDC and touches what is made on first use
  const std::size_t before = allocations;
  for (int i = 0; i < 50; ++i) round();
  EXPECT_EQ(allocations, before);
  EXPECT_GT(before, 0U);
  expect_all_ok();
  expect_clean_close();
}

}  // namespace
}  // namespace uet::fep
