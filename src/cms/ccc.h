// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The congestion control context (CCC): what PDS asks before it sends and what it tells afterwards
// (CMS section 1.3). One context serves one remote FEP in one traffic class; PDCs share it (CMS-2).
// CMS knows no PSN, SACK or retransmission: those are PDS's.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "cms/algorithms.h"
#include "cms/counters.h"
#include "cms/tuning.h"
#include "uet/base/address.h"
#include "uet/base/time.h"
#include "uet/wire/pds.h"

namespace uet::cms {

// CMS 5.2. The last three learn from what becomes of packets.
enum class PathPolicy : std::uint8_t { Single, Oblivious, RoundRobin, Bitmap, Reps, Mixed };

// Peers at a FEP's own IP address: no network is in between, and a queue there is a peer that waits
// for a core.
struct SameHost {
  FabricAddress ip;
  Algorithm algorithm = Algorithm::None;
  std::uint64_t fixed_window_bytes = 1 << 20;  // window of Algorithm::None
};

inline constexpr std::uint32_t kAckGenTrigger = 16 * 1024;  // bytes, of CMS-124
// What a receiver collects before it acknowledges unasked, in bytes (ACK_Gen_Trigger, PDS-97),
// unless configured otherwise. More than CMS-124 assumes: a sender whose window is too small for
// that asks (Window::wants_ack).
inline constexpr std::uint32_t kDefaultAckTrigger = 64 * 1024;

// Set once per FEP. Bytes are nominal packet sizes (CMS-6).
struct Parameters {
  Algorithm algorithm = Algorithm::Nscc;
  PathPolicy paths = PathPolicy::Single;
  std::uint32_t mtu_bytes = 4096;                // largest nominal packet of this FEP
  std::uint64_t link_rate_bps = 10'000'000'000;  // CMS-723
  std::uint64_t remote_rate_bps = UINT64_MAX;    // of the peers' links, if known
  // False: link_rate_bps is that of an interface, behind which the way may be slower (CMS-724).
  bool rate_is_stated = true;
  std::optional<Duration> base_rtt;                            // Rcfg; empty = measured (CMS-710)
  Duration default_base_rtt = std::chrono::microseconds(100);  // until measured
  std::uint64_t max_window_bytes = 1 << 20;     // never more in flight (receive buffer of the peer)
  std::uint64_t fixed_window_bytes = 1 << 20;   // window of Algorithm::None
  std::uint64_t receive_rate_bps = UINT64_MAX;  // never grant more (CMS-228)
  bool trimming = false;                        // the network trims instead of dropping
  bool synthetic_ecn = true;                    // CMS-703
  std::uint32_t ack_gen_trigger_bytes = kDefaultAckTrigger;  // what peers collect before an ACK
  std::uint16_t path_count = 64;    // entropy values of all policies but `single`
  std::uint32_t train_packets = 1;  // packets in a row on one path, where the NIC sends such as one
  Duration rtt_cache_time = std::chrono::hours(1);  // CMS-141
  Duration linger =
      std::chrono::seconds(1);  // a context after its last PDC (CMS 7.4); 0 = not at all
  bool probes_base_rtt = true;  // where it is measured (CMS-140)
  // With rccc alone: grant less to a fabric that is full (CMS-230). With both, NSCC sees it.
  bool oversubscription_control = true;
  std::optional<SameHost> same_host;  // empty: peers there are like all others
  bool path_inference = true;  // losses are inferred from later packets on the same path (CMS-420)
  // Many packets that arrive above a gap prove a loss whatever their paths, and so does the answer
  // to a Probe (CMS-150, CMS-151). On a single path only the answer: its order proves the rest
  // (CMS-153); with `trimming` only the answer, unless credit is used (CMS-152).
  bool recovery = true;
  Tuning tuning;

  // Of the slower end: what BDPs are made from (CMS 2.1).
  std::uint64_t path_rate_bps() const { return std::min(link_rate_bps, remote_rate_bps); }
  // The parameters for contexts with peers of the same host; equal to these without same_host.
  Parameters for_same_host() const;
};

// The parameters that contexts of a kind have in common, and what has happened to all of them:
// copies refer to the same. Made from plain parameters it has a copy of its own. Not for several
// threads.
class SharedParameters {
 public:
  // The analyser does not follow the count of holders.
  // NOLINTBEGIN(clang-analyzer-cplusplus.NewDelete)
  SharedParameters(const Parameters& parameters) : held_(new Held{parameters}) {}
  SharedParameters(const SharedParameters& other) : held_(other.held_) { ++held_->holders; }
  SharedParameters& operator=(SharedParameters other) {
    std::swap(held_, other.held_);
    return *this;
  }
  ~SharedParameters() {
    if (--held_->holders == 0) delete held_;
  }
  const Parameters& operator*() const { return held_->parameters; }
  const Parameters* operator->() const { return &held_->parameters; }
  // The counts of all contexts, ended ones included. Their present holdings are not in it.
  Counters& counts() const { return held_->counts; }
  // NOLINTEND(clang-analyzer-cplusplus.NewDelete)

 private:
  struct Held {
    const Parameters parameters;
    std::size_t holders = 1;
    Counters counts{};
  };
  Held* held_;
};

// The content of one ACK (CMS section 2.2). PDS fills it in from the ACK_CC words.
struct AckFeedback {
  std::uint64_t newly_received_bytes = 0;  // CMS-110
  bool ce = false;                         // the ECN mark, echoed
  std::optional<Duration> rtt;             // valid sample only (CMS-113)
  // From transmission until this host took the ACK up: `rtt` and what both hosts added to it. Also
  // set when the peer kept the packet too long to say how long; empty when nothing is known.
  std::optional<Duration> loop;
  std::uint8_t rcv_cwnd_pend = 0;  // destination flow control, 0 to 127
  bool restore_cwnd = false;
  std::uint16_t entropy = 0;
};

// RepeatedRto: this packet's previous transmission was lost to an RTO as well (CMS-135).
enum class LossCause : std::uint8_t { Rto, RepeatedRto, Path, OutOfOrder };

inline void count_loss(Counters& counters, LossCause cause) {
  const bool by_path = cause == LossCause::Path;
  const bool out_of_order = cause == LossCause::OutOfOrder;
  ++(by_path        ? counters.losses_by_path
     : out_of_order ? counters.losses_out_of_order
                    : counters.losses_by_rto);
}

// When losses are recovered from without knowing paths (CMS-150, CMS-151).
struct RecoveryRules {
  std::uint64_t bytes;      // reported above a gap they begin a recovery
  Duration silence;         // without an ACK: a Probe asks what has arrived
  Duration silence_at_end;  // the same, with nothing more to send
  Duration retry;           // until the next Probe
  Time not_before;          // no Probe and no CMS-150 until then
  bool only_probe_at_end;  // no recovery by reports, no Probe while there is more to send (CMS-152)
  // A Probe that is answered faster waited behind nothing, and what it misses is lost.
  Duration unqueued_rtt;
  // On a single path a missing packet is lost however long the Probe waited. Silence shows only the
  // loss of the last packets there: no Probe is sent before their ACK is later than usual.
  bool in_order;
};

class Rccc;

class Ccc {
 public:
  virtual ~Ccc() = default;
  // Itself, if its sending needs the receiver's credit; asked once, not for each packet.
  virtual Rccc* by_credit() { return nullptr; }
  // May a packet of this nominal size leave now? With nothing in flight one always may (CMS-133).
  virtual bool may_send(std::uint32_t bytes) const = 0;
  // First transmissions and retransmissions alike (CMS-103).
  virtual void on_sent(std::uint32_t bytes, Time now) = 0;
  // True: the base RTT has risen, as after a change of path (CMS-142). A queue that nothing marks
  // and that never empties looks the same; a Probe tells.
  virtual bool on_ack(const AckFeedback& feedback, Time now) = 0;
  virtual void on_nack(wire::NackCode code, std::uint32_t bytes, bool ce,
                       std::optional<Duration> rtt, Time now) = 0;
  virtual void on_inferred_loss(std::uint32_t bytes, LossCause cause, Time now) = 0;
  // Bytes reported lost have arrived after all: they are in flight again, and the window gets back
  // the reduction for the loss. Not called for a packet that was retransmitted since.
  virtual void on_spurious_loss(std::uint32_t bytes) = 0;
  // Bytes that will never be reported (PDC failed, rounding residue, CMS-104): out of flight.
  // Negative when more was reported than sent (rcvd_bytes is rounded up).
  virtual void forget(std::int64_t bytes) = 0;
  // Should a packet of this nominal size that leaves now ask for an ACK at once (CMS-124)?
  // `unasked_packets`: what its PDC has sent since it last asked.
  virtual bool wants_ack(std::uint32_t bytes, std::uint32_t unasked_packets) const = 0;
  // The answer to a Probe: a round trip that waited behind no data (CMS-140). It tells how long the
  // path is and nothing about queues.
  virtual void on_probe_answer(Duration) {}
  // Smallest round trip time seen, once there is one; for the next context to this peer (CMS-141).
  virtual std::optional<Duration> base_rtt() const { return std::nullopt; }

  // Empty, always or never: losses are left to paths and time-outs.
  virtual std::optional<RecoveryRules> recovery() const { return std::nullopt; }

  virtual std::uint64_t window_bytes() const = 0;
  virtual std::uint64_t largest_window_bytes() const = 0;  // Wmax
  virtual std::int64_t inflight_bytes() const = 0;         // signed: may dip below 0 (CMS-104)
  // What it holds at the moment; what happens to it is counted in SharedParameters::counts().
  virtual Counters holdings() const = 0;
};

// A context for one remote FEP. Called when a PDC opens, not on the data path. `ccc_id`: its name
// in requests (CMS-204); without one an algorithm of credit is replaced by NSCC. `base_rtt`:
// what an earlier context learnt (CMS-141).
std::unique_ptr<Ccc> make_ccc(const SharedParameters& parameters, Time now,
                              std::optional<std::uint8_t> ccc_id = {},
                              std::optional<Duration> base_rtt = {});

// UDP length + 40 (CMS-6); `pds_bytes` counts from the PDS prologue to the end of the packet.
constexpr std::uint32_t nominal_packet_bytes(std::uint32_t pds_bytes) { return pds_bytes + 8 + 40; }

}  // namespace uet::cms
