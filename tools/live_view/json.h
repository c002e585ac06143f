// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The JSON form of domains, which uet_stats and uet_top write (uet_stats(1) describes it).
#pragma once

#include <string>
#include <vector>

#include "live_view/domain.h"

namespace uet::view {

// {"domains": [...], "problems": [...]}, indented, with a line end behind.
std::string to_json(const Reading& reading);
// Throws std::runtime_error with the reason if the text is not of that form. Members that are not
// known are ignored; meanings of counters are not in the text.
std::vector<Domain> from_json(const std::string& text);

}  // namespace uet::view
