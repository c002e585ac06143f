// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Memory for the packets of a DPDK port.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

struct rte_mempool;

namespace uet::nic {

struct DpdkPoolFree {
  void operator()(rte_mempool* pool) const;
};
using DpdkPool = std::unique_ptr<rte_mempool, DpdkPoolFree>;

// A pool of `count` packets of up to `data_bytes`. nullptr, with rte_errno, for lack of memory.
DpdkPool make_dpdk_pool(const std::string& name, std::uint32_t count, std::uint32_t data_bytes,
                        int socket);

// A pool with one page for each packet and its DPDK metadata; the pages are contiguous.
DpdkPool make_dpdk_page_pool(const std::string& name, std::uint32_t count, int socket);

}  // namespace uet::nic
