// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A host of the simulated network: one real Fep, the NIC under it and the application above it,
// which writes to the memory of its peers (RMA). Nothing of the protocol is modelled here.
//
// The NIC's queue is short (CMS-802), so that what waits waits in the Fep, under its congestion
// control. Payload is never looked at: all memory of all hosts is the same few pages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "fep/fep.h"
#include "netsim/packet.h"
#include "netsim/port.h"
#include "netsim/traffic.h"
#include "ses/ses.h"
#include "uet/nic/nic.h"

namespace uet::netsim {

class Network;

// The address of a host, and the host of an address.
FepAddress address_of(std::uint32_t host);
std::uint32_t host_of(const FepAddress& address);

class Host final : public nic::Nic, public ses::CompletionSink {
 public:
  // `network` outlives the host.
  Host(Network& network, std::uint32_t number, const fep::Config& fep, DeliveryMode mode,
       std::uint64_t memory_bytes);
  ~Host() override;
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  // The application posts the flow now, or as soon as the Fep can take it.
  void start(std::uint32_t flow);
  // A packet has arrived. It is the host's, which gives it back to the pool.
  void arrive(NetPacket& packet);
  // The host takes up the next packet that waits.
  void drain();
  // The NIC has sent a packet.
  void sent() { progress(); }
  // The port in this plane has lost its carrier, or has it again.
  void note_plane(std::uint32_t plane, bool up);
  // An event that schedule() asked for.
  void wake();

  fep::Fep& fep() { return *fep_; }
  const fep::Fep& fep() const { return *fep_; }
  // Wakes at which nothing was received and nothing sent.
  std::uint64_t barren_passes() const { return barren_passes_; }
  // Packets dropped by a full receive pool because the host was slow; arrival of the last one.
  std::uint64_t receive_drops() const { return receive_drops_; }
  Picoseconds last_receive_drop() const { return last_receive_drop_; }
  std::uint64_t most_unread_bytes() const { return most_unread_bytes_; }

  // nic::Nic
  std::size_t rx_burst(std::span<RxPacket> out, Time now) override;
  std::size_t tx_burst(std::span<const Packet* const> in) override;
  std::optional<LostRail> poll_lost_rail() override;
  std::uint64_t receive_backlog_bytes() const override { return unread_bytes_; }
  const nic::NicCaps& caps() const override { return caps_; }
  FepAddress local_address() const override { return address_of(number_); }

  // ses::CompletionSink
  void complete(const ses::Completion& completion) noexcept override;
  bool can_take_event() noexcept override { return true; }
  bool reserve_receive() noexcept override { return true; }
  void release_receive() noexcept override {}
  void remote_access(ses::Kind, std::uint64_t) noexcept override {}

 private:
  static constexpr std::uint32_t kStagedPackets = 1;  // of data, besides the one being sent

  void receive(NetPacket& packet);
  void drain_next();
  bool has_room() const;
  std::optional<std::uint32_t> plane_for(const Packet& packet) const;
  bool takes_data(std::uint32_t plane) const;
  void emit(const Packet& packet, std::uint32_t plane);
  bool post(std::uint32_t flow);
  // That sends in this mode and traffic class.
  ses::Context& context_for(DeliveryMode mode, std::uint8_t traffic_class);
  bool progress();
  void schedule();

  Network& network_;
  const std::uint32_t number_;
  const DeliveryMode mode_;
  nic::NicCaps caps_;
  std::unique_ptr<fep::Fep> fep_;
  std::map<std::pair<DeliveryMode, std::uint8_t>, ses::Context*> contexts_;  // and traffic class
  NetPacket* arrived_ = nullptr;  // what the next rx_burst hands out
  // Lists, since they take no memory while they are empty, as they mostly are.
  std::list<std::uint32_t> not_posted_;  // flows that the Fep could not take yet
  std::list<NetPacket*> unread_;
  std::uint64_t unread_bytes_ = 0;
  std::uint64_t most_unread_bytes_ = 0;
  std::uint64_t receive_drops_ = 0;
  Picoseconds last_receive_drop_ = 0;
  Picoseconds wake_at_ = kPsNever;
  std::uint64_t barren_passes_ = 0;
  std::uint32_t lost_planes_ = 0;  // as bits
  std::vector<LostRail> not_polled_;
  bool held_ = false;  // the last tx_burst did not take all
  bool in_progress_ = false;
};

}  // namespace uet::netsim
