// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A sender and a receiver of 4 KiB packets, of which one is measured: writes without copies of the
// payload (HeadNic below, memory of a device that does nothing above). The measured cost of a
// packet at an end is the protocol's: post, headers, windows, timers, ACKs, completion.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "counting_sink.h"
#include "fep/fep.h"
#include "head_nic.h"
#include "ses/initiator.h"

namespace uet::bench {

inline constexpr std::uint32_t kPayloadBytes = 4096;

enum class End : std::uint8_t { Sender, Receiver };

struct Traffic {
  End measured = End::Sender;
  std::size_t pdcs = 1;                   // each to a peer of its own; used in turn
  std::uint64_t message_bytes = 1 << 20;  // of one write
  std::size_t messages_in_flight = 4;     // on as many PDCs, if there are as many
  std::uint32_t lose_one_in = 0;          // HeadNic::lose_one_in
  cms::Algorithm algorithm = cms::Algorithm::Nscc;
};

// Where a profiler is told to look: nothing else of the program belongs to the measured end.
[[gnu::noinline]] inline void measured_pass(fep::Fep& fep, Time now) { fep.progress(now); }
[[gnu::noinline]] inline bool measured_post(fep::Fep& fep, ses::Context& context,
                                            const ses::RmaOp& op, Time now) {
  return fep.ses().initiator().post(context, op, now).ok();
}

class PacketRig {
 public:
  explicit PacketRig(const Traffic& traffic)
      : traffic_(traffic),
        sender_(address(1), traffic, true),
        receiver_(address(2), traffic, false) {
    HeadNic::join(sender_.nic, receiver_.nic);
    ri::MemoryRegion region;
    region.base = memory_.data();
    region.length = memory_.size();
    region.access = ri::kRemoteWrite;
    region.device = &nowhere_;
    const auto key = receiver_.fep.regions().add(region);
    if (key) key_ = key.value();
    peers_.resize(traffic.pdcs);
    for (std::size_t i = 0; i < peers_.size(); ++i) {
      peers_[i].fep = HeadNic::peer_address(i);
      peers_[i].resource_index = ResourceIndex{1};
      peers_[i].initiator = InitiatorId{2};
    }
    for (std::size_t i = 0; ok_ && i < traffic.pdcs; i += 1) ok_ = write_to_next(kPayloadBytes);
    ok_ = ok_ && run_until_written();
    sender_.nic.lose_one_in(traffic.lose_one_in);
    measured_ = {};
    packets_before_ = packets();
    retransmitted_before_ = retransmitted();
    acks_before_ = acks();
  }

  // One write on each of the next PDCs, until all are acknowledged. False if that does not come.
  bool round() {
    for (std::size_t i = 0; i < traffic_.messages_in_flight; ++i) {
      ok_ = ok_ && write_to_next(traffic_.message_bytes);
    }
    ok_ = ok_ && run_until_written();
    return ok_;
  }

  fep::Fep& sender() { return sender_.fep; }
  bool ok() const { return ok_ && sender_.sink.bad + receiver_.sink.bad == 0; }
  // Since the PDCs have been opened: at the measured end, and data packets sent first and again.
  std::chrono::duration<double> measured() const { return measured_; }
  std::uint64_t data_packets() const { return packets() - packets_before_; }
  std::uint64_t sent_again() const { return retransmitted() - retransmitted_before_; }
  std::uint64_t acks_sent() const { return acks() - acks_before_; }

 private:
  class Nowhere final : public DeviceMemory {
    void place(std::byte*, std::span<const std::byte>) noexcept override {}
    void fetch(std::span<std::byte>, const std::byte*) noexcept override {}
  };

  struct Side {
    Side(FepAddress own, const Traffic& traffic, bool many_peers)
        : nic(own, 4096, many_peers), fep(config(traffic), nic, Time{}) {
      ses::ContextConfig context_config;
      context_config.resource_index = ResourceIndex{1};
      context_config.initiator = InitiatorId{own.ip.bytes[3]};
      auto opened = fep.ses().open_context(context_config, sink);
      if (!opened) return;
      context = opened.value();
      fep.ses().enable(*context);
      fep.keep_trace_in(ring.get());  // as in every domain
    }
    std::unique_ptr<trace::Ring> ring = std::make_unique<trace::Ring>();
    HeadNic nic;
    CountingSink sink;
    fep::Fep fep;
    ses::Context* context = nullptr;
  };

  static FepAddress address(std::uint8_t last_byte) {
    FepAddress fep;
    fep.ip.bytes = {10, 0, 0, last_byte};
    return fep;
  }

  static fep::Config config(const Traffic& traffic) {
    fep::Config config;
    config.ses.payload_mtu = kPayloadBytes;
    config.cms.algorithm = traffic.algorithm;
    config.cms.mtu_bytes = kPayloadBytes + 256;
    config.cms.link_rate_bps = 400'000'000'000;  // round trips of 2 us need many packets
    config.pds.pdc_count = traffic.pdcs + 64;
    config.pds.ccc_count = traffic.pdcs + 64;
    config.pds.first_pdc_id = HeadNic::kFirstPdcId;
    config.memory_regions = 16;
    return config;
  }

  std::uint64_t packets() const { return packets_posted_; }
  std::uint64_t retransmitted() const {
    const pds::Counters counters = sender_.fep.stats().pds;
    return counters.rto_retransmissions + counters.nack_retransmissions +
           counters.inferred_loss_retransmissions;
  }
  std::uint64_t acks() const { return receiver_.fep.stats().pds.acks_sent; }

  template <class Work>
  auto timed(End end, Work&& work) {
    if (end != traffic_.measured) return work(false);
    const auto start = std::chrono::steady_clock::now();
    const auto result = work(true);
    measured_ += std::chrono::steady_clock::now() - start;
    return result;
  }

  bool write_to_next(std::uint64_t bytes) {
    const ses::IoSlice slice{memory_.data(), bytes};
    ses::RmaOp op;
    op.local = {&slice, 1};
    op.peer = &peers_[next_++ % peers_.size()];
    op.key = key_;
    ++posted_;
    packets_posted_ += (bytes + kPayloadBytes - 1) / kPayloadBytes;
    const bool posted = timed(End::Sender, [&](bool measured) {
      return measured ? measured_post(sender_.fep, *sender_.context, op, now_)
                      : sender_.fep.ses().initiator().post(*sender_.context, op, now_).ok();
    });
    // One after the other while PDCs are opened, so that their ids follow each other.
    return posted && (next_ > peers_.size() || run_until_written());
  }

  bool run_until_written() {
    constexpr std::uint64_t kMaxPasses = 1 << 20;
    for (std::uint64_t pass = 0; pass < kMaxPasses; ++pass) {
      if (sender_.sink.good + sender_.sink.bad == posted_) return true;
      now_ += std::chrono::microseconds(1);
      for (const End end : {End::Sender, End::Receiver}) {
        fep::Fep& fep = end == End::Sender ? sender_.fep : receiver_.fep;
        timed(end, [&](bool measured) {
          measured ? measured_pass(fep, now_) : static_cast<void>(fep.progress(now_));
          return 0;
        });
      }
    }
    return false;
  }

  const Traffic traffic_;
  Nowhere nowhere_;
  std::vector<std::byte> memory_ = std::vector<std::byte>(1 << 20);
  Time now_{};
  Side sender_;
  Side receiver_;
  std::vector<ses::Peer> peers_;
  Rkey key_;
  std::size_t next_ = 0;
  std::uint64_t posted_ = 0;
  std::uint64_t packets_posted_ = 0;
  bool ok_ = true;
  std::chrono::duration<double> measured_{};
  std::uint64_t packets_before_ = 0;
  std::uint64_t retransmitted_before_ = 0;
  std::uint64_t acks_before_ = 0;
};

}  // namespace uet::bench
