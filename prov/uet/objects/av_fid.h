// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// fid_av: the address vector as libfabric sees it; av::Av holds the addresses.
#pragma once

#include <rdma/fi_domain.h>

#include <optional>
#include <string>
#include <vector>

#include "av/av.h"
#include "objects/engines.h"
#include "objects/eq.h"
#include "objects/references.h"
#include "objects/spin_lock.h"
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

  // All engines of the domain: endpoints of each may use it.
  const Engines& engines() const { return engines_; }
  References& references() { return references_; }
  // An address of the domain's format as fi_av_straddr shows it.
  std::string to_text(const void* address) const;

  // With the lock of an engine, unless Submissions::active(): then any thread may ask. Empty if
  // there is no such entry. The address may name one of the peer's receive contexts.
  std::optional<ses::Peer> peer(fi_addr_t address) const noexcept {
    ses::Peer found;
    return read_peer(address, found) ? std::optional(found) : std::nullopt;
  }
  // Likewise, in place; false if there is no such entry.
  bool read_peer(fi_addr_t address, ses::Peer& peer) const noexcept;
  // Of a domain with several engines, by any thread without a lock: which of the parts of an
  // endpoint (tx_division.h) has the peer, modulo their number. Entries take turns, in the order of
  // their insertion.
  struct Turn {
    FepAddress fep;
    std::uint32_t number = 0;
  };
  std::optional<Turn> turn_of(fi_addr_t address) const noexcept;
  // The rest with the lock of an engine.
  // The user's id of it, if it has one (FI_AV_USER_ID). With keys in the AV, of several entries of
  // the sender the one of the job that the message came with (SES-146).
  fi_addr_t source(const FepAddress& fep, InitiatorId initiator, JobId job) const noexcept {
    const auto index = find_source(fep, initiator, job);
    return index ? shown(*index) : FI_ADDR_NOTAVAIL;
  }
  // The fi_addr_t of the first key. No address has a number as high, so that
  // fi_av_lookup_auth_key, which takes both and has no flags, can tell which is meant.
  static constexpr fi_addr_t kFirstKey = fi_addr_t{1} << 31;
  // The job of an entry of fi_av_insert_auth_key; nullopt: there is no such entry.
  std::optional<JobId> key_job(fi_addr_t key) const noexcept {
    if (key - kFirstKey >= keys_.size() || keys_[key - kFirstKey].removed) return {};
    return keys_[key - kFirstKey].job;
  }
  // The jobs of all keys. Takes a lock.
  std::vector<JobId> jobs() const;

  // Calls visit(fi_addr_t, address) for each entry of the FEP; with the lock of an engine.
  template <class Visit>
  void for_each_at(const FepAddress& fep, Visit visit) const {
    for (std::uint64_t index = 0; index < av_.end(); ++index) {
      const av::UetAddress* const address = av_.find(index);
      if (address == nullptr || address->fep() != fep) continue;
      visit(shown(index), *address);
    }
  }

  // Implementations of the calls of the same name; they take locks themselves: all to change it.
  int insert(const void* addresses, std::size_t count, fi_addr_t* fi_addr, std::uint64_t flags,
             void* context);
  int insert_range(const char* node, std::size_t nodes, const char* service, std::size_t services,
                   fi_addr_t* fi_addr, std::uint64_t flags, void* context);
  int remove(const fi_addr_t* fi_addr, std::size_t count) noexcept;
  int remove_key(const fi_addr_t* keys, std::size_t count) noexcept;
  int insert_key(const void* auth_key, std::size_t size, fi_addr_t* fi_addr);
  int lookup_key(fi_addr_t fi_addr, void* auth_key, std::size_t* size);
  int set_user_id(fi_addr_t fi_addr, fi_addr_t id, std::uint64_t flags);
  int lookup(fi_addr_t fi_addr, void* address, std::size_t* length);

 private:
  struct Key {
    std::vector<std::uint8_t> bytes;
    JobId job;
    fi_addr_t user_id = FI_ADDR_NOTAVAIL;
    bool removed = false;
  };
  AvFid(Domain& domain, const fi_av_attr& attr, void* context);
  int check_insert(const fi_addr_t* fi_addr, std::uint64_t flags, const void* context) const;
  template <class Next>
  int insert_all(Next next, std::size_t count, fi_addr_t* fi_addr, std::uint64_t flags,
                 void* context);
  int insert_one(const std::optional<av::UetAddress>& address, fi_addr_t* fi_addr,
                 std::uint64_t flags);
  // These with all locks.
  Result<std::uint64_t> enter(const av::UetAddress& address, std::optional<JobId> job);
  void learn(const FepAddress& address);
  void unlearn(const FepAddress& address);
  void forget(const FepAddress& address);
  void learn_further(const av::UetAddress& address, const std::vector<FabricAddress>& further);
  void take_turn(const av::UetAddress& address, std::uint64_t index) noexcept;
  Result<std::uint64_t> add_entry(const av::UetAddress& address, std::optional<JobId> job);
  void forget_ports() noexcept;
  void keep_user_id(std::uint64_t index, fi_addr_t id);
  std::optional<JobId> job_of(std::uint64_t index) const noexcept {
    return index < jobs_.size() ? jobs_[index] : std::nullopt;
  }
  std::optional<std::uint64_t> find_source(const FepAddress& fep, InitiatorId initiator,
                                           JobId job) const noexcept;
  // The number of the entry in completions.
  fi_addr_t shown(std::uint64_t index) const noexcept {
    const bool has_id = index < user_ids_.size() && user_ids_[index] != FI_ADDR_NOTAVAIL;
    if (has_id) return user_ids_[index];
    return only_ids_ ? FI_ADDR_NOTAVAIL : index;
  }

  Domain& domain_;
  Engines& engines_;
  Engine& engine_;  // the first
  Hold hold_;
  References references_;
  const bool asynchronous_;
  const bool map_;
  const bool only_ids_;  // opened with FI_AV_USER_ID: completions show nothing else
  const int rx_ctx_bits_;
  EqBinding eq_;                   // where FI_AV_COMPLETE goes
  mutable SpinLock entries_lock_;  // of av_, jobs_ and turns_, taken after those of engines
  av::Av av_;
  std::vector<fi_addr_t> user_ids_;   // by index, as far as there are any; FI_ADDR_NOTAVAIL: none
  std::vector<Key> keys_;             // their places count from kFirstKey
  std::vector<std::uint32_t> turns_;  // by index, if there are several engines
  std::uint32_t next_turn_ = 0;
  std::vector<std::optional<JobId>> jobs_;  // by index, of entries that were inserted with a key
};

}  // namespace uet::prov
