// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A capture made of packets, and what tshark with the Lua dissector says of it.
#pragma once

#include <cstddef>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "unit/wire/vectors.h"
#include "wire/frame.h"

namespace uet::wire {

// Whole Ethernet frames, written to a file that goes with this object. Frame numbers begin at 1;
// frames are 1 ms apart.
class Capture {
 public:
  Capture();
  ~Capture();
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  // Returns the number of the frame. `captured`: bytes of it that the file keeps.
  int add_frame(const Bytes& frame, std::size_t captured = SIZE_MAX);
  // `packet`: from the PDS prologue on. With format.crc the trailer is added.
  int add(const FrameFields& fields, const Bytes& packet, const FrameFormat& format = {});

  const std::string& file() const { return file_; }

 private:
  std::string file_;
  int frames_ = 0;
};

// Hosts of the captures; `host` is the last byte of the address.
FrameFields between(std::uint8_t from, std::uint8_t to, std::uint16_t source_port = 0x4242,
                    std::uint16_t destination_port = kUetUdpPort);
FrameFields between_ipv6(std::uint8_t from, std::uint8_t to);

// Where tshark is; empty if this machine has none.
const std::string& tshark_program();

// The output of `tshark OPTIONS` with the dissector; an exception if it fails or complains.
std::string tshark(const std::string& options);
// The output with tshark's own dissector of UET, if it has one.
std::string tshark_alone(const std::string& options);

// By field name ("uet.pds.psn"), the values in one packet as tshark prints them.
using ShownFields = std::map<std::string, std::vector<std::string>>;

// The fields of each packet, read in two passes so that answers are known. `options` as for tshark.
std::vector<ShownFields> shown_fields(const Capture& capture, const std::string& options = "");
// The Info column of each packet.
std::vector<std::string> info_lines(const Capture& capture, const std::string& options = "");

}  // namespace uet::wire
