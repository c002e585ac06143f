// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The operations in progress of a FEP, and their message ids (SES-28). Knows nothing of what an
// operation does.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/zeroed_array.h"
#include "ses/message.h"
#include "uet/base/slab.h"
#include "uet/pds/api.h"

namespace uet::ses {

class OperationTable {
 public:
  static constexpr std::size_t kIds = 1 << 16;  // values of a message id; 0 is none

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
  TxMessage* find(MsgId id) const { return by_id_[id.value]; }
  // The operation is sent again as a new message.
  void renew_id(TxMessage& message);

  // More than half of the places of the applications are taken.
  bool is_crowded() const { return messages_.in_use() > operations_limit_ / 2; }
  bool empty() const { return messages_.in_use() == 0; }

  // Calls visit(message) for each operation; `visit` may give operations back.
  template <class Visit>
  void for_each(Visit visit) {
    for (std::size_t id = 0; id < kIds && !empty(); ++id) {
      if (by_id_[id] != nullptr) visit(*by_id_[id]);
    }
  }

 private:
  void name(TxMessage& message);

  const std::size_t operations_limit_;
  const std::size_t pulls_limit_;
  pds::MessageOwner* const owner_;
  Slab<TxMessage> messages_;
  std::size_t pulls_count_ = 0;    // of them, the FEP's own
  ZeroedArray<TxMessage*> by_id_;  // unique in the FEP
  std::uint16_t last_id_ = 0;
  std::uint64_t next_sequence_ = 0;
};

}  // namespace uet::ses
