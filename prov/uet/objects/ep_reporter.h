// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// From a completion of SES to counters and CQ entries. All with the domain's lock.
#pragma once

#include "objects/cq.h"
#include "objects/ep_bindings.h"
#include "objects/ep_state.h"
#include "objects/identity.h"

namespace uet::prov {

class ConnectionSide;
class PeerReceives;

class EpReporter final : public ses::CompletionSink {
 public:
  // `context`: that of the endpoint, for errors without a context of their own.
  EpReporter(const EpState& state, EpBindings& bindings, const Identity& identity, void* context)
      : state_(state), bindings_(bindings), identity_(identity), context_(context) {}

  // Receives of the endpoint may be those of `receives`, which outlives this one; nullptr: none.
  void report_to_owner(PeerReceives* receives) { receives_ = receives; }

  // Failed operations may mean that `connection`, which outlives this one, has lost its peer.
  void watch_connection(ConnectionSide& connection) { connection_ = &connection; }

  // Gives back the slot of the operation and reports its completion.
  void complete(const ses::Completion& completion) noexcept override;
  // An operation that the call has accepted and the engine has not: `err`, a positive fi_errno. Its
  // slot is taken.
  void fail(ses::Kind kind, void* context, std::uint64_t user_flags, int err) noexcept;
  bool can_take_event() noexcept override { return bindings_.can_take_event(); }
  bool reserve_receive() noexcept override { return bindings_.take_rx(); }
  void release_receive() noexcept override { bindings_.return_rx(); }
  void remote_access(ses::Kind kind, std::uint64_t length) noexcept override;
  bool counts_reads() const noexcept override;
  void remote_part(ses::Kind kind, std::uint64_t length) noexcept override;

 private:
  void complete_original(const ses::Completion& completion) noexcept;
  void count(const ses::Completion& completion, bool good) noexcept;
  bool is_wanted(const ses::Completion& completion, bool is_error) const noexcept;
  void describe_receive(const ses::Completion& completion, Cq::Entry& entry) noexcept;
  bool keep_sender(const ses::Completion& completion, Cq::Entry& entry) noexcept;
  void warn_refused(wire::ReturnCode code) const noexcept;

  const EpState& state_;
  EpBindings& bindings_;
  const Identity& identity_;
  void* const context_;
  PeerReceives* receives_ = nullptr;
  ConnectionSide* connection_ = nullptr;
};

}  // namespace uet::prov
