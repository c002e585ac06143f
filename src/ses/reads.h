// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The data that reads and fetching atomics have asked for: how much may be on its way on a PDC,
// when each piece is here, and how long an accepted request may wait for its data (SES-86).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/zeroed_array.h"
#include "ses/counters.h"
#include "ses/message.h"
#include "ses/parameters.h"
#include "uet/base/intrusive_list.h"
#include "uet/base/time.h"
#include "uet/pds/api.h"

namespace uet::ses {

// The tag of packets that ask for no data and point to memory of the user; packets that point to a
// train (staging.h) have a tag from kFirstStaged on. That of others is the number of the piece.
inline constexpr std::uint32_t kNoPiece = UINT32_MAX;
inline constexpr std::uint32_t kFirstStaged = std::uint32_t{1} << 31;
constexpr bool is_piece(std::uint32_t tag) { return tag < kFirstStaged; }

class Reads {
 public:
  Reads(const Parameters& parameters, Counters& counters);
  void attach(pds::Delivery& delivery) { delivery_ = &delivery; }
  // Before a message of an application that asks for data. False: there is no memory.
  bool prepare();

  // A request packet is about to ask for `length` bytes. False: too many bytes are outstanding on
  // this PDC; it is kicked when fewer are. Or there is no memory, though prepare() avoids that.
  bool ask(TxMessage& message, std::uint32_t length);
  // The request for the piece at `offset` was answered: with an error, with data (PDS-194), or with
  // the promise of data.
  void on_answer(TxMessage& message, std::uint64_t offset, const wire::SesResponseHeader& header,
                 Time now);
  // The piece at `offset` needs no more waiting for: its data or an error have come.
  void resolve(TxMessage& message, std::uint64_t offset);
  // None of the message's pieces does.
  void resolve_all(TxMessage& message);
  // Writes a piece to the user's memory and resolves it. A piece that was not asked for, or has
  // another length, is counted; the latter fails the message.
  void place(TxMessage& message, std::uint64_t offset, std::span<const std::byte> data, Time now);
  // The placed pieces are in the user's memory, also if it is a device's.
  void end_run() { uet::end_run(host_copy_); }
  // PDS answers nothing of the message any more (RUDI).
  void drop(TxMessage& message);

  // The target has accepted a request, or a piece has come: the next one is due in read_timeout.
  void await_data(TxMessage& message, Time now);
  void stop_awaiting(TxMessage& message) {
    if (is_awaiting(message)) awaiting_.remove(message);
  }
  // Calls end(message) for each message whose data have not arrived in time, after the message has
  // been removed from the waiting ones.
  template <class End>
  void expire(Time now, End end) {
    while (deadline() <= now) {
      TxMessage& message = awaiting_.pop_front();
      message.fail(pds::PdsError::RtoExhausted);  // FI_ETIMEDOUT
      resolve_all(message);
      end(message);
    }
  }
  bool waits() const { return !awaiting_.empty(); }
  Time deadline();

  // Data of a read are outstanding on this PDC.
  bool any(PdcId pdc) const { return on_pdc_ && (*on_pdc_)[pdc.value].pieces > 0; }
  // The PDC is gone; its messages have been told.
  void pdc_closed(PdcId pdc) {
    if (on_pdc_) (*on_pdc_)[pdc.value] = {};
  }

 private:
  struct OnPdc {
    std::uint64_t bytes = 0;   // asked for and not yet arrived
    std::uint32_t pieces = 0;  // request packets that asked for them
    bool blocked = false;      // a message was told NotNow
  };

  static bool is_awaiting(const TxMessage& message) {
    return static_cast<const ListNode<AwaitingDataTag>&>(message).linked();
  }
  void unblock(PdcId pdc);

  const std::uint32_t payload_mtu_;
  const std::size_t limit_bytes_;
  const Duration timeout_;
  HostCopy* const host_copy_;
  Counters& counters_;
  pds::Delivery* delivery_ = nullptr;
  std::optional<ZeroedArray<OnPdc>> on_pdc_;            // 2^16, by PDC id; none before prepare()
  IntrusiveList<TxMessage, AwaitingDataTag> awaiting_;  // in order of time
};

}  // namespace uet::ses
