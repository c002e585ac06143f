// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Reading the event ring; adding to it is inline.
#include "uet/base/trace.h"

#include <algorithm>

#include "uet/base/check.h"

namespace uet {

Trace::Trace(std::size_t capacity)
    : events_(std::make_unique<TraceEvent[]>(std::max<std::size_t>(capacity, 1))),
      capacity_(std::max<std::size_t>(capacity, 1)) {}

const TraceEvent& Trace::at(std::size_t i) const {
  UET_ASSERT(i < size());
  const std::size_t oldest = total_ < capacity_ ? 0 : next_;
  return events_[(oldest + i) % capacity_];
}

std::string Trace::dump() const {
  std::string text;
  for (std::size_t i = 0; i < size(); ++i) {
    const TraceEvent& event = at(i);
    const std::int64_t ns = to_ns(event.time);
    const std::string fraction = std::to_string(ns % 1000);
    text += std::to_string(ns / 1000) + "." +
            std::string(3 - std::min<std::size_t>(3, fraction.size()), '0') + fraction;
    text += " us ";
    text += event.name;
    for (std::uint64_t number : event.numbers) text += " " + std::to_string(number);
    text += "\n";
  }
  return text;
}

}  // namespace uet
