// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// An unbounded queue of small events; rare enough to allocate for each.
#include "objects/eq.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "errors.h"
#include "objects/engine.h"
#include "ops.h"

namespace uet::prov {
namespace {

int close_eq(fid* fid) noexcept { return Eq::from(fid).close(); }

int eq_control(fid* fid, int command, void* argument) noexcept {
  return Eq::from(fid).control(command, argument);
}

ssize_t eq_read(fid_eq* eq, std::uint32_t* event, void* buffer, std::size_t length,
                std::uint64_t flags) noexcept {
  return guarded([&] { return Eq::from(eq).read(event, buffer, length, flags); });
}

ssize_t eq_readerr(fid_eq* eq, fi_eq_err_entry* buffer, std::uint64_t flags) noexcept {
  return guarded([&] { return Eq::from(eq).read_error(buffer, flags); });
}

ssize_t eq_write(fid_eq* eq, std::uint32_t event, const void* buffer, std::size_t length,
                 std::uint64_t flags) noexcept {
  if (!Eq::from(eq).writable() || flags != 0) {
    FI_WARN(&provider, FI_LOG_EQ, "fi_eq_write: open the EQ with FI_WRITE, and pass flags 0\n");
    return -FI_EINVAL;
  }
  return guarded([&] {
    Eq::from(eq).write(event, buffer, length);
    return static_cast<ssize_t>(length);
  });
}

ssize_t eq_sread(fid_eq* eq, std::uint32_t* event, void* buffer, std::size_t length, int timeout,
                 std::uint64_t flags) noexcept {
  return guarded([&] { return Eq::from(eq).sread(event, buffer, length, timeout, flags); });
}

const char* eq_strerror(fid_eq*, int prov_errno, const void*, char* buffer,
                        std::size_t length) noexcept {
  const char* text = describe_cm_prov_errno(prov_errno);
  if (buffer == nullptr || length == 0) return text;
  std::strncpy(buffer, text, length - 1);
  buffer[length - 1] = '\0';
  return buffer;
}

fi_ops eq_fid_ops = {
    .size = sizeof(fi_ops),
    .close = close_eq,
    .bind = no_bind,
    .control = eq_control,
    .ops_open = no_ops_open,
    .tostr = no_tostr,
    .ops_set = no_ops_set,
};

fi_ops_eq eq_ops = {
    .size = sizeof(fi_ops_eq),
    .read = eq_read,
    .readerr = eq_readerr,
    .write = eq_write,
    .sread = eq_sread,
    .strerror = eq_strerror,
};

}  // namespace

Eq::Eq(Fabric& fabric, const fi_eq_attr& attr, void* context)
    : fid_eq{}, hold_(fabric.references()), writable_((attr.flags & FI_WRITE) != 0) {
  fid.fclass = FI_CLASS_EQ;
  fid.context = context;
  fid.ops = &eq_fid_ops;
  ops = &eq_ops;
}

int Eq::open(Fabric& fabric, const fi_eq_attr& attr, void* context, Eq*& out) {
  constexpr std::uint64_t kFlags = FI_WRITE | FI_AFFINITY;
  if ((attr.flags & ~kFlags) != 0) {
    FI_WARN(&provider, FI_LOG_EQ, "fi_eq_open: flags 0x%llx are not supported\n",
            static_cast<unsigned long long>(attr.flags));
    return -FI_EINVAL;
  }
  std::unique_ptr<Eq> eq(new Eq(fabric, attr, context));
  if (const int result = eq->domains_.open(); result != 0) return result;
  const int result = eq->waiter_.open(attr.wait_obj, attr.wait_set, &eq->fid, nullptr);
  if (result != 0) return result;
  out = eq.release();
  return 0;
}

int Eq::close() noexcept {
  if (references_.any()) return -FI_EBUSY;
  delete this;
  return 0;
}

int Eq::attach(Engine& engine) noexcept {
  if (waiter_.kind() == FI_WAIT_MUTEX_COND) {
    if (const int result = engine.need_thread(); result != 0) return result;
  }
  return domains_.add(engine);
}

void Eq::append(Event event) {
  const Guard guard(lock_);
  events_.push_back(std::move(event));
  waiter_.notify(events_.size());
}

void Eq::write(std::uint32_t event, const void* data, std::size_t length, InfoPtr info) {
  Event entry;
  entry.number = event;
  entry.info = std::move(info);
  const auto* bytes = static_cast<const std::byte*>(data);
  if (length > 0) entry.data.assign(bytes, bytes + length);
  append(std::move(entry));
}

void Eq::write_error(const fi_eq_err_entry& error, std::span<const std::byte> error_data) {
  Event entry;
  entry.is_error = true;
  entry.data.resize(sizeof error + error_data.size());
  std::memcpy(entry.data.data(), &error, sizeof error);
  std::copy(error_data.begin(), error_data.end(), entry.data.begin() + sizeof error);
  append(std::move(entry));
}

// fi_eq_entry, fi_eq_cm_entry and fi_eq_err_entry begin with the fid. Events that the application
// wrote itself may hold anything.
void Eq::forget(const struct fid& of) noexcept {
  const Guard guard(lock_);
  std::erase_if(events_, [&](const Event& event) {
    const struct fid* about = nullptr;
    const bool ours = event.is_error || event.number == FI_CONNREQ ||
                      event.number == FI_CONNECTED || event.number == FI_SHUTDOWN;
    if (!ours || event.data.size() < sizeof(void*)) return false;
    std::memcpy(&about, event.data.data(), sizeof(void*));
    return about == &of;
  });
}

void Eq::drop_front(std::uint64_t flags) {
  if ((flags & FI_PEEK) != 0) return;
  (void)events_.front().info.release();  // the application's now
  events_.pop_front();
}

ssize_t Eq::take(std::uint32_t* event, void* buffer, std::size_t length, std::uint64_t flags) {
  if (events_.empty()) return -FI_EAGAIN;
  const Event& first = events_.front();
  if (first.is_error) return -FI_EAVAIL;
  if (length < first.data.size()) return -FI_ETOOSMALL;
  if (event != nullptr) *event = first.number;
  const auto size = static_cast<ssize_t>(first.data.size());
  if (size > 0) std::memcpy(buffer, first.data.data(), first.data.size());
  drop_front(flags);
  return size;
}

ssize_t Eq::read(std::uint32_t* event, void* buffer, std::size_t length, std::uint64_t flags) {
  domains_.progress();
  const Guard guard(lock_);
  return take(event, buffer, length, flags);
}

ssize_t Eq::sread(std::uint32_t* event, void* buffer, std::size_t length, int timeout,
                  std::uint64_t flags) {
  if (!waiter_.can_sleep()) return -FI_ENOSYS;
  const nic::NoCancel no_cancel;
  const Time end = end_of_timeout(clock_now(), timeout);
  for (;;) {
    domains_.progress();
    const int activity = domains_.activity();
    const Guard guard(lock_);
    const ssize_t result = take(event, buffer, length, flags);
    if (result != -FI_EAGAIN || clock_now() >= end) return result;
    if (!waiter_.sleep(lock_, activity, end)) return -FI_EAGAIN;
  }
}

ssize_t Eq::read_error(fi_eq_err_entry* buffer, std::uint64_t flags) {
  const Guard guard(lock_);
  if (events_.empty() || !events_.front().is_error) return -FI_EAGAIN;
  const std::span<const std::byte> event = events_.front().data;
  const std::span<const std::byte> error_data = event.subspan(sizeof(fi_eq_err_entry));
  fi_eq_err_entry error;
  std::memcpy(&error, event.data(), sizeof error);
  // fi_eq(3): the caller's buffer, or ours until the next call.
  if (buffer->err_data != nullptr && buffer->err_data_size > 0) {
    error.err_data = buffer->err_data;
    error.err_data_size = std::min(buffer->err_data_size, error_data.size());
    std::copy_n(error_data.begin(), error.err_data_size, static_cast<std::byte*>(error.err_data));
  } else if (!error_data.empty()) {
    error_data_.assign(error_data.begin(), error_data.end());
    error.err_data = error_data_.data();
    error.err_data_size = error_data_.size();
  } else {
    error.err_data = buffer->err_data;
  }
  *buffer = error;
  drop_front(flags);
  return sizeof error;
}

int Eq::try_wait() {
  if (!waiter_.has_object()) return -FI_EINVAL;
  domains_.activity();
  const Guard guard(lock_);
  if (!events_.empty()) return -FI_EAGAIN;
  waiter_.arm();
  return 0;
}

int Eq::control(int command, void* argument) noexcept {
  const Guard guard(lock_);
  return waiter_.control(command, argument, domains_.descriptor());
}

bool Eq::pending() noexcept {
  const Guard guard(lock_);
  return !events_.empty();
}

// In a forked child the lock may be in the hands of a thread that is not there.
void EqBinding::reset() noexcept UET_NO_THREAD_ANALYSIS {
  if (eq_ == nullptr) return;
  if (engine_->dead()) {
    engine_->events().remove(events_);
  } else {
    const Guard guard(engine_->lock());
    engine_->events().remove(events_);
  }
  std::exchange(eq_, nullptr)->detach(*engine_);
  hold_ = Hold();
}

int EqBinding::ask_events(struct fid& fid, const AvFid* const* av, const AddressFormat& format,
                          EventKinds kinds) noexcept {
  events_.eq = eq_;
  events_.fid = &fid;
  events_.av = av;
  events_.format = format;
  events_.kinds = kinds;
  if (engine_->params().keep_alive_ms > 0) {  // PDS-234
    if (const int result = engine_->need_thread(); result != 0) return result;
  }
  const Guard guard(engine_->lock());
  return engine_->subscribe(events_);
}

int EqBinding::follow(const EqBinding& whole, Engine& engine) noexcept {
  if (whole.eq_ == nullptr) return 0;
  const int result = open(*whole.eq_, engine);
  const EventSubscriber& events = whole.events_;
  if (result != 0 || events.fid == nullptr) return result;
  return ask_events(*events.fid, events.av, events.format, EventKinds::Peers);
}

int EqBinding::open(Eq& eq, Engine& engine) noexcept {
  if (eq_ != nullptr) {
    FI_WARN(&provider, FI_LOG_EQ, "fi_ep_bind: endpoint: an EQ is bound already; bind one only\n");
    return -FI_EINVAL;
  }
  if (const int result = eq.attach(engine); result != 0) return result;
  hold_ = Hold(eq.references());
  eq_ = &eq;
  engine_ = &engine;
  return 0;
}

int eq_open(fid_fabric* fabric, fi_eq_attr* attr, fid_eq** eq, void* context) noexcept {
  return guarded([&] {
    Eq* opened = nullptr;
    const fi_eq_attr preset{};
    const int result =
        Eq::open(Fabric::from(fabric), attr != nullptr ? *attr : preset, context, opened);
    if (result == 0) *eq = opened;
    return result;
  });
}

}  // namespace uet::prov
