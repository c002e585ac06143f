// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The sending end of a ring to another process of this host (local.h).
#pragma once

#include <cstdint>

#include "nic/local_messages.h"
#include "nic/ring_patience.h"
#include "nic/shared_memory.h"
#include "nic/shared_ring.h"
#include "nic/socket.h"
#include "uet/base/address.h"

namespace uet::nic {

struct LocalOutgoing {
  // `connection`: a socket of connect_local. `ring_memory`: of ring_memory_bytes, all zero.
  LocalOutgoing(FepAddress peer_address, FileDescriptor connection, SharedMemory ring_memory);

  FepAddress peer;
  std::uint16_t id = 0;
  LocalInstance instance;  // of the peer; its number is not known before its welcome
  FileDescriptor socket;
  FileDescriptor process;
  SharedMemory memory;
  RingProducer ring;
  RingPatience patience;
  bool welcomed = false;
  bool refused = false;      // the peer has answered, but not with a welcome
  bool unpublished = false;  // packets have been put since the last publish

  // Packets go to the NIC below.
  bool is_passed_over() const { return refused || (patience.passes_over() && !ring.drained()); }
  // A packet that has not fitted should wait for space.
  bool waits_for_space(Time now) { return !refused && patience.waits_when_full(now); }
  // Reads what the peer has sent through the socket. False: the peer is gone, or wants no packets
  // from this process.
  bool read_welcome();
  // The process of the peer has ended, as far as the kernel reports it.
  bool is_process_gone() const;
  // The peer reads nothing of the ring any more.
  bool is_abandoned() const;
};

}  // namespace uet::nic
