// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// fid_av: the address vector as libfabric sees it; av::Av holds the addresses.
#pragma once

#include <rdma/fi_domain.h>

#include <optional>
#include <string>
#include <vector>

#include "av/av.h"
#include "objects/engine.h"
#include "objects/eq.h"
#include "objects/references.h"
#include "uet/ses/api.h"

namespace uet::prov {

class Domain;

// fi_ops_domain.av_open: fi_av_open(3).
int av_open(fid_domain* domain, fi_av_attr* attr, fid_av** av, void* context) noexcept;

// The endpoint or context with the resource index `index` at a complete address.
inline ses::Peer peer_at(const av::UetAddress& address, ResourceIndex index) noexcept {
  return {.fep = address.fep(),
          .pid_on_fep = address.pid_on_fep,
          .resource_index = index,
          .initiator = address.initiator_id,
          .relative = !address.has(av::kAbsolute),
          .hpc = (address.capabilities & av::kHpc) != 0,
          .ai_full = (address.capabilities & av::kAiFull) != 0,
          .one_mtu = address.has(av::kOneMtu),
          .optimized = (address.capabilities & av::kOptimizedNonMatching) != 0};
}

class AvFid final : public fid_av {
 public:
  static AvFid& from(fid_av* fid) { return static_cast<AvFid&>(*fid); }
  static AvFid& from(struct fid* fid) { return from(reinterpret_cast<fid_av*>(fid)); }
  static int open(Domain& domain, const fi_av_attr& attr, void* context, AvFid*& out);
  int close() noexcept;
  int bind(struct fid* other) noexcept;

  Engine& engine() { return engine_; }
  References& references() { return references_; }
  // An address of the domain's format as fi_av_straddr shows it.
  std::string to_text(const void* address) const;

  // With the domain's lock. Empty if there is no such entry. The address may name one of the
  // peer's receive contexts.
  std::optional<ses::Peer> peer(fi_addr_t address) const noexcept;
  // The user's id of it, if it was inserted with one (FI_AV_USER_ID).
  fi_addr_t source(const FepAddress& fep, InitiatorId initiator) const noexcept {
    const auto index = av_.find_source(fep, initiator);
    if (!index) return FI_ADDR_NOTAVAIL;
    const bool has_id = *index < user_ids_.size() && user_ids_[*index] != FI_ADDR_NOTAVAIL;
    return has_id ? user_ids_[*index] : *index;
  }

  // Calls visit(fi_addr_t, address) for each entry of the FEP; with the domain's lock.
  template <class Visit>
  void for_each_at(const FepAddress& fep, Visit visit) const {
    for (std::uint64_t index = 0; index < av_.end(); ++index) {
      const av::UetAddress* const address = av_.find(index);
      if (address == nullptr || address->fep() != fep) continue;
      const bool has_id = index < user_ids_.size() && user_ids_[index] != FI_ADDR_NOTAVAIL;
      visit(has_id ? user_ids_[index] : index, *address);
    }
  }

  // Implementations of the calls of the same name; they take the lock themselves.
  int insert(const void* addresses, std::size_t count, fi_addr_t* fi_addr, std::uint64_t flags,
             void* context);
  int insert_range(const char* node, std::size_t nodes, const char* service, std::size_t services,
                   fi_addr_t* fi_addr, std::uint64_t flags, void* context);
  int remove(const fi_addr_t* fi_addr, std::size_t count) noexcept;
  int lookup(fi_addr_t fi_addr, void* address, std::size_t* length);

 private:
  AvFid(Domain& domain, const fi_av_attr& attr, void* context);
  int check_insert(const fi_addr_t* fi_addr, std::uint64_t flags, const void* context) const;
  template <class Next>
  int insert_all(Next next, std::size_t count, fi_addr_t* fi_addr, std::uint64_t flags,
                 void* context);
  int insert_one(const std::optional<av::UetAddress>& address, fi_addr_t* fi_addr, bool has_id);
  void forget_ports() noexcept;
  void set_user_id(std::uint64_t index, fi_addr_t id);

  Domain& domain_;
  Engine& engine_;
  Hold hold_;
  References references_;
  const bool asynchronous_;
  const bool map_;
  const int rx_ctx_bits_;
  EqBinding eq_;  // where FI_AV_COMPLETE goes
  av::Av av_;
  std::vector<fi_addr_t> user_ids_;  // by index, as far as there are any; FI_ADDR_NOTAVAIL: none
};

}  // namespace uet::prov
