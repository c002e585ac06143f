// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// uet_trace: what the domains of this user did last, and why their operations do not end. The
// command line and the exit status.
#include <cstdio>
#include <string>
#include <vector>

#include "live/trace_dump.h"
#include "live_view/command.h"
#include "uet_trace/chrome.h"
#include "uet_trace/events.h"
#include "uet_trace/sources.h"
#include "uet_trace/why.h"

namespace {

using namespace uet;  // NOLINT(google-build-using-namespace)

struct Arguments {
  std::vector<std::string> sources;
  bool why = false;
  bool chrome = false;
  bool save = false;
  std::size_t last = 0;
};

void add_options(CLI::App& app, Arguments& a) {
  app.add_option("source", a.sources,
                 "Process (PID), live page, file with dumps or capture (pcap, pcapng); several are "
                 "merged by time. None: all processes of this user");
  CLI::Option* const why =
      app.add_flag("-w,--why", a.why, "Say for each outstanding operation why it does not end");
  CLI::Option* const chrome =
      app.add_flag("-c,--chrome", a.chrome, "JSON for ui.perfetto.dev and chrome://tracing")
          ->excludes(why);
  app.add_flag("-s,--save", a.save,
               "The traces as a file that uet_trace reads, on another host too")
      ->excludes(why)
      ->excludes(chrome);
  app.add_option("-n,--last", a.last, "Only the newest events; 0: all")
      ->excludes(why)
      ->capture_default_str();
  app.footer("Ends with 0, with 1 if there is no trace to show, with 2 if used wrongly.");
}

void print(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stdout); }

void explain_all(const std::vector<live::TraceDump>& dumps) {
  std::vector<live::TraceDump> neighbours = tracing::read_sources({}).dumps;
  neighbours.insert(neighbours.begin(), dumps.begin(), dumps.end());
  for (const live::TraceDump& dump : dumps) print(tracing::explain(dump, neighbours));
}

void print_events(const tracing::Sources& sources, const Arguments& arguments) {
  const std::vector<live::TraceDump>& dumps = sources.dumps;
  std::vector<tracing::Event> events = tracing::merge(dumps, sources.captures);
  if (arguments.last != 0 && events.size() > arguments.last) {
    events.erase(events.begin(), events.end() - static_cast<std::ptrdiff_t>(arguments.last));
  }
  if (arguments.chrome) return print(tracing::to_chrome(events, dumps, sources.captures));
  std::vector<tracing::Peers> peers;
  peers.reserve(dumps.size());
  for (const live::TraceDump& dump : dumps) peers.push_back(tracing::peers_of(dump));
  for (const tracing::Event& event : events) {
    print((event.packet != nullptr
               ? tracing::line_of(event, sources.captures[event.dump])
               : tracing::line_of(event, dumps[event.dump], peers[event.dump])) +
          "\n");
  }
}

int run(const Arguments& arguments) {
  const tracing::Sources sources = tracing::read_sources(arguments.sources);
  for (const std::string& problem : sources.problems) {
    std::fprintf(stderr, "uet_trace: %s\n", problem.c_str());
  }
  const bool needs_trace = arguments.why || arguments.save;
  if (sources.dumps.empty() && (needs_trace || sources.captures.empty())) {
    if (!sources.captures.empty()) {
      std::fprintf(stderr,
                   "uet_trace: a capture alone is no trace: name a process or a dump, too\n");
    } else if (sources.problems.empty()) {
      std::fprintf(stderr, "uet_trace: no domain of this user is open\n");
    }
    return view::kNothingFound;
  }
  if (arguments.why) {
    explain_all(sources.dumps);
  } else if (arguments.save) {
    for (const live::TraceDump& dump : sources.dumps) print(live::to_text(dump));
  } else {
    print_events(sources, arguments);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  return view::run_command(
      "uet_trace",
      "Shows the newest events of the uet domains of this user, and why operations do not end",
      argc, argv, [&](CLI::App& app) { add_options(app, arguments); },
      [&] { return run(arguments); });
}
