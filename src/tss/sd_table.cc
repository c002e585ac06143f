// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "tss/sd_table.h"

#include <algorithm>

#include "uet/wire/pds.h"

namespace uet::tss {

SdTable::SdTable(const Limits& limits)
    : limits_(limits),
      services_(
          std::make_unique<DomainServices>(limits.derived_keys, limits.tscs, *limits.secrets)) {
  domains_.reserve(limits.domains);
}

Result<void> SdTable::add(const DomainConfig& config) {
  if (reason_against(config) != nullptr) return Error::Invalid;
  if (find(config.sdi) != nullptr) return Error::Busy;
  if (domains_.size() == limits_.domains) return Error::NoMemory;
  domains_.push_back(std::make_unique<SecureDomain>(config, *services_));
  return {};
}

Result<void> SdTable::remove(std::uint32_t sdi) {
  const std::size_t removed =
      std::erase_if(domains_, [sdi](const auto& domain) { return domain->config().sdi == sdi; });
  return removed > 0 ? Result<void>() : Result<void>(Error::NotFound);
}

SecureDomain* SdTable::find(std::uint32_t sdi) {
  for (const auto& domain : domains_) {
    if (domain->config().sdi == sdi) return domain.get();
  }
  return nullptr;
}

const SecureDomain* SdTable::find(std::uint32_t sdi) const {
  return const_cast<SdTable*>(this)->find(sdi);
}

std::vector<std::uint32_t> SdTable::sdis() const {
  std::vector<std::uint32_t> all;
  for (const auto& domain : domains_) all.push_back(domain->config().sdi);
  return all;
}

void SdTable::overwrite_keys() {
  services_->cache.overwrite_keys();
  for (const auto& domain : domains_) {
    if (domain != nullptr) domain->overwrite_keys();
  }
}

void SdTable::expire(Time now) {
  for (const auto& domain : domains_) domain->expire(now);
}

Time SdTable::next_deadline() const {
  Time first = kNever;
  for (const auto& domain : domains_) first = std::min(first, domain->next_deadline());
  return first;
}

SealResult SdTable::seal(std::uint32_t sdi, const OuterFields& outer, std::span<const Slice> pieces,
                         std::span<std::byte> out) {
  SecureDomain* const domain = find(sdi);
  if (domain != nullptr) return domain->seal(outer, pieces, out);
  ++port_.out_errored;
  return {SealVerdict::NoKey, 0};
}

OpenResult SdTable::open(const OuterFields& outer, std::span<const std::byte> packet, bool trimmed,
                         std::span<std::byte> out, Time now) {
  const auto is_security = [](std::byte first) {
    return std::to_integer<unsigned>(first) >> 3 == wire::to_underlying(wire::PdsType::Tss);
  };
  if (!packet.empty() && !is_security(packet.front())) {
    ++port_.in_rx_encryption_bypass;
    return {.verdict = OpenVerdict::Unprotected};
  }
  if (trimmed) {
    ++port_.in_trimmed;
    return {.verdict = OpenVerdict::Trimmed};
  }
  wire::SecurityHeader header;
  SecureDomain* domain = nullptr;
  if (wire::SecurityHeader::decode(packet, header) &&
      packet.size() >= header_bytes(header.sp) + kIcvBytes) {
    domain = find(header.sdi);
  }
  if (domain != nullptr) return domain->open(header, outer, packet, out, now);
  ++port_.in_errored;
  return {.verdict = OpenVerdict::Malformed};
}

}  // namespace uet::tss
