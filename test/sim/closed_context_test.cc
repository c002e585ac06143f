// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// SES-165: a context is closed while its operations are on their way, and its memory is freed at
// once. Another context of its node, whose operations share the PDC, notices nothing.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "ses/initiator.h"
#include "sim/stage.h"

namespace uet::sim {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr std::byte kFreed{0xEE};  // in no message
constexpr std::size_t kOperations = 3;
constexpr std::size_t kOffset = 65536;  // in the memory of the target: what the context reaches
constexpr std::size_t kStride = 65536;

bool holds_freed_memory(Stage& stage) {
  const std::span<const std::byte> reached = std::span(stage.actor(1).memory).subspan(kOffset);
  return std::ranges::find(reached, kFreed) != reached.end();
}

enum class Operation { Send, Tagged, Inject, Write, Read, FetchAtomic };
// Where the packets of the closed context are.
enum class Moment {
  Posted,      // they are not made
  InNicQueue,  // the NIC has taken the first ones
  Unanswered,  // their ACKs are lost; some wait for the window
  Lost,        // half of them are lost, and all ACKs
};

struct Scene {
  DeliveryMode mode = DeliveryMode::Rud;
  Operation operation = Operation::Send;
  std::size_t length = 0;
  Moment moment = Moment::Posted;
  bool expected = true;  // the target has receives
  bool rendezvous = false;
};

class ClosedContext : public testing::TestWithParam<std::tuple<DeliveryMode, Operation>> {
 protected:
  static StageConfig config(const Scene& scene) {
    StageConfig config;
    config.mode = scene.mode;
    config.fep.pds.rto_init = milliseconds(1);
    config.fep.pds.pdcs_per_destination = 1;  // all on the PDC of the closed context
    if (scene.rendezvous) config.fep.ses.rendezvous_threshold_bytes = 0;
    if (scene.rendezvous) config.fep.ses.eager_bytes = 0;
    if (scene.moment == Moment::InNicQueue) {
      config.nic_tx_queue = 4;
      config.nic_rate_bps = 1'000'000'000;
    } else {
      config.fep.cms.fixed_window_bytes = config.fep.cms.max_window_bytes = 12 * 1100;
    }
    return config;
  }

  // An operation of the closing context, of memory of its own.
  void post(Stage& stage, const Scene& scene) {
    std::vector<std::byte>& memory = *memory_.emplace_back(
        std::make_unique<std::vector<std::byte>>(scene.length, std::byte{0x5A}));
    const std::vector<ses::IoSlice> local{{memory.data(), memory.size()}};
    ses::Initiator& initiator = stage.fep(0).ses().initiator();
    const auto fill = [&](ses::TxOp& op) {
      op.peer = &stage.actor(1).peer;
      op.local = local;
      op.inject = scene.operation == Operation::Inject;
    };
    const auto fill_rma = [&](ses::RmaOp& op) {
      fill(op);
      op.key = stage.actor(1).key;
      op.remote_offset = kOffset + (memory_.size() - 1) * kStride;
    };
    if (scene.operation == Operation::FetchAtomic) {
      results_.push_back(std::make_unique<std::vector<std::byte>>(scene.length));
      const std::vector<ses::IoSlice> results{{results_.back()->data(), scene.length}};
      ses::AtomicOp op;
      fill_rma(op);
      op.kind = ses::Kind::FetchAtomic;
      op.op = wire::AmoOp::Sum;
      op.datatype = wire::AmoDatatype::Uint64;
      op.results = results;
      ASSERT_TRUE(initiator.post(*closing_, op, stage.world().now()).ok());
    } else if (scene.operation == Operation::Write || scene.operation == Operation::Read) {
      ses::RmaOp op;
      fill_rma(op);
      if (scene.operation == Operation::Read) op.kind = ses::Kind::Read;
      ASSERT_TRUE(initiator.post(*closing_, op, stage.world().now()).ok());
    } else {
      ses::SendOp op;
      fill(op);
      if (scene.operation == Operation::Tagged) op.tag = 7;
      ASSERT_TRUE(initiator.post(*closing_, op, stage.world().now()).ok());
    }
  }

  void post_receives(Stage& stage, const Scene& scene) {
    const bool tagged = scene.operation == Operation::Tagged;
    for (std::size_t i = 0; i < kOperations; ++i) {
      const ses::IoSlice slice{stage.actor(1).memory.data() + kOffset + i * kStride, kStride};
      ses::ReceiveOp op;
      op.local = {&slice, 1};
      op.tagged = tagged;
      op.tag = 7;
      ASSERT_TRUE(
          stage.fep(1).ses().receive(*stage.actor(1).context, op, stage.world().now()).ok());
    }
  }

  void close(Stage& stage) {
    stage.fep(0).ses().close_context(*closing_, stage.world().now());
    for (auto* memories : {&memory_, &results_}) {
      for (auto& memory : *memories) std::ranges::fill(*memory, kFreed);
      memories->clear();  // the sanitizer notices each later look at it
    }
  }

  void play(const Scene& scene) {
    Stage stage(config(scene));
    stage.actor(1).peer.hpc = scene.rendezvous;
    std::ranges::fill(stage.actor(1).memory, std::byte{});
    const Time begin = stage.world().now();
    const Time healed = begin + milliseconds(3);
    const bool lossy = scene.moment == Moment::Unanswered || scene.moment == Moment::Lost;
    stage.world().filter = [&, forth = 0](const Sighting& sighting) mutable {
      if (!lossy || stage.world().now() >= healed) return false;
      return sighting.from == 1 || (scene.moment == Moment::Lost && ++forth % 2 == 0);
    };
    const bool sends = scene.operation <= Operation::Inject;
    if (sends && scene.expected) post_receives(stage, scene);
    ses::Ses& ses = stage.fep(0).ses();
    ses::ContextConfig second = ses.config(*stage.actor(0).context);
    second.resource_index = ResourceIndex{77};
    RecordingSink sink;
    closing_ = ses.open_context(second, sink).value();
    for (std::size_t i = 0; i < kOperations; ++i) post(stage, scene);
    if (scene.moment == Moment::Posted) {
      close(stage);
      ASSERT_TRUE(stage.write(0, 1, 0, 8192).ok());
    } else {
      ASSERT_TRUE(stage.write(0, 1, 0, 8192).ok());
      const Duration wait =
          scene.moment == Moment::InNicQueue ? Duration(microseconds(20)) : milliseconds(1);
      stage.world().run_for(wait);
      close(stage);
    }
    ASSERT_TRUE(stage.read(0, 1, 0, 4096, 2).ok());

    ASSERT_TRUE(stage.completes(0, 2));
    for (const ses::Completion& completion : stage.actor(0).sink.completions) {
      EXPECT_EQ(completion.status, ses::Status::Ok);
    }
    EXPECT_TRUE(stage.world().run_until([&] { return ses.idle(); }, milliseconds(100)));
    if (sends && !scene.expected) post_receives(stage, scene);  // for what has come whole
    const auto target_idle = [&] { return stage.fep(1).ses().idle(); };
    EXPECT_TRUE(stage.world().run_until(target_idle, milliseconds(100)));
    EXPECT_TRUE(
        stage.world().run_until([&] { return stage.fep(0).quiescent(); }, milliseconds(100)));
    EXPECT_FALSE(holds_freed_memory(stage));
    EXPECT_TRUE(sink.completions.empty());
    EXPECT_EQ(stage.counters(0).pdcs_opened, 1U);
    EXPECT_EQ(stage.counters(0).pdcs_failed, 0U);
    EXPECT_EQ(stage.counters(1).pdcs_failed, 0U);
  }

  ses::Context* closing_ = nullptr;
  std::vector<std::unique_ptr<std::vector<std::byte>>> memory_;
  std::vector<std::unique_ptr<std::vector<std::byte>>> results_;
};

TEST_P(ClosedContext, Ses165_CostsTheOthersOnItsPdcNothing) {
  const auto [mode, operation] = GetParam();
  const bool one_packet = operation == Operation::Inject || operation == Operation::FetchAtomic;
  const bool sends = operation <= Operation::Inject;
  for (const std::size_t length : {std::size_t{64}, std::size_t{1024}, std::size_t{20000}}) {
    if (one_packet && length > 1024) continue;
    for (const Moment moment :
         {Moment::Posted, Moment::InNicQueue, Moment::Unanswered, Moment::Lost}) {
      for (const bool expected : {true, false}) {
        for (const bool rendezvous : {false, true}) {
          if (!sends && (!expected || rendezvous)) continue;
          SCOPED_TRACE("length " + std::to_string(length) + ", moment " +
                       std::to_string(static_cast<int>(moment)) + (expected ? ", expected" : "") +
                       (rendezvous ? ", rendezvous" : ""));
          play({mode, operation, length, moment, expected, rendezvous});
        }
      }
    }
  }
}

std::string name_of(const testing::TestParamInfo<std::tuple<DeliveryMode, Operation>>& info) {
  static constexpr const char* kNames[] = {"Send",  "Tagged", "Inject",
                                           "Write", "Read",   "FetchAtomic"};
  return std::string(std::get<0>(info.param) == DeliveryMode::Rud ? "Rud" : "Rod") +
         kNames[static_cast<int>(std::get<1>(info.param))];
}

INSTANTIATE_TEST_SUITE_P(All, ClosedContext,
                         testing::Combine(testing::Values(DeliveryMode::Rud, DeliveryMode::Rod),
                                          testing::Values(Operation::Send, Operation::Tagged,
                                                          Operation::Inject, Operation::Write,
                                                          Operation::Read, Operation::FetchAtomic)),
                         name_of);

// The target reads the message of the closed context, and is refused the rest.
TEST(ClosedContextThatIsRead, Ses165_ReaderIsRefusedTheRest) {
  StageConfig config;
  config.fep.ses.rendezvous_threshold_bytes = 0;
  config.fep.ses.eager_bytes = 0;
  config.fep.ses.rma_piece_bytes = 1024;  // all but the first packet is to be read
  Stage stage(config);
  stage.actor(1).peer.hpc = true;
  std::ranges::fill(stage.actor(1).memory, std::byte{});
  ses::Ses& ses = stage.fep(0).ses();
  ses::ContextConfig second = ses.config(*stage.actor(0).context);
  second.resource_index = ResourceIndex{77};
  RecordingSink sink;
  ses::Context* const closing = ses.open_context(second, sink).value();
  auto memory = std::make_unique<std::vector<std::byte>>(300'000, std::byte{0x5A});
  const ses::IoSlice slice{memory->data(), memory->size()};
  ses::SendOp op;
  op.peer = &stage.actor(1).peer;
  op.local = {&slice, 1};
  ASSERT_TRUE(stage.receive(1, 65536, 400'000, 5).ok());
  // No answer to a read arrives before the context closes.
  const Time healed = stage.world().now() + milliseconds(3);
  stage.world().filter = [&](const Sighting& sighting) {
    return stage.world().now() < healed && sighting.from == 0 &&
           sighting.packet->bytes.size() > 600 && stage.requests(0).size() > 1;
  };
  ASSERT_TRUE(ses.initiator().post(*closing, op, stage.world().now()).ok());
  ASSERT_TRUE(stage.write(0, 1, 0, 512).ok());
  stage.world().run_for(milliseconds(1));
  ses.close_context(*closing, stage.world().now());
  std::ranges::fill(*memory, kFreed);
  memory.reset();
  ASSERT_TRUE(stage.completes(0, 1));
  EXPECT_EQ(stage.actor(0).sink.completions[0].status, ses::Status::Ok);
  ASSERT_TRUE(stage.completes(1, 1));
  EXPECT_NE(stage.actor(1).sink.completions[0].status, ses::Status::Ok);
  EXPECT_TRUE(stage.world().run_until([&] { return ses.idle() && stage.fep(1).ses().idle(); },
                                      milliseconds(100)));
  EXPECT_FALSE(holds_freed_memory(stage));
  EXPECT_EQ(stage.counters(0).pdcs_failed, 0U);
  EXPECT_EQ(stage.counters(1).pdcs_failed, 0U);
}

}  // namespace
}  // namespace uet::sim
