// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Captures beside traces, by time and PSN: tools/uet_trace and tools/capture.
#include "uet_trace/captures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "uet_trace/chrome.h"
#include "uet_trace/sources.h"
#include "unit/view/trace_harness.h"
#include "wire/frame.h"

namespace uet::tracing {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using trace::Kind;

constexpr std::int64_t kStart = 990'000'000'000;  // of the clocks of two_ends(), CLOCK_REALTIME

FabricAddress host(std::uint8_t number) {
  FabricAddress ip{};
  ip.bytes = {10, 0, 0, number};
  return ip;
}

// A pcap file of raw IP with nanoseconds.
class TraceCaptures : public testing::Test {
 protected:
  TraceCaptures()
      : file_(std::filesystem::temp_directory_path() /
              ("uet_trace_captures_" + std::to_string(::getpid()) + ".pcap")) {
    for (const std::uint32_t word : {0xA1B23C4DU, 0x00040002U, 0U, 0U, 65535U, 101U}) add(word);
  }
  ~TraceCaptures() override { std::filesystem::remove(file_); }

  void add(std::uint32_t word) { bytes_.append(reinterpret_cast<const char*>(&word), 4); }
  // A request from 10.0.0.`from` to 10.0.0.`to`.
  void packet(std::int64_t time_ns, std::uint8_t from, std::uint8_t to, std::uint16_t pdc,
              std::uint32_t psn) {
    frame(time_ns, from, to,
          wire::RequestHeader{.psn = Psn{psn}, .spdcid = PdcId{pdc}, .dpdcid = PdcId{9}});
  }
  void frame(std::int64_t time_ns, std::uint8_t from, std::uint8_t to, const auto& what) {
    std::array<std::byte, 64> header{};
    const std::size_t length = what.encode(header.data());
    const std::array<Slice, 1> pieces{Slice{header.data(), static_cast<std::uint32_t>(length)}};
    std::array<std::byte, wire::kMaxFrameHeaderBytes> front{};
    wire::FrameFields fields;
    fields.source = host(from);
    fields.destination = host(to);
    const std::size_t front_bytes =
        wire::write_frame_headers(front.data(), {.udp_checksum = false}, fields, pieces);
    constexpr std::size_t kEthernet = 14;
    const auto bytes = static_cast<std::uint32_t>(front_bytes - kEthernet + length);
    add(static_cast<std::uint32_t>(time_ns / 1'000'000'000));
    add(static_cast<std::uint32_t>(time_ns % 1'000'000'000));
    add(bytes);
    add(bytes);
    bytes_.append(reinterpret_cast<const char*>(front.data()) + kEthernet, front_bytes - kEthernet);
    bytes_.append(reinterpret_cast<const char*>(header.data()), length);
  }
  Sources read() const {
    std::ofstream(file_, std::ios::binary) << bytes_;
    return read_sources({file_.string()});
  }

  std::filesystem::path file_;
  std::string bytes_;
};

TEST_F(TraceCaptures, Ack_NamesThePacketThatItAnswers) {
  packet(kStart, 1, 2, 7, 100);
  frame(kStart + 1000, 2, 1,
        wire::AckHeader{.ce = true, .ack_psn_offset = 3, .cack_psn = Psn{97}, .dpdcid = PdcId{7}});
  const Sources sources = read();
  ASSERT_THAT(sources.captures, SizeIs(1));
  ASSERT_THAT(sources.captures[0].packets, SizeIs(2));
  EXPECT_TRUE(sources.captures[0].packets[0].request);
  const CapturedPacket& ack = sources.captures[0].packets[1];
  EXPECT_TRUE(ack.ack && ack.marked && !ack.has_psn);
  EXPECT_EQ(ack.acked_pdc, 7);
  EXPECT_EQ(ack.acked_psn, 100U);
  EXPECT_EQ(ack.cack, 97U);
}

TEST_F(TraceCaptures, Merge_PacketNamesItsSender) {
  packet(kStart + 5'500, 1, 2, 0x4A21, 1);
  packet(kStart + 7'500, 2, 1, 7, 50);
  const Sources sources = read();
  ASSERT_THAT(sources.problems, IsEmpty());
  ASSERT_THAT(sources.captures, SizeIs(1));
  const auto dumps = two_ends(0);
  const auto events = merge(dumps, sources.captures);
  ASSERT_THAT(events, SizeIs(6));
  ASSERT_NE(events[1].packet, nullptr);
  EXPECT_EQ(events[1].packet->psn, 1U);
  EXPECT_THAT(line_of(events[1], sources.captures[0]),
              testing::AllOf(HasSubstr("10.0.0.1 > 10.0.0.2:4793 RUD_REQ"),
                             EndsWith(", sent by process 4711, pdc 0x4a21, 0.5 us earlier")));
  EXPECT_THAT(events[4].note, EndsWith(", sent by process 815, pdc 0x7, 0.5 us earlier"));
  const auto json = nlohmann::json::parse(to_chrome(events, dumps, sources.captures));
  EXPECT_THAT(json.dump(), HasSubstr("capture " + file_.string()));
}

TEST_F(TraceCaptures, Merge_ClockOfTheCaptureIsAligned) {
  packet(kStart + 3'000'005'500, 1, 2, 0x4A21, 1);
  packet(kStart + 3'000'007'500, 2, 1, 7, 50);
  const Sources sources = read();
  const auto events = merge(two_ends(0), sources.captures);
  ASSERT_THAT(events, SizeIs(6));
  ASSERT_NE(events[1].packet, nullptr);
  EXPECT_EQ(events[1].realtime_ns, kStart + 5'500);
  EXPECT_NE(events[4].packet, nullptr);
}

TEST_F(TraceCaptures, Merge_PacketThatTheCaptureLacks) {
  packet(kStart + 1'000, 1, 2, 0x4A21, 77);
  packet(kStart + 60'000'000, 1, 2, 0x4A21, 1);  // sent again
  auto dumps = two_ends(0);
  dumps[0].records.push_back(event(59'999'000, Kind::Sent, 0x4A21, 1));
  const Sources sources = read();
  const auto events = merge(dumps, sources.captures);
  ASSERT_THAT(events, SizeIs(7));
  EXPECT_EQ(events[1].record.psn, 1U);
  EXPECT_EQ(events[1].note, ", " + file_.string() + " has 0 of 1 packet");
  EXPECT_EQ(events[5].record.kind, Kind::Sent);
  EXPECT_THAT(events[5].note, IsEmpty());
}

TEST_F(TraceCaptures, DamagedFile_IsReadUpToTheDamage) {
  packet(kStart, 1, 2, 0x4A21, 1);
  packet(kStart, 1, 2, 0x4A21, 2);
  bytes_.resize(bytes_.size() - 3);
  const Sources sources = read();
  ASSERT_THAT(sources.captures, SizeIs(1));
  EXPECT_THAT(sources.captures[0].packets, SizeIs(1));
  ASSERT_THAT(sources.problems, SizeIs(1));
  EXPECT_THAT(sources.problems[0], HasSubstr("damaged after frame 1: truncated"));
}

TEST_F(TraceCaptures, UnusableFile_IsRefusedWithTheReason) {
  EXPECT_THAT(read().problems, testing::ElementsAre(EndsWith(": holds no UET packet")));
  bytes_[20] = 113;  // Linux cooked
  EXPECT_THAT(read().problems,
              testing::ElementsAre(EndsWith("link type 113 is neither Ethernet nor raw IP")));
  bytes_.resize(10);
  EXPECT_THAT(read().problems, testing::ElementsAre(HasSubstr("truncated")));
  bytes_ = "text";
  EXPECT_THAT(read().problems,
              testing::ElementsAre(EndsWith(": holds no trace, and is no capture")));
  EXPECT_THAT(read().captures, IsEmpty());
}

}  // namespace
}  // namespace uet::tracing
