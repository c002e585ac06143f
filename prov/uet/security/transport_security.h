// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Transport security of one domain: which keys it has, from where, and what its NIC seals with
// them. Cryptography and the protocol are in src/tss; keys pass through here as bytes only.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "security/key_memory.h"
#include "security/tsc_store.h"
#include "settings/key_source.h"
#include "settings/params.h"
#include "tss/key_file.h"
#include "tss/sd_table.h"
#include "uet/base/result.h"
#include "uet/base/time.h"
#include "uet/nic/nic.h"
#include "wire/frame.h"

namespace uet::prov {

// The part of a long auth_key beside the JobID (TSS-68).
struct SecureIdentity {
  std::uint32_t sdi = 0;
  std::optional<std::uint32_t> ssi;  // nullopt: that of the key file
};

class TransportSecurity {
 public:
  static constexpr Duration kLookInterval = std::chrono::seconds(1);
  static constexpr Duration kSayInterval = std::chrono::seconds(60);  // of one cause

  // Reads the keys that FI_UET_TSS and FI_UET_TSS_KEYS name, for the secure domain that `identity`
  // names or that is the only one. `out` stays empty if the domain is to be in clear: off, or
  // prefer without a key file or an active key. 0; -FI_ENOKEY: require, and no keys are there;
  // -FI_EKEYREJECTED: a key file that must not be used (mode, owner, a line), or that does not have
  // the secure domain; the reason is logged.
  static int open(const Params& params, const std::optional<SecureIdentity>& identity,
                  std::unique_ptr<TransportSecurity>& out);

  // Puts this security around `nic`, and the keys in force. Call it once; the result is closed
  // before this object. `marks`: of trimmed packets. Errors, with `message`: NotSupported (a shared
  // port), AddressNotAvailable (wildcard address, TSS-7), Invalid (the domain does
  // not suit the address, TSS-22), KeyInUse (no TSC to begin with, TSS-37).
  Result<std::unique_ptr<nic::Nic>> wrap(std::unique_ptr<nic::Nic> nic,
                                         const wire::TrimMarks& marks, std::string& message);

  // Reads the keys again if the file has changed, and says what the counters show to be wrong; at
  // most once in kLookInterval. Called before each burst of arrivals.
  void look(Time now) {
    if (now >= next_look_) look_now(now);
  }
  // Called once by look(): no key that is older than this object opens packets of the domain any
  // more, so that start PSNs need not be random (TSS-51, TSS-52). Keys count as older if they were
  // there at the first look(), because the address was not taken when the file was first read.
  void on_key_change(std::function<void()> call) { key_changed_ = std::move(call); }
  // When look() has something to do while no packet comes.
  Time next_look() const { return mark_ ? next_look_ : kNever; }

  // In a forked child: overwrites all keys (TSS-60). Allocates and locks nothing.
  void forget_keys_in_child() {
    if (table_ != nullptr) table_->overwrite_keys();
    for (auto& key : first_.keys) key.reset();
  }

  std::uint32_t sdi() const { return sdi_; }
  // Of this process in the secure domain.
  std::optional<std::uint32_t> ssi() const { return first_.config.ssi; }
  // Its packets are those of PDCs: neither RUDI nor UUD (TSS-50).
  bool pdc_only() const { return first_.config.pdc_only; }
  // After wrap().
  tss::SdTable& table() { return *table_; }
  // Why the last call that needed TSCs had none, or empty.
  const std::string& tsc_problem() const { return tscs_->problem(); }

 private:
  // One cause of dropped packets: how many it had, and when it may be logged again.
  struct Cause {
    std::uint64_t count = 0;
    Time silent_until{};
  };

  TransportSecurity(const Params& params, const std::optional<SecureIdentity>& identity)
      : keys_name_(params.tss_keys),
        identity_(identity),
        derived_keys_(2 * params.core.pds.pdc_count) {
    if (identity) wanted_sdi_ = identity->sdi;
  }
  std::string choose(const tss::KeyFile& file, tss::DomainEntry& out) const;
  std::string read(const KeySource& source, tss::DomainEntry& out) const;
  std::string apply(const tss::DomainEntry& entry, Time now);
  void look_now(Time now);
  void read_again(Time now);
  void note_key_change();
  void say_what_is_wrong(Time now);
  void say(std::size_t cause, std::uint64_t count, const char* text, Time now);

  const std::string keys_name_;
  const std::optional<SecureIdentity> identity_;
  const std::size_t derived_keys_;  // TSS-69: of as many peers as have PDCs, twice
  tss::DomainEntry first_;  // what the key file said first, until wrap() has put it in force
  std::optional<std::uint32_t> wanted_sdi_;  // nullopt: the only one of the file
  std::uint32_t sdi_ = 0;
  std::optional<FileMark> mark_;  // of the file as last read; nullopt: it cannot change
  bool ipv6_ = false;
  std::unique_ptr<TscStore> tscs_;  // outlives table_
  KeyMemory key_memory_;            // likewise
  std::unique_ptr<tss::SdTable> table_;
  std::optional<std::uint64_t> first_keys_;  // the last of those; nullopt before the first look()
  std::function<void()> key_changed_;
  Time next_look_{};
  bool unfinished_ = false;  // not all that the file says is in force
  std::string last_problem_;
  std::array<Cause, 5> causes_{};
};

}  // namespace uet::prov
