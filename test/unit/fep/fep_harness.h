// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Two Feps over NICs that are memory.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "fep/fep.h"
#include "ses/initiator.h"

namespace uet::fep {

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
    capabilities.ip_mtu = 9000;
    capabilities.receive_credit_bytes = 100'000;
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
      in[i]->way.connection = connection;
      if (!lose || !lose()) peer->take(*in[i]);
    }
    sent += count;
    return count;
  }
  std::uint64_t receive_backlog_bytes() const override { return backlog_bytes; }
  const nic::NicCaps& caps() const override { return capabilities; }
  FepAddress local_address() const override { return address_; }
  Time next_deadline() const override { return wants_attention; }
  std::optional<DeadPeer> poll_dead_peer() override { return std::exchange(dead_peer, {}); }
  PdcGuard* guard() override { return pdc_guard; }

  MemoryNic* peer = nullptr;
  nic::NicCaps capabilities;
  std::size_t accept = SIZE_MAX;  // packets of one burst
  std::size_t tx_bursts = 0;
  std::size_t sent = 0;
  std::uint64_t backlog_bytes = 0;
  Time wants_attention = kNever;
  std::uint16_t connection = 0;  // that is said to carry what is sent
  std::optional<DeadPeer> dead_peer;
  PdcGuard* pdc_guard = nullptr;  // before a Fep uses it
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

inline Config small_config(std::uint64_t seed) {
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

inline std::vector<std::byte> pattern(std::size_t bytes) {
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
                                           .more_jobs = {},
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
    return a.fep->ses().initiator().post(*a.context, op, now);
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
  ses::RmaOp rma(std::span<const ses::IoSlice> local, Rkey key,
                 ses::Kind kind = ses::Kind::Write) const {
    ses::RmaOp op;
    op.kind = kind;
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

}  // namespace uet::fep
