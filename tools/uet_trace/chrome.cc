// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "uet_trace/chrome.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

namespace uet::tracing {

namespace {

using nlohmann::ordered_json;
using trace::Kind;

double microseconds(std::int64_t ns) { return static_cast<double>(ns) / 1000.0; }

ordered_json packet_json(const Event& event, std::int64_t begin_ns, std::size_t traces) {
  const CapturedPacket& packet = *event.packet;
  const std::string what =
      packet.source + " > " + packet.destination + " " + packet.words + event.note;
  return {{"name", "captured"},
          {"cat", "uet"},
          {"ph", "i"},
          {"ts", microseconds(event.realtime_ns - begin_ns)},
          {"pid", traces + event.dump},
          {"tid", packet.pdc},
          {"s", "t"},
          {"args", {{"what", what}}}};
}

ordered_json to_json(const Event& event, std::int64_t begin_ns) {
  const trace::Record& record = event.record;
  ordered_json out{{"name", live::name_of(record.kind)},
                   {"cat", "uet"},
                   {"ph", "i"},
                   {"ts", microseconds(event.realtime_ns - begin_ns)},
                   {"pid", event.dump},
                   {"tid", record.pdc},
                   {"s", "t"},
                   {"args", {{"what", describe(record) + event.note}}}};
  if (record.kind == Kind::Waited || record.kind == Kind::NotPolled) {
    out["ph"] = "X";
    out["dur"] = static_cast<double>(record.a) / 1000.0;
    out["ts"] = microseconds(event.realtime_ns - begin_ns) - out["dur"].get<double>();
    out.erase("s");
  }
  if (record.kind == Kind::Posted || record.kind == Kind::Ended) {
    out["ph"] = record.kind == Kind::Posted ? "b" : "e";
    out["name"] = "message " + std::to_string(record.psn);
    out["id"] = record.psn;
    out.erase("s");
  }
  return out;
}

}  // namespace

std::string to_chrome(std::span<const Event> events, std::span<const live::TraceDump> dumps,
                      std::span<const Capture> captures) {
  const std::int64_t begin_ns = events.empty() ? 0 : events.front().realtime_ns;
  std::vector<ordered_json> all;
  for (std::size_t i = 0; i < dumps.size(); ++i) {
    const std::string name =
        dumps[i].program + " " + std::to_string(dumps[i].pid) + ", " + dumps[i].address;
    all.push_back({{"name", "process_name"}, {"ph", "M"}, {"pid", i}, {"args", {{"name", name}}}});
    for (const auto& [pdc, peer] : peers_of(dumps[i])) {
      all.push_back({{"name", "thread_name"},
                     {"ph", "M"},
                     {"pid", i},
                     {"tid", pdc},
                     {"args", {{"name", "PDC " + hex(pdc) + " to " + peer}}}});
    }
  }
  for (std::size_t i = 0; i < captures.size(); ++i) {
    all.push_back({{"name", "process_name"},
                   {"ph", "M"},
                   {"pid", dumps.size() + i},
                   {"args", {{"name", "capture " + captures[i].file}}}});
  }
  for (const Event& event : events) {
    all.push_back(event.packet != nullptr ? packet_json(event, begin_ns, dumps.size())
                                          : to_json(event, begin_ns));
  }
  const ordered_json whole{{"displayTimeUnit", "ns"}, {"traceEvents", all}};
  return whole.dump() + "\n";
}

}  // namespace uet::tracing
