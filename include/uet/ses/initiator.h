// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Operations -> messages -> packets, and their answers -> completions. Decides how a message is cut
// and when it is complete; knows no PSN, window or timer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "uet/base/result.h"
#include "uet/base/slab.h"
#include "uet/base/time.h"
#include "uet/pds/api.h"
#include "uet/ses/api.h"
#include "uet/ses/context.h"
#include "uet/ses/counters.h"
#include "uet/ses/message.h"
#include "uet/ses/parameters.h"

namespace uet::ses {

class Initiator {
 public:
  // The referenced objects outlive this one.
  Initiator(const Parameters& parameters, PieceStore& pieces, Counters& counters);
  ~Initiator();
  void attach(pds::Delivery& delivery) { delivery_ = &delivery; }

  // As in ses.h.
  Result<void> send(Context& context, const SendOp& op, Time now);
  Result<void> write(Context& context, const RmaOp& op, Time now);
  Result<void> read(Context& context, const RmaOp& op, Time now);
  Result<void> atomic(Context& context, const AtomicOp& op, Time now);
  // Cancels the oldest operation with this pointer that no packet has left of; false if none.
  bool cancel(Context& context, const void* operation);
  // Ends all its operations without completions; see ses.h.
  void close_context(Context& context, Time now);
  std::size_t max_inject_bytes() const;
  std::size_t max_atomic_bytes() const { return payload_mtu_; }

  // What PDS asks (pds::Client), for operations.
  pds::PacketPlan next_packet(TxMessage& message, Packet& packet, pds::PreparedPacket& prepared);
  void rx_rsp(TxMessage& message, std::uint32_t tag, const pds::ResponseView& response);
  void pds_error(TxMessage& message, std::uint32_t tag, pds::PdsError error);
  void message_failed(TxMessage& message, pds::PdsError error);
  void pdc_closed(PdcId pdc, pds::PdsError error);
  // Return data: a request packet in the return direction (SES-83).
  void rx_data(const pds::RequestView& request);

  // Nothing in progress.
  bool idle() const { return messages_.in_use() == 0; }

 private:
  static constexpr std::uint32_t kNoPiece = UINT32_MAX;  // tag of packets that ask for no data

  struct PdcReads {
    std::uint64_t bytes = 0;   // asked for and not yet arrived
    std::uint32_t pieces = 0;  // request packets they were asked with
    bool blocked = false;      // a message was told NotNow
  };

  Result<void> check(const Context& context, const TxOp& op) const;
  TxMessage* prepare(Context& context, const TxOp& op, Kind kind);
  Result<void> rma(Context& context, const RmaOp& op, Kind kind, Time now);
  Result<void> send_datagram(Context& context, const SendOp& op, Time now);
  Result<void> submit(TxMessage& message, const TxOp& op, Time now);
  bool gather_pieces(TxMessage& message, bool inject);
  Result<void> check_atomic_op(const AtomicOp& op) const;
  bool fill_operands(TxMessage& message, const AtomicOp& op);
  MsgId take_id(TxMessage& message);
  pds::PacketPlan next_read(TxMessage& message, Packet& packet, pds::PreparedPacket& prepared);
  pds::PacketPlan next_atomic(TxMessage& message, Packet& packet, pds::PreparedPacket& prepared);
  pds::PacketPlan next_error(TxMessage& message, Packet& packet, pds::PreparedPacket& prepared);
  pds::PacketPlan made(TxMessage& message, bool last);
  void on_response(TxMessage& message, std::uint32_t tag, const wire::SesResponseHeader& header);
  void place_data(TxMessage& message, std::uint64_t offset, std::span<const std::byte> data);
  static void place_results(const TxMessage& message, std::span<const std::byte> results);
  std::uint32_t piece_length(const TxMessage& message, std::uint64_t offset) const;
  bool await_piece(TxMessage& message, std::uint32_t length);
  void resolve_piece(TxMessage& message, std::uint64_t offset);
  void fail(TxMessage& message, wire::ReturnCode code);
  void fail(TxMessage& message, pds::PdsError error);
  void finish_if_done(TxMessage& message);
  void finish(TxMessage& message);
  void release(TxMessage& message);

  const std::uint32_t payload_mtu_;
  const std::size_t read_limit_bytes_;
  PieceStore& pieces_;
  Counters& counters_;
  pds::Delivery* delivery_ = nullptr;
  Slab<TxMessage> messages_;
  IntrusiveList<TxMessage, OutstandingTag> orphans_;  // of closed contexts, still with PDS
  std::unique_ptr<TxMessage*[]> by_id_;               // 2^16: ids are unique in the FEP (SES-28)
  std::uint16_t last_id_ = 0;
  std::unique_ptr<PdcReads[]> reads_;  // 2^16, by PDC id
};

}  // namespace uet::ses
