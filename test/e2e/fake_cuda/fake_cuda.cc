// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Stands in for CUDA's driver library (libcuda.so.1) in tests, on machines without a GPU: one
// device whose memory no instruction of the CPU can touch, and which copies only to and from pinned
// memory, in a thread that has the device's context. It counts the bytes that it copies. The dmabuf
// of an allocation is a memory file. Never installed.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

namespace {

using DevicePointer = unsigned long long;

enum Result : int {
  kOk = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kNoDevice = 101,
  kNoContext = 201,
  kNotSupported = 801
};

constexpr std::size_t kMemoryBytes = std::size_t{1} << 30;
constexpr std::size_t kAlignment = 4096;  // a page: each allocation is a file of its own

struct Device {
  std::mutex mutex;
  std::byte* addresses = nullptr;  // what the application sees: not to be touched
  std::byte* memory = nullptr;     // what is there
  std::size_t used = 0;
  std::map<DevicePointer, std::size_t> allocations;
  std::map<DevicePointer, int> files;  // of the allocations
  std::map<std::uintptr_t, std::size_t> pinned;
  std::size_t bytes_to_device = 0;
  std::size_t bytes_from_device = 0;
  std::size_t copies_to_device = 0;
  std::size_t pinned_bytes = 0;
  std::size_t most_pinned_bytes = 0;
};

Device& device() {
  static Device* const one = new Device;
  return *one;
}

int context_of_device;
thread_local std::vector<void*> contexts;

bool has_context() { return !contexts.empty() && contexts.back() == &context_of_device; }

// The allocation that holds all of this; its end if none does.
template <class Map>
auto holder(const Map& map, typename Map::key_type address, std::size_t bytes) {
  auto after = map.upper_bound(address);
  if (after == map.begin()) return map.end();
  --after;
  return address - after->first + bytes <= after->second ? after : map.end();
}

std::byte* at(DevicePointer address) {
  return device().memory + (address - reinterpret_cast<std::uintptr_t>(device().addresses));
}

Result may_copy(DevicePointer there, const void* here, std::size_t bytes) {
  if (!has_context()) return kNoContext;
  const bool on_device = holder(device().allocations, there, bytes) != device().allocations.end();
  const auto host = reinterpret_cast<std::uintptr_t>(here);
  const bool is_pinned = holder(device().pinned, host, bytes) != device().pinned.end();
  return on_device && is_pinned ? kOk : kInvalidValue;
}

}  // namespace

extern "C" {

int cuInit(unsigned flags) {
  if (flags != 0) return kInvalidValue;
  const std::lock_guard lock(device().mutex);
  if (device().memory != nullptr) return kOk;
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void* addresses = mmap(nullptr, kMemoryBytes, PROT_NONE, kFlags, -1, 0);
  void* memory = mmap(nullptr, kMemoryBytes, PROT_READ | PROT_WRITE, kFlags, -1, 0);
  if (addresses == MAP_FAILED || memory == MAP_FAILED) return kOutOfMemory;
  device().addresses = static_cast<std::byte*>(addresses);
  device().memory = static_cast<std::byte*>(memory);
  return kOk;
}

int cuDeviceGetCount(int* count) {
  *count = std::getenv("FAKE_CUDA_NO_DEVICE") == nullptr ? 1 : 0;
  return kOk;
}

int cuDeviceGet(int* handle, int ordinal) {
  *handle = 0;
  return ordinal == 0 ? kOk : kNoDevice;
}

int cuDevicePrimaryCtxRetain(void** context, int handle) {
  *context = &context_of_device;
  return handle == 0 ? kOk : kNoDevice;
}

int cuCtxPushCurrent_v2(void* context) {
  contexts.push_back(context);
  return kOk;
}

int cuCtxPopCurrent_v2(void** context) {
  if (contexts.empty()) return kNoContext;
  *context = contexts.back();
  contexts.pop_back();
  return kOk;
}

int cuMemAlloc_v2(DevicePointer* address, std::size_t bytes) {
  const std::lock_guard lock(device().mutex);
  const std::size_t room = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  if (!has_context()) return kNoContext;
  if (bytes == 0 || device().used + room > kMemoryBytes) return kOutOfMemory;
  const int file = memfd_create("device memory", MFD_CLOEXEC);
  void* const memory = device().memory + device().used;
  if (file < 0 || ftruncate(file, static_cast<off_t>(room)) != 0 ||
      mmap(memory, room, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) != memory) {
    return kOutOfMemory;
  }
  *address = reinterpret_cast<std::uintptr_t>(device().addresses + device().used);
  device().files[*address] = file;
  device().used += room;
  device().allocations[*address] = bytes;
  return kOk;
}

int cuMemFree_v2(DevicePointer address) {
  const std::lock_guard lock(device().mutex);
  if (device().allocations.erase(address) != 1) return kInvalidValue;
  close(device().files[address]);
  device().files.erase(address);
  return kOk;
}

int cuMemAllocHost_v2(void** memory, std::size_t bytes) {
  const std::lock_guard lock(device().mutex);
  if (!has_context()) return kNoContext;
  *memory = std::malloc(bytes);
  if (*memory == nullptr) return kOutOfMemory;
  device().pinned[reinterpret_cast<std::uintptr_t>(*memory)] = bytes;
  device().pinned_bytes += bytes;
  device().most_pinned_bytes = std::max(device().most_pinned_bytes, device().pinned_bytes);
  return kOk;
}

int cuMemFreeHost(void* memory) {
  const std::lock_guard lock(device().mutex);
  const auto found = device().pinned.find(reinterpret_cast<std::uintptr_t>(memory));
  if (found == device().pinned.end()) return kInvalidValue;
  device().pinned_bytes -= found->second;
  device().pinned.erase(found);
  std::free(memory);
  return kOk;
}

int cuMemcpyHtoD_v2(DevicePointer to, const void* from, std::size_t bytes) {
  const std::lock_guard lock(device().mutex);
  const Result result = may_copy(to, from, bytes);
  if (result != kOk) return result;
  std::memcpy(at(to), from, bytes);
  device().bytes_to_device += bytes;
  ++device().copies_to_device;
  return kOk;
}

int cuMemcpyDtoH_v2(void* to, DevicePointer from, std::size_t bytes) {
  const std::lock_guard lock(device().mutex);
  const Result result = may_copy(from, to, bytes);
  if (result != kOk) return result;
  std::memcpy(to, at(from), bytes);
  device().bytes_from_device += bytes;
  return kOk;
}

int cuMemcpyDtoD_v2(DevicePointer to, DevicePointer from, std::size_t bytes) {
  const std::lock_guard lock(device().mutex);
  if (!has_context()) return kNoContext;
  const auto end = device().allocations.end();
  if (holder(device().allocations, to, bytes) == end ||
      holder(device().allocations, from, bytes) == end) {
    return kInvalidValue;
  }
  std::memcpy(at(to), at(from), bytes);
  return kOk;
}

int cuCtxSynchronize() { return has_context() ? kOk : kNoContext; }

int cuMemGetAddressRange_v2(DevicePointer* base, std::size_t* bytes, DevicePointer address) {
  const std::lock_guard lock(device().mutex);
  if (!has_context()) return kNoContext;
  const auto found = holder(device().allocations, address, 1);
  if (found == device().allocations.end()) return kInvalidValue;
  *base = found->first;
  *bytes = found->second;
  return kOk;
}

// Of whole pages, from the beginning of an allocation on. FAKE_CUDA_NO_DMABUF: the device has none.
int cuMemGetHandleForAddressRange(void* handle, DevicePointer begin, std::size_t bytes, int type,
                                  unsigned long long flags) {
  constexpr int kDmabuf = 1;
  const std::lock_guard lock(device().mutex);
  if (!has_context()) return kNoContext;
  if (std::getenv("FAKE_CUDA_NO_DMABUF") != nullptr) return kNotSupported;
  const auto found = device().allocations.find(begin);
  const bool whole_pages = begin % kAlignment == 0 && bytes % kAlignment == 0;
  if (found == device().allocations.end() || !whole_pages || type != kDmabuf || flags != 0 ||
      bytes > (found->second + kAlignment - 1) / kAlignment * kAlignment) {
    return kInvalidValue;
  }
  const int file = dup(device().files[begin]);
  std::memcpy(handle, &file, sizeof file);
  return file >= 0 ? kOk : kOutOfMemory;
}

// For tests: the bytes copied so far, and the device's memory as it is behind an address.
void fake_cuda_copied(std::size_t* to_device, std::size_t* from_device) {
  const std::lock_guard lock(device().mutex);
  *to_device = device().bytes_to_device;
  *from_device = device().bytes_from_device;
}
std::size_t fake_cuda_copies_to_device() {
  const std::lock_guard lock(device().mutex);
  return device().copies_to_device;
}
// Bytes of pinned memory now, and the most since the last call.
void fake_cuda_pinned(std::size_t* now, std::size_t* most) {
  const std::lock_guard lock(device().mutex);
  *now = device().pinned_bytes;
  *most = device().most_pinned_bytes;
  device().most_pinned_bytes = device().pinned_bytes;
}
std::byte* fake_cuda_memory(DevicePointer address) { return at(address); }

// The device's context, in which tests allocate.
void* fake_cuda_context() { return &context_of_device; }

}  // extern "C"
