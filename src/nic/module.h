// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Back ends that the provider loads when they are asked for: FI_UET_NIC=NAME is served by
// libuet-nic-NAME.so in the directory of the provider. So the provider depends on none of the
// libraries that a back end needs. A module is of the same build as the provider.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "nic/interface.h"
#include "nic/registry.h"
#include "uet/base/result.h"

namespace uet::nic {

// Changes whenever Module, NicConfig, Nic or anything that they are made of changes.
inline constexpr std::uint32_t kModuleVersion = 8;

struct Module {
  std::uint32_t version = kModuleVersion;
  const char* compiler = __VERSION__;  // classes pass between the two: it must be the same
  const char* name = nullptr;          // as in FI_UET_NIC
  // The largest IP packet, headers included, that this back end carries over `interface`; or why it
  // cannot use the interface at all (`message`). Opens nothing and needs no right.
  Result<std::uint32_t> (*ip_mtu)(const NicConfig& config, const Interface& interface,
                                  std::string& message) = nullptr;
  // As nic::open_nic without middleware: on failure nothing stays open and `message` says why and
  // what to do; on success it is a warning or empty.
  Result<std::unique_ptr<Nic>> (*open)(const NicConfig& config, std::string& message) = nullptr;
};

// The function that a module exports, and its name. The module stays loaded until the process ends.
using ModuleEntry = const Module*();
inline constexpr const char* kModuleEntryName = "uet_nic_module";

// The module of back end `name`, loaded on the first call. `directory`: where to look; empty = that
// of the file that this code is in. Errors: NotFound (no such module, or a library that it needs is
// missing), NotSupported (of another build); `message` says which, and what to do.
Result<const Module*> load_module(const std::string& name, const std::string& directory,
                                  std::string& message);

// An empty `directory` is this one from now on: for programs that contain this code and lie
// elsewhere than the modules. Before the first call of the others.
void look_for_modules_in(std::string directory);

// Names of the modules in `directory` (as above), sorted.
std::vector<std::string> installed_modules(const std::string& directory);

}  // namespace uet::nic
