// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What each atomic operation does to each datatype, and the order of an element's bytes on the wire
// (SES section 6). Pure functions; knows no packet, region or peer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "uet/ses/api.h"
#include "uet/wire/ses.h"

namespace uet::ses {

// Size of one element of this type in bytes, and what its address must be a multiple of (SES-92): a
// complex number is two of its components. 0: there is no such type, or this machine's format is
// not the one on the wire (long double other than the x87 one).
std::uint32_t element_bytes(wire::AmoDatatype datatype);
std::uint32_t element_alignment(wire::AmoDatatype datatype);

// May `op` be done to `datatype` in this form, Kind::Atomic, FetchAtomic or CompareAtomic? Ok,
// AmoUnsupportedOp or AmoUnsupportedDt (SES-101). The valid pairs are libfabric's: bitwise
// operations on integers only, no order among complex numbers.
wire::ReturnCode check_atomic(Kind form, wire::AmoOp op, wire::AmoDatatype datatype);

// The one conversion between elements in memory and on the wire, where every component of an
// element is big-endian (SES-96). `from` holds whole elements; `to` points to as many bytes and may
// be the same memory. A long double is 16 bytes: 6 zero ones, then the 80 bits.
void elements_to_wire(wire::AmoDatatype datatype, std::span<const std::byte> from, std::byte* to);
void elements_from_wire(wire::AmoDatatype datatype, std::span<const std::byte> from, std::byte* to);

// An element of at most 16 bytes as the compare-and-swap extension carries it (WIRE 3.5).
wire::AtomicOperand operand_of(wire::AmoDatatype datatype, const std::byte* element);

// One atomic on `count` elements. Everything but the target is in wire order.
struct AtomicWork {
  wire::AmoOp op{};
  wire::AmoDatatype datatype{};
  std::byte* target = nullptr;          // aligned as element_alignment says
  const std::byte* operands = nullptr;  // `count` elements; not looked at by Read
  const std::byte* compare = nullptr;   // `count` elements; for compare-and-swap only
  std::byte* results = nullptr;         // memory for the old values; nullptr: not requested
  std::uint32_t count = 0;
};

// Does it; check_atomic has allowed the pair. Each integer and real element of up to 8 bytes
// changes in one step, also towards this machine's CPUs (SES-98); the others only towards the
// operations of the same FEP.
void execute(const AtomicWork& work);

// The operands of the compare-and-swap extension as one element in wire order, right-aligned in the
// last bytes of `to`.
void operand_to_wire(const wire::AtomicOperand& operand, std::span<std::byte, 16> to);

}  // namespace uet::ses
