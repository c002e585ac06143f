// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "nic/rails.h"

#include <sys/epoll.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "base/siphash.h"

namespace uet::nic {
namespace {

// Where a NIC has no entropy of its own the value's low bits are the rail.
constexpr std::uint16_t kFirstEntropy = 0xC000;
// Proved further addresses, of all peers. Beyond it a peer has one rail.
constexpr std::size_t kMostSources = 65536;
constexpr Duration kUnknownPause = std::chrono::milliseconds(1);

NicCaps joined(const std::vector<RailsNic::Rail>& rails) {
  NicCaps all = rails[0].nic->caps();
  for (std::size_t i = 1; i < rails.size(); ++i) {
    const NicCaps& caps = rails[i].nic->caps();
    all.ip_mtu = std::min(all.ip_mtu, caps.ip_mtu);
    all.link_rate_bps = all.link_rate_bps != 0 && caps.link_rate_bps != 0
                            ? all.link_rate_bps + caps.link_rate_bps
                            : 0;
    all.receive_credit_bytes += caps.receive_credit_bytes;
    all.per_packet_entropy &= caps.per_packet_entropy;
    all.ecn &= caps.ecn;
    all.crc &= caps.crc;
    all.sends_by_kernel |= caps.sends_by_kernel;
  }
  all.loopback = false;
  all.reads_registered_memory = false;
  if (!all.per_packet_entropy || all.source_ports != 0) {
    all.source_ports = static_cast<std::uint16_t>(std::bit_ceil(rails.size()));
    all.first_source_port = kFirstEntropy;
  }
  all.per_packet_entropy = true;
  return all;
}

std::uint64_t number(const FabricAddress& ip) {
  std::uint32_t value;
  std::memcpy(&value, ip.bytes.data(), sizeof value);
  return value;
}

FabricAddress address_of(const std::array<std::uint8_t, 4>& bytes) {
  FabricAddress ip;
  std::copy(bytes.begin(), bytes.end(), ip.bytes.begin());
  return ip;
}

std::array<std::uint8_t, 4> bytes_of(const FabricAddress& ip) {
  return {ip.bytes[0], ip.bytes[1], ip.bytes[2], ip.bytes[3]};
}

}  // namespace

// A packet that no rail has taken, with its payload.
struct RailsNic::Held {
  Packet packet;
  std::vector<std::byte> payload;
  std::size_t rail = 0;
};

RailsNic::RailsNic(std::vector<Rail> rails, std::uint64_t secret)
    : rails_(std::move(rails)),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      caps_(joined(rails_)),
      key0_(siphash(secret, ~secret, 0)),
      key1_(siphash(secret, ~secret, 1)),
      peers_(rails_.size(), [this](Peer& peer, std::size_t rail) { hello(peer, rail); }),
      parts_(std::make_unique<std::array<Part, kMostRails>>()),
      translated_(std::make_unique<std::array<Packet, kTxBurst>>()) {
  UET_ASSERT(rails_.size() >= 2 && rails_.size() <= kMostRails);
  const auto watch = [this](int fd) {
    epoll_event event{.events = EPOLLIN, .data = {.fd = fd}};
    if (fd >= 0) ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event);
  };
  for (std::size_t i = 0; i < rails_.size(); ++i) {
    if (PdcGuard* const guard = rails_[i].nic->guard()) guards_.all.push_back(guard);
    if (i > 0) further_.push_back(rails_[i].nic->local_address().ip);
    watch(rails_[i].nic->wait_fd());
    if (!rails_[i].interface.empty() && watches_[i].open(rails_[i].interface) == 0) {
      watch(watches_[i].fd());
    }
  }
}

RailsNic::~RailsNic() = default;

// ---- peers --------------------------------------------------------------------------------------

// The caller has the addresses from a trustworthy place, so that packets from there are the peer's.
// The peer may not know ours yet.
void RailsNic::learn_further(const FepAddress& first, std::span<const FabricAddress> further) {
  if (first == local_address() || first.ip.is_ipv6) return;
  const std::size_t count = std::min(further.size(), rails_.size() - 1);
  for (std::size_t i = 0; i < count && sources_.size() < kMostSources; ++i) {
    const Way& way = peers_.get(first).ways[i + 1];
    if (way.state == State::None || way.ip != further[i])
      set_way(first, i + 1, further[i], State::Unproved);
  }
}

// The peer's rail has this address from now on, and no other.
void RailsNic::set_way(const FepAddress& first, std::size_t rail, const FabricAddress& ip,
                       State state) {
  Way& way = peers_.get(first).ways[rail];
  if (way.state != State::None) sources_.erase({way.ip, first.port});
  RailPeers::set(way, ip, state);
  sources_[{ip, first.port}] = {first, static_cast<std::uint8_t>(rail)};
}

void RailsNic::hello(Peer& peer, std::size_t rail) {
  const FepAddress self = local_address();
  send(rail, {peer.ways[rail].ip, peer.first.port},
       {.kind = RailMessage::Kind::Hello,
        .rail = static_cast<std::uint8_t>(rail),
        .port = self.port,
        .address = bytes_of(self.ip),
        .nonce = nonce(peer.ways[rail].ip, peer.first)});
}

// CMS-403: an entropy value keeps its rail; values of rails that are not used share the others.
std::size_t RailsNic::rail_for(const Packet& packet) {
  Peer* const peer = peers_.empty() ? nullptr : peers_.find(packet.to);
  if (peer == nullptr) return 0;
  std::array<std::uint8_t, kMostRails> usable{};
  std::size_t count = 0;
  for (std::size_t rail = 0; rail < rails_.size(); ++rail) {
    if (peers_.may_use(*peer, rail, now_)) usable[count++] = static_cast<std::uint8_t>(rail);
  }
  const auto own = static_cast<std::uint8_t>(packet.entropy % rails_.size());
  const auto end = usable.begin() + static_cast<std::ptrdiff_t>(count);
  const bool keeps = std::find(usable.begin(), end, own) != end;
  peers_.note_choice(*peer, count > 0);
  const std::size_t rail = keeps        ? own
                           : count == 0 ? RailPeers::kLastResort
                                        : usable[packet.entropy / rails_.size() % count];
  peers_.note_departure(*peer, rail, !packet.control, now_);
  return rail;
}

// ---- messages -----------------------------------------------------------------------------------

void RailsNic::send(std::size_t rail, const FepAddress& to, RailMessage message) {
  Packet packet;
  packet.reset();
  const RailMessage::Bytes bytes = message.encode();
  std::copy(bytes.begin(), bytes.end(), packet.append(bytes.size()));
  packet.to = to;
  packet.control = true;
  packet.answers_unknown_peer = true;
  const std::array<const Packet*, 1> burst{&packet};
  rails_[rail].nic->tx_burst(burst);  // a refused one is as good as lost
}

std::uint64_t RailsNic::cookie(const FabricAddress& further, const FepAddress& first) const {
  return siphash(key0_, key1_ ^ first.port, number(further) << 32 | number(first.ip));
}

std::uint32_t RailsNic::nonce(const FabricAddress& further, const FepAddress& first) const {
  return static_cast<std::uint32_t>(
      siphash(key1_, key0_ ^ first.port, number(further) << 32 | number(first.ip)));
}

void RailsNic::handle_hello(const RailMessage& message, const FepAddress& from, std::size_t rail) {
  const FepAddress first{.ip = address_of(message.address), .port = message.port};
  RailMessage answer{.kind = RailMessage::Kind::Known,
                     .rail = message.rail,
                     .cookie = cookie(first.ip, first),
                     .nonce = message.nonce};
  const auto known = sources_.find(from);
  const bool taken = rail == 0 ? from == first
                               : known != sources_.end() && known->second.first == first &&
                                     known->second.rail == rail;
  if (!taken) {
    if (rail == 0) return;
    answer.kind = RailMessage::Kind::Challenge;
    answer.cookie = cookie(from.ip, first);
  }
  send(rail, from, answer);
}

// The further address got the cookie, and the first address has it: both are one process's.
void RailsNic::handle_proof(const RailMessage& message, const FepAddress& from) {
  const FepAddress further{.ip = address_of(message.address), .port = from.port};
  const std::size_t rail = message.rail;
  if (message.cookie != cookie(further.ip, from) || rail == 0 || rail >= rails_.size()) return;
  if (sources_.size() >= kMostSources && !sources_.contains(further)) return;
  set_way(from, rail, further.ip, State::Up);
  send(rail, further,
       {.kind = RailMessage::Kind::Known,
        .rail = message.rail,
        .cookie = cookie(from.ip, from),
        .nonce = message.nonce});
  if (Peer& peer = peers_.get(from); peer.pass == 0) hello(peer, rail);
}

// Hellos find out when the peer's carrier is back.
void RailsNic::handle_gone(const RailMessage& message, Peer& peer) {
  if (message.cookie != cookie(peer.first.ip, peer.first) || message.rail >= rails_.size()) return;
  if (peer.ways[message.rail].state != State::Up) return;
  peers_.leave(peer, message.rail, now_ + RailPeers::kFirstPause);
}

void RailsNic::send_gone() {
  for (std::size_t rail = 0; rail < rails_.size(); ++rail) {
    if ((gone_ & 1U << rail) == 0 || peers_.carrier(rail)) continue;
    peers_.for_each([&](const Peer& peer) {
      const auto other = peers_.other_rail(peer, rail);
      if (!other || peer.pass == 0 || peer.ways[rail].state != State::Up) return;
      send(*other, {peer.ways[*other].ip, peer.first.port},
           {.kind = RailMessage::Kind::Gone,
            .rail = static_cast<std::uint8_t>(rail),
            .cookie = peer.pass});
    });
  }
  gone_ = 0;
}

// nullptr: no peer has this address on this rail.
RailsNic::Peer* RailsNic::sender(const FepAddress& from, std::size_t rail) {
  if (rail == 0) return peers_.find(from);
  const auto source = sources_.find(from);
  if (source == sources_.end() || source->second.rail != rail) return nullptr;
  return peers_.find(source->second.first);
}

void RailsNic::handle(const RailMessage& message, const FepAddress& from, std::size_t rail) {
  using Kind = RailMessage::Kind;
  if (message.kind == Kind::Gone) {
    if (Peer* const peer = sender(from, rail); peer != nullptr) handle_gone(message, *peer);
    return;
  }
  if (message.rail != rail && message.kind != Kind::Proof) return;
  if (message.kind == Kind::Hello) return handle_hello(message, from, rail);
  if (message.kind == Kind::Proof) {
    if (rail == 0) handle_proof(message, from);
    return;
  }
  // The answers, of peers that are known.
  Peer* const peer = sender(from, rail);
  if (peer == nullptr || peer->ways[rail].ip != from.ip) return;
  Way& way = peer->ways[rail];
  if (message.kind != Kind::Unknown && message.nonce != nonce(way.ip, peer->first)) return;
  switch (message.kind) {
    case Kind::Challenge:
      return send(0, peer->first,
                  {.kind = Kind::Proof,
                   .rail = message.rail,
                   .address = bytes_of(rails_[rail].nic->local_address().ip),
                   .cookie = message.cookie,
                   .nonce = message.nonce});
    case Kind::Known:
      RailPeers::set(way, way.ip, State::Up);
      peer->pass = message.cookie;
      peers_.note_answer(*peer, rail, now_);
      return;
    case Kind::Unknown:
      if (rail == 0 || way.state != State::Up) return;
      RailPeers::set(way, way.ip, State::Unproved);
      return;
    default:
      return;
  }
}

// ---- receiving ----------------------------------------------------------------------------------

// False: it is not for the layers above.
bool RailsNic::take(RxPacket& packet, std::size_t rail) {
  if (const auto message = RailMessage::decode(packet.bytes)) {
    handle(*message, packet.source, rail);
    return false;
  }
  Peer* peer = nullptr;
  if (rail > 0) {
    const auto source = sources_.find(packet.source);
    if (source == sources_.end() || source->second.rail != rail) {
      if (now_ < next_unknown_) return false;
      next_unknown_ = now_ + kUnknownPause;
      send(rail, packet.source,
           {.kind = RailMessage::Kind::Unknown, .rail = static_cast<std::uint8_t>(rail)});
      return false;
    }
    packet.source = source->second.first;
  }
  if (!peers_.empty()) peer = peers_.find(packet.source);
  if (peer != nullptr) peers_.note_arrival(*peer, rail, now_);
  if (caps_.source_ports != 0) packet.entropy = static_cast<std::uint16_t>(kFirstEntropy + rail);
  return true;
}

std::size_t RailsNic::rx_burst(std::span<RxPacket> out, Time now) {
  now_ = now;
  if (gone_ != 0) send_gone();
  if (now >= next_carrier_look_) look_at_carriers();
  peers_.look(now);
  if (!held_.empty()) send_held();
  std::size_t filled = 0;
  turn_ = (turn_ + 1) % rails_.size();
  for (std::size_t i = 0; i < rails_.size() && filled < out.size(); ++i) {
    const std::size_t rail = (turn_ + i) % rails_.size();
    const auto rest = out.subspan(filled);
    const std::size_t count = rails_[rail].nic->rx_burst(rest, now);
    for (std::size_t k = 0; k < count; ++k) {
      if (!take(rest[k], rail)) continue;
      if (&out[filled] != &rest[k]) out[filled] = rest[k];
      ++filled;
    }
  }
  return filled;
}

void RailsNic::look_at_carriers() {
  next_carrier_look_ = now_ + kCarrierLook;
  for (std::size_t rail = 0; rail < rails_.size(); ++rail) {
    if (watches_[rail].fd() < 0) continue;
    if (const auto up = watches_[rail].changed()) carrier_changed(rail, *up);
  }
}

void RailsNic::carrier_changed(std::size_t rail, bool up) {
  peers_.set_carrier(rail, up);
  if (!up) gone_ |= 1U << rail;
}

// ---- sending ------------------------------------------------------------------------------------

// Over one rail; packets of the others get the address there. Returns how many were taken.
std::size_t RailsNic::offer(std::size_t rail, std::span<const Packet* const> packets) {
  if (packets.empty()) return 0;
  for (const Packet* const packet : packets) packet->rail = static_cast<std::uint8_t>(rail);
  if (rail == 0) return rails_[0].nic->tx_burst(packets);
  std::array<const Packet*, kTxBurst> burst;
  for (std::size_t i = 0; i < packets.size(); ++i) {
    const Packet& from = *packets[i];
    Packet& copy = (*translated_)[i];
    copy.copy_headers(from);
    copy.payload = from.payload;
    copy.device = from.device;
    copy.to.ip = peers_.find(from.to)->ways[rail].ip;
    burst[i] = &copy;
  }
  const std::size_t sent = rails_[rail].nic->tx_burst(std::span(burst).first(packets.size()));
  for (std::size_t i = 0; i < sent; ++i) packets[i]->sent = burst[i]->sent;
  return sent;
}

bool RailsNic::offer_elsewhere(const Packet& packet, std::size_t full) {
  Peer* const peer = peers_.find(packet.to);
  if (peer == nullptr) return false;
  const std::array<const Packet*, 1> burst{&packet};
  for (std::size_t rail = 0; rail < rails_.size(); ++rail) {
    if (rail == full || !peers_.carrier(rail) || peer->ways[rail].state != State::Up) continue;
    if (offer(rail, burst) == 1) return true;
  }
  return false;
}

void RailsNic::hold(const Packet& packet, std::size_t rail) {
  auto held = std::make_unique<Held>();
  held->packet.copy_headers(packet);
  held->payload.resize(packet.payload_length());
  copy_payload(packet, held->payload.data());
  held->packet.payload[0] = {held->payload.data(), packet.payload_length()};
  held->rail = rail;
  held_.push_back(std::move(held));
}

// True: nothing is held any more. Packets whose rail has gone take another one.
bool RailsNic::send_held() {
  std::erase_if(held_, [this](const std::unique_ptr<Held>& held) {
    const std::array<const Packet*, 1> burst{&held->packet};
    if (peers_.carrier(held->rail) && offer(held->rail, burst) == 1) return true;
    return offer_elsewhere(held->packet, held->rail) || !peers_.carrier(held->rail);
  });
  return held_.empty();
}

std::size_t RailsNic::tx_burst(std::span<const Packet* const> in) {
  if (!held_.empty() && !send_held()) return 0;
  const std::size_t count = std::min(in.size(), kTxBurst);
  std::array<Part, kMostRails>& parts = *parts_;
  for (Part& part : parts) part.count = 0;
  for (std::size_t i = 0; i < count; ++i) {
    Part& part = parts[rail_for(*in[i])];
    part.packets[part.count++] = in[i];
  }
  for (std::size_t rail = 0; rail < rails_.size(); ++rail) {
    const auto packets = std::span(parts[rail].packets).first(parts[rail].count);
    std::size_t sent = offer(rail, packets);
    if (packets.size() == count) return sent;  // nothing is to be copied
    for (; sent < packets.size(); ++sent) {
      if (!offer_elsewhere(*packets[sent], rail)) hold(*packets[sent], rail);
    }
  }
  return count;
}

// ---- the rest of the interface ------------------------------------------------------------------

bool RailsNic::prepare_wait() {
  bool waits = false;
  for (Rail& rail : rails_) waits |= rail.nic->prepare_wait();
  return waits;
}

void RailsNic::watch_refusals() {
  for (Rail& rail : rails_) rail.nic->watch_refusals();
}

std::optional<FepAddress> RailsNic::take_refusal() {
  for (Rail& rail : rails_) {
    const auto refused = rail.nic->take_refusal();
    if (!refused) continue;
    const auto source = sources_.find(*refused);
    return source != sources_.end() ? source->second.first : *refused;
  }
  return {};
}

Time RailsNic::next_deadline() const {
  if (gone_ != 0) return Time{};
  Time earliest = std::min(peers_.next_look(), held_.empty() ? kNever : now_ + kHeldRetry);
  for (const Rail& rail : rails_) earliest = std::min(earliest, rail.nic->next_deadline());
  return earliest;
}

std::uint64_t RailsNic::receive_backlog_bytes() const {
  std::uint64_t bytes = 0;
  for (const Rail& rail : rails_) bytes += rail.nic->receive_backlog_bytes();
  return bytes;
}

NicCounters RailsNic::counters() const {
  NicCounters all;
  for (const Rail& rail : rails_) all = all + rail.nic->counters();
  return all;
}

}  // namespace uet::nic
