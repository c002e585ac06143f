// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "nic/local_incoming.h"

#include <algorithm>
#include <utility>

#include "nic/local_socket.h"

namespace uet::nic {

LocalIncoming::LocalIncoming(FileDescriptor connection)
    : socket(std::move(connection)), process(watch_process(socket.get())) {
  instance.process = process_of(socket.get());
}

void LocalIncoming::stop() {
  if (ring && !ended && !broken) ring->look();
  ended = true;
}

LocalIncomings::LocalIncomings(std::size_t descriptors) : most_(std::min(kMost, descriptors / 4)) {}

LocalIncoming* LocalIncomings::find(std::uint16_t id) const {
  const auto at =
      std::find_if(begin(), end(), [id](const auto& connection) { return connection->id == id; });
  return at == end() ? nullptr : at->get();
}

bool LocalIncomings::has_ring_of(const LocalInstance& instance) const {
  return std::any_of(begin(), end(),
                     [&](const auto& from) { return from->ring && from->instance == instance; });
}

bool LocalIncomings::has_room_for(const LocalInstance& peer) const {
  const auto of_process = std::count_if(
      begin(), end(), [&](const auto& from) { return from->instance.process == peer.process; });
  const bool is_known = peer.process != 0;  // else it is in another PID name space
  return list_.size() < most_ &&
         (!is_known || static_cast<std::size_t>(of_process) < std::max<std::size_t>(most_ / 4, 1));
}

LocalIncoming& LocalIncomings::add(std::unique_ptr<LocalIncoming> from) {
  memory_.reserve(list_.size() + 1);
  list_.push_back(std::move(from));
  return *list_.back();
}

void LocalIncomings::attach(LocalIncoming& from, SharedMemory memory) {
  from.memory = std::move(memory);
  from.ring.emplace(from.memory->bytes());
  memory_.add(from.memory->bytes());
}

void LocalIncomings::release() {
  for (const auto& from : list_) {
    if (from->ring) from->ring->release();
  }
}

std::size_t LocalIncomings::silent() const {
  return static_cast<std::size_t>(
      std::count_if(begin(), end(), [](const auto& from) { return from->is_silent(); }));
}

}  // namespace uet::nic
