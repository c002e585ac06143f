// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Between the event loop and one Fep.
#include "netsim/host.h"

#include <algorithm>
#include <array>

#include "cms/ccc.h"
#include "netsim/network.h"
#include "ses/initiator.h"

namespace uet::netsim {
namespace {

constexpr JobId kJob{1};
constexpr PidOnFep kPid{1};
constexpr ResourceIndex kIndex{1};
constexpr Rkey kKey{1};
constexpr Picoseconds kSoon = kPsPerUs;  // after a deadline that is already over

void* context_of(std::uint32_t flow) {
  return reinterpret_cast<void*>(static_cast<std::uintptr_t>(flow) + 1);
}
std::uint32_t flow_of(void* context) {
  return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(context) - 1);
}

}  // namespace

FepAddress address_of(std::uint32_t host) {
  FepAddress address;
  address.ip.bytes = {10, static_cast<std::uint8_t>(host >> 16),
                      static_cast<std::uint8_t>(host >> 8), static_cast<std::uint8_t>(host)};
  return address;
}

std::uint32_t host_of(const FepAddress& address) {
  const auto& bytes = address.ip.bytes;
  return std::uint32_t{bytes[1]} << 16 | std::uint32_t{bytes[2]} << 8 | bytes[3];
}

Host::Host(Network& network, std::uint32_t number, const fep::Config& fep, DeliveryMode mode,
           std::uint64_t memory_bytes)
    : network_(network), number_(number), mode_(mode) {
  caps_.ip_mtu = fep.ses.payload_mtu + 148;
  caps_.link_rate_bps =
      network.config().planes * network.fabric().port_of_host(number).link.rate_bps;
  caps_.receive_credit_bytes = network.config().receive_pool_bytes;
  caps_.per_packet_entropy = true;
  caps_.ecn = true;
  caps_.most_received = 1;
  fep_ = std::make_unique<fep::Fep>(fep, *this, core_time(network.now()));
  context_for(mode, 0);  // the one that receives
  ri::MemoryRegion region;
  region.base = network.memory();
  region.length = memory_bytes;
  region.access = ri::kRemoteWrite;
  if (!fep_->regions().add_with_key(region, kKey)) network.violation("a region was refused");
}

Host::~Host() {
  for (NetPacket* packet : unread_) network_.pool().give_back(packet);
  for (const auto& [key, context] : contexts_) {
    fep_->ses().close_context(*context, core_time(network_.now()));
  }
}

ses::Context& Host::context_for(DeliveryMode mode, std::uint8_t traffic_class) {
  ses::Context*& context = contexts_[{mode, traffic_class}];
  if (context != nullptr) return *context;
  ses::ContextConfig config;
  config.job = kJob;
  config.pid_on_fep = kPid;
  config.resource_index = kIndex;
  config.initiator = InitiatorId{number_};
  config.receives = contexts_.size() == 1;
  config.mode = mode;
  config.traffic_class = traffic_class;
  config.tx_size = fep_->config().ses.tx_messages;
  config.rx_size = 1;  // flows are writes
  context = fep_->ses().open_context(config, *this).value();
  fep_->ses().enable(*context);
  return *context;
}

void Host::start(std::uint32_t flow) {
  if (!not_posted_.empty() || !post(flow)) not_posted_.push_back(flow);
  progress();
}

// False if the Fep cannot take the flow now.
bool Host::post(std::uint32_t number) {
  const Flow& flow = network_.traffic().flows[number];
  const ses::Peer peer{.fep = address_of(flow.destination),
                       .pid_on_fep = kPid,
                       .resource_index = kIndex,
                       .initiator = InitiatorId{flow.destination}};
  const ses::IoSlice slice{network_.memory(), flow.bytes};
  ses::RmaOp op;
  op.peer = &peer;
  op.local = {&slice, 1};
  op.key = kKey;
  op.context = context_of(number);
  if (flow.received_trigger != 0) op.data = number;  // tells the destination
  ses::Context& context = context_for(flow.rod ? DeliveryMode::Rod : mode_, flow.traffic_class);
  const Result<void> posted = fep_->ses().initiator().post(context, op, core_time(network_.now()));
  if (!posted.ok() && posted.error() != Error::Again) {
    network_.violation("host " + std::to_string(number_) + ": a write was refused");
  }
  return posted.ok();
}

void Host::complete(const ses::Completion& completion) noexcept {
  if (completion.kind == ses::Kind::RemoteWrite) {
    return network_.note(static_cast<std::uint32_t>(completion.data), FlowEvent::Received);
  }
  const bool good = completion.status == ses::Status::Ok;
  network_.note(flow_of(completion.context), good ? FlowEvent::Finished : FlowEvent::Failed);
}

void Host::receive(NetPacket& packet) {
  network_.delivered(packet);
  arrived_ = &packet;
  progress();
  arrived_ = nullptr;
  network_.pool().give_back(&packet);
}

void Host::arrive(NetPacket& packet) {
  const NetworkConfig& config = network_.config();
  if (config.drain_rate_bps == 0) return receive(packet);
  if (unread_bytes_ + packet.wire_bytes > config.receive_pool_bytes) {
    ++receive_drops_;
    last_receive_drop_ = network_.now();
    return network_.pool().give_back(&packet);
  }
  unread_.push_back(&packet);
  unread_bytes_ += packet.wire_bytes;
  most_unread_bytes_ = std::max(most_unread_bytes_, unread_bytes_);
  if (unread_.size() == 1) drain_next();
}

// When the one in front will have been taken up.
void Host::drain_next() {
  const NetworkConfig& config = network_.config();
  const bool slow = network_.now() - network_.begin() < config.drain_until;
  const std::uint64_t rate = slow ? config.drain_rate_bps : caps_.link_rate_bps;
  network_.call_at(network_.now() + serialization(unread_.front()->wire_bytes, rate),
                   EventKind::Drain, number_);
}

void Host::drain() {
  NetPacket& packet = *unread_.front();
  unread_.pop_front();
  unread_bytes_ -= packet.wire_bytes;
  receive(packet);
  if (!unread_.empty()) drain_next();
}

void Host::wake() {
  if (network_.now() < wake_at_) return;  // an earlier one has been there
  wake_at_ = kPsNever;
  const Picoseconds deadline = picoseconds(fep_->next_deadline());
  if (deadline > network_.now()) {
    return schedule();
  }
  if (!progress()) ++barren_passes_;
}

// Makes passes as long as there is something to receive or to send, and the NIC takes it.
// True if there was anything.
bool Host::progress() {
  if (in_progress_) return true;
  in_progress_ = true;
  const Time now = core_time(network_.now());
  bool any = false, busy = true;
  while (busy) {
    network_.checks().before_pass(held_);
    busy = fep_->progress(now);
    network_.checks().after_pass(number_);
    any |= busy;
    busy = busy && (arrived_ != nullptr || has_room());
  }
  while (!not_posted_.empty() && post(not_posted_.front())) not_posted_.pop_front();
  in_progress_ = false;
  schedule();
  return any;
}

void Host::schedule() {
  const Picoseconds deadline = picoseconds(fep_->next_deadline());
  if (deadline == kPsNever) return;
  const Picoseconds at = std::max(deadline, network_.now() + kSoon);
  if (at >= wake_at_) return;
  wake_at_ = at;
  network_.call_at(at, EventKind::Wake, number_);
}

void Host::note_plane(std::uint32_t plane, bool up) {
  const std::uint32_t bit = 1U << plane;
  lost_planes_ = up ? lost_planes_ & ~bit : lost_planes_ | bit;
  if (up) return;
  not_polled_.push_back({{}, static_cast<std::uint8_t>(plane)});
  progress();
}

std::optional<LostRail> Host::poll_lost_rail() {
  if (not_polled_.empty()) return {};
  const LostRail lost = not_polled_.back();
  not_polled_.pop_back();
  return lost;
}

bool Host::takes_data(std::uint32_t plane) const {
  const Port& port = network_.fabric(plane).port_of_host(number_);
  return (lost_planes_ >> plane & 1U) == 0 && port.waiting(TrafficClass::Data) < kStagedPackets;
}

bool Host::has_room() const {
  for (std::uint32_t plane = 0; plane < network_.config().planes; ++plane) {
    if (takes_data(plane)) return true;
  }
  return false;
}

// As RailsNic (CMS-403): an entropy value has its plane. Values of planes that are lost, and data
// for which the plane's queue is full, take the others. Control packets are taken even if the NIC's
// queue is full. Empty: none takes it.
std::optional<std::uint32_t> Host::plane_for(const Packet& packet) const {
  const std::uint32_t planes = network_.config().planes;
  const bool data = packet.ecn != Ecn::NotEct;
  const std::uint32_t own = packet.entropy % planes;
  const std::uint32_t step = packet.entropy / planes % planes;
  for (std::uint32_t i = 0; i < planes; ++i) {
    const std::uint32_t plane = i == 0 ? own : (own + 1 + (step + i) % (planes - 1)) % planes;
    if (data ? takes_data(plane) : (lost_planes_ >> plane & 1U) == 0) return plane;
  }
  if (data) return {};
  return own;  // all are lost
}

std::size_t Host::rx_burst(std::span<RxPacket> out, Time) {
  if (arrived_ == nullptr || out.empty()) return 0;
  const NetPacket& packet = *arrived_;
  arrived_ = nullptr;
  out[0] = RxPacket{.bytes = network_.view(packet),
                    .source = address_of(packet.source),
                    .entropy = packet.entropy,
                    .ecn = packet.ecn,
                    .dscp = packet.dscp,
                    .trimmed = packet.trimmed,
                    .trimmed_last_hop = packet.trimmed_last_hop};
  return 1;
}

std::size_t Host::tx_burst(std::span<const Packet* const> in) {
  std::size_t taken = 0;
  for (; taken < in.size(); ++taken) {
    const auto plane = plane_for(*in[taken]);
    if (!plane) break;
    in[taken]->rail = static_cast<std::uint8_t>(*plane);
    emit(*in[taken], *plane);
  }
  held_ = taken < in.size();
  return taken;
}

void Host::emit(const Packet& from, std::uint32_t plane) {
  NetPacket& packet = *network_.pool().take();
  packet.source = number_;
  packet.destination = host_of(from.to);
  packet.pds_bytes = from.length();
  packet.wire_bytes = network_.config().wire_bytes(packet.pds_bytes);
  packet.entropy = from.entropy;
  packet.dscp = from.dscp;
  packet.ecn = from.ecn;
  packet.trimmed = packet.trimmed_last_hop = false;
  packet.traffic_class = from.ecn == Ecn::NotEct ? TrafficClass::Control : TrafficClass::Data;
  const std::span<const std::byte> headers = from.head();
  // A short one travels with its true payload.
  const bool whole = packet.pds_bytes <= NetPacket::kHeadBytes;
  const std::span<std::byte> head =
      packet.new_head(whole ? packet.pds_bytes : std::min(headers.size(), NetPacket::kHeadBytes));
  const std::size_t used = std::min(headers.size(), head.size());
  std::byte* end = std::copy_n(headers.begin(), used, head.data());
  if (whole) copy_payload(from, end);
  network_.send(packet, plane);
}

}  // namespace uet::netsim
