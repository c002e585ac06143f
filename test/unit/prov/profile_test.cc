// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The calls of fi_profile(3), which finds the object behind the table that fi_open_ops returns.
#include "objects/profile.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "domain_testing.h"
#include "objects/stats.h"
#include "pair_testing.h"

namespace uet::prov {
namespace {

struct ProfileTest : ::testing::Test {
  ProfileTest() {
    void* ops = nullptr;
    EXPECT_EQ(fi_open_ops(&domain.domain->fid, kProfileOps.data(), 0, &ops, nullptr), 0);
    auto* const begin = static_cast<char*>(ops) - offsetof(ProfileFid, ops);
    profile = reinterpret_cast<ProfileFid*>(begin);
  }
  ~ProfileTest() override { EXPECT_EQ(fi_close(&profile->fid), 0); }
  std::vector<ProfileDesc> variables() {
    std::size_t count = 0;
    EXPECT_EQ(profile->ops->query_vars(profile, nullptr, &count), 0);
    std::vector<ProfileDesc> list(count);
    EXPECT_EQ(profile->ops->query_vars(profile, list.data(), &count),
              static_cast<ssize_t>(list.size()));
    return list;
  }
  std::uint64_t read(std::uint32_t id) {
    std::uint64_t value = 0;
    std::size_t size = sizeof value;
    EXPECT_EQ(profile->ops->read_var(profile, id, &value, &size), ssize_t{8});
    return value;
  }

  OpenDomain domain;
  ProfileFid* profile = nullptr;
};

TEST_F(ProfileTest, LayoutIsThatOfLibfabric20) {
  EXPECT_EQ(offsetof(ProfileDesc, flags), 16U);
  EXPECT_EQ(sizeof(ProfileDesc), 48U);
  EXPECT_EQ(sizeof(ProfileOps), 64U);
  EXPECT_EQ(offsetof(ProfileFid, ops), sizeof(struct fid));
}

TEST_F(ProfileTest, EachCounterIsAVariable) {
  const auto list = variables();
  ASSERT_EQ(list.size(), counter_names().size());
  for (std::size_t i = 0; i < list.size(); ++i) {
    EXPECT_EQ(list[i].name, counter_names()[i].name);
    EXPECT_EQ(list[i].datatype, FI_UINT64);
    read(list[i].id);
  }
}

TEST_F(ProfileTest, UnknownVariablesAndEventsAreRefused) {
  std::uint64_t value = 0;
  std::size_t size = sizeof value;
  const auto past = kFirstVariable + static_cast<std::uint32_t>(counter_names().size());
  for (const std::uint32_t id : {0U, kFirstVariable - 1, past}) {
    EXPECT_EQ(profile->ops->read_var(profile, id, &value, &size), -FI_EINVAL);
  }
  size = 4;
  EXPECT_EQ(profile->ops->read_var(profile, kFirstVariable, &value, &size), -FI_ETOOSMALL);
  std::size_t events = 7;
  EXPECT_EQ(profile->ops->query_events(profile, nullptr, &events), 0);
  EXPECT_EQ(events, 0U);
  EXPECT_EQ(profile->ops->reg_callback(profile, 0, nullptr, nullptr), -FI_EINVAL);
}

TEST_F(ProfileTest, SnapshotStandsStillAndResetBeginsAtZero) {
  const auto id_of = [&](const std::string& name) {
    for (const ProfileDesc& each : variables()) {
      if (each.name == name) return each.id;
    }
    ADD_FAILURE() << name;
    return 0U;
  };
  const std::uint32_t id = id_of("ses_messages_sent");
  const EndpointPair pair(domain);
  const auto send = [&] {
    char byte = 0;
    EXPECT_EQ(fi_recv(pair.target.get(), &byte, 1, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
    EXPECT_EQ(fi_send(pair.initiator.get(), "x", 1, nullptr, pair.to, nullptr), 0);
    EXPECT_EQ(pair.next_error(), 0);
    EXPECT_EQ(pair.next_error(), 0);
  };
  send();
  profile->ops->start_reads(profile, 0);
  EXPECT_EQ(read(id), 1U);
  send();
  EXPECT_EQ(read(id), 1U) << "the snapshot moves";
  profile->ops->end_reads(profile, 0);
  EXPECT_EQ(read(id), 2U);
  profile->ops->reset(profile, 0);
  EXPECT_EQ(read(id), 0U);
  send();
  EXPECT_EQ(read(id), 1U);
}

TEST_F(ProfileTest, ProfileHoldsItsDomain) { EXPECT_EQ(fi_close(&domain.domain->fid), -FI_EBUSY); }

}  // namespace
}  // namespace uet::prov
