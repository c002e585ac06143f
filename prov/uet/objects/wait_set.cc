// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A set looks at its members one after the other, each with the member's lock; what happens
// meanwhile signals the set.
#include "objects/wait_set.h"

#include <sched.h>

#include <algorithm>
#include <memory>

#include "objects/cntr.h"
#include "objects/cq.h"
#include "objects/engines.h"
#include "objects/eq.h"
#include "ops.h"

namespace uet::prov {
namespace {

int close_wait_set(fid* fid) noexcept { return WaitSet::from(fid).close(); }

int set_control(fid* fid, int command, void* argument) noexcept {
  return WaitSet::from(fid).control(command, argument);
}

int set_wait(fid_wait* set, int timeout) noexcept { return WaitSet::from(set).wait(timeout); }

bool pending(fid* fid) noexcept {
  switch (fid->fclass) {
    case FI_CLASS_CQ:
      return Cq::from(fid).pending();
    case FI_CLASS_CNTR:
      return Cntr::from(fid).pending();
    default:
      return Eq::from(fid).pending();
  }
}

fi_ops wait_set_fid_ops = {
    .size = sizeof(fi_ops),
    .close = close_wait_set,
    .bind = no_bind,
    .control = set_control,
    .ops_open = no_ops_open,
    .tostr = no_tostr,
    .ops_set = no_ops_set,
};

fi_ops_wait wait_set_ops = {
    .size = sizeof(fi_ops_wait),
    .wait = set_wait,
};

}  // namespace

int try_wait(struct fid* fid) noexcept {
  switch (fid->fclass) {
    case FI_CLASS_CQ:
      return Cq::from(fid).try_wait();
    case FI_CLASS_CNTR:
      return Cntr::from(fid).try_wait();
    case FI_CLASS_EQ:
      return Eq::from(fid).try_wait();
    case FI_CLASS_WAIT:
      return WaitSet::from(fid).try_wait();
    default:
      FI_WARN(&provider, FI_LOG_FABRIC, "fi_trywait: object class %zu has no wait object\n",
              fid->fclass);
      return -FI_EINVAL;
  }
}

WaitSet::WaitSet(Fabric& fabric) : fid_wait{}, hold_(fabric.references()) {
  fid.fclass = FI_CLASS_WAIT;
  fid.ops = &wait_set_fid_ops;
  ops = &wait_set_ops;
}

int WaitSet::open(Fabric& fabric, const fi_wait_attr& attr, WaitSet*& out) {
  const unsigned object = raw_number(attr.wait_obj);
  if (attr.flags != 0 || object == FI_WAIT_NONE || object == FI_WAIT_SET) {
    FI_WARN(&provider, FI_LOG_FABRIC, "fi_wait_open: wait object %u or flags 0x%llx not valid\n",
            object, static_cast<unsigned long long>(attr.flags));
    return -FI_EINVAL;
  }
  std::unique_ptr<WaitSet> set(new WaitSet(fabric));
  if (const int result = set->domains_.open(); result != 0) return result;
  const int result = set->waiter_.open(attr.wait_obj, nullptr, nullptr, nullptr);
  if (result != 0) return result;
  out = set.release();
  return 0;
}

int WaitSet::close() noexcept {
  if (references_.any()) return -FI_EBUSY;
  {
    const std::lock_guard mutex(members_mutex_);
    if (!members_.empty()) return -FI_EBUSY;
  }
  delete this;
  return 0;
}

int WaitSet::attach(struct fid& member, Engines* engines) {
  if (engines != nullptr) {
    if (waiter_.kind() == FI_WAIT_MUTEX_COND) {
      if (const int result = engines->need_thread(); result != 0) return result;
    }
    if (const int result = domains_.add(*engines); result != 0) return result;
  }
  const std::lock_guard mutex(members_mutex_);
  members_.push_back(&member);
  return 0;
}

void WaitSet::detach(struct fid& member, Engines* engines) noexcept {
  {
    const std::lock_guard mutex(members_mutex_);
    std::erase(members_, &member);
  }
  if (engines == nullptr) return;
  for (const auto& engine : *engines) domains_.remove(*engine);
}

// Looks at all: counters note what has been told.
bool WaitSet::anything() noexcept {
  const std::lock_guard mutex(members_mutex_);
  bool found = false;
  for (struct fid* member : members_) found |= pending(member);
  return found;
}

int WaitSet::wait(int timeout) noexcept {
  const nic::NoCancel no_cancel;
  const Time end = end_of_timeout(clock_now(), timeout);
  for (;;) {
    domains_.progress();
    Sleeper sleeper(1);
    {
      const Guard guard(lock_);
      waiter_.enlist(sleeper);
    }
    const bool found = anything();
    const bool late = clock_now() >= end;
    bool undisturbed = true;
    if (waiter_.kind() == FI_WAIT_YIELD) {
      sched_yield();
    } else if (!found && !late) {
      undisturbed = sleeper.wait(domains_.activity(), end);
    }
    {
      const Guard guard(lock_);
      waiter_.delist(sleeper);
    }
    if (found) return 0;
    if (late) return -FI_ETIMEDOUT;
    if (!undisturbed) return -FI_EINTR;
  }
}

int WaitSet::try_wait() noexcept {
  {
    const Guard guard(lock_);
    if (!waiter_.has_object()) return -FI_EINVAL;
    waiter_.arm();
  }
  domains_.activity();
  return anything() ? -FI_EAGAIN : 0;
}

int WaitSet::control(int command, void* argument) noexcept {
  const Guard guard(lock_);
  return waiter_.control(command, argument, domains_.descriptor());
}

int wait_open(fid_fabric* fabric, fi_wait_attr* attr, fid_wait** set) noexcept {
  return guarded([&] {
    WaitSet* opened = nullptr;
    const int result = WaitSet::open(Fabric::from(fabric), *attr, opened);
    if (result == 0) *set = opened;
    return result;
  });
}

}  // namespace uet::prov
