// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The parameters that only a host knows, and both tables as one.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <cstring>

#include "base/parameter.h"
#include "cms/path.h"
#include "fep/tunables.h"
#include "nic/registry.h"
#include "settings/params.h"
#include "uet/base/types.h"

namespace uet::prov {
namespace {

using Row = Parameter<Params>;
using Choice = Row::Choice;

// NOLINTBEGIN(readability-identifier-naming): called like functions
template <auto Member>
constexpr auto number = whole<Params, Member>;
template <auto Member>
constexpr auto yes_no = on_off<Params, Member>;
// NOLINTEND(readability-identifier-naming)

constexpr std::size_t kMostTuningBytes = 64 << 10;

// ---- values that are neither numbers nor switches ----------------------------------------------

template <auto Member>
bool set_text(Params& params, std::string_view text) {
  params.*Member = text;
  return true;
}

bool set_nic(Params& params, std::string_view text) {
  nic::NicConfig config;
  params.nic = text;
  return nic::set_back_end(config, text);
}

std::string nic_text(const Params& params) { return params.nic; }

bool set_payload_mtu(Params& params, std::string_view text) {
  const auto value = parse_whole(text);
  if (!value) return false;
  params.payload_mtu = *value;
  return *value == 0 || (std::has_single_bit(*value) && *value >= 1024 && *value <= 8192);
}

std::string payload_mtu_text(const Params& params) { return std::to_string(params.payload_mtu); }

constexpr cms::AlgorithmText kAlgorithmNames =
    cms::algorithm_names(" (TFC is not implemented)");  // CMS-312
constexpr cms::AlgorithmText kAlgorithmHelp =
    cms::algorithm_summaries("Congestion control: ", ". TFC is not implemented.");

bool set_algorithm(Params& params, std::string_view text) {
  const std::optional<cms::Algorithm> algorithm = cms::algorithm_named(text);
  if (algorithm) params.cc_algorithm = algorithm;
  return algorithm.has_value();
}

std::string algorithm_text(const Params& params) {
  if (params.cc_algorithm) return std::string(cms::row_of(*params.cc_algorithm).name);
  return "nscc, and none to peers on this host";
}

bool set_paths(Params& params, std::string_view text) {
  for (const auto& [name, policy] : cms::kPathPolicyNames) {
    if (text != name) continue;
    params.paths = policy;
    return true;
  }
  return false;
}

std::string paths_text(const Params& params) {
  for (const auto& [name, policy] : cms::kPathPolicyNames) {
    if (policy == params.paths) return std::string(name);
  }
  return "mixed, and single over kernel UDP";
}

constexpr std::pair<std::string_view, Profile> kProfiles[] = {
    {"ai_base", Profile::AiBase}, {"ai_full", Profile::AiFull}, {"hpc", Profile::Hpc}};

bool set_profile(Params& params, std::string_view text) {
  for (const auto& [name, profile] : kProfiles) {
    if (text != name) continue;
    params.profile = profile;
    return true;
  }
  return false;
}

std::string profile_text(const Params& params) {
  for (const auto& [name, profile] : kProfiles) {
    if (params.profile == profile) return std::string(name);
  }
  return {};
}

bool set_source_ports(Params& params, std::string_view text) {
  const auto value = parse_whole(text);
  if (!value) return false;
  params.udp_source_ports = *value;
  return *value == 0 || (std::has_single_bit(*value) && *value <= 64);
}

std::string source_ports_text(const Params& params) {
  return std::to_string(params.udp_source_ports);
}

// The range of our processes is 4793 to 5816 (and the ports of slots), or apart from that.
bool set_udp_port(Params& params, std::string_view text) {
  const auto value = parse_whole(text);
  if (!value || *value == 0 || *value > 65536 - kUetUdpPorts) return false;
  if (*value != kUetUdpPort && *value + kUetUdpPorts > kUetUdpPort && *value <= kLastSlotPort) {
    return false;
  }
  params.udp_port = static_cast<std::uint16_t>(*value);
  return true;
}

std::string udp_port_text(const Params& params) { return std::to_string(params.udp_port); }

bool set_local(Params& params, std::string_view text) {
  params.local_rings = text == "auto";
  return text == "auto" || text == "off";
}

std::string local_text(const Params& params) { return params.local_rings ? "auto" : "off"; }

constexpr std::pair<std::string_view, TssMode> kTssModes[] = {
    {"off", TssMode::Off}, {"prefer", TssMode::Prefer}, {"require", TssMode::Require}};

bool set_tss(Params& params, std::string_view text) {
  for (const auto& [name, mode] : kTssModes) {
    if (text != name) continue;
    params.tss = mode;
    return true;
  }
  return false;
}

bool set_job_id(Params& params, std::string_view text) {
  const auto value = parse_whole(text);
  if (!value || *value > kMaxJobId) return false;
  params.job_id = *value;
  return true;
}

std::string job_id_text(const Params& params) {
  return "of the job that a launcher started, else " + std::to_string(params.job_id);
}

bool set_engine(Params& params, std::string_view text) {
  constexpr std::string_view kProcess = "process";
  params.engine_socket.clear();
  if (text == "caller" || text == "thread") {
    params.engine = text == "thread" ? EngineMode::Thread : EngineMode::Caller;
    return true;
  }
  if (!text.starts_with(kProcess)) return false;
  params.engine = EngineMode::Process;
  text.remove_prefix(kProcess.size());
  if (text.empty()) return true;
  params.engine_socket = text.substr(1);
  return text[0] == ':' && !params.engine_socket.empty();
}

std::string engine_text(const Params& params) {
  if (params.engine == EngineMode::Process) return "process";
  return params.engine == EngineMode::Thread ? "thread" : "caller";
}

bool set_engine_cpus(Params& params, std::string_view text) {
  params.engine_cpus = text;
  return parse_cpus(text).has_value();
}

std::string all_processors(const Params&) { return "all processors of the process"; }

std::string tss_text(const Params& params) { return name_of(params.tss); }

bool set_stats(Params& params, std::string_view text) {
  StatsDump& dump = params.stats;
  const std::size_t colon = text.find(':');
  const std::string_view when = text.substr(0, colon);
  if (when == "exit") dump.when = StatsDump::When::Exit;
  if (when == "signal") dump.when = StatsDump::When::Signal;
  if (when == "error") dump.when = StatsDump::When::Error;
  if (when == "pages") dump.when = StatsDump::When::Pages;
  dump.file = colon == std::string_view::npos ? "" : text.substr(colon + 1);
  if (when == "pages") return !dump.file.empty();
  return (when == "exit" || when == "signal" || when == "error") &&
         (colon == std::string_view::npos || !dump.file.empty());
}

// In words: nothing stands for it.
std::string all_interfaces(const Params&) { return "all that are up"; }
std::string no_recording(const Params&) { return "no recording"; }
std::string none(const Params&) { return "none"; }
std::string never(const Params&) { return "never"; }

// ---- the table ---------------------------------------------------------------------------------

constexpr Row kRows[] = {
    {"iface", "Network interfaces to use.",
     Choice{set_text<&Params::iface>, all_interfaces,
            "names separated by commas; a+b: both as one, with two rails"},
     true},
    {"nic",
     "NIC back end that sends and receives packets. udp is the kernel's UDP socket; any other NAME "
     "is the module libuet-nic-NAME.so beside the provider.",
     Choice{set_nic, nic_text, "a name in lower case, or NAME:OPTIONS"}, true},
    {"pcap",
     "File in pcapng format that records every packet sent or received. %p in the name becomes the "
     "process id. Under FI_UET_TSS, NAME,clear also records the packets before they are sealed, in "
     "a second file with .clear before its ending.",
     Choice{set_text<&Params::pcap>, no_recording, "a file name, or NAME,clear"}, true},
    {"faults",
     "Faults to inject into received packets, for example "
     "loss=1%,dup=0.5%,reorder=2%,corrupt=0.1%,trim=1%,mark=5%,seed=7.",
     Choice{set_text<&Params::faults>, none, "name=rate, separated by commas"}, true},
    {"stats",
     "Write all counters of a domain when the domain is closed (exit), or counters and trace when "
     "the process gets SIGUSR2 (signal) or when an operation fails (error), to standard error or "
     "to a file. %p in the name becomes the process id. pages:DIRECTORY copies the live page of "
     "each domain into the directory when the domain is closed, for uet_report.",
     Choice{set_stats, never,
            "exit, signal or error, or one of them with :file; or pages:directory"},
     true},
    {"local",
     "Rings in shared memory to processes of the same user on this host: auto uses them, off "
     "sends everything through the NIC.",
     Choice{set_local, local_text, "auto or off"}, true},
    {"engine",
     "Thread that runs the protocol: caller is each call of the application; thread is a thread of "
     "the domain, which takes operations from rings, so that a post returns at once and peers are "
     "answered while the application computes; process is the program uet_engine, which outlives "
     "the application.",
     Choice{set_engine, engine_text, "caller, thread, process or process:socket"}, true},
    {"engine_cpus", "Processors for the threads of FI_UET_ENGINE=thread, for example 2-3,6.",
     Choice{set_engine_cpus, all_processors, "numbers and ranges, separated by commas"}, true},
    {"engine_spin_us",
     "Microseconds that the thread of FI_UET_ENGINE=thread looks for work before it sleeps.",
     number<&Params::engine_spin_us>(0, 60'000'000)},
    {"cores",
     "Engines of a domain: each has endpoints, a UDP port and a lock of its own, so that threads "
     "with endpoints of different engines do not wait for each other. New endpoints go to the "
     "engine that has fewest; an engine without one may transmit for an endpoint of another "
     "(fi_uet(7)). Not with FI_UET_NIC=dpdk, nor in the native form.",
     number<&Params::cores>(1, kMostCores), true},
    {"udp_port",
     "First UDP port of the processes of this host: each takes the first free one of the 1024 from "
     "there on, unless the application names a service. Peers whose value differs answer only if "
     "they have the address in an address vector. Port numbers count from this port. Has no effect "
     "in the native form; not with FI_UET_NIC=shared.",
     Choice{set_udp_port, udp_port_text, "4793, 1 to 3769, or 5849 to 64512"}, true},
    {"profile", "Largest profile of the UET specification that is offered and used.",
     Choice{set_profile, profile_text, "ai_base, ai_full or hpc"}, true},
    {"job_id",
     "JobID of endpoints without auth_key, a number. Unset: PMIx, Open MPI, Hydra, Slurm or "
     "uet_run name the job; programs without a launcher share one.",
     Choice{set_job_id, job_id_text, "0 to 16777215"}, true},
    {"seed",
     "Seed of start PSNs, context ids and entropy values, to repeat a run. 0: a random seed.",
     number<&Params::seed>(0, UINT64_MAX), true},
    {"crc",
     "Send a CRC-32C behind every packet, and drop packets without CRC or with a wrong one. Both "
     "ends must use the same setting.",
     yes_no<&Params::crc>(), true},
    {"tss",
     "Transport security: seal every packet that leaves this host, and drop packets that are not "
     "sealed. require refuses a domain without keys; prefer opens it in clear with a warning.",
     Choice{set_tss, tss_text, "off, prefer or require"}, true},
    {"tss_keys",
     "Key file of transport security (uet_keys(1)): of mode 0600 and of this user, read again when "
     "it changes; or fd:N for a descriptor that the process has inherited.",
     Choice{set_text<&Params::tss_keys>, none, "a file name or fd:N"}, true},
    {"payload_mtu",
     "Payload of a full packet, in bytes. Both ends must use the same value. 0: the largest that "
     "the interface's MTU allows.",
     Choice{set_payload_mtu, payload_mtu_text, "0, 1024, 2048, 4096 or 8192"}, true},
    {"tx_size", "Default number of operations in progress per endpoint (tx_attr.size).",
     number<&Params::tx_size>(16, kMaxTxSize), true},
    {"rx_size", "Default number of posted receives per endpoint (rx_attr.size).",
     number<&Params::rx_size>(16, kMaxRxSize)},
    {"socket_buffer_bytes",
     "Size of the UDP socket's buffers that the kernel is asked for, in each direction, in bytes. "
     "A ring in shared memory has the same size.",
     number<&Params::socket_buffer_bytes>(64 << 10, 1 << 30), true},
    {"cc_algorithm", kAlgorithmHelp.text.data(),
     Choice{set_algorithm, algorithm_text, kAlgorithmNames.text.data()}, true},
    {"paths",
     "Choice of the network path of a packet: single uses one path per packet delivery context; "
     "oblivious draws a path per packet; round_robin takes paths in turn; bitmap takes paths with "
     "ECN marks, trimmed or lost packets less often; reps reuses paths whose packets arrived "
     "without ECN mark; mixed is reps, else bitmap. Needs a NIC that can set the entropy of a "
     "packet; kernel UDP does so with udp_source_ports. Ordered traffic keeps one path.",
     Choice{set_paths, paths_text, "single, oblivious, round_robin, bitmap, reps or mixed"}, true},
    {"cc_link_rate_mbps",
     "Link rate for congestion control, in Mbit/s. 0: as the interface reports, 100000 for a veth.",
     number<&Params::cc_link_rate_mbps>(0, 10'000'000), true},
    {"dscp_trimmed",
     "DSCP that a switch gives to a packet that the switch trims, a number of 6 bits.",
     number<&Params::dscp_trimmed>(0, 63)},
    {"dscp_trimmed_lasthop",
     "DSCP that the last switch of a path gives to a packet that the switch trims, a number of 6 "
     "bits.",
     number<&Params::dscp_trimmed_lasthop>(0, 63)},
    {"tuning",
     "All other parameters: name=value,... or @FILE with such a list, one per line or separated by "
     "commas, # begins a comment. A name that comes again counts as given last.",
     Choice{set_text<&Params::tuning>, none, "name=value,... or @FILE"}, true},
    {"mpr",
     "Packets that one packet delivery context may have outstanding, in units of 128. 0: 8, or as "
     "many more as the largest congestion window needs.",
     number<&Params::mpr>(0, 32)},
    {"mpr_zero",
     "State an MPR of 0, so that a packet delivery context of a peer may have mpr_zero_psns "
     "packets "
     "outstanding, which are fewer than 128. Needs mpr_zero_psns; mpr has no effect.",
     yes_no<&Params::mpr_zero>()},
    {"udp_source_ports",
     "UDP ports that the back end udp sends from, so that packets take several paths. 0: 8 if "
     "FI_UET_PATHS is set and not single, else 1. The ports are a row from the range 49152 to "
     "65535, with "
     "one socket each; a firewall must accept packets from any port to port 4793. Only a process "
     "at "
     "port 4793 of its address has more than one.",
     Choice{set_source_ports, source_ports_text, "0, 1, 2, 4, 8, 16, 32 or 64"}},
    {"gso", "Send runs of equal packets with one system call (UDP_SEGMENT).",
     yes_no<&Params::gso>(), true},
    {"gro", "Receive runs of equal packets with one system call (UDP_GRO).",
     yes_no<&Params::gro>()},
    {"allow_layering",
     "Offer FI_EP_DGRAM and FI_EP_MSG to utility providers, ofi_rxd and ofi_rxm, too.",
     yes_no<&Params::allow_layering>()},
    {"keep_alive_ms",
     "Milliseconds after which an idle connection of FI_EP_MSG, or an endpoint with events of the "
     "fabric (FI_UET_FABRIC_EVENTS), asks whether its peer still lives, again and again. A peer "
     "that died is reported within two periods (500 ms at least each) if it is at the other end of "
     "a connection and its process has a period too, or if its host reports that the port is "
     "closed; else when the transport gives up. Not 0: a thread asks and answers while the "
     "application computes. "
     "0: never.",
     number<&Params::keep_alive_ms>(0, 86'400'000)},
    {"live_statistics",
     "Show counters and peers while the domain runs, to programs of this user, in a file below "
     "XDG_RUNTIME_DIR, /run/user or /dev/shm; docs/live-page.md describes it.",
     yes_no<&Params::live_statistics>()},
    {"cc_loopback_window_bytes",
     "Bytes in flight to a peer on this host without congestion control, in bytes. 0: 512 KiB, or "
     "half of what a smaller socket buffer holds.",
     number<&Params::cc_loopback_window_bytes>(0, 1 << 30)},
    {"cc_train_packets",
     "Packets in a row that kernel UDP sends on one path, a number. A train has 64 KiB and a "
     "quarter of the window at most, too.",
     number<&Params::cc_train_packets>(1, 64)},
};

// Calls `use` with each row of either table and what it belongs to, until one says true.
template <class Use>
bool any_row(Params& params, Use use) {
  for (const Row& row : kRows) {
    if (use(row, params)) return true;
  }
  for (const fep::Tunable& row : fep::tunables()) {
    if (use(row, params.core)) return true;
  }
  return false;
}

std::vector<std::string_view> names_of(bool variables) {
  std::vector<std::string_view> names;
  Params unused;
  any_row(unused, [&](const auto& row, auto&) {
    if (row.variable == variables) names.emplace_back(row.name);
    return false;
  });
  return names;
}

bool contains(const std::vector<std::string_view>& names, std::string_view name) {
  for (const std::string_view each : names) {
    if (each == name) return true;
  }
  return false;
}

std::string lower(std::string_view text) {
  std::string copy(text);
  for (char& letter : copy) letter = letter >= 'A' && letter <= 'Z' ? char(letter + 32) : letter;
  return copy;
}

// ---- FI_UET_TUNING -----------------------------------------------------------------------------

std::optional<std::string> tune_one(Params& params, std::string_view name, std::string_view value) {
  if (contains(names_of(true), name)) {
    return "'" + std::string(name) + "' is a variable of its own: set " + variable_name(name) +
           "=" + std::string(value);
  }
  if (!contains(names_of(false), name)) {
    return "'" + std::string(name) + "' is not a parameter" +
           near_names_text(name, names_of(false));
  }
  return set_param(params, name, value);
}

// A regular file of bounded size; else why not in `why`.
std::string read_list(const std::string& path, std::string& why) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    why = std::strerror(errno);
    return {};
  }
  struct stat status {};
  std::string text;
  if (::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
    why = "not a regular file";
  } else {
    std::array<char, 4096> block;
    ssize_t got = 0;
    while (text.size() <= kMostTuningBytes && (got = ::read(fd, block.data(), block.size())) > 0) {
      text.append(block.data(), static_cast<std::size_t>(got));
    }
    if (got < 0) why = std::strerror(errno);
    if (text.size() > kMostTuningBytes) why = "longer than 64 KiB";
  }
  ::close(fd);
  return text;
}

std::optional<std::string> set_tuning(Params& params, const std::string& value) {
  std::string list = value;
  std::string from = "FI_UET_TUNING: ";
  if (value.starts_with('@')) {
    std::string why;
    list = read_list(value.substr(1), why);
    from = "FI_UET_TUNING=" + value + ": ";
    if (!why.empty()) return from + why;
  }
  const auto why = for_each_setting(list, [&](std::string_view name, std::string_view text) {
    return tune_one(params, name, text);
  });
  if (why) return from + *why;
  return {};
}

std::string refusal(bool variable, std::string_view name, std::string_view value,
                    const std::string& allowed) {
  return (variable ? variable_name(name) : std::string(name)) + "=" + std::string(value) +
         " is not valid; allowed: " + allowed;
}

}  // namespace

std::string variable_name(std::string_view name) {
  std::string text = "FI_UET_" + std::string(name);
  for (char& letter : text) letter = letter >= 'a' && letter <= 'z' ? char(letter - 32) : letter;
  return text;
}

std::vector<ParamText> param_texts() {
  std::vector<ParamText> texts;
  Params unused;
  any_row(unused, [&](const auto& row, auto&) {
    texts.push_back({.name = row.name,
                     .help = row.help,
                     .range = range_text(row),
                     .preset = default_text(row),
                     .variable = row.variable});
    return false;
  });
  return texts;
}

bool names_file(std::string_view name, std::string_view value) {
  if (name == "pcap" || name == "tss_keys") return true;
  if (name == "tuning") return value.starts_with('@');
  return (name == "stats" || name == "nic") && value.find(':') != std::string_view::npos;
}

std::optional<std::string> set_param(Params& params, std::string_view name,
                                     std::string_view value) {
  std::optional<std::string> why;
  const bool found = any_row(params, [&](const auto& row, auto& target) {
    if (name != row.name) return false;
    if (!set_value(target, row, value)) {
      why = refusal(row.variable, name, value, range_text(row));
    }
    return true;
  });
  if (!found) return "'" + std::string(name) + "' is not a parameter";
  if (!why && name == "tuning") return set_tuning(params, params.tuning);
  std::string message;
  if (!why && name == "faults" && !value.empty() &&
      !nic::parse_fault_spec(params.faults, message)) {
    why = refusal(true, name, value, message);
  }
  return why;
}

std::optional<std::string> find_stray(std::string_view variable) {
  constexpr std::string_view kPrefix = "FI_UET_";
  const std::string name = lower(variable.substr(kPrefix.size()));
  const auto variables = names_of(true);
  if (contains(variables, name)) return {};
  if (contains(names_of(false), name)) {
    return std::string(variable) + " is no longer a variable: set FI_UET_TUNING=" + name + "=VALUE";
  }
  std::string near;
  for (const std::string& each : near_names(name, variables)) {
    near += (near.empty() ? "; did you mean " : ", ") + variable_name(each);
  }
  for (const std::string& each : near_names(name, names_of(false))) {
    near += (near.empty() ? "; did you mean " : ", ") + ("FI_UET_TUNING=" + each + "=VALUE");
  }
  return std::string(variable) + " is not a variable of the provider" + near +
         (near.empty() ? "" : "?");
}

const char* name_of(TssMode mode) {
  for (const auto& [name, each] : kTssModes) {
    if (mode == each) return name.data();
  }
  return "";
}

PcapFiles pcap_files(const Params& params) {
  constexpr std::string_view kClear = ",clear";
  PcapFiles files{params.pcap, {}};
  if (!files.wire.ends_with(kClear)) return files;
  files.wire.resize(files.wire.size() - kClear.size());
  if (params.tss == TssMode::Off || files.wire.empty()) return files;
  const std::size_t slash = files.wire.rfind('/');
  std::size_t dot = files.wire.rfind('.');
  if (dot == std::string::npos || (slash != std::string::npos && dot < slash)) {
    dot = files.wire.size();
  }
  files.clear = files.wire.substr(0, dot) + ".clear" + files.wire.substr(dot);
  return files;
}

std::uint16_t source_ports(const Params& params) {
  if (params.udp_source_ports != 0) return static_cast<std::uint16_t>(params.udp_source_ports);
  return params.paths.value_or(cms::PathPolicy::Single) == cms::PathPolicy::Single ? 1 : 8;
}

wire::TrimMarks trim_marks(const Params& params) {
  return {.trimmed = static_cast<std::uint8_t>(params.dscp_trimmed),
          .trimmed_last_hop = static_cast<std::uint8_t>(params.dscp_trimmed_lasthop)};
}

wire::TrimMarks recognized_trim_marks(const Params& params) {
  return params.core.cms.trimming ? trim_marks(params) : wire::TrimMarks{};
}

namespace {

std::optional<std::string> find_tss_conflict(const Params& params) {
  const std::string mode = std::string("FI_UET_TSS=") + name_of(params.tss);
  if (params.tss == TssMode::Off) return {};
  if (params.crc) {  // TSS-8
    return mode +
           " excludes FI_UET_CRC=yes: the ICV of a sealed packet finds all damage; set "
           "FI_UET_CRC=no";
  }
  if (params.nic == "shared" || params.nic.starts_with("shared:")) {  // TSS-65
    return mode +
           " excludes FI_UET_NIC=shared: the PDCIDs that tell the processes of the port "
           "from each other are encrypted; use FI_UET_NIC=udp";
  }
  return {};
}

}  // namespace

// WIRE 1.3.
std::optional<std::string> find_conflict(const Params& params) {
  if (auto why = find_tss_conflict(params)) return why;
  if (const auto why = fep::find_conflict(params.core)) return "FI_UET_TUNING: " + *why;
  if (params.mpr_zero && params.core.pds.mpr_zero_psns == 0) {
    return "FI_UET_TUNING: mpr_zero=yes needs mpr_zero_psns, a number from 1 to 127";
  }
  if (!params.core.cms.trimming) return {};
  if (params.dscp_trimmed == params.dscp_trimmed_lasthop) {
    return "FI_UET_TUNING: dscp_trimmed and dscp_trimmed_lasthop must differ";
  }
  const pds::Parameters& pds = params.core.pds;
  const std::uint8_t again = pds.dscp_retransmission.value_or(pds.dscp_data);
  for (const std::uint64_t mark : {params.dscp_trimmed, params.dscp_trimmed_lasthop}) {
    for (const std::uint8_t used :
         {pds.dscp_data, pds.dscp_control, pds.dscp_datagram, pds.dscp_no_trim, again}) {
      if (mark != used) continue;
      return "FI_UET_CC_TRIMMING: DSCP " + std::to_string(mark) +
             " marks a trimmed packet; FI_UET_DSCP_DATA and, of FI_UET_TUNING, dscp_control, "
             "dscp_datagram, dscp_no_trim and dscp_retransmission must differ from "
             "it";
    }
  }
  return {};
}

}  // namespace uet::prov
