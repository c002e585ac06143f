// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// For tests of objects within one process: a domain on loopback with an AV and a CQ, on which the
// test opens the endpoints that it is about.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "harness.h"

namespace uet::e2e {

// Sets a variable for as long as it lives.
struct Variable {
  Variable(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }
  ~Variable() { ::unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;
  const char* name_;
};

struct SideOptions {
  std::uint64_t capabilities = 0;  // 0: all that the provider gives by default
  int rx_ctx_bits = 0;             // of the AV
  const char* node = "127.0.0.1";  // where it listens
  const char* service = nullptr;
  std::uint32_t version = FI_VERSION(1, 17);
  std::function<void(fi_info&)> hints;
  std::function<void(fi_info&)> info;  // what the application changes before it opens anything
};

// The result of fi_domain; what it opens is closed again.
inline int open_and_close_domain(fi_info& info) {
  fid_fabric* fabric = nullptr;
  check(fi_fabric(info.fabric_attr, &fabric, nullptr), "fi_fabric");
  const Owned<fid_fabric> closes_last(fabric);
  fid_domain* domain = nullptr;
  const int result = fi_domain(fabric, &info, &domain, nullptr);
  if (result == 0) fi_close(&domain->fid);
  return result;
}

// Declared in the order of construction; members close in the opposite order.
class Side {
 public:
  explicit Side(const SideOptions& options = {}) {
    const std::unique_ptr<fi_info, Node::FreeInfo> hints(fi_allocinfo());
    hints->fabric_attr->prov_name = strdup(provider().c_str());
    hints->ep_attr->type = FI_EP_RDM;
    hints->caps = options.capabilities;
    if (options.hints) options.hints(*hints);
    fi_info* found = nullptr;
    check(
        fi_getinfo(options.version, options.node, options.service, FI_SOURCE, hints.get(), &found),
        "fi_getinfo");
    info.reset(found);
    if (options.info) options.info(*info);
    open(fabric, "fi_fabric",
         [&](auto** out) { return fi_fabric(info->fabric_attr, out, nullptr); });
    open(domain, "fi_domain",
         [&](auto** out) { return fi_domain(fabric.get(), info.get(), out, nullptr); });
    fi_av_attr av_attr{};
    av_attr.type = FI_AV_TABLE;
    av_attr.rx_ctx_bits = options.rx_ctx_bits;
    open(av, "fi_av_open",
         [&](auto** out) { return fi_av_open(domain.get(), &av_attr, out, nullptr); });
    cq = open_cq();
  }

  template <class Fid, class Call>
  static void open(Owned<Fid>& out, const char* what, Call call) {
    Fid* object = nullptr;
    check(call(&object), what);
    out.reset(object);
  }

  Owned<fid_cq> open_cq() {
    fi_cq_attr attr{};
    attr.format = FI_CQ_FORMAT_TAGGED;
    Owned<fid_cq> opened;
    open(opened, "fi_cq_open",
         [&](auto** out) { return fi_cq_open(domain.get(), &attr, out, nullptr); });
    return opened;
  }

  // With everything bound and enabled; its context is this object. `flags` are for the CQ.
  Owned<fid_ep> open_endpoint(std::uint64_t flags) {
    Owned<fid_ep> ep;
    open(ep, "fi_endpoint",
         [&](auto** out) { return fi_endpoint(domain.get(), info.get(), out, this); });
    check(fi_ep_bind(ep.get(), &av->fid, 0), "bind AV");
    check(fi_ep_bind(ep.get(), &cq->fid, FI_TRANSMIT | FI_RECV | flags), "bind CQ");
    check(fi_enable(ep.get()), "fi_enable");
    return ep;
  }

  static std::vector<std::byte> name_of(fid_ep& ep) {
    std::vector<std::byte> name(160);
    std::size_t length = name.size();
    check(fi_getname(&ep.fid, name.data(), &length), "fi_getname");
    name.resize(length);
    return name;
  }
  // The other side's endpoint in our AV.
  fi_addr_t insert(fid_ep& ep) {
    fi_addr_t address = FI_ADDR_UNSPEC;
    require(fi_av_insert(av.get(), name_of(ep).data(), 1, &address, 0, nullptr) == 1,
            "fi_av_insert");
    return address;
  }

  // The next entry of the queue, good or bad; nothing if the queue is empty.
  std::optional<Event> poll() { return poll(*cq); }
  static std::optional<Event> poll(fid_cq& queue, fi_addr_t* source = nullptr) {
    fi_cq_tagged_entry entry{};
    const ssize_t result = fi_cq_readfrom(&queue, &entry, 1, source);
    if (result == 1) {
      return Event{entry.op_context, entry.flags, entry.len, entry.data, entry.tag, 0, entry.buf};
    }
    if (result == -FI_EAGAIN) return {};
    require(result == -FI_EAVAIL, "fi_cq_read failed");
    fi_cq_err_entry error{};
    check(fi_cq_readerr(&queue, &error, 0), "fi_cq_readerr");
    return Event{error.op_context, error.flags, error.len, error.data, error.tag, error.err};
  }
  // Waits for the next one while `peer` gets on too.
  Event next(Side& peer) { return next(*cq, peer); }
  static Event next(fid_cq& queue, Side& peer, fi_addr_t* source = nullptr) {
    const Clock::time_point start = Clock::now();
    for (;;) {
      if (const auto event = poll(queue, source)) return *event;
      fi_cq_read(peer.cq.get(), nullptr, 0);
      require(Clock::now() - start < kDeadline, "no completion came");
    }
  }

  std::unique_ptr<fi_info, Node::FreeInfo> info;
  Owned<fid_fabric> fabric;
  Owned<fid_domain> domain;
  Owned<fid_av> av;
  Owned<fid_cq> cq;
};

}  // namespace uet::e2e
