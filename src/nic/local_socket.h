// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// How processes of one user on one host find each other and hand descriptors over: Unix sockets
// whose names are made of the FEP's address and secure domain. The names are abstract, so that
// nothing stays behind in the file system, and belong to the network name space, as the address
// does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "nic/socket.h"
#include "uet/base/address.h"
#include "uet/base/result.h"

namespace uet::nic {

// A descriptor on which peers of `self` can be accepted. On failure Error::AddressInUse (another
// process has the name), Error::NotSupported (this user cannot be told from others) or Error::Io,
// and `message` says why. `sdi`: the secure domain of the FEP; nullopt: packets in clear. Peers of
// another one do not find the name (TSS-64).
Result<FileDescriptor> listen_local(const FepAddress& self, std::string& message,
                                    std::optional<std::uint32_t> sdi = {});
enum class Accepted : std::uint8_t {
  Peer,
  Stranger,  // another user's process, turned away
  Nobody,    // waits
  Failed,    // no descriptors left
};
// Takes the next connection that waits; `peer` is valid() if it is a peer's.
Accepted accept_local(int listener, FileDescriptor& peer);
// Not valid() if no process of this user listens for `peer` on this host, with the same `sdi`.
FileDescriptor connect_local(const FepAddress& peer, std::optional<std::uint32_t> sdi = {});

// In a user namespace that does not map every user, all users outside look like the overflow user:
// a process of that user has no peers. `uid_map`: /proc/self/uid_map.
bool maps_every_user(std::string_view uid_map);

// One message, with a descriptor that the receiver gets a copy of; -1: none. Never waits. False: it
// could not be sent.
bool send_with_descriptor(int socket, std::span<const std::byte> message, int descriptor);

enum class Received : std::uint8_t { Nothing, Message, Ended };
// Fills `message`, which a message of another length does not: that is Ended, like a peer that is
// gone, and like more than one descriptor. `descriptor` is not valid() if none came with it.
Received receive_with_descriptor(int socket, std::span<std::byte> message,
                                 FileDescriptor& descriptor);

// A message without meaning, which makes the other end readable. Never waits.
void send_wake_up(int socket);
// Takes such messages away. False: the peer is gone.
bool take_wake_ups(int socket);

// The process at the other end of `socket`, as the kernel knows it; 0 if it cannot tell.
std::int64_t process_of(int socket);
// A descriptor that becomes readable when the process at the other end of `socket` ends; not
// valid() if the kernel cannot tell (another PID name space): then only the socket does.
FileDescriptor watch_process(int socket);

}  // namespace uet::nic
