// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "sim/nasty.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

namespace uet::sim {
namespace {

using wire::CpType;
using wire::SesOpcode;

constexpr std::uint8_t kNetwork = 98;       // of their addresses: no node's
constexpr std::uint32_t kSynPsns = 4096;    // that psn_offset can express
constexpr ResourceIndex kNobody{0x7FE};     // an index that no endpoint has
constexpr Rkey kNothing{0x0BAD'0BAD'0BAD};  // a key of no region

constexpr std::array kOpcodes = {
    SesOpcode::NoOp,          SesOpcode::Write,          SesOpcode::Read,
    SesOpcode::Atomic,        SesOpcode::FetchingAtomic, SesOpcode::Send,
    SesOpcode::TaggedSend,    SesOpcode::RendezvousSend, SesOpcode::DeferrableSend,
    SesOpcode::DeferrableRtr, SesOpcode::MsgError};
constexpr std::array kControls = {CpType::Noop,  CpType::AckRequest,   CpType::Clear,
                                  CpType::Close, CpType::CloseRequest, CpType::Probe};

}  // namespace

void Strangers::begin(int node) {
  Stranger stranger;
  stranger.address = address_of(kNetwork, static_cast<std::uint8_t>(strangers_.size() % 250));
  stranger.node = node;
  stranger.rod = rng_.chance(0.3);
  stranger.pdc = {static_cast<std::uint16_t>(rng_.between(1, 3))};  // also one that it had before
  stranger.start = Psn{static_cast<std::uint32_t>(rng_.next())};
  stranger.next = static_cast<std::uint32_t>(rng_.chance(0.5) ? 0 : rng_.below(kSynPsns - 64));
  const std::size_t number = strangers_.size();
  strangers_.push_back(stranger);
  Duration when{0};
  for (auto packets = rng_.between(1, 40); packets > 0; --packets) {
    when += std::chrono::microseconds(rng_.below(300));
    world_.after(when, [this, number] { speak(number); });
  }
}

void Strangers::heard(const Sighting& sighting) {
  const auto* heard_ack = sighting.header<wire::AckHeader>();
  if (heard_ack == nullptr || sighting.to >= 0) return;
  for (Stranger& stranger : strangers_) {
    if (stranger.address != sighting.packet->destination) continue;
    if (stranger.pdc == heard_ack->dpdcid) stranger.theirs = heard_ack->spdcid;
  }
}

void Strangers::speak(std::size_t number) {
  Stranger& stranger = strangers_[number];
  const auto dice = rng_.below(10);
  if (dice < 7) {
    request(stranger);
  } else if (dice < 9) {
    control(stranger);
  } else {
    ack(stranger);
  }
}

void Strangers::request(Stranger& stranger) {
  wire::RequestHeader pds;
  pds.type = stranger.rod ? wire::PdsType::RodReq : wire::PdsType::RudReq;
  pds.next_hdr = wire::NextHdr::RequestStd;
  pds.psn = stranger.start + static_cast<std::int32_t>(stranger.next);
  pds.spdcid = stranger.pdc;
  pds.ar = rng_.chance(0.3);
  pds.retx = rng_.chance(0.2);
  pds.syn = stranger.theirs.value == 0 || rng_.chance(0.2);
  if (pds.syn) pds.psn_offset = static_cast<std::uint16_t>(stranger.next % kSynPsns);
  if (!pds.syn) pds.dpdcid = stranger.theirs;
  pds.clear_psn_offset = static_cast<std::int16_t>(-1 - static_cast<int>(rng_.below(100)));
  if (rng_.chance(0.7)) stranger.next += rng_.chance(0.2) ? 7 : 1;  // else the same PSN again

  wire::SesRequest ses;
  ses.opcode = kOpcodes[rng_.below(kOpcodes.size())];
  ses.message_id = MsgId{static_cast<std::uint16_t>(rng_.between(1, 4))};
  ses.job_id = rng_.chance(0.5) ? job_ : JobId{0xBAD};
  ses.pid_on_fep = PidOnFep{static_cast<std::uint16_t>(stranger.node)};
  // A region's key decides only where there is an endpoint.
  const bool rma = ses.opcode == SesOpcode::Write || ses.opcode == SesOpcode::Read;
  ses.resource_index = rma ? ResourceIndex{1} : kNobody;
  ses.initiator = InitiatorId{static_cast<std::uint32_t>(rng_.next())};
  ses.match_bits = kNothing.value;
  ses.buffer_offset = rng_.next();
  ses.som = rng_.chance(0.6);
  ses.eom = rng_.chance(0.4);
  ses.ie = rng_.chance(0.1);
  ses.dc = rng_.chance(0.2);
  ses.request_length =
      static_cast<std::uint32_t>(rng_.chance(0.5) ? rng_.below(9000) : rng_.next());
  ses.message_offset = static_cast<std::uint32_t>(rng_.below(9000));
  const auto payload = static_cast<std::uint32_t>(rng_.below(1024));
  ses.payload_length = payload;
  ses.atomic = {.op = wire::AmoOp::Sum, .datatype = wire::AmoDatatype::Uint64};

  std::vector<std::byte> bytes(wire::kMaxPdsHeaderBytes);
  bytes.resize(pds.encode(bytes.data()));
  const std::size_t ses_at = bytes.size();
  bytes.resize(ses_at + ses.encoded_bytes());
  ses.encode(bytes.data() + ses_at);
  bytes.resize(bytes.size() + payload, std::byte{0xBD});
  put(stranger, bytes);
}

void Strangers::control(Stranger& stranger) {
  wire::ControlHeader header;
  header.ctl_type = kControls[rng_.below(kControls.size())];
  header.isrod = stranger.rod && header.ctl_type == CpType::Noop;
  header.ar = rng_.chance(0.5);
  header.psn = stranger.start + static_cast<std::int32_t>(stranger.next);
  header.spdcid = stranger.pdc;
  header.syn = header.ctl_type == CpType::Noop && stranger.theirs.value == 0;
  if (header.syn) header.psn_offset = static_cast<std::uint16_t>(stranger.next % kSynPsns);
  if (!header.syn) header.dpdcid = stranger.theirs;
  if (header.ctl_type == CpType::Clear) header.payload = (header.psn - 1).value;
  header.probe_opaque = static_cast<std::uint16_t>(rng_.next());
  std::vector<std::byte> bytes(wire::kMaxPdsHeaderBytes);
  bytes.resize(header.encode(bytes.data()));
  put(stranger, bytes);
}

// Acknowledges packets that the node has not sent.
void Strangers::ack(Stranger& stranger) {
  wire::AckHeader header;
  header.type = wire::PdsType::AckCc;
  header.spdcid = stranger.pdc;
  header.dpdcid = stranger.theirs;
  header.cack_psn = stranger.start + static_cast<std::int32_t>(rng_.below(200));
  header.mpr = static_cast<std::uint8_t>(rng_.next());
  header.sack_bitmap = rng_.next();
  header.sack_psn_offset = static_cast<std::int16_t>(rng_.next());
  header.req = rng_.chance(0.5) ? wire::AckRequestCode::Close : wire::AckRequestCode::Clear;
  std::vector<std::byte> bytes(wire::kMaxPdsHeaderBytes);
  bytes.resize(header.encode(bytes.data()));
  put(stranger, bytes);
}

void Strangers::put(const Stranger& stranger, std::span<const std::byte> bytes) {
  SimPacket packet;
  packet.bytes.assign(bytes.begin(), bytes.end());
  packet.source = stranger.address;
  packet.destination = address_of(static_cast<std::uint8_t>(stranger.node), 1);
  packet.entropy = 0x4242;
  world_.inject(std::move(packet), stranger.node, Duration(0));
}

}  // namespace uet::sim
