// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The operations in progress of a FEP, and their message ids (SES-28). Knows nothing of what an
// operation does.
//
// An operation is found at the low bits of its id. The table grows if two operations would have one
// place, so that it is about as large as operations last long, and each id is the next one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ses/message.h"
#include "uet/base/slab.h"
#include "uet/pds/api.h"

namespace uet::ses {

class OperationTable {
 public:
  static constexpr std::size_t kIds =
      1 << 16;  // values of a message id, unique in the FEP; 0 is none

  // At most `operations` of the applications and `pulls` of the FEP's own reads at a time. `owner`
  // makes the packets of all of them.
  OperationTable(std::size_t operations, std::size_t pulls, pds::MessageOwner* owner);

  // A new operation of an application, with a message id and the next place in the order of
  // posting. nullptr: there are too many, or there is no memory.
  TxMessage* take();
  // A new read of the FEP's own (Pulls); nullptr as above.
  TxMessage* take_pull();
  // The caller has taken the operation off all lists.
  void give_back(TxMessage& message);

  // nullptr: no operation has this id.
  TxMessage* find(MsgId id) const {
    TxMessage* message = by_id_[place(id.value)];
    return message != nullptr && message->header.message_id == id ? message : nullptr;
  }
  // The operation is sent again as a new message.
  void renew_id(TxMessage& message);

  // More than half of the places of the applications are taken.
  bool is_crowded() const { return messages_.in_use() > operations_limit_ / 2; }
  bool empty() const { return messages_.in_use() == 0; }

  // Calls visit(message) for each operation; `visit` may give operations back.
  template <class Visit>
  void for_each(Visit visit) {
    for (std::size_t id = 0; id < kIds && !empty(); ++id) {
      TxMessage* message = find(MsgId{static_cast<std::uint16_t>(id)});
      if (message != nullptr) visit(*message);
    }
  }

 private:
  static constexpr std::size_t kFewestPlaces = 16;

  std::size_t place(std::uint16_t id) const { return id & (by_id_.size() - 1); }
  bool name(TxMessage& message);
  bool grow();

  const std::size_t operations_limit_;
  const std::size_t pulls_limit_;
  pds::MessageOwner* const owner_;
  Slab<TxMessage> messages_;
  std::size_t pulls_count_ = 0;  // of them, the FEP's own
  std::vector<TxMessage*> by_id_ = std::vector<TxMessage*>(kFewestPlaces);  // a power of two
  std::uint16_t last_id_ = 0;
  std::uint64_t next_sequence_ = 0;
};

}  // namespace uet::ses
