// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// From a checked request to the operands of atomic.h, and its answer.
#include "ses/atomic_target.h"

#include <array>

#include "ses/atomic.h"
#include "ses/return_code.h"

namespace uet::ses {

using pds::Response;
using wire::ReturnCode;
using wire::SesOpcode;

namespace {

constexpr std::size_t kMostOperandBytes = 8192;  // what a packet of the largest payload MTU holds

// The atomic of a checked request. The operands of compare-and-swap are taken out of the header
// into `compare` and `swap`, where they must stay.
AtomicWork work_of(const wire::SesRequest& request, const AtomicExtent& extent, std::byte* target,
                   std::array<std::byte, 16>& compare, std::array<std::byte, 16>& swap) {
  AtomicWork work;
  work.op = request.atomic.op;
  work.datatype = request.atomic.datatype;
  work.target = target;
  work.operands = request.payload.data();
  work.count = extent.count;
  if (wire::is_compare_swap(work.op)) {
    operand_to_wire(request.atomic.compare_value, compare);
    operand_to_wire(request.atomic.swap_value, swap);
    work.compare = compare.data() + (compare.size() - extent.length);
    work.operands = swap.data() + (swap.size() - extent.length);
  }
  return work;
}

Kind kind_of(const wire::SesRequest& request) {
  if (request.opcode == SesOpcode::Atomic) return Kind::Atomic;
  return wire::is_compare_swap(request.atomic.op) ? Kind::CompareAtomic : Kind::FetchAtomic;
}

// How the region was touched, for who counts it.
std::uint8_t access_of(const wire::SesRequest& request) {
  if (request.opcode == SesOpcode::Atomic) return ri::kRemoteWrite;
  if (request.atomic.op == wire::AmoOp::Read) return ri::kRemoteRead;
  return ri::kRemoteRead | ri::kRemoteWrite;
}

}  // namespace

Response AtomicTarget::execute(const pds::RequestView& view, const wire::SesRequest& request,
                               Context& context, Time now) {
  const AtomicExtent extent = atomic_extent(request, payload_mtu_);
  const RequestChecks::Permission allowed = checks_.atomic(request, context, extent);
  if (allowed.code != ReturnCode::Ok) {
    return errors_.answer(request, allowed.code, context.generation.value);
  }
  const ri::MrAccess& access = allowed.memory;

  std::array<std::byte, 16> compare;
  std::array<std::byte, 16> swap;
  std::array<std::byte, kMostOperandBytes> copy;
  const bool copies = access.device != nullptr;
  std::byte* const target = copies ? copy.data() : access.address;
  AtomicWork work = work_of(request, extent, target, compare, swap);
  Response response = default_response(request, request.request_length);
  if (request.opcode != SesOpcode::Atomic) {
    const ReadPiece asked{.offset = 0, .length = extent.length};
    work.results = answers_.open(view, request, asked, response, now);
    if (work.results == nullptr) return nack_response(pds::NackCode::NoResource);
  }
  if (copies) {
    end_run(host_copy_);  // what came before the atomic is what it finds
    access.fetch({copy.data(), extent.length}, 0);
  }
  ses::execute(work);
  if (copies) access.place(nullptr, 0, {copy.data(), extent.length});
  ++counters_.messages_received;
  access.executed(access_of(request), extent.length);
  context.sink.remote_access(kind_of(request), extent.length);
  return response;
}

}  // namespace uet::ses
