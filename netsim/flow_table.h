// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Which flows have started and finished, and which flows a finished one starts (triggers).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "netsim/clock.h"
#include "netsim/traffic.h"

namespace uet::netsim {

enum class FlowEvent : std::uint8_t {
  Received,  // the destination has all bytes
  Finished,  // the source has all acknowledgements
  Failed,    // the source has given up
};

struct FlowRecord {
  Picoseconds started = kPsNever;
  Picoseconds finished = kPsNever;
  bool good = true;
};

class FlowTable {
 public:
  // Receives a sentence about a flow that has not gone as it should.
  using Complain = std::function<void(const std::string&)>;

  // `traffic` must live longer; complaint_about finds nothing wrong with it.
  explicit FlowTable(const Traffic& traffic);

  // False: the flow has started before.
  bool start(std::uint32_t flow, Picoseconds now);
  // Returns the flows that start now, valid until the table ends; empty if there are none, or if
  // that cannot have happened.
  const std::vector<std::uint32_t>& note(std::uint32_t flow, FlowEvent event, Picoseconds now,
                                         const Complain& complain);

  const std::vector<FlowRecord>& records() const { return records_; }
  std::size_t finished() const { return finished_; }

 private:
  struct TriggerState {
    Trigger trigger;
    std::uint32_t told = 0;
    std::vector<std::uint32_t> flows;  // that it starts
  };
  bool finish(std::uint32_t flow, bool good, Picoseconds now, const Complain& complain);
  const std::vector<std::uint32_t>& fire(std::uint32_t id);

  const Traffic& traffic_;
  std::vector<FlowRecord> records_;
  std::vector<TriggerState> triggers_;  // by id
  std::size_t finished_ = 0;
  const std::vector<std::uint32_t> none_;
};

}  // namespace uet::netsim
