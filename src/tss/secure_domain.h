// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// One secure domain at one member: two key slots, the sender's epoch and TSC, the receive checks of
// TSS section 6 from step 5 on, rotation (TSS section 8). Time and keys come in as arguments.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <optional>
#include <span>

#include "tss/counters.h"
#include "tss/domain_config.h"
#include "tss/key_cache.h"
#include "tss/tsc_source.h"
#include "tss/used_keys.h"
#include "uet/base/packet.h"
#include "uet/base/result.h"
#include "uet/base/time.h"
#include "uet/wire/pds.h"

namespace uet::tss {

enum class OpenVerdict : std::uint8_t {
  Opened,
  Unprotected,     // step 2: no security header
  Malformed,       // steps 3 and 4: too short, or an unknown SDI
  Trimmed,         // TSS-13
  NoKey,           // step 5
  Invalid,         // steps 6 and 7
  Late,            // step 8
  AuthFail,        // step 9
  BindingFailure,  // step 11
};

enum class SealVerdict : std::uint8_t {
  Sealed,
  NoKey,     // no key is active, or the history of the active key is unknown (TSS-37)
  TscEnd,    // TSS-36
  NoClient,  // a server knows no SSI for this destination
  Failed,    // OpenSSL has no memory
};

struct OpenResult {
  OpenVerdict verdict = OpenVerdict::Malformed;
  std::size_t bytes = 0;  // plain bytes in the buffer; 0 unless Opened
  std::uint32_t sdi = 0;  // Opened only, as are the SSI and AN
  std::optional<std::uint32_t> ssi{};
  bool an = false;
};

struct SealResult {
  SealVerdict verdict = SealVerdict::Failed;
  std::size_t bytes = 0;  // of security header, encrypted text and ICV; 0 unless Sealed
};

// Shared by the secure domains of one table.
struct DomainServices {
  explicit DomainServices(std::size_t derived_keys, TscSource* source = nullptr,
                          std::pmr::memory_resource& secrets = *std::pmr::new_delete_resource())
      : memory(secrets), cache(derived_keys, secrets), tscs(source) {}
  std::pmr::memory_resource& memory;  // of keys and key schedules
  KeyCache cache;
  TscSource* tscs;  // nullptr: each sender has the whole range of its configuration
  UsedKeys used;
  std::uint64_t last_slot = 0;  // number of the key installed last: KeyCache's `slot`
};

class SecureDomain {
 public:
  // `config` must be good (reason_against); `services` outlives the domain.
  SecureDomain(const DomainConfig& config, DomainServices& services);
  ~SecureDomain();
  SecureDomain(const SecureDomain&) = delete;
  SecureDomain& operator=(const SecureDomain&) = delete;

  // Puts an SDK (the derived key of a client: the other form) into the slot of `an`, from which
  // packets can be opened at once (make before break, TSS-53). If the slot holds that key already,
  // nothing changes. Busy if it holds another one, which must be removed first (TSS-56). KeyInUse
  // if this process has sealed packets with the key and `start` calls it fresh (TSS-37).
  // NotSupported if the key is of the wrong kind for this domain, NoMemory if OpenSSL has none.
  Result<void> install(bool an, const Key& sdk, const SenderStart& start);
  Result<void> install(bool an, const KeyMaterial& derived, const SenderStart& start);
  // Seals with the key of `an` from the next packet on; AN, epoch and TSC change together (TSS-57).
  // The key that was active opens packets until now + guard, and is then zeroed. NotFound if the
  // slot is empty, KeyInUse as for install, Invalid while the history of the key is unknown: set a
  // newer epoch first. Io if the source of TSCs has none, and knows why.
  Result<void> activate(bool an, Time now);
  // The management's new epoch for the key of `an` (TSS-38). NotFound if the slot is empty,
  // otherwise as SenderState::set_epoch. NotSupported at a client, whose key belongs to one epoch.
  Result<void> set_epoch(bool an, std::uint16_t epoch);
  // Zeroes the key of `an`. Busy if it is active; NotFound if the slot is empty.
  Result<void> remove_key(bool an);
  // Zeroes the key of `an` at once, even if it is active: nothing is sealed until activate().
  void abandon_key(bool an);
  // As PacketCipher::overwrite_key(): of both slots, and nothing passes any more.
  void overwrite_keys();
  // A disabled domain keeps its keys and drops all packets in both directions.
  void enable(bool enabled) { enabled_ = enabled; }
  // Ends the latch of TSS-44 and starts its count again.
  void clear_latch() { failures_ = 0; }

  // Zeroes keys whose guard time has ended.
  void expire(Time now);
  // When expire() has something to do; kNever if nothing waits.
  Time next_deadline() const;

  // Seals `pieces` for `outer`: writes security header, encrypted text and ICV to `out`, which has
  // space for the pieces and overhead(). Each call takes a new TSC (TSS-33, TSS-35).
  SealResult seal(const OuterFields& outer, std::span<const Slice> pieces,
                  std::span<std::byte> out);
  // Checks and decrypts a packet of this domain, from the security header to the ICV, to `out`,
  // which has space for the packet. `header`: decoded from the front of it.
  OpenResult open(const wire::SecurityHeader& header, const OuterFields& outer,
                  std::span<const std::byte> packet, std::span<std::byte> out, Time now);
  // May a packet of this job be of this domain (TSS-67)? nullopt: the packet names no job.
  bool allows(std::optional<JobId> job) const;
  // An authentic packet of this domain that does not belong to its PDC (TSS-43).
  void count_binding_failure() { ++counters_.in_binding_failure; }

  const DomainConfig& config() const { return config_; }
  const DomainCounters& counters() const { return counters_; }
  // Bytes that protection adds to each packet.
  std::size_t overhead() const { return overhead_bytes(config_.uses_ssi()); }
  // Which key seals; nullopt before the first activate().
  std::optional<bool> active() const { return active_; }
  bool has_key(bool an) const { return slot(an).number != 0; }
  // Is it this key? True as well if OpenSSL has no memory to say so.
  bool holds(bool an, const KeyMaterial& material) const;
  // By which the key of `an` can be recognised; nullptr if the slot is empty.
  const Fingerprint* fingerprint(bool an) const {
    return has_key(an) ? &slot(an).fingerprint : nullptr;
  }
  // Does a key open packets that has this number of a table's last_key(), or a smaller one?
  bool has_key_until(std::uint64_t number) const;
  // The key of `an` was replaced and still opens packets.
  bool in_guard(bool an) const { return slot(an).ends != kNever; }
  // The sender's epoch and next TSC under the key of `an`, to be kept across a restart (TSS-37).
  std::optional<EpochAndTsc> position(bool an) const;

 private:
  struct Slot {
    std::uint64_t number = 0;  // 0: empty
    std::optional<Kdf> kdf;    // cluster and server mode
    PacketCipher cipher;       // direct mode and clients: the packet key itself
    IvMask mask;               // clients
    Fingerprint fingerprint{};
    bool started_fresh = false;
    std::optional<SenderState> sender;
    Time ends = kNever;  // end of the guard time
  };
  // A key that is ready for one packet.
  struct PacketKey {
    PacketCipher* cipher = nullptr;
    const IvMask* mask = nullptr;
    DerivedKey* derived = nullptr;  // nullptr: not from the cache
  };

  Slot& slot(bool an) { return slots_[an ? 1 : 0]; }
  const Slot& slot(bool an) const { return slots_[an ? 1 : 0]; }
  bool derives() const { return config_.mode != KeyMode::Direct && !config_.client; }
  Result<void> fill(Slot& slot, const KeyMaterial& material, const SenderStart& start);
  void empty(Slot& slot);
  bool has_tsc(Slot& slot);
  PacketKey key_for(Slot& slot, const wire::SecurityHeader& header, const Identity& identity);
  const Client* client_at(const FabricAddress& address) const;
  bool is_bound(std::optional<std::uint32_t> ssi, const FabricAddress& source) const;
  OpenVerdict check(const wire::SecurityHeader& header, const Slot& slot);
  void note_failure(Time now);

  const DomainConfig config_;
  DomainServices& services_;
  std::vector<Client> clients_;      // sorted by address
  std::vector<std::uint32_t> jobs_;  // sorted
  std::array<Slot, 2> slots_;
  std::optional<bool> active_;
  bool enabled_ = true;
  DomainCounters counters_;
  std::uint64_t failures_ = 0;  // since the start or clear_latch()
  Time second_began_{};         // of the alarm
  std::uint32_t in_second_ = 0;
};

}  // namespace uet::tss
