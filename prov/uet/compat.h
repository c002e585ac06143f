// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Where libfabric's versions differ, and the only place that knows. The plug-in that is installed
// is built against 1.17 and runs in 1.17 to 2.x; built against 2.x headers it runs in 2.x only.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_eq.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace uet::prov {

// The newest API a client may ask for and still see us; libfabric skips providers that say less.
inline constexpr std::uint32_t kApiVersion = FI_VERSION(2, 6);

// Flag of fi_getinfo that utility providers set when they look for something to stand on; internal
// to libfabric, the same bit in all versions.
inline constexpr std::uint64_t kCoreProvidersOnly = std::uint64_t{1} << 59;

// Capabilities that 2.0 added; older libraries give the bits other meanings elsewhere.
inline constexpr std::uint64_t kTaggedDirectedRecv = std::uint64_t{1} << 45;
inline constexpr std::uint64_t kTaggedMultiRecv = std::uint64_t{1} << 46;
inline constexpr std::uint64_t kCapsSince2 = kTaggedDirectedRecv | kTaggedMultiRecv;
inline constexpr std::uint32_t kApi2 = FI_VERSION(2, 0);

// From 1.9 on there is FI_HMEM, and fi_mr_attr tells whose memory a region is.
inline constexpr std::uint32_t kApiHmem = FI_VERSION(1, 9);

// Flag of fi_mr_regattr that 1.20 added, and what mr_iov then points to.
inline constexpr std::uint64_t kMrDmabuf = std::uint64_t{1} << 40;
inline constexpr std::uint32_t kApiDmabuf = FI_VERSION(1, 20);
struct MrDmabuf {
  int fd;
  std::uint64_t offset;
  std::size_t length;
  void* base;
};

// fi_progress value that 1.21 added, weaker than manual.
inline constexpr int kProgressControlUnified = 3;

// Flag of fi_getinfo that 2.2 added: what the kernel knows now, no older.
inline constexpr std::uint64_t kRescan = std::uint64_t{1} << 35;

// fi_cntr_events value that 1.21 added.
inline constexpr int kCounterEventsBytes = 1;

// addr_format that 2.3 added: FI_SOCKADDR_IN or FI_SOCKADDR_IN6.
inline constexpr std::uint32_t kSockaddrIp = FI_ADDR_CXI + 2;

// enum fi_mr_mode before API 1.5; 2.x turns the names into warnings.
inline constexpr int kMrUnspec = 0;
inline constexpr int kMrBasic = 1 << 0;
inline constexpr int kMrScalable = 1 << 1;
inline constexpr std::uint32_t kApiMrModeBits = FI_VERSION(1, 5);

// From 1.5 on, err_data of an error entry is the caller's buffer.
inline constexpr std::uint32_t kApiErrDataBuffer = FI_VERSION(1, 5);

// Atomic operation and datatypes that 2.0 added (enum fi_op, enum fi_datatype).
inline constexpr int kOpDiff = 19;
inline constexpr int kDatatypeFloat16 = 16;
inline constexpr int kDatatypeBfloat16 = 17;

// Options of fi_getopt and fi_setopt that 1.18 to 2.2 added behind those of 1.17.
enum LaterOption : int {
  kOptCudaApiPermitted = 10,  // bool, 1.18
  kOptSharedMemoryPermitted,  // bool, 1.21
  kOptMaxMsgSize,             // size_t, 1.22, as those below; one of each per TransferKind
  kOptInjectMsgSize = kOptMaxMsgSize + 4,
  kOptLast = kOptInjectMsgSize + 3,
};

// fi_domain_attr::auth_key_size that 1.20 added: keys are those of the AV (SES-146). With it came a
// flag, calls behind those of 1.17's fi_ops_av, and what auth_key of fi_mr_attr then points to.
inline constexpr std::size_t kAvAuthKey = SIZE_MAX;
inline constexpr std::uint64_t kAuthKeyFlag = std::uint64_t{1} << 57;
template <class Ops>
concept HasAuthKeyCalls = requires(Ops ops) {
  ops.insert_auth_key;
};
template <class Ops>
struct WithAuthKeyCalls : Ops {
  int (*insert_auth_key)(fid_av* av, const void* auth_key, std::size_t size, fi_addr_t* fi_addr,
                         std::uint64_t flags);
  int (*lookup_auth_key)(fid_av* av, fi_addr_t fi_addr, void* auth_key, std::size_t* size);
  int (*set_user_id)(fid_av* av, fi_addr_t fi_addr, fi_addr_t user_id, std::uint64_t flags);
};
using OpsAv =
    std::conditional_t<HasAuthKeyCalls<fi_ops_av>, fi_ops_av, WithAuthKeyCalls<fi_ops_av>>;
struct MrAuthKey {
  fid_av* av;
  fi_addr_t source;
};

// fi_domain_bind's FI_REG_MR, which 2.x turns into a warning.
inline constexpr std::uint64_t kRegMr = std::uint64_t{1} << 59;

// How much of an fi_mr_attr a client of this API has: auth_key came with 1.5, iface and device with
// 1.9.
inline std::size_t mr_attr_bytes(std::uint32_t version) {
  if (version < FI_VERSION(1, 5)) return offsetof(fi_mr_attr, auth_key_size);
  if (version < kApiHmem) return offsetof(fi_mr_attr, iface);
  return offsetof(fi_mr_attr, device) + sizeof(fi_mr_attr::device);
}

// Fields that 1.18 to 2.0 added behind the fi_mr_attr of 1.17.
struct MrAttrTail {
  void* hmem_data;
  std::size_t page_size;
  const fid_mr* base_mr;
  std::size_t sub_mr_cnt;
};
inline constexpr std::size_t kMrAttrBytes = 80;  // in 1.17
inline constexpr std::uint32_t kApiBaseMr = FI_VERSION(2, 0);

// The region that a new one is derived from; nullptr: none, or a client whose API has no such
// field.
inline const fid_mr* base_mr_of(const fi_mr_attr& attr, std::uint32_t version) {
  if (version < kApiBaseMr) return nullptr;
  return reinterpret_cast<const MrAttrTail*>(reinterpret_cast<const char*>(&attr) + kMrAttrBytes)
      ->base_mr;
}

// Fields that 1.20 to 2.5 added behind the fi_domain_attr of 1.17. The loaded library allocates the
// infos (fi_dupinfo(NULL)): if it is new enough, they have the fields, whatever uet was built with.
struct DomainAttrTail {
  std::size_t max_ep_auth_key;
  std::uint32_t max_group_id;
  std::uint64_t max_cntr_value;
  std::uint64_t max_err_cntr_value;
};
inline constexpr std::size_t kDomainAttrBytes = 192;  // in 1.17

inline void set_auth_key_limit(fi_domain_attr& attr, std::size_t most) {
  if (fi_version() < FI_VERSION(1, 20)) return;
  auto* tail = reinterpret_cast<DomainAttrTail*>(reinterpret_cast<char*>(&attr) + kDomainAttrBytes);
  tail->max_ep_auth_key = most;
}

// 0 would mean "unknown" to clients of 2.5 and later.
inline void set_counter_limits(fi_domain_attr& attr) {
  if (fi_version() < FI_VERSION(2, 5)) return;
  auto* tail = reinterpret_cast<DomainAttrTail*>(reinterpret_cast<char*>(&attr) + kDomainAttrBytes);
  tail->max_cntr_value = UINT64_MAX;
  tail->max_err_cntr_value = UINT64_MAX;
}

// True if an fi_domain_attr of these headers has the members above where the loaded library and its
// clients expect them. Newer headers add members at the end; a difference in front of them would be
// a new interface.
template <class Attr>
consteval bool has_known_layout() {
  constexpr std::size_t kTail = kDomainAttrBytes;
  if (offsetof(Attr, tclass) + 8 != kDomainAttrBytes) return false;
  bool known = true;
  if constexpr (requires(Attr a) { a.max_ep_auth_key; }) {
    known &= offsetof(Attr, max_ep_auth_key) == kTail + offsetof(DomainAttrTail, max_ep_auth_key);
  }
  if constexpr (requires(Attr a) { a.max_group_id; }) {
    known &= offsetof(Attr, max_group_id) == kTail + offsetof(DomainAttrTail, max_group_id);
  }
  if constexpr (requires(Attr a) { a.max_cntr_value; }) {
    known &= offsetof(Attr, max_cntr_value) == kTail + offsetof(DomainAttrTail, max_cntr_value);
    known &=
        offsetof(Attr, max_err_cntr_value) == kTail + offsetof(DomainAttrTail, max_err_cntr_value);
  }
  return known;
}
static_assert(has_known_layout<fi_domain_attr>());

// True if the members that 1.17 has lie where they lay: main adds xpu_ctx at the end of each.
template <class Attr>
consteval bool has_known_ep_attr() {
  return offsetof(Attr, auth_key) == 88;
}
template <class Attr>
consteval bool has_known_cq_attr() {
  return offsetof(Attr, wait_set) == 32;
}
template <class Attr>
consteval bool has_known_cntr_attr() {
  return offsetof(Attr, flags) == 16;
}
static_assert(has_known_ep_attr<fi_ep_attr>());
static_assert(has_known_cq_attr<fi_cq_attr>());
static_assert(has_known_cntr_attr<fi_cntr_attr>());
static_assert(offsetof(fi_cq_err_entry, err_data_size) + sizeof(std::size_t) == 80);
static_assert(offsetof(fi_mr_attr, device) + sizeof(fi_mr_attr::device) == 80);

}  // namespace uet::prov
