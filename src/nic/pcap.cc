// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The pcapng writer. Blocks are assembled whole in a buffer and written from there, so the file
// consists of complete blocks whenever the process ends. Numbers of the format itself are in host
// order (the section header tells which); the frames' headers come from wire/frame.h.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <ctime>

#include "nic/middleware.h"
#include "nic/socket.h"
#include "wire/frame.h"

namespace uet::nic {

// The addresses, marks and contents of a packet that passes.
struct PcapNic::Frame {
  FepAddress from;
  FepAddress to;
  std::uint16_t entropy = 0;  // of the native form
  std::uint8_t dscp = 0;
  Ecn ecn = Ecn::NotEct;
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
constexpr int kMostFiles = 4096;  // all processes of a host may share a name

// Locally administered, and telling which IP address it stands for.
wire::MacAddress mac_of(const FabricAddress& ip) {
  wire::MacAddress mac = {0x02, 0x00};
  std::copy_n(ip.bytes.begin() + (ip.is_ipv6 ? 12 : 0), 4, mac.begin() + 2);
  return mac;
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
    const int fd = open_for_owner(opened, O_WRONLY);
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

int open_for_owner(const std::string& file, int flags) {
  const int fd = ::open(file.c_str(), flags | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  struct stat status {};
  // One of an earlier run that others may read.
  if (fd >= 0 && ::fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
      (status.st_mode & 077) != 0) {
    ::fchmod(fd, 0600);  // another user's file stays as it is
  }
  return fd;
}

Result<std::unique_ptr<PcapNic>> PcapNic::open(std::unique_ptr<Nic> inner_nic,
                                               std::string_view file,
                                               std::string_view interface_name,
                                               std::uint32_t snap_bytes, std::string& message) {
  std::string name;
  const int fd = open_unused(with_process_id(file), name);
  const auto refuse = [&](int error) {
    message = "cannot write the capture file '" + name + "': " + error_text(error) +
              "; name a file in a directory that exists and may be written, not a symbolic link";
    return error_of(error);
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
  flush();  // with what was thrown away before
  return count;
}

std::size_t PcapNic::tx_burst(std::span<const Packet* const> in) {
  const std::size_t count = inner().tx_burst(in);
  for (const Packet* packet : in.first(count)) {
    Frame frame;
    frame.from = local_address();
    frame.from.port = inner().source_port_for(*packet);
    frame.entropy = source_port(caps(), inner().port_of(static_cast<std::uint8_t>(packet->to.via)),
                                packet->entropy);
    frame.to = packet->to;
    frame.dscp = packet->dscp;
    frame.ecn = packet->ecn;
    const auto head = packet->head();
    frame.pieces = {Slice{head.data(), static_cast<std::uint32_t>(head.size())}, packet->payload[0],
                    packet->payload[1]};
    write_frame(frame);
  }
  flush();
  return count;
}

void PcapNic::note_arrival(const RxPacket& packet, std::string_view why) {
  Frame frame;
  frame.from = packet.source;
  frame.entropy = packet.entropy;
  frame.to = local_address();
  frame.to.port = inner().port_of(static_cast<std::uint8_t>(packet.source.via));
  frame.dscp = packet.dscp;
  frame.ecn = packet.ecn;
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

  wire::FrameFields fields;
  fields.source_mac = mac_of(frame.from.ip);
  fields.destination_mac = mac_of(frame.to.ip);
  fields.source = frame.from.ip;
  fields.destination = frame.to.ip;
  const bool native = frame.from.port == 0;  // only under transport security (FramedNic)
  fields.entropy = native ? frame.entropy : frame.from.port;
  fields.port = wire_address(frame.to).port;
  fields.dscp = frame.dscp;
  fields.ecn = frame.ecn;
  wire::FrameFormat format;
  if (native) format.encapsulation = wire::Encapsulation::NativeIp;
  format.udp_checksum = frame.from.ip.is_ipv6;
  std::array<std::byte, wire::kMaxFrameHeaderBytes> headers;
  const std::size_t header_bytes =
      wire::write_frame_headers(headers.data(), format, fields, frame.pieces);
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
  if (used_ == 0) return;
  const NoCancel no_cancel;
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
