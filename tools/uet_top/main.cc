// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// uet_top: processes, domains and peers of this user on a terminal. The command line.
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>

#include "live_view/domain.h"
#include "uet_top/model.h"
#include "uet_top/screen.h"
#include "uet_top/text.h"

namespace {

using namespace uet;  // NOLINT(google-build-using-namespace)

constexpr int kUsedWrongly = 2;

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
  app.add_option("pid", a.pid, "Process; without it all processes of this user")
      ->check(CLI::PositiveNumber);
  app.add_option("-b,--by", a.by, "Table to begin with: processes, domains or peers")
      ->transform(CLI::Transformer(kTables));
  app.add_option("-s,--sort", a.sort, "Heading of the column to sort by");
  app.add_flag("-r,--reverse", a.reverse, "The smallest first");
  app.add_option("-i,--interval", a.interval, "Seconds between two readings")
      ->check(CLI::Range(0.05, 3600.0))
      ->capture_default_str();
  app.add_flag("-1,--once", a.once, "Print the table of one interval, and end");
  app.add_flag("-j,--json", a.json, "The same as JSON");
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

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Shows the processes, domains and peers of this user that use uet", "uet_top");
  Arguments arguments;
  try {
    add_options(app, arguments);
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kUsedWrongly;
  }
  try {
    top::Model model;
    if (arguments.once || arguments.json) {
      print_once(model, arguments);
      return 0;
    }
    arrange(model, arguments);
    top::run_screen(model, std::chrono::duration<double>(arguments.interval),
                    [&] { return view::read_domains(arguments.pid); });
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "uet_top: %s\n", error.what());
    return kUsedWrongly;
  }
}
