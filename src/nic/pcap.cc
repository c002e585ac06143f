// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The pcapng writer. Blocks are assembled whole in a buffer and written from there, so the file
// consists of complete blocks whenever the process ends. Numbers of the format itself are in host
// order (the section header tells which), numbers of the frames in network order.
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <system_error>

#include "uet/nic/middleware.h"

namespace uet::nic {

// What is known of a packet that passes.
struct PcapNic::Frame {
  FepAddress from;
  FepAddress to;
  std::uint8_t tos = 0;
  bool inbound = false;
  std::array<Slice, 3> pieces{};  // what is above UDP
  std::string_view comment;
};

namespace {

constexpr std::uint32_t kSectionHeader = 0x0A0D0D0A;
constexpr std::uint32_t kInterfaceDescription = 1;
constexpr std::uint32_t kEnhancedPacket = 6;
constexpr std::uint16_t kOptionComment = 1;
constexpr std::uint16_t kOptionInterfaceName = 2;
constexpr std::uint16_t kOptionPacketFlags = 2;
constexpr std::uint16_t kOptionUserApplication = 4;
constexpr std::uint16_t kOptionTimeResolution = 9;
constexpr std::uint32_t kFlagInbound = 1;
constexpr std::uint32_t kFlagOutbound = 2;
constexpr std::uint16_t kLinkEthernet = 1;
constexpr Duration kFlushInterval = std::chrono::milliseconds(100);
constexpr int kMostFiles = 100;

constexpr std::size_t kEthernetBytes = 14;
constexpr std::size_t kUdpBytes = 8;
constexpr std::size_t kMostHeaderBytes = kEthernetBytes + 40 + kUdpBytes;
constexpr std::uint8_t kTimeToLive = 64;
constexpr std::uint8_t kProtocolUdp = 17;

// The Internet checksum, over any number of pieces of any length.
class Checksum {
 public:
  void add(const void* data, std::size_t length) {
    const auto* bytes = static_cast<const std::uint8_t*>(data);
    for (std::size_t i = 0; i < length; ++i, odd_ = !odd_) {
      sum_ += odd_ ? bytes[i] : static_cast<std::uint32_t>(bytes[i] << 8);
    }
  }
  std::uint16_t value() const {
    std::uint64_t folded = sum_;
    while (folded > 0xFFFF) folded = (folded & 0xFFFF) + (folded >> 16);
    return static_cast<std::uint16_t>(~folded);
  }

 private:
  std::uint64_t sum_ = 0;
  bool odd_ = false;
};

void put_be16(std::uint8_t* at, std::size_t value) {
  const std::size_t shown = std::min<std::size_t>(value, 0xFFFF);
  at[0] = static_cast<std::uint8_t>(shown >> 8);
  at[1] = static_cast<std::uint8_t>(shown);
}

void put_mac(std::uint8_t* at, const FabricAddress& ip) {
  at[0] = 0x02;  // locally administered
  at[1] = 0x00;
  std::memcpy(at + 2, ip.bytes.data() + (ip.is_ipv6 ? 12 : 0), 4);
}

// "a/b.pcapng" and 2 give "a/b-2.pcapng".
std::string numbered(const std::string& name, int number) {
  if (number == 1) return name;
  const auto slash = name.rfind('/');
  auto dot = name.rfind('.');
  if (dot == std::string::npos || (slash != std::string::npos && dot < slash)) dot = name.size();
  return name.substr(0, dot) + "-" + std::to_string(number) + name.substr(dot);
}

// Opens the first of the numbered files that no capture is writing, empties it, keeps it locked.
// Returns the descriptor, or -1 and errno.
int open_unused(const std::string& wished, std::string& opened) {
  for (int number = 1; number <= kMostFiles; ++number) {
    opened = numbered(wished, number);
    const int fd = ::open(opened.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0) return -1;
    if (::flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) {
      // Pipes and devices cannot be emptied and need not be.
      if (::ftruncate(fd, 0) == 0 || errno == EINVAL) return fd;
      const int error = errno;
      ::close(fd);
      errno = error;
      return -1;
    }
    ::close(fd);
  }
  errno = EWOULDBLOCK;
  return -1;
}

// Writes Ethernet, IP and UDP headers in front of `length` bytes whose checksum contribution is
// asked of `add_payload`. Returns the number of header bytes.
template <class AddPayload>
std::size_t make_headers(std::uint8_t* at, const FepAddress& from, const FepAddress& to,
                         std::uint8_t tos, std::size_t length, AddPayload add_payload) {
  const bool is_ipv6 = from.ip.is_ipv6;
  put_mac(at, to.ip);
  put_mac(at + 6, from.ip);
  put_be16(at + 12, is_ipv6 ? 0x86DD : 0x0800);
  std::uint8_t* const ip = at + kEthernetBytes;
  std::uint8_t* const udp = ip + (is_ipv6 ? 40 : 20);
  put_be16(udp, from.port);
  put_be16(udp + 2, to.port);
  put_be16(udp + 4, kUdpBytes + length);
  if (is_ipv6) {
    ip[0] = static_cast<std::uint8_t>(0x60 | (tos >> 4));
    ip[1] = static_cast<std::uint8_t>(tos << 4);
    put_be16(ip + 4, kUdpBytes + length);
    ip[6] = kProtocolUdp;
    ip[7] = kTimeToLive;
    std::memcpy(ip + 8, from.ip.bytes.data(), 16);
    std::memcpy(ip + 24, to.ip.bytes.data(), 16);
    Checksum sum;
    sum.add(ip + 8, 32);
    const std::array<std::uint8_t, 4> rest = {udp[4], udp[5], 0, kProtocolUdp};
    sum.add(rest.data(), rest.size());
    sum.add(udp, 6);
    add_payload(sum);
    put_be16(udp + 6, sum.value() == 0 ? 0xFFFF : sum.value());
  } else {
    ip[0] = 0x45;
    ip[1] = tos;
    put_be16(ip + 2, 20 + kUdpBytes + length);
    ip[6] = 0x40;  // do not fragment (WIRE 1.1)
    ip[8] = kTimeToLive;
    ip[9] = kProtocolUdp;
    std::memcpy(ip + 12, from.ip.bytes.data(), 4);
    std::memcpy(ip + 16, to.ip.bytes.data(), 4);
    Checksum sum;
    sum.add(ip, 20);
    put_be16(ip + 10, sum.value());
  }
  return static_cast<std::size_t>(udp - at) + kUdpBytes;
}

std::uint64_t realtime_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

}  // namespace

std::string with_process_id(std::string_view pattern) {
  std::string name(pattern);
  const std::string pid = std::to_string(::getpid());
  for (auto at = name.find("%p"); at != std::string::npos; at = name.find("%p", at + pid.size())) {
    name.replace(at, 2, pid);
  }
  return name;
}

Result<std::unique_ptr<PcapNic>> PcapNic::open(std::unique_ptr<Nic> inner_nic,
                                               std::string_view file,
                                               std::string_view interface_name,
                                               std::uint32_t snap_bytes, std::string& message) {
  std::string name;
  const int fd = open_unused(with_process_id(file), name);
  const auto refuse = [&](int error) {
    message = "cannot write the capture file '" + name +
              "': " + std::generic_category().message(error) +
              "; name a file in a directory that exists and may be written";
    return Error::Io;
  };
  if (fd < 0) return refuse(errno);
  std::unique_ptr<PcapNic> nic(new PcapNic(std::move(inner_nic), fd, name, snap_bytes));
  nic->write_file_header(interface_name.substr(0, 255));
  nic->flush();
  if (!nic->writing()) return refuse(errno);
  return nic;
}

PcapNic::PcapNic(std::unique_ptr<Nic> inner_nic, int fd, std::string file_name,
                 std::uint32_t snap_bytes)
    : Middleware(std::move(inner_nic)),
      fd_(fd),
      owner_pid_(::getpid()),
      file_name_(std::move(file_name)),
      snap_bytes_(snap_bytes),
      buffer_(std::make_unique_for_overwrite<std::byte[]>(kBufferBytes)) {}

PcapNic::~PcapNic() {
  flush();
  if (fd_ >= 0) ::close(fd_);
}

std::size_t PcapNic::rx_burst(std::span<RxPacket> out, Time now) {
  const std::size_t count = inner().rx_burst(out, now);
  for (const RxPacket& packet : out.first(count)) note_arrival(packet, {});
  if (now - last_flush_ >= kFlushInterval) {
    flush();
    last_flush_ = now;
  }
  return count;
}

std::size_t PcapNic::tx_burst(std::span<const Packet* const> in) {
  const std::size_t count = inner().tx_burst(in);
  for (const Packet* packet : in.first(count)) {
    Frame frame;
    frame.from = local_address();
    if (packet->entropy != 0 && caps().per_packet_entropy) frame.from.port = packet->entropy;
    frame.to = packet->to;
    frame.tos =
        static_cast<std::uint8_t>((packet->dscp << 2) | static_cast<std::uint8_t>(packet->ecn));
    const auto head = packet->head();
    frame.pieces = {Slice{head.data(), static_cast<std::uint32_t>(head.size())}, packet->payload[0],
                    packet->payload[1]};
    write_frame(frame);
  }
  return count;
}

void PcapNic::note_arrival(const RxPacket& packet, std::string_view why) {
  Frame frame;
  frame.from = packet.source;
  frame.to = local_address();
  frame.tos = static_cast<std::uint8_t>((packet.dscp << 2) | static_cast<std::uint8_t>(packet.ecn));
  frame.inbound = true;
  frame.pieces[0] = {packet.bytes.data(), static_cast<std::uint32_t>(packet.bytes.size())};
  frame.comment = why;
  write_frame(frame);
}

void PcapNic::write_frame(const Frame& frame) {
  std::size_t length = 0;
  for (const Slice& piece : frame.pieces) length += piece.length;
  if (!writing() || length > kMaxDatagramBytes) return;
  if (used_ + kMaxBlockBytes > kBufferBytes) flush();

  std::array<std::uint8_t, kMostHeaderBytes> headers{};
  const std::size_t header_bytes =
      make_headers(headers.data(), frame.from, frame.to, frame.tos, length, [&](Checksum& sum) {
        for (const Slice& piece : frame.pieces) sum.add(piece.data, piece.length);
      });
  const std::size_t frame_bytes = header_bytes + length;
  const std::size_t kept =
      snap_bytes_ == 0 ? frame_bytes : std::min<std::size_t>(frame_bytes, snap_bytes_);
  const std::uint64_t time = realtime_ns();
  const std::size_t start = used_;
  const std::array<std::uint32_t, 7> fixed = {kEnhancedPacket,
                                              0,  // block length, known below
                                              0,  // the only interface
                                              static_cast<std::uint32_t>(time >> 32),
                                              static_cast<std::uint32_t>(time),
                                              static_cast<std::uint32_t>(kept),
                                              static_cast<std::uint32_t>(frame_bytes)};
  put(fixed.data(), sizeof fixed);
  std::size_t left = kept;
  const auto put_up_to_snap = [&](const void* data, std::size_t size) {
    const std::size_t now = std::min(size, left);
    put(data, now);
    left -= now;
  };
  put_up_to_snap(headers.data(), header_bytes);
  for (const Slice& piece : frame.pieces) put_up_to_snap(piece.data, piece.length);
  pad();
  const std::uint32_t direction = frame.inbound ? kFlagInbound : kFlagOutbound;
  put_option(kOptionPacketFlags, &direction, sizeof direction);
  if (!frame.comment.empty()) {
    put_option(kOptionComment, frame.comment.data(), frame.comment.size());
  }
  end_block(start);
}

void PcapNic::write_file_header(std::string_view interface_name) {
  const std::size_t section = used_;
  const std::array<std::uint32_t, 6> header = {
      kSectionHeader,
      0,
      0x1A2B3C4D,
      std::endian::native == std::endian::little ? 0x00000001U : 0x00010000U,  // version 1.0
      0xFFFFFFFF,
      0xFFFFFFFF};  // section length not given
  put(header.data(), sizeof header);
  constexpr std::string_view kApplication = "uet";
  put_option(kOptionUserApplication, kApplication.data(), kApplication.size());
  end_block(section);

  const std::size_t interface = used_;
  const std::array<std::uint32_t, 2> block = {kInterfaceDescription, 0};
  put(block.data(), sizeof block);
  const std::array<std::uint16_t, 2> link = {kLinkEthernet, 0};
  put(link.data(), sizeof link);
  put(&snap_bytes_, sizeof snap_bytes_);
  put_option(kOptionInterfaceName, interface_name.data(), interface_name.size());
  const std::uint8_t nanoseconds = 9;
  put_option(kOptionTimeResolution, &nanoseconds, sizeof nanoseconds);
  end_block(interface);
}

void PcapNic::put(const void* data, std::size_t length) {
  if (length == 0) return;
  std::memcpy(buffer_.get() + used_, data, length);
  used_ += length;
}

void PcapNic::pad() {
  while (used_ % 4 != 0) buffer_[used_++] = std::byte{0};
}

void PcapNic::put_option(std::uint16_t code, const void* data, std::size_t length) {
  const std::array<std::uint16_t, 2> header = {code, static_cast<std::uint16_t>(length)};
  put(header.data(), sizeof header);
  put(data, length);
  pad();
}

// Ends the options, and writes the length of the block that began at `start` at both its ends.
void PcapNic::end_block(std::size_t start) {
  put_option(0, nullptr, 0);
  const auto length = static_cast<std::uint32_t>(used_ - start + sizeof(std::uint32_t));
  std::memcpy(buffer_.get() + start + sizeof(std::uint32_t), &length, sizeof length);
  put(&length, sizeof length);
}

void PcapNic::flush() {
  const std::byte* at = buffer_.get();
  std::size_t left = ::getpid() == owner_pid_ ? used_ : 0;
  used_ = 0;
  while (left > 0 && fd_ >= 0) {
    const ssize_t written = ::write(fd_, at, left);
    if (written > 0) {
      at += written;
      left -= static_cast<std::size_t>(written);
    } else if (errno != EINTR) {
      const int error = errno;
      ::close(fd_);
      fd_ = -1;
      errno = error;
    }
  }
}

}  // namespace uet::nic
