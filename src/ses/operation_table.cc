// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "ses/operation_table.h"

#include <algorithm>
#include <new>
#include <utility>

namespace uet::ses {

OperationTable::OperationTable(std::size_t operations, std::size_t pulls, pds::MessageOwner* owner)
    : operations_limit_(std::min(operations, kIds - 1 - pulls)),
      pulls_limit_(pulls),
      owner_(owner),
      messages_(operations_limit_ + pulls_limit_) {}

TxMessage* OperationTable::take() {
  if (messages_.in_use() - pulls_count_ >= operations_limit_) return nullptr;
  TxMessage* message = messages_.take();
  if (message == nullptr) return nullptr;
  if (!name(*message)) {
    messages_.give_back(message);
    return nullptr;
  }
  message->owner = owner_;
  message->sequence = next_sequence_++;
  return message;
}

TxMessage* OperationTable::take_pull() {
  TxMessage* message = pulls_count_ < pulls_limit_ ? messages_.take() : nullptr;
  if (message == nullptr) return nullptr;
  if (!name(*message)) {
    messages_.give_back(message);
    return nullptr;
  }
  message->owner = owner_;
  message->pull = true;
  ++pulls_count_;
  return message;
}

void OperationTable::give_back(TxMessage& message) {
  by_id_[place(message.header.message_id.value)] = nullptr;
  if (message.pull) --pulls_count_;
  messages_.give_back(&message);
}

void OperationTable::renew_id(TxMessage& message) {
  by_id_[place(message.header.message_id.value)] = nullptr;
  name(message);
}

// The next id that no operation has. False: there is no place for one, and no memory for more;
// never if an operation has just left its place.
bool OperationTable::name(TxMessage& message) {
  for (std::size_t tries = 0; tries < kIds; ++tries) {
    ++last_id_;
    if (last_id_ == 0) continue;
    const TxMessage* other = by_id_[place(last_id_)];
    while (other != nullptr && other->header.message_id.value != last_id_ && grow()) {
      other = by_id_[place(last_id_)];
    }
    if (other != nullptr) continue;
    by_id_[place(last_id_)] = &message;
    message.header.message_id = MsgId{last_id_};
    message.id_in_trace = last_id_;
    return true;
  }
  return false;
}

// False: there is no memory.
bool OperationTable::grow() {
  try {
    const std::vector<TxMessage*> before =
        std::exchange(by_id_, std::vector<TxMessage*>(2 * by_id_.size()));
    for (TxMessage* message : before) {
      if (message != nullptr) by_id_[place(message->header.message_id.value)] = message;
    }
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

}  // namespace uet::ses
