// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The dialogue with our Fep, which deviates nowhere, and with one whose answers are falsified
// on their way: each deviation is found, by its rule.
#include "uet_probe/probe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <utility>

#include "fep/fep.h"
#include "wire/parse.h"

namespace uet::probe {
namespace {

using testing::Contains;
using testing::IsEmpty;
using wire::AckHeader;
using wire::SesResponseHeader;

constexpr std::uint16_t kEntropy = 0x4242;

class Sink final : public ses::CompletionSink {
 public:
  void complete(const ses::Completion&) noexcept override {}
  bool can_take_event() noexcept override { return true; }
  bool reserve_receive() noexcept override { return true; }
  void release_receive() noexcept override {}
  void remote_access(ses::Kind, std::uint64_t) noexcept override {}
};

// A Fep at the other end of the line. `spoil` may change an answer, or take it away by emptying it.
class FepLine final : public Line, private nic::Nic {
 public:
  explicit FepLine(DeliveryMode mode = DeliveryMode::Rud) : now_(time_from_ns(1 << 30)) {
    fep::Config config;
    config.ses.payload_mtu = 1024;
    config.packets = 64;
    config.buffers = 64;
    config.memory_regions = 16;
    fep_ = std::make_unique<fep::Fep>(config, static_cast<nic::Nic&>(*this), now_);
    ri::MemoryRegion region;
    region.base = memory_.data();
    region.length = memory_.size();
    region.access = ri::kRemoteRead | ri::kRemoteWrite;
    settings.key = fep_->regions().add(region).value();
    ses::ContextConfig context;
    context.job = settings.job;
    context.pid_on_fep = settings.pid;
    context.resource_index = settings.index;
    context.initiator = InitiatorId{17};
    context.mode = mode;
    context_ = fep_->ses().open_context(context, sink_).value();
    fep_->ses().enable(*context_);
    settings.ordered = mode == DeliveryMode::Rod;
  }
  ~FepLine() override { fep_->ses().close_context(*context_, now_); }

  void send(std::span<const std::byte> packet) override {
    arriving_.assign(packet.begin(), packet.end());
    fep_->progress(now_);
  }
  std::optional<Heard> receive(std::chrono::milliseconds) override {
    for (int i = 0; i < 60 && answers_.empty(); ++i) {
      now_ += std::chrono::milliseconds(1);
      fep_->progress(now_);
    }
    while (!answers_.empty()) {
      Heard heard = std::move(answers_.front());
      answers_.pop_front();
      if (spoil) spoil(heard);
      if (!heard.bytes.empty()) return heard;
    }
    return {};
  }
  std::uint16_t entropy() const override { return kEntropy; }
  std::uint16_t peer_port() const override { return kUetUdpPort; }

  Settings settings;
  std::function<void(Heard&)> spoil;

 private:
  std::size_t rx_burst(std::span<RxPacket> out, Time) override {
    if (arriving_.empty()) return 0;
    last_ = std::exchange(arriving_, {});
    FepAddress from;
    from.ip.bytes = {10, 0, 0, 2};
    from.port = kEntropy;
    out[0] = RxPacket{.bytes = last_, .source = from, .entropy = kEntropy};
    return 1;
  }
  std::size_t tx_burst(std::span<const Packet* const> in) override {
    for (const Packet* packet : in) {
      Heard heard;
      heard.bytes.assign(packet->head().begin(), packet->head().end());
      for (const Slice& slice : packet->payload) {
        heard.bytes.insert(heard.bytes.end(), slice.data, slice.data + slice.length);
      }
      heard.entropy = packet->entropy;
      answers_.push_back(std::move(heard));
    }
    return in.size();
  }
  const nic::NicCaps& caps() const override { return caps_; }
  FepAddress local_address() const override {
    FepAddress address;
    address.ip.bytes = {10, 0, 0, 1};
    return address;
  }

  nic::NicCaps caps_;
  Time now_;
  Sink sink_;
  std::vector<std::byte> memory_ = std::vector<std::byte>(4096);
  std::unique_ptr<fep::Fep> fep_;
  ses::Context* context_ = nullptr;
  std::vector<std::byte> arriving_;
  std::vector<std::byte> last_;
  std::deque<Heard> answers_;
};

std::vector<std::string> rules_of(const Report& report) {
  std::vector<std::string> rules;
  for (const Finding& finding : report.findings()) {
    if (finding.weight == Weight::Deviation) rules.push_back(finding.rule);
  }
  return rules;
}

// All rules that a dialogue with these answers finds broken.
std::vector<std::string> rules(const std::function<void(Heard&)>& spoil) {
  FepLine line;
  line.spoil = spoil;
  Report report;
  Probe(line, line.settings, report).run();
  return rules_of(report);
}

// Changes the ACKs with their responses; `change` gets an empty response for an ACK without one.
std::function<void(Heard&)> acks(
    const std::function<void(AckHeader&, SesResponseHeader&, const Heard&)>& change) {
  return [change](Heard& heard) {
    const auto packet = wire::parse(heard.bytes);
    const auto* found = packet ? std::get_if<AckHeader>(&packet->header) : nullptr;
    if (found == nullptr) return;
    AckHeader ack = *found;
    SesResponseHeader response;
    std::vector<std::byte> payload;
    if (SesResponseHeader::decode(ack.next_hdr, packet->rest, response)) {
      payload.assign(response.payload.begin(), response.payload.end());
    }
    change(ack, response, heard);
    std::vector<std::byte> bytes(200);
    std::size_t length = ack.encode(bytes.data());
    if (ack.next_hdr != wire::NextHdr::None) length += response.encode(bytes.data() + length);
    bytes.resize(length);
    bytes.insert(bytes.end(), payload.begin(), payload.end());
    heard.bytes = bytes;
  };
}

bool answers_request(const AckHeader& ack) { return ack.next_hdr != wire::NextHdr::None; }

TEST(ProbeDialogue, FindsNothingInOurOwnAnswers) {
  for (const DeliveryMode mode : {DeliveryMode::Rud, DeliveryMode::Rod}) {
    FepLine line(mode);
    std::string said;
    Report report([&](const std::string& text) { said += text + '\n'; });
    EXPECT_TRUE(Probe(line, line.settings, report).run());
    EXPECT_THAT(rules_of(report), IsEmpty()) << said;
    EXPECT_THAT(said, testing::HasSubstr("READ of 16 bytes:\n  ACK")) << said;
    EXPECT_THAT(said, testing::HasSubstr(mode == DeliveryMode::Rud
                                             ? "data: RUD_REQ with RESPONSE_W_DATA OK, 256 bytes"
                                             : "data: ROD_REQ with RESPONSE_W_DATA OK, 256 bytes"))
        << said;
    EXPECT_THAT(said, testing::HasSubstr("Close Command:\n  ACK")) << said;
  }
}

TEST(ProbeDialogue, SaysThatNothingAnswers) {
  FepLine line;
  line.spoil = [](Heard& heard) { heard.bytes.clear(); };
  Report report;
  EXPECT_FALSE(Probe(line, line.settings, report).run());
}

TEST(ProbeDialogue, LostAnswersAreNoDeviation) {
  int count = 0;
  EXPECT_THAT(rules([&](Heard& heard) {
                if (count++ % 5 == 1) heard.bytes.clear();
              }),
              IsEmpty());
}

TEST(ProbeDialogue, Wire11_AnswerToTheSourcePort) {
  EXPECT_THAT(rules([](Heard& heard) { heard.at_source_port = true; }), Contains("WIRE 1.1"));
}

TEST(ProbeDialogue, Wire14_CrcWrong) {
  EXPECT_THAT(rules([](Heard& heard) { heard.crc_wrong = true; }), Contains("WIRE 1.4"));
}

TEST(ProbeDialogue, Pds103_OtherEntropyButOfTheOnlyPort) {
  EXPECT_THAT(rules([](Heard& heard) { heard.entropy = 7; }), Contains("PDS-103"));
  EXPECT_THAT(rules([](Heard& heard) { heard.entropy = kUetUdpPort; }), IsEmpty());
}

TEST(ProbeDialogue, Wire21_ReservedTypeAndCutHeader) {
  EXPECT_THAT(rules([](Heard& heard) { heard.bytes[0] = std::byte{0xF8}; }), Contains("WIRE 2.1"));
  EXPECT_THAT(rules([](Heard& heard) { heard.bytes.resize(8); }), Contains("WIRE 2.1"));
}

TEST(ProbeDialogue, Wire23_ReservedBits) {
  EXPECT_THAT(rules([](Heard& heard) { heard.bytes[1] |= std::byte{0x01}; }), Contains("WIRE 2.3"));
}

TEST(ProbeDialogue, Wire312_AckWithoutResponse) {
  const auto found = rules(acks([](AckHeader& ack, SesResponseHeader&, const Heard&) {
    ack.next_hdr = wire::NextHdr::None;
  }));
  EXPECT_THAT(found, Contains("WIRE 3.12")) << "of a request";
  EXPECT_THAT(found, Contains("PDS-204")) << "of a repeated one";
}

TEST(ProbeDialogue, Wire39_ModifiedLengthCountsWhatHasCome) {
  EXPECT_THAT(rules(acks([](AckHeader&, SesResponseHeader& response, const Heard&) {
                if (response.modified_length == 256) response.modified_length = 8;
              })),
              Contains("WIRE 3.9"));
  bool first = true;
  EXPECT_THAT(rules(acks([&](AckHeader&, SesResponseHeader& response, const Heard&) {
                if (response.modified_length == 1040 && std::exchange(first, false)) {
                  response.modified_length = 1024;
                }
              })),
              Contains("WIRE 3.9"))
      << "differs within a message";
}

TEST(ProbeDialogue, Ses106_OtherMessageAndJob) {
  EXPECT_THAT(rules(acks([](AckHeader&, SesResponseHeader& response, const Heard&) {
                ++response.message_id.value;
              })),
              Contains("SES-106"));
  EXPECT_THAT(rules(acks([](AckHeader&, SesResponseHeader& response, const Heard&) {
                ++response.job_id.value;
              })),
              Contains("SES-106"));
}

TEST(ProbeDialogue, Ses9_OtherVersion) {
  EXPECT_THAT(rules(acks([](AckHeader&, SesResponseHeader& response, const Heard&) {
                response.version = 1;
              })),
              Contains("SES-9"));
}

TEST(ProbeDialogue, Ses104_ErrorInADefaultResponse) {
  EXPECT_THAT(rules(acks([](AckHeader&, SesResponseHeader& response, const Heard&) {
                response.opcode = wire::ResponseOpcode::DefaultResponse;
              })),
              Contains("SES-104"));
}

TEST(ProbeDialogue, Ses115_FalseRequestsAreTaken) {
  const auto found = rules(acks([](AckHeader&, SesResponseHeader& response, const Heard&) {
    response.return_code = wire::ReturnCode::Ok;
  }));
  EXPECT_THAT(found, Contains("SES-115"));
  EXPECT_THAT(found, Contains("SES-9"));
}

TEST(ProbeDialogue, Wire31_ReservedCodes) {
  EXPECT_THAT(rules(acks([](AckHeader&, SesResponseHeader& response, const Heard&) {
                response.return_code = static_cast<wire::ReturnCode>(0x2A);
              })),
              Contains("WIRE 3.1"));
  EXPECT_THAT(rules(acks([](AckHeader&, SesResponseHeader& response, const Heard&) {
                response.opcode = static_cast<wire::ResponseOpcode>(0x10);
              })),
              Contains("WIRE 3.1"));
}

TEST(ProbeDialogue, Pds25_OtherPdc) {
  EXPECT_THAT(
      rules(acks([](AckHeader& ack, SesResponseHeader&, const Heard&) { ++ack.dpdcid.value; })),
      Contains("PDS-25"));
}

TEST(ProbeDialogue, Pds27_PdcOfTheNumber0) {
  EXPECT_THAT(
      rules(acks([](AckHeader& ack, SesResponseHeader&, const Heard&) { ack.spdcid.value = 0; })),
      Contains("PDS-27"));
}

TEST(ProbeDialogue, Pds26_PdcChanges) {
  std::uint16_t count = 0;
  EXPECT_THAT(rules(acks([&](AckHeader& ack, SesResponseHeader&, const Heard&) {
                if (++count == 3) ++ack.spdcid.value;
              })),
              Contains("PDS-26"));
}

TEST(ProbeDialogue, Pds83_CackOfWhatWasNotSent) {
  EXPECT_THAT(rules(acks([](AckHeader& ack, SesResponseHeader&, const Heard&) {
                ack.cack_psn = ack.cack_psn + 5;
                ack.ack_psn_offset = static_cast<std::int16_t>(ack.ack_psn_offset - 5);
              })),
              Contains("PDS-83"));
}

TEST(ProbeDialogue, Pds85_CackStays) {
  EXPECT_THAT(rules(acks([](AckHeader& ack, SesResponseHeader& response, const Heard&) {
                if (response.opcode != wire::ResponseOpcode::DefaultResponse) return;
                ack.cack_psn = ack.cack_psn - 1;
                ++ack.ack_psn_offset;
              })),
              Contains("PDS-85"));
}

TEST(ProbeDialogue, Pds88_SackOfWhatWasNotSent) {
  EXPECT_THAT(rules(acks([](AckHeader& ack, SesResponseHeader&, const Heard&) {
                ack.type = wire::PdsType::AckCc;
                ack.mpr = 1;
                ack.sack_psn_offset = 1;
                ack.sack_bitmap = 0x10;
              })),
              Contains("PDS-88"));
}

TEST(ProbeDialogue, Pds93_AckOfAnotherPacket) {
  EXPECT_THAT(rules(acks([](AckHeader& ack, SesResponseHeader&, const Heard&) {
                ack.ack_psn_offset = static_cast<std::int16_t>(ack.ack_psn_offset + 1);
              })),
              Contains("PDS-93"));
}

TEST(ProbeDialogue, Pds93_NoAckOfASecondPacket) {
  int count = 0;
  EXPECT_THAT(rules([&](Heard& heard) {
                if (++count > 2) heard.bytes.clear();
              }),
              Contains("PDS-96"));
}

TEST(ProbeDialogue, Pds104_ResponseToAControlPacket) {
  EXPECT_THAT(rules(acks([](AckHeader& ack, SesResponseHeader&, const Heard&) {
                ack.next_hdr = wire::NextHdr::Response;
              })),
              Contains("PDS-104"));
}

TEST(ProbeDialogue, Pds105_NoClearIsAskedFor) {
  EXPECT_THAT(rules(acks([](AckHeader& ack, SesResponseHeader&, const Heard&) {
                ack.req = wire::AckRequestCode::None;
              })),
              Contains("PDS-105"));
  EXPECT_THAT(rules(acks([](AckHeader& ack, SesResponseHeader&, const Heard&) {
                if (answers_request(ack)) ack.req = wire::AckRequestCode::Clear;
              })),
              Contains("PDS-105"));
}

TEST(ProbeDialogue, Pds106_FlagsAreNotRepeated) {
  EXPECT_THAT(
      rules(acks([](AckHeader& ack, SesResponseHeader&, const Heard&) { ack.retx = !ack.retx; })),
      Contains("PDS-106"));
  EXPECT_THAT(rules(acks([](AckHeader& ack, SesResponseHeader&, const Heard&) { ack.p = false; })),
              Contains("PDS-106"));
}

TEST(ProbeDialogue, Wire26_OtherOpaqueValue) {
  EXPECT_THAT(
      rules(acks([](AckHeader& ack, SesResponseHeader&, const Heard&) { ++ack.probe_opaque; })),
      Contains("WIRE 2.6"));
}

// ---- NACKs and data -----------------------------------------------------------------------------

std::function<void(Heard&)> nacks(const std::function<void(wire::NackHeader&)>& change) {
  return [change](Heard& heard) {
    wire::NackHeader nack;
    if (!wire::NackHeader::decode(heard.bytes, nack)) return;
    change(nack);
    heard.bytes.resize(nack.encode(heard.bytes.data()));
  };
}

TEST(ProbeDialogue, Pds157_OtherNack) {
  EXPECT_THAT(
      rules(nacks([](wire::NackHeader& nack) { nack.nack_code = wire::NackCode::UnexpEvent; })),
      Contains("PDS-157"));
}

TEST(ProbeDialogue, Wire25_NackOfAReservedCodeOrWithAPdc) {
  EXPECT_THAT(rules(nacks([](wire::NackHeader& nack) {
                nack.nack_code = static_cast<wire::NackCode>(0x40);
              })),
              Contains("WIRE 2.5"));
  EXPECT_THAT(rules(nacks([](wire::NackHeader& nack) { nack.spdcid.value = 9; })),
              Contains("WIRE 2.5"));
}

TEST(ProbeDialogue, Pds212_NackOfAnotherPacket) {
  EXPECT_THAT(rules(nacks([](wire::NackHeader& nack) { ++nack.nack_psn; })), Contains("PDS-212"));
  EXPECT_THAT(rules(nacks([](wire::NackHeader& nack) { nack.nt = true; })), Contains("PDS-212"));
  EXPECT_THAT(rules(nacks([](wire::NackHeader& nack) { nack.retx = !nack.retx; })),
              Contains("PDS-212"));
}

TEST(ProbeDialogue, Pds210_NoNack) {
  EXPECT_THAT(rules([](Heard& heard) {
                wire::NackHeader nack;
                if (wire::NackHeader::decode(heard.bytes, nack)) heard.bytes.clear();
              }),
              Contains("PDS-210"));
}

// The read data of the answers, in the ACK or in the return direction.
std::function<void(Heard&)> read_data(
    const std::function<void(wire::RequestHeader&, SesResponseHeader&, std::vector<std::byte>&)>&
        change) {
  return [change](Heard& heard) {
    const auto packet = wire::parse(heard.bytes);
    const auto* found = packet ? std::get_if<wire::RequestHeader>(&packet->header) : nullptr;
    if (found == nullptr) return;
    wire::RequestHeader data = *found;
    SesResponseHeader response;
    ASSERT_TRUE(SesResponseHeader::decode(data.next_hdr, packet->rest, response));
    std::vector<std::byte> payload(response.payload.begin(), response.payload.end());
    change(data, response, payload);
    std::vector<std::byte> bytes(200);
    std::size_t length = data.encode(bytes.data());
    length += response.encode(bytes.data() + length);
    bytes.resize(length);
    bytes.insert(bytes.end(), payload.begin(), payload.end());
    heard.bytes = bytes;
  };
}

TEST(ProbeDialogue, Wire310_ReadDataOfAnotherMessage) {
  using Bytes = std::vector<std::byte>;
  EXPECT_THAT(rules(read_data([](wire::RequestHeader&, SesResponseHeader& response, Bytes&) {
                ++response.response_message_id.value;
              })),
              Contains("WIRE 3.10"));
  EXPECT_THAT(rules(read_data([](wire::RequestHeader&, SesResponseHeader& response, Bytes&) {
                ++response.read_request_message_id.value;
              })),
              Contains("SES-83"));
  EXPECT_THAT(rules(read_data([](wire::RequestHeader&, SesResponseHeader& response, Bytes&) {
                ++response.modified_length;
              })),
              Contains("WIRE 3.10"));
}

TEST(ProbeDialogue, Ses82_ReadDataAreShortOrFalse) {
  using Bytes = std::vector<std::byte>;
  EXPECT_THAT(rules(read_data([](wire::RequestHeader&, SesResponseHeader& response, Bytes& bytes) {
                bytes.resize(10);
                response.payload_length = 10;
              })),
              Contains("SES-82"));
  EXPECT_THAT(rules(read_data([](wire::RequestHeader&, SesResponseHeader&, Bytes& bytes) {
                bytes[3] ^= std::byte{1};
              })),
              Contains("SES-78"));
}

TEST(ProbeDialogue, Pds34_ReturnDirectionWithAFalseHeader) {
  using Bytes = std::vector<std::byte>;
  EXPECT_THAT(rules(read_data([](wire::RequestHeader& data, SesResponseHeader&, Bytes&) {
                data.clear_psn_offset = 1;
              })),
              Contains("PDS-34"));
  EXPECT_THAT(rules(read_data([](wire::RequestHeader& data, SesResponseHeader&, Bytes&) {
                data.psn = data.psn - 1000;
              })),
              Contains("PDS-32"));
  EXPECT_THAT(rules(read_data(
                  [](wire::RequestHeader& data, SesResponseHeader&, Bytes&) { data.syn = true; })),
              Contains("PDS-200"));
}

TEST(ProbeDialogue, Ses82_NoReadData) {
  EXPECT_THAT(rules([](Heard& heard) {
                wire::RequestHeader data;
                if (wire::RequestHeader::decode(heard.bytes, data)) heard.bytes.clear();
              }),
              Contains("SES-82"));
}

}  // namespace
}  // namespace uet::probe
