// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// SES without PDS: a Node is one FEP's Ses on top of a Delivery that only keeps lists, so that a
// test decides which packet arrives when.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "ses/initiator.h"
#include "ses/ses.h"

namespace uet::ses::test {

// Device memory whose every bit is the opposite of what the CPU would find at its address.
class FakeDevice final : public DeviceMemory {
 public:
  void place(std::byte* there, std::span<const std::byte> bytes) noexcept override {
    std::transform(bytes.begin(), bytes.end(), there, [](std::byte b) { return ~b; });
  }
  void fetch(std::span<std::byte> bytes, const std::byte* there) noexcept override {
    std::transform(there, there + bytes.size(), bytes.begin(), [](std::byte b) { return ~b; });
  }
};

using Bytes = std::vector<std::byte>;
using wire::NextHdr;
using wire::ReturnCode;
using wire::SesOpcode;
using wire::SesRequest;

inline constexpr Time kNow = time_from_ns(1000);
inline constexpr PdcId kPdc{0x41};  // at both ends, to keep tests short
inline constexpr std::uint32_t kMtu = 1024;

// `count` bytes that differ from place to place.
inline Bytes pattern(std::size_t count, unsigned seed = 1) {
  Bytes bytes(count);
  for (std::size_t i = 0; i < count; ++i) {
    bytes[i] = static_cast<std::byte>((i * 131 + (i >> 8) * 17 + seed * 29) & 0xFF);
  }
  return bytes;
}

inline IoSlice slice_of(Bytes& bytes) { return {bytes.data(), bytes.size()}; }

struct Sink final : CompletionSink {
  void complete(const Completion& completion) noexcept override { all.push_back(completion); }
  bool can_take_event() noexcept override { return room; }
  bool reserve_receive() noexcept override {
    if (receive_room == 0) return false;
    --receive_room;
    return true;
  }
  void release_receive() noexcept override { ++receive_room; }
  void remote_access(Kind kind, std::uint64_t length) noexcept override {
    accesses.emplace_back(kind, length);
  }
  void remote_part(Kind kind, std::uint64_t length) noexcept override {
    parts.emplace_back(kind, length);
  }
  bool counts_reads() const noexcept override { return counts; }
  std::vector<Completion> all;
  std::vector<std::pair<Kind, std::uint64_t>> accesses;
  std::vector<std::pair<Kind, std::uint64_t>> parts;
  bool room = true;
  bool counts = true;               // counts_reads
  std::size_t receive_room = 1000;  // reserve_receive fails beyond it
};

struct Lists final : pds::Delivery {
  Result<void> send(pds::Message& message, const pds::Destination& to, Time) override {
    if (refuse) return Error::Again;
    message.pdc = kPdc;
    destination = to;
    backlog.push_back(&message);
    return {};
  }
  Result<void> respond(pds::Message& message, Time) override {
    if (refuse) return Error::Again;
    responses.push_back(&message);
    return {};
  }
  Result<void> send_on(PdcId pdc, pds::Message& message, Time) override {
    if (pdc_gone) return Error::NotFound;
    if (pdc_closes) return Error::Busy;
    message.pdc = pdc;
    backlog.push_back(&message);
    return {};
  }
  void answer(PdcId pdc, Psn psn, const pds::Response& response) override {
    answers.push_back({pdc, psn, response});
  }
  bool cancel(pds::Message& message) override { return std::erase(backlog, &message) > 0; }
  void edit_packets(const pds::Message& message, pds::PacketEditor& editor) override {
    if (on_edit) on_edit(message, editor);
  }
  void kick(PdcId) override { ++kicks; }
  void request_acks_now(PdcId) override { ++requested_acks; }
  void lock(PdcId) override { ++locks; }
  void unlock(PdcId) override { --locks; }
  void watch(PdcId) override { ++locks; }
  void unwatch(PdcId) override { --locks; }
  bool proved(PdcId) override { return source_proved; }
  Result<PdcId> connect(const pds::Destination& to, Time) override {
    if (refuse) return Error::Again;
    ++connects;
    destination = to;
    return kPdc;
  }
  void abort(PdcId pdc, Time now) override {
    ++aborts;
    aborted = pdc;
    if (on_abort) on_abort(pdc, now);
  }

  struct OwedAnswer {
    PdcId pdc;
    Psn psn;
    pds::Response response;
  };

  std::deque<pds::Message*> backlog;
  std::deque<pds::Message*> responses;  // to RUDI requests
  std::vector<OwedAnswer> answers;      // that provisional responses had put off
  pds::Destination destination;
  bool refuse = false;
  bool pdc_closes = false;  // its Close Command has left
  bool pdc_gone = false;
  bool source_proved = true;
  int kicks = 0;
  int requested_acks = 0;
  int locks = 0;  // and watches
  int connects = 0;
  int aborts = 0;
  PdcId aborted;
  std::function<void(PdcId, Time)> on_abort;
  std::function<void(const pds::Message&, pds::PacketEditor&)> on_edit;
};

// A packet that has been made and not yet been answered.
struct Sent {
  pds::Message* message = nullptr;
  std::uint32_t tag = 0;
  NextHdr next_hdr{};
  Bytes bytes;

  SesRequest request() const {
    SesRequest request;
    EXPECT_TRUE(SesRequest::decode(next_hdr, bytes, request));
    return request;
  }
};

inline Parameters small_parameters() {
  Parameters parameters;
  parameters.payload_mtu = kMtu;
  parameters.tx_messages = 64;
  parameters.rx_messages = 64;
  parameters.posted_receives = 128;
  parameters.return_messages = 32;
  parameters.outstanding_reads_bytes = 4 * kMtu;
  parameters.unexpected_bytes_per_context = 64 * kMtu;
  return parameters;
}

inline ContextConfig small_config() {
  ContextConfig config;
  config.job = JobId{101};
  config.pid_on_fep = PidOnFep{2};
  config.resource_index = ResourceIndex{10};
  config.initiator = InitiatorId{77};
  config.directed_receive = true;
  return config;
}

inline FepAddress address_of(std::uint8_t last) {
  FepAddress address;
  address.ip.bytes = {10, 0, 0, last};
  return address;
}

class Node {
 public:
  explicit Node(std::uint8_t number, const Parameters& parameters = small_parameters(),
                const ContextConfig& config = small_config(), std::size_t buffer_count = 64)
      : address(address_of(number)),
        buffers(parameters.payload_mtu, buffer_count),
        regions(64, {}),
        ses(parameters, buffers, regions) {
    ses.attach(delivery);
    context = ses.open_context(config, sink).value();
    ses.enable(*context);
  }

  Peer peer() const {
    const ContextConfig& config = ses.config(*context);
    return {address,          config.pid_on_fep, config.resource_index,
            config.initiator, config.relative,   config.generation};
  }

  // Makes all packets that can be made now.
  std::vector<Sent> packets() {
    std::vector<Sent> made;
    while (!delivery.backlog.empty()) {
      std::optional<Sent> sent = packet();
      if (!sent) break;
      made.push_back(std::move(*sent));
    }
    return made;
  }
  // Makes the next packet, as PDS would.
  std::optional<Sent> packet() {
    pds::Message& message = *delivery.backlog.front();
    Packet head;
    head.reset();
    pds::PreparedPacket prepared;
    const pds::PacketPlan plan = message.owner->next_packet(message, head, prepared);
    if (plan == pds::PacketPlan::NotNow) return {};
    if (plan == pds::PacketPlan::Last) delivery.backlog.pop_front();
    Sent sent{&message, prepared.tag, prepared.next_hdr, {}};
    sent.bytes.assign(head.head().begin(), head.head().end());
    for (const Slice& part : head.payload) {
      sent.bytes.insert(sent.bytes.end(), part.data, part.data + part.length);
    }
    return sent;
  }

  pds::Response take(NextHdr next_hdr, const Bytes& bytes, std::uint8_t from, PdcId pdc = kPdc,
                     std::uint32_t psn = 1) {
    pds::RequestView view;
    view.pdc = pdc;
    view.source = address_of(from);
    view.next_hdr = next_hdr;
    view.psn = Psn{psn};
    view.bytes = bytes;
    return ses.client().rx_req(view, kNow);
  }
  pds::Verdict answered(const Sent& sent, const pds::Response& response) {
    const std::span<const std::byte> bytes(response.bytes.data(), response.length);
    return sent.message->owner->rx_rsp(*sent.message, sent.tag, {response.next_hdr, bytes, Psn{1}},
                                       kNow);
  }

  // PDS gives up on the packet.
  static void fail(const Sent& sent, pds::PdsError error) {
    sent.message->owner->pds_error(*sent.message, sent.tag, error, kNow);
  }

  Result<void> send(const Node& to, std::vector<IoSlice> local,
                    std::optional<std::uint64_t> tag = {}, void* operation = nullptr) {
    const Peer target = to.peer();
    SendOp op;
    op.peer = &target;
    op.local = local;
    op.tag = tag;
    op.context = operation;
    return ses.initiator().post(*context, op, kNow);
  }
  Result<void> receive(std::vector<IoSlice> local, std::optional<std::uint64_t> tag = {},
                       std::uint64_t ignore = 0, void* operation = nullptr,
                       const Peer* source = nullptr) {
    ReceiveOp op;
    op.local = local;
    op.tagged = tag.has_value();
    op.tag = tag.value_or(0);
    op.ignore = ignore;
    op.source = source;
    op.context = operation;
    return ses.receive(*context, op, kNow);
  }
  RmaOp rma(const Peer& target, const std::vector<IoSlice>& local, Rkey key,
            std::uint64_t offset = 0, Kind kind = Kind::Write) {
    RmaOp op;
    op.kind = kind;
    op.peer = &target;
    op.local = local;
    op.key = key;
    op.remote_offset = offset;
    return op;
  }
  Result<void> write(const Node& to, std::vector<IoSlice> local, Rkey key, std::uint64_t offset = 0,
                     std::optional<std::uint64_t> data = {}) {
    const Peer target = to.peer();
    RmaOp op = rma(target, local, key, offset);
    op.data = data;
    return ses.initiator().post(*context, op, kNow);
  }
  Result<void> read(const Node& from, std::vector<IoSlice> local, Rkey key,
                    std::uint64_t offset = 0) {
    const Peer target = from.peer();
    return ses.initiator().post(*context, rma(target, local, key, offset, Kind::Read), kNow);
  }
  Rkey expose(Bytes& memory, std::uint8_t access = ri::kRemoteRead | ri::kRemoteWrite,
              DeviceMemory* device = nullptr) {
    ri::MemoryRegion region;
    region.device = device;
    region.base = memory.data();
    region.length = memory.size();
    region.access = access;
    return regions.add(region).value();
  }
  // A request addressed to this node's context.
  SesRequest request_for(SesOpcode opcode) const {
    const ContextConfig& config = ses.config(*context);
    SesRequest request;
    request.opcode = opcode;
    request.rel = config.relative;
    request.message_id = MsgId{9};
    request.ri_generation = config.generation;
    request.job_id = config.job;
    request.pid_on_fep = config.pid_on_fep;
    request.resource_index = config.resource_index;
    request.initiator = InitiatorId{5};
    return request;
  }
  pds::Response take(const SesRequest& request, const Bytes& payload = {}, std::uint8_t from = 1,
                     PdcId pdc = kPdc) {
    Bytes bytes(request.encoded_bytes());
    request.encode(bytes.data());
    bytes.insert(bytes.end(), payload.begin(), payload.end());
    return take(request.next_hdr, bytes, from, pdc);
  }

  FepAddress address;
  BufferPool buffers;
  ri::MrTable regions;
  Lists delivery;
  Sink sink;
  Ses ses;
  Context* context = nullptr;
};

inline wire::SesResponseHeader header_of(const pds::Response& response) {
  wire::SesResponseHeader header;
  if (response.next_hdr == NextHdr::None) return header;
  const std::span<const std::byte> bytes(response.bytes.data(), response.length);
  EXPECT_TRUE(wire::SesResponseHeader::decode(response.next_hdr, bytes, header));
  return header;
}
inline ReturnCode code_of(const pds::Response& response) {
  EXPECT_FALSE(response.nack.has_value());
  return header_of(response).return_code;
}

// Node 1 sends, node 2 is the target.
class TwoNodes : public ::testing::Test {
 protected:
  explicit TwoNodes(const Parameters& parameters = small_parameters())
      : a(1, parameters), b(2, parameters) {}
  // Delivers a packet of `from` to `to`; the answer goes back unless it is a NACK.
  static pds::Response deliver(Node& from, Node& to, const Sent& sent) {
    const pds::Response response = to.take(sent.next_hdr, sent.bytes, from.address.ip.bytes[3]);
    if (!response.nack) from.answered(sent, response);
    return response;
  }
  // Calls progress() of the node once and returns the packets that it sends.
  static std::vector<Sent> turn(Node& node, Time now = kNow) {
    node.ses.progress(now);
    return node.packets();
  }
  // Everything, both ways, until nothing is left.
  void exchange() {
    for (int round = 0; round < 100; ++round) {
      const std::vector<Sent> forth = turn(a);
      for (const Sent& sent : forth) deliver(a, b, sent);
      const std::vector<Sent> back = turn(b);
      for (const Sent& sent : back) deliver(b, a, sent);
      if (forth.empty() && back.empty()) return;
    }
    ADD_FAILURE() << "does not come to rest";
  }
  void expect_idle() {
    for (Node* node : {&a, &b}) {
      EXPECT_TRUE(node->ses.idle());
      EXPECT_EQ(node->buffers.in_use(), 0u);
      EXPECT_EQ(node->delivery.locks, 0);
      EXPECT_EQ(node->ses.next_deadline(), kNever);
    }
  }

  // A packet of a message to node b: `payload` at `offset` of `total` bytes.
  static SesRequest part(SesRequest request, std::uint32_t offset, std::size_t payload,
                         std::uint32_t total) {
    request.som = offset == 0;
    request.eom = offset + payload == total;
    request.message_offset = offset;
    request.payload_length = static_cast<std::uint32_t>(payload);
    request.request_length = total;
    return request;
  }
  pds::Response take_part(const SesRequest& request, const Bytes& message, std::uint32_t offset,
                          std::size_t count) {
    const auto begin = message.begin() + offset;
    return b.take(part(request, offset, count, static_cast<std::uint32_t>(message.size())),
                  Bytes(begin, begin + static_cast<std::ptrdiff_t>(count)));
  }

  Node a;
  Node b;
};

}  // namespace uet::ses::test
