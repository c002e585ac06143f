// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What the tests of PDS stand on: a client in the place of SES, one Manager that is fed hand-made
// packets (Node, Bench), and two that talk over a virtual wire with a virtual clock (Pair).
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "pds/manager.h"

namespace uet::pds::testing {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

// A message of `packets` packets. Each carries the number of the message and its own.
class TestMessage : public Message {
 public:
  TestMessage(std::uint32_t id_, std::uint32_t packets_, std::uint32_t payload_)
      : id(id_), packets(packets_), payload_bytes(payload_) {}

  std::uint32_t id;
  std::uint32_t packets;
  std::uint32_t payload_bytes;
  std::uint32_t made = 0;
  bool blocked = false;          // next_packet answers NotNow
  std::uint32_t block_at = 0;    // the same once so many packets were made; 0 = never
  std::vector<int> answers;      // per packet: how often rx_rsp or pds_error came for it
  std::uint32_t responses = 0;   // rx_rsp calls
  std::vector<PdsError> errors;  // pds_error calls
  std::optional<PdsError> failed;
};

// The fields of a TestMessage's packet that arrive at the other end.
struct Delivered {
  PdcId pdc;
  Psn psn;
  DeliveryMode mode{};
  FepAddress source;
  NextHdr next_hdr{};
  std::uint32_t message = 0;
  std::uint32_t number = 0;
  std::size_t bytes = 0;
};

struct Answer {
  std::uint32_t message = 0;
  std::uint32_t tag = 0;
  Psn psn;
  NextHdr next_hdr{};
  std::vector<std::byte> bytes;
};

struct Closed {
  PdcId pdc;
  std::optional<PdsError> error;
};

Response default_response();
// A guaranteed response whose bytes are all `fill`.
Response guaranteed_response(std::uint8_t fill = 0xAB);
Response refusal(NackCode code);

class FakeClient : public Client, public MessageOwner {
 public:
  PacketPlan next_packet(Message& message, Packet& packet, PreparedPacket& prepared) override;
  Response rx_req(const RequestView& request, Time now) override;
  std::optional<RequestName> name_of(const RequestView& request) const override;
  Response default_rsp(const RequestName& name) const override;
  Verdict rx_rsp(Message& message, std::uint32_t tag, const ResponseView& response,
                 Time now) override;
  void pds_error(Message& message, std::uint32_t tag, PdsError error, Time now) override;
  void message_failed(Message& message, PdsError error, Time now) override;
  void pdc_closed(PdcId pdc, std::optional<PdsError> error, Time now) override;

  // How requests are answered; default_response() if empty.
  std::function<Response(const Delivered&)> respond;
  std::function<void(const Answer&)> on_answer;
  // Responses that are not the answer yet; none if empty.
  std::function<bool(const Answer&)> provisional;
  std::function<void(TestMessage&)> on_error;

  std::vector<Delivered> delivered;
  std::vector<Answer> answered;
  std::vector<Closed> closed;
  NextHdr next_hdr = NextHdr::RequestStd;
};

// A packet that left, copied.
struct Sent {
  std::vector<std::byte> bytes;
  FepAddress to;
  std::uint16_t entropy = 0;
  Ecn ecn{};
  std::uint8_t dscp = 0;
  bool first_in_flight = false;

  wire::PdsType type() const;
  std::optional<wire::RequestHeader> request() const;
  std::optional<wire::AckHeader> ack() const;
  std::optional<wire::NackHeader> nack() const;
  std::optional<wire::ControlHeader> control() const;
  std::span<const std::byte> body() const;  // behind the PDS header
};

std::vector<wire::RequestHeader> requests(const std::vector<Sent>& sent);
std::vector<wire::AckHeader> acks(const std::vector<Sent>& sent);
std::vector<wire::NackHeader> nacks(const std::vector<Sent>& sent);
std::vector<wire::ControlHeader> controls(const std::vector<Sent>& sent);
std::vector<std::uint32_t> psns(const std::vector<wire::RequestHeader>& headers);
// Message and number that a packet of a TestMessage carries.
std::pair<std::uint32_t, std::uint32_t> content(std::span<const std::byte> bytes);

FepAddress address_of(std::uint8_t last_byte, std::uint16_t port = kUetUdpPort);
// Small pools, Start_PSN 70000, PDC ids from 10 on.
Parameters test_parameters();
// No congestion control in the way.
cms::Parameters open_window();
inline constexpr Time kStart = time_from_ns(16'000'000);  // a whole number of timer ticks

// One Manager with all it needs.
class Node {
 public:
  static constexpr std::size_t kEarlyBytes = 512;

  explicit Node(std::uint8_t last_byte, const Parameters& parameters = test_parameters(),
                const cms::Parameters& cms = open_window(), std::size_t packets = 8192,
                std::uint64_t seed = 1);

  TestMessage& message(std::uint32_t packets, std::uint32_t payload_bytes = 64);
  TestMessage& send(const Destination& destination, std::uint32_t packets, Time now,
                    std::uint32_t payload_bytes = 64);
  void receive(std::span<const std::byte> bytes, const FepAddress& source, Time now,
               std::uint16_t entropy = 50000, Ecn ecn = Ecn::NotEct, bool trimmed = false);
  // Expires timers and has PDCs send until none wants to.
  void turn(Time now);
  // Returns the packets of the outbox, in order; the packets go where they belong.
  std::vector<Sent> drain();
  // True if `message` has exactly one answer for each packet it made and made all of them.
  static bool answered_once(const TestMessage& message);

  Time arrived{};  // of what receive() gets; Time{} = the NIC cannot tell
  // What a NIC with connections to processes of this host says; 0: the network carries everything.
  std::uint16_t connection = 0;  // of what receive() gets
  LocalWay way{};                // of what drain() hands out; its position grows with each packet
  FepAddress address;
  Rng rng;
  PacketPool packets;
  FakeClient client;
  Outbox outbox;
  std::deque<TestMessage> messages;
  std::unique_ptr<Manager> manager;
};

// One Node and a peer that exists only as hand-made packets.
class Bench : public ::testing::Test {
 protected:
  Bench() { build(test_parameters()); }
  void build(const Parameters& parameters, const cms::Parameters& cms = open_window(),
             std::size_t packets = 8192);

  Destination to_peer(DeliveryMode mode = DeliveryMode::Rud) const {
    return {.address = peer, .job = JobId{7}, .mode = mode};
  }
  TestMessage& send(std::uint32_t packets, DeliveryMode mode = DeliveryMode::Rud,
                    std::uint32_t payload_bytes = 64) {
    return node->send(to_peer(mode), packets, now, payload_bytes);
  }
  // Has the node work and returns the packets that it sent.
  std::vector<Sent> turn() {
    node->turn(now);
    return node->drain();
  }
  std::vector<Sent> after(Duration time) {
    now += time;
    return turn();
  }
  // When an owed CLEAR has found no request to travel with for long enough (PDS-115).
  std::vector<Sent> after_clear_time() {
    return after(test_parameters().clear_time + TimerWheel::kTick);
  }
  // An established PDC with 70001 .. 70000 + count outstanding.
  TestMessage& outstanding(std::uint32_t count, DeliveryMode mode = DeliveryMode::Rud) {
    open(mode);
    TestMessage& message = send(count, mode);
    EXPECT_EQ(requests(turn()).size(), count);
    node->client.answered.clear();
    return message;
  }
  // Hand-made packets from the peer. Their spdcid and dpdcid are kPeerPdc and `pdc` if 0.
  void receive(wire::RequestHeader header, std::uint32_t message = 0, std::size_t bytes = 72);
  void receive(wire::AckHeader header, std::span<const std::byte> ses = {});
  void receive(wire::NackHeader header);
  void receive(wire::ControlHeader header);
  // The same, followed by turn().
  template <class Header>
  std::vector<Sent> answer_to(const Header& header) {
    receive(header);
    return turn();
  }
  wire::AckHeader ack(std::uint32_t cack, std::uint32_t ack_psn) const;
  // The peer, whose MPR is 1, answers each of 128 requests from 70001 on with a guaranteed response
  // that holds its CACK.
  void answer_with_held_responses() {
    for (std::uint32_t psn = 70001; psn <= 70128; ++psn) {
      wire::AckHeader held = ack(70000, psn);
      held.mpr = 1;
      held.req = wire::AckRequestCode::Clear;
      receive(held);
    }
  }
  wire::NackHeader nack(NackCode code, std::uint32_t psn) const;
  wire::RequestHeader request(std::uint32_t psn, bool syn = false) const;
  wire::RequestHeader retransmission(std::uint32_t psn) const;
  wire::ControlHeader control(wire::CpType type, std::uint32_t psn) const;

  // Builds the node with so many PDCs, half of them for each side.
  void with_pdcs(std::size_t count) {
    Parameters parameters = test_parameters();
    parameters.pdc_count = count;
    build(parameters);
  }
  // Sends the message to the peer in this traffic class.
  Result<void> try_send(TestMessage& message, std::uint8_t traffic_class) {
    Destination destination = to_peer();
    destination.traffic_class = traffic_class;
    return node->manager->send(message, destination, now);
  }
  // Closes the PDC that open() made with a handshake.
  void close(std::uint32_t close_psn) {
    node->manager->find(pdc)->begin_close(now);
    turn();
    receive(ack(close_psn, close_psn));
    turn();
  }

  // Opens a PDC from here and has it acknowledged: the first packet was PSN start_psn.
  Pdc& open(DeliveryMode mode = DeliveryMode::Rud);
  // A PDC that the peer opened with Start_PSN `start` and one request, and that is proved.
  Pdc& accept(std::uint32_t start = 333, DeliveryMode mode = DeliveryMode::Rud);
  // The peer's PDC `spdcid` sends something to `pdc` that changes nothing but Pdc::proved.
  void prove(PdcId spdcid = kPeerPdc);
  std::vector<std::uint32_t> delivered_psns() const;
  const Counters& counters() const { return node->manager->counters(); }

  static constexpr PdcId kPeerPdc{900};
  const FepAddress peer = address_of(2);
  std::unique_ptr<Node> node;
  std::uint32_t start_psn = 0;
  std::uint32_t peer_start = 0;  // of an accepted PDC
  DeliveryMode peer_mode = DeliveryMode::Rud;
  PdcId pdc{};  // of the PDC that open() or accept() made
  std::uint16_t rx_entropy = 50000;
  Ecn rx_ecn = Ecn::NotEct;
  bool rx_trimmed = false;
  Time now = kStart;
};

// Two Nodes and the wire between them.
class Pair : public ::testing::Test {
 protected:
  // The treatment of one packet: copies that arrive, and how much later than usual.
  struct Fate {
    int copies = 1;
    Duration delay{};
  };
  static constexpr Duration kLatency = microseconds(32);

  Pair() { build(test_parameters(), target_parameters()); }
  static Parameters target_parameters();
  void build(const Parameters& for_a, const Parameters& for_b, std::size_t packets = 8192,
             const cms::Parameters& cms_a = open_window(),
             const cms::Parameters& cms_b = open_window());

  Destination to_b(DeliveryMode mode = DeliveryMode::Rud, std::uint8_t traffic_class = 0) const {
    return {.address = b->address, .job = JobId{7}, .mode = mode, .traffic_class = traffic_class};
  }
  Destination to_a(DeliveryMode mode = DeliveryMode::Rud, std::uint8_t traffic_class = 0) const {
    return {.address = a->address, .job = JobId{7}, .mode = mode, .traffic_class = traffic_class};
  }
  TestMessage& send(std::uint32_t packets, DeliveryMode mode = DeliveryMode::Rud) {
    return a->send(to_b(mode), packets, now);
  }
  // Until `time`, event by event.
  void run_until(Time time);
  void run_for(Duration duration) { run_until(now + duration); }
  // Until `done` holds; false if it does not within `limit`.
  bool run_while_not(const std::function<bool()>& done, Duration limit = seconds(60));
  // Both send a message of three packets in each of four traffic classes, that is over four PDCs
  // each, as soon as a PDC is free, and every message must be answered.
  void expect_both_reach_each_other();
  // Closes every PDC of both and waits: everything must be given back.
  void expect_clean_close();
  // The PDC of `node` that is open, if there is exactly one.
  static Pdc* only_pdc(Node& node);
  // PSNs of request packets that `from` put on the wire, in order.
  std::vector<std::uint32_t> psns_sent(const Node& from) const;

  std::unique_ptr<Node> a;
  std::unique_ptr<Node> b;
  Time now = kStart;
  // Decides about each packet; everything arrives if empty.
  std::function<Fate(const Node& from, const Sent& packet)> fate;
  std::vector<std::pair<const Node*, Sent>> log;  // all that left, before its fate
  bool keep_log = true;

 private:
  struct InFlight {
    Time due;
    Node* to;
    FepAddress from;
    Sent packet;
  };
  void step();
  void transmit(Node& from, Node& to);
  std::deque<InFlight> wire_;
};

}  // namespace uet::pds::testing
