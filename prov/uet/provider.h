// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The one fi_provider object, which every log call and parameter names, and its version.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_prov.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <new>
#include <utility>

#include "nic/socket.h"

namespace uet::prov {

extern fi_provider provider;

// libfabric's custom: FI_VERSION(major * 100 + minor, revision * 10) of the plug-in, 0.1.0.
inline constexpr std::uint32_t kProviderVersion = FI_VERSION(1, 0);

// The number in a libfabric enumeration, which an application may have filled with any value.
template <class Enum>
unsigned raw_number(const Enum& value) {
  unsigned number = 0;
  static_assert(sizeof number == sizeof value);
  std::memcpy(&number, &value, sizeof number);
  return number;
}
// Its values go from 0 to `last`: is it something else? Compared directly, it would be as an int,
// and what is negative would pass.
template <class Enum>
bool is_beyond(const Enum& value, Enum last) {
  return raw_number(value) > static_cast<unsigned>(last);
}

// Makes an object in the body of guarded().
template <class Object, class... Arguments>
Object* create(Arguments&&... arguments) {
  return new Object(std::forward<Arguments>(arguments)...);
}

// Runs a control call; the only exception that may come out of it is a lack of memory. The
// body may call cancellation points; the thread is not cancelled in them.
template <class Body>
auto guarded(Body&& body) noexcept -> decltype(body()) {
  const nic::NoCancel no_cancel;
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return -FI_ENOMEM;
  }
}

}  // namespace uet::prov
