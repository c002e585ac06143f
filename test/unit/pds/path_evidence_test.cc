// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "pds/path_evidence.h"

#include <gtest/gtest.h>

#include <map>

#include "cms/path.h"

namespace uet::pds {
namespace {

TEST(PathEvidence, Cms420_EveryPathHasAPlaceOfItsOwn) {
  cms::Parameters cms;
  cms.paths = cms::PathPolicy::Oblivious;
  for (const std::uint16_t count : {1, 3, 64, 1000, 1024}) {
    cms.path_count = count;
    Rng rng(count);
    cms::PathSelector paths(cms, false, rng);
    PathEvidence evidence(count);
    evidence.prepare();
    evidence.begin();
    std::map<std::uint16_t, std::uint64_t> expected;
    for (std::uint64_t order = 1; expected.size() < count; ++order) {
      const std::uint16_t entropy = paths.next(rng, Time{});
      evidence.note(entropy, order);
      expected[entropy] = order;
    }
    for (const auto& [entropy, order] : expected) ASSERT_EQ(evidence.newest(entropy), order);
    evidence.begin();
    for (const auto& [entropy, order] : expected) ASSERT_EQ(evidence.newest(entropy), 0U);
  }
}

}  // namespace
}  // namespace uet::pds
