// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "uet_top/model.h"

#include <algorithm>
#include <utility>

namespace uet::top {

std::size_t usual_column(const Table& table) {
  for (const char* const name : {"sent_B/s", "name"}) {
    if (const std::size_t column = table.column(name); column < table.headings.size()) {
      return column;
    }
  }
  return 0;
}

Model::Place Model::place(Level level, std::string scope, std::string title) const {
  Place made;
  made.level = level;
  made.scope = std::move(scope);
  made.title = std::move(title);
  made.column = usual_column(table_of(level, made.scope));
  return made;
}

Table Model::table_of(Level level, const std::string& scope) const {
  switch (level) {
    case Level::Processes:
      return processes(samples_);
    case Level::Domains:
      return domains(samples_, scope);
    case Level::Peers:
      return peers(samples_, scope);
    case Level::Counters:
      return counters(samples_, scope);
    case Level::Numbers:
      return numbers(samples_, scope);
  }
  return {};
}

void Model::remember(const Table& table) {
  for (const Row& row : table.rows) {
    std::deque<double>& history = histories_[row.key];
    history.push_back(row.traffic);
    if (history.size() > kHistory) history.pop_front();
  }
}

void Model::feed(view::Reading reading, double elapsed_s) {
  const bool first = table_.headings.empty();
  samples_ = take_samples(samples_, std::move(reading.domains), elapsed_s);
  problems_ = std::move(reading.problems);
  std::unordered_map<std::string, std::deque<double>> earlier;
  std::swap(earlier, histories_);
  for (const Level level : {Level::Processes, Level::Domains, Level::Peers}) {
    const Table table = table_of(level, {});
    // Rows that are gone are forgotten.
    for (const Row& row : table.rows) {
      if (const auto found = earlier.find(row.key); found != earlier.end()) {
        histories_.insert(earlier.extract(found));
      }
    }
    remember(table);
  }
  if (first) places_.back().column = usual_column(table_of(level(), {}));
  refresh();
}

void Model::refresh() {
  Place& here = places_.back();
  table_ = table_of(here.level, here.scope);
  table_.sort(here.column, here.reverse);
  here.row = std::min(here.row, table_.rows.empty() ? 0 : table_.rows.size() - 1);
  // The choice follows its row; if that is gone, the row in its place is chosen.
  const auto found = std::find_if(table_.rows.begin(), table_.rows.end(),
                                  [&](const Row& row) { return row.key == here.chosen; });
  if (found != table_.rows.end()) {
    here.row = static_cast<std::size_t>(found - table_.rows.begin());
  } else if (!here.chosen.empty()) {
    here.chosen.clear();
  }
}

std::size_t Model::chosen() const { return places_.back().row; }

void Model::choose(std::size_t row) {
  if (table_.rows.empty()) return;
  Place& here = places_.back();
  here.row = std::min(row, table_.rows.size() - 1);
  here.chosen = table_.rows[here.row].key;
}

void Model::enter(Level level) {
  if (table_.rows.empty()) return;
  const Row& row = table_.rows[chosen()];
  std::string title = row.cells[0].text;
  if (this->level() == Level::Processes) title += " " + row.cells[1].text;
  places_.push_back(place(level, row.key, std::move(title)));
  refresh();
}

void Model::go_to(Level level) {
  places_ = {place(level, {}, {})};
  refresh();
}

void Model::press(Key key, std::size_t page) {
  Place& here = places_.back();
  const std::size_t columns = table_.headings.size();
  switch (key) {
    case Key::Up:
      return choose(here.row == 0 ? 0 : here.row - 1);
    case Key::Down:
      return choose(here.row + 1);
    case Key::PageUp:
      return choose(here.row < page ? 0 : here.row - page);
    case Key::PageDown:
      return choose(here.row + page);
    case Key::First:
      return choose(0);
    case Key::Last:
      return choose(table_.rows.size());
    case Key::Enter:
      if (here.level == Level::Processes) return enter(Level::Domains);
      if (here.level == Level::Domains) return enter(Level::Peers);
      if (here.level == Level::Peers) return enter(Level::Numbers);
      return;
    case Key::Back:
      if (places_.size() > 1) places_.pop_back();
      break;
    case Key::Left:
      here.column = columns == 0 ? 0 : (here.column + columns - 1) % columns;
      break;
    case Key::Right:
      here.column = columns == 0 ? 0 : (here.column + 1) % columns;
      break;
    case Key::Reverse:
      here.reverse = !here.reverse;
      break;
    case Key::Counters:
      if (here.level == Level::Domains) return enter(Level::Counters);
      return;
    case Key::ByProcess:
      return go_to(Level::Processes);
    case Key::ByDomain:
      return go_to(Level::Domains);
    case Key::ByPeer:
      return go_to(Level::Peers);
  }
  refresh();
}

bool Model::sort_by(const std::string& column) {
  const std::size_t index = table_.column(column);
  if (index >= table_.headings.size()) return false;
  places_.back().column = index;
  refresh();
  return true;
}

std::string Model::path() const {
  static constexpr const char* kNames[] = {"processes", "domains", "peers", "counters", "numbers"};
  std::string text = kNames[static_cast<std::size_t>(places_.front().level)];
  for (std::size_t i = 1; i < places_.size(); ++i) text += " > " + places_[i].title;
  if (places_.size() > 1) {
    text += std::string(": ") + kNames[static_cast<std::size_t>(places_.back().level)];
  }
  return text;
}

std::size_t Model::first_row(std::size_t page) {
  Place& here = places_.back();
  if (here.row < here.first) here.first = here.row;
  if (page > 0 && here.row >= here.first + page) here.first = here.row - page + 1;
  const std::size_t rows = table_.rows.size();
  if (here.first + page > rows) here.first = rows > page ? rows - page : 0;
  return here.first;
}

const std::deque<double>& Model::history(const std::string& row) const {
  static const std::deque<double> kNone;
  const auto found = histories_.find(row);
  return found != histories_.end() ? found->second : kNone;
}

}  // namespace uet::top
