// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A peer of another make: a script that says packets to one Fep and reads its answers, byte for
// byte. It behaves as the references tell of the consortium's reference provider (their tag R).
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include <memory>
#include "sim/stage.h"
#include "uet/fep/fep.h"
#include "uet/wire/parse.h"

namespace uet::sim {

// A packet that the Fep sent.
struct Answer {
  std::vector<std::byte> bytes;
  FepAddress to;
  std::uint16_t entropy = 0;
  std::uint8_t dscp = 0;
  Ecn ecn = Ecn::NotEct;

  // Its PDS header; nothing if it is of another kind.
  std::optional<wire::RequestHeader> request() const { return header<wire::RequestHeader>(); }
  std::optional<wire::AckHeader> ack() const { return header<wire::AckHeader>(); }
  std::optional<wire::NackHeader> nack() const { return header<wire::NackHeader>(); }
  std::optional<wire::ControlHeader> control() const { return header<wire::ControlHeader>(); }
  // The SES header behind a request or an ACK; its payload points into `bytes`.
  std::optional<wire::SesRequest> ses_request() const;
  std::optional<wire::SesResponseHeader> ses_response() const;

 private:
  template <class Header>
  std::optional<Header> header() const {
    const auto packet = wire::parse(bytes);
    if (!packet) return std::nullopt;
    const Header* found = std::get_if<Header>(&packet->header);
    return found == nullptr ? std::nullopt : std::optional(*found);
  }
};

class ForeignPeer {
 public:
  static constexpr std::uint32_t kMtu = 1024;        // its default payload MTU
  static constexpr std::uint16_t kEntropy = 0x4242;  // its default; no port that listens
  static constexpr JobId kJob{1};                    // its default ids (SES-142)
  static constexpr PidOnFep kPid{0};
  static constexpr ResourceIndex kIndex{15};
  static constexpr InitiatorId kInitiator{16};
  static constexpr PdcId kPdc{0x0C41};  // its PDC id
  static constexpr Psn kStart{0x0005'1000};

  explicit ForeignPeer(DeliveryMode mode = DeliveryMode::Rud);
  ~ForeignPeer();

  // Hands a packet to the Fep, which then has a pass.
  void say(std::span<const std::byte> bytes);
  // A request of the peer with SES header and payload, clear_psn_offset included.
  void say(const wire::RequestHeader& pds, const wire::SesRequest& ses,
           std::span<const std::byte> payload = {});
  void say(const wire::AckHeader& ack, const wire::SesResponseHeader* response = nullptr,
           std::span<const std::byte> data = {});
  void say(const wire::NackHeader& nack);
  void say(const wire::ControlHeader& control);
  // Time goes by, in passes of a millisecond.
  void wait(Duration time);
  // The next packet that the Fep has sent; a failure of the test if there is none.
  Answer hear();
  // The Fep has sent nothing more.
  bool silent() const { return nic_.sent.empty(); }

  // The header of request number `index` of the peer's PDC; SYN until the Fep's id is known.
  wire::RequestHeader request(std::uint32_t index) const;
  // A request to the Fep's context.
  wire::SesRequest to_context(wire::SesOpcode opcode, std::uint16_t message_id) const;
  // An ACK of `psn` for the PDC whose id at the Fep is `theirs`, everything up to it received: with
  // NSCC state, mpr 1, and the acknowledged PSN as base of the bitmap (PDS-91).
  wire::AckHeader ack_of(Psn psn, PdcId theirs) const;

  fep::Fep& fep() { return *fep_; }
  ses::Context& context() { return *context_; }
  // The peer as the Fep's operations name it.
  ses::Peer as_peer() const;
  Time now() const { return now_; }
  void push() { fep_->push(now_); }

  RecordingSink sink;
  std::vector<std::byte> memory;  // registered for reading and writing
  Rkey key;
  PdcId tpdcid{};  // the Fep's id of the peer's PDC, once learnt

 private:
  class ScriptNic final : public nic::Nic {
   public:
    std::size_t rx_burst(std::span<RxPacket> out, Time now) override;
    std::size_t tx_burst(std::span<const Packet* const> in) override;
    const nic::NicCaps& caps() const override { return caps_; }
    FepAddress local_address() const override;

    std::optional<std::vector<std::byte>> arriving;
    std::deque<Answer> sent;

   private:
    nic::NicCaps caps_;
    std::vector<std::byte> last_;
  };

  ScriptNic nic_;
  Time now_;
  std::unique_ptr<fep::Fep> fep_;
  ses::Context* context_ = nullptr;
};

}  // namespace uet::sim
