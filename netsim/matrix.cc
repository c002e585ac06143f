// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The text form of traffic.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>
#include <string_view>
#include <utility>

#include "netsim/traffic.h"
#include "uet/pds/api.h"

namespace uet::netsim {
namespace {

// The words of one line, and what was wrong with them.
class Line {
 public:
  Line(const std::string& text, std::size_t number) : number_(number) {
    std::size_t at = 0;
    while (at < text.size()) {
      const std::size_t begin = text.find_first_not_of(" \t\r", at);
      if (begin == std::string::npos) break;
      at = std::min(text.find_first_of(" \t\r", begin), text.size());
      words_.push_back(std::string_view(text).substr(begin, at - begin));
    }
  }

  bool done() const { return next_ >= words_.size(); }
  std::string_view word() { return done() ? std::string_view{} : words_[next_++]; }
  std::string_view peek() const { return done() ? std::string_view{} : words_[next_]; }

  // The word after `of` as a number within its limits.
  template <class Number>
  bool number(std::string_view of, Number& value, std::uint64_t least = 0,
              std::uint64_t most = UINT32_MAX) {
    const std::string_view text = word();
    std::uint64_t read = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), read);
    if (error != std::errc{} || end != text.data() + text.size() || read < least || read > most) {
      const std::string got = text.empty() ? "nothing" : "'" + std::string(text) + "'";
      return refuse("after '" + std::string(of) + "' comes a number from " + std::to_string(least) +
                    " to " + std::to_string(most) + ", not " + got);
    }
    value = static_cast<Number>(read);
    return true;
  }

  bool refuse(const std::string& why) {
    complaint_ = "line " + std::to_string(number_) + ": " + why;
    return false;
  }
  const std::string& complaint() const { return complaint_; }

 private:
  std::vector<std::string_view> words_;
  std::size_t next_ = 0;
  std::size_t number_;
  std::string complaint_;
};

struct Header {
  std::optional<std::uint64_t> connections, triggers, failures;
};

// A time with a unit, or microseconds as a decimal number.
bool read_start(Line& line, Flow& flow) {
  std::string_view text = line.word();
  const std::string_view whole = text;
  constexpr std::pair<std::string_view, double> kUnits[] = {
      {"ps", 1}, {"ns", 1e3}, {"us", 1e6}, {"ms", 1e9}};
  double unit = 1e6;
  for (const auto& [name, picoseconds] : kUnits) {
    if (!text.ends_with(name)) continue;
    unit = picoseconds;
    text.remove_suffix(name.size());
    break;
  }
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool good = error == std::errc{} && end == text.data() + text.size() && value >= 0;
  if (!good || value * unit > 1e15) {
    return line.refuse("after 'start' comes a time (microseconds, or with ps, ns, us, ms), not '" +
                       std::string(whole) + "'");
  }
  flow.start = std::llround(value * unit);
  return true;
}

bool read_flow_word(Line& line, std::string_view word, Flow& flow) {
  constexpr std::uint64_t kMostBytes = 0xFFFFF000;
  std::uint32_t ignored = 0;
  if (word == "start") return read_start(line, flow);
  if (word == "size") return line.number(word, flow.bytes, 1, kMostBytes);
  if (word == "id") return line.number(word, flow.id, 1);
  if (word == "trigger") return line.number(word, flow.trigger, 1);
  if (word == "send_done_trigger") return line.number(word, flow.sent_trigger, 1);
  if (word == "recv_done_trigger") return line.number(word, flow.received_trigger, 1);
  if (word == "prio") return line.number(word, ignored);
  if (word == "rod") return flow.rod = true;
  if (word == "class") {
    if (!line.number(word, ignored, 0, 63)) return false;
    flow.traffic_class = pds::class_of_dscp(static_cast<std::uint8_t>(ignored));
    return true;
  }
  if (word == "msg") {  // messages of one flow: each is a flow here
    const bool numbered = !line.peek().empty() && line.peek()[0] >= '0' && line.peek()[0] <= '9';
    return !numbered || line.number(word, ignored, 1);
  }
  return line.refuse("'" + std::string(word) +
                     "' is not known; a connection has id, start or trigger, size, "
                     "send_done_trigger, recv_done_trigger, msg, prio, rod, class");
}

bool read_flow(Line& line, std::string_view ends, Traffic& traffic) {
  const std::size_t arrow = ends.find("->");
  const auto host = [](std::string_view text, std::uint32_t& value) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc{} && end == text.data() + text.size();
  };
  Flow flow;
  if (!host(ends.substr(0, arrow), flow.source) || !host(ends.substr(arrow + 2), flow.destination))
    return line.refuse("'" + std::string(ends) + "' is not source->destination");
  while (!line.done()) {
    if (!read_flow_word(line, line.word(), flow)) return false;
  }
  if (flow.bytes == 0) return line.refuse("the connection has no size");
  if (!flow.start && flow.trigger == 0) {
    return line.refuse("the connection has neither start nor trigger");
  }
  if (flow.start && flow.trigger != 0) {
    return line.refuse("the connection has both start and trigger");
  }
  if (flow.source == flow.destination) {
    return line.refuse("source and destination are the same host");
  }
  if (flow.source >= traffic.nodes || flow.destination >= traffic.nodes) {
    return line.refuse("host " + std::to_string(std::max(flow.source, flow.destination)) +
                       " is not one of the " + std::to_string(traffic.nodes) +
                       " that 'Nodes' promised");
  }
  traffic.flows.push_back(flow);
  return true;
}

bool read_trigger(Line& line, Traffic& traffic) {
  Trigger trigger;
  bool kind = false;
  while (!line.done()) {
    const std::string_view word = line.word();
    if (word == "id") {
      if (!line.number(word, trigger.id, 1)) return false;
    } else if (word == "count") {
      if (!line.number(word, trigger.count, 1)) return false;
    } else if (word == "oneshot" || word == "multishot" || word == "barrier") {
      kind = true;
      trigger.repeats = word == "multishot";
    } else {
      return line.refuse("'" + std::string(word) +
                         "' is not known; a trigger has id and oneshot, multishot or barrier "
                         "with count");
    }
  }
  if (trigger.id == 0) return line.refuse("the trigger has no id");
  if (!kind) return line.refuse("the trigger is neither oneshot nor multishot nor barrier");
  traffic.triggers.push_back(trigger);
  return true;
}

bool read_failure(Line& line, Traffic& traffic) {
  MatrixFailure failure;
  while (!line.done()) {
    const std::string_view word = line.word();
    if (word == "switch_type") {
      const std::string_view kind = line.word();
      if (kind == "TOR") {
        failure.kind = MatrixFailure::Switch::Leaf;
      } else if (kind == "AGG") {
        failure.kind = MatrixFailure::Switch::Aggregation;
      } else if (kind == "CORE") {
        failure.kind = MatrixFailure::Switch::Spine;
      } else {
        return line.refuse("switch_type is TOR, AGG or CORE, not '" + std::string(kind) + "'");
      }
    } else if (word == "switch_id") {
      if (!line.number(word, failure.switch_id)) return false;
    } else if (word == "link_id") {
      if (!line.number(word, failure.link_id)) return false;
    } else {
      return line.refuse("'" + std::string(word) +
                         "' is not known; a failure has switch_type, switch_id, link_id");
    }
  }
  traffic.failures.push_back(failure);
  return true;
}

bool read_line(Line& line, Header& header, Traffic& traffic) {
  const std::string_view first = line.word();
  const auto count = [&](std::optional<std::uint64_t>& value) {
    value = 0;
    return line.number(first, *value);
  };
  if (first.empty() || first[0] == '#') return true;
  if (first == "Nodes") return line.number(first, traffic.nodes, 2, 1 << 20);
  if (first == "Connections") return count(header.connections);
  if (first == "Triggers") return count(header.triggers);
  if (first == "Failures") return count(header.failures);
  if (traffic.nodes == 0) return line.refuse("'Nodes' with the number of hosts comes first");
  if (first == "trigger") return read_trigger(line, traffic);
  if (first == "failure") return read_failure(line, traffic);
  if (first.find("->") != std::string_view::npos) return read_flow(line, first, traffic);
  return line.refuse("'" + std::string(first) +
                     "' is neither a connection (0->1 ...) nor Nodes, Connections, Triggers, "
                     "Failures, trigger, failure");
}

bool agrees(const std::optional<std::uint64_t>& promised, std::size_t found, const char* what,
            std::string& complaint) {
  if (!promised || *promised == found) return true;
  complaint = std::string("the file promises ") + std::to_string(*promised) + " " + what +
              " and has " + std::to_string(found);
  return false;
}

// Picoseconds as microseconds, to the last digit: "3", "1.5".
std::string text_in_us(Picoseconds picoseconds) {
  std::string text = std::to_string(picoseconds / 1'000'000);
  if (picoseconds % 1'000'000 == 0) return text;
  text += "." + std::to_string(1'000'000 + picoseconds % 1'000'000).substr(1);
  text.resize(text.find_last_not_of('0') + 1);
  return text;
}

}  // namespace

std::optional<Traffic> read_matrix(std::istream& in, std::string& complaint) {
  Traffic traffic;
  Header header;
  std::size_t number = 0;
  for (std::string text; std::getline(in, text);) {
    Line line(text, ++number);
    if (!read_line(line, header, traffic)) {
      complaint = line.complaint();
      return std::nullopt;
    }
  }
  if (traffic.nodes == 0) complaint = "the file has no line 'Nodes'";
  if (traffic.nodes == 0) return std::nullopt;
  if (!agrees(header.connections, traffic.flows.size(), "connections", complaint) ||
      !agrees(header.triggers, traffic.triggers.size(), "triggers", complaint) ||
      !agrees(header.failures, traffic.failures.size(), "failures", complaint)) {
    return std::nullopt;
  }
  complaint = complaint_about(traffic);
  if (!complaint.empty()) return std::nullopt;
  return traffic;
}

void write_matrix(const Traffic& traffic, std::ostream& out) {
  out << "Nodes " << traffic.nodes << "\nConnections " << traffic.flows.size() << "\n";
  if (!traffic.triggers.empty()) out << "Triggers " << traffic.triggers.size() << "\n";
  for (const Flow& flow : traffic.flows) {
    out << flow.source << "->" << flow.destination;
    if (flow.id != 0) out << " id " << flow.id;
    if (flow.start) out << " start " << text_in_us(*flow.start);
    if (flow.trigger != 0) out << " trigger " << flow.trigger;
    out << " size " << flow.bytes;
    if (flow.sent_trigger != 0) out << " send_done_trigger " << flow.sent_trigger;
    if (flow.received_trigger != 0) out << " recv_done_trigger " << flow.received_trigger;
    if (flow.rod) out << " rod";
    if (flow.traffic_class != 0) out << " class " << (flow.traffic_class & 0x3F);
    out << "\n";
  }
  for (const Trigger& trigger : traffic.triggers) {
    out << "trigger id " << trigger.id;
    if (trigger.count > 1) {
      out << " barrier count " << trigger.count << "\n";
    } else {
      out << (trigger.repeats ? " multishot\n" : " oneshot\n");
    }
  }
}

std::string complaint_about(const Traffic& traffic) {
  if (traffic.flows.empty()) return "there is no connection";
  std::set<std::uint32_t> known, told;
  for (const Trigger& trigger : traffic.triggers) {
    if (!known.insert(trigger.id).second) {
      return "trigger " + std::to_string(trigger.id) + " is defined twice";
    }
  }
  for (const Flow& flow : traffic.flows) {
    told.insert({flow.sent_trigger, flow.received_trigger});
  }
  for (const Flow& flow : traffic.flows) {
    for (const std::uint32_t id : {flow.trigger, flow.sent_trigger, flow.received_trigger}) {
      if (id != 0 && !known.contains(id)) {
        return "trigger " + std::to_string(id) + " is used and not defined";
      }
    }
    if (flow.trigger != 0 && !told.contains(flow.trigger)) {
      return "trigger " + std::to_string(flow.trigger) +
             " starts a connection, and no connection "
             "tells it";
    }
  }
  return {};
}

}  // namespace uet::netsim
