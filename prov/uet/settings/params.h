// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The parameters of the provider: a FI_UET_ variable for each that users set, and
// FI_UET_TUNING="name=value,..." or "@FILE" for all others. Two tables give name, unit, range,
// default and help text: the core's (fep/tunables.h), and that of param_table.cc for what only a
// host knows. Read through fi_param_get only, so that libfabric's own configuration file counts.
#pragma once

#include <sched.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cms/ccc.h"
#include "fep/config.h"
#include "nic/defaults.h"
#include "nic/middleware.h"
#include "uet/base/address.h"
#include "wire/frame.h"

namespace uet::prov {

// The profile that the FEP announces, and keeps to when it sends (SES-159, SES-160).
enum class Profile : std::uint8_t { AiBase, AiFull, Hpc };

// FI_UET_TSS. A domain that is opened under Prefer is secured or in clear from then on.
enum class TssMode : std::uint8_t { Off, Prefer, Require };
const char* name_of(TssMode mode);  // as in FI_UET_TSS

// FI_UET_ENGINE: the thread in which the protocol of a domain runs.
enum class EngineMode : std::uint8_t {
  Caller,   // in the calls of the application, and in a thread that FI_PROGRESS_AUTO asks for
  Thread,   // in a thread of the domain, which takes commands from submission rings
  Process,  // in the program uet_engine
};

// FI_UET_STATS: "exit", "signal" or "error", and each with ":file".
struct StatsDump {
  enum class When : std::uint8_t { Never, Exit, Signal, Error, Pages };
  When when = When::Never;
  // %p becomes the process id; empty = standard error. Pages: a directory, never empty.
  std::string file;
};
// Values as given; 0 often means "choose", see the help texts in param_table.cc.
struct Params {
  fep::Config core;  // what the core's table names; all else in it is for the domain to fill in
  std::string iface;
  std::string nic = "udp";  // back end, and its options behind a colon
  std::string pcap;
  std::string faults;
  std::string tuning;  // as given; its values stand where they belong
  std::uint64_t payload_mtu = 0;
  std::uint64_t mpr = 0;  // 0: by rule (CMS-310)
  bool mpr_zero = false;  // our MPR is 0: it stands for mpr_zero_psns (PDS-219)
  Profile profile = Profile::Hpc;
  std::uint64_t keep_alive_ms = 0;  // 0: connections are not probed
  std::uint64_t tx_size = 1024;
  std::uint64_t rx_size = 8192;  // MPI ranks post all receives of a phase before any send
  std::uint64_t socket_buffer_bytes = nic::kSocketBufferBytes;
  std::optional<cms::PathPolicy> paths;  // empty: kDefaultPaths, but one source port
  std::uint64_t udp_source_ports = 0;    // 0: by `paths`
  std::uint16_t udp_port = kUetUdpPort;
  bool gso = true;
  bool gro = true;
  bool crc = false;
  TssMode tss = TssMode::Off;
  std::string tss_keys;                        // a file, or "fd:N"; empty: none
  std::optional<cms::Algorithm> cc_algorithm;  // empty: nscc, but none on loopback
  std::uint64_t cc_link_rate_mbps = 0;
  std::uint64_t cc_loopback_window_bytes = 0;
  std::uint64_t cc_train_packets = 16;
  std::uint64_t job_id = 1;  // read_params: of the launcher (default_job.h)
  std::uint64_t dscp_trimmed = *wire::kDefaultTrimMarks.trimmed;
  std::uint64_t dscp_trimmed_lasthop = *wire::kDefaultTrimMarks.trimmed_last_hop;
  bool local_rings = true;
  EngineMode engine = EngineMode::Caller;
  std::string engine_socket;  // of EngineMode::Process; empty: where engines listen by default
  std::string engine_cpus;    // as given, for example "2-3,6"; empty: all of the process
  std::uint64_t engine_spin_us = 50;
  std::uint64_t cores = 1;  // engines of a domain, at most kMostCores
  bool allow_layering = false;
  bool live_statistics = true;
  std::uint64_t seed = 0;
  StatsDump stats;
};

inline constexpr std::uint64_t kMostCores = 64;
inline constexpr std::uint64_t kMaxTxSize = 8192;
inline constexpr std::uint64_t kMaxRxSize = 65536;

// One row of either table in words, for fi_info -e, the manual and the documents.
struct ParamText {
  std::string name;  // lower case; of a variable FI_UET_ and upper case
  std::string help;
  std::string range;
  std::string preset;
  bool variable = false;  // else a name of FI_UET_TUNING
};
std::vector<ParamText> param_texts();
// "FI_UET_RTO_INIT_US" for "rto_init_us".
std::string variable_name(std::string_view name);

// Makes the variables known to libfabric (fi_info -e). Called once, from the entry function.
// Throws bad_alloc.
void define_params();

// Empty if a value is broken, a name unknown or a variable of earlier releases set; a warning then
// names it and what is allowed. A variable that is empty counts as not set. Read again only after
// the environment has changed, a file of FI_UET_TUNING too.
std::optional<Params> load_params();

// The two files of FI_UET_PCAP: NAME,clear asks for both (TSS-70). Empty: none.
struct PcapFiles {
  std::string wire;
  std::string clear;  // packets before sealing; only under FI_UET_TSS
};
PcapFiles pcap_files(const Params& params);

// Does this value of a variable, e.g. ("pcap", "/tmp/a"), name a file that is opened or written, or
// may it?
bool names_file(std::string_view name, std::string_view value);

// Sets a parameter of either kind by its name, e.g. ("mpr", "8"): why it is refused, or empty.
std::optional<std::string> set_param(Params& params, std::string_view name, std::string_view value);

// FI_UET_UDP_PORT as load_params() has read it last: what port numbers count from (av::address_at).
std::uint16_t first_udp_port();
// Why a variable of this name, such as "FI_UET_MPR", means nothing, or empty if there is one.
std::optional<std::string> find_stray(std::string_view variable);

// udp_source_ports, with what 0 stands for.
std::uint16_t source_ports(const Params& params);
// The DSCPs with which a switch marks trimmed packets.
wire::TrimMarks trim_marks(const Params& params);
// The DSCPs by which uet recognizes a trimmed packet: trim_marks() if the network trims, else none.
// Transport security has no use for trimmed packets, but counts them (TSS-66).
wire::TrimMarks recognized_trim_marks(const Params& params);

// The processors of a list such as "2-3,6"; nullopt if it is not such a list.
std::optional<cpu_set_t> parse_cpus(std::string_view text);

// Why these values, each of them allowed, do not go together, or empty.
std::optional<std::string> find_conflict(const Params& params);

}  // namespace uet::prov
