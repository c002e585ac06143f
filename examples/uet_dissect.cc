// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Prints the UET packets of a capture (pcap or pcapng) in words, one line each, with the comment
// that the capture has for the packet. libpcap reads the packets; the module wire decodes the
// headers and chooses the words.
//
// Use: uet_dissect FILE [--count N] [--protocol N] [--keys FILE [--clear FILE]]

#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "capture/capture.h"
#include "capture/capture_keys.h"
#include "wire/dissect.h"

namespace {

using Text = std::optional<std::vector<std::byte>>;  // of a packet that a key opens

// The packet in words, with its text.
std::string words_of(const uet::CapturePacket& packet, const Text& text) {
  const std::string words = uet::wire::dissect(packet.frame.packet, packet.frame.missing);
  return text ? words + "  " + uet::wire::dissect(*text) : words;
}

// One line for the packet; its comment follows in brackets.
void print_packet(const uet::CapturePacket& packet, double time_us, const Text& text) {
  const uet::wire::FrameFields& fields = packet.frame.fields;
  const std::string to = packet.native ? "native" : std::to_string(fields.port);
  std::printf("%4llu %10.0f us  %s:%u > %s:%s  %s",
              static_cast<unsigned long long>(packet.frame_number), time_us,
              uet::ip_text(fields.source).c_str(), fields.entropy,
              uet::ip_text(fields.destination).c_str(), to.c_str(), words_of(packet, text).c_str());
  if (!packet.comment.empty()) std::printf("  [%s]", packet.comment.c_str());
  std::printf("\n");
}

// Prints up to `count` UET packets. `keys`: nullptr, or what opens protected packets. `clear`:
// nullptr, or where the packets go in clear.
void print_packets(uet::CaptureReader& capture, std::uint64_t count, uet::CaptureKeys* keys,
                   uet::CaptureWriter* clear) {
  std::optional<std::int64_t> start_ns;
  for (std::uint64_t printed = 0; printed < count; ++printed) {
    const auto packet = capture.next();
    if (!packet) return;
    if (!start_ns) start_ns = packet->realtime_ns;
    const Text text = keys == nullptr ? Text() : keys->text_of(packet->frame, packet->native);
    print_packet(*packet, static_cast<double>(packet->realtime_ns - *start_ns) / 1000.0, text);
    if (clear != nullptr) {
      clear->write(*packet, text ? std::span<const std::byte>(*text) : packet->frame.packet);
    }
  }
}

int usage() {
  std::fputs(
      "Use: uet_dissect FILE [--count N] [--protocol N] [--keys FILE [--clear FILE]]\n"
      "Prints the UET packets of a pcap or pcapng capture, at most N of them. --protocol: the IP\n"
      "protocol number of the native form, 253 if it is not given. \"missing\": bytes of payload "
      "that\n"
      "a switch or the capture has cut off. [...]: the comment of the packet in the capture.\n"
      "--keys: a file of uet_keys; a packet that a key of it opens is shown with its text.\n"
      "--clear: writes a pcap file for Wireshark: packets that a key opens in clear, others as "
      "they are.\n",
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
  const char* clear_file = nullptr;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    const bool has_number = argument == "--count" || argument == "--protocol";
    if (has_number && i + 1 < argc) {
      std::uint64_t& number = argument == "--count" ? count : protocol;
      if (!read_number(argv[++i], number)) return usage();
    } else if (argument == "--keys" && i + 1 < argc) {
      key_file = argv[++i];
    } else if (argument == "--clear" && i + 1 < argc) {
      clear_file = argv[++i];
    } else if (!argument.starts_with("--") && file == nullptr) {
      file = argv[i];
    } else {
      return usage();
    }
  }
  if (file == nullptr || protocol > UINT8_MAX) return usage();
  if (clear_file != nullptr && key_file == nullptr) return usage();

  uet::CaptureKeys keys;
  const std::string problem = key_file == nullptr ? "" : keys.load(key_file);
  if (!problem.empty()) {
    std::fprintf(stderr, "uet_dissect: %s: %s\n", key_file, problem.c_str());
    return EXIT_FAILURE;
  }
  std::string why;
  auto capture = uet::CaptureReader::open(file, why, static_cast<std::uint8_t>(protocol));
  if (!capture) {
    std::fprintf(stderr, "uet_dissect: %s\n", why.c_str());
    return EXIT_FAILURE;
  }
  std::optional<uet::CaptureWriter> clear;
  if (clear_file != nullptr) {
    clear = uet::CaptureWriter::open(clear_file, why, static_cast<std::uint8_t>(protocol));
    if (!clear) {
      std::fprintf(stderr, "uet_dissect: %s\n", why.c_str());
      return EXIT_FAILURE;
    }
  }
  print_packets(*capture, count, key_file == nullptr ? nullptr : &keys, clear ? &*clear : nullptr);
  if (clear && !clear->finish()) {
    std::fprintf(stderr, "uet_dissect: %s: cannot be written\n", clear_file);
    return EXIT_FAILURE;
  }
  if (capture->others() > 0)
    std::printf("(%llu frames that are not UET)\n",
                static_cast<unsigned long long>(capture->others()));
  if (!capture->problem().empty()) {
    std::fprintf(stderr, "uet_dissect: %s: %s\n", file, capture->problem().c_str());
    return EXIT_FAILURE;
  }
  return EXIT_SUCCESS;
}
