// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// fid_domain: one FEP with its NIC, the lock over both and over all queues and counters below, and
// their progress.
#pragma once

#include <rdma/fi_domain.h>

#include <atomic>
#include <bitset>
#include <memory>

#include "address_format.h"
#include "eq.h"
#include "fabric.h"
#include "lock.h"
#include "params.h"
#include "progress.h"
#include "references.h"
#include "stats.h"
#include "trigger.h"
#include "uet/av/address.h"
#include "uet/base/intrusive_list.h"
#include "uet/fep/fep.h"
#include "uet/nic/adaptive_copy.h"
#include "uet/nic/nic.h"
#include "wait.h"

namespace uet::prov {

// fi_ops_fabric.domain: fi_domain(3).
int domain_open(fid_fabric* fabric, fi_info* info, fid_domain** domain, void* context) noexcept;

class Eq;
struct ForkTag;

class Domain final : public fid_domain, public ListNode<ForkTag> {
 public:
  static Domain& from(fid_domain* fid) { return static_cast<Domain&>(*fid); }
  static Domain& from(struct fid* fid) { return from(reinterpret_cast<fid_domain*>(fid)); }

  // What fi_domain does; 0 or a negative fi_errno, with the reason logged.
  static int open(Fabric& fabric, const fi_info& info, void* context, Domain*& out);
  // What fi_close does.
  int close() noexcept;

  Lock& lock() UET_RETURN_CAPABILITY(lock_) { return lock_; }
  References& references() { return references_; }
  std::uint32_t version() const { return version_; }

  // A forked child owns only a copy of the memory: every call answers -FI_EOPNOTSUPP there.
  bool dead() const { return dead_.load(std::memory_order_relaxed); }

  fep::Fep& fep() UET_REQUIRES(lock_) { return *fep_; }
  // One bounded pass of the protocol, which takes all that has come before; true if there was work.
  bool progress(Time now) UET_REQUIRES(lock_) {
    const bool taken = take(now);
    return end_pass(push_after_take(now) || taken);
  }
  // Nothing has come for so many passes that the caller, who is polling, should let others run: the
  // peer may wait for this very core.
  bool quiet() const UET_REQUIRES(lock_) { return idle_passes_ >= kPatientPasses; }
  // The end of a posting call: sends what is ready, unless more follows at once (FI_MORE).
  void posted(Time now, bool more) UET_REQUIRES(lock_) {
    if (!more) fep_->posted(now);
    end_post();
  }
  // For whoever is about to sleep: a descriptor that is readable when the domain needs progress,
  // because packets or its deadline have come; -1 if its thread sees to that.
  int activity() UET_REQUIRES(lock_) {
    if (thread_.running() || dead()) return -1;
    prepare_sleep();
    return activity_.get();
  }
  int activity_fd() const { return activity_.get(); }
  void prepare_sleep() UET_REQUIRES(lock_);
  WorkQueue& works() { return works_; }
  // FI_UET_STATS=exit of the domains that are still open when the process ends.
  static void write_stats_at_exit() noexcept;
  // Starts the progress thread if there is none, because somebody will sleep who cannot make
  // progress. 0 or a negative fi_errno; the caller is alone in the domain unless it has a lock.
  int need_thread() noexcept;
  // Progress until `done` or for kClosePatience, for objects that close with work in hand.
  template <class Done>
  void linger(Done done) UET_REQUIRES(lock_);

  const Params& params() const { return params_; }
  FepAddress local_address() const { return nic_->local_address(); }
  // Its caps need no lock.
  nic::Nic& nic() { return *nic_; }
  // How its endpoints and AVs show and take addresses.
  const AddressFormat& format() const { return format_; }
  std::uint32_t payload_mtu() const { return payload_mtu_; }
  // Is this bit in force? It is if the info that the domain was opened with says so: getinfo
  // requires none, and the application may set those that it wants. FI_MR_BASIC stands for three.
  bool mr_mode_has(int bit) const;
  // Was it opened with FI_HMEM? Only then does a registration say whose memory it is.
  bool knows_hmem() const { return (caps_ & FI_HMEM) != 0; }
  // Was it opened with FI_PEER? Only then does it take another provider's queues; and with
  // FI_AV_USER_ID? Then its AVs take ids of the application's own.
  bool is_peer() const { return (caps_ & FI_PEER) != 0; }
  bool has_user_ids() const { return (caps_ & FI_AV_USER_ID) != 0; }
  // An object of this domain has been registered: the EQ bound with FI_REG_MR is told.
  void registered(fid_mr& mr);
  // fi_domain_bind: reading this EQ makes our progress.
  int bind(struct fid& other, std::uint64_t flags);
  // JobID of endpoints without an auth_key of their own.
  JobId job() const { return job_; }
  // The one that the domain was opened with as auth_key.
  std::optional<JobId> auth_job() const { return auth_job_; }

  // Takes `count` resource indices in a row, from `wanted` or, without it, from the lowest place
  // from 1 on where they are free and the address format can name the first.
  Result<ResourceIndex> take_resource_indices(std::optional<ResourceIndex> wanted,
                                              std::size_t count) UET_REQUIRES(lock_);
  void give_back(ResourceIndex first, std::size_t count) UET_REQUIRES(lock_);

 private:
  friend struct ForkRegistry;
  Domain(Fabric& fabric, const fi_info& info, const Params& params, void* context);
  int open_nic(const fi_info& info);
  int open_fep();
  int open_activity() noexcept;
  void write_stats(const char* why) noexcept UET_REQUIRES(lock_);
  void rest(Time until) UET_REQUIRES(lock_);
  bool end_pass(bool busy) UET_REQUIRES(lock_) {
    works_.run();
    idle_passes_ = busy ? 0 : idle_passes_ + 1;
    wake_sleepers_in_time();
    if (stats_signal_.requested()) write_stats("SIGUSR2");
    return busy;
  }
  void end_post() UET_REQUIRES(lock_) {
    works_.run();  // a post may complete at once, and that may release some
    wake_sleepers_in_time();
  }
  // Bursts until none is left of what had come by `now`, which moves on to the last one. Each is
  // answered before the next, since ACKs need packets. A flood ends the pass after kMostBursts.
  bool take(Time& now) UET_REQUIRES(lock_) {
    const Time start = now;
    const bool taken = fep_->take(now);
    for (unsigned bursts = 1; bursts < kMostBursts && fep_->left_some(start); ++bursts) {
      push_after_take(now);
      now = clock_now();
      fep_->take(now);
    }
    return taken;
  }
  // What has arrived since `now` was copied and placed meanwhile, which is the host's time.
  bool push_after_take(Time now) UET_REQUIRES(lock_) {
    return fep_->push(fep_->took_from_network() ? clock_now() : now);
  }
  // Another thread may sleep until a later time than is right now.
  void wake_sleepers_in_time() UET_REQUIRES(lock_) {
    if (timer_.in_use()) timer_.bring_forward(fep_->next_deadline());
  }

  static constexpr unsigned kPatientPasses = 32;
  static constexpr unsigned kMostBursts = 128;  // one holds 64 packets at most

  Hold fabric_;
  References references_;
  const std::uint32_t version_;
  const Params params_;
  const int mr_mode_;
  const std::uint64_t caps_;
  AddressFormat format_;
  Eq* registration_eq_ = nullptr;  // FI_REG_MR
  JobId job_;
  std::optional<JobId> auth_job_;
  std::uint32_t payload_mtu_ = 0;
  std::atomic<bool> dead_{false};
  Lock lock_;
  std::unique_ptr<nic::Nic> nic_;
  nic::PlacingCopy placing_copy_;
  std::unique_ptr<fep::Fep> fep_;
  std::bitset<kMaxResourceIndex + 1> indices_ UET_GUARDED_BY(lock_);
  unsigned idle_passes_ UET_GUARDED_BY(lock_) = 0;
  Timer timer_;
  nic::FileDescriptor activity_;  // of the NIC's descriptor, once it is watched, and the timer
  bool nic_watched_ UET_GUARDED_BY(lock_) = false;
  StatsSignal stats_signal_;
  ProgressThread thread_;
  WorkQueue works_{*this};
  EqBinding eq_;
};

inline constexpr Duration kClosePatience = std::chrono::milliseconds(250);

template <class Done>
void Domain::linger(Done done) {
  Time now = clock_now();
  const Time end = now + kClosePatience;
  while (!done() && now < end) {
    if (!progress(now) && !done()) rest(end);
    now = clock_now();
  }
}

// JobID of an auth_key: Invalid unless it is 3 bytes, or 4 with a zero first byte (SES-145).
Result<JobId> job_of(const std::uint8_t* auth_key, std::size_t size);

}  // namespace uet::prov
