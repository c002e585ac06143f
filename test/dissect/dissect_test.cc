// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// uet_dissect on captures that PcapNic has written, and the comments of pcapng files of both byte
// orders and of damaged ones.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "capture/pcapng_comments.h"
#include "nic/middleware.h"
#include "tss/key_file.h"
#include "unit/nic/nic_testing.h"

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
  const auto with = lines(" --keys '" + key_file + "'");
  std::filesystem::remove(key_file);
  ASSERT_EQ(without.size(), 1U);
  ASSERT_EQ(with.size(), 1U);
  EXPECT_THAT(without[0], HasSubstr("sdi 2748"));
  EXPECT_THAT(without[0], Not(HasSubstr("CLOSING")));
  EXPECT_THAT(with[0], HasSubstr("sdi 2748"));
  EXPECT_THAT(with[0], HasSubstr("CLOSING"));
  EXPECT_THAT(with[0], HasSubstr("0x4711"));
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
