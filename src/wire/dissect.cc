// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The order of a line: PDS type, numbers, PDC ids (sender>receiver), flags in brackets; then, after
// a bar, the SES header in the same manner, with the length of its payload last.
#include "wire/dissect.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <initializer_list>
#include <utility>
#include <vector>

#include "wire/parse.h"

namespace uet::wire {

namespace {

template <class Enum, std::size_t N>
std::string_view look_up(const std::array<std::string_view, N>& names, Enum e) {
  const std::size_t i = to_underlying(e);
  return i < N && !names[i].empty() ? names[i] : "reserved";
}

class Line {
 public:
  void word(std::string_view text) {
    if (!text_.empty()) text_ += ' ';
    text_ += text;
  }
  // A name, or the number if it has none.
  template <class Enum>
  void name(Enum e) {
    const std::string_view text = name_of(e);
    word(text);
    if (text != "reserved") return;
    text_ += ' ';
    text_ += digits(to_underlying(e), 10);
  }
  void number(std::string_view name, std::int64_t value) {
    word(name);
    text_ += ' ';
    text_ += digits(value, 10);
  }
  void hex(std::string_view name, std::uint64_t value) {
    word(name);
    text_ += " 0x";
    text_ += digits(value, 16);
  }
  void flags(std::initializer_list<std::pair<std::string_view, bool>> all) {
    bool first = true;
    for (const auto& [name, set] : all) {
      if (!set) continue;
      text_ += first ? " [" : " ";
      text_ += name;
      first = false;
    }
    if (!first) text_ += ']';
  }
  void pdc(PdcId from, PdcId to) {
    hex("pdc", from.value);
    text_ += ">0x";
    text_ += digits(to.value, 16);
  }
  void pdc_syn(PdcId from, std::uint16_t psn_offset) {
    hex("pdc", from.value);
    text_ += ">new";
    number("psn_offset", psn_offset);
  }
  std::string take() { return std::move(text_); }

 private:
  template <class T>
  static std::string digits(T value, int base) {
    std::array<char, 24> buffer{};
    const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, base).ptr;
    return {buffer.data(), end};
  }
  std::string text_;
};

void add_atomic(Line& line, const AtomicExtension& atomic) {
  line.name(atomic.op);
  line.name(atomic.datatype);
  if (is_compare_swap(atomic.op)) {
    line.hex("compare", atomic.compare_value.low);
    line.hex("swap", atomic.swap_value.low);
  }
}

// The payload, of which the last `missing` bytes are not there.
void add_payload(Line& line, std::size_t bytes, std::size_t missing) {
  line.number("payload", static_cast<std::int64_t>(bytes));
  if (missing > 0) line.number("missing", static_cast<std::int64_t>(missing));
}

void add_ses_request(Line& line, const SesRequest& request, std::size_t payload,
                     std::size_t missing) {
  line.name(request.opcode);
  line.name(request.next_hdr);
  if (request.next_hdr == NextHdr::RequestStd) line.number("msg", request.message_id.value);
  line.number("job", request.job_id.value);
  line.number("pid", request.pid_on_fep.value);
  line.number("ri", request.resource_index.value);
  line.number("gen", request.ri_generation.value);
  line.number("initiator", request.initiator.value);
  line.hex("match", request.match_bits);
  line.hex("offset", request.buffer_offset);
  if (request.hd) line.hex("data", request.header_data);
  line.number("at", request.message_offset);
  line.number("of", request.request_length);
  if (has_atomic_extension(request.opcode)) add_atomic(line, request.atomic);
  if (has_rendezvous_extension(request.opcode)) {
    line.number("eager", request.rendezvous.eager_length);
    line.hex("read_key", request.rendezvous.read_memory_key.value);
  }
  if (request.version != 0) line.number("version", request.version);
  line.flags({{"som", request.som},
              {"eom", request.eom},
              {"rel", request.rel},
              {"hd", request.hd},
              {"dc", request.dc},
              {"ie", request.ie}});
  add_payload(line, payload, missing);
}

void add_ses_response(Line& line, const SesResponseHeader& response, std::size_t missing) {
  line.name(response.opcode);
  line.name(response.return_code);
  line.number("list", to_underlying(response.list));
  line.number("job", response.job_id.value);
  if (response.next_hdr == NextHdr::Response) {
    line.number("msg", response.message_id.value);
    line.number("gen", response.ri_generation.value);
  } else if (response.next_hdr == NextHdr::ResponseData) {
    line.number("msg", response.response_message_id.value);
    line.number("for", response.read_request_message_id.value);
    line.number("at", response.message_offset);
  } else {
    line.number("for_psn", response.original_request_psn.value);
  }
  if (response.next_hdr != NextHdr::ResponseDataSmall) {
    line.number("modified", response.modified_length);
  }
  if (response.version != 0) line.number("version", response.version);
  add_payload(line, response.payload.size(), missing);
}

// Of a message of one packet that carries data; else 0.
std::size_t whole_payload(const SesRequest& request) {
  const SesOpcode opcode = request.opcode;
  const bool carries = opcode == SesOpcode::Write || opcode == SesOpcode::Send ||
                       opcode == SesOpcode::TaggedSend || opcode == SesOpcode::DatagramSend;
  return carries && request.som && request.eom ? request.request_length : 0;
}

// Of `bytes`, whose last `added` stand for bytes that are not there. False: they do not decode, or
// the header itself is incomplete.
bool add_decoded(Line& line, NextHdr next_hdr, std::span<const std::byte> bytes,
                 std::size_t added) {
  const std::size_t there = bytes.size() - added;
  const auto missing_of = [there](std::size_t header_bytes, std::size_t payload_bytes) {
    return std::max(header_bytes + payload_bytes, there) - there;
  };
  SesRequest request;
  SesResponseHeader response;
  if (SesRequest::decode(next_hdr, bytes, request)) {
    if (request.header_bytes > there) return false;
    const std::size_t payload = std::max(request.payload.size(), whole_payload(request));
    add_ses_request(line, request, payload, missing_of(request.header_bytes, payload));
    return true;
  }
  if (!SesResponseHeader::decode(next_hdr, bytes, response)) return false;
  if (response.header_bytes > there) return false;
  add_ses_response(line, response, missing_of(response.header_bytes, response.payload.size()));
  return true;
}

void add_ses(Line& line, NextHdr next_hdr, std::span<const std::byte> bytes, std::size_t missing) {
  constexpr std::size_t kMostPayload = std::size_t{1} << 16;
  if (next_hdr == NextHdr::None) return;
  line.word("|");
  if (missing == 0 && add_decoded(line, next_hdr, bytes, 0)) return;
  // Try both: the payload lacks `missing` bytes, or as many as the lengths in the header ask for.
  for (const std::size_t added : {missing, kMostPayload}) {
    if (added == 0 || added > kMostPayload) continue;
    std::vector<std::byte> longer(bytes.begin(), bytes.end());
    longer.resize(bytes.size() + added);
    if (add_decoded(line, next_hdr, longer, added)) return;
  }
  const bool known = is_request(next_hdr) || is_response(next_hdr);
  const bool cut = known && bytes.size() < ses_header_bytes(next_hdr);
  line.word(cut ? "cut short" : "malformed");
  line.name(next_hdr);
  line.number("bytes", static_cast<std::int64_t>(bytes.size()));
  if (missing > 0) line.number("missing", static_cast<std::int64_t>(missing));
}

void add_request(Line& line, const RequestHeader& header) {
  line.hex("psn", header.psn.value);
  line.hex("clear", header.clear_psn().value);
  if (header.syn) {
    line.pdc_syn(header.spdcid, header.psn_offset);
  } else {
    line.pdc(header.spdcid, header.dpdcid);
  }
  if (header.type == PdsType::RudCcReq || header.type == PdsType::RodCcReq) {
    line.number("ccc", header.ccc_id);
    line.number("credit_target", header.credit_target);
  }
  line.flags({{"syn", header.syn}, {"ar", header.ar}, {"retx", header.retx}});
}

void add_ack(Line& line, const AckHeader& header) {
  line.hex("cack", header.cack_psn.value);
  if (header.p) {
    line.hex("probe", header.probe_opaque);
  } else {
    line.hex("psn", header.ack_psn().value);
  }
  line.pdc(header.spdcid, header.dpdcid);
  if (header.type != PdsType::Ack) {
    line.number("mpr", header.mpr);
    line.hex("sack_base", header.sack_base().value);
    line.hex("sack", header.sack_bitmap);
    line.number("cc_type", to_underlying(header.cc_type));
  }
  if (header.type == PdsType::AckCc && header.cc_type == CcType::Nscc) {
    line.number("service", header.service_time);
    line.number("pend", header.rcv_cwnd_pend);
    line.number("rcvd", header.rcvd_bytes);
    line.number("ooo", header.ooo_count);
  } else if (header.type == PdsType::AckCc && header.cc_type == CcType::Credit) {
    line.number("credit", header.credit);
    line.number("ooo", header.ooo_count);
  }
  line.flags({{"ce", header.ce},
              {"retx", header.retx},
              {"probe", header.p},
              {"expected_psn", header.expected},
              {"rc", header.rc},
              {"clear_req", header.req == AckRequestCode::Clear},
              {"close_req", header.req == AckRequestCode::Close}});
}

void add_nack(Line& line, const NackHeader& header) {
  line.name(header.nack_code);
  line.hex(header.nt ? "pkt_id" : "psn", header.nack_psn.value);
  line.pdc(header.spdcid, header.dpdcid);
  line.number("payload", header.payload);
  line.flags({{"ce", header.ce}, {"retx", header.retx}, {"rudi", header.nt}});
}

void add_control(Line& line, const ControlHeader& header, std::span<const std::byte> bytes) {
  line.name(header.ctl_type);
  line.hex("psn", header.psn.value);
  if (header.syn) {
    line.pdc_syn(header.spdcid, header.psn_offset);
  } else {
    line.pdc(header.spdcid, header.dpdcid);
  }
  if (header.ctl_type == CpType::Probe) line.hex("probe", header.probe_opaque);
  Negotiation negotiation;
  if (header.ctl_type == CpType::Negotiation &&
      Negotiation::decode(bytes.subspan(Negotiation::kOffset), negotiation)) {
    line.number("type", negotiation.type);
    line.number("words", negotiation.length_words);
    line.hex("features", negotiation.features);
  } else {
    line.number("payload", header.payload);
  }
  line.flags(
      {{"rod", header.isrod}, {"syn", header.syn}, {"ar", header.ar}, {"retx", header.retx}});
}

void add_security(Line& line, const SecurityHeader& header) {
  line.number("sdi", header.sdi);
  if (header.sp) line.hex("ssi", header.ssi);
  line.number("an", header.an);
  line.number("epoch", header.epoch);
  line.hex("counter", header.counter);
}

// Adds the PDS header and answers what the header says follows.
NextHdr add_pds(Line& line, const ParsedPacket& packet, std::span<const std::byte> bytes) {
  if (const auto* request = std::get_if<RequestHeader>(&packet.header)) {
    add_request(line, *request);
    return request->next_hdr;
  }
  if (const auto* ack = std::get_if<AckHeader>(&packet.header)) {
    add_ack(line, *ack);
    return ack->next_hdr;
  }
  if (const auto* rudi = std::get_if<RudiHeader>(&packet.header)) {
    line.hex("pkt_id", rudi->pkt_id);
    line.flags({{"ce", rudi->ce}, {"retx", rudi->retx}});
    return rudi->next_hdr;
  }
  if (const auto* uud = std::get_if<UudHeader>(&packet.header)) return uud->next_hdr;
  if (const auto* nack = std::get_if<NackHeader>(&packet.header)) add_nack(line, *nack);
  if (const auto* control = std::get_if<ControlHeader>(&packet.header)) {
    add_control(line, *control, bytes);
  }
  return NextHdr::None;
}

}  // namespace

std::string dissect(std::span<const std::byte> bytes, std::size_t missing) {
  Line line;
  const auto packet = parse(bytes);
  if (!packet) {
    line.word("malformed");
    if (bytes.size() >= sizeof(PdsPrologue)) {
      line.name(static_cast<PdsType>(PdsPrologue::Type::get(load<PdsPrologue>(bytes))));
    }
    line.number("bytes", static_cast<std::int64_t>(bytes.size()));
    return line.take();
  }
  line.name(packet->type);
  if (packet->type == PdsType::Tss) {
    add_security(line, packet->as<SecurityHeader>());
    line.number("bytes", static_cast<std::int64_t>(packet->rest.size()));
    return line.take();
  }
  add_ses(line, add_pds(line, *packet, bytes), packet->rest, missing);
  return line.take();
}

std::string_view name_of(PdsType type) {
  static constexpr std::array<std::string_view, 15> kNames{
      "",       "TSS",     "RUD_REQ", "ROD_REQ", "RUDI_REQ", "RUDI_RESP",  "UUD_REQ",   "ACK",
      "ACK_CC", "ACK_CCX", "NACK",    "CP",      "NACK_CCX", "RUD_CC_REQ", "ROD_CC_REQ"};
  return look_up(kNames, type);
}

std::string_view name_of(NextHdr next_hdr) {
  static constexpr std::array<std::string_view, 7> kNames{
      "NONE",     "REQUEST_SMALL", "REQUEST_MEDIUM",     "REQUEST_STD",
      "RESPONSE", "RESPONSE_DATA", "RESPONSE_DATA_SMALL"};
  return look_up(kNames, next_hdr);
}

std::string_view name_of(CpType type) {
  static constexpr std::array<std::string_view, 10> kNames{
      "NOOP",      "ACK_REQ", "CLEAR",  "CLEAR_REQ",  "CLOSE",
      "CLOSE_REQ", "PROBE",   "CREDIT", "CREDIT_REQ", "NEGOTIATION"};
  return look_up(kNames, type);
}

std::string_view name_of(NackCode code) {
  if (code == NackCode::ExpNormal) return "EXP_NORMAL";
  if (code == NackCode::ExpErr) return "EXP_ERR";
  if (code == NackCode::ExpFatal) return "EXP_FATAL";
  static constexpr std::array<std::string_view, 27> kNames{"",
                                                           "TRIMMED",
                                                           "TRIMMED_LASTHOP",
                                                           "TRIMMED_ACK",
                                                           "NO_PDC_AVAIL",
                                                           "NO_CCC_AVAIL",
                                                           "NO_BITMAP",
                                                           "NO_PKT_BUFFER",
                                                           "NO_GTD_DEL_AVAIL",
                                                           "NO_SES_MSG_AVAIL",
                                                           "NO_RESOURCE",
                                                           "PSN_OOR_WINDOW",
                                                           "",
                                                           "ROD_OOO",
                                                           "INV_DPDCID",
                                                           "PDC_HDR_MISMATCH",
                                                           "CLOSING",
                                                           "CLOSING_IN_ERR",
                                                           "PKT_NOT_RCVD",
                                                           "GTD_RESP_UNAVAIL",
                                                           "ACK_WITH_DATA",
                                                           "INVALID_SYN",
                                                           "PDC_MODE_MISMATCH",
                                                           "NEW_START_PSN",
                                                           "RCVD_SES_PROCG",
                                                           "UNEXP_EVENT",
                                                           "RCVR_INFER_LOSS"};
  return look_up(kNames, code);
}

std::string_view name_of(SesOpcode opcode) {
  static constexpr std::array<std::string_view, 16> kNames{"NO_OP",
                                                           "WRITE",
                                                           "READ",
                                                           "ATOMIC",
                                                           "FETCHING_ATOMIC",
                                                           "SEND",
                                                           "RENDEZVOUS_SEND",
                                                           "DATAGRAM_SEND",
                                                           "DEFERRABLE_SEND",
                                                           "TAGGED_SEND",
                                                           "RENDEZVOUS_TSEND",
                                                           "DEFERRABLE_TSEND",
                                                           "DEFERRABLE_RTR",
                                                           "TSEND_ATOMIC",
                                                           "TSEND_FETCH_ATOMIC",
                                                           "MSG_ERROR"};
  return look_up(kNames, opcode);
}

std::string_view name_of(ResponseOpcode opcode) {
  static constexpr std::array<std::string_view, 4> kNames{"DEFAULT_RESPONSE", "RESPONSE",
                                                          "RESPONSE_W_DATA", "NO_RESPONSE"};
  return look_up(kNames, opcode);
}

std::string_view name_of(ReturnCode code) {
  static constexpr std::array<std::string_view, 37> kNames{"NULL",
                                                           "OK",
                                                           "BAD_GENERATION",
                                                           "DISABLED",
                                                           "DISABLED_GEN",
                                                           "NO_MATCH",
                                                           "UNSUPPORTED_OP",
                                                           "UNSUPPORTED_SIZE",
                                                           "AT_INVALID",
                                                           "AT_PERM",
                                                           "AT_ATS_ERROR",
                                                           "AT_NO_TRANS",
                                                           "AT_OUT_OF_RANGE",
                                                           "HOST_POISONED",
                                                           "HOST_UNSUCCESS_CMPL",
                                                           "AMO_UNSUPPORTED_OP",
                                                           "AMO_UNSUPPORTED_DT",
                                                           "AMO_UNSUPPORTED_SIZE",
                                                           "AMO_UNALIGNED",
                                                           "AMO_FP_NAN",
                                                           "FP_UNDERFLOW",
                                                           "FP_OVERFLOW",
                                                           "FP_INEXACT",
                                                           "PERM_VIOLATION",
                                                           "OP_VIOLATION",
                                                           "BAD_INDEX",
                                                           "BAD_PID",
                                                           "BAD_JOB_ID",
                                                           "BAD_MKEY",
                                                           "BAD_ADDR",
                                                           "CANCELLED",
                                                           "UNDELIVERABLE",
                                                           "UNCOR",
                                                           "UNCOR_TRNSNT",
                                                           "TOO_LONG",
                                                           "INITIATOR_ERR",
                                                           "DROPPED"};
  return look_up(kNames, code);
}

std::string_view name_of(AmoOp op) {
  static constexpr std::array<std::string_view, 21> kNames{
      "MIN",      "MAX",      "SUM",      "DIFF",     "PROD",     "LOR",   "LAND",
      "BOR",      "BAND",     "LXOR",     "BXOR",     "READ",     "WRITE", "CSWAP",
      "CSWAP_NE", "CSWAP_LE", "CSWAP_LT", "CSWAP_GE", "CSWAP_GT", "MSWAP", "INVAL"};
  return look_up(kNames, op);
}

std::string_view name_of(AmoDatatype datatype) {
  static constexpr std::array<std::string_view, 18> kNames{"INT8",          "UINT8",
                                                           "INT16",         "UINT16",
                                                           "INT32",         "UINT32",
                                                           "INT64",         "UINT64",
                                                           "INT128",        "UINT128",
                                                           "FLOAT",         "DOUBLE",
                                                           "FLOAT_COMPLEX", "DOUBLE_COMPLEX",
                                                           "LONG_DOUBLE",   "LONG_DOUBLE_COMPLEX",
                                                           "BF16",          "FP16"};
  return look_up(kNames, datatype);
}

}  // namespace uet::wire
