// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Plots of the events of a trace.
#include <algorithm>
#include <map>

#include "uet_report/sections.h"
#include "uet_report/svg.h"
#include "uet_trace/events.h"

namespace uet::report {

namespace {

using trace::Kind;
using trace::Record;
using tracing::Event;

constexpr int kPeriods = 50;  // of goodput

// The numbers that a trace holds for one peer.
struct PeerCurves {
  Series window{"congestion window", false, {}};
  Series in_flight{"in flight", false, {}};
  Series rtt{"RTT", false, {}};
  Series losses{"lost packets", true, {}};
  Series marks{"ECN marks", true, {}};
  std::vector<std::pair<double, double>> answered;  // second, bytes
};

struct Sent {
  std::int64_t time_ns = 0;
  std::uint32_t packets = 1;
  std::uint64_t bytes = 0;
  bool again = false;
};
// The packets of a PDC that the peer has not acknowledged yet, by their first PSN.
using Unanswered = std::map<std::uint32_t, Sent>;

class Curves {
 public:
  void add(const Record& record, std::int64_t time_ns, PeerCurves& peer, Unanswered& unanswered,
           double second) {
    if (record.kind == Kind::Sent) {
      Sent& sent = unanswered[record.psn];
      if ((record.detail & 1) != 0) {
        sent.again = true;
        return;
      }
      sent = {.time_ns = time_ns,
              .packets = std::max<std::uint32_t>(1, static_cast<std::uint32_t>(record.a >> 32)),
              .bytes = record.a & 0xFFFFFFFF,
              .again = false};
    } else if (record.kind == Kind::Lost) {
      peer.losses.points.emplace_back(second, peer.losses.points.size() + 1);
    } else if (record.kind == Kind::AckReceived) {
      peer.window.points.emplace_back(second, record.a >> 32);
      peer.in_flight.points.emplace_back(second, record.a & 0xFFFFFFFF);
      if (record.detail != 0) {
        peer.marks.points.emplace_back(second, peer.marks.points.size() + 1);
      }
      answered(record.psn, time_ns, peer, unanswered, second);
    }
  }

 private:
  static void answered(std::uint32_t cack, std::int64_t time_ns, PeerCurves& peer,
                       Unanswered& unanswered, double second) {
    std::erase_if(unanswered, [&](const auto& entry) {
      const Sent& sent = entry.second;
      const std::uint32_t last = entry.first + sent.packets - 1;
      if (static_cast<std::int32_t>(cack - last) < 0) return false;
      peer.answered.emplace_back(second, sent.bytes);
      if (cack == last && !sent.again && sent.time_ns != 0) {
        peer.rtt.points.emplace_back(second, static_cast<double>(time_ns - sent.time_ns) / 1000.0);
      }
      return true;
    });
  }
};

// How long operations took, in powers of two.
std::string latency_of(const live::TraceDump& dump) {
  std::map<std::uint32_t, std::int64_t> posted;
  std::map<int, std::uint64_t> counts;  // by power of two, in us
  for (const Record& record : dump.records) {
    if (record.kind == Kind::Posted) posted[record.psn] = record.time_ns;
    const auto begin = posted.find(record.psn);
    if (record.kind != Kind::Ended || begin == posted.end()) continue;
    int power = 0;
    while ((record.time_ns - begin->second) / 1000 >= std::int64_t{1} << power) ++power;
    ++counts[power];
    posted.erase(begin);
  }
  std::vector<Bar> bars;
  for (int power = counts.empty() ? 0 : counts.begin()->first;
       !counts.empty() && power <= counts.rbegin()->first; ++power) {
    bars.push_back({"<" + short_number(static_cast<double>(std::int64_t{1} << power)),
                    static_cast<double>(counts[power])});
  }
  return bar_chart({"Latency of operations", "us from post to completion", "operations"}, bars);
}

}  // namespace

Series goodput_of(const std::vector<std::pair<double, double>>& acknowledged) {
  Series out{"goodput", false, {}};
  if (acknowledged.empty()) return out;
  const double begin = acknowledged.front().first;
  const double length = acknowledged.back().first - begin;
  if (length <= 0) return out;
  std::vector<double> bytes(kPeriods);
  for (const auto& [second, count] : acknowledged) {
    const auto period = static_cast<std::size_t>((second - begin) / length * kPeriods);
    bytes[std::min<std::size_t>(period, kPeriods - 1)] += count;
  }
  for (int i = 0; i < kPeriods; ++i) {
    out.points.emplace_back(begin + length * (i + 0.5) / kPeriods,
                            bytes[static_cast<std::size_t>(i)] * 8e-9 / (length / kPeriods));
  }
  return out;
}

std::vector<Section> trace_sections(const std::vector<live::TraceDump>& dumps) {
  const std::vector<Event> events = tracing::merge(dumps);
  std::vector<std::map<std::string, PeerCurves>> curves(dumps.size());
  std::map<std::pair<std::size_t, std::uint16_t>, Unanswered> unanswered;
  std::vector<tracing::Peers> peers;
  peers.reserve(dumps.size());
  for (const live::TraceDump& dump : dumps) peers.push_back(tracing::peers_of(dump));
  Curves reader;
  for (const Event& event : events) {
    const auto peer = peers[event.dump].find(event.record.pdc);
    if (peer == peers[event.dump].end()) continue;
    const double second = static_cast<double>(event.realtime_ns - events[0].realtime_ns) / 1e9;
    reader.add(event.record, event.realtime_ns, curves[event.dump][peer->second],
               unanswered[{event.dump, event.record.pdc}], second);
  }
  const double end =
      events.empty() ? 0
                     : static_cast<double>(events.back().realtime_ns - events[0].realtime_ns) / 1e9;
  std::vector<Section> sections;
  for (std::size_t i = 0; i < dumps.size(); ++i) {
    const std::string who =
        dumps[i].program + " " + std::to_string(dumps[i].pid) + ", " + dumps[i].address;
    sections.push_back({who + ": operations", {latency_of(dumps[i])}});
    for (const auto& [name, peer] : curves[i]) {
      sections.push_back(
          {who + " to " + name,
           {line_chart({"Congestion window", "seconds", "bytes", end},
                       {peer.window, peer.in_flight}),
            line_chart({"Round trip time", "seconds", "us", end}, {peer.rtt}),
            line_chart({"Goodput", "seconds", "Gb/s", end}, {goodput_of(peer.answered)}),
            line_chart({"Losses and marks", "seconds", "count since the first event", end},
                       {peer.losses, peer.marks})}});
    }
  }
  return sections;
}

}  // namespace uet::report
