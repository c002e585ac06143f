// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "ses/generations.h"

#include <new>

namespace uet::ses {
namespace {

std::size_t slot_of(const TxMessage& message) {
  const wire::SesRequest& header = message.header;
  const std::size_t index =
      std::size_t{header.pid_on_fep.value} << 12 | header.resource_index.value;
  return (FepAddressHash{}(message.to) ^ index * 0x9E3779B1U ^
          message.context->config.resource_index.value) &
         (Generations::kEntries - 1);
}

}  // namespace

void Generations::learn(const TxMessage& message, RiGeneration generation) {
  const wire::SesRequest& header = message.header;
  if (entries_ == nullptr) entries_.reset(new (std::nothrow) std::array<Entry, kEntries>);
  if (entries_ == nullptr) return;
  (*entries_)[slot_of(message)] = {message.context,       message.to, header.pid_on_fep,
                                   header.resource_index, header.rel, generation};
}

RiGeneration Generations::look_up(const TxMessage& message) const {
  const wire::SesRequest& header = message.header;
  const Entry& entry = (*entries_)[slot_of(message)];
  const bool known = entry.context == message.context && entry.to == message.to &&
                     entry.pid_on_fep == header.pid_on_fep &&
                     entry.resource_index == header.resource_index && entry.relative == header.rel;
  return known ? entry.value : header.ri_generation;
}

void Generations::forget(const Context& context) {
  if (entries_ == nullptr) return;
  for (Entry& entry : *entries_) {
    if (entry.context == &context) entry = {};
  }
}

}  // namespace uet::ses
