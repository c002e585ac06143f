// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "ses/reads.h"

#include <algorithm>
#include <new>

#include "ses/atomic_request.h"
#include "ses/payload.h"
#include "ses/return_code.h"

namespace uet::ses {

Reads::Reads(const Parameters& parameters, Counters& counters)
    : payload_mtu_(parameters.payload_mtu),
      limit_bytes_(parameters.outstanding_reads_bytes),
      timeout_(parameters.read_timeout),
      host_copy_(parameters.host_copy),
      counters_(counters) {}

bool Reads::prepare() {
  try {
    if (!on_pdc_) on_pdc_.emplace(std::size_t{1} << 16);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

bool Reads::ask(TxMessage& message, std::uint32_t length) {
  if (!prepare()) return false;
  OnPdc& reads = (*on_pdc_)[message.pdc.value];
  if (reads.pieces > 0 && reads.bytes + length > limit_bytes_) {
    reads.blocked = true;
    return false;
  }
  message.bytes_awaited += length;
  ++message.pieces_awaited;
  reads.bytes += length;
  ++reads.pieces;
  delivery_->lock(message.pdc);  // until its data or an error came (PDS-15, SES-84)
  return true;
}

void Reads::on_answer(TxMessage& message, std::uint64_t offset,
                      const wire::SesResponseHeader& header, Time now) {
  const std::uint32_t outstanding_before = message.pieces_awaited;
  const bool without_data = header.next_hdr == wire::NextHdr::Response;
  if (!is_success(header.return_code) || (without_data && message.length == 0)) {
    resolve(message, offset);  // no data will follow
  } else if (!without_data) {
    place(message, offset, header.payload, now);
  } else {
    await_data(message, now);
  }
  const bool unresolved = message.pieces_awaited == outstanding_before;
  if (unresolved && message.mode == DeliveryMode::Rudi) message.fail(wire::ReturnCode::Uncor);
}

void Reads::resolve(TxMessage& message, std::uint64_t offset) {
  if (message.pieces_awaited == 0) return;
  OnPdc& reads = (*on_pdc_)[message.pdc.value];
  --message.pieces_awaited;
  --reads.pieces;
  // With the last piece goes the rest that a peer which answers twice has left in the count.
  const std::uint64_t bytes =
      message.pieces_awaited == 0
          ? message.bytes_awaited
          : std::min<std::uint64_t>(piece_length(message, offset, payload_mtu_),
                                    message.bytes_awaited);
  message.bytes_awaited -= bytes;
  reads.bytes -= bytes;
  delivery_->unlock(message.pdc);
  unblock(message.pdc);
}

void Reads::resolve_all(TxMessage& message) {
  while (message.pieces_awaited > 0) resolve(message, 0);
}

void Reads::drop(TxMessage& message) {
  if (message.pieces_awaited == 0) return;
  OnPdc& reads = (*on_pdc_)[message.pdc.value];
  reads.pieces -= message.pieces_awaited;
  reads.bytes -= message.bytes_awaited;
  message.pieces_awaited = 0;
  message.bytes_awaited = 0;
  unblock(message.pdc);
}

void Reads::unblock(PdcId pdc) {
  OnPdc& reads = (*on_pdc_)[pdc.value];
  if (!reads.blocked) return;
  reads.blocked = false;
  delivery_->kick(pdc);
}

// Only a piece that was asked for in this form is taken (SES-88). One of another length comes from
// a peer with another payload MTU (SES-25): the right one never will. An empty read asks for one
// empty piece, which some targets answer with an empty piece of data.
void Reads::place(TxMessage& message, std::uint64_t offset, std::span<const std::byte> data,
                  Time now) {
  const bool in_reach = offset < message.offset || (offset == 0 && message.length == 0);
  const bool asked = message.pieces_awaited > 0 && in_reach && offset % payload_mtu_ == 0;
  if (!asked || data.size() != piece_length(message, offset, payload_mtu_)) {
    ++counters_.stray_responses;
    if (!asked) return;
    message.fail(wire::ReturnCode::OpViolation);
  } else if (is_atomic(message.kind)) {
    place_results(message, data);
  } else {
    scatter(message.slices(), offset, data, host_copy_);
  }
  resolve(message, offset);
  await_data(message, now);
}

void Reads::await_data(TxMessage& message, Time now) {
  stop_awaiting(message);
  if (message.pieces_awaited == 0 || message.mode == DeliveryMode::Rudi) return;
  message.awaiting_since = now;
  awaiting_.push_back(message);
}

Time Reads::deadline() {
  const bool none = awaiting_.empty() || timeout_ == Duration{0};
  return none ? kNever : awaiting_.front().awaiting_since + timeout_;
}

}  // namespace uet::ses
