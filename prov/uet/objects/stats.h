// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The counters of a domain for people and programs: FI_UET_STATS, and the operations "uet_stats" of
// fi_open_ops (fi_ext_uet.h). fep/stats.h lists the counters.
#pragma once

#include <rdma/fabric.h>

#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "fep/stats.h"
#include "uet/base/address.h"

namespace uet::prov {

struct StatsDump;
class Engine;
class Engines;

// Names of all counters of a domain: those of its Fep, then those of its transport security.
std::span<const fep::CounterName> counter_names();
// Their values, in that order; with the lock of the engine.
std::vector<std::uint64_t> counter_values(Engine& engine);
// Likewise, the sums over all engines of a domain; takes their locks.
std::vector<std::uint64_t> counter_values(Engines& engines);

// Appends all counters, a line each, to the file that `dump` names, in one piece, so that those of
// several processes do not mix. `why` is shown in the first line.
void write_stats(const StatsDump& dump, const FepAddress& domain, const char* why,
                 std::span<const std::uint64_t> values);

// Appends `text` to the file, in one piece; empty: standard error. Logs a failure. 0 or a negative
// fi_errno.
int write_dump(const std::string& file, const std::string& text);

// Writes a copy of a live page to "HOST.PID.`number`" in `directory`, which is made if it is not
// there. %p in its name becomes the process id. Logs a failure. 0 or a negative fi_errno.
int write_page(const std::string& directory, const std::string& number,
               std::span<const std::byte> page);

// fi_ops.ops_open of a domain: fi_domain(3), fi_open_ops.
int open_domain_ops(struct fid* fid, const char* name, std::uint64_t flags, void** ops,
                    void* context) noexcept;

// Requests by SIGUSR2, for one domain. The handler is put in place by the first subscription of the
// process, and only where the program has none; it notes the request and touches nothing else.
class StatsSignal {
 public:
  StatsSignal() = default;
  ~StatsSignal();
  StatsSignal(const StatsSignal&) = delete;
  StatsSignal& operator=(const StatsSignal&) = delete;

  // False with a warning if the program uses the signal itself, or when resources are short.
  bool subscribe() noexcept;
  // Readable while a request waits; -1 without subscription.
  int fd() const;
  // True once for each request.
  bool requested() noexcept {
    return place_ != nullptr && place_->requests.load(std::memory_order_relaxed) != 0 && take();
  }

  // The state that the handler sees. Places and their descriptors stay for the life of the
  // process, because the handler may run at any time.
  struct Place {
    std::atomic<bool> used{false};
    std::atomic<int> event{-1};
    std::atomic<unsigned> requests{0};
  };

 private:
  bool take() noexcept;

  Place* place_ = nullptr;
};

}  // namespace uet::prov
