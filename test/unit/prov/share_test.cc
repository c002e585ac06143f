// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The rings that an application shares with its engine, and peers that travel through them.
#include "process/share.h"

#include <gtest/gtest.h>

#include <memory>

namespace uet::prov {
namespace {

class SharedRings : public testing::Test {
 protected:
  std::unique_ptr<Share> share_ = std::make_unique<Share>();
  CommandWriter writer_{share_->transmits.commands, share_->transmits.head};
  CommandReader reader_{share_->transmits.commands, share_->transmits.head};
};

TEST_F(SharedRings, ACommandIsTheReadersOnceItIsPublished) {
  SharedCommand* const command = writer_.claim();
  ASSERT_NE(command, nullptr);
  command->tag = 7;
  EXPECT_EQ(reader_.front(), nullptr);
  writer_.publish();
  ASSERT_NE(reader_.front(), nullptr);
  EXPECT_EQ(reader_.front()->tag, 7u);
  EXPECT_EQ(reader_.place(), 0u);
  reader_.pop();
  EXPECT_EQ(reader_.front(), nullptr);
}

TEST_F(SharedRings, AreFullAfterAllPlacesAndGoRound) {
  for (std::size_t round = 0; round < 3; ++round) {
    for (std::size_t i = 0; i < kShareCommands; ++i) {
      SharedCommand* const command = writer_.claim();
      ASSERT_NE(command, nullptr) << i;
      command->tag = round * kShareCommands + i;
      writer_.publish();
    }
    EXPECT_EQ(writer_.claim(), nullptr);
    for (std::size_t i = 0; i < kShareCommands; ++i) {
      ASSERT_NE(reader_.front(), nullptr) << i;
      EXPECT_EQ(reader_.front()->tag, round * kShareCommands + i);
      reader_.pop();
    }
    EXPECT_EQ(reader_.front(), nullptr);
  }
}

// The other process may write any head: the ring then counts as full, and nothing is overwritten.
TEST_F(SharedRings, AHeadThatCannotBeMakesTheRingFull) {
  for (std::size_t i = 0; i < kShareCommands; ++i) {
    ASSERT_NE(writer_.claim(), nullptr);
    writer_.publish();
  }
  for (const std::uint64_t head : {std::uint64_t{kShareCommands + 1}, ~std::uint64_t{0}}) {
    share_->transmits.head = head;
    EXPECT_EQ(writer_.claim(), nullptr) << head;
  }
}

TEST_F(SharedRings, OneWriterWakesASleeper) {
  std::uint32_t sleeps = 0;
  EXPECT_FALSE(must_wake(sleeps));
  note_sleep(sleeps);
  EXPECT_TRUE(sleeps_now(sleeps));
  EXPECT_TRUE(must_wake(sleeps));
  EXPECT_FALSE(must_wake(sleeps));
}

TEST(SharedPeer, ComesBackAsItWas) {
  ses::Peer peer;
  peer.fep.ip.bytes = {10, 1, 2, 3};
  peer.fep.port = 4801;
  peer.fep.sdi = 9;
  peer.pid_on_fep = PidOnFep{0xABC};
  peer.resource_index = ResourceIndex{0x123};
  peer.initiator = InitiatorId{0x12345678};
  peer.relative = false;
  peer.generation = RiGeneration{5};
  peer.hpc = peer.one_mtu = true;
  peer.job = JobId{4711};
  const ses::Peer back = peer_of(share(peer));
  EXPECT_EQ(back.fep, peer.fep);
  EXPECT_EQ(back.pid_on_fep, peer.pid_on_fep);
  EXPECT_EQ(back.resource_index, peer.resource_index);
  EXPECT_EQ(back.initiator, peer.initiator);
  EXPECT_EQ(back.generation, peer.generation);
  EXPECT_EQ(back.job, peer.job);
  EXPECT_TRUE(!back.relative && back.hpc && !back.ai_full && back.one_mtu && !back.optimized);
}

// An application may write what no address has.
TEST(SharedPeer, NumbersThatCannotBeAreCut) {
  SharedPeer shared = share(ses::Peer{});
  shared.pid_on_fep = shared.resource_index = 0xFFFF;
  shared.job = 0xFFFF'FFFF;
  shared.marks = 0xFF;
  const ses::Peer peer = peer_of(shared);
  EXPECT_EQ(peer.pid_on_fep.value, kMaxPidOnFep);
  EXPECT_EQ(peer.resource_index.value, kMaxResourceIndex);
  EXPECT_EQ(peer.job, JobId{kMaxJobId});
}

}  // namespace
}  // namespace uet::prov
