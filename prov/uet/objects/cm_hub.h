// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The connections of a domain: gives each event of cm::Connections to the endpoint that it is
// about. Everything with the domain's lock.
#pragma once

#include <memory>
#include <unordered_map>

#include "cm/connections.h"
#include "objects/cm_port.h"
#include "objects/engine.h"

namespace uet::prov {

class Domain;

// The endpoint behind a connection.
class ConnectionUser {
 public:
  // Throws bad_alloc: the event comes again.
  virtual void on_event(const cm::ConnectionEvent& event) = 0;
  // Called by CmHub::run() after CmHub::wake(). Throws bad_alloc: it is called again.
  virtual void on_wake() = 0;

 protected:
  ~ConnectionUser() = default;
};

class CmHub final : public PassClient {
 public:
  // Takes a resource index of the domain. 0 or a negative fi_errno, with the reason logged.
  static int open(Domain& domain, std::unique_ptr<CmHub>& out) UET_NO_THREAD_ANALYSIS;
  // Without connections. Waits a little for messages under way.
  ~CmHub() UET_NO_THREAD_ANALYSIS;
  CmHub(const CmHub&) = delete;
  CmHub& operator=(const CmHub&) = delete;

  // As cm::Connections. Events go to `user` until it leaves or the connection has ended.
  cm::ConnectionId connect(ConnectionUser& user, const av::UetAddress& own, JobId job,
                           const av::UetAddress& to, std::span<const std::byte> data);
  cm::ConnectionId accept(ConnectionUser& user, const cm::PeerRequest& request,
                          const av::UetAddress& own, JobId job, std::span<const std::byte> data);
  // The user leaves. The next run() tells the peer that the connection has ended, as far as memory
  // allows.
  void shutdown(cm::ConnectionId id) noexcept;
  // The next run() calls user.on_wake(), which calls shutdown(); allocates nothing.
  void wake(cm::ConnectionId id) noexcept;

  // PassClient.
  void run(Time now) noexcept override;
  Time next_deadline() const noexcept override { return port_.next_deadline(); }
  void refused(const FepAddress& peer) noexcept override;

 private:
  struct User {
    ConnectionUser* user = nullptr;
    bool woken = false;
  };
  CmHub(Domain& domain, const av::UetAddress& name);
  cm::ConnectionId enter(cm::ConnectionId id, ConnectionUser& user);
  void hand_out_events();
  void wake_all();

  Domain& domain_;
  Engine& engine_;
  const av::UetAddress name_;
  cm::Connections connections_;
  CmPort port_;
  std::unordered_map<cm::ConnectionId, User> users_;
  bool some_woken_ = false;
  bool attached_ = false;
};

}  // namespace uet::prov
