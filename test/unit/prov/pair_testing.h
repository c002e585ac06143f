// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Two endpoints of one domain on loopback, for tests that need a message or an RMA operation.
#pragma once

#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include <array>
#include <chrono>

#include "domain_testing.h"

namespace uet::prov {

struct EndpointPair {
  explicit EndpointPair(OpenDomain& domain) : cq(domain.open_cq()) {
    fi_av_attr attr{};
    attr.type = FI_AV_TABLE;
    OpenDomain::open(
        av, [&](auto** out) { return fi_av_open(domain.domain.get(), &attr, out, nullptr); });
    initiator = open_endpoint(domain);
    target = open_endpoint(domain);
    std::array<std::byte, 160> name{};
    std::size_t length = name.size();
    EXPECT_EQ(fi_getname(&target->fid, name.data(), &length), 0);
    EXPECT_EQ(fi_av_insert(av.get(), name.data(), 1, &to, 0, nullptr), 1);
  }
  // The error of the next completion: 0 for success, FI_ETIMEDOUT if none comes within 20 seconds.
  int next_error() const {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (std::chrono::steady_clock::now() < end) {
      fi_cq_tagged_entry entry{};
      const ssize_t result = fi_cq_read(cq.get(), &entry, 1);
      if (result == 1) return 0;
      if (result == -FI_EAGAIN) continue;
      fi_cq_err_entry error{};
      EXPECT_EQ(fi_cq_readerr(cq.get(), &error, 0), 1);
      return error.err;
    }
    return FI_ETIMEDOUT;
  }

  Owned<fid_av> av;
  Owned<fid_cq> cq;
  Owned<fid_ep> initiator, target;
  fi_addr_t to = FI_ADDR_UNSPEC;

 private:
  Owned<fid_ep> open_endpoint(OpenDomain& domain) const {
    Owned<fid_ep> ep = domain.open_endpoint();
    EXPECT_EQ(fi_ep_bind(ep.get(), &av->fid, 0), 0);
    EXPECT_EQ(fi_ep_bind(ep.get(), &cq->fid, FI_TRANSMIT | FI_RECV), 0);
    EXPECT_EQ(fi_enable(ep.get()), 0);
    return ep;
  }
};

}  // namespace uet::prov
