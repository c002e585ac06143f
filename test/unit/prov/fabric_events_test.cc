// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The entries that the end of a peer writes to the EQs that ask for it.
#include "objects/fabric_events.h"

#include <gtest/gtest.h>

#include "domain_testing.h"
#include "objects/av_fid.h"

namespace uet::prov {
namespace {

struct Events : ::testing::Test {
  Events() {
    fi_eq_attr attr{};
    OpenDomain::open(
        eq, [&](auto** out) { return fi_eq_open(domain.fabric.get(), &attr, out, nullptr); });
    fi_av_attr av_attr{};
    OpenDomain::open(
        av, [&](auto** out) { return fi_av_open(domain.domain.get(), &av_attr, out, nullptr); });
    subscriber.eq = &Eq::from(eq.get());
    subscriber.fid = &domain.domain->fid;
    subscriber.av = &bound;
    subscriber.format = Domain::from(domain.domain.get()).format();
    EXPECT_EQ(events.add(subscriber, "lo"), 0);
  }
  ~Events() override { events.remove(subscriber); }
  static FepAddress peer(std::uint16_t number) {
    FepAddress address{.ip = {}, .port = 4793};
    address.ip.bytes = {10, 1, static_cast<std::uint8_t>(number >> 8),
                        static_cast<std::uint8_t>(number)};
    return address;
  }
  fi_addr_t insert(const av::UetAddress& address) {
    const auto bytes = av::encode(address);
    fi_addr_t index = FI_ADDR_NOTAVAIL;
    EXPECT_EQ(fi_av_insert(av.get(), bytes.data(), 1, &index, 0, nullptr), 1);
    return index;
  }
  // The next entry; err 0: there is none.
  fi_eq_err_entry next() {
    fi_eq_err_entry error{};
    if (fi_eq_readerr(eq.get(), &error, 0) < 0) error.err = 0;
    return error;
  }

  OpenDomain domain;
  Owned<fid_eq> eq;
  Owned<fid_av> av;
  const AvFid* bound = nullptr;
  EventSubscriber subscriber;
  FabricEvents events;
};

TEST_F(Events, PeerOutsideVector_ComesWithAddressAlone) {
  events.peer_given_up(peer(7), pds::PdsError::RtoExhausted);
  const fi_eq_err_entry error = next();
  EXPECT_EQ(error.err, FI_ETIMEDOUT);
  EXPECT_EQ(error.data, FI_ADDR_NOTAVAIL);
  ASSERT_EQ(error.err_data_size, av::UetAddress::kBytes);
  const auto address = av::decode({static_cast<const std::byte*>(error.err_data), 32});
  ASSERT_TRUE(address);
  EXPECT_EQ(address.value().fep(), peer(7));
  EXPECT_EQ(next().err, 0);
}

TEST_F(Events, EachEntryOfTheAddressVectorIsNamed) {
  bound = &AvFid::from(av.get());
  insert(av::default_address(peer(1)));
  const fi_addr_t first = insert(av::default_address(peer(2), ResourceIndex{1}));
  const fi_addr_t second = insert(av::default_address(peer(2), ResourceIndex{2}));
  events.peer_given_up(peer(2), pds::PdsError::PeerLost);
  const fi_eq_err_entry one = next();
  EXPECT_EQ(one.err, FI_ECONNRESET);
  EXPECT_EQ(one.data, first);
  EXPECT_EQ(next().data, second);
  EXPECT_EQ(next().err, 0);
}

TEST_F(Events, ThousandPeersAtOnceLoseNoEntry) {
  bound = &AvFid::from(av.get());
  std::vector<fi_addr_t> addresses;
  for (std::uint16_t i = 0; i < 1000; ++i)
    addresses.push_back(insert(av::default_address(peer(i))));
  for (std::uint16_t i = 0; i < 1000; ++i) events.peer_given_up(peer(i), pds::PdsError::PeerLost);
  for (std::uint16_t i = 0; i < 1000; ++i) EXPECT_EQ(next().data, addresses[i]);
  EXPECT_EQ(next().err, 0);
}

TEST_F(Events, InterfaceThatIsNotThereCannotBeWatched) {
  FabricEvents other;
  EventSubscriber one;
  one.eq = subscriber.eq;
  one.fid = subscriber.fid;
  EXPECT_EQ(other.add(one, ""), -FI_EINVAL);
  EXPECT_FALSE(one.linked());
}

}  // namespace
}  // namespace uet::prov
