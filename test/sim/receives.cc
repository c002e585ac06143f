// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Multi-receives and looks at messages: what must be true of them.
#include <algorithm>
#include <map>
#include <tuple>

#include "sim/run_plan.h"

namespace uet::sim {

// A peek with the properties of the receive, which then takes what was found.
void Run::look(Endpoint& endpoint, std::size_t number) {
  const ReceivePlan& plan = plan_.receives[number];
  ses::PeekOp op;
  op.tagged = plan.tagged;
  op.tag = plan.tag;
  op.ignore = plan.ignore;
  if (plan.source >= 0) op.source = &endpoints_[static_cast<std::size_t>(plan.source)].peer;
  op.claim = true;
  op.context = context_pointer(kReceiveTag + number);
  receives_[number].looking = true;
  auto& ses = world_.fep(endpoint.plan->node).ses();
  if (!ses.peek(*endpoint.context, op, world_.now())) fail("a peek was refused");
  if (receives_[number].looking) fail("a peek did not complete at once");
}

void Run::on_look(std::size_t number, const ses::Completion& completion) {
  const ReceivePlan& plan = plan_.receives[number];
  Receive& receive = receives_[number];
  const std::string name = "look before receive " + std::to_string(number);
  receive.looking = false;
  if (completion.status == ses::Status::NoMessage) return;
  if (completion.status != ses::Status::Ok) return fail(name + ": neither yes nor no");
  receive.claimed = true;
  if (!completion.has_data) return;
  if (completion.data >= operations_.size()) return fail(name + ": an unknown message");
  const OperationPlan& sent = plan_.operations[completion.data];
  if (sent.to != plan.context || completion.length != sent.length ||
      (plan.tagged && completion.tag != sent.tag)) {
    fail(name + ": describes another message");
  }
}

void Run::on_multi_receive(std::size_t number, const ses::Completion& completion) {
  Receive& receive = receives_[number];
  const std::string name = "multi-receive " + std::to_string(number);
  if (receive.completions > 0) return fail(name + ": an entry after its last one");
  if (completion.released) ++receive.completions;
  const ses::Status status = completion.status;
  if (!completion.multi) {
    const bool expected = status == (cancelling_ ? ses::Status::Cancelled : ses::Status::Ok) ||
                          status == ses::Status::Ok;
    if (!completion.released || !expected) fail(name + ": neither a message nor its release");
    return check_released(number);
  }
  const bool lost = (status == ses::Status::PeerLost && may_lose_peer()) ||
                    (status == ses::Status::Abandoned && may_abandon()) ||
                    (status == ses::Status::Cancelled && cancelling_);  // while one came
  if (lost) {
    receive.broken = true;
    return;
  }
  if (status != ses::Status::Ok) {
    return fail(name + " completes with status " + std::to_string(static_cast<int>(status)));
  }
  const auto message = message_of(completion);
  if (!message) return fail(name + ": took a message that no operation sent");
  const auto offset = static_cast<std::size_t>(static_cast<const std::byte*>(completion.buffer) -
                                               receive.memory->data());
  const Placed place{*message, offset, completion.length};
  for (const Placed& other : receive.placed) {
    if (offset < other.offset + other.length && other.offset < offset + place.length) {
      fail(name + ": messages overlap");
    }
  }
  receive.placed.push_back(place);
  on_message(number, completion, *message);
  if (completion.released) check_released(number);
}

// No byte was written beside the messages.
void Run::check_released(std::size_t number) {
  Receive& receive = receives_[number];
  if (receive.broken) return;
  std::vector<bool> used(receive.memory->length(), false);
  for (const Placed& place : receive.placed) {
    std::fill_n(used.begin() + static_cast<std::ptrdiff_t>(place.offset), place.length, true);
  }
  for (std::size_t i = 0; i < used.size(); ++i) {
    if (used[i] || receive.memory->data()[i] == kUntouched) continue;
    return fail("multi-receive " + std::to_string(number) + ": byte " + std::to_string(i) +
                " was written and belongs to no message");
  }
}

// The promise of ROD: messages of one sender lie in the buffers in the order in which they were
// sent.
void Run::check_order_in_buffers() {
  using Place = std::tuple<std::size_t, std::size_t>;  // receive, offset
  std::map<std::tuple<int, int, bool>, std::map<std::size_t, Place>> streams;
  for (std::size_t i = 0; i < receives_.size(); ++i) {
    for (const Placed& place : receives_[i].placed) {
      const OperationPlan& sent = plan_.operations[place.message];
      if (context_of(sent.from).mode != DeliveryMode::Rod || place.length == 0) continue;
      const ReceivePlan& plan = plan_.receives[i];
      streams[{sent.from, plan.context, plan.tagged}][place.message] = {i, place.offset};
    }
  }
  for (const auto& [stream, places] : streams) {
    const bool ordered =
        std::is_sorted(places.begin(), places.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
    if (!ordered) fail("messages lie in multi-receive buffers out of order");
  }
}

}  // namespace uet::sim
