// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The connection of an endpoint of FI_EP_MSG: calls of fi_cm(3) become those of CmHub, its events
// become events of the EQ and the endpoint's peer.
#pragma once

#include <rdma/fabric.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "cm/connections.h"
#include "objects/cm_hub.h"
#include "objects/ep_state.h"
#include "objects/eq.h"
#include "objects/identity.h"

namespace uet::prov {

class ConnectionSide final : public ConnectionUser {
 public:
  ConnectionSide(CmHub& hub, EpState& state, const Identity& identity, const EqBinding& eq)
      : hub_(hub), state_(state), identity_(identity), eq_(eq) {}

  // The request that fi_accept answers. `gone`: its initiator has withdrawn it.
  void set_request(std::optional<cm::PeerRequest> request) {
    request_ = request;
    has_request_ = true;
  }
  bool has_request() const { return has_request_; }
  // CM-4: the address that fi_getname shows instead of the endpoint's own one: that of the listener
  // whose request the endpoint accepts. nullptr: its own.
  const av::UetAddress* shown_name() const { return request_ ? &request_->listener : nullptr; }

  // The calls of the same name, after fi_enable; `self` is the handle for the events. 0 or a
  // negative fi_errno, with the reason logged. They take the domain's lock.
  int connect(struct fid& self, const void* address, const void* data, std::size_t length);
  int accept(struct fid& self, const void* data, std::size_t length);
  int get_peer(void* address, std::size_t* length) const;

  // The rest with the domain's lock.
  // Ends the connection, if it still is one: both ends get FI_SHUTDOWN. Throws bad_alloc: nothing
  // has changed.
  void end();
  // The endpoint has closed: the peer learns it, and events that wait in the EQ are dropped.
  void leave() noexcept;
  // An operation has ended in a way that says that the peer is lost: FI_SHUTDOWN follows.
  void note_failure() noexcept;
  bool is_connected() const { return phase_ == Phase::Connected; }

  // ConnectionUser.
  void on_event(const cm::ConnectionEvent& event) override;
  void on_wake() override;

 private:
  enum class Phase : std::uint8_t { Idle, Pending, Connected, Down };

  int check(struct fid& self, std::size_t length);
  void write(std::uint32_t event, const cm::Data& data);
  void write_failure(const cm::ConnectionEvent& event);
  void enter_connected(const cm::ConnectionEvent& event);
  void go_down() noexcept;

  CmHub& hub_;
  EpState& state_;
  const Identity& identity_;
  const EqBinding& eq_;
  struct fid* fid_ = nullptr;
  Phase phase_ = Phase::Idle;
  cm::ConnectionId id_ = 0;
  bool has_request_ = false;
  std::optional<cm::PeerRequest> request_;
  av::UetAddress peer_;
  av::UetAddress shown_peer_;  // CM-4: of fi_getpeer
};

}  // namespace uet::prov
