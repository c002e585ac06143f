// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// How a transfer ends: the exit status of uet_copy, and the exception that carries it. Peers send
// the status to each other, so that its numbers belong to the protocol.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace uet::copy {

enum class Status : std::uint32_t {
  Done = 0,
  Failed = 1,        // any other reason
  UsedWrongly = 2,   // command line
  NoFile = 3,        // no such file or directory
  NoPermission = 4,  // also a read-only server or file system
  NoSpace = 5,       // file system or quota is full
  OtherVersion = 6,  // the peer speaks another version of the protocol
  Outside = 7,       // a path that leaves the served directory
  NoConnection = 8,  // no server there, or the connection broke: a restart continues
  Mismatch = 9,      // --verify: the received bytes differ from the bytes that the sender read
  BadPeer = 10,      // the peer broke the protocol
};

struct Failure : std::runtime_error {
  Failure(Status s, const std::string& text) : std::runtime_error(text), status(s) {}
  Status status;
};

// The status that fits an errno of a file operation.
Status status_of(int error);

// Throws the Failure of errno `error` for an operation on `name`.
[[noreturn]] void fail_file(int error, const std::string& name);

}  // namespace uet::copy
