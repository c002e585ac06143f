// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// fid_eq: events of the control path. uet produces FI_AV_COMPLETE, FI_MR_COMPLETE and the events of
// connections; everything else is what the application writes itself. It belongs to no domain and
// has its own lock; reading it makes the progress of the domains that are bound to it, themselves
// or through an endpoint or an AV.
#pragma once

#include <rdma/fi_eq.h>

#include <deque>
#include <span>
#include <utility>
#include <vector>

#include "objects/domain_group.h"
#include "objects/fabric.h"
#include "objects/fabric_events.h"
#include "objects/lock.h"
#include "objects/references.h"
#include "objects/wait.h"
#include "settings/info_ptr.h"

namespace uet::prov {

// fi_ops_fabric.eq_open: fi_eq_open(3).
int eq_open(fid_fabric* fabric, fi_eq_attr* attr, fid_eq** eq, void* context) noexcept;

class Eq final : public fid_eq {
 public:
  static Eq& from(fid_eq* fid) { return static_cast<Eq&>(*fid); }
  static Eq& from(struct fid* fid) { return from(reinterpret_cast<fid_eq*>(fid)); }
  static int open(Fabric& fabric, const fi_eq_attr& attr, void* context, Eq*& out);
  int close() noexcept;
  References& references() { return references_; }

  // Once for each object that is bound to the EQ (EqBinding): 0 or a negative fi_errno.
  int attach(Engine& engine) noexcept;
  void detach(Engine& engine) noexcept { domains_.remove(engine); }

  // These throw bad_alloc. `info`: goes to the application with an FI_CONNREQ, or is freed.
  void write(std::uint32_t event, const void* data, std::size_t length, InfoPtr info = {});
  void write_error(const fi_eq_err_entry& error, std::span<const std::byte> error_data = {});
  // Drops the events that begin with this fid, of an object that closes.
  void forget(const struct fid& of) noexcept;

  // Implementations of the calls of the same name.
  ssize_t read(std::uint32_t* event, void* buffer, std::size_t length, std::uint64_t flags);
  ssize_t sread(std::uint32_t* event, void* buffer, std::size_t length, int timeout,
                std::uint64_t flags);
  ssize_t read_error(fi_eq_err_entry* buffer, std::uint64_t flags);
  int try_wait();
  int control(int command, void* argument) noexcept;
  bool writable() const { return writable_; }
  // For wait sets.
  bool pending() noexcept;

 private:
  struct Event {
    std::uint32_t number = 0;
    bool is_error = false;
    std::vector<std::byte> data;  // of an error: fi_eq_err_entry, then its err_data
    InfoPtr info;
  };
  Eq(Fabric& fabric, const fi_eq_attr& attr, void* context);
  void append(Event event);
  ssize_t take(std::uint32_t* event, void* buffer, std::size_t length, std::uint64_t flags);
  void drop_front(std::uint64_t flags);

  Hold hold_;
  References references_;
  const bool writable_;
  DomainGroup domains_;
  Lock lock_{true};  // of what follows; never held while a domain's lock is taken
  Waiter waiter_;
  std::deque<Event> events_;
  std::vector<std::byte> error_data_;  // of the error that was read last
};

// That an object of `engine` is bound to an EQ, as long as it lives.
class EqBinding {
 public:
  EqBinding() = default;
  EqBinding(const EqBinding&) = delete;
  EqBinding& operator=(const EqBinding&) = delete;
  ~EqBinding() { reset(); }
  void reset() noexcept;
  // 0 or a negative fi_errno: -FI_EINVAL if one is bound already. Not with the domain's lock.
  int open(Eq& eq, Engine& engine) noexcept;
  // After open(): the EQ gets the events of the fabric, in the name of `fid`; `av` as in
  // EventSubscriber. 0 or a negative fi_errno. Not with the domain's lock.
  int ask_events(struct fid& fid, const AvFid* const* av, const AddressFormat& format,
                 EventKinds kinds = EventKinds::All) noexcept;
  // For a part at `engine` of the endpoint with the binding `whole`: its EQ, and events of peers if
  // `whole` has events. 0 or a negative fi_errno. Not with the domain's lock.
  int follow(const EqBinding& whole, Engine& engine) noexcept;
  // nullptr: none is bound.
  Eq* eq() const { return eq_; }

 private:
  Hold hold_;
  Eq* eq_ = nullptr;
  Engine* engine_ = nullptr;
  EventSubscriber events_;
};

}  // namespace uet::prov
