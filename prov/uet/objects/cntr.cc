// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Reading a counter makes progress, like reading a queue.
#include "objects/cntr.h"

#include <sched.h>

#include <algorithm>
#include <memory>

#include "compat.h"
#include "objects/domain.h"
#include "ops.h"

namespace uet::prov {
namespace {

constexpr Duration kCntrSpin = std::chrono::microseconds(20);  // before a wait sleeps

int close_cntr(fid* fid) noexcept { return Cntr::from(fid).close(); }

int cntr_control(fid* fid, int command, void* argument) noexcept {
  return Cntr::from(fid).control(command, argument);
}

std::uint64_t cntr_read(fid_cntr* cntr) noexcept { return Cntr::from(cntr).read(); }
std::uint64_t cntr_readerr(fid_cntr* cntr) noexcept { return Cntr::from(cntr).read_errors(); }
int cntr_add(fid_cntr* cntr, std::uint64_t value) noexcept {
  return Cntr::from(cntr).add(value, true);
}
int cntr_set(fid_cntr* cntr, std::uint64_t value) noexcept {
  return Cntr::from(cntr).set(value, true);
}
int cntr_adderr(fid_cntr* cntr, std::uint64_t value) noexcept {
  return Cntr::from(cntr).add(value, false);
}
int cntr_seterr(fid_cntr* cntr, std::uint64_t value) noexcept {
  return Cntr::from(cntr).set(value, false);
}
int cntr_wait(fid_cntr* cntr, std::uint64_t threshold, int timeout) noexcept {
  return Cntr::from(cntr).wait(threshold, timeout);
}

fi_ops cntr_fid_ops = {
    .size = sizeof(fi_ops),
    .close = close_cntr,
    .bind = no_bind,
    .control = cntr_control,
    .ops_open = no_ops_open,
    .tostr = no_tostr,
    .ops_set = no_ops_set,
};

fi_ops_cntr cntr_ops = {
    .size = sizeof(fi_ops_cntr),
    .read = cntr_read,
    .readerr = cntr_readerr,
    .add = cntr_add,
    .set = cntr_set,
    .wait = cntr_wait,
    .adderr = cntr_adderr,
    .seterr = cntr_seterr,
};

}  // namespace

Cntr::Cntr(Domain& domain, const fi_cntr_attr& attr, void* context)
    : fid_cntr{},
      engine_(domain.engine()),
      writers_lock_(domain.engines().several() ? &lock_ : nullptr),
      hold_(domain.references()),
      in_bytes_(static_cast<int>(attr.events) == kCounterEventsBytes),
      read_(domain.engines()) {
  fid.fclass = FI_CLASS_CNTR;
  fid.context = context;
  fid.ops = &cntr_fid_ops;
  ops = &cntr_ops;
}

int Cntr::open(Domain& domain, const fi_cntr_attr& attr, void* context, Cntr*& out) {
  if (domain.engine().dead()) return -FI_EOPNOTSUPP;
  const int events = attr.events;
  if ((events != FI_CNTR_EVENTS_COMP && events != kCounterEventsBytes) || attr.flags != 0) {
    FI_WARN(&provider, FI_LOG_CNTR, "fi_cntr_open: events %d or flags 0x%llx not supported\n",
            events, static_cast<unsigned long long>(attr.flags));
    return -FI_EINVAL;
  }
  std::unique_ptr<Cntr> cntr(new Cntr(domain, attr, context));
  int result = attr.wait_obj != FI_WAIT_NONE ? cntr->read_.open() : 0;
  if (result != 0) return result;
  result = cntr->waiter_.open(attr.wait_obj, attr.wait_set, &cntr->fid, &domain.engines());
  if (result != 0) return result;
  out = cntr.release();
  return 0;
}

int Cntr::close() noexcept {
  if (references_.any()) return -FI_EBUSY;
  delete this;
  return 0;
}

std::uint64_t Cntr::poll(const std::atomic<std::uint64_t>& number,
                         std::atomic<std::uint64_t>& told) noexcept {
  if (engine_.dead()) return number.load(std::memory_order_relaxed);
  std::uint64_t result = 0;
  if (engine_.submissions().active()) {
    result = number.load(std::memory_order_acquire);
    const bool moved = told.load(std::memory_order_relaxed) != result;
    told.store(result, std::memory_order_relaxed);
    if (!moved) idle_reads_.note();
    return result;
  }
  bool idle = false;
  if (read_.several()) {
    idle = read_.progress(clock_now());
    result = number.load(std::memory_order_acquire);
    if (idle && told.exchange(result, std::memory_order_relaxed) == result) read_.yield();
    return result;
  }
  {
    const Guard guard(engine_.lock());
    engine_.progress(clock_now());
    result = number.load(std::memory_order_relaxed);
    told.store(result, std::memory_order_relaxed);
    idle = engine_.patience().exhausted();
  }
  if (idle) engine_.patience().yield();
  return result;
}

std::uint64_t Cntr::read() noexcept { return poll(value_, waited_.value); }

std::uint64_t Cntr::read_errors() noexcept {
  const std::uint64_t errors = poll(errors_, waited_.errors);
  errors_read_ = errors;
  return errors;
}

// A thread that waits for a value also wakes when the number of errors changes.
void Cntr::change(std::uint64_t value, bool good, bool adds) noexcept {
  const WriterGuard guard(writers_lock_);
  std::atomic<std::uint64_t>& number = good ? value_ : errors_;
  number = adds ? number + value : value;
  (good ? polled_.value : polled_.errors) = number.load();
  errors_read_ = std::min(errors_read_.load(), errors());
  waiter_.notify(good ? this->value() : UINT64_MAX);
  if (!waiting_.empty()) WorkQueue::moved(*this);
}

int Cntr::change_by_call(std::uint64_t value, bool good, bool adds) noexcept {
  if (engine_.dead()) return -FI_EOPNOTSUPP;
  if (read_.several()) {
    change(value, good, adds);
    read_.run_works();
    return 0;
  }
  const Guard guard(engine_.lock());
  change(value, good, adds);
  engine_.works().run();
  return 0;
}

int Cntr::add(std::uint64_t value, bool good) noexcept { return change_by_call(value, good, true); }

int Cntr::set(std::uint64_t value, bool good) noexcept {
  return change_by_call(value, good, false);
}

int Cntr::wait(std::uint64_t threshold, int timeout) noexcept {
  if (engine_.dead()) return -FI_EOPNOTSUPP;
  const nic::NoCancel no_cancel;
  Time now = clock_now();
  const Time end = end_of_timeout(now, timeout);
  const Time spin_end = now + kCntrSpin;
  while (engine_.submissions().active() && now < std::min(spin_end, end)) {
    if (value_.load(std::memory_order_acquire) >= threshold) return 0;
    sched_yield();
    now = clock_now();
  }
  if (read_.several()) return wait_for_several(threshold, now, end);
  const Guard guard(engine_.lock());
  for (;;) {
    if (!engine_.submissions().active()) engine_.progress(now);
    if (value_ >= threshold) return 0;
    if (errors_ > errors_read_) return -FI_EAVAIL;
    if (now >= end) return -FI_ETIMEDOUT;
    if (now < spin_end) {
      engine_.lock().unlock();
      sched_yield();
      engine_.lock().lock();
    } else {
      waiter_.sleep(engine_.lock(), engine_.activity(), end, threshold);
    }
    now = clock_now();
  }
}

// As wait(), where the engines' locks are not the counter's.
int Cntr::wait_for_several(std::uint64_t threshold, Time now, Time end) noexcept {
  const Time spin_end = now + kCntrSpin;
  for (;; now = clock_now()) {
    read_.progress(now);
    const bool spins = now < spin_end;
    const int activity = spins ? -1 : read_.activity();
    {
      const Guard guard(lock_);
      if (value_ >= threshold) return 0;
      if (errors_ > errors_read_) return -FI_EAVAIL;
      if (now >= end) return -FI_ETIMEDOUT;
      if (!spins) waiter_.sleep(lock_, activity, end, threshold);
    }
    if (spins) sched_yield();
  }
}

// `use` gets a descriptor that is readable when an engine needs progress.
template <class Use>
int Cntr::with_waiter(Use use) noexcept {
  if (engine_.dead()) return -FI_EOPNOTSUPP;
  if (read_.several()) {
    const int activity = read_.activity();
    const Guard guard(lock_);
    return use([activity] { return activity; });
  }
  const Guard guard(engine_.lock());
  return use([this]() UET_NO_THREAD_ANALYSIS { return engine_.activity(); });
}

int Cntr::try_wait() noexcept {
  return with_waiter([this](auto activity) {
    if (!waiter_.has_object()) return -FI_EINVAL;
    if (waited_.differs(value(), errors())) return -FI_EAGAIN;
    waiter_.arm();
    activity();
    return 0;
  });
}

int Cntr::control(int command, void* argument) noexcept {
  return with_waiter([&](auto activity) { return waiter_.control(command, argument, activity()); });
}

bool Cntr::pending() noexcept {
  if (engine_.dead()) return true;
  const Guard guard(read_.several() ? lock_ : engine_.lock());
  return waited_.differs(value(), errors());
}

int cntr_open(fid_domain* domain, fi_cntr_attr* attr, fid_cntr** cntr, void* context) noexcept {
  return guarded([&] {
    Cntr* opened = nullptr;
    const fi_cntr_attr preset{};
    const int result =
        Cntr::open(Domain::from(domain), attr != nullptr ? *attr : preset, context, opened);
    if (result == 0) *cntr = opened;
    return result;
  });
}

}  // namespace uet::prov
