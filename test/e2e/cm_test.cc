// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// FI_EP_MSG: listeners, connections, their data and their end (docs/spec/cm.md). Both sides are in
// one child, whose queues are read in turn; only the tests of a dead peer take two.
#include <gtest/gtest.h>
#include <malloc.h>
#include <rdma/fi_atomic.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cm_pair.h"

namespace uet::e2e {
namespace {

// ---- fi_getinfo --------------------------------------------------------------------------------

TEST(Cm, GetInfo_MsgComesAfterRdm) {
  EXPECT_EQ(in_child([] {
              const Info hints(fi_allocinfo());
              hints->fabric_attr->prov_name = strdup(provider().c_str());
              const Info list = get_info(nullptr, nullptr, 0, hints.get());
              require(list->ep_attr->type == FI_EP_RDM, "FI_EP_RDM is not first");
              bool msg = false;
              for (const fi_info* info = list.get(); info != nullptr; info = info->next) {
                require(!msg || info->ep_attr->type == FI_EP_MSG, "FI_EP_RDM behind FI_EP_MSG");
                msg |= info->ep_attr->type == FI_EP_MSG;
              }
              require(msg, "no FI_EP_MSG");
              hints->ep_attr->type = FI_EP_RDM;
              const Info rdm = get_info(nullptr, nullptr, 0, hints.get());
              for (const fi_info* info = rdm.get(); info != nullptr; info = info->next) {
                require(info->ep_attr->type == FI_EP_RDM, "not FI_EP_RDM");
              }
            }),
            "");
}

// ---- the handshake -----------------------------------------------------------------------------

TEST(Cm, Cm20_ConnectsAndCarriesTheData) {
  EXPECT_EQ(in_child([] {
              Pair pair;
              pair.connect("what the initiator says");
              const CmEvent request = pair.request();
              require(request.fid == &pair.server.pep->fid, "fid of the request");
              require(request.data == "what the initiator says", "data of the request");
              require(request.info->handle != nullptr, "no handle");
              pair.accept(request, "what the acceptor says");
              const CmEvent here = pair.expect(pair.client, FI_CONNECTED);
              require(here.fid == &pair.client.ep->fid, "fid of the initiator");
              require(here.data == "what the acceptor says", "data of the acceptor");
              const CmEvent there = pair.expect(pair.server, FI_CONNECTED);
              require(there.fid == &pair.server.ep->fid, "fid of the acceptor");
              sockaddr_in peer{};
              sockaddr_in own{};
              std::size_t length = sizeof peer;
              check(fi_getpeer(pair.client.ep.get(), &peer, &length), "fi_getpeer");
              check(fi_getname(&pair.server.ep->fid, &own, &length), "fi_getname");
              require(peer.sin_port == own.sin_port, "another peer");
              require(own.sin_port == pair.address.sin_port, "CM-4: not the listener's address");
              check(fi_getpeer(pair.server.ep.get(), &peer, &length), "fi_getpeer");
              check(fi_getname(&pair.client.ep->fid, &own, &length), "fi_getname");
              require(peer.sin_port == own.sin_port, "the initiator has another name");
            }),
            "");
}

// The server looks at its events only when all that the client sends has come. It then makes the
// progress of the listener, which takes the request, before that of the domain. Until the client
// has the Accept, the domain makes progress: under FI_UET_TSS the client answers the first packets
// of a PDC with the Start_PSN that it takes (PDS-71), and the server has to send them again.
TEST(Cm, Cm38_ConnectedComesBeforeTheNextRequest) {
  EXPECT_EQ(in_child([] {
              Pair pair;
              pair.connect();
              pair.accept(pair.request());
              for (;;) {
                if (const auto event = poll_eq(*pair.client.eq)) {
                  require(event->number == FI_CONNECTED, "not connected");
                  break;
                }
                fi_cq_read(pair.server.cq.get(), nullptr, 0);
              }
              const Owned<fid_ep> first = std::move(pair.client.ep);
              pair.connect();
              // Less than the pause after which the request leaves in any case.
              const Clock::time_point start = Clock::now();
              while (Clock::now() - start < std::chrono::milliseconds(100)) {
                require(!poll_eq(*pair.client.eq), "an event too many");
                usleep(100);
              }
              pair.expect(pair.server, FI_CONNECTED);
              pair.expect(pair.server, FI_CONNREQ);
            }),
            "");
}

// The port of a socket address names the resource index too: index 1 from 4793 to 5816.
TEST(Cm, Cm2_EndpointsKeepTheLowestIndices) {
  EXPECT_EQ(in_child([] {
              Pair pair;
              pair.establish();
              sockaddr_in own{};
              std::size_t length = sizeof own;
              check(fi_getname(&pair.client.ep->fid, &own, &length), "fi_getname");
              require(ntohs(own.sin_port) >= 4793 && ntohs(own.sin_port) <= 5816, "index 1");
            }),
            "");
}

// CM-3: the listener's address is the one that was asked for, also beside its own domain.
TEST(Cm, Cm3_ListenerHasThePortAskedFor) {
  EXPECT_EQ(in_child([] {
              const Info hints = msg_hints();
              CmSide server;
              server.info = get_info("127.0.0.1", "4900", FI_SOURCE, hints.get());
              open(server.fabric, "fi_fabric",
                   [&](auto** out) { return fi_fabric(server.info->fabric_attr, out, nullptr); });
              server.eq = open_eq(*server.fabric);
              open(server.pep, "fi_passive_ep", [&](auto** out) {
                return fi_passive_ep(server.fabric.get(), server.info.get(), out, nullptr);
              });
              fid_pep* second = nullptr;
              require(fi_passive_ep(server.fabric.get(), server.info.get(), &second, nullptr) ==
                          -FI_EADDRINUSE,
                      "the port is used twice");
              server.open_domain();  // at another port
              sockaddr_in own{};
              std::size_t length = sizeof own;
              check(fi_getname(&server.pep->fid, &own, &length), "fi_getname");
              require(ntohs(own.sin_port) == 4900, "another port");
              own.sin_port = htons(4901);
              check(fi_setname(&server.pep->fid, &own, sizeof own), "fi_setname");
              check(fi_getname(&server.pep->fid, &own, &length), "fi_getname");
              require(ntohs(own.sin_port) == 4901, "the old port");
            }),
            "");
}

TEST(Cm, CmDataSize_IsTheMostThatIsTaken) {
  EXPECT_EQ(in_child([] {
              Pair pair;
              std::size_t size = 0;
              std::size_t length = sizeof size;
              check(fi_getopt(&pair.server.pep->fid, FI_OPT_ENDPOINT, FI_OPT_CM_DATA_SIZE, &size,
                              &length),
                    "fi_getopt");
              require(size >= 256, "less than 256 bytes");
              const std::string most(size, 'x');
              pair.client.ep = pair.client.open_endpoint(*pair.client.info);
              const std::string more(size + 1, 'x');
              require(fi_connect(pair.client.ep.get(), &pair.address, more.data(), more.size()) ==
                          -FI_EINVAL,
                      "more is not refused");
              check(fi_connect(pair.client.ep.get(), &pair.address, most.data(), most.size()),
                    "fi_connect");
              require(pair.request().data == most, "data");
            }),
            "");
}

TEST(Cm, Cm14_RejectBringsErrorAndData) {
  EXPECT_EQ(in_child([] {
              Pair pair;
              pair.connect();
              const CmEvent request = pair.request();
              const std::string no = "come back tomorrow";
              check(fi_reject(pair.server.pep.get(), request.info->handle, no.data(), no.size()),
                    "fi_reject");
              require(
                  fi_reject(pair.server.pep.get(), request.info->handle, nullptr, 0) == -FI_EINVAL,
                  "rejected twice");
              const CmEvent event = pair.next(pair.client);
              require(event.number == 0 && event.error == FI_ECONNREFUSED, "no FI_ECONNREFUSED");
              require(event.fid == &pair.client.ep->fid && event.data == no, "data");
            }),
            "");
}

// The first six packets that come to the initiator are lost, and the server calls nothing after
// fi_reject.
TEST(Cm, Cm39_LostRejectIsRepeatedByItself) {
  ChannelPair channels;
  Process server("server", {}, [&] {
    Pair pair;
    channels.left.send(pair.address);
    const CmEvent request = pair.request();
    check(fi_reject(pair.server.pep.get(), request.info->handle, "no", 2), "fi_reject");
    channels.left.receive<char>();
  });
  const std::map<std::string, std::string> lossy = {{"FI_UET_FAULTS", "loss=30%,seed=179903"}};
  Process client("client", lossy, [&] {
    Pair pair;
    pair.address = channels.right.receive<sockaddr_in>();
    pair.connect();
    const CmEvent event = pair.next(pair.client);
    require(event.number == 0 && event.error == FI_ECONNREFUSED, "no FI_ECONNREFUSED");
    require(event.data == "no", "data");
    channels.right.send('e');
  });
  EXPECT_EQ(client.wait(), "");
  EXPECT_EQ(server.wait(), "");
}

TEST(Cm, Cm21_NoListenerRefusesAtOnce) {
  EXPECT_EQ(in_child([] {
              Pair pair;
              const Clock::time_point start = Clock::now();
              pair.address.sin_port = htons(static_cast<std::uint16_t>(
                  ntohs(pair.address.sin_port) + 1024));  // another index of the listener's FEP
              pair.connect();
              const CmEvent event = pair.next(pair.client);
              require(event.error == FI_ECONNREFUSED, "no FI_ECONNREFUSED");
              require(Clock::now() - start < std::chrono::seconds(2), "not at once");
            }),
            "");
}

// An address that no program beside this one takes.
in_addr address_of_this_process() {
  return {htonl(INADDR_LOOPBACK + (static_cast<std::uint32_t>(getpid()) & 0xFFFFU) + 256)};
}

TEST(Cm, Cm22_SilentAddressIsRefusedInBoundedTime) {
  EXPECT_EQ(in_child([] {
              Pair pair;
              const Clock::time_point start = Clock::now();
              pair.address.sin_addr = address_of_this_process();
              const int silent = ::socket(AF_INET, SOCK_DGRAM, 0);
              require(::bind(silent, reinterpret_cast<const sockaddr*>(&pair.address),
                             sizeof pair.address) == 0,
                      "bind");
              pair.connect();
              const CmEvent event = pair.next(pair.client);
              require(event.error == FI_ECONNREFUSED, "no FI_ECONNREFUSED");
              require(Clock::now() - start < std::chrono::seconds(25), "too late");
            }),
            "");
}

// Without the report of the host the reason is that the address does not answer.
TEST(Cm, Cm29_PortWithoutSocketIsRefused) {
  if (const char* nic = std::getenv("FI_UET_NIC"); nic != nullptr && nic != std::string_view("udp"))
    GTEST_SKIP() << "the back end " << nic << " reads no ICMP";
  EXPECT_EQ(in_child([] {
              Pair pair;
              pair.address.sin_addr = address_of_this_process();
              pair.connect();
              const CmEvent event = pair.next(pair.client);
              require(event.error == FI_ECONNREFUSED, "no FI_ECONNREFUSED");
              const std::string_view reason =
                  fi_eq_strerror(pair.client.eq.get(), event.prov_errno, nullptr, nullptr, 0);
              require(reason == "no listener takes requests at the address", std::string(reason));
            }),
            "");
}

TEST(Cm, Cm40_BacklogOfManyRequests) {
  EXPECT_EQ(in_child([] {
              const int requests_at_once = built_with_sanitizer() ? 200 : 1000;
              Pair pair(requests_at_once);
              std::vector<Owned<fid_ep>> clients;
              for (int i = 0; i < requests_at_once; ++i) {
                pair.connect();
                clients.push_back(std::move(pair.client.ep));
              }
              std::vector<CmEvent> requests;
              for (int i = 0; i < requests_at_once; ++i) requests.push_back(pair.request());
              std::vector<Owned<fid_ep>> servers;
              for (const CmEvent& request : requests) {
                pair.accept(request);
                servers.push_back(std::move(pair.server.ep));
              }
              for (int i = 0; i < requests_at_once; ++i) pair.expect(pair.client, FI_CONNECTED);
              for (int i = 0; i < requests_at_once; ++i) pair.expect(pair.server, FI_CONNECTED);
            }),
            "");
}

// ---- the end -----------------------------------------------------------------------------------

TEST(Cm, Cm30_ShutdownReachesThePeer) {
  EXPECT_EQ(in_child([] {
              Pair pair;
              pair.establish();
              char in = 0;
              check(fi_recv(pair.server.ep.get(), &in, 1, nullptr, 0, &in), "fi_recv");
              check(fi_shutdown(pair.client.ep.get(), 0), "fi_shutdown");
              require(fi_shutdown(pair.client.ep.get(), 0) == -FI_ENOTCONN, "twice");
              const CmEvent event = pair.expect(pair.server, FI_SHUTDOWN);
              require(event.fid == &pair.server.ep->fid, "fid");
              require(pair.completion(pair.server).err == FI_ECANCELED, "the posted receive");
              require(fi_send(pair.server.ep.get(), &in, 1, nullptr, 0, nullptr) == -FI_ENOTCONN,
                      "a send after the end");
            }),
            "");
}

// CM-1: the Shutdown does not overtake the data.
TEST(Cm, Cm34_WhatHasComeIsReceivedAfterTheEnd) {
  EXPECT_EQ(in_child([] {
              Pair pair;
              pair.establish();
              for (int i = 0; i < 10; ++i) {
                pair.post("fi_send", [&] {
                  return fi_send(pair.client.ep.get(), &i, sizeof i, nullptr, 0, nullptr);
                });
                require(pair.completion(pair.client).err == 0, "send");
              }
              pair.client.ep.reset();
              pair.expect(pair.server, FI_SHUTDOWN);
              for (int i = 0; i < 11; ++i) {
                int in = -1;
                pair.post("fi_recv", [&] {
                  return fi_recv(pair.server.ep.get(), &in, sizeof in, nullptr, 0, &in);
                });
                const fi_cq_err_entry entry = pair.completion(pair.server);
                require(i < 10 ? entry.err == 0 && in == i : entry.err == FI_ECANCELED,
                        "receive " + std::to_string(i));
              }
            }),
            "");
}

TEST(Cm, Cm31_BothEndsShutDownAtATime) {
  EXPECT_EQ(in_child([] {
              Pair pair;
              pair.establish();
              check(fi_shutdown(pair.client.ep.get(), 0), "fi_shutdown");
              check(fi_shutdown(pair.server.ep.get(), 0), "fi_shutdown");
              pair.expect(pair.client, FI_SHUTDOWN);
              pair.expect(pair.server, FI_SHUTDOWN);
              for (int i = 0; i < 1000; ++i) pair.progress();
              require(!poll_eq(*pair.client.eq), "a second event at the initiator");
              require(!poll_eq(*pair.server.eq), "a second event at the acceptor");
            }),
            "");
}

// Each object closes at each point of the handshake.
TEST(Cm, Cm27_ClosingAtAnyPointLeavesNothing) {
  EXPECT_EQ(in_child([] {
              { const Pair pair; }
              {
                Pair pair;
                pair.connect();
              }
              {
                Pair pair;
                pair.connect();
                pair.client.ep.reset();
                pair.connect();
                const CmEvent request = pair.request();
              }
              {
                Pair pair;  // a request that the application does not read
                pair.connect();
                for (int i = 0; i < 1000; ++i) pair.progress();
              }
              {
                Pair pair;
                pair.connect();
                pair.open_acceptor(pair.request());
              }
              {
                Pair pair;
                pair.connect();
                pair.accept(pair.request());
                pair.server.ep.reset();
              }
              {
                Pair pair;
                pair.connect();
                const CmEvent request = pair.request();
                pair.client.ep.reset();
                for (int i = 0; i < 1000; ++i) pair.progress();
                pair.open_acceptor(request);
                require(fi_accept(pair.server.ep.get(), nullptr, 0) == -FI_ECONNABORTED,
                        "a withdrawn request is accepted");
              }
              {
                Pair pair;
                pair.connect();
                const CmEvent request = pair.request();
                pair.server.pep.reset();
                require(pair.next(pair.client).error == FI_ECONNREFUSED, "listener closed");
              }
            }),
            "");
}

TEST(Cm, ManyConnectionsComeAndGo) {
  EXPECT_EQ(in_child([] {
              Pair pair;
              const int rounds = built_with_sanitizer() ? 200 : 10'000;
              std::size_t in_use = 0;
              for (int i = 0; i < rounds; ++i) {
                pair.establish();
                pair.client.ep.reset();
                pair.expect(pair.server, FI_SHUTDOWN);
                pair.server.ep.reset();
                if (i == rounds / 2) in_use = mallinfo2().uordblks;
              }
              const std::size_t at_the_end = mallinfo2().uordblks;
              require(at_the_end < in_use + 100'000, "connections leave memory behind");
            }),
            "");
}

// The peer's process is killed: what is outstanding ends with errors, and FI_SHUTDOWN comes. Its
// engine, if it has one (FI_UET_ENGINE=process), takes messages until it has seen the end.
TEST(Cm, Cm35_DeadPeerEndsTheConnection) {
  ChannelPair channels;
  Process server("server", {}, [&] {
    Pair pair;
    channels.left.send(pair.address);
    pair.accept(pair.request());
    pair.expect(pair.server, FI_CONNECTED);
    for (;;) pair.progress();
  });
  const pid_t victim = server.pid();
  Process client("client", {}, [&] {
    Pair pair;
    pair.address = channels.right.receive<sockaddr_in>();
    pair.connect();
    pair.expect(pair.client, FI_CONNECTED);
    kill(victim, SIGKILL);
    char out = 0;
    char in = 0;
    check(fi_recv(pair.client.ep.get(), &in, 1, nullptr, 0, &in), "fi_recv");
    do {
      pair.post("fi_send",
                [&] { return fi_send(pair.client.ep.get(), &out, 1, nullptr, 0, &out); });
    } while (pair.completion(pair.client).err == 0);
    pair.expect(pair.client, FI_SHUTDOWN);
    require(pair.completion(pair.client).err != 0, "second error");
  });
  EXPECT_EQ(client.wait(), "");
}

// Nothing is sent, so that only the Probe can find out.
TEST(Cm, Cm33_KeepAliveReportsADeadIdlePeer) {
  ChannelPair channels;
  Process server("server", {}, [&] {
    Pair pair;
    channels.left.send(pair.address);
    pair.accept(pair.request());
    pair.expect(pair.server, FI_CONNECTED);
    for (;;) pair.progress();
  });
  const pid_t victim = server.pid();
  Process client("client", {{"tune.keep_alive_ms", "500"}}, [&] {
    Pair pair;
    pair.address = channels.right.receive<sockaddr_in>();
    pair.connect();
    pair.expect(pair.client, FI_CONNECTED);
    kill(victim, SIGKILL);
    pair.expect(pair.client, FI_SHUTDOWN);
  });
  EXPECT_EQ(client.wait(), "");
}

// The transport would not give the peer up within the time of the test.
constexpr const char* kPatientTransport = "1000";

// The peer's process stands still, as if its host had died: nothing answers.
TEST(Cm, Cm37_SilentPeerWithAPeriodIsReported) {
  ChannelPair channels;
  const std::map<std::string, std::string> environment = {{"tune.keep_alive_ms", "1000"},
                                                          {"tune.rto_retries", kPatientTransport}};
  Process server("server", environment, [&] {
    Pair pair;
    channels.left.send(pair.address);
    pair.accept(pair.request());
    pair.expect(pair.server, FI_CONNECTED);
    for (;;) pair.progress();
  });
  const pid_t victim = server.pid();
  Process client("client", environment, [&] {
    Pair pair;
    pair.address = channels.right.receive<sockaddr_in>();
    pair.connect();
    pair.expect(pair.client, FI_CONNECTED);
    kill(victim, SIGSTOP);
    pair.expect(pair.client, FI_SHUTDOWN);
    kill(victim, SIGKILL);
  });
  EXPECT_EQ(client.wait(), "");
}

// The peer has no period. Its host says that the port is closed.
TEST(Cm, Cm37_ClosedPortOfAnIdlePeerIsReported) {
  ChannelPair channels;
  Process server("server", {{"FI_UET_LOCAL", "off"}}, [&] {
    Pair pair;
    channels.left.send(pair.address);
    pair.accept(pair.request());
    pair.expect(pair.server, FI_CONNECTED);
    for (;;) pair.progress();
  });
  const pid_t victim = server.pid();
  const std::map<std::string, std::string> environment = {{"tune.keep_alive_ms", "1000"},
                                                          {"tune.rto_retries", kPatientTransport},
                                                          {"FI_UET_LOCAL", "off"}};
  Process client("client", environment, [&] {
    Pair pair;
    pair.address = channels.right.receive<sockaddr_in>();
    pair.connect();
    pair.expect(pair.client, FI_CONNECTED);
    kill(victim, SIGKILL);
    pair.expect(pair.client, FI_SHUTDOWN);
  });
  EXPECT_EQ(client.wait(), "");
}

// Neither end is given up while it computes for several periods, with a period or without.
void keep_computing_peer(const char* period_of_server) {
  ChannelPair channels;
  Process server("server", {{"tune.keep_alive_ms", period_of_server}}, [&] {
    Pair pair;
    channels.left.send(pair.address);
    pair.accept(pair.request());
    pair.expect(pair.server, FI_CONNECTED);
    char in = 0;
    check(fi_recv(pair.server.ep.get(), &in, 1, nullptr, 0, &in), "fi_recv");
    usleep(4'000'000);
    require(pair.completion(pair.server).err == 0, "the message");
  });
  Process client("client", {{"tune.keep_alive_ms", "500"}}, [&] {
    Pair pair;
    pair.address = channels.right.receive<sockaddr_in>();
    pair.connect();
    pair.expect(pair.client, FI_CONNECTED);
    const Clock::time_point start = Clock::now();
    while (Clock::now() - start < std::chrono::seconds(3)) {
      pair.progress();
      require(!poll_eq(*pair.client.eq), "a living peer is given up");
    }
    char out = 0;
    pair.post("fi_send", [&] { return fi_send(pair.client.ep.get(), &out, 1, nullptr, 0, &out); });
    require(pair.completion(pair.client).err == 0, "fi_send");
  });
  EXPECT_EQ(client.wait(), "");
  EXPECT_EQ(server.wait(), "");
}

TEST(Cm, Cm37_ComputingPeerIsNotGivenUp) {
  keep_computing_peer("500");
  keep_computing_peer("0");
}

// ---- refusals ----------------------------------------------------------------------------------

// fi_endpoint(3): a domain and an endpoint that are opened with the handle of a passive endpoint
// take its address.
TEST(Cm, PassiveEndpointGivesItsAddressUp) {
  EXPECT_EQ(in_child([] {
              Pair pair;
              CmSide side;
              const Info hints = msg_hints();
              const Info own = get_info("127.0.0.1", nullptr, FI_SOURCE, hints.get());
              open(side.fabric, "fi_fabric",
                   [&](auto** out) { return fi_fabric(own->fabric_attr, out, nullptr); });
              side.eq = open_eq(*side.fabric);
              open(side.pep, "fi_passive_ep", [&](auto** out) {
                return fi_passive_ep(side.fabric.get(), own.get(), out, nullptr);
              });
              const auto name_of = [](fid& object) {
                sockaddr_in name{};
                std::size_t length = sizeof name;
                check(fi_getname(&object, &name, &length), "fi_getname");
                return name;
              };
              const sockaddr_in before = name_of(side.pep->fid);
              hints->handle = &side.pep->fid;
              side.info = get_info("127.0.0.1", nullptr, 0, hints.get());
              hints->handle = nullptr;
              require(side.info->handle == &side.pep->fid, "fi_getinfo keeps the handle");
              side.open_domain();
              require(name_of(side.pep->fid).sin_port == before.sin_port, "the name before");
              side.ep = side.open_endpoint(*side.info);
              require(name_of(side.ep->fid).sin_port == before.sin_port, "the endpoint's name");
              require(fi_listen(side.pep.get()) == -FI_EOPBADSTATE, "fi_listen without an address");
              side.pep.reset();
              pair.client = std::move(side);
              check(fi_connect(pair.client.ep.get(), &pair.address, nullptr, 0), "fi_connect");
              pair.accept(pair.request());
              pair.expect(pair.client, FI_CONNECTED);
              pair.expect(pair.server, FI_CONNECTED);
            }),
            "");
}

// A receive with a length and no address takes an empty message, as with other providers.
TEST(Cm, NullBufferTakesAnEmptyMessage) {
  EXPECT_EQ(in_child([] {
              Pair pair;
              pair.establish();
              check(fi_recv(pair.server.ep.get(), nullptr, 1024, nullptr, 0, nullptr), "fi_recv");
              check(fi_send(pair.client.ep.get(), nullptr, 0, nullptr, 0, nullptr), "fi_send");
              require(pair.completion(pair.server).err == 0, "an empty message");
              check(fi_recv(pair.server.ep.get(), nullptr, 1024, nullptr, 0, nullptr), "fi_recv");
              check(fi_send(pair.client.ep.get(), "x", 1, nullptr, 0, nullptr), "fi_send");
              require(pair.completion(pair.server).err == FI_ETRUNC, "one byte without a place");
            }),
            "");
}

TEST(Cm, BadCallsAreRefused) {
  EXPECT_EQ(in_child([] {
              Pair pair;
              require(fi_listen(pair.server.pep.get()) == -FI_EOPBADSTATE, "fi_listen twice");
              int backlog = 0;
              require(fi_control(&pair.server.pep->fid, FI_BACKLOG, &backlog) == -FI_EINVAL,
                      "a backlog of 0");
              require(
                  fi_reject(pair.server.pep.get(), &pair.server.eq->fid, nullptr, 0) == -FI_EINVAL,
                  "a handle that was never given");
              pair.client.ep = pair.client.open_endpoint(*pair.client.info);
              fid_ep& ep = *pair.client.ep;
              require(fi_accept(&ep, nullptr, 0) == -FI_EOPBADSTATE, "fi_accept without request");
              require(fi_connect(&ep, nullptr, nullptr, 0) == -FI_EINVAL, "no address");
              require(fi_shutdown(&ep, 0) == -FI_ENOTCONN, "fi_shutdown, not connected");
              char name[64];
              std::size_t length = sizeof name;
              require(fi_getpeer(&ep, name, &length) == -FI_ENOTCONN, "fi_getpeer, not connected");
              check(fi_connect(&ep, &pair.address, nullptr, 0), "fi_connect");
              require(fi_connect(&ep, &pair.address, nullptr, 0) == -FI_EOPBADSTATE, "twice");
              Owned<fid_ep> unbound;
              open(unbound, "fi_endpoint", [&](auto** out) {
                return fi_endpoint(pair.client.domain.get(), pair.client.info.get(), out, nullptr);
              });
              check(fi_ep_bind(unbound.get(), &pair.client.cq->fid, FI_TRANSMIT | FI_RECV), "bind");
              require(fi_connect(unbound.get(), &pair.address, nullptr, 0) == -FI_ENOEQ, "no EQ");
            }),
            "");
}

}  // namespace
}  // namespace uet::e2e
