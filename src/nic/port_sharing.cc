// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "nic/port_sharing.h"

#include <linux/filter.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <new>
#include <utility>

#include "uet/wire/pds.h"

namespace uet::nic {
namespace {

using wire::PdsType;

// WIRE 2.2 to 2.6. A program of this kind sees the packet behind the UDP header.
constexpr std::uint32_t kFlagsAt = 1;
constexpr std::uint32_t kSyn = 0x04;
constexpr std::uint32_t kNackOfRudi = 0x08;  // NT
constexpr std::uint32_t kPacketIdAt = 4;
constexpr std::uint32_t kDpdcidAt = 10;

// The result is the number of the socket, in the order in which they joined the port. A load beyond
// the end of a packet ends the program with 0, the first socket.
class Steering {
 public:
  Steering(std::span<const std::uint8_t> numbers, unsigned bits) {
    load(BPF_B, 0);
    add(BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, 3));
    // The jumps lead to the end of a section below, whose lengths are known.
    constexpr unsigned kCases = 11;
    unsigned left = kCases;
    const auto jump_if = [&](PdsType type, unsigned section) {
      --left;  // instructions of this list behind this one, with the last
      add(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(type),
                   static_cast<std::uint8_t>(left + 1 + section), 0));
    };
    constexpr unsigned kRequest = 0;
    constexpr unsigned kNack = 3;
    constexpr unsigned kDpdcid = 5;
    constexpr unsigned kPacketId = 7;
    jump_if(PdsType::RudReq, kRequest);
    jump_if(PdsType::RodReq, kRequest);
    jump_if(PdsType::RudCcReq, kRequest);
    jump_if(PdsType::RodCcReq, kRequest);
    jump_if(PdsType::Cp, kRequest);
    jump_if(PdsType::Nack, kNack);
    jump_if(PdsType::NackCcx, kNack);
    jump_if(PdsType::Ack, kDpdcid);
    jump_if(PdsType::AckCc, kDpdcid);
    jump_if(PdsType::AckCcx, kDpdcid);
    jump_if(PdsType::RudiResp, kPacketId);
    add(BPF_STMT(BPF_RET | BPF_K, 0));
    // kRequest
    load(BPF_B, kFlagsAt);
    add(BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, kSyn, 0, 3));
    add(BPF_STMT(BPF_RET | BPF_K, 0));
    // kNack
    load(BPF_B, kFlagsAt);
    add(BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, kNackOfRudi, 2, 0));
    // kDpdcid
    load(BPF_H, kDpdcidAt);
    add(BPF_STMT(BPF_JMP | BPF_JA, 1));
    // kPacketId
    load(BPF_H, kPacketIdAt);
    add(BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, 16 - bits));
    std::uint32_t socket = 0;
    for (const std::uint8_t number : numbers) {
      add(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1));
      add(BPF_STMT(BPF_RET | BPF_K, ++socket));
    }
    add(BPF_STMT(BPF_RET | BPF_K, 0));
  }

  bool attach(int fd) {
    const sock_fprog program{.len = static_cast<unsigned short>(code_.size()),
                             .filter = code_.data()};
    return ::setsockopt(fd, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &program, sizeof program) == 0;
  }

 private:
  void add(const sock_filter& instruction) { code_.push_back(instruction); }
  void load(std::uint32_t size, std::uint32_t at) {
    add(BPF_STMT(static_cast<std::uint16_t>(BPF_LD | size | BPF_ABS), at));
  }

  std::vector<sock_filter> code_;
};

bool share_port_of(int fd) {
  const int on = 1;
  return ::setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on) == 0;
}

// Packets that the kernel has given to the socket before the program was there.
void discard_all(int fd) {
  char byte = 0;
  while (::recv(fd, &byte, sizeof byte, MSG_DONTWAIT | MSG_TRUNC) >= 0) {
  }
}

}  // namespace

int LentPort::join(int first, int socket, const FepAddress& address, const PdcIdShare& share) {
  try {
    int joined = 0;
    if (exchange() == nullptr) {
      auto exchange = std::make_shared<PortExchange>(share.bits);
      joined = exchange->join(PortExchange::kFirst);
      if (joined == 0) sorter_.join(std::move(exchange), PortExchange::kFirst);
    }
    if (joined == 0) joined = exchange()->join(share.number);
    if (joined != 0) return joined;
    SocketAddress at;
    write_socket_address(address, at);
    if (share_port_of(first) && share_port_of(socket) &&
        ::bind(socket, &at.any, socket_address_length(address.ip.is_ipv6)) == 0) {
      numbers_.push_back(share.number);
      if (Steering(numbers_, share.bits).attach(socket)) {
        discard_all(socket);
        return 0;
      }
      numbers_.pop_back();
    }
    return errno;
  } catch (const std::bad_alloc&) {
    return ENOMEM;
  }
}

int PortExchange::join(std::uint8_t number) {
  if (box(number) != nullptr) return EBUSY;
  auto made = std::make_unique<Box>();
  made->bell = FileDescriptor(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!made->bell.valid()) return errno;
  all_.push_back(std::move(made));
  boxes_[number].store(all_.back().get(), std::memory_order_release);
  return 0;
}

// As the program of Steering.
std::uint8_t PortExchange::owner_of(std::span<const std::byte> packet) const {
  if (packet.size() < sizeof(wire::PdsPrologue)) return kFirst;
  const auto flags = std::to_integer<std::uint32_t>(packet[kFlagsAt]);
  std::size_t id_at = kDpdcidAt;
  switch (static_cast<PdsType>(std::to_integer<std::uint8_t>(packet[0]) >> 3)) {
    case PdsType::RudReq:
    case PdsType::RodReq:
    case PdsType::RudCcReq:
    case PdsType::RodCcReq:
    case PdsType::Cp:
      if ((flags & kSyn) != 0) return kFirst;
      break;
    case PdsType::Ack:
    case PdsType::AckCc:
    case PdsType::AckCcx:
      break;
    case PdsType::Nack:
    case PdsType::NackCcx:
      if ((flags & kNackOfRudi) != 0) id_at = kPacketIdAt;
      break;
    case PdsType::RudiResp:
      id_at = kPacketIdAt;
      break;
    default:
      return kFirst;
  }
  if (packet.size() < id_at + 2) return kFirst;
  const auto number = std::to_integer<std::uint8_t>(packet[id_at] >> (8 - bits_));
  return box(number) != nullptr ? number : kFirst;
}

void PortExchange::put(std::uint8_t number, const RxPacket& packet) {
  Box& to = *box(number);
  try {
    Parcel parcel{.bytes = {packet.bytes.begin(), packet.bytes.end()}, .packet = packet};
    const std::lock_guard guard(to.mutex);
    if (to.parcels.size() == kMostWaiting) return;
    to.parcels.push_back(std::move(parcel));
  } catch (const std::bad_alloc&) {
    return;  // as if the network had lost it
  }
  if (to.any.exchange(true, std::memory_order_acq_rel)) return;
  const std::uint64_t one = 1;
  (void)!::write(to.bell.get(), &one, sizeof one);
}

void PortExchange::take(std::uint8_t number, std::vector<Parcel>& out) {
  Box& from = *box(number);
  out.clear();
  std::uint64_t rung = 0;
  (void)!::read(from.bell.get(), &rung, sizeof rung);
  from.any.store(false, std::memory_order_relaxed);
  const std::lock_guard guard(from.mutex);
  out.swap(from.parcels);
}

std::size_t PortSorter::exchange_packets(std::span<RxPacket> out, std::size_t count) {
  std::size_t kept = 0;
  for (const RxPacket& packet : out.first(count)) {
    const std::uint8_t owner = exchange_->owner_of(packet.bytes);
    if (owner == number_) {
      out[kept++] = packet;
    } else {
      exchange_->put(owner, packet);
    }
  }
  if (empty() && exchange_->any_for(number_)) {
    exchange_->take(number_, taken_);
    next_ = 0;
  }
  for (; kept < out.size() && !empty(); ++next_) {
    const PortExchange::Parcel& parcel = taken_[next_];
    out[kept] = parcel.packet;
    out[kept++].bytes = parcel.bytes;
  }
  return kept;
}

bool BorrowedPorts::add(const LentSocket& lent, std::uint8_t via, const PdcIdShare& share) {
  SocketAddress bound;
  socklen_t length = sizeof bound;
  if (::getsockname(lent.fd, &bound.any, &length) != 0) return false;
  try {
    ports_.reserve(ports_.size() + 1);
    if (number_of_via_.size() <= via) number_of_via_.resize(via + std::size_t{1});
    auto port = std::make_unique<Port>();
    port->via = via;
    port->port = read_socket_address(bound).port;
    number_of_via_[via] = static_cast<std::uint8_t>(ports_.size());
    port->socket = FileDescriptor(lent.fd);
    port->sorter.join(lent.exchange, share.number);
    ports_.push_back(std::move(port));
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

bool BorrowedPorts::empty() const {
  for (const auto& port : ports_) {
    if (!port->buffers.empty() || !port->sorter.empty()) return false;
  }
  return true;
}

std::size_t BorrowedPorts::receive(std::span<RxPacket> out, Time now, NicCounters& counters,
                                   const Note& note) {
  std::size_t filled = 0;
  next_ = (next_ + 1) % ports_.size();
  for (std::size_t i = 0; i < ports_.size() && filled < out.size(); ++i) {
    Port& port = *ports_[(next_ + i) % ports_.size()];
    if (port.buffers.empty()) {
      const NoCancel no_cancel;
      note(port.buffers.fill(port.socket.get(), now), port.socket.get());
    }
    const auto rest = out.subspan(filled);
    const std::size_t more = port.sorter.sort_out(rest, port.buffers.hand_out(rest, counters));
    for (RxPacket& packet : rest.first(more)) packet.source.via = port.via;
    filled += more;
    counters.packets_received += more;
  }
  return filled;
}

}  // namespace uet::nic
