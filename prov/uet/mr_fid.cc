// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Both styles at once: offsets and keys of the application's choice, or virtual addresses and keys
// of ours, as the domain's mr_mode says.
#include "mr_fid.h"

#include <cstring>
#include <memory>

#include "compat.h"
#include "errors.h"
#include "ops.h"

namespace uet::prov {
namespace {

int close_fid(fid* fid) noexcept { return Mr::from(fid).close(); }

int mr_bind(fid* fid, struct fid* other, std::uint64_t) noexcept {
  return Mr::from(fid).bind(other);
}

// A region is enabled from the start; there is nothing to refresh.
int mr_control(fid*, int command, void*) noexcept {
  return command == FI_ENABLE || command == FI_REFRESH ? 0 : -FI_ENOSYS;
}

fi_ops mr_fid_ops = {
    .size = sizeof(fi_ops),
    .close = close_fid,
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

}  // namespace

Mr::Mr(Domain& domain, void* context) : fid_mr{}, domain_(domain), hold_(domain.references()) {
  fid.fclass = FI_CLASS_MR;
  fid.context = context;
  fid.ops = &mr_fid_ops;
  mem_desc = this;
}

// Without remote rights nobody asks for the key, and then it need not be unique.
int Mr::enter(const fi_mr_attr& attr) {
  const int mode = domain_.mr_mode();
  const bool own_key = mode == kMrBasic || (mode & FI_MR_PROV_KEY) != 0;
  const bool virtual_addresses = mode == kMrBasic || (mode & FI_MR_VIRT_ADDR) != 0;
  ri::MemoryRegion region;
  if (attr.iov_count == 1) {
    region.base = static_cast<std::byte*>(attr.mr_iov->iov_base);
    region.length = attr.mr_iov->iov_len;
  }
  if (region.base == nullptr && region.length != 0) region.length = UINT64_MAX;  // all memory
  if (virtual_addresses) region.virtual_base = reinterpret_cast<std::uintptr_t>(region.base);
  region.access = remote_access(attr.access);
  const Guard guard(domain_.lock());
  if (own_key) {
    const auto added = domain_.fep().regions().add(region);
    if (!added) return to_fi_errno(added.error());
    key = added.value().value;
  } else {
    key = attr.requested_key;
    if (region.access == 0) return 0;
    const auto added = domain_.fep().regions().add_with_key(region, Rkey{key});
    if (!added) {
      FI_WARN(&provider, FI_LOG_MR, "fi_mr_reg: key 0x%llx is taken, or not of 48 bits\n",
              static_cast<unsigned long long>(key));
      return to_fi_errno(added.error());
    }
  }
  entered_ = true;
  return 0;
}

int Mr::open(Domain& domain, const fi_mr_attr& attr, std::uint64_t flags, Mr*& out) {
  if (domain.dead()) return -FI_EOPNOTSUPP;
  constexpr std::uint64_t kAccess =
      FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
  if (attr.iov_count > 1 || (attr.iov_count == 1 && attr.mr_iov == nullptr) || attr.offset != 0 ||
      (attr.access & ~kAccess) != 0 || flags != 0) {
    FI_WARN(&provider, FI_LOG_MR,
            "fi_mr_reg: %zu pieces (at most 1), offset %llu (0), access 0x%llx or flags 0x%llx "
            "not valid\n",
            attr.iov_count, static_cast<unsigned long long>(attr.offset),
            static_cast<unsigned long long>(attr.access), static_cast<unsigned long long>(flags));
    return -FI_EINVAL;
  }
  if (attr.iface != FI_HMEM_SYSTEM) return -FI_ENOSYS;
  std::unique_ptr<Mr> mr(new Mr(domain, attr.context));
  if (const int result = mr->enter(attr); result != 0) return result;
  out = mr.release();
  return 0;
}

int Mr::close() noexcept {
  if (entered_ && !domain_.dead()) {
    const Guard guard(domain_.lock());
    [[maybe_unused]] const auto removed = domain_.fep().regions().remove(Rkey{key});
    UET_ASSERT(removed.ok());
  }
  delete this;
  return 0;
}

int Mr::bind(struct fid* other) noexcept {
  if (other->fclass == FI_CLASS_EP) return 0;  // FI_MR_ENDPOINT: any endpoint will do
  FI_WARN(&provider, FI_LOG_MR, "fi_mr_bind: cannot bind an object of class %zu\n", other->fclass);
  return -FI_EINVAL;
}

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
  return mr_regattr(domain, &attr, flags, mr);
}

int mr_regattr(fid* domain, const fi_mr_attr* attr, std::uint64_t flags, fid_mr** mr) noexcept {
  return guarded([&] {
    Domain& parent = Domain::from(domain);
    // Callers of an older API may have a shorter struct.
    fi_mr_attr known{};
    std::memcpy(&known, attr, mr_attr_bytes(parent.version()));
    Mr* opened = nullptr;
    const int result = Mr::open(parent, known, flags, opened);
    if (result == 0) *mr = opened;
    return result;
  });
}

}  // namespace uet::prov
