// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "netsim/sweep_journal.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

namespace uet::netsim {
namespace {

// FNV-1a, 64 bits.
class Print {
 public:
  void add(std::string_view bytes) {
    add_part(bytes);
    add_byte(0);
  }
  // A piece of a long text; add({}) ends it.
  void add_part(std::string_view bytes) {
    for (const char byte : bytes) add_byte(static_cast<unsigned char>(byte));
  }
  std::string text() const {
    std::array<char, 17> digits{};
    std::snprintf(digits.data(), digits.size(), "%016llx", static_cast<unsigned long long>(hash_));
    return digits.data();
  }

 private:
  void add_byte(unsigned char byte) { hash_ = (hash_ ^ byte) * 0x100000001B3ULL; }

  std::uint64_t hash_ = 0xCBF29CE484222325ULL;
};

// Of a sweep that was killed, a process that was just being started has the file for a moment.
bool lock(int file) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::seconds(1);
  while (::flock(file, LOCK_EX | LOCK_NB) != 0) {
    if (Clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return true;
}

}  // namespace

std::string file_print(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return {};
  std::ifstream file(path, std::ios::binary);
  if (!file) return {};
  Print print;
  std::array<char, 65536> block{};
  while (file.read(block.data(), block.size()) || file.gcount() > 0) {
    print.add_part({block.data(), static_cast<std::size_t>(file.gcount())});
  }
  print.add({});
  return print.text();
}

std::string case_print(const SweepCase& one, const std::string& program_print) {
  Print print;
  print.add(program_print);
  for (const std::string& option : one.options) {
    print.add(option);
    const bool has_value = option.starts_with('-') && option.find('=') != std::string::npos;
    std::string path = has_value ? option.substr(option.find('=') + 1) : option;
    if (path.starts_with('@')) path.erase(0, 1);  // --tune @FILE
    print.add(file_print(path));
  }
  return print.text();
}

SweepJournal::SweepJournal(const std::string& path) : path_(path) {
  file_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (file_ < 0) {
    complaint_ = path + ": " + std::strerror(errno) + "; name a file for it with --sweep-journal";
  } else if (!lock(file_)) {
    complaint_ = path + ": another uet-sim runs this sweep; wait for it or end it";
  } else {
    read();
  }
}

SweepJournal::~SweepJournal() {
  if (file_ >= 0) ::close(file_);
}

void SweepJournal::read() {
  std::ifstream in(path_);
  off_t whole = 0;
  std::size_t number = 0;
  for (std::string line; std::getline(in, line) && !in.eof();) {
    ++number;
    const auto json = nlohmann::ordered_json::parse(line, nullptr, false);
    if (!json.is_object() || !json.contains("case")) {
      complaint_ = path_ + ": line " + std::to_string(number) +
                   ": not written by uet-sim --sweep; remove the file to run all cases again";
      return;
    }
    whole += static_cast<off_t>(line.size()) + 1;
    if (!json.contains("results")) continue;  // killed, or out of memory
    entries_[json.value("case", "")] = Entry{.print = json.value("print", ""),
                                             .result = {.status = json.value("status", 0),
                                                        .results = json["results"].dump(),
                                                        .message = json.value("message", "")}};
  }
  if (::ftruncate(file_, whole) != 0) complaint_ = path_ + ": " + std::strerror(errno);
}

const CaseResult* SweepJournal::find(const std::string& name, const std::string& print) const {
  const auto found = entries_.find(name);
  return found != entries_.end() && found->second.print == print ? &found->second.result : nullptr;
}

bool SweepJournal::add(const std::string& name, const std::string& print,
                       const CaseResult& result) {
  nlohmann::ordered_json json = {{"case", name}, {"print", print}, {"status", result.status}};
  if (!result.message.empty()) json["message"] = result.message;
  if (!result.results.empty()) json["results"] = nlohmann::ordered_json::parse(result.results);
  const std::string line =
      json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  entries_[name] = Entry{.print = print, .result = result};
  return ::write(file_, line.data(), line.size()) == static_cast<ssize_t>(line.size()) &&
         ::fdatasync(file_) == 0;
}

}  // namespace uet::netsim
