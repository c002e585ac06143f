// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// XdpQueue over a stand-in for libxdp: rings in memory whose other side is the test, and a socket
// that counts how often it is kicked. Takes no right.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <vector>

#include "nic/xdp_device.h"

namespace {

constexpr std::uint32_t kContinued = 1;  // XDP_PKT_CONTD

// One of the four rings; the kernel's side of it.
template <class Entry>
struct Ring {
  std::vector<Entry> entries;
  std::uint32_t producer = 0;
  std::uint32_t consumer = 0;
  std::uint32_t flags = 0;

  template <class OurSide>
  void connect(OurSide& ring, std::uint32_t size, std::uint32_t cached_cons) {
    entries.resize(size);
    ring = {.cached_prod = 0,
            .cached_cons = cached_cons,
            .mask = size - 1,
            .size = size,
            .producer = &producer,
            .consumer = &consumer,
            .ring = entries.data(),
            .flags = &flags};
  }
  std::optional<Entry> take() {
    if (consumer == producer) return {};
    return entries[consumer++ & (entries.size() - 1)];
  }
  void put(const Entry& entry) { entries[producer++ & (entries.size() - 1)] = entry; }
  std::uint32_t waiting() const { return producer - consumer; }
};

struct FakeKernel {
  Ring<std::uint64_t> fill;
  Ring<std::uint64_t> completed;
  Ring<xdp_desc> received;
  Ring<xdp_desc> to_send;
  std::byte* memory = nullptr;
  std::uint64_t memory_bytes = 0;
  int umems = 0;
  int sockets = 0;
  int tries = 0;  // to make a socket
  std::uint16_t bind_flags = 0;
  int umem_error = 0;
  std::vector<int> socket_errors;  // of the tries, in turn; then 0
  std::array<uet::nic::FileDescriptor, 2> ends;

  // A piece of a frame into the next chunk that was given to us.
  void deliver(std::span<const std::byte> piece, bool last = true) {
    const auto chunk = fill.take();
    ASSERT_TRUE(chunk) << "no chunk was left to receive into";
    const std::uint64_t at = *chunk + 256;  // as the kernel does
    std::memcpy(memory + at, piece.data(), piece.size());
    received.put({.addr = at,
                  .len = static_cast<std::uint32_t>(piece.size()),
                  .options = last ? 0 : kContinued});
  }
  // The next frame that was sent; its chunks are given back.
  std::vector<std::byte> take_sent() {
    std::vector<std::byte> frame;
    while (const auto piece = to_send.take()) {
      EXPECT_LE(piece->len, 4096U);
      EXPECT_LE(piece->addr + piece->len, memory_bytes);
      frame.insert(frame.end(), memory + piece->addr, memory + piece->addr + piece->len);
      completed.put(piece->addr);
      if ((piece->options & kContinued) == 0) break;
    }
    return frame;
  }
  int kicks() const {
    int count = 0;
    std::byte ignored{};
    while (::recv(ends[1].get(), &ignored, 1, MSG_DONTWAIT) >= 0) ++count;
    return count;
  }
};

FakeKernel* kernel = nullptr;

}  // namespace

// ---- instead of libxdp --------------------------------------------------------------------------

extern "C" {

int xsk_umem__create(xsk_umem** umem, void* area, __u64 size, xsk_ring_prod* fill,
                     xsk_ring_cons* completed, const xsk_umem_config* config) {
  if (kernel->umem_error != 0) return -kernel->umem_error;
  kernel->memory = static_cast<std::byte*>(area);
  kernel->memory_bytes = size;
  kernel->fill.connect(*fill, config->fill_size, config->fill_size);
  kernel->completed.connect(*completed, config->comp_size, 0);
  ++kernel->umems;
  *umem = reinterpret_cast<xsk_umem*>(kernel);
  return 0;
}

int xsk_umem__delete(xsk_umem*) {
  EXPECT_EQ(kernel->sockets, 0) << "the socket goes first";
  --kernel->umems;
  return 0;
}

int xsk_socket__create(xsk_socket** socket, const char* name, __u32 queue, xsk_umem*,
                       xsk_ring_cons* received, xsk_ring_prod* to_send,
                       const xsk_socket_config* config) {
  const auto number = static_cast<std::size_t>(kernel->tries++);
  if (number < kernel->socket_errors.size()) return -kernel->socket_errors[number];
  EXPECT_STREQ(name, "eth7");
  EXPECT_EQ(queue, 3U);
  EXPECT_EQ(config->libxdp_flags, XSK_LIBXDP_FLAGS__INHIBIT_PROG_LOAD);
  kernel->bind_flags = config->bind_flags;
  kernel->received.connect(*received, config->rx_size, 0);
  if (to_send != nullptr) kernel->to_send.connect(*to_send, config->tx_size, config->tx_size);
  ++kernel->sockets;
  *socket = reinterpret_cast<xsk_socket*>(kernel);
  return 0;
}

void xsk_socket__delete(xsk_socket* socket) {
  if (socket != nullptr) --kernel->sockets;
}

int xsk_socket__fd(const xsk_socket*) { return kernel->ends[0].get(); }

}  // extern "C"

namespace uet::nic {
namespace {

using Frames = std::vector<std::vector<std::byte>>;

constexpr std::size_t kFrameBytes = 9014;

std::vector<std::byte> pattern(std::size_t length, unsigned seed = 1) {
  std::vector<std::byte> bytes(length);
  for (std::size_t i = 0; i < length; ++i) bytes[i] = std::byte(seed * 37 + i * 7 + i / 256);
  return bytes;
}

class XdpQueueTest : public ::testing::Test {
 protected:
  XdpQueueTest() {
    kernel = &kernel_;
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()), 0);
    kernel_.ends = {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
  }
  ~XdpQueueTest() override {
    queue_ = nullptr;
    EXPECT_EQ(kernel_.sockets, 0);
    EXPECT_EQ(kernel_.umems, 0);
    kernel = nullptr;
  }

  // Returns the error.
  int open(std::uint32_t receive_chunks = 8, std::uint32_t send_chunks = 8,
           std::chrono::milliseconds patience = {}) {
    Interface interface;
    interface.name = "eth7";
    int error = 0;
    queue_ = XdpQueue::open({.interface = interface,
                             .queue = 3,
                             .receive_chunks = receive_chunks,
                             .send_chunks = send_chunks,
                             .bind_flags = 8,
                             .until = std::chrono::steady_clock::now() + patience},
                            error);
    EXPECT_EQ(queue_ == nullptr, error != 0);
    return error;
  }

  // Copies of the frames that have arrived.
  std::vector<std::vector<std::byte>> receive(std::size_t most = kRxBurst) {
    std::vector<ArrivedFrame> out(most);
    room_.resize(most * kFrameBytes);
    const std::size_t count = queue_->receive(out, room_, kFrameBytes, truncated_);
    std::vector<std::vector<std::byte>> frames;
    for (std::size_t i = 0; i < count; ++i) {
      frames.emplace_back(out[i].bytes.begin(), out[i].bytes.end());
    }
    return frames;
  }

  std::size_t send(const std::vector<std::vector<std::byte>>& frames) {
    std::vector<FrameToSend> all;
    for (const auto& frame : frames) {
      FrameToSend one;
      const std::span<const std::byte> bytes(frame);
      const auto piece = [&](std::size_t from, std::size_t to) {
        to = std::min(to, bytes.size());
        from = std::min(from, to);
        return Slice{bytes.data() + from, static_cast<std::uint32_t>(to - from)};
      };
      one.headers = bytes.first(std::min<std::size_t>(42, bytes.size()));
      one.pieces = {piece(42, 100), piece(100, 4097), piece(4097, bytes.size()), Slice{}};
      one.length = static_cast<std::uint32_t>(bytes.size());
      all.push_back(one);
    }
    return queue_->send(all);
  }

  FakeKernel kernel_;
  std::unique_ptr<XdpQueue> queue_;
  std::vector<std::byte> room_;
  std::uint64_t truncated_ = 0;
};

TEST_F(XdpQueueTest, OpensWithAllReceiveChunksGivenToTheKernel) {
  ASSERT_EQ(open(8, 4), 0);
  EXPECT_EQ(kernel_.memory_bytes, 12U * 4096);
  EXPECT_EQ(kernel_.bind_flags, 8U);
  for (std::uint64_t i = 0; i < 8; ++i) EXPECT_EQ(kernel_.fill.take(), i * 4096);
  EXPECT_FALSE(kernel_.fill.take());
}

TEST_F(XdpQueueTest, ErrorsOfLibxdpAreHandedOn) {
  kernel_.umem_error = ENOBUFS;
  EXPECT_EQ(open(), ENOBUFS);
  kernel_.umem_error = 0;
  kernel_.socket_errors = {EOPNOTSUPP};
  EXPECT_EQ(open(8, 8, std::chrono::seconds(10)), EOPNOTSUPP);
  EXPECT_EQ(kernel_.tries, 1) << "trying again does not help";
}

TEST_F(XdpQueueTest, AQueueThatIsTakenIsTriedAgainWhileThereIsTime) {
  kernel_.socket_errors = {EBUSY, EBUSY, EBUSY};
  EXPECT_EQ(open(8, 8, std::chrono::seconds(10)), 0);
  EXPECT_EQ(kernel_.tries, 4);
  queue_ = nullptr;
  kernel_.tries = 0;
  EXPECT_EQ(open(), EBUSY);
  EXPECT_EQ(kernel_.tries, 1) << "there was no time";
}

TEST_F(XdpQueueTest, FramesAreSentWholeWhateverTheirPieces) {
  ASSERT_EQ(open(8, 16), 0);
  for (const std::size_t length : {14, 42, 43, 100, 4096, 4097, 8192, 9014}) {
    const auto frame = pattern(length, static_cast<unsigned>(length));
    ASSERT_EQ(send({frame}), 1U) << length;
    EXPECT_EQ(kernel_.to_send.waiting(), (length + 4095) / 4096) << length;
    EXPECT_EQ(kernel_.take_sent(), frame) << length;
  }
}

TEST_F(XdpQueueTest, FullQueue_TakesPrefixUntilChunksReturn) {
  ASSERT_EQ(open(8, 4), 0);
  std::vector<std::vector<std::byte>> frames;
  for (unsigned i = 0; i < 6; ++i) frames.push_back(pattern(500, i));
  EXPECT_EQ(send(frames), 4U);
  EXPECT_EQ(send({frames[4]}), 0U);
  EXPECT_EQ(kernel_.take_sent(), frames[0]);
  EXPECT_EQ(send({pattern(4097)}), 0U) << "one chunk is not enough";
  EXPECT_EQ(send({frames[4], frames[5]}), 1U);
  for (unsigned i = 1; i < 5; ++i) EXPECT_EQ(kernel_.take_sent(), frames[i]);
  for (unsigned round = 0; round < 100; ++round) {  // around the rings
    ASSERT_EQ(send(frames), 4U);
    for (unsigned i = 0; i < 4; ++i) ASSERT_EQ(kernel_.take_sent(), frames[i]);
  }
}

TEST_F(XdpQueueTest, AFrameOfOneChunkIsLentWhereItLies) {
  ASSERT_EQ(open(), 0);
  const auto bytes = pattern(1000);
  kernel_.deliver(bytes);
  std::array<ArrivedFrame, 4> out;
  ASSERT_EQ(queue_->receive(out, {}, kFrameBytes, truncated_), 1U);
  EXPECT_THAT(out[0].bytes, ::testing::ElementsAreArray(bytes));
  EXPECT_GE(out[0].bytes.data(), kernel_.memory);
  EXPECT_LT(out[0].bytes.data(), kernel_.memory + kernel_.memory_bytes);
  EXPECT_EQ(kernel_.fill.waiting(), 7U) << "it is ours until it is given back";
  queue_->give_back();
  EXPECT_EQ(kernel_.fill.waiting(), 8U);
}

TEST_F(XdpQueueTest, ReceivesAroundTheRings) {
  ASSERT_EQ(open(), 0);
  for (unsigned round = 0; round < 100; ++round) {
    std::vector<std::vector<std::byte>> frames;
    for (unsigned i = 0; i < 5; ++i) frames.push_back(pattern(60 + i, round + i));
    for (const auto& frame : frames) kernel_.deliver(frame);
    EXPECT_EQ(receive(), frames);
    queue_->give_back();
  }
}

TEST_F(XdpQueueTest, ExcessFramesOfABurstComeWithTheNext) {
  ASSERT_EQ(open(), 0);
  for (unsigned i = 0; i < 5; ++i) kernel_.deliver(pattern(60, i));
  EXPECT_EQ(receive(2), (Frames{pattern(60, 0), pattern(60, 1)}));
  queue_->give_back();
  EXPECT_EQ(receive(), (Frames{pattern(60, 2), pattern(60, 3), pattern(60, 4)}));
}

TEST_F(XdpQueueTest, FramesOfSeveralChunksArePutTogether) {
  ASSERT_EQ(open(), 0);
  const auto frame = pattern(kFrameBytes);
  const std::span<const std::byte> bytes(frame);
  kernel_.deliver(pattern(60));
  kernel_.deliver(bytes.first(3840), false);
  kernel_.deliver(bytes.subspan(3840, 3840), false);
  kernel_.deliver(bytes.subspan(7680));
  kernel_.deliver(pattern(61));
  EXPECT_EQ(receive(), (Frames{pattern(60), frame, pattern(61)}));
  queue_->give_back();
  EXPECT_EQ(kernel_.fill.waiting(), 8U);
}

TEST_F(XdpQueueTest, AFrameIsKeptUntilItsEndArrives) {
  ASSERT_EQ(open(), 0);
  const auto frame = pattern(5000);
  const std::span<const std::byte> bytes(frame);
  kernel_.deliver(pattern(60));
  kernel_.deliver(bytes.first(3840), false);
  EXPECT_EQ(receive(), Frames{pattern(60)});
  queue_->give_back();
  EXPECT_TRUE(receive().empty());
  kernel_.deliver(bytes.subspan(3840));
  EXPECT_EQ(receive(), Frames{frame});
  queue_->give_back();
  EXPECT_EQ(kernel_.fill.waiting(), 8U);
}

TEST_F(XdpQueueTest, FramesThatAreTooLongAreThrownAwayAndCounted) {
  ASSERT_EQ(open(), 0);
  for (int i = 0; i < 2; ++i) kernel_.deliver(pattern(3840), false);
  kernel_.deliver(pattern(kFrameBytes - 2 * 3840 + 1));
  kernel_.deliver(pattern(60));
  EXPECT_EQ(receive(), Frames{pattern(60)});
  EXPECT_EQ(truncated_, 1U);
  queue_->give_back();
  EXPECT_EQ(kernel_.fill.waiting(), 8U);

  kernel_.deliver(pattern(100), false);  // no memory to join chunks
  kernel_.deliver(pattern(100));
  std::array<ArrivedFrame, 4> out;
  EXPECT_EQ(queue_->receive(out, {}, kFrameBytes, truncated_), 0U);
  EXPECT_EQ(truncated_, 2U);
}

TEST_F(XdpQueueTest, Kicks_OnlyASleepingKernelWithPackets) {
  ASSERT_EQ(open(), 0);
  send({pattern(60)});
  EXPECT_EQ(queue_->kick(), 0);
  EXPECT_EQ(kernel_.kicks(), 0) << "it is awake";
  kernel_.to_send.flags = XDP_RING_NEED_WAKEUP;
  EXPECT_EQ(queue_->kick(), EAGAIN) << "it sends nothing";
  EXPECT_GT(kernel_.kicks(), 1) << "it sends a limited number each time";
  kernel_.take_sent();
  EXPECT_EQ(queue_->kick(), 0);
  EXPECT_EQ(kernel_.kicks(), 0) << "nothing is left to send";
}

TEST_F(XdpQueueTest, AFailedKickIsTold) {
  ASSERT_EQ(open(), 0);
  send({pattern(60)});
  kernel_.to_send.flags = XDP_RING_NEED_WAKEUP;
  kernel_.ends[1] = FileDescriptor();
  EXPECT_EQ(queue_->kick(), ECONNREFUSED);
}

TEST_F(XdpQueueTest, WakesAKernelThatWaitsForChunks) {
  ASSERT_EQ(open(), 0);
  const std::byte datagram{};
  ::send(kernel_.ends[1].get(), &datagram, 1, 0);
  queue_->give_back();
  kernel_.fill.flags = XDP_RING_NEED_WAKEUP;
  std::byte got{};
  ASSERT_EQ(::recv(kernel_.ends[0].get(), &got, 1, MSG_PEEK), 1) << "it was awake";
  queue_->give_back();
  EXPECT_EQ(::recv(kernel_.ends[0].get(), &got, 1, 0), -1) << "the call takes what is there";
}

}  // namespace
}  // namespace uet::nic
