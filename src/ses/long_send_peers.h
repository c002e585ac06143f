// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// How peers take long sends (SES-161): which peers refuse the opcodes beyond SEND although their
// address states the profile (WIRE 3.12), and which peers have messages arrive before their
// receives. A hint: an entry may give way to that of another address, and is learnt again then.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/sparse_array.h"
#include "uet/base/address.h"

namespace uet::ses {

class LongSendPeers {
 public:
  static constexpr std::size_t kPeers = 256;

  // The peer takes SEND and TAGGED_SEND only, as far as is known.
  bool takes_plain_only(const FepAddress& peer) const {
    const Entry& entry = at(peer);
    return entry.peer == peer && (entry.takes == Takes::PlainOnly || entry.refused);
  }
  // The peer has refused another opcode. Its answer to a plain send tells whether because of that.
  void note_refusal(const FepAddress& peer) { entry_of(peer).refused = true; }
  void note_plain_answer(const FepAddress& peer, bool taken) {
    Entry& entry = entry_of(peer);
    if (taken) entry.takes = Takes::PlainOnly;
    entry.refused = false;
  }
  // A message came before its receive: the peer is served best by a message that it may read later.
  void note_unexpected(const FepAddress& peer) {
    Entry& entry = entry_of(peer);
    if (entry.takes == Takes::Unknown) entry.takes = Takes::Later;
  }
  // A rendezvous may go as a plain send, because nothing is known of the peer and no such message
  // is under way to it. True: the caller owes an end_trial().
  bool begin_trial(const FepAddress& peer) {
    Entry& entry = entry_of(peer);
    if (entry.takes != Takes::Unknown || entry.trying) return false;
    entry.trying = true;
    return true;
  }
  void end_trial(const FepAddress& peer) {
    if (at(peer).peer == peer) entry_of(peer).trying = false;
  }

 private:
  enum class Takes : std::uint8_t { Unknown, PlainOnly, Later };

  struct Entry {
    FepAddress peer;
    Takes takes = Takes::Unknown;
    bool refused = false;
    bool trying = false;
  };

  static std::size_t position(const FepAddress& peer) { return FepAddressHash{}(peer) % kPeers; }
  const Entry& at(const FepAddress& peer) const { return entries_[position(peer)]; }
  // If memory is short, one that is forgotten.
  Entry& entry_of(const FepAddress& peer) {
    Entry* known = entries_.make(position(peer));
    Entry& entry = known != nullptr ? * known : forgotten_ = {};
    if (entry.peer != peer) entry = Entry{.peer = peer};
    return entry;
  }

  SparseArray<Entry, kPeers, 16> entries_;
  Entry forgotten_;
};

}  // namespace uet::ses
