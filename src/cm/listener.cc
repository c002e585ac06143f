// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "cm/listener.h"

#include <algorithm>
#include <new>

namespace uet::cm {

const Listener::Entry* Listener::waiting_entry(const RequestKey& key) const {
  const auto found = entries_.find(key);
  const bool waits = found != entries_.end() && found->second.state == State::Waiting;
  return waits ? &found->second : nullptr;
}

const PeerRequest* Listener::find(const RequestKey& key) const {
  const Entry* entry = waiting_entry(key);
  return entry != nullptr ? &entry->request : nullptr;
}

std::optional<RequestKey> Listener::next_request() {
  while (!unannounced_.empty() && waiting_entry(unannounced_.front()) == nullptr) {
    unannounced_.pop_front();  // cancelled before anyone heard of it
  }
  if (unannounced_.empty()) return {};
  return unannounced_.front();
}

// The request has its answer and gives its place back.
void Listener::finish(const RequestKey& key, Entry& entry, State state, Time now) {
  answered_.push_back(key);
  entry.state = state;
  entry.heard = entry.answered = now;
  --waiting_;
  shares_.give_back(host_hash(key.source.ip), 1);
  if (answered_.size() <= kMostRemembered) return;
  const auto oldest = entries_.find(answered_.front());
  answered_.pop_front();
  if (oldest != entries_.end() && oldest->second.state != State::Waiting) entries_.erase(oldest);
}

void Listener::say_no(const av::UetAddress& to, ConnectionId id, RejectReason reason,
                      const Data& data) {
  Outgoing out;
  out.to = to;
  out.message.type = MessageType::Reject;
  out.message.reason = reason;
  out.message.to = id;
  out.message.answers = answers_;
  out.message.data = data;
  answer(out);
}

std::optional<PeerRequest> Listener::take(const RequestKey& key, Time now) {
  if (waiting_entry(key) == nullptr) return {};
  Entry& entry = entries_.find(key)->second;
  PeerRequest request = entry.request;
  finish(key, entry, State::Taken, now);
  return request;
}

bool Listener::reject(const RequestKey& key, std::span<const std::byte> data, Time now) {
  if (waiting_entry(key) == nullptr) return false;
  Entry& entry = entries_.find(key)->second;
  entry.answer = Data(data);
  say_no(entry.request.answers, key.id, RejectReason::Application, entry.answer);
  finish(key, entry, State::Rejected, now);
  return true;
}

void Listener::close(Time) {
  backlog_ = 0;
  for (auto& [key, entry] : entries_) {
    if (entry.state != State::Waiting) continue;
    say_no(entry.request.answers, key.id, RejectReason::NoListener, {});
    shares_.give_back(host_hash(key.source.ip), 1);
  }
  waiting_ = 0;
  entries_.clear();
  unannounced_.clear();
  answered_.clear();
}

void Listener::on_request(const Message& message, const RequestKey& key, Time now) {
  if (backlog_ == 0) return say_no(message.answers, key.id, RejectReason::NoListener, {});
  const auto known = entries_.find(key);
  if (known != entries_.end()) {  // CM-24
    known->second.heard = now;
    if (known->second.state == State::Rejected) {
      say_no(message.answers, key.id, RejectReason::Application, known->second.answer);
    }
    const bool stale =
        known->second.state == State::Taken && now - known->second.answered >= kMostAccepting;
    if (stale) say_no(message.answers, key.id, RejectReason::NoListener, {});  // CM-28
    return;
  }
  const std::uint64_t host = host_hash(key.source.ip);
  const std::size_t free = capacity() - std::min(capacity(), waiting_);
  if (shares_.held(host) >= backlog_ || !shares_.allows(host, 1, free)) {  // CM-40
    return say_no(message.answers, key.id, RejectReason::Busy, {});
  }
  Entry entry;
  entry.heard = now;
  entry.request = {message.from, message.answers, message.endpoint,     message.job,
                   message.data, answers_,        message.keep_alive_ms};
  unannounced_.push_back(key);
  try {
    entries_.emplace(key, entry);
  } catch (const std::bad_alloc&) {
    unannounced_.pop_back();
    throw;
  }
  if (entries_.size() == 1) next_sweep_ = now + kSweepPeriod;
  ++waiting_;
  shares_.take(host, 1);
}

void Listener::on_message(const Message& message, Time now) {
  const RequestKey key{message.answers.fep(), message.from};
  if (message.from == 0) return;
  if (message.type == MessageType::Request) return on_request(message, key, now);
  if (message.type != MessageType::Cancel || waiting_entry(key) == nullptr) return;
  finish(key, entries_.find(key)->second, State::Cancelled, now);
}

void Listener::progress(Time now) {
  if (entries_.empty() || now < next_sweep_) return;
  next_sweep_ = now + kSweepPeriod;
  for (auto at = entries_.begin(); at != entries_.end();) {
    const Entry& entry = at->second;
    const bool waits = entry.state == State::Waiting;
    if (now - entry.heard < (waits ? kForgotten : kRemembered)) {
      ++at;
      continue;
    }
    if (waits) {
      --waiting_;
      shares_.give_back(host_hash(at->first.source.ip), 1);
    }
    at = entries_.erase(at);
  }
}

}  // namespace uet::cm
