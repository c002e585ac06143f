// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The memory of unexpected messages, and the one policy of who has it: what of a message is kept,
// what is read again later, and what is refused. Knows no queue and answers no packet;
// unexpected_messages.h does.
//
// Bounds: the memory of an endpoint, of which one host has at most three times what is free
// (Shares); the memory of one host in all endpoints of the FEP; and 7/8 of the FEP's payload
// buffers, of which one host has three times what is free, too. All that grows with the number of
// messages is charged: their states, their payload, and their places in the indices of MatchQueue.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/shares.h"
#include "ses/context.h"
#include "ses/message.h"
#include "ses/parameters.h"
#include "uet/base/slab.h"
#include "uet/pds/api.h"

namespace uet::ses {

// An unexpected message of one packet, which is here whole and nothing is to be read of: no more
// than what its receive needs, so that the host may send many ahead.
struct SingleMessage : Envelope {
  SingleMessage() : Envelope(true) {}
  std::span<const std::byte> payload() const { return {bytes, request_length}; }

  const std::byte* bytes = nullptr;
};

class Unexpected {
 public:
  enum class Fate : std::uint8_t { Keep, ReadLater, Refuse };

  // Payload of single messages that lies beside their state, by size; more of it in a piece.
  static constexpr std::array<std::uint32_t, 3> kInlineBytes = {8, 64, 256};

  // `pieces` outlives this one.
  Unexpected(const Parameters& parameters, PieceStore& pieces);

  // The packet carries a whole message, which keep_single() can keep.
  static bool is_whole(const wire::SesRequest& request);
  // The message that the packet brings, for `context`; on no list yet. nullptr, and `why`, if there
  // is no memory for it.
  SingleMessage* keep_single(const pds::RequestView& view, const wire::SesRequest& request,
                             Context& context, pds::NackCode& why);
  // Frees the message, which is on no list.
  void release(SingleMessage& message);

  // Charges the state of a message that has just been opened and, if its sender must have it kept,
  // memory for all its packets: else messages that have begun could hold all memory, and none get
  // what it needs to end. Only a message longer than all memory begins without; a peek must find
  // it. `parks`: nothing of it will be kept. False: there is no memory.
  bool admit(RxMessage& message, bool parks);
  // Adds the packet's payload, charged to the message, to what is kept of it.
  Fate keep(const wire::SesRequest& request, RxMessage& message);
  // Frees what was kept of the message and takes the charges back.
  void release_memory(RxMessage& message);

  // Memory in use of all contexts; and how close one context is to refusing messages, 0 to 1.
  std::size_t bytes() const { return bytes_; }
  double occupancy(const Context& context) const;
  // Single messages.
  std::size_t in_use() const;
  // Bytes that a single message with so much payload is charged.
  std::size_t cost(std::uint32_t payload_bytes) const;

 private:
  template <std::uint32_t kBytes>
  struct Inline : SingleMessage {
    std::array<std::byte, kBytes> room;
  };
  struct InPiece : SingleMessage {
    Piece* piece = nullptr;
  };

  bool fits_ever(std::size_t bytes) const;
  std::size_t cost_of_packets(std::uint64_t length) const;
  bool charge(Context& context, const FepAddress& source, std::size_t bytes);
  void refund(Context& context, const FepAddress& source, std::size_t bytes);
  Piece* take_piece(const wire::SesRequest& request, const FepAddress& source);
  void give_back(Piece* piece, const FepAddress& source);
  bool should_keep(const wire::SesRequest& request, const RxMessage& message) const;
  template <std::uint32_t kBytes>
  static SingleMessage* take_inline(Slab<Inline<kBytes>>& slab, const wire::SesRequest& request);
  SingleMessage* take_in_piece(const wire::SesRequest& request, const FepAddress& source);

  const std::size_t context_limit_bytes_;
  const std::size_t unpressed_bytes_;  // of it, what may be in use without pressing any sender
  const std::size_t host_limit_bytes_;
  const std::size_t eager_bytes_;
  const std::uint32_t payload_mtu_;
  PieceStore& pieces_;
  Shares shares_;         // of hosts in all that is charged
  Shares buffer_shares_;  // and in the payload buffers
  std::size_t bytes_ = 0;
  Slab<Inline<kInlineBytes[0]>> tiny_{SIZE_MAX};
  Slab<Inline<kInlineBytes[1]>> small_{SIZE_MAX};
  Slab<Inline<kInlineBytes[2]>> medium_{SIZE_MAX};
  Slab<InPiece> in_piece_{SIZE_MAX};
};

}  // namespace uet::ses
