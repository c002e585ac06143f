// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The CQs, counters and shared transmit context that an endpoint is bound to, and the slots that
// its operations in progress hold there. A slot is taken when an operation is posted, so that each
// completion finds an entry.
#pragma once

#include <rdma/fi_endpoint.h>

#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "objects/cntr.h"
#include "objects/completion_kind.h"
#include "objects/cq.h"
#include "objects/engine.h"
#include "objects/references.h"
#include "objects/shared_ctx.h"

namespace uet::prov {

enum class EndpointRole : std::uint8_t { Both, Transmit, Receive };

// Everything with the domain's lock, except bind_cq and bind_counter, which take it themselves.
class EpBindings {
 public:
  EpBindings(Engine& engine, EndpointRole role) : engine_(engine), role_(role) {}

  // fi_ep_bind(3): 0 or a negative fi_errno, with the reason logged. A queue or counter
  // that is bound cannot be closed before the endpoint.
  int bind_cq(Cq& cq, std::uint64_t flags);
  int bind_counter(Cntr& counter, std::uint64_t flags);
  // Binds the queue and the counters of the transmit side of `whole` that are not bound here. 0 or
  // a negative fi_errno, with the reason logged.
  int follow_tx(const EpBindings& whole);
  // Operations in progress take `slots` from now on.
  void share_tx(std::shared_ptr<TxSlots> slots) {
    slots_ = std::move(slots);
    slots_->take_over(tx_in_progress_);
  }
  // nullptr: the endpoint has slots of its own.
  const std::shared_ptr<TxSlots>& shared_slots() const { return slots_; }

  // Some CQ or counter reports ...
  bool report_sends() const {
    return tx_cq_ != nullptr || counters_[kSend] != nullptr || counters_[kRead] != nullptr ||
           counters_[kWrite] != nullptr;
  }
  bool report_receives() const { return rx_cq_ != nullptr || counters_[kRecv] != nullptr; }
  // SES-80: immediate data of a write are refused if no CQ or counter would report them.
  bool report_cq_data() const {
    return role_ == EndpointRole::Transmit || report_receives() ||
           counters_[kRemoteWrite] != nullptr;
  }
  // Each success of a send or write is counted.
  bool count_sends() const { return counters_[kSend] != nullptr || counters_[kWrite] != nullptr; }
  // FI_COMPLETION unless completions of this side are selective.
  std::uint64_t tx_always() const { return tx_always_; }
  std::uint64_t rx_always() const { return rx_always_; }

  // nullptr: none is bound.
  Cq* queue_of(ses::Kind kind) const { return belongs_to_rx(kind) ? rx_cq_ : tx_cq_; }
  Cntr* counter_of(ses::Kind kind) const { return counters_[counter_index(kind)]; }
  Cntr* counter(CounterIndex index) const { return counters_[index]; }
  bool can_take_event() const noexcept { return rx_cq_ == nullptr || rx_cq_->can_take_event(); }

  // A slot for one operation, also in the shared context, and a CQ entry for its completion.
  // False: none is free now.
  bool take_tx() noexcept {
    if (slots_ != nullptr && !slots_->take()) return false;
    if (tx_cq_ != nullptr && !tx_cq_->reserve()) {
      if (slots_ != nullptr) slots_->give_back();
      return false;
    }
    ++tx_in_progress_;
    return true;
  }
  // The operation has completed: the completion uses the CQ entry, or gives it back itself.
  void finish_tx() noexcept {
    --tx_in_progress_;
    if (slots_ != nullptr) slots_->give_back();
  }
  // The operation was not posted after all.
  void return_tx() noexcept {
    finish_tx();
    if (tx_cq_ != nullptr) tx_cq_->release();
  }
  // The same for receives.
  bool take_rx() noexcept {
    if (rx_cq_ != nullptr && !rx_cq_->reserve()) return false;
    ++rx_in_progress_;
    return true;
  }
  void finish_rx() noexcept { --rx_in_progress_; }
  void return_rx() noexcept {
    finish_rx();
    if (rx_cq_ != nullptr) rx_cq_->release();
  }
  // From now on readers of all queues and counters make the progress of all engines of the domain.
  void serve_all_engines() noexcept;
  // The endpoint ends: gives back all slots.
  void return_all() noexcept;

  std::size_t tx_in_progress() const { return tx_in_progress_; }
  std::size_t rx_in_progress() const { return rx_in_progress_; }

 private:
  Engine& engine_;
  const EndpointRole role_;
  std::vector<Hold> holds_;
  std::shared_ptr<TxSlots> slots_;  // of a shared transmit context
  Cq* tx_cq_ = nullptr;
  Cq* rx_cq_ = nullptr;
  std::array<Cntr*, kCounters> counters_{};
  std::uint64_t tx_always_ = FI_COMPLETION;
  std::uint64_t rx_always_ = FI_COMPLETION;
  std::size_t tx_in_progress_ = 0;  // each holds an entry of tx_cq_
  std::size_t rx_in_progress_ = 0;  // each holds an entry of rx_cq_
};

}  // namespace uet::prov
