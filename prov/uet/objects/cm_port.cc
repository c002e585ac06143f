// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "objects/cm_port.h"

#include <new>
#include <span>
#include <utility>

#include "errors.h"
#include "objects/av_fid.h"
#include "objects/completion_kind.h"
#include "process/engine_link.h"
#include "provider.h"
#include "ses/initiator.h"

namespace uet::prov {

CmPort::CmPort(Engine& engine, cm::Machine& machine, std::size_t receives)
    : engine_(engine), machine_(machine), receives_(receives), sends_(kSends) {
  arrived_.reserve(receives);
  unposted_.reserve(receives);
  ended_.reserve(kSends);
  free_.reserve(kSends);
}

int CmPort::open(const av::UetAddress& name, JobId job) {
  ses::ContextConfig config;
  config.job = job;
  config.pid_on_fep = name.pid_on_fep;
  config.resource_index = name.start_resource_index;
  config.initiator = name.initiator_id;
  config.relative = !name.has(av::kAbsolute);
  config.mode = DeliveryMode::Rod;  // CM-1: data of the connection use the same PDC
  config.tx_size = kSends;
  config.rx_size = receives_.size();
  config.remote_cq_data = false;
  EngineLink* const link = engine_.link();
  if (link != nullptr) {
    const auto opened = link->open_context(config, *this);
    if (!opened) return to_fi_errno(opened.error());
    linked_ = opened.value();
  } else {
    const auto opened = engine_.fep().ses().open_context(config, *this);
    if (!opened) return to_fi_errno(opened.error());
    context_ = opened.value();
  }
  for (Send& send : sends_) free_.push_back(&send);
  for (Receive& receive : receives_) post(receive, clock_now());
  if (link != nullptr) {
    link->enable(*linked_);
  } else {
    engine_.fep().ses().enable(*context_);
  }
  return 0;
}

void CmPort::close() noexcept {
  if (!is_open() || engine_.dead()) return;
  if (linked_) {
    engine_.link()->close_context(*std::exchange(linked_, std::nullopt));
  } else {
    engine_.fep().ses().close_context(*std::exchange(context_, nullptr), clock_now());
  }
}

void CmPort::post(Receive& receive, Time now) noexcept {
  receive.length = 0;
  const ses::IoSlice slice(receive.bytes.data(), receive.bytes.size());
  ses::ReceiveOp op;
  op.local = std::span(&slice, 1);
  op.context = &receive;
  const Result<void> posted = linked_ ? engine_.link()->receive(*linked_, op)
                                      : engine_.fep().ses().receive(*context_, op, now);
  if (!posted) unposted_.push_back(&receive);
}

void CmPort::complete(const ses::Completion& completion) noexcept {
  if (is_receive(completion.kind)) {
    Receive& receive = *static_cast<Receive*>(completion.context);
    receive.length = completion.status == ses::Status::Ok ? completion.length : 0;
    receive.source = completion.source;
    arrived_.push_back(&receive);
    return;
  }
  Send& send = *static_cast<Send*>(completion.context);
  send.outcome = completion.status == ses::Status::Ok           ? cm::Outcome::Delivered
                 : completion.status == ses::Status::ReturnCode ? cm::Outcome::Refused
                                                                : cm::Outcome::Lost;
  ended_.push_back(&send);
}

// Without memory a message is as good as lost: its sender repeats it.
void CmPort::take_messages(Time now) noexcept {
  for (std::size_t i = 0; i < arrived_.size(); ++i) {
    Receive& receive = *arrived_[i];
    try {
      const auto bytes = std::span(receive.bytes).first(receive.length);
      const auto message = cm::decode(bytes, receive.source);
      if (message) machine_.on_message(*message, now);
    } catch (const std::bad_alloc&) {
      FI_WARN(&provider, FI_LOG_EP_CTRL, "no memory for a message of connection management\n");
    }
    unposted_.push_back(&receive);
  }
  arrived_.clear();
  // A post may complete at once, and then fills arrived_.
  for (std::size_t left = unposted_.size(); left > 0; --left) {
    Receive& receive = *unposted_.back();
    unposted_.pop_back();
    post(receive, now);
    if (!unposted_.empty() && unposted_.back() == &receive) break;  // SES takes no more now
  }
}

void CmPort::take_outcomes(Time now) noexcept {
  while (!ended_.empty()) {
    Send& send = *ended_.back();
    ended_.pop_back();
    free_.push_back(&send);
    try {
      if (send.about != 0) machine_.sent(send.about, send.type, send.outcome, now);
    } catch (const std::bad_alloc&) {
      FI_WARN(&provider, FI_LOG_EP_CTRL, "no memory for an event of a connection\n");
    }
  }
}

// True if something was sent.
bool CmPort::send_all(Time now) noexcept {
  bool sent = false;
  while (const cm::Outgoing* next = machine_.next_message()) {
    if (free_.empty()) break;
    Send& send = *free_.back();
    send.about = next->about;
    send.type = next->message.type;
    cm::MessageBytes bytes;
    const std::size_t length = cm::encode(next->message, bytes);
    const ses::IoSlice slice(bytes.data(), length);
    const ses::Peer peer = peer_at(next->to, next->to.start_resource_index);
    ses::SendOp op;
    op.peer = &peer;
    op.local = std::span(&slice, 1);
    op.inject = true;
    op.context = &send;
    free_.pop_back();
    const Result<void> posted = linked_ ? engine_.link()->post(*linked_, op)
                                        : engine_.fep().ses().initiator().post(*context_, op, now);
    if (!posted) {
      free_.push_back(&send);
      if (posted.error() == Error::Again) break;
      send.outcome = cm::Outcome::Refused;
      free_.pop_back();
      ended_.push_back(&send);
    }
    machine_.pop_message();
    sent = true;
  }
  return sent;
}

void CmPort::take(Time now) noexcept {
  if (!is_open()) return;
  if (!ended_.empty()) take_outcomes(now);
  if (!arrived_.empty() || !unposted_.empty()) take_messages(now);
  if (machine_.next_deadline() <= now) {
    try {
      machine_.progress(now);
    } catch (const std::bad_alloc&) {
      FI_WARN(&provider, FI_LOG_EP_CTRL, "no memory to repeat a message of a connection\n");
    }
  }
}

void CmPort::send(Time now) noexcept {
  if (!is_open() || machine_.next_message() == nullptr) return;
  if (send_all(now)) engine_.fep().push(now);
}

}  // namespace uet::prov
