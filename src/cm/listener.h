// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The requests that have come to one listening address, until the application has accepted or
// rejected each. A request is known by its initiator's FEP and id, so that a repeated one is the
// same request (CM-24).
//
//   (unknown) ─Request─▶ Waiting ─take()────▶ Taken      an endpoint answers: silent for a minute
//        │                  │ ├───reject()──▶ Rejected   a repeated Request is rejected again
//        │                  │ └───Cancel────▶ Cancelled  take() finds nothing
//        │                  └─ not repeated for kForgotten: (unknown)
//        └─ no place: Reject, Busy
//   Taken, Rejected, Cancelled ─ not repeated for kRemembered: (unknown)
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <unordered_map>

#include "base/shares.h"
#include "cm/connections.h"
#include "cm/machine.h"
#include "cm/message.h"
#include "uet/base/address.h"

namespace uet::cm {

// The name of a request.
struct RequestKey {
  FepAddress source;
  ConnectionId id = 0;
  friend bool operator==(const RequestKey&, const RequestKey&) = default;
};

class Listener final : public Machine {
 public:
  // A request that its initiator has stopped repeating is forgotten after this time (CM-26).
  static constexpr Duration kForgotten = std::chrono::seconds(120);
  // A request that has an answer is remembered so long after its last repetition (CM-24).
  static constexpr Duration kRemembered = std::chrono::seconds(20);
  // A request that was taken so long ago, and is still repeated, has no acceptor any more (CM-28).
  static constexpr Duration kMostAccepting = std::chrono::seconds(60);
  // At most so many requests with an answer are remembered; then the oldest are forgotten.
  static constexpr std::size_t kMostRemembered = 4096;

  // `answers`: where messages to this object go. `seed`: see Shares.
  Listener(const av::UetAddress& answers, std::uint64_t seed)
      : answers_(answers), shares_(3, seed) {}

  // From now on up to `backlog` requests of one host wait, and a third more in all (CM-40). May be
  // called again with another number.
  void listen(std::size_t backlog) { backlog_ = backlog; }
  // Rejects what waits, and everything that comes.
  void close(Time now);

  // The oldest request that the host has not announced to the application; nullopt if there is
  // none. It stays until pop_request().
  std::optional<RequestKey> next_request();
  void pop_request() { unannounced_.pop_front(); }
  // A waiting request; nullptr if there is none of this name (any more).
  const PeerRequest* find(const RequestKey& key) const;
  // An acceptor gets the request; nullopt as find().
  std::optional<PeerRequest> take(const RequestKey& key, Time now);
  // False as find(). Throws bad_alloc: nothing has changed.
  bool reject(const RequestKey& key, std::span<const std::byte> data, Time now);
  std::size_t waiting() const { return waiting_; }

  void on_message(const Message& message, Time now) override;
  // Initiators repeat their requests, so that no answer is repeated unasked.
  void sent(ConnectionId, MessageType, Outcome, Time) override {}
  void progress(Time now) override;
  Time next_deadline() const override { return entries_.empty() ? kNever : next_sweep_; }

 private:
  enum class State : std::uint8_t { Waiting, Taken, Rejected, Cancelled };
  struct KeyHash {
    std::size_t operator()(const RequestKey& key) const noexcept {
      return FepAddressHash{}(key.source) ^ static_cast<std::size_t>(key.id);
    }
  };
  struct Entry {
    State state = State::Waiting;
    Time heard{};
    Time answered{};
    PeerRequest request;
    Data answer;  // of Rejected
  };
  static constexpr Duration kSweepPeriod = std::chrono::seconds(5);

  std::size_t capacity() const { return backlog_ + (backlog_ + 2) / 3; }
  void on_request(const Message& message, const RequestKey& key, Time now);
  void say_no(const av::UetAddress& to, ConnectionId id, RejectReason reason, const Data& data);
  void finish(const RequestKey& key, Entry& entry, State state, Time now);
  const Entry* waiting_entry(const RequestKey& key) const;

  const av::UetAddress answers_;
  std::size_t backlog_ = 0;  // 0: not listening
  std::size_t waiting_ = 0;
  Shares shares_;  // of the places for waiting requests
  std::unordered_map<RequestKey, Entry, KeyHash> entries_;
  std::deque<RequestKey> unannounced_;
  std::deque<RequestKey> answered_;  // oldest first; some are forgotten already
  Time next_sweep_{};
};

}  // namespace uet::cm
