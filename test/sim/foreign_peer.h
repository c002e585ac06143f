// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A peer of another implementation: a script that sends packets to one Fep and reads its answers,
// byte for byte. It behaves as docs/spec describes the reference provider of the consortium.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "fep/fep.h"
#include "ses/initiator.h"
#include "sim/stage.h"
#include "wire/parse.h"

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
  std::optional<wire::RudiHeader> rudi() const { return header<wire::RudiHeader>(); }
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
  static constexpr std::size_t kEager = 8 * kMtu;    // longer messages a target may keep in part
  static constexpr std::uint16_t kEntropy = 0x4242;  // its default; no port that listens
  static constexpr JobId kJob{1};                    // its default ids (SES-142)
  static constexpr PidOnFep kPid{0};
  static constexpr ResourceIndex kIndex{15};
  static constexpr InitiatorId kInitiator{16};
  static constexpr PdcId kPdc{0x0C41};  // its PDC id
  static constexpr Psn kStart{0x0005'1000};

  // `configure` changes the configuration of the Fep.
  explicit ForeignPeer(DeliveryMode mode = DeliveryMode::Rud,
                       const std::function<void(fep::Config&)>& configure = {});
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

// Bytes that differ by position and `seed`.
std::vector<std::byte> pattern(std::size_t bytes, unsigned seed = 1);
// The part of a message that packet `index` of it carries.
std::span<const std::byte> piece(const std::vector<std::byte>& message, std::size_t index);
// `request` as packet `index` of a message of `length` bytes.
wire::SesRequest packet_of(wire::SesRequest request, std::size_t length, std::size_t index);
// An ACK that goes where it must and says what every ACK to this peer says.
wire::AckHeader expect_ack(ForeignPeer& peer, const Answer& answer, Psn psn, Psn cack);
// The peer writes `length` bytes as its first message and learns the PDC id.
void first_write(ForeignPeer& peer, std::size_t length);

// The peer as target of what the Fep sends.
class ForeignTarget : public ::testing::Test {
 protected:
  static constexpr PdcId kTheirs{0x0D01};  // the peer's id of our PDC

  // Sends what it posts only with the next pass.
  void post(const std::vector<std::byte>& data) {
    const ses::IoSlice slice{const_cast<std::byte*>(data.data()), data.size()};
    const ses::Peer to = peer.as_peer();
    ses::SendOp op;
    op.peer = &to;
    op.local = {&slice, 1};
    ASSERT_TRUE(peer.fep().ses().initiator().post(peer.context(), op, peer.now()).ok());
  }
  void send(const std::vector<std::byte>& data) {
    post(data);
    peer.push();
  }
  // Reads into `room` on the established PDC. The request, and the packet of the return direction
  // that answers it with pattern(..., 7).
  std::pair<wire::RequestHeader, std::vector<std::byte>> ask_for(std::vector<std::byte>& room) {
    const ses::IoSlice slice{room.data(), room.size()};
    const ses::Peer to = peer.as_peer();
    ses::RmaOp op;
    op.peer = &to;
    op.local = {&slice, 1};
    op.kind = ses::Kind::Read;
    op.key = Rkey{0x1234};
    EXPECT_TRUE(peer.fep().ses().initiator().post(peer.context(), op, peer.now()).ok());
    peer.push();
    const Answer asked = peer.hear();
    const auto read = asked.request().value();
    const auto wanted = asked.ses_request().value();
    EXPECT_EQ(wanted.opcode, wire::SesOpcode::Read);
    EXPECT_TRUE(wanted.som && wanted.eom);
    EXPECT_TRUE(wanted.payload.empty());
    wire::RequestHeader pds;
    pds.next_hdr = wire::NextHdr::ResponseData;
    pds.psn = Psn{0x0200'0000};
    pds.clear_psn_offset = -1;
    pds.spdcid = kTheirs;
    pds.dpdcid = read.spdcid;
    pds.ar = true;
    wire::SesResponseHeader ses =
        response(wire::ResponseOpcode::ResponseWData, wire::ReturnCode::Ok);
    ses.next_hdr = wire::NextHdr::ResponseData;
    ses.response_message_id = ses.read_request_message_id = read_id = wanted.message_id;
    ses.payload_length = ses.modified_length = static_cast<std::uint32_t>(room.size());
    std::vector<std::byte> bytes(100);
    std::size_t length = pds.encode(bytes.data());
    length += ses.encode(bytes.data() + length);
    bytes.resize(length);
    const auto data = pattern(room.size(), 7);
    bytes.insert(bytes.end(), data.begin(), data.end());
    return {read, bytes};
  }
  // An ACK of everything up to `psn` by the peer's PDC.
  wire::AckHeader ack(const wire::RequestHeader& request) const {
    auto header = peer.ack_of(request.psn, request.spdcid);
    header.spdcid = kTheirs;
    return header;
  }
  wire::NackHeader nack(const wire::RequestHeader& request, wire::NackCode code, PdcId from) const {
    wire::NackHeader header;
    header.nack_code = code;
    header.nack_psn = request.psn;
    header.spdcid = from;
    header.dpdcid = request.spdcid;
    return header;
  }
  static wire::SesResponseHeader response(wire::ResponseOpcode opcode, wire::ReturnCode code) {
    wire::SesResponseHeader header;
    header.opcode = opcode;
    header.return_code = code;
    header.job_id = ForeignPeer::kJob;
    return header;
  }
  // One message of `bytes` bytes whose packets the peer acknowledges.
  wire::RequestHeader establish() {
    send(first);
    const auto request = peer.hear().request().value();
    auto answer = ack(request);
    answer.next_hdr = wire::NextHdr::Response;
    const auto said = response(wire::ResponseOpcode::DefaultResponse, wire::ReturnCode::Ok);
    peer.say(answer, &said);
    EXPECT_EQ(peer.sink.completions.size(), 1U);
    peer.sink.completions.clear();
    return request;
  }

  ForeignPeer peer;
  MsgId read_id{};  // of ask_for
  const std::vector<std::byte> first = pattern(10);
  const std::vector<std::byte> message = pattern(2 * ForeignPeer::kMtu + 10);
};

}  // namespace uet::sim
