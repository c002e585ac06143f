// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "uet_top/screen.h"

#define NCURSES_NOMACROS 1  // functions instead
#include <curses.h>
#include <langinfo.h>
#include <unistd.h>

#include <algorithm>
#include <clocale>
#include <cstdio>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <string>

#include "uet_top/text.h"

namespace uet::top {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kEscape = 27;
constexpr std::size_t kHeadLines = 2;  // path, headings
constexpr std::size_t kLinesBesideRows = kHeadLines + 1;
constexpr const char* kHelp =
    "arrows choose and sort  r reverse  Enter into  Esc back  c counters  1 processes  2 domains  "
    "3 peers  q end";

// The terminal is as it was after this.
class Terminal {
 public:
  Terminal() {
    std::setlocale(LC_ALL, "");
    utf8_ = std::strcmp(::nl_langinfo(CODESET), "UTF-8") == 0;
    const bool terminal = ::isatty(STDIN_FILENO) != 0 && ::isatty(STDOUT_FILENO) != 0;
    screen_ = terminal ? ::newterm(nullptr, stdout, stdin) : nullptr;
    if (screen_ == nullptr) {
      throw std::runtime_error(
          "input and output are no terminal of a known kind (TERM); "
          "use --once");
    }
    ::set_term(screen_);
    ::cbreak();
    ::noecho();
    ::curs_set(0);
    ::keypad(stdscr, TRUE);
    ::set_escdelay(50);
  }
  ~Terminal() {
    ::endwin();
    ::delscreen(screen_);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;
  bool utf8() const { return utf8_; }

 private:
  SCREEN* screen_ = nullptr;
  bool utf8_ = false;
};

std::size_t rows_of_screen() {
  const auto lines = static_cast<std::size_t>(std::max(LINES, 0));
  return lines > kLinesBesideRows ? lines - kLinesBesideRows : 0;
}

void put_line(std::size_t line, const std::string& text, attr_t attributes) {
  ::attrset(attributes);
  ::mvaddnstr(static_cast<int>(line), 0, text.c_str(), std::max(COLS, 0));
  ::attrset(A_NORMAL);
}

// The heading by which the rows are sorted stands out.
void put_headings(const Model& model, const std::vector<std::size_t>& width) {
  const Table& table = model.table();
  put_line(1, heading_line(table, width), A_BOLD);
  std::size_t at = 0;
  for (std::size_t i = 0; i < model.sorted_column() && i < width.size(); ++i) at += width[i] + 1;
  if (model.sorted_column() < width.size() && at < static_cast<std::size_t>(COLS)) {
    ::mvchgat(1, static_cast<int>(at), static_cast<int>(width[model.sorted_column()]),
              A_BOLD | A_REVERSE, 0, nullptr);
  }
}

void put_rows(Model& model, const std::vector<std::size_t>& width, bool utf8) {
  const Table& table = model.table();
  const std::size_t page = rows_of_screen();
  const std::size_t first = model.first_row(page);
  const bool with_history = model.level() <= Level::Peers;
  for (std::size_t i = 0; i < page && first + i < table.rows.size(); ++i) {
    const Row& row = table.rows[first + i];
    const std::string line = row_line(table, row, width);
    put_line(kHeadLines + i, line, first + i == model.chosen() ? A_REVERSE : A_NORMAL);
    const std::size_t at = line.size() + 2;
    if (!with_history || at >= static_cast<std::size_t>(COLS)) continue;
    const std::size_t columns = std::min(static_cast<std::size_t>(COLS) - at, Model::kHistory);
    ::mvaddstr(static_cast<int>(kHeadLines + i), static_cast<int>(at),
               bars(model.history(row.key), columns, utf8).c_str());
  }
}

void draw(Model& model, bool utf8) {
  ::erase();
  const std::vector<std::size_t> width = widths(model.table());
  const std::size_t rows = model.table().rows.size();
  put_line(0, "uet_top  " + model.path() + "  (" + std::to_string(rows) + ")", A_BOLD);
  put_headings(model, width);
  put_rows(model, width, utf8);
  if (rows == 0) put_line(kHeadLines, "nothing to show: no uet domain of this user is open", 0);
  const auto& problems = model.problems();
  put_line(static_cast<std::size_t>(std::max(LINES - 1, 0)), problems.empty() ? kHelp : problems[0],
           A_DIM);
  ::refresh();
}

std::optional<Key> key_for(int typed) {
  switch (typed) {
    case KEY_UP:
    case 'k':
      return Key::Up;
    case KEY_DOWN:
    case 'j':
      return Key::Down;
    case KEY_PPAGE:
      return Key::PageUp;
    case KEY_NPAGE:
      return Key::PageDown;
    case KEY_HOME:
      return Key::First;
    case KEY_END:
      return Key::Last;
    case KEY_ENTER:
    case '\n':
    case '\r':
      return Key::Enter;
    case kEscape:
    case KEY_BACKSPACE:
    case 127:
      return Key::Back;
    case KEY_LEFT:
      return Key::Left;
    case KEY_RIGHT:
      return Key::Right;
    case 'r':
      return Key::Reverse;
    case 'c':
      return Key::Counters;
    case '1':
      return Key::ByProcess;
    case '2':
      return Key::ByDomain;
    case '3':
      return Key::ByPeer;
    default:
      return {};
  }
}

}  // namespace

void run_screen(Model& model, std::chrono::duration<double> interval,
                const std::function<view::Reading()>& read) {
  const Terminal terminal;
  const auto pause = std::chrono::duration_cast<Clock::duration>(interval);
  Clock::time_point last = Clock::now();
  model.feed(read(), 0);
  for (;;) {
    draw(model, terminal.utf8());
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(last + pause - Clock::now());
    ::timeout(static_cast<int>(std::max<std::chrono::milliseconds::rep>(left.count(), 0)));
    const int typed = ::getch();
    if (typed == 'q') return;
    if (const auto key = key_for(typed)) model.press(*key, rows_of_screen());
    const Clock::time_point now = Clock::now();
    if (now - last < pause) continue;
    model.feed(read(), std::chrono::duration<double>(now - last).count());
    last = now;
  }
}

}  // namespace uet::top
