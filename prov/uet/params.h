// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The FI_UET_ parameters: one table gives name, unit, range, default and help text. Read through
// fi_param_get only, so that libfabric's own configuration file counts too.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "stats.h"
#include "uet/cms/ccc.h"
#include "uet/cms/tuning.h"
#include "uet/nic/middleware.h"
#include "uet/wire/frame.h"

namespace uet::prov {

// What the FEP says that it serves, and keeps to when it sends (SES-159, SES-160).
enum class Profile : std::uint8_t { AiBase, AiFull, Hpc };

// Values as given; 0 often means "choose", see the help texts in params.cc.
struct Params {
  std::string iface;
  std::string nic = "udp";  // back end, and its options behind a colon
  std::string pcap;
  std::string faults;
  std::uint64_t payload_mtu = 0;
  std::uint64_t rto_init_us = 20'000;
  std::uint64_t rto_max_us = 1'000'000;
  std::uint64_t rto_retries = 14;
  std::uint64_t tail_loss_time_us = 1000;
  std::uint64_t pdc_count = 1024;
  std::uint64_t pdcs_per_destination = 1;
  std::uint64_t mpr = 0;  // 0: by rule (CMS-310)
  std::uint64_t idle_timeout_ms = 10'000;
  std::uint64_t ack_trigger_bytes = 64 * 1024;
  std::uint64_t unexpected_bytes = 16 << 20;
  std::uint64_t unexpected_bytes_per_peer = 12 << 20;
  std::uint64_t rendezvous_threshold = 4 << 10;  // bytes
  std::uint64_t eager_bytes = 64 << 10;
  std::uint64_t rendezvous_timeout = 0;  // seconds
  Profile profile = Profile::Hpc;
  bool no_match = false;
  bool short_headers = true;
  std::uint64_t deferrable_threshold = 8 << 10;  // bytes
  std::uint64_t deferred_timeout = 60;           // seconds
  std::uint64_t retries = 16;
  std::uint64_t retry_wait_us = 1000;
  std::uint64_t tx_size = 1024;
  std::uint64_t rx_size = 8192;  // MPI ranks post all receives of a phase before any send
  std::uint64_t socket_buffer_bytes = 4 << 20;
  std::uint64_t udp_source_ports = 0;  // 0: by `paths`
  bool gso = true;
  bool gro = true;
  bool crc = false;
  bool ack_after_reply = true;
  std::optional<cms::Algorithm> cc_algorithm;  // empty: nscc, but none on loopback
  std::uint64_t cc_base_rtt_us = 0;
  std::uint64_t cc_link_rate_mbps = 0;
  std::uint64_t cc_receive_rate_mbps = 0;
  std::uint64_t cc_loopback_window_bytes = 0;
  cms::PathPolicy paths = cms::PathPolicy::Single;
  std::uint64_t job_id = 1;
  std::uint64_t dscp_data = 0;
  std::optional<std::uint8_t> dscp_retransmission;
  std::uint64_t dscp_no_trim = 0;
  std::uint64_t dscp_control = 46;
  std::uint64_t dscp_datagram = 10;
  std::uint64_t dscp_trimmed = *wire::kDefaultTrimMarks.trimmed;
  std::uint64_t dscp_trimmed_lasthop = *wire::kDefaultTrimMarks.trimmed_last_hop;
  bool cc_trimming = false;
  std::uint64_t cc_remote_rate_mbps = 0;
  std::uint64_t cc_rtt_cache_s = 3600;
  std::uint64_t cc_linger_ms = 1000;
  std::uint64_t cc_train_packets = 16;
  std::uint64_t cc_path_count = 64;
  std::uint64_t cc_burst_packets = 128;
  std::uint64_t cc_ack_min_packet_bytes = 1024;
  bool cc_ack_on_ecn = true;
  bool cc_base_rtt_probe = true;
  bool cc_synthetic_ecn = true;
  bool cc_path_inference = true;
  bool cc_recovery = true;
  bool cc_oversubscription_control = false;
  cms::Tuning cc;
  bool local_rings = true;
  bool allow_layering = false;
  bool rudi = false;
  std::uint64_t seed = 0;
  StatsDump stats;
};

inline constexpr std::uint64_t kMaxTxSize = 8192;
inline constexpr std::uint64_t kMaxRxSize = 65536;

// Makes the parameters known to libfabric (fi_info -e). Called once, from the entry function.
// Throws bad_alloc.
void define_params();

// Empty if a value is broken; a warning then names variable, value and what is allowed. Read again
// only after the environment has changed.
std::optional<Params> load_params();

// Does this value of a variable, e.g. ("PCAP", "/tmp/a"), name a file that is opened or written, or
// may it?
bool names_file(std::string_view name, std::string_view value);

// The same for the value of one variable, e.g. ("MPR", "8"): why it is refused, or empty.
std::optional<std::string> set_param(Params& params, const std::string& name,
                                     const std::string& value);

// FI_UET_UDP_SOURCE_PORTS, with what 0 stands for.
std::uint16_t source_ports(const Params& params);
// What a switch that trims marks packets with.
wire::TrimMarks trim_marks(const Params& params);
// What we take for a trimmed packet: those marks where the network trims, else nothing.
wire::TrimMarks recognized_trim_marks(const Params& params);

// Why these values, each of them allowed, do not go together, or empty.
std::optional<std::string> find_conflict(const Params& params);

}  // namespace uet::prov
