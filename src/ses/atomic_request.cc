// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "ses/atomic_request.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "ses/atomic.h"

namespace uet::ses {
namespace {

// The request length of compare-and-swap: the two operands of its extension (WIRE 3.5).
constexpr std::uint32_t kCompareSwapBytes = 32;

// Slices that hold whole elements, and as many as the operation works on.
bool holds_elements(std::span<const IoSlice> slices, std::uint32_t element, std::uint64_t total) {
  if (slices.size() > kMaxIoSlices || total_length(slices) != total) return false;
  return std::all_of(slices.begin(), slices.end(), [element](const IoSlice& slice) {
    return slice.length % element == 0 && (slice.data != nullptr || slice.length == 0);
  });
}

void write_compare_swap(wire::SesRequest& header, const AtomicOp& op, std::uint32_t length) {
  std::array<std::byte, sizeof(wire::AtomicOperand)> element;
  gather(op.compare, 0, length, element.data());
  header.atomic.compare_value = operand_of(op.datatype, element.data());
  gather(op.local, 0, length, element.data());
  header.atomic.swap_value = operand_of(op.datatype, element.data());
  header.request_length = kCompareSwapBytes;
}

}  // namespace

std::uint64_t bytes_of(const AtomicOp& op) {
  return total_length(op.op == wire::AmoOp::Read ? op.results : op.local);
}

Result<void> check_atomic_op(const AtomicOp& op, std::size_t most_bytes) {
  if (check_atomic(op.kind, op.op, op.datatype) != wire::ReturnCode::Ok) return Error::Invalid;
  const std::uint32_t element = element_bytes(op.datatype);
  const std::uint64_t total = bytes_of(op);
  if (total == 0 || op.data) return Error::Invalid;
  const bool compares = op.kind == Kind::CompareAtomic;
  if (total > (compares ? element : most_bytes)) return Error::TooLong;
  if (op.op != wire::AmoOp::Read && !holds_elements(op.local, element, total)) {
    return Error::Invalid;
  }
  if (compares && !holds_elements(op.compare, element, total)) return Error::Invalid;
  if (returns_data(op.kind) && !holds_elements(op.results, element, total)) return Error::Invalid;
  return {};
}

bool write_operands(TxMessage& message, const AtomicOp& op, PieceStore& pieces) {
  wire::SesRequest& header = message.header;
  header.opcode = returns_data(op.kind) ? wire::SesOpcode::FetchingAtomic : wire::SesOpcode::Atomic;
  header.match_bits = op.key.value;
  header.buffer_offset = op.remote_offset;
  header.atomic.op = op.op;
  header.atomic.datatype = op.datatype;
  header.atomic.semantic_control = wire::kAtomicCpuCoherent;
  message.length = bytes_of(op);
  const auto length = static_cast<std::uint32_t>(message.length);
  header.request_length = length;
  message.iov_count = static_cast<std::uint32_t>(op.results.size());
  std::copy(op.results.begin(), op.results.end(), message.iov.begin());
  if (op.kind == Kind::CompareAtomic) {
    write_compare_swap(header, op, length);
    return true;
  }
  Piece* piece = pieces.take(length, pieces.for_answers());
  if (piece == nullptr) return false;
  message.gathered = piece;
  if (op.op == wire::AmoOp::Read) {  // nothing looks at them, but their number counts
    std::memset(piece->data, 0, length);
    return true;
  }
  std::byte* to = piece->data;
  for (const IoSlice& slice : op.local) {
    elements_to_wire(op.datatype, {slice.data, slice.length}, to);
    to += slice.length;
  }
  return true;
}

void place_results(const TxMessage& message, std::span<const std::byte> results) {
  for (const IoSlice& slice : message.slices()) {
    elements_from_wire(message.header.atomic.datatype, results.first(slice.length), slice.data);
    results = results.subspan(slice.length);
  }
}

}  // namespace uet::ses
