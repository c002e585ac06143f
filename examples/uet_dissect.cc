// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Prints the UET packets of a capture (pcap or pcapng) in words, one line each. Reading the file is
// libpcap's work, headers and words are those of the wire room.
//
// Use: uet_dissect FILE [--count N]

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

#include "uet/base/address.h"
#include "uet/wire/dissect.h"
#include "uet/wire/frame.h"

namespace {

using Bytes = std::span<const std::byte>;

// Kernels leave the checksums of what stays on the host unfinished.
constexpr uet::wire::FrameFormat kAnyUdp{.udp_checksum = false};

std::string address_text(const uet::FabricAddress& ip) {
  char text[INET6_ADDRSTRLEN] = "";
  inet_ntop(ip.is_ipv6 ? AF_INET6 : AF_INET, ip.bytes.data(), text, sizeof text);
  return ip.is_ipv6 ? "[" + std::string(text) + "]" : text;
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
    uet::wire::ParsedFrame parsed;
    const auto verdict = ethernet ? uet::wire::parse_frame(frame, kAnyUdp, {}, parsed)
                                  : uet::wire::parse_ip(frame, kAnyUdp, {}, parsed);
    const uet::wire::FrameFields& fields = parsed.fields;
    if (verdict != uet::wire::FrameVerdict::Ok || !is_uet_port(fields.port)) {
      ++others;
      continue;
    }
    std::printf("%4llu %10.0f us  %s:%u > %s:%u  %s\n",
                static_cast<unsigned long long>(frame_number), now_us - *start_us,
                address_text(fields.source).c_str(), fields.entropy,
                address_text(fields.destination).c_str(), fields.port,
                uet::wire::dissect(parsed.packet).c_str());
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
