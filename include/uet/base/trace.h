// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The last events of the rare paths, kept in memory at all times and written out on failure or on
// request. Adding one costs a few stores and allocates nothing.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "uet/base/time.h"

namespace uet {

struct TraceEvent {
  Time time{};
  const char* name = "";  // static storage
  std::array<std::uint64_t, 4> numbers{};
};

class Trace {
 public:
  // Keeps the last `capacity` events (at least 1).
  explicit Trace(std::size_t capacity);

  // `name` must live as long as the trace: a string literal.
  void add(Time time, const char* name, std::uint64_t a = 0, std::uint64_t b = 0,
           std::uint64_t c = 0, std::uint64_t d = 0) {
    events_[next_] = {time, name, {a, b, c, d}};
    next_ = next_ + 1 == capacity_ ? 0 : next_ + 1;
    ++total_;
  }

  std::size_t capacity() const { return capacity_; }
  std::size_t size() const { return total_ < capacity_ ? total_ : capacity_; }
  // Events ever added, also those that were overwritten.
  std::size_t total() const { return total_; }
  // The i-th oldest event kept; i < size().
  const TraceEvent& at(std::size_t i) const;

  // One line per event, oldest first: time in microseconds, name, the four numbers in decimal.
  std::string dump() const;

 private:
  std::unique_ptr<TraceEvent[]> events_;
  std::size_t capacity_;
  std::size_t next_ = 0;
  std::size_t total_ = 0;
};

}  // namespace uet
