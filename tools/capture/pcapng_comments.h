// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The comments of the packets of a pcapng file, which libpcap does not report. The provider writes
// such a comment for a packet that fault injection has lost or corrupted.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

namespace uet {

// Reads the file block by block beside libpcap. A file that is damaged, or no pcapng file, or
// standard input, has no comments.
class PcapngComments {
 public:
  // `file`: a name as for pcap_open_offline.
  explicit PcapngComments(const char* file) {
    if (std::string_view(file) != "-") stream_.open(file, std::ios::binary);
  }

  // The comment of the next packet, in the order of the file; empty if the packet has none. Bytes
  // that are no printable ASCII are replaced by '.', so that a capture cannot control a terminal.
  std::string next() {
    while (read_block()) {
      if (type_ == kEnhancedPacket) return comment_of_packet();
      if (type_ == kSimplePacket || type_ == kOldPacket) return {};
    }
    return {};
  }

 private:
  static constexpr std::uint32_t kSectionHeader = 0x0A0D0D0A;
  static constexpr std::uint32_t kByteOrderMagic = 0x1A2B3C4D;
  static constexpr std::uint32_t kOldPacket = 2;
  static constexpr std::uint32_t kSimplePacket = 3;
  static constexpr std::uint32_t kEnhancedPacket = 6;
  static constexpr std::uint16_t kEndOfOptions = 0;
  static constexpr std::uint16_t kComment = 1;
  static constexpr std::size_t kPacketFields = 20;  // before the data of an enhanced packet
  static constexpr std::size_t kMostBytes = std::size_t{16} << 20;  // of a block

  // An integer of the section's byte order at `at`; 0 behind the end of the block.
  template <class T>
  T number(std::size_t at) const {
    std::array<unsigned char, sizeof(T)> bytes{};
    if (at + sizeof(T) > body_.size()) return 0;
    std::memcpy(bytes.data(), body_.data() + at, sizeof(T));
    T value = 0;
    for (std::size_t i = 0; i < sizeof(T); ++i) {
      value = static_cast<T>(value | T{bytes[big_endian_ ? sizeof(T) - 1 - i : i]} << (8 * i));
    }
    return value;
  }

  bool read_bytes(std::size_t count) {
    const std::size_t before = body_.size();
    body_.resize(before + count);
    return static_cast<bool>(
        stream_.read(body_.data() + before, static_cast<std::streamsize>(count)));
  }

  // The next block without its type and its two lengths. False: there is none.
  bool read_block() {
    body_.clear();
    if (!read_bytes(8)) return false;
    type_ = number<std::uint32_t>(0);
    if (type_ == kSectionHeader) {  // the same in both byte orders
      if (!read_bytes(4)) return false;
      big_endian_ = false;
      big_endian_ = number<std::uint32_t>(8) != kByteOrderMagic;
      if (number<std::uint32_t>(8) != kByteOrderMagic) return false;
    }
    const std::size_t length = number<std::uint32_t>(4);
    if (length < body_.size() + 4 || length % 4 != 0 || length > kMostBytes) return false;
    if (!read_bytes(length - body_.size())) return false;
    body_.erase(body_.begin(), body_.begin() + 8);
    body_.resize(body_.size() - 4);
    return true;
  }

  std::string comment_of_packet() const {
    const auto padded = [](std::size_t bytes) { return (bytes + 3) / 4 * 4; };
    std::size_t at = kPacketFields + padded(number<std::uint32_t>(12));
    while (at + 4 <= body_.size()) {
      const auto code = number<std::uint16_t>(at);
      const std::size_t length = number<std::uint16_t>(at + 2);
      if (code == kEndOfOptions || at + 4 + length > body_.size()) return {};
      if (code == kComment) return printable({body_.data() + at + 4, length});
      at += 4 + padded(length);
    }
    return {};
  }

  static std::string printable(std::string_view text) {
    std::string out(text);
    for (char& c : out) {
      if (c < ' ' || c > '~') c = '.';
    }
    return out;
  }

  std::ifstream stream_;
  bool big_endian_ = false;
  std::uint32_t type_ = 0;
  std::vector<char> body_;
};

}  // namespace uet
