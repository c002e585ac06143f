// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Reading completions, and the progress that reading makes.
#include "objects/cq.h"

#include <sched.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <type_traits>

#include "compat.h"
#include "errors.h"
#include "objects/domain.h"
#include "ops.h"

namespace uet::prov {
namespace {

constexpr std::size_t kDefaultSize = 1024;
constexpr std::size_t kSmallestEventLimit = 64;
// Reads that find as many entries as they ask for make progress after this time.
constexpr Duration kLongestWithoutProgress = std::chrono::microseconds(20);
constexpr Duration kCqSpin = std::chrono::microseconds(20);  // before a blocking read sleeps

std::size_t entry_bytes(fi_cq_format format) {
  switch (format) {
    case FI_CQ_FORMAT_CONTEXT:
      return sizeof(fi_cq_entry);
    case FI_CQ_FORMAT_MSG:
      return sizeof(fi_cq_msg_entry);
    case FI_CQ_FORMAT_DATA:
      return sizeof(fi_cq_data_entry);
    default:
      return sizeof(fi_cq_tagged_entry);
  }
}

int close_cq(fid* fid) noexcept { return Cq::from(fid).close(); }

int cq_control(fid* fid, int command, void* argument) noexcept {
  return Cq::from(fid).control(command, argument);
}

ssize_t cq_read(fid_cq* cq, void* buffer, std::size_t count) noexcept {
  return Cq::from(cq).read(buffer, count, nullptr);
}

ssize_t cq_readfrom(fid_cq* cq, void* buffer, std::size_t count, fi_addr_t* sources) noexcept {
  return Cq::from(cq).read(buffer, count, sources);
}

ssize_t cq_readerr(fid_cq* cq, fi_cq_err_entry* buffer, std::uint64_t) noexcept {
  return Cq::from(cq).read_error(buffer);
}

ssize_t cq_sread(fid_cq* cq, void* buffer, std::size_t count, const void* condition,
                 int timeout) noexcept {
  return Cq::from(cq).sread(buffer, count, nullptr, condition, timeout);
}

ssize_t cq_sreadfrom(fid_cq* cq, void* buffer, std::size_t count, fi_addr_t* sources,
                     const void* condition, int timeout) noexcept {
  return Cq::from(cq).sread(buffer, count, sources, condition, timeout);
}

int cq_signal(fid_cq* cq) noexcept { return Cq::from(cq).signal(); }

const char* cq_strerror(fid_cq*, int prov_errno, const void*, char* buffer,
                        std::size_t length) noexcept {
  static thread_local char text[128];
  if (buffer == nullptr || length == 0) {
    buffer = text;
    length = sizeof text;
  }
  describe_prov_errno(prov_errno, buffer, length);
  return buffer;
}

fi_ops cq_fid_ops = {
    .size = sizeof(fi_ops),
    .close = close_cq,
    .bind = no_bind,
    .control = cq_control,
    .ops_open = no_ops_open,
    .tostr = no_tostr,
    .ops_set = no_ops_set,
};

fi_ops_cq cq_ops = {
    .size = sizeof(fi_ops_cq),
    .read = cq_read,
    .readfrom = cq_readfrom,
    .readerr = cq_readerr,
    .sread = cq_sread,
    .sreadfrom = cq_sreadfrom,
    .signal = cq_signal,
    .strerror = cq_strerror,
};

ssize_t peer_cq_read(fid_cq* cq, void*, std::size_t) noexcept {
  return Cq::from(cq).read_for_owner();
}

// Of a queue whose entries its owner reads.
fi_ops_cq peer_cq_ops = {
    .size = sizeof(fi_ops_cq),
    .read = peer_cq_read,
    .readfrom = not_supported<&fi_ops_cq::readfrom>,
    .readerr = not_supported<&fi_ops_cq::readerr>,
    .sread = not_supported<&fi_ops_cq::sread>,
    .sreadfrom = not_supported<&fi_ops_cq::sreadfrom>,
    .signal = not_supported<&fi_ops_cq::signal>,
    .strerror = cq_strerror,
};

// fi_peer(3): the queue that FI_PEER's context names; nullptr if it cannot be.
PeerCq* owner_of(const Domain& domain, void* context) {
  auto* peer = domain.is_peer() ? peer_context<PeerCqContext>(context) : nullptr;
  if (peer != nullptr && peer->cq != nullptr && is_complete(peer->cq->owner_ops)) return peer->cq;
  FI_WARN(&provider, FI_LOG_CQ,
          "fi_cq_open: FI_PEER needs a domain with FI_PEER and this libfabric's context\n");
  return nullptr;
}

}  // namespace

Cq::Cq(Domain& domain, const fi_cq_attr& attr, PeerCq* owner, void* context)
    : fid_cq{},
      engine_(domain.engine()),
      writers_lock_(domain.engines().several() ? &lock_ : nullptr),
      hold_(domain.references()),
      owner_(owner),
      version_(domain.version()),
      format_(attr.format == FI_CQ_FORMAT_UNSPEC ? FI_CQ_FORMAT_TAGGED : attr.format),
      event_limit_(
          std::clamp(attr.size != 0 ? attr.size : kDefaultSize, kSmallestEventLimit, kMostEntries)),
      entries_lock_(domain.engine().submissions().active() || domain.engines().several()),
      threshold_(attr.wait_cond == FI_CQ_COND_THRESHOLD),
      read_(domain.engines()) {
  fid.fclass = FI_CLASS_CQ;
  fid.context = owner != nullptr ? nullptr : context;  // the owner's lives only during the call
  fid.ops = &cq_fid_ops;
  ops = owner != nullptr ? &peer_cq_ops : &cq_ops;
}

int Cq::open(Domain& domain, const fi_cq_attr& attr, void* context, Cq*& out) {
  if (domain.engine().dead()) return -FI_EOPNOTSUPP;
  if (is_beyond(attr.format, FI_CQ_FORMAT_TAGGED) ||
      is_beyond(attr.wait_cond, FI_CQ_COND_THRESHOLD)) {
    FI_WARN(&provider, FI_LOG_CQ, "fi_cq_open: format %u or wait_cond %u is not supported\n",
            raw_number(attr.format), raw_number(attr.wait_cond));
    return -FI_EINVAL;
  }
  if ((attr.flags & ~(FI_AFFINITY | FI_PEER)) != 0) {
    FI_WARN(&provider, FI_LOG_CQ, "fi_cq_open: flags 0x%llx are not supported\n",
            static_cast<unsigned long long>(attr.flags));
    return -FI_EINVAL;
  }
  PeerCq* owner = nullptr;
  if ((attr.flags & FI_PEER) != 0 && (owner = owner_of(domain, context)) == nullptr) {
    return -FI_EINVAL;
  }
  std::unique_ptr<Cq> cq(new Cq(domain, attr, owner, context));
  {
    const SpinGuard entries(cq->entries_lock_);
    if (!cq->grow(std::bit_ceil(2 * cq->event_limit_))) return -FI_ENOMEM;
  }
  int result = attr.wait_obj != FI_WAIT_NONE ? cq->read_.open() : 0;
  if (result != 0) return result;
  result = cq->waiter_.open(attr.wait_obj, attr.wait_set, &cq->fid, &domain.engines());
  if (result != 0) return result;
  out = cq.release();
  return 0;
}

int Cq::close() noexcept {
  if (references_.any()) return -FI_EBUSY;
  delete this;
  return 0;
}

bool Cq::grow(std::size_t capacity) noexcept {
  // Not a page of it is touched yet.
  static_assert(std::is_trivially_copyable_v<Entry>);
  Ring ring(static_cast<Entry*>(std::malloc(capacity * sizeof(Entry))));
  if (ring == nullptr) return false;
  const std::size_t tail = tail_.load(std::memory_order_relaxed);
  for (std::size_t i = head_.load(std::memory_order_relaxed); i != tail; ++i) {
    ring[i & (capacity - 1)] = ring_[i & (capacity_ - 1)];
  }
  ring_ = std::move(ring);
  capacity_ = capacity;
  return true;
}

bool Cq::reserve() noexcept {
  const WriterGuard guard(writers_lock_);
  if (owner_ != nullptr) {  // its queue takes every entry
    ++reserved_;
    return true;
  }
  // The position of the reader is loaded only if the ring may be too small.
  const std::size_t most = tail_.load(std::memory_order_relaxed) - seen_head_ + reserved_ + 1;
  if (most > kMostEntries || most + event_limit_ > capacity_) {
    seen_head_ = head_.load(std::memory_order_acquire);
    const std::size_t needed = waiting() - events() + reserved_ + 1;
    if (needed > kMostEntries) return false;
    const SpinGuard entries(entries_lock_);
    if (needed + event_limit_ > capacity_ && !grow(2 * capacity_)) return false;
  }
  ++reserved_;
  return true;
}

// Its place in the queue follows that of the entry closely: engines write their entries apart.
std::vector<std::byte> Cq::take_error_data(const Entry& entry) noexcept {
  const auto found =
      std::find_if(error_data_.begin(), error_data_.end(),
                   [&](const ErrorData& each) { return each.number == entry.error_data; });
  std::vector<std::byte> bytes = std::move(found->bytes);
  error_data_.erase(found);
  return bytes;
}

void Cq::write_to_owner(const Entry& entry) noexcept {
  const fi_cq_tagged_entry& fields = entry.fields;
  ssize_t result = 0;
  if (entry.err == 0) {
    result = owner_->owner_ops->write(owner_, fields.op_context, fields.flags, fields.len,
                                      fields.buf, fields.data, fields.tag, entry.source);
  } else {
    fi_cq_err_entry error{};
    error.op_context = fields.op_context;
    error.flags = fields.flags;
    error.len = fields.len;
    error.buf = fields.buf;
    error.data = fields.data;
    error.tag = fields.tag;
    error.olen = entry.excess;
    error.err = entry.err;
    error.prov_errno = entry.prov_errno;
    if (entry.has_error_data) {
      const SpinGuard entries(entries_lock_);
      error_data_given_ = take_error_data(entry);
      error.err_data = error_data_given_.data();
      error.err_data_size = error_data_given_.size();
    }
    const PeerErrorEntry wide(error, entry.source);
    result = owner_->owner_ops->writeerr(owner_, wide.bytes);
  }
  if (result < 0) FI_WARN(&provider, FI_LOG_CQ, "the owner's CQ (fi_peer) refused a completion\n");
}

void Cq::append(const Entry& entry, bool event) noexcept {
  if (owner_ != nullptr) return write_to_owner(entry);
  const std::size_t tail = tail_.load(std::memory_order_relaxed);
  UET_ASSERT(waiting() < capacity_);
  Entry& slot = ring_[tail & (capacity_ - 1)];
  slot = entry;
  slot.event = event;
  if (event) ++events_;
  tail_.store(tail + 1, std::memory_order_release);
  if (waiter_.is_watched()) waiter_.notify(waiting());
}

void Cq::push(const Entry& entry) noexcept {
  const WriterGuard guard(writers_lock_);
  UET_ASSERT(reserved_ > 0);
  --reserved_;
  append(entry, false);
}

void Cq::push_event(const Entry& entry) noexcept {
  const WriterGuard guard(writers_lock_);
  append(entry, true);
}

void Cq::drop_front() noexcept {
  if (front().event) {
    events_taken_.store(events_taken_.load(std::memory_order_relaxed) + 1,
                        std::memory_order_relaxed);
  }
  head_.store(head_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
}

// As many entries as wanted, or an error that ends the wait for them.
bool Cq::holds(std::size_t wanted) noexcept {
  const SpinGuard entries(entries_lock_);
  return waiting() >= wanted || (waiting() > 0 && front().err != 0);
}

// `count` 0 asks whether there is an error entry.
ssize_t Cq::pop(void* buffer, std::size_t count, fi_addr_t* sources) noexcept {
  if (waiting() == 0) return -FI_EAGAIN;
  const SpinGuard entries(entries_lock_);
  if (waiting() == 0) return -FI_EAGAIN;  // another reader was faster
  if (front().err != 0) return -FI_EAVAIL;
  if (count == 0) return 0;
  const std::size_t bytes = entry_bytes(format_);
  auto* out = static_cast<std::byte*>(buffer);
  std::size_t taken = 0;
  const std::size_t most = std::min(count, waiting());
  while (taken < most && front().err == 0) {
    // The smaller formats are the beginnings of the larger ones.
    std::memcpy(out + taken * bytes, &front().fields, bytes);
    if (sources != nullptr) sources[taken] = front().source;
    drop_front();
    ++taken;
  }
  return taken > 0 ? static_cast<ssize_t>(taken) : -FI_EAGAIN;
}

ssize_t Cq::pop_at_least(std::size_t wanted, void* buffer, std::size_t count,
                         fi_addr_t* sources) noexcept {
  return holds(wanted) ? pop(buffer, count, sources) : -FI_EAGAIN;
}

ssize_t Cq::read_for_owner() noexcept {
  if (engine_.dead()) return -FI_EOPNOTSUPP;
  {
    const Guard guard(engine_.lock());
    engine_.progress(clock_now());
    if (!engine_.patience().exhausted()) return 0;
  }
  engine_.patience().yield();
  return 0;
}

// The engine's thread writes the entries, whether or not the application reads.
ssize_t Cq::read_without_progress(void* buffer, std::size_t count, fi_addr_t* sources) noexcept {
  const ssize_t result = pop(buffer, count, sources);
  if (result == -FI_EAGAIN) idle_reads_.note();
  return result;
}

ssize_t Cq::read(void* buffer, std::size_t count, fi_addr_t* sources) noexcept {
  if (engine_.dead()) return -FI_EOPNOTSUPP;
  if (engine_.submissions().active()) return read_without_progress(buffer, count, sources);
  if (writers_lock_ != nullptr) [[unlikely]]
    return read_several(buffer, count, sources);
  ssize_t result = 0;
  bool idle = false;
  {
    const Guard guard(engine_.lock());
    const Time now = clock_now();
    if (count == 0 || waiting() < count || now >= progress_due_.load(std::memory_order_relaxed)) {
      progress_due_.store(now + kLongestWithoutProgress, std::memory_order_relaxed);
      engine_.progress(now);
    }
    result = pop(buffer, count, sources);
    idle = result == -FI_EAGAIN && engine_.patience().exhausted();
  }
  if (idle) engine_.patience().yield();
  return result;
}

// As read(), where the engines' locks are not the queue's.
ssize_t Cq::read_several(void* buffer, std::size_t count, fi_addr_t* sources) noexcept {
  const Time now = clock_now();
  bool idle = false;
  if (count == 0 || waiting() < count || now >= progress_due_.load(std::memory_order_relaxed)) {
    progress_due_.store(now + kLongestWithoutProgress, std::memory_order_relaxed);
    idle = read_.progress(now);
  }
  const ssize_t result = pop(buffer, count, sources);
  if (idle && result == -FI_EAGAIN) read_.yield();
  return result;
}

// Likewise as sread().
ssize_t Cq::sread_several(std::size_t wanted, void* buffer, std::size_t count, fi_addr_t* sources,
                          Time now, Time end) noexcept {
  const Time spin_end = now + kCqSpin;
  unsigned signals = 0;
  {
    const Guard guard(lock_);
    signals = signals_;
    ++blocked_;
  }
  ssize_t result = -FI_EAGAIN;
  for (bool done = false; !done; now = clock_now()) {
    read_.progress(now);
    const bool spins = now < spin_end;
    const int activity = spins ? -1 : read_.activity();
    {
      const Guard guard(lock_);
      result = pop_at_least(wanted, buffer, count, sources);
      done = result != -FI_EAGAIN || signalled_ || signals_ != signals || now >= end;
      if (!done && !spins) done = !waiter_.sleep(lock_, activity, end, wanted);
    }
    if (!done && spins) sched_yield();
  }
  const Guard guard(lock_);
  --blocked_;
  signalled_ = false;
  return result != -FI_EAGAIN ? result : pop(buffer, count, sources);  // less than `wanted`
}

ssize_t Cq::sread(void* buffer, std::size_t count, fi_addr_t* sources, const void* condition,
                  int timeout) noexcept {
  if (engine_.dead()) return -FI_EOPNOTSUPP;
  if (!waiter_.can_sleep()) return -FI_ENOSYS;
  const nic::NoCancel no_cancel;
  // The number itself travels in the pointer, as with most providers; who passes the address of one
  // instead waits for `count` entries.
  const auto asked = threshold_ ? reinterpret_cast<std::uintptr_t>(condition) : 1;
  const std::size_t wanted = std::max(std::size_t{1}, std::min(std::size_t{asked}, count));
  Time now = clock_now();
  const Time end = end_of_timeout(now, timeout);
  const Time spin_end = now + kCqSpin;
  while (engine_.submissions().active() && now < std::min(spin_end, end)) {
    const ssize_t result = pop_at_least(wanted, buffer, count, sources);
    if (result != -FI_EAGAIN) return result;
    sched_yield();
    now = clock_now();
  }
  if (read_.several()) return sread_several(wanted, buffer, count, sources, now, end);
  const Guard guard(engine_.lock());
  const unsigned signals = signals_;
  ++blocked_;
  ssize_t result = 0;
  for (;;) {
    if (!engine_.submissions().active()) engine_.progress(now);
    result = pop_at_least(wanted, buffer, count, sources);
    if (result != -FI_EAGAIN) break;
    if (signalled_ || signals_ != signals || now >= end) break;
    if (now < spin_end) {
      engine_.lock().unlock();
      sched_yield();
      engine_.lock().lock();
    } else if (!waiter_.sleep(engine_.lock(), engine_.activity(), end, wanted)) {
      break;
    }
    now = clock_now();
  }
  --blocked_;
  signalled_ = false;
  return result != -FI_EAGAIN ? result : pop(buffer, count, sources);  // less than `wanted`
}

// fi_cq(3): into the caller's buffer if there is one, else the caller gets a pointer to the
// CQ's copy. Older callers lack the field behind, src_addr of 1.20.
void Cq::give_error_data(const Entry& entry, fi_cq_err_entry& buffer) noexcept {
  error_data_given_.clear();
  if (entry.has_error_data) error_data_given_ = take_error_data(entry);
  const std::size_t size = error_data_given_.size();
  if (version_ < kApiErrDataBuffer || buffer.err_data_size == 0) {
    if (version_ < kApiErrDataBuffer || size > 0) {
      buffer.err_data = size > 0 ? error_data_given_.data() : nullptr;
    }
    buffer.err_data_size = size;
    return;
  }
  buffer.err_data_size = std::min(size, buffer.err_data_size);
  if (buffer.err_data_size > 0) {
    std::memcpy(buffer.err_data, error_data_given_.data(), buffer.err_data_size);
  }
}

ssize_t Cq::read_error(fi_cq_err_entry* buffer) noexcept {
  if (engine_.dead()) return -FI_EOPNOTSUPP;
  // The reader's half of the queue needs no more than entries_lock_ then.
  const bool apart = engine_.submissions().active() || read_.several();
  const Guard guard(engine_.lock(), apart);
  const SpinGuard entries(entries_lock_);
  if (waiting() == 0 || front().err == 0) return -FI_EAGAIN;
  const Entry& entry = front();
  buffer->op_context = entry.fields.op_context;
  buffer->flags = entry.fields.flags;
  buffer->len = entry.fields.len;
  buffer->buf = entry.fields.buf;
  buffer->data = entry.fields.data;
  buffer->tag = entry.fields.tag;
  buffer->olen = entry.excess;
  buffer->err = entry.err;
  buffer->prov_errno = entry.prov_errno;
  give_error_data(entry, *buffer);
  drop_front();
  return 1;
}

int Cq::signal() noexcept {
  if (engine_.dead()) return -FI_EOPNOTSUPP;
  if (!waiter_.can_sleep()) return -FI_ENOSYS;
  const Guard guard(read_.several() ? lock_ : engine_.lock());
  if (blocked_ == 0) {
    signalled_ = true;  // for the next fi_cq_sread
  } else {
    ++signals_;
    waiter_.notify();
  }
  return 0;
}

// `use` gets a descriptor that is readable when an engine needs progress.
template <class Use>
int Cq::with_waiter(Use use) noexcept {
  if (engine_.dead()) return -FI_EOPNOTSUPP;
  if (read_.several()) {
    const int activity = read_.activity();
    const Guard guard(lock_);
    return use([activity] { return activity; });
  }
  const Guard guard(engine_.lock());
  return use([this]() UET_NO_THREAD_ANALYSIS { return engine_.activity(); });
}

int Cq::try_wait() noexcept {
  return with_waiter([this](auto activity) {
    if (!waiter_.has_object()) return -FI_EINVAL;
    if (!empty()) return -FI_EAGAIN;
    waiter_.arm();
    activity();
    return 0;
  });
}

int Cq::control(int command, void* argument) noexcept {
  return with_waiter([&](auto activity) { return waiter_.control(command, argument, activity()); });
}

bool Cq::pending() noexcept {
  if (engine_.dead()) return true;
  if (read_.several()) return !empty();
  const Guard guard(engine_.lock());
  return !empty();
}

int cq_open(fid_domain* domain, fi_cq_attr* attr, fid_cq** cq, void* context) noexcept {
  return guarded([&] {
    Cq* opened = nullptr;
    const fi_cq_attr preset{};
    const int result =
        Cq::open(Domain::from(domain), attr != nullptr ? *attr : preset, context, opened);
    if (result == 0) *cq = opened;
    return result;
  });
}

}  // namespace uet::prov
