// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Without caches: a thread that DPDK does not know has none, and bulk calls need none.
#include "nic/dpdk_pool.h"

#include <rte_errno.h>
#include <rte_mbuf.h>
#include <rte_mbuf_pool_ops.h>
#include <rte_mempool.h>
#include <sys/mman.h>

#include <cerrno>
#include <string_view>

namespace uet::nic {
namespace {

constexpr std::uint32_t kPageBytes = 4096;

// Last in, first out, so that the packets used most recently, which the caches still hold, come
// first; DPDK's usual order goes through all of them, tens of megabytes. Some NICs want their own.
const char* order_of_pool() {
  const std::string_view best = rte_mbuf_best_mempool_ops();
  return best == RTE_MBUF_DEFAULT_MEMPOOL_OPS ? "stack" : best.data();
}

void unmap(rte_mempool_memhdr* memory, void*) { ::munmap(memory->addr, memory->len); }

// A pool whose objects take a page each, without memory yet.
DpdkPool make_empty(const std::string& name, std::uint32_t count, int socket) {
  constexpr unsigned kFlags = RTE_MEMPOOL_F_NO_SPREAD;
  rte_mempool_objsz sizes;
  rte_mempool_calc_obj_size(RTE_CACHE_LINE_SIZE, kFlags, &sizes);
  const std::uint32_t object_bytes = kPageBytes - sizes.header_size - sizes.trailer_size;
  DpdkPool pool(rte_mempool_create_empty(name.c_str(), count, object_bytes, 0,
                                         sizeof(rte_pktmbuf_pool_private), socket, kFlags));
  if (pool == nullptr) return pool;
  rte_pktmbuf_pool_private room{};
  room.mbuf_data_room_size = static_cast<std::uint16_t>(object_bytes - sizeof(rte_mbuf));
  if (const int error =
          rte_mempool_set_ops_byname(pool.get(), rte_mbuf_best_mempool_ops(), nullptr);
      error != 0) {
    rte_errno = -error;
    return nullptr;
  }
  rte_pktmbuf_pool_init(pool.get(), &room);
  return pool;
}

}  // namespace

void DpdkPoolFree::operator()(rte_mempool* pool) const { rte_mempool_free(pool); }

DpdkPool make_dpdk_pool(const std::string& name, std::uint32_t count, std::uint32_t data_bytes,
                        int socket) {
  const auto room = static_cast<std::uint16_t>(data_bytes + RTE_PKTMBUF_HEADROOM);
  rte_mempool* pool =
      rte_pktmbuf_pool_create_by_ops(name.c_str(), count, 0, 0, room, socket, order_of_pool());
  if (pool == nullptr && rte_errno == EINVAL) {  // that handler is not installed
    pool = rte_pktmbuf_pool_create(name.c_str(), count, 0, 0, room, socket);
  }
  return DpdkPool(pool);
}

DpdkPool make_dpdk_page_pool(const std::string& name, std::uint32_t count, int socket) {
  DpdkPool pool = make_empty(name, count, socket);
  if (pool == nullptr) return pool;
  const std::size_t bytes = std::size_t{count} * kPageBytes;
  void* const memory =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    rte_errno = ENOMEM;
    return nullptr;
  }
  const int added = rte_mempool_populate_iova(pool.get(), static_cast<char*>(memory), RTE_BAD_IOVA,
                                              bytes, unmap, nullptr);
  if (added != static_cast<int>(count)) {
    if (added <= 0) ::munmap(memory, bytes);
    rte_errno = ENOMEM;
    return nullptr;
  }
  rte_mempool_obj_iter(pool.get(), rte_pktmbuf_init, nullptr);
  return pool;
}

}  // namespace uet::nic
