// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// FI_UET_CORES: engines that have no endpoint send for an endpoint of another one. Its peers are
// divided among its own engine and those; a part of the endpoint at each of them transmits from the
// port of the endpoint, so that peers see one FEP. Receives stay where the endpoint is.
//
//   endpoint at engine 0, port 4793          engine 1 (no endpoint)
//     peers A, C ...  TxSide                   peers B, D ...  TxSide of the part
//     all receives                             a second socket at port 4793, for its PDCs alone
//
// The decision is taken at the first operation: an application that opens an endpoint for each
// engine opens them before.
#pragma once

#include <rdma/fabric.h>

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "objects/spin_lock.h"
#include "uet/base/address.h"

namespace uet::prov {

class Endpoint;
class Engine;
class Engines;
class TxSide;

class TxDivision {
 public:
  // Of an endpoint that is being enabled: may its peers be divided? Its parts need no thread of the
  // application to make their progress: either engines have threads, or the application has several
  // that may use the endpoint.
  static bool may_divide(const Endpoint& endpoint);
  // Of the endpoint `whole`, whose domain has `engines`.
  TxDivision(Endpoint& whole, Engines& engines) : whole_(whole), engines_(engines) {}
  ~TxDivision();

  // By any thread: the side for operations to this entry of the AV; nullptr: that of the endpoint.
  TxSide* side_of(fi_addr_t to) noexcept {
    if (!decided_.load(std::memory_order_acquire)) decide();
    Endpoint* const part = parts_.empty() ? nullptr : part_of(to);
    return part != nullptr ? &side(*part) : nullptr;
  }
  // Operations to a peer that a part has are to go to the endpoint from now on. False: not yet, the
  // part has operations under way, whose order with later ones would be lost; it has made progress.
  bool move_to_whole(fi_addr_t to) noexcept;
  // use(Endpoint&) for each part until one returns another value than 0, which is the result.
  template <class Use>
  auto for_each(Use use) {
    const std::lock_guard guard(mutex_);
    for (const auto& part : parts_) {
      if (const auto result = use(*part); result != 0) return result;
    }
    return 0;
  }

 private:
  void decide() noexcept;
  void open_parts();
  std::shared_ptr<Endpoint> open_part(Engine& engine);
  static bool has_sent_all(Endpoint& part) noexcept;
  static TxSide& side(Endpoint& part) noexcept;
  Endpoint* part_of(fi_addr_t to) const noexcept;
  bool stays(const FepAddress& fep) const noexcept;

  Endpoint& whole_;
  Engines& engines_;
  std::mutex mutex_;
  std::atomic<bool> decided_{false};
  std::atomic<bool> any_moved_{false};
  mutable SpinLock moved_lock_{true};
  std::set<std::uint32_t> moved_;  // turns (AvFid::Turn) of peers
  // The rest does not change once it is decided.
  std::vector<std::shared_ptr<Endpoint>> parts_;
  std::vector<FabricAddress> of_host_;  // whose processes may answer through rings
};

}  // namespace uet::prov
