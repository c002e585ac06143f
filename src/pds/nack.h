// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What the source does about each NACK code (PDS section 12.4).
#pragma once

#include <cstdint>

#include "uet/pds/api.h"

namespace uet::pds {

enum class NackAction : std::uint8_t {
  Ignore,           // reserved codes
  RetransmitNow,    // trims and loss reports (PDS-122, PDS-133)
  RetransmitLater,  // shortage at the destination: after NACK_Retx_Time (PDS-122)
  GoBack,           // ROD_OOO: from the first gap (PDS-166)
  RestartRto,       // received, SES still at work (PDS-143)
  Rebase,           // NEW_START_PSN: everything again from another Start_PSN (PDS-77)
  Fail,             // the PDC cannot go on (PDS-134)
  FailUnconsumed,   // nor can it here, but a new PDC may take the packet (PDS-142)
};

// Only the payload of the packet was lost (PDS-149).
constexpr bool is_trim(NackCode code) {
  return code == NackCode::Trimmed || code == NackCode::TrimmedLastHop;
}

constexpr NackAction nack_action(NackCode code) {
  switch (code) {
    case NackCode::Trimmed:
    case NackCode::TrimmedLastHop:
    case NackCode::TrimmedAck:
    case NackCode::PktNotRcvd:
    case NackCode::AckWithData:
    case NackCode::RcvrInferLoss:
      return NackAction::RetransmitNow;
    case NackCode::NoPdcAvail:
    case NackCode::NoCccAvail:
    case NackCode::NoBitmap:
    case NackCode::NoPktBuffer:
    case NackCode::NoGtdDelAvail:
    case NackCode::NoSesMsgAvail:
    case NackCode::NoResource:
    case NackCode::PsnOorWindow:
    case NackCode::ExpNormal:
    case NackCode::ExpErr:
      return NackAction::RetransmitLater;
    case NackCode::RodOoo:
      return NackAction::GoBack;
    case NackCode::RcvdSesProcg:
      return NackAction::RestartRto;
    case NackCode::ClosingInErr:
    case NackCode::GtdRespUnavail:
    case NackCode::ExpFatal:
      return NackAction::Fail;
    case NackCode::InvDpdcid:
    case NackCode::PdcHdrMismatch:
    case NackCode::Closing:
    case NackCode::InvalidSyn:
    case NackCode::PdcModeMismatch:
    case NackCode::UnexpEvent:
      return NackAction::FailUnconsumed;
    case NackCode::NewStartPsn:
      return NackAction::Rebase;
    case NackCode::Reserved:
      return NackAction::Ignore;
  }
  return NackAction::Ignore;
}

// The PDC cannot go on.
constexpr bool is_fatal(NackCode code) {
  const NackAction action = nack_action(code);
  return action == NackAction::Fail || action == NackAction::FailUnconsumed;
}

// The target has opened no PDC for a packet with SYN: it lacks what a PDC needs, or the packet is
// not the first one of a ROD PDC (PDS-61, PDS-66). For NACKs with SPDCID 0.
constexpr bool lacks_pdc(NackCode code) {
  return code == NackCode::NoPdcAvail || code == NackCode::NoCccAvail ||
         code == NackCode::NoBitmap || code == NackCode::NoResource || code == NackCode::RodOoo;
}

// The error that the application gets if the PDC fails for this code (SES-121).
constexpr PdsError nack_error(NackCode code) {
  switch (code) {
    case NackCode::ClosingInErr:
    case NackCode::Closing:
    case NackCode::GtdRespUnavail:
      return PdsError::ClosedInError;
    default:
      return is_fatal(code) ? PdsError::ProtocolError : PdsError::NackExhausted;
  }
}

}  // namespace uet::pds
