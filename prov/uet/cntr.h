// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// fid_cntr: how many operations have ended well, and how many badly.
#pragma once

#include <rdma/fi_eq.h>

#include "domain.h"
#include "references.h"
#include "wait.h"

namespace uet::prov {

// fi_ops_domain.cntr_open: fi_cntr_open(3).
int cntr_open(fid_domain* domain, fi_cntr_attr* attr, fid_cntr** cntr, void* context) noexcept;

class Cntr final : public fid_cntr {
 public:
  static Cntr& from(fid_cntr* fid) { return *static_cast<Cntr*>(fid); }
  static Cntr& from(struct fid* fid) { return from(reinterpret_cast<fid_cntr*>(fid)); }
  static int open(Domain& domain, const fi_cntr_attr& attr, void* context, Cntr*& out);
  int close() noexcept;

  Domain& domain() { return domain_; }
  References& references() { return references_; }

  // An operation ended; with the domain's lock.
  void count(bool good) noexcept {
    ++(good ? value_ : errors_);
    waiter_.notify();
  }

  // What the calls of the same name do; these take the lock themselves.
  std::uint64_t read() noexcept;
  std::uint64_t read_errors() noexcept;
  int wait(std::uint64_t threshold, int timeout) noexcept;
  int try_wait() noexcept;
  int control(int command, void* argument) noexcept { return waiter_.control(command, argument); }

  // fi_cntr_add and fi_cntr_set, for successes or errors.
  int add(std::uint64_t value, bool good) noexcept;
  int set(std::uint64_t value, bool good) noexcept;

 private:
  std::uint64_t poll(const std::uint64_t& number) noexcept;
  Cntr(Domain& domain, void* context);

  Domain& domain_;
  Hold hold_;
  References references_;
  std::uint64_t value_ = 0;
  std::uint64_t errors_ = 0;
  std::uint64_t armed_sum_ = 0;  // value and errors when fi_trywait looked last
  Waiter waiter_;
};

}  // namespace uet::prov
