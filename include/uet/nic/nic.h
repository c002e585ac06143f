// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Moves bursts of packets: kernel UDP, a bypass back end or the simulator's link. One virtual
// call per burst, so that the back end is chosen at run time and costs nothing per packet.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "uet/base/address.h"
#include "uet/base/packet.h"
#include "uet/base/pdc_guard.h"
#include "uet/base/time.h"

namespace uet::nic {

inline constexpr std::size_t kRxBurst = 64;  // packets asked for in one rx_burst
inline constexpr std::size_t kTxBurst = 64;  // packets offered in one tx_burst
inline constexpr int kCannotLend = -95;      // EOPNOTSUPP: the port of this NIC cannot be shared

// Capabilities of a back end. Decisions depend on these values, never on a back end's name.
struct NicCaps {
  std::uint32_t ip_mtu = 1500;      // largest IP packet, headers included
  std::uint64_t link_rate_bps = 0;  // 0 = not known
  // Bytes that may wait unread before packets are lost; 0 = not known.
  std::uint64_t receive_credit_bytes = 0;
  bool per_packet_entropy = false;  // false: every packet leaves with the same entropy
  // Where entropy values are source ports that had to be taken: how many, a power of two, from
  // first_source_port on, a multiple of it. The low bits of a value choose (CMS-404). 0: any value.
  std::uint16_t source_ports = 0;
  std::uint16_t first_source_port = 0;
  bool ecn = false;                      // sets ECT and reports CE
  bool crc = false;                      // adds and checks the CRC itself, without CrcNic
  bool loopback = false;                 // an interface that only reaches this host
  bool reads_registered_memory = false;  // register_memory saves a copy of the payload sent
  bool lends_port = false;               // the kernel can share its port with further NICs
  bool secured = false;                  // every packet on the wire is protected (TSS-9)
  // Each tx_burst is a system call, which costs more than one more packet, so that batching pays.
  // False: nothing is gained by two packets in one burst.
  bool sends_by_kernel = true;
  std::size_t most_received = kRxBurst;  // packets that a rx_burst brings, if asked for more
};

// Counts of a back end since it was opened; zero if a counter does not apply. Each member has a
// row in src/fep/stats.cc.
struct NicCounters {
  std::uint64_t packets_sent = 0;
  std::uint64_t bytes_sent = 0;        // above UDP, as in Packet::length
  std::uint64_t packets_received = 0;  // handed out by rx_burst
  std::uint64_t bytes_received = 0;
  std::uint64_t sends_refused = 0;      // bursts cut short because the queue was full
  std::uint64_t packets_dropped = 0;    // could never leave: too long, no route, forbidden
  std::uint64_t receive_truncated = 0;  // longer than any UET packet, thrown away
  std::uint64_t receive_overflows = 0;  // lost on arrival for lack of buffer, as far as known
  std::uint64_t kernel_errors = 0;      // calls that failed with anything but "queue full"
  std::uint64_t crc_errors = 0;         // thrown away on arrival: the CRC is missing or wrong
  std::uint64_t gso_switched_off = 0;   // 1 after the kernel refused segmented sends
  // Of packets_sent and packets_received, those through rings to peers on this host.
  std::uint64_t local_packets_sent = 0;
  std::uint64_t local_packets_received = 0;
  // Of packets_sent and packets_received, those that a back end which owns the frame left to the
  // kernel's UDP: to and from this host or another interface, and first ones to a neighbour.
  std::uint64_t kernel_packets_sent = 0;
  std::uint64_t kernel_packets_received = 0;
  // Thrown away on arrival: malformed, a wrong checksum, or a source that is no host.
  std::uint64_t frames_refused = 0;
  // Of packets_sent, those whose payload the device read from registered memory, uncopied.
  std::uint64_t packets_gathered = 0;
  // If processes share the port: packets to the port that were for no occupied slot, no matter
  // which process they were meant for.
  std::uint64_t shared_port_dropped = 0;
  // Dropped on arrival by the guard: for a PDC that is not open, and with SYN beyond the share.
  std::uint64_t strays_dropped = 0;
  std::uint64_t syns_dropped = 0;
};

// Adds the counts of two NICs, member by member.
inline NicCounters operator+(const NicCounters& a, const NicCounters& b) {
  using Words = std::array<std::uint64_t, sizeof(NicCounters) / sizeof(std::uint64_t)>;
  Words sum = std::bit_cast<Words>(a);
  const auto other = std::bit_cast<Words>(b);
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += other[i];
  return std::bit_cast<NicCounters>(sum);
}

// The source port of a packet with this entropy value that leaves a NIC at port `own`. A peer takes
// a port of the known range for the port that names its sender (PeerPorts), so that such values are
// not used: an ACK copies the entropy of its request, which is a port if the peer has no entropy.
inline std::uint16_t source_port(const NicCaps& caps, std::uint16_t own, std::uint16_t entropy) {
  if (!caps.per_packet_entropy || entropy == 0 || names_process(entropy)) return own;
  if (caps.source_ports == 0) return entropy;
  return static_cast<std::uint16_t>(caps.first_source_port + entropy % caps.source_ports);
}

class MemoryRanges;
class PortExchange;

// A socket at the port of a NIC, for another NIC of the process.
struct LentSocket {
  int fd = kCannotLend;                    // else the descriptor, or another negative errno
  std::shared_ptr<PortExchange> exchange;  // where the NICs of the port hand packets on
};

// Memory of a device that can be had as a dmabuf.
struct DmabufRange {
  std::span<const std::byte> memory;  // at the addresses that packets point to
  int fd = -1;                        // of the dmabuf; the caller closes it
  std::uint64_t offset = 0;           // of the first byte in the dmabuf
};

class Nic {
 public:
  virtual ~Nic() = default;
  // Fills `out` from the front and returns how many arrived; never waits. Views stay valid until
  // the next rx_burst of this NIC.
  virtual std::size_t rx_burst(std::span<RxPacket> out, Time now) = 0;
  // Accepts a prefix of `in` and returns its length; the caller offers the rest again later. The
  // packets and their payload, except registered memory (register_memory), may be reused as soon as
  // this returns. A full queue gives a shorter prefix; a packet that can never leave is counted,
  // dropped and part of the prefix (PDS recovers).
  virtual std::size_t tx_burst(std::span<const Packet* const> in) = 0;
  // Source port of `packet` if tx_burst comes next; 0: native form, under TSS. May choose its path.
  virtual std::uint16_t source_port_for(const Packet& packet) {
    return source_port(caps(), local_address().port, packet.entropy);
  }
  // Registers memory of payload until forget_memory(the result): a capable device reads payload
  // there itself, also for a while after tx_burst has accepted a packet with payload_stays. Late
  // reads can only affect retransmissions that the peer has already answered, so that changed bytes
  // do no harm. Returns 0 if zero-copy is not possible for this memory (not supported, or refused):
  // its payload is copied.
  virtual std::uint64_t register_memory(std::span<const std::byte>) { return 0; }
  // When this call returns, the device has stopped reading that memory.
  virtual void forget_memory(std::uint64_t) {}
  // May register_device_memory accept memory? A NIC that reads payload by the CPU does not.
  virtual bool reads_device_memory() const { return false; }
  // As register_memory, for memory that the CPU cannot read. 0: the NIC refuses it, and no packet
  // may point to it.
  virtual std::uint64_t register_device_memory(const DmabufRange&) { return 0; }
  // Readable when rx_burst may return something; -1 if there is none.
  virtual int wait_fd() const { return -1; }
  // Must be called after the last rx_burst before a sleep on wait_fd, which need not report packets
  // otherwise. True: packets wait already, do not sleep. Other threads may go on with bursts while
  // one thread sleeps: packets that they do not take must still wake it.
  virtual bool prepare_wait() { return false; }
  // A peer whose process is known to be gone, each once, after the last packet from the peer; the
  // caller gives up what its connections have carried. Most back ends never know.
  virtual std::optional<DeadPeer> poll_dead_peer() { return {}; }
  // A rail that has been lost since the last calls, each once; the caller sends again what left by
  // it. Call it after the burst that it may have come with. Only a NIC with several rails knows.
  virtual std::optional<LostRail> poll_lost_rail() { return {}; }
  // From now on take_refusal() may tell where packets found no socket. Most back ends never know.
  virtual void watch_refusals() {}
  // An address whose host has refused a packet because no process has that port; each report once.
  // A hint that another host can forge.
  virtual std::optional<FepAddress> take_refusal() { return {}; }
  // Of packets without a security header, from now on, only a random kFloodSample-th arrives
  // (true), or all (false). A relief in a flood: back ends that cannot do so before rx_burst ignore
  // the call.
  static constexpr unsigned kFloodSample = 16;
  virtual void thin_out_unprotected(bool) {}
  // Drops packets of strangers for the one FEP above, before rx_burst. nullptr: none can.
  virtual PdcGuard* guard() { return nullptr; }
  // When rx_burst must be called again even though wait_fd stays silent, because packets wait in
  // memory; Time{} = at once. The host treats it like any other deadline of the domain: it does not
  // sleep past it, and wakes or re-arms a sleeper when a burst has brought it forward.
  virtual Time next_deadline() const { return kNever; }
  // Bytes that have arrived and wait unread, as far as known; call it after bursts that came back
  // full. At NicCaps::receive_credit_bytes packets are lost.
  virtual std::uint64_t receive_backlog_bytes() const { return 0; }
  // Where packets lie that another processor of this host has just written; nullptr: nowhere.
  virtual const MemoryRanges* shared_memory() const { return nullptr; }
  // A second socket at the port of this NIC, for borrow_port of another NIC of the process, which
  // gets from then on what comes to the port for PDCs with ids of `share`. Packets that come during
  // the call may be lost.
  virtual LentSocket lend_port(const PdcIdShare&) { return {}; }
  // Takes the socket over. A packet leaves from it if Packet::to has this `via` (FepAddress; 1 to
  // 255, each once), and a packet that arrives there has it in RxPacket::source. `share`: that of
  // the call of lend_port. For a NIC with NicCaps::lends_port. False: no memory; the caller closes
  // the socket.
  virtual bool borrow_port(const LentSocket& /*lent*/, std::uint8_t /*via*/,
                           const PdcIdShare& /*share*/) {
    return false;
  }
  // The UDP port of this host with that `via`: 0, or one that was borrowed.
  virtual std::uint16_t port_of(std::uint8_t /*via*/) const { return local_address().port; }
  // The peer at `first` has these further addresses (rails), of trustworthy origin. A NIC with one
  // rail has no use for them.
  virtual void learn_further(const FepAddress&, std::span<const FabricAddress>) {}
  // Addresses of this NIC beside local_address(), at the same port; at most kMostFurtherAddresses.
  virtual std::span<const FabricAddress> further_addresses() const { return {}; }
  virtual const NicCaps& caps() const = 0;
  // The address that peers reach this NIC at.
  virtual FepAddress local_address() const = 0;
  virtual NicCounters counters() const { return {}; }
};

}  // namespace uet::nic
