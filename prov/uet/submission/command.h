// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// An operation on its way from a call of the application to the engine's thread, and the ring of
// one endpoint and direction that carries such commands. docs/submission.md has the layout in
// bytes and the order of all accesses.
#pragma once

#include <sys/uio.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "uet/ses/api.h"

namespace uet::prov {

// Local buffers of an operation that fits a command; others take the domain's lock.
inline constexpr std::size_t kCommandPieces = 4;
// Commands of a ring, beyond the operations that the transport has in progress.
inline constexpr std::size_t kRingCommands = 256;

enum class Opcode : std::uint8_t { Send, Rma, Atomic, Receive, None };

// Bytes of an injected operation that travel within the command.
inline constexpr std::size_t kInlineBytes = 128;

// Four cache lines, of which an operation with one piece uses the first two. A submitter writes it
// between claim and publish, the engine reads it then.
struct alignas(64) Command {
  // One more than the command's position in the ring from its publication on: it is the engine's.
  std::atomic<std::uint64_t> sequence{0};
  Opcode opcode{};
  ses::Kind kind{};  // Rma, Atomic
  wire::AmoOp op{};  // Atomic
  wire::AmoDatatype datatype{};
  std::uint8_t pieces = 0;   // of the local buffers,
  std::uint8_t compare = 0;  // then so many of the comparison values (Atomic),
  std::uint8_t results = 0;  // then so many of the results (Atomic)
  bool tagged = false;       // Send, Receive
  bool has_data = false;     // Send, Rma
  bool has_peer = false;     // Receive: it is directed to `peer`
  bool described = false;    // `descriptors` are valid
  bool cancelled = false;    // fi_cancel found it in the ring
  std::uint64_t flags = 0;   // of the call
  void* context = nullptr;   // of the application
  std::uint64_t tag = 0;     // Send, Receive; Rma, Atomic: the remote address
  std::uint64_t key = 0;     // Rma, Atomic; Receive: the bits of the tag to ignore
  std::uint64_t data = 0;    // remote CQ data
  iovec first{};             // the first piece, or the injected bytes
  ses::Peer peer;            // the destination, or the source of a directed receive
  union {
    struct {
      std::array<iovec, kCommandPieces - 1> more;
      std::array<void*, kCommandPieces> descriptors;
    };
    std::array<std::byte, kInlineBytes> inlined;
  };

  Command() : inlined{} {}
  iovec& piece(std::size_t index) { return index == 0 ? first : more[index - 1]; }
  const iovec& piece(std::size_t index) const { return index == 0 ? first : more[index - 1]; }
};

// Submitters claim and publish; the holder of the engine's lock takes, and releases what it has
// executed, so that a command which cannot be executed yet stays first. Neither side writes what
// the other one reads for each command but the command itself: a submitter reads `head_` only when
// the ring looks full.
class CommandRing {
 public:
  // `concurrent`: more than one thread submits at a time. `inline_bytes`: the most bytes of an
  // injected operation; memory for more than kInlineBytes lies beside each command. Throws
  // bad_alloc.
  CommandRing(bool concurrent, std::size_t inline_bytes)
      : commands_(new Command[kRingCommands]),
        concurrent_(concurrent),
        inline_bytes_(inline_bytes <= kInlineBytes ? 0 : (inline_bytes + 63) / 64 * 64),
        inlined_(new std::byte[kRingCommands * inline_bytes_]) {}
  CommandRing(const CommandRing&) = delete;
  CommandRing& operator=(const CommandRing&) = delete;

  struct Claim {
    Command* command = nullptr;  // nullptr: the ring is full
    std::uint64_t position = 0;
  };
  // A command for the caller to fill in and publish.
  Claim claim() noexcept {
    std::uint64_t position = tail_.load(std::memory_order_relaxed);
    do {
      if (position - seen_head_.load(std::memory_order_acquire) >= kRingCommands) {
        const std::uint64_t head = head_.load(std::memory_order_acquire);
        if (position - head >= kRingCommands) return {};
        seen_head_.store(head, std::memory_order_release);
      }
      if (!concurrent_) {
        tail_.store(position + 1, std::memory_order_relaxed);
        break;
      }
    } while (!tail_.compare_exchange_weak(position, position + 1, std::memory_order_acquire,
                                          std::memory_order_relaxed));
    prefetch(at(position + kPrefetched));
    return {&at(position), position};
  }
  static void publish(const Claim& claim) noexcept {
    claim.command->sequence.store(claim.position + 1, std::memory_order_release);
  }
  // Where so many bytes of an injected operation lie.
  std::byte* inline_data(Command& command, std::size_t length) noexcept {
    if (length <= kInlineBytes) return command.inlined.data();
    return inlined_.get() + static_cast<std::size_t>(&command - commands_.get()) * inline_bytes_;
  }

  // The rest with the engine's lock.
  // The `index`th published command; nullptr if there are not so many.
  Command* published(std::size_t index = 0) noexcept {
    const std::uint64_t position = head_.load(std::memory_order_relaxed) + index;
    Command& command = at(position);
    return command.sequence.load(std::memory_order_acquire) == position + 1 ? &command : nullptr;
  }
  // The first one is executed: submitters may have it again.
  void release() noexcept {
    head_.store(head_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }

 private:
  static constexpr std::uint64_t kPrefetched = 8;  // commands ahead of the one claimed

  // The engine's processor has read the lines of a command last.
  static void prefetch(Command& command) noexcept {
    auto* const bytes = reinterpret_cast<std::byte*>(&command);
    for (std::size_t line = 0; line < 3; ++line) {
#ifdef __x86_64__
      // The built-in asks for a copy to read, unless the build is for a processor of its own.
      asm volatile("prefetchw %0" : : "m"(bytes[line * 64]));
#else
      __builtin_prefetch(bytes + line * 64, 1);
#endif
    }
  }
  Command& at(std::uint64_t position) { return commands_[position % kRingCommands]; }

  const std::unique_ptr<Command[]> commands_;
  const bool concurrent_;
  const std::size_t inline_bytes_;
  const std::unique_ptr<std::byte[]> inlined_;
  // Submitters write these two, ...
  alignas(64) std::atomic<std::uint64_t> tail_{0};
  std::atomic<std::uint64_t> seen_head_{0};         // not above head_
  alignas(64) std::atomic<std::uint64_t> head_{0};  // ... the engine this one
};

}  // namespace uet::prov
