// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Where the payload of an operation's packets lies: in the user's memory, or in copies (pieces) of
// the parts that the two slices of a packet cannot point to.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "ses/message.h"
#include "ses/staging.h"
#include "uet/base/check.h"
#include "uet/base/packet.h"
#include "uet/base/result.h"

namespace uet::ses {

// Bytes of the packet that begins at byte `offset` of the message.
inline std::uint32_t piece_length(const TxMessage& message, std::uint64_t offset,
                                  std::uint32_t payload_mtu) {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(payload_mtu, message.length - offset));
}

// Copies the packets that span more than two slices, and with `inject` the whole message, so that
// making a packet never waits for a buffer. False: there is no buffer; the caller releases the
// message, pieces included.
bool gather_pieces(TxMessage& message, bool inject, std::uint32_t payload_mtu, PieceStore& pieces);

// The NIC reads the bytes out of a device's memory itself. Not if they lie in several slices, whose
// devices may differ.
inline bool points_to_device(const TxMessage& message) {
  const bool one = message.iov_count == 1 && message.iov[0].device != nullptr;
  return one && message.iov[0].device->is_read_by_nic() && message.mode != DeliveryMode::Uud;
}

// The bytes that hold_payload() copies at once.
struct Copying {
  bool all;                 // inject
  std::size_t from_device;  // bytes of a message on a device, at most
  std::uint32_t payload_mtu;
};
// Sees to all that the message's packets cannot point to: copies it, or leaves the memory of a
// device to `staging`. Again, NoMemory: as gather_pieces(), or for Staging::begin().
Result<void> hold_payload(TxMessage& message, const Copying& copying, PieceStore& pieces,
                          Staging& staging);

// Points `out` at the `length` bytes of the next packet, which begins at `message.offset`.
inline void point_next(TxMessage& message, std::uint32_t length, std::array<Slice, 2>& out) {
  Piece* piece = message.next_gathered;
  if (piece != nullptr && piece->offset == message.offset) {
    out = {Slice{piece->data, length}, Slice{}};
    message.next_gathered = piece->next;
    return;
  }
  const bool pointed = point(message.slices(), message.offset, length, out);
  UET_ASSERT(pointed);  // gather_pieces copied all others
  (void)pointed;
}
// Points `out` at any `length` bytes of the message; false if they lie in more than two parts.
bool point_at(const TxMessage& message, std::uint64_t offset, std::uint32_t length,
              std::array<Slice, 2>& out);

}  // namespace uet::ses
