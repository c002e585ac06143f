// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// fid_eq: events of the control path. uet produces FI_AV_COMPLETE; everything else is what the
// application writes itself. It belongs to no domain and has its own lock.
#pragma once

#include <rdma/fi_eq.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <vector>

#include "fabric.h"
#include "references.h"
#include "wait.h"

namespace uet::prov {

// fi_ops_fabric.eq_open: fi_eq_open(3).
int eq_open(fid_fabric* fabric, fi_eq_attr* attr, fid_eq** eq, void* context) noexcept;

class Eq final : public fid_eq {
 public:
  static Eq& from(fid_eq* fid) { return *static_cast<Eq*>(fid); }
  static Eq& from(struct fid* fid) { return from(reinterpret_cast<fid_eq*>(fid)); }
  static int open(Fabric& fabric, const fi_eq_attr& attr, void* context, Eq*& out);
  int close() noexcept;
  References& references() { return references_; }

  // Both throw bad_alloc.
  void write(std::uint32_t event, const void* data, std::size_t length);
  void write_error(const fi_eq_err_entry& error);

  // What the calls of the same name do.
  ssize_t read(std::uint32_t* event, void* buffer, std::size_t length, std::uint64_t flags);
  ssize_t sread(std::uint32_t* event, void* buffer, std::size_t length, int timeout,
                std::uint64_t flags);
  ssize_t read_error(fi_eq_err_entry* buffer, std::uint64_t flags);
  int try_wait();
  int control(int command, void* argument) noexcept;
  bool writable() const { return writable_; }

 private:
  struct Event {
    std::uint32_t number = 0;
    bool is_error = false;
    std::vector<std::byte> data;  // of an error: fi_eq_err_entry
  };
  Eq(Fabric& fabric, const fi_eq_attr& attr, void* context);
  void append(Event event);
  ssize_t take(std::uint32_t* event, void* buffer, std::size_t length, std::uint64_t flags);
  void drop_front(std::uint64_t flags);

  Hold hold_;
  References references_;
  const bool writable_;
  const fi_wait_obj wait_obj_;
  EventFd event_fd_;  // readable while events wait, except between fi_trywait and the next event
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<Event> events_;
};

}  // namespace uet::prov
