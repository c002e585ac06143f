// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Rings to and from the processes of this host. The data path looks at memory only; sockets are
// for the beginning, the end and the sleep of a peer.
#include "uet/nic/local.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>

namespace uet::nic {
namespace {

// The protocol version of a peer: the sender of a direction wakes a receiver that sleeps by a
// message through the socket. Sending this message never blocks, whatever the receiver does.
constexpr std::uint8_t kWakesThroughSocket = 1;

// The answer to an Offer, sent before the receiver announces its sleep for the first time.
struct Welcome {
  std::uint64_t instance = 0;
  std::uint64_t speaks = kWakesThroughSocket;
};

// The answer to the Offer of an older library, with the descriptor of an eventfd to write to.
struct OldWelcome {
  std::uint64_t instance = 0;
};

template <class T>
std::span<const std::byte> bytes_of(const T& message) {
  return std::as_bytes(std::span(&message, 1));
}

bool process_ended(const FileDescriptor& process) {
  pollfd ended{.fd = process.get(), .events = POLLIN, .revents = 0};
  return process.valid() && ::poll(&ended, 1, 0) == 1;
}

std::size_t capacity_for(std::size_t wished) {
  return std::bit_ceil(std::clamp(wished, kMinRingBytes, kMaxRingBytes));
}

std::size_t descriptor_limit() {
  rlimit limit{};
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : 0;
}

}  // namespace

// The first message of the sender of a direction, with the memory's descriptor.
struct LocalNic::Offer {
  std::uint64_t ring_bytes = 0;
  std::uint64_t instance = 0;
  std::array<std::uint8_t, 16> ip{};
  std::uint16_t port = 0;
  std::uint8_t is_ipv6 = 0;
  std::uint8_t speaks = kWakesThroughSocket;
  std::array<std::uint8_t, 4> reserved{};
};

struct LocalNic::Outgoing {
  Outgoing(FepAddress peer_address, FileDescriptor connection, SharedMemory ring_memory)
      : peer(peer_address),
        socket(std::move(connection)),
        process(watch_process(socket.get())),
        memory(std::move(ring_memory)),
        ring(memory.bytes()) {
    instance.process = process_of(socket.get());
  }

  FepAddress peer;
  std::uint16_t id = 0;
  Instance instance;  // of the peer; its number is not known before its Welcome
  FileDescriptor socket;
  FileDescriptor process;
  SharedMemory memory;
  RingProducer ring;
  bool welcomed = false;
  bool refused = false;  // the peer has answered, but not with a Welcome
  bool unpublished = false;
  std::optional<Time> full_since;  // empty: it has taken the last packet
  Time found_full{};               // when a packet last found no space in it
  bool passed_over = false;        // until the peer has emptied it
  Time waits_again{};              // until then a full ring is passed over (waits_for)

  bool is_passed_over() const { return refused || (passed_over && !ring.drained()); }
  // False: the peer is gone, or does not want us.
  bool read_welcome() {
    Welcome welcome;
    FileDescriptor descriptor;  // of an older library, which cannot be woken without risk
    const auto bytes = std::as_writable_bytes(std::span(&welcome, 1));
    const Received received = receive_with_descriptor(socket.get(), bytes, descriptor);
    if (received == Received::Message && welcome.speaks == kWakesThroughSocket && !welcomed) {
      welcomed = true;
      instance.number = welcome.instance;
    } else if (received != Received::Nothing) {
      refused = true;
    }
    return !refused;
  }
  // The peer reads nothing of the ring any more.
  bool is_abandoned() const {
    pollfd end{.fd = socket.get(), .events = 0, .revents = 0};
    return process_ended(process) || (::poll(&end, 1, 0) == 1 && (end.revents & POLLHUP) != 0);
  }
};

struct LocalNic::Incoming {
  explicit Incoming(FileDescriptor connection)
      : socket(std::move(connection)), process(watch_process(socket.get())) {
    instance.process = process_of(socket.get());
  }

  FepAddress peer;
  std::uint16_t id = 0;
  Instance instance;
  Time accepted{};
  FileDescriptor socket;
  FileDescriptor process;
  std::optional<SharedMemory> memory;  // empty until the peer's Offer
  std::optional<RingConsumer> ring;
  bool woken = false;   // a message that wakes is in the socket
  bool ended = false;   // packets still in the ring are taken, then this connection is freed
  bool broken = false;  // no more packets can be taken

  // Fixes the end of the ring: packets that an ended peer writes later are ignored.
  void stop() {
    if (ring && !ended && !broken) ring->look();
    ended = true;
  }
  bool is_drained() const { return !ring || broken || ring->taken(); }
};

struct LocalNic::Lost {
  FepAddress address;
  Instance instance;
  std::vector<std::uint16_t> from;  // incoming connections
  std::unique_ptr<Outgoing> to;     // nullptr: there was none
  Time since{};
};

Result<std::unique_ptr<LocalNic>> LocalNic::wrap(std::unique_ptr<Nic>& inner,
                                                 std::size_t ring_bytes, std::string& message) {
  const std::size_t capacity = capacity_for(ring_bytes);
  if (!SharedMemory::is_allowed(ring_memory_bytes(capacity))) {
    message = "no same-host rings: a ring of " + std::to_string(ring_memory_bytes(capacity)) +
              " bytes is above the limit for files, see 'ulimit -f'";
    return Error::NoMemory;
  }
  auto listener = listen_local(inner->local_address(), message);
  if (!listener) return listener.error();
  FileDescriptor epoll(::epoll_create1(EPOLL_CLOEXEC));
  FileDescriptor bell(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!epoll.valid() || !bell.valid()) {
    const int error = errno;
    message = "no same-host rings: no descriptors left, see 'ulimit -n'";
    return error_of(error);
  }
  std::unique_ptr<LocalNic> nic(new LocalNic(
      std::move(inner), capacity, std::move(listener).value(), std::move(epoll), std::move(bell)));
  nic->watch(nic->bell_.get(), Watched::Plain, 0);
  nic->watch(nic->listener_.get(), Watched::Listener, 0);
  return nic;
}

LocalNic::LocalNic(std::unique_ptr<Nic> inner_nic, std::size_t ring_bytes, FileDescriptor listener,
                   FileDescriptor epoll, FileDescriptor bell)
    : Middleware(std::move(inner_nic)),
      ring_bytes_(ring_bytes),
      listener_(std::move(listener)),
      max_incoming_(std::min(kMaxIncoming, descriptor_limit() / 4)),
      epoll_(std::move(epoll)),
      bell_(std::move(bell)),
      owner_process_(::getpid()) {
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

bool LocalNic::watch(int fd, Watched what, std::uint16_t id) {
  const std::uint64_t data = std::uint64_t{id} << 3 | static_cast<std::uint64_t>(what);
  // Peers hold the shared bell, too: it is never read, since a read might wait.
  const bool by_edge = what == Watched::Plain && id == kSharedBell;
  epoll_event event{.events = by_edge ? EPOLLIN | EPOLLET : EPOLLIN, .data = {.u64 = data}};
  return fd < 0 || ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0;
}

// Explicitly, because closing does not do it where a forked child has a copy.
void LocalNic::unwatch(const FileDescriptor& fd) {
  if (fd.valid()) ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd.get(), nullptr);
}

std::uint16_t LocalNic::next_id() {
  const auto in_use = [this](std::uint16_t id) {
    const auto is = [id](const auto& connection) { return connection && connection->id == id; };
    const auto of_lost = [&](const Lost& lost) {
      return is(lost.to) || std::find(lost.from.begin(), lost.from.end(), id) != lost.from.end();
    };
    return id == 0 || id == LocalWay::kSeveral || route_of(id) != nullptr ||
           std::any_of(incoming_.begin(), incoming_.end(), is) ||
           std::any_of(lost_.begin(), lost_.end(), of_lost);
  };
  do {
    ++last_id_;
  } while (in_use(last_id_));
  return last_id_;
}

// ---- sending -----------------------------------------------------------------------------------

// nullptr: to the NIC below. Nothing is looked for on behalf of a stranger.
LocalNic::Outgoing* LocalNic::ring_to(const Packet& packet) {
  if (last_route_ == nullptr || last_route_->first != packet.to) {
    if (last_remote_ == packet.to && now_ < host_addresses_until_) return nullptr;
    if (route_to(packet.to, !packet.answers_stranger) == nullptr) return nullptr;
  }
  Route& route = last_route_->second;
  return packet.answers_stranger ? route.ring.get() : ring_of(route, packet.to);
}

// nullptr: there is none, or none may be added.
LocalNic::Route* LocalNic::route_to(const FepAddress& to, bool may_add) {
  auto at = routes_.find(to);
  if (at == routes_.end()) {
    if (!may_add) return nullptr;
    if (!is_of_this_host(to.ip)) {
      last_remote_ = to;
      return nullptr;
    }
    if (routes_.size() >= route_limit_) make_room_for_route();
    try {
      at = routes_.try_emplace(to).first;
    } catch (const std::bad_alloc&) {
      return nullptr;  // the NIC below needs none
    }
  }
  last_route_ = &*at;
  return &at->second;
}

LocalNic::Outgoing* LocalNic::ring_of(Route& route, const FepAddress& to) {
  if (route.ring != nullptr || now_ < route.next_try) return route.ring.get();
  try {
    route.ring = connect(to);
  } catch (const std::bad_alloc&) {
  }
  route.next_try = now_ + route.wait;
  route.wait = std::min(2 * route.wait, kLastRetry);
  return route.ring.get();
}

// Addresses without a ring are forgotten, so that they are asked for sooner than they might be.
void LocalNic::make_room_for_route() {
  last_route_ = nullptr;
  std::erase_if(routes_, [](const auto& entry) { return entry.second.ring == nullptr; });
  route_limit_ = routes_.size() + kMaxRoutes;
}

bool LocalNic::is_of_this_host(const FabricAddress& ip) {
  if (is_loopback(ip)) return true;
  const auto held = [&] {
    return std::find(host_addresses_.begin(), host_addresses_.end(), ip) != host_addresses_.end();
  };
  if (held()) return true;
  if (now_ < host_addresses_until_) return false;
  host_addresses_until_ = now_ + kHostInterval;
  try {
    host_addresses_ = addresses_of_host();
  } catch (const std::bad_alloc&) {
    return false;  // through the NIC below
  }
  return held();
}

std::unique_ptr<LocalNic::Outgoing> LocalNic::connect(const FepAddress& to) {
  const NoCancel no_cancel;
  FileDescriptor socket = connect_local(to);
  if (!socket.valid()) return nullptr;
  auto memory = SharedMemory::create(ring_memory_bytes(ring_bytes_));
  if (!memory) return nullptr;
  const FepAddress self = local_address();
  const Offer offer{.ring_bytes = ring_bytes_,
                    .instance = instance_,
                    .ip = self.ip.bytes,
                    .port = self.port,
                    .is_ipv6 = self.ip.is_ipv6};
  if (!send_with_descriptor(socket.get(), bytes_of(offer), memory.value().fd())) return nullptr;
  auto ring = std::make_unique<Outgoing>(to, std::move(socket), std::move(memory).value());
  ring->memory.close_fd();
  ring->id = next_id();
  if (!watch(ring->socket.get(), Watched::Outgoing, ring->id) ||
      !watch(ring->process.get(), Watched::Outgoing, ring->id)) {
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
    const bool stranger = in[done]->answers_stranger;
    while (end < in.size() && in[end]->to == to && in[end]->answers_stranger == stranger) ++end;
    if (Outgoing* const ring = ring_to(*in[done])) {
      while (done < end && put(*ring, *in[done])) ++done;
      if (done == end) continue;
      if (waits_for(*ring)) break;
    }
    const std::size_t first = done;
    done += inner().tx_burst(in.subspan(done, end - done));
    for (std::size_t i = first; i < done; ++i) in[i]->way.connection = LocalWay::kSeveral;
    if (done < end) break;
  }
  publish();
  return done;
}

std::uint16_t LocalNic::leaves_from(const Packet& packet) {
  const Outgoing* const ring = ring_to(packet);
  const bool through_ring = ring != nullptr && !ring->is_passed_over();
  return through_ring ? local_address().port : Middleware::leaves_from(packet);
}

bool LocalNic::put(Outgoing& ring, const Packet& packet) {
  if (ring.is_passed_over()) return false;
  ring.passed_over = false;
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
  // This process has offered no packet meanwhile, so the peer may have freed space long ago.
  const bool was_away = ring.full_since && now_ - ring.found_full >= kReads;
  if (was_away) ring.waits_again = now_ + kVisit;
  ring.full_since.reset();
  ++own_.packets_sent;
  ++own_.local_packets_sent;
  own_.bytes_sent += packet.length();
  return true;
}

// Whether a packet that does not fit into `ring` should wait for space. A process that left a full
// ring and came back late would otherwise send no more than one ring at each visit.
bool LocalNic::waits_for(Outgoing& ring) {
  if (ring.refused) return false;
  if (!ring.full_since) ring.full_since = now_;
  ring.found_full = now_;
  ring.passed_over |= now_ < ring.waits_again || now_ - *ring.full_since >= kReads;
  return !ring.passed_over;
}

void LocalNic::publish() {
  for (Outgoing* ring : unpublished_) {
    ring->unpublished = false;
    if (ring->ring.publish()) wake(*ring);
  }
  unpublished_.clear();
}

// The Welcome is in the socket: the peer sends it before it sleeps.
void LocalNic::wake(Outgoing& ring) {
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
  for (const auto& from : incoming_) {
    if (from->ring) from->ring->release();
  }
  if (any_ended_ || now >= next_events_) handle_events();
  // Half of `out` for each side first, so that neither starves the other.
  const std::size_t half = (out.size() + 1) / 2;
  std::size_t filled = take(out.first(half));
  const bool rings_hold_more = filled == half;
  if (filled > 0) rings_busy_until_ = now + kRingsBusy;
  if (incoming_.empty() || inner_busy_ || now >= next_inner_) {
    const std::size_t below = inner().rx_burst(out.subspan(filled), now);
    inner_busy_ = below > 0;
    if (inner_busy_) inner_heard_ = now;
    const Duration patience = std::min((now - inner_heard_) / 8, kLongestInnerInterval);
    next_inner_ =
        now + (now < rings_busy_until_ ? std::max(patience, kInnerInterval) : kInnerInterval);
    filled += below;
  }
  return rings_hold_more ? filled + take(out.subspan(filled)) : filled;
}

std::size_t LocalNic::take(std::span<RxPacket> out) {
  std::size_t filled = 0;
  const std::size_t rings = incoming_.size();
  if (++first_ >= rings) first_ = 0;
  for (std::size_t i = 0; i < rings && filled < out.size(); ++i) {
    const std::size_t at = first_ + i;
    Incoming& from = *incoming_[at < rings ? at : at - rings];
    // Packets of another process at a lost peer's address wait until the loss has been reported.
    if (!from.ring || from.broken || from.ended != any_ended_) continue;
    if (!from.ended) from.ring->look();
    while (filled < out.size()) {
      RxPacket& packet = out[filled];
      const RingConsumer::Next next = from.ring->next(packet);
      if (next == RingConsumer::Next::Broken) {
        from.broken = true;
        end(from);
      }
      if (next != RingConsumer::Next::Packet) break;
      packet.source = from.peer;
      packet.connection = from.id;
      if (packet.entropy == 0) packet.entropy = from.peer.port;
      own_.bytes_received += packet.bytes.size();
      ++filled;
    }
  }
  own_.packets_received += filled;
  own_.local_packets_received += filled;
  return filled;
}

// ---- sleeping ----------------------------------------------------------------------------------

// The announcement lasts until a peer rings: another thread may look at the rings while one
// sleeps. The bell is emptied first, so that packets announced by it are then found in the rings.
bool LocalNic::prepare_wait() {
  // Not earlier: the kernel reports every packet to the process that watches a socket, at the
  // expense of the sender.
  if (!inner_watched_) inner_watched_ = watch(inner().wait_fd(), Watched::Plain, 0);
  if (std::exchange(bell_rung_, false)) {
    eventfd_t rung = 0;
    ::eventfd_read(bell_.get(), &rung);
  }
  for (const auto& from : incoming_) {
    if (!from->ring || from->ended) continue;
    const bool woken = std::exchange(from->woken, false) || !from->ring->is_sleep_announced();
    if (woken && !take_wake_ups(from->socket.get())) end(*from);
    from->ring->announce_sleep();
  }
  std::atomic_thread_fence(std::memory_order_seq_cst);
  bool waiting = inner().prepare_wait() || !inner_watched_ || any_ended_;
  for (const auto& from : incoming_) waiting |= from->ring && !from->ended && !from->ring->empty();
  next_events_ = Time{};  // perhaps a peer is what ends the sleep
  return waiting;
}

// ---- peers come and go -------------------------------------------------------------------------

void LocalNic::handle_events() {
  const NoCancel no_cancel;
  next_events_ = now_ + kEventInterval;
  if (accepting_again_ != Time{} && now_ >= accepting_again_) pause_accepting(false);
  std::array<epoll_event, 32> events;
  const int count = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), 0);
  for (int i = 0; i < count; ++i) {
    const auto id = static_cast<std::uint16_t>(events[static_cast<std::size_t>(i)].data.u64 >> 3);
    switch (static_cast<Watched>(events[static_cast<std::size_t>(i)].data.u64 & 7)) {
      case Watched::Plain:
        if (id == kSharedBell) ring_own_bell();
        break;
      case Watched::Listener:
        accept_peers();
        break;
      case Watched::Incoming:
        on_incoming(id, (events[static_cast<std::size_t>(i)].events & EPOLLHUP) != 0);
        break;
      case Watched::IncomingProcess:
        on_incoming(id, true);
        break;
      case Watched::Outgoing:
        on_outgoing(id);
        break;
    }
  }
  end_silent();
  if (std::exchange(any_refused_, false)) forget_refused();
  drop_drained();
}

// Wakes threads that sleep on this NIC although this thread has taken the message: another thread
// may sleep, and this one may leave packets behind.
void LocalNic::ring_own_bell() {
  ::eventfd_write(bell_.get(), 1);
  bell_rung_ = true;
}

void LocalNic::forget_refused() {
  for (auto& [address, route] : routes_) {
    if (route.ring != nullptr && route.ring->refused) forget(route, kLastRetry);
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
  epoll_event event{.events = pause ? 0U : EPOLLIN,
                    .data = {.u64 = static_cast<std::uint64_t>(Watched::Listener)}};
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, listener_.get(), &event);
  accepting_again_ = pause ? now_ + kAcceptPause : Time{};
}

// One process may have a quarter of all connections.
bool LocalNic::has_room_for(const Instance& peer) const {
  const auto of_process = std::count_if(incoming_.begin(), incoming_.end(), [&](const auto& from) {
    return from->instance.process == peer.process;
  });
  const bool is_known = peer.process != 0;  // else it is in another PID name space
  return incoming_.size() < max_incoming_ &&
         (!is_known ||
          static_cast<std::size_t>(of_process) < std::max<std::size_t>(max_incoming_ / 4, 1));
}

void LocalNic::admit(FileDescriptor socket) {
  auto incoming = std::make_unique<Incoming>(std::move(socket));
  if (!has_room_for(incoming->instance)) return;
  incoming->id = next_id();
  incoming->accepted = now_;
  if (!watch(incoming->socket.get(), Watched::Incoming, incoming->id) ||
      !watch(incoming->process.get(), Watched::IncomingProcess, incoming->id)) {
    return;
  }
  incoming_.push_back(std::move(incoming));
  on_incoming(incoming_.back()->id, false);  // its Offer is mostly there
}

// They are in the order of their arrival.
void LocalNic::end_silent() {
  const auto is_silent = [](const auto& from) { return !from->ring && !from->ended; };
  auto silent =
      static_cast<std::size_t>(std::count_if(incoming_.begin(), incoming_.end(), is_silent));
  for (const auto& from : incoming_) {
    if (silent == 0) return;
    if (!is_silent(from)) continue;
    if (silent > kMaxSilent || now_ - from->accepted >= kOfferTime) end(*from);
    --silent;
  }
}

// After the Offer come messages that wake. They stay in the socket until the next sleep, so that
// each thread that sleeps is woken.
void LocalNic::on_incoming(std::uint16_t id, bool has_ended) {
  const auto at = std::find_if(incoming_.begin(), incoming_.end(),
                               [&](const auto& from) { return from->id == id; });
  if (at == incoming_.end()) return;
  Incoming& from = **at;
  if (from.ring) {
    from.woken = true;
    if (has_ended) end(from);
    return;
  }
  Offer offer;
  FileDescriptor memory;
  const auto bytes = std::as_writable_bytes(std::span(&offer, 1));
  const Received received = receive_with_descriptor(from.socket.get(), bytes, memory);
  const bool attached = received == Received::Message && attach(from, offer, std::move(memory));
  if (has_ended || (!attached && received != Received::Nothing)) end(from);
}

void LocalNic::end(Incoming& from) {
  if (from.ended) return;
  from.stop();
  any_ended_ = true;
  if (from.ring) lose(from.peer, from.instance);
}

bool LocalNic::attach(Incoming& from, const Offer& offer, FileDescriptor descriptor) {
  if (from.ring || !is_ring_capacity(offer.ring_bytes) || offer.is_ipv6 > 1) return false;
  FepAddress claimed;
  claimed.ip.bytes = offer.ip;
  claimed.ip.is_ipv6 = offer.is_ipv6 != 0;
  claimed.port = offer.port;
  const bool has_spare_bytes =
      !claimed.ip.is_ipv6 && std::any_of(offer.ip.begin() + 4, offer.ip.end(),
                                         [](std::uint8_t byte) { return byte != 0; });
  if (has_spare_bytes || claimed == local_address() || !is_of_this_host(claimed.ip)) return false;
  auto memory = SharedMemory::attach(std::move(descriptor), ring_memory_bytes(offer.ring_bytes));
  if (!memory) return false;
  from.memory = std::move(memory).value();
  from.ring.emplace(from.memory->bytes());
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

bool LocalNic::welcome(Incoming& from, std::uint8_t speaks) {
  if (speaks == kWakesThroughSocket) {
    return send_with_descriptor(from.socket.get(), bytes_of(Welcome{.instance = instance_}), -1);
  }
  if (!shared_bell_.valid()) {
    shared_bell_ = FileDescriptor(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    watch(shared_bell_.get(), Watched::Plain, kSharedBell);
  }
  const OldWelcome answer{instance_};
  return send_with_descriptor(from.socket.get(), bytes_of(answer), shared_bell_.get());
}

LocalNic::Route* LocalNic::route_of(std::uint16_t id) {
  const auto at = std::find_if(routes_.begin(), routes_.end(), [&](const auto& entry) {
    return entry.second.ring != nullptr && entry.second.ring->id == id;
  });
  return at == routes_.end() ? nullptr : &at->second;
}

void LocalNic::on_outgoing(std::uint16_t id) {
  Route* route = route_of(id);
  if (route == nullptr) return;
  if (route->ring->read_welcome() && !process_ended(route->ring->process)) return;
  accept_peers();  // what the peer has sent may wait there
  route = route_of(id);
  if (route == nullptr) return;
  if (route->ring->welcomed) {
    lose(FepAddress{route->ring->peer}, Instance{route->ring->instance});
  } else {
    forget(*route, kLastRetry);  // it does not want us
  }
}

void LocalNic::forget(Route& route, Duration wait) {
  unwatch(route.ring->socket);
  unwatch(route.ring->process);
  route = Route{.ring = nullptr, .next_try = now_ + wait, .wait = wait};
}

// Both directions end together, so that the loss is told once and nothing of it is met later, when
// another process may have the address.
void LocalNic::lose(const FepAddress& address, const Instance& instance) {
  Lost lost{.address = address, .instance = instance, .from = {}, .to = nullptr, .since = now_};
  const auto route = routes_.find(address);
  if (route != routes_.end() && route->second.ring && route->second.ring->instance == instance) {
    std::erase(unpublished_, route->second.ring.get());
    lost.to = std::move(route->second.ring);
    unwatch(lost.to->socket);
    unwatch(lost.to->process);
    route->second = Route{.ring = nullptr, .next_try = now_ + kFirstRetry};
  }
  try {
    for (const auto& from : incoming_) {
      if (!from->ring || from->instance != instance) continue;
      from->stop();
      any_ended_ = true;
      lost.from.push_back(from->id);
    }
    lost_.push_back(std::move(lost));
  } catch (const std::bad_alloc&) {  // time-outs will tell
  }
}

// Only at the beginning of a burst, when the packets handed out are no longer read.
void LocalNic::drop_drained() {
  any_ended_ = false;
  std::erase_if(incoming_, [&](const std::unique_ptr<Incoming>& from) {
    if (!from->ended) return false;
    if (!from->is_drained()) {
      any_ended_ = true;
      return false;
    }
    unwatch(from->socket);
    unwatch(from->process);
    ::shutdown(from->socket.get(), SHUT_RDWR);
    return true;
  });
}

// The last packet of the peer has been taken, and it is known what the peer has read.
bool LocalNic::is_settled(const Lost& lost) const {
  const bool taken = std::none_of(incoming_.begin(), incoming_.end(), [&](const auto& from) {
    return from->ring && from->instance == lost.instance;
  });
  if (!taken) return false;
  return lost.to == nullptr || lost.to->is_abandoned() || now_ - lost.since >= kSettles;
}

// Looks for a successor, so that what the lost peer has not read can go there.
LostPeer LocalNic::report(const Lost& lost) {
  LostPeer peer{.address = lost.address};
  if (lost.to != nullptr) {
    peer.to = lost.to->id;
    if (lost.to->is_abandoned()) peer.unread_from = lost.to->ring.unread_from();
  }
  if (Route* const route = route_to(lost.address, true); route != nullptr) {
    if (route->ring == nullptr) route->next_try = now_;
    const Outgoing* const successor = ring_of(*route, lost.address);
    peer.succeeded = successor != nullptr && !successor->is_abandoned();
  }
  return peer;
}

// Once for each connection that the peer has sent through.
std::optional<LostPeer> LocalNic::take_lost_peer() {
  const auto at =
      std::find_if(lost_.begin(), lost_.end(), [&](const Lost& lost) { return is_settled(lost); });
  if (at == lost_.end()) return inner().take_lost_peer();
  LostPeer peer = report(*at);
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
