// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Two Feps over NICs that are memory. This binary counts allocations: the data path makes none.
#include "uet/fep/fep.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "uet/wire/parse.h"

namespace {

std::size_t allocations = 0;

void* allocate(std::size_t bytes) {
  ++allocations;
  void* memory = std::malloc(bytes == 0 ? 1 : bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(std::size_t bytes) { return allocate(bytes); }
void* operator new[](std::size_t bytes) { return allocate(bytes); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

namespace uet::fep {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Time kStart = time_from_ns(16'000'000);
constexpr std::uint32_t kPayload = 1024;
constexpr JobId kJob{7};

// A ring of fixed packets that the other end fills; no allocation after construction.
class MemoryNic final : public nic::Nic {
 public:
  explicit MemoryNic(std::uint8_t last_byte) : ring_(kSlots) {
    address_.ip.bytes = {10, 0, 0, last_byte};
    caps_.ip_mtu = 9000;
    caps_.receive_credit_bytes = 100'000;
  }

  std::size_t rx_burst(std::span<RxPacket> out, Time) override {
    std::size_t count = 0;
    for (; count < out.size() && read_ != written_; ++count, ++read_) {
      const Slot& slot = ring_[read_ % kSlots];
      out[count] = RxPacket{.bytes = std::span(slot.bytes).first(slot.length),
                            .source = peer->address_,
                            .entropy = slot.entropy};
      if (on_the_way) on_the_way(out[count]);
    }
    return count;
  }
  std::size_t tx_burst(std::span<const Packet* const> in) override {
    ++tx_bursts;
    const std::size_t count = std::min(in.size(), accept);
    for (std::size_t i = 0; i < count; ++i) {
      EXPECT_EQ(in[i]->to, peer->address_);
      if (!lose || !lose()) peer->take(*in[i]);
    }
    sent += count;
    return count;
  }
  std::uint64_t receive_backlog_bytes() const override { return backlog_bytes; }
  const nic::NicCaps& caps() const override { return caps_; }
  FepAddress local_address() const override { return address_; }
  Time next_deadline() const override { return wants_attention; }
  std::optional<FepAddress> take_lost_peer() override { return std::exchange(lost_peer, {}); }

  MemoryNic* peer = nullptr;
  std::size_t accept = SIZE_MAX;  // packets of one burst
  std::size_t tx_bursts = 0;
  std::size_t sent = 0;
  std::uint64_t backlog_bytes = 0;
  Time wants_attention = kNever;
  std::optional<FepAddress> lost_peer;
  std::function<bool()> lose;
  std::function<void(RxPacket&)> on_the_way;  // what a switch does to what arrives here

 private:
  static constexpr std::size_t kSlots = 2048;
  struct Slot {
    std::array<std::byte, 2048> bytes;
    std::size_t length = 0;
    std::uint16_t entropy = 0;
  };

  void take(const Packet& packet) {
    if (written_ - read_ >= kSlots - nic::kRxBurst) return;  // lost; views stay valid for a burst
    Slot& slot = ring_[written_++ % kSlots];
    ASSERT_LE(packet.length(), slot.bytes.size());
    std::byte* out = std::ranges::copy(packet.head(), slot.bytes.begin()).out;
    for (const Slice& slice : packet.payload) out = std::copy_n(slice.data, slice.length, out);
    slot.length = packet.length();
    slot.entropy = packet.entropy;
  }

  FepAddress address_;
  nic::NicCaps caps_;
  std::vector<Slot> ring_;
  std::size_t written_ = 0;
  std::size_t read_ = 0;
};

struct Sink final : ses::CompletionSink {
  Sink() { all.reserve(10'000); }
  void complete(const ses::Completion& completion) noexcept override { all.push_back(completion); }
  bool can_take_event() noexcept override { return true; }
  bool reserve_receive() noexcept override { return true; }
  void release_receive() noexcept override {}
  void remote_access(ses::Kind, std::uint64_t) noexcept override {}
  std::size_t count(ses::Kind kind) const {
    return static_cast<std::size_t>(
        std::ranges::count_if(all, [kind](const auto& c) { return c.kind == kind; }));
  }
  std::vector<ses::Completion> all;
};

Config small_config(std::uint64_t seed) {
  Config config;
  config.pds.pdc_count = 8;
  config.cms.algorithm = cms::Algorithm::None;
  config.cms.mtu_bytes = 2048;
  config.ses.payload_mtu = kPayload;
  config.ses.tx_messages = 256;
  config.ses.rx_messages = 256;
  config.ses.posted_receives = 256;
  config.ses.return_messages = 256;
  config.ses.contexts = 4;
  config.packets = 2048;
  config.buffers = 256;
  config.memory_regions = 16;
  config.seed = seed;
  return config;
}

std::vector<std::byte> pattern(std::size_t bytes) {
  std::vector<std::byte> data(bytes);
  for (std::size_t i = 0; i < bytes; ++i) data[i] = static_cast<std::byte>(i * 7 + i / 256);
  return data;
}

class Node {
 public:
  Node(std::uint8_t last_byte, std::uint64_t seed)
      : nic(last_byte), fep(std::make_unique<Fep>(small_config(seed), nic, kStart)) {}
  void open(DeliveryMode mode = DeliveryMode::Rud) {
    auto opened = fep->ses().open_context({.job = kJob,
                                           .pid_on_fep = PidOnFep{1},
                                           .resource_index = ResourceIndex{0},
                                           .initiator = InitiatorId{5},
                                           .mode = mode,
                                           .tx_size = 128,
                                           .rx_size = 128},
                                          sink);
    ASSERT_TRUE(opened.ok());
    context = opened.value();
    fep->ses().enable(*context);
  }
  ses::Peer as_peer() const {
    return {.fep = nic.local_address(),
            .pid_on_fep = PidOnFep{1},
            .resource_index = ResourceIndex{0},
            .initiator = InitiatorId{5}};
  }

  MemoryNic nic;
  Sink sink;
  std::unique_ptr<Fep> fep;
  ses::Context* context = nullptr;
};

class FepPair : public ::testing::Test {
 protected:
  explicit FepPair(DeliveryMode mode = DeliveryMode::Rud) {
    a.nic.peer = &b.nic;
    b.nic.peer = &a.nic;
    a.open(mode);
    b.open(mode);
    peer = b.as_peer();
  }
  bool run_while_not(const std::function<bool()>& done, Duration limit = seconds(5)) {
    const Time end = now + limit;
    while (!done() && now < end) step();
    return done();
  }
  void step() {
    a.fep->progress(now);
    b.fep->progress(now);
    now += microseconds(16);
  }
  Result<void> send(std::span<const ses::IoSlice> local) {
    ses::SendOp op;
    op.peer = &peer;
    op.local = local;
    return a.fep->ses().send(*a.context, op, now);
  }
  Result<void> receive(std::span<const ses::IoSlice> local) {
    ses::ReceiveOp op;
    op.local = local;
    return b.fep->ses().receive(*b.context, op, now);
  }
  Rkey expose(std::vector<std::byte>& memory) {
    ri::MemoryRegion region;
    region.base = memory.data();
    region.length = memory.size();
    region.access = ri::kRemoteRead | ri::kRemoteWrite;
    return b.fep->regions().add(region).value();
  }
  ses::RmaOp rma(std::span<const ses::IoSlice> local, Rkey key) const {
    ses::RmaOp op;
    op.peer = &peer;
    op.local = local;
    op.key = key;
    return op;
  }
  void expect_all_ok() const {
    for (const Sink* sink : {&a.sink, &b.sink}) {
      for (const ses::Completion& done : sink->all) EXPECT_EQ(done.status, ses::Status::Ok);
    }
  }
  void expect_clean_close() {
    EXPECT_TRUE(run_while_not([this] { return a.fep->quiescent() && b.fep->quiescent(); }));
    a.fep->begin_close(now);
    b.fep->begin_close(now);
    EXPECT_TRUE(run_while_not([this] { return a.fep->closed() && b.fep->closed(); }));
    EXPECT_TRUE(a.fep->quiescent());
    EXPECT_TRUE(b.fep->quiescent());
  }

  Node a{1, 1};
  Node b{2, 2};
  ses::Peer peer;
  Time now = kStart;
  std::size_t expected_completions = 0;
};

// ---- payload MTU --------------------------------------------------------------------------------

TEST(PayloadMtuFor, Wire15_LargestPowerOfTwoThatFits) {
  struct Row {
    std::uint32_t ip_mtu;
    std::uint32_t payload;
  };
  for (const Row& row : {Row{0, 0}, Row{576, 0}, Row{1155, 0}, Row{1156, 1024}, Row{1500, 1024},
                         Row{2179, 1024}, Row{2180, 2048}, Row{4227, 2048}, Row{4228, 4096},
                         Row{8323, 4096}, Row{8324, 8192}, Row{9000, 8192}, Row{65536, 8192}}) {
    EXPECT_EQ(payload_mtu_for(row.ip_mtu), row.payload) << row.ip_mtu;
  }
}

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
      ASSERT_TRUE(a.fep->ses().write(*a.context, rma({&slice, 1}, key), now).ok());
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

TEST_F(FepPair, WriteAndReadReachRegisteredMemory) {
  std::vector<std::byte> remote(50'000);
  const Rkey key = expose(remote);
  std::vector<std::byte> from = pattern(remote.size());
  const ses::IoSlice source{from.data(), from.size()};
  ASSERT_TRUE(a.fep->ses().write(*a.context, rma({&source, 1}, key), now).ok());
  ASSERT_TRUE(run_while_not([&] { return a.sink.all.size() == 1; }));
  EXPECT_EQ(remote, from);

  std::vector<std::byte> to(remote.size());
  const ses::IoSlice target{to.data(), to.size()};
  ASSERT_TRUE(a.fep->ses().read(*a.context, rma({&target, 1}, key), now).ok());
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
  ASSERT_TRUE(a.fep->ses().write(*a.context, rma({&source, 1}, key), now).ok());
  ASSERT_TRUE(run_while_not([&] { return a.sink.all.size() == 1; }, seconds(60)));
  ASSERT_TRUE(a.fep->ses().read(*a.context, rma({&target, 1}, key), now).ok());
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
  ASSERT_TRUE(a.fep->ses().write(*a.context, rma({&source, 1}, key), now).ok());
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
  ASSERT_TRUE(a.fep->ses().write(*a.context, rma({&source, 1}, key), now).ok());
  ASSERT_TRUE(run_while_not([&] { return a.sink.all.size() == 1; }));
  EXPECT_EQ(remote, from);
  EXPECT_EQ(b.fep->stats().pds.trimmed_received, 0U);
}

// ---- the engine ---------------------------------------------------------------------------------

TEST_F(FepPair, WhatTheNicRefusesStaysFirstInLine) {
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

// ---- ACKs that wait for the reply ---------------------------------------------------------------

class KeptAcks : public FepPair {
 protected:
  KeptAcks() {
    a.nic.on_the_way = [this](RxPacket& packet) {
      packet.through_memory = through_memory;
      const auto parsed = wire::parse(packet.bytes);
      const bool request = parsed && std::holds_alternative<wire::RequestHeader>(parsed->header);
      arrived += request ? 'R' : 'A';
    };
    b.nic.on_the_way = [this](RxPacket& packet) { packet.through_memory = through_memory; };
    post_receives();
    begin();
    EXPECT_TRUE(run_while_not([this] { return a.sink.all.size() == 1; }));  // the PDC is open
    arrived.clear();
    post_receives();
  }
  // Both ends.
  void post_receives() {
    ses::ReceiveOp op;
    op.local = {&slice, 1};
    for (Node* node : {&a, &b}) {
      ASSERT_TRUE(node->fep->ses().receive(*node->context, op, now).ok());
    }
  }
  void begin() {
    ASSERT_TRUE(send({&slice, 1}).ok());
    a.fep->push(now);
  }
  void reply() { reply({&slice, 1}); }
  void reply(std::span<const ses::IoSlice> slices) {
    const ses::Peer to = a.as_peer();
    ses::SendOp op;
    op.peer = &to;
    op.local = slices;
    ASSERT_TRUE(b.fep->ses().send(*b.context, op, now).ok());
    b.fep->posted(now);
  }
  // b takes what has come, and keeps its ACK if it can.
  bool take_and_keep() {
    b.fep->take(now);
    if (!b.fep->can_keep_acks(now)) return false;
    b.fep->keep_acks();
    return true;
  }

  std::byte byte{};
  const ses::IoSlice slice{&byte, 1};
  bool through_memory = false;
  std::string arrived;  // at a: requests and others
};

TEST_F(KeptAcks, LeaveBehindTheReply) {
  begin();
  ASSERT_TRUE(take_and_keep());
  EXPECT_EQ(b.sink.count(ses::Kind::Receive), 2U);  // the application can be told
  const std::size_t sent = b.nic.sent;
  b.fep->posted_receive(now);  // has nothing to send
  EXPECT_EQ(b.nic.sent, sent);
  EXPECT_EQ(b.fep->next_deadline(), now + microseconds(50));
  reply();
  EXPECT_EQ(b.nic.sent, sent + 2);
  a.fep->progress(now);
  EXPECT_EQ(arrived, "RA");
  EXPECT_EQ(b.fep->stats().pds.acks_kept, 1U);
  EXPECT_EQ(b.fep->stats().pds.acks_late, 0U);
  expect_clean_close();
}

// Its receiver waits for the ACK, and copying it takes long.
TEST_F(KeptAcks, LeaveBeforeALongReply) {
  std::array<std::byte, 8192> bytes{};
  const ses::IoSlice all{bytes.data(), bytes.size()};
  begin();
  ASSERT_TRUE(take_and_keep());
  reply({&all, 1});
  a.fep->progress(now);
  EXPECT_EQ(arrived.front(), 'A');
  EXPECT_EQ(arrived.find('A', 1), std::string::npos);
  EXPECT_GT(arrived.size(), 1U);
}

// As MPI does, which reads until there are no completions before it looks at what it read.
TEST_F(KeptAcks, StayForOneReadMoreThatBringsNothingToSend) {
  begin();
  EXPECT_FALSE(b.fep->keep_acks_longer(now));  // none are kept
  ASSERT_TRUE(take_and_keep());
  EXPECT_FALSE(b.fep->take(now));
  ASSERT_TRUE(b.fep->keep_acks_longer(now));
  EXPECT_FALSE(b.fep->keep_acks_longer(now));  // not twice
  reply();
  a.fep->progress(now);
  EXPECT_EQ(arrived, "RA");
  EXPECT_EQ(b.fep->stats().pds.acks_late, 0U);
  expect_clean_close();
}

TEST_F(KeptAcks, LeaveWithTheNextPassWithoutAReply) {
  begin();
  ASSERT_TRUE(take_and_keep());
  now += microseconds(50);
  EXPECT_FALSE(take_and_keep());  // not twice
  b.fep->push(now);
  a.fep->progress(now);
  EXPECT_EQ(arrived, "A");
  EXPECT_EQ(a.sink.count(ses::Kind::Send), 2U);
  EXPECT_EQ(b.fep->stats().pds.acks_late, 0U);
}

TEST_F(KeptAcks, LeaveWhenTheApplicationDoesNotComeBack) {
  begin();
  ASSERT_TRUE(take_and_keep());
  b.fep->push_kept_acks(now);
  a.fep->progress(now);
  EXPECT_EQ(arrived, "A");
  EXPECT_EQ(b.fep->stats().pds.acks_late, 1U);
  b.fep->push_kept_acks(now);
  EXPECT_EQ(b.fep->stats().pds.acks_late, 1U);  // nothing was kept
}

TEST_F(KeptAcks, AreNoneWhereAnAnswerCostsNothing) {
  through_memory = true;
  begin();
  EXPECT_FALSE(take_and_keep());
}

// A stream's window moves with its ACKs.
TEST_F(KeptAcks, AreNoneOfAStream) {
  post_receives();
  post_receives();
  for (int i = 0; i < 3; ++i) begin();
  EXPECT_FALSE(take_and_keep());
}

// Of partners that exchange, each hears of its own messages, too.
TEST_F(KeptAcks, AreThoseOfAMessageThatCameBesideAcks) {
  for (int i = 0; i < 3; ++i) {
    post_receives();
    reply();
    a.fep->progress(now);
  }
  begin();
  EXPECT_TRUE(take_and_keep());
  EXPECT_EQ(b.sink.count(ses::Kind::Send), 3U);
}

// Whoever receives only loses by it.
TEST_F(KeptAcks, AreFewWhereNobodyReplies) {
  int kept = 0;
  for (int i = 0; i < 8 + 64; ++i) {
    post_receives();
    begin();
    kept += take_and_keep() ? 1 : 0;
    b.fep->push(now);
    a.fep->progress(now);
    now += microseconds(16);
  }
  EXPECT_EQ(kept, 8 + 2);
}

TEST_F(KeptAcks, AreKeptAgainOnceThereAreReplies) {
  for (int i = 0; i < 8 + 32 + 10; ++i) {
    post_receives();
    begin();
    const bool kept = take_and_keep();
    if (i >= 8 + 31) {
      EXPECT_TRUE(kept) << i;
      reply();
    }
    b.fep->push(now);
    for (int pass = 0; pass < 3; ++pass) step();
  }
}

TEST_F(KeptAcks, AreNoneWhereDataWaitsToo) {
  reply();
  ASSERT_TRUE(run_while_not([this] { return b.sink.count(ses::Kind::Send) == 1; }));
  const ses::Peer to = a.as_peer();
  ses::SendOp op;
  op.peer = &to;
  op.local = {&slice, 1};
  ASSERT_TRUE(b.fep->ses().send(*b.context, op, now).ok());
  begin();
  EXPECT_FALSE(take_and_keep());
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

TEST_F(FepPair, WhatTheNicKnowsOfALostPeerEndsOperationsAtOnce) {
  std::byte byte{};
  const std::array local{ses::IoSlice{&byte, 1}};
  ASSERT_TRUE(send(local).ok());
  a.fep->progress(now);
  a.nic.lost_peer = b.nic.local_address();
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
    a.fep->posted(now);
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
  ASSERT_TRUE(a.fep->ses().send(*a.context, op, now).ok());
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
    EXPECT_TRUE(a.fep->ses().write(*a.context, rma({&source, 1}, key), now).ok());
    EXPECT_TRUE(a.fep->ses().read(*a.context, rma({&target, 1}, key), now).ok());
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
