// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The few functions of Level Zero that move bytes, declared by what its specification says of them:
// handles are pointers, and every call returns 0 or an error. Each device has a command list that
// executes at once and waits.
#include "hmem/level_zero.h"

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "provider.h"

namespace uet::prov {
namespace {

using ZeHandle = void*;

struct ZeContextDescription {
  std::uint32_t type = 0xD;
  const void* next = nullptr;
  std::uint32_t flags = 0;
};

struct ZeQueueDescription {
  std::uint32_t type = 0xE;
  const void* next = nullptr;
  std::uint32_t ordinal = 0;
  std::uint32_t index = 0;
  std::uint32_t flags = 0;
  std::uint32_t mode = 1;  // synchronous
  std::uint32_t priority = 0;
};

struct ZeFunctions {
  int (*init)(std::uint32_t flags);
  int (*driver_get)(std::uint32_t* count, ZeHandle* drivers);
  int (*device_get)(ZeHandle driver, std::uint32_t* count, ZeHandle* devices);
  int (*context_create)(ZeHandle driver, const ZeContextDescription*, ZeHandle* context);
  int (*list_create)(ZeHandle context, ZeHandle device, const ZeQueueDescription*, ZeHandle* list);
  int (*append_copy)(ZeHandle list, void* to, const void* from, std::size_t bytes, ZeHandle signal,
                     std::uint32_t waits, ZeHandle* wait_events);
  int (*address_range)(ZeHandle context, const void* address, void** base, std::size_t* bytes);
};

class ZeMemory final : public CopiedMemory {
 public:
  ZeMemory(const ZeFunctions& functions, ZeHandle context, ZeHandle list)
      : CopiedMemory("Level Zero"), functions_(functions), context_(context), list_(list) {}
  bool holds(const void* address, std::size_t bytes) noexcept override;

 protected:
  int copy(void* to, const void* from, std::size_t bytes) noexcept override {
    const std::lock_guard lock(mutex_);  // a command list is for one thread at a time
    return functions_.append_copy(list_, to, from, bytes, nullptr, 0, nullptr);
  }

 private:
  const ZeFunctions& functions_;
  const ZeHandle context_;
  const ZeHandle list_;
  std::mutex mutex_;
};

bool ZeMemory::holds(const void* address, std::size_t bytes) noexcept {
  void* base_address = nullptr;
  std::size_t length = 0;
  if (functions_.address_range(context_, address, &base_address, &length) != 0) return false;
  const auto start = reinterpret_cast<std::uintptr_t>(address);
  const auto base = reinterpret_cast<std::uintptr_t>(base_address);
  return base != 0 && start >= base && start - base <= length && bytes <= length - (start - base);
}

// The handles of one kind, which the loader counts first.
template <class Get>
std::vector<ZeHandle> ze_handles(Get get) {
  std::uint32_t count = 0;
  if (get(&count, nullptr) != 0) return {};
  std::vector<ZeHandle> handles(count);
  if (get(&count, handles.data()) != 0) return {};
  handles.resize(count);
  return handles;
}

class LevelZero {
 public:
  // False: nothing to use; logged.
  bool open();
  CopiedMemory* memory_of(int device);

 private:
  struct ZeDriver {
    ZeHandle context = nullptr;
    std::vector<ZeHandle> devices;
  };
  bool find_all();

  DriverLibrary library_{"libze_loader.so.1", "FI_HMEM_ZE"};
  ZeFunctions functions_{};
  std::vector<ZeDriver> drivers_;
  std::mutex mutex_;
  std::map<int, std::unique_ptr<ZeMemory>> memories_;
};

bool LevelZero::find_all() {
  return library_.is_open() && library_.find("zeInit", functions_.init) &&
         library_.find("zeDriverGet", functions_.driver_get) &&
         library_.find("zeDeviceGet", functions_.device_get) &&
         library_.find("zeContextCreate", functions_.context_create) &&
         library_.find("zeCommandListCreateImmediate", functions_.list_create) &&
         library_.find("zeCommandListAppendMemoryCopy", functions_.append_copy) &&
         library_.find("zeMemGetAddressRange", functions_.address_range);
}

bool LevelZero::open() {
  if (!find_all()) return false;
  bool any = false;
  if (functions_.init(0) == 0) {
    for (const ZeHandle handle : ze_handles(functions_.driver_get)) {
      ZeDriver driver;
      const ZeContextDescription description;
      if (functions_.context_create(handle, &description, &driver.context) == 0) {
        driver.devices = ze_handles([&](std::uint32_t* count, ZeHandle* devices) {
          return functions_.device_get(handle, count, devices);
        });
      }
      any |= !driver.devices.empty();
      drivers_.push_back(std::move(driver));  // numbers count also those that cannot be used
    }
  }
  if (!any) FI_INFO(&provider, FI_LOG_CORE, "no FI_HMEM_ZE: the loader finds no device\n");
  return any;
}

CopiedMemory* LevelZero::memory_of(int device) {
  const auto driver = static_cast<std::size_t>(static_cast<unsigned>(device) >> 16);
  const auto index = static_cast<std::size_t>(device & 0xFFFF);
  if (driver >= drivers_.size() || index >= drivers_[driver].devices.size()) return nullptr;
  const std::lock_guard lock(mutex_);
  auto& memory = memories_[device];
  if (memory == nullptr) {
    const ZeQueueDescription description;
    ZeHandle list = nullptr;
    const ZeHandle context = drivers_[driver].context;
    if (functions_.list_create(context, drivers_[driver].devices[index], &description, &list) != 0)
      return nullptr;
    memory = std::make_unique<ZeMemory>(functions_, context, list);
  }
  return memory.get();
}

// Never destroyed: objects may be closed when the process ends.
LevelZero* level_zero() noexcept {
  static LevelZero* const kLoader = [] {
    LevelZero* opened = nullptr;
    guarded([&] {
      auto fresh = std::make_unique<LevelZero>();
      if (fresh->open()) opened = fresh.release();
      return 0;
    });
    return opened;
  }();
  return kLoader;
}

}  // namespace

bool has_level_zero() noexcept { return level_zero() != nullptr; }

CopiedMemory* level_zero_memory(int device) noexcept {
  CopiedMemory* memory = nullptr;
  guarded([&] {
    if (level_zero() != nullptr) memory = level_zero()->memory_of(device);
    return 0;
  });
  return memory;
}

}  // namespace uet::prov
