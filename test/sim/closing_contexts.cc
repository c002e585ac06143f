// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "sim/closing_contexts.h"

#include <algorithm>
#include <array>

#include "ses/initiator.h"
#include "sim/run_plan.h"

namespace uet::sim {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr ResourceIndex kIndex{5};
constexpr std::size_t kRegionBytes = 64 * 1024;
constexpr std::byte kPayload{0x11};  // of what is sent; never kScribble

bool holds_scribble(const std::vector<std::byte>& bytes) {
  return std::ranges::find(bytes, kScribble) != bytes.end();
}

}  // namespace

class ClosingContexts::Sink final : public ses::CompletionSink {
 public:
  void complete(const ses::Completion&) noexcept override { late = late || closed; }
  bool can_take_event() noexcept override { return true; }
  bool reserve_receive() noexcept override { return true; }
  void release_receive() noexcept override {}
  void remote_access(ses::Kind, std::uint64_t) noexcept override { late = late || closed; }

  bool closed = false;
  bool late = false;  // it heard of something after its context was closed
};

struct ClosingContexts::Actor {
  int node = 0;
  Sink sink;
  ses::Context* context = nullptr;
  ses::Peer peer;  // how others name it
  Rkey key;
  std::vector<std::byte> region = std::vector<std::byte>(kRegionBytes);
  std::vector<std::unique_ptr<Buffer>> sources;   // of its operations
  std::vector<std::unique_ptr<Buffer>> receives;  // and of its receives
};

ClosingContexts::ClosingContexts(SimWorld& world, const Plan& plan)
    : world_(world), plan_(plan), rng_(plan.seed ^ 0xC105E) {}

ClosingContexts::~ClosingContexts() {
  for (auto& actor : actors_) {
    if (actor->context != nullptr) close(*actor);
  }
}

void ClosingContexts::open(int node, const ses::ContextConfig& like, const ses::Peer& peer) {
  Actor& actor = *actors_.emplace_back(std::make_unique<Actor>());
  actor.node = node;
  ses::ContextConfig config = like;
  config.resource_index = kIndex;
  config.initiator = InitiatorId{like.initiator.value + 70};
  auto& fep = world_.fep(node);
  actor.context = fep.ses().open_context(config, actor.sink).value();
  fep.ses().enable(*actor.context);
  actor.peer = peer;
  actor.peer.resource_index = config.resource_index;
  actor.peer.initiator = config.initiator;
  ri::MemoryRegion region;
  region.base = actor.region.data();
  region.length = actor.region.size();
  region.access = ri::kRemoteRead | ri::kRemoteWrite;
  actor.key = fep.regions().add(region).value();
}

void ClosingContexts::start() {
  for (auto& each : actors_) {
    Actor& actor = *each;
    const Duration end = microseconds(rng_.between(1, 20'000));
    for (auto count = rng_.between(1, 24); count > 0; --count) {
      const auto when = rng_.below(static_cast<std::uint64_t>(end.count()));
      world_.after(Duration(static_cast<std::int64_t>(when)), [this, &actor] { act(actor); });
    }
    world_.after(end, [this, &actor] {
      if (rng_.chance(0.5)) {  // packets that have just been posted
        post(actor);
        post(actor);
      }
      if (actor.context != nullptr && world_.alive(actor.node)) close(actor);
    });
  }
}

void ClosingContexts::act(Actor& actor) {
  if (actor.context == nullptr || !world_.alive(actor.node)) return;
  rng_.chance(0.3) ? receive(actor) : post(actor);
  world_.posted(actor.node);
}

ClosingContexts::Buffer& ClosingContexts::buffer(Actor& actor, std::size_t length) {
  Buffer& buffer = *actor.sources.emplace_back(std::make_unique<Buffer>());
  buffer.bytes.assign(std::max<std::size_t>(length, 1), kPayload);
  return buffer;
}

// A full pool refuses some: that is one fewer.
void ClosingContexts::post(Actor& actor) {
  if (actor.context == nullptr || !world_.alive(actor.node)) return;
  const Actor& target = *actors_[rng_.below(actors_.size())];
  const std::size_t most = rng_.chance(0.5) ? 4 * plan_.fep.ses.payload_mtu : 512;
  std::size_t length = rng_.below(std::min<std::size_t>(most, kRegionBytes) + 1);
  const auto dice = rng_.below(100);
  const bool atomic = dice >= 85;
  if (atomic) length = 8 * rng_.between(1, 16);
  Buffer& local = buffer(actor, length);
  std::vector<ses::IoSlice> slices{{local.bytes.data(), length}};
  if (!atomic && rng_.chance(0.3)) {
    const std::size_t first = rng_.below(length / 3 + 1);
    const std::size_t second = rng_.below(length / 3 + 1);
    std::byte* data = local.bytes.data();
    slices = {
        {data, first}, {data + first, second}, {data + first + second, length - first - second}};
  }
  ses::Initiator& initiator = world_.fep(actor.node).ses().initiator();
  const auto fill = [&](ses::TxOp& op) {
    op.peer = &target.peer;
    op.local = slices;
    op.prompt_ack = rng_.chance(0.7);
  };
  if (atomic) {
    Buffer& results = buffer(actor, length);
    const ses::IoSlice slice{results.bytes.data(), length};
    ses::AtomicOp op;
    fill(op);
    op.key = target.key;
    op.remote_offset = 8 * rng_.below(64);
    op.kind = rng_.chance(0.5) ? ses::Kind::FetchAtomic : ses::Kind::Atomic;
    op.op = wire::AmoOp::Bor;
    op.datatype = wire::AmoDatatype::Uint64;
    if (op.kind == ses::Kind::FetchAtomic) op.results = {&slice, 1};
    (void)initiator.post(*actor.context, op, world_.now());
  } else if (dice >= 50) {
    ses::RmaOp op;
    fill(op);
    op.key = target.key;
    op.remote_offset = rng_.below(kRegionBytes - length + 1);
    op.kind = dice >= 70 ? ses::Kind::Read : ses::Kind::Write;
    (void)initiator.post(*actor.context, op, world_.now());
  } else {
    ses::SendOp op;
    fill(op);
    op.inject = length <= 256 && rng_.chance(0.3);
    op.delivery_complete = rng_.chance(0.15);
    if (dice >= 25) op.tag = rng_.below(2);
    (void)initiator.post(*actor.context, op, world_.now());
  }
}

void ClosingContexts::receive(Actor& actor) {
  Buffer& buffer = *actor.receives.emplace_back(std::make_unique<Buffer>());
  buffer.bytes.assign(rng_.between(1, 5 * plan_.fep.ses.payload_mtu), std::byte{});
  const ses::IoSlice slice{buffer.bytes.data(), buffer.bytes.size()};
  ses::ReceiveOp op;
  op.local = {&slice, 1};
  op.tagged = rng_.chance(0.5);
  op.tag = rng_.below(2);
  (void)world_.fep(actor.node).ses().receive(*actor.context, op, world_.now());
}

// The memory of the operations is the application's again at once.
void ClosingContexts::close(Actor& actor) {
  world_.fep(actor.node).ses().close_context(*actor.context, world_.now());
  actor.context = nullptr;
  actor.sink.closed = true;
  for (auto& buffer : actor.sources) {
    std::ranges::fill(buffer->bytes, kScribble);
    buffer->scribbled = true;
  }
  world_.posted(actor.node);
}

bool ClosingContexts::all_closed() const {
  return std::ranges::all_of(actors_, [&](const auto& actor) {
    return actor->context == nullptr || !world_.alive(actor->node);
  });
}

std::string ClosingContexts::complaint() const {
  for (const auto& actor : actors_) {
    const std::string name = "closed context of node " + std::to_string(actor->node);
    if (actor->sink.late) return name + ": it heard of something after its end";
    if (holds_scribble(actor->region)) return name + ": memory was sent after its end";
    for (const auto& buffer : actor->receives) {
      if (holds_scribble(buffer->bytes)) return name + ": received memory of a closed context";
    }
    for (const auto& buffer : actor->sources) {
      const auto is_scribble = [](std::byte b) { return b == kScribble; };
      if (buffer->scribbled && !std::ranges::all_of(buffer->bytes, is_scribble)) {
        return name + ": memory was written after its end";
      }
    }
  }
  return {};
}

}  // namespace uet::sim
