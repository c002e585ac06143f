// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "unit/pds/pds_harness.h"

#include <algorithm>
#include <cstring>

namespace uet::pds::testing {

namespace {

constexpr std::size_t kSesBytes = 8;  // of a TestMessage's packet: message and number

const std::vector<std::byte>& payload_memory() {
  static const std::vector<std::byte> memory(64 * 1024, std::byte{0x5A});
  return memory;
}

template <class Header>
std::vector<std::byte> encoded(const Header& header, std::span<const std::byte> body) {
  std::vector<std::byte> bytes(wire::kMaxPdsHeaderBytes);
  bytes.resize(header.encode(bytes.data()));
  bytes.insert(bytes.end(), body.begin(), body.end());
  return bytes;
}

template <class Header>
std::optional<Header> decoded(const Sent& sent) {
  Header header;
  if (!Header::decode(sent.bytes, header)) return std::nullopt;
  return header;
}

template <class Header>
std::vector<Header> all(const std::vector<Sent>& sent) {
  std::vector<Header> headers;
  for (const Sent& packet : sent) {
    if (const auto header = decoded<Header>(packet)) headers.push_back(*header);
  }
  return headers;
}

}  // namespace

Response default_response() {
  Response response;
  response.next_hdr = NextHdr::Response;
  response.length = 12;
  return response;
}

Response guaranteed_response(std::uint8_t fill) {
  Response response = default_response();
  response.guaranteed = true;
  response.bytes.fill(std::byte{fill});
  return response;
}

Response refusal(NackCode code) {
  Response response;
  response.nack = code;
  return response;
}

// ---- FakeClient ---------------------------------------------------------------------------------

PacketPlan FakeClient::next_packet(Message& base, Packet& packet, PreparedPacket& prepared) {
  auto& message = static_cast<TestMessage&>(base);
  if (message.blocked || (message.block_at != 0 && message.made == message.block_at)) {
    return PacketPlan::NotNow;
  }
  std::byte* out = packet.append(kSesBytes);
  std::memcpy(out, &message.id, 4);
  std::memcpy(out + 4, &message.made, 4);
  packet.payload[0] = {payload_memory().data(), message.payload_bytes};
  prepared.next_hdr = next_hdr;
  prepared.tag = message.made;
  message.answers.push_back(0);
  return ++message.made == message.packets ? PacketPlan::Last : PacketPlan::More;
}

Response FakeClient::rx_req(const RequestView& request, Time) {
  Delivered packet{.pdc = request.pdc,
                   .psn = request.psn,
                   .mode = request.mode,
                   .source = request.source,
                   .next_hdr = request.next_hdr,
                   .bytes = request.bytes.size()};
  std::tie(packet.message, packet.number) = content(request.bytes);
  const Response response = respond ? respond(packet) : default_response();
  if (!response.nack) delivered.push_back(packet);
  return response;
}

std::optional<RequestName> FakeClient::name_of(const RequestView& request) const {
  const auto [message, number] = content(request.bytes);
  return RequestName{MsgId{static_cast<std::uint16_t>(message)}, {}};
}

Response FakeClient::default_rsp(const RequestName&) const { return default_response(); }

Verdict FakeClient::rx_rsp(Message& base, std::uint32_t tag, const ResponseView& response, Time) {
  auto& message = static_cast<TestMessage&>(base);
  answered.push_back({.message = message.id,
                      .tag = tag,
                      .psn = response.psn,
                      .next_hdr = response.next_hdr,
                      .bytes = {response.bytes.begin(), response.bytes.end()}});
  const Answer answer = answered.back();
  const bool final = !provisional || !provisional(answer) || response.next_hdr == NextHdr::None;
  if (final) {
    ++message.answers.at(tag);
    ++message.responses;
  }
  if (on_answer) on_answer(answer);
  return final ? Verdict::Final : Verdict::Provisional;
}

void FakeClient::pds_error(Message& base, std::uint32_t tag, PdsError error, Time) {
  auto& message = static_cast<TestMessage&>(base);
  ++message.answers.at(tag);
  message.errors.push_back(error);
  if (on_error) on_error(message);
}

void FakeClient::message_failed(Message& base, PdsError error, Time) {
  auto& message = static_cast<TestMessage&>(base);
  ASSERT_FALSE(message.failed.has_value()) << "failed twice";
  message.failed = error;
}

void FakeClient::pdc_closed(PdcId pdc, std::optional<PdsError> error, Time) {
  closed.push_back({pdc, error});
}

// ---- Sent ---------------------------------------------------------------------------------------

wire::PdsType Sent::type() const {
  return static_cast<wire::PdsType>(std::to_integer<std::uint8_t>(bytes.at(0)) >> 3);
}
std::optional<wire::RequestHeader> Sent::request() const {
  return decoded<wire::RequestHeader>(*this);
}
std::optional<wire::AckHeader> Sent::ack() const { return decoded<wire::AckHeader>(*this); }
std::optional<wire::NackHeader> Sent::nack() const { return decoded<wire::NackHeader>(*this); }
std::optional<wire::ControlHeader> Sent::control() const {
  return decoded<wire::ControlHeader>(*this);
}
std::span<const std::byte> Sent::body() const {
  return std::span(bytes).subspan(wire::pds_header_bytes(type()));
}

std::vector<wire::RequestHeader> requests(const std::vector<Sent>& sent) {
  return all<wire::RequestHeader>(sent);
}
std::vector<wire::AckHeader> acks(const std::vector<Sent>& sent) {
  return all<wire::AckHeader>(sent);
}
std::vector<wire::NackHeader> nacks(const std::vector<Sent>& sent) {
  return all<wire::NackHeader>(sent);
}
std::vector<wire::ControlHeader> controls(const std::vector<Sent>& sent) {
  return all<wire::ControlHeader>(sent);
}
std::vector<std::uint32_t> psns(const std::vector<wire::RequestHeader>& headers) {
  std::vector<std::uint32_t> values;
  for (const auto& header : headers) values.push_back(header.psn.value);
  return values;
}

std::pair<std::uint32_t, std::uint32_t> content(std::span<const std::byte> bytes) {
  std::uint32_t words[2] = {};
  if (bytes.size() >= sizeof words) std::memcpy(words, bytes.data(), sizeof words);
  return {words[0], words[1]};
}

FepAddress address_of(std::uint8_t last_byte, std::uint16_t port) {
  FepAddress address;
  address.ip.bytes = {10, 0, 0, last_byte};
  address.port = port;
  return address;
}

Parameters test_parameters() {
  Parameters parameters;
  parameters.pdc_count = 8;
  parameters.ack_gen_trigger_bytes = cms::kAckGenTrigger;  // few packets are enough for an ACK
  parameters.reserved_pool_pdcs = 0;
  parameters.close_request_time = std::chrono::seconds(1);
  parameters.start_psn = 70000;
  parameters.first_pdc_id = 10;
  return parameters;
}

cms::Parameters open_window() {
  cms::Parameters parameters;
  parameters.algorithm = cms::Algorithm::None;
  parameters.max_window_bytes = 1 << 30;
  parameters.fixed_window_bytes = 1 << 30;
  parameters.ack_gen_trigger_bytes = cms::kAckGenTrigger;
  return parameters;
}

// ---- Node ---------------------------------------------------------------------------------------

Node::Node(std::uint8_t last_byte, const Parameters& parameters, const cms::Parameters& cms,
           std::size_t packet_count, std::uint64_t seed)
    : address(address_of(last_byte)),
      rng(seed),
      packets(packet_count),
      outbox(packets),
      manager(std::make_unique<Manager>(parameters, cms, client, outbox, packets, kEarlyBytes, rng,
                                        kStart)) {}

TestMessage& Node::message(std::uint32_t count, std::uint32_t payload_bytes) {
  TestMessage& message =
      messages.emplace_back(static_cast<std::uint32_t>(messages.size() + 1), count, payload_bytes);
  message.owner = &client;
  return message;
}

TestMessage& Node::send(const Destination& destination, std::uint32_t count, Time now,
                        std::uint32_t payload_bytes) {
  TestMessage& queued = message(count, payload_bytes);
  queued.backlog_bytes = std::uint64_t{count} * payload_bytes;
  EXPECT_TRUE(manager->send(queued, destination, now).ok());
  return queued;
}

void Node::receive(std::span<const std::byte> bytes, const FepAddress& source, Time now,
                   std::uint16_t entropy, Ecn ecn, bool trimmed) {
  // A copy of exactly this size, so that the sanitizer sees reading past the end.
  const std::vector<std::byte> copy(bytes.begin(), bytes.end());
  manager->demultiplexer().on_packet({.bytes = copy,
                                      .source = source,
                                      .entropy = entropy,
                                      .ecn = ecn,
                                      .arrived = arrived,
                                      .trimmed = trimmed,
                                      .connection = connection},
                                     now);
}

// No reply is made: ACKs that wait for one leave, as in the next pass of a Fep.
void Node::turn(Time now) {
  manager->demultiplexer().send_later_acks(now);
  manager->expire(now);
  for (int i = 0; i < 1000; ++i) {
    if (!manager->pump(now)) return;
  }
  ADD_FAILURE() << "pump does not come to an end";
}

std::vector<Sent> Node::drain() {
  std::vector<Sent> sent;
  outbox.begin_pass(false);
  std::array<const Packet*, 1> memory;
  for (auto next = outbox.next_burst(memory); !next.empty(); next = outbox.next_burst(memory)) {
    const Packet& packet = *next.front();
    Sent copy{.bytes = {},
              .to = packet.to,
              .entropy = packet.entropy,
              .ecn = packet.ecn,
              .dscp = packet.dscp,
              .first_in_flight = packet.first_in_flight};
    copy.bytes.assign(packet.head().begin(), packet.head().end());
    for (const Slice& slice : packet.payload) {
      copy.bytes.insert(copy.bytes.end(), slice.data, slice.data + slice.length);
    }
    sent.push_back(std::move(copy));
    packet.way = way;
    ++way.position;
    outbox.left(1);
  }
  return sent;
}

bool Node::answered_once(const TestMessage& message) {
  return message.answers.size() == message.packets &&
         std::all_of(message.answers.begin(), message.answers.end(), [](int n) { return n == 1; });
}

// ---- Bench --------------------------------------------------------------------------------------

void Bench::build(const Parameters& parameters, const cms::Parameters& cms, std::size_t packets) {
  node = std::make_unique<Node>(std::uint8_t{1}, parameters, cms, packets);
  start_psn = parameters.start_psn.value_or(0);
}

void Bench::receive(wire::RequestHeader header, std::uint32_t message, std::size_t bytes) {
  std::vector<std::byte> body(bytes);
  if (bytes >= kSesBytes) {
    std::memcpy(body.data(), &message, 4);
    std::memcpy(body.data() + 4, &header.psn.value, 4);
  }
  node->receive(encoded(header, body), peer, now, rx_entropy, rx_ecn, rx_trimmed);
}

void Bench::receive(wire::AckHeader header, std::span<const std::byte> ses) {
  node->receive(encoded(header, ses), peer, now, rx_entropy, rx_ecn, rx_trimmed);
}

void Bench::receive(wire::NackHeader header) {
  node->receive(encoded(header, {}), peer, now, rx_entropy, rx_ecn, rx_trimmed);
}

void Bench::receive(wire::ControlHeader header) {
  node->receive(encoded(header, {}), peer, now, rx_entropy, rx_ecn, rx_trimmed);
}

wire::AckHeader Bench::ack(std::uint32_t cack, std::uint32_t ack_psn) const {
  wire::AckHeader header;
  header.type = wire::PdsType::AckCc;
  header.cack_psn = Psn{cack};
  header.ack_psn_offset = static_cast<std::int16_t>(ack_psn - cack);
  header.spdcid = kPeerPdc;
  header.dpdcid = pdc;
  header.mpr = 8;
  header.sack_psn_offset = 1;
  return header;
}

wire::NackHeader Bench::nack(NackCode code, std::uint32_t psn) const {
  wire::NackHeader header;
  header.nack_code = code;
  header.nack_psn = Psn{psn};
  header.spdcid = kPeerPdc;
  header.dpdcid = pdc;
  return header;
}

wire::RequestHeader Bench::request(std::uint32_t psn, bool syn) const {
  wire::RequestHeader header;
  header.type = peer_mode == DeliveryMode::Rod ? wire::PdsType::RodReq : wire::PdsType::RudReq;
  header.next_hdr = NextHdr::RequestStd;
  header.syn = syn;
  header.psn = Psn{psn};
  header.clear_psn_offset = static_cast<std::int16_t>(peer_start - 1 - psn);
  header.spdcid = kPeerPdc;
  if (syn) {
    header.psn_offset = static_cast<std::uint16_t>(psn - peer_start);
  } else {
    header.dpdcid = pdc;
  }
  return header;
}

wire::RequestHeader Bench::retransmission(std::uint32_t psn) const {
  wire::RequestHeader header = request(psn);
  header.retx = header.ar = true;
  return header;
}

wire::ControlHeader Bench::control(wire::CpType type, std::uint32_t psn) const {
  wire::ControlHeader header;
  header.ctl_type = type;
  header.ar = type != wire::CpType::Clear && type != wire::CpType::ClearRequest;
  header.psn = Psn{psn};
  header.spdcid = kPeerPdc;
  header.dpdcid = pdc;
  return header;
}

Pdc& Bench::open(DeliveryMode mode) {
  TestMessage& first = send(1, mode);
  turn();
  pdc = first.pdc;
  receive(ack(start_psn, start_psn));
  turn();
  EXPECT_EQ(node->manager->find(pdc)->state(), PdcState::Established);
  return *node->manager->find(pdc);
}

Pdc& Bench::accept(std::uint32_t start, DeliveryMode mode) {
  peer_start = start;
  peer_mode = mode;
  receive(request(start, true));
  pdc = node->client.delivered.back().pdc;
  turn();
  prove();
  return *node->manager->find(pdc);
}

void Bench::prove(PdcId spdcid) {
  wire::ControlHeader clears_nothing = control(wire::CpType::Clear, 0);
  clears_nothing.spdcid = spdcid;
  clears_nothing.payload = peer_start - 1;
  receive(clears_nothing);
}

std::vector<std::uint32_t> Bench::delivered_psns() const {
  std::vector<std::uint32_t> values;
  for (const Delivered& packet : node->client.delivered) values.push_back(packet.psn.value);
  return values;
}

// ---- Pair ---------------------------------------------------------------------------------------

Parameters Pair::target_parameters() {
  Parameters parameters = test_parameters();
  parameters.first_pdc_id = 1000;
  parameters.start_psn = 900'000;
  return parameters;
}

void Pair::build(const Parameters& for_a, const Parameters& for_b, std::size_t packets,
                 const cms::Parameters& cms_a, const cms::Parameters& cms_b) {
  a = std::make_unique<Node>(std::uint8_t{1}, for_a, cms_a, packets, 1);
  b = std::make_unique<Node>(std::uint8_t{2}, for_b, cms_b, packets, 2);
}

void Pair::transmit(Node& from, Node& to) {
  for (Sent& packet : from.drain()) {
    if (keep_log) log.emplace_back(&from, packet);
    const Fate decided = fate ? fate(from, packet) : Fate{};
    for (int i = 0; i < decided.copies; ++i) {
      const Time due = now + kLatency + decided.delay;
      auto at = wire_.end();
      while (at != wire_.begin() && std::prev(at)->due > due) --at;
      wire_.insert(at, InFlight{due, &to, from.address, packet});
    }
  }
}

void Pair::step() {
  while (!wire_.empty() && wire_.front().due <= now) {
    const InFlight arrived = std::move(wire_.front());
    wire_.pop_front();
    arrived.to->receive(arrived.packet.bytes, arrived.from, now, arrived.packet.entropy,
                        arrived.packet.ecn);
  }
  a->turn(now);
  b->turn(now);
  transmit(*a, *b);
  transmit(*b, *a);
}

void Pair::run_until(Time time) {
  for (step(); now < time; step()) {
    Time next = std::min({time, a->manager->next_deadline(), b->manager->next_deadline()});
    if (!wire_.empty()) next = std::min(next, wire_.front().due);
    now = std::max(next, now + microseconds(1));
    now = std::min(now, time);
  }
}

bool Pair::run_while_not(const std::function<bool()>& done, Duration limit) {
  const Time end = now + limit;
  while (!done() && now < end) run_for(microseconds(64));
  return done();
}

void Pair::expect_both_reach_each_other() {
  std::vector<TestMessage*> all;
  for (std::uint8_t traffic_class = 0; traffic_class < 4; ++traffic_class) {
    for (Node* node : {a.get(), b.get()}) {
      TestMessage& message = node->message(3);
      const Destination to = node == a.get() ? to_b(DeliveryMode::Rod, traffic_class)
                                             : to_a(DeliveryMode::Rod, traffic_class);
      const Time limit = now + seconds(60);
      while (!node->manager->send(message, to, now).ok() && now < limit) run_for(milliseconds(1));
      all.push_back(&message);
    }
  }
  EXPECT_TRUE(run_while_not([&] {
    return std::ranges::all_of(all, [](const TestMessage* m) { return Node::answered_once(*m); });
  }));
}

void Pair::expect_clean_close() {
  run_for(milliseconds(1));
  a->manager->begin_close_all(now);
  b->manager->begin_close_all(now);
  EXPECT_TRUE(run_while_not(
      [this] { return a->manager->open_pdcs() == 0 && b->manager->open_pdcs() == 0; }));
  run_for(milliseconds(1));
  for (Node* node : {a.get(), b.get()}) {
    EXPECT_EQ(node->packets.in_use(), 0U);
    EXPECT_TRUE(node->manager->quiescent());
    EXPECT_FALSE(node->manager->has_ready());
  }
}

Pdc* Pair::only_pdc(Node& node) {
  Pdc* found = nullptr;
  for (std::uint32_t id = 1; id < 65536; ++id) {
    Pdc* pdc = node.manager->find(PdcId{static_cast<std::uint16_t>(id)});
    if (pdc == nullptr) continue;
    if (found != nullptr) return nullptr;
    found = pdc;
  }
  return found;
}

std::vector<std::uint32_t> Pair::psns_sent(const Node& from) const {
  std::vector<std::uint32_t> values;
  for (const auto& [node, packet] : log) {
    if (node != &from) continue;
    if (const auto header = packet.request()) values.push_back(header->psn.value);
  }
  return values;
}

}  // namespace uet::pds::testing
