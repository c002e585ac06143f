// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "pds/backlog.h"

#include "cms/rccc.h"
#include "pds/pdc.h"
#include "unit/pds/pds_harness.h"

namespace uet::pds::testing {
namespace {

class BacklogTest : public Bench {
 protected:
  // A PDC whose context uses receiver credit if `credit` says so. Nothing of it waits.
  PdcCore& core(bool credit) {
    cms::Parameters cms = open_window();
    if (credit) {
      cms = {};
      cms.algorithm = cms::Algorithm::Rccc;
      cms.mtu_bytes = 1024 + 128;
      cms.base_rtt = microseconds(100);
    }
    build(test_parameters(), cms);
    return open();
  }

  TestMessage first_{1, 1, 64};
  TestMessage second_{2, 1, 64};
  Backlog backlog_;
};

TEST_F(BacklogTest, Pds8_MessagesKeepTheirOrder) {
  PdcCore& core = this->core(false);
  EXPECT_TRUE(backlog_.empty());
  backlog_.push(core, first_, now);
  backlog_.push(core, second_, now);
  EXPECT_EQ(first_.pdc, core.id());
  EXPECT_EQ(&backlog_.front(), &first_);
  backlog_.remove(first_);
  EXPECT_EQ(&backlog_.pop_front(), &second_);
  EXPECT_TRUE(backlog_.empty());
}

// SES-113: the messages that wait may need the state that the target holds for the ended one.
TEST_F(BacklogTest, Ses113_EndOfAMessageGoesFirst) {
  PdcCore& core = this->core(false);
  backlog_.push(core, first_, now);
  second_.ends_message = true;
  backlog_.push(core, second_, now);
  EXPECT_EQ(&backlog_.pop_front(), &second_);
  EXPECT_EQ(&backlog_.pop_front(), &first_);
}

TEST_F(BacklogTest, Pds9_TellsTheLargerSizeClassOfItsEnds) {
  PdcCore& core = this->core(false);
  backlog_.push(core, first_, now);
  EXPECT_EQ(backlog_.size_class(), 0);
  second_.size_class = 2;
  backlog_.push(core, second_, now);
  EXPECT_EQ(backlog_.size_class(), 2);
  backlog_.remove(first_);
  EXPECT_EQ(backlog_.size_class(), 2);
  backlog_.remove(second_);
}

// PDS-9: up to 8, 64 and 512 packets, and longer ones.
TEST(SizeClassTest, Pds9_GrowsWithEachEightfoldLength) {
  constexpr std::uint64_t kPayload = 4096;
  EXPECT_EQ(size_class_of(0, kPayload), 0);
  EXPECT_EQ(size_class_of(8 * kPayload, kPayload), 0);
  EXPECT_EQ(size_class_of(8 * kPayload + 1, kPayload), 1);
  EXPECT_EQ(size_class_of(64 * kPayload, kPayload), 1);
  EXPECT_EQ(size_class_of(512 * kPayload, kPayload), 2);
  EXPECT_EQ(size_class_of(512 * kPayload + 1, kPayload), 3);
  EXPECT_EQ(size_class_of(UINT64_MAX, kPayload), 3);
}

TEST_F(BacklogTest, Pds101_ExpectsPromptAcksOfAll) {
  PdcCore& core = this->core(false);
  first_.prompt_ack = second_.prompt_ack = false;
  backlog_.push(core, first_, now);
  backlog_.push(core, second_, now);
  backlog_.expect_prompt_acks();
  EXPECT_TRUE(first_.prompt_ack && second_.prompt_ack);
  backlog_.remove(first_);
  backlog_.remove(second_);
}

TEST_F(BacklogTest, Cms200_DataIsAnnouncedUntilItHasLeft) {
  PdcCore& core = this->core(true);
  const cms::Rccc& credit = *core.ccc().credit;
  const std::uint32_t mtu = core.env().cms.mtu_bytes;
  ASSERT_FALSE(credit.has_data());
  first_.backlog_bytes = 2048;
  backlog_.push(core, first_, now);
  EXPECT_GE(first_.backlog_bytes, 2 * mtu);  // with headers
  EXPECT_TRUE(credit.has_data());
  backlog_.sent(core, first_, 4 * mtu, false);  // more than was announced
  EXPECT_EQ(first_.backlog_bytes, mtu);         // a further packet needs as much at most
  EXPECT_TRUE(credit.has_data());
  backlog_.sent(core, first_, mtu, true);
  EXPECT_EQ(first_.backlog_bytes, 0U);
  EXPECT_FALSE(credit.has_data());
  backlog_.remove(first_);
}

TEST_F(BacklogTest, Cms200_CancelledDataIsWithdrawn) {
  PdcCore& core = this->core(true);
  first_.backlog_bytes = 100000;
  backlog_.push(core, first_, now);
  backlog_.remove(first_);
  EXPECT_TRUE(core.ccc().credit->has_data());
  backlog_.forget(core, first_);
  EXPECT_FALSE(core.ccc().credit->has_data());
}

}  // namespace
}  // namespace uet::pds::testing
