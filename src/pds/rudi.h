// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// RUDI, sending (PDS section 18): every packet is a request of its own, named by an id and sent
// again until its response comes. There is no PDC and the peer keeps no state, so that a packet may
// be executed more than once; SES uses it only where that does no harm (PDS-188).
//
// As on a PDC (PDS-121, PDS-185): a peer that sends nothing for silence_limit() is dead, and
// everything to it fails. If the peer answers others, a packet fails after
// Parameters::max_rto_retransmissions unanswered transmissions, whatever caused them. A peer that
// answers late is waited for: time-outs follow the measured times of its answers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/timer_wheel.h"
#include "cms/path.h"
#include "pds/pdc_core.h"
#include "uet/base/intrusive_list.h"
#include "uet/base/packet.h"
#include "uet/base/time.h"
#include "uet/pds/api.h"

namespace uet::pds {

struct RudiFlowTag;

// Requests to one destination.
struct RudiFlow : ListNode<RudiFlowTag> {
  RudiFlow(const Environment& environment, const Destination& to, SharedCcc& shared)
      : destination(to),
        ccc(shared),
        path(paths_for(shared, own_path, environment.cms, false, environment.rng)) {}

  const Destination destination;
  SharedCcc& ccc;  // the one of the RUD PDCs to there (CMS-4)
  std::optional<cms::PathSelector> own_path;
  cms::PathSelector& path;
  IntrusiveList<Message, BacklogTag> backlog;
  Time last_heard{};
  AnswerTime answer_time;
  std::uint32_t outstanding = 0;  // packets without a response
  PdcId proof;                    // the PDC that has shown the target our address (PDS-222)
  std::uint32_t asking = 0;       // id of the packet that is repeated while the peer is silent

  bool idle() const { return !linked() && outstanding == 0; }
};

class Rudi {
 public:
  // Packets without a response that there may be at a time; a power of two.
  static constexpr std::size_t kOutstanding = 1024;

  // `environment` outlives it.
  Rudi(Environment& environment, Time now);
  // To be called before its flows end: withdraws everything, without a word to the client.
  void discard();

  void send(Message& message, RudiFlow& flow);
  // Withdraws what there is of the message: nothing of it is answered any more. False if nothing.
  bool cancel(Message& message);
  // A message that answered NotNow can make packets again.
  void kick() { ready_ = !active_.empty(); }
  // Sends what may be sent, at most `budget` packets. True if something was.
  bool pump(std::uint32_t budget, Time now) {
    ready_ = false;
    return active_count_ > 0 && pump_flows(budget, now);
  }
  // True if a timer fired.
  bool expire(Time now) { return in_use() && expire_records(now); }
  void on_response(const wire::RudiHeader& header, std::span<const std::byte> ses,
                   const FepAddress& from, Time now);
  // The flow of a request that the target has no memory to answer for now; else nullptr.
  RudiFlow* on_nack(const wire::NackHeader& nack, const FepAddress& from, Time now);

  // Everything of the flow ends with `error`.
  void fail_flow(RudiFlow& flow, PdsError error, Time now);
  // Fails the flow if the lost peer had its requests. A successor is asked again.
  void on_dead_peer(RudiFlow& flow, const DeadPeer& lost, Time now);
  // Packets that left by the lost rail leave again at once (PDS-227).
  void on_lost_rail(const LostRail& lost, Time now);

  // Something could be sent at once.
  bool has_ready() const { return ready_; }
  Time next_deadline() const { return in_use() ? wheel_.next_deadline() : kNever; }
  bool empty() const { return !in_use() && active_.empty(); }

 private:
  bool in_use() const { return free_count_ != kOutstanding; }

  enum class State : std::uint8_t { Awaiting, ToResend };

  struct Sent {
    RudiFlow* flow = nullptr;  // nullptr: not in use
    Packet* packet = nullptr;
    Message* message = nullptr;
    std::uint32_t tag = 0;
    std::uint32_t packet_id = 0;
    std::uint32_t nominal_bytes = 0;
    wire::NextHdr next_hdr{};
    State state = State::Awaiting;
    bool in_flight = false;  // counted by the congestion context
    bool resent = false;     // its round-trip time is ambiguous
    bool excused = false;    // as TxRecord::excused
    std::uint8_t trim_count = 0;
    std::uint32_t rto_count = 0;
    std::uint32_t nack_count = 0;
    std::uint32_t sent_count = 0;
    std::uint32_t unanswered = 0;  // transmissions that a living peer has not answered
    std::uint16_t entropy = 0;
    Time first_sent{};
    Time last_sent{};
  };
  struct Record : TimerEntry, Sent {};
  std::span<Record> records() { return {records_.get(), records_ == nullptr ? 0 : kOutstanding}; }

  void prepare();
  // Why a flow sends no more for now.
  enum class Stop : std::uint8_t { Drained, Blocked, TurnOver };
  bool pump_flows(std::uint32_t budget, Time now);
  bool expire_records(Time now);
  Stop send_some(RudiFlow& flow, std::uint32_t& budget, Time now);
  std::uint32_t next_packet_id(std::uint16_t index);
  void transmit(Record& record, Time now);
  void resend(Record& record, Time now);
  Record* find(std::uint32_t packet_id, const FepAddress& from);
  Record* answered(std::uint32_t packet_id, const FepAddress& from, std::uint64_t& others);
  void on_deadline(Record& record, Time now);
  bool is_silent(const Record& record) const { return record.flow->last_heard <= record.last_sent; }
  bool counts_as_dead(const Record& record, Time now) const;
  bool may_ask(const Record& record);
  Duration timeout(const Record& record) const;
  void lose(Record& record, cms::LossCause cause, Time now);
  void release(Record& record);
  void fail(Record& record, PdsError error, Time now);
  void drop_drained_flows();

  Environment& env_;
  TimerWheel wheel_;
  std::unique_ptr<Record[]> records_;      // from the first message on: most FEPs never send one
  std::unique_ptr<std::uint16_t[]> free_;  // likewise
  std::size_t free_count_ = kOutstanding;
  std::uint32_t uses_ = 0;                       // upper part of packet ids
  IntrusiveList<RudiFlow, RudiFlowTag> active_;  // flows with a backlog
  std::size_t active_count_ = 0;
  bool ready_ = false;
};

}  // namespace uet::pds
