// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Receiver credit between PDS and CMS: carries targets and Credit Requests to the pacer, grants to
// their sources, and asks for credit when a context that has data gets none. How much and when is
// decided in cms (rccc.h, credit_pacer.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>

#include "base/timer_wheel.h"
#include "cms/credit_pacer.h"
#include "cms/destination.h"
#include "pds/ccc_pool.h"
#include "uet/base/address.h"
#include "uet/base/time.h"

namespace uet::pds {

struct Environment;

// A peer's context that asks for credit here (CMS-204), shared by the PDCs that carry its data.
struct CreditSender : cms::CreditSource {
  FepAddress address;
  std::uint8_t ccc_id = 0;
  Pdc* speaker = nullptr;  // the PDC it was last heard on: grants go there
  std::uint32_t users = 0;
};

class Credits {
 public:
  // `environment` outlives it.
  Credits(Environment& environment, Time now);
  // Takes the memory for timers. May throw bad_alloc.
  void prepare() { wheel_.prepare(); }

  // Receiver. A request of the peer's context `ccc_id` arrived.
  void on_request(Pdc& pdc, std::uint8_t ccc_id, const cms::CreditArrival& arrival, Time now);
  // Takes ECN mark and trimming of a request, to control an oversubscribed fabric (CMS-230).
  void note_arrival(bool ce, bool trimmed, bool trimmed_last_hop, Time now);
  // Received here and not taken by anybody yet: grants become rarer (CMS-231).
  void set_backlog(std::uint64_t bytes);
  // A Credit Request; answered at once with what has been granted so far. False if no request has
  // said yet which context the PDC belongs to.
  bool on_credit_request(Pdc& pdc, std::uint32_t target, Time now);
  // The PDC ends: it carries no grants any more.
  void leave(Pdc& pdc);

  // Source. credit_target for a request of this context.
  std::uint32_t take_target(SharedCcc& shared);
  // The context got data to send, or has none left.
  void note_demand(SharedCcc& shared);
  // A PDC of this context could not send for lack of credit.
  void await(SharedCcc& shared, Time now);

  // Sends what is due: grants and Credit Requests. True if there was something.
  bool expire(Time now);
  Time next_deadline() const;

 private:
  struct Key {
    FepAddress address;
    std::uint8_t ccc_id;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const noexcept;
  };

  void ask(SharedCcc& shared, Time now);
  void set_rate();

  Environment& env_;
  TimerWheel wheel_;  // of SharedCcc: the next Credit Request
  cms::CreditPacer pacer_;
  cms::OversubscriptionControl fabric_;
  cms::OversubscriptionControl::Arrivals arrivals_;  // in this period ...
  Time period_end_{};  // ... which ends with the first packet after it
  double backlog_factor_ = 1;
  std::unordered_map<Key, CreditSender, KeyHash> senders_;  // at most one for each PDC
  std::size_t active_ = 0;                                  // contexts of this FEP that have data
};

}  // namespace uet::pds
