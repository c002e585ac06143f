// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// From a seed to a whole configuration. Every choice is such that all operations must succeed (or
// fail in the one way that their flavour names), so that the oracles need no exceptions.
#include <algorithm>
#include <array>
#include <map>
#include <sstream>
#include <tuple>

#include "sim/sim_frame.h"
#include "sim/workload.h"

namespace uet::sim {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::uint64_t kAllBits = ~std::uint64_t{0};
constexpr std::uint64_t kClassBits = 0xFFFFFFFF;  // of a tag: what a class receive ignores
constexpr std::uint32_t kSlotBytes = 3000;
constexpr std::uint32_t kGap = 16;  // guard bytes between places in a region

template <class T, std::size_t N>
T pick(Rng& rng, const std::array<T, N>& from) {
  return from[rng.below(N)];
}

Duration up_to(Rng& rng, Duration most) {
  return Duration(
      static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(most.count()) + 1)));
}

void draw_pds(Plan& plan, Rng& rng) {
  pds::Parameters& pds = plan.fep.pds;
  pds.default_mpr = static_cast<std::uint8_t>(rng.between(1, 8));
  pds.ack_per_packet = rng.chance(0.1);
  pds.ack_on_ecn = rng.chance(0.8);
  pds.ack_gen_trigger_bytes = pick<std::uint32_t, 3>(rng, {4096, 16 * 1024, 32 * 1024});
  pds.rto_init = pick<Duration, 4>(
      rng, {microseconds(500), milliseconds(1), milliseconds(5), milliseconds(20)});
  pds.rto_cap = pick<Duration, 2>(rng, {milliseconds(50), seconds(1)});
  pds.max_rto_retransmissions = pds::kUnlimited;
  pds.nack_retransmission_time = pick<Duration, 2>(rng, {microseconds(100), milliseconds(1)});
  if (rng.chance(0.3)) pds.pdcs_per_destination = rng.between(1, 3);
  if (rng.chance(0.2)) pds.receiver_infers_loss_psns = pick<std::uint32_t, 2>(rng, {3, 64});
  pds.out_of_order_threshold = pick<std::uint32_t, 3>(rng, {3, 16, 64});
  pds.initiator_idle_time =
      pick<Duration, 4>(rng, {microseconds(300), milliseconds(5), milliseconds(100), seconds(1)});
  pds.keepalive_time = std::min<Duration>(pds.initiator_idle_time, milliseconds(500));
  pds.target_idle_time = pick<Duration, 2>(rng, {milliseconds(200), seconds(3)});
  pds.tombstone_time = pick<Duration, 2>(rng, {milliseconds(100), seconds(2)});
  if (rng.chance(0.15)) pds.start_psn = static_cast<std::uint32_t>(0 - rng.below(200));
}

void draw_fep(Plan& plan, Rng& rng) {
  plan.fep.ses.payload_mtu = pick<std::uint32_t, 4>(rng, {1024, 2048, 4096, 8192});
  const std::uint32_t mtu = plan.fep.ses.payload_mtu;
  draw_pds(plan, rng);
  cms::Parameters& cms = plan.fep.cms;
  cms.algorithm = rng.chance(0.8) ? cms::Algorithm::Nscc : cms::Algorithm::None;
  if (rng.chance(0.25)) {
    cms.algorithm = rng.chance(0.5) ? cms::Algorithm::Rccc : cms::Algorithm::Both;
  }
  cms.paths = rng.chance(0.5) ? cms::PathPolicy::Single : cms::PathPolicy::Oblivious;
  cms.path_count = static_cast<std::uint16_t>(rng.between(1, 16));
  cms.mtu_bytes = cms::nominal_packet_bytes(mtu + 16 + 44);
  cms.fixed_window_bytes = rng.between(1, 64) * cms.mtu_bytes;
  cms.max_window_bytes = rng.between(4, 256) * cms.mtu_bytes;
  ses::Parameters& ses = plan.fep.ses;
  ses.unexpected_bytes_per_context = 1 << 20;
  ses.unexpected_bytes_per_peer = rng.chance(0.5) ? 1 << 20 : 8 * mtu;
  ses.rendezvous_threshold_bytes =
      pick<std::uint64_t, 4>(rng, {0, mtu, 4 * std::uint64_t{mtu}, 64 * 1024});
  ses.eager_bytes = pick<std::size_t, 4>(rng, {0, mtu, 16 * 1024, 1 << 20});
  ses.pulls = rng.chance(0.5) ? 64 : rng.between(1, 3);
  plan.fep.memory_regions = 16;
  plan.fep.packets = 2048;
  plan.fep.buffers = 1024;
  ses.posted_receives = 512;
  ses.tx_messages = ses.rx_messages = 256;
  ses.return_messages = 256;
  if (rng.chance(0.3)) {  // so little that everything runs short now and then
    plan.fep.packets = rng.between(32, 96);
    plan.fep.buffers = rng.between(8, 64);
    ses.tx_messages = rng.between(2, 16);
    ses.rx_messages = rng.between(4, 16);
    ses.return_messages = rng.between(1, 8);
    ses.outstanding_reads_bytes = rng.between(1, 4) * mtu;
    ses.unexpected_bytes_per_context = rng.between(2, 16) * mtu;
  }
  plan.fep.pds.pdc_count = 64;
  plan.fep.pds.reserved_target_pdcs = 16;
  if (rng.chance(0.25)) {
    plan.fep.pds.pdc_count = rng.between(4, 10);
    plan.fep.pds.reserved_target_pdcs = plan.fep.pds.pdc_count / 2;
  }
  if (rng.chance(0.2)) plan.fep.pds.ccc_count = rng.between(4, 10);
  if (rng.chance(0.2)) plan.fep.pds.bitmap_count = rng.between(4, 10);
}

void draw_network(Plan& plan, Rng& rng) {
  LinkConfig& link = plan.link;
  link.rate_bps =
      pick<std::uint64_t, 4>(rng, {1'000'000'000, 10'000'000'000, 40'000'000'000, 100'000'000'000});
  link.latency = pick<Duration, 4>(
      rng, {microseconds(1), microseconds(10), microseconds(100), milliseconds(2)});
  if (rng.chance(0.3)) link.jitter = up_to(rng, link.latency * 2);
  link.queue_bytes = pick<std::uint64_t, 3>(rng, {64 * 1024, 256 * 1024, 4 << 20});
  if (rng.chance(0.5)) link.ecn_threshold_bytes = link.queue_bytes / 4;
  link.reorder_delay = up_to(rng, microseconds(300));
  plan.faults_end = milliseconds(rng.between(1, 60));
  if (rng.chance(0.75)) {
    if (rng.chance(0.2)) link.trimming = pick<double, 3>(rng, {0.001, 0.01, 0.1});
    if (rng.chance(0.7)) link.loss = pick<double, 4>(rng, {0.001, 0.01, 0.05, 0.2});
    if (rng.chance(0.5)) link.duplication = pick<double, 3>(rng, {0.01, 0.05, 0.3});
    if (rng.chance(0.5)) link.reordering = pick<double, 3>(rng, {0.01, 0.1, 0.5});
    if (rng.chance(0.3)) link.corruption = pick<double, 2>(rng, {0.01, 0.05});
  }
  if (rng.chance(0.25)) {
    const auto count = rng.between(1, 3);
    for (std::uint64_t i = 0; i < count; ++i) {
      PartitionPlan cut;
      cut.from = static_cast<int>(rng.below(static_cast<std::uint64_t>(plan.nodes)));
      cut.to = static_cast<int>(rng.below(static_cast<std::uint64_t>(plan.nodes)));
      cut.start = up_to(rng, plan.faults_end);
      cut.end = cut.start + up_to(rng, milliseconds(30));
      plan.faults_end = std::max(plan.faults_end, cut.end);
      plan.partitions.push_back(cut);
    }
  }
  if (rng.chance(0.2)) plan.nic_tx_queue = rng.between(2, 32);
  if (rng.chance(0.2)) plan.nic_rx_queue = rng.between(32, 128);
  if (rng.chance(0.25)) {
    plan.progress_interval =
        pick<Duration, 3>(rng, {microseconds(20), microseconds(200), milliseconds(3)});
  }
  if (rng.chance(0.25)) plan.hostile_packets = static_cast<int>(rng.between(1, 200));
  if (rng.chance(0.08)) {
    plan.killed_node = static_cast<int>(rng.below(static_cast<std::uint64_t>(plan.nodes)));
    plan.kill_at = up_to(rng, milliseconds(5));
    if (rng.chance(0.5)) plan.returns_after = up_to(rng, milliseconds(100));
    plan.fep.pds.max_rto_retransmissions = 10;
    plan.fep.pds.rto_cap = milliseconds(50);
    plan.partitions.clear();
    plan.link.loss = std::min(plan.link.loss, 0.01);
  }
}

void draw_contexts(Plan& plan, Rng& rng) {
  const auto style = rng.below(3);  // all RUD, all ROD, mixed
  const std::uint64_t most = rng.chance(0.3) ? 1 : 2;
  for (int node = 0; node < plan.nodes; ++node) {
    const auto count = rng.between(1, most);
    for (std::uint64_t i = 0; i < count; ++i) {
      ContextPlan context;
      context.node = node;
      const bool rod = style == 1 || (style == 2 && rng.chance(0.5));
      context.mode = rod ? DeliveryMode::Rod : DeliveryMode::Rud;
      context.resource_index = static_cast<std::uint16_t>(1 + i);
      context.initiator =
          static_cast<std::uint32_t>(100 * (node + 1)) + static_cast<std::uint32_t>(i);
      plan.contexts.push_back(context);
    }
  }
}

// Slices behind the first may each need a buffer, of which unexpected messages leave a 16th to
// operations: more would wait for receives that the plan posts later.
std::uint32_t draw_slices(const Plan& plan, Rng& rng) {
  const std::uint64_t most = std::clamp<std::uint64_t>(1 + (plan.fep.buffers + 8) / 16, 2, 5);
  return rng.chance(0.3) ? static_cast<std::uint32_t>(rng.between(2, most)) : 1;
}

std::uint32_t draw_length(const Plan& plan, Rng& rng, std::uint32_t largest) {
  const std::uint32_t mtu = plan.fep.ses.payload_mtu;
  std::uint64_t length = 0;
  switch (rng.below(4)) {
    case 0:
      length = pick<std::uint32_t, 6>(rng, {0, 1, 7, 8, 16, 64});
      break;
    case 1:
      length = rng.between(1, 4) * mtu + rng.below(3) - 1;
      break;
    case 2:
      length = rng.between(1, 2 * mtu);
      break;
    default:
      length = rng.between(0, largest);
  }
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(length, std::max(largest, 4 * mtu)));
}

Flavour draw_flavour(Rng& rng, bool rod) {
  const auto dice = rng.below(100);
  if (dice < 28) return Flavour::Send;
  if (dice < 52) return Flavour::TaggedSend;
  if (dice < 70) return Flavour::Write;
  if (dice < 84) return Flavour::Read;
  if (dice < 96 && rod) return rng.chance(0.6) ? Flavour::SlotWrite : Flavour::SlotRead;
  if (dice < 96) return Flavour::Write;
  return pick<Flavour, 4>(
      rng, {Flavour::BadKey, Flavour::BadRight, Flavour::BadBounds, Flavour::BadIndex});
}

// Where in the target's window the operation lands; grows the window.
void draw_place(Plan& plan, OperationPlan& op, std::vector<std::uint64_t>& used,
                std::map<std::pair<int, int>, std::uint64_t>& slots, Rng& rng) {
  const int node = plan.contexts[static_cast<std::size_t>(op.to)].node;
  std::uint64_t& next = used[static_cast<std::size_t>(node)];
  switch (op.flavour) {
    case Flavour::Write:
      op.offset = next + kGap;
      next += op.length + 2 * kGap;
      break;
    case Flavour::SlotWrite:
    case Flavour::SlotRead: {
      op.length = kSlotBytes;
      const auto [slot, fresh] = slots.try_emplace({op.from, node}, next + kGap);
      if (fresh) next += kSlotBytes + 2 * kGap;
      op.offset = slot->second;
      break;
    }
    case Flavour::Read:
      op.offset = rng.below(plan.library_bytes - op.length + 1);
      break;
    default:
      break;
  }
}

void draw_operations(Plan& plan, Rng& rng) {
  const std::uint32_t largest = pick<std::uint32_t, 3>(rng, {4 * 1024, 40 * 1024, 300 * 1024});
  const std::uint64_t count = largest > 100'000 ? rng.between(3, 12) : rng.between(5, 60);
  const Duration pace =
      pick<Duration, 4>(rng, {Duration(0), microseconds(5), microseconds(300), milliseconds(4)});
  const auto contexts = plan.contexts.size();
  std::vector<std::uint64_t> used(static_cast<std::size_t>(plan.nodes), 0);
  std::map<std::pair<int, int>, std::uint64_t> slots;
  const bool to_self = rng.chance(0.15);
  // A fence holds what goes to one peer; the order promised is that of all to one node.
  const bool one_each = plan.contexts.size() == static_cast<std::size_t>(plan.nodes);
  const double fences = one_each ? pick<double, 3>(rng, {0, 0.05, 0.3}) : 0;
  plan.library_bytes = std::max<std::uint32_t>(largest, 64 * 1024);
  for (std::uint64_t i = 0; i < count; ++i) {
    OperationPlan op;
    op.from = static_cast<int>(rng.below(contexts));
    const ContextPlan& from = plan.contexts[static_cast<std::size_t>(op.from)];
    do {
      op.to = static_cast<int>(rng.below(contexts));
    } while (!to_self && plan.contexts[static_cast<std::size_t>(op.to)].node == from.node);
    op.flavour = draw_flavour(rng, from.mode == DeliveryMode::Rod);
    op.length = draw_length(plan, rng, largest);
    if (op.flavour >= Flavour::BadKey) op.length = std::max<std::uint32_t>(op.length, 1);
    const bool send = op.flavour == Flavour::Send || op.flavour == Flavour::TaggedSend;
    if (op.flavour == Flavour::TaggedSend) op.tag = rng.below(3) << 32 | rng.below(3);
    op.with_data =
        (send && op.length < 8) || ((send || op.flavour == Flavour::Write) && rng.chance(0.4));
    op.inject = (send || op.flavour == Flavour::Write) && op.length <= 256 && rng.chance(0.3);
    op.delivery_complete = send && rng.chance(0.15);
    op.fence = rng.chance(fences);
    if (send && plan.cancels && rng.chance(0.3)) op.cancel_after = up_to(rng, milliseconds(2));
    op.slices = draw_slices(plan, rng);
    op.post_after = up_to(rng, pace);
    draw_place(plan, op, used, slots, rng);
    plan.operations.push_back(op);
  }
  plan.window_bytes = *std::max_element(used.begin(), used.end()) + 4096;
}

// One receive for each message. The sets of messages that receives accept are nested, and the
// narrow ones are posted first, so that each message finds one whatever order they arrive in.
void draw_receives(Plan& plan, Rng& rng) {
  struct Wanted {
    int level;  // 0 one peer and exact tag, 1 exact tag, 2 class of tags, 3 anything
    ReceivePlan receive;
  };
  std::vector<Wanted> wanted;
  std::map<std::pair<int, bool>, std::uint32_t> longest;
  for (const OperationPlan& op : plan.operations) {
    const bool tagged = op.flavour == Flavour::TaggedSend;
    if (!tagged && op.flavour != Flavour::Send) continue;
    std::uint32_t& most = longest[{op.to, tagged}];
    most = std::max(most, op.length);
    Wanted w;
    w.level = static_cast<int>(rng.below(4));
    if (w.level == 0 && !plan.directed_receive) w.level = 1;
    w.receive.context = op.to;
    w.receive.tagged = tagged;
    w.receive.tag = w.level == 3 ? rng.next() : op.tag;
    w.receive.ignore = w.level == 3 ? kAllBits : w.level == 2 ? kClassBits : 0;
    w.receive.source = w.level == 0 ? op.from : -1;
    wanted.push_back(w);
  }
  const bool truncating = rng.chance(0.4);
  const Duration late =
      pick<Duration, 4>(rng, {Duration(0), Duration(0), milliseconds(1), milliseconds(20)});
  const Duration pace = pick<Duration, 3>(rng, {Duration(0), microseconds(50), milliseconds(1)});
  for (Wanted& w : wanted) {
    ReceivePlan& r = w.receive;
    const std::uint32_t most = std::max<std::uint32_t>(longest[{r.context, r.tagged}], 8);
    r.capacity = most;
    if (truncating && rng.chance(0.3))
      r.capacity = static_cast<std::uint32_t>(rng.between(8, most));
    r.slices = rng.chance(0.2) ? static_cast<std::uint32_t>(rng.between(2, 4)) : 1;
    r.post_after = up_to(rng, pace);
  }
  std::stable_sort(wanted.begin(), wanted.end(), [](const Wanted& a, const Wanted& b) {
    return std::tie(a.receive.context, a.level) < std::tie(b.receive.context, b.level);
  });
  int context = -1;
  for (Wanted& w : wanted) {
    if (w.receive.context != context) w.receive.post_after += up_to(rng, late);
    context = w.receive.context;
    plan.receives.push_back(w.receive);
  }
}

// Datagrams between endpoints of their own, one per node. Drawn last: what else the seed says
// stays.
void draw_datagrams(Plan& plan, Rng& rng) {
  if (!rng.chance(0.3)) return;
  const int first = static_cast<int>(plan.contexts.size());
  for (int node = 0; node < plan.nodes; ++node) {
    plan.contexts.push_back({.node = node,
                             .mode = DeliveryMode::Uud,
                             .resource_index = 3,
                             .initiator = static_cast<std::uint32_t>(100 * (node + 1) + 50)});
  }
  const auto nodes = static_cast<std::uint64_t>(plan.nodes);
  const std::uint32_t mtu = plan.fep.ses.payload_mtu;
  const Duration pace = pick<Duration, 3>(rng, {Duration(0), microseconds(5), milliseconds(1)});
  for (std::uint64_t count = rng.between(1, 60); count > 0; --count) {
    OperationPlan op;
    op.flavour = Flavour::Datagram;
    op.from = first + static_cast<int>(rng.below(nodes));
    op.to = first + static_cast<int>(rng.below(nodes));
    op.length = static_cast<std::uint32_t>(rng.chance(0.2) ? mtu : rng.below(mtu + 1));
    op.with_data = op.length < 8 || rng.chance(0.4);
    op.inject = op.length <= 256 && rng.chance(0.5);
    op.slices = draw_slices(plan, rng);
    op.post_after = up_to(rng, pace);
    plan.operations.push_back(op);
    if (rng.chance(0.1)) continue;  // without a receive of its own
    ReceivePlan receive;
    receive.context = op.to;
    receive.capacity = rng.chance(0.1) ? static_cast<std::uint32_t>(rng.between(8, mtu)) : mtu;
    receive.post_after = up_to(rng, pace);
    plan.receives.push_back(receive);
  }
}

// Atomics on counters behind the windows. Drawn last as well.
void draw_atomics(Plan& plan, Rng& rng) {
  constexpr std::uint64_t kCounters = 256;
  constexpr std::uint64_t kWord = sizeof(std::uint64_t);
  if (!rng.chance(0.5)) return;
  const std::uint64_t counters_at = (plan.window_bytes + kWord - 1) / kWord * kWord;
  const std::uint64_t swaps_at = counters_at + kCounters * kWord;
  plan.window_bytes = swaps_at + plan.contexts.size() * kWord + kGap;
  std::vector<int> reliable;
  for (std::size_t i = 0; i < plan.contexts.size(); ++i) {
    if (plan.contexts[i].mode != DeliveryMode::Uud) reliable.push_back(static_cast<int>(i));
  }
  const auto node_of = [&](int context) {
    return plan.contexts[static_cast<std::size_t>(context)].node;
  };
  const Duration pace = pick<Duration, 3>(rng, {Duration(0), microseconds(5), milliseconds(1)});
  const std::uint64_t most = std::min<std::uint64_t>(plan.fep.ses.payload_mtu / kWord, kCounters);
  for (std::uint64_t count = rng.between(1, 60); count > 0; --count) {
    OperationPlan op;
    op.from = reliable[rng.below(reliable.size())];
    do {
      op.to = reliable[rng.below(reliable.size())];
    } while (node_of(op.to) == node_of(op.from));
    const bool rod = plan.contexts[static_cast<std::size_t>(op.from)].mode == DeliveryMode::Rod;
    op.flavour = rng.chance(0.5) ? Flavour::FetchAdd : Flavour::Add;
    if (rod && rng.chance(0.4)) op.flavour = Flavour::Swap;
    const std::uint64_t elements =
        op.flavour == Flavour::Swap
            ? 1
            : std::min(most, pick<std::uint64_t, 6>(rng, {1, 1, 2, 9, 10, kCounters}));
    op.length = static_cast<std::uint32_t>(elements * kWord);
    op.offset = op.flavour == Flavour::Swap
                    ? swaps_at + static_cast<std::uint64_t>(op.from) * kWord
                    : counters_at + rng.below(kCounters - elements + 1) * kWord;
    op.operand = rng.next() | 1;
    op.inject = op.length <= 256 && rng.chance(0.3);
    op.delivery_complete = rng.chance(0.1);
    op.post_after = up_to(rng, pace);
    plan.operations.push_back(op);
  }
}

// Some contexts receive their messages in multi-receive buffers, as many as there are messages, and
// each large enough for the longest. Drawn last as well.
void draw_multi_receives(Plan& plan, Rng& rng) {
  plan.looks = rng.chance(0.2);
  if (!rng.chance(0.25)) return;
  std::map<std::pair<int, bool>, std::uint32_t> longest;
  for (const OperationPlan& op : plan.operations) {
    if (op.flavour != Flavour::Send && op.flavour != Flavour::TaggedSend) continue;
    std::uint32_t& most = longest[{op.to, op.flavour == Flavour::TaggedSend}];
    most = std::max({most, op.length, std::uint32_t{8}});
  }
  for (const auto& [kind, most] : longest) {
    if (rng.chance(0.3)) continue;
    plan.multi_receives = true;
    const auto messages = static_cast<std::uint32_t>(rng.between(1, 6));
    const auto min_free = pick<std::uint32_t, 3>(rng, {0, most / 2, most});
    for (ReceivePlan& receive : plan.receives) {
      if (std::pair(receive.context, receive.tagged) != kind) continue;
      receive.multi = true;
      receive.capacity = most * messages;
      receive.min_free = min_free;
      receive.tag = 0;
      receive.ignore = kAllBits;
      receive.source = -1;
    }
  }
}

// Some FEPs answer NO_MATCH where others send a NACK; no initiator gives up.
void draw_refusals(Plan& plan, Rng& rng) {
  ses::Parameters& ses = plan.fep.ses;
  ses.short_headers = rng.chance(0.5);
  ses.deferrable = rng.chance(0.3);
  ses.no_match = rng.chance(0.25);
  ses.retries = UINT16_MAX;
  ses.retry_wait = pick<Duration, 2>(rng, {microseconds(50), milliseconds(1)});
  ses.retry_wait_most = milliseconds(20);
  if (ses.no_match && rng.chance(0.5)) {
    ses.unexpected_bytes_per_context = rng.between(0, 4) * ses.payload_mtu;
  }
  if (!ses.no_match) return;
  // A message that one context of a node refuses is not ordered with messages that another context
  // takes. Therefore all operations of a sender on one place go through the same context.
  std::map<std::pair<int, int>, int> through;
  for (OperationPlan& op : plan.operations) {
    const bool place = op.flavour == Flavour::SlotWrite || op.flavour == Flavour::SlotRead ||
                       op.flavour == Flavour::Swap;
    if (!place) continue;
    const int node = plan.contexts[static_cast<std::size_t>(op.to)].node;
    op.to = through.try_emplace({op.from, node}, op.to).first->second;
  }
}

// How packets are carried. Where damage would not be noticed there is none.
void draw_framing(Plan& plan, Rng& rng) {
  if (rng.chance(0.4)) return;
  wire::FrameFormat& format = plan.framing.emplace();
  if (rng.chance(0.5)) format.encapsulation = wire::Encapsulation::NativeIp;
  format.crc = rng.chance(0.6);
  if (!finds_damage(format)) plan.link.corruption = 0;
}

// Configures one node like another implementation.
void draw_configuration(ConfigurationPlan& configuration, Rng& rng) {
  pds::Parameters& pds = configuration.fep.pds;
  pds.default_mpr = pick<std::uint8_t, 4>(rng, {1, 2, 8, 32});
  pds.ack_per_packet = rng.chance(0.3);
  pds.ack_gen_trigger_bytes =
      pick<std::uint32_t, 3>(rng, {4096, 16 * 1024, cms::kDefaultAckTrigger});
  pds.rto_init = pick<Duration, 3>(rng, {microseconds(500), milliseconds(2), milliseconds(20)});
  configuration.fep.cms.ack_gen_trigger_bytes = pds.ack_gen_trigger_bytes;
  configuration.fep.cms.algorithm = rng.chance(0.5) ? cms::Algorithm::Nscc : cms::Algorithm::None;
  ses::Parameters& ses = configuration.fep.ses;
  const std::uint64_t mtu = ses.payload_mtu;
  ses.rendezvous_threshold_bytes = pick<std::uint64_t, 3>(rng, {0, 3 * mtu, UINT64_MAX});
  ses.eager_bytes = pick<std::size_t, 3>(rng, {0, mtu, 1 << 20});
  ses.deferrable_threshold_bytes = pick<std::uint64_t, 3>(rng, {1, mtu + 1, 64 * 1024});
  ses.deferrable = rng.chance(0.5);
  ses.short_headers = rng.chance(0.5);
  configuration.optimized = rng.chance(0.5);
  configuration.ai_full = rng.chance(0.7);  // the profiles contain each other (SES-159)
  configuration.hpc = configuration.ai_full && rng.chance(0.6);
  ses.rendezvous = configuration.hpc;
  configuration.spare_mtu_bytes = static_cast<std::uint32_t>(rng.below(2000));
}

void draw_configurations(Plan& plan, Rng& rng) {
  ConfigurationPlan configuration;
  configuration.fep = plan.fep;
  configuration.hpc = plan.hpc;
  configuration.optimized = plan.fep.ses.short_headers;
  plan.configurations.assign(static_cast<std::size_t>(plan.nodes), configuration);
  if (!rng.chance(0.5)) return;
  for (ConfigurationPlan& each : plan.configurations) {
    if (rng.chance(0.7)) draw_configuration(each, rng);
    if (!plan.shipped_limits) continue;
    each.fep.cms.ack_gen_trigger_bytes = plan.fep.cms.ack_gen_trigger_bytes;
    each.fep.pds.ack_gen_trigger_bytes = plan.fep.pds.ack_gen_trigger_bytes;
    each.fep.pds.rto_init = plan.fep.pds.rto_init;
    each.fep.pds.max_rto_retransmissions = plan.fep.pds.max_rto_retransmissions;
  }
}

// PDS-219: networks where some nodes have an MP_RANGE below 128. Drawn from numbers of their own.
void draw_small_ranges(Plan& plan, Rng rng) {
  if (!rng.chance(0.08)) return;
  plan.fep.pds.mpr_zero_psns = rng.chance(0.5) ? 64 : 1;
  for (ConfigurationPlan& configuration : plan.configurations) {
    configuration.fep.pds.mpr_zero_psns = plan.fep.pds.mpr_zero_psns;
    if (rng.chance(0.5)) configuration.fep.pds.default_mpr = 0;
  }
}

// The limits that the provider ships, and networks that swallow large packets. Drawn from numbers
// of their own: what else the seed says stays.
void draw_limits(Plan& plan, Rng rng) {
  pds::Parameters& pds = plan.fep.pds;
  const bool shipped = rng.chance(0.5);
  const bool hole = rng.chance(0.16);
  const std::uint32_t largest = pick<std::uint32_t, 3>(rng, {200, 700, plan.fep.ses.payload_mtu});
  const bool stays = rng.chance(0.5);
  const auto node = static_cast<int>(rng.below(static_cast<std::uint64_t>(plan.nodes)));
  plan.shipped_limits = shipped;
  if (shipped) pds.ack_gen_trigger_bytes = cms::kDefaultAckTrigger;
  plan.fep.cms.ack_gen_trigger_bytes = pds.ack_gen_trigger_bytes;
  if (plan.killed_node >= 0) return;
  if (shipped) {
    const pds::Parameters defaults;
    pds.max_rto_retransmissions = defaults.max_rto_retransmissions;
    pds.rto_init = defaults.rto_init;
    pds.rto_cap = defaults.rto_cap;
  }
  if (!hole) return;
  plan.link.largest_packet = largest;
  if (!stays) return;
  plan.link.largest_packet_stays = true;
  plan.behind_black_hole = node;
  pds.max_rto_retransmissions = 10;
  pds.rto_cap = milliseconds(50);
}

// Contexts that close while they have work. Drawn from numbers of their own: what else the seed
// says stays.
void draw_closing_contexts(Plan& plan, Rng rng) { plan.closing_contexts = rng.chance(0.25); }

// How long a packet may live: in the queues of its sender and of the link, on its way, and in the
// receiver until that looks.
Duration packet_life(const Plan& plan) {
  const std::uint64_t largest = plan.fep.ses.payload_mtu + 1024;
  const std::uint64_t queued = plan.link.queue_bytes + plan.nic_tx_queue * largest;
  return serialization_time(queued, plan.link.rate_bps) + 2 * plan.link.latency + plan.link.jitter +
         plan.link.reorder_delay + 2 * plan.progress_interval + milliseconds(1);
}

// Transport security in half of the networks, with rotations, epochs and a member that has a wrong
// key for a while (TSS-71). Drawn from numbers of their own: what else the seed says stays.
void draw_security(Plan& plan, Rng rng) {
  if (!rng.chance(0.5)) return;
  SecurityPlan& security = plan.security.emplace();
  security.mode = rng.chance(0.3) ? tss::KeyMode::Direct : tss::KeyMode::Cluster;
  security.ssi = rng.chance(0.5);
  if (rng.chance(0.5)) security.rekey = {0xFFFFFFFF00, 8};  // a key for each 256 packets
  security.check_epoch = rng.chance(0.3);
  security.skew = pick<Duration, 3>(rng, {Duration(0), microseconds(20), milliseconds(1)});
  security.guard = packet_life(plan) + security.skew;
  if (rng.chance(0.6)) {
    security.rotation = security.guard + 3 * security.skew + up_to(rng, milliseconds(5));
  }
  if (rng.chance(0.4)) {
    security.epochs = security.skew + milliseconds(1) + up_to(rng, milliseconds(20));
  }
  if (rng.chance(0.2)) {
    security.misconfigured = static_cast<int>(rng.below(static_cast<std::uint64_t>(plan.nodes)));
    security.wrong_from = up_to(rng, milliseconds(5));
    security.wrong_for = up_to(rng, std::min<Duration>(security.guard, milliseconds(60)) * 3 / 4);
    plan.faults_end = std::max(plan.faults_end, security.wrong_from + security.wrong_for);
  }
  if (plan.framing) plan.framing->crc = false;  // TSS-8
  security.replays = rng.chance(0.4) ? static_cast<int>(rng.between(1, 100)) : 0;
  const std::uint32_t limit = pick<std::uint32_t, 3>(rng, {1U << 30, 200, 5000});  // PDS-80
  for (ConfigurationPlan& configuration : plan.configurations) {
    configuration.fep.pds.random_start = rng.chance(0.3);
    configuration.fep.pds.psn_limit = limit;
    configuration.fep.pds.new_pdc_time = milliseconds(rng.between(200, 2000));
  }
}

// Several rails, some of which carry nothing for a while, which is told early, late or never. Drawn
// from numbers of their own: what else the seed says stays.
void draw_rails(Plan& plan, Rng rng) {
  if (!rng.chance(0.3)) return;
  plan.rails = static_cast<std::uint8_t>(rng.between(2, 4));
  const Duration most = plan.faults_end;
  for (std::uint64_t i = rng.between(1, 4); i > 0; --i) {
    RailPlan lost;
    lost.node = static_cast<int>(rng.below(static_cast<std::uint64_t>(plan.nodes)));
    lost.rail = static_cast<std::uint8_t>(rng.below(plan.rails));
    lost.start = up_to(rng, most);
    lost.end = lost.start + up_to(rng, milliseconds(30));
    lost.told = pick<Duration, 4>(rng, {Duration(0), microseconds(20), milliseconds(1), most});
    lost.gone = plan.link.latency + up_to(rng, milliseconds(1));
    plan.faults_end = std::max(plan.faults_end, lost.end);
    plan.lost_rails.push_back(lost);
  }
}

// Algorithms for research, in a part of the plans without changing what is drawn besides.
void draw_algorithm(Plan& plan, Rng rng) {
  if (!rng.chance(0.3)) return;
  plan.fep.cms.algorithm = rng.chance(0.5) ? cms::Algorithm::Swift : cms::Algorithm::Sird;
}

}  // namespace

Plan draw_plan(std::uint64_t seed) {
  Rng rng(seed * 0x9E3779B97F4A7C15ULL + 0x5EED);
  Plan plan;
  plan.seed = seed;
  plan.nodes = static_cast<int>(rng.between(2, 4));
  plan.relative = rng.chance(0.8);
  plan.directed_receive = rng.chance(0.4);
  plan.provider_keys = rng.chance(0.5);
  plan.hpc = rng.chance(0.85);
  plan.cancels = rng.chance(0.15);
  if (rng.chance(0.2)) plan.refuse_events = 0.3;
  draw_fep(plan, rng);
  draw_algorithm(plan, Rng(seed ^ 0x5317F7));
  draw_network(plan, rng);
  draw_contexts(plan, rng);
  draw_operations(plan, rng);
  draw_receives(plan, rng);
  draw_datagrams(plan, rng);
  draw_atomics(plan, rng);
  plan.fep.ses.rudi = !plan.provider_keys && rng.chance(0.5);
  draw_multi_receives(plan, rng);
  draw_refusals(plan, rng);
  draw_framing(plan, rng);
  draw_limits(plan, Rng(seed ^ 0x11317));
  draw_configurations(plan, rng);
  draw_small_ranges(plan, Rng(seed ^ 0x12819));
  if (rng.chance(0.25)) plan.nasty_sequences = static_cast<int>(rng.between(1, 30));
  draw_security(plan, Rng(seed ^ 0x7551));
  draw_closing_contexts(plan, Rng(seed ^ 0xC105));
  draw_rails(plan, Rng(seed ^ 0x4A115));
  return plan;
}

std::string Plan::describe() const {
  std::ostringstream out;
  out << nodes << " nodes, " << contexts.size() << " contexts, " << operations.size()
      << " operations, " << receives.size() << " receives, payload_mtu " << fep.ses.payload_mtu
      << ", mpr " << int{fep.pds.default_mpr} << ", RTO " << to_us(fep.pds.rto_init)
      << " us, ACK trigger " << fep.pds.ack_gen_trigger_bytes << ", packets " << fep.packets
      << ", buffers " << fep.buffers << ", PDCs " << fep.pds.pdc_count << ", tx/rx/return messages "
      << fep.ses.tx_messages << "/" << fep.ses.rx_messages << "/" << fep.ses.return_messages << ", "
      << link.rate_bps / 1'000'000 << " Mbit/s, latency " << to_us(link.latency) << " us, jitter "
      << to_us(link.jitter) << " us, queue " << link.queue_bytes << ", loss " << link.loss
      << ", trimming " << link.trimming << ", duplication " << link.duplication << ", reordering "
      << link.reordering << ", corruption " << link.corruption << ", partitions "
      << partitions.size() << ", rails " << int{rails} << ", of which lost " << lost_rails.size()
      << ", hostile " << hostile_packets << ", killed node " << killed_node << ", returns after "
      << to_us(returns_after) << " us"
      << (link.largest_packet == UINT32_MAX ? ""
                                            : ", none above " + std::to_string(link.largest_packet))
      << (behind_black_hole < 0 ? ""
                                : " at node " + std::to_string(behind_black_hole) + " for ever")
      << (fep.pds.max_rto_retransmissions == pds::kUnlimited
              ? ""
              : ", retransmissions " + std::to_string(fep.pds.max_rto_retransmissions))
      << ", tx queue " << nic_tx_queue << ", rx queue " << nic_rx_queue << ", progress every "
      << to_us(progress_interval) << " us, refused events " << refuse_events << ", rendezvous "
      << (hpc ? "above " : "off, ") << fep.ses.rendezvous_threshold_bytes << ", "
      << fep.ses.eager_bytes << " kept, " << fep.ses.pulls << " pulls"
      << (cancels ? ", cancels" : "") << (directed_receive ? ", directed" : "")
      << (multi_receives ? ", multi-receives" : "")
      << (closing_contexts ? ", closing contexts" : "") << (looks ? ", looks" : "")
      << ", algorithm " << cms::row_of(fep.cms.algorithm).name << ", CCCs " << fep.pds.ccc_count
      << (fep.ses.rudi ? ", RUDI" : "") << (fep.ses.no_match ? ", NO_MATCH" : "")
      << (fep.ses.short_headers ? ", short headers" : "") << ", nasty sequences "
      << nasty_sequences;
  if (framing) {
    out << (framing->encapsulation == wire::Encapsulation::Udp ? ", UDP frames" : ", native frames")
        << (framing->crc ? " with CRC" : "");
  }
  if (security) {
    out << (security->mode == tss::KeyMode::Direct ? ", TSS direct" : ", TSS cluster")
        << (security->ssi ? " with SSI" : "") << ", guard " << to_us(security->guard)
        << " us, rotation " << to_us(security->rotation) << " us, epochs "
        << to_us(security->epochs) << " us, wrong key at " << security->misconfigured;
  }
  for (const ConfigurationPlan& configuration : configurations) {
    out << "; MPR " << int{configuration.fep.pds.default_mpr}
        << (configuration.fep.pds.default_mpr > 0
                ? ""
                : " for " + std::to_string(configuration.fep.pds.mpr_zero_psns) + " PSNs")
        << ", profile "
        << (configuration.hpc       ? "HPC"
            : configuration.ai_full ? "AI Full"
                                    : "AI Base")
        << ", rendezvous above " << configuration.fep.ses.rendezvous_threshold_bytes;
  }
  return out.str();
}

}  // namespace uet::sim
