// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The few functions of the HSA runtime that are needed, declared by what its manual says of them:
// agents are numbers in a structure, and every call returns 0 or an error.
#include "hmem/rocr.h"

#include <cstdint>
#include <memory>

#include "provider.h"

namespace uet::prov {
namespace {

struct HsaAgent {
  std::uint64_t handle;
};
constexpr int kHsaAgentInfoDevice = 17;
constexpr std::uint32_t kHsaDeviceGpu = 1;

// Of an address. A runtime fills as much as both it and `size` know.
struct HsaPointerInfo {
  std::uint32_t size = sizeof(HsaPointerInfo);
  std::uint32_t type = 0;
  void* agent_base = nullptr;
  void* host_base = nullptr;
  std::size_t bytes = 0;
  void* user_data = nullptr;
  HsaAgent owner{};
};
constexpr std::uint32_t kHsaUnknown = 0;
constexpr std::uint32_t kHsaLocked = 2;  // memory of the CPU

class RocrMemory final : public CopiedMemory {
 public:
  RocrMemory() : CopiedMemory("ROCr") {}
  // False: nothing to use; logged.
  bool open();
  bool holds(const void* address, std::size_t bytes) noexcept override;

 protected:
  int copy(void* to, const void* from, std::size_t bytes) noexcept override {
    return memory_copy_(to, from, bytes);
  }

 private:
  DriverLibrary library_{"libhsa-runtime64.so.1", "FI_HMEM_ROCR"};
  int (*init_)() = nullptr;
  int (*iterate_agents_)(int (*)(HsaAgent, void*), void*) = nullptr;
  int (*agent_get_info_)(HsaAgent, int, void*) = nullptr;
  int (*memory_copy_)(void*, const void*, std::size_t) = nullptr;
  int (*pointer_info_)(const void*, HsaPointerInfo*, void* (*)(std::size_t), std::uint32_t*,
                       HsaAgent**) = nullptr;
};

bool RocrMemory::open() {
  const bool complete = library_.is_open() && library_.find("hsa_init", init_) &&
                        library_.find("hsa_iterate_agents", iterate_agents_) &&
                        library_.find("hsa_agent_get_info", agent_get_info_) &&
                        library_.find("hsa_memory_copy", memory_copy_) &&
                        library_.find("hsa_amd_pointer_info", pointer_info_);
  if (!complete) return false;
  struct Search {
    decltype(agent_get_info_) info;
    bool found = false;
  } search{agent_get_info_};
  const auto look = [](HsaAgent agent, void* argument) {
    auto& at = *static_cast<Search*>(argument);
    std::uint32_t kind = 0;
    at.found |= at.info(agent, kHsaAgentInfoDevice, &kind) == 0 && kind == kHsaDeviceGpu;
    return 0;
  };
  if (init_() != 0 || iterate_agents_(look, &search) != 0 || !search.found) {
    FI_INFO(&provider, FI_LOG_CORE, "no FI_HMEM_ROCR: the runtime finds no GPU\n");
    return false;
  }
  return true;
}

bool RocrMemory::holds(const void* address, std::size_t bytes) noexcept {
  HsaPointerInfo info;
  if (pointer_info_(address, &info, nullptr, nullptr, nullptr) != 0) return false;
  if (info.type == kHsaUnknown || info.type == kHsaLocked) return false;
  const auto start = reinterpret_cast<std::uintptr_t>(address);
  const auto base = reinterpret_cast<std::uintptr_t>(info.agent_base);
  return start >= base && start - base <= info.bytes && bytes <= info.bytes - (start - base);
}

}  // namespace

// Never destroyed: objects may be closed when the process ends.
CopiedMemory* rocr_memory() noexcept {
  static RocrMemory* memory = [] {
    RocrMemory* opened = nullptr;
    guarded([&] {
      auto fresh = std::make_unique<RocrMemory>();
      if (fresh->open()) opened = fresh.release();
      return 0;
    });
    return opened;
  }();
  return memory;
}

}  // namespace uet::prov
