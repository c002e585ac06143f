// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What the fuzz targets of a Fep share: a Fep with something to talk about, and a hostile peer that
// sends it a sequence of packets. In the end every pool must be full again.
//
// The input is a sequence of packets, each behind two bytes: a control byte (see shape) and the
// length of what follows.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <utility>
#include <vector>

#include "fep/fep.h"
#include "ses/initiator.h"

namespace uet::fuzz {

using std::chrono::microseconds;
using std::chrono::milliseconds;

inline constexpr std::uint8_t kKnownType = 0x01;    // a known PDS type in the prologue
inline constexpr std::uint8_t kKnownIds = 0x02;     // PDC ids that exist, or nearly
inline constexpr std::uint8_t kNearPsn = 0x04;      // a PSN close to Start_PSN
inline constexpr std::uint8_t kRetry = 0x08;        // RETX and AR
inline constexpr std::uint8_t kLetTimePass = 0x10;  // afterwards, beyond a time-out
inline constexpr std::uint32_t kStartPsn = 70000;
inline constexpr std::uint16_t kFirstPdcId = 10;
inline constexpr Time kBegin = time_from_ns(16'000'000);

inline void require(bool condition) {
  if (!condition) std::abort();
}

inline FepAddress address_of(std::uint8_t last_byte) {
  FepAddress address;
  address.ip.bytes = {10, 0, 0, last_byte};
  return address;
}

// Hands out one packet, swallows all.
class OnePacketNic final : public nic::Nic {
 public:
  std::size_t rx_burst(std::span<RxPacket> out, Time) override {
    if (!waiting) return 0;
    waiting = false;
    out[0] = RxPacket{.bytes = packet, .source = address_of(2), .entropy = 50000};
    return 1;
  }
  std::size_t tx_burst(std::span<const Packet* const> in) override { return in.size(); }
  const nic::NicCaps& caps() const override { return caps_; }
  FepAddress local_address() const override { return address_of(1); }

  std::vector<std::byte> packet;  // exactly its bytes, so that reading past the end shows
  bool waiting = false;

 private:
  nic::NicCaps caps_;
};

class QuietSink final : public ses::CompletionSink {
 public:
  void complete(const ses::Completion&) noexcept override {}
  bool can_take_event() noexcept override { return true; }
  bool reserve_receive() noexcept override { return true; }
  void release_receive() noexcept override {}
  void remote_access(ses::Kind, std::uint64_t) noexcept override {}
};

inline fep::Config small_config() {
  fep::Config config;
  config.pds.pdc_count = 4;
  config.pds.default_mpr = 1;
  config.pds.start_psn = kStartPsn;
  config.pds.first_pdc_id = kFirstPdcId;
  config.pds.max_rto_retransmissions = 2;
  config.ses.payload_mtu = 1024;
  config.ses.tx_messages = 16;
  config.ses.rx_messages = 16;
  config.ses.posted_receives = 16;
  config.ses.return_messages = 16;
  config.ses.contexts = 2;
  config.ses.unexpected_bytes_per_context = 8192;
  config.packets = 256;
  config.buffers = 16;
  config.memory_regions = 4;
  return config;
}

// Makes it likely that the packet gets past the first checks.
inline void shape(std::span<std::byte> packet, std::uint8_t control) {
  if (packet.size() < 12) return;
  const auto keep = [&](std::size_t at, std::uint8_t mask, std::uint8_t base) {
    packet[at] = static_cast<std::byte>(base + (std::to_integer<std::uint8_t>(packet[at]) & mask));
  };
  if (control & kKnownType) {
    const auto type = std::to_integer<std::uint8_t>(packet[0]) >> 3;
    packet[0] = (packet[0] & std::byte{7}) | static_cast<std::byte>((2 + type % 13) << 3);
  }
  if (control & kRetry) packet[1] |= std::byte{0x18};
  if (control & kNearPsn) {
    packet[4] = packet[5] = std::byte{0};
    packet[4] = std::byte{kStartPsn >> 24};
    packet[5] = std::byte{(kStartPsn >> 16) & 0xFF};
    packet[6] = std::byte{(kStartPsn >> 8) & 0xFF};
    keep(7, 0x1F, kStartPsn & 0xFF);
  }
  if (control & kKnownIds) {
    packet[8] = packet[10] = std::byte{0};
    keep(9, 3, 1);
    keep(11, 7, kFirstPdcId);
  }
}

// `top`: the NIC that the Fep stands on, at or above `nic`. `finish`: changes each packet of the
// input before it arrives.
template <class Finish>
void talk(OnePacketNic& nic, nic::Nic& top, std::span<const std::uint8_t> input, Finish&& finish) {
  const std::uint8_t* data = input.data();
  std::size_t size = input.size();
  Time now = kBegin;
  QuietSink sink;
  fep::Fep fep(small_config(), top, now);

  // Something to talk about: memory that may be written, a receive, a send that waits for its ACK.
  std::array<std::byte, 4096> exposed{};
  ri::MemoryRegion region;
  region.base = exposed.data();
  region.length = exposed.size();
  region.access = ri::kRemoteRead | ri::kRemoteWrite;
  require(fep.regions().add(region).ok());
  ses::ContextConfig with;
  with.job = JobId{7};
  with.pid_on_fep = PidOnFep{1};
  auto opened = fep.ses().open_context(with, sink);
  require(opened.ok());
  ses::Context& context = *opened.value();
  fep.ses().enable(context);
  std::array<std::byte, 2048> posted{};
  const ses::IoSlice into{posted.data(), posted.size()};
  ses::ReceiveOp receive;
  receive.local = {&into, 1};
  require(fep.ses().receive(context, receive, now).ok());
  ses::Peer peer;
  peer.fep = address_of(2);
  std::array<std::byte, 3000> message{};
  const ses::IoSlice from{message.data(), message.size()};
  ses::SendOp send;
  send.peer = &peer;
  send.local = {&from, 1};
  require(fep.ses().initiator().post(context, send, now).ok());
  with.resource_index = ResourceIndex{1};
  with.mode = DeliveryMode::Uud;
  auto datagrams = fep.ses().open_context(with, sink);
  require(datagrams.ok());
  fep.ses().enable(*datagrams.value());
  require(fep.ses().receive(*datagrams.value(), receive, now).ok());
  fep.progress(now);

  while (size >= 2) {
    const std::uint8_t control = data[0];
    const std::size_t length = std::min<std::size_t>(data[1], size - 2);
    const auto bytes = std::as_bytes(std::span(data + 2, length));
    nic.packet.assign(bytes.begin(), bytes.end());
    shape(nic.packet, control);
    finish(nic.packet, control);
    nic.packet.shrink_to_fit();
    nic.waiting = true;
    now += control & kLetTimePass ? milliseconds(25) : microseconds(16);
    fep.progress(now);
    data += 2 + length;
    size -= 2 + length;
  }

  fep.ses().close_context(context, now);
  fep.ses().close_context(*datagrams.value(), now);
  fep.begin_close(now);
  // A read that fails as its PDC closes is followed by one that informs the sender.
  for (int i = 0; i < 4000 && !(fep.closed() && fep.quiescent()); ++i) {
    now += milliseconds(20);
    fep.progress(now);
  }
  require(fep.closed());
  require(fep.quiescent());
}

}  // namespace uet::fuzz
