// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Tables of uet_top as lines of text and as JSON.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "uet_top/table.h"

namespace uet::top {

// How wide each column must be for its heading and all its cells.
std::vector<std::size_t> widths(const Table& table);
// A line without line end. Numbers stand to the right.
std::string heading_line(const Table& table, const std::vector<std::size_t>& width);
std::string row_line(const Table& table, const Row& row, const std::vector<std::size_t>& width);
// One sign for each of the newest `columns` values, of a height in proportion to the largest;
// blanks before them. In UTF-8 blocks of eight heights, else signs of ASCII.
std::string bars(const std::deque<double>& values, std::size_t columns, bool utf8);

// The whole table, a line each.
std::string to_text(const Table& table);
// [{"pid": 4711, ...}, ...]: numbers as numbers, texts as texts.
std::string to_json(const Table& table);

}  // namespace uet::top
