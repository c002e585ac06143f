// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Prints the UET packets of a capture (pcap or pcapng) in words, one line each, with the comment
// that the capture has for the packet. libpcap reads the packets; the module wire decodes the
// headers and chooses the words.
//
// Use: uet_dissect FILE [--count N] [--protocol N] [--keys FILE]

#include <arpa/inet.h>
#include <pcap/pcap.h>

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "capture_keys.h"
#include "pcapng_comments.h"
#include "uet/base/address.h"
#include "wire/dissect.h"
#include "wire/frame.h"

namespace {

using Bytes = std::span<const std::byte>;

using uet::wire::FrameFormat;
using uet::wire::FrameVerdict;

// Kernels leave the checksums of what stays on the host unfinished.
constexpr FrameFormat kAnyUdp{.udp_checksum = false};

std::string address_text(const uet::FabricAddress& ip) {
  char text[INET6_ADDRSTRLEN] = "";
  inet_ntop(ip.is_ipv6 ? AF_INET6 : AF_INET, ip.bytes.data(), text, sizeof text);
  return ip.is_ipv6 ? "[" + std::string(text) + "]" : text;
}

bool is_uet_port(std::uint16_t port) {
  return port >= uet::kUetUdpPort && port <= uet::kUetLastUdpPort;
}

// A frame that a switch or the capture has cut short is decoded up to its end.
FrameVerdict parse(Bytes frame, bool ethernet, const FrameFormat& format,
                   uet::wire::ParsedFrame& parsed) {
  uet::wire::TrimMarks marks;
  FrameVerdict verdict = FrameVerdict::Malformed;
  for (int i = 0; i < 2 && verdict == FrameVerdict::Malformed; ++i) {
    parsed = {};
    verdict = ethernet ? uet::wire::parse_frame(frame, format, marks, parsed)
                       : uet::wire::parse_ip(frame, format, marks, parsed);
    marks.trimmed = parsed.fields.dscp;
  }
  return verdict;
}

// The native form of this capture.
struct NativeForm {
  std::uint8_t protocol = uet::wire::kExperimentalProtocol;
  bool crc = false;  // the last whole packet had a trailer
};

// Over UDP, or in the native form with or without CRC trailer.
bool read_frame(Bytes frame, bool ethernet, NativeForm& form, uet::wire::ParsedFrame& parsed,
                bool& native) {
  FrameVerdict verdict = parse(frame, ethernet, kAnyUdp, parsed);
  native = verdict == FrameVerdict::NotUet;
  if (!native) return verdict == FrameVerdict::Ok && is_uet_port(parsed.fields.port);
  FrameFormat format{.encapsulation = uet::wire::Encapsulation::NativeIp,
                     .native_protocol = form.protocol,
                     .crc = true};
  verdict = parse(frame, ethernet, format, parsed);
  const bool is_cut = verdict == FrameVerdict::Ok && parsed.missing > 0;
  if (verdict == FrameVerdict::BadCrc || (is_cut && !form.crc)) {
    format.crc = false;
    verdict = parse(frame, ethernet, format, parsed);
  }
  if (!is_cut && verdict == FrameVerdict::Ok) form.crc = format.crc;
  return verdict == FrameVerdict::Ok;
}

// The packet in words, with its text if `keys` open it.
std::string words_of(const uet::wire::ParsedFrame& parsed, bool native, uet::CaptureKeys* keys) {
  const std::string words = uet::wire::dissect(parsed.packet, parsed.missing);
  if (keys == nullptr) return words;
  const auto text = keys->text_of(parsed, native);
  return text ? words + "  " + uet::wire::dissect(*text) : words;
}

// One line for the packet; `comment` follows in brackets unless it is empty.
void print_packet(std::uint64_t number, double time_us, const uet::wire::ParsedFrame& parsed,
                  bool native, uet::CaptureKeys* keys, const std::string& comment) {
  const uet::wire::FrameFields& fields = parsed.fields;
  const std::string to = native ? "native" : std::to_string(fields.port);
  std::printf("%4llu %10.0f us  %s:%u > %s:%s  %s", static_cast<unsigned long long>(number),
              time_us, address_text(fields.source).c_str(), fields.entropy,
              address_text(fields.destination).c_str(), to.c_str(),
              words_of(parsed, native, keys).c_str());
  if (!comment.empty()) std::printf("  [%s]", comment.c_str());
  std::printf("\n");
}

// Prints up to `count` UET packets; returns how many frames of other kinds were passed over.
// `keys`: nullptr, or what opens protected packets.
std::uint64_t print_packets(pcap_t* capture, uet::PcapngComments& comments, std::uint64_t count,
                            std::uint8_t protocol, uet::CaptureKeys* keys) {
  NativeForm form{.protocol = protocol};
  const bool ethernet = pcap_datalink(capture) == DLT_EN10MB;
  std::uint64_t frame_number = 0;
  std::uint64_t printed = 0;
  std::uint64_t others = 0;
  std::optional<double> start_us;
  pcap_pkthdr* header = nullptr;
  const u_char* data = nullptr;
  while (printed < count && pcap_next_ex(capture, &header, &data) == 1) {
    ++frame_number;
    const std::string comment = comments.next();
    const double now_us =
        static_cast<double>(header->ts.tv_sec) * 1e6 + static_cast<double>(header->ts.tv_usec);
    if (!start_us) start_us = now_us;
    Bytes frame(reinterpret_cast<const std::byte*>(data), header->caplen);
    uet::wire::ParsedFrame parsed;
    bool native = false;
    if (!read_frame(frame, ethernet, form, parsed, native)) {
      ++others;
      continue;
    }
    print_packet(frame_number, now_us - *start_us, parsed, native, keys, comment);
    ++printed;
  }
  return others;
}

int usage() {
  std::fputs(
      "Use: uet_dissect FILE [--count N] [--protocol N] [--keys FILE]\n"
      "Prints the UET packets of a pcap or pcapng capture, at most N of them. --protocol: the IP\n"
      "protocol number of the native form, 253 if it is not given. \"missing\": bytes of payload "
      "that\n"
      "a switch or the capture has cut off. [...]: the comment of the packet in the capture.\n"
      "--keys: a file of uet_keys; a packet that a key of it opens is shown with its text.\n",
      stderr);
  return EXIT_FAILURE;
}

bool read_number(std::string_view text, std::uint64_t& number) {
  const auto result = std::from_chars(text.data(), text.data() + text.size(), number);
  return result.ec == std::errc() && result.ptr == text.data() + text.size();
}

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t count = UINT64_MAX;
  std::uint64_t protocol = uet::wire::kExperimentalProtocol;
  const char* file = nullptr;
  const char* key_file = nullptr;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    const bool has_number = argument == "--count" || argument == "--protocol";
    if (has_number && i + 1 < argc) {
      std::uint64_t& number = argument == "--count" ? count : protocol;
      if (!read_number(argv[++i], number)) return usage();
    } else if (argument == "--keys" && i + 1 < argc) {
      key_file = argv[++i];
    } else if (!argument.starts_with("--") && file == nullptr) {
      file = argv[i];
    } else {
      return usage();
    }
  }
  if (file == nullptr || protocol > UINT8_MAX) return usage();

  uet::CaptureKeys keys;
  const std::string problem = key_file == nullptr ? "" : keys.load(key_file);
  if (!problem.empty()) {
    std::fprintf(stderr, "uet_dissect: %s: %s\n", key_file, problem.c_str());
    return EXIT_FAILURE;
  }
  char error[PCAP_ERRBUF_SIZE] = "";
  const std::unique_ptr<pcap_t, decltype(&pcap_close)> capture(pcap_open_offline(file, error),
                                                               &pcap_close);
  if (!capture) {
    std::fprintf(stderr, "uet_dissect: %s\n", error);
    return EXIT_FAILURE;
  }
  const int link_type = pcap_datalink(capture.get());
  if (link_type != DLT_EN10MB && link_type != DLT_RAW) {
    std::fprintf(stderr, "uet_dissect: link type %d is neither Ethernet nor raw IP\n", link_type);
    return EXIT_FAILURE;
  }
  uet::PcapngComments comments(file);
  const std::uint64_t others =
      print_packets(capture.get(), comments, count, static_cast<std::uint8_t>(protocol),
                    key_file == nullptr ? nullptr : &keys);
  if (others > 0)
    std::printf("(%llu frames that are not UET)\n", static_cast<unsigned long long>(others));
  return EXIT_SUCCESS;
}
