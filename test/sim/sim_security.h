// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Transport security of a simulated node: what ships, between its Fep and its NIC, and a tap above
// it that remembers the plain bytes of each packet, so that oracles that read headers go on reading
// them. WireSecrecy looks at the other side: no plain byte, and no IV twice.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "sim/sim_nic.h"
#include "tss/sd_table.h"
#include "tss/secure_nic.h"

namespace uet::sim {

// A key that a node has from the start.
struct NodeKey {
  bool an = false;
  tss::Key key;
  std::uint16_t epoch = 0;
};

struct NodeSecurity {
  tss::DomainConfig domain;
  std::vector<NodeKey> keys;  // the first is active
};

class SecuredNic {
 public:
  // `nic` outlives it.
  SecuredNic(SimNic& nic, const NodeSecurity& security, Time now);

  // The NIC that the Fep stands on.
  nic::Nic& top() { return tap_; }
  tss::SecureDomain& domain() { return *table_.find(sdi_); }
  // As SecureDomain::install of a fresh key in this epoch.
  Result<void> install(bool an, const tss::Key& key, std::uint16_t epoch);
  // Tells the keys of a slot apart: it grows with each new one.
  // The first bytes of the key: a process that comes back may have the key of its predecessor.
  std::uint64_t key_name(bool an) const { return names_[an ? 1 : 0]; }
  const tss::SdTable& table() const { return table_; }
  Time next_deadline() const { return secure_.next_deadline(); }
  // Zeroes keys whose guard time has ended.
  void expire(Time now) { table_.expire(now); }

 private:
  // Offers packets one by one, each after it has shown its bytes to the NIC at the bottom.
  class Tap final : public nic::Nic {
   public:
    Tap(nic::Nic& below, SimNic& bottom) : below_(below), bottom_(bottom) {}
    std::size_t rx_burst(std::span<RxPacket> out, Time now) override {
      return below_.rx_burst(out, now);
    }
    std::size_t tx_burst(std::span<const Packet* const> in) override;
    std::uint16_t source_port_for(const Packet& packet) override {
      return below_.source_port_for(packet);
    }
    Time next_deadline() const override { return below_.next_deadline(); }
    const nic::NicCaps& caps() const override { return below_.caps(); }
    FepAddress local_address() const override { return below_.local_address(); }

   private:
    nic::Nic& below_;
    SimNic& bottom_;
  };

  std::uint32_t sdi_;
  tss::SdTable table_;
  tss::SecureNic secure_;
  Tap tap_;
  std::array<std::uint64_t, 2> names_{};
};

// TSS-3, TSS-9, TSS-32: judges the packets of secured nodes as they are on the wire.
class WireSecrecy {
 public:
  // Says why the packet is bad; empty if it is good. `key_name`: of the key of its sender.
  std::string judge(const SimPacket& packet, std::uint64_t key_name);

 private:
  using SenderAndKey = std::pair<std::array<std::uint8_t, 16>, std::uint64_t>;
  std::map<SenderAndKey, std::uint64_t> last_;  // epoch and TSC of the last packet
};

// Changes one bit, which the ICV must notice.
void flip_bit(SimPacket& packet, Rng& rng);

}  // namespace uet::sim
