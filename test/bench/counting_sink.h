// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A completion sink that only counts.
#pragma once

#include <cstdint>

#include "uet/ses/api.h"

namespace uet::bench {

class CountingSink final : public ses::CompletionSink {
 public:
  void complete(const ses::Completion& completion) noexcept override {
    ++(completion.status == ses::Status::Ok ? good : bad);
  }
  bool can_take_event() noexcept override { return true; }
  bool reserve_receive() noexcept override { return true; }
  void release_receive() noexcept override {}
  void remote_access(ses::Kind, std::uint64_t) noexcept override {}
  bool counts_reads() const noexcept override { return false; }

  std::uint64_t good = 0;
  std::uint64_t bad = 0;
};

}  // namespace uet::bench
