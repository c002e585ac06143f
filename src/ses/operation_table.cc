// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "ses/operation_table.h"

#include <algorithm>

namespace uet::ses {

OperationTable::OperationTable(std::size_t operations, std::size_t pulls, pds::MessageOwner* owner)
    : operations_limit_(std::min(operations, kIds - 1 - pulls)),
      pulls_limit_(pulls),
      owner_(owner),
      messages_(operations_limit_ + pulls_limit_),
      by_id_(kIds) {}

TxMessage* OperationTable::take() {
  if (messages_.in_use() - pulls_count_ >= operations_limit_) return nullptr;
  TxMessage* message = messages_.take();
  if (message == nullptr) return nullptr;
  name(*message);
  message->owner = owner_;
  message->sequence = next_sequence_++;
  return message;
}

TxMessage* OperationTable::take_pull() {
  TxMessage* message = pulls_count_ < pulls_limit_ ? messages_.take() : nullptr;
  if (message == nullptr) return nullptr;
  name(*message);
  message->owner = owner_;
  message->pull = true;
  ++pulls_count_;
  return message;
}

void OperationTable::give_back(TxMessage& message) {
  by_id_[message.header.message_id.value] = nullptr;
  if (message.pull) --pulls_count_;
  messages_.give_back(&message);
}

void OperationTable::renew_id(TxMessage& message) {
  by_id_[message.header.message_id.value] = nullptr;
  name(message);
}

void OperationTable::name(TxMessage& message) {
  do {
    ++last_id_;
  } while (last_id_ == 0 || by_id_[last_id_] != nullptr);
  by_id_[last_id_] = &message;
  message.header.message_id = MsgId{last_id_};
  message.id_in_trace = last_id_;
}

}  // namespace uet::ses
