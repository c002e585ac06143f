// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The order of the search is libfabric's: the directories of FI_PROVIDER_PATH or, without it, the
// folder "libfabric" beside the library; in each all files that end with fi.so.
#include "plug_in.h"

#include <dlfcn.h>
#include <rdma/fi_errno.h>
#include <strings.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace uet::doctor {

namespace {

namespace fs = std::filesystem;

constexpr const char* kInstall =
    "install the package libfabric-uet, or point FI_PROVIDER_PATH at the directory of libuet-fi.so";

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::size_t start = 0;
  while (start <= text.size()) {
    const std::size_t end = std::min(text.find(separator, start), text.size());
    if (end > start) parts.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  return parts;
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string library_file() {
  Dl_info where{};
  std::error_code ignored;
  if (::dladdr(reinterpret_cast<void*>(&fi_getinfo), &where) == 0) return "(unknown)";
  return fs::canonical(where.dli_fname, ignored).string();
}

std::string version_text(std::uint32_t version) {
  return std::to_string(FI_MAJOR(version)) + "." + std::to_string(FI_MINOR(version));
}

// FI_PROVIDER is a list of names, or of names to leave out after '^'.
bool filtered_out(const std::string& filter) {
  if (filter.empty()) return false;
  const bool negative = filter[0] == '^';
  bool named = false;
  for (const std::string& name : split(filter.substr(negative ? 1 : 0), ',')) {
    const std::string core = name.substr(0, name.find(';'));
    named = named || ::strcasecmp(core.c_str(), "uet") == 0;
  }
  return named == negative;
}

bool is_plug_in_name(const fs::path& file) {
  const std::string name = file.filename().string();
  return name.ends_with("fi.so") && name.find("uet") != std::string::npos;
}

// Loads a file as libfabric does and reports why that fails.
void examine_file(Report& report, const std::string& file) {
  void* const handle = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* const error = ::dlerror();
    const std::string why = error != nullptr ? error : "unknown error";
    const bool newer = why.find("FABRIC_") != std::string::npos;
    report.fail("cannot load " + why,
                newer ? "it was built for a newer libfabric than this one: build it with the "
                        "headers of this one"
                      : "install the library that it misses, or a plug-in built for this machine");
    return;
  }
  if (::dlsym(handle, "fi_prov_ini") == nullptr) {
    report.fail(file + " is not a libfabric provider (it has no fi_prov_ini)", kInstall);
  } else {
    report.fail(file + " can be loaded, but libfabric does not list the provider",
                "read what the provider says below; FI_LOG_LEVEL=debug shows more");
  }
  ::dlclose(handle);
}

// Reports on one directory of the search; true if it holds a file of this provider.
bool examine_directory(Report& report, const std::string& directory, bool named) {
  std::error_code error;
  const auto status = fs::status(directory, error);
  if (fs::is_regular_file(status)) {
    report.fail("FI_PROVIDER_PATH names the file " + directory + ", and is read as a directory",
                "name the directory that it is in");
    return true;
  }
  if (!fs::is_directory(status)) {
    if (named) {
      report.fail("FI_PROVIDER_PATH names " + directory + ", which is not there", kInstall);
    }
    return named;
  }
  bool found = false;
  for (const auto& entry : fs::directory_iterator(directory, error)) {
    if (!is_plug_in_name(entry.path())) continue;
    found = true;
    examine_file(report, entry.path().string());
  }
  if (error) {
    report.fail(directory + " cannot be read: " + error.message(), "give this user the right to");
    return true;
  }
  return found;
}

void explain_absence(Report& report) {
  const std::string filter = environment("FI_PROVIDER");
  if (filtered_out(filter)) {
    report.fail("FI_PROVIDER=" + filter + " keeps libfabric from the provider uet",
                "unset FI_PROVIDER, or FI_PROVIDER=uet");
    return;
  }
  const std::string own = fs::path(library_file()).parent_path() / "libfabric";
  const std::string path = environment("FI_PROVIDER_PATH");
  if (path.empty()) {
    if (!examine_directory(report, own, /*named=*/false)) {
      report.fail("there is no libuet-fi.so in " + own, kInstall);
    }
    return;
  }
  bool found = false;
  for (std::string directory : split(path, ':')) {
    if (directory[0] == '@') directory.erase(0, 1);
    if (directory.empty()) directory = own;
    if (directory[0] == '+') {
      directory.erase(0, 1);
      if (FI_MAJOR(fi_version()) < 2) {
        report.fail("'+' in FI_PROVIDER_PATH is not known to this libfabric, only to 2.0 and later",
                    "name the directory that the file is in");
      } else {
        examine_file(report, directory);
      }
      found = true;
    } else {
      found = examine_directory(report, directory, /*named=*/true) || found;
    }
  }
  if (!found) report.fail("there is no libuet-fi.so in FI_PROVIDER_PATH=" + path, kInstall);
}

}  // namespace

std::string provider_file() {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    const std::size_t path = line.find('/');
    if (path == std::string::npos) continue;
    const std::string name = fs::path(line.substr(path)).filename().string();
    if (name.ends_with("fi.so") && name.find("uet") != std::string::npos) return line.substr(path);
  }
  return "(unknown)";
}

Infos examine_plug_in(Report& report) {
  report.begin("Library and provider");
  report.good("libfabric " + version_text(fi_version()) + " from " + library_file());
  const Infos hints(fi_allocinfo());
  hints->ep_attr->type = FI_EP_RDM;
  hints->mode = ~std::uint64_t{0};
  hints->fabric_attr->prov_name = ::strdup("uet");  // fi_freeinfo frees it
  fi_info* found = nullptr;
  const int result = fi_getinfo(FI_VERSION(1, 17), nullptr, nullptr, 0, hints.get(), &found);
  Infos infos(found);
  if (result != 0) {
    report.note(std::string("fi_getinfo: ") + fi_strerror(-result));
    explain_absence(report);
    return nullptr;
  }
  report.good("provider uet " + version_text(infos->fabric_attr->prov_version) + " from " +
              provider_file());
  return infos;
}

}  // namespace uet::doctor
