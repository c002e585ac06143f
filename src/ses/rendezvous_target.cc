// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The steps of a message that is read: waiting, reading, and what the end of a read means.
#include "ses/rendezvous_target.h"

#include <algorithm>
#include <array>

#include "ses/return_code.h"

namespace uet::ses {

namespace {

bool is_listed(const RxMessage& message) {
  return static_cast<const ListNode<PullTag>&>(message).linked();
}

// Bytes [offset, offset + length) of the slices as slices; their number.
std::size_t cut(std::span<const IoSlice> slices, std::uint64_t offset, std::uint64_t length,
                std::array<IoSlice, kMaxIoSlices>& out) {
  std::size_t count = 0;
  for (const IoSlice& slice : slices) {
    if (offset >= slice.length) {
      offset -= slice.length;
      continue;
    }
    const std::uint64_t part = std::min<std::uint64_t>(slice.length - offset, length);
    if (part > 0) out[count++] = {slice.data + offset, part, slice.device};
    length -= part;
    offset = 0;
  }
  return count;
}

}  // namespace

void RendezvousTarget::begin(RxMessage& message) {
  message.must_read = true;
  eager_.push_back(message);
  messages_.await(message);
}

bool RendezvousTarget::read_rest(RxMessage& message) {
  if (!message.must_read) return false;
  messages_.arrived(message);
  PullList::remove(message);
  if (message.read_from >= modified_length(message)) return false;
  queue_.push(message);
  queue_.try_now();
  return true;
}

void RendezvousTarget::dismiss(RxMessage& message) {
  if (!message.must_read) return messages_.release(message);
  messages_.arrived(message);
  if (is_listed(message)) PullList::remove(message);
  messages_.leave_context(message);
  message.state = RxState::Error;
  message.leaving = true;
  queue_.push(message);
  queue_.try_now();
}

void RendezvousTarget::stop(RxMessage& message) {
  message.must_read = false;
  if (is_listed(message)) PullList::remove(message);
}

Result<void> RendezvousTarget::ask(RxMessage& message, Time now) {
  std::array<IoSlice, kMaxIoSlices> into;
  std::uint64_t from = message.request_length;
  std::size_t count = 0;
  if (!message.leaving) {
    from = message.read_from;
    message.read_now = std::min(modified_length(message) - from, piece_bytes_);
    count = cut(message.receive->slices(), message.base + from, message.read_now, into);
  }
  const Result<void> started = pulls_.read(message, from, {into.data(), count}, now);
  if (!started) return started;
  PullList::remove(message);
  reading_.push_back(message);
  return started;
}

RendezvousTarget::Outcome RendezvousTarget::pulled(RxMessage& message, Status status,
                                                   bool not_consumed) {
  PullList::remove(message);
  // PDS-142: on a new PDC, the first time at once.
  const bool again = not_consumed && message.tries++ < retries_;
  if (!again || message.tries == 1) queue_.try_now();
  if (message.context == nullptr && !message.leaving) {  // closed meanwhile
    if (!again && status != Status::Ok) message.undelivered = true;
    dismiss(message);
    return Outcome::None;
  }
  if (again) {
    queue_.push(message);
    return Outcome::None;
  }
  if (message.leaving) {
    messages_.release(message);
    return Outcome::None;
  }
  if (status != Status::Ok) {
    message.undelivered = true;
    return Outcome::Failed;
  }
  message.read_from += message.read_now;
  if (message.read_from < modified_length(message)) {  // the next piece of an outsized one
    message.tries = 0;
    queue_.push(message);
    return Outcome::None;
  }
  message.placed = modified_length(message);
  message.must_read = message.placed < message.request_length;  // SES-63
  return Outcome::Whole;
}

void RendezvousTarget::discard_all() {
  release_all(eager_, messages_);
  release_all(reading_, messages_);
}

}  // namespace uet::ses
