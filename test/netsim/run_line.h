// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Runs what a command line of uet-sim asks for, inside a test.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "netsim/options.h"
#include "netsim/results.h"

namespace uet::netsim {

// Parses the command line without running it.
inline ParseResult parse_line(const std::string& line, RunSetup& setup) {
  std::vector<std::string> words = {"uet-sim"};
  std::istringstream stream(line);
  for (std::string word; stream >> word;) words.push_back(word);
  std::vector<const char*> pointers;
  for (const std::string& word : words) pointers.push_back(word.c_str());
  return parse_command_line(static_cast<int>(pointers.size()), pointers.data(), setup);
}

// Options as above; with `matrix`, its text is the traffic and `line` must not name any.
inline Results run_line(std::string line, const std::string& matrix = {}) {
  RunSetup setup;
  if (!matrix.empty()) {
    const std::string file = testing::TempDir() + "netsim-" +
                             testing::UnitTest::GetInstance()->current_test_info()->name() + ".cm";
    std::ofstream(file) << matrix;
    line += " --matrix " + file;
  }
  const ParseResult parsed = parse_line(line, setup);
  EXPECT_TRUE(parsed.run) << line << ": " << parsed.text;
  if (!parsed.run) return {};
  Network network(setup.network, setup.traffic);
  network.run(setup.limit, nullptr);
  Results results = results_of(outcome_of(network), 1, 0);
  EXPECT_EQ(results.violations, std::vector<std::string>{}) << line;
  EXPECT_EQ(results.finished, results.flows) << line;
  return results;
}

}  // namespace uet::netsim
