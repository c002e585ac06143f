// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What uet offers in one fi_info, and whether an application's hints fit into that.
#pragma once

#include <rdma/fabric.h>

#include <cstdint>

#include "compat.h"
#include "peer.h"
#include "ses/ses.h"
#include "settings/params.h"
#include "wire/frame.h"

namespace uet::prov {

// The attributes that state a capability; fi_info.caps states them all.
enum Side : std::uint8_t { kTx = 1, kRx = 2, kDomain = 4 };

struct Capability {
  std::uint64_t bit;
  std::uint8_t sides;  // Side
  // 0: returned only when asked for. Otherwise also returned unasked together with any of these
  // capabilities; for secondary capabilities that cost nothing.
  std::uint64_t beside = 0;
};

// All that works. A capability is added here and nowhere else.
inline constexpr Capability kCapabilities[] = {
    {FI_MSG, kTx | kRx},
    {FI_TAGGED, kTx | kRx},
    {FI_RMA, kTx | kRx},
    {FI_ATOMIC, kTx | kRx},
    {FI_SEND, kTx},
    {FI_READ, kTx},
    {FI_WRITE, kTx},
    {FI_RECV, kRx},
    {FI_REMOTE_READ, kRx},
    {FI_REMOTE_WRITE, kRx},
    {FI_DIRECTED_RECV, kRx},
    {kTaggedDirectedRecv, kRx},
    {FI_MULTI_RECV, kRx, FI_MSG},
    {kTaggedMultiRecv, kRx},
    {FI_SOURCE, kRx},
    {FI_SOURCE_ERR, kRx},
    {FI_NAMED_RX_CTX, kTx},
    {FI_FENCE, kTx},
    {FI_HMEM, kTx | kRx},
    {FI_RMA_PMEM, kTx | kRx},
    {FI_RMA_EVENT, kRx, FI_REMOTE_READ | FI_REMOTE_WRITE},
    {FI_TRIGGER, kTx | kRx, ~std::uint64_t{0}},
    {FI_LOCAL_COMM, kDomain, ~std::uint64_t{0}},
    {FI_REMOTE_COMM, kDomain, ~std::uint64_t{0}},
    {FI_PEER, kDomain},
    {FI_AV_USER_ID, kDomain},
};

// The capabilities that any of `sides` states.
constexpr std::uint64_t caps_of(unsigned sides) {
  std::uint64_t caps = 0;
  for (const Capability& row : kCapabilities) {
    if ((row.sides & sides) != 0) caps |= row.bit;
  }
  return caps;
}
inline constexpr std::uint64_t kTxCaps = caps_of(kTx);
inline constexpr std::uint64_t kRxCaps = caps_of(kRx);
inline constexpr std::uint64_t kDomainCaps = caps_of(kDomain);
inline constexpr std::uint64_t kCaps = kTxCaps | kRxCaps | kDomainCaps;
// For providers that link others, and only where we know the library's interface (peer.h).
inline constexpr std::uint64_t kPeerCaps = FI_PEER | FI_AV_USER_ID;

// Levels at which the target has to take part: a message is delivered when it is in the buffer of
// the receive that it matched, so that both are one. A region of persistent memory has the bytes
// when the target answers (hmem/persistent.h).
inline constexpr std::uint64_t kDelivered =
    FI_DELIVERY_COMPLETE | FI_MATCH_COMPLETE | FI_COMMIT_COMPLETE;
inline constexpr std::uint64_t kTxOpFlags = FI_INJECT | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE |
                                            kDelivered | FI_COMPLETION | FI_FENCE | FI_TRIGGER;
inline constexpr std::uint64_t kRxOpFlags = FI_COMPLETION | FI_MULTI_RECV | FI_TRIGGER;

// Orders that a ROD endpoint keeps (SES-126): all between sends, reads, writes and atomics.
inline constexpr std::uint64_t kOrders =
    0x1FF | FI_ORDER_RMA_RAR | FI_ORDER_RMA_RAW | FI_ORDER_RMA_WAR | FI_ORDER_RMA_WAW |
    FI_ORDER_ATOMIC_RAR | FI_ORDER_ATOMIC_RAW | FI_ORDER_ATOMIC_WAR | FI_ORDER_ATOMIC_WAW;

// Of one send, which its target may read in pieces (SES-164).
inline constexpr std::size_t kMaxMsgSize = ses::kMaxOutsizedBytes;
// The same of a profile without rendezvous.
constexpr std::size_t max_msg_size(Profile profile) {
  return profile == Profile::Hpc ? kMaxMsgSize : ses::kMaxMessageBytes;
}
// Of one write or read, in pieces on the wire (objects/compound.h).
inline constexpr std::size_t kMaxRmaSize = INT64_MAX;
inline constexpr std::size_t kMaxRmaRanges = 4;  // rma_iov_limit
inline constexpr std::size_t kCqDataSize = 8;
inline constexpr std::size_t kMaxAuthKeys = 256;     // of an AV, and so of its endpoints
inline constexpr std::size_t kMaxErrorData = 128;    // an address in any format (FI_SOURCE_ERR)
inline constexpr std::size_t kMaxObjects = 65536;    // CQs, counters, memory regions
inline constexpr std::size_t kMaxEndpoints = 32768;  // of a domain (objects/index_table.h)
inline constexpr std::size_t kMaxContexts = 256;     // of each direction, of a scalable endpoint

// The capabilities, flags and orders that an endpoint type offers.
struct EndpointType {
  fi_ep_type type;
  std::uint64_t caps;
  std::uint64_t tx_op_flags;
  std::uint64_t orders;
};
inline constexpr EndpointType kRdm{FI_EP_RDM, kCaps, kTxOpFlags, kOrders};
// Of the smaller profiles (SES section 13).
inline constexpr EndpointType kRdmAiFull = kRdm;
inline constexpr EndpointType kRdmAiBase{
    .type = FI_EP_RDM,
    .caps = kCaps & ~(FI_TAGGED | kTaggedDirectedRecv | kTaggedMultiRecv),
    .tx_op_flags = kTxOpFlags,
    .orders = kOrders};
// FI_UET_ENGINE=process: the engine reaches the memory of the application's processor alone.
constexpr EndpointType of_engine(const EndpointType& type) {
  return {.type = type.type,
          .caps = type.caps & ~(FI_HMEM | FI_RMA_PMEM | kPeerCaps),
          .tx_op_flags = type.tx_op_flags,
          .orders = type.orders};
}
inline constexpr EndpointType kLinked = of_engine(kRdm);
inline constexpr EndpointType kLinkedAiBase = of_engine(kRdmAiBase);
constexpr const EndpointType& rdm_of(const Params& params) {
  const bool smallest = params.profile == Profile::AiBase;
  if (params.engine == EngineMode::Process) return smallest ? kLinkedAiBase : kLinked;
  if (smallest) return kRdmAiBase;
  return params.profile == Profile::Hpc ? kRdm : kRdmAiFull;
}
// UUD carries sends only and nothing comes back (PDS-191): no tags, no RMA, no word of delivery.
inline constexpr EndpointType kDgram{
    .type = FI_EP_DGRAM,
    .caps = kCaps &
            ~(FI_TAGGED | FI_RMA | FI_ATOMIC | FI_READ | FI_WRITE | FI_REMOTE_READ |
              FI_REMOTE_WRITE | FI_RMA_EVENT | FI_RMA_PMEM | FI_FENCE | kCapsSince2 | kPeerCaps),
    .tx_op_flags = kTxOpFlags & ~(kDelivered | FI_FENCE),
    .orders = 0};
inline constexpr EndpointType kLinkedDgram = of_engine(kDgram);
inline const EndpointType& dgram_of(const Params& params) {
  return params.engine == EngineMode::Process ? kLinkedDgram : kDgram;
}

// A connection: there is one peer, so that naming the source says nothing.
constexpr EndpointType connected(const EndpointType& rdm) {
  return {.type = FI_EP_MSG,
          .caps = rdm.caps & ~(FI_SOURCE | FI_SOURCE_ERR | FI_DIRECTED_RECV | kTaggedDirectedRecv |
                               FI_NAMED_RX_CTX | kPeerCaps),
          .tx_op_flags = rdm.tx_op_flags,
          .orders = rdm.orders};
}
inline constexpr EndpointType kMsg = connected(kRdm);
inline constexpr EndpointType kMsgAiBase = connected(kRdmAiBase);
inline constexpr EndpointType kLinkedMsg = connected(kLinked);
inline constexpr EndpointType kLinkedMsgAiBase = connected(kLinkedAiBase);
inline const EndpointType& msg_of(const Params& params) {
  const bool smallest = params.profile == Profile::AiBase;
  if (params.engine == EngineMode::Process) return smallest ? kLinkedMsgAiBase : kLinkedMsg;
  return smallest ? kMsgAiBase : kMsg;
}

// The capabilities of `type` that exist in this API version.
inline std::uint64_t caps_offered(const EndpointType& type, std::uint32_t version) {
  const std::uint64_t later =
      (version < kApi2 ? kCapsSince2 : 0) | (version < kApiHmem ? FI_HMEM : 0);
  return type.caps & ~later & ~(has_peer_interface() ? 0 : kPeerCaps);
}

// The capabilities if the hints name none. Left out: FI_SOURCE_ERR turns messages from unknown
// senders into errors; FI_HMEM requires each registration to say whose memory it is; FI_PEER
// excludes automatic progress.
inline std::uint64_t default_caps(const EndpointType& type, std::uint32_t version) {
  return caps_offered(type, version) & ~(FI_SOURCE_ERR | FI_HMEM | kPeerCaps);
}

struct Limits {
  const EndpointType* type = &kRdm;
  std::size_t max_msg_size = kMaxMsgSize;
  std::size_t inject_size = 0;
  std::size_t tx_size = 0;  // defaults; kMaxTxSize and kMaxRxSize are the most
  std::size_t rx_size = 0;
  bool device_memory = false;  // FI_HMEM is not for system memory alone: it needs FI_MR_HMEM
  wire::TrimMarks trim_marks;  // DSCPs that no traffic class may stand for
};

// The type that the hints ask for: FI_EP_DGRAM and FI_EP_MSG only by name.
// In the engine's process there is FI_EP_RDM alone.
const EndpointType& wanted_type(const fi_info* hints, const Params& params = Params{});
// May FI_EP_MSG stand behind FI_EP_RDM? Yes if the hints name no type, and are not those of a
// provider that links others.
bool offers_connections_too(const fi_info* hints);

// Why these hints cannot be met; nullptr if they can. Names and addresses are not looked at.
const char* refuse_hints(const fi_info& hints, std::uint32_t version, const Limits& limits);

// The same for one side, which may be that of a single context.
const char* refuse_tx(const fi_tx_attr& tx, const Limits& limits);
const char* refuse_rx(const fi_rx_attr& rx, const Limits& limits);

// Whether immediate data of a write to such an endpoint take a receive: the application has set
// FI_RX_CQ_DATA among the `mode` bits.
bool data_take_receives(std::uint64_t mode, const fi_info& info);

// Fills in every attribute of `info` (from fi_allocinfo) that depends neither on the interface nor
// on addresses.
// `hints` may be nullptr, and has been accepted by refuse_hints. Throws bad_alloc.
void fill_attributes(fi_info& info, const fi_info* hints, std::uint32_t version,
                     const Limits& limits);

}  // namespace uet::prov
