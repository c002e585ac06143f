// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// sendmmsg with UDP_SEGMENT, recvmmsg with UDP_GRO: what the kernel offers at best.
#include <arpa/inet.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdio>

#include "nic/socket.h"
#include "raw_wire.h"

namespace uet::bench {
namespace {

constexpr std::size_t kMostTrain = 65'507;
constexpr std::size_t kReceives = 16;
constexpr int kBufferBytes = 4 << 20;

class RawUdp final : public RawWire {
 public:
  RawUdp(nic::FileDescriptor fd, const RawChoice& choice)
      : fd_(std::move(fd)), bytes_(choice.bytes), memory_(choice.memory_bytes) {
    peer_.sin_family = AF_INET;
    peer_.sin_port = htons(kRawPort);
    std::memcpy(&peer_.sin_addr, choice.peer.bytes.data(), 4);
    out_.resize(kRawBurst * (kRawHeaderBytes + bytes_));
    in_.resize(kReceives * kTrainRoom);
  }

  std::size_t send(std::span<const RawMessage> messages, bool with_payload) override {
    const std::size_t count = std::min(messages.size(), kRawBurst);
    const std::size_t payload = with_payload ? bytes_ : 0;
    const std::size_t size = kRawHeaderBytes + payload;
    const std::size_t train = std::clamp<std::size_t>(kMostTrain / size, 1, kRawBurst);
    std::array<mmsghdr, kRawBurst> headers{};
    std::array<iovec, 2 * kRawBurst> places{};
    alignas(cmsghdr) std::array<std::array<std::byte, CMSG_SPACE(sizeof(std::uint16_t))>, kRawBurst>
        controls{};
    const std::size_t gathered = memory_.empty() ? 0 : payload;
    for (std::size_t i = 0; i < count; ++i) {
      write_raw(out_.data() + i * size, messages[i], payload - gathered);
      places[2 * i] = {out_.data() + i * size, size - gathered};
      places[2 * i + 1] = {memory_of(messages[i]), gathered};
    }
    std::size_t trains = 0;
    for (std::size_t done = 0; done < count; done += train, ++trains) {
      const std::size_t packets = std::min(train, count - done);
      msghdr& header = headers[trains].msg_hdr;
      header.msg_name = &peer_;
      header.msg_namelen = sizeof peer_;
      header.msg_iov = &places[2 * done];
      header.msg_iovlen = 2 * packets;
      if (gathered == 0) {
        places[2 * done].iov_len = packets * size;
        header.msg_iovlen = 1;
      }
      if (packets == 1) continue;
      header.msg_control = controls[trains].data();
      header.msg_controllen = controls[trains].size();
      cmsghdr* const control = CMSG_FIRSTHDR(&header);
      const auto segment = static_cast<std::uint16_t>(size);
      control->cmsg_level = SOL_UDP;
      control->cmsg_type = UDP_SEGMENT;
      control->cmsg_len = CMSG_LEN(sizeof segment);
      std::memcpy(CMSG_DATA(control), &segment, sizeof segment);
    }
    const int sent = ::sendmmsg(fd_.get(), headers.data(), static_cast<unsigned>(trains), 0);
    return std::min(count, static_cast<std::size_t>(std::max(sent, 0)) * train);
  }

  std::size_t receive(std::span<RawMessage> out) override {
    std::size_t filled = 0;
    while (filled < out.size() && (next_ < length_ || take_train())) {
      RawMessage& message = out[filled++];
      std::memcpy(&message, train_ + next_, sizeof message);
      const bool whole = next_ + kRawHeaderBytes + bytes_ <= length_;
      if (!memory_.empty() && message.kind == RawKind::Data && whole) {
        std::memcpy(memory_of(message), train_ + next_ + kRawHeaderBytes, bytes_);
      }
      next_ += segment_;
    }
    return filled;
  }

 private:
  static constexpr std::size_t kTrainRoom = 65'536;

  std::byte* memory_of(const RawMessage& message) {
    return memory_.empty() ? nullptr : memory_.data() + message.number * bytes_ % memory_.size();
  }

  // The next train, of those that came with the latest call or of a new one.
  bool take_train() {
    if (taken_ == trains_ && !fill()) return false;
    mmsghdr& header = headers_[taken_];
    train_ = in_.data() + taken_++ * kTrainRoom;
    length_ = header.msg_len;
    segment_ = length_;
    next_ = 0;
    for (cmsghdr* c = CMSG_FIRSTHDR(&header.msg_hdr); c != nullptr;
         c = CMSG_NXTHDR(&header.msg_hdr, c)) {
      int segment = 0;
      if (c->cmsg_level != SOL_UDP || c->cmsg_type != UDP_GRO) continue;
      std::memcpy(&segment, CMSG_DATA(c), sizeof segment);
      segment_ = static_cast<std::size_t>(segment);
    }
    return length_ >= kRawHeaderBytes && segment_ >= kRawHeaderBytes;
  }

  bool fill() {
    for (std::size_t i = 0; i < kReceives; ++i) {
      places_[i] = {in_.data() + i * kTrainRoom, kTrainRoom};
      headers_[i] = {};
      headers_[i].msg_hdr.msg_iov = &places_[i];
      headers_[i].msg_hdr.msg_iovlen = 1;
      headers_[i].msg_hdr.msg_control = controls_[i].data();
      headers_[i].msg_hdr.msg_controllen = controls_[i].size();
    }
    const int count = ::recvmmsg(fd_.get(), headers_.data(), kReceives, MSG_DONTWAIT, nullptr);
    taken_ = 0;
    trains_ = static_cast<std::size_t>(std::max(count, 0));
    return trains_ > 0;
  }

  nic::FileDescriptor fd_;
  std::size_t bytes_;
  std::vector<std::byte> memory_;
  sockaddr_in peer_{};
  std::vector<std::byte> out_;
  std::vector<std::byte> in_;
  std::array<mmsghdr, kReceives> headers_{};
  std::array<iovec, kReceives> places_{};
  alignas(
      cmsghdr) std::array<std::array<std::byte, CMSG_SPACE(sizeof(int))>, kReceives> controls_{};
  std::size_t trains_ = 0;
  std::size_t taken_ = 0;
  const std::byte* train_ = nullptr;
  std::size_t length_ = 0;
  std::size_t segment_ = 0;
  std::size_t next_ = 0;
};

}  // namespace

std::unique_ptr<RawWire> open_raw_udp(const RawChoice& choice) {
  nic::FileDescriptor fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_in self{};
  self.sin_family = AF_INET;
  self.sin_port = htons(kRawPort);
  std::memcpy(&self.sin_addr, choice.self.bytes.data(), 4);
  const int on = 1;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVBUFFORCE, &kBufferBytes, sizeof kBufferBytes);
  ::setsockopt(fd.get(), SOL_SOCKET, SO_SNDBUFFORCE, &kBufferBytes, sizeof kBufferBytes);
  ::setsockopt(fd.get(), SOL_UDP, UDP_GRO, &on, sizeof on);
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&self), sizeof self) != 0) {
    std::perror("bind");
    return nullptr;
  }
  return std::make_unique<RawUdp>(std::move(fd), choice);
}

}  // namespace uet::bench
