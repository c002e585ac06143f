// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "objects/tx_division.h"

#include <algorithm>

#include "nic/interface.h"
#include "objects/endpoint.h"
#include "objects/engines.h"
#include "provider.h"

namespace uet::prov {

bool TxDivision::may_divide(const Endpoint& endpoint) {
  const Engine& engine = endpoint.engine_;
  const Submissions& submissions = endpoint.engine_.submissions();
  const bool threads = submissions.active() || submissions.threading() == FI_THREAD_SAFE ||
                       submissions.threading() == FI_THREAD_UNSPEC;
  const nic::NicCaps& caps = endpoint.engine_.nic().caps();
  return threads && engine.place().siblings != nullptr && caps.lends_port && !caps.secured &&
         endpoint.role_ == EndpointRole::Both && endpoint.sends() && endpoint.parent_ == nullptr &&
         !endpoint.connection_ && endpoint.config_.mode != DeliveryMode::Uud;
}

TxDivision::~TxDivision() = default;

void TxDivision::decide() noexcept {
  const std::lock_guard guard(mutex_);
  if (decided_.load(std::memory_order_relaxed)) return;
  try {
    open_parts();
  } catch (const std::bad_alloc&) {
    FI_WARN(&provider, FI_LOG_EP_CTRL,
            "FI_UET_CORES: endpoint: no memory to divide its peers; its own engine has all\n");
    parts_.clear();
  }
  decided_.store(true, std::memory_order_release);
}

void TxDivision::open_parts() {
  const std::vector<Engine*> idle = engines_.idle();
  if (idle.empty()) return;
  if (whole_.engine().params().local_rings) of_host_ = nic::addresses_of_host();
  for (Engine* const engine : idle) {
    if (auto part = open_part(*engine)) parts_.push_back(std::move(part));
  }
  if (parts_.empty() || whole_.engine().submissions().active()) return;
  const Guard guard(whole_.engine().lock());
  whole_.bindings().serve_all_engines();
  whole_.engine().watched().wake();
}

// nullptr: not possible, the reason is logged.
std::shared_ptr<Endpoint> TxDivision::open_part(Engine& engine) {
  EndpointConfig config = whole_.config_;
  config.role = EndpointRole::Transmit;
  config.whole = &whole_;
  config.engine = &engine;
  config.shares_rx = false;
  config.tx_size = whole_.state_.config.tx_size;
  int result = engines_.lend_port(whole_.engine_, engine);
  std::shared_ptr<Endpoint> part;
  if (result == 0) {
    part.reset(new Endpoint(nullptr, config, nullptr));
    part->state_.av = whole_.state_.av;
    result = part->open_context();
  }
  if (result == 0) result = part->bindings_.follow_tx(whole_.bindings_);
  if (result == 0) result = part->eq_.follow(whole_.eq_, engine);
  if (result == 0 && whole_.bindings_.shared_slots() != nullptr) {
    part->share_slots(whole_.bindings_.shared_slots());
  }
  if (result == 0) result = part->enable();
  if (result == 0) return part;
  FI_WARN(&provider, FI_LOG_EP_CTRL,
          "FI_UET_CORES: endpoint: engine %zu cannot send for it (%s), the others do; see the "
          "limits of open files and memory\n",
          engine.place().number, fi_strerror(-result));
  return nullptr;
}

// False: it has made progress.
bool TxDivision::has_sent_all(Endpoint& part) noexcept {
  const Guard guard(part.engine_.lock());
  part.state_.request_acks_now();
  part.engine_.progress(clock_now());
  return part.state_.has_sent_all() && !part.tx_.compounds().any();
}

// Answers that come through a ring of this host, or from this domain itself, come to the engine of
// the endpoint.
bool TxDivision::stays(const FepAddress& fep) const noexcept {
  if (nic::is_loopback(fep.ip) && whole_.engine().params().local_rings) return true;
  if (std::find(of_host_.begin(), of_host_.end(), fep.ip) != of_host_.end()) return true;
  return fep.ip == whole_.engine().local_address().ip && engines_.at_port(fep.port) != nullptr;
}

TxSide& TxDivision::side(Endpoint& part) noexcept { return part.tx(); }

Endpoint* TxDivision::part_of(fi_addr_t to) const noexcept {
  const auto turn = whole_.av()->turn_of(to);
  if (!turn || stays(turn->fep)) return nullptr;
  const std::size_t number = turn->number % (parts_.size() + 1);
  if (number == 0) return nullptr;
  if (any_moved_.load(std::memory_order_acquire)) [[unlikely]] {
    const SpinGuard guard(moved_lock_);
    if (moved_.count(turn->number) > 0) return nullptr;
  }
  return parts_[number - 1].get();
}

bool TxDivision::move_to_whole(fi_addr_t to) noexcept {
  Endpoint* const part = part_of(to);
  const auto turn = whole_.av()->turn_of(to);
  if (part == nullptr || !turn) return true;
  if (!has_sent_all(*part)) return false;
  try {
    const SpinGuard guard(moved_lock_);
    moved_.insert(turn->number);
  } catch (const std::bad_alloc&) {
    return false;
  }
  any_moved_.store(true, std::memory_order_release);
  return true;
}

}  // namespace uet::prov
