// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// uet_top: processes, domains and peers of this user on a terminal. The command line.
#include <chrono>
#include <cstdio>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>

#include "live_view/command.h"
#include "live_view/domain.h"
#include "uet_top/model.h"
#include "uet_top/screen.h"
#include "uet_top/text.h"

namespace {

using namespace uet;  // NOLINT(google-build-using-namespace)

struct Arguments {
  pid_t pid = 0;
  top::Key by = top::Key::ByProcess;
  std::string sort;
  double interval = 1;
  bool reverse = false;
  bool once = false;
  bool json = false;
};

void add_options(CLI::App& app, Arguments& a) {
  static const std::map<std::string, top::Key> kTables{{"processes", top::Key::ByProcess},
                                                       {"domains", top::Key::ByDomain},
                                                       {"peers", top::Key::ByPeer}};
  view::add_pid(app, a.pid);
  app.add_option("-b,--by", a.by, "Table to begin with: processes, domains or peers")
      ->transform(CLI::Transformer(kTables));
  app.add_option("-s,--sort", a.sort, "Heading of the column to sort by");
  app.add_flag("-r,--reverse", a.reverse, "The smallest first");
  view::add_interval(app, a.interval, "Seconds between two readings", 0.05, 3600);
  app.add_flag("-1,--once", a.once, "Print the table of one interval, and end");
  view::add_json(app, a.json, "The same as JSON");
}

// Throws if there is no such column.
void arrange(top::Model& model, const Arguments& arguments) {
  model.press(arguments.by, 0);
  if (arguments.reverse) model.press(top::Key::Reverse, 0);
  if (arguments.sort.empty() || model.sort_by(arguments.sort)) return;
  std::string names;
  for (const top::Heading& heading : model.table().headings) names += " " + heading.name;
  throw std::runtime_error("no column " + arguments.sort + "; there are" + names);
}

void print_once(top::Model& model, const Arguments& arguments) {
  const std::chrono::duration<double> pause(arguments.interval);
  model.feed(view::read_domains(arguments.pid), 0);
  arrange(model, arguments);
  std::this_thread::sleep_for(pause);
  model.feed(view::read_domains(arguments.pid), arguments.interval);
  const std::string text =
      arguments.json ? top::to_json(model.table()) : top::to_text(model.table());
  std::fputs(text.c_str(), stdout);
  for (const std::string& problem : model.problems()) {
    std::fprintf(stderr, "uet_top: %s\n", problem.c_str());
  }
}

void run(const Arguments& arguments) {
  top::Model model;
  if (arguments.once || arguments.json) return print_once(model, arguments);
  arrange(model, arguments);
  top::run_screen(model, std::chrono::duration<double>(arguments.interval),
                  [&] { return view::read_domains(arguments.pid); });
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  return view::run_command(
      "uet_top", "Shows the processes, domains and peers of this user that use uet", argc, argv,
      [&](CLI::App& app) { add_options(app, arguments); },
      [&] {
        run(arguments);
        return 0;
      });
}
