// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// FI_AV_AUTH_KEY: one endpoint serves several jobs, whose keys are in its AV (SES-146). Libfabric
// has the calls since 1.20; the test writes them out, so that it runs with older headers, too.
#include <gtest/gtest.h>
#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <functional>

#include "objects.h"

namespace uet::e2e {
namespace {

constexpr std::uint64_t kAuthKey = std::uint64_t{1} << 57;  // FI_AUTH_KEY
constexpr std::size_t kAvKeys = SIZE_MAX;                   // FI_AV_AUTH_KEY

// They follow the calls of 1.17's fi_ops_av, whichever libfabric this is compiled for.
struct AuthKeyCalls {
  int (*insert_auth_key)(fid_av*, const void*, std::size_t, fi_addr_t*, std::uint64_t);
  int (*lookup_auth_key)(fid_av*, fi_addr_t, void*, std::size_t*);
  int (*set_user_id)(fid_av*, fi_addr_t, fi_addr_t, std::uint64_t);
};
AuthKeyCalls& calls(fid_av* av) {
  constexpr std::size_t kBehind = offsetof(fi_ops_av, av_set) + sizeof(fi_ops_av::av_set);
  return *reinterpret_cast<AuthKeyCalls*>(reinterpret_cast<std::byte*>(av->ops) + kBehind);
}
AuthKeyCalls& calls(Side& side) { return calls(side.av.get()); }

struct MrAuthKey {
  fid_av* av;
  fi_addr_t source;
};

std::string in_child(std::function<void()> body) {
  Process child("child", {}, std::move(body));
  return child.wait();
}

SideOptions with_keys_in_av() {
  SideOptions options;
  options.capabilities = FI_MSG | FI_TAGGED | FI_RMA | FI_SOURCE | FI_DIRECTED_RECV;
  options.hints = [](fi_info& hints) { hints.domain_attr->auth_key_size = kAvKeys; };
  options.info = [](fi_info& info) {
    require(info.domain_attr->auth_key_size == kAvKeys, "not offered");
  };
  return options;
}

SideOptions of_job(std::uint8_t job) {
  SideOptions options;
  options.capabilities = FI_MSG | FI_TAGGED | FI_RMA | FI_SOURCE | FI_DIRECTED_RECV;
  options.info = [job](fi_info& info) {
    auto* key = static_cast<std::uint8_t*>(std::malloc(3));
    key[0] = key[1] = 0;
    key[2] = job;
    info.domain_attr->auth_key = key;
    info.domain_attr->auth_key_size = 3;
  };
  return options;
}

fi_addr_t add_key(Side& side, std::uint8_t job) {
  const std::array<std::uint8_t, 3> bytes{0, 0, job};
  fi_addr_t key = FI_ADDR_NOTAVAIL;
  check(calls(side).insert_auth_key(side.av.get(), bytes.data(), bytes.size(), &key, 0),
        "fi_av_insert_auth_key");
  return key;
}

fi_addr_t insert(Side& side, fid_ep& ep, fi_addr_t key) {
  fi_addr_t address = key;
  const auto name = Side::name_of(ep);
  require(fi_av_insert(side.av.get(), name.data(), 1, &address, kAuthKey, nullptr) == 1,
          "fi_av_insert with FI_AUTH_KEY");
  return address;
}

// A server of the jobs 7 and 8, and a client of each.
struct Service {
  Service() {
    key_7 = add_key(server, 7);
    key_8 = add_key(server, 8);
    ep = server.open_endpoint(0);
    ep_7 = client_7.open_endpoint(0);
    ep_8 = client_8.open_endpoint(0);
    to_7 = insert(server, *ep_7, key_7);
    to_8 = insert(server, *ep_8, key_8);
    from_7 = client_7.insert(*ep);
    from_8 = client_8.insert(*ep);
  }
  // The next receive of the server.
  Event next(fi_addr_t& source) {
    for (;;) {
      source = FI_ADDR_UNSPEC;
      if (const auto event = Side::poll(*server.cq, &source)) return *event;
      for (Side* side : {&client_7, &client_8}) fi_cq_read(side->cq.get(), nullptr, 0);
    }
  }

  Side server{with_keys_in_av()};
  Side client_7{of_job(7)};
  Side client_8{of_job(8)};
  fi_addr_t key_7, key_8, to_7, to_8, from_7, from_8;
  Owned<fid_ep> ep, ep_7, ep_8;
};

TEST(AvKeys, Ses146_OneEndpointServesSeveralJobs) {
  EXPECT_EQ(in_child([] {
              Service s;
              char in[8] = "";
              for (const bool second : {false, true}) {
                check(fi_recv(s.ep.get(), in, sizeof in, nullptr, FI_ADDR_UNSPEC, nullptr),
                      "fi_recv");
                check(fi_inject(second ? s.ep_8.get() : s.ep_7.get(), second ? "b" : "a", 1,
                                second ? s.from_8 : s.from_7),
                      "fi_inject");
                fi_addr_t source = 0;
                const Event event = s.next(source);
                require(event.error == 0 && in[0] == (second ? 'b' : 'a'), "the message");
                require(source == (second ? s.to_8 : s.to_7), "the source is another");
              }
              for (Side* client : {&s.client_7, &s.client_8}) {
                const bool second = client == &s.client_8;
                fid_ep* const to = second ? s.ep_8.get() : s.ep_7.get();
                check(fi_recv(to, in, sizeof in, nullptr, FI_ADDR_UNSPEC, nullptr), "fi_recv");
                check(fi_inject(s.ep.get(), "c", 1, second ? s.to_8 : s.to_7), "fi_inject");
                const Event event = client->next(s.server);
                require(event.error == 0 && event.length == 1, "the answer");
              }
            }),
            "");
}

TEST(AvKeys, Ses146_JobWithoutKeyIsRefused) {
  EXPECT_EQ(in_child([] {
              Service s;
              Side stranger(of_job(9));
              const auto ep = stranger.open_endpoint(0);
              const fi_addr_t to = stranger.insert(*s.ep);
              check(fi_send(ep.get(), "x", 1, nullptr, to, nullptr), "fi_send");
              require(stranger.next(s.server).error != 0, "a stranger is served");
            }),
            "");
}

TEST(AvKeys, Ses146_ReceiveMayTakeOneJobAlone) {
  EXPECT_EQ(in_child([] {
              Service s;
              char in[2][8] = {"", ""};
              int contexts[2];
              iovec piece{in[1], sizeof in[1]};
              fi_msg message{};
              message.msg_iov = &piece;
              message.iov_count = 1;
              message.addr = s.key_8;
              message.context = &contexts[1];
              check(fi_recvmsg(s.ep.get(), &message, kAuthKey), "fi_recvmsg");
              check(fi_recv(s.ep.get(), in[0], sizeof in[0], nullptr, FI_ADDR_UNSPEC, &contexts[0]),
                    "fi_recv");
              fi_addr_t source = 0;
              check(fi_inject(s.ep_7.get(), "7", 1, s.from_7), "fi_inject");
              require(s.next(source).context == &contexts[0], "job 7 took the receive of job 8");
              check(fi_inject(s.ep_8.get(), "8", 1, s.from_8), "fi_inject");
              require(s.next(source).context == &contexts[1] && in[1][0] == '8', "job 8");
              message.addr = 5;  // no key
              require(fi_recvmsg(s.ep.get(), &message, kAuthKey) == -FI_EINVAL, "no such key");
            }),
            "");
}

TEST(AvKeys, Ses146_OneAddressUnderTwoKeysIsTwoPeers) {
  EXPECT_EQ(in_child([] {
              Side a(with_keys_in_av());
              Side b(with_keys_in_av());
              const std::array<fi_addr_t, 2> keys_a{add_key(a, 7), add_key(a, 8)};
              const std::array<fi_addr_t, 2> keys_b{add_key(b, 7), add_key(b, 8)};
              const auto ep_a = a.open_endpoint(0);
              const auto ep_b = b.open_endpoint(0);
              std::array<fi_addr_t, 2> to, from;
              for (int i = 0; i < 2; ++i) {
                to[i] = insert(a, *ep_b, keys_a[i]);
                from[i] = insert(b, *ep_a, keys_b[i]);
              }
              char in[4];
              for (const int i : {1, 0, 1}) {
                check(fi_recv(ep_b.get(), in, sizeof in, nullptr, FI_ADDR_UNSPEC, nullptr),
                      "fi_recv");
                check(fi_inject(ep_a.get(), "x", 1, to[i]), "fi_inject");
                fi_addr_t source = 0;
                Side::next(*b.cq, a, &source);
                require(source == from[i], "the fi_addr_t of the other job");
              }
            }),
            "");
}

TEST(AvKeys, RegionOfOneKeyIsForItsJobAlone) {
  EXPECT_EQ(in_child([] {
              Service s;
              std::array<char, 16> memory{};
              iovec piece{memory.data(), memory.size()};
              MrAuthKey key{s.server.av.get(), s.key_8};
              fi_mr_attr attr{};
              attr.mr_iov = &piece;
              attr.iov_count = 1;
              attr.access = FI_REMOTE_WRITE;
              attr.requested_key = 5;
              attr.auth_key = reinterpret_cast<std::uint8_t*>(&key);
              attr.auth_key_size = sizeof key;
              fid_mr* made = nullptr;
              check(fi_mr_regattr(s.server.domain.get(), &attr, kAuthKey, &made), "fi_mr_regattr");
              const Owned<fid_mr> mr(made);
              const auto write = [&](Side& side, fid_ep& ep, fi_addr_t to) {
                check(fi_write(&ep, "w", 1, nullptr, to, 0, 5, nullptr), "fi_write");
                return side.next(s.server).error;
              };
              require(write(s.client_7, *s.ep_7, s.from_7) != 0, "job 7 has written");
              require(write(s.client_8, *s.ep_8, s.from_8) == 0 && memory[0] == 'w', "job 8");
              attr.requested_key = 6;
              attr.auth_key_size = 3;
              require(fi_mr_regattr(s.server.domain.get(), &attr, 0, &made) == -FI_EINVAL,
                      "a key of the domain's form");
            }),
            "");
}

// fi_av_set_user_id(3): completions name the peer by the id that was set last.
TEST(AvKeys, CompletionsNameThePeerByItsUserId) {
  EXPECT_EQ(in_child([] {
              Side client(of_job(7));
              const auto sender = client.open_endpoint(0);
              Side server(with_keys_in_av());
              fi_av_attr attr{};
              attr.flags = FI_AV_USER_ID;
              server.av.reset();
              Side::open(server.av, "fi_av_open", [&](auto** out) {
                return fi_av_open(server.domain.get(), &attr, out, nullptr);
              });
              const fi_addr_t key = add_key(server, 7);
              const auto ep = server.open_endpoint(0);
              const fi_addr_t peer = insert(server, *sender, key);
              const fi_addr_t to = client.insert(*ep);
              for (const fi_addr_t id : {fi_addr_t{77}, fi_addr_t{78}}) {
                check(calls(server).set_user_id(server.av.get(), peer, id, 0), "fi_av_set_user_id");
                char byte = 0;
                check(fi_recv(ep.get(), &byte, 1, nullptr, FI_ADDR_UNSPEC, nullptr), "fi_recv");
                check(fi_inject(sender.get(), "x", 1, to), "fi_inject");
                fi_addr_t source = FI_ADDR_UNSPEC;
                require(Side::next(*server.cq, client, &source).error == 0, "the receive");
                require(source == id, "the source is " + std::to_string(source));
              }
            }),
            "");
}

TEST(AvKeys, CallsKeepToTheManPage) {
  EXPECT_EQ(
      in_child([] {
        Service s;
        std::array<std::uint8_t, 4> bytes{};
        std::size_t size = bytes.size();
        check(calls(s.server).lookup_auth_key(s.server.av.get(), s.to_8, bytes.data(), &size),
              "fi_av_lookup_auth_key");
        require(size == 3 && bytes[2] == 8, "the key of an address");
        check(calls(s.server).lookup_auth_key(s.server.av.get(), s.key_7, bytes.data(), &size),
              "fi_av_lookup_auth_key");
        require(size == 3 && bytes[2] == 7, "the key of a key");
        require(s.key_7 != s.to_7 && s.key_7 != s.to_8, "a key is no address");
        fi_addr_t key = 0;
        require(
            calls(s.server).insert_auth_key(s.server.av.get(), "xxxxx", 5, &key, 0) == -FI_EINVAL,
            "a key of 5 bytes");
        require(fi_av_remove(s.server.av.get(), &s.key_7, 1, kAuthKey) == -FI_EBUSY, "in use");
        require(calls(s.server).set_user_id(s.server.av.get(), s.to_7, 9, 0) == -FI_EOPNOTSUPP,
                "the AV has no user ids");
        require(calls(s.client_7).insert_auth_key(s.client_7.av.get(), "xxx", 3, &key, 0) ==
                    -FI_EOPNOTSUPP,
                "a domain with a key of its own");
        fi_av_attr attr{};
        attr.flags = FI_AV_USER_ID;
        Owned<fid_av> av;
        Side::open(av, "fi_av_open", [&](auto** out) {
          return fi_av_open(s.server.domain.get(), &attr, out, nullptr);
        });
        fi_addr_t address = 0;
        const auto name = Side::name_of(*s.ep_7);
        require(fi_av_insert(av.get(), name.data(), 1, &address, 0, nullptr) == 1, "insert");
        check(calls(av.get()).set_user_id(av.get(), address, 77, 0), "fi_av_set_user_id");
        fi_info* found = nullptr;
        const std::unique_ptr<fi_info, Node::FreeInfo> hints(fi_dupinfo(s.server.info.get()));
        hints->domain_attr->auth_key_size = kAvKeys;
        hints->ep_attr->type = FI_EP_MSG;
        require(
            fi_getinfo(FI_VERSION(1, 17), nullptr, nullptr, 0, hints.get(), &found) == -FI_ENODATA,
            "FI_EP_MSG has no AV");
      }),
      "");
}

}  // namespace
}  // namespace uet::e2e
