// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A domain on loopback, opened by the provider's own functions, for the tests of its objects.
#pragma once

#include <gtest/gtest.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>

#include <memory>

#include "objects/cntr.h"
#include "objects/cq.h"
#include "objects/domain.h"
#include "objects/endpoint_fid.h"
#include "provider.h"

extern "C" fi_provider* fi_prov_ini() noexcept;

namespace uet::prov {

struct CloseFid {
  template <class T>
  void operator()(T* object) const {
    EXPECT_EQ(fi_close(&object->fid), 0);
  }
};
template <class T>
using Owned = std::unique_ptr<T, CloseFid>;

struct OpenDomain {
  explicit OpenDomain(std::uint32_t version = FI_VERSION(1, 17)) {
    const std::unique_ptr<fi_info, void (*)(fi_info*)> hints(fi_allocinfo(), fi_freeinfo);
    hints->ep_attr->type = FI_EP_RDM;
    fi_info* found = nullptr;
    fi_provider* const opened = fi_prov_ini();
    EXPECT_EQ(opened->getinfo(version, "127.0.0.1", nullptr, FI_SOURCE, hints.get(), &found), 0);
    info.reset(found);
    open(fabric, [&](auto** out) { return opened->fabric(info->fabric_attr, out, nullptr); });
    open(domain, [&](auto** out) { return fi_domain(fabric.get(), info.get(), out, nullptr); });
  }
  template <class T, class Call>
  static void open(Owned<T>& out, Call call) {
    T* object = nullptr;
    EXPECT_EQ(call(&object), 0);
    out.reset(object);
  }
  Owned<fid_cq> open_cq() {
    fi_cq_attr attr{};
    attr.format = FI_CQ_FORMAT_TAGGED;
    Owned<fid_cq> cq;
    open(cq, [&](auto** out) { return fi_cq_open(domain.get(), &attr, out, nullptr); });
    return cq;
  }
  Owned<fid_cntr> open_counter() {
    fi_cntr_attr attr{};
    Owned<fid_cntr> counter;
    open(counter, [&](auto** out) { return fi_cntr_open(domain.get(), &attr, out, nullptr); });
    return counter;
  }
  Owned<fid_ep> open_endpoint() {
    Owned<fid_ep> ep;
    open(ep, [&](auto** out) { return fi_endpoint(domain.get(), info.get(), out, nullptr); });
    return ep;
  }
  Engine& engine() { return Domain::from(domain.get()).engine(); }

  struct FreeInfo {
    void operator()(fi_info* list) const { fi_freeinfo(list); }
  };
  std::unique_ptr<fi_info, FreeInfo> info;
  Owned<fid_fabric> fabric;
  Owned<fid_domain> domain;
};

}  // namespace uet::prov
