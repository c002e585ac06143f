// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "ses/payload.h"

namespace uet::ses {

// At most one packet per slice begins or ends inside the slice, so that few packets have to be
// looked at.
bool gather_pieces(TxMessage& message, bool inject, std::uint32_t payload_mtu, PieceStore& pieces) {
  if (message.length == 0 || (!inject && message.iov_count <= 2)) return true;
  Piece** end = &message.gathered;
  std::uint64_t slice_begin = 0;
  std::uint64_t packets_seen = 0;
  std::array<Slice, 2> unused;
  for (const IoSlice& slice : message.slices()) {
    const std::uint64_t packet = slice_begin / payload_mtu;
    slice_begin += slice.length;
    const std::uint64_t offset = packet * payload_mtu;
    if (packet < packets_seen || offset >= message.eager_bytes()) continue;
    packets_seen = packet + 1;
    const std::uint32_t length = piece_length(message, offset, payload_mtu);
    if (!inject && point(message.slices(), offset, length, unused)) continue;
    Piece* piece = pieces.take(length, pieces.for_answers());
    if (piece == nullptr) return false;
    gather(message.slices(), offset, length, piece->data);
    piece->offset = static_cast<std::uint32_t>(offset);
    *end = piece;
    end = &piece->next;
  }
  message.next_gathered = message.gathered;
  if (inject) {  // a target that reads the message reads the copy
    message.iov[0] = {message.gathered->data, message.gathered->length};
    message.iov_count = 1;
  }
  return true;
}

Result<void> hold_payload(TxMessage& message, const Copying& copying, PieceStore& pieces,
                          Staging& staging) {
  if (points_to_device(message) && !copying.all) return {};
  const auto is_on_device = [](const IoSlice& slice) { return slice.device != nullptr; };
  const auto slices = message.slices();
  bool all = copying.all;
  if (std::any_of(slices.begin(), slices.end(), is_on_device)) [[unlikely]] {
    // A datagram is made during the post, so that it cannot wait for a chunk.
    all = message.length <= copying.from_device || message.mode == DeliveryMode::Uud;
    if (!all) return staging.begin(message) ? Result<void>{} : Error::NoMemory;
  }
  if (!gather_pieces(message, all, copying.payload_mtu, pieces)) return Error::Again;
  return {};
}

bool point_at(const TxMessage& message, std::uint64_t offset, std::uint32_t length,
              std::array<Slice, 2>& out) {
  if (point(message.slices(), offset, length, out)) return true;
  for (const Piece* piece = message.gathered; piece != nullptr; piece = piece->next) {
    if (piece->offset != offset || piece->length < length) continue;
    out = {Slice{piece->data, length}, Slice{}};
    return true;
  }
  return false;
}

}  // namespace uet::ses
