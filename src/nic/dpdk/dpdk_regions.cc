// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// DPDK counts the segments that refer to external memory, so that a region is free when its count
// is back at one, which is ours.
#define ALLOW_EXPERIMENTAL_API  // rte_dev_dma_map
#include "nic/dpdk_regions.h"

#include <rte_dev.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <unistd.h>

namespace uet::nic {
namespace {

constexpr std::uint32_t kSegments = 2048;

void on_last_user(void*, void*) {}

rte_device* device_of(std::uint16_t port) {
  rte_eth_dev_info info{};
  return rte_eth_dev_info_get(port, &info) == 0 ? info.device : nullptr;
}

}  // namespace

std::unique_ptr<DpdkRegions> DpdkRegions::open(std::uint16_t port, bool by_hardware, int socket) {
  std::unique_ptr<DpdkRegions> regions(new DpdkRegions(port, by_hardware));
  regions->segments_ = make_dpdk_pool("uet_ext" + std::to_string(port), kSegments, 0, socket);
  return regions->segments_ != nullptr ? std::move(regions) : nullptr;
}

DpdkRegions::~DpdkRegions() {
  regions_.for_each([this](const Region& region) { unmap(region); });
}

std::uint64_t DpdkRegions::add(std::span<const std::byte> memory) {
  auto users = std::make_unique<rte_mbuf_ext_shared_info>();
  users->free_cb = on_last_user;
  users->fcb_opaque = nullptr;
  rte_mbuf_ext_refcnt_set(users.get(), 1);
  std::span<std::byte> pages;
  if (by_hardware_) {
    const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    const auto begin = reinterpret_cast<std::uintptr_t>(memory.data()) & ~(page - 1);
    const auto end =
        (reinterpret_cast<std::uintptr_t>(memory.data()) + memory.size() + page - 1) & ~(page - 1);
    auto* const at = reinterpret_cast<std::byte*>(begin);  // NOLINT(performance-no-int-to-ptr)
    // Without an IOMMU the addresses of the device are physical, and pages may move.
    if (rte_eal_iova_mode() != RTE_IOVA_VA) return 0;
    if (rte_extmem_register(at, end - begin, nullptr, 0, page) != 0) return 0;
    if (rte_dev_dma_map(device_of(port_), at, begin, end - begin) != 0) {
      rte_extmem_unregister(at, end - begin);
      return 0;
    }
    pages = {at, end - begin};
  }
  const std::lock_guard guard(lock_);
  return regions_.add(memory, {std::move(users), pages});
}

void DpdkRegions::unmap(const Region& region) {
  if (region.pages.empty()) return;
  const auto begin = reinterpret_cast<std::uintptr_t>(region.pages.data());
  if (rte_device* const device = device_of(port_); device != nullptr) {
    rte_dev_dma_unmap(device, region.pages.data(), begin, region.pages.size());
  }
  rte_extmem_unregister(region.pages.data(), region.pages.size());
}

bool DpdkRegions::in_use(std::uint64_t id) {
  const std::lock_guard guard(lock_);
  const Region* const region = regions_.get(id);
  return region != nullptr && rte_mbuf_ext_refcnt_read(region->users.get()) > 1;
}

void DpdkRegions::remove(std::uint64_t id) {
  const std::lock_guard guard(lock_);
  const Region* const region = regions_.get(id);
  if (region == nullptr) return;
  unmap(*region);
  regions_.remove(id);
}

rte_mbuf* DpdkRegions::refer_to(const Slice& piece) {
  const std::lock_guard guard(lock_);
  Region* const region = regions_.find(piece);
  if (region == nullptr) return nullptr;
  rte_mbuf* const segment = rte_pktmbuf_alloc(segments_.get());
  if (segment == nullptr) return nullptr;
  rte_mbuf_ext_refcnt_update(region->users.get(), 1);
  const auto length = static_cast<std::uint16_t>(piece.length);
  auto* const at = const_cast<std::byte*>(piece.data);  // it is only read
  const rte_iova_t address = by_hardware_ ? reinterpret_cast<std::uintptr_t>(at) : RTE_BAD_IOVA;
  rte_pktmbuf_attach_extbuf(segment, at, address, length, region->users.get());
  segment->data_len = length;
  segment->pkt_len = length;
  return segment;
}

}  // namespace uet::nic
