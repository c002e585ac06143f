// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// FI_EP_MSG: the data of connections. Both sides are in one child, whose queues are read in turn.
#include <gtest/gtest.h>
#include <rdma/fi_atomic.h>

#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "cm_pair.h"

namespace uet::e2e {
namespace {

TEST(Cm, DataFlowBothWaysInOrder) {
  EXPECT_EQ(in_child([] {
              Pair pair;
              pair.establish();
              constexpr std::size_t kBytes = 20000;
              std::vector<std::byte> out(kBytes);
              std::vector<std::byte> in(kBytes);
              for (std::uint64_t round = 0; round < 50; ++round) {
                const bool forth = round % 2 == 0;
                CmSide& from = forth ? pair.client : pair.server;
                CmSide& to = forth ? pair.server : pair.client;
                fill_pattern(out, round);
                pair.post("fi_recv", [&] {
                  return fi_recv(to.ep.get(), in.data(), in.size(), nullptr, FI_ADDR_UNSPEC, &in);
                });
                pair.post("fi_send", [&] {
                  return fi_send(from.ep.get(), out.data(), out.size(), nullptr, FI_ADDR_NOTAVAIL,
                                 &out);
                });
                const fi_cq_err_entry received = pair.completion(to);
                require(received.err == 0 && received.len == kBytes, "receive");
                require(pair.completion(from).err == 0, "send");
                require_pattern(in, round, "message");
              }
              char word[8] = "tagged";
              pair.post("fi_trecv", [&] {
                return fi_trecv(pair.server.ep.get(), in.data(), in.size(), nullptr, 0, 7, 0, &in);
              });
              pair.post("fi_tinject",
                        [&] { return fi_tinject(pair.client.ep.get(), word, sizeof word, 0, 7); });
              require(pair.completion(pair.server).tag == 7, "tag");
            }),
            "");
}

// With FI_MORE the provider may wait for the next call, and may not keep or reorder anything.
TEST(Cm, TransfersWithMoreArriveInOrder) {
  EXPECT_EQ(in_child([] {
              Pair pair;
              pair.establish();
              constexpr int kMessages = 16;
              std::array<int, kMessages> in{};
              for (int& each : in) {
                check(fi_recv(pair.server.ep.get(), &each, sizeof each, nullptr, 0, &each), "recv");
              }
              std::array<int, kMessages> out{};
              for (int i = 0; i < kMessages; ++i) {
                out[i] = i + 1;
                const iovec piece{&out[i], sizeof out[i]};
                fi_msg message{};
                message.msg_iov = &piece;
                message.iov_count = 1;
                message.context = &out[i];
                const std::uint64_t more = i + 1 < kMessages ? FI_MORE : 0;
                pair.post("fi_sendmsg", [&] {
                  return fi_sendmsg(pair.client.ep.get(), &message, FI_COMPLETION | more);
                });
              }
              for (int i = 0; i < kMessages; ++i) {
                const fi_cq_err_entry received = pair.completion(pair.server);
                require(received.err == 0 && received.op_context == &in[i], "order of receives");
                require(pair.completion(pair.client).err == 0, "send");
              }
              require(in == out, "the messages");
            }),
            "");
}

TEST(Cm, RmaAndAtomicsReachThePeer) {
  EXPECT_EQ(in_child([] {
              Pair pair;
              pair.establish();
              std::uint64_t target[2] = {5, 0};
              Owned<fid_mr> mr;
              open(mr, "fi_mr_reg", [&](auto** out) {
                return fi_mr_reg(pair.server.domain.get(), target, sizeof target,
                                 FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 42, 0, out, nullptr);
              });
              std::uint64_t value = 9;
              pair.post("fi_write", [&] {
                return fi_write(pair.client.ep.get(), &value, sizeof value, nullptr, 0, 8, 42,
                                &value);
              });
              require(pair.completion(pair.client).err == 0 && target[1] == 9, "write");
              pair.post("fi_atomic", [&] {
                return fi_atomic(pair.client.ep.get(), &value, 1, nullptr, 0, 0, 42, FI_UINT64,
                                 FI_SUM, &value);
              });
              require(pair.completion(pair.client).err == 0 && target[0] == 14, "atomic");
              std::uint64_t back = 0;
              pair.post("fi_read", [&] {
                return fi_read(pair.client.ep.get(), &back, sizeof back, nullptr, 0, 0, 42, &back);
              });
              require(pair.completion(pair.client).err == 0 && back == 14, "read");
            }),
            "");
}

TEST(Cm, SharedReceiveContextServesAConnection) {
  EXPECT_EQ(
      in_child([] {
        Pair pair;
        pair.connect();
        const CmEvent request = pair.request();
        pair.server.open_domain();
        fid_ep* srx = nullptr;
        check(fi_srx_context(pair.server.domain.get(), pair.server.info->rx_attr, &srx, nullptr),
              "fi_srx_context");
        const Owned<fid_ep> shared(srx);
        Owned<fid_ep> ep;
        open(ep, "fi_endpoint", [&](auto** out) {
          return fi_endpoint(pair.server.domain.get(), request.info.get(), out, nullptr);
        });
        check(fi_ep_bind(ep.get(), &pair.server.eq->fid, 0), "bind EQ");
        check(fi_ep_bind(ep.get(), &pair.server.cq->fid, FI_TRANSMIT | FI_RECV), "bind CQ");
        check(fi_ep_bind(ep.get(), &srx->fid, 0), "bind SRX");
        check(fi_accept(ep.get(), nullptr, 0), "fi_accept without fi_enable");
        pair.expect(pair.client, FI_CONNECTED);
        pair.expect(pair.server, FI_CONNECTED);
        char in[16] = {};
        check(fi_recv(srx, in, sizeof in, nullptr, FI_ADDR_UNSPEC, in), "fi_recv");
        pair.post("fi_inject", [&] { return fi_inject(pair.client.ep.get(), "hello", 6, 0); });
        require(pair.completion(pair.server).len == 6, "length");
        require(std::string_view(in) == "hello", "data");
      }),
      "");
}

// An endpoint that is not the peer sends to the index of a connection.
TEST(Cm, Cm36_StrangersAreRefused) {
  EXPECT_EQ(in_child([] {
              Pair pair;
              pair.establish();
              sockaddr_in name{};
              std::size_t length = sizeof name;
              check(fi_getname(&pair.client.ep->fid, &name, &length), "fi_getname");
              char in = 0;
              check(fi_recv(pair.client.ep.get(), &in, 1, nullptr, 0, &in), "fi_recv");
              const Info hints = msg_hints();
              hints->ep_attr->type = FI_EP_RDM;
              CmSide stranger;
              stranger.info = get_info("127.0.0.1", nullptr, FI_SOURCE, hints.get());
              open(stranger.fabric, "fi_fabric",
                   [&](auto** out) { return fi_fabric(stranger.info->fabric_attr, out, nullptr); });
              stranger.eq = open_eq(*stranger.fabric);
              stranger.open_domain();
              fi_av_attr attr{};
              Owned<fid_av> av;
              open(av, "fi_av_open", [&](auto** out) {
                return fi_av_open(stranger.domain.get(), &attr, out, nullptr);
              });
              Owned<fid_ep> ep;
              open(ep, "fi_endpoint", [&](auto** out) {
                return fi_endpoint(stranger.domain.get(), stranger.info.get(), out, nullptr);
              });
              check(fi_ep_bind(ep.get(), &av->fid, 0), "bind AV");
              check(fi_ep_bind(ep.get(), &stranger.cq->fid, FI_TRANSMIT | FI_RECV), "bind CQ");
              check(fi_enable(ep.get()), "fi_enable");
              fi_addr_t to = 0;
              require(fi_av_insert(av.get(), &name, 1, &to, 0, nullptr) == 1, "fi_av_insert");
              char out = 1;
              check(fi_send(ep.get(), &out, 1, nullptr, to, &out), "fi_send");
              require(pair.completion(stranger).err == FI_EACCES, "no FI_EACCES");
              pair.post("fi_send",
                        [&] { return fi_send(pair.server.ep.get(), &out, 1, nullptr, 0, &out); });
              require(pair.completion(pair.client).err == 0 && in == 1, "the peer's message");
              ep.reset();
            }),
            "");
}

TEST(Cm, SendsWaitForTheConnection) {
  EXPECT_EQ(in_child([] {
              Pair pair;
              pair.connect();
              char byte = 0;
              require(fi_send(pair.client.ep.get(), &byte, 1, nullptr, 0, nullptr) == -FI_ENOTCONN,
                      "a send before FI_CONNECTED");
              check(fi_recv(pair.client.ep.get(), &byte, 1, nullptr, 0, nullptr),
                    "a receive before FI_CONNECTED");
            }),
            "");
}

}  // namespace
}  // namespace uet::e2e
