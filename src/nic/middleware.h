// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// NICs that wrap another NIC and own it: a capture file, injected faults, delivery to oneself.
// Each treats packets as opaque bytes and works over any back end. registry.h stacks them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/rng.h"
#include "uet/base/result.h"
#include "uet/nic/nic.h"
#include "wire/frame.h"

namespace uet::nic {

inline constexpr std::size_t kMaxDatagramBytes = 65536;  // no packet of any back end is longer

// Forwards every call; derived classes override the calls that they change. The calls about device
// memory are not forwarded: a class does so if it never reads payload of sent packets by the CPU,
// or by copy_payload.
class Middleware : public Nic {
 public:
  std::size_t rx_burst(std::span<RxPacket> out, Time now) override {
    return inner_->rx_burst(out, now);
  }
  std::size_t tx_burst(std::span<const Packet* const> in) override { return inner_->tx_burst(in); }
  std::uint16_t source_port_for(const Packet& packet) override {
    return inner_->source_port_for(packet);
  }
  std::uint64_t register_memory(std::span<const std::byte> memory) override {
    return inner_->register_memory(memory);
  }
  void forget_memory(std::uint64_t id) override { inner_->forget_memory(id); }
  int wait_fd() const override { return inner_->wait_fd(); }
  bool prepare_wait() override { return inner_->prepare_wait(); }
  std::optional<DeadPeer> poll_dead_peer() override { return inner_->poll_dead_peer(); }
  std::optional<LostRail> poll_lost_rail() override { return inner_->poll_lost_rail(); }
  void watch_refusals() override { inner_->watch_refusals(); }
  std::optional<FepAddress> take_refusal() override { return inner_->take_refusal(); }
  void thin_out_unprotected(bool on) override { inner_->thin_out_unprotected(on); }
  PdcGuard* guard() override { return inner_->guard(); }
  LentSocket lend_port(const PdcIdShare& share) override { return inner_->lend_port(share); }
  bool borrow_port(const LentSocket& lent, std::uint8_t via, const PdcIdShare& share) override {
    return inner_->borrow_port(lent, via, share);
  }
  std::uint16_t port_of(std::uint8_t via) const override { return inner_->port_of(via); }
  Time next_deadline() const override { return inner_->next_deadline(); }
  std::uint64_t receive_backlog_bytes() const override { return inner_->receive_backlog_bytes(); }
  const MemoryRanges* shared_memory() const override { return inner_->shared_memory(); }
  const NicCaps& caps() const override { return inner_->caps(); }
  FepAddress local_address() const override { return inner_->local_address(); }
  NicCounters counters() const override { return inner_->counters(); }

 protected:
  explicit Middleware(std::unique_ptr<Nic> inner) : inner_(std::move(inner)) {}
  Nic& inner() { return *inner_; }
  const Nic& inner() const { return *inner_; }

 private:
  std::unique_ptr<Nic> inner_;
};

// A file name with %p replaced by the process id.
std::string with_process_id(std::string_view pattern);
// Opens, or makes, a file that diagnosis writes: for its owner alone, and not through a symbolic
// link, which another user may have put there. `flags` as for open(2). -1 and errno if it cannot.
int open_for_owner(const std::string& file, int flags);

// Writes every packet that comes or goes to a pcapng file, which Wireshark and tshark open. UDP
// and IP headers carry the true addresses, ports, TOS and lengths; what only the kernel knows is
// filled in: TTL 64, identification 0, checksum 0 over IPv4, and MAC addresses 02:00 + the last
// four bytes of the IP address. Time is CLOCK_REALTIME when the packet passed. A sent packet is
// written when the inner NIC has accepted it.
class PcapNic final : public Middleware {
 public:
  // `file`: name of the capture; %p in it becomes the process id. A file that another open capture
  // is writing (same process or not) is left alone: "-2", "-3", ... is put before the ending.
  // `interface_name` appears in the file. `snap_bytes`: bytes kept of each frame, headers included;
  // 0 = all. On failure Error::Io and `message` says what to do.
  static Result<std::unique_ptr<PcapNic>> open(std::unique_ptr<Nic> inner, std::string_view file,
                                               std::string_view interface_name,
                                               std::uint32_t snap_bytes, std::string& message);
  // Each burst is in the file when it returns: nothing is lost when the process ends or hangs.
  ~PcapNic() override;

  std::size_t rx_burst(std::span<RxPacket> out, Time now) override;
  std::size_t tx_burst(std::span<const Packet* const> in) override;

  // Records an incoming packet; `why`, if not empty, is shown as its comment. For packets that were
  // thrown away before they reached this NIC.
  void note_arrival(const RxPacket& packet, std::string_view why);
  const std::string& file_name() const { return file_name_; }
  // False after a write failed (disk full): the capture ends there, traffic goes on.
  bool writing() const { return fd_ >= 0; }

 private:
  struct Frame;
  PcapNic(std::unique_ptr<Nic> inner, int fd, std::string file_name, std::uint32_t snap_bytes);
  void write_file_header(std::string_view interface_name);
  void write_frame(const Frame& frame);
  void put(const void* data, std::size_t length);
  void put_option(std::uint16_t code, const void* data, std::size_t length);
  void pad();
  void end_block(std::size_t start);
  void flush();

  static constexpr std::size_t kBufferBytes = 512 * 1024;
  static constexpr std::size_t kMaxBlockBytes = kMaxDatagramBytes + 1024;

  int fd_;
  int owner_pid_;  // a forked child must not write the parent's buffer a second time
  std::string file_name_;
  std::uint32_t snap_bytes_;
  std::unique_ptr<std::byte[]> buffer_;
  std::size_t used_ = 0;
};

// Probabilities, 0 to 1.
struct FaultSpec {
  double loss = 0;
  double duplicate = 0;
  double reorder = 0;
  double corrupt = 0;
  double trim = 0;
  double mark = 0;
  std::uint64_t seed = 1;

  bool any() const {
    return loss > 0 || duplicate > 0 || reorder > 0 || corrupt > 0 || trim > 0 || mark > 0;
  }
};

// Reads "loss=1%,dup=0.5%,reorder=2%,corrupt=0.1%,trim=1%,mark=5%,seed=7": any of them once, in any
// order; rates as percentage or fraction (0.01). Error::Invalid: `message` names the bad item and
// what is allowed.
Result<FaultSpec> parse_fault_spec(std::string_view text, std::string& message);

// The configuration that the injected faults depend on.
struct FaultSurroundings {
  bool crc = false;                 // a CrcNic above looks at what was corrupted
  std::uint8_t dscp_trimmable = 0;  // only these packets are trimmed
  wire::TrimMarks marks = wire::kDefaultTrimMarks;
};

// Spoils what arrives, the same way for the same seed and the same arrivals. It acts on the receive
// side only; when both processes use it, both directions suffer.
//   loss     thrown away.
//   corrupt  thrown away and counted apart: over UDP a damaged packet fails its checksum and never
//            passes the kernel. (Hostile bytes are a matter for raw datagrams at the port.) With a
//            CrcNic above delivered with one bit flipped, as if the checksum had not seen it.
//   trim     what a switch does when its queue is full (CMS-500): packets with the trimmable DSCP
//            are cut to kTrimmedBytes, get the DSCP that says so, and go on; one in four has been
//            trimmed by the last switch.
//   mark     what a switch does when its queue grows: ECN-capable packets arrive marked CE.
//   dup      delivered, and a copy 1 to 8 packets later.
//   reorder  held back for 1 to 8 packets, but at most for 1 ms, so that the last one of a burst
//            does not hang. With all kHeld places taken packets pass untouched.
class FaultNic final : public Middleware {
 public:
  struct Counters {
    std::uint64_t seen = 0;
    std::uint64_t lost = 0;
    std::uint64_t corrupted = 0;
    std::uint64_t duplicated = 0;
    std::uint64_t reordered = 0;
    std::uint64_t trimmed = 0;
    std::uint64_t marked = 0;
  };
  using Witness = std::function<void(const RxPacket&, std::string_view why)>;
  static constexpr std::size_t kHeld = 64;
  static constexpr Duration kLongestHold = std::chrono::milliseconds(1);
  static constexpr std::size_t kTrimmedBytes = 16;  // beside UDP the least that WIRE 1.3 allows

  FaultNic(std::unique_ptr<Nic> inner, const FaultSpec& spec,
           const FaultSurroundings& surroundings = {});

  bool reads_device_memory() const override { return inner().reads_device_memory(); }
  std::uint64_t register_device_memory(const DmabufRange& range) override {
    return inner().register_device_memory(range);
  }
  std::size_t rx_burst(std::span<RxPacket> out, Time now) override;
  // The moment the next held packet is due.
  Time next_deadline() const override;

  const Counters& fault_counters() const { return fault_counters_; }
  // Called with every packet that is thrown away; must not call back into the NIC.
  void set_witness(Witness witness) { witness_ = std::move(witness); }

 private:
  enum class State : std::uint8_t { Free, Held, Lent };
  struct Place {
    RxPacket packet;
    State state = State::Free;
    std::uint64_t release_after = 0;  // arrivals_ at which it is due
    Time release_at{};
  };
  bool hold(const RxPacket& packet, std::uint64_t delay, Time now);
  bool keep(RxPacket& packet, std::size_t index, Time now);
  void flip_bit(RxPacket& packet, std::size_t index, std::uint64_t which);
  void trim(RxPacket& packet, bool last_hop);
  void mark(RxPacket& packet);
  std::size_t release_due(std::span<RxPacket> out, Time now);
  bool due(const Place& place, Time now) const;

  FaultSpec spec_;
  FaultSurroundings surroundings_;
  Rng rng_;
  Counters fault_counters_;
  Witness witness_;
  std::array<RxPacket, kRxBurst> arrived_{};
  std::array<Place, kHeld> places_{};
  std::size_t places_used_ = 0;  // held or lent
  std::uint64_t arrivals_ = 0;   // packets that passed or were held so far
  std::unique_ptr<std::byte[]> storage_;
  std::unique_ptr<std::byte[]> corrupted_;  // one place for each of arrived_
};

// Appends the CRC trailer of WIRE 1.4 to every packet sent and removes it from packets received.
// A packet without a trailer or with a wrong one is dropped and counted (NicCounters::crc_errors),
// unless it was trimmed. Both ends must do it. For back ends whose IP and UDP headers the kernel
// writes: the UDP checksum, which the kernel computes over the trailer, counts as 0. Packets below
// are kCrcTrailerBytes longer; the user sizes packets accordingly.
class CrcNic final : public Middleware {
 public:
  // `marks`: which packets were trimmed on the way.
  CrcNic(std::unique_ptr<Nic> inner, const wire::TrimMarks& marks);

  std::size_t rx_burst(std::span<RxPacket> out, Time now) override;
  std::size_t tx_burst(std::span<const Packet* const> in) override;
  NicCounters counters() const override;

 private:
  const Packet& with_trailer(const Packet& packet, std::size_t place);
  bool check(RxPacket& packet) const;

  wire::TrimMarks marks_;
  FepAddress self_;
  std::uint64_t crc_errors_ = 0;
  std::unique_ptr<Packet[]> packets_;
  std::unique_ptr<std::byte[]> storage_;
};

// Serves packets to local_address() from memory instead of the network: faster, and the only way
// where the hardware does not send to itself. A full ring is a shorter prefix, like a full socket.
// wait_fd does not see what waits here, next_deadline() does.
class LoopbackNic final : public Middleware {
 public:
  static constexpr std::size_t kRingPackets = 64;

  explicit LoopbackNic(std::unique_ptr<Nic> inner);

  std::uint16_t source_port_for(const Packet& packet) override {
    return packet.to == self_ ? self_.port : Middleware::source_port_for(packet);
  }
  bool reads_device_memory() const override { return inner().reads_device_memory(); }
  std::uint64_t register_device_memory(const DmabufRange& range) override {
    return inner().register_device_memory(range);
  }
  std::size_t rx_burst(std::span<RxPacket> out, Time now) override;
  std::size_t tx_burst(std::span<const Packet* const> in) override;
  Time next_deadline() const override {
    return head_ != tail_ ? Time{} : Middleware::next_deadline();
  }
  NicCounters counters() const override;

 private:
  bool deliver(const Packet& packet);
  std::size_t take(std::span<RxPacket> out);

  FepAddress self_;
  NicCounters own_;  // of packets that never reached the inner NIC
  // Positions that only grow; place = position % kRingPackets. Packets from released_ to head_ were
  // handed out by the latest rx_burst, packets from head_ to tail_ wait.
  std::uint64_t released_ = 0;
  std::uint64_t head_ = 0;
  std::uint64_t tail_ = 0;
  std::array<RxPacket, kRingPackets> ring_{};
  std::unique_ptr<std::byte[]> storage_;
};

}  // namespace uet::nic
