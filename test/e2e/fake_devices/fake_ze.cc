// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Stands in for Level Zero's loader (libze_loader.so.1) in tests, on machines without a GPU: two
// drivers; the first has no device, the second two. Never installed.
#include <cstdlib>

#include "fake_device.h"

namespace {

enum Status : int { kOk = 0, kUninitialized = 0x78000001, kInvalidArgument = 0x78000004 };
struct ContextDescription {
  std::uint32_t type;
  const void* next;
  std::uint32_t flags;
};
struct QueueDescription {
  std::uint32_t type;
  const void* next;
  std::uint32_t ordinal;
  std::uint32_t index;
  std::uint32_t flags;
  std::uint32_t mode;
  std::uint32_t priority;
};
bool initialized = false;
int drivers[2];
int devices[2];
int context_of_devices;
int list_of_device[2];

int give(std::uint32_t* count, void** handles, int* all, std::uint32_t most) {
  if (!initialized) return kUninitialized;
  if (handles == nullptr || *count > most) *count = most;
  if (handles == nullptr) return kOk;
  for (std::uint32_t i = 0; i < *count; ++i) handles[i] = &all[i];
  return kOk;
}

}  // namespace

extern "C" {

int zeInit(std::uint32_t) {
  initialized = true;
  return kOk;
}

int zeDriverGet(std::uint32_t* count, void** handles) { return give(count, handles, drivers, 2); }

int zeDeviceGet(void* driver, std::uint32_t* count, void** handles) {
  const bool has_some = driver == &drivers[1] && std::getenv("FAKE_ZE_NO_DEVICE") == nullptr;
  return give(count, handles, devices, has_some ? 2 : 0);
}

int zeContextCreate(void* driver, const ContextDescription* description, void** context) {
  if (description->type != 0xD || description->next != nullptr) return kInvalidArgument;
  *context = driver == &drivers[1] ? &context_of_devices : nullptr;
  return kOk;
}

int zeCommandListCreateImmediate(void* context, void* device, const QueueDescription* description,
                                 void** list) {
  const bool right = context == &context_of_devices && description->type == 0xE &&
                     description->mode == 1 && description->next == nullptr;
  if (!right) return kInvalidArgument;
  *list = device == &devices[0] ? &list_of_device[0] : &list_of_device[1];
  return kOk;
}

int zeCommandListAppendMemoryCopy(void* list, void* to, const void* from, std::size_t bytes, void*,
                                  std::uint32_t, void**) {
  if (list != &list_of_device[0] && list != &list_of_device[1]) return kInvalidArgument;
  fake_device::copy(to, from, bytes);
  return kOk;
}

int zeMemGetAddressRange(void* context, const void* address, void** base, std::size_t* bytes) {
  if (context != &context_of_devices) return kInvalidArgument;
  return fake_device::find(address, base, bytes) ? kOk : kInvalidArgument;
}

}  // extern "C"
