// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The state of uet_top between samples and keys: which table is shown, in which order, which row is
// chosen. Must not know a screen.
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <unordered_map>
#include <vector>

#include "uet_top/table.h"

namespace uet::top {

enum class Level : std::uint8_t { Processes, Domains, Peers, Counters, Numbers };

enum class Key : std::uint8_t {
  Up,
  Down,
  PageUp,
  PageDown,
  First,
  Last,
  Enter,     // into the chosen row
  Back,      // to the table before
  Left,      // sort by the column to the left
  Right,     // or to the right
  Reverse,   // order of the rows
  Counters,  // of the chosen domain
  ByProcess,
  ByDomain,
  ByPeer,
};

class Model {
 public:
  static constexpr std::size_t kHistory = 60;  // samples

  // Takes the next samples. `elapsed_s`: seconds since those before.
  void feed(view::Reading reading, double elapsed_s);
  // `page`: rows that the screen has.
  void press(Key key, std::size_t page);
  // False if the table that is shown has no column of that name.
  bool sort_by(const std::string& column);

  Level level() const { return places_.back().level; }
  // "processes > 4711 solver > 10.0.0.1:4793"
  std::string path() const;
  const Table& table() const { return table_; }
  std::size_t sorted_column() const { return places_.back().column; }
  bool reversed() const { return places_.back().reverse; }
  // The index of the chosen row; 0 if there is none.
  std::size_t chosen() const;
  // The first row of a screen of `page` rows; the chosen one is within it.
  std::size_t first_row(std::size_t page);
  // Traffic of a row in the last samples, bytes per second, the oldest first.
  const std::deque<double>& history(const std::string& row) const;
  const std::vector<std::string>& problems() const { return problems_; }

 private:
  struct Place {
    Level level = Level::Processes;
    std::string scope;   // key of the process, domain or peer whose rows are shown; empty: all
    std::string title;   // of the scope, for path()
    std::string chosen;  // key of a row
    std::size_t row = 0;
    std::size_t column = 0;
    bool reverse = false;
    std::size_t first = 0;
  };

  Place place(Level level, std::string scope, std::string title) const;
  Table table_of(Level level, const std::string& scope) const;
  void enter(Level level);
  void go_to(Level level);
  void refresh();
  void choose(std::size_t row);
  void remember(const Table& table);

  std::vector<Sample> samples_;
  std::vector<std::string> problems_;
  std::vector<Place> places_{Place{}};
  Table table_;
  std::unordered_map<std::string, std::deque<double>> histories_;
};

// "sent_B/s" for tables that have it, "name" for numbers.
std::size_t usual_column(const Table& table);

}  // namespace uet::top
