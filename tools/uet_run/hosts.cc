// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "uet_run/hosts.h"

#include <charconv>
#include <optional>
#include <sstream>
#include <stdexcept>

namespace uet::run {
namespace {

constexpr std::uint32_t kMostSlots = 65535;

std::optional<std::uint32_t> slots_of(std::string_view text) {
  std::uint32_t slots = 0;
  const auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), slots);
  if (error != std::errc{} || at != text.data() + text.size()) return {};
  if (slots == 0 || slots > kMostSlots) return {};
  return slots;
}

bool replace(std::string& word, std::string_view mark, std::string_view value) {
  const std::size_t at = word.find(mark);
  if (at == std::string::npos) return false;
  word.replace(at, mark.size(), value);
  return true;
}

}  // namespace

std::vector<Host> parse_hosts(std::string_view text) {
  std::vector<Host> hosts;
  std::istringstream lines{std::string(text)};
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    std::istringstream words(line.substr(0, line.find('#')));
    Host host;
    if (!(words >> host.name)) continue;
    const auto complain = [&](const std::string& problem) {
      throw std::runtime_error("line " + std::to_string(number) + ": " + problem);
    };
    // "NAME:N", but not an IPv6 address, which has several colons.
    const std::size_t colon = host.name.find(':');
    if (colon != std::string::npos && host.name.rfind(':') == colon) {
      const auto slots = slots_of(std::string_view(host.name).substr(colon + 1));
      if (!slots) complain("'" + host.name + "' does not end with a number of slots");
      host.slots = *slots;
      host.name.resize(colon);
    }
    for (std::string word; words >> word;) {
      if (!word.starts_with("slots=")) complain("'" + word + "' is not slots=N");
      const auto slots = slots_of(std::string_view(word).substr(6));
      if (!slots) complain("'" + word + "' is not valid; allowed: 1 to 65535");
      host.slots = *slots;
    }
    // A name is a word of ssh's command line.
    if (host.name.starts_with('-')) complain("'" + host.name + "' is not the name of a host");
    hosts.push_back(host);
  }
  if (hosts.empty()) throw std::runtime_error("names no host");
  return hosts;
}

std::vector<std::string> place_ranks(const std::vector<Host>& hosts, std::uint32_t ranks) {
  std::vector<std::string> places;
  while (places.size() < ranks) {
    for (const Host& host : hosts) {
      for (std::uint32_t i = 0; i < host.slots && places.size() < ranks; ++i) {
        places.push_back(host.name);
      }
    }
  }
  return places;
}

std::string quoted(std::string_view word) {
  std::string text = "'";
  for (const char letter : word) {
    if (letter == '\'') {
      text += "'\\''";
    } else {
      text += letter;
    }
  }
  return text + "'";
}

std::vector<std::string> fill_launcher(std::string_view pattern, std::string_view host,
                                       std::string_view agent) {
  std::vector<std::string> words;
  bool has_host = false;
  bool has_command = false;
  std::istringstream stream{std::string(pattern)};
  for (std::string word; stream >> word;) {
    has_host = replace(word, "{host}", host) || has_host;
    has_command = replace(word, "{command}", agent) || has_command;
    words.push_back(word);
  }
  if (!has_host) words.emplace_back(host);
  if (!has_command) words.emplace_back(agent);
  return words;
}

}  // namespace uet::run
