// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "hmem/devices.h"

#include "hmem/cuda.h"
#include "hmem/level_zero.h"
#include "hmem/rocr.h"
#include "provider.h"

namespace uet::prov {
namespace {

template <class Memory>
DeviceMemory* if_it_holds(Memory* memory, const void* address, std::size_t bytes,
                          const char*& why) noexcept {
  if (memory == nullptr) {
    why = "fi_mr_regattr: there is no such device";
    return nullptr;
  }
  if (bytes != 0 && !memory->holds(address, bytes)) {
    why = "fi_mr_regattr: this is not memory of a device of that interface";
    return nullptr;
  }
  return memory;
}

}  // namespace

bool has_device_driver(fi_hmem_iface iface) noexcept {
  switch (iface) {
    case FI_HMEM_CUDA:
      return Cuda::driver() != nullptr;
    case FI_HMEM_ROCR:
      return rocr_memory() != nullptr;
    case FI_HMEM_ZE:
      return has_level_zero();
    default:
      return false;
  }
}

bool has_any_device_driver() noexcept {
  return has_device_driver(FI_HMEM_CUDA) || has_device_driver(FI_HMEM_ROCR) ||
         has_device_driver(FI_HMEM_ZE);
}

DeviceMemory* memory_of_device(const fi_mr_attr& attr, const void* address, std::size_t bytes,
                               const char*& why) noexcept {
  switch (attr.iface) {
    case FI_HMEM_CUDA:
      return if_it_holds(Cuda::driver()->memory_of(attr.device.cuda), address, bytes, why);
    case FI_HMEM_ROCR:
      return if_it_holds(rocr_memory(), address, bytes, why);
    default:
      return if_it_holds(level_zero_memory(attr.device.ze), address, bytes, why);
  }
}

// The variable is libfabric's own.
bool may_read_devices(const nic::Nic& nic) noexcept {
  int forbidden = 0;
  const bool set = fi_param_get_bool(nullptr, "hmem_disable_p2p", &forbidden) == 0;
  return nic.reads_device_memory() && !(set && forbidden != 0);
}

int export_dmabuf(const fi_mr_attr& attr, const void* address, std::uint64_t& offset) noexcept {
  if (attr.iface != FI_HMEM_CUDA) return -1;
  return Cuda::driver()->memory_of(attr.device.cuda)->export_dmabuf(address, offset);
}

}  // namespace uet::prov
