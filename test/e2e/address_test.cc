// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Addresses in every format: discovery, names, several endpoints of one domain that tell each other
// apart, and the address vector call by call. Domains of one process, on loopback.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <net/if.h>
#include <netinet/in.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_eq.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>

#include "objects.h"
#include "uet/fi_ext_uet.h"

namespace uet::e2e {
namespace {

std::function<void(fi_info&)> with_format(std::uint32_t addr_format) {
  return [addr_format](fi_info& hints) { hints.addr_format = addr_format; };
}

struct Format {
  const char* name;
  std::uint32_t asked;
  std::uint32_t given;
  const char* node;
};
// gtest shows it by its name.
void PrintTo(const Format& format, std::ostream* out) { *out << format.name; }

class AddressFormats : public testing::TestWithParam<Format> {
 protected:
  static SideOptions options(const char* service = nullptr) {
    return {.capabilities = FI_MSG | FI_TAGGED | FI_RMA | FI_SOURCE | FI_DIRECTED_RECV,
            .node = GetParam().node,
            .service = service,
            .hints = with_format(GetParam().asked)};
  }
};

INSTANTIATE_TEST_SUITE_P(
    All, AddressFormats,
    testing::Values(Format{"Uet", FI_ADDR_UET, FI_ADDR_UET, "127.0.0.1"},
                    Format{"UetIpv6", FI_FORMAT_UNSPEC, FI_ADDR_UET, "::1"},
                    Format{"Text", FI_ADDR_STR, FI_ADDR_STR, "127.0.0.1"},
                    Format{"TextIpv6", FI_ADDR_STR, FI_ADDR_STR, "::1"},
                    Format{"SocketIpv4", FI_SOCKADDR_IN, FI_SOCKADDR_IN, "127.0.0.1"},
                    Format{"SocketIpv6", FI_SOCKADDR_IN6, FI_SOCKADDR_IN6, "::1"},
                    Format{"AnySocket", FI_SOCKADDR, FI_SOCKADDR_IN, "127.0.0.1"},
                    Format{"AnySocketIpv6", FI_SOCKADDR, FI_SOCKADDR_IN6, "::1"}),
    [](const auto& tested) { return tested.param.name; });

TEST_P(AddressFormats, EndpointsOfOneDomainTellEachOtherApart) {
  constexpr std::size_t kEndpoints = 3;
  Side a(options());
  Side b(options());
  EXPECT_EQ(a.info->addr_format, GetParam().given);
  std::array<Owned<fid_ep>, kEndpoints> from;
  std::array<Owned<fid_ep>, kEndpoints> to;
  std::array<fi_addr_t, kEndpoints> target{};
  for (std::size_t i = 0; i < kEndpoints; ++i) {
    from[i] = a.open_endpoint(0);
    to[i] = b.open_endpoint(0);
    target[i] = a.insert(*to[i]);
    EXPECT_EQ(b.insert(*from[i]), i);
  }
  for (std::size_t i = 0; i < kEndpoints; ++i) {
    for (std::size_t j = 0; j < kEndpoints; ++j) {
      // Only from the sender that is meant, into the endpoint that is meant.
      std::uint64_t room = 0;
      ASSERT_EQ(fi_trecv(to[j].get(), &room, sizeof room, nullptr, i, 7, 0, &room), 0);
      const std::uint64_t value = 10 * i + j;
      ASSERT_EQ(fi_tinject(from[i].get(), &value, sizeof value, target[j], 7), 0);
      fi_addr_t source = FI_ADDR_UNSPEC;
      const Event event = Side::next(*b.cq, a, &source);
      EXPECT_EQ(event.error, 0);
      EXPECT_EQ(event.context, &room);
      EXPECT_EQ(source, i);
      EXPECT_EQ(room, value);
    }
  }
}

TEST_P(AddressFormats, NameIsWhatLookupGivesBack) {
  Side side(options());
  const auto ep = side.open_endpoint(0);
  const auto name = Side::name_of(*ep);
  const fi_addr_t self = side.insert(*ep);
  std::vector<std::byte> back(name.size());
  std::size_t length = 4;
  EXPECT_EQ(fi_av_lookup(side.av.get(), self, back.data(), &length), 0);
  EXPECT_EQ(length, name.size());
  EXPECT_EQ(fi_av_lookup(side.av.get(), self, back.data(), &length), 0);
  EXPECT_EQ(back, name);

  length = name.size() - 1;
  EXPECT_EQ(fi_getname(&ep->fid, back.data(), &length), -FI_ETOOSMALL);
  EXPECT_EQ(length, name.size());

  // The text names the same endpoint to fi_av_insertsvc.
  char text[160];
  length = sizeof text;
  EXPECT_EQ(fi_av_straddr(side.av.get(), name.data(), text, &length), text);
  EXPECT_EQ(length, std::strlen(text) + 1);
  fi_addr_t again = FI_ADDR_NOTAVAIL;
  EXPECT_EQ(fi_av_insertsvc(side.av.get(), text, nullptr, &again, 0, nullptr), 1);
  length = back.size();
  EXPECT_EQ(fi_av_lookup(side.av.get(), again, back.data(), &length), 0);
  EXPECT_EQ(back, name);
}

// As fi_loopback of the fabtests does.
TEST_P(AddressFormats, SourceAddressWithServiceCanBeSentTo) {
  Side side(options("9228"));
  const auto ep = side.open_endpoint(0);
  const std::vector<std::byte> name = Side::name_of(*ep);
  ASSERT_EQ(side.info->src_addrlen, name.size());
  EXPECT_EQ(std::memcmp(side.info->src_addr, name.data(), name.size()), 0);
  fi_addr_t self = FI_ADDR_NOTAVAIL;
  ASSERT_EQ(fi_av_insert(side.av.get(), side.info->src_addr, 1, &self, 0, nullptr), 1);
  char room[4] = "";
  ASSERT_EQ(fi_recv(ep.get(), room, sizeof room, nullptr, self, room), 0);
  ASSERT_EQ(fi_inject(ep.get(), "abc", 4, self), 0);
  EXPECT_EQ(side.next(side).context, room);
  EXPECT_STREQ(room, "abc");
}

TEST_P(AddressFormats, InfosWorkAsHintsAgain) {
  Side side(options("9228"));
  fi_info* again = nullptr;
  ASSERT_EQ(fi_getinfo(FI_VERSION(1, 17), nullptr, nullptr, 0, side.info.get(), &again), 0);
  const std::unique_ptr<fi_info, Node::FreeInfo> owner(again);
  EXPECT_EQ(again->addr_format, GetParam().given);
  ASSERT_EQ(again->src_addrlen, side.info->src_addrlen);
  EXPECT_EQ(std::memcmp(again->src_addr, side.info->src_addr, again->src_addrlen), 0);
  EXPECT_STREQ(again->domain_attr->name, side.info->domain_attr->name);
  EXPECT_STREQ(again->fabric_attr->name, side.info->fabric_attr->name);
  // The same without saying which format the addresses have.
  side.info->addr_format = FI_FORMAT_UNSPEC;
  fi_info* guessed = nullptr;
  ASSERT_EQ(fi_getinfo(FI_VERSION(1, 17), nullptr, nullptr, 0, side.info.get(), &guessed), 0);
  EXPECT_EQ(guessed->addr_format, GetParam().given);
  fi_freeinfo(guessed);
}

TEST_P(AddressFormats, ASecondEndpointOfTheSameSourceGetsTheNextName) {
  Side side(options("4900"));
  const auto first = side.open_endpoint(0);
  const auto second = side.open_endpoint(0);
  EXPECT_NE(Side::name_of(*first), Side::name_of(*second));
}

// An application of IP sockets expects to get the port that it asked for.
TEST(SocketAddress, KeepsThePortThatWasAskedFor) {
  for (const std::uint16_t port : {4801, 9228, 7471}) {
    const std::string service = std::to_string(port);
    const Side side({.service = service.c_str(), .hints = with_format(FI_SOCKADDR_IN)});
    ASSERT_EQ(side.info->src_addrlen, sizeof(sockaddr_in));
    const auto* source = static_cast<const sockaddr_in*>(side.info->src_addr);
    EXPECT_EQ(source->sin_family, AF_INET);
    EXPECT_EQ(ntohs(source->sin_port), port);
    EXPECT_EQ(ntohl(source->sin_addr.s_addr), INADDR_LOOPBACK);
  }
}

// One of the 64 port names of UDP port 5120 would be port 0, which is none.
TEST(SocketAddress, NamesSixtyFourEndpointsOfADomain) {
  Side side({.service = "5120", .hints = with_format(FI_SOCKADDR_IN)});
  EXPECT_EQ(side.info->domain_attr->ep_cnt, 64U);
  std::vector<Owned<fid_ep>> endpoints;
  for (int i = 0; i < 63; ++i) {
    endpoints.push_back(side.open_endpoint(0));
    const auto name = Side::name_of(*endpoints.back());
    const std::uint16_t port = ntohs(reinterpret_cast<const sockaddr_in*>(name.data())->sin_port);
    EXPECT_EQ(port % 1024, 0);
    EXPECT_NE(port, 0);
  }
  fid_ep* more = nullptr;
  EXPECT_LT(fi_endpoint(side.domain.get(), side.info.get(), &more, nullptr), 0);
}

TEST(SocketAddress, FormatOfOneFamilyGivesThatFamilyOnly) {
  for (const std::uint32_t format : {FI_SOCKADDR_IN, FI_SOCKADDR_IN6}) {
    const std::unique_ptr<fi_info, Node::FreeInfo> hints(fi_allocinfo());
    hints->fabric_attr->prov_name = strdup(provider().c_str());
    hints->addr_format = format;
    fi_info* found = nullptr;
    ASSERT_EQ(fi_getinfo(FI_VERSION(1, 17), nullptr, nullptr, 0, hints.get(), &found), 0);
    for (const fi_info* item = found; item != nullptr; item = item->next) {
      EXPECT_EQ(item->addr_format, format);
    }
    fi_freeinfo(found);
    const char* other = format == FI_SOCKADDR_IN ? "::1" : "127.0.0.1";
    EXPECT_EQ(fi_getinfo(FI_VERSION(1, 17), other, "1", FI_SOURCE, hints.get(), &found),
              -FI_ENODATA);
  }
}

// fi_getinfo(3), FI_ADDR_FORMAT: libfabric from 2.6 on removes infos of other formats.
TEST(SocketAddress, FormatOfTheEnvironmentIsThePresetOne) {
  const std::unique_ptr<fi_info, Node::FreeInfo> hints(fi_allocinfo());
  hints->fabric_attr->prov_name = strdup(provider().c_str());
  const auto format_of_first = [&] {
    fi_info* found = nullptr;
    EXPECT_EQ(fi_getinfo(FI_VERSION(1, 17), nullptr, nullptr, 0, hints.get(), &found), 0);
    const std::uint32_t format = found != nullptr ? found->addr_format : 0;
    fi_freeinfo(found);
    return format;
  };
  ASSERT_EQ(setenv("FI_ADDR_FORMAT", "FI_SOCKADDR_IN", 1), 0);
  EXPECT_EQ(format_of_first(), FI_SOCKADDR_IN);
  hints->addr_format = FI_ADDR_STR;
  EXPECT_EQ(format_of_first(), FI_ADDR_STR) << "the hints come first";
  ASSERT_EQ(unsetenv("FI_ADDR_FORMAT"), 0);
}

// ---- FI_ADDR_UET -------------------------------------------------------------------------------

// Of the layout that fi_ext_uet.h describes.
constexpr std::size_t kFlagsAt = 1;
constexpr std::size_t kIdsAt = 20;  // PIDonFEP, first resource index
constexpr std::size_t kInitiatorAt = 28;

using SourceName = std::array<unsigned char, FI_ADDR_UET_SIZE>;

// A source hint without fabric address: its ids are for an endpoint of any NIC.
SourceName source_ids() {
  SourceName wanted{};
  wanted[kFlagsAt] = 0x04 | 0x08 | 0x10;
  wanted[kIdsAt + 1] = 5;
  wanted[kIdsAt + 3] = 7;
  wanted[kIdsAt + 5] = 1;
  wanted[kInitiatorAt + 3] = 99;
  return wanted;
}

std::unique_ptr<fi_info, Node::FreeInfo> infos_of(const SourceName& wanted) {
  const std::unique_ptr<fi_info, Node::FreeInfo> hints(fi_allocinfo());
  hints->fabric_attr->prov_name = strdup(provider().c_str());
  hints->addr_format = FI_ADDR_UET;
  hints->src_addr = std::malloc(wanted.size());
  std::memcpy(hints->src_addr, wanted.data(), wanted.size());
  hints->src_addrlen = wanted.size();
  fi_info* list = nullptr;
  EXPECT_EQ(fi_getinfo(FI_VERSION(1, 17), nullptr, nullptr, 0, hints.get(), &list), 0);
  return std::unique_ptr<fi_info, Node::FreeInfo>(list);
}

void expect_ids(const fi_info& info) {
  const SourceName wanted = source_ids();
  const auto* source = static_cast<const unsigned char*>(info.src_addr);
  ASSERT_EQ(info.src_addrlen, wanted.size());
  EXPECT_EQ(source[kFlagsAt] & 0x1E, 0x1E) << info.domain_attr->name;
  EXPECT_TRUE(std::equal(source + kIdsAt, source + kIdsAt + 4, &wanted[kIdsAt]));
  EXPECT_EQ(source[kInitiatorAt + 3], 99);
}

TEST(UetAddress, SourceWithoutFabricAddress_TakesIdsOnAnyNic) {
  const std::unique_ptr<fi_info, Node::FreeInfo> found = infos_of(source_ids());
  fi_info* const list = found.get();
  ASSERT_NE(list, nullptr);
  for (const fi_info* item = list; item != nullptr; item = item->next) expect_ids(*item);
  Owned<fid_fabric> fabric;
  Owned<fid_domain> domain;
  Owned<fid_ep> ep;
  Side::open(fabric, "fi_fabric",
             [&](auto** out) { return fi_fabric(list->fabric_attr, out, nullptr); });
  Side::open(domain, "fi_domain",
             [&](auto** out) { return fi_domain(fabric.get(), list, out, nullptr); });
  Side::open(ep, "fi_endpoint",
             [&](auto** out) { return fi_endpoint(domain.get(), list, out, nullptr); });
  const auto name = Side::name_of(*ep);
  EXPECT_EQ(name[kIdsAt + 1], std::byte{5});
  EXPECT_EQ(name[kIdsAt + 3], std::byte{7});
  EXPECT_EQ(name[kInitiatorAt + 3], std::byte{99});
}

bool add_interface() {
  return std::system(
             "ip link add uet0 type veth peer name uet1 && ip link set uet1 up && "
             "ip addr add 192.0.2.1/24 dev uet0 && ip link set uet0 up") == 0;
}

// Alone in its process, as ctest runs it: the provider searches for interfaces once.
TEST(UetAddress, SourceIdsAreForASecondNicToo) {
  struct if_nameindex* const list = ::if_nameindex();
  ASSERT_NE(list, nullptr);
  const bool only_loopback = list[0].if_index != 0 && list[1].if_index == 0;
  ::if_freenameindex(list);
  if (!only_loopback) GTEST_SKIP() << "needs a network name space of its own (own_network)";
  if (!add_interface()) GTEST_SKIP() << "no veth pair can be made here";
  const std::unique_ptr<fi_info, Node::FreeInfo> found = infos_of(source_ids());
  ASSERT_NE(found, nullptr);
  std::set<std::string> domains;
  for (const fi_info* item = found.get(); item != nullptr; item = item->next) {
    expect_ids(*item);
    domains.insert(item->domain_attr->name);
  }
  EXPECT_GE(domains.size(), 2U) << *domains.begin();
}

TEST(UetAddress, PeerOfOneMtuGetsNoLongerMessages) {
  Side side;
  const auto ep = side.open_endpoint(0);
  auto name = Side::name_of(*ep);
  name[kFlagsAt] |= std::byte{0x80};
  fi_addr_t small = FI_ADDR_UNSPEC;
  ASSERT_EQ(fi_av_insert(side.av.get(), name.data(), 1, &small, 0, nullptr), 1);
  std::vector<std::byte> data(64 << 10);
  EXPECT_EQ(fi_send(ep.get(), data.data(), data.size(), nullptr, small, nullptr), -FI_EMSGSIZE);
  EXPECT_EQ(fi_write(ep.get(), data.data(), data.size(), nullptr, small, 0, 1, nullptr),
            -FI_EMSGSIZE);
  EXPECT_EQ(fi_tsend(ep.get(), data.data(), 1, nullptr, small, 1, nullptr), 0);
  const fi_addr_t large = side.insert(*ep);
  EXPECT_EQ(fi_send(ep.get(), data.data(), data.size(), nullptr, large, nullptr), 0);
}

// ---- fi_setname --------------------------------------------------------------------------------

// SES-149: a name is there before fi_enable and stays.
TEST(SetName, GivesAnEndpointTheNameBeforeItIsEnabled) {
  Side side({.service = "4910", .hints = with_format(FI_SOCKADDR_IN)});
  Side peer({.hints = with_format(FI_SOCKADDR_IN)});
  sockaddr_in name = *static_cast<sockaddr_in*>(side.info->src_addr);
  Owned<fid_ep> ep;
  Side::open(ep, "fi_endpoint", [&](auto** out) {
    return fi_endpoint(side.domain.get(), side.info.get(), out, nullptr);
  });
  EXPECT_EQ(fi_setname(&ep->fid, &name, sizeof name), 0) << "its own";
  name.sin_port = htons(4910 + 5 * 1024);
  EXPECT_EQ(fi_setname(&ep->fid, &name, sizeof name), 0);
  EXPECT_EQ(std::memcmp(Side::name_of(*ep).data(), &name, sizeof name), 0);
  const auto other = side.open_endpoint(0);  // 4910 is free again
  EXPECT_EQ(fi_setname(&ep->fid, side.info->src_addr, sizeof name), -FI_EADDRINUSE);
  sockaddr_in elsewhere = name;
  elsewhere.sin_port = htons(4911);
  EXPECT_EQ(fi_setname(&ep->fid, &elsewhere, sizeof elsewhere), -FI_EADDRNOTAVAIL);
  EXPECT_EQ(fi_setname(&ep->fid, &name, 8), -FI_EINVAL);
  EXPECT_EQ(std::memcmp(Side::name_of(*ep).data(), &name, sizeof name), 0);

  ASSERT_EQ(fi_ep_bind(ep.get(), &side.av->fid, 0), 0);
  ASSERT_EQ(fi_ep_bind(ep.get(), &side.cq->fid, FI_TRANSMIT | FI_RECV), 0);
  ASSERT_EQ(fi_enable(ep.get()), 0);
  EXPECT_EQ(fi_setname(&ep->fid, &name, sizeof name), -FI_EOPBADSTATE);
  EXPECT_EQ(std::memcmp(Side::name_of(*ep).data(), &name, sizeof name), 0);
  const auto sender = peer.open_endpoint(0);
  char room[4] = "";
  ASSERT_EQ(fi_recv(ep.get(), room, sizeof room, nullptr, FI_ADDR_UNSPEC, room), 0);
  ASSERT_EQ(fi_inject(sender.get(), "abc", 4, peer.insert(*ep)), 0);
  EXPECT_EQ(side.next(peer).context, room);
}

TEST(SourceAddress, OfAnotherPortThanTheDomainsIsNotAvailable) {
  Side side({.service = "4920", .hints = with_format(FI_SOCKADDR_IN)});
  static_cast<sockaddr_in*>(side.info->src_addr)->sin_port = htons(4921);
  fid_ep* ep = nullptr;
  EXPECT_EQ(fi_endpoint(side.domain.get(), side.info.get(), &ep, nullptr), -FI_EADDRNOTAVAIL);
}

// ---- address vectors ---------------------------------------------------------------------------

class AddressVector : public testing::Test {
 protected:
  AddressVector() : side_({.hints = with_format(FI_SOCKADDR_IN)}) {
    const fi_eq_attr eq_attr{};
    Side::open(eq_, "fi_eq_open", [&](auto** out) {
      return fi_eq_open(side_.fabric.get(), const_cast<fi_eq_attr*>(&eq_attr), out, nullptr);
    });
    inet_pton(AF_INET, "10.0.0.1", &mixed_[0].sin_addr);
    inet_pton(AF_INET, "10.0.0.3", &mixed_[2].sin_addr);
    mixed_[0].sin_family = mixed_[2].sin_family = AF_INET;
    mixed_[0].sin_port = htons(9);
    mixed_[2].sin_port = htons(4793);
  }
  Owned<fid_av> open(fi_av_attr attr) {
    Owned<fid_av> av;
    Side::open(av, "fi_av_open",
               [&](auto** out) { return fi_av_open(side_.domain.get(), &attr, out, nullptr); });
    return av;
  }
  std::string text(fid_av& av, fi_addr_t address) {
    sockaddr_in found{};
    std::size_t length = sizeof found;
    if (fi_av_lookup(&av, address, &found, &length) != 0) return "nothing";
    char buffer[64];
    length = sizeof buffer;
    return fi_av_straddr(&av, &found, buffer, &length);
  }

  Side side_;
  Owned<fid_eq> eq_;
  std::array<sockaddr_in, 3> mixed_{};  // good, bad, good
  std::array<fi_addr_t, 3> addresses_{1, 1, 1};
};

TEST_F(AddressVector, AsyncInsertion_ReportsErrorsThenTheCount) {
  fi_av_attr attr{};
  attr.flags = FI_EVENT;
  const auto av = open(attr);
  int context = 0;
  const auto insert = [&](std::size_t count, std::uint64_t flags) {
    return fi_av_insert(av.get(), mixed_.data(), count, addresses_.data(), flags, &context);
  };
  EXPECT_EQ(insert(3, 0), -FI_ENOEQ);
  EXPECT_EQ(fi_av_bind(av.get(), &eq_->fid, 1), -FI_EINVAL);
  ASSERT_EQ(fi_av_bind(av.get(), &eq_->fid, 0), 0);
  EXPECT_EQ(insert(3, FI_SYNC_ERR), -FI_EBADFLAGS);
  ASSERT_EQ(insert(3, FI_MORE), 0);
  ASSERT_EQ(insert(0, 0), 0);
  std::uint32_t event = 0;
  fi_eq_entry entry{};
  EXPECT_EQ(fi_eq_read(eq_.get(), &event, &entry, sizeof entry, 0), -FI_EAVAIL);
  fi_eq_err_entry error{};
  ASSERT_EQ(fi_eq_readerr(eq_.get(), &error, 0), ssize_t{sizeof error});
  EXPECT_EQ(error.fid, &av->fid);
  EXPECT_EQ(error.context, &context);
  EXPECT_EQ(error.data, 1U) << "which of the addresses";
  EXPECT_EQ(error.err, FI_EINVAL);
  for (const std::uint64_t inserted : {2U, 0U}) {
    ASSERT_EQ(fi_eq_read(eq_.get(), &event, &entry, sizeof entry, 0), ssize_t{sizeof entry});
    EXPECT_EQ(event, std::uint32_t{FI_AV_COMPLETE});
    EXPECT_EQ(entry.fid, &av->fid);
    EXPECT_EQ(entry.context, &context);
    EXPECT_EQ(entry.data, inserted);
  }
  EXPECT_EQ(addresses_, (std::array<fi_addr_t, 3>{0, FI_ADDR_NOTAVAIL, 1}));
  EXPECT_EQ(fi_close(&eq_->fid), -FI_EBUSY);
}

TEST_F(AddressVector, SynchronousErrorsGoIntoTheContext) {
  std::array<int, 3> errors{-1, -1, -1};
  fid_av* av = side_.av.get();
  EXPECT_EQ(fi_av_insert(av, mixed_.data(), 3, addresses_.data(), FI_SYNC_ERR, errors.data()), 2);
  EXPECT_EQ(errors, (std::array<int, 3>{0, FI_EINVAL, 0}));
  EXPECT_EQ(addresses_, (std::array<fi_addr_t, 3>{0, FI_ADDR_NOTAVAIL, 1}));
  EXPECT_EQ(fi_av_insert(av, mixed_.data(), 3, nullptr, FI_SYNC_ERR, nullptr), -FI_EINVAL);
  EXPECT_EQ(fi_av_insert(av, mixed_.data(), 3, nullptr, 0, nullptr), 2)
      << "FI_AV_TABLE needs no output";
  EXPECT_EQ(text(*av, 2), "fi_sockaddr_in://10.0.0.1:9");
  EXPECT_EQ(text(*av, 3), "fi_sockaddr_in://10.0.0.3:4793");
  EXPECT_EQ(text(*av, 4), "nothing");
}

// The example of fi_av(3).
TEST_F(AddressVector, SymmetricInsertionCountsServicesThenNodes) {
  fid_av* av = side_.av.get();
  std::array<fi_addr_t, 4> found{};
  EXPECT_EQ(fi_av_insertsym(av, "10.1.1.1", 2, "5000", 2, found.data(), 0, nullptr), 4);
  EXPECT_EQ(found, (std::array<fi_addr_t, 4>{0, 1, 2, 3}));
  EXPECT_EQ(text(*av, 0), "fi_sockaddr_in://10.1.1.1:5000");
  EXPECT_EQ(text(*av, 1), "fi_sockaddr_in://10.1.1.1:5001");
  EXPECT_EQ(text(*av, 2), "fi_sockaddr_in://10.1.1.2:5000");
  EXPECT_EQ(text(*av, 3), "fi_sockaddr_in://10.1.1.2:5001");
  EXPECT_EQ(fi_av_insertsym(av, nullptr, 1, "5000", 1, found.data(), 0, nullptr), -FI_EINVAL);
  EXPECT_EQ(fi_av_insertsvc(av, "::1", "5000", found.data(), 0, nullptr), 0);
  EXPECT_EQ(found[0], FI_ADDR_NOTAVAIL);
}

TEST_F(AddressVector, WrongUseGetsTheErrorOfTheManual) {
  fid_av* av = side_.av.get();
  EXPECT_EQ(fi_av_insert(av, mixed_.data(), 1, addresses_.data(), FI_READ, nullptr), -FI_EBADFLAGS);
  EXPECT_EQ(fi_av_insert(av, nullptr, 1, addresses_.data(), 0, nullptr), -FI_EINVAL);
  EXPECT_EQ(fi_av_remove(av, addresses_.data(), 1, FI_MORE), -FI_EINVAL);
  EXPECT_EQ(fi_av_remove(av, addresses_.data(), 1, 0), -FI_EINVAL);
  fid_av_set* set = nullptr;
  fi_av_set_attr set_attr{};
  EXPECT_EQ(fi_av_set(av, &set_attr, &set, nullptr), -FI_ENOSYS);

  fi_av_attr attr{};
  attr.type = FI_AV_MAP;
  const auto map = open(attr);
  EXPECT_EQ(fi_av_insert(map.get(), mixed_.data(), 1, nullptr, 0, nullptr), -FI_EINVAL);

  fid_av* refused = nullptr;
  const auto refuse = [&](const fi_av_attr& wrong) {
    fi_av_attr copy = wrong;
    return fi_av_open(side_.domain.get(), &copy, &refused, nullptr);
  };
  attr = {};
  attr.name = "shared";
  EXPECT_EQ(refuse(attr), -FI_ENOSYS);
  attr = {};
  attr.flags = FI_READ;
  EXPECT_EQ(refuse(attr), -FI_EINVAL);
  attr = {};
  attr.rx_ctx_bits = 13;
  EXPECT_EQ(refuse(attr), -FI_EINVAL);
  attr = {};
  attr.type = static_cast<fi_av_type>(3);
  EXPECT_EQ(refuse(attr), -FI_EINVAL);
}

TEST_F(AddressVector, TypeIsChosenAndCountIsAHint) {
  fi_av_attr attr{};
  attr.flags = FI_SYMMETRIC;
  attr.count = SIZE_MAX;
  fid_av* av = nullptr;
  ASSERT_EQ(fi_av_open(side_.domain.get(), &attr, &av, nullptr), 0);
  EXPECT_EQ(attr.type, FI_AV_TABLE);
  EXPECT_EQ(fi_close(&av->fid), 0);
}

TEST_F(AddressVector, SharedByEndpointsItStaysOpen) {
  auto first = side_.open_endpoint(0);
  auto second = side_.open_endpoint(0);
  EXPECT_EQ(fi_close(&side_.av->fid), -FI_EBUSY);
  first.reset();
  EXPECT_EQ(fi_close(&side_.av->fid), -FI_EBUSY);
  second.reset();
  EXPECT_EQ(fi_close(&side_.av->fid), 0);
  (void)side_.av.release();
}

// An operation in progress whose address is removed ends as if the address were still there.
TEST_F(AddressVector, RemovalLeavesOperationsInProgressAlone) {
  Side peer({.hints = with_format(FI_SOCKADDR_IN)});
  const auto ep = side_.open_endpoint(0);
  const auto other = peer.open_endpoint(0);
  fi_addr_t to = side_.insert(*other);
  fi_addr_t from = peer.insert(*ep);
  constexpr int kMessages = 20;
  const std::vector<char> data(50'000, 'x');
  std::vector<std::vector<char>> rooms(kMessages, std::vector<char>(data.size()));
  for (int i = 0; i < kMessages; ++i) {
    ASSERT_EQ(fi_send(ep.get(), data.data(), data.size(), nullptr, to, nullptr), 0);
  }
  for (auto& room : rooms) {
    ASSERT_EQ(fi_recv(other.get(), room.data(), room.size(), nullptr, from, nullptr), 0);
  }
  ASSERT_EQ(fi_av_remove(side_.av.get(), &to, 1, 0), 0);
  ASSERT_EQ(fi_av_remove(peer.av.get(), &from, 1, 0), 0);
  EXPECT_EQ(fi_send(ep.get(), data.data(), 1, nullptr, to, nullptr), -FI_EINVAL);
  for (int i = 0; i < kMessages; ++i) {
    fi_addr_t source = 0;
    EXPECT_EQ(Side::next(*peer.cq, side_, &source).error, 0);
    EXPECT_EQ(source, FI_ADDR_NOTAVAIL);
    EXPECT_EQ(side_.next(peer).error, 0);
  }
  EXPECT_EQ(rooms.back(), data);
  EXPECT_EQ(side_.insert(*other), to) << "the index is used again";
}

}  // namespace
}  // namespace uet::e2e
