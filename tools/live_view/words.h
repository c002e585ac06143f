// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Numbers in words for people, short enough for a column of a table.
#pragma once

#include <cstdint>
#include <string>

namespace uet::view {

// At most 6 characters: "0", "999", "1.50k", "12.3M". Of 1,000.
std::string short_count(double value);
// Of a number whose name ends with "_ns": "250ns", "1.50us", "12.3ms", "2.00s", "1.50h".
std::string short_time(double ns);
// By the end of the name: a time, or a count.
std::string short_value(const std::string& name, double value);

}  // namespace uet::view
