// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Stands in for AMD's HSA runtime (libhsa-runtime64.so.1) in tests, on machines without a GPU: a
// CPU agent and, unless FAKE_HSA_NO_DEVICE is set, a GPU agent. Never installed.
#include <cstdlib>

#include "fake_device.h"

namespace {

enum Status : int { kOk = 0, kInvalidArgument = 0x1001, kNotInitialized = 0x100B };
constexpr int kInfoDevice = 17;

struct Agent {
  std::uint64_t handle;
};
struct PointerInfo {
  std::uint32_t size;
  std::uint32_t type;
  void* agent_base;
  void* host_base;
  std::size_t bytes;
};
bool initialized = false;

}  // namespace

extern "C" {

int hsa_init() {
  initialized = true;
  return kOk;
}

int hsa_iterate_agents(int (*callback)(Agent, void*), void* data) {
  if (!initialized) return kNotInitialized;
  const int result = callback({1}, data);
  if (result != kOk || std::getenv("FAKE_HSA_NO_DEVICE") != nullptr) return result;
  return callback({2}, data);
}

int hsa_agent_get_info(Agent agent, int attribute, void* value) {
  if (attribute != kInfoDevice) return kInvalidArgument;
  *static_cast<std::uint32_t*>(value) = agent.handle == 2 ? 1 : 0;
  return kOk;
}

int hsa_memory_copy(void* to, const void* from, std::size_t bytes) {
  if (!initialized) return kNotInitialized;
  fake_device::copy(to, from, bytes);
  return kOk;
}

int hsa_amd_pointer_info(const void* address, PointerInfo* info, void* (*)(std::size_t),
                         std::uint32_t*, Agent**) {
  if (!initialized) return kNotInitialized;
  if (info->size < sizeof(PointerInfo)) return kInvalidArgument;
  info->size = sizeof(PointerInfo);
  info->type = fake_device::find(address, &info->agent_base, &info->bytes) ? 1 : 0;
  return kOk;
}

}  // extern "C"
