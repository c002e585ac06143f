// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What the trace of a domain says to the log of libfabric: with FI_LOG_LEVEL=debug each PDC, where
// its packets go, and each change of its state; with warn, once, a peer that is given up.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/trace.h"

namespace uet::prov {

class TraceLog {
 public:
  // `nic`: the back end; `rings`: those of this host may be used.
  void open(const std::string& nic, std::uint32_t ip_mtu, bool rings);
  // Something is to be logged since the last call. Cheap: asked after each pass.
  bool wants(const trace::Ring& ring) const {
    return (debug_ && ring.written != logged_) || ring.failed_operations != failures_;
  }
  void write(const trace::Ring& ring) noexcept;

 private:
  void log(const trace::Record& record);
  void note(const trace::Record& record);

  bool debug_ = false;
  bool warned_ = false;
  std::uint64_t logged_ = 0;                    // records
  std::uint64_t failures_ = 0;                  // operations
  std::string way_;                             // "back end udp, IP MTU 1500, rings allowed"
  std::map<std::uint16_t, std::string> peers_;  // of PDCs
};

}  // namespace uet::prov
