// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "tss/domain_config.h"

#include <gtest/gtest.h>

#include "unit/tss/tss_testing.h"

namespace uet::tss {
namespace {

bool good(const DomainConfig& config) { return reason_against(config) == nullptr; }

DomainConfig server_with(std::vector<Client> clients) {
  DomainConfig config;
  config.mode = KeyMode::Server;
  config.clients = std::move(clients);
  return config;
}

TEST(DomainConfig, Tss22_Ipv6NeedsAnSsi) {
  for (const KeyMode mode : {KeyMode::Direct, KeyMode::Server}) {
    DomainConfig config;
    config.mode = mode;
    config.client = mode == KeyMode::Server;
    EXPECT_TRUE(good(config));
    config.ipv6 = true;
    EXPECT_FALSE(good(config));
    config.ssi = 1;
    EXPECT_TRUE(good(config));
  }
  DomainConfig cluster;
  cluster.ipv6 = true;
  EXPECT_TRUE(good(cluster));
}

TEST(DomainConfig, RangesAreChecked) {
  DomainConfig config;
  config.sdi = kMaxSdi;
  EXPECT_TRUE(good(config));
  config.sdi = kMaxSdi + 1;
  EXPECT_FALSE(good(config));
  config = {};
  config.rekey = {0xFFFFFFFFFF, 0};
  EXPECT_FALSE(good(config));
  config = {};
  config.tsc = TscRange{5, 5};
  EXPECT_FALSE(good(config));
  config = {};
  config.max_epoch_age = 0x8000;
  EXPECT_FALSE(good(config));
  config = {};
  config.guard = Duration(-1);
  EXPECT_FALSE(good(config));
}

TEST(DomainConfig, Tss17_ClientsBelongToAServer) {
  EXPECT_TRUE(good(server_with({{ipv4(10, 0, 0, 1), 1}, {ipv4(10, 0, 0, 2), 2}})));
  EXPECT_FALSE(good(server_with({{ipv4(10, 0, 0, 1), 1}, {ipv4(10, 0, 0, 2), 1}})));
  EXPECT_FALSE(good(server_with({{ipv4(10, 0, 0, 1), 1}, {ipv4(10, 0, 0, 1), 2}})));
  DomainConfig config = server_with({{ipv4(10, 0, 0, 1), 1}});
  config.ssi = 3;
  EXPECT_FALSE(good(config));
  config.ssi.reset();
  config.mode = KeyMode::Cluster;
  EXPECT_FALSE(good(config));
  DomainConfig client;
  client.client = true;
  EXPECT_FALSE(good(client));
}

TEST(DomainConfig, Tss32_RangesOfServerAndClientWithSsi) {
  EXPECT_EQ(default_range(server_with({{ipv4(10, 0, 0, 1), 1}})), kServerTscs);
  DomainConfig client;
  client.mode = KeyMode::Server;
  client.client = true;
  EXPECT_EQ(default_range(client), TscRange{});
  client.ssi = 1;
  EXPECT_EQ(default_range(client), kClientTscs);
  EXPECT_EQ(default_range({}), TscRange{});
}

TEST(DomainConfig, Tss67_JobsHave24Bits) {
  DomainConfig config;
  config.jobs = {0, 0xFFFFFF};
  EXPECT_EQ(reason_against(config), nullptr);
  config.jobs.push_back(0x1000000);
  EXPECT_STREQ(reason_against(config), "a JobID has 24 bits");
  config.jobs.assign(DomainConfig::kMostJobs + 1, 1);
  EXPECT_NE(reason_against(config), nullptr);
}

}  // namespace
}  // namespace uet::tss
