// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Rings to and from the processes of this host. The data path looks at memory only; sockets are
// for the beginning, the end and the sleep of a peer.
#include "nic/local.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>

#include "nic/local_socket.h"

namespace uet::nic {
namespace {

std::size_t capacity_for(std::size_t wished) {
  return std::bit_ceil(std::clamp(wished, kMinRingBytes, kMaxRingBytes));
}

std::size_t descriptor_limit() {
  rlimit limit{};
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : 0;
}

}  // namespace

Result<std::unique_ptr<LocalNic>> LocalNic::wrap(std::unique_ptr<Nic>& inner,
                                                 std::size_t ring_bytes, std::string& message,
                                                 std::optional<std::uint32_t> sdi) {
  const std::size_t capacity = capacity_for(ring_bytes);
  if (!SharedMemory::is_allowed(ring_memory_bytes(capacity))) {
    message = "no same-host rings: a ring of " + std::to_string(ring_memory_bytes(capacity)) +
              " bytes is above the limit for files, see 'ulimit -f'";
    return Error::NoMemory;
  }
  auto listener = listen_local(inner->local_address(), message, sdi);
  if (!listener) return listener.error();
  FileDescriptor epoll(::epoll_create1(EPOLL_CLOEXEC));
  FileDescriptor bell(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!epoll.valid() || !bell.valid()) {
    const int error = errno;
    message = "no same-host rings: no descriptors left, see 'ulimit -n'";
    return error_of(error);
  }
  std::unique_ptr<LocalNic> nic(new LocalNic(std::move(inner), capacity, sdi,
                                             std::move(listener).value(), std::move(epoll),
                                             std::move(bell)));
  nic->watch_.add(nic->bell_.get(), What::Plain);
  nic->watch_.add(nic->listener_.get(), What::Listener);
  return nic;
}

LocalNic::LocalNic(std::unique_ptr<Nic> inner_nic, std::size_t ring_bytes,
                   std::optional<std::uint32_t> sdi, FileDescriptor listener, FileDescriptor epoll,
                   FileDescriptor bell)
    : Middleware(std::move(inner_nic)),
      ring_bytes_(ring_bytes),
      sdi_(sdi),
      listener_(std::move(listener)),
      watch_(std::move(epoll)),
      bell_(std::move(bell)),
      owner_process_(::getpid()),
      incoming_(descriptor_limit()) {
  if (::getrandom(&instance_, sizeof instance_, 0) != sizeof instance_) {
    instance_ = static_cast<std::uint64_t>(owner_process_);
  }
}

// Forked children may hold copies of the sockets: closing ours would not show the peers our end.
LocalNic::~LocalNic() {
  if (::getpid() != owner_process_) return;
  ::shutdown(listener_.get(), SHUT_RDWR);  // first: no peer takes us for our successor
  for (const auto& [address, route] : routes_) {
    if (route.ring != nullptr) ::shutdown(route.ring->socket.get(), SHUT_RDWR);
  }
  for (const auto& from : incoming_) ::shutdown(from->socket.get(), SHUT_RDWR);
}

std::uint16_t LocalNic::next_id() {
  const auto in_use = [this](std::uint16_t id) {
    const auto of_lost = [&](const Lost& lost) {
      return (lost.to && lost.to->id == id) ||
             std::find(lost.from.begin(), lost.from.end(), id) != lost.from.end();
    };
    return id == 0 || id == LocalWay::kSeveral || routes_.of_connection(id) != nullptr ||
           incoming_.find(id) != nullptr || std::any_of(lost_.begin(), lost_.end(), of_lost);
  };
  do {
    ++last_id_;
  } while (in_use(last_id_));
  return last_id_;
}

// ---- sending -----------------------------------------------------------------------------------

// nullptr: to the NIC below. Nothing is looked for on behalf of a stranger. A ring carries no SDI:
// packets of another secure domain than the FEP's own are sealed (TSS-64).
LocalOutgoing* LocalNic::ring_to(const Packet& packet) {
  if (packet.to.sdi != 0 || packet.to.via != 0) return nullptr;
  LocalRoute* const route = routes_.for_packet(packet.to, !packet.answers_unknown_peer, now_);
  if (route == nullptr) return nullptr;
  return packet.answers_unknown_peer ? route->ring.get() : ring_of(*route, packet.to);
}

LocalOutgoing* LocalNic::ring_of(LocalRoute& route, const FepAddress& to) {
  return route.ring_or_connect(to, now_,
                               [this](const FepAddress& address) { return connect(address); });
}

std::unique_ptr<LocalOutgoing> LocalNic::connect(const FepAddress& to) {
  const NoCancel no_cancel;
  FileDescriptor socket = connect_local(to, sdi_);
  if (!socket.valid()) return nullptr;
  auto memory = SharedMemory::create(ring_memory_bytes(ring_bytes_));
  if (!memory) return nullptr;
  const FepAddress self = local_address();
  const LocalOffer offer{.ring_bytes = ring_bytes_,
                         .instance = instance_,
                         .ip = self.ip.bytes,
                         .port = self.port,
                         .is_ipv6 = self.ip.is_ipv6};
  if (!send_with_descriptor(socket.get(), bytes_of(offer), memory.value().fd())) return nullptr;
  auto ring = std::make_unique<LocalOutgoing>(to, std::move(socket), std::move(memory).value());
  ring->memory.close_fd();
  ring->id = next_id();
  if (!watch_.add(ring->socket.get(), What::Outgoing, ring->id) ||
      !watch_.add(ring->process.get(), What::Outgoing, ring->id)) {
    return nullptr;
  }
  return ring;
}

// A prefix goes through rings and the NIC below in turn, each packet in its order.
std::size_t LocalNic::tx_burst(std::span<const Packet* const> in) {
  std::size_t done = 0;
  while (done < in.size()) {
    const FepAddress& to = in[done]->to;
    std::size_t end = done + 1;
    const bool stranger = in[done]->answers_unknown_peer;
    while (end < in.size() && in[end]->to == to && in[end]->answers_unknown_peer == stranger) ++end;
    if (LocalOutgoing* const ring = ring_to(*in[done])) {
      while (done < end && put(*ring, *in[done])) ++done;
      if (done == end) continue;
      if (ring->waits_for_space(now_)) break;
    }
    const std::size_t first = done;
    done += inner().tx_burst(in.subspan(done, end - done));
    for (std::size_t i = first; i < done; ++i) in[i]->way.connection = LocalWay::kSeveral;
    if (done < end) break;
  }
  publish();
  return done;
}

std::uint16_t LocalNic::source_port_for(const Packet& packet) {
  const LocalOutgoing* const ring = ring_to(packet);
  const bool through_ring = ring != nullptr && !ring->is_passed_over();
  return through_ring ? local_address().port : Middleware::source_port_for(packet);
}

bool LocalNic::put(LocalOutgoing& ring, const Packet& packet) {
  if (ring.is_passed_over()) return false;
  ring.patience.try_again();
  if (!ring.unpublished) {
    try {
      unpublished_.push_back(&ring);
    } catch (const std::bad_alloc&) {
      return false;  // as if it were full
    }
    ring.unpublished = true;
  }
  const std::uint64_t position = ring.ring.position();
  if (!ring.ring.put(packet)) return false;
  if (packet.way.connection == 0) {
    packet.way = {ring.id, position};
  } else if (packet.way.connection != ring.id) {
    packet.way.connection = LocalWay::kSeveral;
  }
  ring.patience.fitted(now_);
  ++own_.packets_sent;
  ++own_.local_packets_sent;
  own_.bytes_sent += packet.length();
  return true;
}

void LocalNic::publish() {
  for (LocalOutgoing* ring : unpublished_) {
    ring->unpublished = false;
    if (ring->ring.publish()) wake(*ring);
  }
  unpublished_.clear();
}

// The Welcome is in the socket: the peer sends it before it sleeps.
void LocalNic::wake(LocalOutgoing& ring) {
  const NoCancel no_cancel;
  if (!ring.welcomed) ring.read_welcome();
  if (ring.refused) {
    any_refused_ = true;
  } else {
    send_wake_up(ring.socket.get());
  }
}

// ---- receiving ---------------------------------------------------------------------------------

std::size_t LocalNic::rx_burst(std::span<RxPacket> out, Time now) {
  now_ = now;
  incoming_.release();
  if (incoming_.any_ended() || now >= next_events_) handle_events();
  // Half of `out` for each side first, so that neither starves the other.
  const std::size_t half = (out.size() + 1) / 2;
  std::size_t filled = take(out.first(half));
  const bool rings_hold_more = filled == half;
  if (filled > 0) pace_.rings_had_packets(now);
  if (incoming_.empty() || pace_.is_due(now)) {
    const std::size_t below = inner().rx_burst(out.subspan(filled), now);
    pace_.looked(now, below > 0);
    filled += below;
  }
  return rings_hold_more ? filled + take(out.subspan(filled)) : filled;
}

std::size_t LocalNic::take(std::span<RxPacket> out) {
  return incoming_.take(out, own_, [this](LocalIncoming& from) { end(from); });
}

// ---- sleeping ----------------------------------------------------------------------------------

// The announcement lasts until a peer rings: another thread may look at the rings while one
// sleeps. The bell is emptied first, so that packets announced by it are then found in the rings.
bool LocalNic::prepare_wait() {
  // Not earlier: the kernel reports every packet to the process that watches a socket, at the
  // expense of the sender.
  if (!inner_watched_) inner_watched_ = watch_.add(inner().wait_fd(), What::Plain);
  if (std::exchange(bell_rung_, false)) {
    eventfd_t rung = 0;
    ::eventfd_read(bell_.get(), &rung);
  }
  for (const auto& from : incoming_) {
    if (!from->is_open()) continue;
    const bool woken = std::exchange(from->woken, false) || !from->ring->is_sleep_announced();
    if (woken && !take_wake_ups(from->socket.get())) end(*from);
    from->ring->announce_sleep();
  }
  std::atomic_thread_fence(std::memory_order_seq_cst);
  bool waiting = inner().prepare_wait() || !inner_watched_ || incoming_.any_ended();
  for (const auto& from : incoming_) waiting |= from->is_open() && !from->ring->empty();
  next_events_ = Time{};  // perhaps a peer is what ends the sleep
  return waiting;
}

// ---- peers come and go -------------------------------------------------------------------------

void LocalNic::handle_events() {
  const NoCancel no_cancel;
  next_events_ = now_ + kEventInterval;
  if (accepting_again_ != Time{} && now_ >= accepting_again_) pause_accepting(false);
  watch_.look([this](What what, std::uint16_t id, bool has_hung_up) {
    switch (what) {
      case What::Plain:
        break;
      case What::SharedBell:
        ring_own_bell();
        break;
      case What::Listener:
        accept_peers();
        break;
      case What::Incoming:
        on_incoming(id, has_hung_up);
        break;
      case What::IncomingProcess:
        on_incoming(id, true);
        break;
      case What::Outgoing:
        on_outgoing(id);
        break;
    }
  });
  incoming_.finish_silent(now_, [this](LocalIncoming& from) { end(from); });
  if (std::exchange(any_refused_, false)) forget_refused();
  incoming_.free_drained([this](const LocalIncoming& from) {
    watch_.remove(from.socket);
    watch_.remove(from.process);
    ::shutdown(from.socket.get(), SHUT_RDWR);
  });
}

// Wakes threads that sleep on this NIC although this thread has taken the message: another thread
// may sleep, and this one may leave packets behind.
void LocalNic::ring_own_bell() {
  ::eventfd_write(bell_.get(), 1);
  bell_rung_ = true;
}

void LocalNic::forget_refused() {
  for (auto& [address, route] : routes_) {
    if (route.ring != nullptr && route.ring->refused) forget(route, LocalRoute::kLastRetry);
  }
}

// Bounded, because a process that connects again and again would otherwise keep the caller here.
void LocalNic::accept_peers() {
  if (accepting_again_ != Time{}) return;
  for (std::size_t i = 0; i < kAcceptsALook; ++i) {
    FileDescriptor socket;
    const Accepted accepted = accept_local(listener_.get(), socket);
    if (accepted == Accepted::Nobody) return;
    if (accepted == Accepted::Failed) break;
    try {
      if (accepted == Accepted::Peer) admit(std::move(socket));
    } catch (const std::bad_alloc&) {  // the peer goes through the NIC
    }
  }
  pause_accepting(true);
}

void LocalNic::pause_accepting(bool pause) {
  watch_.pause(listener_.get(), What::Listener, pause);
  accepting_again_ = pause ? now_ + kAcceptPause : Time{};
}

void LocalNic::admit(FileDescriptor socket) {
  auto incoming = std::make_unique<LocalIncoming>(std::move(socket));
  if (!incoming_.has_room_for(incoming->instance)) return;
  incoming->id = next_id();
  incoming->accepted = now_;
  if (!watch_.add(incoming->socket.get(), What::Incoming, incoming->id) ||
      !watch_.add(incoming->process.get(), What::IncomingProcess, incoming->id)) {
    return;
  }
  const LocalIncoming& added = incoming_.add(std::move(incoming));
  on_incoming(added.id, false);  // its offer is mostly there
}

// After the offer come messages that wake. They stay in the socket until the next sleep, so that
// each thread that sleeps is woken.
void LocalNic::on_incoming(std::uint16_t id, bool has_ended) {
  LocalIncoming* const known = incoming_.find(id);
  if (known == nullptr) return;
  LocalIncoming& from = *known;
  if (from.ring) {
    from.woken = true;
    if (has_ended) end(from);
    return;
  }
  LocalOffer offer;
  FileDescriptor memory;
  const auto bytes = std::as_writable_bytes(std::span(&offer, 1));
  const Received received = receive_with_descriptor(from.socket.get(), bytes, memory);
  const bool attached = received == Received::Message && attach(from, offer, std::move(memory));
  if (has_ended || (!attached && received != Received::Nothing)) end(from);
}

void LocalNic::end(LocalIncoming& from) {
  if (from.ended) return;
  incoming_.stop(from);
  if (from.ring) lose(from.peer, from.instance);
}

bool LocalNic::attach(LocalIncoming& from, const LocalOffer& offer, FileDescriptor descriptor) {
  if (from.ring || !is_ring_capacity(offer.ring_bytes) || offer.is_ipv6 > 1) return false;
  FepAddress claimed;
  claimed.ip.bytes = offer.ip;
  claimed.ip.is_ipv6 = offer.is_ipv6 != 0;
  claimed.port = offer.port;
  const bool has_spare_bytes =
      !claimed.ip.is_ipv6 && std::any_of(offer.ip.begin() + 4, offer.ip.end(),
                                         [](std::uint8_t byte) { return byte != 0; });
  if (has_spare_bytes || claimed == local_address() || !routes_.is_of_this_host(claimed.ip, now_))
    return false;
  auto memory = SharedMemory::attach(std::move(descriptor), ring_memory_bytes(offer.ring_bytes));
  if (!memory) return false;
  incoming_.attach(from, std::move(memory).value());
  from.instance.number = offer.instance;
  from.peer = claimed;
  // A peer that has ended already cannot be welcomed, but what it has sent before counts.
  if (!welcome(from, offer.speaks)) {
    end(from);
    return true;
  }
  from.ring->announce_sleep();  // a thread may be asleep already
  return true;
}

bool LocalNic::welcome(LocalIncoming& from, std::uint8_t speaks) {
  if (speaks == kWakesThroughSocket) {
    return send_with_descriptor(from.socket.get(), bytes_of(LocalWelcome{.instance = instance_}),
                                -1);
  }
  if (!shared_bell_.valid()) {
    shared_bell_ = FileDescriptor(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    watch_.add(shared_bell_.get(), What::SharedBell);
  }
  const OldLocalWelcome answer{instance_};
  return send_with_descriptor(from.socket.get(), bytes_of(answer), shared_bell_.get());
}

void LocalNic::on_outgoing(std::uint16_t id) {
  LocalRoute* route = routes_.of_connection(id);
  if (route == nullptr) return;
  if (route->ring->read_welcome() && !route->ring->is_process_gone()) return;
  accept_peers();  // what the peer has sent may wait there
  route = routes_.of_connection(id);
  if (route == nullptr) return;
  if (route->ring->welcomed) {
    lose(FepAddress{route->ring->peer}, LocalInstance{route->ring->instance});
  } else {
    forget(*route, LocalRoute::kLastRetry);  // it does not want us
  }
}

void LocalNic::forget(LocalRoute& route, Duration wait) {
  unwatch(*route.ring);
  route = LocalRoute{.ring = nullptr, .next_try = now_ + wait, .wait = wait};
}

void LocalNic::unwatch(const LocalOutgoing& ring) {
  watch_.remove(ring.socket);
  watch_.remove(ring.process);
}

// Both directions end together, so that the loss is told once and nothing of it is met later, when
// another process may have the address.
void LocalNic::lose(const FepAddress& address, const LocalInstance& instance) {
  Lost lost{.address = address, .instance = instance, .from = {}, .to = nullptr, .since = now_};
  LocalRoute* const route = routes_.find(address);
  if (route != nullptr && route->ring && route->ring->instance == instance) {
    std::erase(unpublished_, route->ring.get());
    lost.to = std::move(route->ring);
    unwatch(*lost.to);
    *route = LocalRoute{.ring = nullptr, .next_try = now_ + LocalRoute::kFirstRetry};
  }
  try {
    for (const auto& from : incoming_) {
      if (!from->ring || from->instance != instance) continue;
      incoming_.stop(*from);
      lost.from.push_back(from->id);
    }
    lost_.push_back(std::move(lost));
  } catch (const std::bad_alloc&) {  // time-outs will tell
  }
}

// The last packet of the peer has been taken, and it is known what the peer has read.
bool LocalNic::is_settled(const Lost& lost) const {
  if (incoming_.has_ring_of(lost.instance)) return false;
  return lost.to == nullptr || lost.to->is_abandoned() || now_ - lost.since >= kSettles;
}

// Looks for a successor, so that what the lost peer has not read can go there.
DeadPeer LocalNic::report(const Lost& lost) {
  DeadPeer peer{.address = lost.address};
  if (lost.to != nullptr) {
    peer.to = lost.to->id;
    if (lost.to->is_abandoned()) peer.unread_from = lost.to->ring.unread_from();
  }
  if (LocalRoute* const route = routes_.find_or_add(lost.address, true, now_); route != nullptr) {
    if (route->ring == nullptr) route->next_try = now_;
    const LocalOutgoing* const successor = ring_of(*route, lost.address);
    peer.succeeded = successor != nullptr && !successor->is_abandoned();
  }
  return peer;
}

// Once for each connection that the peer has sent through.
std::optional<DeadPeer> LocalNic::poll_dead_peer() {
  const auto at =
      std::find_if(lost_.begin(), lost_.end(), [&](const Lost& lost) { return is_settled(lost); });
  if (at == lost_.end()) return inner().poll_dead_peer();
  DeadPeer peer = report(*at);
  if (!at->from.empty()) {
    peer.from = at->from.back();
    at->from.pop_back();
  }
  if (at->from.empty()) lost_.erase(at);
  return peer;
}

Time LocalNic::next_deadline() const {
  Time next = Middleware::next_deadline();
  if (!lost_.empty()) next = std::min(next, now_ + kEventInterval);
  if (accepting_again_ != Time{}) next = std::min(next, accepting_again_);
  return next;
}

NicCounters LocalNic::counters() const { return Middleware::counters() + own_; }

}  // namespace uet::nic
