// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// See attacks.h.
#include "attacks.h"

#include <array>
#include <chrono>
#include <stdexcept>

namespace uet::hostile {

namespace {

using GoesOn = std::function<bool()>;

constexpr std::size_t kPayload = 1024;
constexpr std::int32_t kWindow = 1000;  // packets of one PDC that a target takes without CLEAR
constexpr std::chrono::milliseconds kTombstoneLasts{1500};  // of its 2 s
constexpr JobId kForeignJob{0xABCDEF};
constexpr JobId kDefaultJob{1};

wire::SesRequest request(wire::SesOpcode opcode, JobId job, std::uint32_t length) {
  wire::SesRequest made;
  made.opcode = opcode;
  made.rel = true;
  made.message_id = MsgId{1};
  made.job_id = job;
  made.resource_index = ResourceIndex{1};
  made.initiator = InitiatorId{1};
  made.request_length = length;
  return made;
}

wire::RequestHeader header(const StrangerPdc& pdc, std::int32_t offset, bool rod = false) {
  wire::RequestHeader made;
  made.type = rod ? wire::PdsType::RodReq : wire::PdsType::RudReq;
  made.next_hdr = wire::NextHdr::RequestStd;
  made.ar = true;
  made.psn = pdc.start + offset;
  made.clear_psn_offset = static_cast<std::int16_t>(-offset);
  made.spdcid = pdc.own;
  made.dpdcid = pdc.theirs;
  return made;
}

wire::RequestHeader first_packet(Stranger& stranger, PdcId own) {
  wire::RequestHeader made;
  made.next_hdr = wire::NextHdr::RequestStd;
  made.ar = true;
  made.syn = true;
  made.psn = Psn{static_cast<std::uint32_t>(stranger.draw()) | 0x10000U};
  made.spdcid = own;
  return made;
}

PdcId some_id(Stranger& stranger) {
  return PdcId{static_cast<std::uint16_t>(1 + stranger.draw() % 65535)};
}

// Fills the stranger's PDCs, whose CLEAR never moves, with requests that `make` draws; offsets
// begin at `first`.
template <class Make>
void fill_pdcs(Stranger& stranger, const GoesOn& goes_on, bool rod, std::int32_t first, Make make) {
  for (std::uint16_t id = 1000; goes_on(); ++id) {
    const auto pdc = stranger.open(PdcId{id}, rod);
    if (!pdc) continue;
    for (std::int32_t i = first; i < kWindow && goes_on(); ++i) {
      stranger.send(packet(header(*pdc, i, rod), make(i)));
    }
    stranger.discard_answers();
  }
}

// Requests that are refused, whose responses have to be stored until CLEAR moves.
void stored_responses(Stranger& stranger, const GoesOn& goes_on) {
  fill_pdcs(stranger, goes_on, false, 1, [](std::int32_t) {
    return semantics(request(wire::SesOpcode::Send, kForeignJob, 4), 4);
  });
}

// Ordered packets whose predecessor never comes.
void ordered_gaps(Stranger& stranger, const GoesOn& goes_on) {
  fill_pdcs(stranger, goes_on, true, 2, [](std::int32_t) {
    return semantics(request(wire::SesOpcode::Send, kForeignJob, 4), 4);
  });
}

Bytes half_write(std::int32_t i, std::uint64_t key, std::uint64_t address) {
  wire::SesRequest write = request(wire::SesOpcode::Write, kDefaultJob, 3 * kPayload);
  write.message_id = MsgId{static_cast<std::uint16_t>(1 + i)};
  write.eom = false;
  write.match_bits = key;
  write.buffer_offset = address;
  return semantics(write, kPayload);
}

// First packets of messages with a key that is none; no packet follows.
void wrong_keys(Stranger& stranger, const GoesOn& goes_on) {
  fill_pdcs(stranger, goes_on, false, 1, [](std::int32_t i) { return half_write(i, 0xDEAD, 0); });
}

// First packets of messages with a good key; no packet follows.
void half_writes(Stranger& stranger, const GoesOn& goes_on) {
  fill_pdcs(stranger, goes_on, false, 1, [&](std::int32_t i) {
    return half_write(i, stranger.known().key, stranger.known().address);
  });
}

// Whole messages for which the victim has no receive.
void unexpected(Stranger& stranger, const GoesOn& goes_on) {
  fill_pdcs(stranger, goes_on, false, 1, [](std::int32_t i) {
    wire::SesRequest send = request(wire::SesOpcode::TaggedSend, kDefaultJob, 10);
    send.message_id = MsgId{static_cast<std::uint16_t>(1 + i)};
    send.match_bits = 0xBEEFBEEF;
    return semantics(send, 10);
  });
}

// First packets from addresses that no host has.
void invented_requests(Stranger& stranger, const GoesOn& goes_on) {
  const Bytes rest = semantics(request(wire::SesOpcode::Send, kForeignJob, 4), 4);
  while (goes_on()) {
    const sockaddr_in from = stranger.invented();
    stranger.send_as(from, stranger.known().victim,
                     packet(first_packet(stranger, PdcId{77}), rest));
  }
}

void invented_noops(Stranger& stranger, const GoesOn& goes_on) {
  wire::ControlHeader noop;
  noop.syn = true;
  noop.ar = true;
  noop.psn = Psn{0x20000000};
  noop.spdcid = PdcId{77};
  while (goes_on()) {
    stranger.send_as(stranger.invented(), stranger.known().victim, packet(noop));
  }
}

// First packets in the name of the legitimate peer, with all ids that it may choose next.
void ids_of_the_peer(Stranger& stranger, const GoesOn& goes_on) {
  wire::ControlHeader noop;
  noop.syn = true;
  noop.ar = true;
  for (std::uint16_t id = 1; goes_on(); ++id) {
    noop.psn = Psn{static_cast<std::uint32_t>(stranger.draw())};
    noop.spdcid = PdcId{id};
    stranger.send_as(stranger.known().peer, stranger.known().victim, packet(noop));
  }
}

// ACKs of any PSN for any PDC, to both ends in the name of the other.
void forged_acks(Stranger& stranger, const GoesOn& goes_on) {
  while (goes_on()) {
    wire::AckHeader ack;
    ack.type = wire::PdsType::AckCc;
    ack.ce = stranger.draw() % 2 == 0;
    ack.cack_psn = Psn{static_cast<std::uint32_t>(stranger.draw())};
    ack.spdcid = some_id(stranger);
    ack.dpdcid = some_id(stranger);
    ack.mpr = 8;
    ack.rcv_cwnd_pend = 127;
    ack.rcvd_bytes = static_cast<std::uint32_t>(stranger.draw() & 0xFFFFFF);
    stranger.send_as(stranger.known().victim, stranger.known().peer, packet(ack));
    stranger.send_as(stranger.known().peer, stranger.known().victim, packet(ack));
  }
}

void forged_nacks(Stranger& stranger, const GoesOn& goes_on) {
  constexpr std::array kCodes{wire::NackCode::Trimmed,      wire::NackCode::InvDpdcid,
                              wire::NackCode::InvalidSyn,   wire::NackCode::ClosingInErr,
                              wire::NackCode::PsnOorWindow, wire::NackCode::NewStartPsn,
                              wire::NackCode::NoResource,   wire::NackCode::ExpFatal};
  while (goes_on()) {
    wire::NackHeader nack;
    nack.nack_code = kCodes[stranger.draw() % kCodes.size()];
    nack.nack_psn = Psn{static_cast<std::uint32_t>(stranger.draw())};
    nack.dpdcid = some_id(stranger);
    nack.payload = static_cast<std::uint32_t>(stranger.draw());
    stranger.send_as(stranger.known().victim, stranger.known().peer, packet(nack));
    stranger.send_as(stranger.known().peer, stranger.known().victim, packet(nack));
  }
}

void forged_control(Stranger& stranger, const GoesOn& goes_on) {
  while (goes_on()) {
    wire::ControlHeader control;
    control.ctl_type = static_cast<wire::CpType>(stranger.draw() % 10);
    control.ar = true;
    control.psn = Psn{static_cast<std::uint32_t>(stranger.draw())};
    control.spdcid = some_id(stranger);
    control.dpdcid = some_id(stranger);
    control.payload = static_cast<std::uint32_t>(stranger.draw());
    stranger.send_as(stranger.known().victim, stranger.known().peer, packet(control));
    stranger.send_as(stranger.known().peer, stranger.known().victim, packet(control));
  }
}

// Reads with keys and addresses that are guessed.
void key_scan(Stranger& stranger, const GoesOn& goes_on) {
  fill_pdcs(stranger, goes_on, false, 1, [&](std::int32_t i) {
    wire::SesRequest read = request(wire::SesOpcode::Read, kDefaultJob, 1);
    read.message_id = MsgId{static_cast<std::uint16_t>(1 + i)};
    read.match_bits = std::uint64_t{1} << 48 | (stranger.draw() % 4096);
    read.buffer_offset = stranger.draw() >> 17;
    return semantics(read);
  });
}

// Reads without a PDC, whose data would go to addresses that no host has.
void rudi_reads(Stranger& stranger, const GoesOn& goes_on) {
  wire::SesRequest read = request(wire::SesOpcode::Read, kDefaultJob, 4096);
  read.match_bits = stranger.known().idempotent_key;
  read.buffer_offset = stranger.known().address;
  const Bytes rest = semantics(read);
  while (goes_on()) {
    const wire::RudiHeader rudi{.type = wire::PdsType::RudiReq,
                                .next_hdr = wire::NextHdr::RequestStd,
                                .pkt_id = static_cast<std::uint32_t>(stranger.draw())};
    stranger.send_as(stranger.invented(), stranger.known().victim, packet(rudi, rest));
  }
}

// Requests for PDCs that do not exist, each answered by a NACK to another address.
void without_pdc(Stranger& stranger, const GoesOn& goes_on) {
  const Bytes rest = semantics(request(wire::SesOpcode::Send, kDefaultJob, 4), 4);
  while (goes_on()) {
    wire::RequestHeader stray = first_packet(stranger, PdcId{77});
    stray.syn = false;
    stray.dpdcid = some_id(stranger);
    stranger.send_as(stranger.invented(), stranger.known().victim, packet(stray, rest));
  }
}

// Packets of no type: the victim reads and drops them. The measure of all others: what it costs the
// peer that a third host is busy and that the victim's host takes so many packets.
void nonsense(Stranger& stranger, const GoesOn& goes_on) {
  const Bytes packet(100, std::byte{0xFF});
  while (goes_on()) stranger.send(packet);
}

// Closes a PDC, and is answered when it repeats the Close Command beside a flood of packets for
// PDCs that do not exist, for as long as the tombstone lasts.
void tombstones(Stranger& stranger, const GoesOn& goes_on) {
  for (std::uint16_t id = 2000; goes_on(); ++id) {
    const auto pdc = stranger.open(PdcId{id});
    if (!pdc) throw std::runtime_error("no PDC opens");
    wire::ControlHeader close;
    close.ctl_type = wire::CpType::Close;
    close.ar = true;
    close.psn = pdc->start + 1;
    close.spdcid = pdc->own;
    close.dpdcid = pdc->theirs;
    const auto begin = std::chrono::steady_clock::now();
    while (goes_on() && std::chrono::steady_clock::now() - begin < kTombstoneLasts) {
      if (!stranger.ack_of(packet(close), pdc->own)) throw std::runtime_error("no ACK of a close");
      close.retx = true;
      wire::AckHeader ack;
      ack.spdcid = PdcId{id};
      for (int i = 0; i < 1000 && goes_on(); ++i) {
        ack.dpdcid = some_id(stranger);
        stranger.send(packet(ack));
      }
    }
  }
}

constexpr const char* kStrays = "nic_strays_dropped";
constexpr const char* kSyns = "nic_syns_dropped";

constexpr std::array kAttacks{
    Attack{"Nonsense", 8000, nonsense},
    Attack{"StoredResponses", 8000, stored_responses},
    Attack{"OrderedGaps", 8000, ordered_gaps},
    Attack{"WrongKeys", 8000, wrong_keys},
    Attack{"HalfWrites", 8000, half_writes},
    Attack{"Unexpected", 8000, unexpected},
    Attack{"InventedRequests", 5000, invented_requests, Reflected::Three, 0.9, 0, kSyns},
    Attack{"FewRequests", 500, invented_requests, Reflected::Three, 0.8, 100},
    Attack{"InventedNoops", 5000, invented_noops, Reflected::Three, 0.8, 0, kSyns},
    Attack{"RudiReads", 5000, rudi_reads, Reflected::Rudi},
    Attack{"IdsOfThePeer", 5000, ids_of_the_peer, Reflected::Anything, 0.8, 0, kSyns},
    Attack{"ForgedAcks", 8000, forged_acks, Reflected::Anything, 0.8, 0, kStrays},
    Attack{"ForgedNacks", 8000, forged_nacks, Reflected::Anything, 0.8, 0, kStrays},
    Attack{"ForgedControl", 8000, forged_control},
    Attack{"KeyScan", 8000, key_scan},
    Attack{"WithoutPdc", 8000, without_pdc, Reflected::Three, 0.8, 0, kStrays},
    Attack{"Tombstones", 8000, tombstones, Reflected::Anything, 0.8, 0, kStrays},
};

}  // namespace

std::span<const Attack> attacks() { return kAttacks; }

}  // namespace uet::hostile
