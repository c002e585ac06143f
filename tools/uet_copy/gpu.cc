// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "gpu.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "crc32c.h"
#include "failure.h"

namespace uet::copy {
namespace {

constexpr std::size_t kBufferBytes = 1 << 20;
constexpr int kOutOfMemory = 2;

using DevicePointer = unsigned long long;

DevicePointer number_of(const std::byte* there) { return reinterpret_cast<std::uintptr_t>(there); }

template <class Function>
void find(void* library, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(dlsym(library, name));
  if (function == nullptr) {
    throw Failure(Status::Failed, std::string("--gpu: libcuda.so.1 has no ") + name);
  }
}

}  // namespace

// As the manual of the driver API declares them; each returns 0 or an error.
struct Gpu::Functions {
  int (*init)(unsigned flags);
  int (*device_get)(int* device, int ordinal);
  int (*context_retain)(void** context, int device);
  int (*context_push)(void* context);
  int (*context_pop)(void** context);
  int (*synchronize)();
  int (*allocate)(DevicePointer* memory, std::size_t bytes);
  int (*free)(DevicePointer memory);
  int (*host_allocate)(void** memory, std::size_t bytes);
  int (*host_free)(void* memory);
  int (*to_device)(DevicePointer to, const void* from, std::size_t bytes);
  int (*from_device)(void* to, DevicePointer from, std::size_t bytes);
  int (*within_device)(DevicePointer to, DevicePointer from, std::size_t bytes);
};

template <class Call>
void Gpu::in_context(const char* what, Call call) {
  int result = functions_->context_push(context_);
  if (result == 0) {
    result = call();
    void* popped = nullptr;
    functions_->context_pop(&popped);
  }
  if (result == 0) return;
  const Status status = result == kOutOfMemory ? Status::NoSpace : Status::Failed;
  throw Failure(status, std::string(what) + " CUDA device " + std::to_string(device_) +
                            ": CUDA error " + std::to_string(result));
}

Gpu::Gpu(int device) : device_(device), functions_(std::make_unique<Functions>()) {
  void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    throw Failure(Status::Failed, std::string("--gpu: no CUDA driver: ") + dlerror());
  }
  find(library, "cuInit", functions_->init);
  find(library, "cuDeviceGet", functions_->device_get);
  find(library, "cuDevicePrimaryCtxRetain", functions_->context_retain);
  find(library, "cuCtxPushCurrent_v2", functions_->context_push);
  find(library, "cuCtxPopCurrent_v2", functions_->context_pop);
  find(library, "cuCtxSynchronize", functions_->synchronize);
  find(library, "cuMemAlloc_v2", functions_->allocate);
  find(library, "cuMemFree_v2", functions_->free);
  find(library, "cuMemAllocHost_v2", functions_->host_allocate);
  find(library, "cuMemFreeHost", functions_->host_free);
  find(library, "cuMemcpyHtoD_v2", functions_->to_device);
  find(library, "cuMemcpyDtoH_v2", functions_->from_device);
  find(library, "cuMemcpyDtoD_v2", functions_->within_device);
  int handle = 0;
  if (functions_->init(0) != 0 || functions_->device_get(&handle, device) != 0 ||
      functions_->context_retain(&context_, handle) != 0) {
    throw Failure(Status::Failed, "--gpu: there is no CUDA device " + std::to_string(device));
  }
  void* buffer = nullptr;
  in_context("pinned memory of", [&] { return functions_->host_allocate(&buffer, kBufferBytes); });
  buffer_ = static_cast<std::byte*>(buffer);
}

Gpu::~Gpu() {
  void* popped = nullptr;
  if (functions_->context_push(context_) != 0) return;
  functions_->host_free(buffer_);
  functions_->context_pop(&popped);
}

std::byte* Gpu::allocate(std::size_t bytes) {
  DevicePointer memory = 0;
  const std::string what = std::to_string(bytes) + " bytes of";
  in_context(what.c_str(), [&] { return functions_->allocate(&memory, bytes); });
  return reinterpret_cast<std::byte*>(memory);  // NOLINT(performance-no-int-to-ptr)
}

void Gpu::free(std::byte* memory) noexcept {
  void* popped = nullptr;
  if (functions_->context_push(context_) != 0) return;
  functions_->free(number_of(memory));
  functions_->context_pop(&popped);
}

void Gpu::put(std::byte* there, std::span<const std::byte> bytes) {
  const std::lock_guard lock(mutex_);
  while (!bytes.empty()) {
    const std::size_t part = std::min(bytes.size(), kBufferBytes);
    std::memcpy(buffer_, bytes.data(), part);
    in_context("a copy to", [&] { return functions_->to_device(number_of(there), buffer_, part); });
    there += part;
    bytes = bytes.subspan(part);
  }
}

void Gpu::get(std::span<std::byte> bytes, const std::byte* there) {
  const std::lock_guard lock(mutex_);
  while (!bytes.empty()) {
    const std::size_t part = std::min(bytes.size(), kBufferBytes);
    in_context("a copy from",
               [&] { return functions_->from_device(buffer_, number_of(there), part); });
    std::memcpy(bytes.data(), buffer_, part);
    there += part;
    bytes = bytes.subspan(part);
  }
}

// Has ended when it returns: a NIC may read the copy next.
void Gpu::copy(std::byte* to, const std::byte* from, std::size_t bytes) {
  in_context("a copy within", [&] {
    const int error = functions_->within_device(number_of(to), number_of(from), bytes);
    return error != 0 ? error : functions_->synchronize();
  });
}

std::uint32_t Gpu::crc32c(const std::byte* there, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  std::uint32_t sum = 0;
  for (std::size_t done = 0; done < bytes;) {
    const std::size_t part = std::min(bytes - done, kBufferBytes);
    in_context("a copy from",
               [&] { return functions_->from_device(buffer_, number_of(there + done), part); });
    sum = copy::crc32c({buffer_, part}, sum);
    done += part;
  }
  return sum;
}

}  // namespace uet::copy
