// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "ses/operation_check.h"

#include <algorithm>

#include "ses/atomic_request.h"
#include "ses/message.h"
#include "ses/parameters.h"

namespace uet::ses {
namespace {

Result<void> check_common(const TxOp& op, const OperationLimits& limits,
                          std::uint64_t most_bytes = kMaxMessageBytes) {
  if (op.peer == nullptr || op.local.size() > kMaxIoSlices) return Error::Invalid;
  for (const IoSlice& slice : op.local) {
    if (slice.data == nullptr && slice.length > 0) return Error::Invalid;
  }
  const std::uint64_t length = total_length(op.local);
  if (length > (op.inject ? limits.inject_bytes : most_bytes)) return Error::TooLong;
  if (op.peer->one_mtu && length > limits.payload_mtu) return Error::TooLong;
  return {};
}

constexpr std::size_t kMaxInjectBytes = 4096;  // section 12.1

}  // namespace

OperationLimits OperationLimits::of(const Parameters& parameters, std::size_t largest_piece) {
  return {std::min<std::size_t>({kMaxInjectBytes, parameters.payload_mtu, largest_piece}),
          parameters.payload_mtu, parameters.rendezvous};
}

Result<void> check_operation(const SendOp& op, DeliveryMode mode, const OperationLimits& limits) {
  const bool datagram = mode == DeliveryMode::Uud;
  if (op.peer == nullptr || (datagram && (op.tag || op.delivery_complete))) return Error::Invalid;
  const bool outsized = limits.rendezvous && op.peer->hpc;
  const auto checked = check_common(op, limits, outsized ? kMaxOutsizedBytes : kMaxMessageBytes);
  if (checked && datagram && total_length(op.local) > limits.payload_mtu) return Error::TooLong;
  return checked;
}

Result<void> check_operation(const RmaOp& op, DeliveryMode mode, const OperationLimits& limits) {
  if (op.kind == Kind::Read && (op.inject || op.data)) return Error::Invalid;
  if (mode == DeliveryMode::Uud) return Error::Invalid;  // PDS-191
  return check_common(op, limits);
}

Result<void> check_operation(const AtomicOp& op, DeliveryMode mode, const OperationLimits& limits) {
  if (mode == DeliveryMode::Uud) return Error::Invalid;  // PDS-191
  const auto checked = check_common(op, limits);
  return checked ? check_atomic_op(op, limits.payload_mtu) : checked;
}

}  // namespace uet::ses
