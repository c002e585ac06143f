// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The datagrams of raw_udp.cc by io_uring: one multishot receive into a ring of buffers, and sends
// of trains (UDP_SEGMENT) from slots that stay as they are until the kernel has sent them. The
// study behind decision 074. NIC uring: the caller submits; uring:sqpoll: a thread of the kernel.
#include <arpa/inet.h>
#include <liburing.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "nic/socket.h"
#include "raw_wire.h"

namespace uet::bench {
namespace {

constexpr std::size_t kMostTrain = 65'507;
constexpr unsigned kBuffers = 16;  // to receive: as many as raw_udp.cc has
constexpr std::size_t kControlBytes = CMSG_SPACE(sizeof(int));
constexpr std::size_t kBufferBytes =
    sizeof(io_uring_recvmsg_out) + sizeof(sockaddr_in) + kControlBytes + 65'536;
constexpr std::size_t kSlots = 16;  // trains that may be on their way
constexpr int kSocketBytes = 4 << 20;
constexpr unsigned kEntries = 64;
constexpr int kGroup = 1;
constexpr std::uint64_t kReceive = kSlots;  // user_data; below: the slot of a send

class RawUring final : public RawWire {
 public:
  RawUring(nic::FileDescriptor fd, const RawChoice& choice)
      : fd_(std::move(fd)), bytes_(choice.bytes) {
    peer_.sin_family = AF_INET;
    peer_.sin_port = htons(kRawPort);
    std::memcpy(&peer_.sin_addr, choice.peer.bytes.data(), 4);
    in_.resize(kBuffers * kBufferBytes);
    for (Slot& slot : slots_) slot.data.resize(kMostTrain);
  }
  ~RawUring() override {
    if (opened_) ::io_uring_queue_exit(&ring_);
  }

  // 0, or a negative errno.
  int open(bool polling_thread) {
    io_uring_params parameters{};
    parameters.flags = polling_thread ? IORING_SETUP_SQPOLL
                                      : IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN;
    polls_ = polling_thread;
    if (const int error = ::io_uring_queue_init_params(kEntries, &ring_, &parameters); error != 0)
      return error;
    opened_ = true;
    const int fd = fd_.get();
    if (const int error = ::io_uring_register_files(&ring_, &fd, 1); error != 0) return error;
    io_uring_buf_reg buffers{};
    const std::size_t page = 4096;
    buffers_memory_.reset(
        static_cast<std::byte*>(std::aligned_alloc(page, page)));  // kBuffers * 16 bytes
    buffers.ring_addr = reinterpret_cast<std::uintptr_t>(buffers_memory_.get());
    buffers.ring_entries = kBuffers;
    buffers.bgid = kGroup;
    if (const int error = ::io_uring_register_buf_ring(&ring_, &buffers, 0); error != 0)
      return error;
    buffers_ = reinterpret_cast<io_uring_buf_ring*>(buffers_memory_.get());
    ::io_uring_buf_ring_init(buffers_);
    for (unsigned i = 0; i < kBuffers; ++i) give_back(i);
    arm();
    return std::min(::io_uring_submit(&ring_), 0);
  }

  std::size_t send(std::span<const RawMessage> messages, bool with_payload) override {
    const std::size_t size = kRawHeaderBytes + (with_payload ? bytes_ : 0);
    const std::size_t train = std::clamp<std::size_t>(kMostTrain / size, 1, kRawBurst);
    std::size_t done = 0;
    while (done < messages.size()) {
      if (free_ == 0) reap();
      const auto slot =
          std::find_if(slots_.begin(), slots_.end(), [](const Slot& one) { return !one.busy; });
      io_uring_sqe* const entry = slot != slots_.end() ? ::io_uring_get_sqe(&ring_) : nullptr;
      if (entry == nullptr) break;
      const std::size_t packets = std::min(train, messages.size() - done);
      for (std::size_t i = 0; i < packets; ++i) {
        write_raw(slot->data.data() + i * size, messages[done + i], size - kRawHeaderBytes);
      }
      prepare(*slot, packets, size);
      ::io_uring_prep_sendmsg(entry, 0, &slot->header, 0);
      ::io_uring_sqe_set_flags(entry, IOSQE_FIXED_FILE);
      ::io_uring_sqe_set_data64(entry, static_cast<std::uint64_t>(slot - slots_.begin()));
      slot->busy = true;
      --free_;
      done += packets;
    }
    if (done > 0) ::io_uring_submit(&ring_);
    return done;
  }

  std::size_t receive(std::span<RawMessage> out) override {
    std::size_t filled = 0;
    while (filled < out.size()) {
      if (next_ >= length_ && !take_train()) break;
      std::memcpy(&out[filled++], train_ + next_, sizeof(RawMessage));
      next_ += segment_;
    }
    return filled;
  }

 private:
  struct Slot {
    bool busy = false;
    std::vector<std::byte> data;
    iovec place{};
    msghdr header{};
    alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(std::uint16_t))> control{};
  };
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };

  void prepare(Slot& slot, std::size_t packets, std::size_t size) {
    slot.place = {slot.data.data(), packets * size};
    slot.header = {};
    slot.header.msg_name = &peer_;
    slot.header.msg_namelen = sizeof peer_;
    slot.header.msg_iov = &slot.place;
    slot.header.msg_iovlen = 1;
    if (packets == 1) return;
    slot.header.msg_control = slot.control.data();
    slot.header.msg_controllen = slot.control.size();
    cmsghdr* const control = CMSG_FIRSTHDR(&slot.header);
    const auto segment = static_cast<std::uint16_t>(size);
    control->cmsg_level = SOL_UDP;
    control->cmsg_type = UDP_SEGMENT;
    control->cmsg_len = CMSG_LEN(sizeof segment);
    std::memcpy(CMSG_DATA(control), &segment, sizeof segment);
  }

  // One receive for all datagrams to come, as long as there are buffers.
  void arm() {
    receive_.msg_namelen = sizeof(sockaddr_in);
    receive_.msg_controllen = kControlBytes;
    io_uring_sqe* const entry = ::io_uring_get_sqe(&ring_);
    ::io_uring_prep_recvmsg_multishot(entry, 0, &receive_, 0);
    ::io_uring_sqe_set_flags(entry, IOSQE_FIXED_FILE | IOSQE_BUFFER_SELECT);
    entry->buf_group = kGroup;
    ::io_uring_sqe_set_data64(entry, kReceive);
  }

  void give_back(unsigned buffer) {
    ::io_uring_buf_ring_add(buffers_, in_.data() + buffer * kBufferBytes, kBufferBytes,
                            static_cast<unsigned short>(buffer), ::io_uring_buf_ring_mask(kBuffers),
                            0);
    ::io_uring_buf_ring_advance(buffers_, 1);
  }

  // The completions that there are: sends free their slots, trains are kept in their order.
  void reap() {
    if (!polls_ && ::io_uring_cq_ready(&ring_) == 0) ::io_uring_get_events(&ring_);
    unsigned head = 0;
    unsigned count = 0;
    io_uring_cqe* entry = nullptr;
    bool ended = false;
    io_uring_for_each_cqe(&ring_, head, entry) {
      ++count;
      if (entry->user_data < kSlots) {
        slots_[entry->user_data].busy = false;
        ++free_;
        continue;
      }
      ended = ended || (entry->flags & IORING_CQE_F_MORE) == 0;
      if ((entry->flags & IORING_CQE_F_BUFFER) == 0) continue;
      trains_[waiting_++ % kBuffers] = {entry->flags >> IORING_CQE_BUFFER_SHIFT, entry->res};
    }
    ::io_uring_cq_advance(&ring_, count);
    if (ended) {
      arm();
      ::io_uring_submit(&ring_);
    }
  }

  bool take_train() {
    if (has_buffer_) give_back(buffer_);
    has_buffer_ = false;
    if (taken_ == waiting_) reap();
    if (taken_ == waiting_) return false;
    const Train train = trains_[taken_++ % kBuffers];
    has_buffer_ = true;
    buffer_ = train.buffer;
    auto* const memory = in_.data() + buffer_ * kBufferBytes;
    io_uring_recvmsg_out* const header =
        ::io_uring_recvmsg_validate(memory, train.bytes, &receive_);
    if (header == nullptr) return take_train();
    train_ = static_cast<const std::byte*>(::io_uring_recvmsg_payload(header, &receive_));
    length_ = ::io_uring_recvmsg_payload_length(header, train.bytes, &receive_);
    segment_ = length_;
    next_ = 0;
    for (cmsghdr* c = ::io_uring_recvmsg_cmsg_firsthdr(header, &receive_); c != nullptr;
         c = ::io_uring_recvmsg_cmsg_nexthdr(header, &receive_, c)) {
      int segment = 0;
      if (c->cmsg_level != SOL_UDP || c->cmsg_type != UDP_GRO) continue;
      std::memcpy(&segment, CMSG_DATA(c), sizeof segment);
      segment_ = static_cast<std::size_t>(segment);
    }
    return length_ >= kRawHeaderBytes && segment_ >= kRawHeaderBytes;
  }

  struct Train {
    unsigned buffer;
    int bytes;
  };

  nic::FileDescriptor fd_;
  std::size_t bytes_;
  sockaddr_in peer_{};
  io_uring ring_{};
  bool opened_ = false;
  bool polls_ = false;
  std::unique_ptr<std::byte, Free> buffers_memory_;
  io_uring_buf_ring* buffers_ = nullptr;
  msghdr receive_{};
  std::vector<std::byte> in_;
  std::array<Slot, kSlots> slots_;
  std::size_t free_ = kSlots;
  std::array<Train, kBuffers> trains_{};
  std::size_t waiting_ = 0;
  std::size_t taken_ = 0;
  bool has_buffer_ = false;
  unsigned buffer_ = 0;
  const std::byte* train_ = nullptr;
  std::size_t length_ = 0;
  std::size_t segment_ = 0;
  std::size_t next_ = 0;
};

}  // namespace

std::unique_ptr<RawWire> open_raw_uring(const RawChoice& choice) {
  nic::FileDescriptor fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_in self{};
  self.sin_family = AF_INET;
  self.sin_port = htons(kRawPort);
  std::memcpy(&self.sin_addr, choice.self.bytes.data(), 4);
  const int on = 1;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVBUFFORCE, &kSocketBytes, sizeof kSocketBytes);
  ::setsockopt(fd.get(), SOL_SOCKET, SO_SNDBUFFORCE, &kSocketBytes, sizeof kSocketBytes);
  ::setsockopt(fd.get(), SOL_UDP, UDP_GRO, &on, sizeof on);
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&self), sizeof self) != 0) {
    std::perror("bind");
    return nullptr;
  }
  auto wire = std::make_unique<RawUring>(std::move(fd), choice);
  if (const int error = wire->open(choice.nic == "uring:sqpoll"); error != 0) {
    std::fprintf(stderr, "io_uring: %s\n", std::strerror(-error));
    return nullptr;
  }
  return wire;
}

}  // namespace uet::bench
