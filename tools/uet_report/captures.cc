// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Plots of captures: what the packets of each direction between two hosts say.
#include <map>
#include <tuple>

#include "uet_report/sections.h"
#include "uet_report/svg.h"

namespace uet::report {

namespace {

using tracing::Capture;
using tracing::CapturedPacket;

// Requests of one host to one destination.
struct Flow {
  Series rtt{"RTT", false, {}};
  Series again{"retransmitted packets", true, {}};
  Series marks{"ECN marks", true, {}};
  std::vector<std::pair<double, double>> acknowledged;  // second, bytes
};

struct Request {
  std::int64_t time_ns = 0;
  std::size_t bytes = 0;
  bool again = false;
};

// "10.0.0.1" of "10.0.0.1:4793".
std::string ip_of(const std::string& address) { return address.substr(0, address.rfind(':')); }

class Reader {
 public:
  void take(const CapturedPacket& packet, double second) {
    if (packet.request) return request(packet, second);
    if (packet.ack) acknowledge(packet, second);
  }
  const std::map<std::pair<std::string, std::string>, Flow>& flows() const { return flows_; }

 private:
  struct Pdc {
    std::string destination;
    std::map<std::uint32_t, Request> unanswered;  // by PSN
  };

  void request(const CapturedPacket& packet, double second) {
    Pdc& pdc = pdcs_[{packet.source, ip_of(packet.destination), packet.pdc}];
    pdc.destination = packet.destination;
    Flow& flow = flows_[{packet.source, packet.destination}];
    const auto [place, first] = pdc.unanswered.try_emplace(
        packet.psn, Request{packet.realtime_ns, packet.bytes, packet.again});
    if (first && !packet.again) return;
    place->second.again = true;
    flow.again.points.emplace_back(second, flow.again.points.size() + 1);
  }
  void acknowledge(const CapturedPacket& packet, double second) {
    const auto found = pdcs_.find({ip_of(packet.destination), packet.source, packet.acked_pdc});
    if (found == pdcs_.end()) return;
    Pdc& pdc = found->second;
    Flow& flow = flows_[{ip_of(packet.destination), pdc.destination}];
    if (packet.marked) flow.marks.points.emplace_back(second, flow.marks.points.size() + 1);
    // The answer to a packet that was sent twice may be to either.
    const auto answered = pdc.unanswered.find(packet.acked_psn);
    if (answered != pdc.unanswered.end() && !answered->second.again) {
      flow.rtt.points.emplace_back(
          second, static_cast<double>(packet.realtime_ns - answered->second.time_ns) / 1000);
    }
    std::erase_if(pdc.unanswered, [&](const auto& entry) {
      if (static_cast<std::int32_t>(packet.cack - entry.first) < 0) return false;
      flow.acknowledged.emplace_back(second, entry.second.bytes);
      return true;
    });
  }

  std::map<std::tuple<std::string, std::string, std::uint16_t>, Pdc> pdcs_;
  std::map<std::pair<std::string, std::string>, Flow> flows_;
};

}  // namespace

std::vector<Section> capture_sections(const std::vector<Capture>& captures) {
  std::vector<Section> sections;
  for (const Capture& capture : captures) {
    if (capture.packets.empty()) continue;
    const std::int64_t begin = capture.packets.front().realtime_ns;
    Reader reader;
    double end = 0;
    for (const CapturedPacket& packet : capture.packets) {
      end = static_cast<double>(packet.realtime_ns - begin) / 1e9;
      reader.take(packet, end);
    }
    for (const auto& [hosts, flow] : reader.flows()) {
      sections.push_back(
          {capture.file + ": " + hosts.first + " to " + hosts.second,
           {line_chart({"Round trip time", "seconds", "us", end}, {flow.rtt}),
            line_chart({"Goodput", "seconds", "Gb/s", end}, {goodput_of(flow.acknowledged)}),
            line_chart(
                {"Retransmissions and marks", "seconds", "count since the first packet", end},
                {flow.again, flow.marks})}});
    }
  }
  return sections;
}

}  // namespace uet::report
