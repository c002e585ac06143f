// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The consortium's reference provider as docs/spec describes it, rebuilt as a state machine: target
// and initiator of whole operations with one Fep, over a network that loses packets. It
// acknowledges each packet by an ACK without mpr, takes 128 PSNs, sends one message at a time,
// repeats by a constant timer, finds reads by response_message_id, and refuses Probe, NOOP, credit,
// rendezvous and deferrable sends.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/rng.h"
#include "sim/foreign_peer.h"

namespace uet::sim {

struct Loss {
  double each_way = 0;
  double acks = 0;  // of ACKs, on top
};

class ReferencePeer {
 public:
  // A message that has come, whole.
  struct Taken {
    wire::SesOpcode opcode{};
    std::uint64_t tag = 0;
    std::optional<std::uint64_t> data;
    std::vector<std::byte> bytes;
  };
  // A message of its own that has ended.
  struct Done {
    wire::SesOpcode opcode{};
    std::vector<std::byte> bytes;  // of a read or a fetching atomic: what came back
  };

  ReferencePeer(DeliveryMode mode, Loss loss, std::uint64_t seed);

  // One operation of the peer; the next one waits until this one has ended. `request` is complete
  // except the fields of each packet; `bytes`: its payload, `length`: its request_length.
  void post(wire::SesRequest request, std::vector<std::byte> bytes, std::uint32_t length);
  // Until `done`; false after `limit` of virtual time.
  bool run_until(const std::function<bool()>& done, Duration limit);
  // No operation of the peer is open, and no read data of the peer wait for a response.
  bool idle() const;

  ForeignPeer wire;
  std::vector<std::byte> memory;  // of the peer, which the Fep reads, writes and adds to
  std::vector<Taken> taken;
  std::vector<Done> done;
  std::vector<std::string> faults;  // what the reference provider would report as an error
  std::set<wire::SesOpcode> refused;
  std::uint64_t lost = 0;

 private:
  static constexpr std::int32_t kWindow = 128;
  static constexpr Duration kTimeout = std::chrono::milliseconds(20);

  struct Response {
    wire::SesResponseHeader header;
    std::vector<std::byte> data;
    bool guaranteed = false;  // kept until it is cleared; CACK stays below it
  };
  struct Kept {  // repeated by the timer
    std::vector<std::byte> bytes;
    Time sent;
  };
  struct Partial {
    Taken message;
    std::size_t missing = 0;
    bool begun = false;
  };
  // A PDC that the Fep has opened.
  struct Incoming {
    PdcId theirs;
    PdcId ours;
    bool rod = false;
    bool closed = false;
    Psn start;
    std::int32_t cack = -1;  // indices count from the Start_PSN
    std::int32_t cleared = -1;
    std::int32_t told_gap = -1;
    std::map<std::int32_t, Response> responses;
    std::map<std::int32_t, Answer> early;  // of ROD
    std::map<std::uint16_t, Partial> partial;
    std::int32_t next_back = 0;
    std::map<std::int32_t, Kept> back;  // read data without a response
  };
  struct Sent {
    wire::RequestHeader pds;
    wire::RudiHeader rudi;
    wire::SesRequest ses;
    std::span<const std::byte> payload;
    Time at;
    bool answered = false;
    bool asked = false;  // by an ACK Request, the last time
  };
  struct Operation {
    wire::SesRequest request;
    std::vector<std::byte> bytes;
    std::uint32_t length = 0;
    std::vector<Sent> packets;
    std::size_t next = 0;  // to be sent
    std::vector<std::byte> back;
    std::set<std::uint32_t> back_offsets;
    bool begun = false;
  };

  bool is_rudi() const { return mode_ == DeliveryMode::Rudi; }
  void exchange();
  void hear(const Answer& answer);
  void expire();
  // Target.
  void take(const Answer& answer, const wire::RequestHeader& pds);
  void execute(Incoming& pdc, std::int32_t index, const Answer& answer);
  Response respond(Incoming* pdc, const Answer& answer);
  Response respond_to_message(std::map<std::uint16_t, Partial>& partial,
                              const wire::SesRequest& ses);
  Response respond_to_read(Incoming* pdc, const wire::SesRequest& ses);
  Response respond_to_atomic(const wire::SesRequest& ses);
  void send_back(Incoming& pdc, const wire::SesRequest& ses, const std::vector<std::byte>& data);
  void acknowledge(Incoming& pdc, std::int32_t index, bool retx);
  void clear(Incoming& pdc, std::int32_t up_to);
  void advance(Incoming& pdc);
  void refuse(const Incoming* pdc, PdcId theirs, Psn psn, wire::NackCode code);
  void take(const wire::ControlHeader& control);
  void take_of_own_pdc(const wire::ControlHeader& control);
  void take_rudi(const Answer& answer, const wire::RudiHeader& header);
  Incoming* incoming(PdcId ours);
  // Initiator.
  void begin();
  void fill_window();
  void send(Sent& packet, bool again);
  void on_ack(const Answer& answer, const wire::AckHeader& ack);
  void on_response(Sent& packet, const wire::SesResponseHeader& response);
  void take_data(const Answer& answer, const wire::RequestHeader& pds);
  void send_clear();
  void end_if_over();
  void fault(const std::string& text) { faults.push_back(text); }
  void say(std::vector<std::byte> bytes) { outbox_.push_back(std::move(bytes)); }

  const DeliveryMode mode_;
  const Loss loss_;
  Rng rng_;
  std::deque<std::vector<std::byte>> outbox_;
  std::deque<Incoming> incoming_;
  std::deque<Operation> operations_;  // the first one is open
  std::uint32_t next_index_ = 0;
  std::uint32_t next_pkt_id_ = 7;
  std::int32_t cleared_ = -1;
  std::int32_t acked_ = -1;  // highest CACK of the Fep
  std::uint16_t next_message_ = 1;
  std::set<std::int32_t> back_seen_;
  std::int32_t back_cack_ = -1;
};

}  // namespace uet::sim
