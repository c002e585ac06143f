// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// How processes of one user on one host find each other and hand descriptors over: Unix sockets
// whose names are made of the FEP's address. The names are abstract, so that nothing stays behind
// in the file system, and belong to the network name space, as the address does.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "uet/base/address.h"
#include "uet/base/result.h"
#include "uet/nic/socket.h"

namespace uet::nic {

// A descriptor on which peers of `self` can be accepted. On failure Error::AddressInUse (another
// process has the name) or Error::Io, and `message` says why.
Result<FileDescriptor> listen_local(const FepAddress& self, std::string& message);
// The next peer that waits; not valid() if none does. Peers of other users are turned away.
FileDescriptor accept_local(int listener);
// Not valid() if no process of this user listens for `peer` on this host.
FileDescriptor connect_local(const FepAddress& peer);

// One message, with a descriptor that the receiver gets a copy of. False: it could not be sent.
bool send_with_descriptor(int socket, std::span<const std::byte> message, int descriptor);

enum class Received : std::uint8_t { Nothing, Message, Ended };
// Fills `message`, which a message of another length does not: that is Ended, like a peer that is
// gone. `descriptor` is not valid() if none came with it.
Received receive_with_descriptor(int socket, std::span<std::byte> message,
                                 FileDescriptor& descriptor);

// The process at the other end of `socket`, as the kernel knows it; 0 if it cannot tell.
std::int64_t process_of(int socket);
// A descriptor that becomes readable when the process at the other end of `socket` ends; not
// valid() if the kernel cannot tell (another PID name space): then only the socket does.
FileDescriptor watch_process(int socket);

}  // namespace uet::nic
