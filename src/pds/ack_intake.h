// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What one ACK does to a PDC (PDS-108): which packets are answered, what the congestion context,
// the paths and the loss detector learn. Exists while the ACK is applied, at the time `now`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "pds/pdc.h"
#include "uet/base/time.h"
#include "uet/base/types.h"
#include "uet/pds/api.h"

namespace uet::pds {

class AckIntake {
 public:
  // `pdc` outlives it.
  AckIntake(Pdc& pdc, Time now) : pdc_(pdc), side_(pdc.send_side()), now_(now) {}

  // Applies the ACK, or counts it as invalid if the peer of this PDC cannot have sent it. `ses`:
  // the bytes behind its header; `arrived`: when it came to this host. The client is called for
  // each packet that the ACK answers, and may fail the PDC.
  void apply(const wire::AckHeader& ack, std::span<const std::byte> ses, Time arrived);

 private:
  void note_in_trace(const wire::AckHeader& ack);
  Environment& env() const { return pdc_.env(); }
  cms::Ccc& ccc() const { return *pdc_.ccc().ccc; }

  bool is_plausible(const wire::AckHeader& ack) const;
  void note_range(const wire::AckHeader& ack);
  void learn_times(const wire::AckHeader& ack, const TxRecord& record, Time arrived,
                   cms::AckFeedback& feedback);
  std::uint64_t apply_cack(Psn cack);
  void apply_sack(const wire::AckHeader& ack);
  std::uint64_t acknowledge(Psn psn, const ResponseView& response);
  void await_final_response(Psn psn, TxRecord& record, Packet& packet);
  void note_reported(Psn psn, TxRecord& record);
  void credit_path(const TxRecord& record);
  void note_clear(const wire::AckHeader& ack, Psn cleared_before, bool asked_for_window);
  // `feedback` describes the packet that the ACK names.
  void inform_ccc(const wire::AckHeader& ack, cms::AckFeedback& feedback,
                  std::uint64_t newly_acked_bytes);
  void on_probe_answer(const wire::AckHeader& ack, Time arrived);

  Pdc& pdc_;
  SendSide& side_;
  const Time now_;
  bool unmarked_ = false;   // the ACK is not marked (CMS-418)
  bool is_newest_ = false;  // none has come with a higher CACK (PDS-41)
};

}  // namespace uet::pds
