// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "ses/pulls.h"

#include <algorithm>
#include <utility>

namespace uet::ses {

Result<void> Pulls::read(RxMessage& message, std::uint64_t from, std::span<const IoSlice> into,
                         Time now) {
  TxMessage* read = prepare(message, wire::SesOpcode::Read);
  if (read == nullptr) return Error::Again;
  read->kind = Kind::Read;
  read->length = total_length(into);
  read->iov_count = static_cast<std::uint32_t>(into.size());
  std::copy(into.begin(), into.end(), read->iov.begin());

  wire::SesRequest& header = read->header;
  const wire::RendezvousExtension& where = message.rendezvous;
  header.ie = message.undelivered;
  header.ri_generation = where.read_ri_generation;
  header.pid_on_fep = where.read_pid_on_fep;
  header.resource_index = where.read_resource_index;
  header.buffer_offset = (message.outsized ? 0 : where.read_offset) + from;
  header.match_bits = where.read_memory_key.value;
  header.request_length = static_cast<std::uint32_t>(read->length);
  return submit(*read, message, now);
}

Result<void> Pulls::request_restart(RxMessage& message, std::uint32_t token, Time now) {
  TxMessage* request = prepare(message, wire::SesOpcode::DeferrableRtr);
  if (request == nullptr) return Error::Again;
  request->header.initiator = message.initiator;
  request->header.set_restart_tokens(static_cast<std::uint32_t>(message.buffer_offset >> 32),
                                     token);
  return submit(*request, message, now);
}

void Pulls::forget_restart(const RxMessage& message) {
  for (TxMessage& request : pulling_) {
    if (request.pull_for == &message) request.pull_for = nullptr;
  }
}

void Pulls::forget_memory(const RxMessage& message) {
  for (TxMessage& read : pulling_) {
    if (read.pull_for == &message) read.iov_count = 0;
  }
}

// nullptr: there are too many.
TxMessage* Pulls::prepare(RxMessage& message, wire::SesOpcode opcode) {
  TxMessage* operation = operations_.take_pull();
  if (operation == nullptr) return nullptr;
  operation->pull_for = &message;
  operation->to = message.source;
  operation->header.opcode = opcode;
  operation->header.rel = message.relative;
  operation->header.job_id = message.job;
  pulling_.push_back(*operation);
  return operation;
}

Result<void> Pulls::submit(TxMessage& operation, const RxMessage& message, Time now) {
  // Requests that drain the memory of the peer must not wait behind messages that fill our memory.
  const pds::Destination destination{.address = message.source,
                                     .job = message.job,
                                     .mode = DeliveryMode::Rud,
                                     .reserved_pool = true};
  const auto started = delivery_->send(operation, destination, now);
  if (started) return started;
  pulling_.remove(operation);
  operations_.give_back(operation);
  return started;
}

// As soon as the bytes are in place: their sender may learn of it before the last request packet is
// answered, and when it tells others, they must find the bytes delivered.
void Pulls::report(TxMessage& operation) {
  RxMessage& message = *std::exchange(operation.pull_for, nullptr);
  const bool not_consumed =
      operation.status == Status::PdsError && operation.pds_error == pds::PdsError::NotConsumed;
  client_->pulled(message, operation.status, not_consumed);
}

}  // namespace uet::ses
