// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Options of fi_getopt and fi_setopt: how much one operation may carry, and reading and writing the
// values of all.
#pragma once

#include <rdma/fi_errno.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <optional>

namespace uet::prov {

// FI_OPT_MIN_MULTI_RECV, in bytes, until it is set.
inline constexpr std::size_t kDefaultMinMultiReceive = 16384;

// In the order of the options.
enum TransferKind : std::size_t { kMessage, kTagged, kRma, kAtomic, kTransferKinds };

// The most bytes of one operation, by kind.
struct SizeLimits {
  std::array<std::size_t, kTransferKinds> most{};
  std::array<std::size_t, kTransferKinds> inject{};
  // That which a LaterOption from kOptMaxMsgSize on is about.
  std::size_t& of_option(int name);
};

// Answers fi_getopt: -FI_ETOOSMALL, with the size that is needed, if the buffer is too small.
template <class T>
int give_option(const T& answer, void* value, std::size_t* length) {
  const std::size_t room = *length;
  *length = sizeof answer;
  if (room < sizeof answer) return -FI_ETOOSMALL;
  std::memcpy(value, &answer, sizeof answer);
  return 0;
}

// fi_setopt's value, if it is of this type.
template <class T>
std::optional<T> read_option(const void* value, std::size_t length) {
  if (value == nullptr || length != sizeof(T)) return {};
  T out;
  std::memcpy(&out, value, sizeof out);
  return out;
}

}  // namespace uet::prov
