// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The course of a run: nodes, posting, faults, the end. The oracles are in oracles.cc.
#include "sim/run_plan.h"
#include "ses/initiator.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <span>

#include "wire/dissect.h"

namespace uet::sim {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr JobId kJob{101};

// `length` bytes at `data` as `count` pieces of drawn sizes.
std::vector<ses::IoSlice> cut(std::byte* data, std::size_t length, std::size_t count, Rng rng) {
  std::vector<ses::IoSlice> slices;
  for (; count > 1 && length > 0; --count) {
    const std::size_t piece = rng.below(length + 1);
    slices.push_back({data, piece});
    data += piece;
    length -= piece;
  }
  slices.push_back({data, length});
  return slices;
}

}  // namespace

void* context_pointer(std::uint64_t number) {
  void* pointer = nullptr;
  static_assert(sizeof pointer == sizeof number);
  std::memcpy(&pointer, &number, sizeof pointer);
  return pointer;
}

void fill_pattern(std::uint64_t number, std::byte* to, std::size_t length) {
  Rng rng(number * 0xD1B54A32D192ED03ULL);
  std::uint64_t word = number;
  for (std::size_t at = 0; at < length; at += 8, word = rng.next()) {
    std::memcpy(to + at, &word, std::min<std::size_t>(8, length - at));
  }
}

bool has_pattern(std::uint64_t number, const std::byte* at, std::size_t length) {
  std::vector<std::byte> expected(length);
  fill_pattern(number, expected.data(), length);
  return std::equal(expected.begin(), expected.end(), at);
}

GuardedMemory::GuardedMemory(std::size_t length) : bytes_(length + 2 * kGuard, kUntouched) {}

bool GuardedMemory::guards_intact() const {
  const auto intact = [](std::byte b) { return b == kUntouched; };
  return std::all_of(bytes_.begin(), bytes_.begin() + kGuard, intact) &&
         std::all_of(bytes_.end() - kGuard, bytes_.end(), intact);
}

bool GuardedMemory::untouched_from(std::size_t from) const {
  return std::all_of(bytes_.begin() + static_cast<std::ptrdiff_t>(kGuard + from), bytes_.end(),
                     [](std::byte b) { return b == kUntouched; });
}

namespace {

std::vector<std::uint8_t> mprs_of(const Plan& plan) {
  std::vector<std::uint8_t> mprs;
  for (const ConfigurationPlan& configuration : plan.configurations)
    mprs.push_back(configuration.fep.pds.default_mpr);
  return mprs;
}

}  // namespace

Run::Run(const Plan& plan, bool verbose)
    : plan_(plan),
      world_(plan.seed),
      monitor_(mprs_of(plan), plan.fep.pds.mpr_zero_psns, plan.security.has_value()),
      rng_(plan.seed ^ 0xF00D),
      strangers_(world_, kJob, plan.seed ^ 0x5741),
      closing_(world_, plan),
      replay_rng_(plan.seed ^ 0x2EB1A7) {
  world_.on_sent = [this](const Sighting& sighting) {
    strangers_.heard(sighting);
    monitor_.sent(sighting);
    last_packet_ = *sighting.packet;
    if (plan_.security && plan_.security->replays > 0) capture(sighting);
  };
  world_.on_delivered = [this, verbose](const Sighting& sighting) {
    monitor_.delivered(sighting);
    if (!verbose) return;
    std::printf("%12.3f us  %d > %d  %s\n", static_cast<double>(to_ns(sighting.at)) / 1000.0,
                sighting.from, sighting.to,
                wire::dissect(sighting.packet->plain.empty() ? sighting.packet->bytes
                                                             : sighting.packet->plain)
                    .c_str());
  };
  if (plan.security) {
    keys_ = std::make_unique<KeyManagement>(world_, *plan.security, plan.seed ^ 0x7557,
                                            [this](const std::string& what) { fail(what); });
  }
  build();
}

Run::~Run() {
  for (Endpoint& endpoint : endpoints_) {
    if (endpoint.context == nullptr) continue;
    world_.fep(endpoint.plan->node).ses().close_context(*endpoint.context, world_.now());
  }
}

void Run::fail(const std::string& what) {
  if (!failure_.empty()) return;
  failure_ = what + " (virtual time " +
             std::to_string(static_cast<double>(to_ns(world_.now()) - 1'000'000'000) / 1000.0) +
             " us)";
}

NodeConfig Run::node_config(int node) const {
  NodeConfig config;
  const ConfigurationPlan& configuration = plan_.configurations[static_cast<std::size_t>(node)];
  config.fep = configuration.fep;
  config.fep.seed = plan_.seed * 16 + static_cast<std::uint64_t>(node);
  config.progress_interval = plan_.progress_interval;
  config.nic.address = address_of(static_cast<std::uint8_t>(node), 1);
  config.nic.rails = plan_.rails;
  config.nic.tx_queue = plan_.nic_tx_queue;
  config.nic.rx_queue = plan_.nic_rx_queue;
  config.nic.rate_bps = plan_.link.rate_bps * 2;
  config.nic.caps.ip_mtu = configuration.fep.ses.payload_mtu + 148 + configuration.spare_mtu_bytes;
  config.nic.caps.link_rate_bps = plan_.link.rate_bps;
  config.nic.caps.ecn = true;
  config.nic.caps.per_packet_entropy = true;
  if (plan_.security) {
    config.nic.caps.ip_mtu += plan_.security->overhead();
    config.security = keys_->security_of(node, 0);
  }
  return config;
}

// The largest packet is meant without protection.
LinkConfig Run::link_config() const {
  LinkConfig link = plan_.link;
  if (plan_.security && link.largest_packet != UINT32_MAX) {
    link.largest_packet += plan_.security->overhead();
  }
  return link;
}

// A new process at the address of the dead one: it knows no peers, and has neither contexts nor
// memory. It refuses packets for the dead process (PDS-134); they may do no harm.
void Run::add_successor() {
  NodeConfig config = node_config(plan_.killed_node);
  config.fep.seed += 8;
  if (keys_ != nullptr) config.security = keys_->security_of(plan_.killed_node, 1);
  world_.add_node(config);
}

void Run::build_node(int node) {
  world_.add_node(node_config(node));
  auto& regions = world_.fep(node).regions();
  windows_.push_back(std::make_unique<GuardedMemory>(plan_.window_bytes));
  libraries_.push_back(std::make_unique<GuardedMemory>(plan_.library_bytes));
  fill_pattern(kLibraryNumber, libraries_.back()->data(), plan_.library_bytes);
  ri::MemoryRegion window_region;
  window_region.base = windows_.back()->data();
  window_region.length = plan_.window_bytes;
  window_region.access = ri::kRemoteRead | ri::kRemoteWrite;
  ri::MemoryRegion library_region;
  library_region.base = libraries_.back()->data();
  library_region.length = plan_.library_bytes;
  library_region.access = ri::kRemoteRead;
  if (plan_.provider_keys) {
    window_keys_.push_back(regions.add(window_region).value());
    library_keys_.push_back(regions.add(library_region).value());
  } else {
    // All accesses here may be repeated: each writes the same bytes to a place of its own.
    const std::uint64_t safe = plan_.fep.ses.rudi ? std::uint64_t{1} << 63 : 0;
    window_keys_.push_back(Rkey{safe | (0x1000 + static_cast<std::uint64_t>(node))});
    library_keys_.push_back(Rkey{safe | (0x2000 + static_cast<std::uint64_t>(node))});
    if (!regions.add_with_key(window_region, window_keys_.back()).ok() ||
        !regions.add_with_key(library_region, library_keys_.back()).ok()) {
      fail("a memory region was refused");
    }
  }
}

void Run::build() {
  LinkConfig usual = link_config();
  if (plan_.behind_black_hole >= 0) usual.largest_packet = UINT32_MAX;
  world_.set_default_link(usual);
  if (plan_.framing) world_.set_framing(*plan_.framing);
  for (int node = 0; node < plan_.nodes; ++node) build_node(node);
  for (int other = 0; plan_.behind_black_hole >= 0 && other < plan_.nodes; ++other) {
    world_.link(plan_.behind_black_hole, other).set_config(link_config());
    world_.link(other, plan_.behind_black_hole).set_config(link_config());
  }
  endpoints_.resize(plan_.contexts.size());
  for (std::size_t i = 0; i < endpoints_.size(); ++i) {
    Endpoint& endpoint = endpoints_[i];
    endpoint.plan = &plan_.contexts[i];
    endpoint.sink = std::make_unique<Sink>(*this, static_cast<int>(i));
    ses::ContextConfig config;
    config.job = kJob;
    config.pid_on_fep = PidOnFep{static_cast<std::uint16_t>(endpoint.plan->node)};
    config.resource_index = ResourceIndex{endpoint.plan->resource_index};
    config.initiator = InitiatorId{endpoint.plan->initiator};
    config.relative = plan_.relative;
    config.mode = endpoint.plan->mode;
    config.tx_size = 64;
    config.rx_size = 256;
    config.directed_receive = plan_.directed_receive;
    auto& ses = world_.fep(endpoint.plan->node).ses();
    endpoint.context = ses.open_context(config, *endpoint.sink).value();
    ses.enable(*endpoint.context);
    endpoint.peer.fep = address_of(static_cast<std::uint8_t>(endpoint.plan->node), 1);
    endpoint.peer.pid_on_fep = config.pid_on_fep;
    endpoint.peer.resource_index = config.resource_index;
    endpoint.peer.initiator = config.initiator;
    endpoint.peer.relative = plan_.relative;
    const ConfigurationPlan& configuration =
        plan_.configurations[static_cast<std::size_t>(endpoint.plan->node)];
    endpoint.peer.hpc = configuration.hpc;
    endpoint.peer.ai_full = configuration.ai_full;
    endpoint.peer.optimized = configuration.optimized;
    const bool first = i == 0 || plan_.contexts[i - 1].node != endpoint.plan->node;
    if (plan_.closing_contexts && first && config.mode != DeliveryMode::Uud) {
      closing_.open(endpoint.plan->node, config, endpoint.peer);
    }
  }
  for (std::size_t i = 0; i < plan_.operations.size(); ++i) {
    const OperationPlan& op = plan_.operations[i];
    endpoints_[static_cast<std::size_t>(op.from)].operations.push_back(i);
    operations_.emplace_back().memory = std::make_unique<GuardedMemory>(op.length);
    const bool read = op.flavour == Flavour::Read || op.flavour == Flavour::SlotRead;
    if (is_atomic(op.flavour)) {
      prepare_atomic(i);
    } else if (!read) {
      fill_pattern(i, operations_.back().memory->data(), op.length);
    }
  }
  for (std::size_t i = 0; i < plan_.receives.size(); ++i) {
    const ReceivePlan& receive = plan_.receives[i];
    endpoints_[static_cast<std::size_t>(receive.context)].receives.push_back(i);
    receives_.emplace_back().memory = std::make_unique<GuardedMemory>(receive.capacity);
  }
}

void Run::schedule() {
  end_of_faults_ = world_.now() + plan_.faults_end;
  world_.at(end_of_faults_, [this] { world_.set_faults(false); });
  for (const PartitionPlan& p : plan_.partitions) {
    world_.after(p.start, [this, p] { world_.set_partition(p.from, p.to, true); });
    world_.after(p.end, [this, p] { world_.set_partition(p.from, p.to, false); });
  }
  if (!plan_.partitions.empty()) {  // overlapping cuts of one link: all of them are over now
    world_.at(end_of_faults_, [this] {
      for (const PartitionPlan& p : plan_.partitions) world_.set_partition(p.from, p.to, false);
    });
  }
  for (const RailPlan& lost : plan_.lost_rails) {
    world_.cut_rail(lost.node, lost.rail, lost.start, lost.end, lost.told, lost.gone);
  }
  for (int i = 0; i < plan_.hostile_packets; ++i) {
    const auto when = rng_.below(static_cast<std::uint64_t>(plan_.faults_end.count()));
    world_.after(Duration(static_cast<std::int64_t>(when)), [this] { send_hostile_packet(); });
  }
  for (int i = 0; plan_.security && i < plan_.security->replays; ++i) {
    const auto span = static_cast<std::uint64_t>(plan_.faults_end.count()) * 4;
    world_.after(Duration(static_cast<std::int64_t>(replay_rng_.below(span))),
                 [this] { replay(); });
  }
  Rng nasty(plan_.seed ^ 0x4A57);
  for (int i = 0; i < plan_.nasty_sequences; ++i) {
    const int node = static_cast<int>(nasty.below(static_cast<std::uint64_t>(plan_.nodes)));
    const auto when = nasty.below(static_cast<std::uint64_t>(plan_.faults_end.count()));
    world_.after(Duration(static_cast<std::int64_t>(when)),
                 [this, node] { strangers_.begin(node); });
  }
  closing_.start();
  if (keys_ != nullptr) keys_->start();
  if (plan_.killed_node >= 0) {
    world_.after(plan_.kill_at, [this] { world_.kill(plan_.killed_node); });
    if (plan_.returns_after != Duration{0}) {
      world_.after(plan_.kill_at + plan_.returns_after, [this] { add_successor(); });
    }
  }
  for (Endpoint& endpoint : endpoints_) {
    if (!endpoint.operations.empty()) {
      world_.after(plan_.operations[endpoint.operations[0]].post_after,
                   [this, &endpoint] { post_operation(endpoint, microseconds(20)); });
    }
    if (!endpoint.receives.empty()) {
      world_.after(plan_.receives[endpoint.receives[0]].post_after,
                   [this, &endpoint] { post_receive(endpoint, microseconds(20)); });
    }
  }
}

Result<void> Run::submit(Endpoint& endpoint, std::size_t number) {
  const OperationPlan& plan = plan_.operations[number];
  if (is_atomic(plan.flavour)) return submit_atomic(endpoint, number);
  Operation& operation = operations_[number];
  const Endpoint& target = endpoints_[static_cast<std::size_t>(plan.to)];
  ses::Peer peer = target.peer;
  if (plan.flavour == Flavour::BadIndex) peer.resource_index = ResourceIndex{0x7FF};
  const auto slices = cut(operation.memory->data(), plan.length, plan.slices, Rng(number));
  const auto fill = [&](ses::TxOp& op) {
    op.peer = &peer;
    op.local = slices;
    op.inject = plan.inject;
    op.prompt_ack = !plan.inject;
    op.delivery_complete = plan.delivery_complete;
    op.fence = plan.fence;
    if (plan.with_data) op.data = number;
    op.context = context_pointer(number + 1);
    op.user_flags = number * 3;
  };
  ses::Ses& ses = world_.fep(endpoint.plan->node).ses();
  if (plan.flavour == Flavour::Send || plan.flavour == Flavour::TaggedSend ||
      plan.flavour == Flavour::Datagram) {
    ses::SendOp op;
    fill(op);
    if (plan.flavour == Flavour::TaggedSend) op.tag = plan.tag;
    return ses.initiator().post(*endpoint.context, op, world_.now());
  }
  const auto node = static_cast<std::size_t>(target.plan->node);
  ses::RmaOp op;
  fill(op);
  op.key = window_keys_[node];
  op.remote_offset = plan.offset;
  if (plan.flavour == Flavour::Read || plan.flavour == Flavour::BadRight) {
    op.key = library_keys_[node];
  }
  if (plan.flavour == Flavour::BadKey) op.key.value ^= 0x5A5A;
  if (plan.flavour == Flavour::BadBounds) op.remote_offset = plan_.window_bytes - plan.length + 1;
  const bool read = plan.flavour == Flavour::Read || plan.flavour == Flavour::SlotRead;
  if (read) op.kind = ses::Kind::Read;
  return ses.initiator().post(*endpoint.context, op, world_.now());
}

void Run::post_operation(Endpoint& endpoint, Duration retry) {
  if (!lives(endpoint.plan->node)) return;
  const std::size_t number = endpoint.operations[endpoint.next_operation];
  Operation& operation = operations_[number];
  operation.posted = true;  // it may complete before the call returns
  const Result<void> result = submit(endpoint, number);
  world_.posted(endpoint.plan->node);
  if (!result.ok()) {
    operation.posted = false;
    if (result.error() != Error::Again) {
      return fail("operation " + std::to_string(number) + " was refused with error " +
                  std::to_string(static_cast<int>(result.error())));
    }
    world_.after(retry, [this, &endpoint, retry] {
      post_operation(endpoint, std::min<Duration>(retry * 2, milliseconds(5)));
    });
    return;
  }
  if (plan_.operations[number].inject) {  // the buffer is ours again
    std::fill_n(operation.memory->data(), operation.memory->length(), kScribble);
  }
  if (plan_.operations[number].cancel_after) {
    world_.after(*plan_.operations[number].cancel_after,
                 [this, &endpoint, number] { cancel_operation(endpoint, number); });
  }
  if (++endpoint.next_operation == endpoint.operations.size()) return;
  world_.after(plan_.operations[endpoint.operations[endpoint.next_operation]].post_after,
               [this, &endpoint] { post_operation(endpoint, microseconds(20)); });
}

void Run::cancel_operation(Endpoint& endpoint, std::size_t number) {
  Operation& operation = operations_[number];
  if (!lives(endpoint.plan->node) || operation.completions > 0) return;
  ses::Ses& ses = world_.fep(endpoint.plan->node).ses();
  operation.cancelled = true;  // it may complete before the call returns
  const Result<void> result =
      ses.cancel(*endpoint.context, context_pointer(number + 1), world_.now());
  if (!result.ok()) operation.cancelled = false;  // too late
  world_.posted(endpoint.plan->node);
}

// A send that waits for its target to read it, and whose PDC has closed in a shortage, does not
// notice that another process has come to that address in the meantime. It waits as for a target
// that lives, until it is cancelled.
void Run::cancel_sends_to_successor() {
  for (std::size_t i = 0; i < operations_.size(); ++i) {
    const OperationPlan& plan = plan_.operations[i];
    const bool send = plan.flavour == Flavour::Send || plan.flavour == Flavour::TaggedSend;
    const bool to_successor = context_of(plan.to).node == plan_.killed_node;
    if (!send || !to_successor || !operations_[i].posted) continue;
    cancel_operation(endpoints_[static_cast<std::size_t>(plan.from)], i);
  }
}

void Run::post_receive(Endpoint& endpoint, Duration retry) {
  if (!lives(endpoint.plan->node)) return;
  const std::size_t number = endpoint.receives[endpoint.next_receive];
  const ReceivePlan& plan = plan_.receives[number];
  Receive& receive = receives_[number];
  const auto slices = cut(receive.memory->data(), plan.capacity, plan.slices, Rng(number));
  if (plan_.looks && !plan.multi && !receive.claimed) look(endpoint, number);
  ses::ReceiveOp op;
  op.local = slices;
  op.tagged = plan.tagged;
  op.tag = plan.tag;
  op.ignore = plan.ignore;
  if (plan.source >= 0) op.source = &endpoints_[static_cast<std::size_t>(plan.source)].peer;
  op.multi = plan.multi;
  op.min_free = plan.min_free;
  op.claim = receive.claimed;
  op.context = context_pointer(kReceiveTag + number);
  op.user_flags = number * 5;
  receive.posted = true;
  const Result<void> result =
      world_.fep(endpoint.plan->node).ses().receive(*endpoint.context, op, world_.now());
  world_.posted(endpoint.plan->node);
  if (!result.ok()) {
    receive.posted = false;
    // The claimed message has come to nothing since.
    const bool gone = result.error() == Error::NotFound && some_receives_stay();
    if (gone) receive.claimed = false;
    if (result.error() != Error::Again && !gone) {
      return fail("receive " + std::to_string(number) + " was refused");
    }
    world_.after(retry, [this, &endpoint, retry] {
      post_receive(endpoint, std::min<Duration>(retry * 2, milliseconds(5)));
    });
    return;
  }
  if (++endpoint.next_receive == endpoint.receives.size()) return;
  world_.after(plan_.receives[endpoint.receives[endpoint.next_receive]].post_after,
               [this, &endpoint] { post_receive(endpoint, microseconds(20)); });
}

// From a stranger: noise, or a spoiled copy of a packet on the wire (a request names a job and a
// process that do not exist, since a stranger's true copy of a SYN packet is a legitimate request).
// From a peer's address: noise only. Nothing of it may change anything.
void Run::send_hostile_packet() {
  SimPacket packet = last_packet_;
  packet.plain.clear();
  const bool copy = rng_.chance(0.5) && !packet.bytes.empty();
  if (copy) {
    const auto parsed = wire::parse(packet.bytes);
    constexpr std::size_t kJobIdAt = 5;  // in a SES request
    constexpr std::size_t kPidAt = 8;
    const bool request = parsed && std::holds_alternative<wire::RequestHeader>(parsed->header);
    const bool datagram = parsed && std::holds_alternative<wire::UudHeader>(parsed->header);
    const bool rudi = parsed && std::holds_alternative<wire::RudiHeader>(parsed->header);
    const std::size_t ses_at = datagram ? sizeof(wire::PdsUud)
                               : rudi   ? sizeof(wire::PdsRudi)
                                        : sizeof(wire::PdsRequest);
    if ((request || datagram || rudi) && packet.bytes.size() > ses_at + kPidAt) {
      packet.bytes[ses_at + kJobIdAt] = std::byte{0xBA};
      packet.bytes[ses_at + kPidAt] = std::byte{0x0F};
    }
    if (rng_.chance(0.3)) packet.bytes.resize(rng_.below(packet.bytes.size()));
    if (rng_.chance(0.3) && packet.bytes.size() >= sizeof(wire::PdsRequest)) {
      packet.bytes[rng_.below(sizeof(wire::PdsRequest))] ^=
          static_cast<std::byte>(rng_.between(1, 255));
    }
  } else {
    packet.bytes.resize(rng_.below(200));
    for (std::byte& b : packet.bytes) b = static_cast<std::byte>(rng_.next());
    if (!packet.bytes.empty()) packet.bytes[0] = static_cast<std::byte>(rng_.below(15) << 3);
  }
  const int to = static_cast<int>(rng_.below(static_cast<std::uint64_t>(plan_.nodes)));
  const int friendly = static_cast<int>(rng_.below(static_cast<std::uint64_t>(plan_.nodes)));
  const bool stranger = copy || rng_.chance(0.5);
  packet.source = stranger ? address_of(99, static_cast<std::uint8_t>(rng_.between(1, 3)))
                           : address_of(static_cast<std::uint8_t>(friendly), 1);
  world_.inject(std::move(packet), to, Duration(0));
}

// Keeps one of all packets so far in each of a few places. Not datagrams and RUDI, which have no
// protection against replay (TSS-50).
void Run::capture(const Sighting& sighting) {
  constexpr std::size_t kPlaces = 64;
  const auto type =
      static_cast<wire::PdsType>(std::to_integer<unsigned>(sighting.packet->plain.at(0)) >> 3);
  const bool replayable = type == wire::PdsType::UudReq || type == wire::PdsType::RudiReq ||
                          type == wire::PdsType::RudiResp;
  if (replayable || sighting.to < 0) return;
  ++captures_;
  if (captured_.size() < kPlaces) {
    captured_.emplace_back(sighting.to, *sighting.packet);
  } else if (const auto at = replay_rng_.below(captures_); at < kPlaces) {
    captured_[at] = {sighting.to, *sighting.packet};
  }
}

// TSS-47, TSS-49: an authentic packet comes again, from the address of its sender.
void Run::replay() {
  if (captured_.empty()) return;
  const auto& [to, packet] = captured_[replay_rng_.below(captured_.size())];
  world_.inject(packet, to, Duration(0));
}

void Run::cancel_receives() {
  cancelling_ = true;
  for (std::size_t i = 0; i < receives_.size(); ++i) {
    const ContextPlan& context = context_of(plan_.receives[i].context);
    if (!receives_[i].posted || receives_[i].completions > 0 || !lives(context.node)) continue;
    Endpoint& endpoint = endpoints_[static_cast<std::size_t>(plan_.receives[i].context)];
    // NotFound: a message that a dead peer began has it; it completes when the PDC ends.
    (void)world_.fep(context.node)
        .ses()
        .cancel(*endpoint.context, context_pointer(kReceiveTag + i), world_.now());
  }
}

// Receives without a datagram, and datagrams without a receive, end with their context.
void Run::close_datagram_contexts() {
  for (Endpoint& endpoint : endpoints_) {
    if (endpoint.plan->mode != DeliveryMode::Uud || !lives(endpoint.plan->node)) continue;
    world_.fep(endpoint.plan->node).ses().close_context(*endpoint.context, world_.now());
    endpoint.context = nullptr;
  }
}

// Waits until nothing is left anywhere. After a death, or where sends are cancelled, the receives
// that found no message are cancelled, once what was sent is there.
void Run::finish() {
  if (some_receives_stay()) {
    world_.run_for(seconds(1));
    cancel_receives();
  }
  close_datagram_contexts();
  if (!world_.run_until([this] { return all_done() && at_rest(); }, seconds(60))) {
    fail("not at rest: " + (world_.complaint().empty() ? unfinished() : world_.complaint()));
  }
}

void Run::close_all() {
  for (int node = 0; node < plan_.nodes; ++node) {
    if (lives(node)) world_.fep(node).begin_close(world_.now());
    if (lives(node)) world_.posted(node);
  }
  const auto closed = [this] {
    for (int node = 0; node < plan_.nodes; ++node) {
      if (lives(node) && !world_.fep(node).closed()) return false;
    }
    return true;
  };
  if (!world_.run_until(closed, seconds(30))) fail("PDCs do not close " + world_.complaint());
  if (failure_.empty() && !at_rest()) fail("not at rest after close: " + unfinished());
}

Outcome Run::execute() {
  schedule();
  const Time begin = world_.now();
  Duration limit = plan_.faults_end + seconds(120);
  if (plan_.killed_node >= 0 || plan_.behind_black_hole >= 0)
    limit += seconds(plan_.operations.size());
  const auto over = [this] { return !failure_.empty() || all_done(); };
  bool done = world_.run_until(over, limit);
  if (!done && plan_.killed_node >= 0 && plan_.returns_after > Duration(0)) {
    cancel_sends_to_successor();
    done = world_.run_until(over, seconds(60));
  }
  if (!done) {
    fail("not finished in time: " +
         (world_.complaint().empty() ? unfinished() : world_.complaint()));
  }
  Outcome outcome;
  outcome.virtual_time = world_.now() - begin;
  if (failure_.empty()) finish();
  if (failure_.empty()) check_memory();
  if (failure_.empty() && !closing_.complaint().empty()) fail(closing_.complaint());
  if (failure_.empty()) check_fetched();
  if (failure_.empty()) check_order();
  if (failure_.empty()) check_order_in_buffers();
  if (failure_.empty()) close_all();
  if (failure_.empty() && !monitor_.complaint().empty()) fail(monitor_.complaint());
  outcome.failure = failure_;
  outcome.trace_hash = world_.trace_hash();
  outcome.packets = world_.packets_delivered();
  for (int node = 0; node < plan_.nodes; ++node) {
    const auto pds = world_.fep(node).stats().pds;
    outcome.retransmissions +=
        pds.rto_retransmissions + pds.nack_retransmissions + pds.inferred_loss_retransmissions;
  }
  return outcome;
}

Outcome run_plan(const Plan& plan, bool verbose) { return Run(plan, verbose).execute(); }

Outcome run_seed(std::uint64_t seed, bool verbose) {
  const Plan plan = draw_plan(seed);
  if (verbose) std::printf("%s\n", plan.describe().c_str());
  Outcome outcome = run_plan(plan, verbose);
  if (!outcome.failure.empty()) {
    outcome.failure += "\n" + plan.describe() + "\nrun again: uet_simulate --verbose --seed " +
                       std::to_string(seed);
  }
  return outcome;
}

}  // namespace uet::sim
