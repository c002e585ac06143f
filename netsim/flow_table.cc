// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "netsim/flow_table.h"

#include <algorithm>

namespace uet::netsim {

FlowTable::FlowTable(const Traffic& traffic) : traffic_(traffic), records_(traffic.flows.size()) {
  std::uint32_t last_trigger = 0;
  for (const Trigger& trigger : traffic.triggers) last_trigger = std::max(last_trigger, trigger.id);
  triggers_.resize(last_trigger + 1);
  for (const Trigger& trigger : traffic.triggers) triggers_[trigger.id].trigger = trigger;
  for (std::uint32_t i = 0; i < traffic.flows.size(); ++i) {
    const Flow& flow = traffic.flows[i];
    if (flow.trigger != 0) triggers_[flow.trigger].flows.push_back(i);
  }
}

bool FlowTable::start(std::uint32_t flow, Picoseconds now) {
  FlowRecord& record = records_[flow];
  if (record.started != kPsNever) return false;
  record.started = now;
  return true;
}

const std::vector<std::uint32_t>& FlowTable::note(std::uint32_t flow, FlowEvent event,
                                                  Picoseconds now, const Complain& complain) {
  if (flow >= records_.size()) {
    complain("something ended that was never posted");
    return none_;
  }
  if (event == FlowEvent::Received) return fire(traffic_.flows[flow].received_trigger);
  if (!finish(flow, event == FlowEvent::Finished, now, complain)) return none_;
  return fire(traffic_.flows[flow].sent_trigger);
}

bool FlowTable::finish(std::uint32_t flow, bool good, Picoseconds now, const Complain& complain) {
  FlowRecord& record = records_[flow];
  if (record.started == kPsNever || record.finished != kPsNever) {
    const bool twice = record.finished != kPsNever;
    complain(twice ? "flow " + std::to_string(flow) + " completed twice"
                   : "something ended that was never posted");
    return false;
  }
  record.finished = now;
  record.good = good;
  ++finished_;
  if (!good) complain("flow " + std::to_string(flow) + " ended with an error");
  return true;
}

// 0: none.
const std::vector<std::uint32_t>& FlowTable::fire(std::uint32_t id) {
  if (id == 0) return none_;
  TriggerState& state = triggers_[id];
  ++state.told;
  const bool now = state.trigger.repeats || state.told == state.trigger.count;
  return now ? state.flows : none_;
}

}  // namespace uet::netsim
