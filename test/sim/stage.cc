// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "sim/stage.h"
#include "ses/initiator.h"

#include <algorithm>
#include <memory>
#include <utility>

namespace uet::sim {
namespace {

constexpr JobId kJob{7};
constexpr ResourceIndex kIndex{1};

void* as_pointer(std::uintptr_t number) { return reinterpret_cast<void*>(number); }

}  // namespace

std::span<const std::byte> Seen::rest() const {
  const std::span<const std::byte> bytes = packet.bytes;
  if (request) return bytes.subspan(wire::pds_header_bytes(request->type));
  if (ack) return bytes.subspan(wire::pds_header_bytes(ack->type));
  return {};
}

Seen remember(const Sighting& sighting) {
  Seen seen{.at = sighting.at,
            .from = sighting.from,
            .to = sighting.to,
            .packet = *sighting.packet,
            .request = {},
            .ack = {},
            .nack = {},
            .control = {}};
  if (const auto* header = sighting.header<wire::RequestHeader>()) seen.request = *header;
  if (const auto* header = sighting.header<wire::AckHeader>()) seen.ack = *header;
  if (const auto* header = sighting.header<wire::NackHeader>()) seen.nack = *header;
  if (const auto* header = sighting.header<wire::ControlHeader>()) seen.control = *header;
  return seen;
}

std::function<bool(const Sighting&)> drop_first(int count,
                                                std::function<bool(const Sighting&)> wanted) {
  return [count, wanted = std::move(wanted)](const Sighting& sighting) mutable {
    if (count == 0 || !wanted(sighting)) return false;
    --count;
    return true;
  };
}

void StageConfig::set_payload_mtu(std::uint32_t bytes) {
  fep.ses.payload_mtu = bytes;
  fep.cms.mtu_bytes = cms::nominal_packet_bytes(bytes + 56);
}

StageConfig::StageConfig() {
  set_payload_mtu(1024);
  fep.ses.tx_messages = fep.ses.rx_messages = fep.ses.return_messages = 512;
  fep.ses.posted_receives = 512;
  fep.packets = 8192;
  fep.buffers = 512;
  fep.memory_regions = 8;
  fep.pds.start_psn = 70000;
  fep.pds.pdc_count = 16;
  fep.pds.reserved_target_pdcs = 4;
  fep.cms.algorithm = cms::Algorithm::None;
  fep.cms.fixed_window_bytes = fep.cms.max_window_bytes = 64 << 20;
  link.latency = std::chrono::microseconds(100);
}

Stage::Stage(const StageConfig& config) : world_(config.fep.seed) {
  world_.on_sent = [this](const Sighting& sighting) { sent.push_back(remember(sighting)); };
  world_.set_default_link(config.link);
  for (int node = 0; node < config.nodes; ++node) {
    NodeConfig node_config;
    node_config.fep = config.fep;
    node_config.fep.seed = config.fep.seed + static_cast<std::uint64_t>(node);
    if (node == 1) node_config.progress_interval = config.target_interval;
    if (config.configure) config.configure(node, node_config.fep);
    node_config.nic.address = address_of(1, static_cast<std::uint8_t>(node + 1));
    node_config.nic.caps.ip_mtu = config.fep.ses.payload_mtu + 148;
    node_config.nic.caps.ecn = true;
    if (config.security) {
      node_config.security = config.security(node);
      node_config.nic.caps.ip_mtu += tss::overhead_bytes(true);
    }
    node_config.nic.rails = config.rails;
    node_config.nic.tx_queue = config.nic_tx_queue;
    node_config.nic.rate_bps = config.nic_rate_bps;
    node_config.nic.rx_queue = 16384;
    world_.add_node(node_config);
    auto actor = std::make_unique<Actor>();
    actor->memory.resize(config.memory_bytes);
    for (std::size_t i = 0; i < actor->memory.size(); ++i) {
      actor->memory[i] = static_cast<std::byte>(i * 7 + i / 251 + static_cast<std::size_t>(node));
    }
    ri::MemoryRegion region;
    region.base = actor->memory.data();
    region.length = actor->memory.size();
    region.access = ri::kRemoteRead | ri::kRemoteWrite;
    actor->key = fep(node).regions().add(region).value();
    ses::ContextConfig context;
    context.job = kJob;
    context.pid_on_fep = PidOnFep{static_cast<std::uint16_t>(node)};
    context.resource_index = kIndex;
    context.initiator = InitiatorId{static_cast<std::uint32_t>(node + 1)};
    context.mode = config.mode;
    actor->context = fep(node).ses().open_context(context, actor->sink).value();
    fep(node).ses().enable(*actor->context);
    actor->peer = ses::Peer{.fep = node_config.nic.address,
                            .pid_on_fep = context.pid_on_fep,
                            .resource_index = kIndex,
                            .initiator = context.initiator,
                            .relative = true};
    actors_.push_back(std::move(actor));
  }
}

Stage::~Stage() {
  for (int node = 0; node < static_cast<int>(actors_.size()); ++node) {
    fep(node).ses().close_context(*actor(node).context, world_.now());
  }
}

Result<void> Stage::write(int from, int to, std::uint64_t offset, std::size_t length,
                          std::optional<std::uint64_t> data, std::uintptr_t context) {
  const ses::IoSlice slice{actor(from).memory.data() + offset, length};
  ses::RmaOp op;
  op.peer = &actor(to).peer;
  op.local = {&slice, 1};
  op.data = data;
  op.context = as_pointer(context);
  op.remote_offset = offset;
  op.key = actor(to).key;
  const Result<void> result =
      fep(from).ses().initiator().post(*actor(from).context, op, world_.now());
  world_.posted(from);
  return result;
}

Result<void> Stage::read(int from, int to, std::uint64_t offset, std::size_t length,
                         std::uintptr_t context) {
  const ses::IoSlice slice{actor(from).memory.data() + offset, length};
  ses::RmaOp op;
  op.peer = &actor(to).peer;
  op.local = {&slice, 1};
  op.context = as_pointer(context);
  op.remote_offset = offset;
  op.kind = ses::Kind::Read;
  op.key = actor(to).key;
  const Result<void> result =
      fep(from).ses().initiator().post(*actor(from).context, op, world_.now());
  world_.posted(from);
  return result;
}

Result<void> Stage::send(int from, int to, std::uint64_t offset, std::size_t length,
                         std::optional<std::uint64_t> data, std::uintptr_t context) {
  const ses::IoSlice slice{actor(from).memory.data() + offset, length};
  ses::SendOp op;
  op.peer = &actor(to).peer;
  op.local = {&slice, 1};
  op.data = data;
  op.context = as_pointer(context);
  const Result<void> result =
      fep(from).ses().initiator().post(*actor(from).context, op, world_.now());
  world_.posted(from);
  return result;
}

Result<void> Stage::receive(int node, std::uint64_t offset, std::size_t length,
                            std::uintptr_t context) {
  const ses::IoSlice slice{actor(node).memory.data() + offset, length};
  ses::ReceiveOp op;
  op.local = {&slice, 1};
  op.context = as_pointer(context);
  const Result<void> result = fep(node).ses().receive(*actor(node).context, op, world_.now());
  world_.posted(node);
  return result;
}

bool Stage::completes(int node, std::size_t count) {
  return world_.run_until([&] { return actor(node).sink.completions.size() >= count; },
                          std::chrono::minutes(1));
}

std::vector<Seen> Stage::sent_where(const std::function<bool(const Seen&)>& wanted) const {
  std::vector<Seen> found;
  std::copy_if(sent.begin(), sent.end(), std::back_inserter(found), wanted);
  return found;
}

std::vector<Seen> Stage::requests(int from) const {
  return sent_where([=](const Seen& s) { return s.from == from && s.request.has_value(); });
}

std::vector<Seen> Stage::acks(int from) const {
  return sent_where([=](const Seen& s) { return s.from == from && s.ack.has_value(); });
}

std::vector<Seen> Stage::nacks(int from) const {
  return sent_where([=](const Seen& s) { return s.from == from && s.nack.has_value(); });
}

std::vector<Seen> Stage::controls(int from, wire::CpType type) const {
  return sent_where(
      [=](const Seen& s) { return s.from == from && s.control && s.control->ctl_type == type; });
}

}  // namespace uet::sim
