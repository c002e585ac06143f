// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "process/command_encoding.h"

#include <cstdint>
#include <cstring>

#include "uet/base/check.h"

namespace uet::prov {

namespace {

// Of what is not injected: copied once more here, but not read from this process by the engine.
constexpr std::size_t kInlineUnasked = 1024;

std::size_t bytes_of(std::span<const ses::IoSlice> local) {
  std::size_t bytes = 0;
  for (const ses::IoSlice& slice : local) bytes += slice.length;
  return bytes;
}

// Returns how many bytes. They fit: what is injected has at most kMostInjected bytes, and an atomic
// fits one packet.
std::uint32_t write_inline(std::span<const ses::IoSlice> local, std::span<std::byte> to) {
  std::size_t used = 0;
  for (const ses::IoSlice& slice : local) {
    UET_ASSERT(slice.length <= to.size() - used);
    if (slice.length > 0) std::memcpy(to.data() + used, slice.data, slice.length);
    used += slice.length;
  }
  return static_cast<std::uint32_t>(used);
}

void write_pieces(std::span<const ses::IoSlice> local, SharedCommand& command) {
  for (const ses::IoSlice& slice : local) {
    command.piece[command.pieces++] = {reinterpret_cast<std::uintptr_t>(slice.data), slice.length};
  }
}

void write_payload(const ses::TxOp& op, SharedCommand& command, std::span<std::byte> inlined) {
  if (!op.inject && bytes_of(op.local) > kInlineUnasked) return write_pieces(op.local, command);
  command.marks |= SharedCommand::kInlined;
  command.inlined_bytes = write_inline(op.local, inlined);
}

void write_common(const ses::TxOp& op, CommandKind kind, SharedCommand& command) {
  command.kind = static_cast<std::uint8_t>(kind);
  command.peer = share(*op.peer);
  if (op.delivery_complete) command.marks |= SharedCommand::kDelivered;
  if (op.fence) command.marks |= SharedCommand::kFence;
  if (op.prompt_ack) command.marks |= SharedCommand::kPromptAck;
  if (op.data) {
    command.marks |= SharedCommand::kHasData;
    command.data = *op.data;
  }
}

}  // namespace

void encode(const ses::SendOp& op, SharedCommand& command, std::span<std::byte> inlined) {
  write_common(op, CommandKind::Send, command);
  if (op.tag) {
    command.marks |= SharedCommand::kTagged;
    command.tag = *op.tag;
  }
  write_payload(op, command, inlined);
}

void encode(const ses::RmaOp& op, SharedCommand& command, std::span<std::byte> inlined) {
  write_common(op, CommandKind::Rma, command);
  command.part = static_cast<std::uint8_t>(op.part);
  command.tag = op.remote_offset;
  command.key = op.key.value;
  if (op.kind == ses::Kind::Read) {
    command.marks |= SharedCommand::kIsRead;
    write_pieces(op.local, command);
  } else {
    write_payload(op, command, inlined);
  }
}

void encode(const ses::AtomicOp& op, SharedCommand& command, std::span<std::byte> inlined) {
  write_common(op, CommandKind::Atomic, command);
  command.access = static_cast<std::uint8_t>(op.kind);
  command.op = static_cast<std::uint8_t>(op.op);
  command.datatype = static_cast<std::uint8_t>(op.datatype);
  command.tag = op.remote_offset;
  command.key = op.key.value;
  command.inlined_bytes = write_inline(op.local, inlined);
  command.compared_bytes = write_inline(op.compare, inlined.subspan(command.inlined_bytes));
  write_pieces(op.results, command);
}

void encode(const ses::ReceiveOp& op, SharedCommand& command) {
  command.kind = static_cast<std::uint8_t>(CommandKind::Receive);
  if (op.tagged) command.marks |= SharedCommand::kTagged;
  if (op.multi) command.marks |= SharedCommand::kMulti;
  if (op.claim) command.marks |= SharedCommand::kClaim;
  if (op.source != nullptr) {
    command.marks |= SharedCommand::kHasPeer;
    command.peer = share(*op.source);
  }
  if (op.job) {
    command.marks |= SharedCommand::kHasJob;
    command.job = op.job->value;
  }
  command.tag = op.tag;
  command.key = op.ignore;
  command.min_free = op.min_free;
  write_pieces(op.local, command);
}

}  // namespace uet::prov
