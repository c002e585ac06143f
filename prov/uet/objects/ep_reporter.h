// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// From a completion of SES to counters and CQ entries.
#pragma once

#include "objects/cq.h"
#include "objects/ep_bindings.h"
#include "objects/ep_state.h"
#include "objects/identity.h"

namespace uet::prov {

class EpReporter {
 public:
  // `context`: that of the endpoint, for errors without a context of their own.
  EpReporter(const EpState& state, EpBindings& bindings, const Identity& identity, void* context)
      : state_(state), bindings_(bindings), identity_(identity), context_(context) {}

  // Gives back the slot of the operation and reports its completion, with the domain's lock.
  void report(const ses::Completion& completion) noexcept;
  // A peer has read or written memory of this endpoint.
  void remote_access(ses::Kind kind, std::uint64_t length) noexcept;

 private:
  void count(const ses::Completion& completion, bool good) noexcept;
  bool is_wanted(const ses::Completion& completion, bool is_error) const noexcept;
  void describe_receive(const ses::Completion& completion, Cq::Entry& entry) noexcept;
  bool keep_sender(const ses::Completion& completion) noexcept;
  void warn_refused(wire::ReturnCode code) const noexcept;

  const EpState& state_;
  EpBindings& bindings_;
  const Identity& identity_;
  void* const context_;
};

}  // namespace uet::prov
