// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Transport security between a Fep and its NIC: seals each packet that leaves and opens each packet
// that arrives, in the UDP form (TSS-6) or, where the NIC below says port 0, in the native form
// (TSS-4). The Fep above sees plain packets and a smaller IP MTU; the
// NIC below sees protected packets only. Rings of the same host belong above it (TSS-64).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "tss/sd_table.h"
#include "uet/nic/nic.h"
#include "wire/frame.h"

namespace uet::tss {

class SecureNic final : public nic::Nic {
 public:
  // Packets leave under the secure domain of `table` that their destination names
  // (FepAddress::sdi); 0 is the FEP's own, `sdi`. Sources of arriving packets name it in the same
  // way. Packets of domains that the FEP does not use are dropped as binding failures (TSS-11), and
  // so are requests of a job that their domain does not have (TSS-67). Unprotected packets are
  // dropped. `inner` and `table` outlive this; `table` may change between two calls, keys and
  // domains alike. `marks`: DSCPs that say that a switch has trimmed a packet (TSS-13). `has_ssi`:
  // headers have an SSI, so that the IP MTU shrinks by the larger overhead.
  SecureNic(nic::Nic& inner, SdTable& table, std::uint32_t sdi, bool has_ssi,
            const wire::TrimMarks& marks);
  // Owns `inner`.
  SecureNic(std::unique_ptr<nic::Nic> inner, SdTable& table, std::uint32_t sdi, bool has_ssi,
            const wire::TrimMarks& marks)
      : SecureNic(*inner, table, sdi, has_ssi, marks) {
    owned_ = std::move(inner);
  }

  // The FEP has peers in the domain `sdi`, too, which must be neither 0 nor its own: packets of
  // that domain are accepted from now on.
  void use(std::uint32_t sdi);
  // It has no more of them. Each use() needs its drop().
  void drop(std::uint32_t sdi);

  std::size_t rx_burst(std::span<RxPacket> out, Time now) override;
  // Packets that cannot be sealed are counted by the table, dropped and part of the prefix. A
  // packet that the inner NIC refuses is sealed again when it is offered again (TSS-35).
  std::size_t tx_burst(std::span<const Packet* const> in) override;
  std::uint16_t source_port_for(const Packet& packet) override {
    const std::uint16_t port = inner_.source_port_for(packet);
    return port != kNativePort ? port : kUetUdpPort;
  }
  int wait_fd() const override { return inner_.wait_fd(); }
  bool prepare_wait() override { return inner_.prepare_wait(); }
  std::optional<DeadPeer> poll_dead_peer() override { return inner_.poll_dead_peer(); }
  std::optional<LostRail> poll_lost_rail() override { return inner_.poll_lost_rail(); }
  void watch_refusals() override { inner_.watch_refusals(); }
  std::optional<FepAddress> take_refusal() override { return inner_.take_refusal(); }
  // The inner NIC's, or the end of a guard time.
  Time next_deadline() const override;
  std::uint64_t receive_backlog_bytes() const override { return inner_.receive_backlog_bytes(); }
  // The payload is copied as it is encrypted: no device reads registered memory (TSS-63).
  const nic::NicCaps& caps() const override { return caps_; }
  FepAddress local_address() const override { return self_; }
  nic::NicCounters counters() const override { return inner_.counters(); }

 private:
  // The source port of packets in the native form, which have none (nic/framed/framed_nic.h).
  static constexpr std::uint16_t kNativePort = 0;

  // Packets without a security header in a time of kFloodTime that make a flood.
  static constexpr std::size_t kFlood = 1000;
  static constexpr Duration kFloodTime = std::chrono::milliseconds(100);

  bool is_used(std::uint32_t sdi) const;
  void judge_flood(Time now);
  bool open(RxPacket& packet, std::size_t place, Time now);
  const Packet* seal(const Packet& packet, std::size_t place);

  std::unique_ptr<nic::Nic> owned_;
  nic::Nic& inner_;
  SdTable& table_;
  std::uint32_t sdi_;
  std::vector<std::uint32_t> others_;  // one for each use()
  bool flooded_ = false;               // the inner NIC thins out what is not protected
  std::size_t unprotected_ = 0;        // since counted_since_
  Time counted_since_{};
  wire::TrimMarks marks_;
  FepAddress self_;
  nic::NicCaps caps_;
  std::size_t packet_bytes_;  // of each place in the two storages
  std::unique_ptr<std::byte[]> opened_;
  std::unique_ptr<std::byte[]> sealed_;
  std::unique_ptr<Packet[]> packets_;
};

}  // namespace uet::tss
