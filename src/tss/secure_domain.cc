// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "tss/secure_domain.h"

#include <algorithm>
#include <memory>

#include "uet/base/check.h"

namespace uet::tss {
namespace {

bool address_before(const Client& a, const Client& b) { return a.address.bytes < b.address.bytes; }

}  // namespace

SecureDomain::SecureDomain(const DomainConfig& config, DomainServices& services)
    : config_(config), services_(services), clients_(config.clients), jobs_(config.jobs) {
  UET_ASSERT(reason_against(config) == nullptr);
  std::sort(clients_.begin(), clients_.end(), address_before);
  std::sort(jobs_.begin(), jobs_.end());
}

SecureDomain::~SecureDomain() {
  for (Slot& slot : slots_) empty(slot);
}

Result<void> SecureDomain::install(bool an, const Key& sdk, const SenderStart& start) {
  if (config_.client) return Error::NotSupported;
  return fill(slot(an), KeyMaterial{sdk, {}}, start);
}

Result<void> SecureDomain::install(bool an, const KeyMaterial& derived, const SenderStart& start) {
  if (!config_.client) return Error::NotSupported;
  return fill(slot(an), derived, start);
}

Result<void> SecureDomain::fill(Slot& slot, const KeyMaterial& material, const SenderStart& start) {
  Result<Kdf> kdf = Kdf::make(material.key, services_.memory);
  if (!kdf.ok()) return kdf.error();
  const Fingerprint fingerprint = kdf.value().fingerprint();
  if (slot.number != 0) {
    return slot.fingerprint == fingerprint ? Result<void>() : Result<void>(Error::Busy);
  }
  const bool fresh = start.history == SenderStart::History::Fresh;
  if (fresh && services_.used.contains(fingerprint)) return Error::KeyInUse;
  if (derives()) {
    slot.kdf.emplace(std::move(kdf).value());
  } else if (!slot.cipher.set_key(material.key, services_.memory)) {
    return Error::NoMemory;
  }
  slot.number = ++services_.last_slot;
  slot.mask = material.mask;
  slot.fingerprint = fingerprint;
  slot.started_fresh = fresh;
  slot.sender.emplace(start, config_.tsc.value_or(default_range(config_)),
                      services_.tscs != nullptr);
  slot.ends = kNever;
  return {};
}

void SecureDomain::empty(Slot& slot) {
  if (slot.number == 0) return;
  services_.cache.forget(slot.number);
  slot.number = 0;
  slot.kdf.reset();
  slot.cipher.forget();
  slot.mask.clear();
  slot.sender.reset();
  slot.ends = kNever;
}

Result<void> SecureDomain::activate(bool an, Time now) {
  Slot& next = slot(an);
  if (next.number == 0) return Error::NotFound;
  if (active_ == an) return {};
  if (!next.sender->ready()) return Error::Invalid;
  if (next.started_fresh && services_.used.contains(next.fingerprint)) return Error::KeyInUse;
  if (!has_tsc(next)) return Error::Io;
  services_.used.add(next.fingerprint);
  if (active_) slot(*active_).ends = now + config_.guard;
  next.started_fresh = false;  // an AN that comes back goes on where it was
  next.ends = kNever;
  active_ = an;
  return {};
}

Result<void> SecureDomain::set_epoch(bool an, std::uint16_t epoch) {
  if (config_.client) return Error::NotSupported;
  if (slot(an).number == 0) return Error::NotFound;
  return slot(an).sender->set_epoch(epoch);
}

Result<void> SecureDomain::remove_key(bool an) {
  if (slot(an).number == 0) return Error::NotFound;
  if (active_ == an) return Error::Busy;
  empty(slot(an));
  return {};
}

bool SecureDomain::allows(std::optional<JobId> job) const {
  if (jobs_.empty() || !job) return true;
  return std::binary_search(jobs_.begin(), jobs_.end(), job->value);
}

bool SecureDomain::has_key_until(std::uint64_t number) const {
  return std::any_of(slots_.begin(), slots_.end(), [number](const Slot& slot) {
    return slot.number != 0 && slot.number <= number;
  });
}

bool SecureDomain::holds(bool an, const KeyMaterial& material) const {
  Result<Kdf> kdf = Kdf::make(material.key);
  return !kdf.ok() || kdf.value().fingerprint() == slot(an).fingerprint;
}

void SecureDomain::abandon_key(bool an) {
  if (active_ == an) active_.reset();
  empty(slot(an));
}

void SecureDomain::overwrite_keys() {
  enabled_ = false;
  for (Slot& slot : slots_) {
    if (slot.kdf) slot.kdf->overwrite_key();
    slot.cipher.overwrite_key();
    slot.mask.clear();
  }
}

// False if the source of TSCs is asked and has none.
bool SecureDomain::has_tsc(Slot& slot) {
  SenderState& sender = *slot.sender;
  if (!sender.needs_block()) return true;
  const auto block = services_.tscs->next_block({.key = slot.fingerprint,
                                                 .epoch = sender.epoch(),
                                                 .ssi = config_.ssi,
                                                 .left = sender.left(),
                                                 .history_told = sender.history_told()});
  if (!block) return false;
  sender.add(*block);
  return true;
}

void SecureDomain::expire(Time now) {
  for (Slot& slot : slots_) {
    if (slot.ends <= now) empty(slot);
  }
}

Time SecureDomain::next_deadline() const { return std::min(slots_[0].ends, slots_[1].ends); }

std::optional<EpochAndTsc> SecureDomain::position(bool an) const {
  if (slot(an).number == 0) return {};
  return EpochAndTsc{slot(an).sender->epoch(), slot(an).sender->next_tsc()};
}

const Client* SecureDomain::client_at(const FabricAddress& address) const {
  const Client wanted{address, 0};
  const auto found = std::lower_bound(clients_.begin(), clients_.end(), wanted, address_before);
  return found != clients_.end() && found->address == address ? &*found : nullptr;
}

SecureDomain::PacketKey SecureDomain::key_for(Slot& slot, const wire::SecurityHeader& header,
                                              const Identity& identity) {
  if (!derives()) {
    return {&slot.cipher, config_.client ? &slot.mask : nullptr, nullptr};
  }
  const bool cluster = config_.mode == KeyMode::Cluster;
  const std::uint32_t rekey = cluster ? rekey_value(header.counter, config_.rekey) : 0;  // TSS-19
  const DerivationContext context(header.epoch, rekey, identity);
  DerivedKey* key = services_.cache.find(slot.number, context);
  if (key == nullptr) {
    KeyMaterial material;
    if (!slot.kdf->derive(config_.mode, context, material)) return {};
    key = services_.cache.add(slot.number, context, material);
    if (key == nullptr) return {};
  }
  return {&key->cipher, &key->mask, key};
}

SealResult SecureDomain::seal(const OuterFields& outer, std::span<const Slice> pieces,
                              std::span<std::byte> out) {
  if (!active_ || !enabled_) {
    ++counters_.out_errored;
    return {SealVerdict::NoKey, 0};
  }
  Slot& sending = slot(*active_);
  std::optional<std::uint32_t> ssi = config_.ssi;
  if (!clients_.empty()) {  // TSS-17
    const Client* const client = client_at(outer.destination);
    if (client == nullptr) {
      ++counters_.out_errored;
      return {SealVerdict::NoClient, 0};
    }
    ssi = client->ssi;
  }
  const std::optional<EpochAndTsc> place = has_tsc(sending) ? sending.sender->take() : std::nullopt;
  if (!place) {
    ++counters_.out_invoke_fail;
    return {SealVerdict::TscEnd, 0};
  }
  const wire::SecurityHeader header{.sp = ssi.has_value(),
                                    .an = *active_,
                                    .sdi = config_.sdi,
                                    .ssi = ssi.value_or(0),
                                    .epoch = place->epoch,
                                    .counter = place->tsc};
  // TSS-15, TSS-16: the sender, or towards a client that client.
  const Identity identity{config_.server() ? outer.destination : outer.source, ssi};
  const PacketKey key = key_for(sending, header, identity);
  const std::size_t front = header.encode(out.data());
  std::size_t bytes = front + kIcvBytes;
  for (const Slice& piece : pieces) bytes += piece.length;
  UET_ASSERT(bytes <= out.size());
  if (key.cipher == nullptr || !key.cipher->seal(make_iv(header, outer.source, key.mask),
                                                 Aad(outer, out.first(front)).bytes(), pieces,
                                                 out.subspan(front, bytes - front))) {
    ++counters_.out_errored;
    return {SealVerdict::Failed, 0};
  }
  if (key.derived != nullptr) services_.cache.prove(*key.derived);
  ++counters_.out_auth;
  return {SealVerdict::Sealed, bytes};
}

// TSS-43 at a server: an SSI counts only from the address of its client, since a PDC names its
// peer by address. In the other modes each member has the SDK.
bool SecureDomain::is_bound(std::optional<std::uint32_t> ssi, const FabricAddress& source) const {
  if (!config_.server() || !ssi) return true;
  const Client* const client = client_at(source);
  return client != nullptr && client->ssi == *ssi;
}

// Steps 5 to 8 of TSS section 6.
OpenVerdict SecureDomain::check(const wire::SecurityHeader& header, const Slot& slot) {
  if (!enabled_ || slot.number == 0) {
    ++counters_.in_invalid_sa;
    return OpenVerdict::NoKey;
  }
  const bool latched = config_.auth_fail_latch > 0 && failures_ > config_.auth_fail_latch;
  if (latched || (config_.uses_ssi() && !header.sp)) {
    ++counters_.in_invalid;
    return OpenVerdict::Invalid;
  }
  if (config_.check_epoch &&
      epoch_age(slot.sender->epoch(), header.epoch) > config_.max_epoch_age) {
    ++counters_.in_late;
    return OpenVerdict::Late;
  }
  return OpenVerdict::Opened;
}

OpenResult SecureDomain::open(const wire::SecurityHeader& header, const OuterFields& outer,
                              std::span<const std::byte> packet, std::span<std::byte> out,
                              Time now) {
  Slot& receiving = slot(header.an);
  const OpenVerdict verdict = check(header, receiving);
  if (verdict != OpenVerdict::Opened) return {.verdict = verdict};

  const std::optional<std::uint32_t> ssi =
      header.sp ? std::optional<std::uint32_t>(header.ssi) : std::nullopt;
  const PacketKey key = key_for(receiving, header, {outer.source, ssi});
  const std::size_t front = header_bytes(header.sp);
  const auto sealed = packet.subspan(front);
  const std::size_t bytes = sealed.size() - kIcvBytes;
  if (key.cipher == nullptr ||
      !key.cipher->open(make_iv(header, outer.source, key.mask),
                        Aad(outer, packet.first(front)).bytes(), sealed, out)) {
    ++counters_.in_auth_fail;
    note_failure(now);
    return {.verdict = OpenVerdict::AuthFail};
  }
  if (key.derived != nullptr) services_.cache.prove(*key.derived);
  if (!is_bound(ssi, outer.source)) {
    wipe(out.first(bytes));
    ++counters_.in_binding_failure;
    return {.verdict = OpenVerdict::BindingFailure};
  }
  ++counters_.in_auth;
  return {OpenVerdict::Opened, bytes, config_.sdi, ssi, header.an};
}

// TSS-44: a latch that is off by default, and an alarm once for each second of many failures.
void SecureDomain::note_failure(Time now) {
  ++failures_;
  if (config_.auth_fail_alarm == 0) return;
  if (in_second_ == 0 || now - second_began_ >= std::chrono::seconds(1)) {
    second_began_ = now;
    in_second_ = 0;
  }
  if (++in_second_ == config_.auth_fail_alarm) ++counters_.auth_fail_alarms;
}

}  // namespace uet::tss
