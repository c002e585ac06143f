// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The few functions of CUDA's driver API that move bytes, declared by what its manual says of them:
// devices are ordinals, addresses of device memory numbers, and every call returns 0 or an error.
#include "hmem/cuda.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "provider.h"

namespace uet::prov {

struct CudaFunctions {
  using DevicePointer = unsigned long long;

  int (*init)(unsigned flags);
  int (*device_get_count)(int* count);
  int (*device_get)(int* device, int ordinal);
  int (*primary_context_retain)(void** context, int device);
  int (*context_push)(void* context);
  int (*context_pop)(void** context);
  int (*host_allocate)(void** memory, std::size_t bytes);
  int (*host_free)(void* memory);
  int (*copy_to_device)(DevicePointer to, const void* from, std::size_t bytes);
  int (*copy_from_device)(void* to, DevicePointer from, std::size_t bytes);
  int (*address_range)(DevicePointer* base, std::size_t* bytes, DevicePointer address);
  // Of CUDA 11.7; nullptr: an older driver.
  int (*handle_of_range)(void* handle, DevicePointer begin, std::size_t bytes, int type,
                         unsigned long long flags);
};

namespace {

constexpr std::size_t kBounceBytes = 65536;
constexpr int kHandleIsDmabuf = 1;  // CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD

CudaFunctions::DevicePointer number_of(const void* there) {
  return reinterpret_cast<std::uintptr_t>(there);
}

template <class Function>
bool find_symbol(void* library, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(dlsym(library, name));
  if (function == nullptr) {
    FI_WARN(&provider, FI_LOG_CORE, "libcuda.so.1 has no %s: no FI_HMEM_CUDA\n", name);
  }
  return function != nullptr;
}

bool find_all(void* library, CudaFunctions& functions) {
  return find_symbol(library, "cuInit", functions.init) &&
         find_symbol(library, "cuDeviceGetCount", functions.device_get_count) &&
         find_symbol(library, "cuDeviceGet", functions.device_get) &&
         find_symbol(library, "cuDevicePrimaryCtxRetain", functions.primary_context_retain) &&
         find_symbol(library, "cuCtxPushCurrent_v2", functions.context_push) &&
         find_symbol(library, "cuCtxPopCurrent_v2", functions.context_pop) &&
         find_symbol(library, "cuMemAllocHost_v2", functions.host_allocate) &&
         find_symbol(library, "cuMemFreeHost", functions.host_free) &&
         find_symbol(library, "cuMemcpyHtoD_v2", functions.copy_to_device) &&
         find_symbol(library, "cuMemcpyDtoH_v2", functions.copy_from_device) &&
         find_symbol(library, "cuMemGetAddressRange_v2", functions.address_range);
}

std::unique_ptr<Cuda> load() {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    FI_INFO(&provider, FI_LOG_CORE, "no CUDA: %s\n", dlerror());
    return nullptr;
  }
  auto functions = std::make_unique<CudaFunctions>();
  if (!find_all(library, *functions)) return nullptr;
  functions->handle_of_range = reinterpret_cast<decltype(functions->handle_of_range)>(
      dlsym(library, "cuMemGetHandleForAddressRange"));
  int devices = 0;
  if (functions->init(0) != 0 || functions->device_get_count(&devices) != 0 || devices <= 0) {
    FI_INFO(&provider, FI_LOG_CORE, "no CUDA: the driver finds no device\n");
    return nullptr;
  }
  return std::make_unique<Cuda>(std::move(functions), devices);
}

}  // namespace

CudaMemory::CudaMemory(const CudaFunctions& functions, void* context)
    : functions_(functions), context_(context) {}

// The driver's error; the thread's own current context stays as it was.
template <class Call>
int CudaMemory::in_context(Call call) noexcept {
  int result = functions_.context_push(context_);
  if (result != 0) return result;
  result = call();
  void* popped = nullptr;
  functions_.context_pop(&popped);
  return result;
}

// The only report of the failure. The address was valid at registration: the device has failed, or
// the application has freed memory that it still uses.
void CudaMemory::warn(const char* what, int result) noexcept {
  FI_WARN(&provider, FI_LOG_MR, "CUDA: %s failed with error %d; the data are lost\n", what, result);
}

// Calls copy(offset, count) for each part of `bytes` that the bounce buffer takes.
template <class Copy>
int CudaMemory::by_parts(std::size_t bytes, Copy copy) noexcept {
  const std::lock_guard lock(mutex_);
  return in_context([&] {
    void* fresh = nullptr;
    if (bounce_ == nullptr) {
      if (const int error = functions_.host_allocate(&fresh, kBounceBytes); error != 0)
        return error;
      bounce_ = static_cast<std::byte*>(fresh);
    }
    for (std::size_t done = 0; done < bytes;) {
      const std::size_t count = std::min(bytes - done, kBounceBytes);
      if (const int error = copy(done, count); error != 0) return error;
      done += count;
    }
    return 0;
  });
}

void CudaMemory::place(std::byte* there, std::span<const std::byte> bytes) noexcept {
  const int result = by_parts(bytes.size(), [&](std::size_t done, std::size_t count) {
    std::memcpy(bounce_, bytes.data() + done, count);
    return functions_.copy_to_device(number_of(there + done), bounce_, count);
  });
  if (result != 0) warn("a copy to the device", result);
}

void CudaMemory::fetch(std::span<std::byte> bytes, const std::byte* there) noexcept {
  const int result = by_parts(bytes.size(), [&](std::size_t done, std::size_t count) {
    const int error = functions_.copy_from_device(bounce_, number_of(there + done), count);
    std::memcpy(bytes.data() + done, bounce_, count);
    return error;
  });
  if (result != 0) warn("a copy from the device", result);
}

bool CudaMemory::holds(const void* address, std::size_t bytes) noexcept {
  CudaFunctions::DevicePointer base = 0;
  std::size_t length = 0;
  const auto start = number_of(address);
  if (in_context([&] { return functions_.address_range(&base, &length, start); }) != 0) {
    return false;
  }
  return start >= base && start - base <= length && bytes <= length - (start - base);
}

// The driver asks for whole pages.
int CudaMemory::export_dmabuf(const void* address, std::uint64_t& offset) noexcept {
  if (functions_.handle_of_range == nullptr) return -1;
  const auto page = static_cast<CudaFunctions::DevicePointer>(sysconf(_SC_PAGESIZE));
  int fd = -1;
  const int result = in_context([&] {
    CudaFunctions::DevicePointer base = 0;
    std::size_t length = 0;
    const int error = functions_.address_range(&base, &length, number_of(address));
    if (error != 0) return error;
    const auto begin = base / page * page;
    const auto end = (base + length + page - 1) / page * page;
    offset = number_of(address) - begin;
    return functions_.handle_of_range(&fd, begin, end - begin, kHandleIsDmabuf, 0);
  });
  return result == 0 ? fd : -1;
}

std::byte* CudaMemory::take(std::size_t bytes) noexcept {
  void* fresh = nullptr;
  const int result = in_context([&] { return functions_.host_allocate(&fresh, bytes); });
  return result == 0 ? static_cast<std::byte*>(fresh) : nullptr;
}

void CudaMemory::give_back(std::byte* memory, std::size_t) noexcept {
  in_context([&] { return functions_.host_free(memory); });
}

void CudaMemory::fetch_staged(std::span<std::byte> bytes, const std::byte* there) noexcept {
  const int result = in_context(
      [&] { return functions_.copy_from_device(bytes.data(), number_of(there), bytes.size()); });
  if (result != 0) warn("a copy from the device", result);
}

void CudaMemory::place_staged(std::byte* there, std::span<const std::byte> bytes) noexcept {
  const int result = in_context(
      [&] { return functions_.copy_to_device(number_of(there), bytes.data(), bytes.size()); });
  if (result != 0) warn("a copy to the device", result);
}

Cuda::Cuda(std::unique_ptr<CudaFunctions> functions, int devices)
    : functions_(std::move(functions)), memories_(static_cast<std::size_t>(devices)) {}

Cuda::~Cuda() = default;

// Never destroyed: objects may be closed when the process ends.
Cuda* Cuda::driver() noexcept {
  static Cuda* const kDriver = [] {
    Cuda* loaded = nullptr;
    guarded([&] {
      loaded = load().release();
      return 0;
    });
    return loaded;
  }();
  return kDriver;
}

CudaMemory* Cuda::memory_of(int device) noexcept {
  if (device < 0 || static_cast<std::size_t>(device) >= memories_.size()) return nullptr;
  const std::lock_guard lock(mutex_);
  auto& memory = memories_[static_cast<std::size_t>(device)];
  if (memory == nullptr) {
    int handle = 0;
    void* context = nullptr;
    if (functions_->device_get(&handle, device) != 0 ||
        functions_->primary_context_retain(&context, handle) != 0) {
      return nullptr;
    }
    guarded([&] {
      memory = std::make_unique<CudaMemory>(*functions_, context);
      return 0;
    });
  }
  return memory.get();
}

}  // namespace uet::prov
