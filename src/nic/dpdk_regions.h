// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The application's memory as DPDK external memory: a port sends payload without a copy.
#pragma once

#include <rte_mbuf_core.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>

#include "nic/dpdk_pool.h"
#include "nic/framed/registered_regions.h"

namespace uet::nic {

// Thread-safe: the FEPs of a port share it.
class DpdkRegions {
 public:
  // For a configured port that sends packets of several segments. `by_hardware`: the device itself
  // reads, so that its IOMMU must know the memory; the drivers of virtual devices copy it.
  // nullptr, with rte_errno, for lack of memory.
  static std::unique_ptr<DpdkRegions> open(std::uint16_t port, bool by_hardware, int socket);
  // After the port was closed.
  ~DpdkRegions();
  DpdkRegions(const DpdkRegions&) = delete;
  DpdkRegions& operator=(const DpdkRegions&) = delete;

  // As FrameDevice::register_memory.
  std::uint64_t add(std::span<const std::byte> memory);
  // Whether the driver has packets that refer to the region.
  bool in_use(std::uint64_t id);
  // When none has.
  void remove(std::uint64_t id);
  // A segment that refers to the piece; nullptr if it is not registered, or there is no segment.
  rte_mbuf* refer_to(const Slice& piece);

 private:
  struct Region {
    std::unique_ptr<rte_mbuf_ext_shared_info> users;  // the region itself, and segments
    std::span<std::byte> pages;                       // that the device knows; empty = none
  };

  DpdkRegions(std::uint16_t port, bool by_hardware) : port_(port), by_hardware_(by_hardware) {}
  void unmap(const Region& region);

  std::uint16_t port_;
  bool by_hardware_;
  DpdkPool segments_;
  std::mutex lock_;  // of regions_
  RegisteredRegions<Region> regions_;
};

}  // namespace uet::nic
