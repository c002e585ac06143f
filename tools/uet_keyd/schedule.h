// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Which keys a job has at a time, and the key file that says so. Agents that share a secret and the
// time of day compute the same keys, so that agents need not speak with each other. Pure functions.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <compare>
#include <cstdint>

#include "tss/key_file.h"

namespace uet::keyd {

// A job of a user: two users may choose one number, and have two jobs then.
struct Job {
  std::uint32_t number = 0;
  uid_t user = 0;
  friend auto operator<=>(const Job&, const Job&) = default;
};

// A key is active for `every`, then opens packets for `guard`. The next key is in the file from the
// middle of the interval on, so that members whose clocks differ by less than half of the interval
// agree (make before break, TSS-53).
struct Rotation {
  std::chrono::seconds every{600};
  std::chrono::seconds guard{10};
};
// Why this rotation is refused, or nullptr: the slot of the next key must be free in time (TSS-56).
const char* reason_against(const Rotation& rotation);

// The keys of a moment; keys count from 1970 in steps of Rotation::every.
struct LiveKeys {
  std::uint64_t active = 0;
  bool previous = false;  // active - 1 still opens packets
  bool next = false;      // active + 1 opens packets already
  friend bool operator==(const LiveKeys&, const LiveKeys&) = default;
};
// `now`: since 1970.
LiveKeys keys_at(std::chrono::seconds now, const Rotation& rotation);

// The SDI of a job: the lower 24 bits of its number, never 0.
std::uint32_t sdi_of(std::uint32_t job);

// Key `number` of `job`, derived from the secret of all agents; false if OpenSSL fails. Number and
// user of the job are part of the derivation: who guesses the number of another user's job gets
// other keys.
bool derive_key(const tss::Key& secret, const Job& job, std::uint64_t number, tss::Key& out);

// The key file of `job`: one domain in cluster mode. `epoch`: one that this host has not used
// before under these keys (TSS-37). False if OpenSSL fails.
bool key_file_of(const tss::Key& secret, const Job& job, std::uint16_t epoch, const LiveKeys& keys,
                 const Rotation& rotation, tss::KeyFile& out);

}  // namespace uet::keyd
