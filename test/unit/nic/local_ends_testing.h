// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Both ends of a same-host ring in one process, for the tests of its parts.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <utility>

#include "nic/local_incoming.h"
#include "nic/local_outgoing.h"
#include "nic_testing.h"

namespace uet::nic {

// Two connected sockets of the kind that peers of one host use.
inline std::pair<FileDescriptor, FileDescriptor> connected_sockets() {
  int ends[2] = {-1, -1};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
  return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

inline SharedMemory ring_memory() {
  auto memory = SharedMemory::create(ring_memory_bytes(kMinRingBytes));
  EXPECT_TRUE(memory.ok());
  return std::move(memory).value();
}

// An incoming connection whose ring `producer` fills.
struct Feed {
  explicit Feed(std::uint16_t id, std::uint64_t number = 1)
      : sockets(connected_sockets()),
        incoming(std::make_unique<LocalIncoming>(std::move(sockets.first))),
        end(incoming.get()) {
    end->id = id;
    end->peer = FepAddress{ipv4(127, 0, 0, 9), id};
    end->instance.number = number;
    end->memory = ring_memory();
    end->ring.emplace(end->memory->bytes());
    producer.emplace(end->memory->bytes());
  }
  void send(int packets = 1) {
    PacketSet set;
    for (int i = 0; i < packets; ++i) {
      ASSERT_TRUE(producer->put(set.add(end->peer, 20, 10)));
    }
    producer->publish();
  }

  std::pair<FileDescriptor, FileDescriptor> sockets;
  std::unique_ptr<LocalIncoming> incoming;  // until it is added to a list
  LocalIncoming* end;
  std::optional<RingProducer> producer;
};

}  // namespace uet::nic
