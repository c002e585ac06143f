// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// fid_wait: one sleep for several queues and counters of one fabric.
#pragma once

#include <rdma/fi_eq.h>

#include <mutex>
#include <vector>

#include "objects/domain_group.h"
#include "objects/fabric.h"
#include "objects/references.h"
#include "objects/wait.h"

namespace uet::prov {

// fi_ops_fabric.wait_open: fi_wait_open(3).
int wait_open(fid_fabric* fabric, fi_wait_attr* attr, fid_wait** set) noexcept;

// Answers fi_trywait for any object: arms its wait object; 0, -FI_EAGAIN when something is there
// already, -FI_EINVAL when it has nothing to block on.
int try_wait(struct fid* fid) noexcept;

class WaitSet final : public fid_wait {
 public:
  static WaitSet& from(fid_wait* fid) { return static_cast<WaitSet&>(*fid); }
  static WaitSet& from(struct fid* fid) { return from(reinterpret_cast<fid_wait*>(fid)); }
  static int open(Fabric& fabric, const fi_wait_attr& attr, WaitSet*& out);
  int close() noexcept;

  // A queue or counter comes and goes; `engines` may be nullptr (EQ).
  int attach(struct fid& member, Engines* engines);
  void detach(struct fid& member, Engines* engines) noexcept;
  // A member has news; with the member's lock.
  void signal() noexcept {
    const Guard guard(lock_);
    waiter_.notify();
  }

  // Implementations of the calls of the same name.
  int wait(int timeout) noexcept;
  int try_wait() noexcept;
  int control(int command, void* argument) noexcept;

 private:
  explicit WaitSet(Fabric& fabric);
  bool anything() noexcept;

  Hold hold_;
  References references_;
  DomainGroup domains_;
  std::mutex members_mutex_;  // held while a member's lock is taken, never the other way round
  std::vector<struct fid*> members_;
  Lock lock_{true};  // the waiter's; taken last of all
  Waiter waiter_;
};

}  // namespace uet::prov
