// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// fake_cuda as a test uses it. UET_FAKE_CUDA: the file of the library.
#pragma once

#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "../harness.h"

namespace uet::e2e {

// The driver library as an application uses it.
class Driver {
 public:
  static Driver& get() {
    static Driver driver;
    return driver;
  }
  std::byte* allocate(std::size_t bytes) {
    unsigned long long address = 0;
    require(push_(context_()) == 0 && alloc_(&address, bytes) == 0, "cuMemAlloc");
    void* popped = nullptr;
    pop_(&popped);
    return reinterpret_cast<std::byte*>(address);
  }
  void free(std::byte* memory) { free_(reinterpret_cast<std::uintptr_t>(memory)); }
  // The bytes behind an address of the device.
  std::span<std::byte> behind(std::byte* memory, std::size_t bytes) {
    return {memory_(reinterpret_cast<std::uintptr_t>(memory)), bytes};
  }
  struct Copied {
    std::size_t to_device;
    std::size_t from_device;
  };
  Copied copied() {
    Copied all{};
    copied_(&all.to_device, &all.from_device);
    return all;
  }
  std::size_t copies_to_device() { return copies_to_device_(); }
  // Bytes of pinned memory now, and the most since the last call.
  struct Pinned {
    std::size_t now;
    std::size_t most;
  };
  Pinned pinned() {
    Pinned both{};
    pinned_(&both.now, &both.most);
    return both;
  }

 private:
  Driver() {
    void* library = dlopen(UET_FAKE_CUDA, RTLD_NOW);
    require(library != nullptr, "cannot load " UET_FAKE_CUDA);
    find(library, "fake_cuda_memory", memory_);
    find(library, "fake_cuda_copied", copied_);
    find(library, "fake_cuda_pinned", pinned_);
    find(library, "fake_cuda_copies_to_device", copies_to_device_);
    find(library, "fake_cuda_context", context_);
    find(library, "cuCtxPushCurrent_v2", push_);
    find(library, "cuCtxPopCurrent_v2", pop_);
    find(library, "cuMemAlloc_v2", alloc_);
    find(library, "cuMemFree_v2", free_);
    int (*init)(unsigned) = nullptr;
    find(library, "cuInit", init);
    require(init(0) == 0, "cuInit");
  }
  template <class Function>
  static void find(void* library, const char* name, Function*& function) {
    function = reinterpret_cast<Function*>(dlsym(library, name));
    require(function != nullptr, std::string("libcuda.so.1 is not fake_cuda: no ") + name);
  }
  std::byte* (*memory_)(unsigned long long) = nullptr;
  void (*copied_)(std::size_t*, std::size_t*) = nullptr;
  void (*pinned_)(std::size_t*, std::size_t*) = nullptr;
  std::size_t (*copies_to_device_)() = nullptr;
  void* (*context_)() = nullptr;
  int (*push_)(void*) = nullptr;
  int (*pop_)(void**) = nullptr;
  int (*alloc_)(unsigned long long*, std::size_t) = nullptr;
  int (*free_)(unsigned long long) = nullptr;
};

}  // namespace uet::e2e
