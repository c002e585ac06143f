// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "hmem/copied.h"

#include <dlfcn.h>

#include "provider.h"

namespace uet::prov {

// The only report of a failure. The address was valid at registration: the device has failed, or
// the application has freed memory that it still uses.
void CopiedMemory::copy_or_warn(void* to, const void* from, std::size_t bytes) noexcept {
  if (bytes == 0) return;
  if (const int error = copy(to, from, bytes); error != 0) {
    FI_WARN(&provider, FI_LOG_MR, "%s: a copy failed with error %d; the data are lost\n", driver_,
            error);
  }
}

void CopiedMemory::place(std::byte* there, std::span<const std::byte> bytes) noexcept {
  copy_or_warn(there, bytes.data(), bytes.size());
}

void CopiedMemory::fetch(std::span<std::byte> bytes, const std::byte* there) noexcept {
  copy_or_warn(bytes.data(), there, bytes.size());
}

DriverLibrary::DriverLibrary(const char* name, const char* iface)
    : name_(name), iface_(iface), handle_(dlopen(name, RTLD_NOW | RTLD_LOCAL)) {
  if (handle_ == nullptr) FI_INFO(&provider, FI_LOG_CORE, "no %s: %s\n", iface, dlerror());
}

void* DriverLibrary::look_up(const char* symbol) const {
  void* const found = dlsym(handle_, symbol);
  if (found == nullptr) {
    FI_WARN(&provider, FI_LOG_CORE, "%s has no %s: no %s\n", name_, symbol, iface_);
  }
  return found;
}

}  // namespace uet::prov
