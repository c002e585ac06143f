// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Counting at the end of a run.
#include "netsim/results.h"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

namespace uet::netsim {
namespace {

// Jain's index of sums.
double fairness(double count, double sum, double square) {
  return square > 0 ? sum * sum / (count * square) : 0;
}

// Flows from one host to another in one class share a context; an ordered one has its own (CMS-2).
void count_contexts(const Outcome& outcome, Results& results) {
  struct Context {
    Picoseconds first = kPsNever, last = 0;
    double bytes = 0;
  };
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint8_t, bool>, Context> contexts;
  for (std::size_t i = 0; i < outcome.flows.size(); ++i) {
    const FlowRecord& record = outcome.flows[i];
    const Flow& flow = outcome.traffic->flows[i];
    if (record.finished == kPsNever) continue;
    Context& context = contexts[{flow.source, flow.destination, flow.traffic_class, flow.rod}];
    context.first = std::min(context.first, record.started);
    context.last = std::max(context.last, record.finished);
    context.bytes += static_cast<double>(flow.bytes);
  }
  double sum = 0, square = 0;
  for (const auto& [key, context] : contexts) {
    const double rate = context.bytes / microseconds(context.last - context.first);
    sum += rate;
    square += rate * rate;
  }
  results.context_jain = fairness(static_cast<double>(contexts.size()), sum, square);
}

double rounded(double value) { return std::round(value * 1000) / 1000; }

void count_flows(const Outcome& outcome, Results& results) {
  std::vector<double> times;
  double sum = 0, square = 0, bytes = 0;
  Picoseconds first = kPsNever, last = 0;
  for (std::size_t i = 0; i < outcome.flows.size(); ++i) {
    const FlowRecord& record = outcome.flows[i];
    if (record.started != kPsNever) first = std::min(first, record.started);
    if (record.finished == kPsNever) continue;
    last = std::max(last, record.finished);
    const double fct_us = microseconds(record.finished - record.started);
    const double rate = static_cast<double>(outcome.traffic->flows[i].bytes) * 8e-3 / fct_us;
    times.push_back(fct_us);
    sum += rate;
    square += rate * rate;
    bytes += static_cast<double>(outcome.traffic->flows[i].bytes);
  }
  results.flows = outcome.flows.size();
  results.finished = times.size();
  if (times.empty()) return;
  std::sort(times.begin(), times.end());
  const auto count = static_cast<double>(times.size());
  double total_us = 0;
  for (const double time : times) total_us += time;
  const auto rank = static_cast<std::size_t>(std::ceil(0.99 * count)) - 1;
  results.fct = FctResult{
      .min = times.front(), .mean = total_us / count, .p99 = times[rank], .worst = times.back()};
  results.makespan_us = microseconds(last - first);
  results.jain = fairness(count, sum, square);
  results.goodput_gbps = bytes * 8e-3 / results.makespan_us;
  results.flow_goodput_gbps = sum / count;
}

void count_ports(const PortsOutcome& ports, Results& results) {
  results.trims = ports.trims;
  results.marks = ports.marks;
  results.data_drops = ports.data_drops;
  results.control_drops = ports.control_drops;
  results.lost = ports.lost;
  results.unroutable = ports.unroutable;
  results.spoilt = ports.spoilt;
  results.switch_queue = ports.switch_queue;
  results.last_hop_queue = ports.last_hop_queue;
  results.control_share =
      ports.bytes > 0 ? static_cast<double>(ports.control_bytes) / static_cast<double>(ports.bytes)
                      : 0;
}

void count_hosts(const Outcome& outcome, Results& results) {
  for (const HostOutcome& host : outcome.hosts) {
    results.pend_sent += host.pend_sent;
    results.restores_sent += host.restores_sent;
    results.blocked_by_window_ns += host.blocked_by_window_ns;
    results.blocked_by_credit_ns += host.blocked_by_credit_ns;
    results.receive_drops += host.receive_drops;
    results.most_unread_bytes = std::max(results.most_unread_bytes, host.most_unread_bytes);
    if (host.receive_drops > 0) {
      results.last_receive_drop_us = std::max(results.last_receive_drop_us,
                                              microseconds(host.last_receive_drop - outcome.begin));
    }
    results.data_packets += host.requests_sent;
    results.rto_retransmissions += host.rto_retransmissions;
    results.nack_retransmissions += host.nack_retransmissions;
    results.inferred_retransmissions += host.inferred_retransmissions;
    results.duplicates += host.duplicates;
    results.acks += host.acks_sent;
    results.pdcs += host.pdcs;
  }
  results.retransmissions =
      results.rto_retransmissions + results.nack_retransmissions + results.inferred_retransmissions;
}

nlohmann::ordered_json as_json(const QueueResult& queue) {
  return {{"max", rounded(queue.max)}, {"mean", rounded(queue.mean)}};
}

}  // namespace

Results results_of(const Outcome& outcome, double wall_s, std::uint64_t idle_memory_bytes) {
  Results results;
  count_flows(outcome, results);
  count_contexts(outcome, results);
  count_ports(outcome.ports, results);
  count_hosts(outcome, results);
  results.cms = outcome.cms;
  results.dead_share = outcome.meter.dead_share();
  results.interval_gbps = outcome.meter.gbps();
  results.last_dead_us = microseconds(outcome.meter.last_swallowed());
  results.events = outcome.events;
  results.simulated_us = outcome.simulated_us();
  results.wall_s = wall_s;
  results.memory_bytes = outcome.memory_bytes;
  if (results.pdcs > 0 && results.memory_bytes > idle_memory_bytes) {
    results.bytes_per_pdc = static_cast<double>(results.memory_bytes - idle_memory_bytes) /
                            static_cast<double>(results.pdcs);
  }
  for (const Violation& violation : outcome.violations) {
    results.violations.push_back("at " +
                                 std::to_string(microseconds(violation.at - outcome.begin)) +
                                 " us: " + violation.text);
  }
  return results;
}

void print_text(const Results& r, std::ostream& out) {
  out << std::fixed << std::setprecision(3);
  out << "flows            " << r.finished << " of " << r.flows << " done\n"
      << "FCT us           min " << r.fct.min << "  mean " << r.fct.mean << "  p99 " << r.fct.p99
      << "  worst " << r.fct.worst << "\n"
      << "goodput Gb/s     " << r.goodput_gbps << " in all, " << r.flow_goodput_gbps
      << " a flow; Jain " << r.jain << "\n"
      << "data packets     " << r.data_packets << " + " << r.retransmissions
      << " retransmissions (time-out " << r.rto_retransmissions << ", NACK "
      << r.nack_retransmissions << ", inferred " << r.inferred_retransmissions << "), "
      << r.duplicates << " of them spurious\n"
      << "network          " << r.trims << " trims, " << r.marks << " marks, " << r.data_drops
      << " + " << r.control_drops << " (control) drops, " << r.lost << " lost, " << r.unroutable
      << " without a way\n"
      << "queue bytes      last hop max " << r.last_hop_queue.max << " mean "
      << r.last_hop_queue.mean << "; inside max " << r.switch_queue.max << " mean "
      << r.switch_queue.mean << "\n"
      << "simulation       " << r.simulated_us << " us in " << r.wall_s << " s, " << r.events
      << " events (" << static_cast<double>(r.events) / 1e6 / std::max(r.wall_s, 1e-9)
      << " million/s), " << static_cast<double>(r.memory_bytes) / 1048576 << " MiB, "
      << r.bytes_per_pdc << " bytes per PDC\n";
  for (const std::string& violation : r.violations) out << "VIOLATION        " << violation << "\n";
}

void print_json(const Results& r, std::ostream& out) {
  nlohmann::ordered_json json = {
      {"flows", r.flows},
      {"finished", r.finished},
      {"fct_us",
       {{"min", rounded(r.fct.min)},
        {"mean", rounded(r.fct.mean)},
        {"p99", rounded(r.fct.p99)},
        {"worst", rounded(r.fct.worst)}}},
      {"makespan_us", rounded(r.makespan_us)},
      {"jain", std::round(r.jain * 1e6) / 1e6},
      {"context_jain", std::round(r.context_jain * 1e6) / 1e6},
      {"goodput_gbps", rounded(r.goodput_gbps)},
      {"flow_goodput_gbps", rounded(r.flow_goodput_gbps)},
      {"data_packets", r.data_packets},
      {"retransmissions", r.retransmissions},
      {"retransmissions_by_cause",
       {{"time_out", r.rto_retransmissions},
        {"nack", r.nack_retransmissions},
        {"inferred", r.inferred_retransmissions}}},
      {"duplicates", r.duplicates},
      {"dead_share", std::round(r.dead_share * 1e6) / 1e6},
      {"last_dead_us", rounded(r.last_dead_us)},
      {"interval_gbps", rounded(r.interval_gbps)},
      {"acks", r.acks},
      {"trims", r.trims},
      {"marks", r.marks},
      {"data_drops", r.data_drops},
      {"control_drops", r.control_drops},
      {"spoilt", r.spoilt},
      {"lost", r.lost},
      {"unroutable", r.unroutable},
      {"receive_drops", r.receive_drops},
      {"last_receive_drop_us", rounded(r.last_receive_drop_us)},
      {"unread_bytes", r.most_unread_bytes},
      {"quick_adapts", r.cms.quick_adapts},
      {"cuts", r.cms.cuts},
      {"losses_spurious", r.cms.losses_spurious},
      {"pend_sent", r.pend_sent},
      {"restores_sent", r.restores_sent},
      {"control_share", std::round(r.control_share * 1e6) / 1e6},
      {"queue_bytes", rounded(std::max(r.switch_queue.max, r.last_hop_queue.max))},
      {"queues", {{"last_hop", as_json(r.last_hop_queue)}, {"inside", as_json(r.switch_queue)}}},
      {"events", r.events},
      {"simulated_us", rounded(r.simulated_us)},
      {"violations", r.violations}};
  out << json.dump(2) << "\n";
}

void print_csv(const Outcome& outcome, std::ostream& out) {
  out << "id,source,destination,bytes,start_us,fct_us,gbps,source_sent,source_resent,rate_gbps\n"
      << std::fixed << std::setprecision(3);
  const Picoseconds begin = outcome.begin;
  for (std::size_t i = 0; i < outcome.flows.size(); ++i) {
    const FlowRecord& record = outcome.flows[i];
    const Flow& flow = outcome.traffic->flows[i];
    out << (flow.id != 0 ? flow.id : i + 1) << "," << flow.source << "," << flow.destination << ","
        << flow.bytes << ",";
    if (record.started != kPsNever) out << microseconds(record.started - begin);
    out << ",";
    if (record.finished != kPsNever) {
      const double fct_us = microseconds(record.finished - record.started);
      out << fct_us << "," << static_cast<double>(flow.bytes) * 8e-3 / fct_us;
    } else {
      out << ",";
    }
    const HostOutcome& source = outcome.hosts[flow.source];
    out << "," << source.requests_sent << "," << source.retransmissions() << ","
        << outcome.meter.gbps(flow.source, flow.destination) << "\n";
  }
}

}  // namespace uet::netsim
