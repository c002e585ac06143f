// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Each step is one question. Packets that a NACK refuses leave no trace at the peer (PDS-211), so
// that their PSN is used again; after one without any answer the dialogue ends.
#include "probe.h"

#include <algorithm>

#include "wire/dissect.h"

namespace uet::probe {
namespace {

using wire::CpType;
using wire::NackCode;
using wire::NextHdr;
using wire::ReturnCode;
using wire::SesOpcode;

constexpr int kTries = 3;
constexpr std::uint32_t kShort = 16;
// Too long for an ACK (PDS-194); and short enough for one.
constexpr std::uint32_t kWrite = 256;
constexpr std::uint32_t kShortRead = 16;
constexpr std::uint16_t kOpaque = 0x55AA;
constexpr auto kReserved = static_cast<SesOpcode>(0x2F);
// Bits 61 to 56 are reserved in every key (SES-132), so that no memory region can have this key.
constexpr std::uint64_t kNobodysKey = 0x3F00'FFFF'FFFF'FFFF;

std::vector<std::byte> pattern(std::size_t bytes, unsigned seed) {
  std::vector<std::byte> data(bytes);
  for (std::size_t i = 0; i < bytes; ++i) data[i] = static_cast<std::byte>(i * 13 + seed);
  return data;
}

bool is_good(ReturnCode code) { return code == ReturnCode::Ok || code == ReturnCode::Null; }

// Refusals after which the same packet may be taken (WIRE 2.5, class normal).
bool may_pass_later(NackCode code) {
  return (code >= NackCode::NoPdcAvail && code <= NackCode::NoResource) ||
         code == NackCode::RcvdSesProcg;
}

std::vector<std::byte> encoded(const wire::ControlHeader& header) {
  std::vector<std::byte> bytes(wire::kMaxPdsHeaderBytes);
  bytes.resize(header.encode(bytes.data()));
  return bytes;
}

}  // namespace

Probe::Probe(Line& line, const Settings& settings, Report& report)
    : line_(line),
      settings_(settings),
      report_(report),
      own_(settings.pdc),
      start_(settings.start),
      next_(settings.start) {}

bool Probe::run() {
  if (!open()) return heard_;
  if (!lost_) send_again();
  if (!lost_) send_two();
  if (!lost_) ask_for_ack();
  if (!lost_ && settings_.key) write_memory();
  if (!lost_ && settings_.key) read_memory(kShortRead);
  if (!lost_ && settings_.key) read_memory(kWrite);
  if (!lost_) {
    auto request = to_context(SesOpcode::Write, 4);
    request.match_bits = kNobodysKey;
    be_refused("WRITE to a key that no region has", request, "SES-115", {});
  }
  if (!lost_) {
    be_refused("request with a reserved opcode", to_context(kReserved, 0), "SES-115",
               ReturnCode::UnsupportedOp);
  }
  if (!lost_) {
    auto request = to_context(SesOpcode::Send, 4);
    request.version = 1;
    be_refused("request of SES version 1", request, "SES-9", ReturnCode::Uncor);
  }
  if (!lost_) {
    auto request = to_context(SesOpcode::Send, 4);
    request.pid_on_fep = PidOnFep{kMaxPidOnFep};
    request.resource_index = ResourceIndex{kMaxResourceIndex};
    be_refused("SEND to a process that is not there", request, "SES-115", {});
  }
  if (!lost_) name_no_pdc();
  if (!lost_) change_mode();
  if (!lost_) probe_path();
  if (!lost_) close();
  return true;
}

// ---- packets ------------------------------------------------------------------------------------

Asked Probe::asked_for(Psn psn) const {
  Asked asked;
  asked.psn = asked.newest = psn;
  asked.start = start_;
  asked.own = own_;
  asked.peer = peer_;
  asked.job = settings_.job;
  return asked;
}

// Everything before has been answered in whole, which CLEAR_PSN says.
wire::RequestHeader Probe::header(Psn psn, bool retx) const {
  wire::RequestHeader header;
  header.type = settings_.ordered ? wire::PdsType::RodReq : wire::PdsType::RudReq;
  header.next_hdr = NextHdr::RequestStd;
  header.retx = retx;
  header.ar = true;
  header.syn = peer_.value == 0;
  header.clear_psn_offset = static_cast<std::int16_t>(next_ - psn - 1);
  header.psn = psn;
  header.spdcid = own_;
  header.dpdcid = peer_;
  header.psn_offset = static_cast<std::uint16_t>(header.syn ? psn - start_ : 0);
  return header;
}

wire::ControlHeader Probe::control(CpType type, Psn psn, bool retx) const {
  wire::ControlHeader header;
  header.ctl_type = type;
  header.retx = retx;
  header.ar = true;
  header.psn = psn;
  header.spdcid = own_;
  header.dpdcid = peer_;
  return header;
}

wire::SesRequest Probe::to_context(SesOpcode opcode, std::uint32_t length) {
  if (++message_.value == 0) message_.value = 1;
  wire::SesRequest request;
  request.opcode = opcode;
  request.rel = !settings_.absolute;
  request.message_id = message_;
  request.job_id = settings_.job;
  request.pid_on_fep = settings_.pid;
  request.resource_index = settings_.index;
  request.initiator = settings_.initiator;
  request.request_length = length;
  return request;
}

std::vector<std::byte> Probe::packet(const wire::RequestHeader& pds, const wire::SesRequest& ses,
                                     std::span<const std::byte> payload) const {
  std::vector<std::byte> bytes(wire::kMaxPdsHeaderBytes + wire::kMaxSesHeaderBytes);
  std::size_t length = pds.encode(bytes.data());
  length += ses.encode(bytes.data() + length);
  bytes.resize(length);
  bytes.insert(bytes.end(), payload.begin(), payload.end());
  return bytes;
}

// ---- hearing ------------------------------------------------------------------------------------

// One packet; false if none came in time.
bool Probe::hear(const Asked& asked, Exchange& exchange) {
  const auto heard = line_.receive(settings_.patience);
  if (!heard) return false;
  heard_ = true;
  auto answer = take_apart(*heard, asked, line_.entropy(), line_.peer_port(), report_);
  if (!answer) return true;
  if (answer->control) {
    report_.say("meanwhile: " + in_words(*answer));
  } else if (answer->data) {
    acknowledge(*answer);
    if (!exchange.data) exchange.data = std::move(answer);
  } else if (answer->nack) {
    exchange.nack = std::move(answer);
  } else if (!asked.probe && !answer->ack->p && answer->ack->ack_psn() < asked.psn) {
    report_.say("of the packet before: " + in_words(*answer));
    exchange.earlier = std::move(answer);
  } else {
    exchange.ack = std::move(answer);
  }
  return true;
}

Probe::Exchange Probe::exchange(const Write& write, Asked& asked) {
  Exchange exchange;
  const std::optional<bool> at_first = asked.retx;
  for (int i = 0; i < kTries; ++i) {
    exchange.nack.reset();
    if (i > 0) asked.retx.reset();
    line_.send(write(i > 0 || at_first.value_or(false)));
    while (!exchange.answered() && hear(asked, exchange)) {
    }
    const bool later = exchange.nack && may_pass_later(exchange.nack->nack->nack_code);
    if (exchange.ack || (exchange.nack && !later)) break;
    if (later) report_.say("refused for now: " + in_words(*exchange.nack));
  }
  if (exchange.ack) {
    report_.say(in_words(*exchange.ack));
    judge_ack(*exchange.ack, asked, report_);
    if (peer_.value == 0) peer_ = exchange.ack->ack->spdcid;
    wait_for_outcome(asked, exchange);
  } else if (exchange.nack) {
    report_.say(in_words(*exchange.nack));
  }
  return exchange;
}

// SES-46: the outcome of a message comes when it is delivered, in another ACK of the same packet.
void Probe::wait_for_outcome(const Asked& asked, const Exchange& exchange) {
  const auto& response = exchange.ack->response;
  if (!response || response->opcode != wire::ResponseOpcode::NoResponse) return;
  Exchange later;
  while (!later.answered() && hear(asked, later)) {
  }
  if (later.ack) {
    report_.say("then: " + in_words(*later.ack));
    judge_ack(*later.ack, asked, report_);
  } else {
    report_.note("SES-46", "no outcome follows the NO_RESPONSE: is a receive posted?");
  }
}

Probe::Exchange Probe::request(const wire::SesRequest& request, std::span<const std::byte> payload,
                               bool room_is_known) {
  Asked asked = asked_for(next_);
  asked.message_id = request.message_id;
  asked.length = request.request_length;
  asked.room_is_known = room_is_known;
  asked.readable = request.version == 0;
  const Write write = [&](bool retx) { return packet(header(asked.psn, retx), request, payload); };
  Exchange found = exchange(write, asked);
  report_end(asked, found);
  if (found.ack) {
    last_ = write(true);
    last_asked_ = asked;
    ++next_;
  }
  return found;
}

void Probe::report_end(const Asked& asked, const Exchange& exchange) {
  if (exchange.ack) return;
  if (exchange.nack) {
    judge_nack(*exchange.nack->nack, asked, {}, report_);
    if (may_pass_later(exchange.nack->nack->nack_code)) {
      report_.note("PDS-179", "the peer is short of something, and stays so");
    } else {
      report_.note("PDS-142", "the peer refuses the packet for good: the PDC has ended");
    }
  } else {
    report_.deviation("PDS-93", "no answer to a packet that asks for an ACK, sent " +
                                    std::to_string(kTries) + " times");
  }
  lost_ = true;
}

// The data of a READ, as if SES had consumed them.
void Probe::acknowledge(const Answer& data) {
  wire::AckHeader ack;
  ack.next_hdr = NextHdr::Response;
  ack.retx = data.data->retx;
  ack.cack_psn = data.data->psn;
  ack.spdcid = own_;
  ack.dpdcid = data.data->spdcid;
  wire::SesResponseHeader response;
  response.return_code = ReturnCode::Ok;
  response.job_id = settings_.job;
  response.message_id = message_;
  std::vector<std::byte> bytes(wire::kMaxPdsHeaderBytes + wire::kMaxSesHeaderBytes);
  std::size_t length = ack.encode(bytes.data());
  length += response.encode(bytes.data() + length);
  bytes.resize(length);
  line_.send(bytes);
}

// ---- the steps ----------------------------------------------------------------------------------

bool Probe::open_by_noop() {
  report_.begin("NOOP that opens a PDC");
  Asked asked = asked_for(next_);
  asked.control = true;
  const Exchange found = exchange(
      [&](bool retx) {
        auto header = control(CpType::Noop, asked.psn, retx);
        header.syn = true;
        header.isrod = settings_.ordered;
        return encoded(header);
      },
      asked);
  if (found.ack) {
    ++next_;
    return true;
  }
  if (found.nack) {
    judge_nack(*found.nack->nack, asked, {}, report_);
    report_.note("PDS-221", "the peer knows no NOOP, or has no PDC to give: a SEND is to open one");
  } else {
    report_.note("PDS-57", "no answer to a NOOP with SYN: a SEND is to open the PDC");
  }
  // Whatever the peer keeps of the first one.
  ++own_.value;
  start_ = next_ = start_ + 0x0002'0000;  // PDS-53
  return false;
}

bool Probe::open() {
  open_by_noop();
  send_one();
  if (!heard_) {
    report_.say(
        "nothing answers: is the address right, does a firewall allow UDP both ways, is "
        "it the same encapsulation (UDP or native, CRC)?");
  }
  return peer_.value != 0;
}

void Probe::send_one() {
  report_.begin("SEND of 16 bytes");
  request(to_context(SesOpcode::Send, kShort), pattern(kShort, 1));
}

void Probe::send_again() {
  report_.begin("the same packet again, with RETX");
  Asked asked = last_asked_;
  asked.retx = true;
  asked.peer = peer_;
  const Exchange found = exchange([&](bool) { return last_; }, asked);
  if (!found.ack && found.nack) {
    report_.deviation("PDS-201", "a repeated packet is refused: " + in_words(*found.nack));
  } else if (!found.ack) {
    report_.deviation("PDS-96", "a repeated packet is not acknowledged again");
  }
}

// Both packets are under way before the first answer.
void Probe::send_two() {
  report_.begin("SEND of two packets");
  const std::uint32_t mtu = settings_.payload_mtu;
  const auto data = pattern(mtu + kShort, 2);
  auto first = to_context(SesOpcode::Send, mtu + kShort);
  first.eom = false;
  auto second = first;
  second.som = false;
  second.eom = true;
  second.payload_length = kShort;
  second.message_offset = mtu;
  Asked asked = asked_for(next_ + 1);
  asked.message_id = first.message_id;
  asked.length = first.request_length;
  const Exchange found = exchange(
      [&](bool retx) {
        line_.send(packet(header(next_, retx), first, std::span(data).first(mtu)));
        return packet(header(next_ + 1, retx), second, std::span(data).subspan(mtu));
      },
      asked);
  report_end(asked, found);
  if (lost_) return;
  const auto& last = found.ack->response;
  if (found.earlier && found.earlier->ack->ack_psn() == next_) {
    const auto& response = found.earlier->response;
    asked.psn = next_;
    asked.retx = found.earlier->ack->retx;
    judge_ack(*found.earlier, asked, report_);
    if (last && response && last->modified_length != response->modified_length &&
        last->modified_length != 0 && response->modified_length != 0) {
      report_.deviation("WIRE 3.9", "responses of one message state modified_length " +
                                        std::to_string(response->modified_length) + " and " +
                                        std::to_string(last->modified_length));
    }
  }
  asked.psn = asked.newest;
  next_ = next_ + 2;
  last_asked_ = asked;
}

void Probe::ask_for_ack() {
  report_.begin("ACK Request for the packet before");
  Asked asked = last_asked_;
  asked.retx.reset();
  const Exchange found = exchange(
      [&](bool retx) { return encoded(control(CpType::AckRequest, asked.psn, retx)); }, asked);
  if (!found.ack && found.nack) {
    report_.deviation("PDS-156", "the packet was acknowledged before: " + in_words(*found.nack));
  } else if (!found.ack) {
    report_.deviation("PDS-156", "no answer to an ACK Request");
  }
}

void Probe::write_memory() {
  report_.begin("WRITE of 256 bytes");
  auto write = to_context(SesOpcode::Write, kWrite);
  write.match_bits = settings_.key->value;
  write.buffer_offset = settings_.offset;
  const auto data = pattern(kWrite, 3);
  const Exchange found = request(write, data, true);
  if (!found.ack || !found.ack->response) return;
  if (is_good(found.ack->response->return_code)) {
    written_ = data;
  } else {
    report_.note("SES-115", "the WRITE is refused: has the key these rights, and the job?");
  }
}

void Probe::read_memory(std::uint32_t length) {
  report_.begin("READ of " + std::to_string(length) + " bytes");
  auto read = to_context(SesOpcode::Read, length);
  read.match_bits = settings_.key->value;
  read.buffer_offset = settings_.offset;
  const auto wanted = std::span(written_).first(std::min<std::size_t>(length, written_.size()));
  Exchange found = request(read, {}, true);
  if (!found.ack) return;
  const auto& response = found.ack->response;
  if (response && !is_good(response->return_code)) {
    return report_.note("SES-115", "the READ is refused: has the key these rights, and the job?");
  }
  if (response && response->opcode == wire::ResponseOpcode::ResponseWData) {
    return judge_read_data(*found.ack, last_asked_, wanted, report_);
  }
  for (int i = 0; i < kTries && !found.data; ++i) {
    while (!found.data && hear(last_asked_, found)) {
    }
  }
  if (!found.data || !found.data->response) {
    return report_.deviation("SES-82", "the READ was accepted, and no data come");
  }
  report_.say("data: " + in_words(*found.data));
  Asked asked = last_asked_;
  asked.peer = peer_;
  judge_read_data(*found.data, asked, wanted, report_);
}

void Probe::be_refused(const char* step, const wire::SesRequest& refused, const char* rule,
                       std::optional<ReturnCode> wanted) {
  report_.begin(step);
  const Exchange found = request(refused, pattern(refused.request_length, 4));
  if (!found.ack || !found.ack->response) return;
  const auto code = found.ack->response->return_code;
  if (is_good(code)) {
    report_.deviation(rule, "the peer takes it: " + in_words(*found.ack));
  } else if (wanted && code != *wanted) {
    report_.deviation(rule, "the peer says " + std::string(wire::name_of(code)) + " instead of " +
                                std::string(wire::name_of(*wanted)));
  }
}

void Probe::name_no_pdc() {
  report_.begin("request on a PDC that is not there");
  Asked asked = asked_for(next_);
  const auto request = to_context(SesOpcode::Send, 4);
  const PdcId real = peer_;
  const Exchange found = exchange(
      [&](bool retx) {
        auto pds = header(asked.psn, retx);
        pds.dpdcid.value = static_cast<std::uint16_t>(real.value ^ 0x2A55);
        return packet(pds, request, pattern(4, 5));
      },
      asked);
  if (found.nack) {
    judge_nack(*found.nack->nack, asked, NackCode::InvDpdcid, report_);
  } else if (found.ack) {
    report_.deviation("PDS-25", "a request that names another PDC of the peer is acknowledged");
  } else {
    report_.deviation("PDS-210", "no NACK INV_DPDCID");
  }
}

void Probe::change_mode() {
  report_.begin("request of the other mode on the PDC");
  Asked asked = asked_for(next_);
  const auto request = to_context(SesOpcode::Send, 4);
  const Exchange found = exchange(
      [&](bool retx) {
        auto pds = header(asked.psn, retx);
        pds.type = settings_.ordered ? wire::PdsType::RudReq : wire::PdsType::RodReq;
        return packet(pds, request, pattern(4, 6));
      },
      asked);
  if (found.nack) {
    judge_nack(*found.nack->nack, asked, NackCode::PdcModeMismatch, report_);
  } else if (found.ack) {
    report_.deviation("PDS-5", "RUD and ROD share a PDC");
    ++next_;
  } else {
    report_.deviation("PDS-210", "no NACK PDC_MODE_MISMATCH");
  }
}

void Probe::probe_path() {
  report_.begin("Probe");
  Asked asked = asked_for(next_ - 1);
  asked.control = asked.probe = true;
  asked.opaque = kOpaque;
  asked.retx.reset();
  const Exchange found = exchange(
      [&](bool) {
        auto header = control(CpType::Probe, Psn{}, false);
        header.probe_opaque = kOpaque;
        header.payload = asked.psn.value;
        return encoded(header);
      },
      asked);
  if (found.ack && found.ack->ack->type == wire::PdsType::Ack) {
    report_.deviation("WIRE 2.6", "the answer to a Probe is no ACK_CC");
  } else if (!found.ack && found.nack) {
    report_.note("PDS-221", "the peer knows no Probe");
  } else if (!found.ack) {
    report_.deviation("PDS-157", "no answer to a Probe");
  }
}

void Probe::close() {
  report_.begin("Close Command");
  Asked asked = asked_for(next_);
  asked.control = true;
  const Exchange found =
      exchange([&](bool retx) { return encoded(control(CpType::Close, asked.psn, retx)); }, asked);
  report_end(asked, found);
  if (found.ack && found.ack->ack->cack_psn != asked.psn) {
    report_.deviation("PDS-170",
                      "the ACK of the Close Command leaves packets unacknowledged, which "
                      "it clears");
  }
}

}  // namespace uet::probe
