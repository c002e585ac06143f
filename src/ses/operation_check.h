// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Whether an operation is possible at all: pure functions of the operation and of limits that never
// change, so that any thread may ask before it hands the operation to the FEP's.
#pragma once

#include "uet/base/result.h"
#include "uet/ses/api.h"

namespace uet::ses {

struct Parameters;

struct OperationLimits {
  // `largest_piece`: of the memory that payload is copied to (PieceStore).
  static OperationLimits of(const Parameters& parameters, std::size_t largest_piece);

  std::size_t inject_bytes = 0;
  std::uint32_t payload_mtu = 0;
  bool rendezvous = false;  // longer sends than a message are read by their target (SES-164)
};

// `mode`: of the context. Invalid: an argument that is impossible; TooLong: more bytes than limits
// or peer allow.
Result<void> check_operation(const SendOp& op, DeliveryMode mode, const OperationLimits& limits);
Result<void> check_operation(const RmaOp& op, DeliveryMode mode, const OperationLimits& limits);
Result<void> check_operation(const AtomicOp& op, DeliveryMode mode, const OperationLimits& limits);

}  // namespace uet::ses
