// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What follows for the core from parameters, the NIC and both together.
#include "settings/core_config.h"

#include <gtest/gtest.h>

#include "cms/path.h"

namespace uet::prov {
namespace {

constexpr std::uint32_t kMtu = 4096;

// Moves nothing: only its capabilities and its address count here.
class StillNic final : public nic::Nic {
 public:
  nic::NicCaps capabilities;
  FepAddress address{.ip = FabricAddress{}, .port = 20000};

  std::size_t rx_burst(std::span<RxPacket>, Time) override { return 0; }
  std::size_t tx_burst(std::span<const Packet* const>) override { return 0; }
  const nic::NicCaps& caps() const override { return capabilities; }
  FepAddress local_address() const override { return address; }
};

TEST(CoreConfig, LoopbackNeedsNoCongestionControl) {
  StillNic nic;
  EXPECT_EQ(fep_config({}, nic, kMtu).cms.algorithm, cms::Algorithm::Nscc);
  nic.capabilities.loopback = true;
  EXPECT_EQ(fep_config({}, nic, kMtu).cms.algorithm, cms::Algorithm::None);
  Params params;
  params.cc_algorithm = cms::Algorithm::Rccc;
  EXPECT_EQ(fep_config(params, nic, kMtu).cms.algorithm, cms::Algorithm::Rccc);
}

// CMS-404: a NIC of fixed source ports chooses among as many paths.
TEST(CoreConfig, Cms404_PathsAreThoseOfTheNic) {
  StillNic nic;
  Params params;
  params.core.cms.path_count = 64;
  EXPECT_EQ(fep_config(params, nic, kMtu).cms.paths, cms::PathPolicy::Single);
  nic.capabilities.per_packet_entropy = true;
  EXPECT_EQ(fep_config(params, nic, kMtu).cms.paths, cms::kDefaultPaths);
  params.paths = cms::PathPolicy::RoundRobin;
  nic.capabilities.source_ports = 8;
  const cms::Parameters cms = fep_config(params, nic, kMtu).cms;
  EXPECT_EQ(cms.paths, cms::PathPolicy::RoundRobin);
  EXPECT_EQ(cms.path_count, 8);
  EXPECT_EQ(cms.train_packets, params.cc_train_packets);
  params.gso = false;
  EXPECT_EQ(fep_config(params, nic, kMtu).cms.train_packets, 1u);
}

TEST(CoreConfig, LinkRateOfTheUserComesBeforeThatOfTheNic) {
  StillNic nic;
  nic.capabilities.link_rate_bps = 10'000'000'000;
  EXPECT_EQ(fep_config({}, nic, kMtu).cms.link_rate_bps, 10'000'000'000u);
  Params params;
  params.cc_link_rate_mbps = 25'000;
  EXPECT_EQ(fep_config(params, nic, kMtu).cms.link_rate_bps, 25'000'000'000u);
}

TEST(CoreConfig, Window_HalfOfPeerSocketAtLeastFourPackets) {
  StillNic nic;
  nic.capabilities.receive_credit_bytes = 4 << 20;
  EXPECT_EQ(fep_config({}, nic, kMtu).cms.max_window_bytes, 2u << 20);
  nic.capabilities.receive_credit_bytes = 1;
  const cms::Parameters cms = fep_config({}, nic, kMtu).cms;
  EXPECT_EQ(cms.max_window_bytes, 4u * cms.mtu_bytes);
}

TEST(CoreConfig, SameHostWindow_512KiBUnlessTheSocketIsSmall) {
  StillNic nic;
  nic.capabilities.loopback = true;
  nic.capabilities.receive_credit_bytes = 4 << 20;
  EXPECT_EQ(fep_config({}, nic, kMtu).cms.fixed_window_bytes, 512u << 10);
  nic.capabilities.receive_credit_bytes = 400'000;
  EXPECT_EQ(fep_config({}, nic, kMtu).cms.fixed_window_bytes, 200'000u);
  Params params;
  params.cc_loopback_window_bytes = 1 << 20;
  EXPECT_EQ(fep_config(params, nic, kMtu).cms.fixed_window_bytes, 1u << 20);
}

TEST(CoreConfig, FixedWindowOverANetwork_HalfOfPeerSocket) {
  StillNic nic;
  nic.capabilities.receive_credit_bytes = 4 << 20;
  Params params;
  params.cc_algorithm = cms::Algorithm::None;
  EXPECT_EQ(fep_config(params, nic, kMtu).cms.fixed_window_bytes, 2u << 20);
}

// CMS-310
TEST(CoreConfig, Cms310_MprFollowsTheWindowUnlessItIsGiven) {
  StillNic nic;
  nic.capabilities.receive_credit_bytes = 64 << 20;
  nic.capabilities.link_rate_bps = 400'000'000'000;
  const fep::Config fast = fep_config({}, nic, kMtu);
  nic.capabilities.link_rate_bps = 1'000'000'000;
  EXPECT_LT(fep_config({}, nic, kMtu).pds.default_mpr, fast.pds.default_mpr);
  Params params;
  params.mpr = 3;
  EXPECT_EQ(fep_config(params, nic, kMtu).pds.default_mpr, 3);
}

// Each of the processes that share a port has a part of the PDC ids, one half for each role.
TEST(CoreConfig, ProcessAtASharedPortHasThePdcIdsOfItsSlot) {
  StillNic nic;
  Params params;
  params.core.pds.pdc_count = 8192;
  EXPECT_EQ(fep_config(params, nic, kMtu).pds.pdc_count, 8192u);
  nic.address.port = kFirstSlotPort + 3;
  const pds::Parameters pds = fep_config(params, nic, kMtu).pds;
  EXPECT_EQ(pds.id_share, (PdcIdShare{.number = 3, .bits = kSlotBits}));
  EXPECT_EQ(pds.pdc_count, 1024u);
}

// The engines of a domain may send from each other's ports: the ids of their PDCs differ.
TEST(CoreConfig, EnginesOfADomainHaveTheirOwnPdcIds) {
  StillNic nic;
  Params params;
  params.core.pds.pdc_count = 16384;
  params.cores = 3;
  EXPECT_EQ(fep_config(params, nic, kMtu, 2).pds.id_share, PdcIdShare{}) << "the NIC cannot";
  nic.capabilities.lends_port = true;
  const pds::Parameters pds = fep_config(params, nic, kMtu, 2).pds;
  EXPECT_EQ(pds.id_share, (PdcIdShare{.number = 2, .bits = 2}));
  EXPECT_EQ(pds.pdc_count, 8192u);
  params.cores = 1;
  EXPECT_EQ(fep_config(params, nic, kMtu).pds.id_share, PdcIdShare{});
}

// SES-138: RUDI belongs to the profile HPC.
TEST(CoreConfig, Ses138_ProfileDecidesAboutRudiAndLongSends) {
  StillNic nic;
  Params params;
  params.core.ses.rudi = true;
  for (const Profile profile : {Profile::AiBase, Profile::AiFull, Profile::Hpc}) {
    params.profile = profile;
    const auto ses = fep_config(params, nic, kMtu).ses;
    EXPECT_EQ(ses.rudi, profile == Profile::Hpc);
    EXPECT_EQ(ses.rendezvous, profile == Profile::Hpc);
    EXPECT_EQ(ses.deferrable, profile == Profile::AiFull);
  }
}

TEST(CoreConfig, SeedRepeatsAllButTheSecrets) {
  StillNic nic;
  Params params;
  params.seed = 7;
  const fep::Config one = fep_config(params, nic, kMtu);
  const fep::Config two = fep_config(params, nic, kMtu);
  EXPECT_EQ(one.seed, 7u);
  EXPECT_EQ(one.ses.seed, 7u);
  EXPECT_NE(one.key_secret, two.key_secret);
  EXPECT_NE(one.ses.key_secret, two.ses.key_secret);
  EXPECT_NE(one.key_secret, one.ses.key_secret);
  EXPECT_NE(fep_config({}, nic, kMtu).seed, fep_config({}, nic, kMtu).seed);
}

TEST(CoreConfig, NicIsOpenedAtTheSourceAddress) {
  av::UetAddress source;
  source.udp_port = 20123;
  Params params;
  params.udp_port = 20000;
  params.socket_buffer_bytes = 1 << 20;
  params.core.cms.trimming = true;
  const nic::NicConfig config = nic_config(params, "udp", source);
  EXPECT_EQ(config.ip, source.fabric_address);
  EXPECT_EQ(config.port, 20123);
  EXPECT_EQ(config.first_port, 20000);
  EXPECT_EQ(config.receive_buffer_bytes, 1u << 20);
  EXPECT_TRUE(config.trimming);
  EXPECT_FALSE(config.arrival_times_on_loopback);
  params.cc_algorithm = cms::Algorithm::Nscc;
  EXPECT_TRUE(nic_config(params, "udp", source).arrival_times_on_loopback);
}

}  // namespace
}  // namespace uet::prov
