// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Tables and maps alike give indices. Asynchronous insertion (FI_EVENT) is done when the call
// returns and only told through the EQ.
#include "objects/av_fid.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "compat.h"
#include "errors.h"
#include "objects/domain.h"
#include "ops.h"
#include "process/engine_link.h"
#include "settings/hints.h"
#include "settings/names.h"

namespace uet::prov {
namespace {

constexpr int kMaxRxCtxBits = 12;  // as many as a resource index has
constexpr std::uint64_t kInsertFlags = FI_MORE | FI_SYNC_ERR;
constexpr std::size_t kMostReserved = 1 << 16;  // fi_av_attr.count is only a hint
constexpr std::size_t kMostInRange = 1 << 20;   // addresses of one fi_av_insertsym

int refuse_key(int error, const char* why) {
  FI_WARN(&provider, FI_LOG_AV, "%s\n", why);
  return error;
}

int close_av(fid* fid) noexcept { return AvFid::from(fid).close(); }

int av_bind(fid* fid, struct fid* other, std::uint64_t flags) noexcept {
  if (flags == 0) return AvFid::from(fid).bind(other);
  FI_WARN(&provider, FI_LOG_AV, "fi_av_bind: flags must be 0\n");
  return -FI_EINVAL;
}

int av_insert(fid_av* av, const void* addresses, std::size_t count, fi_addr_t* fi_addr,
              std::uint64_t flags, void* context) noexcept {
  return guarded([&] { return AvFid::from(av).insert(addresses, count, fi_addr, flags, context); });
}

int av_insertsvc(fid_av* av, const char* node, const char* service, fi_addr_t* fi_addr,
                 std::uint64_t flags, void* context) noexcept {
  return guarded(
      [&] { return AvFid::from(av).insert_range(node, 1, service, 1, fi_addr, flags, context); });
}

int av_insertsym(fid_av* av, const char* node, std::size_t nodes, const char* service,
                 std::size_t services, fi_addr_t* fi_addr, std::uint64_t flags,
                 void* context) noexcept {
  return guarded([&] {
    return AvFid::from(av).insert_range(node, nodes, service, services, fi_addr, flags, context);
  });
}

int av_remove(fid_av* av, fi_addr_t* fi_addr, std::size_t count, std::uint64_t flags) noexcept {
  if (flags == kAuthKeyFlag) return AvFid::from(av).remove_key(fi_addr, count);
  if (flags != 0) {
    FI_WARN(&provider, FI_LOG_AV, "fi_av_remove: flags must be 0 or FI_AUTH_KEY\n");
    return -FI_EINVAL;
  }
  return AvFid::from(av).remove(fi_addr, count);
}

int av_lookup(fid_av* av, fi_addr_t fi_addr, void* address, std::size_t* length) noexcept {
  return guarded([&] { return AvFid::from(av).lookup(fi_addr, address, length); });
}

const char* av_straddr(fid_av* av, const void* address, char* buffer,
                       std::size_t* length) noexcept {
  try {
    const std::string text = AvFid::from(av).to_text(address);
    if (buffer != nullptr && *length > 0) {
      const std::size_t fitting = std::min(text.size(), *length - 1);
      std::memcpy(buffer, text.data(), fitting);
      buffer[fitting] = '\0';
    }
    *length = text.size() + 1;
    return buffer;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

int av_insert_auth_key(fid_av* av, const void* auth_key, std::size_t size, fi_addr_t* fi_addr,
                       std::uint64_t flags) noexcept {
  if (flags != 0) return -FI_EBADFLAGS;
  return guarded([&] { return AvFid::from(av).insert_key(auth_key, size, fi_addr); });
}

int av_lookup_auth_key(fid_av* av, fi_addr_t fi_addr, void* auth_key, std::size_t* size) noexcept {
  return guarded([&] { return AvFid::from(av).lookup_key(fi_addr, auth_key, size); });
}

int av_set_user_id(fid_av* av, fi_addr_t fi_addr, fi_addr_t id, std::uint64_t flags) noexcept {
  return guarded([&] { return AvFid::from(av).set_user_id(fi_addr, id, flags); });
}

fi_ops av_fid_ops = {
    .size = sizeof(fi_ops),
    .close = close_av,
    .bind = av_bind,
    .control = no_control,
    .ops_open = no_ops_open,
    .tostr = no_tostr,
    .ops_set = no_ops_set,
};

OpsAv av_ops = [] {
  OpsAv ops{};
  ops.size = sizeof ops;
  ops.insert = av_insert;
  ops.insertsvc = av_insertsvc;
  ops.insertsym = av_insertsym;
  ops.remove = av_remove;
  ops.lookup = av_lookup;
  ops.straddr = av_straddr;
  ops.av_set = not_supported<&fi_ops_av::av_set>;
  ops.insert_auth_key = av_insert_auth_key;
  ops.lookup_auth_key = av_lookup_auth_key;
  ops.set_user_id = av_set_user_id;
  return ops;
}();

}  // namespace

std::string AvFid::to_text(const void* address) const { return domain_.format().to_text(address); }

AvFid::AvFid(Domain& domain, const fi_av_attr& attr, void* context)
    : fid_av{},
      domain_(domain),
      engines_(domain.engines()),
      engine_(domain.engine()),
      hold_(domain.references()),
      asynchronous_((attr.flags & FI_EVENT) != 0),
      map_(attr.type == FI_AV_MAP),
      only_ids_((attr.flags & FI_AV_USER_ID) != 0),
      rx_ctx_bits_(attr.rx_ctx_bits),
      entries_lock_(domain.engines().several() ||
                    (domain.engine().submissions().active() &&
                     domain.engine().submissions().threading() != FI_THREAD_DOMAIN)) {
  fid.fclass = FI_CLASS_AV;
  fid.context = context;
  fid.ops = &av_fid_ops;
  ops = &av_ops;
  av_.reserve(std::min(attr.count, kMostReserved));
}

int AvFid::open(Domain& domain, const fi_av_attr& attr, void* context, AvFid*& out) {
  if (domain.engine().dead()) return -FI_EOPNOTSUPP;
  const bool ids = domain.has_user_ids() || domain.has_av_keys();
  const std::uint64_t known = FI_EVENT | FI_SYMMETRIC | (ids ? FI_AV_USER_ID : 0);
  if (attr.name != nullptr) {
    FI_WARN(&provider, FI_LOG_AV,
            "fi_av_open: named AVs (FI_SHARED_AV) are not supported; leave name NULL\n");
    return -FI_ENOSYS;
  }
  if (is_beyond(attr.type, FI_AV_TABLE) || (attr.flags & ~known) != 0) {
    FI_WARN(&provider, FI_LOG_AV, "fi_av_open: type %u or flags 0x%llx not valid\n",
            raw_number(attr.type), static_cast<unsigned long long>(attr.flags));
    return -FI_EINVAL;
  }
  if (attr.rx_ctx_bits < 0 || attr.rx_ctx_bits > kMaxRxCtxBits) {
    FI_WARN(&provider, FI_LOG_AV, "fi_av_open: rx_ctx_bits %d is not 0 to %d\n", attr.rx_ctx_bits,
            kMaxRxCtxBits);
    return -FI_EINVAL;
  }
  out = new AvFid(domain, attr, context);
  return 0;
}

int AvFid::close() noexcept {
  if (references_.any()) return -FI_EBUSY;
  forget_ports();
  delete this;
  return 0;
}

void AvFid::forget_ports() noexcept {
  if (engine_.dead()) return;
  const AllLocks guard(engines_);
  av_.for_each([&](const av::UetAddress& entry) { unlearn(entry.fep()); });
}

int AvFid::bind(struct fid* other) noexcept {
  if (other->fclass != FI_CLASS_EQ) {
    FI_WARN(&provider, FI_LOG_AV, "fi_av_bind: only an EQ can be bound\n");
    return -FI_EINVAL;
  }
  return eq_.open(Eq::from(other), engine_);
}

bool AvFid::read_peer(fi_addr_t address, ses::Peer& peer) const noexcept {
  // fi_rx_addr(3): the upper rx_ctx_bits name the receive context.
  const std::uint64_t context = rx_ctx_bits_ == 0 ? 0 : address >> (64 - rx_ctx_bits_);
  const std::uint64_t place = address << rx_ctx_bits_ >> rx_ctx_bits_;
  const SpinGuard entries(entries_lock_);
  const av::UetAddress* entry = av_.find(place);
  if (entry == nullptr) return false;
  const std::uint64_t index = entry->start_resource_index.value + context;
  if (index > kMaxResourceIndex) return false;
  new (&peer) ses::Peer(peer_at(*entry, {static_cast<std::uint16_t>(index)}));
  if (place < jobs_.size() && jobs_[place]) peer.job = *jobs_[place];
  return true;
}

std::optional<AvFid::Turn> AvFid::turn_of(fi_addr_t address) const noexcept {
  const std::uint64_t place = address << rx_ctx_bits_ >> rx_ctx_bits_;
  const SpinGuard entries(entries_lock_);
  const av::UetAddress* const entry = av_.find(place);
  if (entry == nullptr) return {};
  return Turn{entry->fep(), turns_[place]};
}

int AvFid::check_insert(const fi_addr_t* fi_addr, std::uint64_t flags, const void* context) const {
  if (engine_.dead()) return -FI_EOPNOTSUPP;
  const std::uint64_t allowed = (asynchronous_ ? std::uint64_t{FI_MORE} : kInsertFlags) |
                                (domain_.has_av_keys()                  ? kAuthKeyFlag
                                 : domain_.has_user_ids() && !only_ids_ ? FI_AV_USER_ID
                                                                        : 0);
  if ((flags & ~allowed) != 0) {
    FI_WARN(&provider, FI_LOG_AV, "fi_av_insert: flags 0x%llx are not among FI_MORE%s\n",
            static_cast<unsigned long long>(flags), asynchronous_ ? "" : " and FI_SYNC_ERR");
    return -FI_EBADFLAGS;
  }
  if ((flags & FI_SYNC_ERR) != 0 && context == nullptr) {
    FI_WARN(&provider, FI_LOG_AV, "fi_av_insert: FI_SYNC_ERR needs an array of int as context\n");
    return -FI_EINVAL;
  }
  if ((flags & FI_AV_USER_ID) != 0 && fi_addr == nullptr) {
    FI_WARN(&provider, FI_LOG_AV, "fi_av_insert: FI_AV_USER_ID needs the ids in fi_addr\n");
    return -FI_EINVAL;
  }
  if ((flags & kAuthKeyFlag) != 0 && fi_addr == nullptr) {
    FI_WARN(&provider, FI_LOG_AV, "fi_av_insert: FI_AUTH_KEY needs the keys in fi_addr\n");
    return -FI_EINVAL;
  }
  if (map_ && fi_addr == nullptr) {
    FI_WARN(&provider, FI_LOG_AV, "fi_av_insert: FI_AV_MAP needs the fi_addr array\n");
    return -FI_EINVAL;
  }
  if (asynchronous_ && eq_.eq() == nullptr) {
    FI_WARN(&provider, FI_LOG_AV, "fi_av_insert: an AV with FI_EVENT needs an EQ bound first\n");
    return -FI_ENOEQ;
  }
  return 0;
}

std::optional<std::uint64_t> AvFid::find_source(const FepAddress& fep, InitiatorId initiator,
                                                JobId job) const noexcept {
  auto index = av_.find_source(fep, initiator);
  if (jobs_.empty()) return index;
  while (index && job_of(*index).value_or(domain_.job()) != job) {
    index = av_.find_source(fep, initiator, *index + 1);
  }
  return index;
}

// 0, or a positive fi_errno as FI_SYNC_ERR wants it.
int AvFid::insert_one(const std::optional<av::UetAddress>& address, fi_addr_t* fi_addr,
                      std::uint64_t flags) {
  int error = FI_EINVAL;
  fi_addr_t place = FI_ADDR_NOTAVAIL;
  std::optional<JobId> job;
  const bool by_key = (flags & kAuthKeyFlag) != 0;
  if (address) {
    const AllLocks guard(engines_);
    if (by_key) job = key_job(*fi_addr);
    if (!by_key || job) {
      const auto index = enter(*address, job);
      error = index ? 0 : -to_fi_errno(index.error());
      if (index) place = index.value();
    }
    if (error == 0 && (flags & FI_AV_USER_ID) != 0) keep_user_id(place, *fi_addr);
  }
  if (error != 0) {
    FI_WARN(&provider, FI_LOG_AV,
            "fi_av_insert: not an address of the domain's addr_format and IP version, one that "
            "cannot be resolved, or a key that the AV does not have\n");
  }
  if (fi_addr != nullptr) *fi_addr = place;
  return error;
}

Result<std::uint64_t> AvFid::enter(const av::UetAddress& address, std::optional<JobId> job) {
  if (job) {
    const SpinGuard entries(entries_lock_);
    jobs_.resize(std::max<std::size_t>(jobs_.size(), av_.end() + 1));
  }
  // Again an address that is there: it may be another process's, whose predecessor is gone.
  const JobId of_job = job.value_or(domain_.job());
  if (find_source(address.fep(), address.initiator_id, of_job)) {
    forget(address.fep());
  }
  const auto index = add_entry(address, job);
  if (!index) return index;
  learn(address.fep());
  return index;
}

void AvFid::learn(const FepAddress& address) UET_NO_THREAD_ANALYSIS {
  for (const auto& engine : engines_) {
    engine->fep().learn(address);
    if (EngineLink* const link = engine->link()) link->requests().learn(address);
  }
}

void AvFid::unlearn(const FepAddress& address) UET_NO_THREAD_ANALYSIS {
  for (const auto& engine : engines_) {
    engine->fep().unlearn(address);
    if (EngineLink* const link = engine->link()) link->requests().unlearn(address);
  }
}

// Another process may have the address from now on.
void AvFid::forget(const FepAddress& address) UET_NO_THREAD_ANALYSIS {
  for (const auto& engine : engines_) {
    engine->fep().forget(address, clock_now());
    if (EngineLink* const link = engine->link()) link->requests().forget(address);
  }
}

void AvFid::learn_further(const av::UetAddress& address,
                          const std::vector<FabricAddress>& further) {
  if (further.empty()) return;
  const AllLocks guard(engines_);
  for (const auto& engine : engines_) engine->nic().learn_further(address.fep(), further);
}

Result<std::uint64_t> AvFid::add_entry(const av::UetAddress& address, std::optional<JobId> job) {
  const SpinGuard entries(entries_lock_);
  if (engines_.several()) turns_.resize(av_.end() + 1);
  const auto index = av_.insert(address);
  if (index && index.value() < jobs_.size()) jobs_[index.value()] = job;
  if (index && engines_.several()) take_turn(address, index.value());
  return index;
}

// Entries of one address have one turn, so that operations to it stay in order.
void AvFid::take_turn(const av::UetAddress& address, std::uint64_t index) noexcept {
  const FepAddress fep = address.fep();
  auto same = av_.find_source(fep, address.initiator_id);
  if (same == index) same = av_.find_source(fep, address.initiator_id, index + 1);
  turns_[index] = same ? turns_[*same] : next_turn_++;
}

void AvFid::keep_user_id(std::uint64_t index, fi_addr_t id) {
  if (user_ids_.size() <= index) user_ids_.resize(index + 1, FI_ADDR_NOTAVAIL);
  user_ids_[index] = id;
}

// `next` gives the addresses one by one, empty where there is none.
template <class Next>
int AvFid::insert_all(Next next, std::size_t count, fi_addr_t* fi_addr, std::uint64_t flags,
                      void* context) {
  int good = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const int error = insert_one(next(), fi_addr != nullptr ? fi_addr + i : nullptr, flags);
    if (error == 0) ++good;
    if ((flags & FI_SYNC_ERR) != 0) static_cast<int*>(context)[i] = error;
    if (error != 0 && asynchronous_) {
      eq_.eq()->write_error({.fid = &fid,
                             .context = context,
                             .data = i,
                             .err = error,
                             .prov_errno = 0,
                             .err_data = nullptr,
                             .err_data_size = 0});
    }
  }
  if (!asynchronous_) return good;
  const fi_eq_entry done{.fid = &fid, .context = context, .data = static_cast<std::uint64_t>(good)};
  eq_.eq()->write(FI_AV_COMPLETE, &done, sizeof done);
  return 0;
}

int AvFid::insert(const void* addresses, std::size_t count, fi_addr_t* fi_addr, std::uint64_t flags,
                  void* context) {
  if (const int result = check_insert(fi_addr, flags, context); result != 0) return result;
  if (addresses == nullptr && count > 0) {
    FI_WARN(&provider, FI_LOG_AV, "fi_av_insert: no addresses given\n");
    return -FI_EINVAL;
  }
  const auto* cursor = static_cast<const std::byte*>(addresses);
  const auto next = [&] {
    const std::byte* const begin = cursor;
    const auto address = domain_.format().next(cursor);
    if (address) learn_further(*address, domain_.format().further(begin));
    return address;
  };
  return insert_all(next, count, fi_addr, flags, context);
}

int AvFid::insert_range(const char* node, std::size_t nodes, const char* service,
                        std::size_t services, fi_addr_t* fi_addr, std::uint64_t flags,
                        void* context) {
  if (const int result = check_insert(fi_addr, flags, context); result != 0) return result;
  if (node == nullptr || (nodes > 0 && services > kMostInRange / nodes)) {
    FI_WARN(&provider, FI_LOG_AV, "fi_av_insertsvc: no node given, or more than %zu addresses\n",
            kMostInRange);
    return -FI_EINVAL;
  }
  const bool is_ipv6 = engine_.local_address().ip.is_ipv6;
  const auto addresses = resolve_range(node, nodes, service, services, is_ipv6);
  auto address = addresses.begin();
  return insert_all([&] { return *address++; }, addresses.size(), fi_addr, flags, context);
}

int AvFid::remove(const fi_addr_t* fi_addr, std::size_t count) noexcept {
  if (engine_.dead()) return -FI_EOPNOTSUPP;
  const AllLocks guard(engines_);
  for (std::size_t i = 0; i < count; ++i) {
    const av::UetAddress* entry = av_.find(fi_addr[i]);
    if (entry != nullptr) {
      forget(entry->fep());
      unlearn(entry->fep());
    }
    if (fi_addr[i] < user_ids_.size()) user_ids_[fi_addr[i]] = FI_ADDR_NOTAVAIL;
    const SpinGuard entries(entries_lock_);
    if (fi_addr[i] < jobs_.size()) jobs_[fi_addr[i]].reset();
    if (!av_.remove(fi_addr[i])) {
      FI_WARN(&provider, FI_LOG_AV, "fi_av_remove: %llu is not an fi_addr_t of this AV\n",
              static_cast<unsigned long long>(fi_addr[i]));
      return -FI_EINVAL;
    }
  }
  return 0;
}

int AvFid::lookup(fi_addr_t fi_addr, void* address, std::size_t* length) {
  if (engine_.dead()) return -FI_EOPNOTSUPP;
  const Guard guard(engine_.lock());
  const av::UetAddress* entry = av_.find(fi_addr);
  if (entry == nullptr) {
    FI_WARN(&provider, FI_LOG_AV, "fi_av_lookup: %llu is not an fi_addr_t of this AV\n",
            static_cast<unsigned long long>(fi_addr));
    return -FI_EINVAL;
  }
  const std::vector<std::byte> bytes = domain_.format().encode(*entry);
  if (address != nullptr) std::memcpy(address, bytes.data(), std::min(*length, bytes.size()));
  *length = bytes.size();
  return 0;
}

// ---- keys (SES-146) ----------------------------------------------------------------------------

std::vector<JobId> AvFid::jobs() const {
  const Guard guard(engine_.lock());
  std::vector<JobId> jobs;
  for (const Key& key : keys_) {
    if (!key.removed) jobs.push_back(key.job);
  }
  return jobs;
}

int AvFid::insert_key(const void* auth_key, std::size_t size, fi_addr_t* fi_addr) {
  if (engine_.dead()) return -FI_EOPNOTSUPP;
  if (!domain_.has_av_keys()) {
    return refuse_key(
        -FI_EOPNOTSUPP,
        "fi_av_insert_auth_key: AV: the domain was opened without FI_AV_AUTH_KEY; ask for it");
  }
  const auto* bytes = static_cast<const std::uint8_t*>(auth_key);
  JobId job{};
  const char* const problem = domain_.read_job(bytes, size, job);
  if (problem != nullptr) {
    return refuse_key(-FI_EINVAL, (std::string("fi_av_insert_auth_key: ") + problem).c_str());
  }
  if (fi_addr == nullptr)
    return refuse_key(-FI_EINVAL,
                      "fi_av_insert_auth_key: AV: fi_addr is NULL; pass memory for the result");
  const AllLocks guard(engines_);
  if (keys_.size() >= kMaxAuthKeys)
    return refuse_key(-FI_ENOSPC, "fi_av_insert_auth_key: AV: it has 256 keys; open another AV");
  Key key;
  key.bytes.assign(bytes, bytes + size);
  key.job = job;
  keys_.push_back(std::move(key));
  *fi_addr = kFirstKey + keys_.size() - 1;
  return 0;
}

int AvFid::remove_key(const fi_addr_t* keys, std::size_t count) noexcept {
  if (engine_.dead()) return -FI_EOPNOTSUPP;
  if (references_.any())
    return refuse_key(
        -FI_EBUSY,
        "fi_av_remove: AV: endpoints are bound to it; close them before keys are removed");
  const AllLocks guard(engines_);
  for (std::size_t i = 0; i < count; ++i) {
    if (!key_job(keys[i]))
      return refuse_key(
          -FI_EINVAL,
          "fi_av_remove: AV: not one of its keys; pass a result of fi_av_insert_auth_key");
    keys_[keys[i] - kFirstKey].removed = true;
  }
  return 0;
}

// Of a key or of an address that was inserted with one.
int AvFid::lookup_key(fi_addr_t fi_addr, void* auth_key, std::size_t* size) {
  if (engine_.dead()) return -FI_EOPNOTSUPP;
  const Guard guard(engine_.lock());
  const auto job = key_job(fi_addr) ? key_job(fi_addr) : job_of(fi_addr);
  const auto found = std::find_if(keys_.begin(), keys_.end(),
                                  [&](const Key& key) { return job && key.job == *job; });
  if (found == keys_.end())
    return refuse_key(
        -FI_EINVAL,
        "fi_av_lookup_auth_key: AV: neither a key nor an address with one; pass one of these");
  if (auth_key != nullptr) {
    std::memcpy(auth_key, found->bytes.data(), std::min(*size, found->bytes.size()));
  }
  *size = found->bytes.size();
  return 0;
}

int AvFid::set_user_id(fi_addr_t fi_addr, fi_addr_t id, std::uint64_t flags) {
  if (engine_.dead()) return -FI_EOPNOTSUPP;
  if (!only_ids_)
    return refuse_key(-FI_EOPNOTSUPP,
                      "fi_av_set_user_id: AV: opened without FI_AV_USER_ID; ask for it");
  if ((flags & ~kAuthKeyFlag) != 0) return -FI_EBADFLAGS;
  const AllLocks guard(engines_);
  if (flags == kAuthKeyFlag) {
    if (!key_job(fi_addr))
      return refuse_key(
          -FI_EINVAL,
          "fi_av_set_user_id: AV: not one of its keys; pass a result of fi_av_insert_auth_key");
    keys_[fi_addr - kFirstKey].user_id = id;
    return 0;
  }
  if (av_.find(fi_addr) == nullptr)
    return refuse_key(
        -FI_EINVAL,
        "fi_av_set_user_id: AV: not one of its addresses; pass a result of fi_av_insert");
  keep_user_id(fi_addr, id);
  return 0;
}

int av_open(fid_domain* domain, fi_av_attr* attr, fid_av** av, void* context) noexcept {
  return guarded([&] {
    AvFid* opened = nullptr;
    const fi_av_attr preset{};
    const int result =
        AvFid::open(Domain::from(domain), attr != nullptr ? *attr : preset, context, opened);
    if (result != 0) return result;
    if (attr != nullptr && raw_number(attr->type) == FI_AV_UNSPEC) attr->type = FI_AV_TABLE;
    *av = opened;
    return 0;
  });
}

}  // namespace uet::prov
