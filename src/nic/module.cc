// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Finds and loads the modules of back ends.
#include "nic/module.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

namespace uet::nic {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "libuet-nic-";
constexpr std::string_view kSuffix = ".so";

std::string& told_directory() {
  static std::string* const kDirectory = new std::string;  // never destroyed
  return *kDirectory;
}

// Where the provider, or the program that this code is part of, lies.
fs::path own_directory() {
  if (!told_directory().empty()) return told_directory();
  Dl_info info{};
  if (::dladdr(reinterpret_cast<const void*>(&own_directory), &info) == 0) return ".";
  return fs::path(info.dli_fname).parent_path();
}

fs::path directory_or_own(const std::string& directory) {
  return directory.empty() ? own_directory() : fs::path(directory);
}

std::string installed_text(const std::string& directory) {
  std::string text = "udp";
  for (const std::string& name : installed_modules(directory)) text += ", " + name;
  return text;
}

}  // namespace

void look_for_modules_in(std::string directory) { told_directory() = std::move(directory); }

std::vector<std::string> installed_modules(const std::string& directory) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory_or_own(directory), error)) {
    const std::string file = entry.path().filename().string();
    if (!file.starts_with(kPrefix) || !file.ends_with(kSuffix)) continue;
    names.push_back(file.substr(kPrefix.size(), file.size() - kPrefix.size() - kSuffix.size()));
  }
  std::sort(names.begin(), names.end());
  return names;
}

Result<const Module*> load_module(const std::string& name, const std::string& directory,
                                  std::string& message) {
  const fs::path file =
      directory_or_own(directory) / (std::string(kPrefix) + name + std::string(kSuffix));
  const bool plain = !name.empty() && name.find('/') == std::string::npos;
  std::error_code ignored;
  if (!plain || !fs::exists(file, ignored)) {
    message = "there is no NIC back end '" + name + "' here; there is " +
              installed_text(directory) + " (" + file.string() + " would be its file)";
    return Error::NotFound;
  }
  // Libraries below a module start threads that outlive any close.
  void* const handle = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (handle == nullptr) {
    const char* const why = ::dlerror();
    message = "NIC back end '" + name +
              "' cannot be loaded: " + (why != nullptr ? why : "unknown error") +
              "; install the library that is missing, or use FI_UET_NIC=udp";
    return Error::NotFound;
  }
  auto* const entry = reinterpret_cast<ModuleEntry*>(::dlsym(handle, kModuleEntryName));
  const Module* const module = entry != nullptr ? entry() : nullptr;
  if (module == nullptr || module->version != kModuleVersion ||
      std::strcmp(module->compiler, __VERSION__) != 0) {
    message = file.string() + " is not of the same build as the provider: install both from one";
    return Error::NotSupported;
  }
  return module;
}

}  // namespace uet::nic
