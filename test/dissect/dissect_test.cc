// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// uet_dissect on captures that PcapNic has written, on pcap files of whole and cut frames over UDP
// and in the native form, and the comments of pcapng files of both byte orders and of damaged ones.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <span>

#include "capture/pcapng_comments.h"
#include "nic/middleware.h"
#include "tss/key_file.h"
#include "uet/wire/ses.h"
#include "unit/nic/nic_testing.h"
#include "wire/frame.h"

namespace uet::nic {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

const FepAddress kSelf{ipv4(10, 0, 0, 1), 4793};
const FepAddress kPeer{ipv4(10, 0, 0, 2), 4793};

struct Dissect : ::testing::Test {
  Dissect()
      : file(std::filesystem::temp_directory_path() /
             ("uet_dissect_test_" + std::to_string(::getpid()) + ".pcapng")) {}
  ~Dissect() override { std::filesystem::remove(file); }

  // The lines that uet_dissect prints for `file`.
  std::vector<std::string> lines(const std::string& options = "") const {
    std::vector<std::string> out;
    FILE* pipe = ::popen((UET_DISSECT " '" + file.string() + "'" + options).c_str(), "r");
    char line[4096];
    while (pipe != nullptr && std::fgets(line, sizeof line, pipe) != nullptr) {
      out.emplace_back(line);
    }
    if (pipe == nullptr || ::pclose(pipe) != 0) ADD_FAILURE() << "uet_dissect failed";
    return out;
  }
  void write(const std::string& bytes) const {
    std::ofstream(file, std::ios::binary).write(bytes.data(), static_cast<int>(bytes.size()));
  }

  std::filesystem::path file;
};

// A pcapng file in either byte order, written block by block.
class Blocks {
 public:
  explicit Blocks(bool big_endian) : big_endian_(big_endian) {
    add(0x0A0D0D0A, number<std::uint32_t>(0x1A2B3C4D) + number<std::uint16_t>(1) +
                        number<std::uint16_t>(0) + std::string(8, '\xFF'));
  }
  void packet(const std::string& data, const std::string& options) {
    std::string body(12, '\0');
    body += number(static_cast<std::uint32_t>(data.size()));
    body += number(static_cast<std::uint32_t>(data.size()));
    add(6, body + padded(data) + options);
  }
  void simple_packet() { add(3, number<std::uint32_t>(0)); }
  std::string option(std::uint16_t code, const std::string& value) const {
    return number(code) + number(static_cast<std::uint16_t>(value.size())) + padded(value);
  }
  const std::string& bytes() const { return bytes_; }

 private:
  static std::string padded(std::string text) {
    text.resize((text.size() + 3) / 4 * 4);
    return text;
  }
  template <class T>
  std::string number(T value) const {
    std::string out;
    for (std::size_t i = 0; i < sizeof(T); ++i) {
      const std::size_t shift = 8 * (big_endian_ ? sizeof(T) - 1 - i : i);
      out += static_cast<char>(value >> shift & 0xFF);
    }
    return out;
  }
  void add(std::uint32_t type, const std::string& body) {
    const std::string length = number(static_cast<std::uint32_t>(body.size() + 12));
    bytes_ += number(type) + length + body + length;
  }
  bool big_endian_;
  std::string bytes_;
};

TEST_F(Dissect, LostPacketIsPrintedWithItsComment) {
  auto inner = std::make_unique<FakeNic>(kSelf);
  FakeNic& fake = *inner;
  std::string message;
  auto nic = PcapNic::open(std::move(inner), file.string(), "eth7", 0, message);
  ASSERT_TRUE(nic.ok()) << message;
  std::array<RxPacket, 2> out;
  fake.arrive(std::vector<std::byte>(60), kPeer);
  ASSERT_EQ(nic.value()->rx_burst(out, Time{}), 1U);
  nic.value()->note_arrival(out[0], "lost by fault injection");
  ASSERT_EQ(nic.value()->rx_burst(out, Time{}), 0U);  // writes the file
  const auto printed = lines();
  ASSERT_EQ(printed.size(), 2U);
  EXPECT_THAT(printed[0], Not(HasSubstr("fault injection")));
  EXPECT_THAT(printed[1], EndsWith("  [lost by fault injection]\n"));
}

// A protected packet with its security header, and with its text if a key file opens it.
TEST_F(Dissect, ProtectedPacketsAreShownWithTheirText) {
  constexpr const char* kHex = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
  const std::string keys = "uet-tss-keys 1\ndomain 0xabc\nmode direct\nkey 1 0 fresh " +
                           std::string(kHex) + "\nactive 1\n";
  tss::KeyFile parsed;
  ASSERT_EQ(tss::parse_key_file(keys, parsed), "");
  tss::SdTable table;
  ASSERT_EQ(tss::apply(parsed, table, Time{}), "");
  std::array<std::byte, 64> header{};
  const std::size_t bytes =
      wire::NackHeader{.nack_code = wire::NackCode::Closing, .nack_psn = Psn{0x4711}}.encode(
          header.data());
  const Slice text{header.data(), static_cast<std::uint32_t>(bytes)};
  std::vector<std::byte> packet(128);
  const auto sealed = table.seal(0xABC, tss::udp_fields(kPeer, kSelf), {&text, 1}, packet);
  ASSERT_EQ(sealed.verdict, tss::SealVerdict::Sealed);
  packet.resize(sealed.bytes);

  auto inner = std::make_unique<FakeNic>(kSelf);
  FakeNic& fake = *inner;
  std::string message;
  auto nic = PcapNic::open(std::move(inner), file.string(), "eth7", 0, message);
  ASSERT_TRUE(nic.ok()) << message;
  std::array<RxPacket, 2> out;
  fake.arrive(packet, kPeer);
  ASSERT_EQ(nic.value()->rx_burst(out, Time{}), 1U);
  ASSERT_EQ(nic.value()->rx_burst(out, Time{}), 0U);  // writes the file

  const std::string key_file = file.string() + ".keys";
  std::ofstream(key_file) << keys;
  const auto without = lines();
  const std::string clear_file = file.string() + ".clear";
  const auto with = lines(" --keys '" + key_file + "' --clear '" + clear_file + "'");
  std::filesystem::rename(clear_file, file);
  const auto clear = lines();
  std::filesystem::remove(key_file);
  ASSERT_EQ(without.size(), 1U);
  ASSERT_EQ(with.size(), 1U);
  EXPECT_THAT(without[0], HasSubstr("sdi 2748"));
  EXPECT_THAT(without[0], Not(HasSubstr("CLOSING")));
  EXPECT_THAT(with[0], HasSubstr("sdi 2748"));
  EXPECT_THAT(with[0], HasSubstr("CLOSING"));
  EXPECT_THAT(with[0], HasSubstr("0x4711"));
  // --clear writes the same packet in clear.
  ASSERT_EQ(clear.size(), 1U);
  EXPECT_THAT(clear[0], Not(HasSubstr("sdi")));
  EXPECT_THAT(clear[0], HasSubstr("CLOSING"));
  const auto addresses = [](const std::string& line) {
    return line.substr(line.find("us  "), line.rfind(":4793") - line.find("us  "));
  };
  EXPECT_EQ(addresses(clear[0]), addresses(with[0]));
}

// A WRITE of one packet with 200 bytes, as an Ethernet frame.
std::vector<std::byte> frame_of_a_write(const wire::FrameFormat& format) {
  wire::RequestHeader pds;
  pds.next_hdr = wire::NextHdr::RequestStd;
  pds.psn = Psn{0x1234};
  wire::SesRequest ses;
  ses.opcode = wire::SesOpcode::Write;
  ses.request_length = 200;
  std::vector<std::byte> packet(wire::kMaxPdsHeaderBytes + wire::kMaxSesHeaderBytes);
  std::size_t length = pds.encode(packet.data());
  length += ses.encode(packet.data() + length);
  packet.resize(length + 200);
  const Slice piece{packet.data(), static_cast<std::uint32_t>(packet.size())};
  wire::FrameFields fields;
  fields.source = kSelf.ip;
  fields.destination = kPeer.ip;
  fields.entropy = 777;
  std::vector<std::byte> frame(wire::kMaxFrameHeaderBytes);
  frame.resize(wire::write_frame_headers(frame.data(), format, fields, {&piece, 1}));
  const auto trailer = wire::frame_trailer(frame, {&piece, 1});
  frame.insert(frame.end(), packet.begin(), packet.end());
  if (format.crc) frame.insert(frame.end(), trailer.begin(), trailer.end());
  return frame;
}

// A file in libpcap's older format, of this host's byte order, of Ethernet frames.
std::string pcap_of(const std::vector<std::vector<std::byte>>& frames) {
  std::string file;
  const auto add = [&](const auto& words) {
    file.append(reinterpret_cast<const char*>(words.data()), words.size() * sizeof words[0]);
  };
  add(std::array<std::uint32_t, 6>{0xA1B2C3D4, 2 | 4 << 16, 0, 0, 65535, 1});
  for (const auto& frame : frames) {
    const auto length = static_cast<std::uint32_t>(frame.size());
    add(std::array<std::uint32_t, 4>{1, 0, length, length});
    add(frame);
  }
  return file;
}

std::vector<std::byte> cut(std::vector<std::byte> frame, std::size_t bytes) {
  frame.resize(frame.size() - bytes);
  return frame;
}

// Over UDP, and in the native form with and without trailer: whole, without 10 bytes of payload,
// and without most of the SES header.
TEST_F(Dissect, WholeAndCutFramesOfEachFormAreShown) {
  for (const bool native : {false, true}) {
    for (const bool crc : {false, true}) {
      if (crc && !native) continue;
      const wire::FrameFormat format{
          .encapsulation = native ? wire::Encapsulation::NativeIp : wire::Encapsulation::Udp,
          .crc = crc,
          .udp_checksum = false};
      const auto whole = frame_of_a_write(format);
      const std::size_t trailer = crc ? wire::kCrcTrailerBytes : 0;
      write(pcap_of({whole, cut(whole, trailer + 10), cut(whole, trailer + 200 + 40)}));
      const auto printed = lines();
      ASSERT_EQ(printed.size(), 3U) << native << crc;
      for (const std::string& line : printed) {
        EXPECT_THAT(line, HasSubstr(native ? "10.0.0.1:777 > 10.0.0.2:native" : "10.0.0.2:4793"));
        EXPECT_THAT(line, HasSubstr("RUD_REQ"));
        EXPECT_THAT(line, HasSubstr("0x1234"));
        EXPECT_THAT(line, Not(HasSubstr("malformed")));
      }
      EXPECT_THAT(printed[0], HasSubstr("payload 200"));
      EXPECT_THAT(printed[0], Not(HasSubstr("missing")));
      EXPECT_THAT(printed[1], HasSubstr("payload 200 missing 10")) << crc;
      EXPECT_THAT(printed[2], HasSubstr("cut short REQUEST_STD"));
    }
  }
}

// A host captures what it sends before its NIC has filled in the checksum of the IPv4 header.
TEST_F(Dissect, UnfinishedIpChecksumIsUet) {
  for (const bool native : {false, true}) {
    auto frame = frame_of_a_write(
        {.encapsulation = native ? wire::Encapsulation::NativeIp : wire::Encapsulation::Udp});
    constexpr std::size_t kChecksum = 14 + 10;
    auto wrong = frame;
    frame[kChecksum] = frame[kChecksum + 1] = std::byte{0};
    wrong[kChecksum] ^= std::byte{1};
    write(pcap_of({frame, wrong}));
    const auto printed = lines();
    ASSERT_EQ(printed.size(), 2U) << native;
    EXPECT_THAT(printed[0], HasSubstr("RUD_REQ"));
    EXPECT_THAT(printed[1], HasSubstr("(1 frames that are not UET)"));
  }
}

TEST_F(Dissect, CommentsAreReadInBothByteOrders) {
  for (const bool big_endian : {false, true}) {
    Blocks blocks(big_endian);
    blocks.packet("abcde", blocks.option(2, "123") + blocks.option(1, "first"));
    blocks.simple_packet();
    blocks.packet("abcd", blocks.option(0, "") + blocks.option(1, "behind the end"));
    blocks.packet("", blocks.option(1, "a\x1B[31mred"));
    write(blocks.bytes());
    PcapngComments comments(file.c_str());
    EXPECT_EQ(comments.next(), "first") << big_endian;
    EXPECT_EQ(comments.next(), "");
    EXPECT_EQ(comments.next(), "");
    EXPECT_EQ(comments.next(), "a.[31mred");
    EXPECT_EQ(comments.next(), "") << "the file has ended";
  }
}

TEST_F(Dissect, DamagedFileHasNoComments) {
  Blocks blocks(false);
  blocks.packet("abcd", blocks.option(1, "first"));
  const std::string whole = blocks.bytes();
  for (std::size_t length = 0; length < whole.size(); ++length) {
    write(whole.substr(0, length));
    EXPECT_EQ(PcapngComments(file.c_str()).next(), "") << length;
  }
  std::string damaged = whole;
  damaged[28 + 28 + 6] = '\x7F';  // the comment's length passes the end of the block
  write(damaged);
  EXPECT_EQ(PcapngComments(file.c_str()).next(), "");
  write(std::string("\xD4\xC3\xB2\xA1", 4) + std::string(100, '\x06'));
  EXPECT_EQ(PcapngComments(file.c_str()).next(), "") << "a file of libpcap's older format";
}

}  // namespace
}  // namespace uet::nic
