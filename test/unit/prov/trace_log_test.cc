// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// When the trace of a domain has something for the log.
#include "objects/trace_log.h"

#include <gtest/gtest.h>

#include <memory>

namespace uet::prov {
namespace {

TEST(TraceLog, Wants_OnlyAfterAFailureUnlessDebugIsOn) {
  const auto ring = std::make_unique<trace::Ring>();
  const Time now{};
  trace::Trace trace;
  trace.keep_in(ring.get(), &now);
  TraceLog log;
  log.open("udp", 1500, true);  // the level of the log is not debug
  EXPECT_FALSE(log.wants(*ring));
  trace.write(trace::Kind::PdcOpened, 0, PdcId{1}, Psn{4793}, 0x0200000A);
  EXPECT_FALSE(log.wants(*ring));
  trace.write(trace::Kind::PdcState, 0, PdcId{1}, {}, 2, 1);  // given up
  trace.note_failed_operation();
  EXPECT_TRUE(log.wants(*ring));
  log.write(*ring);
  EXPECT_FALSE(log.wants(*ring));
}

}  // namespace
}  // namespace uet::prov
