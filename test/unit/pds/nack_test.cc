// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "uet/pds/nack.h"

#include <gtest/gtest.h>

namespace uet::pds {
namespace {

struct Row {
  std::uint8_t code;
  NackAction action;
};

// PDS section 12.4, by number.
constexpr Row kRows[] = {
    {0x01, NackAction::RetransmitNow},
    {0x02, NackAction::RetransmitNow},
    {0x03, NackAction::RetransmitNow},
    {0x04, NackAction::RetransmitLater},
    {0x05, NackAction::RetransmitLater},
    {0x06, NackAction::RetransmitLater},
    {0x07, NackAction::RetransmitLater},
    {0x08, NackAction::RetransmitLater},
    {0x09, NackAction::RetransmitLater},
    {0x0A, NackAction::RetransmitLater},
    {0x0B, NackAction::RetransmitLater},
    {0x0D, NackAction::GoBack},
    {0x0E, NackAction::Fail},
    {0x0F, NackAction::Fail},
    {0x10, NackAction::Fail},
    {0x11, NackAction::Fail},
    {0x12, NackAction::RetransmitNow},
    {0x13, NackAction::Fail},
    {0x14, NackAction::RetransmitNow},
    {0x15, NackAction::Fail},
    {0x16, NackAction::Fail},
    {0x17, NackAction::Ignore},
    {0x18, NackAction::RestartRto},
    {0x19, NackAction::Fail},
    {0x1A, NackAction::RetransmitNow},
    {0xFD, NackAction::RetransmitLater},
    {0xFE, NackAction::RetransmitLater},
    {0xFF, NackAction::Fail},
};

// PDS-122: trims and loss reports are answered at once, shortages later. PDS-133: RCVR_INFER_LOSS
// is a report of loss like another.
TEST(NackAction, Pds122_Pds133_EveryCodeOfTheTable) {
  for (const Row& row : kRows) {
    EXPECT_EQ(nack_action(static_cast<NackCode>(row.code)), row.action) << int{row.code};
  }
}

TEST(NackAction, ReservedCodesAreIgnored) {
  for (int code = 0; code < 256; ++code) {
    bool listed = false;
    for (const Row& row : kRows) listed = listed || row.code == code;
    if (listed) continue;
    EXPECT_EQ(nack_action(static_cast<NackCode>(code)), NackAction::Ignore) << code;
  }
}

// PDS-142: which of the fatal codes leave the operation possibly done at the peer.
TEST(NackError, ClosedInErrorWhereThePeerClosedOrLostTheResponse) {
  EXPECT_EQ(nack_error(NackCode::Closing), PdsError::ClosedInError);
  EXPECT_EQ(nack_error(NackCode::ClosingInErr), PdsError::ClosedInError);
  EXPECT_EQ(nack_error(NackCode::GtdRespUnavail), PdsError::ClosedInError);
}

TEST(NackError, ProtocolErrorForOtherFatalCodes) {
  for (const NackCode code :
       {NackCode::InvDpdcid, NackCode::PdcHdrMismatch, NackCode::InvalidSyn,
        NackCode::PdcModeMismatch, NackCode::UnexpEvent, NackCode::ExpFatal}) {
    EXPECT_EQ(nack_error(code), PdsError::ProtocolError) << static_cast<int>(code);
  }
}

TEST(NackError, NackExhaustedForShortage) {
  EXPECT_EQ(nack_error(NackCode::NoResource), PdsError::NackExhausted);
  EXPECT_EQ(nack_error(NackCode::NoPdcAvail), PdsError::NackExhausted);
}

}  // namespace
}  // namespace uet::pds
