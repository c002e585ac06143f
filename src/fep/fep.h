// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A Fabric End Point: the whole protocol of one libfabric domain behind four calls. Packets, time
// and operations go in; packets, completions and the next deadline come out. No thread, no clock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/rng.h"
#include "cms/ccc.h"
#include "fep/stats.h"
#include "pds/manager.h"
#include "pds/parameters.h"
#include "ri/mr_table.h"
#include "ses/ses.h"
#include "uet/base/packet.h"
#include "uet/base/time.h"
#include "uet/nic/nic.h"
#include "wire/frame.h"

namespace uet::fep {

// Everything is sized here; afterwards the data path allocates nothing.
struct Config {
  pds::Parameters pds;
  cms::Parameters cms;
  ses::Parameters ses;
  std::size_t packets = 8192;  // heads: sent and not yet acknowledged, plus control
  std::size_t buffers = 4096;  // payload buffers of ses.payload_mtu bytes
  std::size_t memory_regions = 65536;
  std::uint64_t seed = 1;  // start PSNs, PDC ids, entropy
  // Of the memory keys that are chosen here: peers see some, and must not learn others from them.
  ri::KeySecret key_secret{};
  // DSCPs that tell trimmed packets (PDS-147); none: only what the NIC marks itself counts.
  wire::TrimMarks trim_marks;
};

// Largest payload MTU (a power of two, 1024 to 8192) whose packets fit an IP packet of `ip_mtu`
// bytes with the largest headers that UET puts in front of it. 0 if not even 1024 fits.
std::uint32_t payload_mtu_for(std::uint32_t ip_mtu);

class Fep {
 public:
  // `nic` outlives the Fep.
  Fep(const Config& config, nic::Nic& nic, Time now);
  ~Fep();
  Fep(const Fep&) = delete;
  Fep& operator=(const Fep&) = delete;

  // One bounded pass: receive a burst, expire timers, send. True if there was work.
  bool progress(Time now);
  // The two halves of progress: receives a burst and expires timers; then push() sends.
  bool take(Time now);
  // The last take() brought packets from the network, not only through memory of this host. Their
  // ACKs tell how long the host had them (CMS-712): push() wants the time after they were taken.
  bool took_from_network() const { return took_from_network_; }
  // After take(): packets that had come before `start` may still wait, since its burst was full or
  // the take() before was long ago. A host that looks seldom calls take() again.
  bool left_some(Time start) const;
  // The end of a posting call: should push() follow now? While many packets are still unanswered,
  // up to kPostBatch posts wait for one another or for the next progress, because a burst costs the
  // NIC little more than one packet; next_deadline says so.
  bool wants_push_after_post() {
    return packets_.in_use() < kBusyPackets || ++waiting_posts_ >= kPostBatch;
  }
  // Sends what is ready without receiving. True if there was something.
  bool push(Time now);
  // When progress must be called at the latest even if no packet arrives; kNever if not at all.
  Time next_deadline() const;

  ses::Ses& ses() { return ses_; }
  ri::MrTable& regions() { return regions_; }
  const Config& config() const { return config_; }
  Stats stats() const;
  // As pds::Manager::list_peers.
  void list_peers(std::vector<pds::PeerView>& out) { manager_.list_peers(out); }
  // Its congestion contexts, to look at.
  const pds::CccPool& contexts() const { return manager_.contexts(); }

  // Opens a PDC ahead of the first message, which then waits for no shortage at the peer; as
  // pds::Manager::open_ahead. A message opens one itself where there is none.
  Result<void> open_pdc(const pds::Destination& destination, Time now);
  // The application knows the peer at `address` no more: its PDCs are closed when they are done,
  // and a later process at that address is met with new ones.
  void forget(const FepAddress& address, Time now);
  // As pds::Manager: for each FEP that the application can name.
  void learn(const FepAddress& address) { manager_.learn(address); }
  void unlearn(const FepAddress& address) { manager_.unlearn(address); }
  // Of a FEP with transport security: no key that is older than this FEP opens packets of the
  // secure domain `sdi` any more (0: the FEP's own). From then on its PDCs open without an extra
  // round trip though it began with random Start_PSNs (TSS-51).
  void key_changed(std::uint32_t sdi) { manager_.key_changed(sdi); }
  // Packets that a peer with transport security has sent to this FEP in clear (TSS-39: no answer).
  std::uint64_t protected_dropped() const { return manager_.counters().protected_dropped; }
  // As pds::Manager: `watcher` outlives the Fep, or nullptr is set before it ends.
  void watch_peers(pds::PeerWatcher* watcher) { manager_.watch_peers(watcher); }
  // Begins to close all PDCs (handshake); progress until closed() or until patience ends.
  void begin_close(Time now);
  bool closed() const;
  // Every pool full, nothing queued (simulator oracle). Idle open PDCs are allowed.
  bool quiescent() const;

 private:
  static constexpr std::size_t kBusyPackets = 16;  // unanswered ones that make posts wait
  static constexpr std::size_t kPostBatch = 16;

  void note_receive_load(bool received);
  void flush(Time now);
  void note_nic_full(bool full, Time now);

  const Config config_;
  nic::Nic& nic_;
  Time last_pass_;
  std::size_t waiting_posts_ = 0;
  bool took_from_network_ = false;
  Time last_take_;
  bool was_away_ = false;  // the last take() came long after the one before
  std::size_t taken_ = 0;  // packets of the last take()
  Time newest_arrival_{};  // of the last of them; Time{}: not known
  bool loaded_ = false;    // something was in use when the load was last looked at
  Time nic_full_since_{};  // Time{}: it has taken all
  std::uint64_t blocked_by_nic_ns_ = 0;
  std::array<RxPacket, nic::kRxBurst> arrived_;  // as new between bursts: most bring little
  Rng rng_;
  PacketPool packets_;
  BufferPool buffers_;
  ri::MrTable regions_;
  ses::Ses ses_;
  pds::Outbox outbox_;
  pds::Manager manager_;
};

}  // namespace uet::fep
