// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "sim/foreign_peer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

namespace uet::sim {
namespace {

constexpr std::uint8_t kControlDscp = 46;
constexpr std::size_t kMemoryBytes = 64 * 1024;

FepAddress address_ending(std::uint8_t last, std::uint16_t port) {
  FepAddress address;
  address.ip.bytes = {10, 0, 0, last};
  address.port = port;
  return address;
}

}  // namespace

std::optional<wire::SesRequest> Answer::ses_request() const {
  const auto header = request();
  const auto idempotent = rudi();
  wire::SesRequest ses;
  if (!header && !idempotent) return std::nullopt;
  const auto next_hdr = header ? header->next_hdr : idempotent->next_hdr;
  const auto type = header ? header->type : idempotent->type;
  const auto rest = std::span(bytes).subspan(wire::pds_header_bytes(type));
  if (!wire::SesRequest::decode(next_hdr, rest, ses)) return std::nullopt;
  return ses;
}

std::optional<wire::SesResponseHeader> Answer::ses_response() const {
  wire::SesResponseHeader ses;
  if (const auto header = ack()) {
    const auto rest = std::span(bytes).subspan(wire::pds_header_bytes(header->type));
    if (wire::SesResponseHeader::decode(header->next_hdr, rest, ses)) return ses;
  } else if (const auto forward = request()) {
    const auto rest = std::span(bytes).subspan(wire::pds_header_bytes(forward->type));
    if (wire::SesResponseHeader::decode(forward->next_hdr, rest, ses)) return ses;
  } else if (const auto idempotent = rudi()) {
    const auto rest = std::span(bytes).subspan(wire::pds_header_bytes(idempotent->type));
    if (wire::SesResponseHeader::decode(idempotent->next_hdr, rest, ses)) return ses;
  }
  return std::nullopt;
}

std::size_t ForeignPeer::ScriptNic::rx_burst(std::span<RxPacket> out, Time) {
  if (!arriving) return 0;
  last_ = std::move(*arriving);
  arriving.reset();
  out[0] = RxPacket{.bytes = last_, .source = address_ending(2, kEntropy), .entropy = kEntropy};
  return 1;
}

std::size_t ForeignPeer::ScriptNic::tx_burst(std::span<const Packet* const> in) {
  for (const Packet* packet : in) {
    Answer answer{.bytes = {packet->head().begin(), packet->head().end()},
                  .to = packet->to,
                  .entropy = packet->entropy,
                  .dscp = packet->dscp,
                  .ecn = packet->ecn};
    for (const Slice& slice : packet->payload) {
      answer.bytes.insert(answer.bytes.end(), slice.data, slice.data + slice.length);
    }
    sent.push_back(std::move(answer));
  }
  return in.size();
}

FepAddress ForeignPeer::ScriptNic::local_address() const { return address_ending(1, kUetUdpPort); }

ForeignPeer::ForeignPeer(DeliveryMode mode, const std::function<void(fep::Config&)>& configure)
    : memory(kMemoryBytes), now_(time_from_ns(1 << 30)) {
  fep::Config config = StageConfig().fep;
  config.pds.start_psn = 0x0200'0000;
  config.pds.first_pdc_id = 0x0700;
  config.ses.deferrable = true;
  config.ses.eager_bytes = ForeignPeer::kEager;
  if (configure) configure(config);
  fep_ = std::make_unique<fep::Fep>(config, nic_, now_);
  ri::MemoryRegion region;
  region.base = memory.data();
  region.length = memory.size();
  region.access = ri::kRemoteRead | ri::kRemoteWrite;
  key = fep_->regions().add(region).value();
  ses::ContextConfig context;
  context.job = kJob;
  context.pid_on_fep = kPid;
  context.resource_index = kIndex;
  context.initiator = InitiatorId{17};
  context.mode = mode;
  context_ = fep_->ses().open_context(context, sink).value();
  fep_->ses().enable(*context_);
}

ForeignPeer::~ForeignPeer() { fep_->ses().close_context(*context_, now_); }

void ForeignPeer::say(std::span<const std::byte> bytes) {
  nic_.arriving.emplace(bytes.begin(), bytes.end());
  fep_->progress(now_);
}

void ForeignPeer::say(const wire::RequestHeader& pds, const wire::SesRequest& ses,
                      std::span<const std::byte> payload) {
  std::vector<std::byte> bytes(wire::kMaxPdsHeaderBytes + wire::kMaxSesHeaderBytes);
  std::size_t length = pds.encode(bytes.data());
  length += ses.encode(bytes.data() + length);
  bytes.resize(length);
  bytes.insert(bytes.end(), payload.begin(), payload.end());
  say(bytes);
}

void ForeignPeer::say(const wire::AckHeader& ack, const wire::SesResponseHeader* response,
                      std::span<const std::byte> data) {
  std::vector<std::byte> bytes(wire::kMaxPdsHeaderBytes + wire::kMaxSesHeaderBytes);
  std::size_t length = ack.encode(bytes.data());
  if (response != nullptr) length += response->encode(bytes.data() + length);
  bytes.resize(length);
  bytes.insert(bytes.end(), data.begin(), data.end());
  say(bytes);
}

void ForeignPeer::say(const wire::NackHeader& nack) {
  std::vector<std::byte> bytes(wire::kMaxPdsHeaderBytes);
  bytes.resize(nack.encode(bytes.data()));
  say(bytes);
}

void ForeignPeer::say(const wire::ControlHeader& control) {
  std::vector<std::byte> bytes(wire::kMaxPdsHeaderBytes);
  bytes.resize(control.encode(bytes.data()));
  say(bytes);
}

void ForeignPeer::wait(Duration time) {
  for (const Time end = now_ + time; now_ < end; now_ += std::chrono::milliseconds(1)) {
    fep_->progress(now_);
  }
}

Answer ForeignPeer::hear() {
  if (nic_.sent.empty()) {
    ADD_FAILURE() << "the Fep has sent nothing";
    return {};
  }
  Answer answer = std::move(nic_.sent.front());
  nic_.sent.pop_front();
  return answer;
}

wire::RequestHeader ForeignPeer::request(std::uint32_t index) const {
  wire::RequestHeader header;
  header.next_hdr = wire::NextHdr::RequestStd;
  header.psn = kStart + static_cast<std::int32_t>(index);
  header.spdcid = kPdc;
  header.syn = tpdcid.value == 0;
  header.psn_offset = static_cast<std::uint16_t>(header.syn ? index : 0);
  header.dpdcid = tpdcid;
  header.clear_psn_offset = static_cast<std::int16_t>(-1 - static_cast<std::int32_t>(index));
  return header;
}

wire::SesRequest ForeignPeer::to_context(wire::SesOpcode opcode, std::uint16_t message_id) const {
  wire::SesRequest request;
  request.opcode = opcode;
  request.rel = true;
  request.message_id = MsgId{message_id};
  request.job_id = kJob;
  request.pid_on_fep = kPid;
  request.resource_index = kIndex;
  request.initiator = kInitiator;
  return request;
}

wire::AckHeader ForeignPeer::ack_of(Psn psn, PdcId theirs) const {
  wire::AckHeader ack;
  ack.type = wire::PdsType::AckCc;
  ack.cack_psn = psn;
  ack.spdcid = kPdc;
  ack.dpdcid = theirs;
  ack.mpr = 1;
  ack.sack_bitmap = 1;
  return ack;
}

ses::Peer ForeignPeer::as_peer() const {
  return {.fep = address_ending(2, kUetUdpPort),
          .pid_on_fep = kPid,
          .resource_index = kIndex,
          .initiator = kInitiator};
}

std::vector<std::byte> pattern(std::size_t bytes, unsigned seed) {
  std::vector<std::byte> data(bytes);
  for (std::size_t i = 0; i < bytes; ++i) data[i] = static_cast<std::byte>(i * 13 + i / 256 + seed);
  return data;
}

std::span<const std::byte> piece(const std::vector<std::byte>& message, std::size_t index) {
  const std::size_t begin = index * ForeignPeer::kMtu;
  return std::span(message).subspan(
      begin, std::min<std::size_t>(ForeignPeer::kMtu, message.size() - begin));
}

wire::SesRequest packet_of(wire::SesRequest request, std::size_t length, std::size_t index) {
  request.som = index == 0;
  request.eom = (index + 1) * ForeignPeer::kMtu >= length;
  request.message_offset = static_cast<std::uint32_t>(index * ForeignPeer::kMtu);
  request.payload_length = static_cast<std::uint32_t>(
      std::min<std::size_t>(ForeignPeer::kMtu, length - index * ForeignPeer::kMtu));
  request.request_length = static_cast<std::uint32_t>(length);
  return request;
}

wire::AckHeader expect_ack(ForeignPeer& peer, const Answer& answer, Psn psn, Psn cack) {
  EXPECT_EQ(answer.to, peer.as_peer().fep) << "to port 4793, not to the request's source port";
  EXPECT_EQ(answer.entropy, ForeignPeer::kEntropy);  // WIRE 1.1, PDS-103
  EXPECT_EQ(answer.dscp, kControlDscp);
  EXPECT_EQ(answer.ecn, Ecn::NotEct);
  const auto ack = answer.ack();
  EXPECT_TRUE(ack.has_value());
  if (!ack) return {};
  EXPECT_EQ(ack->ack_psn(), psn);
  EXPECT_EQ(ack->cack_psn, cack);
  EXPECT_EQ(ack->dpdcid, ForeignPeer::kPdc);
  EXPECT_NE(ack->spdcid.value, 0);
  return *ack;
}

void first_write(ForeignPeer& peer, std::size_t length) {
  const auto data = pattern(length);
  auto write = peer.to_context(wire::SesOpcode::Write, 1);
  write.match_bits = peer.key.value;
  std::uint32_t packets = 0;
  for (; packets * ForeignPeer::kMtu < length; ++packets) {
    auto header = peer.request(packets);
    header.clear_psn_offset = static_cast<std::int16_t>(-1 - static_cast<int>(packets));
    header.ar = (packets + 1) * ForeignPeer::kMtu >= length;  // its last packet only (PDS-101)
    peer.say(header, packet_of(write, length, packets), piece(data, packets));
  }
  PdcId id{};
  for (std::uint32_t i = 0; i < packets; ++i) id = peer.hear().ack().value().spdcid;
  peer.tpdcid = id;
}

}  // namespace uet::sim
