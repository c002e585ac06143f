// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "capture/capture.h"

#include <arpa/inet.h>
#include <pcap/pcap.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <span>
#include <vector>

namespace uet {

namespace {

using Bytes = std::span<const std::byte>;
using wire::FrameFormat;
using wire::FrameVerdict;

// Kernels leave the checksums of packets that stay on the host, or that the NIC completes,
// unfinished.
constexpr FrameFormat kAnyUdp{.udp_checksum = false, .ip_checksum_may_be_0 = true};

bool is_uet_port(std::uint16_t port) { return port >= kUetUdpPort && port <= kUetLastUdpPort; }

// A frame that a switch or the capture has cut short is decoded up to its end.
FrameVerdict parse(Bytes frame, bool ethernet, const FrameFormat& format,
                   wire::ParsedFrame& parsed) {
  wire::TrimMarks marks;
  FrameVerdict verdict = FrameVerdict::Malformed;
  for (int i = 0; i < 2 && verdict == FrameVerdict::Malformed; ++i) {
    parsed = {};
    verdict = ethernet ? wire::parse_frame(frame, format, marks, parsed)
                       : wire::parse_ip(frame, format, marks, parsed);
    marks.trimmed = parsed.fields.dscp;
  }
  return verdict;
}

}  // namespace

void CaptureReader::Close::operator()(pcap* capture) const { pcap_close(capture); }

CaptureReader::CaptureReader(pcap* capture, const std::string& file, std::uint8_t protocol)
    : capture_(capture),
      comments_(file.c_str()),
      ethernet_(pcap_datalink(capture) == DLT_EN10MB),
      protocol_(protocol) {}

std::optional<CaptureReader> CaptureReader::open(const std::string& file, std::string& why,
                                                 std::uint8_t protocol) {
  char error[PCAP_ERRBUF_SIZE] = "";
  pcap_t* const capture =
      pcap_open_offline_with_tstamp_precision(file.c_str(), PCAP_TSTAMP_PRECISION_NANO, error);
  if (capture == nullptr) {
    why = error;
    return {};
  }
  CaptureReader reader(capture, file, protocol);
  const int link_type = pcap_datalink(capture);
  if (link_type != DLT_EN10MB && link_type != DLT_RAW) {
    why = "link type " + std::to_string(link_type) + " is neither Ethernet nor raw IP";
    return {};
  }
  return reader;
}

// Over UDP, or in the native form with or without CRC trailer.
bool CaptureReader::read_frame(Bytes frame, CapturePacket& packet) {
  wire::ParsedFrame& parsed = packet.frame;
  FrameVerdict verdict = parse(frame, ethernet_, kAnyUdp, parsed);
  packet.native = verdict == FrameVerdict::NotUet;
  if (!packet.native) return verdict == FrameVerdict::Ok && is_uet_port(parsed.fields.port);
  FrameFormat format{.encapsulation = wire::Encapsulation::NativeIp,
                     .native_protocol = protocol_,
                     .crc = true,
                     .ip_checksum_may_be_0 = true};
  verdict = parse(frame, ethernet_, format, parsed);
  const bool is_cut = verdict == FrameVerdict::Ok && parsed.missing > 0;
  if (verdict == FrameVerdict::BadCrc || (is_cut && !crc_)) {
    format.crc = false;
    verdict = parse(frame, ethernet_, format, parsed);
  }
  if (!is_cut && verdict == FrameVerdict::Ok) crc_ = format.crc;
  return verdict == FrameVerdict::Ok;
}

std::optional<CapturePacket> CaptureReader::next() {
  pcap_pkthdr* header = nullptr;
  const u_char* data = nullptr;
  while (problem_.empty()) {
    const int result = pcap_next_ex(capture_.get(), &header, &data);
    if (result == PCAP_ERROR) {
      problem_ = "damaged after frame " + std::to_string(frames_) + ": ";
      problem_ += pcap_geterr(capture_.get());
    }
    if (result != 1) break;
    CapturePacket packet{.frame_number = ++frames_,
                         .realtime_ns = std::int64_t{header->ts.tv_sec} * 1'000'000'000 +
                                        std::int64_t{header->ts.tv_usec},
                         .frame = {},
                         .native = false,
                         .comment = comments_.next()};
    if (read_frame({reinterpret_cast<const std::byte*>(data), header->caplen}, packet)) {
      return packet;
    }
    ++others_;
  }
  return {};
}

bool looks_like_capture(std::string_view bytes) {
  std::uint32_t magic = 0;
  if (bytes.size() < sizeof magic) return false;
  std::memcpy(&magic, bytes.data(), sizeof magic);
  // pcap with microseconds and with nanoseconds, in both byte orders, and pcapng.
  constexpr std::array<std::uint32_t, 5> kMagics{0xA1B2C3D4, 0xD4C3B2A1, 0xA1B23C4D, 0x4D3CB2A1,
                                                 0x0A0D0D0A};
  for (const std::uint32_t known : kMagics) {
    if (magic == known) return true;
  }
  return false;
}

std::string ip_text(const FabricAddress& ip) {
  char text[INET6_ADDRSTRLEN] = "";
  inet_ntop(ip.is_ipv6 ? AF_INET6 : AF_INET, ip.bytes.data(), text, sizeof text);
  return ip.is_ipv6 ? "[" + std::string(text) + "]" : text;
}

// ---- writing ------------------------------------------------------------------------------------

void CaptureWriter::Close::operator()(pcap* capture) const { pcap_close(capture); }
void CaptureWriter::Close::operator()(pcap_dumper* file) const { pcap_dump_close(file); }

std::optional<CaptureWriter> CaptureWriter::open(const std::string& file, std::string& why,
                                                 std::uint8_t protocol) {
  constexpr int kMostBytes = 262144;
  pcap_t* const format =
      pcap_open_dead_with_tstamp_precision(DLT_EN10MB, kMostBytes, PCAP_TSTAMP_PRECISION_NANO);
  CaptureWriter writer(format, format != nullptr ? pcap_dump_open(format, file.c_str()) : nullptr,
                       protocol);
  if (writer.file_ != nullptr) return writer;
  why = format != nullptr ? pcap_geterr(format) : "no memory";
  return {};
}

void CaptureWriter::write(const CapturePacket& packet, std::span<const std::byte> bytes) {
  FrameFormat format{.native_protocol = protocol_, .udp_checksum = false};
  if (packet.native) format.encapsulation = wire::Encapsulation::NativeIp;
  const Slice text{bytes.data(), static_cast<std::uint32_t>(bytes.size())};
  std::vector<std::byte> frame(wire::kMaxFrameHeaderBytes);
  frame.resize(
      wire::write_frame_headers(frame.data(), format, packet.frame.fields, std::span(&text, 1)));
  frame.insert(frame.end(), bytes.begin(), bytes.end());
  constexpr std::int64_t kNsPerSecond = 1'000'000'000;
  pcap_pkthdr header{};
  header.ts.tv_sec = static_cast<time_t>(packet.realtime_ns / kNsPerSecond);
  header.ts.tv_usec = static_cast<suseconds_t>(packet.realtime_ns % kNsPerSecond);  // nanoseconds
  header.caplen = static_cast<std::uint32_t>(frame.size());
  header.len = header.caplen;
  pcap_dump(reinterpret_cast<u_char*>(file_.get()), &header,
            reinterpret_cast<const u_char*>(frame.data()));
}

bool CaptureWriter::finish() {
  return pcap_dump_flush(file_.get()) == 0 && std::ferror(pcap_dump_file(file_.get())) == 0;
}

}  // namespace uet
