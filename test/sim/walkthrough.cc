// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "sim/walkthrough.h"
#include "ses/initiator.h"

#include <cstdio>
#include <sstream>

#include "wire/dissect.h"

namespace uet::sim {
namespace {

using Cast = WalkthroughCast;

int add_node(SimWorld& world, const fep::Config& fep, const FepAddress& address, PdcId first_pdc) {
  NodeConfig node;
  node.fep = fep;
  node.fep.pds.first_pdc_id = first_pdc.value;
  node.nic.address = address;
  node.nic.caps.ip_mtu = Cast::kPayloadMtu + 148;
  return world.add_node(node);
}

ses::ContextConfig context_config(PidOnFep pid, ResourceIndex index, InitiatorId initiator) {
  ses::ContextConfig config;
  config.job = Cast::kJob;
  config.pid_on_fep = pid;
  config.resource_index = index;
  config.initiator = initiator;
  config.generation = Cast::kGeneration;
  return config;
}

}  // namespace

Walkthrough::Walkthrough() : source(Cast::kLength), region(Cast::kLength), world_(1) {
  config_.ses.payload_mtu = Cast::kPayloadMtu;
  config_.pds.start_psn = Cast::kStartPsn.value;
  config_.packets = config_.buffers = 256;
  world_.on_sent = [this](const Sighting& sighting) { sent.push_back(remember(sighting)); };
  const int a = add_node(world_, config_, address_of(0, 11), Cast::kInitiatorPdc);
  const int b = add_node(world_, config_, address_of(1, 11), Cast::kTargetPdc);
  for (std::size_t i = 0; i < source.size(); ++i)
    source[i] = static_cast<std::byte>(i * 13 + i / 97);
  ri::MemoryRegion memory;
  memory.base = region.data();
  memory.length = region.size();
  memory.access = ri::kRemoteWrite;
  memory.ri = Cast::kTargetIndex;
  (void)world_.fep(b).regions().add_with_key(memory, Cast::kKey);
  auto& ses_a = world_.fep(a).ses();
  auto& ses_b = world_.fep(b).ses();
  from_ = ses_a
              .open_context(context_config(Cast::kInitiatorPid, ResourceIndex{1}, InitiatorId{0}),
                            initiator)
              .value();
  to_ = ses_b
            .open_context(context_config(Cast::kTargetPid, Cast::kTargetIndex, InitiatorId{2}),
                          target)
            .value();
  ses_a.enable(*from_);
  ses_b.enable(*to_);
  peer_ = ses::Peer{.fep = address_of(1, 11),
                    .pid_on_fep = Cast::kTargetPid,
                    .resource_index = Cast::kTargetIndex,
                    .initiator = InitiatorId{2},
                    .relative = true,
                    .generation = Cast::kGeneration};
}

Walkthrough::~Walkthrough() {
  world_.fep(0).ses().close_context(*from_, world_.now());
  world_.fep(1).ses().close_context(*to_, world_.now());
}

void Walkthrough::write(void* context) {
  const ses::IoSlice slice{source.data(), source.size()};
  ses::RmaOp op;
  op.peer = &peer_;
  op.local = {&slice, 1};
  op.key = Cast::kKey;
  op.context = context;
  if (!world_.fep(0).ses().initiator().post(*from_, op, world_.now()).ok()) return;
  world_.posted(0);
  world_.run_for(std::chrono::milliseconds(5));
}

std::string tell_walkthrough() {
  Walkthrough walk;
  int mark = 0;
  walk.write(&mark);
  const std::size_t first = walk.sent.size();
  walk.write(&mark);
  std::ostringstream out;
  out << "One fi_write of 16,384 bytes, rank 0 (10.0.0.11) to rank 2 (10.0.1.11) of job 101.\n"
         "The target registered memory under key 0xacce5, reached through resource index 0x00a.\n"
         "The payload MTU is 4,096 bytes: four packets. No PDC exists yet, so the first packets\n"
         "open one while they carry data (SYN); the last packet asks for an acknowledgement.\n\n";
  for (std::size_t i = 0; i < walk.sent.size(); ++i) {
    const Seen& seen = walk.sent[i];
    if (i == first) {
      out << "\nThe initiator has one completion with the context that was posted. A second\n"
             "write uses the PDC: no SYN, and DPDCID is what the acknowledgement taught.\n\n";
    }
    char time[32];
    std::snprintf(time, sizeof time, "%9.3f us",
                  static_cast<double>(to_ns(seen.at) - to_ns(walk.sent[0].at)) / 1000.0);
    out << time << (seen.from == 0 ? "  10.0.0.11 > 10.0.1.11  " : "  10.0.1.11 > 10.0.0.11  ")
        << "DSCP " << int{seen.packet.dscp} << "  " << wire::dissect(seen.packet.bytes) << "\n";
  }
  const bool same = walk.source == walk.region;
  out << "\n"
      << walk.initiator.completions.size() << " completions at the initiator, "
      << walk.target.completions.size() << " at the target (a plain write makes none there).\n"
      << "The target's memory " << (same ? "equals" : "DIFFERS FROM") << " the source.\n";
  return out.str();
}

}  // namespace uet::sim
