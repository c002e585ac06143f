// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Charging the memory of unexpected messages to their contexts and hosts.
#include "ses/unexpected.h"

#include <algorithm>
#include <utility>

#include "ses/match.h"

namespace uet::ses {

using pds::NackCode;

namespace {

// Of a message that can be read again nothing is kept when this part of the memory, of the context
// or of the host, is full: the rest is for those that must be kept or refused.
constexpr std::size_t kReadableShare = 2;
constexpr std::size_t kMemoryShareWeight = 3;  // one host has 3/4 of the memory at most

std::size_t host_limit(const Parameters& parameters) {
  const std::size_t asked = parameters.unexpected_bytes_per_peer;
  return asked > 0 ? asked : parameters.unexpected_bytes_per_context / 4 * 3;
}

}  // namespace

Unexpected::Unexpected(const Parameters& parameters, PieceStore& pieces)
    : context_limit_bytes_(parameters.unexpected_bytes_per_context),
      unpressed_bytes_(parameters.rendezvous ? context_limit_bytes_ / kReadableShare : 0),
      host_limit_bytes_(host_limit(parameters)),
      eager_bytes_(parameters.eager_bytes),
      payload_mtu_(parameters.payload_mtu),
      pieces_(pieces),
      shares_(kMemoryShareWeight, parameters.seed),
      buffer_shares_(kMemoryShareWeight, parameters.seed) {}

double Unexpected::occupancy(const Context& context) const {
  if (context.unexpected_bytes <= unpressed_bytes_) return 0;
  return static_cast<double>(context.unexpected_bytes - unpressed_bytes_) /
         static_cast<double>(context_limit_bytes_ - unpressed_bytes_);
}

// ---- the bounds --------------------------------------------------------------------------------

// False, and nothing charged, when the memory or a share of it is used up.
bool Unexpected::charge(Context& context, const FepAddress& source, std::size_t bytes) {
  const std::uint64_t host = host_hash(source.ip);
  if (context.unexpected_bytes >= context_limit_bytes_) return false;
  const std::size_t available = context_limit_bytes_ - context.unexpected_bytes;
  if (!shares_.allows(host, bytes, available)) return false;
  if (shares_.held(host) + bytes > host_limit_bytes_) return false;
  context.unexpected_bytes += bytes;
  bytes_ += bytes;
  shares_.take(host, bytes);
  return true;
}

void Unexpected::refund(Context& context, const FepAddress& source, std::size_t bytes) {
  context.unexpected_bytes -= bytes;
  bytes_ -= bytes;
  shares_.give_back(host_hash(source.ip), bytes);
}

// A copy of the packet's payload. nullptr if there is no buffer for this host.
Piece* Unexpected::take_piece(const wire::SesRequest& request, const FepAddress& source) {
  const auto length = static_cast<std::uint32_t>(request.payload.size());
  const std::uint64_t host = host_hash(source.ip);
  const bool full = length > PieceStore::kSmallBytes;
  if (full && !buffer_shares_.allows(host, pieces_.largest(), pieces_.available_bytes())) {
    return nullptr;
  }
  Piece* piece = pieces_.take(length, pieces_.for_expected());
  if (piece == nullptr) return nullptr;
  std::copy(request.payload.begin(), request.payload.end(), piece->data);
  piece->offset = request.message_offset;
  if (!piece->small) buffer_shares_.take(host, pieces_.largest());
  return piece;
}

void Unexpected::give_back(Piece* piece, const FepAddress& source) {
  if (!piece->small) buffer_shares_.give_back(host_hash(source.ip), pieces_.largest());
  pieces_.give_back(piece);
}

// ---- messages of one packet --------------------------------------------------------------------

bool Unexpected::is_whole(const wire::SesRequest& request) {
  return request.som && request.eom && !wire::has_rendezvous_extension(request.opcode);
}

template <std::uint32_t kBytes>
SingleMessage* Unexpected::take_inline(Slab<Inline<kBytes>>& slab,
                                       const wire::SesRequest& request) {
  Inline<kBytes>* message = slab.take();
  if (message == nullptr) return nullptr;
  std::copy(request.payload.begin(), request.payload.end(), message->room.begin());
  message->bytes = message->room.data();
  return message;
}

SingleMessage* Unexpected::take_in_piece(const wire::SesRequest& request,
                                         const FepAddress& source) {
  Piece* piece = take_piece(request, source);
  if (piece == nullptr) return nullptr;
  InPiece* message = in_piece_.take();
  if (message == nullptr) {
    give_back(piece, source);
    return nullptr;
  }
  message->piece = piece;
  message->bytes = piece->data;
  return message;
}

std::size_t Unexpected::cost(std::uint32_t payload_bytes) const {
  constexpr std::size_t kIndex = MatchQueue::kIndexBytes;
  if (payload_bytes <= kInlineBytes[0]) return sizeof(Inline<kInlineBytes[0]>) + kIndex;
  if (payload_bytes <= kInlineBytes[1]) return sizeof(Inline<kInlineBytes[1]>) + kIndex;
  if (payload_bytes <= kInlineBytes[2]) return sizeof(Inline<kInlineBytes[2]>) + kIndex;
  return sizeof(InPiece) + pieces_.cost(payload_bytes) + kIndex;
}

SingleMessage* Unexpected::keep_single(const pds::RequestView& view,
                                       const wire::SesRequest& request, Context& context,
                                       NackCode& why) {
  const auto length = static_cast<std::uint32_t>(request.payload.size());
  why = NackCode::NoResource;
  if (!charge(context, view.source, cost(length))) return nullptr;
  SingleMessage* message = length <= kInlineBytes[0]   ? take_inline(tiny_, request)
                           : length <= kInlineBytes[1] ? take_inline(small_, request)
                           : length <= kInlineBytes[2] ? take_inline(medium_, request)
                                                       : take_in_piece(request, view.source);
  if (message == nullptr) {
    why = NackCode::NoPktBuffer;
    refund(context, view.source, cost(length));
    return nullptr;
  }
  message->describe(view, request, context);
  message->describe_first(request);
  return message;
}

void Unexpected::release(SingleMessage& message) {
  const auto length = static_cast<std::uint32_t>(message.request_length);
  refund(*message.context, message.source, cost(length));
  if (length <= kInlineBytes[0]) {
    tiny_.give_back(static_cast<Inline<kInlineBytes[0]>*>(&message));
  } else if (length <= kInlineBytes[1]) {
    small_.give_back(static_cast<Inline<kInlineBytes[1]>*>(&message));
  } else if (length <= kInlineBytes[2]) {
    medium_.give_back(static_cast<Inline<kInlineBytes[2]>*>(&message));
  } else {
    auto* const in_piece = static_cast<InPiece*>(&message);
    give_back(in_piece->piece, message.source);
    in_piece_.give_back(in_piece);
  }
}

std::size_t Unexpected::in_use() const {
  return tiny_.in_use() + small_.in_use() + medium_.in_use() + in_piece_.in_use();
}

// ---- other messages ----------------------------------------------------------------------------

// One host alone could have so much.
bool Unexpected::fits_ever(std::size_t bytes) const {
  const std::size_t share = context_limit_bytes_ / (kMemoryShareWeight + 1) * kMemoryShareWeight;
  return bytes <= std::min(share, host_limit_bytes_);
}

std::size_t Unexpected::cost_of_packets(std::uint64_t length) const {
  const auto last = static_cast<std::uint32_t>(length % payload_mtu_);
  const std::size_t full = length / payload_mtu_ * pieces_.cost(payload_mtu_);
  return last > 0 ? full + pieces_.cost(last) : full;
}

bool Unexpected::admit(RxMessage& message, bool parks) {
  constexpr std::size_t kState = sizeof(RxMessage) + MatchQueue::kIndexBytes;
  std::size_t packets = message.readable || parks ? 0 : cost_of_packets(message.expected);
  if (!fits_ever(kState + packets)) packets = 0;
  if (!charge(*message.context, message.source, kState + packets)) return false;
  message.charged = kState + packets;
  message.reserved = packets;
  return true;
}

bool Unexpected::should_keep(const wire::SesRequest& request, const RxMessage& message) const {
  return request.message_offset + request.payload.size() <= eager_bytes_ &&
         message.context->unexpected_bytes < context_limit_bytes_ / kReadableShare &&
         shares_.held(host_hash(message.source.ip)) < host_limit_bytes_ / kReadableShare;
}

Unexpected::Fate Unexpected::keep(const wire::SesRequest& request, RxMessage& message) {
  const Fate otherwise = message.readable ? Fate::ReadLater : Fate::Refuse;
  if (message.readable && !should_keep(request, message)) return otherwise;
  const std::size_t bytes = pieces_.cost(static_cast<std::uint32_t>(request.payload.size()));
  const bool reserved = bytes <= message.reserved;
  if (!reserved && !charge(*message.context, message.source, bytes)) return otherwise;
  Piece* piece = take_piece(request, message.source);
  if (piece == nullptr) {
    if (!reserved) refund(*message.context, message.source, bytes);
    return otherwise;
  }
  if (reserved) {
    message.reserved -= bytes;
  } else {
    message.charged += bytes;
  }
  piece->next = message.pieces;
  message.pieces = piece;
  return Fate::Keep;
}

void Unexpected::release_memory(RxMessage& message) {
  while (message.pieces != nullptr) {
    give_back(std::exchange(message.pieces, message.pieces->next), message.source);
  }
  refund(*message.context, message.source, message.charged);
  message.charged = message.reserved = 0;
}

}  // namespace uet::ses
