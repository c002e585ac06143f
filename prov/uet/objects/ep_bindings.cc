// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "objects/ep_bindings.h"

#include <rdma/fi_errno.h>

#include "objects/ep_state.h"

namespace uet::prov {
namespace {

constexpr std::array<std::uint64_t, kCounters> kBits = {FI_SEND,  FI_RECV,        FI_READ,
                                                        FI_WRITE, FI_REMOTE_READ, FI_REMOTE_WRITE};
constexpr std::uint64_t kTransmits = FI_SEND | FI_READ | FI_WRITE;

}  // namespace

int EpBindings::bind_cq(Cq& cq, std::uint64_t flags) {
  const std::uint64_t sides = (role_ != EndpointRole::Receive ? FI_TRANSMIT : 0) |
                              (role_ != EndpointRole::Transmit ? FI_RECV : 0);
  const bool tx = (flags & FI_TRANSMIT) != 0;
  const bool rx = (flags & FI_RECV) != 0;
  if (!cq.engines().has(engine_)) {
    return refuse_endpoint(
        -FI_EDOMAIN,
        "fi_ep_bind: endpoint: the CQ belongs to another domain; open it on the same domain");
  }
  if ((flags & ~(sides | FI_SELECTIVE_COMPLETION)) != 0 || (!tx && !rx) ||
      (tx && tx_cq_ != nullptr) || (rx && rx_cq_ != nullptr)) {
    return refuse_endpoint(-FI_EINVAL,
                           "fi_ep_bind: endpoint: the flags of the CQ are wrong or taken; use "
                           "FI_TRANSMIT and FI_RECV once each");
  }
  const Guard guard(engine_.lock());
  // Operations that were posted before this CQ was bound complete in it.
  const std::size_t posted = (tx ? tx_in_progress_ : 0) + (rx ? rx_in_progress_ : 0);
  for (std::size_t i = 0; i < posted; ++i) {
    if (cq.reserve()) continue;
    cq.release(i);
    return refuse_endpoint(
        -FI_ENOMEM,
        "fi_ep_bind: endpoint: the CQ cannot hold the operations posted already; bind it earlier");
  }
  holds_.emplace_back(cq.references());
  cq.readers().add(engine_);
  const std::uint64_t always = (flags & FI_SELECTIVE_COMPLETION) != 0 ? 0 : FI_COMPLETION;
  if (tx) {
    tx_cq_ = &cq;
    tx_always_ = always;
  }
  if (rx) {
    rx_cq_ = &cq;
    rx_always_ = always;
  }
  return 0;
}

int EpBindings::follow_tx(const EpBindings& whole) {
  if (tx_cq_ == nullptr && whole.tx_cq_ != nullptr) {
    const std::uint64_t selective = whole.tx_always_ == 0 ? FI_SELECTIVE_COMPLETION : 0;
    if (const int result = bind_cq(*whole.tx_cq_, FI_TRANSMIT | selective); result != 0) {
      return result;
    }
  }
  for (std::size_t i = 0; i < kCounters; ++i) {
    Cntr* const counter = whole.counters_[i];
    if (counter == nullptr || counters_[i] != nullptr || (kBits[i] & kTransmits) == 0) continue;
    if (const int result = bind_counter(*counter, kBits[i]); result != 0) return result;
  }
  return 0;
}

int EpBindings::bind_counter(Cntr& counter, std::uint64_t flags) {
  constexpr std::uint64_t kReceives = FI_RECV | FI_REMOTE_READ | FI_REMOTE_WRITE;
  if (!counter.engines().has(engine_)) {
    return refuse_endpoint(
        -FI_EDOMAIN,
        "fi_ep_bind: endpoint: the counter belongs to another domain; open it on the same domain");
  }
  std::uint64_t left = flags;
  if (role_ != EndpointRole::Receive) left &= ~kTransmits;
  if (role_ != EndpointRole::Transmit) left &= ~kReceives;
  if (left != 0)
    return refuse_endpoint(-FI_EINVAL,
                           "fi_ep_bind: endpoint: unsupported counter flags; see fi_endpoint(3)");
  for (std::size_t i = 0; i < kCounters; ++i) {
    if ((flags & kBits[i]) != 0 && counters_[i] != nullptr) {
      return refuse_endpoint(-FI_EINVAL,
                             "fi_ep_bind: endpoint: a counter is bound to these flags already; "
                             "bind one for each flag");
    }
  }
  const Guard guard(engine_.lock());
  holds_.emplace_back(counter.references());
  counter.count_for(engine_);
  for (std::size_t i = 0; i < kCounters; ++i) {
    if ((flags & kBits[i]) != 0) counters_[i] = &counter;
  }
  return 0;
}

void EpBindings::serve_all_engines() noexcept {
  for (Cq* const queue : {tx_cq_, rx_cq_}) {
    if (queue != nullptr) queue->readers().add_all();
  }
  for (Cntr* const counter : counters_) {
    if (counter != nullptr) counter->count_for_all();
  }
}

void EpBindings::return_all() noexcept {
  if (slots_ != nullptr) slots_->give_back(tx_in_progress_);
  if (tx_cq_ != nullptr) tx_cq_->release(tx_in_progress_);
  if (rx_cq_ != nullptr) rx_cq_->release(rx_in_progress_);
}

}  // namespace uet::prov
