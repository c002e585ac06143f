// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "objects/trace_log.h"

#include <rdma/providers/fi_log.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <new>

#include "live/trace_dump.h"
#include "provider.h"
#include "uet/pds/api.h"

namespace uet::prov {

using trace::Kind;

void TraceLog::open(const std::string& nic, std::uint32_t ip_mtu, bool rings) {
  debug_ = fi_log_enabled(&provider, FI_LOG_DEBUG, FI_LOG_EP_CTRL) != 0;
  if (!debug_) return;
  way_ = "back end " + nic + ", IP MTU " + std::to_string(ip_mtu) +
         (rings ? ", rings allowed" : ", rings off");
}

void TraceLog::write(const trace::Ring& ring) noexcept {
  const std::uint64_t oldest = ring.written > trace::kRecords ? ring.written - trace::kRecords : 0;
  const bool failed = ring.failed_operations != failures_;
  failures_ = ring.failed_operations;
  if (!debug_ && (!failed || warned_)) return;
  try {
    for (std::uint64_t i = std::max(logged_, oldest); i < ring.written; ++i) {
      const trace::Record& record = ring.records[i % trace::kRecords];
      note(record);
      if (debug_) log(record);
    }
  } catch (const std::bad_alloc&) {  // the log lacks some lines
  }
  logged_ = ring.written;
}

// Remembers peers, and warns of one that is given up.
void TraceLog::note(const trace::Record& record) {
  if (record.kind == Kind::PdcOpened) {
    const std::array<std::uint64_t, 2> words{record.a, record.b};
    peers_[record.pdc] =
        live::address_text(std::bit_cast<std::array<std::uint8_t, 16>>(words),
                           (record.detail & 4) != 0, static_cast<std::uint16_t>(record.psn));
  }
  const bool given_up = record.kind == Kind::PdcState &&
                        record.b == static_cast<std::uint64_t>(pds::PdsError::RtoExhausted);
  if (!given_up || warned_) return;
  warned_ = true;
  const auto peer = peers_.find(record.pdc);
  FI_WARN(&provider, FI_LOG_EP_CTRL,
          "peer %s does not answer and is given up; see whether its process runs and calls "
          "libfabric (its CQ, or FI_PROGRESS_AUTO), and whether UDP port 4793 is open between the "
          "hosts (uet_doctor --peer). FI_UET_STATS=error keeps the trace for uet_trace --why\n",
          peer != peers_.end() ? peer->second.c_str() : "(unknown)");
}

void TraceLog::log(const trace::Record& record) {
  const auto found = peers_.find(record.pdc);
  const char* const peer = found != peers_.end() ? found->second.c_str() : "(unknown)";
  if (record.kind == Kind::PdcOpened) {
    FI_LOG(&provider, FI_LOG_DEBUG, FI_LOG_EP_CTRL, "PDC 0x%04x to %s: opened as %s, %s; %s\n",
           record.pdc, peer, (record.detail & 1) != 0 ? "target" : "initiator",
           (record.detail & 2) != 0 ? "ROD" : "RUD", way_.c_str());
  } else if (record.kind == Kind::PdcState) {
    FI_LOG(&provider, FI_LOG_DEBUG, FI_LOG_EP_CTRL, "PDC 0x%04x to %s: %s -> %s%s%s%s\n",
           record.pdc, peer, live::pdc_state_name(record.a & 0xFF),
           live::pdc_state_name(record.detail), record.b != 0 ? ", " : "",
           record.b != 0 ? live::pdc_error_name(record.b) : "",
           (record.a & trace::kThroughRing) != 0 ? ", through a ring of this host" : "");
    if (record.detail == 0) peers_.erase(record.pdc);  // closed
  } else if (record.kind == Kind::PathBanned) {
    FI_LOG(&provider, FI_LOG_DEBUG, FI_LOG_EP_CTRL,
           "PDC 0x%04x to %s: entropy value 0x%llx banned, its packets are lost\n", record.pdc,
           peer, static_cast<unsigned long long>(record.a));
  }
}

}  // namespace uet::prov
