// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The connections of one domain, at both ends of a handshake. The listener (listener.h) only hands
// over requests: the acceptor answers from its own domain.
//
//        initiator                                             acceptor
//   connect()                                                                accept()
//      │ Request ─────────────────────▶ listener ─ ─ ─ request ─ ─ ─ ─ ─ ─ ─ ─ ─ │
//      ▼                                                                         ▼
// ┌────────────┐ Accept ◀─────────────────────────────────────────────────── ┌───────────┐
// │ Requesting │                                                             │ Accepting │
// └────────────┘──┐ Reject, refused, lost: Failed       Shutdown, lost: ┌────└───────────┘
//      │ Accept   ▼                                        Failed       ▼        │ Confirm, Probe
//      ▼        (gone)                                                (gone)     ▼
// ┌────────────┐ Confirm ──────────────────────────────────────────────────▶ ┌───────────┐
// │ Connected  │                                                             │ Connected │
// └────────────┘ ◀── Shutdown, Probe ──▶                                     └───────────┘
//      │ Shutdown arrives, or a Probe is not answered: event Shutdown, (gone)    │
//      ▼ shutdown() in any state: Shutdown or Cancel leaves                      ▼
// ┌────────────┐                                                             ┌───────────┐
// │  Leaving   │─▶ (gone) when the send has ended, whatever its outcome   ◀──│  Leaving  │
// └────────────┘                                                             └───────────┘
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <set>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/keyed_sequence.h"
#include "cm/machine.h"
#include "cm/message.h"
#include "uet/base/types.h"

namespace uet::cm {

// A request for a connection as its listener got it: all that an acceptor needs.
struct PeerRequest {
  ConnectionId id = 0;  // the initiator's
  av::UetAddress answers;
  av::UetAddress endpoint;
  JobId job;
  Data data;
  av::UetAddress listener;          // the address that the request came to
  std::uint32_t keep_alive_ms = 0;  // the initiator's
};

struct Timing {
  // A request or an acceptance without an answer is repeated after `first_pause`, and then after
  // twice the time each, up to `longest_pause` (CM-20).
  Duration first_pause = std::chrono::seconds(1);
  Duration longest_pause = std::chrono::seconds(8);
  // A busy listener, or a transport that gives up, fails a request this long after connect()
  // (CM-22). The transport of a silent address gives up later than that.
  Duration connect_patience = std::chrono::seconds(5);
  // An acceptance that is not confirmed by then has failed (CM-23).
  Duration confirm_patience = std::chrono::seconds(30);
  // Idle connections are probed so often; zero: never (CM-33). With a period the host has to call
  // progress() by itself, whatever the application does (CM-37).
  Duration probe_period{};
  // A Probe may be unanswered at least so long, however short the period is (CM-37).
  Duration shortest_silence = std::chrono::milliseconds(500);
};

enum class Failure : std::uint8_t {
  Rejected,     // by the listener's application; data may say why
  Refused,      // no listener is at the address, or none that takes the request in time
  Unreachable,  // the address does not answer
  Aborted,      // the initiator has withdrawn its request, or has ended
};

struct ConnectionEvent {
  enum class Kind : std::uint8_t { Connected, Failed, Shutdown };
  Kind kind = Kind::Connected;
  ConnectionId id = 0;
  Failure failure = Failure::Refused;  // of Failed
  av::UetAddress endpoint;             // of Connected: the peer's
  JobId job;                           // of Connected: the peer's
  Data data;                           // of the Accept or Reject
};

class Connections final : public Machine {
 public:
  // `answers`: where messages to this object go. `secret`: of the ids, known to no other host.
  Connections(const av::UetAddress& answers, std::uint64_t secret, const Timing& timing);

  // Begins a connection between the endpoint `own` of this domain and the listener at `to`.
  // Throws bad_alloc.
  ConnectionId connect(const av::UetAddress& own, JobId job, const av::UetAddress& to,
                       std::span<const std::byte> data, Time now);
  // Answers a request. Throws bad_alloc.
  ConnectionId accept(const PeerRequest& request, const av::UetAddress& own, JobId job,
                      std::span<const std::byte> data, Time now);
  // Ends a connection in any state; no event follows. Throws bad_alloc: nothing has changed.
  void shutdown(ConnectionId id, Time now);
  // Forgets a connection whose peer is known to be lost; no message, no event follows.
  void drop(ConnectionId id) noexcept;

  // The oldest event; nullptr if there is none. It stays until pop_event().
  const ConnectionEvent* next_event() const { return events_.empty() ? nullptr : &events_.front(); }
  void pop_event() { events_.pop_front(); }
  // The host of `fep` has said that no process has that port (CM-29, CM-37). Throws bad_alloc.
  void refused(const FepAddress& fep);
  // Connections in any state.
  std::size_t size() const { return table_.size(); }

  void on_message(const Message& message, Time now) override;
  void sent(ConnectionId about, MessageType type, Outcome outcome, Time now) override;
  void progress(Time now) override;
  Time next_deadline() const override {
    return deadlines_.empty() ? kNever : deadlines_.begin()->first;
  }

 private:
  enum class State : std::uint8_t { Requesting, Accepting, Connected, Leaving };
  struct Connection {
    ConnectionId id = 0;
    ConnectionId peer = 0;  // 0: not known yet
    State state = State::Requesting;
    bool in_flight = false;       // a message that is repeated or a Probe has no outcome yet
    bool heard = false;           // the peer's transport has answered a message
    bool no_socket = false;       // a report says so of the Probe in flight
    bool answers_always = false;  // the peer does, also while its application computes
    std::uint32_t confirms = 0;   // sends of a Confirm without an outcome
    std::uint64_t confirm_host = 0;
    Time probed{};  // when the Probe in flight was sent
    Time started{};
    Time deadline = kNever;
    Duration pause{};
    av::UetAddress to;  // the listener's, then the peer's
    av::UetAddress own;
    JobId job;
    av::UetAddress peer_endpoint;
    JobId peer_job;
    Data data;  // of the Request or Accept
  };

  ConnectionId begin(Connection& connection, Time now);
  Connection& open(State state, const av::UetAddress& own, JobId job, const av::UetAddress& to,
                   std::span<const std::byte> data, Time now);
  void set_deadline(Connection& connection, Time deadline);
  void erase(Connection& connection) noexcept;
  Message message_of(const Connection& connection, MessageType type) const;
  void send(Connection& connection, MessageType type);
  void send_again(Connection& connection, Time now);
  void fail(Connection& connection, Failure failure, const Data& data);
  void give_up_accepting(Connection& connection);
  void lose(Connection& connection);
  void await_answer(Connection& connection, Time now);
  void enter_connected(Connection& connection, const Data& data, Time now);
  void on_accept(const Message& message, Connection* connection, Time now);
  void on_reject(const Message& message, Connection& connection, Time now);
  void on_shutdown(Connection& connection);
  void take_message(const Message& message, Time now);
  void take_outcome(ConnectionId about, MessageType type, Outcome outcome, Time now);
  void say_unknown(const Message& message);
  void confirm(Connection& connection);
  bool must_wait(const Connection& connection) const;
  void forget_confirms(Connection& connection) noexcept;
  void send_held(Time now);
  Connection* find(ConnectionId id);

  const av::UetAddress answers_;
  const Timing timing_;
  KeyedSequence ids_;
  std::unordered_map<ConnectionId, Connection> table_;
  std::set<std::pair<Time, ConnectionId>> deadlines_;
  std::deque<ConnectionEvent> events_;
  // Connections with a Confirm in flight, by host_hash() of the peer; requests that wait for these
  // (CM-38).
  std::unordered_map<std::uint64_t, std::size_t> confirming_;
  std::vector<ConnectionId> held_;
};

}  // namespace uet::cm
