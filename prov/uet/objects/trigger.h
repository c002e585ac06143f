// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Operations that wait for a counter: triggered ones (FI_TRIGGER, fi_triggered_context) and those
// of the domain's deferred work queue (fi_deferred_work); fi_trigger(3). A waiting operation is a
// copy of its call; when its counter has got there it is posted like any other.
#pragma once

#include <rdma/fi_trigger.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>

#include "objects/wait.h"
#include "uet/base/intrusive_list.h"
#include "uet/ses/api.h"

namespace uet::prov {

class Cntr;
class Engine;
class Endpoint;
struct AllWorkTag;
struct RxCall;
struct StageTag;
struct TxCall;
struct Work;

// In the user flags of an operation of SES, where no flag of libfabric is: its context is a Work.
inline constexpr std::uint64_t kDeferred = std::uint64_t{1} << 63;
// Likewise: the endpoint's counters do not count it.
inline constexpr std::uint64_t kUncounted = std::uint64_t{1} << 62;

// Likewise: a receive of its owner (fi_peer), whose context is a PeerRxEntry.
inline constexpr std::uint64_t kOfOwner = std::uint64_t{1} << 60;

using WorkList = IntrusiveList<Work, StageTag>;

// All waiting operations of the endpoints of an engine, and deferred work that has been posted; the
// first engine has the work on counters, too. Everything with the engine's lock unless it says
// otherwise.
//
// With FI_UET_CORES a counter may move in another engine than that of the waiting operation. The
// lists of counters are then changed with the lock of the counter, and what a counter releases
// comes through `arrived_`, which has a lock of its own. Order: engine, counter, arrived_.
class WorkQueue {
 public:
  explicit WorkQueue(Engine& engine) : engine_(engine) {}
  ~WorkQueue();
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  // For a domain of several engines, before any other call. 0 or a negative fi_errno.
  int serve_several() noexcept;
  // Readable when work has arrived from another engine; -1: there is one engine.
  int fd() const { return arrival_.get(); }

  // FI_QUEUE_WORK, FI_CANCEL_WORK and FI_FLUSH_WORK of fi_control; these take the lock themselves.
  int queue(fi_deferred_work& work) noexcept;
  int cancel(const fi_deferred_work& work) noexcept;
  // Only what waits for work->triggering_cntr if both are there.
  int flush(const fi_deferred_work* work) noexcept;

  // A call with FI_TRIGGER: copies it, so that `post` is called with the copy when its counter has
  // got there (at once if it has already). 0 or a negative fi_errno. Takes the lock itself.
  ssize_t defer(Endpoint& endpoint, ses::Kind kind, const TxCall& call,
                std::function<ssize_t(const TxCall&)> post) noexcept;
  ssize_t defer(Endpoint& endpoint, const RxCall& call) noexcept;

  // The counter has moved: what it releases is posted at the next run() of its engine. With the
  // counter's lock where there are several engines.
  static void moved(Cntr& counter) noexcept;
  // Posts what has been released. Called where no call of SES is under way.
  void run() noexcept {
    if ((!released_.empty() || has_arrivals()) && !running_) run_released();
  }
  // Without the lock.
  bool has_arrivals() const noexcept { return has_arrivals_.load(std::memory_order_acquire); }

  // The completion of deferred work as its endpoint tells it, with the application's context and
  // flags; the work's own counter counts if `counts`. `counter` is the endpoint's for this kind.
  ses::Completion finish(const ses::Completion& completion, const Cntr* counter,
                         bool counts) noexcept;
  // fi_cancel: true if a triggered operation with this context was waiting; it has ended. If
  // deferred work has been posted with it, `context` becomes that of its operation.
  bool cancel(Endpoint& endpoint, void*& context) noexcept;
  // The endpoint closes: its works end without a word, also posted ones if `posted`.
  void drop(Endpoint& endpoint, bool posted) noexcept;

 private:
  template <class Prepare>
  ssize_t enqueue(Endpoint& endpoint, ses::Kind kind, void* context, std::uint64_t flags,
                  Prepare prepare) noexcept;
  int queue_counter_work(fi_deferred_work& work) noexcept;
  void wait(Work& work) noexcept;
  void release(Work& work) noexcept;
  void take_arrivals() noexcept;
  void run_released() noexcept;
  bool post(Work& work) noexcept;
  void end(Work& work) noexcept;
  template <class Condition>
  bool end_all(Condition condition) noexcept;

  Engine& engine_;
  WorkList released_;
  IntrusiveList<Work, AllWorkTag> all_;
  bool running_ = false;
  std::mutex arrivals_lock_;
  WorkList arrived_;
  std::atomic<bool> has_arrivals_{false};
  EventFd arrival_;
};

}  // namespace uet::prov
