// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "events.h"

#include <sys/eventfd.h>

#include <cstring>
#include <new>

#include "errors.h"

namespace uet::engine {

using prov::EventKind;
using prov::SharedCommand;
using prov::SharedEvent;

namespace {

SharedEvent event_of(EventKind kind, std::uint16_t context) {
  SharedEvent event;
  std::memset(static_cast<void*>(&event), 0, sizeof event);
  event.kind = static_cast<std::uint8_t>(kind);
  event.context = context;
  event.number = prov::kNoOperation;
  return event;
}

SharedEvent event_of(const ses::Completion& completion, std::uint16_t context) {
  SharedEvent event = event_of(EventKind::Completion, context);
  const auto mark = [](bool set, SharedEvent::Mark bit) { return set ? unsigned{bit} : 0U; };
  event.operation = static_cast<std::uint8_t>(completion.kind);
  event.status = static_cast<std::uint8_t>(completion.status);
  event.marks = static_cast<std::uint8_t>(mark(completion.has_data, SharedEvent::kHasData) |
                                          mark(completion.multi, SharedEvent::kMulti) |
                                          mark(completion.released, SharedEvent::kReleased) |
                                          mark(completion.took_receive, SharedEvent::kTookReceive) |
                                          mark(completion.source.ip.is_ipv6, SharedEvent::kIpv6));
  event.return_code = static_cast<std::uint8_t>(completion.return_code);
  event.pds_error = static_cast<std::uint8_t>(completion.pds_error);
  event.host_error = completion.host_error;
  if (completion.context != nullptr) event.number = number_of(completion.context);
  event.length = completion.length;
  event.excess = completion.excess;
  event.buffer = reinterpret_cast<std::uintptr_t>(completion.buffer);
  event.tag = completion.tag;
  event.data = completion.data;
  event.source_ip = completion.source.ip.bytes;
  event.source_port = completion.source.port;
  event.source_sdi = completion.source.sdi;
  event.source_initiator = completion.source_initiator.value;
  event.source_job = completion.source_job.value;
  return event;
}

SharedEvent event_of(EventKind kind, const FepAddress& peer) {
  SharedEvent event = event_of(kind, std::uint16_t{});
  if (peer.ip.is_ipv6) event.marks = SharedEvent::kIpv6;
  event.source_ip = peer.ip.bytes;
  event.source_port = peer.port;
  event.source_sdi = peer.sdi;
  return event;
}

ses::Kind kind_of(const SharedCommand& command) {
  const bool tagged = has(command, SharedCommand::kTagged);
  switch (static_cast<prov::CommandKind>(command.kind)) {
    case prov::CommandKind::Receive:
      return tagged ? ses::Kind::TaggedReceive : ses::Kind::Receive;
    case prov::CommandKind::Rma:
      return has(command, SharedCommand::kIsRead) ? ses::Kind::Read : ses::Kind::Write;
    case prov::CommandKind::Atomic:
      return static_cast<ses::Kind>(command.access);
    case prov::CommandKind::Send:
      break;
  }
  return tagged ? ses::Kind::TaggedSend : ses::Kind::Send;
}

}  // namespace

void Events::complete(const ses::Completion& completion, std::uint16_t context) noexcept {
  put(event_of(completion, context));
}

void Events::refuse(const SharedCommand& command, Error error) noexcept {
  SharedEvent event = event_of(EventKind::Completion, command.context);
  event.operation = static_cast<std::uint8_t>(kind_of(command));
  event.status = static_cast<std::uint8_t>(ses::Status::Cancelled);
  event.host_error = -prov::to_fi_errno(error);
  event.number = command.operation;
  if (has(command, SharedCommand::kMulti)) event.marks = SharedEvent::kReleased;
  put(event);
}

// Until the end of the pass: bytes that belong to it may be on their way to the application. If
// there is no memory, the application cannot be told what it waits for any more: it is cut off, as
// if its engine had ended.
void Events::put(const SharedEvent& event) noexcept {
  if (cut_off()) return;
  try {
    waiting_.push_back(event);
  } catch (const std::bad_alloc&) {
    cut_off_ = true;
  }
}

void Events::note_access(const AccessKey& key, std::uint64_t events, std::uint64_t bytes) noexcept {
  if (cut_off()) return;
  try {
    Access& access = accesses_[key];
    access.events += events;
    access.bytes += bytes;
  } catch (const std::bad_alloc&) {
    cut_off_ = true;
  }
}

void Events::note_refusal(const FepAddress& peer) noexcept {
  if (has_space()) put(event_of(EventKind::Refusal, peer));
}

void Events::note_lost_peer(const FepAddress& peer, pds::PdsError error) noexcept {
  if (!has_space()) return;
  SharedEvent event = event_of(EventKind::PeerGivenUp, peer);
  event.pds_error = static_cast<std::uint8_t>(error);
  put(event);
}

void Events::tell_accesses() noexcept {
  for (const auto& [key, access] : accesses_) {
    SharedEvent event = event_of(key.kind, static_cast<std::uint16_t>(key.of));
    event.operation = key.operation;
    event.length = access.bytes;
    event.excess = access.events;
    event.buffer = key.of;
    put(event);
  }
  accesses_.clear();
}

void Events::hand_over(Rings& rings, int event_fd) noexcept {
  if (waiting_.empty() && !accesses_.empty()) tell_accesses();
  bool told = false;
  while (!waiting_.empty()) {
    SharedEvent* const place = rings.events.claim();
    if (place == nullptr) break;
    const SharedEvent event = waiting_.front();
    waiting_.pop_front();
    constexpr std::size_t kSequence = sizeof place->sequence;
    std::memcpy(reinterpret_cast<std::byte*>(place) + kSequence,
                reinterpret_cast<const std::byte*>(&event) + kSequence, sizeof event - kSequence);
    rings.events.publish();
    told = true;
  }
  if (told && prov::must_wake(rings.share.application_sleeps)) ::eventfd_write(event_fd, 1);
}

}  // namespace uet::engine
