// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What the two ends say to each other: the data of the connection request and its answer, short
// messages beside the data, and the contents of a slot. Decoding refuses whatever a hostile peer
// may send; it knows no file and no connection. Numbers are in the byte order of x86-64 (little).
//
// The sender of files writes into the slots of the receiver by fi_writedata, whose data is the
// number of the slot. Slot i of the sender goes to slot i of the receiver, and belongs to the
// sender again when the message `Free` names it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "failure.h"

namespace uet::copy {

inline constexpr std::uint32_t kMagic = 0x70635455;  // "UTcp"
inline constexpr std::uint32_t kVersion = 1;
inline constexpr std::size_t kPage = 4096;
inline constexpr std::uint64_t kMiB = 1 << 20;
inline constexpr std::uint32_t kLeastSlotBytes = 1 << 20;
inline constexpr std::uint32_t kMostSlotBytes = 16 << 20;
inline constexpr std::uint32_t kMostSlots = 64;
inline constexpr std::uint32_t kMostStreams = 16;
inline constexpr std::size_t kMostPath = 4095;
inline constexpr std::size_t kMessageBytes = 8192;  // longest message
inline constexpr std::size_t kMostPartSums = 1000;  // in one Opened
inline constexpr std::uint64_t kMostFileBytes = std::uint64_t{1} << 60;

using Bytes = std::vector<std::byte>;
using Session = std::array<std::uint8_t, 16>;

// Where the slots of the receiver are, as fi_writedata takes it.
struct Slots {
  std::uint64_t address = 0;
  std::uint64_t key = 0;
  std::uint32_t bytes = 0;  // of one slot
  std::uint32_t count = 0;
};

// In the connection request. `magic` and `version` never move.
struct Hello {
  std::uint32_t magic = kMagic;
  std::uint32_t version = kVersion;
  std::uint32_t client_sends = 0;
  std::uint32_t stream = 0;   // of `streams`
  std::uint32_t streams = 1;  // connections of this session
  std::uint32_t sync = 0;     // the receiver calls fdatasync before its last word
  std::uint32_t verify = 0;   // the sender gives sums, the receiver compares them
  std::uint32_t reserved = 0;
  Session session{};  // random: connections with the same value belong together
  Slots slots;        // of the client; those that the server makes have the same sizes
};
// In its answer.
struct Welcome {
  std::uint32_t magic = kMagic;
  std::uint32_t version = kVersion;
  Slots slots;  // of the server
};

// Throws Failure (OtherVersion, BadPeer).
Hello parse_hello(std::string_view data);
Welcome parse_welcome(std::string_view data, const Slots& wanted);

// ---- messages ----------------------------------------------------------------------------------

enum class Kind : std::uint32_t {
  Request = 1,  // client: which path
  Open,         // sender: a file that is longer than a slot's share follows in pieces
  Opened,       // receiver: what it has of it from an earlier transfer
  Have,         // sender: this range need not be sent
  Free,         // receiver: a slot is free again
  Done,         // sender: all is sent and freed
  Bye,          // receiver: all is written
  Fail,         // either: the transfer is over
};

struct Message {
  Kind kind = Kind::Bye;
  std::uint32_t id = 0;          // Open, Opened, Have: the file on this connection; Free: the slot
  std::uint32_t mode = 0;        // Open: permission bits; Request: 1 for trees
  Status status = Status::Done;  // Done: first problem of the sender; Fail
  std::uint64_t size = 0;        // Open: of the file; Opened: bytes per sum; Have: length
  std::uint64_t offset = 0;      // Have
  std::int64_t mtime_ns = 0;     // Open
  std::vector<std::uint32_t> sums;  // Opened: of the first parts of `size` bytes each
  std::string path;                 // Request, Open; the text of Done and Fail
  std::string name;                 // Request: name of the source, for a directory as target
};

Bytes encode(const Message& message);
Message decode(std::span<const std::byte> bytes);  // throws Failure (BadPeer)

// ---- slots -------------------------------------------------------------------------------------

// The first page of a slot; the bytes of a piece begin at the second, so that they are aligned.
struct SlotHead {
  std::uint32_t magic = kMagic;
  std::uint32_t entries = 0;  // whole files and directories, packed behind this head; 0: a piece
  std::uint32_t id = 0;       // of a piece: its file
  std::uint32_t sum = 0;      // its CRC-32C if the session verifies
  std::uint64_t offset = 0;   // its place in the file
  std::uint64_t length = 0;   // its bytes, or the bytes that all entries take
};

// Throws Failure (BadPeer). A piece or the entries end within `slot_bytes`.
SlotHead parse_slot(std::span<const std::byte> slot);

struct Entry {
  bool directory = false;
  std::uint32_t mode = 0;
  std::uint32_t sum = 0;
  std::int64_t mtime_ns = 0;
  std::string path;
  std::span<const std::byte> data;
};

// Packs entries into a slot.
class Packer {
 public:
  explicit Packer(std::span<std::byte> slot);
  // The place for the bytes of a file of that path; nullopt: they do not fit.
  std::optional<std::span<std::byte>> reserve(std::string_view path, std::size_t bytes);
  // Adds an entry. `entry.data` is the front of what reserve() returned last, or empty.
  bool add(const Entry& entry);
  std::uint32_t entries() const { return head_.entries; }
  // Writes the head; the bytes of the slot that are used.
  std::size_t close();

 private:
  std::span<std::byte> slot_;
  SlotHead head_;
  std::size_t used_;
};

// Reads what Packer wrote, of bytes that the peer may change meanwhile.
class Unpacker {
 public:
  Unpacker(std::span<const std::byte> slot, const SlotHead& head);
  std::optional<Entry> next();  // throws Failure (BadPeer)

 private:
  std::span<const std::byte> rest_;
  std::uint32_t left_;
};

// A path of a peer: relative, without "..", not too long. Returns it without "." and doubled
// slashes; "" is the directory itself. Throws Failure (Outside, BadPeer).
std::string clean_path(std::string_view path);

}  // namespace uet::copy
