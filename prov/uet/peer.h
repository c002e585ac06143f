// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// fi_peer(3), as the providers that link others (lnx) use it: the layouts that both sides rely on.
// The layouts belong to libfabric and change between versions; these are the layouts of 2.3 to 2.6.
// peer_receives.h decides about messages.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace uet::prov {

// Is the loaded library one whose peer interface this is?
inline bool has_peer_interface() {
  const std::uint32_t version = fi_version();
  return version >= FI_VERSION(2, 3) && version <= FI_VERSION(2, 6);
}

// struct fi_cq_err_entry, which the owner of a CQ copies: since 1.20 with src_addr at its end.
struct PeerErrorEntry {
  PeerErrorEntry(const fi_cq_err_entry& entry, fi_addr_t source) {
    std::memcpy(bytes, &entry, kSourceAt);
    std::memcpy(bytes + kSourceAt, &source, sizeof source);
  }
  static constexpr std::size_t kSourceAt = 80;
  alignas(fi_cq_err_entry) std::byte bytes[kSourceAt + sizeof(fi_addr_t)];
};

// struct fid_peer_cq: a completion queue of the owner, to which uet writes.
struct PeerCq;
struct PeerCqOwnerOps {
  std::size_t size;
  ssize_t (*write)(PeerCq* cq, void* context, std::uint64_t flags, std::size_t length, void* buffer,
                   std::uint64_t data, std::uint64_t tag, fi_addr_t source);
  ssize_t (*writeerr)(PeerCq* cq, const void* entry);  // a PeerErrorEntry
};
struct PeerCq {
  struct fid fid;
  PeerCqOwnerOps* owner_ops;
};
// The context of fi_cq_open points to this structure if the flags have FI_PEER.
struct PeerCqContext {
  std::size_t size;
  PeerCq* cq;
};

// struct fid_peer_srx: the owner's queue of receives.
struct PeerSrx;
// A receive of the owner, or its record of a message that has found no receive.
struct PeerRxEntry {
  PeerSrx* srx;
  fi_addr_t addr;
  std::size_t msg_size;
  std::uint64_t tag;
  std::uint64_t cq_data;
  std::uint64_t flags;
  void* context;
  std::size_t count;
  void** desc;
  void* peer_context;  // ours
  void* owner_context;
  iovec* iov;
};
struct PeerMatchAttr {
  fi_addr_t addr;
  std::size_t msg_size;
  std::uint64_t tag;
};
struct PeerSrxOwnerOps {
  std::size_t size;
  int (*get_msg)(PeerSrx* srx, PeerMatchAttr* attr, PeerRxEntry** entry);
  int (*get_tag)(PeerSrx* srx, PeerMatchAttr* attr, PeerRxEntry** entry);
  int (*queue_msg)(PeerRxEntry* entry);
  int (*queue_tag)(PeerRxEntry* entry);
  void (*foreach_unspec_addr)(PeerSrx* srx, fi_addr_t (*get_addr)(PeerRxEntry*));
  void (*free_entry)(PeerRxEntry* entry);
};
// The functions of uet that the owner calls.
struct PeerSrxPeerOps {
  std::size_t size;
  int (*start_msg)(PeerRxEntry* entry);
  int (*start_tag)(PeerRxEntry* entry);
  int (*discard_msg)(PeerRxEntry* entry);
  int (*discard_tag)(PeerRxEntry* entry);
};
struct PeerSrx {
  fid_ep ep_fid;
  PeerSrxOwnerOps* owner_ops;
  PeerSrxPeerOps* peer_ops;
};
// The context of fi_srx_context points to this structure if op_flags has FI_PEER.
struct PeerSrxContext {
  std::size_t size;
  PeerSrx* srx;
};

static_assert(sizeof(PeerCqOwnerOps) == 24 && sizeof(PeerCq) == sizeof(struct fid) + 8);
static_assert(sizeof(PeerRxEntry) == 96 && offsetof(PeerRxEntry, peer_context) == 72);
static_assert(sizeof(PeerSrxOwnerOps) == 56 && sizeof(PeerSrxPeerOps) == 40);
static_assert(sizeof(PeerSrx) == sizeof(fid_ep) + 16);

// The caller's struct, if it has at least the members that we know; else nullptr.
template <class Context>
Context* peer_context(void* context) {
  auto* given = static_cast<Context*>(context);
  return given != nullptr && given->size >= sizeof(Context) ? given : nullptr;
}
template <class Ops>
bool is_complete(const Ops* ops) {
  return ops != nullptr && ops->size >= sizeof(Ops);
}

}  // namespace uet::prov
