// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Registration in every mr_mode that a domain may have been opened with: offsets and keys of the
// application's choice, or virtual addresses and provider's keys; valid at once, or only from
// fi_mr_enable on.
#include "objects/mr_fid.h"

#include <fcntl.h>
#include <algorithm>

#include <cstring>
#include <memory>
#include <optional>

#include "compat.h"
#include "errors.h"
#include "hmem/devices.h"
#include "hmem/persistent.h"
#include "nic/socket.h"
#include "objects/av_fid.h"
#include "objects/domain.h"
#include "objects/endpoint_fid.h"
#include "objects/eq.h"
#include "objects/scalable_ep.h"
#include "ops.h"

namespace uet::prov {
namespace {

constexpr std::uint64_t kAccess =
    FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE | FI_COLLECTIVE;
// Beside those of any memory, with FI_HMEM: how its device's interface has allocated it.
constexpr std::uint64_t kFlags = FI_RMA_EVENT | FI_RMA_PMEM;
constexpr std::uint64_t kHmemFlags = FI_HMEM_DEVICE_ONLY | FI_HMEM_HOST_ALLOC | kMrDmabuf;

int refuse_mr(int error, const char* why) {
  FI_WARN(&provider, FI_LOG_MR, "%s\n", why);
  return error;
}

int close_mr(fid* fid) noexcept { return Mr::from(fid).close(); }

int mr_bind(fid* fid, struct fid* other, std::uint64_t flags) noexcept {
  return guarded([&] { return Mr::from(fid).bind(other, flags); });
}

int mr_control(fid* fid, int command, void* argument) noexcept {
  switch (command) {
    case FI_ENABLE:
      return Mr::from(fid).enable();
    case FI_REFRESH:  // pages are looked at when they are used
      return 0;
    case FI_GET_RAW_MR:
      return Mr::from(fid).get_raw(*static_cast<const struct fi_mr_raw_attr*>(argument));
    default:
      return -FI_ENOSYS;
  }
}

fi_ops mr_fid_ops = {
    .size = sizeof(fi_ops),
    .close = close_mr,
    .bind = mr_bind,
    .control = mr_control,
    .ops_open = no_ops_open,
    .tostr = no_tostr,
    .ops_set = no_ops_set,
};

std::uint8_t remote_access(std::uint64_t access) {
  return static_cast<std::uint8_t>(((access & FI_REMOTE_READ) != 0 ? ri::kRemoteRead : 0) |
                                   ((access & FI_REMOTE_WRITE) != 0 ? ri::kRemoteWrite : 0));
}

// Whose memory it is; fi_mr(3) says nothing of that to domains without FI_HMEM.
int check_interface(const fi_mr_attr& attr, std::uint64_t flags) {
  if (attr.iface != FI_HMEM_SYSTEM && !has_device_driver(attr.iface)) {
    return refuse_mr(-FI_ENOSYS,
                     "fi_mr_regattr: iface: not usable here; use FI_HMEM_SYSTEM, or FI_HMEM_CUDA, "
                     "FI_HMEM_ROCR or FI_HMEM_ZE if its driver is installed");
  }
  if ((flags & FI_HMEM_DEVICE_ONLY) != 0 && attr.iface == FI_HMEM_SYSTEM) {
    return refuse_mr(-FI_EINVAL,
                     "fi_mr_regattr: iface: FI_HMEM_SYSTEM with FI_HMEM_DEVICE_ONLY; name the "
                     "interface of the device");
  }
  return 0;
}

int check_attr(const fi_mr_attr& attr, std::uint64_t flags, Domain& domain) {
  const bool knows_hmem = domain.engine().knows_hmem();
  const std::uint64_t hmem_flags =
      domain.version() < kApiDmabuf ? kHmemFlags & ~kMrDmabuf : kHmemFlags;
  const std::uint64_t known = kFlags | (domain.has_av_keys() ? kAuthKeyFlag : 0);
  if ((flags & ~(knows_hmem ? known | hmem_flags : known)) != 0) {
    return refuse_mr(-FI_EBADFLAGS, knows_hmem ? "fi_mr_reg: flags: not supported; see fi_mr(3)"
                                               : "fi_mr_reg: flags: not supported; without FI_HMEM "
                                                 "use FI_RMA_EVENT and FI_RMA_PMEM only");
  }
  if (attr.iov_count > 1 || (attr.iov_count == 1 && attr.mr_iov == nullptr)) {
    return refuse_mr(-FI_EINVAL,
                     "fi_mr_reg: iov_count: mr_iov_limit is 1; register one piece at a time");
  }
  if (attr.offset != 0) return refuse_mr(-FI_EINVAL, "fi_mr_reg: offset: not supported; pass 0");
  if ((attr.access & ~kAccess) != 0)
    return refuse_mr(-FI_EINVAL, "fi_mr_reg: access: unsupported bit; see fi_mr(3)");
  return knows_hmem ? check_interface(attr, flags) : 0;
}

}  // namespace

Mr::Mr(Domain& domain, const fi_mr_attr& attr, std::uint64_t flags)
    : fid_mr{},
      domain_(domain),
      engines_(domain.engines()),
      engine_(domain.engine()),
      flags_(flags) {
  fid.fclass = FI_CLASS_MR;
  fid.context = attr.context;
  fid.ops = &mr_fid_ops;
  mem_desc = static_cast<fid_mr*>(this);
  holds_[0] = Hold(domain.references());
}

// Through the driver if the CPU cannot map it, as with GPUs.
int Mr::map_dmabuf(const fi_mr_attr& attr, const MrDmabuf& buffer) {
  base_ = static_cast<std::byte*>(buffer.base) + buffer.offset;
  length_ = buffer.length;
  dmabuf_ = Dmabuf::map(buffer.fd, buffer.offset, length_, base_);
  hmem_ = dmabuf_.get();
  if (hmem_ == nullptr && attr.iface != FI_HMEM_SYSTEM && fcntl(buffer.fd, F_GETFD) >= 0) {
    const char* why = nullptr;
    hmem_ = memory_of_device(attr, base_, length_, why);
  }
  if (hmem_ != nullptr) return 0;
  return refuse_mr(-FI_EOPNOTSUPP,
                   "fi_mr_regattr: dmabuf: the CPU cannot map it; export it for the CPU");
}

// Where it is, and how its bytes are reached.
int Mr::find_memory(const fi_mr_attr& attr) {
  if ((flags_ & kMrDmabuf) != 0) {
    if (attr.iov_count != 1)
      return refuse_mr(-FI_EINVAL,
                       "fi_mr_regattr: dmabuf: missing although FI_MR_DMABUF is set; pass it");
    return map_dmabuf(attr, *reinterpret_cast<const MrDmabuf*>(attr.mr_iov));
  }
  if (attr.iov_count == 1) {
    base_ = static_cast<std::byte*>(attr.mr_iov->iov_base);
    length_ = attr.mr_iov->iov_len;
  }
  const bool of_device = engine_.knows_hmem() && attr.iface != FI_HMEM_SYSTEM;
  if (of_device && (flags_ & FI_HMEM_HOST_ALLOC) == 0) {  // else the CPU's too
    const char* why = nullptr;
    hmem_ = memory_of_device(attr, base_, length_, why);
    if (hmem_ == nullptr) return refuse_mr(-FI_EINVAL, why);
  } else if (base_ == nullptr && length_ != 0) {
    length_ = SIZE_MAX;  // all memory
  }
  return 0;
}

// SES-146: all keys of an AV, or one. An AV does not restrict a region to an endpoint address.
int Mr::find_key(const fi_mr_attr& attr, std::optional<JobId>& job) {
  if (attr.auth_key_size != sizeof(MrAuthKey) || attr.auth_key == nullptr) {
    return refuse_mr(-FI_EINVAL,
                     "fi_mr_reg: auth_key: the domain has FI_AV_AUTH_KEY; call fi_mr_regattr with "
                     "a struct fi_mr_auth_key");
  }
  MrAuthKey key;
  std::memcpy(&key, attr.auth_key, sizeof key);
  if (key.av == nullptr || &AvFid::from(key.av).engines() != &engines_) {
    return refuse_mr(-FI_EINVAL,
                     "fi_mr_regattr: fi_mr_auth_key: not an AV of this domain; pass one that is");
  }
  if ((flags_ & kAuthKeyFlag) == 0) {
    return key.source == FI_ADDR_UNSPEC
               ? 0
               : refuse_mr(-FI_EOPNOTSUPP,
                           "fi_mr_regattr: fi_mr_auth_key: names one endpoint address; pass a key");
  }
  const Guard guard(engine_.lock());
  job = AvFid::from(key.av).key_job(key.source);
  return job ? 0
             : refuse_mr(-FI_EINVAL,
                         "fi_mr_regattr: fi_mr_auth_key: not a key of the AV; call "
                         "fi_av_insert_auth_key first");
}

// Without remote rights no peer uses the key, so that it need not be unique.
int Mr::enter(const fi_mr_attr& attr) {
  ri::MemoryRegion region;
  region.base = base_;
  region.length = length_;
  region.device = hmem_;
  if ((flags_ & FI_RMA_PMEM) != 0 && hmem_ == nullptr) {
    region.device = PersistentMemory::of_this_cpu();
    if (region.device == nullptr)
      return refuse_mr(-FI_EOPNOTSUPP,
                       "fi_mr_reg: FI_RMA_PMEM: for x86-64 only; leave the flag out");
  }
  if (domain_.mr_mode_has(FI_MR_VIRT_ADDR)) {
    region.virtual_base = reinterpret_cast<std::uintptr_t>(region.base);
  }
  base_address_ = region.virtual_base;
  region.access = remote_access(attr.access);
  region.observer = this;
  if (domain_.has_av_keys()) {
    if (const int result = find_key(attr, region.job); result != 0) return result;
  } else if (attr.auth_key_size != 0) {
    JobId job{};
    const char* const problem = domain_.read_job(attr.auth_key, attr.auth_key_size, job);
    if (problem != nullptr) {
      return refuse_mr(-FI_EINVAL, (std::string("fi_mr_regattr: ") + problem).c_str());
    }
    region.job = job;
  } else {
    region.job = domain_.auth_job();  // fi_mr(3): the domain's key, if it was opened with one
  }
  enabled_ = !domain_.mr_mode_has(FI_MR_ENDPOINT) &&
             !(domain_.mr_mode_has(FI_MR_RMA_EVENT) && (flags_ & FI_RMA_EVENT) != 0);
  region.enabled = enabled_;
  const AllLocks guard(engines_, engine_.lock().called_out());
  return enter_under_key(region, attr.requested_key);
}

// With all locks: the first engine or the application chooses the key.
int Mr::enter_under_key(const ri::MemoryRegion& region,
                        std::uint64_t requested_key) UET_NO_THREAD_ANALYSIS {
  if (domain_.mr_mode_has(FI_MR_PROV_KEY)) {
    const auto added = engine_.fep().regions().add(region);
    if (!added) return to_fi_errno(added.error());
    key = added.value().value;
  } else {
    key = requested_key;
    if (region.access == 0) return 0;
    const auto added = engine_.fep().regions().add_with_key(region, Rkey{key});
    if (!added) {
      FI_WARN(&provider, FI_LOG_MR,
              "fi_mr_reg: key 0x%llx is taken or longer than 48 bits; choose another\n",
              static_cast<unsigned long long>(key));
      return added.error() == Error::Invalid ? -FI_EKEYREJECTED : to_fi_errno(added.error());
    }
  }
  const int result = enter_in_all(region);
  entered_ = result == 0;
  return result;
}

// Peers of all endpoints of the domain reach it by the one key, which the first engine has. 0 or a
// negative fi_errno; then no engine has it.
int Mr::enter_in_all(const ri::MemoryRegion& region) UET_NO_THREAD_ANALYSIS {
  for (std::size_t number = 0; number < engines_.size(); ++number) {
    Engine& engine = engines_.at(number);
    if (number > 0) {
      const auto adopted = engine.fep().regions().adopt(region, Rkey{key});
      if (!adopted) {
        while (number-- > 0) remove_from(engines_.at(number));
        return refuse_mr(
            to_fi_errno(adopted.error()),
            "fi_mr_reg: region: refused by an engine of FI_UET_CORES; close other regions");
      }
    }
    EngineLink* const link = engine.link();
    const Result<void> added =
        link != nullptr ? link->requests().add_region(region, Rkey{key}) : Result<void>();
    if (added) continue;
    remove_from_fep(engine);
    while (number-- > 0) remove_from(engines_.at(number));
    return refuse_mr(to_fi_errno(added.error()),
                     "fi_mr_reg: region: refused by the engine; look at the output of uet_engine");
  }
  return 0;
}

void Mr::remove_from(Engine& engine) UET_NO_THREAD_ANALYSIS {
  if (EngineLink* const link = engine.link()) link->requests().remove_region(Rkey{key});
  remove_from_fep(engine);
}

void Mr::remove_from_fep(Engine& engine) UET_NO_THREAD_ANALYSIS {
  [[maybe_unused]] const auto removed = engine.fep().regions().remove(Rkey{key});
  UET_ASSERT(removed.ok());
}

// fi_mr(3), base_mr: whose memory it is follows from the base; bounds and rights are its own.
int Mr::find_part(const fi_mr_attr& attr, const fid_mr& base) {
  const Mr& whole = static_cast<const Mr&>(base);
  if (&whole.engines_ != &engines_) {
    return refuse_mr(-FI_EDOMAIN,
                     "fi_mr_regattr: base_mr: belongs to another domain; pass one of this domain");
  }
  if ((flags_ & kMrDmabuf) != 0 || attr.iov_count != 1) {
    return refuse_mr(-FI_EINVAL, "fi_mr_regattr: base_mr: mr_iov has not one piece; pass one");
  }
  base_ = static_cast<std::byte*>(attr.mr_iov->iov_base);
  length_ = attr.mr_iov->iov_len;
  if (!whole.holds(base_, length_)) {
    return refuse_mr(-FI_EINVAL,
                     "fi_mr_regattr: base_mr: does not hold all of the memory; pass a part of it");
  }
  hmem_ = whole.hmem_;
  sends_from_ = whole.sends_from_;
  flags_ |= whole.flags_ & FI_RMA_PMEM;
  holds_[3] = Hold(whole.parts_);
  return 0;
}

int Mr::open(Domain& domain, const fi_mr_attr& attr, const fid_mr* base, std::uint64_t flags,
             Mr*& out) {
  if (domain.engine().dead()) return -FI_EOPNOTSUPP;
  if (const int result = check_attr(attr, flags, domain); result != 0) return result;
  std::unique_ptr<Mr> mr(new Mr(domain, attr, flags));
  const int found = base != nullptr ? mr->find_part(attr, *base) : mr->find_memory(attr);
  if (found != 0) return found;
  if (const int result = mr->enter(attr); result != 0) return result;
  mr->tell_nic(attr);
  out = mr.release();
  return 0;
}

// A device of the NIC may then read the memory for sends. If it cannot, sends work without that.
void Mr::tell_nic(const fi_mr_attr& attr) {
  if (base_ == nullptr || length_ == 0) return;
  if (hmem_ != nullptr) return tell_nic_of_device(attr);
  if (!engine_.nic().caps().reads_registered_memory) return;
  register_in_nics([&](nic::Nic& nic) { return nic.register_memory({base_, length_}); });
}

// True: the NIC of each engine has accepted the memory. `call` returns 0 if it has not.
template <class Register>
bool Mr::register_in_nics(Register call) {
  const AllLocks guard(engines_, engine_.lock().called_out());
  for (const auto& engine : engines_) nic_memory_.push_back(call(engine->nic()));
  return std::find(nic_memory_.begin(), nic_memory_.end(), 0U) == nic_memory_.end();
}

// With all locks.
void Mr::forget_in_nics() {
  for (std::size_t number = 0; number < nic_memory_.size(); ++number) {
    if (nic_memory_[number] != 0) engines_.at(number).nic().forget_memory(nic_memory_[number]);
  }
  nic_memory_.clear();
}

// Likewise. If the NIC refuses the dmabuf, sends are copied by the driver. A part of another region
// is known to the NIC by that region.
void Mr::tell_nic_of_device(const fi_mr_attr& attr) {
  if (sends_from_ != nullptr) return;
  sends_from_ = hmem_;
  if (!may_read_devices(engine_.nic())) return;
  nic::DmabufRange range{.memory = {base_, length_}};
  nic::FileDescriptor exported;
  if ((flags_ & kMrDmabuf) != 0) {
    const auto& buffer = *reinterpret_cast<const MrDmabuf*>(attr.mr_iov);
    range.fd = buffer.fd;
    range.offset = buffer.offset;
  } else {
    exported = nic::FileDescriptor(export_dmabuf(attr, base_, range.offset));
    range.fd = exported.get();
  }
  if (range.fd < 0) return;
  const auto accept = [&](nic::Nic& nic) { return nic.register_device_memory(range); };
  if (!register_in_nics(accept)) {
    const AllLocks guard(engines_, engine_.lock().called_out());
    forget_in_nics();
    FI_INFO(&provider, FI_LOG_MR, "the NIC refuses a dmabuf: its bytes are copied\n");
    return;
  }
  nic_read_.emplace(*hmem_);
  sends_from_ = &*nic_read_;
}

int Mr::close() noexcept {
  if (parts_.any()) return -FI_EBUSY;
  if ((entered_ || !nic_memory_.empty()) && !engine_.dead()) {
    const AllLocks guard(engines_, engine_.lock().called_out());
    forget_in_nics();
    if (entered_) {
      for (const auto& engine : engines_) remove_from(*engine);
    }
  }
  delete this;
  return 0;
}

// `change` gets the region of each engine, and the engine.
template <class Change>
void Mr::change_region(Change change) UET_NO_THREAD_ANALYSIS {
  if (!entered_) return;
  const AllLocks guard(engines_);
  for (const auto& engine : engines_) {
    ri::MemoryRegion& region = *engine->fep().regions().find(Rkey{key});
    change(region, *engine);
    if (EngineLink* const link = engine->link()) link->requests().change_region(region, Rkey{key});
  }
}

int Mr::bind_counter(Cntr& counter, std::uint64_t flags) {
  constexpr std::uint64_t kEvents = FI_REMOTE_READ | FI_REMOTE_WRITE;
  if (&counter.engines() != &engines_) {
    return refuse_mr(
        -FI_EDOMAIN,
        "fi_mr_bind: region: the counter belongs to another domain; open it on the same domain");
  }
  if (flags == 0 || (flags & ~kEvents) != 0) {
    return refuse_mr(
        -FI_EBADFLAGS,
        "fi_mr_bind: region: unsupported counter flags; use FI_REMOTE_READ and FI_REMOTE_WRITE");
  }
  if (domain_.mr_mode_has(FI_MR_RMA_EVENT) && (enabled_ || (flags_ & FI_RMA_EVENT) == 0)) {
    return refuse_mr(-FI_EOPBADSTATE,
                     "fi_mr_bind: region: not open for counters; register with FI_RMA_EVENT, bind, "
                     "then call fi_mr_enable");
  }
  const bool read = (flags & FI_REMOTE_READ) != 0;
  const bool write = (flags & FI_REMOTE_WRITE) != 0;
  if ((read && remote_read_ != nullptr) || (write && remote_write_ != nullptr)) {
    return refuse_mr(
        -FI_EINVAL,
        "fi_mr_bind: region: a counter is bound for these flags already; bind one for each flag");
  }
  Hold hold(counter.references());
  const AllLocks guard(engines_);
  counter.count_for_all();
  if (read) {
    remote_read_ = &counter;
    holds_[1] = std::move(hold);
    if (write) holds_[2] = Hold(counter.references());
  } else {
    holds_[2] = std::move(hold);
  }
  if (write) remote_write_ = &counter;
  return 0;
}

// From now on only operations that go to this endpoint may touch the region (SES-135). The endpoint
// may close first (fi_mr(3)): then no peer reaches the region any more (Identity).
int Mr::bind_endpoint(Engine& engine, const ri::ContextName& first, std::size_t count,
                      std::uint64_t flags) {
  if (!engines_.has(engine)) {
    return refuse_mr(
        -FI_EDOMAIN,
        "fi_mr_bind: region: the endpoint belongs to another domain; open it on the same domain");
  }
  if (flags != 0)
    return refuse_mr(-FI_EBADFLAGS, "fi_mr_bind: region: an endpoint takes no flags; pass 0");
  if (bound_)
    return refuse_mr(-FI_EINVAL, "fi_mr_bind: region: an endpoint is bound already; bind one only");
  if (domain_.mr_mode_has(FI_MR_ENDPOINT) && enabled_) {
    return refuse_mr(-FI_EOPBADSTATE,
                     "fi_mr_bind: region: enabled already; bind before fi_mr_enable");
  }
  bound_ = true;
  change_region([&](ri::MemoryRegion& region, const Engine& of_region) {
    if (&of_region != &engine) {  // no peer of its endpoints reaches the region any more
      region.access = 0;
      return;
    }
    region.ri = first.index;
    region.pid = first.pid;
    region.ri_count = static_cast<std::uint16_t>(count);
  });
  return 0;
}

int Mr::bind(struct fid* other, std::uint64_t flags) {
  if (engine_.dead()) return -FI_EOPNOTSUPP;
  switch (other->fclass) {
    case FI_CLASS_CNTR:
      return bind_counter(Cntr::from(other), flags);
    case FI_CLASS_EP:
    case FI_CLASS_RX_CTX: {
      Endpoint& endpoint = EndpointFid::from(other).endpoint();
      return bind_endpoint(endpoint.engine(), endpoint.context_name(), 1, flags);
    }
    case FI_CLASS_SEP: {
      ScalableEndpoint& endpoint = ScalableEndpoint::from(other);
      const Identity& identity = endpoint.identity();
      return bind_endpoint(endpoint.engine(), identity.context_name(), identity.count(), flags);
    }
    default:
      return refuse_mr(-FI_EINVAL,
                       "fi_mr_bind: region: objects of this class cannot be bound; bind a counter "
                       "or an endpoint");
  }
}

int Mr::enable() {
  if (engine_.dead()) return -FI_EOPNOTSUPP;
  if (domain_.mr_mode_has(FI_MR_ENDPOINT) && !bound_) {
    return refuse_mr(
        -FI_EOPBADSTATE,
        "fi_mr_enable: region: no endpoint is bound (FI_MR_ENDPOINT); call fi_mr_bind first");
  }
  enabled_ = true;
  change_region([](ri::MemoryRegion& region, const Engine&) { region.enabled = true; });
  return 0;
}

int Mr::get_raw(const struct fi_mr_raw_attr& request) const noexcept {
  if (request.key_size == nullptr)
    return refuse_mr(-FI_EINVAL, "fi_mr_raw_attr: key_size: NULL; pass one");
  const std::size_t room = *request.key_size;
  *request.key_size = sizeof key;
  if (request.base_addr != nullptr) *request.base_addr = base_address_;
  if (room < sizeof key || request.raw_key == nullptr) return -FI_ETOOSMALL;
  std::memcpy(request.raw_key, &key, sizeof key);
  return 0;
}

void Mr::accessed(std::uint8_t access, std::uint64_t length) noexcept {
  const bool reads = (access & ri::kRemoteRead) != 0;
  const bool writes = (access & ri::kRemoteWrite) != 0;
  if (reads && remote_read_ != nullptr) remote_read_->count(true, length);
  if (writes && remote_write_ != nullptr) remote_write_->count(true, length);
}

bool Mr::counts_reads() const noexcept { return remote_read_ != nullptr; }

void Mr::accessed_part(std::uint8_t access, std::uint64_t length) noexcept {
  const bool writes = (access & ri::kRemoteWrite) != 0;
  if (writes && remote_write_ != nullptr) remote_write_->count_part(length);
}

int map_raw_key(const struct fi_mr_map_raw& request) noexcept {
  if (request.raw_key == nullptr || request.key == nullptr ||
      request.key_size != sizeof(std::uint64_t)) {
    return refuse_mr(-FI_EINVAL, "fi_mr_map_raw: key_size: a raw key has 8 bytes; pass 8");
  }
  std::memcpy(request.key, request.raw_key, sizeof(std::uint64_t));
  return 0;
}

namespace {

// `base`: the region that it is a part of, or nullptr. May throw bad_alloc.
int register_region(Domain& parent, const fi_mr_attr& attr, const fid_mr* base, std::uint64_t flags,
                    fid_mr*& mr) {
  Mr* opened = nullptr;
  const int result = Mr::open(parent, attr, base, flags, opened);
  if (result != 0) return result;
  mr = opened;  // before the event can be read
  const int told = guarded([&] {
    parent.registered(*opened);
    return 0;
  });
  if (told != 0) opened->close();
  return told;
}

}  // namespace

int mr_reg(fid* domain, const void* buffer, std::size_t length, std::uint64_t access,
           std::uint64_t offset, std::uint64_t requested_key, std::uint64_t flags, fid_mr** mr,
           void* context) noexcept {
  const iovec iov{const_cast<void*>(buffer), length};
  return mr_regv(domain, &iov, 1, access, offset, requested_key, flags, mr, context);
}

int mr_regv(fid* domain, const iovec* iov, std::size_t count, std::uint64_t access,
            std::uint64_t offset, std::uint64_t requested_key, std::uint64_t flags, fid_mr** mr,
            void* context) noexcept {
  fi_mr_attr attr{};
  attr.mr_iov = iov;
  attr.iov_count = count;
  attr.access = access;
  attr.offset = offset;
  attr.requested_key = requested_key;
  attr.context = context;
  return guarded([&] { return register_region(Domain::from(domain), attr, nullptr, flags, *mr); });
}

int mr_regattr(fid* domain, const fi_mr_attr* attr, std::uint64_t flags, fid_mr** mr) noexcept {
  return guarded([&] {
    Domain& parent = Domain::from(domain);
    // Callers of an older API may have a shorter struct.
    fi_mr_attr known{};
    std::memcpy(&known, attr, mr_attr_bytes(parent.version()));
    const fid_mr* const base = base_mr_of(*attr, parent.version());
    if (base != nullptr) known.iface = FI_HMEM_SYSTEM;  // inherited
    return register_region(parent, known, base, flags, *mr);
  });
}

}  // namespace uet::prov
