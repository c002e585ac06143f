// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// fid_cntr: how many operations have ended well, and how many badly.
#pragma once

#include <rdma/fi_eq.h>

#include <atomic>
#include <cstdint>

#include "objects/engines.h"
#include "objects/references.h"
#include "objects/wait.h"

namespace uet::prov {

class Domain;

// fi_ops_domain.cntr_open: fi_cntr_open(3).
int cntr_open(fid_domain* domain, fi_cntr_attr* attr, fid_cntr** cntr, void* context) noexcept;

// Aligned: threads with counters of their own write to no cache line in common.
class alignas(64) Cntr final : public fid_cntr {
 public:
  static Cntr& from(fid_cntr* fid) { return static_cast<Cntr&>(*fid); }
  static Cntr& from(struct fid* fid) { return from(reinterpret_cast<fid_cntr*>(fid)); }
  static int open(Domain& domain, const fi_cntr_attr& attr, void* context, Cntr*& out);
  int close() noexcept;

  const Engines& engines() const { return read_.all(); }
  References& references() { return references_; }
  // An endpoint of this engine is bound, or a region, whose peers come through all. With the lock
  // of the engine.
  void count_for(const Engine& engine) noexcept { read_.add(engine); }
  void count_for_all() noexcept { read_.add_all(); }

  // All below with the lock of an engine; what changes takes lock_ too if there are several.
  std::uint64_t value() const { return value_.load(std::memory_order_relaxed); }
  std::uint64_t errors() const { return errors_.load(std::memory_order_relaxed); }
  // Work that waits for its values.
  WorkList& waiting() { return waiting_; }
  // For WriterGuard.
  Lock* writers_lock() { return writers_lock_; }
  // fi_cntr_add (or fi_cntr_set, unless `adds`) for successes or errors; takes lock_ itself.
  void change(std::uint64_t value, bool good, bool adds) noexcept;

  // An operation of so many bytes ended.
  void count(bool good, std::uint64_t bytes) noexcept {
    const WriterGuard guard(writers_lock_);
    if (good) {
      value_.store(value() + (in_bytes_ ? bytes : 1), std::memory_order_release);
      waiter_.notify(value());
    } else {
      errors_.store(errors() + 1, std::memory_order_release);
      waiter_.notify();
    }
    if (!waiting_.empty()) WorkQueue::moved(*this);
  }

  // So many bytes of an operation that has not ended: a counter of bytes counts them now.
  void count_part(std::uint64_t bytes) noexcept {
    if (in_bytes_) count(true, bytes);
  }

  // Implementations of the calls of the same name; they take the lock themselves.
  std::uint64_t read() noexcept;
  std::uint64_t read_errors() noexcept;
  int wait(std::uint64_t threshold, int timeout) noexcept;
  int try_wait() noexcept;
  int control(int command, void* argument) noexcept;
  // For wait sets: has it moved since it was asked last? Takes the lock itself.
  bool pending() noexcept;
  // For poll sets, with the lock: has it changed since the last call, except by add and set?
  bool poll_changed() noexcept { return polled_.differs(value(), errors()); }

  // fi_cntr_add and fi_cntr_set, for successes or errors.
  int add(std::uint64_t value, bool good) noexcept;
  int set(std::uint64_t value, bool good) noexcept;

 private:
  // The values that have been reported to a caller.
  struct Told {
    std::atomic<std::uint64_t> value{0};
    std::atomic<std::uint64_t> errors{0};
    bool differs(std::uint64_t new_value, std::uint64_t new_errors) {
      const bool moved = value.exchange(new_value) != new_value;
      return errors.exchange(new_errors) != new_errors || moved;
    }
  };
  std::uint64_t poll(const std::atomic<std::uint64_t>& number,
                     std::atomic<std::uint64_t>& told) noexcept;
  Cntr(Domain& domain, const fi_cntr_attr& attr, void* context);
  int change_by_call(std::uint64_t value, bool good, bool adds) noexcept;
  int wait_for_several(std::uint64_t threshold, Time now, Time end) noexcept;
  template <class Use>
  int with_waiter(Use use) noexcept;

  Engine& engine_;            // the first of the domain
  Lock* const writers_lock_;  // lock_, or nullptr if there is one engine
  Hold hold_;
  References references_;
  const bool in_bytes_;  // FI_CNTR_EVENTS_BYTES
  // Changed with the lock; read without it if Submissions::active() or of several engines.
  std::atomic<std::uint64_t> value_{0};
  std::atomic<std::uint64_t> errors_{0};
  IdleReads idle_reads_;
  std::atomic<std::uint64_t> errors_read_{
      0};  // by fi_cntr_readerr: a wait ends where there are more
  WorkList waiting_;
  Told waited_;       // through fi_trywait and fi_wait, or by reading
  Told polled_;       // through fi_poll
  ReadEngines read_;  // if there are several
  Lock lock_{true};   // likewise: of the values and the waiter, taken after those of engines
  Waiter waiter_;
};

}  // namespace uet::prov
