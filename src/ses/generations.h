// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The generations of resource indices that peers have stated in refusals (SES-55). A hint: an entry
// may give way to that of another peer, and is learnt again then.
#pragma once

#include <array>
#include <cstddef>
#include <memory>

#include "ses/context.h"
#include "ses/message.h"

namespace uet::ses {

class Generations {
 public:
  static constexpr std::size_t kEntries = 1024;  // a power of 2

  // The target of the message has stated this generation. If memory is short, it is not remembered.
  // Each context learns it by itself: with a generation that is known too early, its messages would
  // overtake those that are still refused.
  void learn(const TxMessage& message, RiGeneration generation);
  // The generation that the next try of the message names: the learnt one, else its own.
  RiGeneration of(const TxMessage& message) const {
    return entries_ != nullptr ? look_up(message) : message.header.ri_generation;
  }
  // The context closes; its address may be that of another one later.
  void forget(const Context& context);

 private:
  struct Entry {
    const Context* context = nullptr;
    FepAddress to;
    PidOnFep pid_on_fep;
    ResourceIndex resource_index;
    bool relative = false;
    RiGeneration value;
  };

  RiGeneration look_up(const TxMessage& message) const;

  std::unique_ptr<std::array<Entry, kEntries>> entries_;  // by a hash; none before the first
};

}  // namespace uet::ses
