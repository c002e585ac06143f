// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "objects/tss_ops.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "errors.h"
#include "objects/domain.h"
#include "provider.h"
#include "security/transport_security.h"

namespace uet::prov {
namespace {

// Calls `use` with the secure domain `sdi`, or the domain's own one, and its owner, under the lock
// of `engine`. Returns the result of `use`, or why there is no such secure domain.
template <class Use>
int with_domain_of(Engine& engine, std::optional<std::uint32_t> sdi, Use use) {
  if (engine.dead()) return -FI_EOPNOTSUPP;
  const Guard guard(engine.lock());
  TransportSecurity* const security = engine.security();
  if (security == nullptr) return -FI_EOPNOTSUPP;
  tss::SecureDomain* const domain = security->table().find(sdi.value_or(security->sdi()));
  return domain != nullptr ? use(*domain, *security) : -FI_ENOENT;
}

// Likewise in each engine of the domain (FI_UET_CORES), up to the first that `use` fails in.
template <class Use>
int with_domain(fid_domain* fid, std::optional<std::uint32_t> sdi, Use use) noexcept {
  return guarded([&] {
    int result = 0;
    for (const auto& engine : Domain::from(fid).engines()) {
      if (result == 0) result = with_domain_of(*engine, sdi, use);
    }
    return result;
  });
}

int result_of(const Result<void>& result) { return result.ok() ? 0 : to_fi_errno(result.error()); }

bool is_an(int an) { return an == 0 || an == 1; }

bool read_start(const fi_uet_tss_key& key, tss::SenderStart& start) {
  start.epoch = key.epoch;
  start.next_tsc = key.next_tsc;
  switch (key.history) {
    case FI_UET_TSS_FRESH:
      start.history = tss::SenderStart::History::Fresh;
      return true;
    case FI_UET_TSS_KNOWN:
      start.history = tss::SenderStart::History::Known;
      return true;
    case FI_UET_TSS_UNKNOWN:
      start.history = tss::SenderStart::History::Unknown;
      return true;
    default:
      return false;
  }
}

int tss_install(fid_domain* fid, const fi_uet_tss_key* key) noexcept {
  tss::SenderStart start;
  if (key == nullptr || key->key == nullptr || !is_an(key->an) || !read_start(*key, start)) {
    return -FI_EINVAL;
  }
  constexpr std::size_t kClientBytes = tss::kKeyBytes + tss::kMaskBytes;
  if (key->key_size != tss::kKeyBytes && key->key_size != kClientBytes) return -FI_EINVAL;
  return with_domain(fid, key->sdi, [&](tss::SecureDomain& domain, TransportSecurity&) {
    const auto bytes = std::as_bytes(std::span(key->key, key->key_size));
    tss::KeyMaterial material;
    material.key = tss::Key(bytes.first<tss::kKeyBytes>());
    if (key->key_size == tss::kKeyBytes) {
      return result_of(domain.install(key->an == 1, material.key, start));
    }
    material.mask = tss::IvMask(bytes.last<tss::kMaskBytes>());
    return result_of(domain.install(key->an == 1, material, start));
  });
}

int tss_activate(fid_domain* fid, std::uint32_t sdi, int an) noexcept {
  if (!is_an(an)) return -FI_EINVAL;
  return with_domain(fid, sdi, [&](tss::SecureDomain& domain, TransportSecurity& security) {
    const Result<void> result = domain.activate(an == 1, clock_now());
    if (result.ok() || result.error() != Error::Io) return result_of(result);
    FI_WARN(&provider, FI_LOG_DOMAIN, "uet_tss_ops: %s\n", security.tsc_problem().c_str());
    return -FI_ENOKEY;
  });
}

int tss_set_epoch(fid_domain* fid, std::uint32_t sdi, int an, std::uint16_t epoch) noexcept {
  if (!is_an(an)) return -FI_EINVAL;
  return with_domain(fid, sdi, [&](tss::SecureDomain& domain, TransportSecurity&) {
    return result_of(domain.set_epoch(an == 1, epoch));
  });
}

int tss_remove(fid_domain* fid, std::uint32_t sdi, int an) noexcept {
  if (!is_an(an)) return -FI_EINVAL;
  return with_domain(fid, sdi, [&](tss::SecureDomain& domain, TransportSecurity&) {
    return result_of(domain.remove_key(an == 1));
  });
}

int tss_count(fid_domain* fid, std::uint32_t sdi, fi_uet_tss_counters* out,
              std::size_t size) noexcept {
  if (out == nullptr) return -FI_EINVAL;
  fi_uet_tss_counters all = {};
  const int result =
      with_domain(fid, sdi, [&](tss::SecureDomain& domain, TransportSecurity& security) {
        const tss::DomainCounters& of = domain.counters();
        const tss::PortCounters& port = security.table().port_counters();
        all.out_auth += of.out_auth;
        all.out_errored += of.out_errored + port.out_errored;
        all.out_invoke_fail += of.out_invoke_fail;
        all.in_auth += of.in_auth;
        all.in_auth_fail += of.in_auth_fail;
        all.in_late += of.in_late;
        all.in_invalid += of.in_invalid;
        all.in_invalid_sa += of.in_invalid_sa;
        all.in_binding_failure += of.in_binding_failure;
        all.in_errored += port.in_errored;
        all.in_rx_encryption_bypass += port.in_rx_encryption_bypass;
        all.in_trimmed += port.in_trimmed;
        return 0;
      });
  if (result != 0) return result;
  std::memset(out, 0, size);
  std::memcpy(out, &all, std::min(size, sizeof all));
  return 0;
}

int tss_describe(fid_domain* fid, fi_uet_tss_state* out, std::size_t size) noexcept {
  if (out == nullptr) return -FI_EINVAL;
  const auto describe = [&](tss::SecureDomain& domain, TransportSecurity&) {
    fi_uet_tss_state state = {};
    state.sdi = domain.config().sdi;
    for (const bool an : {false, true}) {
      const tss::Fingerprint* const fingerprint = domain.fingerprint(an);
      if (fingerprint == nullptr) continue;
      fi_uet_tss_slot& slot = state.slot[an ? 1 : 0];
      slot.has_key = 1;
      slot.active = domain.active() == an ? 1 : 0;
      slot.epoch = domain.position(an)->epoch;
      std::memcpy(slot.fingerprint, fingerprint->data(), sizeof slot.fingerprint);
    }
    std::memset(out, 0, size);
    std::memcpy(out, &state, std::min(size, sizeof state));
    return 0;
  };
  return guarded([&] { return with_domain_of(Domain::from(fid).engine(), {}, describe); });
}

fi_uet_tss_ops ops = {
    .size = sizeof(fi_uet_tss_ops),
    .install = tss_install,
    .activate = tss_activate,
    .set_epoch = tss_set_epoch,
    .remove = tss_remove,
    .count = tss_count,
    .describe = tss_describe,
};

}  // namespace

fi_uet_tss_ops& tss_ops() { return ops; }

}  // namespace uet::prov
