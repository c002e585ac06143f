// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The secure domains of one FEP by SDI (SDKDB): the door of this module. Packets, keys and time go
// in; sealed or opened packets and counters come out. Every failure is silent on the wire (TSS-39).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <memory_resource>
#include <span>
#include <vector>

#include "tss/counters.h"
#include "tss/secure_domain.h"
#include "uet/base/result.h"
#include "uet/base/time.h"

namespace uet::tss {

class SdTable {
 public:
  struct Limits {
    std::size_t domains = 64;
    std::size_t derived_keys = 1024;  // twice the live peers; about 1 KiB each once used
    // Outlives the table. nullptr: no other sender has these keys and this identity.
    TscSource* tscs = nullptr;
    // For keys and key schedules, which may then be kept out of core files (TSS-60). Outlives the
    // table, and is used only in calls of the table.
    std::pmr::memory_resource* secrets = std::pmr::new_delete_resource();
  };
  SdTable() : SdTable(Limits{}) {}
  explicit SdTable(const Limits& limits);

  // Adds a secure domain without keys. Invalid as reason_against(config), Busy if the SDI is there,
  // NoMemory if the table is full.
  Result<void> add(const DomainConfig& config);
  // Zeroes the keys of a domain and forgets the domain; NotFound.
  Result<void> remove(std::uint32_t sdi);
  // To install and activate keys, and to count; nullptr if there is none. Valid until remove().
  SecureDomain* find(std::uint32_t sdi);
  const SecureDomain* find(std::uint32_t sdi) const;
  // The SDIs that are there, in no order.
  std::vector<std::uint32_t> sdis() const;

  // For a forked child, which has no use for keys: overwrites them where they are, also if another
  // thread of the parent was in a call of this table. Only the destructor is called then (TSS-60).
  void overwrite_keys();

  // Number of the key that was installed last; keys count from 1, whatever their domain.
  std::uint64_t last_key() const { return services_->last_slot; }

  // Zeroes keys whose guard time has ended, and when that is next due.
  void expire(Time now);
  Time next_deadline() const;

  // As SecureDomain::seal in the domain `sdi`; NoKey if the domain is not there.
  SealResult seal(std::uint32_t sdi, const OuterFields& outer, std::span<const Slice> pieces,
                  std::span<std::byte> out);
  // The receive checks of TSS section 6 on what follows UDP or the entropy header. `trimmed`: a
  // switch has cut the packet (TSS-13). `out` has space for `packet`. A packet that is not Opened
  // is counted once; the caller drops it and answers nothing (TSS-39). Unprotected packets, too,
  // unless the caller accepts those.
  OpenResult open(const OuterFields& outer, std::span<const std::byte> packet, bool trimmed,
                  std::span<std::byte> out, Time now);

  const PortCounters& port_counters() const { return port_; }
  const KeyCacheCounters& cache_counters() const { return services_->cache.counters(); }

 private:
  Limits limits_;
  std::unique_ptr<DomainServices> services_;  // outlives domains_
  std::vector<std::unique_ptr<SecureDomain>> domains_;
  PortCounters port_;
};

}  // namespace uet::tss
