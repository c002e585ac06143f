// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Moving bytes between packets, scattered user memory and buffers.
#include "ses/message.h"

#include <algorithm>
#include <cstring>

#include "ses/return_code.h"

namespace uet::ses {
namespace {

// Calls visit(data, length, slice) for the parts of bytes [offset, offset + length) of the slices,
// as far as they reach, until it returns false.
template <class Visit>
void for_each_part(std::span<const IoSlice> slices, std::uint64_t offset, std::uint64_t length,
                   Visit visit) {
  for (const IoSlice& slice : slices) {
    if (length == 0) return;
    if (offset >= slice.length) {
      offset -= slice.length;
      continue;
    }
    const std::uint64_t count = std::min<std::uint64_t>(slice.length - offset, length);
    if (!visit(slice.data + offset, static_cast<std::uint32_t>(count), slice)) return;
    offset = 0;
    length -= count;
  }
}

Kind kind_of(wire::SesOpcode opcode) {
  if (opcode == wire::SesOpcode::Write) return Kind::Write;
  return is_tagged(opcode) ? Kind::TaggedSend : Kind::Send;
}

}  // namespace

std::uint64_t total_length(std::span<const IoSlice> slices) {
  std::uint64_t total = 0;
  for (const IoSlice& slice : slices) {
    total = slice.length > UINT64_MAX - total ? UINT64_MAX : total + slice.length;
  }
  return total;
}

std::uint32_t scatter(std::span<const IoSlice> to, std::uint64_t offset,
                      std::span<const std::byte> data, HostCopy* host) {
  std::uint32_t copied = 0;
  const auto place_part = [&](std::byte* at, std::uint32_t count, const IoSlice& slice) {
    place(slice.device, host, at, data.subspan(copied, count));
    copied += count;
    return true;
  };
  for_each_part(to, offset, data.size(), place_part);
  return copied;
}

void gather(std::span<const IoSlice> from, std::uint64_t offset, std::uint32_t length,
            std::byte* to) {
  for_each_part(from, offset, length,
                [&](const std::byte* at, std::uint32_t count, const IoSlice& slice) {
                  fetch(slice.device, {to, count}, at);
                  to += count;
                  return true;
                });
}

void stage(std::span<const IoSlice> from, std::uint64_t offset, std::uint32_t length, std::byte* to,
           const StagingMemory& memory) {
  for_each_part(from, offset, length,
                [&](const std::byte* at, std::uint32_t count, const IoSlice& slice) {
                  const bool own = slice.device != nullptr && &slice.device->staging() == &memory;
                  if (own) slice.device->fetch_staged({to, count}, at);
                  if (!own) fetch(slice.device, {to, count}, at);
                  to += count;
                  return true;
                });
}

bool point(std::span<const IoSlice> from, std::uint64_t offset, std::uint32_t length,
           std::array<Slice, 2>& out) {
  out = {};
  std::size_t used = 0;
  bool fits = true;
  for_each_part(from, offset, length,
                [&](const std::byte* at, std::uint32_t count, const IoSlice&) {
                  fits = used < out.size();
                  if (fits) out[used++] = {at, count};
                  return fits;
                });
  return fits;
}

PieceStore::PieceStore(BufferPool& full) : full_(full) {}

Piece* PieceStore::take(std::uint32_t length, std::size_t reserve) {
  if (!pieces_.ready()) return nullptr;
  Small* const memory = length <= kSmallBytes ? small_.take() : nullptr;
  const bool small = memory != nullptr;
  std::byte* data = small ? memory->data() : nullptr;
  if (!small && length <= full_.buffer_bytes() && full_.available() > reserve) data = full_.take();
  if (data == nullptr) return nullptr;
  Piece* piece = pieces_.take();
  *piece = {.data = data, .length = length, .small = small};
  return piece;
}

void PieceStore::give_back(Piece* piece) {
  if (piece->small) {
    small_.give_back(reinterpret_cast<Small*>(piece->data));
  } else {
    full_.give_back(piece->data);
  }
  pieces_.give_back(piece);
}

void PieceStore::give_back_all(Piece*& first) {
  while (first != nullptr) {
    Piece* piece = first;
    first = piece->next;
    give_back(piece);
  }
}

void Envelope::describe(const pds::RequestView& view, const wire::SesRequest& request,
                        Context& to) {
  context = &to;
  match_bits = request.match_bits;
  source = view.source;
  initiator = request.initiator;
  request_length = whole_length(request) & kMaxOutsizedBytes;  // no more passes check_opcode
  job = request.job_id;
  pdc = view.pdc;
  message_id = request.message_id;
  kind = kind_of(request.opcode);
}

void Envelope::describe_first(const wire::SesRequest& request) {
  som_seen = true;
  has_data = request.hd;
  data = request.header_data;
}

}  // namespace uet::ses
