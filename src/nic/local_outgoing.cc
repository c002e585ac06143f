// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "nic/local_outgoing.h"

#include <poll.h>

#include <utility>

#include "nic/local_socket.h"

namespace uet::nic {

LocalOutgoing::LocalOutgoing(FepAddress peer_address, FileDescriptor connection,
                             SharedMemory ring_memory)
    : peer(peer_address),
      socket(std::move(connection)),
      process(watch_process(socket.get())),
      memory(std::move(ring_memory)),
      ring(memory.bytes()) {
  instance.process = process_of(socket.get());
}

bool LocalOutgoing::read_welcome() {
  LocalWelcome welcome;
  FileDescriptor descriptor;  // of an older library, which cannot be woken without risk
  const auto bytes = std::as_writable_bytes(std::span(&welcome, 1));
  const Received received = receive_with_descriptor(socket.get(), bytes, descriptor);
  if (received == Received::Message && welcome.speaks == kWakesThroughSocket && !welcomed) {
    welcomed = true;
    instance.number = welcome.instance;
  } else if (received != Received::Nothing) {
    refused = true;
  }
  return !refused;
}

bool LocalOutgoing::is_process_gone() const {
  pollfd ended{.fd = process.get(), .events = POLLIN, .revents = 0};
  return process.valid() && ::poll(&ended, 1, 0) == 1;
}

bool LocalOutgoing::is_abandoned() const {
  pollfd end{.fd = socket.get(), .events = 0, .revents = 0};
  return is_process_gone() || (::poll(&end, 1, 0) == 1 && (end.revents & POLLHUP) != 0);
}

}  // namespace uet::nic
