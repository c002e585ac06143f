// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The UET packets of a capture file (pcap or pcapng), one by one. libpcap reads the file, the
// module wire decodes the frames. A damaged file is reported, never followed.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "capture/pcapng_comments.h"
#include "wire/frame.h"

struct pcap;
struct pcap_dumper;

namespace uet {

struct CapturePacket {
  std::uint64_t frame_number = 0;  // in the file, from 1
  std::int64_t realtime_ns = 0;
  wire::ParsedFrame frame;  // valid until the next packet is read
  bool native = false;      // without UDP
  std::string comment;      // of the packet in the file
};

class CaptureReader {
 public:
  // `protocol`: IP protocol number of packets without UDP. nullopt, and `why` says the reason: the
  // file cannot be read, is no capture, or its link type is neither Ethernet nor raw IP.
  static std::optional<CaptureReader> open(const std::string& file, std::string& why,
                                           std::uint8_t protocol = wire::kExperimentalProtocol);

  // The next UET packet; frames of other kinds are passed over. nullopt: the file ends here, or
  // problem() says why it cannot be read further.
  std::optional<CapturePacket> next();
  // Frames that next() has passed over.
  std::uint64_t others() const { return others_; }
  // Empty, or what is wrong with the file.
  const std::string& problem() const { return problem_; }

 private:
  struct Close {
    void operator()(pcap* capture) const;
  };
  CaptureReader(pcap* capture, const std::string& file, std::uint8_t protocol);
  bool read_frame(std::span<const std::byte> frame, CapturePacket& packet);

  std::unique_ptr<pcap, Close> capture_;
  PcapngComments comments_;
  bool ethernet_ = false;
  std::uint8_t protocol_;
  bool crc_ = false;  // the last whole packet without UDP had a CRC trailer
  std::uint64_t frames_ = 0;
  std::uint64_t others_ = 0;
  std::string problem_;
};

// Writes packets to a pcap file that Wireshark reads: frames of Ethernet, without MAC addresses.
class CaptureWriter {
 public:
  // nullopt, and `why` says the reason: the file cannot be written.
  static std::optional<CaptureWriter> open(const std::string& file, std::string& why,
                                           std::uint8_t protocol = wire::kExperimentalProtocol);

  // The packet with `bytes` from the PDS prologue on, at its time and with its addresses.
  void write(const CapturePacket& packet, std::span<const std::byte> bytes);
  // All that was written is in the file.
  bool finish();

 private:
  struct Close {
    void operator()(pcap* capture) const;
    void operator()(pcap_dumper* file) const;
  };
  CaptureWriter(pcap* format, pcap_dumper* file, std::uint8_t protocol)
      : format_(format), file_(file), protocol_(protocol) {}

  std::unique_ptr<pcap, Close> format_;
  std::unique_ptr<pcap_dumper, Close> file_;
  std::uint8_t protocol_;
};

// Does a file that begins with `bytes` claim to be a capture (pcap or pcapng)?
bool looks_like_capture(std::string_view bytes);
// "10.0.0.1", "[2001:db8::1]"
std::string ip_text(const FabricAddress& ip);

}  // namespace uet
