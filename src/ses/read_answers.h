// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The data that answer reads and fetching atomics: in the ACK of the request if they fit there,
// else in a packet of the return direction (SES-83). Decides how many of those may be on their way.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/shares.h"
#include "ri/mr_table.h"
#include "ses/message.h"
#include "ses/parameters.h"
#include "ses/return_code.h"
#include "ses/staging.h"
#include "uet/base/intrusive_list.h"
#include "uet/base/packet.h"
#include "uet/base/slab.h"
#include "uet/base/time.h"
#include "uet/pds/api.h"

namespace uet::ses {

class ReadAnswers final : public ri::RemovalObserver {
 public:
  // `owner` is asked for the packets of the answers. All arguments outlive it.
  ReadAnswers(const Parameters& parameters, PieceStore& pieces, Staging& staging,
              pds::MessageOwner* owner);
  void attach(pds::Delivery& delivery) { delivery_ = &delivery; }

  // Allocates memory for the data of a request; the caller fills it before it calls PDS again, and
  // answers with `response`: with the data in it (PDS-194), or without. nullptr: no memory now; the
  // call has changed nothing.
  std::byte* open(const pds::RequestView& view, const wire::SesRequest& request,
                  const ReadPiece& asked, pds::Response& response, Time now);
  // As open() without memory of its own: the answer is sent from `data`, in the region `region`,
  // and is copied if the region is removed before. False: no memory now, or the data belong into
  // the ACK (open() puts them there).
  bool answer_from(const std::byte* data, Rkey region, const pds::RequestView& view,
                   const wire::SesRequest& request, const ReadPiece& asked, Time now);
  // Do the data travel in the ACK of the request?
  static bool fits_in_ack(const pds::RequestView& view, const wire::SesRequest& request,
                          const ReadPiece& asked);
  // Answers out of the memory of a message that this FEP sends; it must stay valid until done().
  // The bytes are copied if they lie in more than two parts, or on a device. False: no memory now.
  bool answer_from(TxMessage& source, const pds::RequestView& view, const wire::SesRequest& request,
                   const ReadPiece& asked, Time now);

  // As pds::MessageOwner::next_packet.
  static pds::PacketPlan next_packet(ReadAnswer& answer, Packet& packet,
                                     pds::PreparedPacket& prepared);
  // The memory of the message that the answer is read from goes: the answer, which may be on its
  // way already, becomes a refusal unless it is a copy, and knows the message no more.
  static void refuse(ReadAnswer& answer, pds::Delivery& delivery);
  // Answers that are sent from the region are copied; without memory for a copy, one becomes a
  // refusal.
  void removing(Rkey region) noexcept override;
  // PDS needs the answer no longer. The message whose memory it pointed to, or nullptr.
  TxMessage* done(ReadAnswer& answer);

  // An answer on its way; nullptr: none.
  ReadAnswer* any() { return answering_.empty() ? nullptr : &answering_.front(); }
  bool idle() const { return answers_.in_use() == 0; }

 private:
  bool point(ReadAnswer& answer, std::uint64_t offset, std::uint32_t length);
  ReadAnswer* take(const pds::RequestView& view);
  bool send(ReadAnswer& answer, const pds::RequestView& view, const wire::SesRequest& request,
            const ReadPiece& asked, Time now);

  PieceStore& pieces_;
  Staging& staging_;
  pds::MessageOwner* const owner_;
  pds::Delivery* delivery_ = nullptr;
  Slab<ReadAnswer> answers_;
  Shares shares_;
  IntrusiveList<ReadAnswer, AnsweringTag> answering_;
};

}  // namespace uet::ses
