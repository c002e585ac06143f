// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Prints the UET packets of a capture (pcap or pcapng) in words, one line each. Reading the file is
// libpcap's work, the words are uet::wire::dissect's; here are only Ethernet, IP and UDP.
//
// Use: uet_dissect FILE [--count N]

#include <arpa/inet.h>
#include <pcap/pcap.h>

#include <algorithm>
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

#include "uet/base/address.h"
#include "uet/wire/dissect.h"

namespace {

using Bytes = std::span<const std::byte>;

constexpr std::size_t kEthernetBytes = 14;
constexpr std::size_t kUdpBytes = 8;
constexpr std::uint8_t kUdpProtocol = 17;

std::uint32_t byte_at(Bytes bytes, std::size_t at) {
  return std::to_integer<std::uint32_t>(bytes[at]);
}

std::uint16_t word_at(Bytes bytes, std::size_t at) {
  return static_cast<std::uint16_t>(byte_at(bytes, at) << 8 | byte_at(bytes, at + 1));
}

// A UDP datagram with the addresses it travelled between.
struct Datagram {
  std::string source;
  std::string destination;
  std::uint16_t source_port = 0;
  std::uint16_t destination_port = 0;
  Bytes payload;
};

std::string address_text(int family, Bytes bytes) {
  char text[INET6_ADDRSTRLEN] = "";
  inet_ntop(family, bytes.data(), text, sizeof text);
  return text;
}

// The datagram in an IP packet; nothing if it carries something else or is cut off.
std::optional<Datagram> parse_ip(Bytes ip) {
  if (ip.empty()) return std::nullopt;
  Datagram datagram;
  std::size_t header_bytes = 0;
  switch (byte_at(ip, 0) >> 4) {
    case 4:
      header_bytes = (byte_at(ip, 0) & 0xF) * 4;
      if (header_bytes < 20 || ip.size() < header_bytes + kUdpBytes) return std::nullopt;
      if (byte_at(ip, 9) != kUdpProtocol) return std::nullopt;
      datagram.source = address_text(AF_INET, ip.subspan(12, 4));
      datagram.destination = address_text(AF_INET, ip.subspan(16, 4));
      break;
    case 6:
      header_bytes = 40;
      if (ip.size() < header_bytes + kUdpBytes) return std::nullopt;
      if (byte_at(ip, 6) != kUdpProtocol) return std::nullopt;
      datagram.source = "[" + address_text(AF_INET6, ip.subspan(8, 16)) + "]";
      datagram.destination = "[" + address_text(AF_INET6, ip.subspan(24, 16)) + "]";
      break;
    default:
      return std::nullopt;
  }
  const Bytes udp = ip.subspan(header_bytes);
  datagram.source_port = word_at(udp, 0);
  datagram.destination_port = word_at(udp, 2);
  const std::size_t length = word_at(udp, 4);
  if (length < kUdpBytes || length > udp.size()) return std::nullopt;
  datagram.payload = udp.subspan(kUdpBytes, length - kUdpBytes);
  return datagram;
}

bool is_uet_port(std::uint16_t port) {
  return port >= uet::kUetUdpPort && port <= uet::kUetLastUdpPort;
}

// Prints up to `count` UET packets; returns how many frames of other kinds were passed over.
std::uint64_t print_packets(pcap_t* capture, std::uint64_t count) {
  const bool ethernet = pcap_datalink(capture) == DLT_EN10MB;
  std::uint64_t frame_number = 0;
  std::uint64_t printed = 0;
  std::uint64_t others = 0;
  std::optional<double> start_us;
  pcap_pkthdr* header = nullptr;
  const u_char* data = nullptr;
  while (printed < count && pcap_next_ex(capture, &header, &data) == 1) {
    ++frame_number;
    const double now_us =
        static_cast<double>(header->ts.tv_sec) * 1e6 + static_cast<double>(header->ts.tv_usec);
    if (!start_us) start_us = now_us;
    Bytes frame(reinterpret_cast<const std::byte*>(data), header->caplen);
    if (ethernet) frame = frame.subspan(std::min(kEthernetBytes, frame.size()));
    const std::optional<Datagram> datagram = parse_ip(frame);
    if (!datagram || !is_uet_port(datagram->destination_port)) {
      ++others;
      continue;
    }
    std::printf("%4llu %10.0f us  %s:%u > %s:%u  %s\n",
                static_cast<unsigned long long>(frame_number), now_us - *start_us,
                datagram->source.c_str(), datagram->source_port, datagram->destination.c_str(),
                datagram->destination_port, uet::wire::dissect(datagram->payload).c_str());
    ++printed;
  }
  return others;
}

int usage() {
  std::fputs(
      "Use: uet_dissect FILE [--count N]\n"
      "Prints the UET packets of a pcap or pcapng capture, at most N of them.\n",
      stderr);
  return EXIT_FAILURE;
}

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t count = UINT64_MAX;
  const char* file = nullptr;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--count" && i + 1 < argc) {
      const std::string_view number = argv[++i];
      const auto result = std::from_chars(number.data(), number.data() + number.size(), count);
      if (result.ec != std::errc() || result.ptr != number.data() + number.size()) return usage();
    } else if (!argument.starts_with("--") && file == nullptr) {
      file = argv[i];
    } else {
      return usage();
    }
  }
  if (file == nullptr) return usage();

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
  const std::uint64_t others = print_packets(capture.get(), count);
  if (others > 0)
    std::printf("(%llu frames that are not UET)\n", static_cast<unsigned long long>(others));
  return EXIT_SUCCESS;
}
