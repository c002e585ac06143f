// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "ses/rendezvous_source.h"

#include <algorithm>

#include "base/siphash.h"
#include "ses/context.h"
#include "ses/rendezvous.h"
#include "ses/return_code.h"

namespace uet::ses {

RendezvousSource::RendezvousSource(const Parameters& parameters, const OperationTable& operations,
                                   Watches& watches)
    : enabled_(parameters.rendezvous),
      threshold_bytes_(parameters.rendezvous_threshold_bytes),
      piece_bytes_(std::max<std::uint64_t>(parameters.rma_piece_bytes, parameters.payload_mtu)),
      payload_mtu_(parameters.payload_mtu),
      timeout_(parameters.rendezvous_timeout),
      key_secret_(parameters.key_secret),
      operations_(operations),
      watches_(watches) {}

// A target may not want to keep a long send. One that must say when it is delivered learns that
// from the read alone (SES-110, SES-111).
void RendezvousSource::offer(TxMessage& message, const Peer& peer) {
  wire::SesRequest& header = message.header;
  const bool served = enabled_ && peer.hpc;
  const bool is_long = message.length > std::min(threshold_bytes_, piece_bytes_);
  if (!served || (!is_long && !header.dc)) return;
  const ContextConfig& config = message.context->config;
  const bool tagged = message.kind == Kind::TaggedSend;
  header.opcode = tagged ? wire::SesOpcode::RendezvousTsend : wire::SesOpcode::RendezvousSend;
  header.rendezvous.eager_length = header.request_length;
  if (message.length > piece_bytes_) {
    header.request_length = kOutsized;
    header.rendezvous.eager_length = payload_mtu_;
    header.rendezvous.read_offset = message.length;
  }
  header.rendezvous.read_ri_generation = message.context->generation.value;
  header.rendezvous.read_pid_on_fep = config.pid_on_fep;
  header.rendezvous.read_resource_index = config.resource_index;
  message.readable = true;
  renew_key(message);
}

// A peer that has had some keys cannot tell from them those of other messages.
void RendezvousSource::renew_key(TxMessage& message) {
  const std::uint64_t hash = siphash(key_secret_[0], key_secret_[1], ++keys_made_);
  message.header.rendezvous.read_memory_key =
      message_key(message.header.message_id, static_cast<std::uint32_t>(hash));
}

TxMessage* RendezvousSource::find(Rkey key, JobId job, const FepAddress& reader) const {
  TxMessage* message = operations_.find(message_of(key));
  const bool valid = message != nullptr && message->readable && !message->failed() &&
                     message->header.rendezvous.read_memory_key == key &&
                     message->header.job_id == job && message->to == reader;
  return valid ? message : nullptr;
}

void RendezvousSource::await_read(TxMessage& message, Time now) {
  if (message.awaits_read) return;
  message.awaits_read = true;
  message.awaiting_since = now;
  watches_.start(message);
  awaiting_.push_back(message);
}

// The packets of the read may come in any order, and before the answer that announces it.
void RendezvousSource::served(TxMessage& message, bool reaches_end, std::uint32_t length,
                              std::uint32_t read_length, Time now) {
  await_read(message, now);
  if (!reaches_end) return;
  message.last_read_bytes += length;
  message.read_out = message.last_read_bytes >= read_length;
}

Time RendezvousSource::deadline() {
  if (timeout_ == Duration{0}) return kNever;
  for (const TxMessage& message : awaiting_) {
    if (!message.failed() && !message.read_out) return message.awaiting_since + timeout_;
  }
  return kNever;
}

void RendezvousSource::reconnect(Time now) {
  for (TxMessage& message : awaiting_) watches_.reconnect(message, now);
}

}  // namespace uet::ses
