// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// scripts/wireshark/uet.lua in tshark: every field of every vector of WIRE 5 and no other; the line
// of the dissector in C++ for these and for damaged packets; which packet answers which.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "base/rng.h"
#include "uet/wire/pds.h"
#include "wire/dissect.h"
#include "wireshark/tshark.h"

namespace uet::wire {
namespace {

using nlohmann::json;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Key;
using testing::Not;
using testing::StartsWith;

constexpr const char* kTssInClear = "-o uet.tss_clear:TRUE";
constexpr const char* kCrcAlways = "-o uet.crc:always";

// Fields that are concluded, not read, or that no vector has: padding, trailer, native form.
const std::set<std::string> kNotInVectors = {
    "uet.pds.clear_psn", "uet.pds.start_psn",     "uet.pds.ack_psn",
    "uet.pds.sack_base", "uet.entropy",           "uet.crc",
    "uet.crc_ok",        "uet.bad_crc",           "uet.malformed",
    "uet.rest",          "uet.encrypted",         "uet.request_in",
    "uet.answer_in",     "uet.retransmission_of", "uet.answer_time",
    "uet.acked_in",      "uet.read_in",           "uet.data_in",
    "uet.pds.neg_type",  "uet.pds.neg_words",     "uet.pds.neg_features",
};

class Wireshark : public testing::Test {
 protected:
  void SetUp() override {
    if (tshark_program().empty()) {
      GTEST_SKIP() << "tshark is not installed: apt-get install tshark";
    }
  }
};

// "0x00ff", "0x00FF", "255", "ff" and "00:ff" as the same number of digits allow: without
// punctuation and leading zeros.
std::string digits_of(std::string text) {
  if (text.starts_with("0x")) text.erase(0, 2);
  std::erase(text, ':');
  text.erase(0, std::min(text.find_first_not_of('0'), text.size() - 1));
  return text;
}

// The value that a vector states, as tshark shows it: hexadecimal or decimal is the field's choice.
bool is_shown(const json& stated, const std::string& shown) {
  if (stated.is_string()) return digits_of(stated.get<std::string>()) == digits_of(shown);
  const std::string decimal = std::to_string(stated.get<std::int64_t>());
  if (!shown.starts_with("0x")) {
    return shown == decimal || (decimal == "1" && shown == "True") ||
           (decimal == "0" && shown == "False");
  }
  return std::to_string(std::stoull(shown, nullptr, 16)) == decimal;
}

// "uet.pds.psn" and its stated value, for all fields of a vector.
void flatten(const json& stated, const std::string& prefix, std::map<std::string, json>& fields) {
  for (const auto& [key, value] : stated.items()) {
    if (value.is_object()) {
      flatten(value, prefix + key + ".", fields);
    } else if (key.ends_with("_hex")) {
      if (value != "") fields[prefix + key.substr(0, key.size() - 4)] = value;
    } else {
      fields[prefix + key] = value;
    }
  }
}

std::map<std::string, json> stated_fields(const json& vector) {
  std::map<std::string, json> fields;
  flatten(vector["fields"], "uet.", fields);
  return fields;
}

void add_vectors(Capture& capture) {
  for (const json& vector : wire_vectors()) {
    capture.add(between(1, 2), from_hex(vector["hex"].get<std::string>()));
  }
}

TEST_F(Wireshark, ShowsEveryFieldOfEveryVectorAndNoOther) {
  Capture capture;
  add_vectors(capture);
  const auto packets = shown_fields(capture, kTssInClear);
  ASSERT_EQ(packets.size(), wire_vectors().size());
  for (std::size_t i = 0; i < packets.size(); ++i) {
    SCOPED_TRACE(wire_vectors()[i]["name"].get<std::string>());
    const auto stated = stated_fields(wire_vectors()[i]);
    EXPECT_GT(stated.size(), 2U);
    for (const auto& [name, value] : stated) {
      const auto shown = packets[i].find(name);
      ASSERT_NE(shown, packets[i].end()) << name << " is not shown";
      ASSERT_EQ(shown->second.size(), 1U) << name;
      EXPECT_TRUE(is_shown(value, shown->second[0]))
          << name << ": " << value << " shown as " << shown->second[0];
    }
    for (const auto& [name, values] : packets[i]) {
      if (!name.starts_with("uet.") || kNotInVectors.contains(name)) continue;
      EXPECT_TRUE(stated.contains(name)) << name << " = " << values[0] << " is not there";
    }
  }
}

TEST_F(Wireshark, HasNoFieldThatNoVectorShows) {
  std::set<std::string> unseen;
  std::istringstream lines(tshark("-G fields"));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream columns(line);
    std::string kind, title, name;
    std::getline(std::getline(std::getline(columns, kind, '\t'), title, '\t'), name, '\t');
    if (kind == "F" && name.starts_with("uet.")) unseen.insert(name);
  }
  EXPECT_GT(unseen.size(), 80U);
  for (const json& vector : wire_vectors()) {
    for (const auto& [name, value] : stated_fields(vector)) unseen.erase(name);
  }
  EXPECT_EQ(unseen, kNotInVectors);
}

TEST_F(Wireshark, LineOfEveryVectorIsThatOfTheDissectorInCpp) {
  Capture capture;
  add_vectors(capture);
  const auto lines = info_lines(capture);
  ASSERT_EQ(lines.size(), wire_vectors().size());
  for (std::size_t i = 0; i < lines.size(); ++i) {
    EXPECT_EQ(lines[i], dissect(from_hex(wire_vectors()[i]["hex"].get<std::string>())));
  }
}

// Changed bytes bring every number of every enumeration sooner or later; cut packets the lengths.
TEST_F(Wireshark, LineOfDamagedPacketsIsThatOfTheDissectorInCpp) {
  constexpr int kPackets = 4000;
  Rng rng(1);
  Capture capture;
  std::vector<std::string> expected;
  while (expected.size() < kPackets) {
    const json& vector = wire_vectors()[rng.below(wire_vectors().size())];
    Bytes packet = from_hex(vector["hex"].get<std::string>());
    if (rng.chance(0.2)) packet.resize(rng.between(1, packet.size()));
    for (std::uint64_t changes = rng.between(1, 3); changes > 0; --changes) {
      const std::size_t place = rng.below(std::min<std::size_t>(packet.size(), 60));
      packet[place] = static_cast<std::byte>(rng.next());
    }
    capture.add(between(1, 2), packet);
    expected.push_back(dissect(packet));
  }
  const auto lines = info_lines(capture);
  ASSERT_EQ(lines.size(), expected.size());
  for (std::size_t i = 0; i < lines.size(); ++i) ASSERT_EQ(lines[i], expected[i]) << i;
}

TEST_F(Wireshark, ShowsTheTwoWholeFrames) {
  Capture capture;
  for (const json& frame : read_vectors("uet-frame-vectors.json")) {
    capture.add_frame(from_hex(frame["hex"].get<std::string>()));
  }
  const auto packets = shown_fields(capture);
  ASSERT_EQ(packets.size(), 2U);
  EXPECT_EQ(packets[0].count("uet.crc"), 0U);
  EXPECT_THAT(packets[0].at("uet.pds.psn"), ElementsAre("0x00010000"));
  EXPECT_THAT(packets[1].at("uet.entropy"), ElementsAre("0x4242"));
  EXPECT_THAT(packets[1].at("uet.crc"), ElementsAre("0x8434fae3"));
  EXPECT_THAT(packets[1].at("uet.crc_ok"), ElementsAre("1"));
  EXPECT_THAT(packets[1].at("uet.payload"), ElementsAre("30:31:32:33:34:35:36:37"));
}

TEST_F(Wireshark, ChecksTheCrcOfBothFormsAndFamilies) {
  const Bytes packet = vector_bytes("rud_syn_write_first");
  FrameFormat udp;
  udp.crc = true;
  FrameFormat native = udp;
  native.encapsulation = Encapsulation::NativeIp;
  Capture capture;
  capture.add(between(1, 2), packet, udp);
  capture.add(between_ipv6(1, 2), packet, udp);
  capture.add(between(1, 2), packet, native);
  capture.add(between_ipv6(1, 2), packet, native);
  for (const ShownFields& shown : shown_fields(capture, kCrcAlways)) {
    EXPECT_THAT(shown.at("uet.crc_ok"), ElementsAre("1"));
    // The trailer is not taken for data of the first packet of a longer message.
    EXPECT_THAT(shown.at("uet.payload")[0], StartsWith("00:01:02"));
    EXPECT_EQ(shown.at("uet.payload")[0].size(), 16U * 3 - 1);
  }
}

TEST_F(Wireshark, TellsAWrongCrc) {
  Bytes frame = from_hex(read_vectors("uet-frame-vectors.json")[1]["hex"].get<std::string>());
  frame[frame.size() - 6] ^= std::byte{1};
  Capture capture;
  capture.add_frame(frame);
  const auto packets = shown_fields(capture);
  EXPECT_THAT(packets.at(0).at("uet.crc_ok"), ElementsAre("0"));
  EXPECT_THAT(packets[0], Contains(Key("uet.bad_crc")));
}

TEST_F(Wireshark, DoesNotReadWhatIsEncrypted) {
  Capture capture;
  capture.add(between(1, 2), vector_bytes("tss_ssi_write"));
  const auto packets = shown_fields(capture);
  EXPECT_THAT(packets.at(0), Not(Contains(Key("uet.pds.psn"))));
  EXPECT_THAT(packets[0].at("uet.tss.ssi"), ElementsAre("0x0a0b0c0d"));
  EXPECT_THAT(packets[0].at("uet.encrypted")[0], StartsWith("10:88:"));
  EXPECT_THAT(packets[0].at("uet.icv"),
              ElementsAre("f0:f1:f2:f3:f4:f5:f6:f7:f8:f9:fa:fb:fc:fd:fe:ff"));
}

TEST_F(Wireshark, ReadsPacketsOfWhichTheCaptureKeptTheBeginning) {
  const Bytes packet = vector_bytes("ack_read_response");
  Capture whole;
  whole.add(between(1, 2), packet);
  Bytes frame(14 + 20 + 8 + packet.size());
  const Slice piece{packet.data(), static_cast<std::uint32_t>(packet.size())};
  const auto headers = write_frame_headers(frame.data(), {}, between(1, 2), std::span(&piece, 1));
  std::copy(packet.begin(), packet.end(), frame.begin() + static_cast<std::ptrdiff_t>(headers));
  Capture cut;
  cut.add_frame(frame, frame.size() - 30);
  EXPECT_THAT(info_lines(cut), ElementsAre(info_lines(whole).at(0) + " missing 30"));
  EXPECT_THAT(info_lines(cut), ElementsAre(dissect(std::span(packet).first(packet.size() - 30))));
  EXPECT_THAT(shown_fields(cut).at(0).at("uet.payload"), ElementsAre("00:01"));
}

// Processes that share an address listen on ports where other protocols are at home.
TEST_F(Wireshark, KnowsPacketsOfTheOtherPortsByTheirForm) {
  const Bytes packet = vector_bytes("rud_syn_write_first");
  const Bytes dns_query = from_hex("000000000001000000000000016103636f6d0000010001");
  Capture capture;
  capture.add(between(1, 2, 4793, 4801), packet);
  capture.add(between(1, 2, 5353, 5353), dns_query);
  capture.add(between(1, 2, 40000, 4900), dns_query);
  const auto lines = info_lines(capture);
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[0], dissect(packet));
  EXPECT_THAT(lines[1], HasSubstr("Standard query"));
  EXPECT_THAT(lines[2], Not(HasSubstr("malformed")));
}

TEST_F(Wireshark, EveryPortOfTheOptionIsUet) {
  const Bytes packet = vector_bytes("cp_close");
  Capture capture;
  capture.add(between(1, 2, 40000, 49150), packet);
  EXPECT_THAT(info_lines(capture), ElementsAre(Not(StartsWith("CP"))));
  EXPECT_THAT(info_lines(capture, "-o uet.ports:4793,49150"), ElementsAre(dissect(packet)));
}

// ---- which packet answers which -----------------------------------------------------------------

Bytes bytes_of(std::size_t length, std::size_t written, std::byte* out) {
  EXPECT_LE(written, length);
  return {out, out + written};
}

template <class Header>
Bytes encoded(const Header& header) {
  std::array<std::byte, 64> out;
  return bytes_of(out.size(), header.encode(out.data()), out.data());
}

Bytes request(std::uint32_t psn, bool retx = false, std::uint16_t spdcid = 0x11) {
  RequestHeader header;
  header.type = PdsType::RudReq;
  header.next_hdr = NextHdr::None;
  header.psn = Psn{psn};
  header.spdcid = PdcId{spdcid};
  header.dpdcid = PdcId{0x22};
  header.retx = retx;
  return encoded(header);
}

Bytes ack(std::uint32_t cack_psn, std::uint32_t psn, bool retx = false,
          std::uint16_t dpdcid = 0x11) {
  AckHeader header;
  header.type = PdsType::Ack;
  header.cack_psn = Psn{cack_psn};
  header.ack_psn_offset = static_cast<std::int16_t>(psn - cack_psn);
  header.spdcid = PdcId{0x22};
  header.dpdcid = PdcId{dpdcid};
  header.retx = retx;
  return encoded(header);
}

std::string link(const std::vector<ShownFields>& packets, int frame, const std::string& field) {
  const ShownFields& shown = packets.at(static_cast<std::size_t>(frame - 1));
  const auto found = shown.find("uet." + field);
  return found == shown.end() ? "" : found->second.at(0);
}

TEST_F(Wireshark, MatchesRequestAndAck) {
  Capture capture;
  const int sent = capture.add(between(1, 2), request(1000));
  capture.add(between(1, 2), request(1001));
  const int answer = capture.add(between(2, 1), ack(1000, 1000));
  const auto packets = shown_fields(capture);
  EXPECT_EQ(link(packets, answer, "request_in"), std::to_string(sent));
  EXPECT_EQ(link(packets, sent, "answer_in"), std::to_string(answer));
  EXPECT_EQ(std::stod(link(packets, sent, "answer_time")), 0.002);
  EXPECT_EQ(link(packets, 2, "answer_in"), "");
  EXPECT_EQ(link(packets, 2, "acked_in"), "");
}

TEST_F(Wireshark, TellsWhichAckCoversPacketsThatNoneAnswers) {
  AckHeader sack;
  sack.type = PdsType::AckCc;
  sack.cack_psn = Psn{0xFFFFFFFF};
  sack.ack_psn_offset = 5;
  sack.sack_psn_offset = 1;
  sack.sack_bitmap = 0b010010;  // PSN 1 and 4
  sack.spdcid = PdcId{0x22};
  sack.dpdcid = PdcId{0x11};
  Capture capture;
  for (std::uint32_t psn : {0xFFFFFFFEU, 0xFFFFFFFFU, 0U, 1U, 4U}) {
    capture.add(between(1, 2), request(psn));
  }
  const int with_sack = capture.add(between(2, 1), encoded(sack));
  const int last = capture.add(between(2, 1), ack(2, 2));
  const auto packets = shown_fields(capture);
  const std::string first_ack = std::to_string(with_sack);
  EXPECT_EQ(link(packets, 1, "acked_in"), first_ack);
  EXPECT_EQ(link(packets, 2, "acked_in"), first_ack);
  EXPECT_EQ(link(packets, 3, "acked_in"), std::to_string(last));
  EXPECT_EQ(link(packets, 4, "acked_in"), first_ack);
  EXPECT_EQ(link(packets, 5, "answer_in"), first_ack);
}

TEST_F(Wireshark, MatchesRetransmissionsAndTheirAcks) {
  Capture capture;
  capture.add(between(1, 2), request(1000));
  capture.add(between(1, 2), request(1000, /*retx=*/true));
  capture.add(between(2, 1), ack(1000, 1000, /*retx=*/true));
  capture.add(between(2, 1), ack(1000, 1000));
  const auto packets = shown_fields(capture);
  EXPECT_EQ(link(packets, 2, "retransmission_of"), "1");
  EXPECT_EQ(link(packets, 3, "request_in"), "2");
  EXPECT_EQ(link(packets, 4, "request_in"), "1");
  EXPECT_EQ(link(packets, 1, "retransmission_of"), "");
}

// Two processes at one address, each with its own port, happen to use the same ids.
TEST_F(Wireshark, MatchesByPortAmongProcessesThatShareAnAddress) {
  Capture capture;
  capture.add(between(1, 2, 4793, 4793), request(1000));
  capture.add(between(1, 2, 4794, 4793), request(1000));
  capture.add(between(2, 1, 4793, 4793), ack(1000, 1000));
  capture.add(between(2, 1, 4793, 4794), ack(1000, 1000));
  const auto packets = shown_fields(capture);
  EXPECT_EQ(link(packets, 3, "request_in"), "1");
  EXPECT_EQ(link(packets, 4, "request_in"), "2");
  EXPECT_EQ(link(packets, 2, "retransmission_of"), "");
}

TEST_F(Wireshark, MatchesNacksControlPacketsProbesAndRudi) {
  NackHeader nack;
  nack.type = PdsType::Nack;
  nack.nack_code = NackCode::Trimmed;
  nack.nack_psn = Psn{1000};
  nack.dpdcid = PdcId{0x11};
  ControlHeader close;
  close.ctl_type = CpType::Close;
  close.psn = Psn{1001};
  close.spdcid = PdcId{0x11};
  close.dpdcid = PdcId{0x22};
  Capture capture;
  capture.add(between(1, 2), request(1000));
  capture.add(between(2, 1), encoded(nack));
  capture.add(between(1, 2), encoded(close));
  capture.add(between(2, 1), ack(1001, 1001));
  capture.add(between(1, 2), vector_bytes("cp_probe"));
  capture.add(between(2, 1), vector_bytes("ack_to_probe"));
  capture.add(between(1, 2), vector_bytes("rudi_write_request"));
  capture.add(between(2, 1), vector_bytes("rudi_response"));
  capture.add(between(2, 1), vector_bytes("nack_rudi"));
  const auto packets = shown_fields(capture);
  EXPECT_EQ(link(packets, 2, "request_in"), "1");
  EXPECT_EQ(link(packets, 4, "request_in"), "3");
  EXPECT_EQ(link(packets, 6, "request_in"), "5");
  EXPECT_EQ(link(packets, 8, "request_in"), "7");
  EXPECT_EQ(link(packets, 9, "request_in"), "7");
  EXPECT_EQ(link(packets, 7, "answer_in"), "8");
}

TEST_F(Wireshark, Pds215_ShowsANegotiationAndItsAnswer) {
  const Bytes packet = from_hex(
      "5c880000000003e90011002201020000"
      "00000001");
  Capture capture;
  capture.add(between(1, 2), packet);
  capture.add(between(2, 1), ack(1001, 1001));
  const auto packets = shown_fields(capture);
  EXPECT_EQ(packets[0].at("uet.pds.neg_type"), std::vector<std::string>{"1"});
  EXPECT_EQ(packets[0].at("uet.pds.neg_words"), std::vector<std::string>{"2"});
  EXPECT_EQ(packets[0].at("uet.pds.neg_features"), std::vector<std::string>{"0x00000001"});
  EXPECT_EQ(link(packets, 2, "request_in"), "1");
  EXPECT_EQ(info_lines(capture)[0], dissect(packet));
}

TEST_F(Wireshark, MatchesReadsWithDataThatComesAsARequest) {
  Bytes second = vector_bytes("rud_read_request");  // the second half of it, as a packet of its own
  constexpr std::size_t kSes = 12;
  second[7] = std::byte{0x0F};         // psn
  second[kSes + 1] = std::byte{0x0A};  // REL, EOM
  second[kSes + 35] = std::byte{16};   // payload_length
  second[kSes + 39] = std::byte{16};   // message_offset
  Capture capture;
  capture.add(between(1, 2), vector_bytes("rud_read_request"));
  capture.add(between(1, 2), second);
  capture.add(between(2, 1), vector_bytes("rud_read_response_reverse"));
  const auto packets = shown_fields(capture);
  EXPECT_EQ(link(packets, 3, "read_in"), "2");
  EXPECT_EQ(link(packets, 2, "data_in"), "3");
  EXPECT_EQ(link(packets, 1, "data_in"), "");
}

}  // namespace
}  // namespace uet::wire
