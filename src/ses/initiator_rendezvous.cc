// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Sends that the target may read (SES-56 to 64), seen from their sender; and the reads that a
// target posts for itself.
//
// Everything is sent eagerly, so that an expected message costs no more than a plain one. A target
// that has no receive for it keeps as much as it likes and says RESPONSE, OVERFLOW, modified_length
// 0: "the rest is dropped, I shall read it" (as SES-67 does for deferral). From then on no data are
// made any more (as SES-69), and the send is complete when the target has read to the end.
#include <algorithm>

#include "uet/base/siphash.h"
#include "uet/ses/initiator.h"
#include "uet/ses/rendezvous.h"

namespace uet::ses {

// ---- the sender --------------------------------------------------------------------------------

// Long sends, since a target may not want to keep them; those that must say when they are
// delivered, since only the read tells it (SES-110, SES-111).
void Initiator::offer_reads(TxMessage& message, const Peer& peer) {
  wire::SesRequest& header = message.header;
  const bool served = uses_rendezvous_ && peer.hpc;
  if (!served || (message.length <= rendezvous_threshold_bytes_ && !header.dc)) return;
  const ContextConfig& config = message.context->config;
  const RiGeneration generation = message.context->generation.value;
  const bool tagged = message.kind == Kind::TaggedSend;
  header.opcode = tagged ? wire::SesOpcode::RendezvousTsend : wire::SesOpcode::RendezvousSend;
  header.rendezvous.eager_length = header.request_length;
  header.rendezvous.read_ri_generation = generation;
  header.rendezvous.read_pid_on_fep = config.pid_on_fep;
  header.rendezvous.read_resource_index = config.resource_index;
  header.rendezvous.read_memory_key = new_read_key(header.message_id);
  message.readable = true;
}

// Who has had some cannot tell those of others from them.
Rkey Initiator::new_read_key(MsgId id) {
  const std::uint64_t hash = siphash(key_secret_[0], key_secret_[1], ++keys_made_);
  return message_key(id, static_cast<std::uint32_t>(hash));
}

void Initiator::await_read(TxMessage& message, Time now) {
  if (message.awaits_read) return;
  message.awaits_read = true;
  message.awaiting_since = now;
  watch(message);
  awaiting_read_.push_back(message);
}

void Initiator::stop_awaiting_read(TxMessage& message) {
  if (message.awaits_read) awaiting_read_.remove(message);
  message.awaits_read = false;
}

// Its PDC is kept, and asks whether the target still lives.
void Initiator::watch(TxMessage& message) {
  if (message.watched) return;
  message.watched = true;
  delivery_->watch(message.pdc);
  ++reads_[message.pdc.value].watched;
}

void Initiator::stop_watching(TxMessage& message) {
  if (!message.watched) return;
  message.watched = false;
  --reads_[message.pdc.value].watched;
  delivery_->unwatch(message.pdc);
}

// Sends that wait for their target, and whose PDC has closed meanwhile.
void Initiator::watch_on_other_pdcs(Time now) {
  next_watch_ = kNever;
  const auto look_at = [&](TxMessage& message) {
    const bool waits = message.pdc == PdcId{} && !message.failed() && message.context != nullptr;
    if (!waits) return;
    const auto pdc = delivery_->connect(destination_of(message), now);
    if (pdc) {
      message.pdc = pdc.value();
      watch(message);
    } else {
      next_watch_ = now + kWatchAgain;
    }
  };
  for (TxMessage& message : awaiting_read_) look_at(message);
  for (TxMessage& message : deferred_) look_at(message);
}

TxMessage* Initiator::readable(Rkey key, JobId job, const FepAddress& reader) {
  TxMessage* message = by_id_[message_of(key).value];
  const bool valid = message != nullptr && message->readable && !message->failed() &&
                     message->header.rendezvous.read_memory_key == key &&
                     message->header.job_id == job && message->to == reader;
  return valid ? message : nullptr;
}

bool Initiator::point_at(const TxMessage& message, std::uint64_t offset, std::uint32_t length,
                         std::array<Slice, 2>& out) {
  if (point(message.slices(), offset, length, out)) return true;
  for (const Piece* piece = message.gathered; piece != nullptr; piece = piece->next) {
    if (piece->offset != offset || piece->length < length) continue;
    out = {Slice{piece->data, length}, Slice{}};
    return true;
  }
  return false;
}

// `reaches_end`: the read of which this packet asked for `length` of `read_length` bytes ends where
// the message ends. Its packets may come in any order.
void Initiator::read_served(TxMessage& message, bool reaches_end, std::uint32_t length,
                            std::uint32_t read_length, Time now) {
  await_read(message, now);  // its answer may have been lost
  if (reaches_end) {
    message.last_read_bytes += length;
    message.read_out = message.last_read_bytes >= read_length;
  }
  finish_if_done(message);
}

void Initiator::reader_gave_up(TxMessage& message) {
  fail(message, wire::ReturnCode::Dropped);
  finish_if_done(message);
}

void Initiator::answer_done(ReadAnswer& answer) {
  TxMessage& message = *answer.source;
  message.answers.remove(answer);
  finish_if_done(message);
}

// Makes no more packets of a failed message and ends it at its target with a MSG_ERROR (SES-113).
// That one goes when all others are answered: it would do nothing for packets that come after it,
// because the target had no room for them before.
void Initiator::abandon(TxMessage& message, Time now) {
  if (!message.ended && !delivery_->cancel(message)) return;
  message.ended = true;
  message.owes_error = true;
  if (message.packets_answered == message.packets_made) send_error(message, now);
}

void Initiator::send_error(TxMessage& message, Time now) {
  if (message.owes_error) {
    message.owes_error = false;
    message.ended = false;
    if (send_behind(message, now)) return;
    message.ended = true;
  }
  finish_if_done(message);
}

// Where the rest of the message has gone, or to its target on another PDC if that has closed.
Result<void> Initiator::send_behind(TxMessage& message, Time now) {
  if (message.pdc != PdcId{}) return delivery_->send_on(message.pdc, message, now);
  if (message.context == nullptr) return Error::NotFound;
  return delivery_->send(message, destination_of(message), now);
}

void Initiator::expire_reads(Time now) {
  if (rendezvous_timeout_ == Duration{0}) return;
  for (auto at = awaiting_read_.begin(); at != awaiting_read_.end();) {
    TxMessage& message = *at;
    ++at;
    if (now - message.awaiting_since < rendezvous_timeout_) return;
    if (message.failed() || message.read_out) continue;
    fail(message, pds::PdsError::RtoExhausted);  // SES-64: FI_ETIMEDOUT
    abandon(message, now);
  }
}

Time Initiator::read_deadline() {
  if (rendezvous_timeout_ == Duration{0}) return kNever;
  for (const TxMessage& message : awaiting_read_) {
    if (!message.failed() && !message.read_out) {
      return message.awaiting_since + rendezvous_timeout_;
    }
  }
  return kNever;
}

// ---- the target's own reads --------------------------------------------------------------------

Result<void> Initiator::pull(RxMessage& message, std::uint64_t from, std::span<const IoSlice> into,
                             Time now) {
  TxMessage* read = prepare_pull(message, wire::SesOpcode::Read);
  if (read == nullptr) return Error::Again;
  read->kind = Kind::Read;
  read->length = total_length(into);
  read->iov_count = static_cast<std::uint32_t>(into.size());
  std::copy(into.begin(), into.end(), read->iov.begin());

  wire::SesRequest& header = read->header;
  const wire::RendezvousExtension& where = message.rendezvous;
  header.ie = message.undelivered;
  header.ri_generation = where.read_ri_generation;
  header.pid_on_fep = where.read_pid_on_fep;
  header.resource_index = where.read_resource_index;
  header.buffer_offset = where.read_offset + from;
  header.match_bits = where.read_memory_key.value;
  header.request_length = static_cast<std::uint32_t>(read->length);
  return submit_pull(*read, message, now);
}

// nullptr: there are too many.
TxMessage* Initiator::prepare_pull(RxMessage& message, wire::SesOpcode opcode) {
  TxMessage* read = pulls_count_ < pulls_limit_ ? messages_.take() : nullptr;
  if (read == nullptr) return nullptr;
  read->pull = true;
  read->pull_for = &message;
  read->to = message.source;
  read->header.opcode = opcode;
  read->header.rel = message.relative;
  read->header.message_id = take_id(*read);
  read->header.job_id = message.job;
  pulling_.push_back(*read);
  ++pulls_count_;
  return read;
}

Result<void> Initiator::submit_pull(TxMessage& read, const RxMessage& message, Time now) {
  // What the peer does to drain its memory must not wait behind what fills ours.
  const pds::Destination destination{.address = message.source,
                                     .job = message.job,
                                     .mode = DeliveryMode::Rud,
                                     .reserved_pool = true};
  const auto started = delivery_->send(read, destination, now);
  if (!started) release(read);
  return started;
}

// As soon as the bytes are in place: their sender may hear of it before the last request packet is
// answered, and whoever it tells must find them delivered.
void Initiator::tell_puller(TxMessage& read) {
  RxMessage& message = *read.pull_for;
  read.pull_for = nullptr;
  const bool not_consumed =
      read.status == Status::PdsError && read.pds_error == pds::PdsError::NotConsumed;
  pull_client_->pulled(message, read.status, not_consumed);
}

void Initiator::forget_memory(const RxMessage& message) {
  for (TxMessage& read : pulling_) {
    if (read.pull_for == &message) read.iov_count = 0;
  }
}

}  // namespace uet::ses
