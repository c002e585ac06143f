// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What libfabric's tcp provider answers to hints, uet answers, too: FI_EP_MSG beside tcp, FI_EP_RDM
// beside tcp;ofi_rxm. Each wish is asked alone and with each set of capabilities. Where uet is
// poorer, the test prints it, and fails unless the reason is listed here.
#include <gtest/gtest.h>
#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "harness.h"

namespace uet::e2e {
namespace {

using Info = std::unique_ptr<fi_info, Node::FreeInfo>;
using Change = std::function<void(fi_info&)>;

// FI_MR_BASIC, FI_MR_SCALABLE, FI_ORDER_STRICT, FI_ORDER_DATA: libfabric 2 deprecates these names.
constexpr int kMrBasic = 1 << 0;
constexpr int kMrScalable = 1 << 1;
constexpr std::uint64_t kOrderStrict = 0x1FF;
constexpr std::uint64_t kOrderData = 1ULL << 16;

struct Wish {
  std::string name;
  Change change;
};

struct Rival {
  fi_ep_type type;
  const char* provider;
  const char* name;
};

// FI_COLLECTIVE in any attribute: "caps bit 6", "tx_attr.caps bit 6", ...
const char* const kCollectives = "bit 6";
// FI_PEER and FI_AV_USER_ID: tcp;ofi_rxm of libfabric 2.1 offers them, uet from 2.3 to 2.6 (man
// fi_uet).
const char* const kPeer = "peer";
constexpr std::uint64_t kPeerCaps = FI_PEER | FI_AV_USER_ID;
bool knows_peers() {
  const std::uint32_t version = fi_version();
  return version >= FI_VERSION(2, 3) && version <= FI_VERSION(2, 6);
}

// Wishes that uet refuses with a reason, by "name" or "type name".
const std::map<std::string, std::string>& reasons() {
  static const std::map<std::string, std::string> all = {
      {"tx_attr.comp_order FI_ORDER_STRICT", "completions come when answers do, in any order"},
      {"tx_attr.comp_order FI_ORDER_DATA", "completions come when answers do, in any order"},
      {"rx_attr.comp_order FI_ORDER_STRICT", "long messages end when their data are here"},
      {"rx_attr.comp_order FI_ORDER_DATA", "long messages end when their data are here"},
      {"ep_attr.max_msg_size", "2^63 - 1, which is what newer versions of tcp say"},
      {"tx_attr.inject_size 16384", "what is injected is one packet"},
      {"tx_attr.size", "the default; up to 8192 on request (FI_UET_TX_SIZE)"},
      {kPeer, "peers of libfabric 2.3 to 2.6 only"},
      {"Rdm max_order_raw_size 8", "no order without msg_order, because RUD is the default"},
      {"Rdm max_order_waw_size 8", "no order without msg_order, because RUD is the default"},
      {kCollectives, "the protocol has no collectives (man fi_uet)"},
  };
  return all;
}

Info ask(const Rival& rival, const char* provider, std::uint32_t version, const Change& caps,
         const Change& wish) {
  const Info hints(fi_allocinfo());
  hints->fabric_attr->prov_name = strdup(provider);
  hints->ep_attr->type = rival.type;
  hints->mode = ~std::uint64_t{0};
  hints->domain_attr->mode = ~std::uint64_t{0};
  hints->domain_attr->mr_mode = ~(kMrBasic | kMrScalable);
  caps(*hints);
  wish(*hints);
  fi_info* found = nullptr;
  const char* const node = hints->addr_format == FI_SOCKADDR_IN6 ? "::1" : "127.0.0.1";
  if (fi_getinfo(version, node, nullptr, FI_SOURCE, hints.get(), &found) != 0) return {};
  return Info(found);
}

template <class Number>
void add_bits(std::vector<Wish>& wishes, const std::string& name, unsigned bits,
              const std::function<void(fi_info&, Number)>& set) {
  for (unsigned bit = 0; bit < bits; ++bit) {
    const auto value = static_cast<Number>(std::uint64_t{1} << bit);
    wishes.push_back({name + " bit " + std::to_string(bit),
                      [set, value](fi_info& hints) { set(hints, value); }});
  }
}

template <class Attr, class Number>
void add_numbers(std::vector<Wish>& wishes, const std::string& name, Attr* fi_info::*attr,
                 Number Attr::*member, const std::vector<std::uint64_t>& values) {
  for (const std::uint64_t value : values) {
    wishes.push_back({name + " " + std::to_string(value), [=](fi_info& hints) {
                        (hints.*attr)->*member = static_cast<Number>(value);
                      }});
  }
}

std::vector<Wish> all_wishes() {
  std::vector<Wish> w = {{"nothing", [](fi_info&) {}}};
  w.push_back({"mode 0", [](fi_info& h) { h.mode = h.domain_attr->mode = 0; }});
  w.push_back({"mr_mode 0", [](fi_info& h) { h.domain_attr->mr_mode = 0; }});
  w.push_back({"mr_mode FI_MR_BASIC", [](fi_info& h) { h.domain_attr->mr_mode = kMrBasic; }});
  w.push_back({"mr_mode FI_MR_SCALABLE", [](fi_info& h) { h.domain_attr->mr_mode = kMrScalable; }});
  add_bits<int>(w, "mr_mode", 14, [](fi_info& h, int v) { h.domain_attr->mr_mode = v; });
  add_bits<std::uint64_t>(w, "mode", 64,
                          [](fi_info& h, std::uint64_t v) { h.mode = h.domain_attr->mode = v; });
  add_bits<std::uint64_t>(w, "tx_attr.msg_order", 24,
                          [](fi_info& h, std::uint64_t v) { h.tx_attr->msg_order = v; });
  add_bits<std::uint64_t>(w, "rx_attr.msg_order", 24,
                          [](fi_info& h, std::uint64_t v) { h.rx_attr->msg_order = v; });
  add_bits<std::uint64_t>(w, "tx_attr.op_flags", 60,
                          [](fi_info& h, std::uint64_t v) { h.tx_attr->op_flags = v; });
  add_bits<std::uint64_t>(w, "rx_attr.op_flags", 60,
                          [](fi_info& h, std::uint64_t v) { h.rx_attr->op_flags = v; });
  w.push_back({"tx_attr.comp_order FI_ORDER_STRICT",
               [](fi_info& h) { h.tx_attr->comp_order = kOrderStrict; }});
  w.push_back(
      {"tx_attr.comp_order FI_ORDER_DATA", [](fi_info& h) { h.tx_attr->comp_order = kOrderData; }});
  w.push_back({"rx_attr.comp_order FI_ORDER_STRICT",
               [](fi_info& h) { h.rx_attr->comp_order = kOrderStrict; }});
  w.push_back(
      {"rx_attr.comp_order FI_ORDER_DATA", [](fi_info& h) { h.rx_attr->comp_order = kOrderData; }});
  constexpr auto kEp = &fi_info::ep_attr;
  constexpr auto kTx = &fi_info::tx_attr;
  constexpr auto kRx = &fi_info::rx_attr;
  constexpr auto kDomain = &fi_info::domain_attr;
  add_numbers(w, "threading", kDomain, &fi_domain_attr::threading, {1, 2, 3, 4, 5});
  add_numbers(w, "control_progress", kDomain, &fi_domain_attr::control_progress, {1, 2});
  add_numbers(w, "data_progress", kDomain, &fi_domain_attr::data_progress, {1, 2});
  add_numbers(w, "resource_mgmt", kDomain, &fi_domain_attr::resource_mgmt, {1, 2});
  add_numbers(w, "av_type", kDomain, &fi_domain_attr::av_type, {1, 2});
  add_numbers(w, "cq_data_size", kDomain, &fi_domain_attr::cq_data_size, {4, 8});
  add_numbers(w, "mr_key_size", kDomain, &fi_domain_attr::mr_key_size, {1, 4, 6, 8});
  add_numbers(w, "ep_cnt", kDomain, &fi_domain_attr::ep_cnt, {64, 1024, 8192, 32768});
  add_numbers(w, "cq_cnt", kDomain, &fi_domain_attr::cq_cnt, {64, 1024, 8192, 32768});
  add_numbers(w, "cntr_cnt", kDomain, &fi_domain_attr::cntr_cnt, {64, 1024});
  add_numbers(w, "mr_iov_limit", kDomain, &fi_domain_attr::mr_iov_limit, {1, 4});
  add_numbers(w, "mr_cnt", kDomain, &fi_domain_attr::mr_cnt, {64, 1024, 65536});
  add_numbers(w, "max_ep_stx_ctx", kDomain, &fi_domain_attr::max_ep_stx_ctx, {1, 64});
  add_numbers(w, "max_ep_srx_ctx", kDomain, &fi_domain_attr::max_ep_srx_ctx, {1, 64, 8192});
  add_numbers(w, "max_err_data", kDomain, &fi_domain_attr::max_err_data, {64});
  add_numbers(w, "max_msg_size", kEp, &fi_ep_attr::max_msg_size,
              {4096, 1U << 30, std::uint64_t{1} << 40, INT64_MAX});
  add_numbers(w, "max_order_raw_size", kEp, &fi_ep_attr::max_order_raw_size, {8});
  add_numbers(w, "max_order_waw_size", kEp, &fi_ep_attr::max_order_waw_size, {8});
  add_numbers(w, "mem_tag_format", kEp, &fi_ep_attr::mem_tag_format, {0xAAAAAAAAAAAAAAAAU});
  add_numbers(w, "tx_ctx_cnt", kEp, &fi_ep_attr::tx_ctx_cnt, {1, 2, FI_SHARED_CONTEXT});
  add_numbers(w, "rx_ctx_cnt", kEp, &fi_ep_attr::rx_ctx_cnt, {1, 2, FI_SHARED_CONTEXT});
  add_numbers(w, "tx_attr.inject_size", kTx, &fi_tx_attr::inject_size, {16, 64, 4096, 16384});
  add_numbers(w, "tx_attr.size", kTx, &fi_tx_attr::size, {64, 256, 1024, 4096, 65536});
  add_numbers(w, "tx_attr.iov_limit", kTx, &fi_tx_attr::iov_limit, {1, 4, 8});
  add_numbers(w, "tx_attr.rma_iov_limit", kTx, &fi_tx_attr::rma_iov_limit, {1, 4, 8});
  add_numbers(w, "rx_attr.size", kRx, &fi_rx_attr::size, {64, 256, 1024, 4096, 65536});
  add_numbers(w, "rx_attr.iov_limit", kRx, &fi_rx_attr::iov_limit, {1, 4, 8});
  add_numbers(w, "rx_attr.total_buffered_recv", kRx, &fi_rx_attr::total_buffered_recv, {64});
  for (const std::uint32_t format : {FI_SOCKADDR, FI_SOCKADDR_IN, FI_SOCKADDR_IN6, FI_ADDR_STR}) {
    w.push_back({"addr_format " + std::to_string(format),
                 [format](fi_info& h) { h.addr_format = format; }});
  }
  for (const std::uint32_t tclass :
       {FI_TC_BEST_EFFORT, FI_TC_LOW_LATENCY, FI_TC_BULK_DATA, FI_TC_NETWORK_CTRL}) {
    w.push_back({"tx_attr.tclass " + std::to_string(tclass),
                 [tclass](fi_info& h) { h.tx_attr->tclass = tclass; }});
  }
  return w;
}

// Each capability alone, those that go together, and the sides.
std::vector<Wish> all_caps() {
  std::vector<Wish> w = {{"", [](fi_info&) {}}};
  add_bits<std::uint64_t>(w, "caps", 64, [](fi_info& h, std::uint64_t v) { h.caps = v; });
  for (const std::uint64_t base : {FI_MSG, FI_TAGGED, FI_RMA, FI_ATOMIC}) {
    add_bits<std::uint64_t>(w, "caps " + std::to_string(base) + " and", 64,
                            [base](fi_info& h, std::uint64_t v) { h.caps = base | v; });
  }
  const auto both = [](fi_info& h, std::uint64_t v) { h.caps = h.tx_attr->caps = v; };
  add_bits<std::uint64_t>(w, "tx_attr.caps", 64, both);
  add_bits<std::uint64_t>(w, "rx_attr.caps", 64,
                          [](fi_info& h, std::uint64_t v) { h.caps = h.rx_attr->caps = v; });
  return w;
}

// A number in the answer to empty hints: uet's is at least the rival's.
struct Figure {
  const char* name;
  std::function<std::uint64_t(const fi_info&)> value;
};
const Figure kFigures[] = {
    {"ep_attr.max_msg_size", [](const fi_info& i) { return i.ep_attr->max_msg_size; }},
    {"ep_attr.tx_ctx_cnt", [](const fi_info& i) { return i.ep_attr->tx_ctx_cnt; }},
    {"tx_attr.inject_size", [](const fi_info& i) { return i.tx_attr->inject_size; }},
    {"tx_attr.size", [](const fi_info& i) { return i.tx_attr->size; }},
    {"tx_attr.iov_limit", [](const fi_info& i) { return i.tx_attr->iov_limit; }},
    {"tx_attr.rma_iov_limit", [](const fi_info& i) { return i.tx_attr->rma_iov_limit; }},
    {"rx_attr.size", [](const fi_info& i) { return i.rx_attr->size; }},
    {"rx_attr.iov_limit", [](const fi_info& i) { return i.rx_attr->iov_limit; }},
    {"domain_attr.cq_data_size", [](const fi_info& i) { return i.domain_attr->cq_data_size; }},
    {"domain_attr.ep_cnt", [](const fi_info& i) { return i.domain_attr->ep_cnt; }},
    {"domain_attr.cq_cnt", [](const fi_info& i) { return i.domain_attr->cq_cnt; }},
    {"domain_attr.max_ep_srx_ctx", [](const fi_info& i) { return i.domain_attr->max_ep_srx_ctx; }},
    {"domain_attr.mr_cnt", [](const fi_info& i) { return i.domain_attr->mr_cnt; }},
    {"domain_attr.mr_iov_limit", [](const fi_info& i) { return i.domain_attr->mr_iov_limit; }},
};

class Parity : public testing::TestWithParam<Rival> {
 protected:
  // True: not listed.
  static bool is_poorer(const std::string& what) {
    const bool caps = what.find("caps") != what.npos;
    const bool collective = caps && what.ends_with("bit 6");
    const bool peer = caps && (what.ends_with("bit 41") || what.ends_with("bit 43"));
    const auto reason = reasons().find(collective               ? kCollectives
                                       : peer && !knows_peers() ? kPeer
                                                                : what);
    const auto of_type = reasons().find(std::string(GetParam().name) + " " + what);
    const bool listed = reason != reasons().end() || of_type != reasons().end();
    if (printed_.insert(what).second) {
      std::printf("%s: %s: uet is poorer%s%s\n", GetParam().name, what.c_str(),
                  listed ? ", because " : "",
                  !listed                     ? ""
                  : reason != reasons().end() ? reason->second.c_str()
                                              : of_type->second.c_str());
    }
    return !listed;
  }
  static std::set<std::string> printed_;
};
std::set<std::string> Parity::printed_;

const auto kNothing = [](fi_info&) {};

TEST_P(Parity, EveryWishThatTcpMeetsIsMet) {
  const Rival& rival = GetParam();
  const std::uint32_t newest = fi_version();
  if (!ask(rival, rival.provider, newest, kNothing, kNothing)) {
    GTEST_SKIP() << "libfabric has no " << rival.provider << " here";
  }
  std::size_t asked = 0;
  std::size_t met = 0;
  const auto compare = [&](std::uint32_t version, const Wish& caps, const Wish& wish) {
    ++asked;
    const Info theirs = ask(rival, rival.provider, version, caps.change, wish.change);
    if (theirs == nullptr) return;
    ++met;
    const Info ours = ask(rival, provider().c_str(), version, caps.change, wish.change);
    const std::string what = wish.name == "nothing" ? caps.name : wish.name;
    if (ours == nullptr) {
      EXPECT_FALSE(is_poorer(what)) << caps.name << " with " << wish.name;
      return;
    }
    // Capabilities that come along unasked, and modes that are required.
    EXPECT_EQ(ours->mode & ~theirs->mode, 0U) << what;
  };
  const std::vector<Wish> caps = all_caps();
  const std::vector<Wish> wishes = all_wishes();
  for (const Wish& one : caps) compare(newest, one, wishes.front());
  const Wish sets[] = {{"", kNothing},
                       {"FI_MSG", [](fi_info& h) { h.caps = FI_MSG; }},
                       {"FI_TAGGED", [](fi_info& h) { h.caps = FI_TAGGED; }},
                       {"FI_RMA", [](fi_info& h) { h.caps = FI_RMA; }},
                       {"FI_MSG and FI_RMA", [](fi_info& h) { h.caps = FI_MSG | FI_RMA; }}};
  for (const std::uint32_t version :
       {std::uint32_t{FI_VERSION(1, 4)}, std::uint32_t{FI_VERSION(1, 9)}, newest}) {
    for (const Wish& set : sets) {
      for (const Wish& wish : wishes) compare(version, set, wish);
    }
  }
  std::printf("%s: %zu questions, %s answers %zu\n", rival.name, asked, rival.provider, met);
  EXPECT_GT(met, 100U);
}

TEST_P(Parity, NumbersAreAtLeastTheirs) {
  const Rival& rival = GetParam();
  const Info theirs = ask(rival, rival.provider, fi_version(), kNothing, kNothing);
  if (theirs == nullptr) GTEST_SKIP() << "libfabric has no " << rival.provider << " here";
  const Info ours = ask(rival, provider().c_str(), fi_version(), kNothing, kNothing);
  ASSERT_NE(ours, nullptr);
  for (const Figure& figure : kFigures) {
    const std::uint64_t a = figure.value(*ours);
    const std::uint64_t b = figure.value(*theirs);
    if (a >= b) continue;
    EXPECT_FALSE(is_poorer(figure.name)) << figure.name << ": " << a << " < " << b;
  }
  std::uint64_t missing = theirs->caps & ~ours->caps;
  if ((missing & kPeerCaps) != 0 && !knows_peers()) {
    EXPECT_FALSE(is_poorer("caps bit 43"));
    missing &= ~kPeerCaps;
  }
  EXPECT_EQ(missing, 0U) << "capabilities that come unasked: 0x" << std::hex << missing;
}

INSTANTIATE_TEST_SUITE_P(Tcp, Parity,
                         testing::Values(Rival{FI_EP_MSG, "tcp", "Msg"},
                                         Rival{FI_EP_RDM, "tcp;ofi_rxm", "Rdm"}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace uet::e2e
