// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "tss/key_rotation.h"

#include <algorithm>

namespace uet::tss {
namespace {

// The domain that is meant; nullptr and `problem` if there is none.
DomainEntry* domain_of(KeyFile& file, std::optional<std::uint32_t> sdi, std::string& problem) {
  if (!sdi) {
    if (file.domains.size() == 1) return &file.domains.front();
    problem = "the file does not have exactly one domain: name its SDI";
    return nullptr;
  }
  const auto found =
      std::find_if(file.domains.begin(), file.domains.end(),
                   [&](const DomainEntry& entry) { return entry.config.sdi == *sdi; });
  if (found != file.domains.end()) return &*found;
  problem = "the file has no domain of this SDI";
  return nullptr;
}

}  // namespace

std::string new_key_file(const DomainConfig& config, const Key& key, KeyFile& out) {
  if (const char* const problem = reason_against(config)) return problem;
  if (config.client) return "a client's key is derived by the management of its server";
  DomainEntry entry;
  entry.config = config;
  entry.keys[0] = KeyEntry{{key, {}}, {}};
  entry.active = false;
  out.domains.assign(1, entry);
  return {};
}

std::string install_next_key(KeyFile& file, std::optional<std::uint32_t> sdi, const Key& key) {
  std::string problem;
  DomainEntry* const entry = domain_of(file, sdi, problem);
  if (entry == nullptr) return problem;
  if (entry->config.client) return "a client's key is derived by the management of its server";
  if (!entry->active) return "the domain has no active key";
  const std::size_t next = *entry->active ? 0 : 1;
  if (entry->keys[next]) return "the next key is installed already: activate it first";
  entry->keys[next] = KeyEntry{{key, {}}, {}};
  return {};
}

std::string activate_next_key(KeyFile& file, std::optional<std::uint32_t> sdi) {
  std::string problem;
  DomainEntry* const entry = domain_of(file, sdi, problem);
  if (entry == nullptr) return problem;
  if (!entry->active) return "the domain has no active key";
  const std::size_t next = *entry->active ? 0 : 1;
  if (!entry->keys[next]) return "there is no next key: install it first";
  entry->keys[1 - next].reset();
  entry->active = next == 1;
  return {};
}

}  // namespace uet::tss
