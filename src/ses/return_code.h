// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The target's checks of SES-115 as pure functions, one per group of steps, and what return codes
// mean. Each check returns ReturnCode::Ok or the code to answer with.
#pragma once

#include <cstdint>

#include "ri/mr_table.h"
#include "ri/ri_table.h"
#include "ses/context.h"
#include "ses/message.h"
#include "ses/rendezvous.h"
#include "uet/pds/api.h"
#include "uet/ses/api.h"
#include "uet/wire/ses.h"

namespace uet::ses {

// NULL is the default response and counts as success (SES-107).
constexpr bool is_success(wire::ReturnCode code) {
  return code == wire::ReturnCode::Null || code == wire::ReturnCode::Ok;
}

// The target may take the operation at another time (section 9, "retry").
constexpr bool passes(wire::ReturnCode code) {
  return code == wire::ReturnCode::BadGeneration || code == wire::ReturnCode::DisabledGen ||
         code == wire::ReturnCode::NoMatch || code == wire::ReturnCode::UncorTrnsnt;
}

// All packets of a message of one packet; they need no receive state.
constexpr bool is_single(const wire::SesRequest& request) { return request.som && request.eom; }

// A send of any flavour that we serve.
constexpr bool is_send(wire::SesOpcode opcode) {
  return opcode == wire::SesOpcode::Send || opcode == wire::SesOpcode::TaggedSend ||
         wire::is_deferrable(opcode) || wire::has_rendezvous_extension(opcode);
}
constexpr bool is_tagged(wire::SesOpcode opcode) {
  return opcode == wire::SesOpcode::TaggedSend || opcode == wire::SesOpcode::DeferrableTsend ||
         opcode == wire::SesOpcode::RendezvousTsend;
}
// The packet that ends what is sent of a rendezvous send, or of a deferrable one, before its length
// is reached.
constexpr bool ends_eager_part(const wire::SesRequest& request) {
  const bool may_end =
      wire::has_rendezvous_extension(request.opcode) || wire::is_deferrable(request.opcode);
  return may_end && !request.som && request.eom && request.payload.empty() &&
         request.message_offset > 0;
}
// Bytes that the packets of the message carry: a rendezvous send leaves the rest to be read.
constexpr std::uint32_t eager_length(const wire::SesRequest& request) {
  return wire::has_rendezvous_extension(request.opcode) ? request.rendezvous.eager_length
                                                        : request.request_length;
}

// A rendezvous send whose length does not fit request_length; read_offset states it (SES-164).
constexpr bool is_outsized(const wire::SesRequest& request) {
  return wire::has_rendezvous_extension(request.opcode) && request.request_length == kOutsized &&
         is_message_key(request.rendezvous.read_memory_key);
}
// Bytes of the message, however its header states them.
constexpr std::uint64_t whole_length(const wire::SesRequest& request) {
  return is_outsized(request) ? request.rendezvous.read_offset : request.request_length;
}

// Step 2: the operations served, and the form their header may have (SES-5, SES-27).
wire::ReturnCode check_opcode(const wire::SesRequest& request);
// Steps 3 and 4: what the lookup of the addressed context says.
wire::ReturnCode check_address(ri::RiVerdict verdict);
// Steps 6 to 10: the context, the implied length of the first packet, generation, IE; of a READ the
// piece that it asks for and IE come before the generation (SES-116).
wire::ReturnCode check_context(const Context& context, const wire::SesRequest& request,
                               std::uint32_t payload_mtu);
// Step 7 alone (SES-26): the payload of a first packet is the whole message or one payload MTU;
// compare-and-swap and atomic reads have none.
wire::ReturnCode check_first_packet(const wire::SesRequest& request, std::uint32_t payload_mtu);
// Step 11b: the receives of an absolute context may be for one job alone (SES-16, SES-17).
wire::ReturnCode check_job(const ContextConfig& config, const wire::SesRequest& request);
// Step 12: what the memory region says (SES-119).
wire::ReturnCode check_access(ri::MrVerdict verdict);
// Step 13: the payload lies inside the message, and is no more than one payload MTU.
wire::ReturnCode check_extent(const wire::SesRequest& request, std::uint32_t payload_mtu);
// Step 14: a write with immediate data needs a context that can report it (SES-80).
wire::ReturnCode check_data(const ContextConfig& config, const wire::SesRequest& request);
// Step 15: a later packet repeats what the first one said, and does not overlap what arrived.
wire::ReturnCode check_same_message(const RxMessage& message, const wire::SesRequest& request);
// The piece that a read request packet asks for (SES-81, SES-89, SES-116).
struct ReadPiece {
  wire::ReturnCode code = wire::ReturnCode::Ok;
  std::uint32_t offset = 0;  // in the message
  std::uint32_t length = 0;
};
ReadPiece read_piece(const wire::SesRequest& request, std::uint32_t payload_mtu);

// Step 16 without the address: what an atomic works on (SES-92). `length` is right also for an
// operation that is refused, as far as it can be known.
struct AtomicExtent {
  wire::ReturnCode code = wire::ReturnCode::Ok;
  std::uint32_t length = 0;  // bytes of the region
  std::uint32_t count = 0;   // elements
};
AtomicExtent atomic_extent(const wire::SesRequest& request, std::uint32_t payload_mtu);

// The memory key of an RMA request. A small one carries the index of an optimised key (WIRE 3.4),
// of which `regions` knows the rest.
Rkey memory_key(const wire::SesRequest& request, const ri::MrTable& regions);

// SES-132: the key may be used in the small header, which carries its low 12 bits (WIRE 3.4).
constexpr bool is_optimized(Rkey key) { return (key.value >> 62 & 1) != 0; }

// SES-137: the region's owner promises that repeating an access is harmless.
constexpr bool is_idempotent_safe(Rkey key) { return key.value >> 63 != 0; }

// ---- building responses ------------------------------------------------------------------------

// modified_length of every response to the message (SES-43, WIRE 3.9): the number of its bytes that
// fit into the receive, or all its bytes while it has no receive.
std::uint64_t modified_length(const Envelope& message, const Placement& placement);
inline std::uint64_t modified_length(const RxMessage& message) {
  return modified_length(message, message);
}
// OK and nothing else to say (SES-104).
pds::Response default_response(const wire::SesRequest& request, std::uint64_t modified);
// The same without the request at hand; 0 in modified_length says nothing.
pds::Response default_response(const pds::RequestName& name);
// RESPONSE with a list or a return code to tell. A guaranteed one cannot get lost (PDS-111).
// `generation` is the one of the context, or 0.
pds::Response explicit_response(const wire::SesRequest& request, wire::ReturnCode code,
                                wire::List list, std::uint64_t modified, RiGeneration generation,
                                bool guaranteed);
// NO_RESPONSE: taken; the answer that counts follows (SES-46).
pds::Response provisional_response(const wire::SesRequest& request, RiGeneration generation);
// Refuses the packet for lack of something; it comes again later and left no trace (PDS-211).
pds::Response nack_response(pds::NackCode code);

}  // namespace uet::ses
