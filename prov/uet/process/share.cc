// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "process/share.h"

namespace uet::prov {

SharedPeer share(const ses::Peer& peer) {
  const auto mark = [](bool set, SharedPeer::Mark bit) { return set ? unsigned{bit} : 0U; };
  const unsigned marks =
      mark(peer.fep.ip.is_ipv6, SharedPeer::kIpv6) | mark(peer.relative, SharedPeer::kRelative) |
      mark(peer.hpc, SharedPeer::kHpc) | mark(peer.ai_full, SharedPeer::kAiFull) |
      mark(peer.one_mtu, SharedPeer::kOneMtu) | mark(peer.optimized, SharedPeer::kOptimized) |
      mark(peer.job.has_value(), SharedPeer::kHasJob);
  return {.ip = peer.fep.ip.bytes,
          .sdi = peer.fep.sdi,
          .initiator = peer.initiator.value,
          .job = peer.job.value_or(JobId{}).value,
          .port = peer.fep.port,
          .pid_on_fep = peer.pid_on_fep.value,
          .resource_index = peer.resource_index.value,
          .generation = peer.generation.value,
          .marks = static_cast<std::uint8_t>(marks)};
}

ses::Peer peer_of(const SharedPeer& shared) {
  const auto has = [&](SharedPeer::Mark bit) { return (shared.marks & bit) != 0; };
  ses::Peer peer;
  peer.fep.ip.bytes = shared.ip;
  peer.fep.ip.is_ipv6 = has(SharedPeer::kIpv6);
  peer.fep.port = shared.port;
  peer.fep.sdi = shared.sdi;
  peer.pid_on_fep.value = shared.pid_on_fep & kMaxPidOnFep;
  peer.resource_index.value = shared.resource_index & kMaxResourceIndex;
  peer.initiator.value = shared.initiator;
  peer.relative = has(SharedPeer::kRelative);
  peer.generation.value = shared.generation;
  peer.hpc = has(SharedPeer::kHpc);
  peer.ai_full = has(SharedPeer::kAiFull);
  peer.one_mtu = has(SharedPeer::kOneMtu);
  peer.optimized = has(SharedPeer::kOptimized);
  if (has(SharedPeer::kHasJob)) peer.job = JobId{shared.job & kMaxJobId};
  return peer;
}

}  // namespace uet::prov
