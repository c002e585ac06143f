// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The command line, by CLI11; and the calibration of CMS-809 where nothing else is asked for.
#include "netsim/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <map>
#include <sstream>

#include "cms/path.h"
#include "fep/tunables.h"
#include "netsim/lockstep.h"

namespace uet::netsim {
namespace {

constexpr double kGiga = 1e9;
constexpr std::uint32_t kHeaderBytes = 56;      // PDS request and SES standard header
constexpr std::uint32_t kCreditFieldBytes = 4;  // of a PDS request with credit target
constexpr std::uint32_t kAckWireBytes = 64;
constexpr std::int64_t kKnownAfterRtts = 10;     // that a link is down (CMS 8.2, S26)
constexpr std::uint32_t kDefaultHosts = 128;     // of generated traffic
constexpr double kFasterThanAnything = 100'000;  // Gb/s

struct Arguments {
  // network
  Shape shape = Shape::FatTree;
  std::uint32_t hosts = 0;  // 0 = as many as the traffic needs
  std::uint32_t hosts_per_leaf = 0, leaf_uplinks = 0, leaves_per_pod = 0, pod_uplinks = 0;
  std::uint32_t oversubscription = 1;
  double link_gbps = 100, fabric_gbps = 0;
  std::uint32_t planes = 1;
  std::vector<std::string> host_gbps, host_hop_us;
  double hop_us = 1;
  bool spray_in_switches = false;
  // queues
  bool trimming = true, ecn = true;
  double ecn_low = 0.2, ecn_high = 0.8, trim_at = 1.0, drop_at = 5.0;  // of the BDP
  double trim_at_last_hop = 1.5;
  bool strict = false, separate_trimmed = false;
  // endpoints
  cms::Algorithm algorithm = cms::Algorithm::Nscc;
  cms::PathPolicy paths = cms::kDefaultPaths;
  std::uint16_t path_count = cms::Parameters{}.path_count;
  bool rod = false, ack_per_packet = false, synthetic_ecn = false, recovery = true;
  bool path_inference = true;
  double rto_us = 0, rto_cap_us = 0, base_rtt_us = 0, remote_gbps = 0;
  bool measure_base_rtt = false;
  std::uint32_t payload_mtu = 4086, overhead_bytes = 8;
  std::uint32_t mpr = pds::Parameters{}.default_mpr;
  std::uint32_t ooo_threshold = pds::Parameters{}.out_of_order_threshold;
  std::size_t pdcs = pds::Parameters{}.pdcs_per_destination;
  std::vector<std::string> tune;
  // traffic
  std::string matrix, write_matrix;
  std::uint32_t incast = 0, outcast = 0, all_to_all = 0, ring = 0;
  bool permutation = false, serial = false;
  std::uint64_t size = 2'000'000;
  double start_jitter_us = 0;
  // slow receivers
  double drain_gbps = 0, drain_until_us = -1;
  std::uint64_t receive_pool_bytes = 1'000'000;
  // faults
  double loss = 0, control_loss = 0, jitter_us = 0, garbage = 0;
  Garbage garbage_kind = Garbage::Any;
  std::uint32_t slow_links = 0, fail_links = 0, slow_pod_links = 0, fail_planes = 0;
  double slow_gbps = 25, fail_from_us = 0, fail_until_us = -1, fail_detect_us = -1;
  // run
  std::uint64_t seed = 1;
  double limit_us = 1e6;
  std::uint32_t threads = 1;
  bool csv = false, json = false, quiet = false;
  std::string trace, report;
  double trace_every_us = 1;
  std::pair<double, double> rates_us = {0, 0};
  SweepSetup sweep;
};

// Names of the choices that a library enumeration offers.
const std::map<std::string, cms::Algorithm> kAlgorithms = [] {
  std::map<std::string, cms::Algorithm> names;
  for (const cms::AlgorithmRow& row : cms::kAlgorithms)
    names[std::string(row.name)] = row.algorithm;
  return names;
}();
const std::map<std::string, cms::PathPolicy> kPathPolicies(std::begin(cms::kPathPolicyNames),
                                                           std::end(cms::kPathPolicyNames));
const std::map<std::string, Shape> kShapes = {{"one-switch", Shape::OneSwitch},
                                              {"two-tier", Shape::TwoTier},
                                              {"leaf-spine", Shape::LeafSpine},
                                              {"fat-tree", Shape::FatTree}};

const std::map<std::string, Garbage> kGarbage = {{"any", Garbage::Any},
                                                 {"rcvd-bytes", Garbage::ReceivedBytes},
                                                 {"service-time", Garbage::ServiceTime},
                                                 {"credit", Garbage::Credit},
                                                 {"pend", Garbage::Pend},
                                                 {"mark", Garbage::Mark}};

template <class Enum>
CLI::Option* choice(CLI::App* group, const std::string& name, Enum& value,
                    const std::map<std::string, Enum>& names, const std::string& text) {
  std::string all;
  for (const auto& [word, ignored] : names) all += (all.empty() ? "" : ", ") + word;
  CLI::Option* option = group->add_option(name, value, text + " (" + all + ")");
  option->transform(CLI::Validator(
      [&names, all](std::string& word) -> std::string {
        const auto found = names.find(word);
        if (found == names.end()) return "'" + word + "' is none of " + all;
        word = std::to_string(static_cast<int>(found->second));
        return {};
      },
      ""));
  option->type_name("NAME");
  return option;
}

void add_network(CLI::App& app, Arguments& a) {
  auto* group = app.add_option_group("Network");
  choice(group, "--topology", a.shape, kShapes, "Shape, sized to the hosts; default fat-tree");
  group
      ->add_option("--hosts", a.hosts,
                   "Number of hosts; default: as the matrix says, or 128, or more if needed")
      ->check(CLI::Range(2, 1 << 20));
  group->add_option("--hosts-per-leaf", a.hosts_per_leaf, "Instead of the shape's own number");
  group->add_option("--leaf-uplinks", a.leaf_uplinks, "Instead of the shape's own number");
  group->add_option("--leaves-per-pod", a.leaves_per_pod, "Fat-tree, likewise");
  group->add_option("--pod-uplinks", a.pod_uplinks,
                    "Fat-tree, likewise: uplinks of an aggregation switch");
  group
      ->add_option("--oversubscription", a.oversubscription,
                   "Leaves have so many times fewer uplinks than hosts")
      ->capture_default_str()
      ->check(CLI::Range(1, 64));
  const auto rate = CLI::Range(0.001, kFasterThanAnything);
  group
      ->add_option("--planes", a.planes,
                   "So many independent networks of the shape; each host has a port in each")
      ->capture_default_str()
      ->check(CLI::Range(std::uint32_t{1}, kMostPlanes));
  group->add_option("--link-gbps", a.link_gbps, "Rate of all links")
      ->capture_default_str()
      ->check(rate);
  group->add_option("--fabric-gbps", a.fabric_gbps, "Rate between switches, if it differs")
      ->check(rate);
  group->add_option("--host-gbps", a.host_gbps, "Rate of the link of one host, if it differs")
      ->type_name("HOST=GBPS");
  group->add_option("--hop-us", a.hop_us, "Delay of a link, us")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 1e6));
  group
      ->add_option(
          "--host-hop-us", a.host_hop_us,
          "Delay of the link of one host, if it differs; base RTT and queues are as without")
      ->type_name("HOST=US");
  group->add_flag("--spray-in-switches", a.spray_in_switches,
                  "Switches draw a path for each packet, whatever its entropy");
}

void add_queues(CLI::App& app, Arguments& a) {
  auto* group = app.add_option_group("Queues of switches");
  group->add_flag("--trimming,!--no-trimming", a.trimming,
                  "Full queues trim (default) or drop data");
  group->add_flag("--ecn,!--no-ecn", a.ecn, "Mark packets (default) or not");
  const auto share = CLI::Range(0.0, 1000.0);
  group->add_option("--ecn-low", a.ecn_low, "Marking begins here, in BDP")
      ->capture_default_str()
      ->check(share);
  group->add_option("--ecn-high", a.ecn_high, "From here on all are marked, in BDP")
      ->capture_default_str()
      ->check(share);
  group->add_option("--trim-at", a.trim_at, "Limit of a queue that trims, in BDP")
      ->capture_default_str()
      ->check(share);
  group
      ->add_option("--trim-at-last-hop", a.trim_at_last_hop,
                   "Limit of a queue to a host that trims, in BDP")
      ->capture_default_str()
      ->check(share);
  group->add_option("--drop-at", a.drop_at, "Limit of a queue that does not, in BDP")
      ->capture_default_str()
      ->check(share);
  group->add_flag("--strict", a.strict, "Control strictly first; default: 10 to 1 at most");
  group->add_flag("--trimmed-class", a.separate_trimmed,
                  "Trimmed packets in a class of their own, not with control");
}

void add_endpoints(CLI::App& app, Arguments& a) {
  auto* group = app.add_option_group("Endpoints");
  choice(group, "--cc", a.algorithm, kAlgorithms, "Congestion control; default nscc");
  choice(group, "--paths", a.paths, kPathPolicies, "Choice of paths; default mixed");
  group->add_option("--evs", a.path_count, "Entropy values of a context")
      ->capture_default_str()
      ->check(CLI::Range(1, 1024));
  group->add_flag("--rod", a.rod, "Ordered delivery (ROD) instead of RUD");
  group->add_flag("--ack-per-packet", a.ack_per_packet, "Instead of one for 16 KiB");
  group->add_flag("--synthetic-ecn", a.synthetic_ecn, "CMS-703");
  group->add_flag("--recovery,--no-recovery{false}", a.recovery,
                  "CMS-151 and, where nothing is trimmed or credit is used, CMS-150; default on");
  group->add_flag("--path-inference,--no-path-inference{false}", a.path_inference,
                  "CMS-420; default on");
  group
      ->add_option("--remote-gbps", a.remote_gbps,
                   "Rate of the peers' links as far as hosts know it; default: they do not")
      ->check(CLI::Range(0.001, kFasterThanAnything));
  group
      ->add_option("--rto-us", a.rto_us,
                   "Time-out, us; default: 15 and the time that six full queues take")
      ->check(CLI::Range(1.0, 1e7));
  group->add_option("--rto-cap-us", a.rto_cap_us, "It doubles up to this, us; default: 16 times")
      ->check(CLI::Range(1.0, 1e8));
  group->add_option("--base-rtt-us", a.base_rtt_us, "Default: that of the longest path, idle")
      ->check(CLI::Range(0.1, 1e6));
  group->add_flag("--measure-base-rtt", a.measure_base_rtt,
                  "Hosts are not told the base RTT; it is still the unit of the queues' limits");
  group->add_option("--mtu", a.payload_mtu, "Bytes of payload in a packet")
      ->capture_default_str()
      ->check(CLI::Range(256, 8192));
  group
      ->add_option("--overhead", a.overhead_bytes,
                   "Bytes on the wire beside PDS, SES and payload; 8 is the official simulator's "
                   "packet, 66 UDP, IPv4 and Ethernet")
      ->capture_default_str()
      ->check(CLI::Range(0, 256));
  group
      ->add_option("--drain-gbps", a.drain_gbps,
                   "Rate at which hosts take up what has arrived; default: at once")
      ->check(CLI::Range(0.001, kFasterThanAnything));
  group->add_option("--drain-until-us", a.drain_until_us, "From then on, the rate of their links")
      ->check(CLI::Range(0.0, 1e9));
  group->add_option("--receive-pool", a.receive_pool_bytes, "Bytes that may wait for that")
      ->capture_default_str()
      ->check(CLI::Range(std::uint64_t{10'000}, std::uint64_t{1} << 40));
  group->add_option("--mpr", a.mpr, "Default_MPR, units of 128 PSNs")
      ->capture_default_str()
      ->check(CLI::Range(1, 32));
  group->add_option("--ooo-threshold", a.ooo_threshold, "OOO_Threshold of PDS-130, packets")
      ->capture_default_str()
      ->check(CLI::Range(1, 4096));
  group
      ->add_option("--pdcs", a.pdcs,
                   "PDCs that messages to one destination may use at a time, by size class")
      ->capture_default_str()
      ->check(CLI::Range(1, 16));
  group
      ->add_option("--tune", a.tune,
                   "Any other value of a host, as in the provider's FI_UET_TUNING; applies after "
                   "all other options. help: lists names, ranges and defaults")
      ->type_name("NAME=VALUE,...|@FILE|help");
}

void add_traffic(CLI::App& app, Arguments& a) {
  auto* group = app.add_option_group("Traffic", "exactly one of the first six");
  const auto most = CLI::Range(1, 1 << 20);
  group->add_option("--matrix", a.matrix, "A connection matrix as uet-htsim reads it")
      ->type_name("FILE");
  group->add_option("--incast", a.incast, "N hosts, drawn from the seed, to host 0")
      ->type_name("N")
      ->check(most);
  group->add_option("--outcast", a.outcast, "Host 0 to N, drawn from the seed")
      ->type_name("N")
      ->check(most);
  group->add_flag("--permutation", a.permutation, "Every host to another, one flow each way");
  group->add_option("--all-to-all", a.all_to_all, "N hosts, each to all others")
      ->type_name("N")
      ->check(CLI::Range(2, 4096));
  group->add_option("--ring-all-reduce", a.ring, "N hosts, 2 (N - 1) steps")
      ->type_name("N")
      ->check(CLI::Range(2, 4096));
  group->add_option("--size", a.size, "Bytes of a flow that is not from a matrix")
      ->capture_default_str()
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{0xFFFFF000}));
  group->add_flag("--serial", a.serial, "All-to-all: one flow of a host after the other");
  group
      ->add_option("--start-jitter-us", a.start_jitter_us,
                   "Flows with a start begin up to so much later")
      ->check(CLI::Range(0.0, 1e6));
  group->add_option("--write-matrix", a.write_matrix, "Write the traffic there and end")
      ->type_name("FILE");
}

void add_faults(CLI::App& app, Arguments& a) {
  auto* group = app.add_option_group("Faults", "of links between switches, in the first plane");
  const auto probability = CLI::Range(0.0, 1.0);
  group->add_option("--loss", a.loss, "Probability that a packet vanishes on a link")
      ->check(probability);
  group->add_option("--control-loss", a.control_loss, "The same, of control packets only")
      ->check(probability);
  group->add_option("--garbage", a.garbage, "Part of the ACKs and Credits that is spoilt")
      ->check(probability);
  choice(group, "--garbage-kind", a.garbage_kind, kGarbage, "Field to spoil; default any");
  group->add_option("--jitter-us", a.jitter_us, "Each packet is up to so much later: reordering")
      ->check(CLI::Range(0.0, 1e6));
  group->add_option("--slow-links", a.slow_links, "So many leaf uplinks are slow");
  group->add_option("--slow-pod-links", a.slow_pod_links,
                    "Fat-tree: so many uplinks of aggregation switches are, from the first on");
  group->add_option("--slow-gbps", a.slow_gbps, "Their rate")
      ->capture_default_str()
      ->check(CLI::Range(0.001, kFasterThanAnything));
  group->add_option("--fail-links", a.fail_links, "So many leaf uplinks fail");
  group->add_option("--fail-planes", a.fail_planes,
                    "So many planes fail, with the ports of the hosts in them");
  group->add_option("--fail-from-us", a.fail_from_us, "When they fail")
      ->check(CLI::Range(0.0, 1e9));
  group->add_option("--fail-until-us", a.fail_until_us, "When they come back; default never")
      ->check(CLI::Range(0.0, 1e9));
  group
      ->add_option("--fail-detect-us", a.fail_detect_us,
                   "Routing avoids the links, and hosts the planes, so long after; default never")
      ->check(CLI::Range(0.0, 1e9));
}

void add_run(CLI::App& app, Arguments& a) {
  auto* group = app.add_option_group("Run");
  group->add_option("--seed", a.seed, "Of all chance; the same seed gives the same run")
      ->capture_default_str();
  group->add_option("--limit-us", a.limit_us, "Simulated time after which the run ends")
      ->capture_default_str()
      ->check(CLI::Range(1.0, 1e9));
  group
      ->add_option("--threads", a.threads,
                   "Threads that share the network, a part of its leaves each; the results do not "
                   "depend on it. mpirun -n N uet-sim ... divides it over N processes likewise")
      ->capture_default_str()
      ->check(CLI::Range(1, 1024));
  group->add_flag("--json", a.json, "Results as one JSON object");
  group->add_flag("--csv", a.csv, "One line for each flow");
  group->add_option("--trace", a.trace, "Windows and queues over time, as CSV, into this file")
      ->type_name("FILE");
  group->add_option("--report", a.report, "A page with plots (HTML with SVG), into this file")
      ->type_name("FILE");
  group
      ->add_option("--trace-every-us", a.trace_every_us,
                   "Time between two lines of --trace and two points of --report")
      ->capture_default_str()
      ->check(CLI::Range(0.001, 1e6));
  group->add_option("--rates-us", a.rates_us, "Table of flows: rates between these times too")
      ->type_name("FROM UNTIL");
  group->add_flag("--quiet", a.quiet, "No progress line on standard error");
}

void add_sweep(CLI::App& app, Arguments& a) {
  auto* group = app.add_option_group(
      "Sweep",
      "many cases, one table. A line of FILE is NAME: OPTIONS; {A,B} and {1..5} in the options "
      "give one case for each element, and several lists multiply out. The options of a line "
      "'all: OPTIONS' belong to all later lines. # begins a comment line");
  auto* file =
      group->add_option("--sweep", a.sweep.file,
                        "Run the cases of FILE and print their table, as CSV or with "
                        "--json. Cases that an interrupted sweep finished are not run again");
  file->type_name("FILE");
  group->add_option("--jobs", a.sweep.jobs, "Processes at a time; default: one for each processor")
      ->type_name("N")
      ->check(CLI::Range(1, 1 << 12))
      ->needs(file);
  group
      ->add_option("--sweep-journal", a.sweep.journal,
                   "Where finished cases are kept; default: FILE.done")
      ->type_name("FILE")
      ->needs(file);
}

// Options of cases belong into the file. Returns what is wrong.
std::string make_sweep(const CLI::App& app, const Arguments& a, SweepSetup& sweep) {
  constexpr std::array<std::string_view, 5> kOwn = {"--sweep", "--jobs", "--sweep-journal",
                                                    "--json", "--quiet"};
  for (const CLI::App* group : app.get_subcommands([](const CLI::App*) { return true; })) {
    for (const CLI::Option* option : group->get_options()) {
      const std::string name = option->get_name();
      if (option->count() == 0 || std::ranges::find(kOwn, name) != kOwn.end()) continue;
      return name + ": not beside --sweep; write it into the file, as all: " + name + " ...";
    }
  }
  sweep = a.sweep;
  sweep.json = a.json;
  sweep.quiet = a.quiet;
  return {};
}

std::string make_generated(const Arguments& a, Traffic& traffic) {
  std::uint32_t needed = 2;
  if (a.incast > 0 || a.outcast > 0) needed = std::max(a.incast, a.outcast) + 1;
  if (a.all_to_all > 0 || a.ring > 0) needed = std::max(a.all_to_all, a.ring);
  const std::uint32_t hosts = a.hosts != 0 ? a.hosts : std::max(needed, kDefaultHosts);
  if (hosts < needed) {
    return "--hosts " + std::to_string(hosts) + ": this traffic has " + std::to_string(needed);
  }
  if (a.incast > 0) traffic = incast(hosts, a.incast, a.size, a.seed);
  if (a.outcast > 0) traffic = outcast(hosts, a.outcast, a.size, a.seed);
  if (a.permutation) traffic = permutation(hosts, a.size, a.seed);
  if (a.all_to_all > 0) traffic = all_to_all(hosts, a.all_to_all, a.size, a.serial);
  if (a.ring > 0) traffic = ring_all_reduce(hosts, a.ring, a.size);
  return {};
}

std::string make_traffic(const Arguments& a, Traffic& traffic) {
  const int kinds = (a.matrix.empty() ? 0 : 1) + (a.incast > 0) + (a.outcast > 0) + a.permutation +
                    (a.all_to_all > 0) + (a.ring > 0);
  if (kinds != 1) {
    return "name one of --matrix, --incast, --outcast, --permutation, --all-to-all, "
           "--ring-all-reduce; see --help";
  }
  if (a.matrix.empty()) {
    if (std::string complaint = make_generated(a, traffic); !complaint.empty()) return complaint;
  } else {
    std::ifstream file(a.matrix);
    if (!file) return a.matrix + ": cannot be read";
    std::string complaint;
    std::optional<Traffic> read = read_matrix(file, complaint);
    if (!read) return a.matrix + ": " + complaint;
    traffic = std::move(*read);
  }
  if (a.start_jitter_us <= 0) return {};
  Rng rng(a.seed);
  const auto most = static_cast<std::uint64_t>(a.start_jitter_us * kPsPerUs);
  for (Flow& flow : traffic.flows) {
    if (flow.start) *flow.start += static_cast<Picoseconds>(rng.below(most + 1));
  }
  return {};
}

// "3=25": of host 3. Empty if it is not that, or not within the limits.
std::optional<std::pair<std::uint32_t, double>> read_of_host(const std::string& text,
                                                             std::uint32_t hosts, double least,
                                                             double most) {
  std::istringstream words(text);
  std::uint32_t host = 0;
  char equals = 0;
  double value = 0;
  words >> host >> equals >> value;
  const bool good = words && words.eof() && equals == '=' && host < hosts;
  if (!good || value < least || value > most) return std::nullopt;
  return std::pair(host, value);
}

std::string make_host_links(const Arguments& a, std::uint32_t hosts, TopologyConfig& config) {
  const auto complaint = [&](const std::string& option, const char* what) {
    return option + ": HOST=" + what + " to " + std::to_string(hosts - 1);
  };
  for (const std::string& text : a.host_gbps) {
    const auto read = read_of_host(text, hosts, 0.001, kFasterThanAnything);
    if (!read)
      return complaint("--host-gbps " + text,
                       "GBPS, a rate from 0.001 to 100000 and a host from 0");
    config.other_host_rates_bps[read->first] = static_cast<std::uint64_t>(read->second * kGiga);
  }
  for (const std::string& text : a.host_hop_us) {
    const auto read = read_of_host(text, hosts, 0, 1e6);
    if (!read)
      return complaint("--host-hop-us " + text, "US, a delay from 0 to 1000000 and a host from 0");
    config.other_host_delays[read->first] = static_cast<Picoseconds>(read->second * kPsPerUs);
  }
  return {};
}

std::string make_topology(const Arguments& a, const Traffic& traffic, TopologyConfig& config) {
  const std::uint32_t hosts = std::max(a.hosts, traffic.nodes);
  std::string complaint;
  config = topology_for(a.shape, hosts, a.oversubscription, complaint);
  if (!complaint.empty()) return "--oversubscription: " + complaint;
  if (a.leaf_uplinks != 0) config.leaf_uplinks = a.leaf_uplinks;
  if (a.pod_uplinks != 0) config.pod_uplinks = a.pod_uplinks;
  if (a.hosts_per_leaf != 0 || a.leaves_per_pod != 0) {
    if (a.hosts_per_leaf != 0) config.hosts_per_leaf = a.hosts_per_leaf;
    if (a.leaves_per_pod != 0) config.leaves_per_pod = a.leaves_per_pod;
    const std::uint32_t pod_leaves = config.tiers == 3 ? config.leaves_per_pod : 1;
    const std::uint32_t pod_hosts = pod_leaves * config.hosts_per_leaf;
    config.leaves = (hosts + pod_hosts - 1) / pod_hosts * pod_leaves;
  }
  config.host_rate_bps = static_cast<std::uint64_t>(a.link_gbps * kGiga);
  config.fabric_rate_bps =
      static_cast<std::uint64_t>((a.fabric_gbps > 0 ? a.fabric_gbps : a.link_gbps) * kGiga);
  if (complaint = make_host_links(a, hosts, config); !complaint.empty()) return complaint;
  config.hop_delay = static_cast<Picoseconds>(a.hop_us * kPsPerUs);
  config.spray_in_switches = a.spray_in_switches;
  return Topology::complaint_about(config);
}

// RTT of a full packet and its ACK over the longest path when nothing else is there (CMS-809), from
// a usual host to the slowest.
Picoseconds idle_rtt(const TopologyConfig& topology, std::uint32_t wire_bytes) {
  const auto across = [&](std::uint32_t bytes) {
    return 2 * topology.hop_delay + serialization(bytes, topology.host_rate_bps) +
           serialization(bytes, topology.slowest_host_bps()) +
           2 * (topology.tiers - 1) *
               (topology.hop_delay + serialization(bytes, topology.fabric_rate_bps));
  };
  return across(wire_bytes) + across(kAckWireBytes);
}

Duration duration_of(Picoseconds span) { return Duration(span / kPsPerNs); }

void make_queues(const Arguments& a, double bdp_bytes, std::uint32_t wire_bytes,
                 NetworkConfig& network) {
  QueueConfig& queues = network.queues;
  const double whole = std::ceil(bdp_bytes / wire_bytes) * wire_bytes;  // CMS-809: 43 packets
  queues.ecn_low_bytes = a.ecn_low * whole;
  queues.ecn_high_bytes = a.ecn ? a.ecn_high * whole : 0;
  queues.trimming = a.trimming;
  queues.data_limit_bytes =
      static_cast<std::uint64_t>((a.trimming ? a.trim_at : a.drop_at) * whole);
  network.last_hop_limit_bytes = a.trimming  // CMS-32
                                     ? static_cast<std::uint64_t>(a.trim_at_last_hop * whole)
                                     : queues.data_limit_bytes;
  queues.control_limit_bytes = 2 * queues.data_limit_bytes;  // CMS-501
  queues.separate_trimmed = a.separate_trimmed;
  queues.scheduling = a.strict ? Scheduling::Strict : Scheduling::Weighted;
}

void make_endpoints(const Arguments& a, Picoseconds rtt, double rto_us, fep::Config& fep) {
  fep.ses.payload_mtu = a.payload_mtu;
  fep.cms.algorithm = a.algorithm;
  fep.cms.paths = a.paths;
  fep.cms.path_count = a.path_count;
  const std::uint32_t credit_bytes = cms::uses_credit(a.algorithm) ? kCreditFieldBytes : 0;
  fep.cms.mtu_bytes = cms::nominal_packet_bytes(a.payload_mtu + kHeaderBytes + credit_bytes);
  fep.cms.link_rate_bps = static_cast<std::uint64_t>(a.link_gbps * kGiga);
  fep.cms.default_base_rtt = duration_of(rtt);
  if (!a.measure_base_rtt) fep.cms.base_rtt = duration_of(rtt);
  fep.cms.max_window_bytes = std::uint64_t{1} << 40;
  fep.cms.trimming = a.trimming;
  fep.cms.synthetic_ecn = a.synthetic_ecn;
  fep.cms.recovery = a.recovery;
  fep.cms.path_inference = a.path_inference;
  // The scenarios of CMS 8.3 assume the receivers of CMS-124.
  fep.pds.ack_gen_trigger_bytes = cms::kAckGenTrigger;
  fep.cms.ack_gen_trigger_bytes = cms::kAckGenTrigger;
  fep.pds.ack_per_packet = a.ack_per_packet;
  fep.pds.default_mpr = static_cast<std::uint8_t>(a.mpr);
  fep.pds.out_of_order_threshold = a.ooo_threshold;
  fep.pds.pdcs_per_destination = a.pdcs;
  fep.pds.packets_per_pass = 1;
  fep.pds.rto_init = duration_of(static_cast<Picoseconds>(rto_us * kPsPerUs));
  fep.pds.rto_cap = fep.pds.rto_init * 16;
  if (a.rto_cap_us > 0) {
    fep.pds.rto_cap = duration_of(static_cast<Picoseconds>(a.rto_cap_us * kPsPerUs));
  }
}

// A list of settings, or the file of one.
std::string apply_tuning(const std::string& list, fep::Config& fep) {
  std::string text = list;
  if (list.starts_with('@')) {
    std::ifstream file(list.substr(1));
    std::ostringstream content;
    if (!file || !(content << file.rdbuf())) return "--tune " + list + ": cannot be read";
    text = content.str();
  }
  const auto why = fep::tune(fep, text);
  return why ? "--tune " + *why : "";
}

std::string tune(const Arguments& a, fep::Config& fep) {
  for (const std::string& list : a.tune) {
    if (std::string complaint = apply_tuning(list, fep); !complaint.empty()) return complaint;
  }
  fep.cms.ack_gen_trigger_bytes = fep.pds.ack_gen_trigger_bytes;  // all hosts are alike
  const auto why = fep::find_conflict(fep);
  return why ? "--tune " + *why : "";
}

std::string list_of_tunables() {
  std::string text;
  for (const fep::Tunable& row : fep::tunables()) {
    text += std::string(row.name) + "  (" + range_text(row) + "; default: " + default_text(row) +
            ")\n    " + row.help + "\n";
  }
  return text;
}

std::optional<std::uint32_t> pod_uplink(const Topology& topology, std::uint32_t number) {
  const std::uint32_t each = topology.config().pod_uplinks;
  if (topology.config().tiers != 3 || each == 0) return std::nullopt;
  return topology.uplink_of(2, number / each, number % each);
}

void make_faults(const Arguments& a, const Topology& topology, std::vector<Fault>& faults) {
  const auto at = [](double us) { return static_cast<Picoseconds>(us * kPsPerUs); };
  for (std::uint32_t i = 0; i < a.slow_links; ++i) {
    faults.push_back(Fault{.port = topology.leaf_uplink(i),
                           .kind = Fault::Kind::Rate,
                           .rate_bps = static_cast<std::uint64_t>(a.slow_gbps * kGiga)});
  }
  for (std::uint32_t i = 0; i < a.slow_pod_links; ++i) {
    faults.push_back(Fault{.port = *pod_uplink(topology, i),
                           .kind = Fault::Kind::Rate,
                           .rate_bps = static_cast<std::uint64_t>(a.slow_gbps * kGiga)});
  }
  for (std::uint32_t i = 0; i < a.fail_links; ++i) {
    const std::uint32_t port = topology.leaf_uplink(i);
    faults.push_back(Fault{.at = at(a.fail_from_us), .port = port, .kind = Fault::Kind::Down});
    if (a.fail_detect_us >= 0) {
      faults.push_back(Fault{
          .at = at(a.fail_from_us + a.fail_detect_us), .port = port, .kind = Fault::Kind::Avoid});
    }
    if (a.fail_until_us >= 0) {
      faults.push_back(Fault{.at = at(a.fail_until_us), .port = port, .kind = Fault::Kind::Up});
    }
  }
}

void fail_planes(const Arguments& a, std::vector<Fault>& faults) {
  const auto fail = [&](double us, Fault::Kind kind, std::uint32_t plane) {
    faults.push_back(
        Fault{.at = static_cast<Picoseconds>(us * kPsPerUs), .kind = kind, .plane = plane});
  };
  for (std::uint32_t plane = 0; plane < a.fail_planes; ++plane) {
    fail(a.fail_from_us, Fault::Kind::PlaneDown, plane);
    if (a.fail_detect_us >= 0) {
      fail(a.fail_from_us + a.fail_detect_us, Fault::Kind::PlaneLost, plane);
    }
    if (a.fail_until_us >= 0) fail(a.fail_until_us, Fault::Kind::PlaneUp, plane);
  }
}

// The links that the matrix names, at a quarter of their rate.
std::string make_matrix_failures(const Traffic& traffic, const Topology& topology,
                                 std::vector<Fault>& faults) {
  for (const MatrixFailure& failure : traffic.failures) {
    const std::optional<std::uint32_t> port = topology.uplink_of(
        static_cast<std::uint32_t>(failure.kind) + 1, failure.switch_id, failure.link_id);
    if (!port) return "a failure names a link that this network does not have";
    faults.push_back(Fault{.port = *port,
                           .kind = Fault::Kind::Rate,
                           .rate_bps = topology.config().fabric_rate_bps / 4});
  }
  return {};
}

std::string make_setup(const Arguments& a, RunSetup& setup) {
  std::string complaint = make_traffic(a, setup.traffic);
  if (complaint.empty()) complaint = make_topology(a, setup.traffic, setup.network.topology);
  if (!complaint.empty()) return complaint;
  NetworkConfig& network = setup.network;
  const std::uint32_t wire_bytes = a.payload_mtu + kHeaderBytes + a.overhead_bytes;
  const Picoseconds rtt = a.base_rtt_us > 0 ? static_cast<Picoseconds>(a.base_rtt_us * kPsPerUs)
                                            : idle_rtt(network.topology, wire_bytes);
  const double bdp_bytes = microseconds(rtt) * a.link_gbps * 125;
  make_queues(a, bdp_bytes, wire_bytes, network);
  const auto limit = static_cast<double>(network.queues.data_limit_bytes);
  const double rto_us = a.rto_us > 0 ? a.rto_us : 15 + 6 * limit / (a.link_gbps * 125);
  make_endpoints(a, rtt, rto_us, network.fep);
  if (complaint = tune(a, network.fep); !complaint.empty()) return complaint;
  network.mode = a.rod ? DeliveryMode::Rod : DeliveryMode::Rud;
  network.overhead_bytes = a.overhead_bytes;
  network.remote_rate_bps = static_cast<std::uint64_t>(a.remote_gbps * kGiga);
  network.fep.cms.rate_is_stated = a.host_gbps.empty() || a.remote_gbps != 0;
  network.loss = a.loss;
  network.control_loss = a.control_loss;
  network.garbage = a.garbage;
  network.garbage_kind = a.garbage_kind;
  network.jitter = static_cast<Picoseconds>(a.jitter_us * kPsPerUs);
  network.ecn_on_last_hop = !cms::uses_credit(a.algorithm);  // CMS-33
  network.drain_rate_bps = static_cast<std::uint64_t>(a.drain_gbps * kGiga);
  network.receive_pool_bytes = a.receive_pool_bytes;
  if (a.drain_until_us >= 0) {
    network.drain_until = static_cast<Picoseconds>(a.drain_until_us * kPsPerUs);
  }
  const auto [rates_from_us, rates_until_us] = a.rates_us;
  if (rates_from_us < 0 || rates_until_us < rates_from_us) {
    return "--rates-us: two times, the second not before the first";
  }
  network.rates_from = static_cast<Picoseconds>(rates_from_us * kPsPerUs);
  network.rates_until = static_cast<Picoseconds>(rates_until_us * kPsPerUs);
  if (a.fail_links + a.fail_planes > 0) {
    network.avoid_from =
        static_cast<Picoseconds>(a.fail_from_us * kPsPerUs) + kKnownAfterRtts * rtt;
  }
  network.seed = a.seed;
  const Topology topology(network.topology, a.seed);
  if (a.slow_pod_links > 0 && !pod_uplink(topology, a.slow_pod_links - 1)) {
    return "--slow-pod-links: the network does not have so many";
  }
  if (std::max(a.slow_links, a.fail_links) > topology.leaf_uplink_count()) {
    return "the leaves have only " + std::to_string(topology.leaf_uplink_count()) + " uplinks";
  }
  if (a.fail_planes >= a.planes && a.fail_planes > 0) {
    return "--fail-planes: one of the " + std::to_string(a.planes) + " planes has to stay";
  }
  network.planes = a.planes;
  make_faults(a, topology, network.faults);
  fail_planes(a, network.faults);
  setup.limit = static_cast<Picoseconds>(a.limit_us * kPsPerUs);
  setup.matrix_file = a.write_matrix;
  setup.threads = a.threads;
  complaint = complaint_about_division(network, setup.traffic, a.threads);
  if (!complaint.empty()) return "--threads: " + complaint;
  setup.trace_file = a.trace;
  setup.report_file = a.report;
  setup.trace_interval = static_cast<Picoseconds>(a.trace_every_us * kPsPerUs);
  setup.csv = a.csv;
  setup.json = a.json;
  setup.quiet = a.quiet;
  return make_matrix_failures(setup.traffic, topology, network.faults);
}

}  // namespace

ParseResult parse_command_line(int argc, const char* const* argv, RunSetup& setup) {
  CLI::App app(
      "Runs the provider's unchanged protocol core, one Fep per host, in a simulated network.\n"
      "Default: a three-tier fat-tree of 100 Gb/s and 1 us per hop, trimming and ECN on.",
      "uet-sim");
  Arguments arguments;
  add_traffic(app, arguments);
  add_network(app, arguments);
  add_queues(app, arguments);
  add_endpoints(app, arguments);
  add_faults(app, arguments);
  add_run(app, arguments);
  add_sweep(app, arguments);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    return {.run = false, .status = 0, .text = app.help()};
  } catch (const CLI::Error& error) {
    return {.run = false, .status = 2, .text = std::string("uet-sim: ") + error.what() + "\n"};
  }
  if (std::ranges::find(arguments.tune, "help") != arguments.tune.end()) {
    return {.run = false, .status = 0, .text = list_of_tunables()};
  }
  std::string complaint = arguments.sweep.file.empty() ? make_setup(arguments, setup)
                                                       : make_sweep(app, arguments, setup.sweep);
  if (!complaint.empty()) {
    return {.run = false, .status = 2, .text = "uet-sim: " + complaint + "\n"};
  }
  return {.run = true, .status = 0, .text = {}};
}

}  // namespace uet::netsim
