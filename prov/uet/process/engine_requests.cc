// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "process/engine_requests.h"

#include <algorithm>
#include <cstring>

namespace uet::prov {

ControlAnswer EngineRequests::ask(const ControlRequest& request) {
  const nic::NoCancel no_cancel;
  ControlAnswer answer;
  std::memset(static_cast<void*>(&answer), 0, sizeof answer);
  if (!gone_ && send_message(socket_.get(), &request, sizeof request) &&
      receive_message(socket_.get(), &answer, sizeof answer)) {
    return answer;
  }
  gone_ = true;
  answer.error = code_of(Error::Io);
  return answer;
}

void EngineRequests::tell_of(Request kind, const FepAddress& peer,
                             std::span<const FabricAddress> further) {
  ControlRequest request = request_of(kind);
  ses::Peer named;
  named.fep = peer;
  request.peer.peer = share(named);
  for (const FabricAddress& address : further) {
    if (request.peer.further_count == request.peer.further.size()) break;
    request.peer.further[request.peer.further_count++] = address.bytes;
  }
  ask(request);
}

// ---- regions ------------------------------------------------------------------------------------

Result<void> EngineRequests::add_region(const ri::MemoryRegion& region, Rkey key) {
  if (region.observer != nullptr) observers_[key.value] = region.observer;
  ControlRequest request = request_of(Request::AddRegion);
  request.region = share(region, key.value);
  const Result<void> result = result_of(ask(request).error);
  if (!result) observers_.erase(key.value);
  return result;
}

void EngineRequests::change_region(const ri::MemoryRegion& region, Rkey key) {
  ControlRequest request = request_of(Request::ChangeRegion);
  request.region = share(region, key.value);
  ask(request);
}

void EngineRequests::remove_region(Rkey key) {
  ControlRequest request = request_of(Request::RemoveRegion);
  request.region.key = key.value;
  ask(request);
  observers_.erase(key.value);
}

void EngineRequests::move_context(const ri::ContextName& from,
                                  const std::optional<ri::ContextName>& to) {
  ControlRequest request = request_of(Request::MoveContext);
  request.move.from_pid = from.pid.value;
  request.move.from_index = from.index.value;
  request.move.has_to = to.has_value();
  if (to) {
    request.move.to_pid = to->pid.value;
    request.move.to_index = to->index.value;
  }
  ask(request);
}

std::vector<std::uint64_t> EngineRequests::counters() {
  const ControlAnswer answer = ask(request_of(Request::Counters));
  const std::size_t count = std::min<std::size_t>(answer.counter_count, answer.counters.size());
  return {answer.counters.begin(), answer.counters.begin() + static_cast<std::ptrdiff_t>(count)};
}

}  // namespace uet::prov
