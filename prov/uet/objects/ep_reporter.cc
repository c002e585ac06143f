// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "objects/ep_reporter.h"

#include <rdma/fi_errno.h>

#include <new>

#include "errors.h"
#include "objects/av_fid.h"
#include "objects/compound.h"
#include "objects/connection_side.h"
#include "objects/peer_receives.h"
#include "objects/trigger.h"
#include "provider.h"
#include "settings/address_format.h"

namespace uet::prov {

namespace {

// The context of such an operation is not the application's.
constexpr std::uint64_t kStandsForAnother = kCompound | kDeferred | kOfOwner;

// CM-35: an operation ended because the transport has given up, or the peer's endpoint is gone.
bool reports_dead_peer(const ses::Completion& completion) {
  if (completion.status == ses::Status::PdsError || completion.status == ses::Status::PeerLost) {
    return true;
  }
  return completion.status == ses::Status::ReturnCode &&
         (completion.return_code == wire::ReturnCode::BadIndex ||
          completion.return_code == wire::ReturnCode::BadPid);
}

}  // namespace

// Completes the operation for which that of SES stands.
void EpReporter::complete_original(const ses::Completion& completion) noexcept {
  if ((completion.user_flags & kCompound) != 0) return Compounds::piece_ended(completion);
  if ((completion.user_flags & kDeferred) != 0) {
    return complete(state_.engine.works().finish(completion, bindings_.counter_of(completion.kind),
                                                 counts(completion)));
  }
  PeerRxEntry& entry = *static_cast<PeerRxEntry*>(completion.context);
  ses::Completion of_owner = completion;
  of_owner.context = entry.context;
  of_owner.user_flags = entry.flags & FI_COMPLETION;
  complete(of_owner);
  receives_->release(entry);
}

void EpReporter::complete(const ses::Completion& completion) noexcept {
  if (connection_ != nullptr && reports_dead_peer(completion)) connection_->note_failure();
  if ((completion.user_flags & kStandsForAnother) != 0) return complete_original(completion);
  const bool event = completion.kind == ses::Kind::RemoteWrite && !completion.took_receive;
  if (is_receive(completion.kind) || completion.took_receive) {
    bindings_.finish_rx();
  } else if (!event) {
    bindings_.finish_tx();
  }
  // The last entry of a multi-receive is that of its last message: its own slot is free.
  if (completion.multi && completion.released) bindings_.return_rx();
  const CompletionError error = to_completion_error(completion);
  if (completion.status == ses::Status::ReturnCode) warn_refused(completion.return_code);
  count(completion, error.err == 0);
  Cq* cq = bindings_.queue_of(completion.kind);
  if (cq == nullptr) return;
  if (!is_wanted(completion, error.err != 0)) {
    cq->release();
    return;
  }
  Cq::Entry entry;
  entry.fields.op_context = completion.context;
  // fi_endpoint(3): an error without a context of its own comes with the endpoint's.
  if (error.err != 0 && completion.context == nullptr) entry.fields.op_context = context_;
  entry.fields.flags = entry_flags(completion);
  entry.err = error.err;
  entry.prov_errno = error.prov_errno;
  entry.excess = completion.excess;
  if (belongs_to_rx(completion.kind)) describe_receive(completion, entry);
  if (event) {
    cq->push_event(entry);
  } else {
    cq->push(entry);
  }
}

void EpReporter::fail(ses::Kind kind, void* context, std::uint64_t user_flags, int err) noexcept {
  ses::Completion completion;
  completion.kind = kind;
  completion.status = ses::Status::Cancelled;  // no message, and nothing of the peer
  completion.host_error = err;
  completion.context = context;
  completion.user_flags = user_flags;
  complete(completion);
}

void EpReporter::count(const ses::Completion& completion, bool good) noexcept {
  Cntr* const counter = bindings_.counter_of(completion.kind);
  if (counter != nullptr && counts(completion) && (completion.user_flags & kUncounted) == 0) {
    counter->count(good, completion.length);
  }
}

// Errors, events and released buffers are always reported, successes if the call wanted it.
// Receives of a shared context were posted without knowing this endpoint.
bool EpReporter::is_wanted(const ses::Completion& completion, bool is_error) const noexcept {
  if (completion.kind == ses::Kind::RemoteWrite || is_error || completion.released) return true;
  const bool by_endpoint = is_receive(completion.kind) && (completion.user_flags & kUncounted) == 0;
  const std::uint64_t flags = completion.user_flags | (by_endpoint ? bindings_.rx_always() : 0);
  return (flags & FI_COMPLETION) != 0;
}

// fi_endpoint(3): FI_REMOTE_READ counts reads, fetching and comparing atomics.
void EpReporter::remote_access(ses::Kind kind, std::uint64_t length) noexcept {
  Cntr* counter = bindings_.counter(ses::returns_data(kind) ? kRemoteRead : kRemoteWrite);
  if (counter != nullptr) counter->count(true, length);
}

bool EpReporter::counts_reads() const noexcept { return bindings_.counter(kRemoteRead) != nullptr; }

void EpReporter::remote_part(ses::Kind kind, std::uint64_t length) noexcept {
  Cntr* counter = bindings_.counter(ses::returns_data(kind) ? kRemoteRead : kRemoteWrite);
  if (counter != nullptr) counter->count_part(length);
}

// The peer knows why; its answer is all that reaches this side.
void EpReporter::warn_refused(wire::ReturnCode code) const noexcept {
  char text[128];
  describe_prov_errno(static_cast<int>(code), text, sizeof text);
  FI_WARN(&provider, FI_LOG_EP_DATA, "the target refused an operation: %s\n", text);
  if (code == wire::ReturnCode::OpViolation) {  // SES-26
    FI_WARN(&provider, FI_LOG_EP_DATA,
            "if it was a message: both ends need the same payload MTU, here it is %u bytes "
            "(FI_UET_PAYLOAD_MTU sets it)\n",
            state_.engine.payload_mtu());
  }
}

// The sender's address for fi_cq_readerr. False if there is no memory.
bool EpReporter::keep_sender(const ses::Completion& completion, Cq::Entry& entry) noexcept {
  try {
    const auto sender = av::address_of_source(completion.source, completion.source_initiator);
    entry.error_data =
        bindings_.queue_of(completion.kind)
            ->keep_error_data(identity_.format().encode(av::complete(sender, first_udp_port())));
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

// Fills in the fields that only completions of receives and of peers' writes have.
void EpReporter::describe_receive(const ses::Completion& completion, Cq::Entry& entry) noexcept {
  if (completion.released) {
    // Without a message of its own, it says only that the buffer is the application's again.
    const bool only = !completion.multi && completion.status == ses::Status::Ok;
    entry.fields.flags = only ? FI_MULTI_RECV : entry.fields.flags | FI_MULTI_RECV;
    if (only) return;
  }
  entry.fields.len = completion.length;
  entry.fields.buf = completion.buffer;
  entry.fields.data = completion.has_data ? completion.data : 0;
  entry.fields.tag = completion.tag;
  const bool from_message =
      completion.status != ses::Status::Cancelled && completion.status != ses::Status::NoMessage;
  if (!from_message || state_.av == nullptr) return;
  if ((state_.caps & (FI_SOURCE | FI_SOURCE_ERR)) == 0) return;
  entry.source =
      state_.av->source(completion.source, completion.source_initiator, completion.source_job);
  if (entry.source != FI_ADDR_NOTAVAIL || (state_.caps & FI_SOURCE_ERR) == 0 || entry.err != 0)
    return;
  // fi_cq(3): the message has been received, but the AV does not know its sender.
  entry.err = FI_EADDRNOTAVAIL;
  entry.has_error_data = keep_sender(completion, entry);
}

}  // namespace uet::prov
