// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Messages for people, written to a sink that the host gives. The core has no other way to speak.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

namespace uet {

enum class LogLevel : std::uint8_t { Warn, Info, Debug };

// "warn", "info" or "debug".
std::string_view name_of(LogLevel level);

class Log {
 public:
  using Sink = std::function<void(LogLevel, std::string_view)>;

  // Drops everything.
  Log() = default;
  // Passes on messages up to and including `most_detailed`. The sink is called in the thread that
  // logs, must not throw and must copy what it keeps.
  Log(Sink sink, LogLevel most_detailed);

  // Ask first where building the text costs something.
  bool enabled(LogLevel level) const { return sink_ != nullptr && level <= most_detailed_; }
  void write(LogLevel level, std::string_view text) const;
  void warn(std::string_view text) const { write(LogLevel::Warn, text); }
  void info(std::string_view text) const { write(LogLevel::Info, text); }
  void debug(std::string_view text) const { write(LogLevel::Debug, text); }

 private:
  Sink sink_;
  LogLevel most_detailed_ = LogLevel::Warn;
};

}  // namespace uet
