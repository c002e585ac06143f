// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Who is the judge of our CRC trailers, native frames and IPv6? Wireshark's own dissector of UET,
// where a Wireshark has it, and our Lua dissector under the same questions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "wire/frame.h"
#include "wireshark/tshark.h"

namespace uet::wire {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

using Tshark = std::string (*)(const std::string&);

struct Referee {
  Tshark tshark;
  std::string options;  // that say which packets are UET, and that they end with a CRC
};

constexpr const char* kWithNative = " -d ip.proto==253,uet.entropy";

// Numbers of the frames that the dissector finds a fault in: a warning at least.
std::vector<std::string> faulty(const Capture& capture, const Referee& referee) {
  constexpr const char* kFault = "_ws.malformed || _ws.expert.severity >= 6291456";
  std::istringstream text(referee.tshark("-2 -o udp.ignore_ipv6_zero_checksum:TRUE -r " +
                                         capture.file() + " " + referee.options + " -Y '" + kFault +
                                         "' -T fields -e frame.number"));
  std::vector<std::string> frames;
  for (std::string line; std::getline(text, line);) frames.push_back(line);
  return frames;
}

// How many frames it takes for UET.
std::size_t recognized(const Capture& capture, const Referee& referee) {
  std::istringstream text(referee.tshark("-2 -o udp.ignore_ipv6_zero_checksum:TRUE -r " +
                                         capture.file() + " " + referee.options +
                                         " -Y uet -T fields -e frame.number"));
  std::size_t count = 0;
  for (std::string line; std::getline(text, line);) ++count;
  return count;
}

// One packet in both encapsulations, over IPv4 and IPv6, each with a CRC; then each with one bit of
// its payload flipped.
struct Frames {
  Frames() {
    for (const bool good : {true, false}) {
      for (const Encapsulation form : {Encapsulation::Udp, Encapsulation::NativeIp}) {
        for (const bool ipv6 : {false, true}) add(form, ipv6, good);
      }
    }
  }
  void add(Encapsulation form, bool ipv6, bool good) {
    const Bytes packet = vector_bytes("rud_syn_write_first");
    const Slice piece{packet.data(), static_cast<std::uint32_t>(packet.size())};
    FrameFormat format;
    format.encapsulation = form;
    format.crc = true;
    format.udp_checksum = false;
    Bytes frame(kMaxFrameHeaderBytes);
    const FrameFields fields = ipv6 ? between_ipv6(1, 2) : between(1, 2);
    frame.resize(write_frame_headers(frame.data(), format, fields, std::span(&piece, 1)));
    const auto trailer = frame_trailer(frame, std::span(&piece, 1));
    frame.insert(frame.end(), packet.begin(), packet.end());
    if (!good) frame.back() ^= std::byte{1};
    frame.insert(frame.end(), trailer.begin(), trailer.end());
    capture.add_frame(frame);
    ++count;
  }
  Capture capture;
  std::size_t count = 0;
};

void expect_true_crcs(const Referee& referee) {
  const Frames frames;
  EXPECT_EQ(recognized(frames.capture, referee), frames.count);
  EXPECT_THAT(faulty(frames.capture, referee), ElementsAre("5", "6", "7", "8"));
}

TEST(Referee, Wire14_OurDissector_FindsOnlyFalseTrailers) {
  if (tshark_program().empty()) GTEST_SKIP() << "tshark is not installed: apt-get install tshark";
  expect_true_crcs({tshark, "-o uet.crc:always"});
}

TEST(Referee, Wire14_Wireshark_FindsOnlyFalseTrailers) {
  if (tshark_program().empty()) GTEST_SKIP() << "tshark is not installed: apt-get install tshark";
  const std::string preferences = tshark_alone("-G currentprefs");
  for (const char* needed : {"uet.has_crc:", "uet.validate_crc:"}) {
    if (preferences.find(needed) == std::string::npos) {
      GTEST_SKIP() << "this tshark has no dissector of UET that checks a CRC (preference " << needed
                   << " is not among 'tshark -G currentprefs')";
    }
  }
  expect_true_crcs(
      {tshark_alone, std::string("-o uet.has_crc:TRUE -o uet.validate_crc:TRUE") + kWithNative});
}

// Wireshark 4.6 has a dissector of UET without CRC.
TEST(Referee, Wire11_Wireshark_NoFaultWithoutTrailer) {
  if (tshark_program().empty()) GTEST_SKIP() << "tshark is not installed: apt-get install tshark";
  if (("\n" + tshark_alone("-G protocols")).find("\tUET\tuet\n") == std::string::npos) {
    GTEST_SKIP() << "this tshark has no dissector of UET ('tshark -G protocols' names none)";
  }
  Capture capture;
  FrameFormat native;
  native.encapsulation = Encapsulation::NativeIp;
  const std::vector<FrameFields> both = {between(1, 2), between_ipv6(1, 2)};
  for (const FrameFields& fields : both) {
    for (const FrameFormat& format : {FrameFormat{}, native}) {
      capture.add(fields, vector_bytes("rud_syn_write_first"), format);
    }
  }
  const Referee referee{tshark_alone, kWithNative};
  EXPECT_EQ(recognized(capture, referee), 4U);
  EXPECT_THAT(faulty(capture, referee), IsEmpty());
}

}  // namespace
}  // namespace uet::wire
