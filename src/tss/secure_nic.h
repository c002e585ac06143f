// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Transport security between a Fep and its NIC: seals each packet that leaves and opens each packet
// that arrives, in the UDP form (TSS-6). The Fep above sees plain packets and a smaller IP MTU; the
// NIC below sees protected packets only. Rings of the same host belong above it (TSS-64).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "tss/sd_table.h"
#include "uet/nic/nic.h"
#include "wire/frame.h"

namespace uet::tss {

class SecureNic final : public nic::Nic {
 public:
  // All packets leave under the secure domain `sdi` of `table`, and packets of other domains are
  // dropped as binding failures (TSS-11). Unprotected packets are dropped. `inner` and `table`
  // outlive this; `table` may change between two calls, keys and domains alike. `marks`: DSCPs that
  // say that a switch has trimmed a packet (TSS-13). `has_ssi`: headers have an SSI, so that the
  // IP MTU shrinks by the larger overhead.
  SecureNic(nic::Nic& inner, SdTable& table, std::uint32_t sdi, bool has_ssi,
            const wire::TrimMarks& marks);

  std::size_t rx_burst(std::span<RxPacket> out, Time now) override;
  // Packets that cannot be sealed are counted by the table, dropped and part of the prefix. A
  // packet that the inner NIC refuses is sealed again when it is offered again (TSS-35).
  std::size_t tx_burst(std::span<const Packet* const> in) override;
  std::uint16_t leaves_from(const Packet& packet) override { return inner_.leaves_from(packet); }
  int wait_fd() const override { return inner_.wait_fd(); }
  bool prepare_wait() override { return inner_.prepare_wait(); }
  std::optional<LostPeer> take_lost_peer() override { return inner_.take_lost_peer(); }
  // The inner NIC's, or the end of a guard time.
  Time next_deadline() const override;
  std::uint64_t receive_backlog_bytes() const override { return inner_.receive_backlog_bytes(); }
  // The payload is copied as it is encrypted: no device reads registered memory (TSS-63).
  const nic::NicCaps& caps() const override { return caps_; }
  FepAddress local_address() const override { return self_; }
  nic::NicCounters counters() const override { return inner_.counters(); }

 private:
  bool open(RxPacket& packet, std::size_t place, Time now);
  const Packet* seal(const Packet& packet, std::size_t place);

  nic::Nic& inner_;
  SdTable& table_;
  std::uint32_t sdi_;
  wire::TrimMarks marks_;
  FepAddress self_;
  nic::NicCaps caps_;
  std::size_t packet_bytes_;  // of each place in the two storages
  std::unique_ptr<std::byte[]> opened_;
  std::unique_ptr<std::byte[]> sealed_;
  std::unique_ptr<Packet[]> packets_;
};

}  // namespace uet::tss
