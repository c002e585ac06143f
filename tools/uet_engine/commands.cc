// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "commands.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <span>

#include "ses/initiator.h"

namespace uet::engine {

using prov::CommandKind;
using prov::SharedCommand;

namespace {

constexpr std::size_t kMostInAPass = 64;  // transmits, before packets are taken

// The fields that all transmitting operations have.
void fill_in(const SharedCommand& command, const ses::Peer& peer, ses::TxOp& op) {
  op.peer = &peer;
  op.delivery_complete = has(command, SharedCommand::kDelivered);
  op.fence = has(command, SharedCommand::kFence);
  op.prompt_ack = has(command, SharedCommand::kPromptAck);
  op.context = context_of(command.operation);
}

Result<void> send(ses::Context& context, const SharedCommand& command, const ses::Peer& peer,
                  std::span<const ses::IoSlice> local, ses::Ses& ses, Time now) {
  ses::SendOp op;
  fill_in(command, peer, op);
  op.local = local;
  op.inject = has(command, SharedCommand::kInlined);
  if (has(command, SharedCommand::kHasData)) op.data = command.data;
  if (has(command, SharedCommand::kTagged)) op.tag = command.tag;
  return ses.initiator().post(context, op, now);
}

Result<void> access(ses::Context& context, const SharedCommand& command, const ses::Peer& peer,
                    std::span<const ses::IoSlice> local, ses::Ses& ses, Time now) {
  ses::RmaOp op;
  fill_in(command, peer, op);
  op.local = local;
  op.inject = has(command, SharedCommand::kInlined);
  if (has(command, SharedCommand::kHasData)) op.data = command.data;
  op.kind = has(command, SharedCommand::kIsRead) ? ses::Kind::Read : ses::Kind::Write;
  op.remote_offset = command.tag;
  op.key = Rkey{command.key};
  op.part = static_cast<ses::Part>(
      std::min<std::uint8_t>(command.part, static_cast<std::uint8_t>(ses::Part::RegionEnd)));
  return ses.initiator().post(context, op, now);
}

Result<void> receive(Context& context, const SharedCommand& command, const ses::Peer& peer,
                     std::span<const ses::IoSlice> local, ses::Ses& ses, Time now) {
  ses::ReceiveOp op;
  op.local = local;
  op.tagged = has(command, SharedCommand::kTagged);
  op.tag = command.tag;
  op.ignore = command.key;
  if (has(command, SharedCommand::kHasPeer)) op.source = &peer;
  if (has(command, SharedCommand::kHasJob)) op.job = JobId{command.job & kMaxJobId};
  op.claim = has(command, SharedCommand::kClaim);
  op.multi = has(command, SharedCommand::kMulti);
  op.min_free = command.min_free;
  op.context = context_of(command.operation);
  return context.queue != nullptr ? ses.receive(*context.queue, op, now)
                                  : ses.receive(*context.context, op, now);
}

}  // namespace

// Receives first, so that messages find them; all of them, since a peer may know of the last one.
bool Commands::execute_all(Rings& rings, ses::Ses& ses, Time now) {
  const auto tell = [](std::uint32_t& waits, bool value) {
    std::atomic_ref(waits).store(value ? 1 : 0, std::memory_order_relaxed);
  };
  const bool received = execute_ring(rings, rings.receives, receives_wait_, ses, now);
  tell(rings.share.receives.waits, receives_wait_);
  const bool sent = execute_ring(rings, rings.transmits, transmits_wait_, ses, now);
  tell(rings.share.transmits.waits, transmits_wait_);
  return received || sent;
}

bool Commands::execute_ring(Rings& rings, prov::CommandReader& ring, bool& waits, ses::Ses& ses,
                            Time now) {
  waits = false;
  const std::size_t most = &ring == &rings.receives ? prov::kShareCommands : kMostInAPass;
  for (std::size_t executed = 0; executed < most; ++executed) {
    const SharedCommand* const shared = ring.front();
    if (shared == nullptr) return executed > 0;
    SharedCommand command;
    std::memcpy(static_cast<void*>(&command), shared, sizeof command);
    if (!execute(command, rings, ses, now)) {
      waits = true;
      return executed > 0;
    }
    ring.pop();
  }
  return true;
}

// False: it has to wait; also for an application that takes no events, as each refusal is one.
bool Commands::execute(const SharedCommand& command, Rings& rings, ses::Ses& ses, Time now) {
  Context* const context = contexts_.find(command.context);
  if (context == nullptr) return true;  // closed since
  if (!context->can_take_event()) return false;
  try {
    const Result<void> started = start(*context, command, rings, ses, now);
    if (!started && started.error() == Error::Again) return false;
    if (!started) events_.refuse(command, started.error());
  } catch (const std::bad_alloc&) {
    return false;
  }
  return true;
}

Result<void> Commands::start(Context& context, const SharedCommand& command, Rings& rings,
                             ses::Ses& ses, Time now) {
  const ses::Peer peer = prov::peer_of(command.peer);
  const auto kind = static_cast<CommandKind>(command.kind);
  if (kind == CommandKind::Atomic) return start_atomic(context, command, peer, rings, ses, now);
  std::array<ses::IoSlice, ses::kMaxIoSlices> slices;
  std::size_t count = 0;
  if (has(command, SharedCommand::kInlined)) {
    if (command.inlined_bytes > prov::kShareInlineBytes) return Error::Invalid;
    slices[count++] = {rings.share.inlined[rings.transmits.place()].data(), command.inlined_bytes};
  } else {
    if (command.pieces > ses::kMaxIoSlices) return Error::Invalid;
    for (; count < command.pieces; ++count) {
      const prov::SharedPiece& piece = command.piece[count];
      slices[count] = {prov::address_of(piece.address), piece.length, &memory_};
    }
  }
  const std::span<const ses::IoSlice> local(slices.data(), count);
  if (kind == CommandKind::Receive) return receive(context, command, peer, local, ses, now);
  if (context.context == nullptr) return Error::Invalid;
  switch (kind) {
    case CommandKind::Send:
      return send(*context.context, command, peer, local, ses, now);
    case CommandKind::Rma:
      return access(*context.context, command, peer, local, ses, now);
    case CommandKind::Receive:
    case CommandKind::Atomic:
      break;
  }
  return Error::Invalid;
}

Result<void> Commands::start_atomic(Context& context, const SharedCommand& command,
                                    const ses::Peer& peer, Rings& rings, ses::Ses& ses, Time now) {
  if (context.context == nullptr) return Error::Invalid;
  ses::AtomicOp op;
  fill_in(command, peer, op);
  op.kind = static_cast<ses::Kind>(command.access);
  if (!ses::is_atomic(op.kind)) return Error::Invalid;
  op.op = static_cast<wire::AmoOp>(command.op);
  op.datatype = static_cast<wire::AmoDatatype>(command.datatype);
  op.remote_offset = command.tag;
  op.key = Rkey{command.key};
  const auto begun = atomics_.begin(command, rings.share.inlined[rings.transmits.place()]);
  if (!begun) return begun.error();
  const Atomics::Slices& slices = begun.value();
  if (slices.local.length > 0) op.local = {&slices.local, 1};
  if (slices.compare.length > 0) op.compare = {&slices.compare, 1};
  if (slices.results.length > 0) op.results = {&slices.results, 1};
  const Result<void> posted = ses.initiator().post(*context.context, op, now);
  if (!posted) atomics_.forget(command.operation);
  return posted;
}

}  // namespace uet::engine
