// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "uet_trace/sources.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>

#include "capture/capture.h"
#include "live/page_reader.h"

namespace uet::tracing {

namespace {

constexpr std::streamsize kMagicBytes = 8;  // of pages and captures

void add_page(Sources& sources, const std::string& file) {
  std::string why;
  if (auto dump = live::dump_of_page(file, why)) {
    sources.dumps.push_back(std::move(*dump));
  } else {
    sources.problems.push_back(file + ": " + why);
  }
}

void add_process(Sources& sources, const std::string& pid) {
  const auto files = live::find_pages(static_cast<pid_t>(std::stol(pid)));
  for (const std::string& file : files) add_page(sources, file);
  if (files.empty()) {
    sources.problems.push_back(
        "process " + pid +
        ": no live page: a domain of this user must be open there, and its FI_UET_TUNING may not "
        "say live_statistics=no");
  }
}

void add_capture(Sources& sources, const std::string& file) {
  Capture capture;
  std::string why;
  if (!read_capture(file, capture, why)) {
    sources.problems.push_back(file + ": " + why);
    return;
  }
  if (!capture.problem.empty()) sources.problems.push_back(file + ": " + capture.problem);
  sources.captures.push_back(std::move(capture));
}

void add_file(Sources& sources, const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) {
    sources.problems.push_back(file + ": " + std::strerror(errno));
    return;
  }
  std::string text(kMagicBytes, '\0');
  in.read(text.data(), kMagicBytes);
  text.resize(static_cast<std::size_t>(in.gcount()));
  if (text.starts_with("UETLIVE1")) return add_page(sources, file);
  if (looks_like_capture(text)) return add_capture(sources, file);
  text.append(std::istreambuf_iterator<char>(in), {});
  auto dumps = live::dumps_of_text(text);
  if (dumps.empty()) sources.problems.push_back(file + ": holds no trace, and is no capture");
  std::move(dumps.begin(), dumps.end(), std::back_inserter(sources.dumps));
}

bool is_number(const std::string& word) {
  return !word.empty() && word.size() < 10 && std::all_of(word.begin(), word.end(), [](char c) {
    return std::isdigit(static_cast<unsigned char>(c)) != 0;
  });
}

}  // namespace

Sources read_sources(const std::vector<std::string>& words) {
  Sources sources;
  if (words.empty()) {
    for (const std::string& file : live::find_pages()) add_page(sources, file);
  }
  for (const std::string& word : words) {
    if (is_number(word)) {
      add_process(sources, word);
    } else {
      add_file(sources, word);
    }
  }
  return sources;
}

}  // namespace uet::tracing
