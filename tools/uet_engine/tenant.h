// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// One domain of an application: a FEP with its NIC and thread, and what the application has opened
// in it. The application writes commands into shared memory (prov/uet/process/share.h), and sends
// requests; it is trusted with neither.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>

#include "atomics.h"
#include "commands.h"
#include "contexts.h"
#include "events.h"
#include "objects/engine.h"
#include "process/control.h"
#include "process_memory.h"
#include "rings.h"

namespace uet::engine {

class Tenant final : public prov::PassClient, private pds::PeerWatcher {
 public:
  Tenant();
  ~Tenant();  // closes the domain if it is open

  // Opens the domain for `process`. 0, or a negative fi_errno and the reason in `answer`.
  int open(const prov::ControlRequest& request, const prov::PeerProcess& process,
           prov::ControlAnswer& answer);
  // After open(): what the application maps and rings with.
  std::array<int, 3> descriptors() const;
  int process_fd() const { return memory_.ended_fd(); }
  // There was no memory for what the application has to be told: close it.
  bool cut_off() const { return events_.cut_off(); }
  // After open(): any other request.
  prov::ControlAnswer handle(const prov::ControlRequest& request);
  // The application has gone: ends all that is in progress, and begins to close the PDCs. The port
  // still answers: peers are told that the endpoint has gone.
  void end();
  // After end(): stops the thread, and frees the port.
  void close();
  FepAddress address() const { return engine_->local_address(); }

  // prov::PassClient: executes commands before packets that came later, and hands over events.
  bool begin(Time now) noexcept override;
  void run(Time now) noexcept override;
  Time next_deadline() const noexcept override;
  void refused(const FepAddress& peer) noexcept override;
  bool may_sleep() noexcept override;

 private:
  class RegionObserver;

  void peer_given_up(const FepAddress& peer, pds::PdsError error) noexcept override {
    events_.note_lost_peer(peer, error);
  }
  int open_engine(const prov::OpenRequest& request, std::string& why);
  int open_memory(std::string& why);

  Result<void> close_context(Context& context);
  Result<void> peek(Context& context, const prov::PeekRequest& request, Time now);
  Result<void> handle_region(const prov::ControlRequest& request);
  void handle_peer(const prov::ControlRequest& request, Time now);
  Result<void> handle_context(Context& context, const prov::ControlRequest& request, Time now);
  Result<void> dispatch(const prov::ControlRequest& request, prov::ControlAnswer& answer, Time now);
  bool execute_commands(Time now);

  std::unique_ptr<prov::Engine> engine_;
  ProcessMemory memory_;
  nic::FileDescriptor share_fd_;
  nic::FileDescriptor event_fd_;
  std::unique_ptr<Rings> rings_;
  Events events_;
  Atomics atomics_{memory_};
  Contexts contexts_{events_, atomics_};
  Commands commands_{contexts_, events_, atomics_, memory_};
  std::unordered_map<std::uint64_t, std::unique_ptr<RegionObserver>> regions_;  // by key
  Time retry_ = kNever;
};

}  // namespace uet::engine
