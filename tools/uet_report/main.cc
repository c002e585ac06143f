// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// uet_report: one HTML page with plots. The command line, the sources and the exit status.
#include <algorithm>
#include <cctype>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "live/page_reader.h"
#include "live_view/command.h"
#include "live_view/domain.h"
#include "live_view/json.h"
#include "uet_report/page.h"
#include "uet_report/sections.h"
#include "uet_trace/sources.h"

namespace {

using namespace uet;  // NOLINT(google-build-using-namespace)

struct Input {
  std::vector<live::TraceDump> dumps;
  std::vector<tracing::Capture> captures;
  std::vector<view::Domain> domains;
  std::vector<report::Section> sections;  // of measurements
  std::vector<std::string> problems;
};

std::string beginning_of(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  std::string text(8, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(in.gcount()));
  return text;
}

void add_statistics(Input& input, const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  try {
    if (text.find("\"results\"") != std::string::npos) {
      for (auto& section : report::bench_sections(text)) input.sections.push_back(section);
      return;
    }
    const auto domains = view::from_json(text);
    input.domains.insert(input.domains.end(), domains.begin(), domains.end());
  } catch (const std::exception& error) {
    input.problems.push_back(file + ": " + error.what());
  }
}

void add_page_numbers(Input& input, const std::string& file) {
  std::string why;
  if (const auto snapshot = live::read_page(file, why)) {
    input.domains.push_back(view::domain_of(*snapshot));
  }
}

// A PID, or a file.
void add(Input& input, const std::string& word) {
  const bool is_process =
      !word.empty() && word.size() < 10 &&
      std::all_of(word.begin(), word.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
  const std::string begins = is_process ? "" : beginning_of(word);
  if (begins.starts_with("{")) return add_statistics(input, word);
  if (is_process) {
    for (const std::string& file : live::find_pages(static_cast<pid_t>(std::stol(word)))) {
      add_page_numbers(input, file);
    }
  } else if (begins == "UETLIVE1") {
    add_page_numbers(input, word);
  }
  tracing::Sources sources = tracing::read_sources({word});
  std::move(sources.captures.begin(), sources.captures.end(), std::back_inserter(input.captures));
  std::move(sources.dumps.begin(), sources.dumps.end(), std::back_inserter(input.dumps));
  std::move(sources.problems.begin(), sources.problems.end(), std::back_inserter(input.problems));
}

// A directory stands for its files, in the order of their names.
std::vector<std::string> files_of(const std::vector<std::string>& words) {
  std::vector<std::string> all;
  for (const std::string& word : words) {
    std::error_code error;
    if (!std::filesystem::is_directory(word, error)) {
      all.push_back(word);
      continue;
    }
    std::vector<std::string> files;
    for (const auto& entry : std::filesystem::directory_iterator(word)) {
      if (entry.is_regular_file()) files.push_back(entry.path().string());
    }
    std::sort(files.begin(), files.end());
    all.insert(all.end(), files.begin(), files.end());
  }
  return all;
}

int run(const std::vector<std::string>& words, const std::string& output) {
  Input input;
  for (const std::string& word : files_of(words)) add(input, word);
  for (const std::string& problem : input.problems) {
    std::fprintf(stderr, "uet_report: %s\n", problem.c_str());
  }
  if (input.dumps.empty() && input.domains.empty() && input.sections.empty() &&
      input.captures.empty()) {
    std::fprintf(stderr, "uet_report: no source holds statistics, a trace or packets\n");
    return view::kNothingFound;
  }
  std::vector<report::Section> sections = std::move(input.sections);
  if (!input.domains.empty()) {
    for (report::Section& section : report::domain_sections(input.domains)) {
      sections.push_back(std::move(section));
    }
  }
  for (report::Section& section : report::trace_sections(input.dumps)) {
    sections.push_back(std::move(section));
  }
  for (report::Section& section : report::capture_sections(input.captures)) {
    sections.push_back(std::move(section));
  }
  std::ofstream out(output, std::ios::binary);
  out << report::page("uet report", sections);
  if (!out.flush()) {
    std::fprintf(stderr, "uet_report: cannot write %s\n", output.c_str());
    return view::kNothingFound;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> words;
  std::string output = "uet-report.html";
  return view::run_command(
      "uet_report", "Makes one HTML page with plots out of statistics, traces and captures", argc,
      argv,
      [&](CLI::App& app) {
        app.add_option("source", words,
                       "Process (PID), live page, file with dumps, capture, JSON of uet_stats, "
                       "results.json "
                       "of scripts/bench, or a "
                       "directory of such files")
            ->required();
        app.add_option("-o,--output", output, "The page")->capture_default_str();
        app.footer("Ends with 0, with 1 if there is nothing to show, with 2 if used wrongly.");
      },
      [&] { return run(words, output); });
}
