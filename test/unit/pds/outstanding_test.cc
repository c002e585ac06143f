// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "pds/outstanding.h"

#include <optional>

#include "pds/pdc.h"
#include "unit/pds/pds_harness.h"

namespace uet::pds::testing {
namespace {

constexpr std::uint32_t kBytes = 1000;

// An Outstanding beside an established PDC, which gives it its identity and its pools.
class OutstandingTest : public Bench {
 protected:
  OutstandingTest() : core_(open()), packets_before_(node->packets.in_use()) {
    core_.env().tx_records.reserve(2);
    outstanding_.emplace(core_.env().tx_records, Psn{100});
  }
  ~OutstandingTest() override { outstanding_->release_all(core_); }

  // A packet in flight; a control packet if `message` is nullptr.
  TxRecord& put(Message* message) {
    TxRecord& record = outstanding_->window().put();
    record.packet = node->packets.take();
    record.packet->reset();
    record.message = message;
    record.nominal_bytes = kBytes;
    if (message != nullptr) outstanding_->flight().sent(*core_.ccc().ccc, record, 0, now);
    return record;
  }
  std::size_t packets() const { return node->packets.in_use() - packets_before_; }

  PdcCore& core_;
  const std::size_t packets_before_;
  TestMessage message_{1, 8, 64};
  std::optional<Outstanding> outstanding_;
};

TEST_F(OutstandingTest, TellsDataFromControlPackets) {
  put(nullptr);
  EXPECT_FALSE(outstanding_->has_data());
  put(&message_);
  EXPECT_TRUE(outstanding_->has_data());
}

// Replaces the header and the payload by one byte.
class OneByte final : public PacketEditor {
 public:
  explicit OneByte(const Packet& kept) : kept_(kept) {}
  bool edit(Packet& packet, PreparedPacket& prepared) override {
    EXPECT_EQ(prepared.tag, 7U);
    ++seen;
    if (&packet == &kept_) return false;
    packet.payload = {};
    packet.drop_appended();
    *packet.append(1) = std::byte{0x99};
    prepared = {.next_hdr = NextHdr::RequestStd, .tag = 8};
    return true;
  }
  int seen = 0;

 private:
  const Packet& kept_;
};

TEST_F(OutstandingTest, Ses165_EditsThePacketsOfOneMessage) {
  TestMessage other{2, 8, 64};
  put(nullptr);
  TxRecord* const records[] = {&put(&message_), &put(&other), &put(&message_), &put(&message_)};
  std::byte memory{};
  for (TxRecord* record : records) {
    record->tag = 7;
    record->next_hdr = NextHdr::RequestMedium;
    record->packet->append(20);
    record->packet->payload = {Slice{&memory, 1}, Slice{}};
  }
  wire::RequestHeader header;
  header.type = wire::PdsType::RodReq;
  header.next_hdr = NextHdr::RequestMedium;
  header.psn = Psn{103};
  Packet& waiting = *records[2]->packet;
  header.encode(waiting.prepend(sizeof(wire::PdsRequest)));
  core_.env().outbox.push(waiting);
  OneByte editor(*records[3]->packet);
  outstanding_->edit(message_, editor);
  EXPECT_EQ(editor.seen, 3);
  for (TxRecord* edited : {records[0], records[2]}) {
    EXPECT_EQ(edited->tag, 8U);
    EXPECT_EQ(edited->next_hdr, NextHdr::RequestStd);
    EXPECT_EQ(edited->packet->payload_length(), 0U);
    EXPECT_EQ(edited->packet->head().back(), std::byte{0x99});
    EXPECT_EQ(edited->nominal_bytes, kBytes) << "so many are in flight";
  }
  EXPECT_EQ(records[0]->packet->head().size(), 1U);
  EXPECT_TRUE(Outbox::holds(waiting)) << "in its place";
  ASSERT_TRUE(wire::RequestHeader::decode(waiting.head(), header));
  EXPECT_EQ(header.type, wire::PdsType::RodReq);
  EXPECT_EQ(header.next_hdr, NextHdr::RequestStd);
  EXPECT_EQ(header.psn, Psn{103});
  for (TxRecord* same : {records[1], records[3]}) {
    EXPECT_EQ(same->tag, 7U);
    EXPECT_EQ(same->next_hdr, NextHdr::RequestMedium);
    EXPECT_EQ(same->packet->payload_length(), 1U);
  }
}

TEST_F(OutstandingTest, WithdrawnPacketIsTheCallers) {
  TxRecord& record = put(&message_);
  outstanding_->queue(core_, record);
  core_.env().outbox.push(*record.packet);
  Packet* packet = outstanding_->withdraw(core_, record);
  EXPECT_FALSE(packet->linked());
  EXPECT_EQ(record.packet, nullptr);
  EXPECT_EQ(outstanding_->queued(), 0U);
  EXPECT_EQ(packets(), 1U);
  node->packets.give_back(packet);
}

TEST_F(OutstandingTest, ReleaseAllLeavesNothing) {
  for (int i = 0; i < 3; ++i) put(&message_);
  outstanding_->queue(core_, outstanding_->window().at(Psn{101}));
  const std::int64_t before = core_.ccc().ccc->inflight_bytes();
  outstanding_->release_all(core_);
  EXPECT_TRUE(outstanding_->empty());
  EXPECT_EQ(outstanding_->queued(), 0U);
  EXPECT_EQ(packets(), 0U);
  EXPECT_EQ(core_.ccc().ccc->inflight_bytes(), before - 3 * std::int64_t{kBytes});
}

TEST_F(OutstandingTest, QueueCountsPackets) {
  TxRecord& first = put(&message_);
  TxRecord& second = put(nullptr);
  outstanding_->queue(core_, first);
  outstanding_->queue(core_, second);
  EXPECT_EQ(outstanding_->queued(), 2U);
  EXPECT_TRUE(first.resend && second.resend);
  outstanding_->unqueue(core_, first);
  EXPECT_EQ(outstanding_->queued(), 1U);
  EXPECT_FALSE(first.resend);
}

TEST_F(OutstandingTest, Pds122_RefusedPacketSetsTheDeadline) {
  TxRecord& record = put(&message_);
  const Time at = now + microseconds(50);
  ASSERT_GT(core_.deadline_of(PdcCore::kResend), at);
  outstanding_->send_later(core_, record, at);
  EXPECT_EQ(core_.deadline_of(PdcCore::kResend), at);
  EXPECT_EQ(record.not_before, at);
  outstanding_->send_later(core_, record, at + seconds(1));
  EXPECT_EQ(core_.deadline_of(PdcCore::kResend), at);
}

TEST_F(OutstandingTest, Pds223_HoldsDataBehindTheFirstPacket) {
  TxRecord& first = put(&message_);
  TxRecord& noop = put(nullptr);
  TxRecord& data = put(&message_);
  data.unanswered = data.rto_count = 2;
  outstanding_->queue(core_, data);
  outstanding_->hold_data(core_);
  EXPECT_TRUE(outstanding_->holds_data());
  EXPECT_FALSE(Outstanding::is_held(first));
  EXPECT_FALSE(Outstanding::is_held(noop));
  EXPECT_TRUE(Outstanding::is_held(data));
  EXPECT_FALSE(data.resend);
  EXPECT_EQ(data.unanswered + data.rto_count, 0U);
  EXPECT_EQ(outstanding_->flight().bytes(), kBytes);  // the first packet alone
  EXPECT_EQ(outstanding_->queued(), 0U);
}

TEST_F(OutstandingTest, LostPacketLeavesTheFlightOnce) {
  TxRecord& record = put(&message_);
  for (int copy = 0; copy < 2; ++copy) {
    outstanding_->lost(core_, record, cms::LossCause::Rto, now);
    EXPECT_EQ(outstanding_->flight().bytes(), 0);
  }
}

}  // namespace
}  // namespace uet::pds::testing
