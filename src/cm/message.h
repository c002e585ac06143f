// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The messages of connection management, byte by byte (CM-10). Each is the payload of one ordinary
// untagged send; nothing here knows how a send travels.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "av/address.h"
#include "uet/base/types.h"

namespace uet::cm {

// One end's name for a connection: unpredictable, and not 0 (CM-12).
using ConnectionId = std::uint64_t;

enum class MessageType : std::uint8_t {
  Request = 1,   // initiator to listener: connect to me
  Cancel = 2,    // initiator to listener: the request is withdrawn
  Reject = 3,    // listener to initiator: no
  Accept = 4,    // acceptor to initiator: yes
  Confirm = 5,   // initiator to acceptor: the Accept has arrived
  Shutdown = 6,  // either end: the connection has ended, or is not known here
  Probe = 7,     // either end: does the connection still exist?
};

// Why a request was rejected (CM-14).
enum class RejectReason : std::uint8_t {
  Application = 0,  // the application said no
  Busy = 1,         // the backlog or the share of the initiator's host is full: try again later
  NoListener = 2,   // this resource index accepts no requests
};

// Application data of a Request, Accept or Reject: FI_OPT_CM_DATA_SIZE, in bytes.
inline constexpr std::size_t kMaxData = 512;
inline constexpr std::size_t kHeaderBytes = 96;
inline constexpr std::size_t kMaxMessageBytes = kHeaderBytes + kMaxData;

// Application data, copied.
struct Data {
  std::uint16_t length = 0;
  std::array<std::byte, kMaxData> bytes;

  Data() {}  // leaves `bytes` as they are
  // `from` has at most kMaxData bytes.
  explicit Data(std::span<const std::byte> from);
  std::span<const std::byte> view() const { return std::span(bytes).first(length); }
};

struct Message {
  MessageType type = MessageType::Request;
  RejectReason reason = RejectReason::Application;  // of a Reject
  JobId job;                                        // of the sender's endpoint
  ConnectionId to = 0;    // the receiver's name for the connection; 0 in a Request and a Cancel
  ConnectionId from = 0;  // the sender's; 0 if it has none
  // The sender's period of Probes, in milliseconds; 0: none. A sender with a period answers Probes
  // while its application computes (CM-37). Request, Accept and Confirm.
  std::uint32_t keep_alive_ms = 0;
  // Where answers go: the sender's resource index for connection management.
  av::UetAddress answers;
  // The endpoint that the connection joins: Request, Accept and Confirm.
  av::UetAddress endpoint;
  Data data;
};

using MessageBytes = std::array<std::byte, kMaxMessageBytes>;

// Writes the message; returns its length in bytes.
std::size_t encode(const Message& message, MessageBytes& to);

// Empty for bytes that are no message of this version: too short, an unknown type, a data length
// that does not fit, an address that is not valid. Reserved bits are ignored. The addresses come
// back with `source` as their fabric address and port: that one is known to be reachable, whatever
// the message says (CM-11).
std::optional<Message> decode(std::span<const std::byte> bytes, const FepAddress& source);

}  // namespace uet::cm
