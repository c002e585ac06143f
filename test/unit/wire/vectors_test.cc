// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Every vector of WIRE 5 in both directions: the bytes give the stated fields, and headers made
// from the stated fields alone give the bytes.
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <set>
#include <string>

#include "uet/wire/ses.h"
#include "unit/wire/vectors.h"
#include "wire/crc.h"
#include "wire/parse.h"

namespace uet::wire {
namespace {

using nlohmann::json;

constexpr std::size_t kIcvBytes = 16;

// ---- values to fields ---------------------------------------------------------------------------

json fields_of(const RequestHeader& h) {
  return {{"type", h.type},
          {"next_hdr", h.next_hdr},
          {"retx", int{h.retx}},
          {"ar", int{h.ar}},
          {"syn", int{h.syn}},
          {"clear_psn_offset", h.clear_psn_offset},
          {"psn", h.psn.value},
          {"spdcid", h.spdcid.value},
          {"dpdcid", h.dpdcid.value},
          {"pdc_info", h.pdc_info},
          {"psn_offset", h.psn_offset},
          {"ccc_id", h.ccc_id},
          {"credit_target", h.credit_target}};
}

json fields_of(const AckHeader& h) {
  return {{"type", h.type},
          {"next_hdr", h.next_hdr},
          {"m", int{h.ce}},
          {"retx", int{h.retx}},
          {"p", int{h.p}},
          {"req", h.req},
          {"ack_psn_offset", h.ack_psn_offset},
          {"probe_opaque", h.probe_opaque},
          {"cack_psn", h.cack_psn.value},
          {"spdcid", h.spdcid.value},
          {"dpdcid", h.dpdcid.value},
          {"cc_type", h.cc_type},
          {"cc_flags", h.cc_flags},
          {"mpr", h.mpr},
          {"sack_psn_offset", h.sack_psn_offset},
          {"sack_bitmap", h.sack_bitmap},
          {"service_time", h.service_time},
          {"rc", int{h.rc}},
          {"rcv_cwnd_pend", h.rcv_cwnd_pend},
          {"rcvd_bytes", h.rcvd_bytes},
          {"ooo_count", h.ooo_count},
          {"credit", h.credit},
          {"ack_ccx_state", to_hex(std::as_bytes(std::span(h.ccx_state)))}};
}

json fields_of(const NackHeader& h) {
  return {{"type", h.type},
          {"next_hdr", 0},
          {"m", int{h.ce}},
          {"retx", int{h.retx}},
          {"nt", int{h.nt}},
          {"nack_code", h.nack_code},
          {"vendor_code", h.vendor_code},
          {h.nt ? "nack_pkt_id" : "nack_psn", h.nack_psn.value},
          {"spdcid", h.spdcid.value},
          {"dpdcid", h.dpdcid.value},
          {"payload", h.payload},
          {"nccx_type", h.nccx_type},
          {"nack_ccx_state1", h.nccx_state1},
          {"nack_ccx_state2", h.nccx_state2}};
}

json fields_of(const ControlHeader& h) {
  return {{"type", PdsType::Cp},
          {"ctl_type", h.ctl_type},
          {"isrod", int{h.isrod}},
          {"retx", int{h.retx}},
          {"ar", int{h.ar}},
          {"syn", int{h.syn}},
          {"probe_opaque", h.probe_opaque},
          {"psn", h.psn.value},
          {"spdcid", h.spdcid.value},
          {"dpdcid", h.dpdcid.value},
          {"pdc_info", h.pdc_info},
          {"psn_offset", h.psn_offset},
          {"payload", h.payload}};
}

json fields_of(const RudiHeader& h) {
  return {{"type", h.type},
          {"next_hdr", h.next_hdr},
          {"m", int{h.ce}},
          {"retx", int{h.retx}},
          {"pkt_id", h.pkt_id}};
}

json fields_of(const UudHeader& h) { return {{"type", PdsType::UudReq}, {"next_hdr", h.next_hdr}}; }

json fields_of(const SecurityHeader& h) {
  return {{"type", PdsType::Tss}, {"sp", int{h.sp}},  {"an", int{h.an}},     {"sdi", h.sdi},
          {"ssi", h.ssi},         {"epoch", h.epoch}, {"counter", h.counter}};
}

std::string wide_hex(const AtomicOperand& v) {
  const std::array<be64, 2> words{v.high, v.low};
  return to_hex(std::as_bytes(std::span(words)));
}

json fields_of(const SesRequest& r) {
  return {{"opcode", r.opcode},
          {"version", r.version},
          {"dc", int{r.dc}},
          {"ie", int{r.ie}},
          {"rel", int{r.rel}},
          {"hd", int{r.hd}},
          {"eom", int{r.eom}},
          {"som", int{r.som}},
          {"message_id", r.message_id.value},
          {"ri_generation", r.ri_generation.value},
          {"job_id", r.job_id.value},
          {"pid_on_fep", r.pid_on_fep.value},
          {"resource_index", r.resource_index.value},
          {"buffer_offset", r.buffer_offset},
          {"initiator_restart_token", r.initiator_restart_token()},
          {"target_restart_token", r.target_restart_token()},
          {"initiator", r.initiator.value},
          {"match_bits", r.match_bits},
          {"header_data", r.header_data},
          {"payload_length", r.payload_length},
          {"message_offset", r.message_offset},
          {"request_length", r.request_length},
          {"atomic",
           {{"atomic_opcode", r.atomic.op},
            {"atomic_datatype", r.atomic.datatype},
            {"semantic_control", r.atomic.semantic_control},
            {"compare_value", wide_hex(r.atomic.compare_value)},
            {"swap_value", wide_hex(r.atomic.swap_value)}}},
          {"rendezvous",
           {{"eager_length", r.rendezvous.eager_length},
            {"read_ri_generation", r.rendezvous.read_ri_generation.value},
            {"read_pid_on_fep", r.rendezvous.read_pid_on_fep.value},
            {"read_resource_index", r.rendezvous.read_resource_index.value},
            {"read_offset", r.rendezvous.read_offset},
            {"read_memory_key", r.rendezvous.read_memory_key.value}}}};
}

json fields_of(const SesResponseHeader& r) {
  return {{"list", r.list},
          {"opcode", r.opcode},
          {"version", r.version},
          {"return_code", r.return_code},
          {"message_id", r.message_id.value},
          {"ri_generation", r.ri_generation.value},
          {"job_id", r.job_id.value},
          {"response_message_id", r.response_message_id.value},
          {"read_request_message_id", r.read_request_message_id.value},
          {"payload_length", r.payload_length},
          {"modified_length", r.modified_length},
          {"message_offset", r.message_offset},
          {"original_request_psn", r.original_request_psn.value}};
}

// Every stated field has the stated value.
void expect_fields(const json& stated, const json& actual) {
  for (const auto& [key, value] : stated.items()) {
    SCOPED_TRACE(key);
    ASSERT_TRUE(actual.contains(key));
    const json& got = actual[key];
    if (value.is_object()) {
      expect_fields(value, got);
    } else if (got.is_string()) {
      EXPECT_EQ("0x" + got.get<std::string>(), value.get<std::string>());
    } else {
      EXPECT_EQ(as_number(got), as_number(value));
    }
  }
}

// ---- fields to bytes ----------------------------------------------------------------------------

template <class Header>
Bytes encoded(const Header& header) {
  Bytes bytes(kMaxSesHeaderBytes);
  bytes.resize(header.encode(bytes.data()));
  return bytes;
}

Bytes encode_request(const json& f) {
  RequestHeader h;
  h.type = field<PdsType>(f, "type");
  h.next_hdr = field<NextHdr>(f, "next_hdr");
  h.retx = field<bool>(f, "retx");
  h.ar = field<bool>(f, "ar");
  h.syn = field<bool>(f, "syn");
  h.clear_psn_offset = field<std::int16_t>(f, "clear_psn_offset");
  h.psn = Psn{field<std::uint32_t>(f, "psn")};
  h.spdcid = PdcId{field<std::uint16_t>(f, "spdcid")};
  h.dpdcid = PdcId{field<std::uint16_t>(f, "dpdcid")};
  h.pdc_info = field<std::uint8_t>(f, "pdc_info");
  h.psn_offset = field<std::uint16_t>(f, "psn_offset");
  h.ccc_id = field<std::uint8_t>(f, "ccc_id");
  h.credit_target = field<std::uint32_t>(f, "credit_target");
  return encoded(h);
}

Bytes encode_ack(const json& f) {
  AckHeader h;
  h.type = field<PdsType>(f, "type");
  h.next_hdr = field<NextHdr>(f, "next_hdr");
  h.ce = field<bool>(f, "m");
  h.retx = field<bool>(f, "retx");
  h.p = field<bool>(f, "p");
  h.req = field<AckRequestCode>(f, "req");
  h.ack_psn_offset = field<std::int16_t>(f, "ack_psn_offset");
  h.probe_opaque = field<std::uint16_t>(f, "probe_opaque");
  h.cack_psn = Psn{field<std::uint32_t>(f, "cack_psn")};
  h.spdcid = PdcId{field<std::uint16_t>(f, "spdcid")};
  h.dpdcid = PdcId{field<std::uint16_t>(f, "dpdcid")};
  h.cc_type = field<CcType>(f, "cc_type");
  h.cc_flags = field<std::uint8_t>(f, "cc_flags");
  h.mpr = field<std::uint8_t>(f, "mpr");
  h.sack_psn_offset = field<std::int16_t>(f, "sack_psn_offset");
  h.sack_bitmap = field<std::uint64_t>(f, "sack_bitmap");
  h.service_time = field<std::uint16_t>(f, "service_time");
  h.rc = field<bool>(f, "rc");
  h.rcv_cwnd_pend = field<std::uint8_t>(f, "rcv_cwnd_pend");
  h.rcvd_bytes = field<std::uint32_t>(f, "rcvd_bytes");
  h.ooo_count = field<std::uint16_t>(f, "ooo_count");
  h.credit = field<std::uint32_t>(f, "credit");
  if (f.contains("ack_ccx_state")) {
    const Bytes state = from_hex(f["ack_ccx_state"].get<std::string>().substr(2));
    std::memcpy(h.ccx_state.data(), state.data(), h.ccx_state.size());
  }
  return encoded(h);
}

Bytes encode_nack(const json& f) {
  NackHeader h;
  h.type = field<PdsType>(f, "type");
  h.ce = field<bool>(f, "m");
  h.retx = field<bool>(f, "retx");
  h.nt = field<bool>(f, "nt");
  h.nack_code = field<NackCode>(f, "nack_code");
  h.vendor_code = field<std::uint8_t>(f, "vendor_code");
  h.nack_psn = Psn{field<std::uint32_t>(f, h.nt ? "nack_pkt_id" : "nack_psn")};
  h.spdcid = PdcId{field<std::uint16_t>(f, "spdcid")};
  h.dpdcid = PdcId{field<std::uint16_t>(f, "dpdcid")};
  h.payload = field<std::uint32_t>(f, "payload");
  h.nccx_type = field<std::uint8_t>(f, "nccx_type");
  h.nccx_state1 = field<std::uint64_t>(f, "nack_ccx_state1");
  h.nccx_state2 = field<std::uint64_t>(f, "nack_ccx_state2");
  return encoded(h);
}

Bytes encode_control(const json& f) {
  ControlHeader h;
  h.ctl_type = field<CpType>(f, "ctl_type");
  h.isrod = field<bool>(f, "isrod");
  h.retx = field<bool>(f, "retx");
  h.ar = field<bool>(f, "ar");
  h.syn = field<bool>(f, "syn");
  h.probe_opaque = field<std::uint16_t>(f, "probe_opaque");
  h.psn = Psn{field<std::uint32_t>(f, "psn")};
  h.spdcid = PdcId{field<std::uint16_t>(f, "spdcid")};
  h.dpdcid = PdcId{field<std::uint16_t>(f, "dpdcid")};
  h.pdc_info = field<std::uint8_t>(f, "pdc_info");
  h.psn_offset = field<std::uint16_t>(f, "psn_offset");
  h.payload = field<std::uint32_t>(f, "payload");
  return encoded(h);
}

Bytes encode_pds(const json& f) {
  switch (field<PdsType>(f, "type")) {
    case PdsType::Ack:
    case PdsType::AckCc:
    case PdsType::AckCcx:
      return encode_ack(f);
    case PdsType::Nack:
    case PdsType::NackCcx:
      return encode_nack(f);
    case PdsType::Cp:
      return encode_control(f);
    case PdsType::RudiReq:
    case PdsType::RudiResp:
      return encoded(RudiHeader{.type = field<PdsType>(f, "type"),
                                .next_hdr = field<NextHdr>(f, "next_hdr"),
                                .ce = field<bool>(f, "m"),
                                .retx = field<bool>(f, "retx"),
                                .pkt_id = field<std::uint32_t>(f, "pkt_id")});
    case PdsType::UudReq:
      return encoded(UudHeader{.next_hdr = field<NextHdr>(f, "next_hdr")});
    default:
      return encode_request(f);
  }
}

Bytes encode_tss(const json& f) {
  return encoded(SecurityHeader{.sp = field<bool>(f, "sp"),
                                .an = field<bool>(f, "an"),
                                .sdi = field<std::uint32_t>(f, "sdi"),
                                .ssi = field<std::uint32_t>(f, "ssi"),
                                .epoch = field<std::uint16_t>(f, "epoch"),
                                .counter = field<std::uint64_t>(f, "counter")});
}

AtomicOperand operand(const json& f, const char* key) {
  if (!f.contains(key)) return {};
  const auto hex = f[key].get<std::string>();
  return {.high = std::stoull(hex.substr(2, 16), nullptr, 16),
          .low = std::stoull(hex.substr(18), nullptr, 16)};
}

Bytes encode_ses_request(NextHdr next_hdr, const json& f) {
  SesRequest r;
  r.next_hdr = next_hdr;
  r.opcode = field<SesOpcode>(f, "opcode");
  r.version = field<std::uint8_t>(f, "version");
  r.dc = field<bool>(f, "dc");
  r.ie = field<bool>(f, "ie");
  r.rel = field<bool>(f, "rel");
  r.hd = field<bool>(f, "hd");
  r.eom = field<bool>(f, "eom");
  r.som = field<bool>(f, "som");
  r.message_id = MsgId{field<std::uint16_t>(f, "message_id")};
  r.ri_generation = RiGeneration{field<std::uint8_t>(f, "ri_generation")};
  r.job_id = JobId{field<std::uint32_t>(f, "job_id")};
  r.pid_on_fep = PidOnFep{field<std::uint16_t>(f, "pid_on_fep")};
  r.resource_index = ResourceIndex{field<std::uint16_t>(f, "resource_index")};
  r.buffer_offset = field<std::uint64_t>(f, "buffer_offset");
  r.initiator = InitiatorId{field<std::uint32_t>(f, "initiator")};
  r.match_bits = field<std::uint64_t>(f, "match_bits");
  r.header_data = field<std::uint64_t>(f, "header_data");
  r.payload_length = field<std::uint32_t>(f, "payload_length");
  r.message_offset = field<std::uint32_t>(f, "message_offset");
  r.request_length = field<std::uint32_t>(f, "request_length");
  if (f.contains("initiator_restart_token")) {
    r.set_restart_tokens(field<std::uint32_t>(f, "initiator_restart_token"),
                         field<std::uint32_t>(f, "target_restart_token"));
  }
  if (f.contains("atomic")) {
    const json& a = f["atomic"];
    r.atomic = {.op = field<AmoOp>(a, "atomic_opcode"),
                .datatype = field<AmoDatatype>(a, "atomic_datatype"),
                .semantic_control = field<std::uint8_t>(a, "semantic_control"),
                .compare_value = operand(a, "compare_value"),
                .swap_value = operand(a, "swap_value")};
  }
  if (f.contains("rendezvous")) {
    const json& v = f["rendezvous"];
    r.rendezvous = {.eager_length = field<std::uint32_t>(v, "eager_length"),
                    .read_ri_generation = {field<std::uint8_t>(v, "read_ri_generation")},
                    .read_pid_on_fep = {field<std::uint16_t>(v, "read_pid_on_fep")},
                    .read_resource_index = {field<std::uint16_t>(v, "read_resource_index")},
                    .read_offset = field<std::uint64_t>(v, "read_offset"),
                    .read_memory_key = {field<std::uint64_t>(v, "read_memory_key")}};
  }
  const Bytes bytes = encoded(r);
  EXPECT_EQ(r.encoded_bytes(), bytes.size());
  return bytes;
}

Bytes encode_ses_response(NextHdr next_hdr, const json& f) {
  SesResponseHeader r;
  r.next_hdr = next_hdr;
  r.list = field<List>(f, "list");
  r.opcode = field<ResponseOpcode>(f, "opcode");
  r.version = field<std::uint8_t>(f, "version");
  r.return_code = field<ReturnCode>(f, "return_code");
  r.job_id = JobId{field<std::uint32_t>(f, "job_id")};
  r.message_id = MsgId{field<std::uint16_t>(f, "message_id")};
  r.ri_generation = RiGeneration{field<std::uint8_t>(f, "ri_generation")};
  r.response_message_id = MsgId{field<std::uint16_t>(f, "response_message_id")};
  r.read_request_message_id = MsgId{field<std::uint16_t>(f, "read_request_message_id")};
  r.payload_length = field<std::uint32_t>(f, "payload_length");
  r.modified_length = field<std::uint32_t>(f, "modified_length");
  r.message_offset = field<std::uint32_t>(f, "message_offset");
  r.original_request_psn = Psn{field<std::uint32_t>(f, "original_request_psn")};
  return encoded(r);
}

// ---- the tests ----------------------------------------------------------------------------------

class WireVector : public testing::TestWithParam<json> {
 protected:
  const json& fields() const { return GetParam()["fields"]; }
  NextHdr next_hdr() const { return field<NextHdr>(fields()["pds"], "next_hdr"); }
  Bytes bytes() const { return from_hex(GetParam()["hex"].get<std::string>()); }
};

void expect_ses(NextHdr next_hdr, std::span<const std::byte> rest, const json& fields) {
  std::span<const std::byte> payload;
  if (is_request(next_hdr)) {
    SesRequest request;
    ASSERT_TRUE(SesRequest::decode(next_hdr, rest, request));
    expect_fields(fields["ses"], fields_of(request));
    EXPECT_EQ(request.header_bytes + request.payload.size(), rest.size());
    payload = request.payload;
  } else if (is_response(next_hdr)) {
    SesResponseHeader response;
    ASSERT_TRUE(SesResponseHeader::decode(next_hdr, rest, response));
    expect_fields(fields["ses"], fields_of(response));
    EXPECT_EQ(response.header_bytes + response.payload.size(), rest.size());
    payload = response.payload;
  } else {
    EXPECT_TRUE(rest.empty());
  }
  EXPECT_EQ(to_hex(payload), fields["payload_hex"].get<std::string>());
}

// WIRE 5.1. The vectors hold every header and every field: WIRE 2.1, WIRE 2.2, WIRE 2.3, WIRE 2.4,
// WIRE 2.5, WIRE 2.6, WIRE 2.7, WIRE 2.8, WIRE 2.9, WIRE 3.2, WIRE 3.3, WIRE 3.4, WIRE 3.5,
// WIRE 3.6, WIRE 3.9, WIRE 3.10, WIRE 3.11.
TEST_P(WireVector, DecodeGivesTheStatedFields) {
  const Bytes all = bytes();
  std::span<const std::byte> rest = all;
  if (fields().contains("tss")) {
    const auto outer = parse(rest);
    ASSERT_TRUE(outer.has_value());
    ASSERT_EQ(outer->type, PdsType::Tss);
    expect_fields(fields()["tss"], fields_of(outer->as<SecurityHeader>()));
    rest = outer->rest.first(outer->rest.size() - kIcvBytes);
  }
  const auto packet = parse(rest);
  ASSERT_TRUE(packet.has_value());
  EXPECT_EQ(packet->type, field<PdsType>(fields()["pds"], "type"));
  expect_fields(fields()["pds"],
                std::visit([](const auto& header) { return fields_of(header); }, packet->header));
  expect_ses(next_hdr(), packet->rest, fields());
}

// The same rules: WIRE 5.1, WIRE 2.1, WIRE 2.2, WIRE 2.3, WIRE 2.4, WIRE 2.5, WIRE 2.6, WIRE 2.7,
// WIRE 2.8, WIRE 2.9, WIRE 3.2, WIRE 3.3, WIRE 3.4, WIRE 3.5, WIRE 3.6, WIRE 3.9, WIRE 3.10,
// WIRE 3.11.
TEST_P(WireVector, EncodeGivesTheStatedBytes) {
  Bytes made;
  const auto add = [&](const Bytes& part) { made.insert(made.end(), part.begin(), part.end()); };
  if (fields().contains("tss")) add(encode_tss(fields()["tss"]));
  add(encode_pds(fields()["pds"]));
  if (is_request(next_hdr())) add(encode_ses_request(next_hdr(), fields()["ses"]));
  if (is_response(next_hdr())) add(encode_ses_response(next_hdr(), fields()["ses"]));
  add(from_hex(fields()["payload_hex"].get<std::string>()));
  if (fields().contains("icv_hex")) add(from_hex(fields()["icv_hex"].get<std::string>()));
  EXPECT_EQ(to_hex(made), GetParam()["hex"].get<std::string>());
}

INSTANTIATE_TEST_SUITE_P(All, WireVector,
                         testing::ValuesIn(wire_vectors().begin(), wire_vectors().end()),
                         [](const auto& info) {
                           return info.param["name"].template get<std::string>();
                         });

TEST(WireVectors, HoldEveryHeaderAndFlag) {
  std::set<int> types;
  std::set<int> next_hdrs;
  std::map<std::string, std::set<int>> flags;
  for (const json& vector : wire_vectors()) {
    const json& pds = vector["fields"]["pds"];
    types.insert(pds["type"].get<int>());
    if (pds.contains("next_hdr")) next_hdrs.insert(pds["next_hdr"].get<int>());
    for (const char* part : {"pds", "ses"}) {
      if (!vector["fields"].contains(part)) continue;
      for (const auto& [name, value] : vector["fields"][part].items()) {
        if (value.is_number() && value <= 1) flags[name].insert(value.get<int>());
      }
    }
  }
  EXPECT_EQ(types, (std::set{2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14}));
  EXPECT_EQ(next_hdrs, (std::set{0, 1, 2, 3, 4, 5, 6}));
  for (const char* flag :
       {"retx", "ar", "syn", "m", "p", "nt", "isrod", "dc", "ie", "rel", "hd", "som", "eom"}) {
    EXPECT_EQ(flags[flag], (std::set{0, 1})) << flag;
  }
}

// The frames begin with 14 bytes of Ethernet and 20 bytes of IPv4.
constexpr std::size_t kIpHeaderAt = 14;
constexpr std::size_t kAboveIpAt = kIpHeaderAt + 20;
constexpr std::size_t kIpSourceAt = kIpHeaderAt + 12;

Bytes frame(const std::string& name) {
  for (const auto& f : read_vectors("uet-frame-vectors.json")) {
    if (f["name"] == name) return from_hex(f["hex"].get<std::string>());
  }
  return {};
}

// WIRE 5.2, WIRE 1.1
TEST(FrameVector, UdpFrameHoldsTheVectorBehindUdp) {
  const Bytes bytes = frame("frame_udp_ipv4_write_first");
  ASSERT_GT(bytes.size(), kAboveIpAt + 8);
  const auto udp = load<std::array<be16, 4>>(std::span(bytes).subspan(kAboveIpAt));
  EXPECT_EQ(udp[0], 0x4242);
  EXPECT_EQ(udp[1], 4793);
  EXPECT_EQ(udp[2], bytes.size() - kAboveIpAt);
  const auto packet = std::span(bytes).subspan(kAboveIpAt + 8);
  EXPECT_EQ(to_hex(packet), to_hex(vector_bytes("rud_syn_write_first")));
  EXPECT_TRUE(parse(packet).has_value());
}

// WIRE 5.2, WIRE 1.4
TEST(FrameVector, NativeFrame_HoldsTheVectorAndEndsInItsCrc) {
  const Bytes bytes = frame("frame_native_ipv4_write_last_crc");
  const Bytes vector = vector_bytes("rud_write_last");
  ASSERT_EQ(bytes.size(), kAboveIpAt + 4 + vector.size() + kCrcTrailerBytes);
  EXPECT_EQ(to_hex(std::span(bytes).subspan(kAboveIpAt, 4)), "42420000");
  EXPECT_EQ(to_hex(std::span(bytes).subspan(kAboveIpAt + 4, vector.size())), to_hex(vector));
  EXPECT_EQ(to_hex(std::span(bytes).last(4)), "e3fa3484");
  EXPECT_TRUE(crc_trailer_matches(std::span(bytes).subspan(kIpSourceAt)));
}

// WIRE 3.8: a trailer that was not taken off does not become payload.
TEST(FrameVector, TrailerLeftOnDoesNotBecomePayload) {
  const Bytes bytes = frame("frame_native_ipv4_write_last_crc");
  const auto packet = parse(std::span(bytes).subspan(kAboveIpAt + 4));
  ASSERT_TRUE(packet.has_value());
  SesRequest request;
  ASSERT_TRUE(SesRequest::decode(NextHdr::RequestStd, packet->rest, request));
  EXPECT_EQ(to_hex(request.payload), "3031323334353637");
}

}  // namespace
}  // namespace uet::wire
