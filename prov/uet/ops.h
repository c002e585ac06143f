// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Slots of libfabric's call tables that uet does not serve. libfabric calls through the tables
// without looking, so that every slot must hold a function.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include "provider.h"

namespace uet::prov {

// A function of any signature that returns an integer: -FI_ENOSYS.
template <class Function>
struct NotSupported;
template <class Return, class... Arguments>
struct NotSupported<Return (*)(Arguments...)> {
  static Return call(Arguments...) noexcept { return -FI_ENOSYS; }
};

// -FI_ENOSYS for one slot of an ops table: `.join = not_supported<&fi_ops_cm::join>`.
template <auto Slot>
struct SlotOf;
template <class Table, class Function, Function Table::*Slot>
struct SlotOf<Slot> {
  using type = Function;
};
template <auto Slot>
inline constexpr auto not_supported = &NotSupported<typename SlotOf<Slot>::type>::call;

inline constexpr auto no_bind = not_supported<&fi_ops::bind>;
inline constexpr auto no_control = not_supported<&fi_ops::control>;
inline constexpr auto no_ops_open = not_supported<&fi_ops::ops_open>;
inline constexpr auto no_tostr = not_supported<&fi_ops::tostr>;
inline constexpr auto no_ops_set = not_supported<&fi_ops::ops_set>;

extern fi_ops_msg no_msg;
extern fi_ops_tagged no_tagged;
extern fi_ops_rma no_rma;
extern fi_ops_atomic no_atomics;
extern fi_ops_collective no_collectives;

// fi_ops_msg or fi_ops_tagged without one of the directions.
template <class Table>
constexpr Table transmit_only(Table table) {
  table.recv = not_supported<&Table::recv>;
  table.recvv = not_supported<&Table::recvv>;
  table.recvmsg = not_supported<&Table::recvmsg>;
  return table;
}
template <class Table>
constexpr Table receive_only(Table table) {
  table.send = not_supported<&Table::send>;
  table.sendv = not_supported<&Table::sendv>;
  table.sendmsg = not_supported<&Table::sendmsg>;
  table.inject = not_supported<&Table::inject>;
  table.senddata = not_supported<&Table::senddata>;
  table.injectdata = not_supported<&Table::injectdata>;
  return table;
}

// There are no connections: of fi_cm(3) only the names.
constexpr fi_ops_cm name_only(
    decltype(fi_ops_cm::getname) getname,
    decltype(fi_ops_cm::setname) setname = not_supported<&fi_ops_cm::setname>) {
  return {
      .size = sizeof(fi_ops_cm),
      .setname = setname,
      .getname = getname,
      .getpeer = not_supported<&fi_ops_cm::getpeer>,
      .connect = not_supported<&fi_ops_cm::connect>,
      .listen = not_supported<&fi_ops_cm::listen>,
      .accept = not_supported<&fi_ops_cm::accept>,
      .reject = not_supported<&fi_ops_cm::reject>,
      .shutdown = not_supported<&fi_ops_cm::shutdown>,
      .join = not_supported<&fi_ops_cm::join>,
  };
}

}  // namespace uet::prov
