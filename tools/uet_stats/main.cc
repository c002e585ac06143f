// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// uet_stats: prints the live pages of this user's domains. The command line and the exit status.
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "live_view/change.h"
#include "live_view/command.h"
#include "live_view/domain.h"
#include "live_view/json.h"
#include "uet_stats/report.h"

namespace {

using namespace uet;  // NOLINT(google-build-using-namespace)

struct Arguments {
  pid_t pid = 0;
  stats::Choice choice;
  bool json = false;
  bool watch = false;
  double interval = 1;
  std::uint64_t count = 0;  // 0: until the processes have ended
  std::string diff;
};

std::uint64_t realtime_ns() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(since).count());
}

void print(const std::string& text) { std::fputs(text.c_str(), stdout); }

view::Reading read(const Arguments& arguments) {
  view::Reading reading = view::read_domains(arguments.pid);
  if (!arguments.json) {
    for (const std::string& problem : reading.problems) {
      std::fprintf(stderr, "uet_stats: %s\n", problem.c_str());
    }
  }
  return reading;
}

int nothing_found(const Arguments& arguments) {
  const std::string of = arguments.pid == 0 ? "" : " of process " + std::to_string(arguments.pid);
  std::fprintf(stderr,
               "uet_stats: no live page%s: a domain of this user must be open, and its "
               "FI_UET_TUNING may not say live_statistics=no\n",
               of.c_str());
  return view::kNothingFound;
}

int show(const Arguments& arguments) {
  const view::Reading reading = read(arguments);
  if (arguments.json) {
    print(view::to_json(reading));
  } else {
    for (const view::Domain& domain : reading.domains) {
      print(stats::describe(domain, arguments.choice, realtime_ns()));
    }
  }
  if (reading.domains.empty() && !arguments.json) return nothing_found(arguments);
  return 0;
}

const view::Domain* find(const std::vector<view::Domain>& domains, const view::Domain& wanted) {
  for (const view::Domain& domain : domains) {
    if (view::same_domain(domain, wanted)) return &domain;
  }
  return nullptr;
}

// Prints the changes since `before`. A domain that it lacks is compared with zeros if `whole`.
void print_changes(const std::vector<view::Domain>& before,
                   const std::vector<view::Domain>& domains, bool whole) {
  for (const view::Domain& domain : domains) {
    const view::Domain* const earlier = find(before, domain);
    if (earlier == nullptr && !whole) {
      print(stats::title(domain, realtime_ns()) + ", new\n");
      continue;
    }
    const view::Change change =
        view::change_between(earlier != nullptr ? *earlier : view::Domain{}, domain);
    const std::string text = stats::describe(change);
    if (!text.empty()) print(stats::title(domain, realtime_ns()) + "\n" + text);
  }
  for (const view::Domain& domain : before) {
    if (find(domains, domain) == nullptr) {
      print(domain.program + " " + std::to_string(domain.pid) + ", domain " + domain.address +
            ", closed\n");
    }
  }
}

bool any_lives(const std::vector<view::Domain>& domains) {
  for (const view::Domain& domain : domains) {
    if (domain.owner != live::Owner::Gone) return true;
  }
  return false;
}

int watch(const Arguments& arguments) {
  std::vector<view::Domain> before = read(arguments).domains;
  if (before.empty()) return nothing_found(arguments);
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const std::chrono::duration<double> pause(arguments.interval);
  for (std::uint64_t i = 0; arguments.count == 0 || i < arguments.count; ++i) {
    if (!any_lives(before)) break;
    std::this_thread::sleep_for(pause);
    std::vector<view::Domain> now = read(arguments).domains;
    print_changes(before, now, false);
    before = std::move(now);
  }
  return 0;
}

std::string text_of(const std::string& file) {
  if (file == "-") return {std::istreambuf_iterator<char>(std::cin), {}};
  std::ifstream in(file);
  if (!in) throw std::runtime_error(file + ": " + std::strerror(errno));
  return {std::istreambuf_iterator<char>(in), {}};
}

int diff(const Arguments& arguments) {
  std::vector<view::Domain> before = view::from_json(text_of(arguments.diff));
  std::erase_if(before, [&](const view::Domain& domain) {
    return arguments.pid != 0 && domain.pid != arguments.pid;
  });
  print_changes(before, read(arguments).domains, true);
  return 0;
}

void add_options(CLI::App& app, Arguments& a) {
  view::add_pid(app, a.pid);
  app.add_flag("-a,--all", a.choice.all, "Also counters that are 0");
  app.add_flag("-m,--meanings", a.choice.meanings, "The meaning behind each counter");
  CLI::Option* const json = view::add_json(app, a.json, "JSON instead of text");
  CLI::Option* const watch =
      app.add_flag("-w,--watch", a.watch,
                   "Print the changes of each interval, until the processes end")
          ->excludes(json);
  view::add_interval(app, a.interval, "Seconds between two readings of --watch", 0.01, 86400)
      ->needs(watch);
  app.add_option("-n,--count", a.count, "Intervals of --watch; 0: without end")->needs(watch);
  app.add_option("-d,--diff", a.diff,
                 "Print the changes since --json wrote this file; -: standard input")
      ->excludes(json)
      ->excludes(watch);
  app.footer("Ends with 0, with 1 if there is no page to show, with 2 if used wrongly.");
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  return view::run_command(
      "uet_stats", "Prints counters and peers of the uet domains of this user while they run", argc,
      argv, [&](CLI::App& app) { add_options(app, arguments); },
      [&] {
        if (arguments.watch) return watch(arguments);
        if (!arguments.diff.empty()) return diff(arguments);
        return show(arguments);
      });
}
