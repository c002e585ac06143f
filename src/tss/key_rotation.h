// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Rotation in the text form: make before break (TSS-53) in two steps, each followed by all members
// before the next one is taken. Pure functions; the caller brings the random keys.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tss/key_file.h"

namespace uet::tss {

// A file with one domain, whose key for AN 0 is active. Returns what is wrong with `config`, or an
// empty string.
std::string new_key_file(const DomainConfig& config, const Key& key, KeyFile& out);

// First step: puts `key` into the slot that is not active. `sdi`: nullopt if the file has one
// domain. Returns what is wrong, or an empty string; on a problem the file is unchanged. Refuses if
// the slot has a key, and at a client, whose key the management of its server derives.
std::string install_next_key(KeyFile& file, std::optional<std::uint32_t> sdi, const Key& key);

// Second step, when all members have read the file: the next key becomes the active one, and the
// old key leaves the file. Members go on opening packets with the old key for their guard time.
std::string activate_next_key(KeyFile& file, std::optional<std::uint32_t> sdi);

}  // namespace uet::tss
