// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The endpoint's receives: posted ones, multi-receives, and looks at what has arrived (FI_PEEK,
// FI_CLAIM, FI_DISCARD of fi_tagged(3), here for untagged messages too).
#include <algorithm>
#include <span>

#include "errors.h"
#include "objects/endpoint.h"
#include "provider.h"
#include "settings/address_format.h"
#include "settings/hints.h"

namespace uet::prov {
namespace {

constexpr std::uint64_t kLookFlags = FI_PEEK | FI_CLAIM | FI_DISCARD;
constexpr std::uint64_t kTrigger = FI_TRIGGER;
constexpr std::uint64_t kRxCallFlags = (kRxOpFlags & ~kTrigger) | FI_MORE | kLookFlags;

}  // namespace

const char* refuse_receive(const RxCall& call, const ReceiveSettings& settings) {
  if (call.count > ses::kMaxIoSlices) return "more than iov_limit pieces";
  if ((call.flags & ~kRxCallFlags) != 0) return "a flag that is not supported";
  if (lacks_address(call.iov, call.count)) return "a buffer that has a length and no address";
  const std::uint64_t look = call.flags & kLookFlags;
  if (look == FI_DISCARD || look == kLookFlags) {
    return "FI_DISCARD goes with either FI_PEEK or FI_CLAIM";
  }
  if ((look & FI_CLAIM) != 0 && call.context == nullptr) return "FI_CLAIM needs a context";
  if ((call.flags & FI_MULTI_RECV) == 0) return nullptr;
  if (look != 0) return "FI_MULTI_RECV does not go with FI_PEEK or FI_CLAIM";
  if (call.tagged && !settings.tagged_multi) {
    return "a tagged multi-receive needs FI_TAGGED_MULTI_RECV";
  }
  return nullptr;
}

// An operation with FI_TRIGGER waits in the domain's queue.
ssize_t Endpoint::defer(const RxCall& call) noexcept {
  if (const int result = may_defer(); result != 0) return result;
  RxCall later = call;
  later.flags &= ~kTrigger;
  if ((call.flags & kLookFlags) != 0 || refuse_receive(later, receive_settings_) != nullptr) {
    return refuse(-FI_EINVAL, "FI_TRIGGER: not for invalid receives, peeks and claims");
  }
  return engine_.works().defer(*this, later);
}

ssize_t Endpoint::receive(const RxCall& call) noexcept {
  if ((call.flags & kTrigger) != 0) return defer(call);
  if (engine_.dead()) return -FI_EOPNOTSUPP;
  if (!may_receive_) {
    return refuse(
        -FI_EOPBADSTATE,
        "call fi_enable and bind a CQ or counter for receives first; with a shared receive "
        "context, post the receive there");
  }
  const auto post = [&](const std::optional<ses::Peer>& source, Time now) -> Result<void> {
    if (!reserve_receive()) return Error::Again;
    const auto posted = hand_over(engine_, *ses_context_, call, receive_settings_, source, now);
    if (!posted) release_receive();
    return posted;
  };
  return post_receive(
      engine_, call, receive_settings_, [this] { return av_; }, post);
}

bool Endpoint::reserve_receive() noexcept {
  if (rx_cq_ != nullptr && !rx_cq_->reserve()) return false;
  ++rx_outstanding_;
  return true;
}

void Endpoint::release_receive() noexcept {
  if (rx_cq_ != nullptr) rx_cq_->release();
  --rx_outstanding_;
}

// The sender's address for fi_cq_readerr. False if there is no memory.
bool Endpoint::keep_sender(const ses::Completion& completion) noexcept {
  try {
    const auto sender = av::address_of_source(completion.source, completion.source_initiator);
    queue_of(completion.kind)
        ->keep_error_data(identity_->format().encode(av::complete(sender, first_udp_port())));
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

// Fills in the fields that only completions of receives and of peers' writes have.
void Endpoint::describe_receive(const ses::Completion& completion, Cq::Entry& entry) noexcept {
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
  if (!from_message || (caps_ & (FI_SOURCE | FI_SOURCE_ERR)) == 0) return;
  entry.source = av_->source(completion.source, completion.source_initiator);
  if (entry.source != FI_ADDR_NOTAVAIL || (caps_ & FI_SOURCE_ERR) == 0 || entry.err != 0) return;
  // fi_cq(3): the message has been received, but the AV does not know its sender.
  entry.err = FI_EADDRNOTAVAIL;
  entry.has_error_data = keep_sender(completion);
}

}  // namespace uet::prov
