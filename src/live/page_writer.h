// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Makes the live page of a domain, updates it and removes it. Must not know what the numbers mean.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "live/page.h"
#include "uet/base/time.h"

namespace uet::live {

// Texts that the page shows; longer ones are cut.
struct Identity {
  std::string_view interface;
  std::string_view nic;
  std::string_view address;
};

struct CounterText {
  std::string_view name;
  std::string_view meaning;
  bool gauge = false;  // shows a state and may fall
};

// The PDCs and operations of a domain that wait. At most kMaxPdcs and kMaxOperations records are
// shown.
struct Waiting {
  std::span<const PdcRecord> pdcs{};
  std::span<const OperationRecord> operations{};
  std::uint64_t operations_known = 0;
};

class PageWriter {
 public:
  // A page that only its owner can read and write, in the first of directories() that takes it.
  // Removes pages of killed processes at most once a minute (live/dead_pages.h). nullptr: none can
  // be made, `why` says the reason. May throw bad_alloc.
  static std::unique_ptr<PageWriter> create(const Identity& identity,
                                            std::span<const CounterText> counters,
                                            std::string& why);
  // Removes the file. In a forked child the parent's file stays.
  ~PageWriter();
  PageWriter(const PageWriter&) = delete;
  PageWriter& operator=(const PageWriter&) = delete;

  // Shows these numbers from now on. `counters` has the order of create(); of `peers` at most
  // kMaxPeers are shown. `known`: peers that there are. Readers never see a mixture.
  void update(std::span<const std::uint64_t> counters, std::span<const PeerRecord> peers,
              std::uint64_t known, Time now, const Waiting& waiting = {}) noexcept;
  // Where the domain writes its trace; as long as the writer lives. Only the ring's owner writes.
  trace::Ring& trace() { return page_->trace; }
  const std::string& file() const { return file_; }
  // The whole page, as a reader of the file sees it.
  std::span<const std::byte> bytes() const { return std::as_bytes(std::span(page_, 1)); }
  // Removes the file now; the writer goes on without readers.
  void remove_file() noexcept;

 private:
  PageWriter(Page* page, std::string file, pid_t owner);

  Page* page_;
  std::string file_;
  pid_t owner_;
};

}  // namespace uet::live
