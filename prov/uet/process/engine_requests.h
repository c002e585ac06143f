// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// FI_UET_ENGINE=process, in the application: requests of one domain to its engine, and their
// answers (control.h). All with the domain's lock.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "nic/socket.h"
#include "process/control.h"
#include "ri/mr_table.h"
#include "uet/base/result.h"

namespace uet::prov {

class EngineRequests {
 public:
  // The connection, once.
  void use(nic::FileDescriptor socket) { socket_ = std::move(socket); }
  int socket() const { return socket_.get(); }
  bool connected() const { return socket_.valid(); }
  // False in a forked child, which has a copy of the socket.
  bool is_own() const { return owner_ == ::getpid(); }

  // The engine has ended, or does not answer: all requests fail from then on, with Error::Io.
  bool gone() const { return gone_; }
  void give_up() { gone_ = true; }
  ControlAnswer ask(const ControlRequest& request);

  // As those of ri::MrTable, for a region that the table of the domain has under `key`.
  Result<void> add_region(const ri::MemoryRegion& region, Rkey key);
  void change_region(const ri::MemoryRegion& region, Rkey key);
  void remove_region(Rkey key);
  void move_context(const ri::ContextName& from, const std::optional<ri::ContextName>& to);
  // That of the region, as it was added; nullptr: none.
  ri::AccessObserver* observer(Rkey key) const {
    const auto found = observers_.find(key.value);
    return found != observers_.end() ? found->second : nullptr;
  }

  // All counters of the engine's FEP, as counter_values().
  std::vector<std::uint64_t> counters();

  // As those of fep::Fep and nic::Nic.
  void learn(const FepAddress& peer) { tell_of(Request::Learn, peer, {}); }
  void unlearn(const FepAddress& peer) { tell_of(Request::Unlearn, peer, {}); }
  void forget(const FepAddress& peer) { tell_of(Request::Forget, peer, {}); }
  void learn_further(const FepAddress& first, std::span<const FabricAddress> further) {
    tell_of(Request::LearnFurther, first, further);
  }

 private:
  void tell_of(Request kind, const FepAddress& peer, std::span<const FabricAddress> further);

  const pid_t owner_ = ::getpid();
  nic::FileDescriptor socket_;
  bool gone_ = false;
  std::unordered_map<std::uint64_t, ri::AccessObserver*> observers_;  // by key
};

}  // namespace uet::prov
