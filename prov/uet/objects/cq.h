// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// fid_cq: a ring of completions. An entry is reserved when an operation is posted, so that no
// completion is ever dropped and completing allocates no memory.
#pragma once

#include <rdma/fi_eq.h>

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <deque>
#include <memory>
#include <vector>

#include "objects/engines.h"
#include "objects/references.h"
#include "objects/spin_lock.h"
#include "objects/wait.h"
#include "peer.h"

namespace uet::prov {

class Domain;

// fi_ops_domain.cq_open: fi_cq_open(3).
int cq_open(fid_domain* domain, fi_cq_attr* attr, fid_cq** cq, void* context) noexcept;

class Cq final : public fid_cq {
 public:
  struct Entry {
    fi_cq_tagged_entry fields{};  // what success and error entries have in common
    fi_addr_t source = FI_ADDR_NOTAVAIL;
    std::size_t excess = 0;  // olen of an error entry
    int err = 0;             // 0: success
    int prov_errno = 0;
    bool event = false;           // not reserved before (push_event)
    bool has_error_data = false;  // keep_error_data() has given error_data
    std::uint32_t error_data = 0;
  };

  static Cq& from(fid_cq* fid) { return static_cast<Cq&>(*fid); }
  static Cq& from(struct fid* fid) { return from(reinterpret_cast<fid_cq*>(fid)); }
  static int open(Domain& domain, const fi_cq_attr& attr, void* context, Cq*& out);
  int close() noexcept;

  const Engines& engines() const { return read_.all(); }
  References& references() { return references_; }
  // Endpoints that are bound add their engines.
  ReadEngines& readers() { return read_; }

  // All below with the lock of an engine; if there are several, what changes takes lock_ as well.
  // Reserves one entry; false if there is no memory, or more than kMostEntries are waiting.
  bool reserve() noexcept;
  void release(std::size_t count = 1) noexcept {
    const WriterGuard guard(writers_lock_);
    reserved_ -= count;
  }
  // Uses up a reservation.
  void push(const Entry& entry) noexcept;
  // For completions that no posted operation stands behind: at most as many wait at a time as the
  // application asked the queue to hold.
  bool can_take_event() const noexcept {
    const WriterGuard guard(writers_lock_);
    return owner_ != nullptr || events() < event_limit_;
  }
  void push_event(const Entry& entry) noexcept;
  bool empty() const noexcept { return waiting() == 0; }
  // err_data of an error entry that is pushed next (has_error_data), which gets the number that
  // this returns. Throws bad_alloc.
  std::uint32_t keep_error_data(std::vector<std::byte> data) {
    const SpinGuard entries(entries_lock_);
    error_data_.push_back({++error_data_number_, std::move(data)});
    return error_data_number_;
  }

  // Implementations of the calls of the same name; they take the lock themselves. With the engine
  // in a thread of its own (Submissions::active), reading takes only entries_lock_.
  ssize_t read(void* buffer, std::size_t count, fi_addr_t* sources) noexcept;
  // fi_peer(3): entries go to another provider's queue; reading this one only makes progress.
  ssize_t read_for_owner() noexcept;
  // `condition`: FI_CQ_COND_THRESHOLD's number as a pointer, at most `count`; else ignored.
  ssize_t sread(void* buffer, std::size_t count, fi_addr_t* sources, const void* condition,
                int timeout) noexcept;
  ssize_t read_error(fi_cq_err_entry* buffer) noexcept;
  int signal() noexcept;
  int try_wait() noexcept;
  int control(int command, void* argument) noexcept;
  // For wait sets: takes the lock itself.
  bool pending() noexcept;

  static constexpr std::size_t kMostEntries = std::size_t{1} << 20;

 private:
  Cq(Domain& domain, const fi_cq_attr& attr, PeerCq* owner, void* context);
  struct ErrorData {
    std::uint32_t number;
    std::vector<std::byte> bytes;
  };
  void write_to_owner(const Entry& entry) noexcept;
  std::vector<std::byte> take_error_data(const Entry& entry) noexcept UET_REQUIRES(entries_lock_);
  bool grow(std::size_t capacity) noexcept UET_REQUIRES(entries_lock_);
  void give_error_data(const Entry& entry, fi_cq_err_entry& buffer) noexcept
      UET_REQUIRES(entries_lock_);
  void append(const Entry& entry, bool event) noexcept;
  ssize_t read_several(void* buffer, std::size_t count, fi_addr_t* sources) noexcept;
  ssize_t sread_several(std::size_t wanted, void* buffer, std::size_t count, fi_addr_t* sources,
                        Time now, Time end) noexcept;
  template <class Use>
  int with_waiter(Use use) noexcept;
  ssize_t read_without_progress(void* buffer, std::size_t count, fi_addr_t* sources) noexcept;
  ssize_t pop(void* buffer, std::size_t count, fi_addr_t* sources) noexcept;
  ssize_t pop_at_least(std::size_t wanted, void* buffer, std::size_t count,
                       fi_addr_t* sources) noexcept;
  bool holds(std::size_t wanted) noexcept;
  std::size_t waiting() const noexcept {
    return tail_.load(std::memory_order_acquire) - head_.load(std::memory_order_acquire);
  }
  // Of those waiting, the unreserved ones.
  std::size_t events() const noexcept {
    return events_ - events_taken_.load(std::memory_order_relaxed);
  }
  Entry& front() UET_REQUIRES(entries_lock_) {
    return ring_[head_.load(std::memory_order_relaxed) & (capacity_ - 1)];
  }
  void drop_front() noexcept UET_REQUIRES(entries_lock_);

  struct FreeRing {
    void operator()(Entry* entries) const noexcept { std::free(entries); }
  };
  using Ring = std::unique_ptr<Entry[], FreeRing>;

  Engine& engine_;            // the first of the domain
  Lock* const writers_lock_;  // lock_, or nullptr if there is one engine
  Hold hold_;
  References references_;
  PeerCq* const owner_;          // nullptr: the queue is the application's
  const std::uint32_t version_;  // of libfabric's interface, which the application asked for
  const fi_cq_format format_;
  const std::size_t event_limit_;
  // Positions only grow. Of the reader: with entries_lock_, which also keeps the ring as it is.
  SpinLock entries_lock_;
  Ring ring_;
  std::size_t capacity_ = 0;  // a power of two
  std::atomic<std::size_t> head_{0};
  std::atomic<std::size_t> events_taken_{0};
  IdleReads idle_reads_;
  // Of the engine: with its lock.
  alignas(64) std::atomic<std::size_t> tail_{0};
  std::size_t seen_head_ = 0;  // not above head_
  std::size_t events_ = 0;
  std::size_t reserved_ = 0;
  std::deque<ErrorData> error_data_ UET_GUARDED_BY(entries_lock_);
  std::uint32_t error_data_number_ UET_GUARDED_BY(entries_lock_) = 0;  // of the latest
  std::vector<std::byte> error_data_given_;  // the application may look until the next read
  std::atomic<Time> progress_due_{};         // of a read that finds as many entries as it asks for
  const bool threshold_;                     // FI_CQ_COND_THRESHOLD
  bool signalled_ = false;                   // fi_cq_signal came while no thread was in sread
  unsigned signals_ = 0;                     // calls of fi_cq_signal while threads were in sread
  std::size_t blocked_ = 0;                  // threads in sread
  ReadEngines read_;                         // if there are several
  Lock lock_{true};  // likewise: of writers and the waiter, taken after those of engines
  Waiter waiter_;
};

}  // namespace uet::prov
