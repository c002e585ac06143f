// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "sim/reference_peer.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace uet::sim {
namespace {

using std::chrono::milliseconds;
using wire::AckRequestCode;
using wire::CpType;
using wire::NackCode;
using wire::NextHdr;
using wire::PdsType;
using wire::ResponseOpcode;
using wire::ReturnCode;
using wire::SesOpcode;

constexpr auto kMtu = ForeignPeer::kMtu;
constexpr auto kStart = ForeignPeer::kStart;
constexpr std::size_t kMemoryBytes = 512 * 1024;

template <class Header>
std::vector<std::byte> bytes_of(const Header& header) {
  std::vector<std::byte> bytes(wire::kMaxPdsHeaderBytes);
  bytes.resize(header.encode(bytes.data()));
  return bytes;
}

template <class Header, class Ses>
std::vector<std::byte> bytes_of(const Header& header, const Ses& ses,
                                std::span<const std::byte> payload) {
  std::vector<std::byte> bytes = bytes_of(header);
  std::vector<std::byte> behind(wire::kMaxSesHeaderBytes);
  behind.resize(ses.encode(behind.data()));
  bytes.insert(bytes.end(), behind.begin(), behind.end());
  bytes.insert(bytes.end(), payload.begin(), payload.end());
  return bytes;
}

bool is_ack(std::span<const std::byte> bytes) {
  const auto type = static_cast<PdsType>(static_cast<std::uint8_t>(bytes[0]) >> 3);
  return type == PdsType::Ack || type == PdsType::AckCc;
}

std::uint64_t word_of(std::span<const std::byte> bytes) {
  std::uint64_t value = 0;
  for (const std::byte byte : bytes.first(8)) value = value << 8 | static_cast<std::uint8_t>(byte);
  return value;
}

std::vector<std::byte> bytes_of_word(std::uint64_t value) {
  std::vector<std::byte> bytes(8);
  for (std::size_t i = 0; i < 8; ++i) bytes[i] = static_cast<std::byte>(value >> (56 - 8 * i));
  return bytes;
}

std::uint32_t offset_of(const wire::SesRequest& ses) { return ses.som ? 0 : ses.message_offset; }

bool may_come_again(NackCode code) {
  return code <= NackCode::RodOoo || code == NackCode::PktNotRcvd ||
         code == NackCode::RcvdSesProcg || code == NackCode::RcvrInferLoss;
}

wire::SesResponseHeader response_to(const wire::SesRequest& ses) {
  wire::SesResponseHeader header;
  header.return_code = ReturnCode::Ok;
  header.job_id = ses.job_id;
  header.message_id = header.response_message_id = header.read_request_message_id = ses.message_id;
  header.modified_length = ses.request_length;
  return header;
}

}  // namespace

ReferencePeer::ReferencePeer(DeliveryMode mode, Loss loss, std::uint64_t seed)
    : wire(mode == DeliveryMode::Rod ? mode : DeliveryMode::Rud,
           [&](fep::Config& config) { config.ses.rudi = mode == DeliveryMode::Rudi; }),
      memory(kMemoryBytes),
      mode_(mode),
      loss_(loss),
      rng_(seed) {}

bool ReferencePeer::run_until(const std::function<bool()>& over, Duration limit) {
  for (const Time end = wire.now() + limit; wire.now() < end;) {
    exchange();
    if (over()) return true;
    wire.wait(milliseconds(1));
    expire();
  }
  return false;
}

bool ReferencePeer::idle() const {
  return operations_.empty() &&
         std::ranges::all_of(incoming_, [](const Incoming& pdc) { return pdc.back.empty(); });
}

// Both directions, until each side waits.
void ReferencePeer::exchange() {
  const auto loses = [&](std::span<const std::byte> bytes) {
    const bool loss = rng_.chance(loss_.each_way) || (is_ack(bytes) && rng_.chance(loss_.acks));
    lost += loss ? 1 : 0;
    return loss;
  };
  begin();
  while (!outbox_.empty() || !wire.silent()) {
    while (!wire.silent()) {
      const Answer answer = wire.hear();
      if (!loses(answer.bytes)) hear(answer);
    }
    if (outbox_.empty()) break;
    const auto bytes = std::move(outbox_.front());
    outbox_.pop_front();
    if (!loses(bytes)) wire.say(bytes);
  }
}

void ReferencePeer::hear(const Answer& answer) {
  if (const auto pds = answer.request()) {
    pds->next_hdr == NextHdr::ResponseData ? take_data(answer, *pds) : take(answer, *pds);
  } else if (const auto ack = answer.ack()) {
    on_ack(answer, *ack);
  } else if (const auto control = answer.control()) {
    take(*control);
  } else if (const auto idempotent = answer.rudi()) {
    take_rudi(answer, *idempotent);
  } else if (const auto nack = answer.nack()) {
    if (Incoming* pdc = incoming(nack->dpdcid); pdc != nullptr) {
      if (!may_come_again(nack->nack_code)) pdc->back.erase(nack->nack_psn - pdc->start);
    } else if (!may_come_again(nack->nack_code)) {
      fault("NACK " + std::to_string(static_cast<int>(nack->nack_code)));
    } else if (!operations_.empty()) {
      for (Sent& packet : operations_.front().packets) {
        if (nack->nt ? packet.rudi.pkt_id == nack->nack_psn.value
                     : packet.pds.psn == nack->nack_psn) {
          packet.asked = true;
          packet.at = {};
        }
      }
    }
  }
}

void ReferencePeer::expire() {
  const Time now = wire.now();
  for (Incoming& pdc : incoming_) {
    for (auto& [index, kept] : pdc.back) {
      if (now - kept.sent < kTimeout) continue;
      kept.sent = now;
      kept.bytes[1] |= std::byte{0x10};  // RETX
      say(kept.bytes);
    }
  }
  if (operations_.empty()) return;
  Operation& open = operations_.front();
  for (std::size_t i = 0; i < open.next; ++i) {
    Sent& packet = open.packets[i];
    const bool covered = !is_rudi() && packet.pds.psn - kStart <= acked_;
    if (packet.answered || (covered && i + 1 < open.packets.size())) continue;
    if (now - packet.at < kTimeout) continue;
    const bool ask = !is_rudi() && wire.tpdcid.value != 0 && !packet.asked && rng_.chance(0.5);
    packet.asked = ask;
    packet.at = now;
    if (!ask) {
      send(packet, true);
      continue;
    }
    wire::ControlHeader asked;
    asked.ctl_type = CpType::AckRequest;
    asked.psn = packet.pds.psn;
    asked.spdcid = ForeignPeer::kPdc;
    asked.dpdcid = wire.tpdcid;
    asked.payload = rng_.chance(0.5) ? packet.ses.message_id.value : 0;
    say(bytes_of(asked));
  }
}

// ---- target ------------------------------------------------------------------------------------

ReferencePeer::Incoming* ReferencePeer::incoming(PdcId ours) {
  const auto it = std::ranges::find_if(
      incoming_, [&](const Incoming& pdc) { return pdc.ours == ours && !pdc.closed; });
  return it == incoming_.end() ? nullptr : &*it;
}

void ReferencePeer::take(const Answer& answer, const wire::RequestHeader& pds) {
  Incoming* pdc = nullptr;
  if (pds.syn) {
    for (Incoming& known : incoming_) {
      if (known.theirs == pds.spdcid && !known.closed) pdc = &known;
    }
    if (pdc == nullptr) {
      pdc = &incoming_.emplace_back();
      pdc->theirs = pds.spdcid;
      pdc->ours = PdcId{static_cast<std::uint16_t>(0x0D00 + incoming_.size())};
      pdc->rod = pds.rod();
      pdc->start = pds.start_psn();
    }
  } else {
    pdc = incoming(pds.dpdcid);
  }
  if (pdc == nullptr) return refuse(nullptr, pds.spdcid, pds.psn, NackCode::InvDpdcid);
  if (pds.rod() != pdc->rod) {
    return refuse(pdc, pds.spdcid, pds.psn, NackCode::PdcModeMismatch);
  }
  clear(*pdc, pds.clear_psn() - pdc->start);
  const std::int32_t index = pds.psn - pdc->start;
  if (index <= pdc->cack || pdc->responses.contains(index)) {
    return acknowledge(*pdc, index, pds.retx);
  }
  if (index > pdc->cack + kWindow) {
    return refuse(pdc, pds.spdcid, pds.psn, NackCode::PsnOorWindow);
  }
  const auto expected = [&] {
    return pdc->responses.empty() ? 0 : pdc->responses.rbegin()->first + 1;
  };
  if (!pdc->rod) return execute(*pdc, index, answer);
  if (index != expected()) {  // kept; the gap is told once
    pdc->early.emplace(index, answer);
    if (std::exchange(pdc->told_gap, expected()) != expected()) {
      refuse(pdc, pds.spdcid, pdc->start + expected(), NackCode::RodOoo);
    }
    return;
  }
  execute(*pdc, index, answer);
  for (auto it = pdc->early.begin(); it != pdc->early.end() && it->first <= expected();) {
    if (it->first == expected()) execute(*pdc, it->first, it->second);
    it = pdc->early.erase(it);
  }
}

void ReferencePeer::execute(Incoming& pdc, std::int32_t index, const Answer& answer) {
  pdc.responses.emplace(index, respond(&pdc, answer));
  advance(pdc);
  acknowledge(pdc, index, answer.request()->retx);
}

ReferencePeer::Response ReferencePeer::respond(Incoming* pdc, const Answer& answer) {
  const auto found = answer.ses_request();
  if (!found) {
    fault("a request without a known SES header");
    return {};
  }
  const wire::SesRequest& ses = *found;
  switch (ses.opcode) {
    case SesOpcode::Send:
    case SesOpcode::TaggedSend:
    case SesOpcode::Write: {
      if (ses.opcode == SesOpcode::Write) {
        std::ranges::copy(ses.payload, memory.begin() + static_cast<std::ptrdiff_t>(
                                                            ses.buffer_offset + offset_of(ses)));
      }
      if (pdc == nullptr) return {.header = response_to(ses), .data = {}};
      return respond_to_message(pdc->partial, ses);
    }
    case SesOpcode::Read:
      return respond_to_read(pdc, ses);
    case SesOpcode::Atomic:
    case SesOpcode::FetchingAtomic:
      return respond_to_atomic(ses);
    case SesOpcode::MsgError:
      if (pdc != nullptr) pdc->partial.erase(ses.message_id.value);
      return {.header = response_to(ses), .data = {}};
    default: {
      refused.insert(ses.opcode);
      Response response{.header = response_to(ses), .data = {}, .guaranteed = true};
      response.header.opcode = ResponseOpcode::Response;
      response.header.return_code = ReturnCode::UnsupportedOp;
      return response;
    }
  }
}

ReferencePeer::Response ReferencePeer::respond_to_read(Incoming* pdc, const wire::SesRequest& ses) {
  const std::uint32_t length = ses.som ? std::min(kMtu, ses.request_length) : ses.payload_length;
  const auto from =
      memory.begin() + static_cast<std::ptrdiff_t>(ses.buffer_offset + offset_of(ses));
  const std::vector<std::byte> data(from, from + length);
  Response response{.header = response_to(ses), .data = {}};
  if (pdc != nullptr) {
    send_back(*pdc, ses, data);
    return response;
  }
  response.header.next_hdr = NextHdr::ResponseData;
  response.header.opcode = ResponseOpcode::ResponseWData;
  response.header.payload_length = length;
  response.header.message_offset = offset_of(ses);
  response.data = data;
  return response;
}

ReferencePeer::Response ReferencePeer::respond_to_message(std::map<std::uint16_t, Partial>& partial,
                                                          const wire::SesRequest& ses) {
  Partial& message = partial[ses.message_id.value];
  if (!std::exchange(message.begun, true)) {
    message.message.opcode = ses.opcode;
    message.message.bytes.resize(ses.request_length);
    message.missing = ses.request_length;
  }
  if (ses.som) {
    message.message.tag = ses.match_bits;
    if (ses.hd) message.message.data = ses.header_data;
  }
  std::ranges::copy(ses.payload, message.message.bytes.begin() + offset_of(ses));
  message.missing -= ses.payload.size();
  if (message.missing == 0) {
    if (ses.opcode != SesOpcode::Write || message.message.data) {
      taken.push_back(std::move(message.message));
    }
    partial.erase(ses.message_id.value);
  }
  return {.header = response_to(ses), .data = {}};
}

ReferencePeer::Response ReferencePeer::respond_to_atomic(const wire::SesRequest& ses) {
  const auto at = std::span(memory).subspan(ses.buffer_offset, 8);
  const std::uint64_t old = word_of(at);
  std::uint64_t value = old;
  if (ses.atomic.op == wire::AmoOp::Cswap) {
    if (ses.atomic.compare_value.low == old) value = ses.atomic.swap_value.low;
  } else {
    value += word_of(ses.payload);
  }
  std::ranges::copy(bytes_of_word(value), at.begin());
  Response response{.header = response_to(ses), .data = {}};
  if (ses.opcode == SesOpcode::Atomic) return response;
  response.header.next_hdr = NextHdr::ResponseData;
  response.header.opcode = ResponseOpcode::ResponseWData;
  response.header.payload_length = 8;
  response.data = bytes_of_word(old);
  response.guaranteed = true;
  return response;
}

void ReferencePeer::send_back(Incoming& pdc, const wire::SesRequest& ses,
                              const std::vector<std::byte>& data) {
  wire::RequestHeader pds;
  pds.type = pdc.rod ? PdsType::RodReq : PdsType::RudReq;
  pds.next_hdr = NextHdr::ResponseData;
  pds.ar = true;
  pds.psn = pdc.start + pdc.next_back;
  pds.clear_psn_offset = static_cast<std::int16_t>(-1 - pdc.next_back);
  pds.spdcid = pdc.ours;
  pds.dpdcid = pdc.theirs;
  wire::SesResponseHeader header = response_to(ses);
  header.next_hdr = NextHdr::ResponseData;
  header.opcode = ResponseOpcode::ResponseWData;
  header.payload_length = static_cast<std::uint32_t>(data.size());
  header.message_offset = offset_of(ses);
  auto bytes = bytes_of(pds, header, data);
  say(bytes);
  pdc.back.emplace(pdc.next_back++, Kept{std::move(bytes), wire.now()});
}

void ReferencePeer::acknowledge(Incoming& pdc, std::int32_t index, bool retx) {
  wire::AckHeader ack;
  ack.retx = retx;
  ack.cack_psn = pdc.start + pdc.cack;
  ack.ack_psn_offset = static_cast<std::int16_t>(index - pdc.cack);
  ack.spdcid = pdc.ours;
  ack.dpdcid = pdc.theirs;
  const auto it = pdc.responses.find(index);
  if (it == pdc.responses.end()) return say(bytes_of(ack));
  const Response& response = it->second;
  ack.next_hdr = response.header.next_hdr;
  if (response.guaranteed && index > pdc.cleared) ack.req = AckRequestCode::Clear;
  say(bytes_of(ack, response.header, response.data));
}

void ReferencePeer::clear(Incoming& pdc, std::int32_t up_to) {
  pdc.cleared = std::max(pdc.cleared, up_to);
  advance(pdc);
}

void ReferencePeer::advance(Incoming& pdc) {
  for (auto it = pdc.responses.find(pdc.cack + 1); it != pdc.responses.end();
       it = pdc.responses.find(pdc.cack + 1)) {
    if (it->second.guaranteed && it->first > pdc.cleared) break;
    ++pdc.cack;
  }
}

void ReferencePeer::refuse(const Incoming* pdc, PdcId theirs, Psn psn, NackCode code) {
  wire::NackHeader nack;
  nack.nack_code = code;
  nack.nack_psn = psn;
  nack.spdcid = pdc == nullptr ? PdcId{} : pdc->ours;
  nack.dpdcid = theirs;
  say(bytes_of(nack));
}

void ReferencePeer::take(const wire::ControlHeader& control) {
  if (!control.syn && control.dpdcid == ForeignPeer::kPdc) return take_of_own_pdc(control);
  Incoming* pdc = control.syn ? nullptr : incoming(control.dpdcid);
  if (pdc == nullptr) {
    const auto code = control.syn ? NackCode::UnexpEvent : NackCode::InvDpdcid;
    return refuse(nullptr, control.spdcid, control.psn, code);
  }
  const std::int32_t index = control.psn - pdc->start;
  switch (control.ctl_type) {
    case CpType::AckRequest:
      if (index <= pdc->cack || pdc->responses.contains(index)) {
        return acknowledge(*pdc, index, false);
      }
      return refuse(pdc, control.spdcid, control.psn, NackCode::PktNotRcvd);
    case CpType::Clear:
      return clear(*pdc, Psn{control.payload} - pdc->start);
    case CpType::Close:
      pdc->cack = index;
      acknowledge(*pdc, index, control.retx);
      pdc->closed = true;
      pdc->back.clear();
      return;
    default:
      return refuse(pdc, control.spdcid, control.psn, NackCode::UnexpEvent);
  }
}

void ReferencePeer::take_of_own_pdc(const wire::ControlHeader& control) {
  const std::int32_t index = control.psn - kStart;
  switch (control.ctl_type) {
    case CpType::ClearRequest:
      return send_clear();
    case CpType::Clear:
      return;
    case CpType::CloseRequest:  // it has a PSN of the return direction
      if (index > back_cack_) back_seen_.insert(index);
      while (back_seen_.erase(back_cack_ + 1) > 0) ++back_cack_;
      [[fallthrough]];
    case CpType::AckRequest: {
      wire::NackHeader nack;
      if (index > back_cack_ && !back_seen_.contains(index)) {
        nack.nack_code = NackCode::PktNotRcvd;
        nack.nack_psn = control.psn;
        nack.spdcid = ForeignPeer::kPdc;
        nack.dpdcid = control.spdcid;
        return say(bytes_of(nack));
      }
      wire::AckHeader ack;
      ack.cack_psn = kStart + back_cack_;
      ack.ack_psn_offset = static_cast<std::int16_t>(index - back_cack_);
      ack.spdcid = ForeignPeer::kPdc;
      ack.dpdcid = control.spdcid;
      return say(bytes_of(ack));
    }
    default: {
      wire::NackHeader nack;
      nack.nack_code = NackCode::UnexpEvent;
      nack.nack_psn = control.psn;
      nack.spdcid = ForeignPeer::kPdc;
      nack.dpdcid = control.spdcid;
      return say(bytes_of(nack));
    }
  }
}

void ReferencePeer::take_rudi(const Answer& answer, const wire::RudiHeader& header) {
  if (header.type == PdsType::RudiReq) {
    const Response response = respond(nullptr, answer);
    wire::RudiHeader back;
    back.type = PdsType::RudiResp;
    back.next_hdr = response.header.next_hdr;
    back.retx = header.retx;
    back.pkt_id = header.pkt_id;
    return say(bytes_of(back, response.header, response.data));
  }
  const auto response = answer.ses_response();
  if (!response) return fault("a RUDI response without SES header");
  if (operations_.empty()) return;
  for (Sent& packet : operations_.front().packets) {
    if (packet.rudi.pkt_id == header.pkt_id) on_response(packet, *response);
  }
  end_if_over();
}

// ---- initiator ---------------------------------------------------------------------------------

void ReferencePeer::post(wire::SesRequest request, std::vector<std::byte> bytes,
                         std::uint32_t length) {
  Operation& operation = operations_.emplace_back();
  operation.request = request;
  operation.request.message_id = MsgId{next_message_++};
  operation.bytes = std::move(bytes);
  operation.length = length;
}

// The oldest operation, if it is new.
void ReferencePeer::begin() {
  if (operations_.empty()) return;
  Operation& open = operations_.front();
  if (!std::exchange(open.begun, true)) {
    const bool asks = open.request.opcode == SesOpcode::Read;
    open.back.resize(asks ? open.length : 0);
    for (std::size_t i = 0; i == 0 || i * kMtu < open.length; ++i) {
      Sent& packet = open.packets.emplace_back();
      packet.ses = packet_of(open.request, open.length, i);
      if (!asks && !open.bytes.empty()) packet.payload = piece(open.bytes, i);
      if (is_rudi()) {
        packet.rudi.next_hdr = NextHdr::RequestStd;
        packet.rudi.pkt_id = next_pkt_id_++;
      } else {
        packet.pds.psn = kStart + static_cast<std::int32_t>(next_index_++);
      }
    }
  }
  fill_window();
}

void ReferencePeer::fill_window() {
  Operation& open = operations_.front();
  while (open.next < open.packets.size()) {
    Sent& packet = open.packets[open.next];
    if (!is_rudi() && packet.pds.psn - kStart > acked_ + kWindow) return;
    ++open.next;
    send(packet, false);
  }
}

void ReferencePeer::send(Sent& packet, bool again) {
  packet.at = wire.now();
  if (is_rudi()) {
    packet.rudi.retx = again;
    return say(bytes_of(packet.rudi, packet.ses, packet.payload));
  }
  const std::int32_t index = packet.pds.psn - kStart;
  packet.pds = wire.request(static_cast<std::uint32_t>(index));
  if (mode_ == DeliveryMode::Rod) packet.pds.type = PdsType::RodReq;
  packet.pds.clear_psn_offset = static_cast<std::int16_t>(cleared_ - index);
  packet.pds.ar = packet.ses.eom || rng_.chance(0.5);
  packet.pds.retx = again;
  say(bytes_of(packet.pds, packet.ses, packet.payload));
}

void ReferencePeer::on_ack(const Answer& answer, const wire::AckHeader& ack) {
  const auto response = answer.ses_response();
  if (Incoming* pdc = incoming(ack.dpdcid); pdc != nullptr) {  // it waits for the response
    if (response) pdc->back.erase(ack.ack_psn() - pdc->start);
    return;
  }
  if (ack.dpdcid != ForeignPeer::kPdc) return;
  wire.tpdcid = ack.spdcid;
  acked_ = std::max(acked_, ack.cack_psn - kStart);
  if (operations_.empty()) return;
  for (Sent& packet : operations_.front().packets) {
    if (packet.pds.psn == ack.ack_psn() && response) on_response(packet, *response);
  }
  if (ack.req == AckRequestCode::Clear) send_clear();
  fill_window();
  end_if_over();
}

void ReferencePeer::on_response(Sent& packet, const wire::SesResponseHeader& response) {
  Operation& open = operations_.front();
  const bool has_data = response.next_hdr == NextHdr::ResponseData;
  const MsgId id = has_data ? response.response_message_id : response.message_id;
  if (id != open.request.message_id) return fault("a response of another message");
  if (response.return_code != ReturnCode::Ok) {
    return fault("return code " + std::to_string(static_cast<int>(response.return_code)));
  }
  // WIRE 3.9: it takes 0 in a default response, which a target may have forgotten the length for.
  const bool plain = response.opcode == ResponseOpcode::DefaultResponse;
  const bool forgotten = plain && response.modified_length == 0;
  if (response.modified_length != open.length && !forgotten) fault("truncated");
  packet.answered = true;
  if (!has_data) return;
  open.back.resize(open.length);
  std::ranges::copy(response.payload, open.back.begin() + response.message_offset);
  open.back_offsets.insert(response.message_offset);
}

// Read data in the return direction of the peer's PDC.
void ReferencePeer::take_data(const Answer& answer, const wire::RequestHeader& pds) {
  const auto response = answer.ses_response();
  if (!response || pds.dpdcid != ForeignPeer::kPdc) return fault("data without a read");
  wire.tpdcid = pds.spdcid;
  const std::int32_t index = pds.psn - kStart;
  if (index > back_cack_ && back_seen_.insert(index).second) {
    if (operations_.empty() ||
        operations_.front().request.message_id != response->response_message_id) {
      return fault("data for a read that is not open");
    }
    Operation& open = operations_.front();
    if (response->modified_length != open.length) fault("truncated");
    std::ranges::copy(response->payload, open.back.begin() + response->message_offset);
    open.back_offsets.insert(response->message_offset);
    while (back_seen_.erase(back_cack_ + 1) > 0) ++back_cack_;
  }
  wire::AckHeader ack;
  ack.next_hdr = NextHdr::Response;
  ack.retx = pds.retx;
  ack.cack_psn = kStart + back_cack_;
  ack.ack_psn_offset = static_cast<std::int16_t>(index - back_cack_);
  ack.spdcid = ForeignPeer::kPdc;
  ack.dpdcid = pds.spdcid;
  wire::SesResponseHeader said;
  said.return_code = ReturnCode::Ok;
  said.job_id = ForeignPeer::kJob;
  said.message_id = response->response_message_id;
  said.modified_length = response->modified_length;
  say(bytes_of(ack, said, {}));
  end_if_over();
}

// Everything up to the first packet without answer.
void ReferencePeer::send_clear() {
  std::int32_t up_to = static_cast<std::int32_t>(next_index_) - 1;
  if (!operations_.empty()) {
    for (const Sent& packet : operations_.front().packets) {
      const std::int32_t index = packet.pds.psn - kStart;
      if (packet.answered || index <= acked_) continue;
      up_to = index - 1;
      break;
    }
  }
  cleared_ = std::max(cleared_, up_to);
  wire::ControlHeader clear;
  clear.ctl_type = CpType::Clear;
  clear.spdcid = ForeignPeer::kPdc;
  clear.dpdcid = wire.tpdcid;
  clear.payload = (kStart + cleared_).value;
  say(bytes_of(clear));
}

void ReferencePeer::end_if_over() {
  if (operations_.empty()) return;
  Operation& open = operations_.front();
  for (const Sent& packet : open.packets) {
    const bool last = &packet == &open.packets.back();
    const bool covered = !is_rudi() && !last && packet.pds.psn - kStart <= acked_;
    if (!packet.answered && !covered) return;
  }
  // An empty read ends with its response, with or without an empty packet of data.
  const bool reads = open.request.opcode == SesOpcode::Read && open.length > 0;
  if (reads && open.back_offsets.size() < open.packets.size()) return;
  done.push_back({open.request.opcode, std::move(open.back)});
  operations_.pop_front();
  begin();
}

}  // namespace uet::sim
