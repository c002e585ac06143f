// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Atomics at the initiator: one packet with the operands in wire order (SES-90), and the old values
// that come back. The operands are copied when the operation is posted, since their byte order
// changes; after that the message's slices are those of the results.
#include <algorithm>
#include <array>
#include <cstring>

#include "uet/ses/atomic.h"
#include "uet/ses/initiator.h"

namespace uet::ses {
namespace {

// What the two operands of the compare-and-swap extension count as (WIRE 3.5).
constexpr std::uint32_t kCompareSwapBytes = 32;

// Slices that hold whole elements, and as many as the operation works on.
bool holds_elements(std::span<const IoSlice> slices, std::uint32_t element, std::uint64_t total) {
  if (slices.size() > kMaxIoSlices || total_length(slices) != total) return false;
  return std::all_of(slices.begin(), slices.end(), [element](const IoSlice& slice) {
    return slice.length % element == 0 && (slice.data != nullptr || slice.length == 0);
  });
}

std::uint64_t bytes_of(const AtomicOp& op) {
  return total_length(op.op == wire::AmoOp::Read ? op.results : op.local);
}

}  // namespace

Result<void> Initiator::check_atomic_op(const AtomicOp& op) const {
  if (check_atomic(op.form, op.op, op.datatype) != wire::ReturnCode::Ok) return Error::Invalid;
  const std::uint32_t element = element_bytes(op.datatype);
  const std::uint64_t total = bytes_of(op);
  if (total == 0 || op.data) return Error::Invalid;
  const bool compares = op.form == Kind::CompareAtomic;
  if (total > (compares ? element : max_atomic_bytes())) return Error::TooLong;
  if (op.op != wire::AmoOp::Read && !holds_elements(op.local, element, total)) {
    return Error::Invalid;
  }
  if (compares && !holds_elements(op.compare, element, total)) return Error::Invalid;
  if (returns_data(op.form) && !holds_elements(op.results, element, total)) return Error::Invalid;
  return {};
}

Result<void> Initiator::atomic(Context& context, const AtomicOp& op, Time now) {
  if (context.config.mode == DeliveryMode::Uud) return Error::Invalid;  // PDS-191
  if (const auto checked = check(context, op); !checked) return checked;
  if (const auto checked = check_atomic_op(op); !checked) return checked;
  TxMessage* message = prepare(context, op, op.form);
  if (message == nullptr) return Error::Again;
  wire::SesRequest& header = message->header;
  header.opcode = returns_data(op.form) ? wire::SesOpcode::FetchingAtomic : wire::SesOpcode::Atomic;
  header.match_bits = op.key.value;
  header.buffer_offset = op.remote_offset;
  header.atomic.op = op.op;
  header.atomic.datatype = op.datatype;
  header.atomic.semantic_control = wire::kAtomicCpuCoherent;
  message->length = bytes_of(op);
  header.request_length = static_cast<std::uint32_t>(message->length);
  if (!fill_operands(*message, op)) {
    release(*message);
    return Error::Again;
  }
  message->iov_count = static_cast<std::uint32_t>(op.results.size());
  std::copy(op.results.begin(), op.results.end(), message->iov.begin());
  return submit(*message, op, now);
}

// Into the header, or into a buffer of the message's own; false if there is none.
bool Initiator::fill_operands(TxMessage& message, const AtomicOp& op) {
  wire::SesRequest& header = message.header;
  const auto length = static_cast<std::uint32_t>(message.length);
  if (op.form == Kind::CompareAtomic) {
    std::array<std::byte, sizeof(wire::AtomicOperand)> element;
    gather(op.compare, 0, length, element.data());
    header.atomic.compare_value = operand_of(op.datatype, element.data());
    gather(op.local, 0, length, element.data());
    header.atomic.swap_value = operand_of(op.datatype, element.data());
    header.request_length = kCompareSwapBytes;
    return true;
  }
  Piece* piece = pieces_.take(length);
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

pds::PacketPlan Initiator::next_atomic(TxMessage& message, Packet& packet,
                                       pds::PreparedPacket& prepared) {
  const auto length = static_cast<std::uint32_t>(message.length);
  const bool returns = returns_data(message.kind);
  if (returns && !await_piece(message, length)) return pds::PacketPlan::NotNow;
  message.header.som = true;
  message.header.eom = true;
  message.header.encode(packet.append(message.header.encoded_bytes()));
  if (message.gathered != nullptr) {
    packet.payload = {Slice{message.gathered->data, length}, Slice{}};
  }
  prepared.tag = returns ? 0 : kNoPiece;
  message.offset = message.length;
  return made(message, true);
}

void Initiator::place_results(const TxMessage& message, std::span<const std::byte> results) {
  for (const IoSlice& slice : message.slices()) {
    elements_from_wire(message.header.atomic.datatype, results.first(slice.length), slice.data);
    results = results.subspan(slice.length);
  }
}

}  // namespace uet::ses
