// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Between calls and commands: which calls fit a command, and the fields of each kind of operation.
#pragma once

#include <cstring>
#include <span>

#include "objects/post_receive.h"
#include "objects/tx_side.h"
#include "submission/command.h"
#include "submission/submission.h"

namespace uet::prov {

// ---- does it fit? ------------------------------------------------------------------------------

inline std::size_t pieces_of(const TxCall& call, const ses::TxOp&) { return call.count; }
inline std::size_t pieces_of(const TxCall& call, const ses::AtomicOp& op) {
  return call.count + op.compare.size() + op.results.size();
}

// An operation of several ranges does not; nor does an injected atomic that brings values back or
// compares.
template <class Op>
bool fits_command(const TxCall& call, const Op& op) {
  const bool inject = (call.flags & FI_INJECT) != 0;
  if constexpr (std::is_same_v<Op, ses::AtomicOp>) {
    if (inject && !(op.compare.empty() && op.results.empty())) return false;
  }
  return inject || pieces_of(call, op) <= kCommandPieces;
}

inline bool fits_command(const RxCall& call) {
  constexpr std::uint64_t kLooks = FI_PEEK | FI_CLAIM | FI_DISCARD | kAuthKeyFlag;
  return call.count <= kCommandPieces && (call.flags & kLooks) == 0;
}

// Does any of these descriptors name a region?
inline bool name_regions(void* const* descriptors, std::size_t count) {
  return std::any_of(descriptors, descriptors + count, [](void* each) { return each != nullptr; });
}

// ---- from a call to a command ------------------------------------------------------------------

inline void write_pieces(const iovec* iov, std::size_t count, void* const* descriptors,
                         Command& command) {
  command.first.iov_base = count > 0 ? iov[0].iov_base : nullptr;
  command.first.iov_len = count > 0 ? iov[0].iov_len : 0;
  for (std::size_t i = 1; i < count; ++i) command.more[i - 1] = iov[i];
  command.pieces = static_cast<std::uint8_t>(count);
  command.described = descriptors != nullptr && name_regions(descriptors, count);
  if (command.described) std::copy_n(descriptors, count, command.descriptors.begin());
}

// The bytes of an injected operation, one piece behind the other, become the command's only piece.
inline void write_inline(const TxCall& call, CommandRing& ring, Command& command) {
  const std::size_t length = total_bytes(call.iov, call.count).value_or(0);  // checked before
  std::byte* const begin = ring.inline_data(command, length);
  std::byte* end = begin;
  for (const iovec& piece : std::span(call.iov, call.count)) {
    if (piece.iov_len > 0) std::memcpy(end, piece.iov_base, piece.iov_len);
    end += piece.iov_len;
  }
  command.first = {begin, length};
  command.pieces = 1;
  command.described = false;
}

inline void write_operation(const ses::SendOp& op, Command& command) {
  command.opcode = Opcode::Send;
  command.tagged = op.tag.has_value();
  command.tag = op.tag.value_or(0);
}

inline void write_operation(const ses::RmaOp& op, Command& command) {
  command.opcode = Opcode::Rma;
  command.kind = op.kind;
  command.tag = op.remote_offset;
  command.key = op.key.value;
}

// Behind the pieces of the call.
inline void write_operation(const ses::AtomicOp& op, Command& command) {
  write_operation(static_cast<const ses::RmaOp&>(op), command);
  command.opcode = Opcode::Atomic;
  command.op = op.op;
  command.datatype = op.datatype;
  command.compare = static_cast<std::uint8_t>(op.compare.size());
  command.results = static_cast<std::uint8_t>(op.results.size());
  std::size_t piece = command.pieces;
  for (const ses::IoSlice& slice : op.compare) command.piece(piece++) = {slice.data, slice.length};
  for (const ses::IoSlice& slice : op.results) command.piece(piece++) = {slice.data, slice.length};
}

// ---- and back ----------------------------------------------------------------------------------

// All pieces; `iov` takes kCommandPieces.
inline std::size_t read_pieces(const Command& command, iovec* iov) {
  const std::size_t count = std::size_t{command.pieces} + command.compare + command.results;
  for (std::size_t i = 0; i < count; ++i) iov[i] = command.piece(i);
  return count;
}

inline ses::Kind kind_of(const Command& command) {
  switch (command.opcode) {
    case Opcode::Send:
      return command.tagged ? ses::Kind::TaggedSend : ses::Kind::Send;
    case Opcode::Receive:
      return command.tagged ? ses::Kind::TaggedReceive : ses::Kind::Receive;
    default:
      return command.kind;
  }
}

inline void read_operation(const Command& command, ses::SendOp& op) {
  if (command.tagged) op.tag = command.tag;
}

inline void read_operation(const Command& command, ses::RmaOp& op) {
  op.kind = command.kind;
  op.remote_offset = command.tag;
  op.key = Rkey{command.key};
}

// `slices`: all pieces of the command.
inline void read_operation(const Command& command, std::span<const ses::IoSlice> slices,
                           ses::AtomicOp& op) {
  read_operation(command, op);
  op.op = command.op;
  op.datatype = command.datatype;
  op.compare = slices.subspan(command.pieces, command.compare);
  op.results = slices.subspan(std::size_t{command.pieces} + command.compare, command.results);
}
template <class Op>
void read_operation(const Command& command, std::span<const ses::IoSlice>, Op& op) {
  read_operation(command, op);
}

}  // namespace uet::prov
