// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Device memory whose driver copies to and from any memory of the CPU, so that nothing has to be
// pinned: ROCr and Level Zero. A driver library is loaded when it is first asked for.
#pragma once

#include <cstddef>
#include <span>

#include "uet/base/device_memory.h"

namespace uet::prov {

class CopiedMemory : public DeviceMemory {
 public:
  void place(std::byte* there, std::span<const std::byte> bytes) noexcept override;
  void fetch(std::span<std::byte> bytes, const std::byte* there) noexcept override;
  // Its own, which has a limit of its own.
  StagingMemory& staging() noexcept override { return staging_; }
  bool wants_long_copies() const noexcept override { return true; }
  // Lies all of this in one allocation of a device?
  virtual bool holds(const void* address, std::size_t bytes) noexcept = 0;

 protected:
  // `driver`: its name for messages.
  explicit CopiedMemory(const char* driver) : driver_(driver) {}
  // Has ended when it returns; 0 or the driver's error.
  virtual int copy(void* to, const void* from, std::size_t bytes) noexcept = 0;

 private:
  void copy_or_warn(void* to, const void* from, std::size_t bytes) noexcept;

  const char* const driver_;
  HeapStaging staging_;
};

// A library of a driver, and its functions by name.
class DriverLibrary {
 public:
  // `name`: as for dlopen(3). `iface`: what is missing without it, for messages.
  DriverLibrary(const char* name, const char* iface);
  bool is_open() const { return handle_ != nullptr; }
  // False: the library has no such function; logged.
  template <class Function>
  bool find(const char* symbol, Function*& function) const {
    function = reinterpret_cast<Function*>(look_up(symbol));
    return function != nullptr;
  }

 private:
  void* look_up(const char* symbol) const;

  const char* const name_;
  const char* const iface_;
  void* handle_;
};

}  // namespace uet::prov
