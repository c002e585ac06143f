// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Same-host rings: packets to peers of the same user on the same host go through shared memory
// instead of the NIC below. The packets are the same; the layers above see no difference.
//
// Each direction between two processes has a ring of its own, made by the sender when it first
// sends to the address: it connects to the name that the address has on this host (local_socket.h)
// and hands the memory over. If no such process has the address, the sender's packets to it go to
// the NIC below, and the sender tries again now and then. Packets that do not fit into a full ring
// go to the NIC below too, so that a peer which does not read does not stop its sender.
//
// Data from other processes are not trusted: this process neither waits for another process nor
// keeps more for it than the limits below. A peer that ends affects only its own connections.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nic/local_incoming.h"
#include "nic/local_messages.h"
#include "nic/local_outgoing.h"
#include "nic/local_pace.h"
#include "nic/local_routes.h"
#include "nic/local_watch.h"
#include "nic/middleware.h"
#include "uet/base/result.h"

namespace uet::nic {

class LocalNic final : public Middleware {
 public:
  // Wraps `inner`, which stays as it is on failure. `ring_bytes`: capacity of a ring, taken as the
  // next power of two within the bounds of shared_ring.h. `sdi`: the secure domain of the FEP, or
  // nullopt in clear; rings lead to processes with the same one only, since they carry plain
  // packets (TSS-64). Errors of listen_local, with `message`.
  static Result<std::unique_ptr<LocalNic>> wrap(std::unique_ptr<Nic>& inner, std::size_t ring_bytes,
                                                std::string& message,
                                                std::optional<std::uint32_t> sdi = {});
  ~LocalNic() override;

  bool reads_device_memory() const override { return inner().reads_device_memory(); }
  std::uint64_t register_device_memory(const DmabufRange& range) override {
    return inner().register_device_memory(range);
  }
  std::size_t rx_burst(std::span<RxPacket> out, Time now) override;
  std::size_t tx_burst(std::span<const Packet* const> in) override;
  std::uint16_t source_port_for(const Packet& packet) override;
  int wait_fd() const override { return watch_.fd(); }
  bool prepare_wait() override;
  std::optional<DeadPeer> poll_dead_peer() override;
  Time next_deadline() const override;
  const MemoryRanges* shared_memory() const override { return &incoming_.memory(); }
  NicCounters counters() const override;
  // For tests: addresses that are remembered.
  std::size_t routes() const { return routes_.size(); }

 private:
  // New peers and the end of old ones are looked for so often while there is no sleep.
  static constexpr Duration kEventInterval = std::chrono::microseconds(100);
  // Both connections of a process that ends close at about the same time: its loss is reported when
  // both are closed, or after ...
  static constexpr Duration kSettles = std::chrono::milliseconds(5);
  // Connections that are accepted in one look. If more wait, the next look is after ...
  static constexpr std::size_t kAcceptsALook = 16;
  static constexpr Duration kAcceptPause = std::chrono::milliseconds(2);
  // A peer NIC that has ended and has not been reported yet.
  struct Lost {
    FepAddress address;
    LocalInstance instance;
    std::vector<std::uint16_t> from;    // incoming connections
    std::unique_ptr<LocalOutgoing> to;  // nullptr: there was none
    Time since{};
  };
  using What = LocalWatch::What;

  LocalNic(std::unique_ptr<Nic> inner, std::size_t ring_bytes, std::optional<std::uint32_t> sdi,
           FileDescriptor listener, FileDescriptor epoll, FileDescriptor bell);
  std::uint16_t next_id();

  LocalOutgoing* ring_to(const Packet& packet);
  LocalOutgoing* ring_of(LocalRoute& route, const FepAddress& to);
  std::unique_ptr<LocalOutgoing> connect(const FepAddress& to);
  bool put(LocalOutgoing& ring, const Packet& packet);
  void publish();
  void wake(LocalOutgoing& ring);

  std::size_t take(std::span<RxPacket> out);
  void handle_events();
  void accept_peers();
  void pause_accepting(bool pause);
  void admit(FileDescriptor socket);
  void on_incoming(std::uint16_t id, bool has_ended);
  bool attach(LocalIncoming& from, const LocalOffer& offer, FileDescriptor descriptor);
  bool welcome(LocalIncoming& from, std::uint8_t speaks);
  void ring_own_bell();
  void forget_refused();
  void on_outgoing(std::uint16_t id);
  void end(LocalIncoming& from);
  void forget(LocalRoute& route, Duration wait);
  void lose(const FepAddress& address, const LocalInstance& instance);
  bool is_settled(const Lost& lost) const;
  DeadPeer report(const Lost& lost);
  void unwatch(const LocalOutgoing& ring);

  std::size_t ring_bytes_;
  std::optional<std::uint32_t> sdi_;
  FileDescriptor listener_;
  LocalWatch watch_;            // of the NIC below, the bell, the listener and all peers
  FileDescriptor bell_;         // eventfd that wakes threads that sleep on this NIC
  FileDescriptor shared_bell_;  // eventfd that older libraries write to; from their first offer on
  int owner_process_;           // a forked child must not say goodbye to the parent's peers
  std::uint64_t instance_ = 0;  // distinguishes this NIC from earlier ones at its address
  std::uint16_t last_id_ = 0;   // of a connection

  LocalRoutes routes_;
  std::vector<LocalOutgoing*> unpublished_;  // of this burst
  LocalIncomings incoming_;
  std::vector<Lost> lost_;  // not reported yet
  bool bell_rung_ = false;
  bool any_refused_ = false;  // a peer has answered an offer with anything but a welcome
  bool inner_watched_ = false;
  LocalPace pace_;
  Time now_{};  // of the last rx_burst
  Time next_events_{};
  Time accepting_again_{};  // Time{}: the listener is watched
  NicCounters own_;
};

}  // namespace uet::nic
