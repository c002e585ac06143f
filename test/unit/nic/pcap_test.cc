// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The capture file, read back block by block.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <filesystem>
#include <fstream>
#include <vector>

#include "nic/middleware.h"
#include "nic_testing.h"

namespace uet::nic {
namespace {

using ::testing::HasSubstr;

struct Block {
  std::uint32_t type;
  std::string body;  // without type and the two lengths
};

std::uint32_t u32(const std::string& bytes, std::size_t at) {
  std::uint32_t value = 0;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}
std::uint16_t be16(const std::string& bytes, std::size_t at) {
  return static_cast<std::uint16_t>(static_cast<std::uint8_t>(bytes[at]) << 8 |
                                    static_cast<std::uint8_t>(bytes[at + 1]));
}

std::string read_whole(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

std::vector<Block> read_blocks(const std::string& file) {
  const std::string all = read_whole(file);
  std::vector<Block> blocks;
  std::size_t at = 0;
  while (at + 12 <= all.size()) {
    const std::uint32_t length = u32(all, at + 4);
    EXPECT_EQ(length % 4, 0U);
    if (length < 12 || at + length > all.size()) break;
    EXPECT_EQ(u32(all, at + length - 4), length) << "length at both ends";
    blocks.push_back({u32(all, at), all.substr(at + 8, length - 12)});
    at += length;
  }
  EXPECT_EQ(at, all.size()) << "the file ends with a whole block";
  return blocks;
}

// An enhanced packet block, taken apart.
struct Seen {
  std::uint64_t time_ns;
  std::uint32_t frame_bytes;
  std::string frame;    // as far as kept
  std::string options;  // raw

  explicit Seen(const Block& block)
      : time_ns(std::uint64_t{u32(block.body, 4)} << 32 | u32(block.body, 8)),
        frame_bytes(u32(block.body, 16)),
        frame(block.body.substr(20, u32(block.body, 12))),
        options(block.body.substr(20 + (frame.size() + 3) / 4 * 4)) {
    EXPECT_EQ(block.type, 6U);
  }
};

std::uint16_t internet_checksum(const std::string& bytes) {
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < bytes.size(); i += 2) {
    sum += static_cast<std::uint32_t>(static_cast<std::uint8_t>(bytes[i]) << 8);
    if (i + 1 < bytes.size()) sum += static_cast<std::uint8_t>(bytes[i + 1]);
  }
  while (sum > 0xFFFF) sum = (sum & 0xFFFF) + (sum >> 16);
  return static_cast<std::uint16_t>(sum);
}

const FepAddress kSelf{ipv4(10, 0, 0, 1), 4793};
const FepAddress kPeer{ipv4(10, 0, 0, 2), 4794};

struct Pcap : ::testing::Test {
  Pcap()
      : directory(std::filesystem::temp_directory_path() /
                  ("uet_pcap_test_" + std::to_string(::getpid()))) {
    std::filesystem::create_directory(directory);
    file = directory / "a.pcapng";
  }
  ~Pcap() override { std::filesystem::remove_all(directory); }

  std::unique_ptr<PcapNic> open(FepAddress self = kSelf, std::uint32_t snap = 0) {
    auto inner = std::make_unique<FakeNic>(self);
    fake = inner.get();
    std::string message;
    auto nic = PcapNic::open(std::move(inner), file, "eth7", snap, message);
    EXPECT_TRUE(nic.ok()) << message;
    return nic ? std::move(nic).value() : nullptr;
  }

  std::filesystem::path directory;
  std::string file;
  FakeNic* fake = nullptr;
  PacketSet packets;
  std::array<RxPacket, 8> out;
};

TEST_F(Pcap, HeaderNamesSectionAndInterface) {
  open().reset();
  const auto blocks = read_blocks(file);
  ASSERT_EQ(blocks.size(), 2U);
  EXPECT_EQ(blocks[0].type, 0x0A0D0D0AU);
  EXPECT_EQ(u32(blocks[0].body, 0), 0x1A2B3C4DU);
  EXPECT_EQ(blocks[1].type, 1U);
  EXPECT_EQ(u32(blocks[1].body, 0) & 0xFFFF, 1U) << "Ethernet";
  EXPECT_THAT(blocks[1].body, HasSubstr("eth7"));
  EXPECT_THAT(blocks[1].body, HasSubstr(std::string("\x09\x00\x01\x00\x09", 5))) << "if_tsresol 9";
}

TEST_F(Pcap, SentPacketOverIpv4) {
  auto nic = open();
  packets.add(kPeer, 20, 30, 7);
  packets.last().dscp = 46;
  packets.last().ecn = Ecn::Ect0;
  packets.last().entropy = 999;  // this NIC cannot send from another port, so it did not
  ASSERT_EQ(nic->tx_burst(packets.all()), 1U);
  ASSERT_EQ(fake->sent.size(), 1U);
  nic.reset();

  const auto blocks = read_blocks(file);
  ASSERT_EQ(blocks.size(), 3U);
  const Seen seen(blocks[2]);
  EXPECT_EQ(seen.frame_bytes, 14U + 20 + 8 + 57);
  ASSERT_EQ(seen.frame.size(), seen.frame_bytes);
  EXPECT_GT(seen.time_ns, 1'600'000'000'000'000'000U);
  EXPECT_EQ(be16(seen.frame, 12), 0x0800);
  const std::string ip = seen.frame.substr(14, 20);
  EXPECT_EQ(static_cast<std::uint8_t>(ip[0]), 0x45);
  EXPECT_EQ(static_cast<std::uint8_t>(ip[1]), 46 << 2 | 2);
  EXPECT_EQ(be16(ip, 2), 20 + 8 + 57);
  EXPECT_EQ(ip[9], 17);
  EXPECT_EQ(ip.substr(12), std::string("\x0A\0\0\x01\x0A\0\0\x02", 8));
  EXPECT_EQ(internet_checksum(ip), 0xFFFF);
  EXPECT_EQ(be16(seen.frame, 34), 4793);
  EXPECT_EQ(be16(seen.frame, 36), 4794);
  EXPECT_EQ(be16(seen.frame, 38), 8 + 57);
  EXPECT_EQ(be16(seen.frame, 40), 0);
  const auto bytes = packets.bytes(0);
  EXPECT_EQ(seen.frame.substr(42), std::string(reinterpret_cast<const char*>(bytes.data()), 57));
  EXPECT_EQ(seen.options, std::string("\x02\0\x04\0\x02\0\0\0\0\0\0\0", 12)) << "flags: outbound";
}

TEST_F(Pcap, ReceivedPacketIsInbound) {
  auto nic = open();
  fake->arrive(numbered_bytes(5), kPeer);
  ASSERT_EQ(nic->rx_burst(out, Time{}), 1U);
  EXPECT_EQ(number_of(out[0]), 5U);
  nic.reset();
  const auto blocks = read_blocks(file);
  ASSERT_EQ(blocks.size(), 3U);
  const Seen seen(blocks[2]);
  EXPECT_EQ(seen.frame.substr(26, 8), std::string("\x0A\0\0\x02\x0A\0\0\x01", 8));
  EXPECT_EQ(be16(seen.frame, 34), 4794);
  EXPECT_EQ(seen.options, std::string("\x02\0\x04\0\x01\0\0\0\0\0\0\0", 12)) << "flags: inbound";
}

TEST_F(Pcap, Ipv6HasAValidUdpChecksum) {
  FepAddress self{ipv6_loopback(), 4793};
  auto nic = open(self);
  packets.add(FepAddress{ipv6_loopback(), 4800}, 13, 20, 8);  // pieces of odd length
  packets.last().dscp = 46;
  ASSERT_EQ(nic->tx_burst(packets.all()), 1U);
  nic.reset();
  const auto blocks = read_blocks(file);
  ASSERT_EQ(blocks.size(), 3U);
  const Seen seen(blocks[2]);
  EXPECT_EQ(be16(seen.frame, 12), 0x86DD);
  EXPECT_EQ(be16(seen.frame, 14), 0x6000 | 46 << 6);
  EXPECT_EQ(be16(seen.frame, 18), 8 + 41);
  const std::string pseudo_header =
      seen.frame.substr(22, 32) + std::string("\0\0\0\x31\0\0\0\x11", 8);
  EXPECT_NE(be16(seen.frame, 60), 0);
  EXPECT_EQ(internet_checksum(pseudo_header + seen.frame.substr(54)), 0xFFFF);
}

TEST_F(Pcap, SnapLengthCutsAndTheTrueLengthStays) {
  auto nic = open(kSelf, 101);
  packets.add(kPeer, 20, 5000);
  ASSERT_EQ(nic->tx_burst(packets.all()), 1U);
  nic.reset();
  const auto blocks = read_blocks(file);
  ASSERT_EQ(blocks.size(), 3U);
  EXPECT_EQ(u32(blocks[1].body, 4), 101U);
  const Seen seen(blocks[2]);
  EXPECT_EQ(seen.frame.size(), 101U);
  EXPECT_EQ(seen.frame_bytes, 14U + 20 + 8 + 5020);
}

TEST_F(Pcap, OnlyTheAcceptedPrefixIsWritten) {
  auto nic = open();
  fake->tx_room = 2;
  for (int i = 0; i < 5; ++i) packets.add(kPeer, 20, 10);
  ASSERT_EQ(nic->tx_burst(packets.all()), 2U);
  nic.reset();
  EXPECT_EQ(read_blocks(file).size(), 4U);
}

TEST_F(Pcap, LostPacketCarriesAComment) {
  auto nic = open();
  fake->arrive(numbered_bytes(5), kPeer);
  ASSERT_EQ(nic->rx_burst(out, Time{}), 1U);
  nic->note_arrival(out[0], "lost by fault injection");
  nic.reset();
  const auto blocks = read_blocks(file);
  ASSERT_EQ(blocks.size(), 4U);
  EXPECT_THAT(Seen(blocks[3]).options, HasSubstr("lost by fault injection"));
}

TEST_F(Pcap, MoreThanTheBufferHoldsIsComplete) {
  auto nic = open();
  for (int i = 0; i < 60; ++i) packets.add(kPeer, 20, 60'000);
  ASSERT_EQ(nic->tx_burst(packets.all()), 60U);
  nic.reset();
  const auto blocks = read_blocks(file);
  ASSERT_EQ(blocks.size(), 62U);
  for (std::size_t i = 0; i < 60; ++i) {
    const auto bytes = packets.bytes(i);
    EXPECT_EQ(Seen(blocks[2 + i]).frame.substr(42),
              std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  }
}

// A process that ends without closing it, or hangs, loses nothing.
TEST_F(Pcap, EachBurstIsInTheFileWhenItReturns) {
  auto nic = open();
  packets.add(kPeer, 20, 10);
  ASSERT_EQ(nic->tx_burst(packets.all()), 1U);
  EXPECT_EQ(read_blocks(file).size(), 3U);
}

TEST_F(Pcap, IsForItsOwnerAlone) {
  const auto permissions = [&] { return std::filesystem::status(file).permissions(); };
  open().reset();
  EXPECT_EQ(static_cast<unsigned>(permissions()), 0600U);
  std::filesystem::permissions(file, std::filesystem::perms(0644));
  open().reset();
  EXPECT_EQ(static_cast<unsigned>(permissions()), 0600U) << "one of an earlier run";
}

TEST_F(Pcap, FollowsNoLink) {
  const std::string target = directory / "target";
  std::ofstream(target) << "kept";
  std::filesystem::create_symlink(target, file);
  std::string message;
  EXPECT_FALSE(PcapNic::open(std::make_unique<FakeNic>(kSelf), file, "lo", 0, message).ok());
  EXPECT_THAT(message, HasSubstr("symbolic link"));
  EXPECT_EQ(read_whole(target), "kept");
}

TEST_F(Pcap, ForkedChildWritesNothing) {
  auto nic = open();
  packets.add(kPeer, 20, 10);
  ASSERT_EQ(nic->tx_burst(packets.all()), 1U);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    nic.reset();
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(read_blocks(file).size(), 3U);
}

TEST_F(Pcap, SecondCaptureOfTheSameNameGetsANumber) {
  const auto first = open();
  const auto second = open();
  EXPECT_EQ(first->file_name(), file);
  EXPECT_EQ(second->file_name(), (directory / "a-2.pcapng").string());
}

// A job of many ranks, all with one name.
TEST_F(Pcap, ManyCapturesOfTheSameNameGetNumbers) {
  std::vector<std::unique_ptr<PcapNic>> captures;
  for (int i = 0; i < 130; ++i) captures.push_back(open());
  EXPECT_EQ(captures.back()->file_name(), (directory / "a-130.pcapng").string());
}

TEST_F(Pcap, FileOfAnEarlierRunIsReplaced) {
  std::ofstream(file) << std::string(10'000, 'x');
  open().reset();
  EXPECT_EQ(read_blocks(file).size(), 2U);
}

TEST_F(Pcap, ProcessIdInTheName) {
  file = directory / "%p-%p.pcapng";
  const std::string pid = std::to_string(::getpid());
  EXPECT_EQ(open()->file_name(), (directory / (pid + "-" + pid + ".pcapng")).string());
}

TEST_F(Pcap, UnwritableFileIsRefusedByName) {
  std::string message;
  for (const char* bad : {"/nowhere/a.pcapng", "/dev/full"}) {
    const auto nic = PcapNic::open(std::make_unique<FakeNic>(kSelf), bad, "lo", 0, message);
    ASSERT_FALSE(nic.ok()) << bad;
    EXPECT_EQ(nic.error(), Error::Io);
    EXPECT_THAT(message, HasSubstr(bad));
  }
}

}  // namespace
}  // namespace uet::nic
