// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A ring of AF_PACKET in each direction.
#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <atomic>
#include <cstdio>

#include "nic/socket.h"
#include "raw_frame.h"

namespace uet::bench {
namespace {

constexpr unsigned kFrameBytes = 16'384;
constexpr unsigned kBlockBytes = 262'144;
constexpr unsigned kFrames = 512;
constexpr std::size_t kSendAt = TPACKET_ALIGN(sizeof(tpacket2_hdr));

struct Ring {
  nic::FileDescriptor socket;
  std::byte* memory = nullptr;
  unsigned next = 0;

  Ring() = default;
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;
  ~Ring() {
    if (memory != nullptr) ::munmap(memory, std::size_t{kFrames} * kFrameBytes);
  }
  tpacket2_hdr* frame() const {
    return reinterpret_cast<tpacket2_hdr*>(memory + std::size_t{next} * kFrameBytes);
  }
  std::atomic_ref<std::uint32_t> status() const { return std::atomic_ref(frame()->tp_status); }
  void advance() { next = (next + 1) % kFrames; }

  bool open(int option, const std::string& interface, std::uint16_t protocol) {
    socket = nic::FileDescriptor(::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const int version = TPACKET_V2;
    const int on = 1;
    const tpacket_req request{kBlockBytes, kFrames * kFrameBytes / kBlockBytes, kFrameBytes,
                              kFrames};
    sockaddr_ll address{};
    address.sll_family = AF_PACKET;
    address.sll_protocol = htons(protocol);
    address.sll_ifindex = static_cast<int>(::if_nametoindex(interface.c_str()));
    ::setsockopt(socket.get(), SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof on);
    ::setsockopt(socket.get(), SOL_PACKET, PACKET_QDISC_BYPASS, &on, sizeof on);
    if (::setsockopt(socket.get(), SOL_PACKET, PACKET_VERSION, &version, sizeof version) != 0 ||
        ::setsockopt(socket.get(), SOL_PACKET, option, &request, sizeof request) != 0 ||
        ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
      return false;
    }
    void* const mapped = ::mmap(nullptr, std::size_t{kFrames} * kFrameBytes, PROT_READ | PROT_WRITE,
                                MAP_SHARED, socket.get(), 0);
    if (mapped == MAP_FAILED) return false;
    memory = static_cast<std::byte*>(mapped);
    return true;
  }
};

class RawPacket final : public RawWire {
 public:
  explicit RawPacket(const RawFrame& frame) : frame_(frame) {}
  bool open(const std::string& interface) {
    return in_.open(PACKET_RX_RING, interface, ETH_P_IP) && out_.open(PACKET_TX_RING, interface, 0);
  }

  std::size_t send(std::span<const RawMessage> messages, bool with_payload) override {
    std::size_t sent = 0;
    for (; sent < messages.size(); ++sent, out_.advance()) {
      if (out_.status().load(std::memory_order_acquire) != TP_STATUS_AVAILABLE) break;
      frame_.write(reinterpret_cast<std::byte*>(out_.frame()) + kSendAt, messages[sent],
                   with_payload);
      out_.frame()->tp_len = static_cast<unsigned>(frame_.bytes(with_payload));
      out_.status().store(TP_STATUS_SEND_REQUEST, std::memory_order_release);
    }
    ::send(out_.socket.get(), nullptr, 0, MSG_DONTWAIT);
    return sent;
  }

  std::size_t receive(std::span<RawMessage> out) override {
    std::size_t filled = 0;
    while (filled < out.size() &&
           (in_.status().load(std::memory_order_acquire) & TP_STATUS_USER) != 0) {
      const tpacket2_hdr& head = *in_.frame();
      const auto* const begin = reinterpret_cast<const std::byte*>(&head) + head.tp_mac;
      if (frame_.read({begin, head.tp_snaplen}, out[filled])) ++filled;
      in_.status().store(TP_STATUS_KERNEL, std::memory_order_release);
      in_.advance();
    }
    return filled;
  }

 private:
  RawFrame frame_;
  Ring in_;
  Ring out_;
};

}  // namespace

std::unique_ptr<RawWire> open_raw_packet(const RawChoice& choice) {
  const auto frame = RawFrame::open(choice);
  if (!frame) return nullptr;
  auto wire = std::make_unique<RawPacket>(*frame);
  if (wire->open(choice.interface)) return wire;
  std::perror("packet sockets");
  return nullptr;
}

}  // namespace uet::bench
