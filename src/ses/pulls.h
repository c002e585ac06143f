// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What a target asks of the sender of a message: reads of it (SES-57), and the request to send a
// deferred one again (SES-70). Both are operations of the FEP itself, without a context and a
// completion; the client is told instead.
#pragma once

#include <cstdint>
#include <span>

#include "ses/message.h"
#include "ses/operation_table.h"
#include "uet/base/intrusive_list.h"
#include "uet/base/result.h"
#include "uet/base/time.h"
#include "uet/pds/api.h"

namespace uet::ses {

// The owner of the messages; implemented by Receiver.
class PullClient {
 public:
  virtual ~PullClient() = default;
  // The read for this message has ended; with Status::Ok all its bytes are in place.
  // `not_consumed`: it failed because the peer freed its PDC before it executed any of the read.
  virtual void pulled(RxMessage& message, Status status, bool not_consumed) noexcept = 0;
};

class Pulls {
 public:
  explicit Pulls(OperationTable& operations) : operations_(operations) {}
  void attach(pds::Delivery& delivery) { delivery_ = &delivery; }
  void attach(PullClient& client) { client_ = &client; }

  // Reads bytes [from, from + total_length(into)) of a peer's message; 0 bytes at its end tell the
  // peer that all is read. Again: no message or PDC now.
  Result<void> read(RxMessage& message, std::uint64_t from, std::span<const IoSlice> into,
                    Time now);
  // Asks the sender of a deferred message to send it again under this token. When the sender has
  // answered, the client is called. Again: no free message or PDC now.
  Result<void> request_restart(RxMessage& message, std::uint32_t token, Time now);
  // Cancels the call of the client that the request for this message would end with.
  void forget_restart(const RxMessage& message);
  // Data that still come for this message are dropped.
  void forget_memory(const RxMessage& message);

  // The operation has ended, or all its bytes are in place: tells the client, once.
  void report_end(TxMessage& operation) {
    if (operation.pull_for != nullptr) report(operation);
  }

 private:
  TxMessage* prepare(RxMessage& message, wire::SesOpcode opcode);
  Result<void> submit(TxMessage& operation, const RxMessage& message, Time now);
  void report(TxMessage& operation);

  OperationTable& operations_;
  pds::Delivery* delivery_ = nullptr;
  PullClient* client_ = nullptr;
  IntrusiveList<TxMessage, OutstandingTag> pulling_;
};

}  // namespace uet::ses
