// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The process's end of the map by which a kernel program drops packets of strangers (pdc_guard.h):
// the map lies in the process's memory, so that opening a PDC is a store. Only modules that are
// linked to libbpf include this.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "nic/nic_guard.h"
#include "nic/pdc_guard.h"
#include "nic/socket.h"

namespace uet::nic {

// Not thread-safe: the caller's lock covers it.
class GuardMap final : public NicGuard {
 public:
  // Makes a map. Null, with errno, if the kernel refuses.
  static std::unique_ptr<GuardMap> make();

  void start(std::uint32_t new_pdcs, Duration pace) override;
  void open(PdcId id) override { set(id, true); }
  void close(PdcId id) override { set(id, false); }
  void add_counts(NicCounters& counters) const override;

  // For the kernel program.
  int fd() const { return map_.get(); }
  // Packets dropped so far.
  std::uint64_t dropped(UetGuardDrop reason) const;

 private:
  struct Unmap {
    void operator()(UetGuard* guard) const;
  };
  GuardMap() = default;
  void set(PdcId id, bool is_open);

  FileDescriptor map_;
  std::unique_ptr<UetGuard, Unmap> guard_;
};

}  // namespace uet::nic
