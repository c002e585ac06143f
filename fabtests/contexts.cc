// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// More than one endpoint: aliases, shared transmit and receive contexts, scalable endpoints, and
// several endpoints in one domain, fi_endpoint(3).
#include <array>

#include "common.h"

using namespace fabtests;

namespace {

constexpr int kEndpoints = 3;

void with_order(fi_info& hints) {
  hints.tx_attr->msg_order = FI_ORDER_SAS;
  hints.rx_attr->msg_order = FI_ORDER_SAS;
}

void send_number(Node& node, fid_ep* from, fi_addr_t to, int number) {
  POST(node, fi_send(from, &number, sizeof number, nullptr, to, nullptr));
  node.completion(node.tx);
}

// An alias is the same endpoint with other defaults: here without a completion for each send.
void alias(Link& link) {
  Setup setup;
  setup.hints = with_order;
  setup.tx_bind_flags = FI_SELECTIVE_COMPLETION;
  Node node(link, setup);
  node.connect();
  if (link.server()) {
    for (int i = 0; i < 2; ++i) {
      int value = -1;
      POST(node, fi_recv(node.ep, &value, sizeof value, nullptr, node.peer, nullptr));
      node.completion(node.rx);
      CHECK(value == i);
    }
  } else {
    fid_ep* other = nullptr;
    OK(fi_ep_alias(node.ep, &other, FI_TRANSMIT | FI_COMPLETION));
    const std::array<int, 2> values{0, 1};
    POST(node, fi_send(node.ep, &values[0], sizeof(int), nullptr, node.peer, nullptr));
    POST(node, fi_send(other, &values[1], sizeof(int), nullptr, node.peer, nullptr));
    node.completion(node.tx);
    CHECK(node.stays_empty(node.tx));
    OK(fi_close(&other->fid));
  }
  node.meet();
}

// Several endpoints with one AV and one pair of queues; each has its own name.
void several(Link& link) {
  Node node(link);
  node.connect();
  std::array<fid_ep*, kEndpoints> endpoints{};
  std::array<fi_addr_t, kEndpoints> peers{};
  for (std::size_t i = 0; i < kEndpoints; ++i) {
    OK(fi_endpoint(node.domain, node.info, &endpoints[i], nullptr));
    OK(fi_ep_bind(endpoints[i], &node.av->fid, 0));
    OK(fi_ep_bind(endpoints[i], &node.tx->fid, FI_TRANSMIT));
    OK(fi_ep_bind(endpoints[i], &node.rx->fid, FI_RECV));
    OK(fi_enable(endpoints[i]));
    peers[i] = node.exchange(endpoints[i]);
  }
  for (std::size_t i = 0; i < kEndpoints; ++i) {
    const int number = static_cast<int>(i);
    if (link.server()) {
      int value = -1;
      POST(node, fi_recv(endpoints[i], &value, sizeof value, nullptr, FI_ADDR_UNSPEC, nullptr));
      node.completion(node.rx);
      CHECK(value == number);
    } else {
      send_number(node, endpoints[kEndpoints - 1 - i], peers[i], number);
    }
  }
  node.meet();
  for (fid_ep* endpoint : endpoints) OK(fi_close(&endpoint->fid));
}

// All endpoints of the server take their messages from one shared receive context, all of the
// client send through one shared transmit context.
void shared(Link& link) {
  Setup setup;
  setup.endpoint = false;
  setup.hints = [](fi_info& hints) {
    hints.caps = FI_MSG;
    hints.ep_attr->tx_ctx_cnt = FI_SHARED_CONTEXT;
    hints.ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT;
  };
  Node node(link, setup);
  fid_stx* transmit = nullptr;
  fid_ep* receive = nullptr;
  OK(fi_stx_context(node.domain, node.info->tx_attr, &transmit, nullptr));
  OK(fi_srx_context(node.domain, node.info->rx_attr, &receive, nullptr));
  std::array<fid_ep*, kEndpoints> endpoints{};
  std::array<fi_addr_t, kEndpoints> peers{};
  for (std::size_t i = 0; i < kEndpoints; ++i) {
    OK(fi_endpoint(node.domain, node.info, &endpoints[i], nullptr));
    OK(fi_ep_bind(endpoints[i], &transmit->fid, 0));
    OK(fi_ep_bind(endpoints[i], &receive->fid, 0));
    OK(fi_ep_bind(endpoints[i], &node.av->fid, 0));
    OK(fi_ep_bind(endpoints[i], &node.tx->fid, FI_TRANSMIT));
    OK(fi_ep_bind(endpoints[i], &node.rx->fid, FI_RECV));
    OK(fi_enable(endpoints[i]));
    peers[i] = node.exchange(endpoints[i]);
  }
  for (std::size_t i = 0; i < kEndpoints; ++i) {
    const int number = static_cast<int>(i);
    if (link.server()) {
      int value = -1;
      POST(node, fi_recv(receive, &value, sizeof value, nullptr, FI_ADDR_UNSPEC, &value));
      CHECK(node.completion(node.rx).op_context == &value);
      CHECK(value == number);
    } else {
      send_number(node, endpoints[i], peers[kEndpoints - 1 - i], number);
    }
  }
  node.meet();
  for (fid_ep* endpoint : endpoints) OK(fi_close(&endpoint->fid));
  OK(fi_close(&receive->fid));
  OK(fi_close(&transmit->fid));
}

// A scalable endpoint: every transmit context of the client reaches every receive context of the
// server by the index in the address (FI_NAMED_RX_CTX).
void scalable(Link& link) {
  constexpr int kContexts = 2;
  constexpr int kBits = 1;
  Setup setup;
  setup.endpoint = false;
  setup.hints = [](fi_info& hints) {
    hints.caps |= FI_NAMED_RX_CTX;
    hints.ep_attr->tx_ctx_cnt = kContexts;
    hints.ep_attr->rx_ctx_cnt = kContexts;
  };
  Node node(link, setup);
  // An AV whose addresses have bits for the index.
  fid_av* av = nullptr;
  fi_av_attr av_attr{};
  av_attr.type = FI_AV_MAP;
  av_attr.rx_ctx_bits = kBits;
  OK(fi_av_open(node.domain, &av_attr, &av, nullptr));
  fid_ep* endpoint = nullptr;
  OK(fi_scalable_ep(node.domain, node.info, &endpoint, nullptr));
  OK(fi_scalable_ep_bind(endpoint, &av->fid, 0));
  std::array<fid_ep*, kContexts> transmit{};
  std::array<fid_ep*, kContexts> receive{};
  for (int i = 0; i < kContexts; ++i) {
    const auto index = static_cast<std::size_t>(i);
    OK(fi_tx_context(endpoint, i, nullptr, &transmit[index], nullptr));
    OK(fi_rx_context(endpoint, i, nullptr, &receive[index], nullptr));
    OK(fi_ep_bind(transmit[index], &node.tx->fid, FI_TRANSMIT));
    OK(fi_ep_bind(receive[index], &node.rx->fid, FI_RECV));
    OK(fi_enable(transmit[index]));
    OK(fi_enable(receive[index]));
  }
  OK(fi_enable(endpoint));
  link.send(Node::name_of(endpoint));
  fi_addr_t peer = FI_ADDR_NOTAVAIL;
  RETURNS(1, fi_av_insert(av, link.receive(&node).data(), 1, &peer, 0, nullptr));
  for (int number = 0; number < kContexts * kContexts; ++number) {
    const auto from = static_cast<std::size_t>(number / kContexts);
    const int to = number % kContexts;
    int value = number;
    if (link.server()) {
      value = -1;
      fid_ep* context = receive[static_cast<std::size_t>(to)];
      POST(node, fi_trecv(context, &value, sizeof value, nullptr, FI_ADDR_UNSPEC, 1, 0, nullptr));
      node.completion(node.rx);
      CHECK(value == number);
    } else {
      POST(node, fi_tsend(transmit[from], &value, sizeof value, nullptr,
                          fi_rx_addr(peer, to, kBits), 1, nullptr));
      node.completion(node.tx);
    }
  }
  node.meet();
  for (fid_ep* context : transmit) OK(fi_close(&context->fid));
  for (fid_ep* context : receive) OK(fi_close(&context->fid));
  OK(fi_close(&endpoint->fid));
  OK(fi_close(&av->fid));
}

constexpr Case kCases[] = {
    {"alias", alias}, {"several", several}, {"shared", shared}, {"scalable", scalable}};

}  // namespace

int main(int argc, char** argv) { return run_cases(argc, argv, kCases); }
