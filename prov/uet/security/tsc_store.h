// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Hands out TSCs to all processes of this host that have one key and one identity, and over their
// restarts (TSS-34, TSS-37): a file for each key, identity and epoch in the run-time directory of
// the user, with the next TSC that no process has. Knows fingerprints of keys, no key.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "nic/socket.h"
#include "tss/tsc_source.h"
#include "uet/base/address.h"
#include "uet/base/time.h"

namespace uet::prov {

class TscStore final : public tss::TscSource {
 public:
  // TSCs in one block: as many as share a derived key by default (TSS-69). One that ends early,
  // with its process, is lost.
  static constexpr std::uint64_t kBlock = 1 << 16;

  // `directory`: the run-time directory; must be one of this user alone. `address` is the identity
  // of senders without SSI.
  TscStore(std::string directory, const FabricAddress& address)
      : directory_(std::move(directory)), address_(address) {}
  // $XDG_RUNTIME_DIR; empty if there is none, or the program has other rights than its user.
  static std::string run_time_directory();

  // When the keys were written, since 1970. A key older than the run-time directory may have been
  // used before the directory came to be, which no file tells then. nullopt: not known.
  void keys_written(std::optional<Duration> when) { keys_written_ = when; }

  // A lock makes calls of several processes, and of several objects of one, follow one another.
  std::optional<tss::TscRange> next_block(const tss::TscRequest& request) override;
  // Why the last call gave none, as a sentence that says what to do; else empty.
  const std::string& problem() const { return problem_; }

 private:
  std::string file_of(const tss::TscRequest& request) const;
  nic::FileDescriptor open_directory();
  nic::FileDescriptor open_file(int directory, const std::string& name,
                                const tss::TscRequest& request);
  bool may_be_first(const tss::TscRequest& request);

  std::string directory_;
  FabricAddress address_;
  std::optional<Duration> keys_written_;
  Duration directory_made_{};  // since 1970
  std::string problem_;
};

}  // namespace uet::prov
