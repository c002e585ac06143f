// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// All parameters are strings to libfabric, whose own number types read "abc" as 0 without a word.
#include "params.h"

#include <sys/auxv.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <charconv>
#include <functional>
#include <mutex>
#include <string_view>
#include <variant>

#include "provider.h"
#include "uet/base/types.h"
#include "uet/cms/path.h"
#include "uet/nic/registry.h"

namespace uet::prov {
namespace {

struct Text {
  std::string Params::*member;
};
struct Number {
  std::uint64_t Params::*member;
  std::uint64_t low;
  std::uint64_t high;
};
// Numbers of congestion control, with decimals or without.
struct Real {
  double cms::Tuning::*member;
  double low;
  double high;
};
struct Whole {
  double cms::Tuning::*member;
  double low;
  double high;
};
struct Switch {
  bool Params::*member;
};
// Anything else: `set` returns false if the value is not among `allowed`.
struct Special {
  bool (*set)(Params&, std::string_view);
  const char* allowed;
  const char* preset;
};

struct Row {
  const char* name;  // without FI_UET_
  const char* help;  // says what and in which unit; range and default are added
  std::variant<Text, Number, Real, Whole, Switch, Special> kind;
};

std::optional<std::uint64_t> parse_number(std::string_view text) {
  int base = 10;
  if (text.starts_with("0x")) {
    base = 16;
    text.remove_prefix(2);
  }
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc{} || end != text.data() + text.size()) return {};
  return value;
}

// Digits with or without decimals, and nothing else: no sign, no exponent, no "inf".
std::optional<double> parse_real(std::string_view text) {
  if (text.find_first_not_of("0123456789.") != std::string_view::npos) return {};
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return {};
  return value;
}

std::string text_of(double value) {
  std::array<char, 64> text{};
  const auto [end, error] =
      std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
  return error == std::errc{} ? std::string(text.data(), end) : std::string();
}

bool set_payload_mtu(Params& params, std::string_view text) {
  const auto value = parse_number(text);
  if (!value) return false;
  params.payload_mtu = *value;
  return *value == 0 || (std::has_single_bit(*value) && *value >= 1024 && *value <= 8192);
}

bool set_algorithm(Params& params, std::string_view text) {
  if (text == "nscc") params.cc_algorithm = cms::Algorithm::Nscc;
  if (text == "rccc") params.cc_algorithm = cms::Algorithm::Rccc;
  if (text == "both") params.cc_algorithm = cms::Algorithm::Both;
  if (text == "none") params.cc_algorithm = cms::Algorithm::None;
  return text == "nscc" || text == "rccc" || text == "both" || text == "none";
}

bool set_paths(Params& params, std::string_view text) {
  for (const auto& [name, policy] : cms::kPathPolicyNames) {
    if (text != name) continue;
    params.paths = policy;
    return true;
  }
  return false;
}

bool set_nic(Params& params, std::string_view text) {
  nic::NicConfig config;
  params.nic = text;
  return nic::set_back_end(config, text);
}

bool set_source_ports(Params& params, std::string_view text) {
  const auto value = parse_number(text);
  if (!value) return false;
  params.udp_source_ports = *value;
  return *value == 0 || (std::has_single_bit(*value) && *value <= 64);
}

bool set_local(Params& params, std::string_view text) {
  params.local_rings = text == "auto";
  return text == "auto" || text == "off";
}

bool set_stats(Params& params, std::string_view text) {
  return parse_stats_dump(text, params.stats);
}

bool set_dscp_retransmission(Params& params, std::string_view text) {
  params.dscp_retransmission.reset();
  if (text == "data") return true;
  const std::optional<std::uint64_t> number = parse_number(text);
  if (!number || *number > 63) return false;
  params.dscp_retransmission = static_cast<std::uint8_t>(*number);
  return true;
}

bool set_profile(Params& params, std::string_view text) {
  if (text == "ai_base") params.profile = Profile::AiBase;
  if (text == "ai_full") params.profile = Profile::AiFull;
  if (text == "hpc") params.profile = Profile::Hpc;
  return text == "ai_base" || text == "ai_full" || text == "hpc";
}

const Row kRows[] = {
    {"IFACE", "Network interfaces to use, names separated by commas. Default: all that are up",
     Text{&Params::iface}},
    {"NIC",
     "What moves the packets: udp is the kernel's UDP socket; every other NAME is the module "
     "libuet-nic-NAME.so beside the provider. Options of the back end stand behind a colon",
     Special{set_nic, "a name in lower case, or NAME:OPTIONS", "udp"}},
    {"PCAP",
     "File (pcapng) to record all packets in, %p becomes the process id. Default: no recording",
     Text{&Params::pcap}},
    {"FAULTS",
     "Faults to inject into received packets, e.g. "
     "loss=1%,dup=0.5%,reorder=2%,corrupt=0.1%,trim=1%,mark=5%,"
     "seed=7."
     " Default: none",
     Text{&Params::faults}},
    {"PAYLOAD_MTU",
     "Payload of a full packet in bytes, the same at both ends; 0 = the largest that the "
     "interface's MTU allows",
     Special{set_payload_mtu, "0, 1024, 2048, 4096 or 8192", "0"}},
    {"RTO_INIT_US", "First retransmission time-out in microseconds",
     Number{&Params::rto_init_us, 100, 60'000'000}},
    {"RTO_MAX_US", "Largest retransmission time-out after back-off, in microseconds",
     Number{&Params::rto_max_us, 100, 60'000'000}},
    {"RTO_RETRIES", "Retransmissions of a packet in vain before its operations fail",
     Number{&Params::rto_retries, 1, 1000}},
    {"TAIL_LOSS_TIME_US",
     "When the peer is asked whether it has a message that nobody waits for, such as an injected "
     "one, in microseconds; 0 = each asks with its last packet",
     Number{&Params::tail_loss_time_us, 0, 1'000'000}},
    {"PDC_COUNT", "Packet delivery contexts of a domain, a number",
     Number{&Params::pdc_count, 64, 32768}},
    {"PDCS_PER_DESTINATION",
     "Packet delivery contexts to one destination, so that a short message need not wait behind a "
     "long one",
     Number{&Params::pdcs_per_destination, 1, 64}},
    {"MPR",
     "Packets that a peer may have outstanding, in units of 128; 0 = 8, or as many more as the "
     "largest congestion window needs",
     Number{&Params::mpr, 0, 32}},
    {"IDLE_TIMEOUT_MS", "Idle time after which a packet delivery context is closed, milliseconds",
     Number{&Params::idle_timeout_ms, 10, 86'400'000}},
    {"ACK_TRIGGER_BYTES", "Bytes received after which an ACK is due",
     Number{&Params::ack_trigger_bytes, 0, 1 << 20}},
    {"UNEXPECTED_BYTES", "Memory in bytes per endpoint for messages without a posted receive",
     Number{&Params::unexpected_bytes, 64 << 10, std::uint64_t{1} << 40}},
    {"UNEXPECTED_BYTES_PER_PEER",
     "Memory that unexpected messages of one host may take in a domain, in bytes",
     Number{&Params::unexpected_bytes_per_peer, 64 << 10, std::uint64_t{1} << 40}},
    {"RENDEZVOUS_THRESHOLD",
     "Length in bytes above which a message that nobody waits for is not kept but read later",
     Number{&Params::rendezvous_threshold, 0, UINT32_MAX}},
    {"EAGER_BYTES", "Bytes of such a message that are kept while memory lasts",
     Number{&Params::eager_bytes, 0, UINT32_MAX}},
    {"RENDEZVOUS_TIMEOUT",
     "Seconds after which a send fails that its target has not read; 0 = as long as the peer lives",
     Number{&Params::rendezvous_timeout, 0, 1'000'000}},
    {"PROFILE", "The largest profile of the UET specification that is offered and made use of",
     Special{set_profile, "ai_base, ai_full or hpc", "hpc"}},
    {"SHORT_HEADERS",
     "Send messages of one packet with the medium or small header to peers whose address says that "
     "they take the optimised non-matching one, a switch",
     Switch{&Params::short_headers}},
    {"DEFERRABLE_THRESHOLD",
     "Length in bytes from which unordered messages are deferrable, under FI_UET_PROFILE=ai_full",
     Number{&Params::deferrable_threshold, 1, UINT32_MAX}},
    {"DEFERRED_TIMEOUT",
     "Seconds after which a send fails that its target has put off; 0 = as long as the peer lives",
     Number{&Params::deferred_timeout, 0, 1'000'000}},
    {"NO_MATCH",
     "Refuse a message that nobody waits for and no memory is left for with NO_MATCH instead of a "
     "NACK, so that its sender starts it anew, a switch",
     Switch{&Params::no_match}},
    {"RETRIES", "Times that an operation is sent again which its target has refused for now",
     Number{&Params::retries, 0, 65535}},
    {"RETRY_WAIT_US",
     "About how long such an operation waits at first, in microseconds; twice as long each time, "
     "100 ms at most",
     Number{&Params::retry_wait_us, 1, 100'000}},
    {"TX_SIZE", "Default number of operations in progress per endpoint",
     Number{&Params::tx_size, 16, kMaxTxSize}},
    {"RX_SIZE", "Default number of posted receives per endpoint",
     Number{&Params::rx_size, 16, kMaxRxSize}},
    {"SOCKET_BUFFER_BYTES", "Wished size in bytes of the UDP socket's buffers, each direction",
     Number{&Params::socket_buffer_bytes, 64 << 10, 1 << 30}},
    {"LOCAL",
     "Rings in shared memory to processes of this user on this host: auto finds them, off sends "
     "everything through the NIC",
     Special{set_local, "auto or off", "auto"}},
    {"UDP_SOURCE_PORTS",
     "UDP ports that the back end udp sends from, each packet from one of them, so that packets "
     "take several paths; 0 = 8 where FI_UET_PATHS is not single, else 1. Only for a process at "
     "port 4793 of its address",
     Special{set_source_ports, "0, 1, 2, 4, 8, 16, 32 or 64", "0"}},
    {"GSO", "Send runs of equal packets as one (UDP_SEGMENT), a switch", Switch{&Params::gso}},
    {"GRO", "Receive runs of equal packets as one (UDP_GRO), a switch", Switch{&Params::gro}},
    {"ACK_AFTER_REPLY",
     "Keep the ACK of a message that the application is being told of until it has replied, 1 ms "
     "at most, where it makes the progress itself, a switch",
     Switch{&Params::ack_after_reply}},
    {"CRC",
     "Send a CRC-32C behind every packet and drop packets without or with a wrong one; the same at "
     "both ends, a switch",
     Switch{&Params::crc}},
    {"CC_ALGORITHM",
     "Congestion control: nscc, rccc (receiver credit, at both ends), both, or none for a fixed "
     "window",
     Special{set_algorithm, "nscc, rccc, both or none (TFC is not implemented)",
             "nscc, to peers on this host none"}},
    {"CC_RECEIVE_RATE_MBPS", "Rate in Mbit/s at which rccc lets peers send here, 0 = the link rate",
     Number{&Params::cc_receive_rate_mbps, 0, 10'000'000}},
    {"CC_BASE_RTT_US", "Round-trip time of the idle network in microseconds, 0 = measured",
     Number{&Params::cc_base_rtt_us, 0, 10'000'000}},
    {"CC_LINK_RATE_MBPS",
     "Link rate in Mbit/s for congestion control, 0 = as the interface says, 100000 of a veth",
     Number{&Params::cc_link_rate_mbps, 0, 10'000'000}},
    {"CC_LOOPBACK_WINDOW_BYTES",
     "Bytes in flight to a peer on this host without congestion control, 0 = by socket buffer",
     Number{&Params::cc_loopback_window_bytes, 0, 1 << 30}},
    {"CC_TRIMMING",
     "The network trims packets instead of dropping them: packets with the DSCPs below are "
     "answered so that their payload comes again at once, a switch",
     Switch{&Params::cc_trimming}},
    {"CC_MAX_WINDOW_BDP", "Largest congestion window in bandwidth-delay products",
     Real{&cms::Tuning::max_window_bdp, 0.1, 64}},
    {"CC_INITIAL_WINDOW_BYTES", "First congestion window in bytes, 0 = the largest",
     Real{&cms::Tuning::initial_window_bytes, 0, 1073741824}},
    {"CC_MIN_WINDOW_BYTES",
     "Smallest congestion window in bytes, 0 = one packet, which is the least",
     Real{&cms::Tuning::min_window_bytes, 0, 1073741824}},
    {"CC_REFERENCE_RATE_MBPS",
     "Rate in Mbit/s of the network that the gains of NSCC are scaled from",
     Real{&cms::Tuning::reference_rate_mbps, 1, 10000000}},
    {"CC_REFERENCE_RTT_US", "Round-trip time in microseconds of the same network",
     Real{&cms::Tuning::reference_rtt_us, 0.1, 1000000}},
    {"CC_TARGET_QDELAY_US",
     "Target queueing delay in microseconds, 0 = base round-trip time, 3/4 of it with trimming",
     Real{&cms::Tuning::target_qdelay_us, 0, 1000000}},
    {"CC_ALPHA_BYTES_PER_US",
     "Gain of the increase below the target delay, in bytes per microsecond, 0 = by rule",
     Real{&cms::Tuning::alpha_bytes_per_us, 0, 1000000000}},
    {"CC_FI_BYTES", "Gain of the even increase above it (fi), in bytes, 0 = by rule",
     Real{&cms::Tuning::fi_bytes, 0, 1000000000}},
    {"CC_ETA_BYTES", "Increase in each period whatever happens (eta), in bytes, 0 = by rule",
     Real{&cms::Tuning::eta_bytes, 0, 1000000000}},
    {"CC_FI_SCALE",
     "Gain of the fast increase while there is no delay (fi_scale), a factor, 0 = by rule",
     Real{&cms::Tuning::fi_scale, 0, 100}},
    {"CC_GAMMA", "Gain of a decrease, a factor", Real{&cms::Tuning::gamma, 0, 1}},
    {"CC_MAX_MD_JUMP", "Part of the window that a decrease leaves at least",
     Real{&cms::Tuning::max_md_jump, 0, 1}},
    {"CC_QA_GATE", "Quick adapt happens below the largest window / 2^this",
     Whole{&cms::Tuning::qa_gate, 0, 16}},
    {"CC_QA_THRESHOLD_US",
     "Queueing delay in microseconds that lets quick adapt happen where the network does not trim, "
     "0 = four times the target delay",
     Real{&cms::Tuning::qa_threshold_us, 0, 10000000}},
    {"CC_ADJUST_BYTES", "An increase is applied after so many acknowledged bytes, 0 = 8 packets",
     Real{&cms::Tuning::adjust_bytes, 0, 1073741824}},
    {"CC_ADJUST_PERIOD_US",
     "Or after so many microseconds, more where hosts are slow, 0 = the base round-trip time",
     Real{&cms::Tuning::adjust_period_us, 0, 10000000}},
    {"CC_QUIET_US", "Delay in microseconds that counts as none, 0 = by rule",
     Real{&cms::Tuning::quiet_us, 0, 1000000}},
    {"CC_DELAY_AVERAGE_RTTS", "Memory of the averaged delay in base round-trip times",
     Real{&cms::Tuning::delay_average_rtts, 0.01, 1000}},
    {"CC_DECREASE_SPACING_RTTS", "Time between two decreases in base round-trip times",
     Real{&cms::Tuning::decrease_spacing_rtts, 0, 1000}},
    {"CC_RAISE_AFTER_RTTS",
     "The base round-trip time is raised after so many of them without a short sample",
     Real{&cms::Tuning::raise_after_rtts, 1, 1000000000}},
    {"CC_SYNTHETIC_ECN_AT", "Delay that counts as a mark, in target delays",
     Real{&cms::Tuning::synthetic_ecn_at, 0.1, 100}},
    {"CC_SPECULATIVE_BDP", "What rccc sends before there is credit, in bandwidth-delay products",
     Real{&cms::Tuning::speculative_bdp, 0, 16}},
    {"CC_GRANT_BYTES", "Bytes that rccc grants a peer in its turn, 0 = four packets",
     Real{&cms::Tuning::grant_bytes, 0, 1073741824}},
    {"CC_PACER_FRACTION", "Part of the rate that rccc grants",
     Real{&cms::Tuning::pacer_fraction, 0.01, 1}},
    {"CC_CREDIT_REQUEST_RTTS",
     "Time without credit after which a Credit Request is sent, in base round-trip times",
     Real{&cms::Tuning::credit_request_rtts, 0.1, 1000}},
    {"CC_ZERO_GRANT_BYTES",
     "What an answer to a Credit Request that grants nothing new takes of the rate that rccc "
     "grants, in bytes",
     Real{&cms::Tuning::zero_grant_bytes, 0, 1048576}},
    {"CC_PENALTY_ECN",
     "What a mark adds to the penalty of its path, with bitmap and mixed, a number",
     Whole{&cms::Tuning::penalty_ecn, 0, 255}},
    {"CC_PENALTY_NACK", "What a trimmed packet adds, likewise",
     Whole{&cms::Tuning::penalty_nack, 0, 255}},
    {"CC_PENALTY_TIMEOUT", "What a lost packet adds, likewise",
     Whole{&cms::Tuning::penalty_timeout, 0, 255}},
    {"CC_PENALTY_LIMIT", "Largest penalty of a path, a number",
     Whole{&cms::Tuning::penalty_limit, 1, 255}},
    {"CC_REPS_RING", "Paths that reps and mixed remember as good, a number",
     Whole{&cms::Tuning::reps_ring, 1, 1024}},
    {"CC_REPS_EXPLORE_BDP",
     "How much reps sends on paths at random at first, in bandwidth-delay products",
     Real{&cms::Tuning::reps_explore_bdp, 0, 1000}},
    {"CC_REPS_FREEZE_US",
     "How long reps keeps to known paths after a loss, in microseconds, 0 = 8 base round-trip "
     "times, 100 at least",
     Real{&cms::Tuning::reps_freeze_us, 0, 1000000000}},
    {"CC_REPS_EXPLORE_PACKETS", "Packets that reps sends on paths at random after that",
     Whole{&cms::Tuning::reps_explore_packets, 0, 1000000}},
    {"CC_UNSOLICITED_BDP",
     "Credit that rccc gives unasked while nobody asks, in bandwidth-delay products, 0 = none",
     Real{&cms::Tuning::unsolicited_bdp, 0, 100}},
    {"CC_PATH_REST_RTTS",
     "How long a path that drew a mark or a trimmed packet is left alone at most, in base "
     "round-trip times",
     Real{&cms::Tuning::path_rest_rtts, 0, 1000}},
    {"CC_PATH_SILENCE_RTTS",
     "Time without an answer that counts as a loss on a path, in base round-trip times, 0 = never",
     Real{&cms::Tuning::path_silence_rtts, 0, 1000}},
    {"CC_PATH_BAN_AFTER",
     "Losses in a row after which a path is not used for seconds, a number, 0 = never",
     Whole{&cms::Tuning::path_ban_after, 0, 255}},
    {"CC_PATH_BAN_S", "How long it is not used, in seconds; twice as long each time in a row",
     Real{&cms::Tuning::path_ban_s, 0.000001, 1800}},
    {"CC_PATH_BAN_LONGEST_S", "The longest of these times, in seconds",
     Real{&cms::Tuning::path_ban_longest_s, 0.000001, 1800}},
    {"CC_REROUTE_RTTS",
     "Traffic on a single path takes another one when a packet times out, at most once in so long, "
     "in base round-trip times, 0 = never",
     Real{&cms::Tuning::reroute_rtts, 0, 1000000}},
    {"CC_PATH_INFERENCE",
     "Take a packet for lost when one that left later on its path has arrived; off where switches "
     "choose ways by themselves, a switch",
     Switch{&Params::cc_path_inference}},
    {"CC_PATH_INFERENCE_WAIT_RTTS",
     "How long such a packet is waited for at first, in base round-trip times",
     Real{&cms::Tuning::path_inference_wait_rtts, 0, 1000}},
    {"CC_RECOVERY",
     "Ask for what has arrived when no answer comes, and with several paths, without trimming or "
     "with credit, take for lost what many later packets have overtaken, a switch",
     Switch{&Params::cc_recovery}},
    {"CC_RECOVERY_WINDOWS",
     "Later packets that prove a loss so, in congestion windows, the largest window at most",
     Real{&cms::Tuning::recovery_windows, 0, 64}},
    {"CC_RECOVERY_PACKETS", "And so many packets at least, a number",
     Whole{&cms::Tuning::recovery_packets, 1, 4096}},
    {"CC_RECOVERY_SILENCE_RTTS",
     "Time without an answer after which it is asked what has arrived, in base round-trip times",
     Real{&cms::Tuning::recovery_silence_rtts, 0.1, 1000}},
    {"CC_RECOVERY_RETRY_RTTS", "Time until it is asked again, in base round-trip times",
     Real{&cms::Tuning::recovery_retry_rtts, 0.1, 1000}},
    {"CC_TRAIN_PACKETS",
     "Packets in a row on one path at most, where the kernel's UDP sends several as one",
     Number{&Params::cc_train_packets, 1, 64}},
    {"CC_REMOTE_RATE_MBPS",
     "Link rate in Mbit/s of the peers, if it is lower than that of this host, 0 = as this host's",
     Number{&Params::cc_remote_rate_mbps, 0, 10'000'000}},
    {"CC_RTT_CACHE_S", "Seconds for which the base round-trip time of a peer is remembered",
     Number{&Params::cc_rtt_cache_s, 0, 1'000'000}},
    {"CC_LINGER_MS",
     "Milliseconds for which a congestion context without traffic keeps its window and what it "
     "knows of paths, 0 = not at all",
     Number{&Params::cc_linger_ms, 0, 86'400'000}},
    {"CC_BASE_RTT_PROBE",
     "Measure the base round-trip time with a probe, unless it is configured, a switch",
     Switch{&Params::cc_base_rtt_probe}},
    {"CC_SYNTHETIC_ECN",
     "Take a long delay for a mark as long as the network has marked nothing, without trimming, a "
     "switch",
     Switch{&Params::cc_synthetic_ecn}},
    {"CC_PATH_COUNT", "Paths (entropy values) that a congestion context chooses from",
     Number{&Params::cc_path_count, 1, 1024}},
    {"CC_BURST_PACKETS", "Packets made in one pass at most",
     Number{&Params::cc_burst_packets, 1, 4096}},
    {"CC_ACK_ON_ECN", "Acknowledge a marked packet at once, a switch",
     Switch{&Params::cc_ack_on_ecn}},
    {"CC_ACK_MIN_PACKET_BYTES",
     "What a short packet counts towards ACK_TRIGGER_BYTES at least, in bytes",
     Number{&Params::cc_ack_min_packet_bytes, 0, 65536}},
    {"CC_OVERSUBSCRIPTION_CONTROL",
     "Let rccc grant less when the network on the way marks and trims, a switch",
     Switch{&Params::cc_oversubscription_control}},
    {"CC_OVERSUBSCRIPTION_PERIOD_RTTS", "Its period in base round-trip times",
     Real{&cms::Tuning::oversubscription_period_rtts, 0.1, 1000}},
    {"CC_OVERSUBSCRIPTION_GAIN", "Weight of a period in its average of marks",
     Real{&cms::Tuning::oversubscription_gain, 0, 1}},
    {"CC_OVERSUBSCRIPTION_TARGET",
     "Part of the packets that may be marked before it lowers the rate",
     Real{&cms::Tuning::oversubscription_target, 0, 1}},
    {"CC_OVERSUBSCRIPTION_CUT", "How much it lowers the rate for the marks beyond, a factor",
     Real{&cms::Tuning::oversubscription_cut, 0, 1}},
    {"CC_OVERSUBSCRIPTION_STEP", "How much it raises the rate in a period, part of the rate",
     Real{&cms::Tuning::oversubscription_step, 0, 1}},
    {"CC_BACKLOG_LOW_BYTES", "Bytes received and not yet taken from which on rccc grants less",
     Real{&cms::Tuning::backlog_low_bytes, 0, 1000000000}},
    {"CC_BACKLOG_HIGH_BYTES", "Bytes received and not yet taken at which it grants next to nothing",
     Real{&cms::Tuning::backlog_high_bytes, 1, 1000000000}},
    {"CC_PEND_LOW", "Part of the receive memory in use from which on peers are asked to send less",
     Real{&cms::Tuning::pend_low, 0, 1}},
    {"CC_PEND_HIGH",
     "Part of the receive memory in use from which on they are asked for one packet per round trip",
     Real{&cms::Tuning::pend_high, 0, 1}},
    {"CC_RESTORE_BELOW", "Part of the receive memory below which they may send as before",
     Real{&cms::Tuning::restore_below, 0, 1}},
    {"PATHS",
     "Choice of network paths: single, or one of many per packet, without (oblivious, round_robin) "
     "or with (bitmap, reps, mixed) regard to what became of earlier ones; only where the NIC can "
     "set the entropy of a packet (the kernel's UDP by FI_UET_UDP_SOURCE_PORTS)",
     Special{set_paths, "single, oblivious, round_robin, bitmap, reps or mixed", "single"}},
    {"JOB_ID", "JobID of endpoints without auth_key, a number",
     Number{&Params::job_id, 0, kMaxJobId}},
    {"DSCP_DATA", "DSCP (6 bits) of packets with data", Number{&Params::dscp_data, 0, 63}},
    {"DSCP_RETRANSMISSION", "DSCP (6 bits) of packets with data that are sent again",
     Special{set_dscp_retransmission, "0 to 63, or data for that of DSCP_DATA", "data"}},
    {"DSCP_NO_TRIM",
     "DSCP (6 bits) of packets that were trimmed four times: one that switches do not trim",
     Number{&Params::dscp_no_trim, 0, 63}},
    {"DSCP_CONTROL", "DSCP (6 bits) of ACKs and control packets",
     Number{&Params::dscp_control, 0, 63}},
    {"DSCP_DATAGRAM", "DSCP (6 bits) of the packets of FI_EP_DGRAM endpoints",
     Number{&Params::dscp_datagram, 0, 63}},
    {"DSCP_TRIMMED", "DSCP (6 bits) that a switch gives to what it trims",
     Number{&Params::dscp_trimmed, 0, 63}},
    {"DSCP_TRIMMED_LASTHOP", "DSCP (6 bits) that the last switch on the way gives to what it trims",
     Number{&Params::dscp_trimmed_lasthop, 0, 63}},
    {"RUDI",
     "Use the mode RUDI, which needs no connection state, for RMA with idempotent-safe keys (bit "
     "63 set) to peers of the HPC profile, a switch",
     Switch{&Params::rudi}},
    {"ALLOW_LAYERING", "Offer FI_EP_DGRAM to utility providers such as ofi_rxd too, a switch",
     Switch{&Params::allow_layering}},
    {"SEED", "Seed of start PSNs, context ids and entropy values, 0 = a random one",
     Number{&Params::seed, 0, UINT64_MAX}},
    {"STATS",
     "Write all counters of a domain when it is closed, or whenever SIGUSR2 comes, to standard "
     "error or a file (%p becomes the process id)",
     Special{set_stats, "exit, signal, exit:file or signal:file", "never"}},
};

std::string range_text(const Row& row) {
  const Params preset;
  if (const auto* number = std::get_if<Number>(&row.kind)) {
    return std::to_string(number->low) + " to " + std::to_string(number->high);
  }
  if (const auto* real = std::get_if<Real>(&row.kind)) {
    return text_of(real->low) + " to " + text_of(real->high);
  }
  if (const auto* whole = std::get_if<Whole>(&row.kind)) {
    return "whole numbers from " + text_of(whole->low) + " to " + text_of(whole->high);
  }
  if (const auto* special = std::get_if<Special>(&row.kind)) return special->allowed;
  return std::holds_alternative<Switch>(row.kind) ? "yes or no (1/0, true/false, on/off)" : "text";
}

std::string default_text(const Row& row) {
  const Params preset;
  if (const auto* number = std::get_if<Number>(&row.kind)) {
    return std::to_string(preset.*(number->member));
  }
  if (const auto* real = std::get_if<Real>(&row.kind)) return text_of(preset.cc.*(real->member));
  if (const auto* whole = std::get_if<Whole>(&row.kind)) {
    return text_of(preset.cc.*(whole->member));
  }
  if (const auto* special = std::get_if<Special>(&row.kind)) return special->preset;
  return preset.*(std::get<Switch>(row.kind).member) ? "yes" : "no";
}

std::optional<bool> parse_switch(std::string_view text) {
  if (text == "1" || text == "yes" || text == "true" || text == "on") return true;
  if (text == "0" || text == "no" || text == "false" || text == "off") return false;
  return {};
}

bool apply(Params& params, const Row& row, const std::string& value) {
  if (const auto* text = std::get_if<Text>(&row.kind)) {
    params.*(text->member) = value;
    return true;
  }
  if (const auto* number = std::get_if<Number>(&row.kind)) {
    const auto parsed = parse_number(value);
    if (!parsed || *parsed < number->low || *parsed > number->high) return false;
    params.*(number->member) = *parsed;
    return true;
  }
  if (const auto* real = std::get_if<Real>(&row.kind)) {
    const auto parsed = parse_real(value);
    if (!parsed || *parsed < real->low || *parsed > real->high) return false;
    params.cc.*(real->member) = *parsed;
    return true;
  }
  if (const auto* whole = std::get_if<Whole>(&row.kind)) {
    const auto parsed = parse_number(value);
    if (!parsed || double(*parsed) < whole->low || double(*parsed) > whole->high) return false;
    params.cc.*(whole->member) = double(*parsed);
    return true;
  }
  if (const auto* special = std::get_if<Special>(&row.kind)) return special->set(params, value);
  const auto parsed = parse_switch(value);
  if (parsed) params.*(std::get<Switch>(row.kind).member) = *parsed;
  return parsed.has_value();
}

std::string refusal(const Row& row, const std::string& value, const std::string& allowed) {
  return "FI_UET_" + std::string(row.name) + "=" + value + " is not valid; allowed: " + allowed;
}

std::optional<std::string> set_row(Params& params, const Row& row, const std::string& value) {
  if (!apply(params, row, value)) return refusal(row, value, range_text(row));
  if (std::string_view(row.name) == "FAULTS" && !value.empty()) {
    std::string message;
    if (!nic::parse_fault_spec(value, message)) return refusal(row, value, message);
  }
  return {};
}

// A program with more rights than its user (AT_SECURE) writes no files of the user's choice.
bool has_foreign_rights() { return ::getauxval(AT_SECURE) != 0; }

// Differs when a FI_UET_ variable does.
std::size_t environment_mark() {
  constexpr std::string_view kPrefix = "FI_UET_";
  std::size_t mark = 0;
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    const std::string_view text(*variable);
    if (text.starts_with(kPrefix)) mark = mark * 31 + std::hash<std::string_view>{}(text);
  }
  return mark;
}

std::optional<Params> read_params() {
  Params params;
  const bool secure = has_foreign_rights();
  bool good = true;
  for (const Row& row : kRows) {
    std::string name(row.name);
    for (char& letter : name) letter = letter >= 'A' && letter <= 'Z' ? char(letter + 32) : letter;
    char* value = nullptr;
    if (fi_param_get(&provider, name.c_str(), &value) != 0 || value == nullptr) continue;
    if (secure && names_file(row.name, value)) {
      FI_WARN(&provider, FI_LOG_CORE, "FI_UET_%s is ignored: the program has other rights\n",
              row.name);
      continue;
    }
    if (const auto why = set_row(params, row, value)) {
      FI_WARN(&provider, FI_LOG_CORE, "%s\n", why->c_str());
      good = false;
    }
  }
  if (const auto why = find_conflict(params); good && why) {
    FI_WARN(&provider, FI_LOG_CORE, "%s\n", why->c_str());
    good = false;
  }
  if (good && params.rto_max_us < params.rto_init_us) params.rto_max_us = params.rto_init_us;
  if (!good) return {};
  return params;
}

}  // namespace

bool names_file(std::string_view name, std::string_view value) {
  if (name == "PCAP") return true;
  return (name == "STATS" || name == "NIC") && value.find(':') != std::string_view::npos;
}

void define_params() {
  for (const Row& row : kRows) {
    // libfabric takes lower case here and shows FI_UET_ with upper case.
    std::string name(row.name);
    for (char& letter : name) letter = letter >= 'A' && letter <= 'Z' ? char(letter + 32) : letter;
    std::string help(row.help);
    if (!std::holds_alternative<Text>(row.kind)) {
      help += " (" + range_text(row) + "; default: " + default_text(row) + ")";
    }
    fi_param_define(&provider, name.c_str(), FI_PARAM_STRING, "%s", help.c_str());
  }
}

std::optional<std::string> set_param(Params& params, const std::string& name,
                                     const std::string& value) {
  for (const Row& row : kRows) {
    if (name == row.name) return set_row(params, row, value);
  }
  return "FI_UET_" + name + " is not a parameter";
}

std::uint16_t source_ports(const Params& params) {
  if (params.udp_source_ports != 0) return static_cast<std::uint16_t>(params.udp_source_ports);
  return params.paths == cms::PathPolicy::Single ? 1 : 8;
}

wire::TrimMarks trim_marks(const Params& params) {
  return {.trimmed = static_cast<std::uint8_t>(params.dscp_trimmed),
          .trimmed_last_hop = static_cast<std::uint8_t>(params.dscp_trimmed_lasthop)};
}

wire::TrimMarks recognized_trim_marks(const Params& params) {
  return params.cc_trimming ? trim_marks(params) : wire::TrimMarks{};
}

// WIRE 1.3.
std::optional<std::string> find_conflict(const Params& params) {
  if (params.cc.pend_low >= params.cc.pend_high) {
    return "FI_UET_CC_PEND_LOW must be less than FI_UET_CC_PEND_HIGH";
  }
  if (params.cc.restore_below > params.cc.pend_low) {
    return "FI_UET_CC_RESTORE_BELOW must not be more than FI_UET_CC_PEND_LOW";
  }
  if (params.cc.backlog_low_bytes >= params.cc.backlog_high_bytes) {
    return "FI_UET_CC_BACKLOG_LOW_BYTES must be less than FI_UET_CC_BACKLOG_HIGH_BYTES";
  }
  if (params.cc.path_ban_s > params.cc.path_ban_longest_s) {
    return "FI_UET_CC_PATH_BAN_S must not be more than FI_UET_CC_PATH_BAN_LONGEST_S";
  }
  if (!params.cc_trimming) return {};
  if (params.dscp_trimmed == params.dscp_trimmed_lasthop) {
    return "FI_UET_DSCP_TRIMMED and FI_UET_DSCP_TRIMMED_LASTHOP must differ";
  }
  const std::uint64_t again =
      params.dscp_retransmission.value_or(static_cast<std::uint8_t>(params.dscp_data));
  for (const std::uint64_t mark : {params.dscp_trimmed, params.dscp_trimmed_lasthop}) {
    for (const std::uint64_t used : {params.dscp_data, params.dscp_control, params.dscp_datagram,
                                     params.dscp_no_trim, again}) {
      if (mark != used) continue;
      return "FI_UET_CC_TRIMMING: DSCP " + std::to_string(mark) +
             " says that a packet was trimmed, so that FI_UET_DSCP_DATA, FI_UET_DSCP_CONTROL, "
             "FI_UET_DSCP_DATAGRAM, FI_UET_DSCP_NO_TRIM and FI_UET_DSCP_RETRANSMISSION must differ "
             "from it";
    }
  }
  return {};
}

std::optional<Params> load_params() {
  // fi_param_get searches and logs each variable, which is too much for every fi_getinfo. What it
  // answers changes only when the environment does: libfabric reads its own file once.
  static std::mutex mutex;
  static std::size_t seen = 0;
  // Never destroyed: other threads may still be in here when the process ends.
  static std::optional<Params>& params = *new std::optional<Params>;
  const std::lock_guard lock(mutex);
  const std::size_t now = environment_mark();
  if (!params || seen != now) params = read_params();  // broken values warn each time
  seen = now;
  return params;
}

}  // namespace uet::prov
