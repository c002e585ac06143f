// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Which messages reach the sink.
#include "uet/base/log.h"

#include <utility>

namespace uet {

std::string_view name_of(LogLevel level) {
  switch (level) {
    case LogLevel::Warn:
      return "warn";
    case LogLevel::Info:
      return "info";
    case LogLevel::Debug:
      return "debug";
  }
  return "";
}

Log::Log(Sink sink, LogLevel most_detailed)
    : sink_(std::move(sink)), most_detailed_(most_detailed) {}

void Log::write(LogLevel level, std::string_view text) const {
  if (enabled(level)) sink_(level, text);
}

}  // namespace uet
