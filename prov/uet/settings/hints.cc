// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Negotiation, attribute by attribute: refuse what we lack, return what was asked for where we can
// do it, else our default.
#include "settings/hints.h"

#include <rdma/fi_endpoint.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "compat.h"
#include "hmem/persistent.h"
#include "provider.h"
#include "settings/address_format.h"
#include "settings/traffic_class.h"
#include "uet/fi_ext_uet.h"

namespace uet::prov {
namespace {

constexpr std::uint64_t kMessages = FI_MSG | FI_TAGGED;
constexpr std::uint64_t kMessageDirections = FI_SEND | FI_RECV;
constexpr std::uint64_t kOneSided = FI_RMA | FI_ATOMIC;
constexpr std::uint64_t kOneSidedDirections = FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
// Pieces of a message where the application does not ask for more (up to ses::kMaxIoSlices): as
// most providers say, and as many as fi_ubertest splits a message into without losing bytes.
constexpr std::size_t kDefaultIovLimit = 4;

// Numbers that are refused above `most` and otherwise returned as that.
template <class Attr>
struct Most {
  const char* name;
  std::size_t Attr::*member;
  std::size_t most;
};

constexpr Most<fi_domain_attr> kDomainMost[] = {
    {"domain_attr.cq_data_size", &fi_domain_attr::cq_data_size, kCqDataSize},
    {"domain_attr.cq_cnt", &fi_domain_attr::cq_cnt, kMaxObjects},
    {"domain_attr.ep_cnt", &fi_domain_attr::ep_cnt, kMaxEndpoints},
    {"domain_attr.tx_ctx_cnt", &fi_domain_attr::tx_ctx_cnt, kMaxEndpoints},
    {"domain_attr.rx_ctx_cnt", &fi_domain_attr::rx_ctx_cnt, kMaxEndpoints},
    {"domain_attr.max_ep_tx_ctx", &fi_domain_attr::max_ep_tx_ctx, kMaxContexts},
    {"domain_attr.max_ep_rx_ctx", &fi_domain_attr::max_ep_rx_ctx, kMaxContexts},
    {"domain_attr.max_ep_stx_ctx", &fi_domain_attr::max_ep_stx_ctx, kMaxEndpoints},
    {"domain_attr.max_ep_srx_ctx", &fi_domain_attr::max_ep_srx_ctx, kMaxEndpoints},
    {"domain_attr.cntr_cnt", &fi_domain_attr::cntr_cnt, kMaxObjects},
    {"domain_attr.mr_iov_limit", &fi_domain_attr::mr_iov_limit, 1},
    {"domain_attr.mr_cnt", &fi_domain_attr::mr_cnt, kMaxObjects},
    {"domain_attr.max_err_data", &fi_domain_attr::max_err_data, kMaxErrorData},
};

bool subset(std::uint64_t asked, std::uint64_t ours) { return (asked & ~ours) == 0; }

const char* refuse_auth_key(std::size_t size, const std::uint8_t* key) {
  if (size == 0) return nullptr;
  if (key == nullptr) return "auth_key: none, but a size";
  const bool fits = size == FI_UET_AUTH_KEY_SIZE || (size == 4 && key[0] == 0) ||
                    (size == FI_UET_TSS_AUTH_KEY_SIZE && key[0] == 0 && key[4] == 0);  // TSS-68
  return fits ? nullptr : "auth_key: not a JobID of 3 bytes (SES-145)";
}

// fi_endpoint(3): so many contexts, or one that several endpoints share.
bool fits_contexts(std::size_t count) {
  return count <= kMaxContexts || count == FI_SHARED_CONTEXT;
}

const char* refuse_ep(const fi_ep_attr& ep, std::uint64_t tx_order, const Limits& limits) {
  if (ep.type != FI_EP_UNSPEC && ep.type != limits.type->type) {
    return "ep_attr.type: only FI_EP_RDM, FI_EP_MSG and FI_EP_DGRAM";
  }
  const bool ours = ep.protocol == FI_PROTO_UET || ep.protocol == FI_PROTO_UET_OLD;
  if (ep.protocol != FI_PROTO_UNSPEC && !ours) return "ep_attr.protocol";
  if (ep.protocol_version > FI_PROTO_UET_VERSION) return "ep_attr.protocol_version";
  if (ep.max_msg_size > limits.max_msg_size) return "ep_attr.max_msg_size";
  if (ep.msg_prefix_size != 0) return "ep_attr.msg_prefix_size";
  const std::size_t ordered = tx_order != 0 ? kMaxMsgSize : 0;  // SES-128
  if (ep.max_order_raw_size > ordered) return "ep_attr.max_order_raw_size";
  if (ep.max_order_war_size > ordered) return "ep_attr.max_order_war_size";
  if (ep.max_order_waw_size > ordered) return "ep_attr.max_order_waw_size";
  if (!fits_contexts(ep.tx_ctx_cnt)) return "ep_attr.tx_ctx_cnt";
  if (!fits_contexts(ep.rx_ctx_cnt)) return "ep_attr.rx_ctx_cnt";
  return refuse_auth_key(ep.auth_key_size, ep.auth_key);
}

const char* refuse_mr_mode(int mode, std::uint32_t version) {
  if (version < kApiMrModeBits) {
    return mode >= kMrUnspec && mode <= kMrScalable ? nullptr : "domain_attr.mr_mode";
  }
  const int old_bits = mode & (kMrBasic | kMrScalable);
  return old_bits == 0 || mode == kMrBasic || mode == kMrScalable
             ? nullptr
             : "domain_attr.mr_mode: FI_MR_BASIC and FI_MR_SCALABLE stand alone";
}

// fi_peer(3): the owner ensures that one thread at a time enters its part of the interface. It has
// no control over a progress thread of uet.
bool wants_thread_of_a_peer(std::uint64_t caps, const fi_domain_attr& domain) {
  return (caps & FI_PEER) != 0 &&
         (domain.control_progress == FI_PROGRESS_AUTO || domain.data_progress == FI_PROGRESS_AUTO);
}

bool known_progress(fi_progress progress) {
  return progress == FI_PROGRESS_UNSPEC || progress == FI_PROGRESS_AUTO ||
         progress == FI_PROGRESS_MANUAL || static_cast<int>(progress) == kProgressControlUnified;
}

// WIRE 1.3: what says "trimmed" is nothing to send with.
bool usable_traffic_class(std::uint32_t tclass, const Limits& limits) {
  constexpr std::uint8_t kNoDscp = 0xFF;
  return is_traffic_class(tclass) &&
         !limits.trim_marks.on(pds::dscp_of_class(traffic_class_of(tclass), kNoDscp));
}

// fi_domain(3): bytes of the keys that the application may choose (SES-132: 48 bits). Keys that
// the provider chooses have more.
bool chooses_keys_for(int mode) { return mode == kMrBasic || (mode & FI_MR_PROV_KEY) != 0; }
constexpr std::size_t kChosenKeySize = 6;
constexpr std::size_t kProviderKeySize = sizeof(std::uint64_t);

// The application needs longer keys than it can choose, and takes ours.
bool needs_our_keys(const fi_domain_attr& asked) {
  return asked.mr_key_size > kChosenKeySize && chooses_keys_for(asked.mr_mode);
}

const char* refuse_domain(const fi_domain_attr& domain, std::uint32_t version,
                          const Limits& limits) {
  if (is_beyond(domain.threading, FI_THREAD_ENDPOINT)) return "domain_attr.threading";
  if (!known_progress(domain.control_progress)) return "domain_attr.control_progress";
  if (!known_progress(domain.data_progress)) return "domain_attr.data_progress";
  if (is_beyond(domain.resource_mgmt, FI_RM_ENABLED)) return "domain_attr.resource_mgmt";
  if (is_beyond(domain.av_type, FI_AV_TABLE)) return "domain_attr.av_type";
  if (const char* why = refuse_mr_mode(domain.mr_mode, version)) return why;
  for (const auto& row : kDomainMost) {
    if (domain.*row.member > row.most) return row.name;
  }
  const std::size_t key_size = needs_our_keys(domain) ? kProviderKeySize : kChosenKeySize;
  if (domain.mr_key_size > key_size) return "domain_attr.mr_key_size";
  if (!subset(domain.caps, kDomainCaps & (has_peer_interface() ? ~std::uint64_t{0} : ~kPeerCaps))) {
    return "domain_attr.caps";
  }
  if (!usable_traffic_class(domain.tclass, limits)) return "domain_attr.tclass";
  if (domain.auth_key_size == kAvAuthKey) {
    if (limits.type->type == FI_EP_MSG) return "domain_attr.auth_key_size: FI_EP_MSG has no AV";
    return domain.auth_key == nullptr ? nullptr : "domain_attr.auth_key: not with FI_AV_AUTH_KEY";
  }
  return refuse_auth_key(domain.auth_key_size, domain.auth_key);
}

// Requested caps with what they imply; the default ones if there are none.
std::uint64_t negotiate_caps(std::uint64_t asked, const EndpointType& type, std::uint32_t version) {
  if (asked == 0) return default_caps(type, version);
  std::uint64_t caps = asked;
  if ((caps & kMessages) != 0 && (caps & kMessageDirections) == 0) caps |= kMessageDirections;
  if ((caps & kOneSided) != 0 && (caps & kOneSidedDirections) == 0) caps |= kOneSidedDirections;
  for (const Capability& row : kCapabilities) {
    if ((caps & row.beside) != 0) caps |= row.bit;
  }
  return caps & type.caps;
}

// tx_attr.caps or rx_attr.caps: what was asked of this side alone, else of the endpoint.
std::uint64_t side_caps(std::uint64_t asked, std::uint64_t caps, std::uint64_t ours,
                        const EndpointType& type) {
  return (asked != 0 ? negotiate_caps(asked, type, kApiVersion) : caps) & ours;
}

// From 1.5 on a returned bit is a required one. uet requires none, which an application that offers
// bits must accept (fi_mr(3)); bits that it sets again before fi_domain are honoured
// (Domain::mr_mode_has). Exceptions: FI_MR_HMEM, since only descriptors tell which buffers are not
// for the CPU, and FI_MR_PROV_KEY, if the application wants longer keys than it could choose.
int negotiate_mr_mode(const fi_info* hints, std::uint32_t version, bool device_memory) {
  const bool has_domain = hints != nullptr && hints->domain_attr != nullptr;
  const int asked = has_domain ? hints->domain_attr->mr_mode : kMrUnspec;
  const bool bits = asked != kMrBasic && asked != kMrScalable && version >= kApiMrModeBits;
  const int keys = has_domain && bits && needs_our_keys(*hints->domain_attr) ? FI_MR_PROV_KEY : 0;
  if (device_memory) return FI_MR_HMEM | keys;
  if (asked == kMrBasic || asked == kMrScalable) return asked;
  return bits ? keys : kMrScalable;
}

template <class T>
T either(T asked, T preset) {
  return asked != T{} ? asked : preset;
}

void copy_auth_key(std::uint8_t*& to, std::size_t& to_size, const std::uint8_t* from,
                   std::size_t size) {
  if (size == 0 || from == nullptr) return;
  to = static_cast<std::uint8_t*>(std::malloc(size));
  if (to == nullptr) throw std::bad_alloc();
  std::memcpy(to, from, size);
  to_size = size;
}

// A connection keeps all orders.
std::uint64_t kept_order(std::uint64_t asked, const Limits& limits) {
  return asked == 0 && limits.type->type == FI_EP_MSG ? limits.type->orders : asked;
}

void fill_tx(fi_tx_attr& tx, const fi_tx_attr& asked, std::uint64_t caps, const Limits& limits) {
  tx.caps = side_caps(asked.caps, caps, kTxCaps, *limits.type);
  tx.op_flags = asked.op_flags;
  tx.msg_order = kept_order(asked.msg_order, limits);
  tx.inject_size = either(asked.inject_size, limits.inject_size);
  tx.size = either(asked.size, limits.tx_size);
  tx.iov_limit = either(asked.iov_limit, kDefaultIovLimit);
  tx.rma_iov_limit = either(asked.rma_iov_limit, kMaxRmaRanges);
  tx.tclass = asked.tclass;
}

void fill_rx(fi_rx_attr& rx, const fi_rx_attr& asked, std::uint64_t caps, const Limits& limits) {
  rx.caps = side_caps(asked.caps, caps, kRxCaps, *limits.type);
  rx.op_flags = asked.op_flags;
  rx.msg_order = kept_order(asked.msg_order, limits);
  rx.size = either(asked.size, limits.rx_size);
  rx.iov_limit = either(asked.iov_limit, kDefaultIovLimit);
}

void fill_ep(fi_ep_attr& ep, const fi_ep_attr& asked, std::uint64_t tx_order,
             const Limits& limits) {
  ep.type = limits.type->type;
  ep.protocol = either(asked.protocol, std::uint32_t{FI_PROTO_UET});
  ep.protocol_version = FI_PROTO_UET_VERSION;
  ep.max_msg_size = limits.max_msg_size;
  const std::size_t ordered = tx_order != 0 ? kMaxMsgSize : 0;  // SES-128
  ep.max_order_raw_size = either(asked.max_order_raw_size, ordered);
  ep.max_order_war_size = either(asked.max_order_war_size, ordered);
  ep.max_order_waw_size = either(asked.max_order_waw_size, ordered);
  ep.mem_tag_format = either(asked.mem_tag_format, ~std::uint64_t{0});
  ep.tx_ctx_cnt = either(asked.tx_ctx_cnt, std::size_t{1});
  ep.rx_ctx_cnt = either(asked.rx_ctx_cnt, std::size_t{1});
  copy_auth_key(ep.auth_key, ep.auth_key_size, asked.auth_key, asked.auth_key_size);
}

void fill_domain(fi_domain_attr& domain, const fi_domain_attr& asked, std::uint64_t caps,
                 const EndpointType& type) {
  domain.threading = either(asked.threading, FI_THREAD_SAFE);
  domain.control_progress = either(asked.control_progress, FI_PROGRESS_MANUAL);
  domain.data_progress = either(asked.data_progress, FI_PROGRESS_MANUAL);
  domain.resource_mgmt = either(asked.resource_mgmt, FI_RM_ENABLED);
  domain.av_type = either(asked.av_type, FI_AV_TABLE);
  for (const auto& row : kDomainMost) domain.*row.member = row.most;
  domain.caps = (kDomainCaps & ~kPeerCaps) | (caps & kPeerCaps);
  domain.tclass = asked.tclass;
  copy_auth_key(domain.auth_key, domain.auth_key_size, asked.auth_key, asked.auth_key_size);
  if (asked.auth_key_size == kAvAuthKey) domain.auth_key_size = kAvAuthKey;
  set_auth_key_limit(domain, type.type == FI_EP_MSG ? 1 : kMaxAuthKeys);
  set_counter_limits(domain);
}

}  // namespace

const char* refuse_tx(const fi_tx_attr& tx, const Limits& limits) {
  const EndpointType& type = *limits.type;
  if (!subset(tx.caps, (kTxCaps | kDomainCaps) & ~kPeerCaps & type.caps)) return "tx_attr.caps";
  if (!subset(tx.op_flags, type.tx_op_flags)) return "tx_attr.op_flags";
  if (!subset(tx.msg_order, type.orders)) return "tx_attr.msg_order";
  if (!usable_traffic_class(tx.tclass, limits)) return "tx_attr.tclass";
  if (tx.comp_order != 0) return "tx_attr.comp_order: completions are not ordered";
  if (tx.inject_size > limits.inject_size) return "tx_attr.inject_size";
  if (tx.size > kMaxTxSize) return "tx_attr.size";
  if (tx.iov_limit > ses::kMaxIoSlices) return "tx_attr.iov_limit";
  if (tx.rma_iov_limit > kMaxRmaRanges) return "tx_attr.rma_iov_limit";
  return nullptr;
}

const char* refuse_rx(const fi_rx_attr& rx, const Limits& limits) {
  const EndpointType& type = *limits.type;
  // How peers name this context is the transmit side's concern, but MPICH asks for it here as well.
  const std::uint64_t caps = rx.caps & ~(type.caps & FI_NAMED_RX_CTX);
  if (!subset(caps, (kRxCaps | kDomainCaps) & ~kPeerCaps & type.caps)) return "rx_attr.caps";
  if (!subset(rx.op_flags, kRxOpFlags)) return "rx_attr.op_flags";
  if (!subset(rx.msg_order, type.orders)) return "rx_attr.msg_order";
  if (rx.comp_order != 0) return "rx_attr.comp_order: completions are not ordered";
  if (rx.total_buffered_recv != 0) return "rx_attr.total_buffered_recv";
  if (rx.size > kMaxRxSize) return "rx_attr.size";
  if (rx.iov_limit > ses::kMaxIoSlices) return "rx_attr.iov_limit";
  return nullptr;
}

const EndpointType& wanted_type(const fi_info* hints, const Params& params) {
  const bool named = hints != nullptr && hints->ep_attr != nullptr;
  if (named && hints->ep_attr->type == FI_EP_DGRAM) return dgram_of(params);
  return named && hints->ep_attr->type == FI_EP_MSG ? msg_of(params) : rdm_of(params);
}

bool offers_connections_too(const fi_info* hints) {
  if (hints == nullptr) return true;
  const bool unnamed = hints->ep_attr == nullptr || hints->ep_attr->type == FI_EP_UNSPEC;
  return unnamed && (hints->caps & FI_PEER) == 0;
}

const char* refuse_hints(const fi_info& hints, std::uint32_t version, const Limits& limits) {
  if (!subset(hints.caps, caps_offered(*limits.type, version))) return "caps";
  if ((hints.caps & FI_RMA_PMEM) != 0 && PersistentMemory::of_this_cpu() == nullptr) {
    return "caps: FI_RMA_PMEM is for x86-64";
  }
  if (!AddressFormat::of(hints.addr_format, false) && !AddressFormat::of(hints.addr_format, true)) {
    return "addr_format";
  }
  // A capability of the other side alone says nothing here, but applications write all of them into
  // both, and tcp takes them.
  const char* why = nullptr;
  if (hints.tx_attr != nullptr) {
    fi_tx_attr tx = *hints.tx_attr;
    tx.caps &= ~(limits.type->caps & kRxCaps & ~kTxCaps);
    why = refuse_tx(tx, limits);
  }
  if (why == nullptr && hints.rx_attr != nullptr) {
    fi_rx_attr rx = *hints.rx_attr;
    rx.caps &= ~(limits.type->caps & kTxCaps & ~kRxCaps);
    why = refuse_rx(rx, limits);
  }
  if (why == nullptr && hints.ep_attr != nullptr) {
    const std::uint64_t asked = hints.tx_attr != nullptr ? hints.tx_attr->msg_order : 0;
    const std::uint64_t tx_order = kept_order(asked, limits);
    why = refuse_ep(*hints.ep_attr, tx_order, limits);
  }
  if (why == nullptr && hints.domain_attr != nullptr) {
    why = refuse_domain(*hints.domain_attr, version, limits);
    if (why == nullptr && wants_thread_of_a_peer(hints.caps, *hints.domain_attr)) {
      why = "domain_attr.data_progress: FI_PEER goes with FI_PROGRESS_MANUAL only";
    }
    const int mode = hints.domain_attr->mr_mode;
    if (why == nullptr && limits.device_memory && (hints.caps & FI_HMEM) != 0 &&
        mode != kMrUnspec && (mode & FI_MR_HMEM) == 0) {
      why = "domain_attr.mr_mode: FI_HMEM of device memory needs FI_MR_HMEM";
    }
  }
  return why;
}

// Not over FI_PEER, whose owner matches messages alone.
bool data_take_receives(std::uint64_t mode, const fi_info& info) {
  return (mode & FI_RX_CQ_DATA) != 0 && info.ep_attr->type == FI_EP_RDM &&
         (info.caps & FI_RMA) != 0 && (info.caps & FI_PEER) == 0;
}

namespace {

// A mode bit of the result is a duty of the application, and uet needs none. Yet GIN of
// aws-ofi-nccl insists on FI_RX_CQ_DATA: it finds by the receive whose data have come. An
// application that offers the bit and says how many bytes of data it needs gets it; one that offers
// all bits has no wish.
bool insists_on_receives(const fi_info* hints, const fi_info& info) {
  constexpr std::uint64_t kAllBits = ~std::uint64_t{0};
  return hints != nullptr && hints->mode != kAllBits && hints->domain_attr != nullptr &&
         hints->domain_attr->cq_data_size != 0 && data_take_receives(hints->mode, info);
}

}  // namespace

void fill_attributes(fi_info& info, const fi_info* hints, std::uint32_t version,
                     const Limits& limits) {
  const fi_tx_attr tx =
      hints != nullptr && hints->tx_attr != nullptr ? *hints->tx_attr : fi_tx_attr{};
  const fi_rx_attr rx =
      hints != nullptr && hints->rx_attr != nullptr ? *hints->rx_attr : fi_rx_attr{};
  const fi_ep_attr ep =
      hints != nullptr && hints->ep_attr != nullptr ? *hints->ep_attr : fi_ep_attr{};
  const bool has_domain = hints != nullptr && hints->domain_attr != nullptr;
  info.caps = negotiate_caps(hints != nullptr ? hints->caps : 0, *limits.type, version);
  if (hints != nullptr) info.handle = hints->handle;
  fill_tx(*info.tx_attr, tx, info.caps, limits);
  fill_rx(*info.rx_attr, rx, info.caps, limits);
  fill_ep(*info.ep_attr, ep, info.tx_attr->msg_order, limits);
  fill_domain(*info.domain_attr, has_domain ? *hints->domain_attr : fi_domain_attr{}, info.caps,
              *limits.type);
  if (insists_on_receives(hints, info)) info.mode = info.rx_attr->mode = FI_RX_CQ_DATA;
  info.domain_attr->mr_mode =
      negotiate_mr_mode(hints, version, limits.device_memory && (info.caps & FI_HMEM) != 0);
  info.domain_attr->mr_key_size =
      chooses_keys_for(info.domain_attr->mr_mode) ? kProviderKeySize : kChosenKeySize;
  info.fabric_attr->prov_version = kProviderVersion;
  info.fabric_attr->api_version = version;
}

}  // namespace uet::prov
