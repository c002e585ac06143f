// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The handshake, the end of connections, and repetition. See the states in the header.
#include "cm/connections.h"

#include <algorithm>
#include <new>

namespace uet::cm {

Connections::Connections(const av::UetAddress& answers, std::uint64_t secret, const Timing& timing)
    : answers_(answers), timing_(timing), ids_(secret) {}

// ---- the table ---------------------------------------------------------------------------------

Connections::Connection* Connections::find(ConnectionId id) {
  const auto found = table_.find(id);
  return found != table_.end() ? &found->second : nullptr;
}

Connections::Connection& Connections::open(State state, const av::UetAddress& own, JobId job,
                                           const av::UetAddress& to,
                                           std::span<const std::byte> data, Time now) {
  ConnectionId id = 0;
  while (id == 0 || table_.contains(id)) id = ids_.next();  // CM-12
  Connection& connection = table_[id];
  connection.id = id;
  connection.state = state;
  connection.started = now;
  connection.pause = timing_.first_pause;
  connection.to = to;
  connection.own = own;
  connection.job = job;
  connection.data = Data(data);
  return connection;
}

void Connections::set_deadline(Connection& connection, Time deadline) {
  if (deadline != kNever) deadlines_.emplace(deadline, connection.id);
  if (connection.deadline != kNever && connection.deadline != deadline) {
    deadlines_.erase({connection.deadline, connection.id});
  }
  connection.deadline = deadline;
}

void Connections::erase(Connection& connection) noexcept {
  if (connection.confirms > 0) forget_confirms(connection);
  if (connection.deadline != kNever) deadlines_.erase({connection.deadline, connection.id});
  table_.erase(connection.id);
}

// ---- sending -----------------------------------------------------------------------------------

Message Connections::message_of(const Connection& connection, MessageType type) const {
  Message message;
  message.type = type;
  message.job = connection.job;
  message.to = connection.peer;
  message.from = connection.id;
  message.answers = answers_;
  message.endpoint = connection.own;
  message.keep_alive_ms = static_cast<std::uint32_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(timing_.probe_period).count());
  if (type == MessageType::Request || type == MessageType::Accept) message.data = connection.data;
  return message;
}

void Connections::send(Connection& connection, MessageType type) {
  queue({connection.to, connection.id, message_of(connection, type)});
}

// Without memory nothing is sent, and a count of 0 may stay.
void Connections::confirm(Connection& connection) {
  const std::uint64_t host =
      connection.confirms > 0 ? connection.confirm_host : host_hash(connection.to.fep().ip);
  std::size_t& count = confirming_[host];
  send(connection, MessageType::Confirm);
  if (connection.confirms == 0) ++count;
  ++connection.confirms;
  connection.confirm_host = host;
}

void Connections::forget_confirms(Connection& connection) noexcept {
  connection.confirms = 0;
  const auto found = confirming_.find(connection.confirm_host);
  if (found != confirming_.end() && --found->second == 0) confirming_.erase(found);
}

// CM-38: a Confirm to the host of the listener has no outcome yet.
bool Connections::must_wait(const Connection& connection) const {
  if (connection.state != State::Requesting) return false;
  const auto found = confirming_.find(host_hash(connection.to.fep().ip));
  return found != confirming_.end() && found->second > 0;
}

// A request whose time to be repeated has come has left already.
void Connections::send_held(Time now) {
  for (std::size_t i = 0; i < held_.size();) {
    Connection* const connection = find(held_[i]);
    const bool waits = connection != nullptr && connection->state == State::Requesting &&
                       !connection->in_flight && !connection->heard;
    if (waits && must_wait(*connection)) {
      ++i;
      continue;
    }
    if (waits) send_again(*connection, now);
    held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

// CM-20: the message that the state waits for an answer to.
void Connections::send_again(Connection& connection, Time now) {
  const MessageType type = connection.state == State::Requesting  ? MessageType::Request
                           : connection.state == State::Accepting ? MessageType::Accept
                                                                  : MessageType::Probe;
  if (!connection.in_flight) send(connection, type);
  connection.in_flight = true;
  if (type == MessageType::Probe) {
    connection.probed = now;
    connection.no_socket = false;
    set_deadline(connection, now + timing_.probe_period);
    return;
  }
  set_deadline(connection, now + connection.pause);
  connection.pause = std::min(2 * connection.pause, timing_.longest_pause);
}

// CM-32: the peer learns that the connection does not exist here.
void Connections::say_unknown(const Message& message) {
  Outgoing out;
  out.to = message.answers;
  out.message.type = MessageType::Shutdown;
  out.message.to = message.from;
  out.message.from = message.to;
  out.message.answers = answers_;
  answer(out);
}

// ---- calls of the host -------------------------------------------------------------------------

ConnectionId Connections::connect(const av::UetAddress& own, JobId job, const av::UetAddress& to,
                                  std::span<const std::byte> data, Time now) {
  return begin(open(State::Requesting, own, job, to, data, now), now);
}

ConnectionId Connections::accept(const PeerRequest& request, const av::UetAddress& own, JobId job,
                                 std::span<const std::byte> data, Time now) {
  Connection& connection = open(State::Accepting, own, job, request.answers, data, now);
  connection.peer = request.id;
  connection.peer_endpoint = request.endpoint;
  connection.peer_job = request.job;
  connection.answers_always = request.keep_alive_ms > 0;
  return begin(connection, now);
}

ConnectionId Connections::begin(Connection& connection, Time now) {
  try {
    if (must_wait(connection)) {
      held_.push_back(connection.id);
      set_deadline(connection, now + timing_.first_pause);
    } else {
      send_again(connection, now);
    }
  } catch (const std::bad_alloc&) {
    erase(connection);
    throw;
  }
  return connection.id;
}

void Connections::shutdown(ConnectionId id, Time) {
  Connection* const connection = find(id);
  if (connection == nullptr || connection->state == State::Leaving) return;
  const bool requested = connection->state == State::Requesting;
  send(*connection, requested ? MessageType::Cancel : MessageType::Shutdown);
  set_deadline(*connection, kNever);
  connection->state = State::Leaving;
}

void Connections::drop(ConnectionId id) noexcept {
  Connection* const connection = find(id);
  if (connection != nullptr) erase(*connection);
}

// ---- events ------------------------------------------------------------------------------------

void Connections::fail(Connection& connection, Failure failure, const Data& data) {
  ConnectionEvent event;
  event.kind = ConnectionEvent::Kind::Failed;
  event.id = connection.id;
  event.failure = failure;
  event.data = data;
  events_.push_back(event);
  erase(connection);
}

// The initiator may still wait for the Accept.
void Connections::give_up_accepting(Connection& connection) {
  Outgoing out;
  out.to = connection.to;
  out.message = message_of(connection, MessageType::Shutdown);
  answer(out);
  fail(connection, Failure::Aborted, {});
}

// The connected peer has ended.
void Connections::lose(Connection& connection) {
  ConnectionEvent event;
  event.kind = ConnectionEvent::Kind::Shutdown;
  event.id = connection.id;
  events_.push_back(event);
  erase(connection);
}

void Connections::enter_connected(Connection& connection, const Data& data, Time now) {
  ConnectionEvent event;
  event.kind = ConnectionEvent::Kind::Connected;
  event.id = connection.id;
  event.endpoint = connection.peer_endpoint;
  event.job = connection.peer_job;
  event.data = data;
  events_.push_back(event);
  connection.state = State::Connected;
  connection.in_flight = false;
  const bool probes = timing_.probe_period > Duration::zero();
  set_deadline(connection, probes ? now + timing_.probe_period : kNever);
}

// ---- messages ----------------------------------------------------------------------------------

void Connections::on_accept(const Message& message, Connection* connection, Time now) {
  const bool waits = connection != nullptr && connection->state == State::Requesting;
  const bool again = connection != nullptr && connection->state == State::Connected &&
                     connection->peer == message.from;
  if (!waits && !again) return say_unknown(message);  // CM-25, CM-32
  connection->peer = message.from;
  connection->to = message.answers;
  confirm(*connection);
  if (again) return;
  connection->peer_endpoint = message.endpoint;
  connection->peer_job = message.job;
  connection->answers_always = message.keep_alive_ms > 0;
  enter_connected(*connection, message.data, now);
}

void Connections::on_reject(const Message& message, Connection& connection, Time now) {
  if (connection.state != State::Requesting) return;
  if (message.reason == RejectReason::Application) {
    return fail(connection, Failure::Rejected, message.data);
  }
  const bool later =
      message.reason == RejectReason::Busy && now - connection.started < timing_.connect_patience;
  if (!later) fail(connection, Failure::Refused, {});  // else the request is repeated (CM-22)
}

// A report can be forged: it ends no request that the listener's transport has acknowledged, and
// no connection whose peer answers the Probe.
void Connections::refused(const FepAddress& fep) {
  for (auto at = table_.begin(); at != table_.end();) {
    Connection& connection = at->second;
    ++at;
    const bool probed = connection.state == State::Connected && connection.in_flight;
    if (probed && connection.to.fep() == fep) connection.no_socket = true;
    const bool unheard = connection.state == State::Requesting && !connection.heard;
    if (unheard && connection.to.fep() == fep) fail(connection, Failure::Refused, {});
  }
}

void Connections::on_shutdown(Connection& connection) {
  switch (connection.state) {
    case State::Accepting:
      return fail(connection, Failure::Aborted, {});
    case State::Connected:
      return lose(connection);
    case State::Requesting:  // the acceptor has given up (CM-28)
      return fail(connection, Failure::Aborted, {});
    case State::Leaving:  // both ends at a time (CM-31)
      return;
  }
}

void Connections::on_message(const Message& message, Time now) {
  take_message(message, now);
  if (!held_.empty()) send_held(now);
}

void Connections::take_message(const Message& message, Time now) {
  Connection* const connection = find(message.to);
  // Only the peer may speak of an established connection (CM-13).
  if (connection != nullptr && connection->peer != 0 && connection->peer != message.from) {
    if (message.type == MessageType::Accept) say_unknown(message);
    return;
  }
  switch (message.type) {
    case MessageType::Request: {
      Outgoing out;
      out.to = message.answers;
      out.message.type = MessageType::Reject;
      out.message.reason = RejectReason::NoListener;
      out.message.to = message.from;
      out.message.answers = answers_;
      return answer(out);
    }
    case MessageType::Cancel:
      return;
    case MessageType::Accept:
      return on_accept(message, connection, now);
    case MessageType::Reject:
      if (connection != nullptr) on_reject(message, *connection, now);
      return;
    case MessageType::Confirm:
    case MessageType::Probe:
      if (connection == nullptr) return say_unknown(message);
      if (connection->state == State::Accepting) {
        enter_connected(*connection, {}, now);
      }
      return;
    case MessageType::Shutdown:
      if (connection != nullptr) on_shutdown(*connection);
      return;
  }
}

// ---- outcomes and time -------------------------------------------------------------------------

void Connections::sent(ConnectionId about, MessageType type, Outcome outcome, Time now) {
  take_outcome(about, type, outcome, now);
  if (!held_.empty()) send_held(now);
}

void Connections::take_outcome(ConnectionId about, MessageType type, Outcome outcome, Time now) {
  Connection* const connection = find(about);
  if (connection == nullptr) return;
  if (type == MessageType::Confirm && connection->confirms > 0) {
    if (--connection->confirms == 0) forget_confirms(*connection);
  }
  if (connection->state == State::Leaving) {
    if (type == MessageType::Shutdown || type == MessageType::Cancel) erase(*connection);
    return;
  }
  const bool repeated = (connection->state == State::Requesting && type == MessageType::Request) ||
                        (connection->state == State::Accepting && type == MessageType::Accept) ||
                        (connection->state == State::Connected && type == MessageType::Probe);
  if (repeated) connection->in_flight = false;
  connection->heard |= outcome != Outcome::Lost;
  if (outcome == Outcome::Delivered) return;
  const bool impatient = now - connection->started >= timing_.connect_patience;
  switch (connection->state) {
    case State::Requesting:
      if (outcome == Outcome::Refused) return fail(*connection, Failure::Refused, {});  // CM-21
      if (impatient) fail(*connection, Failure::Unreachable, {});                       // CM-22
      return;
    case State::Accepting:
      if (outcome == Outcome::Refused) return fail(*connection, Failure::Aborted, {});
      if (impatient) give_up_accepting(*connection);
      return;
    case State::Connected:
      // A Request went to the listener, which may have ended since.
      if (type == MessageType::Probe ||
          (outcome == Outcome::Refused && type != MessageType::Request)) {
        lose(*connection);  // CM-33
      }
      return;
    case State::Leaving:
      return;
  }
}

// CM-37: a Probe has no answer at its deadline. A host that calls late, because its process was
// stopped, may not have seen the answer.
void Connections::await_answer(Connection& connection, Time now) {
  const Duration patience = std::max(timing_.probe_period, timing_.shortest_silence);
  const bool ended = connection.answers_always || connection.no_socket;
  const bool late = now - connection.deadline > timing_.probe_period / 2;
  if (!ended || late) {
    set_deadline(connection, now + timing_.probe_period);
  } else if (now - connection.probed < patience) {
    set_deadline(connection, connection.probed + patience);
  } else {
    Outgoing out;  // the peer may live
    out.to = connection.to;
    out.message = message_of(connection, MessageType::Shutdown);
    answer(out);
    lose(connection);
  }
}

void Connections::progress(Time now) {
  if (!held_.empty()) send_held(now);
  while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
    Connection& connection = *find(deadlines_.begin()->second);
    const bool unconfirmed = connection.state == State::Accepting &&
                             now - connection.started >= timing_.confirm_patience;
    if (unconfirmed) {
      give_up_accepting(connection);  // CM-23
    } else if (connection.state == State::Connected && connection.in_flight) {
      await_answer(connection, now);
    } else {
      send_again(connection, now);
    }
  }
}

}  // namespace uet::cm
