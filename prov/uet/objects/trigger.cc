// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A work's way: waiting (on its counter's list), released (on the queue's), and, if it is deferred
// work, posted (on none) until its completion comes. Works are rare enough to allocate each.
#include "objects/trigger.h"

#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "errors.h"
#include "objects/cntr.h"
#include "objects/endpoint.h"
#include "objects/engine.h"
#include "objects/references.h"
#include "provider.h"

namespace uet::prov {

struct Work : ListNode<StageTag>, ListNode<AllWorkTag> {
  WorkQueue* queue = nullptr;  // where it is, and is posted
  // The condition; `id` names the deferred work, nullptr is a triggered operation.
  const fi_deferred_work* id = nullptr;
  Cntr* trigger = nullptr;
  Hold trigger_hold;
  std::uint64_t threshold = 0;

  // The operation.
  std::function<ssize_t()> post;  // with the domain's lock
  Endpoint* endpoint = nullptr;   // nullptr: the work is one on a counter
  Hold target_hold;               // that counter's
  ses::Kind kind{};
  void* context = nullptr;
  std::uint64_t flags = 0;
  std::vector<iovec> iov;
  std::vector<void*> descriptors;
  std::vector<std::byte> injected;

  // Keeps what the call only points to.
  template <class Call>
  void keep(Call& call) {
    iov.assign(call.iov, call.iov + call.count);
    call.iov = iov.data();
    if (call.descriptors == nullptr) return;
    descriptors.assign(call.descriptors, call.descriptors + call.count);
    call.descriptors = descriptors.data();
  }

  // Then.
  bool posted = false;
  Cntr* completion = nullptr;
  Hold completion_hold;

  bool receives() const { return kind == ses::Kind::Receive || kind == ses::Kind::TaggedReceive; }
  // Deferred work looks at successes and errors, a triggered operation at successes.
  bool due() const {
    return threshold <= trigger->value() + (id != nullptr ? trigger->errors() : 0);
  }
};

namespace {

// The deferred work that this thread is queueing; its operation comes back to us through the call
// that an application would have posted it with, which has checked and translated it.
thread_local const fi_deferred_work* queueing = nullptr;
thread_local std::uint64_t queueing_flags = 0;

int refuse_work(int error, const char* why) noexcept {
  FI_WARN(&provider, FI_LOG_DOMAIN, "%s\n", why);
  return error;
}

// Same message, but triggered.
ssize_t post_through_endpoint(const fi_deferred_work& work) noexcept {
  switch (work.op_type) {
    case FI_OP_RECV:
      return fi_recvmsg(work.op.msg->ep, &work.op.msg->msg, work.op.msg->flags | FI_TRIGGER);
    case FI_OP_SEND:
      return fi_sendmsg(work.op.msg->ep, &work.op.msg->msg, work.op.msg->flags | FI_TRIGGER);
    case FI_OP_TRECV:
      return fi_trecvmsg(work.op.tagged->ep, &work.op.tagged->msg,
                         work.op.tagged->flags | FI_TRIGGER);
    case FI_OP_TSEND:
      return fi_tsendmsg(work.op.tagged->ep, &work.op.tagged->msg,
                         work.op.tagged->flags | FI_TRIGGER);
    case FI_OP_READ:
      return fi_readmsg(work.op.rma->ep, &work.op.rma->msg, work.op.rma->flags | FI_TRIGGER);
    case FI_OP_WRITE:
      return fi_writemsg(work.op.rma->ep, &work.op.rma->msg, work.op.rma->flags | FI_TRIGGER);
    case FI_OP_ATOMIC:
      return fi_atomicmsg(work.op.atomic->ep, &work.op.atomic->msg,
                          work.op.atomic->flags | FI_TRIGGER);
    case FI_OP_FETCH_ATOMIC: {
      const fi_op_fetch_atomic& op = *work.op.fetch_atomic;
      return fi_fetch_atomicmsg(op.ep, &op.msg, const_cast<fi_ioc*>(op.fetch.msg_iov),
                                op.fetch.desc, op.fetch.iov_count, op.flags | FI_TRIGGER);
    }
    case FI_OP_COMPARE_ATOMIC: {
      const fi_op_compare_atomic& op = *work.op.compare_atomic;
      return fi_compare_atomicmsg(op.ep, &op.msg, op.compare.msg_iov, op.compare.desc,
                                  op.compare.iov_count, const_cast<fi_ioc*>(op.fetch.msg_iov),
                                  op.fetch.desc, op.fetch.iov_count, op.flags | FI_TRIGGER);
    }
    default:
      return refuse_work(
          -FI_ENOSYS,
          "fi_control: FI_QUEUE_WORK: this op_type is not supported; see fi_trigger(3)");
  }
}

std::uint64_t flags_of(const fi_deferred_work& work) noexcept {
  switch (work.op_type) {
    case FI_OP_RECV:
    case FI_OP_SEND:
      return work.op.msg->flags;
    case FI_OP_TRECV:
    case FI_OP_TSEND:
      return work.op.tagged->flags;
    case FI_OP_READ:
    case FI_OP_WRITE:
      return work.op.rma->flags;
    case FI_OP_ATOMIC:
      return work.op.atomic->flags;
    case FI_OP_FETCH_ATOMIC:
      return work.op.fetch_atomic->flags;
    case FI_OP_COMPARE_ATOMIC:
      return work.op.compare_atomic->flags;
    default:
      return 0;
  }
}

// The call as the work posts it: with the lock, and in deferred work with the work as context.
template <class Call>
void mark(Call& call, Work& work) {
  call.flags = work.flags;
  call.locked = true;
  if (work.id == nullptr) return;
  call.context = &work;
  call.mark = kDeferred;
}

// Fills in when the work is due: from the deferred work in hand, else from the context.
int set_trigger(Work& work, Engine& engine, void* context) noexcept {
  fid_cntr* counter = nullptr;
  if (queueing != nullptr) {
    work.id = queueing;
    work.threshold = queueing->threshold;
    counter = queueing->triggering_cntr;
    if (queueing->completion_cntr != nullptr) {
      work.completion = &Cntr::from(queueing->completion_cntr);
      work.completion_hold = Hold(work.completion->references());
    }
  } else {
    const auto* triggered = static_cast<const fi_triggered_context*>(context);
    if (triggered == nullptr || triggered->event_type != FI_TRIGGER_THRESHOLD) {
      return refuse_work(-FI_EINVAL,
                         "fi_sendmsg, fi_recvmsg: FI_TRIGGER: no threshold; pass a "
                         "fi_triggered_context as context");
    }
    work.threshold = triggered->trigger.threshold.threshold;
    counter = triggered->trigger.threshold.cntr;
  }
  if (counter == nullptr)
    return refuse_work(
        -FI_EINVAL,
        "fi_control, fi_sendmsg: trigger: the counter to wait for is missing; pass one");
  work.trigger = &Cntr::from(counter);
  work.trigger_hold = Hold(work.trigger->references());
  const bool ours = work.trigger->engines().has(engine) &&
                    (work.completion == nullptr || work.completion->engines().has(engine));
  return ours ? 0
              : refuse_work(-FI_EDOMAIN,
                            "fi_control, fi_sendmsg: trigger: a counter belongs to another domain; "
                            "open it on the same domain");
}

}  // namespace

WorkQueue::~WorkQueue() {
  while (!all_.empty()) end(all_.front());
}

// `prepare` makes work.post from the call, with the work's own copy of the pieces.
template <class Prepare>
ssize_t WorkQueue::enqueue(Endpoint& endpoint, ses::Kind kind, void* context, std::uint64_t flags,
                           Prepare prepare) noexcept {
  return guarded([&]() -> ssize_t {
    auto work = std::make_unique<Work>();
    if (const int result = set_trigger(*work, engine_, context); result != 0) return result;
    work->endpoint = &endpoint;
    work->kind = kind;
    work->context = context;
    work->flags =
        (queueing != nullptr ? queueing_flags : flags) & ~static_cast<std::uint64_t>(FI_TRIGGER);
    prepare(*work);
    const Guard guard(engine_.lock());
    endpoint.bindings().serve_all_engines();
    wait(*work.release());
    return 0;
  });
}

ssize_t WorkQueue::defer(Endpoint& endpoint, ses::Kind kind, const TxCall& call,
                         std::function<ssize_t(const TxCall&)> post) noexcept {
  return enqueue(endpoint, kind, call.context, call.flags, [&](Work& work) {
    TxCall own = call;
    work.keep(own);
    // The buffers of a triggered inject are the caller's again when this returns.
    if (work.id == nullptr && (call.flags & FI_INJECT) != 0) {
      for (const iovec& piece : work.iov) {
        const auto* bytes = static_cast<const std::byte*>(piece.iov_base);
        work.injected.insert(work.injected.end(), bytes, bytes + piece.iov_len);
      }
      work.iov.assign(1, {work.injected.data(), work.injected.size()});
      own.count = 1;
      own.descriptors = nullptr;
    }
    mark(own, work);
    work.post = [own, post = std::move(post)] { return post(own); };
  });
}

ssize_t WorkQueue::defer(Endpoint& endpoint, const RxCall& call) noexcept {
  const ses::Kind kind = call.tagged ? ses::Kind::TaggedReceive : ses::Kind::Receive;
  return enqueue(endpoint, kind, call.context, call.flags, [&](Work& work) {
    RxCall own = call;
    work.keep(own);
    mark(own, work);
    work.post = [own, &endpoint] { return endpoint.rx().receive(own); };
  });
}

int WorkQueue::queue_counter_work(fi_deferred_work& deferred) noexcept {
  return guarded([&] {
    Cntr& target = Cntr::from(deferred.op.cntr->cntr);
    if (deferred.completion_cntr != nullptr) {
      return refuse_work(
          -FI_EINVAL,
          "fi_control: FI_QUEUE_WORK: work on a counter has a completion_cntr; pass none");
    }
    if (!target.engines().has(engine_)) {
      return refuse_work(-FI_EDOMAIN,
                         "fi_control: FI_QUEUE_WORK: the counter to change belongs to another "
                         "domain; open it on the same domain");
    }
    auto work = std::make_unique<Work>();
    if (const int result = set_trigger(*work, engine_, nullptr); result != 0) return result;
    work->target_hold = Hold(target.references());
    const std::uint64_t value = deferred.op.cntr->value;
    const bool adds = deferred.op_type == FI_OP_CNTR_ADD;
    work->post = [&target, value, adds]() -> ssize_t {
      target.change(value, true, adds);
      return 0;
    };
    const Guard guard(engine_.lock());
    wait(*work.release());
    return 0;
  });
}

int WorkQueue::queue(fi_deferred_work& work) noexcept {
  if (work.op.msg == nullptr) {  // or another pointer of the union
    return refuse_work(-FI_EINVAL, "fi_control: FI_QUEUE_WORK: op is missing; pass an operation");
  }
  queueing = &work;
  queueing_flags = flags_of(work);
  const bool on_counter = work.op_type == FI_OP_CNTR_SET || work.op_type == FI_OP_CNTR_ADD;
  const int result =
      on_counter ? queue_counter_work(work) : static_cast<int>(post_through_endpoint(work));
  queueing = nullptr;
  return result;
}

void WorkQueue::wait(Work& work) noexcept {
  work.queue = this;
  all_.push_back(work);
  // The readers of these counters need this engine, and the one whose operation triggers the work.
  work.trigger->count_for_all();
  if (work.completion != nullptr) work.completion->count_for_all();
  {
    const WriterGuard guard(work.trigger->writers_lock());
    // By threshold, and as posted where thresholds are equal.
    WorkList& waiting = work.trigger->waiting();
    auto at = waiting.begin();
    if (!waiting.empty() && waiting.back().threshold <= work.threshold) at = waiting.end();
    while (at != waiting.end() && at->threshold <= work.threshold) ++at;
    waiting.insert(at, work);
    moved(*work.trigger);
  }
  run();
}

int WorkQueue::serve_several() noexcept { return arrival_.open() ? 0 : -errno; }

void WorkQueue::release(Work& work) noexcept {
  if (fd() < 0) return released_.push_back(work);
  const std::lock_guard guard(arrivals_lock_);
  arrived_.push_back(work);
  if (!has_arrivals_.exchange(true, std::memory_order_release)) arrival_.signal();
}

void WorkQueue::take_arrivals() noexcept {
  if (!has_arrivals()) return;
  const std::lock_guard guard(arrivals_lock_);
  while (!arrived_.empty()) released_.push_back(arrived_.pop_front());
  has_arrivals_.store(false, std::memory_order_relaxed);
  arrival_.drain();
}

void WorkQueue::moved(Cntr& counter) noexcept {
  WorkList& waiting = counter.waiting();
  for (auto at = waiting.begin(); at != waiting.end();) {
    Work& work = *at;
    ++at;
    if (work.threshold > counter.value() + counter.errors()) break;
    if (!work.due()) continue;
    WorkList::remove(work);
    work.queue->release(work);
  }
}

// True: the work is posted or has ended; it is on no list meanwhile, because it may end in here.
bool WorkQueue::post(Work& work) noexcept {
  const bool awaits_completion = work.id != nullptr && work.endpoint != nullptr;
  work.posted = true;
  const ssize_t result = work.post();
  if (result == 0) {
    if (!awaits_completion) end(work);
    return true;
  }
  work.posted = false;
  if (result == -FI_EAGAIN) return false;
  // Why has been logged; the application is told as if it had cancelled.
  void* const context = awaits_completion ? &work : work.context;
  const std::uint64_t flags = awaits_completion ? kDeferred : work.flags;
  if (!work.endpoint->end_unposted(work.kind, context, flags)) return false;
  if (!awaits_completion) end(work);
  return true;
}

// In order for each endpoint and direction: work that cannot be posted now delays only work of the
// same endpoint and direction. Posted work may release more work, which is posted in the same call,
// so that a chain of any length needs one call.
void WorkQueue::run_released() noexcept {
  struct Queue {
    const Endpoint* endpoint;
    bool receives;
    bool operator==(const Queue&) const = default;
  };
  std::array<Queue, 16> full;
  std::size_t full_count = 0;
  WorkList held;
  running_ = true;
  for (take_arrivals(); !released_.empty() && full_count < full.size(); take_arrivals()) {
    Work& work = released_.pop_front();
    const Queue queue{work.endpoint, work.receives()};
    const auto end = full.begin() + static_cast<std::ptrdiff_t>(full_count);
    const bool behind_another = std::find(full.begin(), end, queue) != end;
    if (!behind_another && post(work)) continue;
    held.push_back(work);
    if (!behind_another) full[full_count++] = queue;
  }
  while (!held.empty()) {
    Work& work = held.back();
    WorkList::remove(work);
    released_.push_front(work);
  }
  running_ = false;
}

void WorkQueue::end(Work& work) noexcept {
  if (fd() < 0) {
    if (static_cast<ListNode<StageTag>&>(work).linked()) WorkList::remove(work);
  } else {  // another engine may be releasing it
    const WriterGuard of_counter(work.trigger->writers_lock());
    const std::lock_guard of_arrivals(arrivals_lock_);
    if (static_cast<ListNode<StageTag>&>(work).linked()) WorkList::remove(work);
  }
  decltype(all_)::remove(work);
  delete &work;
}

ses::Completion WorkQueue::finish(const ses::Completion& completion, const Cntr* counter,
                                  bool counts) noexcept {
  Work& work = *static_cast<Work*>(completion.context);
  ses::Completion own = completion;
  own.context = work.context;
  own.user_flags = work.flags;
  const bool told = (work.flags & FI_COMPLETION) != 0 && work.completion != counter;
  if (!told) own.user_flags |= kUncounted;
  if (work.completion != nullptr && counts) {
    work.completion->count(to_completion_error(completion).err == 0, completion.length);
  }
  if (!completion.multi || completion.released) end(work);
  return own;
}

template <class Condition>
bool WorkQueue::end_all(Condition condition) noexcept {
  bool any = false;
  for (auto at = all_.begin(); at != all_.end();) {
    Work& work = *at;
    ++at;
    if (!condition(work)) continue;
    end(work);
    any = true;
  }
  return any;
}

int WorkQueue::cancel(const fi_deferred_work& deferred) noexcept {
  const Guard guard(engine_.lock());
  const bool found =
      end_all([&](const Work& work) { return work.id == &deferred && !work.posted; });
  return found ? 0 : -FI_ENOENT;
}

int WorkQueue::flush(const fi_deferred_work* which) noexcept {
  const fid_cntr* counter = which != nullptr ? which->triggering_cntr : nullptr;
  const Guard guard(engine_.lock());
  end_all([&](const Work& work) {
    return work.id != nullptr && !work.posted && (counter == nullptr || work.trigger == counter);
  });
  return 0;
}

bool WorkQueue::cancel(Endpoint& endpoint, void*& context) noexcept {
  for (Work& work : all_) {
    if (work.endpoint != &endpoint || work.context != context) continue;
    if (work.id != nullptr) {
      if (!work.posted) continue;  // FI_CANCEL_WORK cancels it
      context = &work;
      return false;
    }
    if (!endpoint.end_unposted(work.kind, work.context, work.flags)) return false;
    end(work);
    return true;
  }
  return false;
}

void WorkQueue::drop(Endpoint& endpoint, bool posted) noexcept {
  end_all([&](const Work& work) { return work.endpoint == &endpoint && (posted || !work.posted); });
}

}  // namespace uet::prov
