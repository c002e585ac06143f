// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A Fabric End Point: the whole protocol of one libfabric domain behind four calls. Packets, time
// and operations go in; packets, completions and the next deadline come out. No thread, no clock.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/rng.h"
#include "base/trace.h"
#include "fep/config.h"
#include "fep/stats.h"
#include "pds/outbox.h"
#include "pds/peer_table.h"
#include "pds/waiting_pdc.h"
#include "ri/mr_table.h"
#include "ses/ses.h"
#include "uet/base/packet.h"
#include "uet/base/time.h"
#include "uet/nic/nic.h"
#include "uet/pds/api.h"

namespace uet::pds {
class CccPool;
class Manager;
class PeerWatcher;
}  // namespace uet::pds

namespace uet::fep {

class Fep {
 public:
  // `nic` outlives the Fep.
  Fep(const Config& config, nic::Nic& nic, Time now);
  // In any state: operations in progress vanish without completion.
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
  // After take(), in a pass that began at `start`: packets that had come before that may still
  // wait, since the burst was full or the pass came after an absence, so that another take() should
  // follow. Where the NIC tells no times of arrival, a pass lasts no longer than the absence did.
  bool left_some(Time start);
  // The end of a posting call: should push() follow now? While many packets are unanswered, posts
  // wait for one another or for the next progress, up to kPostBatch of them, because a burst costs
  // the NIC little more than one packet; next_deadline says so. The first posts after a message of
  // a peer leave at once: a caller that answers may make no further call.
  bool wants_push_after_post() {
    return packets_.in_use() < kBusyPackets || may_answer() || ++waiting_posts_ >= kPostBatch;
  }
  // Sends what is ready without receiving. True if there was something.
  bool push(Time now);
  // When progress must be called at the latest even if no packet arrives; kNever if not at all.
  Time next_deadline() const;

  ses::Ses& ses() { return ses_; }
  ri::MrTable& regions() { return regions_; }
  const Config& config() const { return config_; }
  Stats stats() const;
  // As pds::Inspection::list_peers.
  void list_peers(std::vector<pds::PeerView>& out);
  // As pds::Inspection::list_waiting.
  void list_waiting(std::vector<pds::WaitingPdc>& out);
  // Its congestion contexts, to look at.
  const pds::CccPool& contexts() const;

  // Opens a PDC ahead of the first message, which then waits for no shortage at the peer; as
  // pds::Delivery::connect. A message opens one itself where there is none.
  Result<void> open_pdc(const pds::Destination& destination, Time now);
  // The application knows the peer at `address` no more: its PDCs are closed when they are done,
  // and a later process at that address is met with new ones.
  void forget(const FepAddress& address, Time now);
  // As pds::Manager: for each FEP that the application can name.
  void learn(const FepAddress& address);
  void unlearn(const FepAddress& address);
  // Of a FEP with transport security: no key that is older than this FEP opens packets of the
  // secure domain `sdi` any more (0: the FEP's own). From then on its PDCs open without an extra
  // round trip though it began with random Start_PSNs (TSS-51).
  void key_changed(std::uint32_t sdi);
  // Packets that a peer with transport security has sent to this FEP in clear (TSS-39: no answer).
  std::uint64_t protected_dropped() const;
  // As pds::Manager::on_refusal.
  void refused(const FepAddress& peer);
  // As pds::Manager: `watcher` outlives the Fep, or nullptr is set before it ends.
  void watch_peers(pds::PeerWatcher* watcher);
  // As pds::Gaps: packets of peers that are missing now, and whether they are waited for no more.
  void note_gaps(Time now);
  bool gaps_over(Time now) const;
  // From now on events go to `ring`, which outlives the Fep or the next call; nullptr: nowhere.
  void keep_trace_in(trace::Ring* ring);
  // Begins to close all PDCs (handshake); progress until closed() or until patience ends.
  void begin_close(Time now);
  bool closed() const;
  // Every pool full, nothing queued (simulator oracle). Idle open PDCs are allowed.
  bool quiescent() const;

 private:
  static constexpr std::size_t kBusyPackets = 16;  // unanswered ones that make posts wait
  static constexpr std::size_t kPostBatch = 16;
  static constexpr unsigned kAnswers = 2;  // a receive for the next message, and the answer

  bool may_answer();
  void note_receive_load(bool received);
  void note_absence(Duration away, std::size_t packets);
  void flush(Time now);
  void note_nic_full(bool full, Time now);

  const Config config_;
  nic::Nic& nic_;
  Time last_pass_;
  std::size_t waiting_posts_ = 0;
  std::uint64_t messages_seen_ = 0;  // of peers, when the last post was looked at
  unsigned answers_left_ = 0;
  bool in_pass_ = false;  // take() has come, and no push() since
  bool took_from_network_ = false;
  Time last_take_;
  Duration away_{};        // between the last two take()
  Duration absence_{};     // before this pass; 0: none worth mentioning
  std::size_t taken_ = 0;  // packets of the last take()
  Time newest_arrival_{};  // of the last of them; Time{}: not known
  bool loaded_ = false;    // something was in use when the load was last looked at
  Time nic_full_since_{};  // Time{}: it has taken all
  std::uint64_t blocked_by_nic_ns_ = 0;
  std::vector<RxPacket> arrived_;  // a burst; as new between bursts: most bring little
  Rng rng_;
  PacketPool packets_;
  BufferPool buffers_;
  ri::MrTable regions_;
  ses::Ses ses_;
  pds::Outbox outbox_;
  std::unique_ptr<pds::Manager> manager_;  // its parts are for src/pds alone to see
};

}  // namespace uet::fep
