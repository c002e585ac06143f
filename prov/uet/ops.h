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

extern fi_ops_atomic no_atomics;
extern fi_ops_collective no_collectives;

}  // namespace uet::prov
