// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// For tests of FI_EP_MSG: a listener and a side that connects in one process, whose queues are read
// in turn.
#pragma once

#include <rdma/fi_atomic.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "harness.h"

namespace uet::e2e {

using Info = std::unique_ptr<fi_info, Node::FreeInfo>;

inline std::string in_child(std::function<void()> body) {
  Process child("child", {}, std::move(body));
  return child.wait();
}

inline Info msg_hints() {
  Info hints(fi_allocinfo());
  hints->fabric_attr->prov_name = strdup(provider().c_str());
  hints->ep_attr->type = FI_EP_MSG;
  hints->caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC;
  hints->addr_format = FI_SOCKADDR_IN;
  return hints;
}

inline Info get_info(const char* node, const char* service, std::uint64_t flags,
                     const fi_info* hints) {
  fi_info* found = nullptr;
  check(fi_getinfo(FI_VERSION(1, 17), node, service, flags, hints, &found), "fi_getinfo");
  return Info(found);
}

template <class Fid, class Call>
void open(Owned<Fid>& out, const char* what, Call call) {
  Fid* object = nullptr;
  check(call(&object), what);
  out.reset(object);
}

inline Owned<fid_eq> open_eq(fid_fabric& fabric) {
  fi_eq_attr attr{};
  attr.wait_obj = FI_WAIT_FD;
  Owned<fid_eq> eq;
  open(eq, "fi_eq_open", [&](auto** out) { return fi_eq_open(&fabric, &attr, out, nullptr); });
  return eq;
}

// An event of an EQ, good or bad.
struct CmEvent {
  std::uint32_t number = 0;  // 0: an error
  fid_t fid = nullptr;
  Info info;
  int error = 0;
  int prov_errno = 0;
  std::string data;
};

inline std::optional<CmEvent> poll_eq(fid_eq& eq) {
  alignas(fi_eq_cm_entry) std::array<std::byte, 1024> buffer{};
  CmEvent event;
  const ssize_t result = fi_eq_read(&eq, &event.number, buffer.data(), buffer.size(), 0);
  if (result == -FI_EAGAIN) return {};
  if (result == -FI_EAVAIL) {
    std::array<char, 1024> error_data{};
    fi_eq_err_entry error{};
    error.err_data = error_data.data();
    error.err_data_size = error_data.size();
    check(fi_eq_readerr(&eq, &error, 0), "fi_eq_readerr");
    event.number = 0;
    event.fid = error.fid;
    event.error = error.err;
    event.prov_errno = error.prov_errno;
    event.data.assign(error_data.data(), error.err_data_size);
    return event;
  }
  check(result, "fi_eq_read");
  fi_eq_cm_entry head{};
  const std::size_t offset = offsetof(fi_eq_cm_entry, data);
  require(static_cast<std::size_t>(result) >= offset, "an event is too short");
  std::memcpy(&head, buffer.data(), offset);
  event.fid = head.fid;
  event.info.reset(head.info);
  event.data.assign(reinterpret_cast<const char*>(buffer.data()) + offset,
                    static_cast<std::size_t>(result) - offset);
  return event;
}

// One domain's objects, and an endpoint.
struct CmSide {
  Info info;
  Owned<fid_fabric> fabric;
  Owned<fid_eq> eq;
  Owned<fid_domain> domain;
  Owned<fid_cq> cq;
  Owned<fid_pep> pep;
  Owned<fid_ep> ep;

  void open_domain() {
    open(domain, "fi_domain",
         [&](auto** out) { return fi_domain(fabric.get(), info.get(), out, nullptr); });
    fi_cq_attr attr{};
    attr.format = FI_CQ_FORMAT_TAGGED;
    open(cq, "fi_cq_open",
         [&](auto** out) { return fi_cq_open(domain.get(), &attr, out, nullptr); });
  }
  Owned<fid_ep> open_endpoint(fi_info& with) {
    Owned<fid_ep> opened;
    open(opened, "fi_endpoint",
         [&](auto** out) { return fi_endpoint(domain.get(), &with, out, this); });
    check(fi_ep_bind(opened.get(), &eq->fid, 0), "bind EQ");
    check(fi_ep_bind(opened.get(), &cq->fid, FI_TRANSMIT | FI_RECV), "bind CQ");
    check(fi_enable(opened.get()), "fi_enable");
    return opened;
  }
};

// A listener, whose domain accepts, and a side that connects.
class Pair {
 public:
  explicit Pair(int backlog = 0) {
    const Info hints = msg_hints();
    server.info = get_info("127.0.0.1", nullptr, FI_SOURCE, hints.get());
    require(server.info->ep_attr->type == FI_EP_MSG, "not FI_EP_MSG");
    open(server.fabric, "fi_fabric",
         [&](auto** out) { return fi_fabric(server.info->fabric_attr, out, nullptr); });
    server.eq = open_eq(*server.fabric);
    open(server.pep, "fi_passive_ep", [&](auto** out) {
      return fi_passive_ep(server.fabric.get(), server.info.get(), out, nullptr);
    });
    check(fi_pep_bind(server.pep.get(), &server.eq->fid, 0), "fi_pep_bind");
    if (backlog != 0) {
      check(fi_control(&server.pep->fid, FI_BACKLOG, &backlog), "FI_BACKLOG");
    }
    check(fi_listen(server.pep.get()), "fi_listen");
    std::size_t length = sizeof address;
    check(fi_getname(&server.pep->fid, &address, &length), "fi_getname");
    require(address.sin_port != 0, "a listener without port");

    client.info = get_info("127.0.0.1", nullptr, 0, hints.get());
    open(client.fabric, "fi_fabric",
         [&](auto** out) { return fi_fabric(client.info->fabric_attr, out, nullptr); });
    client.eq = open_eq(*client.fabric);
    client.open_domain();
  }

  void progress() const {
    for (const CmSide* side : {&server, &client}) {
      if (side->cq != nullptr) fi_cq_read(side->cq.get(), nullptr, 0);
      std::uint32_t event = 0;
      fi_eq_read(side->eq.get(), &event, nullptr, 0, FI_PEEK);
    }
  }
  CmEvent next(const CmSide& side) const {
    const Clock::time_point start = Clock::now();
    for (;;) {
      if (auto event = poll_eq(*side.eq)) return std::move(*event);
      progress();
      require(Clock::now() - start < kDeadline / 2, "no event of a connection came");
    }
  }
  CmEvent expect(const CmSide& side, std::uint32_t number) const {
    CmEvent event = next(side);
    require(event.number == number, "event " + std::to_string(event.number) + " with error " +
                                        std::to_string(event.error) + " came instead of " +
                                        std::to_string(number));
    return event;
  }
  // The next completion of a side.
  fi_cq_err_entry completion(const CmSide& side) const {
    const Clock::time_point start = Clock::now();
    for (;;) {
      fi_cq_tagged_entry entry{};
      fi_cq_err_entry error{};
      const ssize_t result = fi_cq_read(side.cq.get(), &entry, 1);
      if (result == 1) {
        error.op_context = entry.op_context;
        error.len = entry.len;
        error.tag = entry.tag;
        return error;
      }
      if (result == -FI_EAVAIL) {
        check(fi_cq_readerr(side.cq.get(), &error, 0), "fi_cq_readerr");
        return error;
      }
      progress();
      require(Clock::now() - start < kDeadline / 2, "no completion came");
    }
  }
  template <class Call>
  void post(const char* what, Call call) const {
    ssize_t result;
    while ((result = call()) == -FI_EAGAIN) progress();
    check(result, what);
  }

  void connect(std::string_view data = {}) {
    client.ep = client.open_endpoint(*client.info);
    check(fi_connect(client.ep.get(), &address, data.data(), data.size()), "fi_connect");
  }
  CmEvent request() const { return expect(server, FI_CONNREQ); }
  void open_acceptor(const CmEvent& request) {
    if (server.domain == nullptr) server.open_domain();
    server.ep = server.open_endpoint(*request.info);
  }
  void accept(const CmEvent& request, std::string_view data = {}) {
    open_acceptor(request);
    check(fi_accept(server.ep.get(), data.data(), data.size()), "fi_accept");
  }
  void establish() {
    connect();
    accept(request());
    expect(client, FI_CONNECTED);
    expect(server, FI_CONNECTED);
  }

  CmSide server;
  CmSide client;
  sockaddr_in address{};
};

}  // namespace uet::e2e
