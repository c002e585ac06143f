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
#include <unordered_map>
#include <vector>

#include "uet/base/result.h"
#include "uet/nic/interface.h"
#include "uet/nic/local_socket.h"
#include "uet/nic/middleware.h"
#include "uet/nic/shared_memory.h"
#include "uet/nic/shared_ring.h"

namespace uet::nic {

class LocalNic final : public Middleware {
 public:
  // Wraps `inner`, which stays as it is on failure. `ring_bytes`: capacity of a ring, taken as the
  // next power of two within the bounds of shared_ring.h. Errors of listen_local, with `message`.
  static Result<std::unique_ptr<LocalNic>> wrap(std::unique_ptr<Nic>& inner, std::size_t ring_bytes,
                                                std::string& message);
  ~LocalNic() override;

  std::size_t rx_burst(std::span<RxPacket> out, Time now) override;
  std::size_t tx_burst(std::span<const Packet* const> in) override;
  std::uint16_t leaves_from(const Packet& packet) override;
  int wait_fd() const override { return epoll_.get(); }
  bool prepare_wait() override;
  std::optional<LostPeer> take_lost_peer() override;
  Time next_deadline() const override;
  NicCounters counters() const override;
  // For tests: addresses that are remembered.
  std::size_t routes() const { return routes_.size(); }

 private:
  // New peers and the end of old ones are looked for so often while there is no sleep.
  static constexpr Duration kEventInterval = std::chrono::microseconds(100);
  // A look at the NIC below costs a system call: while that NIC is silent and rings exist, this is
  // the interval. While rings have packets, it is an eighth of the silence, within a bound.
  static constexpr Duration kInnerInterval = std::chrono::microseconds(1);
  static constexpr Duration kLongestInnerInterval = std::chrono::microseconds(50);
  // Packets have come through rings within ...
  static constexpr Duration kRingsBusy = std::chrono::microseconds(10);
  // An address without a local process is asked for again after ...
  static constexpr Duration kFirstRetry = std::chrono::milliseconds(10);
  static constexpr Duration kLastRetry = std::chrono::seconds(1);
  // So many addresses without a ring are remembered.
  static constexpr std::size_t kMaxRoutes = 1024;
  // An address that this host did not have is looked up again after ...
  static constexpr Duration kHostInterval = std::chrono::seconds(10);
  // A peer whose ring stays full for so long does not read. A sender that left a full ring for so
  // long before its next packet sends seldom, and does not wait for space in the first kVisit.
  static constexpr Duration kReads = std::chrono::milliseconds(10);
  static constexpr Duration kVisit = std::chrono::milliseconds(1);
  // Both connections of a process that ends close at about the same time: its loss is reported when
  // both are closed, or after ...
  static constexpr Duration kSettles = std::chrono::milliseconds(5);
  // Connections that are accepted in one look. If more wait, the next look is after ...
  static constexpr std::size_t kAcceptsALook = 16;
  static constexpr Duration kAcceptPause = std::chrono::milliseconds(2);
  // Connections without an Offer: so many, for so long.
  static constexpr std::size_t kMaxSilent = 64;
  static constexpr Duration kOfferTime = std::chrono::seconds(1);
  // Of all connections of peers. Each takes two descriptors: at most half of those of the process.
  static constexpr std::size_t kMaxIncoming = 4096;
  static constexpr std::uint16_t kSharedBell = 1;  // number of what is watched

  struct Offer;
  struct Outgoing;
  struct Incoming;
  // Identifies the peer NIC: a process that has the address later is another instance, and so is
  // another NIC of the same process. The kernel reports the process id.
  struct Instance {
    std::int64_t process = 0;
    std::uint64_t number = 0;  // as the peer says
    friend bool operator==(const Instance&, const Instance&) = default;
  };
  // Where packets to an address go.
  struct Route {
    std::unique_ptr<Outgoing> ring;  // nullptr: to the NIC below
    Time next_try{};
    Duration wait = kFirstRetry;
  };
  struct Lost;
  enum class Watched : std::uint8_t { Plain, Listener, Incoming, IncomingProcess, Outgoing };

  LocalNic(std::unique_ptr<Nic> inner, std::size_t ring_bytes, FileDescriptor listener,
           FileDescriptor epoll, FileDescriptor bell);
  bool watch(int fd, Watched what, std::uint16_t id);
  std::uint16_t next_id();
  void unwatch(const FileDescriptor& fd);

  Outgoing* ring_to(const Packet& packet);
  Route* route_to(const FepAddress& to, bool may_add);
  Outgoing* ring_of(Route& route, const FepAddress& to);
  void make_room_for_route();
  bool is_of_this_host(const FabricAddress& ip);
  std::unique_ptr<Outgoing> connect(const FepAddress& to);
  bool put(Outgoing& ring, const Packet& packet);
  bool waits_for(Outgoing& ring);
  void publish();
  void wake(Outgoing& ring);

  std::size_t take(std::span<RxPacket> out);
  void handle_events();
  void accept_peers();
  void pause_accepting(bool pause);
  bool has_room_for(const Instance& peer) const;
  void admit(FileDescriptor socket);
  void end_silent();
  void on_incoming(std::uint16_t id, bool has_ended);
  bool attach(Incoming& from, const Offer& offer, FileDescriptor descriptor);
  bool welcome(Incoming& from, std::uint8_t speaks);
  void ring_own_bell();
  void forget_refused();
  Route* route_of(std::uint16_t id);
  void on_outgoing(std::uint16_t id);
  void end(Incoming& from);
  void forget(Route& route, Duration wait);
  void lose(const FepAddress& address, const Instance& instance);
  bool is_settled(const Lost& lost) const;
  LostPeer report(const Lost& lost);
  void drop_drained();

  std::size_t ring_bytes_;
  FileDescriptor listener_;
  std::size_t max_incoming_;
  FileDescriptor epoll_;        // of the NIC below, the bell, the listener and all peers
  FileDescriptor bell_;         // eventfd that wakes threads that sleep on this NIC
  FileDescriptor shared_bell_;  // eventfd that older libraries write to; from their first Offer on
  int owner_process_;           // a forked child must not say goodbye to the parent's peers
  std::uint64_t instance_ = 0;  // distinguishes this NIC from earlier ones at its address
  std::uint16_t last_id_ = 0;   // of a connection

  using Routes = std::unordered_map<FepAddress, Route, FepAddressHash>;
  Routes routes_;
  std::size_t route_limit_ = kMaxRoutes;
  Routes::value_type* last_route_ = nullptr;  // that was asked for
  std::optional<FepAddress> last_remote_;     // another host's, that was asked for
  std::vector<FabricAddress> host_addresses_;
  Time host_addresses_until_{};
  std::vector<Outgoing*> unpublished_;  // of this burst
  std::vector<std::unique_ptr<Incoming>> incoming_;
  std::size_t first_ = 0;   // of incoming_, the one to begin with
  std::vector<Lost> lost_;  // not told yet
  bool any_ended_ = false;  // a peer has ended whose ring is not empty yet
  bool bell_rung_ = false;
  bool any_refused_ = false;  // a peer has answered an Offer with anything but a Welcome
  bool inner_watched_ = false;
  bool inner_busy_ = true;  // the last burst of the NIC below was not empty
  Time now_{};              // of the last rx_burst
  Time next_events_{};
  Time accepting_again_{};  // Time{}: the listener is watched
  Time next_inner_{};
  Time inner_heard_{};  // when the NIC below had something last
  Time rings_busy_until_{};
  NicCounters own_;
};

}  // namespace uet::nic
