// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Atomics at the initiator: one packet with the operands in wire order (SES-90), and the old values
// that come back. The operands are copied when the operation is posted, because their byte order
// changes; from then on the slices of the message are those of the results.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "ses/message.h"
#include "uet/base/result.h"
#include "uet/ses/api.h"

namespace uet::ses {

// Bytes that the operation works on.
std::uint64_t bytes_of(const AtomicOp& op);
// Invalid: form, operator, datatype or slices do not fit together; TooLong: more than `most_bytes`,
// or more than one element of a compare-and-swap.
Result<void> check_atomic_op(const AtomicOp& op, std::size_t most_bytes);
// Writes header and operands of `op` into the message. False: no buffer for the operands.
bool write_operands(TxMessage& message, const AtomicOp& op, PieceStore& pieces);
// Writes the old values that came back into the user's memory.
void place_results(const TxMessage& message, std::span<const std::byte> results);

}  // namespace uet::ses
