// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Operations -> messages -> packets, and their answers -> completions. Decides how a message is cut
// and when it is complete; knows no PSN, window or timer.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "uet/base/result.h"
#include "uet/base/rng.h"
#include "uet/base/slab.h"
#include "uet/base/time.h"
#include "uet/base/zeroed_array.h"
#include "uet/pds/api.h"
#include "uet/ses/api.h"
#include "uet/ses/context.h"
#include "uet/ses/counters.h"
#include "uet/ses/long_send_peers.h"
#include "uet/ses/message.h"
#include "uet/ses/parameters.h"

namespace uet::ses {

// Who posts reads for a target (SES-57); implemented by Receiver.
class PullClient {
 public:
  virtual ~PullClient() = default;
  // The read for this message has ended; with Status::Ok all its bytes are in place.
  // `not_consumed`: it failed because the peer has let go of its PDC, and nothing of it was done.
  virtual void pulled(RxMessage& message, Status status, bool not_consumed) noexcept = 0;
};

class Initiator {
 public:
  static constexpr std::size_t kLearnedGenerations = 1024;  // a power of 2
  // Messages of more packets are long: they leave a PDC to shorter ones (PDS-9).
  static constexpr std::uint64_t kShortPackets = 8;

  // The referenced objects outlive this one.
  Initiator(const Parameters& parameters, PieceStore& pieces, Counters& counters);
  ~Initiator();
  void attach(pds::Delivery& delivery) { delivery_ = &delivery; }
  void attach(PullClient& client) { pull_client_ = &client; }

  // As in ses.h.
  Result<void> send(Context& context, const SendOp& op, Time now);
  Result<void> write(Context& context, const RmaOp& op, Time now);
  Result<void> read(Context& context, const RmaOp& op, Time now);
  Result<void> atomic(Context& context, const AtomicOp& op, Time now);
  // As in ses.h; false if there is no such operation.
  bool cancel(Context& context, const void* operation, Time now);
  // As in ses.h.
  void hurry(Context& context);
  // Ends all its operations without completions; see ses.h.
  void close_context(Context& context, Time now);
  std::size_t max_inject_bytes() const;
  std::size_t max_atomic_bytes() const { return payload_mtu_; }

  // What PDS asks (pds::Client), for operations.
  pds::PacketPlan next_packet(TxMessage& message, Packet& packet, pds::PreparedPacket& prepared);
  pds::Verdict rx_rsp(TxMessage& message, std::uint32_t tag, const pds::ResponseView& response,
                      Time now);
  void pds_error(TxMessage& message, std::uint32_t tag, pds::PdsError error, Time now);
  void message_failed(TxMessage& message, pds::PdsError error, Time now);
  void pdc_closed(PdcId pdc, std::optional<pds::PdsError> error, Time now);
  // Return data: a request packet in the return direction (SES-83).
  pds::Response rx_data(const pds::RequestView& request, Time now);

  // What a target asks that is told to read a message of this FEP (initiator_rendezvous.cc).
  // The message that the FEP `reader` may read under the key (is_message_key); nullptr: none.
  TxMessage* readable(Rkey key, JobId job, const FepAddress& reader);
  // Points to `length` bytes of the message; false if they lie in more than two pieces.
  static bool point_at(const TxMessage& message, std::uint64_t offset, std::uint32_t length,
                       std::array<Slice, 2>& out);
  void read_served(TxMessage& message, bool reaches_end, std::uint32_t length,
                   std::uint32_t read_length, Time now);
  void reader_gave_up(TxMessage& message);
  void answer_done(ReadAnswer& answer);  // its source is ours

  // DEFERRABLE_RTR: the FEP `source` has a receive now for a message that it had put off.
  wire::ReturnCode restart(const wire::SesRequest& request, const FepAddress& source, Time now);

  // Reads bytes [from, from + total_length(into)) of a peer's message; 0 bytes at its end tell the
  // peer that all is read. The client is told. Again: no message or PDC now.
  Result<void> pull(RxMessage& message, std::uint64_t from, std::span<const IoSlice> into,
                    Time now);
  // Asks the sender of a message that was put off to send it again under this token (SES-70). The
  // client is told when the sender has answered. Again: no message or PDC now.
  Result<void> request_restart(RxMessage& message, std::uint32_t token, Time now);
  // The client is not told.
  void forget_restart(const RxMessage& message);
  // What still comes for it goes nowhere.
  void forget_memory(const RxMessage& message);

  // As in ses.h.
  void progress(Time now);
  // There is something that progress() is for.
  bool waits() const {
    return !holding_.empty() || !awaiting_read_.empty() || !awaiting_data_.empty() ||
           !deferred_.empty();
  }
  Time next_deadline();

  // Nothing in progress.
  bool idle() const { return messages_.in_use() == 0; }

 private:
  static constexpr std::uint32_t kNoPiece = UINT32_MAX;  // tag of packets that ask for no data
  // A PDC that has closed because PDCs are short is not opened again at once.
  static constexpr Duration kWatchAgain = std::chrono::seconds(1);

  struct PdcReads {
    std::uint64_t bytes = 0;    // asked for and not yet arrived
    std::uint32_t pieces = 0;   // request packets they were asked with
    std::uint32_t watched = 0;  // sends that wait until their target has read them
    bool blocked = false;       // a message was told NotNow
  };

  // The generation that a peer told one of our contexts. Each context learns it for itself: what
  // one knew too early would let its messages overtake those that are still to be refused.
  struct LearnedGeneration {
    const Context* context = nullptr;
    FepAddress to;
    PidOnFep pid_on_fep;
    ResourceIndex resource_index;
    bool relative = false;
    RiGeneration value;
  };

  static void append_header(Packet& packet, const wire::SesRequest& header);
  static void append_piece_header(Packet& packet, TxMessage& message, std::uint32_t length,
                                  bool eom);
  Result<void> check(const Context& context, const TxOp& op) const;
  TxMessage* prepare(Context& context, const TxOp& op, Kind kind);
  Result<void> rma(Context& context, const RmaOp& op, Kind kind, Time now);
  Result<void> send_datagram(Context& context, const SendOp& op, Time now);
  bool is_idempotent(const Context& context, const RmaOp& op) const;
  bool withdraw(TxMessage& message);
  Result<void> submit(TxMessage& message, const TxOp& op, Time now);
  void choose_header(TxMessage& message) const;
  Result<void> start(TxMessage& message, Time now);
  static bool must_wait(TxMessage& message);
  bool is_crowded(const Context& context) const;
  void hold(TxMessage& message);
  void unhold(TxMessage& message);
  static bool is_held(const TxMessage& message) {
    return static_cast<const ListNode<HeldTag>&>(message).linked();
  }
  void start_held(Context& context, Time now);
  void start_all_held(Time now);
  bool gather_pieces(TxMessage& message, bool inject);
  Result<void> check_atomic_op(const AtomicOp& op) const;
  bool fill_operands(TxMessage& message, const AtomicOp& op);
  MsgId take_id(TxMessage& message);
  pds::PacketPlan next_read(TxMessage& message, Packet& packet, pds::PreparedPacket& prepared);
  pds::PacketPlan next_atomic(TxMessage& message, Packet& packet, pds::PreparedPacket& prepared);
  pds::PacketPlan next_end(TxMessage& message, wire::SesOpcode opcode, Packet& packet,
                           pds::PreparedPacket& prepared);
  pds::PacketPlan made(TxMessage& message, bool last);
  static bool is_provisional(const TxMessage& message, std::uint32_t tag,
                             const wire::SesResponseHeader& header);
  void take_response(TxMessage& message, std::uint32_t tag, const wire::SesResponseHeader& header,
                     Time now);
  void on_response(TxMessage& message, std::uint32_t tag, const wire::SesResponseHeader& header,
                   Time now);
  Rkey new_read_key(MsgId id);
  void offer_reads(TxMessage& message, const Peer& peer);
  void offer_deferral(TxMessage& message, const Peer& peer);
  void park(TxMessage& message, Time now);
  TxMessage* find_deferrable(std::uint32_t token);
  void expire_deferred(Time now);
  Time deferred_deadline();
  void watch(TxMessage& message);
  void stop_watching(TxMessage& message);
  void watch_on_other_pdcs(Time now);
  void await_read(TxMessage& message, Time now);
  void stop_awaiting_read(TxMessage& message);
  void abandon(TxMessage& message, Time now);
  void send_error(TxMessage& message, Time now);
  Result<void> send_behind(TxMessage& message, Time now);
  TxMessage* prepare_pull(RxMessage& message, wire::SesOpcode opcode);
  Result<void> submit_pull(TxMessage& read, const RxMessage& message, Time now);
  void tell_puller(TxMessage& read);
  void expire_reads(Time now);
  Time read_deadline();
  static bool awaits_data(const TxMessage& message);
  void await_data(TxMessage& message, Time now);
  void expire_data(Time now);
  Time data_deadline();
  void take_data(const pds::RequestView& request, const wire::SesResponseHeader& header, Time now);
  void place_data(TxMessage& message, std::uint64_t offset, std::span<const std::byte> data,
                  Time now);
  static void place_results(const TxMessage& message, std::span<const std::byte> results);
  std::uint32_t piece_length(const TxMessage& message, std::uint64_t offset) const;
  bool await_piece(TxMessage& message, std::uint32_t length);
  void resolve_piece(TxMessage& message, std::uint64_t offset);
  void refuse(TxMessage& message, const wire::SesResponseHeader& header, Time now);
  void not_consumed(TxMessage& message, Time now);
  void send_again(TxMessage& message, bool at_once, Time now);
  static bool has_plain_form(const TxMessage& message);
  void make_plain(TxMessage& message);
  bool begins_trial(const TxMessage& message);
  void choose_form(TxMessage& message);
  void hold_back_later(TxMessage& refused);
  static void mark_refused(TxMessage& message);
  void rewind(TxMessage& message);
  Duration wait_before(std::uint16_t next_try);
  void learn_generation(const TxMessage& message, RiGeneration generation);
  RiGeneration generation_of(const TxMessage& message) const;
  void forget_generations(const Context& context);
  void end(TxMessage& message);
  void fail(TxMessage& message, wire::ReturnCode code);
  void fail(TxMessage& message, pds::PdsError error);
  void finish_if_done(TxMessage& message);
  void finish(TxMessage& message);
  void release(TxMessage& message);

  const std::uint32_t payload_mtu_;
  HostCopy* const host_copy_;
  const std::size_t read_limit_bytes_;
  const std::uint64_t rendezvous_threshold_bytes_;
  const std::uint64_t eager_bytes_;
  const Duration rendezvous_timeout_;
  const Duration read_timeout_;
  const std::uint16_t retries_;
  const Duration retry_wait_;
  const Duration retry_wait_most_;
  const std::size_t operations_limit_;
  const std::size_t pulls_limit_;
  const bool uses_rudi_;
  const bool short_headers_;
  const bool uses_rendezvous_;
  const bool uses_deferral_;
  const std::uint64_t deferrable_threshold_bytes_;
  const Duration deferred_timeout_;
  PieceStore& pieces_;
  Counters& counters_;
  pds::Delivery* delivery_ = nullptr;
  PullClient* pull_client_ = nullptr;
  Rng rng_;
  const ri::KeySecret key_secret_;
  std::uint64_t keys_made_ = 0;
  Slab<TxMessage> messages_;
  std::size_t pulls_count_ = 0;  // of them, a target's own
  IntrusiveList<TxMessage, OutstandingTag> pulling_;
  IntrusiveList<TxMessage, AwaitingReadTag> awaiting_read_;
  IntrusiveList<TxMessage, AwaitingDataTag> awaiting_data_;  // in order of time
  IntrusiveList<TxMessage, DeferrableTag> deferrable_;       // under way
  IntrusiveList<TxMessage, DeferrableTag> deferred_;         // put off, in order of time
  std::uint32_t last_token_ = 0;
  IntrusiveList<TxMessage, OutstandingTag> orphans_;  // of closed contexts, still with PDS
  ZeroedArray<TxMessage*> by_id_;                     // 2^16: ids are unique in the FEP (SES-28)
  std::uint16_t last_id_ = 0;
  std::uint64_t next_sequence_ = 0;
  // By a hash; a generation that is lost here is learned again.
  ZeroedArray<LearnedGeneration> learned_;
  bool has_learned_ = false;
  LongSendPeers long_send_peers_;
  ZeroedArray<PdcReads> reads_;                 // 2^16, by PDC id
  IntrusiveList<Context, HoldingTag> holding_;  // contexts with operations behind a fence
  Time next_try_ = kNever;                      // when to look at them again
  Time next_watch_ = kNever;  // when sends whose PDC has closed while they wait have another one
};

}  // namespace uet::ses
