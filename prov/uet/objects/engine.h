// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The engine of a domain: one FEP with its NIC, the lock over both and over all queues and counters
// of the domain, and their progress. Calls and objects see a domain through its engine; the rest of
// a domain (attributes, address format, resource indices) stands in domain.h.
#pragma once

#include <rdma/fabric.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "fep/fep.h"
#include "nic/adaptive_copy.h"
#include "objects/compound.h"
#include "objects/fabric_events.h"
#include "objects/live_stats.h"
#include "objects/lock.h"
#include "objects/patience.h"
#include "objects/progress.h"
#include "objects/stats.h"
#include "objects/trigger.h"
#include "objects/wait.h"
#include "security/protected_notice.h"
#include "settings/params.h"
#include "submission/submissions.h"
#include "uet/base/intrusive_list.h"
#include "uet/nic/nic.h"

namespace uet::prov {

struct ForkTag;
class EngineLink;
class Engines;
class TransportSecurity;

// As EngineLink::take_events(), for callers that do not know the class.
bool take_events(EngineLink& link, Time now);

// Work that belongs to each pass of an engine beside that of its FEP. Everything with the lock.
class PassClient {
 public:
  // Called before packets are taken: what the client has been told before they came. True if there
  // was something.
  virtual bool begin(Time) noexcept { return false; }
  // Called at the end of each pass and of each posting call, where no call of SES is under way.
  virtual void run(Time now) noexcept = 0;
  // When run() must be called at the latest; kNever: not at all.
  virtual Time next_deadline() const noexcept = 0;
  // The host of `peer` has reported that no process has that port (Nic::watch_refusals).
  virtual void refused(const FepAddress&) noexcept {}
  // The engine's thread is about to sleep. False: there is work, or may be.
  virtual bool may_sleep() noexcept { return true; }

 protected:
  ~PassClient() = default;
};

// FI_UET_CORES: which of the engines of a domain it is.
struct EnginePlace {
  Engines* siblings = nullptr;  // nullptr: the domain has one engine
  std::size_t number = 0;

  // FepAddress::via of the engine's port at its siblings.
  std::uint8_t via() const { return static_cast<std::uint8_t>(number + 1); }
};

// The end of an engine: its thread; its statistics.
enum class ClosePart : std::uint8_t { Whole, Thread, Statistics };

class Engine final : public ListNode<ForkTag> {
 public:
  // `threading`: fi_domain(3); FI_THREAD_DOMAIN with manual progress needs no lock. `knows_hmem`:
  // see knows_hmem().
  Engine(const Params& params, fi_threading threading, bool knows_hmem,
         const EnginePlace& place = {});
  ~Engine();
  // Builds the FEP over `nic`, with a progress thread if `thread`. 0 or a negative fi_errno, with
  // the reason logged; the engine can only be destroyed then. `link`: see link(). `interface`: the
  // name of the one that it uses.
  int open(std::unique_ptr<nic::Nic> nic, bool thread, EngineLink* link = nullptr,
           std::string interface = {});
  // Before open(), if `nic` is to be made by it: the engine keeps it as long as the NIC.
  void keep(std::unique_ptr<TransportSecurity> security);
  // nullptr if packets are in clear.
  TransportSecurity* security() UET_REQUIRES(lock_) { return security_.get(); }
  // After a successful open(): ends the thread, and the FEP's work and PDCs as far as peers answer
  // in time. No object of the domain is left. An owner of several engines calls it for both parts,
  // and ends their work in between.
  void close(ClosePart part = ClosePart::Whole) noexcept;

  Lock& lock() UET_RETURN_CAPABILITY(lock_) { return lock_; }

  // A forked child owns only a copy of the memory: every call answers -FI_EOPNOTSUPP there.
  bool dead() const { return dead_.load(std::memory_order_relaxed); }

  fep::Fep& fep() UET_REQUIRES(lock_) { return *fep_; }
  // One bounded pass of the protocol; true if there was work. Bursts are taken until none is left
  // of what had come by `now`, as far as Fep::left_some can tell. Each is answered before the next,
  // since ACKs need packets. A flood ends the pass after kMostBursts.
  bool progress(Time now) UET_REQUIRES(lock_) {
    const Time start = now;
    const bool submitted = (submissions_.active() && submissions_.run(now)) ||
                           (link_ != nullptr && take_events(*link_, now)) ||
                           (client_ != nullptr && client_->begin(now));
    const bool taken = fep_->take(now) || submitted;
    for (unsigned bursts = 1; bursts < kMostBursts && fep_->left_some(start); ++bursts) {
      push_after_take(now);
      now = clock_now();
      if (client_ != nullptr) client_->begin(now);
      fep_->take(now);
    }
    return end_pass(push_after_take(now) || taken, now);
  }
  // FI_UET_ENGINE=thread, if active(): a thread of the engine makes all progress and executes the
  // commands of endpoints; readers of queues and counters do not take the lock.
  Submissions& submissions() { return submissions_; }
  // Of callers that poll: with the lock, except for its `yield`.
  Patience& patience() { return patience_; }
  // The end of a call that posts a receive or cancels: sends what is ready, unless more follows at
  // once (FI_MORE).
  void posted(Time now, bool more) UET_REQUIRES(lock_) {
    if (!more && fep_->wants_push_after_post()) fep_->push(now);
    end_post(now);
  }
  // Of a call that has sent what is ready itself.
  void end_post(Time now) UET_REQUIRES(lock_) {
    works_.run();  // a post may complete at once, and that may release some
    if (client_ != nullptr) client_->run(now);
    wake_sleepers_in_time();
  }
  // For a caller about to sleep: a descriptor that is readable when the engine needs progress,
  // because packets or its deadline have come; -1 if its thread sees to that.
  int activity() UET_REQUIRES(lock_) {
    if (thread_.running() || dead()) return -1;
    prepare_sleep();
    return activity_.fd();
  }
  // A caller or thread that sleeps watches it.
  Activity& watched() { return activity_; }
  // FI_UET_ENGINE=process: the way to the engine, of which the NIC is a part; nullptr: none.
  EngineLink* link() const { return link_; }
  // False: do not sleep, there is work.
  bool prepare_sleep() UET_REQUIRES(lock_);
  WorkQueue& works() { return works_; }
  PieceTurns& piece_turns() { return piece_turns_; }
  // A binding that asks for events; 0 or a negative fi_errno. It is removed with the same lock.
  int subscribe(EventSubscriber& subscriber) noexcept UET_REQUIRES(lock_);
  FabricEvents& events() UET_REQUIRES(lock_) { return events_; }
  // The most bytes of one RMA message of SES.
  std::uint64_t piece_bytes() const { return piece_bytes_; }
  const EnginePlace& place() const { return place_; }
  // At most one; nullptr: none any more.
  void attach(PassClient* client) UET_REQUIRES(lock_) { client_ = client; }
  LiveStats& live() UET_REQUIRES(lock_) { return live_; }
  // Starts the progress thread if there is none, because a thread will sleep that cannot make
  // progress. 0 or a negative fi_errno; the caller is alone in here unless it has a lock.
  int need_thread() noexcept;
  // Progress until `done` or for kClosePatience, for objects that close with work in hand. Time in
  // which the process did not run does not count.
  template <class Done>
  void linger(Done done) UET_REQUIRES(lock_);

  const Params& params() const { return params_; }
  FepAddress local_address() const { return nic_->local_address(); }
  // Its caps need no lock.
  nic::Nic& nic() { return *nic_; }
  std::uint32_t payload_mtu() const { return payload_mtu_; }
  // Was the domain opened with FI_HMEM? Only then does a registration say whose memory it is.
  bool knows_hmem() const { return knows_hmem_; }

 private:
  friend struct ForkRegistry;
  int open_fep();
  void rest(Time until) UET_REQUIRES(lock_);
  bool end_pass(bool busy, Time now) UET_REQUIRES(lock_) {
    works_.run();
    piece_turns_.run(now);
    events_.look(now);
    if (watches_peers_ || client_ != nullptr) {
      while (const auto peer = nic_->take_refusal()) {
        fep_->refused(*peer);
        if (client_ != nullptr) client_->refused(*peer);
      }
    }
    if (client_ != nullptr) client_->run(now);
    protected_notice_.look(fep_->protected_dropped(), now);
    patience_.passed(busy, now);
    wake_sleepers_in_time();
    if (stats_signal_.requested()) live_.write_all(*this, "SIGUSR2", now);
    live_.passed(*this, busy, now);
    return busy;
  }
  // The time since `now`, spent on copying packets, is host delay: the pass reads the clock again.
  bool push_after_take(Time now) UET_REQUIRES(lock_) {
    return fep_->push(fep_->took_from_network() ? clock_now() : now);
  }
  // Another thread may sleep until a later time than is right now.
  void wake_sleepers_in_time() UET_REQUIRES(lock_) {
    if (activity_.timer().in_use()) activity_.timer().bring_forward(next_deadline());
  }
  Time next_deadline() const UET_REQUIRES(lock_) {
    const Time fep = std::min(fep_->next_deadline(), live_.next_deadline());
    return client_ != nullptr ? std::min(fep, client_->next_deadline()) : fep;
  }

  static constexpr unsigned kMostBursts = 128;  // one holds 64 packets at most

  const Params params_;
  const bool knows_hmem_;
  std::uint32_t payload_mtu_ = 0;
  std::uint64_t piece_bytes_ = 0;
  const EnginePlace place_;
  std::atomic<bool> dead_{false};
  alignas(64) Lock lock_;  // what is above is read by all threads, and written by none
  std::unique_ptr<TransportSecurity> security_;
  std::unique_ptr<nic::Nic> nic_;
  nic::PlacingCopy placing_copy_;
  std::unique_ptr<fep::Fep> fep_;
  Patience patience_;
  ProtectedNotice protected_notice_ UET_GUARDED_BY(lock_);
  Activity activity_;  // of the NIC's descriptor, too, once it is watched
  bool nic_watched_ UET_GUARDED_BY(lock_) = false;
  bool watches_peers_ UET_GUARDED_BY(lock_) = false;
  StatsSignal stats_signal_;
  LiveStats live_ UET_GUARDED_BY(lock_);
  Submissions submissions_;
  ProgressThread thread_;
  WorkQueue works_{*this};
  PieceTurns piece_turns_;
  std::string interface_;
  FabricEvents events_ UET_GUARDED_BY(lock_);
  PassClient* client_ UET_GUARDED_BY(lock_) = nullptr;
  EngineLink* link_ = nullptr;
};

// The process ends: FI_UET_STATS=exit of the domains that are still open, and the end of their live
// pages.
void write_stats_at_exit() noexcept;

inline constexpr Duration kClosePatience = std::chrono::milliseconds(250);
// A turn of linger(), which sleeps at most 10 ms, counts at most so much.
inline constexpr Duration kLongestTurn = std::chrono::milliseconds(20);

template <class Done>
void Engine::linger(Done done) {
  Time now = clock_now();
  for (Duration left = kClosePatience; !done() && left > Duration{};) {
    if (!progress(now) && !done()) rest(now + left);
    const Time before = std::exchange(now, clock_now());
    left -= std::min(now - before, kLongestTurn);
  }
}

}  // namespace uet::prov
