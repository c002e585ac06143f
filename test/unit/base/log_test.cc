// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "uet/base/log.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace uet {
namespace {

TEST(Log, PassesOnUpToItsLevel) {
  std::vector<std::string> lines;
  const Log log(
      [&](LogLevel level, std::string_view text) {
        lines.push_back(std::string(name_of(level)) + ": " + std::string(text));
      },
      LogLevel::Info);
  log.warn("one");
  log.info("two");
  log.debug("three");
  EXPECT_EQ(lines, (std::vector<std::string>{"warn: one", "info: two"}));
  EXPECT_TRUE(log.enabled(LogLevel::Info));
  EXPECT_FALSE(log.enabled(LogLevel::Debug));
}

TEST(Log, WithoutSinkDropsEverything) {
  const Log log;
  log.warn("nobody listens");
  EXPECT_FALSE(log.enabled(LogLevel::Warn));
}

TEST(Log, NamesOfLevels) { EXPECT_EQ(name_of(LogLevel::Debug), "debug"); }

}  // namespace
}  // namespace uet
