// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Negotiation of attributes without any network: what is refused, and what comes back.
#include "settings/hints.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>

#include "uet/fi_ext_uet.h"

namespace uet::prov {
namespace {

constexpr std::uint32_t kVersion = FI_VERSION(1, 17);
constexpr Limits kLimits{.inject_size = 4096, .tx_size = 1024, .rx_size = 1024};

struct Free {
  void operator()(fi_info* info) const { fi_freeinfo(info); }
};
using Info = std::unique_ptr<fi_info, Free>;

Info make_hints() { return Info(fi_allocinfo()); }

Info fill(const fi_info* hints, std::uint32_t version = kVersion) {
  Info info(fi_allocinfo());
  fill_attributes(*info, hints, version, kLimits);
  return info;
}

TEST(RefuseHints, EmptyHintsAreMet) {
  EXPECT_EQ(refuse_hints(*make_hints(), kVersion, kLimits), nullptr);
}

TEST(RefuseHints, ContextsScalableAndShared_AreMet) {
  const Info hints = make_hints();
  hints->ep_attr->tx_ctx_cnt = FI_SHARED_CONTEXT;
  hints->ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT;
  ASSERT_EQ(refuse_hints(*hints, kVersion, kLimits), nullptr);
  hints->ep_attr->rx_ctx_cnt = kMaxContexts;
  ASSERT_EQ(refuse_hints(*hints, kVersion, kLimits), nullptr);
  const Info info = make_hints();
  fill_attributes(*info, hints.get(), kVersion, kLimits);
  EXPECT_EQ(info->ep_attr->tx_ctx_cnt, FI_SHARED_CONTEXT);
  EXPECT_EQ(info->ep_attr->rx_ctx_cnt, kMaxContexts);
  fill_attributes(*info, nullptr, kVersion, kLimits);
  EXPECT_EQ(info->ep_attr->tx_ctx_cnt, 1U);
  EXPECT_EQ(info->ep_attr->rx_ctx_cnt, 1U);
}

// Mercury reads the number as an int.
TEST(RefuseHints, ProtocolFitsAnIntAndTheOldNumberIsTaken) {
  EXPECT_LE(FI_PROTO_UET, static_cast<std::uint32_t>(INT32_MAX));
  EXPECT_EQ(fill(nullptr)->ep_attr->protocol, FI_PROTO_UET);
  for (const std::uint32_t number : {FI_PROTO_UET, FI_PROTO_UET_OLD}) {
    const Info hints = make_hints();
    hints->ep_attr->protocol = number;
    ASSERT_EQ(refuse_hints(*hints, kVersion, kLimits), nullptr);
    EXPECT_EQ(fill(hints.get())->ep_attr->protocol, number) << "as asked for";
  }
}

// fi_domain(3): an application that chooses keys may use every value of mr_key_size bytes.
TEST(RefuseHints, Ses132_KeySizeIsThatOfTheKeysThatWork) {
  EXPECT_EQ(fill(nullptr)->domain_attr->mr_key_size, 6U);
  const Info hints = make_hints();
  hints->domain_attr->mr_key_size = 8;
  EXPECT_STREQ(refuse_hints(*hints, kVersion, kLimits), "domain_attr.mr_key_size");
  hints->domain_attr->mr_mode = FI_MR_PROV_KEY | FI_MR_VIRT_ADDR;
  ASSERT_EQ(refuse_hints(*hints, kVersion, kLimits), nullptr);
  EXPECT_EQ(fill(hints.get())->domain_attr->mr_key_size, 8U);
  EXPECT_EQ(fill(hints.get())->domain_attr->mr_mode, FI_MR_PROV_KEY);
  hints->domain_attr->mr_key_size = 4;
  EXPECT_EQ(fill(hints.get())->domain_attr->mr_key_size, 6U);
  EXPECT_EQ(fill(hints.get())->domain_attr->mr_mode, 0) << "not required";
  hints->domain_attr->mr_mode = kMrBasic;
  EXPECT_EQ(fill(hints.get())->domain_attr->mr_key_size, 8U);
  hints->domain_attr->mr_key_size = 9;
  EXPECT_STREQ(refuse_hints(*hints, kVersion, kLimits), "domain_attr.mr_key_size");
}

// Where the library's peer interface is one that we know.
TEST(RefuseHints, PeersAreServedByTheirOwnersProgressAlone) {
  const Info hints = make_hints();
  hints->caps = FI_TAGGED | FI_PEER | FI_AV_USER_ID;
  EXPECT_EQ(refuse_hints(*hints, kVersion, kLimits) == nullptr, has_peer_interface());
  EXPECT_EQ(fill(nullptr)->domain_attr->caps & kPeerCaps, 0U);
  if (has_peer_interface()) {
    EXPECT_EQ(fill(hints.get())->domain_attr->caps & kPeerCaps, kPeerCaps);
  }
  hints->domain_attr->data_progress = FI_PROGRESS_AUTO;
  EXPECT_NE(refuse_hints(*hints, kVersion, kLimits), nullptr);
}

TEST(RefuseHints, EachThingWeLackIsRefused) {
  const std::function<void(fi_info&)> wishes[] = {
      [](fi_info& h) { h.caps = FI_MSG | FI_MULTICAST; },
      [](fi_info& h) { h.caps = FI_MSG | FI_COLLECTIVE; },
      // FI_EP_SOCK_STREAM, which libfabric 2 removes
      [](fi_info& h) { h.ep_attr->type = static_cast<fi_ep_type>(4); },
      [](fi_info& h) { h.addr_format = FI_ADDR_IB_UD; },
      [](fi_info& h) { h.ep_attr->protocol = FI_PROTO_UDP; },
      [](fi_info& h) { h.domain_attr->threading = static_cast<fi_threading>(-1); },
      [](fi_info& h) { h.domain_attr->resource_mgmt = static_cast<fi_resource_mgmt>(-1); },
      [](fi_info& h) { h.domain_attr->av_type = static_cast<fi_av_type>(-1); },
      [](fi_info& h) { h.ep_attr->max_msg_size = SIZE_MAX; },
      [](fi_info& h) { h.ep_attr->max_order_waw_size = 8; },
      [](fi_info& h) { h.ep_attr->tx_ctx_cnt = kMaxContexts + 1; },
      [](fi_info& h) { h.ep_attr->rx_ctx_cnt = kMaxContexts + 1; },
      [](fi_info& h) { h.tx_attr->inject_size = 4097; },
      [](fi_info& h) { h.tx_attr->size = 8193; },
      [](fi_info& h) { h.tx_attr->iov_limit = 17; },
      [](fi_info& h) { h.tx_attr->rma_iov_limit = 5; },
      [](fi_info& h) { h.tx_attr->msg_order = std::uint64_t{1} << 40; },
      [](fi_info& h) { h.tx_attr->comp_order = 1; },
      [](fi_info& h) { h.tx_attr->tclass = 1; },
      [](fi_info& h) { h.domain_attr->tclass = FI_TC_NETWORK_CTRL + 1; },
      [](fi_info& h) { h.rx_attr->comp_order = 1; },
      [](fi_info& h) { h.rx_attr->total_buffered_recv = 1; },
      [](fi_info& h) { h.rx_attr->op_flags = FI_PEEK; },
      [](fi_info& h) { h.domain_attr->cq_data_size = 9; },
      [](fi_info& h) { h.domain_attr->mr_iov_limit = 2; },
      [](fi_info& h) { h.domain_attr->max_ep_srx_ctx = kMaxEndpoints + 1; },
      [](fi_info& h) { h.domain_attr->mr_mode = 1 << 0 | FI_MR_LOCAL; },
      [](fi_info& h) { h.domain_attr->caps = FI_SHARED_AV; },
  };
  int number = 0;
  for (const auto& wish : wishes) {
    const Info hints = make_hints();
    wish(*hints);
    EXPECT_NE(refuse_hints(*hints, kVersion, kLimits), nullptr) << "wish " << number;
    ++number;
  }
}

TEST(Capabilities, Api1ApplicationsCannotAskForApi2Caps) {
  const Info hints = make_hints();
  for (const std::uint64_t bit : {kTaggedDirectedRecv, kTaggedMultiRecv}) {
    hints->caps = FI_TAGGED | bit;
    EXPECT_NE(refuse_hints(*hints, FI_VERSION(1, 22), kLimits), nullptr);
    EXPECT_EQ(refuse_hints(*hints, FI_VERSION(2, 0), kLimits), nullptr);
  }
  Info info(fi_allocinfo());
  fill_attributes(*info, nullptr, FI_VERSION(1, 22), kLimits);
  EXPECT_EQ(info->caps & kCapsSince2, 0U);
  EXPECT_EQ(info->caps & FI_MULTI_RECV, FI_MULTI_RECV);
}

constexpr Limits kMsgLimits{.type = &kMsg, .inject_size = 4096, .tx_size = 1024, .rx_size = 1024};

TEST(RefuseHints, ConnectionsAreOfferedBehindRdm) {
  const Info hints = make_hints();
  EXPECT_TRUE(offers_connections_too(nullptr));
  hints->ep_attr->type = FI_EP_UNSPEC;
  EXPECT_TRUE(offers_connections_too(hints.get()));
  hints->caps = FI_TAGGED | FI_PEER;
  EXPECT_FALSE(offers_connections_too(hints.get()));
  hints->caps = 0;
  hints->ep_attr->type = FI_EP_RDM;
  EXPECT_FALSE(offers_connections_too(hints.get()));
  hints->ep_attr->type = FI_EP_MSG;
  EXPECT_FALSE(offers_connections_too(hints.get()));
  EXPECT_EQ(wanted_type(hints.get()).type, FI_EP_MSG);
  EXPECT_NE(refuse_hints(*hints, kVersion, kLimits), nullptr);
}

TEST(RefuseHints, ConnectionsNameNoSources) {
  const Info hints = make_hints();
  hints->ep_attr->type = FI_EP_MSG;
  hints->caps = FI_MSG | FI_RMA | FI_ATOMIC | FI_TAGGED | FI_MULTI_RECV;
  EXPECT_EQ(refuse_hints(*hints, kVersion, kMsgLimits), nullptr);
  hints->caps = FI_MSG | FI_DIRECTED_RECV;
  EXPECT_NE(refuse_hints(*hints, kVersion, kMsgLimits), nullptr);
}

TEST(FillAttributes, ConnectionsKeepAllOrders) {
  const Info hints = make_hints();
  hints->ep_attr->type = FI_EP_MSG;
  const Info info(fi_allocinfo());
  fill_attributes(*info, hints.get(), kVersion, kMsgLimits);
  EXPECT_EQ(info->ep_attr->type, FI_EP_MSG);
  EXPECT_EQ(info->tx_attr->msg_order, kMsg.orders);
  EXPECT_EQ(info->rx_attr->msg_order, kMsg.orders);
  EXPECT_EQ(info->ep_attr->max_order_waw_size, kMaxMsgSize);
  EXPECT_EQ(info->caps & FI_SOURCE, 0U);
}

constexpr Limits kDatagramLimits{
    .type = &kDgram, .max_msg_size = 4096, .inject_size = 4096, .tx_size = 1024, .rx_size = 1024};

TEST(RefuseHints, DatagramsAreForWhoNamesThem) {
  const Info hints = make_hints();
  EXPECT_EQ(wanted_type(nullptr).type, FI_EP_RDM);
  EXPECT_EQ(wanted_type(hints.get()).type, FI_EP_RDM);
  hints->ep_attr->type = FI_EP_DGRAM;
  EXPECT_EQ(wanted_type(hints.get()).type, FI_EP_DGRAM);
  EXPECT_EQ(refuse_hints(*hints, kVersion, kDatagramLimits), nullptr);
  EXPECT_NE(refuse_hints(*hints, kVersion, kLimits), nullptr);
}

TEST(RefuseHints, DatagramRefusesUnsupportedFeatures) {
  const std::function<void(fi_info&)> wishes[] = {
      [](fi_info& h) { h.caps = FI_TAGGED; },
      [](fi_info& h) { h.caps = FI_MSG | FI_RMA; },
      [](fi_info& h) { h.caps = FI_MSG | FI_ATOMIC; },
      [](fi_info& h) { h.tx_attr->caps = FI_MSG | FI_READ; },
      [](fi_info& h) { h.rx_attr->caps = FI_MSG | FI_REMOTE_WRITE; },
      [](fi_info& h) { h.tx_attr->msg_order = FI_ORDER_SAS; },
      [](fi_info& h) { h.rx_attr->msg_order = FI_ORDER_SAS; },
      [](fi_info& h) { h.tx_attr->op_flags = FI_DELIVERY_COMPLETE; },
      [](fi_info& h) { h.ep_attr->max_msg_size = 4097; },
      [](fi_info& h) { h.ep_attr->max_order_raw_size = 1; },
      [](fi_info& h) { h.ep_attr->msg_prefix_size = 1; },
  };
  int number = 0;
  for (const auto& wish : wishes) {
    const Info hints = make_hints();
    hints->ep_attr->type = FI_EP_DGRAM;
    wish(*hints);
    EXPECT_NE(refuse_hints(*hints, kVersion, kDatagramLimits), nullptr) << "wish " << number;
    ++number;
  }
}

TEST(FillAttributes, DatagramEndpointsSendAndReceiveOnePacketEach) {
  const Info hints = make_hints();
  hints->ep_attr->type = FI_EP_DGRAM;
  Info info(fi_allocinfo());
  fill_attributes(*info, hints.get(), kVersion, kDatagramLimits);
  EXPECT_EQ(info->ep_attr->type, FI_EP_DGRAM);
  EXPECT_EQ(info->ep_attr->max_msg_size, 4096U);
  EXPECT_EQ(info->ep_attr->msg_prefix_size, 0U);
  EXPECT_EQ(info->caps & (FI_MSG | FI_SEND | FI_RECV | FI_SOURCE),
            FI_MSG | FI_SEND | FI_RECV | FI_SOURCE);
  EXPECT_EQ((info->caps | info->tx_attr->caps | info->rx_attr->caps) &
                (FI_TAGGED | FI_RMA | FI_ATOMIC | FI_READ | FI_REMOTE_READ),
            0U);
  EXPECT_EQ(refuse_hints(*info, kVersion, kDatagramLimits), nullptr);
}

TEST(RefuseHints, Ses145_AuthKeyIsThreeOrFourBytes) {
  for (const std::size_t size : {1, 2, 3, 4, 5, 8}) {
    const Info hints = make_hints();
    hints->ep_attr->auth_key = static_cast<std::uint8_t*>(std::calloc(1, size));
    hints->ep_attr->auth_key_size = size;
    EXPECT_EQ(refuse_hints(*hints, kVersion, kLimits) == nullptr, size == 3 || size == 4) << size;
    hints->ep_attr->auth_key[0] = 1;  // in 4 bytes, a JobID of more than 24 bits
    EXPECT_EQ(refuse_hints(*hints, kVersion, kLimits) == nullptr, size == 3) << size;
  }
}

// fi_mr(3): device memory comes with a descriptor.
TEST(RefuseHints, DeviceMemoryNeedsItsMrMode) {
  Limits limits = kLimits;
  limits.device_memory = true;
  const Info hints = make_hints();
  for (const auto& [caps, mode, met] :
       {std::tuple{FI_MSG | FI_HMEM, 0, true}, std::tuple{FI_MSG | FI_HMEM, FI_MR_HMEM, true},
        std::tuple{FI_MSG | FI_HMEM, FI_MR_LOCAL, false}, std::tuple{FI_MSG, FI_MR_LOCAL, true}}) {
    hints->caps = caps;
    hints->domain_attr->mr_mode = mode;
    EXPECT_EQ(refuse_hints(*hints, kVersion, limits) == nullptr, met) << mode;
    EXPECT_EQ(refuse_hints(*hints, kVersion, kLimits), nullptr) << "system memory alone";
  }
  const Info info = make_hints();
  hints->caps = FI_MSG | FI_HMEM;
  fill_attributes(*info, hints.get(), kVersion, limits);
  EXPECT_EQ(info->domain_attr->mr_mode, FI_MR_HMEM);
}

TEST(FillAttributes, WithoutHintsEverythingThatWorksIsShown) {
  const Info info = fill(nullptr);
  EXPECT_EQ(info->caps, kCaps & ~(kCapsSince2 | FI_SOURCE_ERR | FI_HMEM | kPeerCaps));
  EXPECT_EQ(info->mode, 0U);
  EXPECT_EQ(info->ep_attr->type, FI_EP_RDM);
  EXPECT_EQ(info->ep_attr->max_msg_size, std::size_t{INT64_MAX});
  EXPECT_EQ(info->ep_attr->mem_tag_format, ~std::uint64_t{0});
  EXPECT_EQ(info->domain_attr->threading, FI_THREAD_SAFE);
  EXPECT_EQ(info->domain_attr->data_progress, FI_PROGRESS_MANUAL);
  EXPECT_EQ(info->domain_attr->resource_mgmt, FI_RM_ENABLED);
  EXPECT_EQ(info->domain_attr->cq_data_size, 8U);
  EXPECT_EQ(info->domain_attr->mr_mode, 0);
  EXPECT_EQ(info->tx_attr->msg_order, 0U);
  EXPECT_EQ(info->fabric_attr->prov_name, nullptr);
}

// SES-124, SES-127, SES-128: order only when asked for, and sizes to match.
TEST(FillAttributes, Ses128_OrderBringsItsSizes) {
  const Info hints = make_hints();
  hints->tx_attr->msg_order = FI_ORDER_SAS | FI_ORDER_RMA_WAW;
  ASSERT_EQ(refuse_hints(*hints, kVersion, kLimits), nullptr);
  const Info ordered = fill(hints.get());
  EXPECT_EQ(ordered->tx_attr->msg_order, FI_ORDER_SAS | FI_ORDER_RMA_WAW);
  EXPECT_EQ(ordered->tx_attr->comp_order, 0U);  // completions are not ordered all the same
  EXPECT_EQ(ordered->rx_attr->comp_order, 0U);
  EXPECT_EQ(ordered->ep_attr->max_order_raw_size, kMaxMsgSize);
  EXPECT_EQ(ordered->ep_attr->max_order_war_size, kMaxMsgSize);
  EXPECT_EQ(ordered->ep_attr->max_order_waw_size, kMaxMsgSize);
  const Info unordered = fill(nullptr);
  EXPECT_EQ(unordered->ep_attr->max_order_raw_size, 0U);
  EXPECT_EQ(unordered->ep_attr->max_order_war_size, 0U);
  EXPECT_EQ(unordered->ep_attr->max_order_waw_size, 0U);
}

TEST(FillAttributes, ReturnsRequestedValues) {
  const Info hints = make_hints();
  hints->caps = FI_TAGGED;
  hints->domain_attr->threading = FI_THREAD_DOMAIN;
  hints->domain_attr->data_progress = FI_PROGRESS_AUTO;
  hints->domain_attr->av_type = FI_AV_MAP;
  hints->tx_attr->inject_size = 16;
  hints->tx_attr->op_flags = FI_DELIVERY_COMPLETE;
  hints->rx_attr->size = 7;
  ASSERT_EQ(refuse_hints(*hints, kVersion, kLimits), nullptr);
  const Info info = fill(hints.get());
  EXPECT_EQ(info->caps,
            FI_TAGGED | FI_SEND | FI_RECV | FI_TRIGGER | FI_LOCAL_COMM | FI_REMOTE_COMM);
  EXPECT_EQ(info->tx_attr->caps, FI_TAGGED | FI_SEND | FI_TRIGGER);
  EXPECT_EQ(info->rx_attr->caps, FI_TAGGED | FI_RECV | FI_TRIGGER);
  EXPECT_EQ(info->domain_attr->threading, FI_THREAD_DOMAIN);
  EXPECT_EQ(info->domain_attr->data_progress, FI_PROGRESS_AUTO);
  EXPECT_EQ(info->domain_attr->av_type, FI_AV_MAP);
  EXPECT_EQ(info->tx_attr->inject_size, 16U);
  EXPECT_EQ(info->tx_attr->op_flags, FI_DELIVERY_COMPLETE);
  EXPECT_EQ(info->rx_attr->size, 7U);
}

// GIN of aws-ofi-nccl needs the bit in the result; nothing else makes it a duty.
TEST(FillAttributes, DataTakeReceivesOfWhoInsists) {
  const struct {
    std::uint64_t mode;
    std::size_t data_bytes;
    std::uint64_t caps;
    fi_ep_type type;
    std::uint64_t returned;
  } rows[] = {
      {FI_RX_CQ_DATA | FI_CONTEXT, 4, FI_MSG | FI_RMA, FI_EP_RDM, FI_RX_CQ_DATA},
      {FI_RX_CQ_DATA, 4, 0, FI_EP_UNSPEC, FI_RX_CQ_DATA},
      {FI_RX_CQ_DATA, 0, FI_MSG | FI_RMA, FI_EP_RDM, 0},
      {FI_CONTEXT, 4, FI_MSG | FI_RMA, FI_EP_RDM, 0},
      {~std::uint64_t{0}, 4, FI_MSG | FI_RMA, FI_EP_RDM, 0},
      {FI_RX_CQ_DATA, 4, FI_MSG, FI_EP_RDM, 0},
  };
  for (const auto& row : rows) {
    const Info hints = make_hints();
    hints->mode = row.mode;
    hints->caps = row.caps;
    hints->ep_attr->type = row.type;
    hints->domain_attr->cq_data_size = row.data_bytes;
    ASSERT_EQ(refuse_hints(*hints, kVersion, kLimits), nullptr);
    const Info info = fill(hints.get());
    EXPECT_EQ(info->mode, row.returned) << row.mode;
    EXPECT_EQ(info->rx_attr->mode, row.returned) << row.mode;
  }
}

// fi_getinfo(3): a context may ask for less than the endpoint.
TEST(FillAttributes, ASideThatAsksForItselfGetsThat) {
  const Info hints = make_hints();
  hints->caps = FI_TAGGED | FI_MSG;
  hints->tx_attr->caps = FI_TAGGED | FI_SEND;
  hints->rx_attr->caps = FI_TAGGED;
  ASSERT_EQ(refuse_hints(*hints, kVersion, kLimits), nullptr);
  const Info info = fill(hints.get());
  EXPECT_EQ(info->tx_attr->caps, FI_TAGGED | FI_SEND | FI_TRIGGER);
  EXPECT_EQ(info->rx_attr->caps, FI_TAGGED | FI_RECV | FI_TRIGGER);
}

// A bit that comes back is required, and none is.
TEST(FillAttributes, NoMemoryRegistrationModeIsRequired) {
  const struct {
    int offered;
    int returned;
    std::uint32_t version;
  } rows[] = {
      {0, 0, kVersion},
      {0, 2, FI_VERSION(1, 4)},
      {1, 1, FI_VERSION(1, 4)},
      {1, 1, kVersion},
      {2, 2, kVersion},
      {FI_MR_LOCAL | FI_MR_ENDPOINT, 0, kVersion},
      {FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_LOCAL, 0, kVersion},
      {~3, 0, kVersion},
  };
  for (const auto& row : rows) {
    const Info hints = make_hints();
    hints->domain_attr->mr_mode = row.offered;
    ASSERT_EQ(refuse_hints(*hints, row.version, kLimits), nullptr) << row.offered;
    EXPECT_EQ(fill(hints.get(), row.version)->domain_attr->mr_mode, row.returned) << row.offered;
  }
}

// An info that came from us is met by us again.
TEST(RefuseHints, OwnInfosWorkAsHints) {
  const Info plain = fill(nullptr);
  EXPECT_EQ(refuse_hints(*plain, kVersion, kLimits), nullptr);
  const Info hints = make_hints();
  hints->tx_attr->msg_order = kOrders;
  hints->rx_attr->msg_order = kOrders;
  const Info ordered = fill(hints.get());
  EXPECT_EQ(refuse_hints(*ordered, kVersion, kLimits), nullptr);
}

TEST(FillAttributes, FourPiecesUnlessMoreAreAskedFor) {
  const Info hints = make_hints();
  EXPECT_EQ(fill(hints.get())->tx_attr->iov_limit, 4U);
  EXPECT_EQ(fill(hints.get())->rx_attr->iov_limit, 4U);
  hints->tx_attr->iov_limit = 16;
  hints->rx_attr->iov_limit = 2;
  EXPECT_EQ(fill(hints.get())->tx_attr->iov_limit, 16U);
  EXPECT_EQ(fill(hints.get())->rx_attr->iov_limit, 2U);
}

// WIRE 1.3: a class with the DSCP of trimmed packets would look trimmed to every peer.
TEST(RefuseHints, TrafficClassesOfTrimmedPackets) {
  Limits limits = kLimits;
  limits.trim_marks = {.trimmed = 12, .trimmed_last_hop = 18};
  const auto hints = make_hints();
  for (const std::uint32_t tclass : {fi_tc_dscp_set(12), std::uint32_t{FI_TC_LOW_LATENCY}}) {
    hints->tx_attr->tclass = tclass;
    EXPECT_EQ(refuse_hints(*hints, kVersion, kLimits), nullptr);
    EXPECT_STREQ(refuse_hints(*hints, kVersion, limits), "tx_attr.tclass");
    hints->tx_attr->tclass = FI_TC_UNSPEC;
    hints->domain_attr->tclass = tclass;
    EXPECT_STREQ(refuse_hints(*hints, kVersion, limits), "domain_attr.tclass");
    hints->domain_attr->tclass = FI_TC_UNSPEC;
  }
  EXPECT_EQ(refuse_hints(*hints, kVersion, limits), nullptr);
}

}  // namespace
}  // namespace uet::prov
