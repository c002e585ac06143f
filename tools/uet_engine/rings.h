// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The engine's end of the memory that it shares with an application, and of the numbers there.
#pragma once

#include <sys/mman.h>

#include <cstdint>

#include "process/share.h"

namespace uet::engine {

struct Rings {
  // `memory` has been mapped by the caller and is unmapped here.
  explicit Rings(prov::Share* memory)
      : share(*memory),
        transmits(share.transmits.commands, share.transmits.head),
        receives(share.receives.commands, share.receives.head),
        events(share.events, share.event_head) {}
  Rings(const Rings&) = delete;
  Rings& operator=(const Rings&) = delete;
  ~Rings() { ::munmap(&share, sizeof share); }

  prov::Share& share;
  prov::CommandReader transmits;
  prov::CommandReader receives;
  prov::EventWriter events;
};

// Operations have their numbers as contexts, plus 1: no context is nullptr.
inline void* context_of(prov::OperationNumber number) {
  return prov::address_of(std::uint64_t{number} + 1);
}
inline prov::OperationNumber number_of(const void* context) {
  return static_cast<prov::OperationNumber>(reinterpret_cast<std::uintptr_t>(context) - 1);
}

inline bool has(const prov::SharedCommand& command, prov::SharedCommand::Mark mark) {
  return (command.marks & mark) != 0;
}

}  // namespace uet::engine
