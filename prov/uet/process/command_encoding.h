// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// FI_UET_ENGINE=process: an operation as a command for the engine, which executes it
// (tools/uet_engine/commands.h). All operations have been checked (ses/operation_check.h).
#pragma once

#include <cstddef>
#include <span>

#include "process/share.h"
#include "uet/ses/api.h"

namespace uet::prov {

inline constexpr std::size_t kMostInjected = 4096;  // bytes of one operation

inline ses::Kind kind_of(const ses::SendOp& op) {
  return op.tag ? ses::Kind::TaggedSend : ses::Kind::Send;
}
inline ses::Kind kind_of(const ses::RmaOp& op) { return op.kind; }
inline ses::Kind kind_of(const ses::AtomicOp& op) { return op.kind; }
inline ses::Kind kind_of(const ses::ReceiveOp& op) {
  return op.tagged ? ses::Kind::TaggedReceive : ses::Kind::Receive;
}

// Each fills in a command of which only context, operation and sequence are set. `inlined`: the
// inline memory of the command.
void encode(const ses::SendOp& op, SharedCommand& command, std::span<std::byte> inlined);
void encode(const ses::RmaOp& op, SharedCommand& command, std::span<std::byte> inlined);
void encode(const ses::AtomicOp& op, SharedCommand& command, std::span<std::byte> inlined);
void encode(const ses::ReceiveOp& op, SharedCommand& command);

}  // namespace uet::prov
