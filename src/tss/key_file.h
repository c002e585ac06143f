// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The text form of secure domains and their keys, version 1 (`man 1 uet_keys` describes it). Pure
// functions: the caller reads the file, checks its owner and mode, and notices changes.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tss/sd_table.h"
#include "uet/base/time.h"

namespace uet::tss {

// A key of a domain: an SDK, or for a client the derived key with its mask.
struct KeyEntry {
  KeyMaterial material;  // the mask is zero unless the domain is a client's
  SenderStart start;
};

struct DomainEntry {
  DomainConfig config;
  std::array<std::optional<KeyEntry>, 2> keys;  // by AN
  std::optional<bool> active;                   // the AN whose key seals
};

struct KeyFile {
  std::vector<DomainEntry> domains;
};

// Reads `text` to `out`. Returns an empty string, or "line N: problem", which never contains a part
// of a key; `out` is then empty. Each domain must be good (reason_against), name each SDI once and
// hold the key that it calls active.
std::string parse_key_file(std::string_view text, KeyFile& out);

enum class KeyText {
  Secret,      // the keys themselves; the caller wipes the string
  Recognised,  // a fingerprint instead of each key
};
// The inverse of parse_key_file; with Recognised a listing that cannot be parsed.
std::string to_text(const KeyFile& file, KeyText keys);

// Brings `table` to what `file` says: adds and removes domains, installs keys, sets newer epochs,
// activates. A key that must wait for a guard time (Busy) and every other refusal is a line of the
// result; the rest is done. Empty if all was done. Calling it again with one file changes nothing.
std::string apply(const KeyFile& file, SdTable& table, Time now);

}  // namespace uet::tss
