// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A Fep and the rebuilt reference provider, each as initiator and as target: every operation ends
// at both ends, without an error and with the right data, though packets and ACKs get lost.
#include "sim/reference_peer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <tuple>

namespace uet::sim {
namespace {

using wire::SesOpcode;

constexpr std::uint64_t kIdempotent = std::uint64_t{1} << 63;  // IDEMPOTENT_SAFE of a key
constexpr std::size_t kOperations = 160;
constexpr auto kLimit = std::chrono::minutes(5);

struct Case {
  const char* name;
  DeliveryMode mode;
  Loss loss;
};

constexpr std::array kCases = {
    Case{"Rud", DeliveryMode::Rud, {}},
    Case{"RudLoss3", DeliveryMode::Rud, {.each_way = 0.03}},
    Case{"RudAckLoss10", DeliveryMode::Rud, {.acks = 0.1}},
    Case{"RudBoth", DeliveryMode::Rud, {.each_way = 0.03, .acks = 0.1}},
    Case{"Rod", DeliveryMode::Rod, {}},
    Case{"RodLoss3", DeliveryMode::Rod, {.each_way = 0.03}},
    Case{"RodAckLoss10", DeliveryMode::Rod, {.acks = 0.1}},
    Case{"RodBoth", DeliveryMode::Rod, {.each_way = 0.03, .acks = 0.1}},
    Case{"Rudi", DeliveryMode::Rudi, {}},
    Case{"RudiBoth", DeliveryMode::Rudi, {.each_way = 0.03, .acks = 0.1}},
};

enum class Op : std::uint8_t { Send, Tagged, Write, WriteImm, Read, Add, FetchAdd, Cswap };
constexpr std::size_t kOps = 8;
Op op_of(std::size_t i) { return static_cast<Op>(i % kOps); }

// One packet, several, and more than an eager part.
std::size_t length_of(std::size_t i) {
  constexpr std::array<std::size_t, 5> kLengths = {10, 0, 1024, 5000, 20'000};
  return kLengths[i / kOps % kLengths.size()];
}

std::uint64_t big_endian(std::span<const std::byte> bytes) {
  std::uint64_t value = 0;
  for (const std::byte byte : bytes.first(8)) value = value << 8 | static_cast<std::uint8_t>(byte);
  return value;
}

constexpr int kSeeds = 5;

class Reference : public ::testing::TestWithParam<std::tuple<Case, int>> {
 protected:
  const Case& which() const { return std::get<0>(GetParam()); }
  void expect_no_fault() const {
    for (const std::string& fault : peer.faults) ADD_FAILURE() << fault;
    const bool loses = which().loss.each_way + which().loss.acks > 0;
    EXPECT_EQ(peer.lost > 0, loses);
  }
  bool rudi() const { return which().mode == DeliveryMode::Rudi; }

  ReferencePeer peer{which().mode, which().loss,
                     static_cast<std::uint64_t>(std::get<1>(GetParam()))};
};

// "RudLoss3Seed4"
std::string name_of(const ::testing::TestParamInfo<std::tuple<Case, int>>& info) {
  return std::string(std::get<0>(info.param).name) + "Seed" +
         std::to_string(std::get<1>(info.param));
}

// ---- the Fep as initiator ----------------------------------------------------------------------

class ReferenceTarget : public Reference {
 protected:
  static constexpr std::size_t kOpen = 2 * kOps;    // operations at a time
  static constexpr std::size_t kPlace = 24 * 1024;  // of memory, for one of them
  static constexpr std::uint64_t offset_of(std::size_t i) { return i % kOpen * kPlace; }

  void post(std::size_t i) {
    ses::Peer to = peer.wire.as_peer();
    to.hpc = true;  // it states more profiles than it has
    to.ai_full = i % 2 == 1;
    local = pattern(length_of(i), static_cast<unsigned>(i));
    locals[i] = local;
    const Op op = op_of(i);
    switch (op) {
      case Op::Send:
      case Op::Tagged: {
        ses::SendOp send;
        send.data = i;
        if (op == Op::Tagged) send.tag = i;
        return post(send, to, locals[i], i);
      }
      case Op::Write:
      case Op::WriteImm:
      case Op::Read: {
        ses::RmaOp rma;
        if (op == Op::WriteImm) rma.data = i;
        if (op == Op::Read) {
          rma.kind = ses::Kind::Read;
          std::ranges::copy(locals[i],
                            peer.memory.begin() + static_cast<std::ptrdiff_t>(offset_of(i)));
          std::ranges::fill(locals[i], std::byte{0});
        }
        rma.remote_offset = offset_of(i);
        rma.key = Rkey{0x1234 | (op == Op::WriteImm ? 0 : kIdempotent)};
        return post(rma, to, locals[i], i);
      }
      default:
        return post_atomic(i, to);
    }
  }
  // The word at the operation's place is i before it, and i + 1 after it.
  void post_atomic(std::size_t i, const ses::Peer& to) {
    for (std::size_t byte = 0; byte < 8; ++byte) {
      peer.memory[offset_of(i) + byte] = static_cast<std::byte>(i >> (56 - 8 * byte));
    }
    ses::AtomicOp atomic;
    atomic.remote_offset = offset_of(i);
    atomic.key = Rkey{0x1234};
    atomic.datatype = wire::AmoDatatype::Uint64;
    atomic.op = wire::AmoOp::Sum;
    words[i] = {op_of(i) == Op::Cswap ? i + 1 : 1, 0, i};
    const auto slice = [&](std::size_t word) {
      return ses::IoSlice{reinterpret_cast<std::byte*>(&words[i][word]), 8};
    };
    const ses::IoSlice result = slice(1);
    const ses::IoSlice compare = slice(2);
    if (op_of(i) != Op::Add) {
      atomic.kind = ses::Kind::FetchAtomic;
      atomic.results = {&result, 1};
    }
    if (op_of(i) == Op::Cswap) {
      atomic.kind = ses::Kind::CompareAtomic;
      atomic.op = wire::AmoOp::Cswap;
      atomic.compare = {&compare, 1};
    }
    const ses::IoSlice operand = slice(0);
    atomic.local = {&operand, 1};
    post_op(atomic, to, i);
  }
  template <class Operation>
  void post(Operation& op, const ses::Peer& to, std::vector<std::byte>& bytes, std::size_t i) {
    const ses::IoSlice slice{bytes.data(), bytes.size()};
    op.local = {&slice, 1};
    post_op(op, to, i);
  }
  template <class Operation>
  void post_op(Operation& op, const ses::Peer& to, std::size_t i) {
    op.peer = &to;
    op.context = &locals[i];
    auto& wire = peer.wire;
    ASSERT_TRUE(wire.fep().ses().initiator().post(wire.context(), op, wire.now()).ok()) << i;
    wire.push();
  }
  // The effect of the operation at the peer, or the data that it has brought.
  void expect_done(std::size_t i) {
    const auto expected = pattern(length_of(i), static_cast<unsigned>(i));
    const auto at = std::span(peer.memory).subspan(offset_of(i), expected.size());
    switch (op_of(i)) {
      case Op::Send:
      case Op::Tagged:
        return;  // see expect_taken()
      case Op::Write:
      case Op::WriteImm:
        EXPECT_TRUE(std::ranges::equal(at, expected)) << i;
        return;
      case Op::Read:
        EXPECT_EQ(locals[i], expected) << i;
        return;
      default:
        EXPECT_EQ(big_endian(std::span(peer.memory).subspan(offset_of(i))), i + 1);
        EXPECT_EQ(words[i][1], op_of(i) == Op::Add ? 0 : i) << "the old value";
    }
  }
  void expect_taken() {
    std::array<std::size_t, kOperations> times{};
    for (const auto& message : peer.taken) {
      ASSERT_TRUE(message.data.has_value() && *message.data < kOperations);
      const std::size_t i = *message.data;
      ++times[i];
      const bool tagged = message.opcode == SesOpcode::TaggedSend;
      EXPECT_EQ(tagged, op_of(i) == Op::Tagged) << i;
      EXPECT_TRUE(!tagged || message.tag == i) << i;
      EXPECT_EQ(message.bytes, pattern(length_of(i), static_cast<unsigned>(i))) << i;
    }
    for (std::size_t i = 0; i < kOperations; ++i) {
      EXPECT_EQ(times[i],
                op_of(i) == Op::Send || op_of(i) == Op::Tagged || op_of(i) == Op::WriteImm)
          << i;
    }
  }

  std::vector<std::byte> local;
  std::array<std::vector<std::byte>, kOperations> locals;
  std::array<std::array<std::uint64_t, 3>, kOperations> words{};
};

TEST_P(ReferenceTarget, EveryOperationEndsAtBothEnds) {
  const auto& completions = peer.wire.sink.completions;
  std::vector<bool> ended(kOperations);
  std::size_t seen = 0;
  const auto collect = [&] {
    for (; seen < completions.size(); ++seen) {
      const auto i = static_cast<std::size_t>(
          static_cast<std::vector<std::byte>*>(completions[seen].context) - locals.data());
      EXPECT_EQ(completions[seen].status, ses::Status::Ok) << i;
      EXPECT_FALSE(ended[i]) << i;
      ended[i] = true;
      expect_done(i);
    }
  };
  for (std::size_t i = 0; i < kOperations; ++i) {
    ASSERT_TRUE(peer.run_until(
        [&] {
          collect();
          return i < kOpen || ended[i - kOpen];
        },
        kLimit))
        << "operation " << i - kOpen << " hangs";
    post(i);
  }
  ASSERT_TRUE(peer.run_until([&] { return completions.size() == kOperations; }, kLimit));
  collect();
  EXPECT_TRUE(peer.run_until([&] { return peer.idle(); }, kLimit)) << "the peer keeps descriptors";
  expect_taken();
  expect_no_fault();
  EXPECT_FALSE(peer.refused.empty()) << "it has refused no rendezvous";
}

INSTANTIATE_TEST_SUITE_P(All, ReferenceTarget,
                         ::testing::Combine(::testing::ValuesIn(kCases),
                                            ::testing::Range(0, kSeeds)),
                         name_of);

// ---- the Fep as target -------------------------------------------------------------------------

class ReferenceInitiator : public Reference {
 protected:
  ReferenceInitiator() {
    if (!rudi()) return;
    ri::MemoryRegion region;
    region.base = peer.wire.memory.data();
    region.length = peer.wire.memory.size();
    region.access = ri::kRemoteRead | ri::kRemoteWrite;
    key = Rkey{kIdempotent | 0x1234};
    EXPECT_TRUE(peer.wire.fep().regions().add_with_key(region, key));
  }
  void post_receive(std::size_t i) {
    room.assign(length_of(i), std::byte{0});
    const ses::IoSlice slice{room.data(), room.size()};
    ses::ReceiveOp receive;
    receive.local = {&slice, 1};
    receive.tagged = op_of(i) == Op::Tagged;
    receive.tag = i;
    auto& wire = peer.wire;
    ASSERT_TRUE(wire.fep().ses().receive(wire.context(), receive, wire.now()).ok());
  }
  void post(std::size_t i) {
    const bool outsized = length_of(i) >= ForeignPeer::kEager;
    auto data = pattern(length_of(i), static_cast<unsigned>(i));
    auto request = peer.wire.to_context(SesOpcode::Send, 0);
    switch (op_of(i)) {
      case Op::Tagged:
        request.match_bits = i;
        [[fallthrough]];
      case Op::Send:
        request.opcode = op_of(i) == Op::Send
                             ? (outsized ? SesOpcode::DeferrableSend : SesOpcode::Send)
                             : (outsized ? SesOpcode::DeferrableTsend : SesOpcode::TaggedSend);
        if (outsized) request.set_restart_tokens(static_cast<std::uint32_t>(77 + i), 0);
        break;
      case Op::Write:
      case Op::WriteImm:
        request.opcode = SesOpcode::Write;
        request.hd = op_of(i) == Op::WriteImm;
        request.header_data = i;
        break;
      case Op::Read:
        request.opcode = SesOpcode::Read;
        std::ranges::copy(data, peer.wire.memory.begin() + 512);
        break;
      default:
        return post_atomic(i);
    }
    if (op_of(i) > Op::Tagged) {
      request.match_bits = key.value;
      request.buffer_offset = 512;
    }
    const auto length = static_cast<std::uint32_t>(data.size());
    peer.post(request, op_of(i) == Op::Read ? std::vector<std::byte>{} : std::move(data), length);
  }
  // The word at offset 0 of the Fep's memory is i before it, and i + 1 after it.
  void post_atomic(std::size_t i) {
    const std::uint64_t before = i;
    std::memcpy(peer.wire.memory.data(), &before, sizeof before);
    const bool fetch = op_of(i) != Op::Add;
    auto request = peer.wire.to_context(fetch ? SesOpcode::FetchingAtomic : SesOpcode::Atomic, 0);
    request.match_bits = key.value;
    request.atomic = {.op = wire::AmoOp::Sum, .datatype = wire::AmoDatatype::Uint64};
    std::vector<std::byte> operand(8);
    operand[7] = std::byte{1};
    if (op_of(i) == Op::Cswap) {
      request.atomic.op = wire::AmoOp::Cswap;
      request.atomic.compare_value.low = i;
      request.atomic.swap_value.low = i + 1;
      operand.clear();
    }
    peer.post(request, std::move(operand), 8);
  }
  void expect_done(std::size_t i) {
    const auto expected = pattern(length_of(i), static_cast<unsigned>(i));
    const auto at = std::span(peer.wire.memory).subspan(512, expected.size());
    std::uint64_t word = 0;
    std::memcpy(&word, peer.wire.memory.data(), sizeof word);
    switch (op_of(i)) {
      case Op::Send:
      case Op::Tagged:
        EXPECT_EQ(room, expected) << i;
        return;
      case Op::Write:
      case Op::WriteImm:
        EXPECT_TRUE(std::ranges::equal(at, expected)) << i;
        return;
      case Op::Read:
        EXPECT_EQ(peer.done.back().bytes, expected) << i;
        return;
      default:
        EXPECT_EQ(word, i + 1) << "done once";
        if (op_of(i) == Op::Add) return;
        ASSERT_EQ(peer.done.back().bytes.size(), 8U);
        EXPECT_EQ(big_endian(peer.done.back().bytes), i) << "the old value";
    }
  }

  Rkey key = peer.wire.key;
  std::vector<std::byte> room;
};

TEST_P(ReferenceInitiator, EveryOperationEndsAtBothEnds) {
  auto& completions = peer.wire.sink.completions;
  std::size_t ended = 0;
  for (std::size_t i = 0; i < kOperations; ++i) {
    // RUDI carries accesses that may be repeated, and nothing else.
    if (rudi() && op_of(i) != Op::Write && op_of(i) != Op::Read) continue;
    const bool receives = op_of(i) <= Op::Tagged;
    const bool unexpected = receives && i % 3 == 0 && length_of(i) < ForeignPeer::kEager;
    if (receives && !unexpected) post_receive(i);
    post(i);
    ++ended;
    const bool over = peer.run_until([&] { return peer.done.size() == ended; }, kLimit);
    ASSERT_TRUE(over) << "operation " << i << " hangs";
    if (unexpected) post_receive(i);
    ASSERT_EQ(completions.size(), receives || op_of(i) == Op::WriteImm ? 1U : 0U) << i;
    for (const auto& completion : completions) {
      EXPECT_EQ(completion.status, ses::Status::Ok) << i;
      EXPECT_TRUE(receives || completion.data == i);
    }
    completions.clear();
    expect_done(i);
  }
  expect_no_fault();
}

INSTANTIATE_TEST_SUITE_P(All, ReferenceInitiator,
                         ::testing::Combine(::testing::ValuesIn(kCases),
                                            ::testing::Range(0, kSeeds)),
                         name_of);

}  // namespace
}  // namespace uet::sim
