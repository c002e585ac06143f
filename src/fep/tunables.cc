// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The table itself: what each value does, in words that stand alone.
#include "fep/tunables.h"

#include <algorithm>
#include <array>

namespace uet::fep {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;
using Pds = pds::Parameters;
using Ses = ses::Parameters;
using Cms = cms::Parameters;
using Cc = cms::Tuning;

// NOLINTBEGIN(readability-identifier-naming): called like functions
template <auto Member>
constexpr auto pds_count = whole<Config, &Config::pds, Member>;
template <class Unit, auto Member>
constexpr auto pds_time = duration<Config, Unit, &Config::pds, Member>;
template <auto Member>
constexpr auto ses_count = whole<Config, &Config::ses, Member>;
template <class Unit, auto Member>
constexpr auto ses_time = duration<Config, Unit, &Config::ses, Member>;
template <auto Member>
constexpr auto cc = real<Config, &Config::cms, &Cms::tuning, Member>;
template <auto Member>
constexpr auto cc_count = whole_real<Config, &Config::cms, &Cms::tuning, Member>;
template <auto Member>
constexpr auto cms_switch = on_off<Config, &Config::cms, Member>;
// NOLINTEND(readability-identifier-naming)

constexpr std::uint64_t kMostMemory = std::uint64_t{1} << 40;
constexpr std::uint64_t kMostMbps = 10'000'000;
constexpr std::uint64_t kMostSeconds = 1'000'000;
constexpr std::uint64_t kDayMs = 86'400'000;

// Mbit/s; 0 for a rate that bounds nothing.
template <auto Member>
constexpr Tunable::Whole rate_mbps() {
  return {
      [](const Config& c) { return c.cms.*Member == UINT64_MAX ? 0 : c.cms.*Member / 1'000'000; },
      [](Config& c, std::uint64_t mbps) {
        c.cms.*Member = mbps == 0 ? UINT64_MAX : mbps * 1'000'000;
      },
      0, kMostMbps};
}

constexpr Tunable::Whole base_rtt() {
  return {
      [](const Config& c) {
        const auto rtt = c.cms.base_rtt.value_or(Duration{0});
        return static_cast<std::uint64_t>(std::chrono::duration_cast<microseconds>(rtt).count());
      },
      [](Config& c, std::uint64_t us) {
        c.cms.base_rtt.reset();
        if (us != 0) c.cms.base_rtt = microseconds(us);
      },
      0, 10'000'000};
}

// Milliseconds; 0 for Tombstone_Time.
constexpr Tunable::Whole syn_retx_safety_time() {
  return {
      [](const Config& c) {
        const auto time = c.pds.syn_retx_safety_time.value_or(Duration{0});
        return static_cast<std::uint64_t>(std::chrono::duration_cast<milliseconds>(time).count());
      },
      [](Config& c, std::uint64_t ms) {
        c.pds.syn_retx_safety_time.reset();
        if (ms != 0) c.pds.syn_retx_safety_time = milliseconds(ms);
      },
      0, kDayMs};
}

bool set_dscp_retransmission(Config& config, std::string_view text) {
  config.pds.dscp_retransmission.reset();
  if (text == "data") return true;
  const std::optional<std::uint64_t> number = parse_whole(text);
  if (!number || *number > 63) return false;
  config.pds.dscp_retransmission = static_cast<std::uint8_t>(*number);
  return true;
}

std::string dscp_retransmission_text(const Config& config) {
  const auto dscp = config.pds.dscp_retransmission;
  return dscp ? std::to_string(*dscp) : "data";
}

constexpr Tunable kDelivery[] = {
    {"rto_init_us",
     "First retransmission time-out, in microseconds: a packet that is not acknowledged by then is "
     "sent again. The time-out doubles with each repetition. If the peer is slow but answers, the "
     "time-out is as long as the answers take.",
     pds_time<microseconds, &Pds::rto_init>(100, 60'000'000), true},
    {"rto_max_us",
     "Largest retransmission time-out after back-off, in microseconds. A value below "
     "FI_UET_RTO_INIT_US "
     "is raised to FI_UET_RTO_INIT_US.",
     pds_time<microseconds, &Pds::rto_cap>(100, 60'000'000)},
    {"rto_retries",
     "Retransmissions of a packet before its operation fails with FI_ETIMEDOUT. They count while "
     "the "
     "peer is silent, and for a packet that does not arrive although the peer answers others. With "
     "the default time-outs, 14 retransmissions take about 10 seconds.",
     pds_count<&Pds::max_rto_retransmissions>(1, 1000)},
    {"tail_loss_time_us",
     "Tail loss probe of messages without completion or counter (fi_inject, for example), in "
     "microseconds. The target acknowledges 16 of them by itself if they are short, of at most "
     "1 KiB; a short one requests an ACK only if 24 are unanswered, of longer ones each 16th "
     "packet "
     "does. If no ACK has come by this time, or by a 32nd of FI_UET_RTO_INIT_US if that is "
     "shorter, "
     "the initiator requests one. 0: each message requests an ACK.",
     pds_time<microseconds, &Pds::tail_loss_time>(0, 1'000'000)},
    {"pdc_count",
     "Packet delivery contexts of a domain, contexts that peers open included, a number.",
     pds_count<&Pds::pdc_count>(64, 32768), true},
    {"pdcs_per_destination",
     "Packet delivery contexts that unordered messages to one destination may use at a time, a "
     "number. There are four classes of messages: up to 8, 64 and 512 packets, and longer ones. "
     "Another context is opened for a message if all open ones carry messages of larger classes. "
     "1: messages follow each other. More than 4 are never needed. Where more than half of "
     "pdc_count are open, no further one is opened. Ordered messages always use one context.",
     pds_count<&Pds::pdcs_per_destination>(1, 64)},
    {"idle_timeout_ms",
     "Time without traffic after which a packet delivery context is closed, in milliseconds.",
     pds_time<milliseconds, &Pds::initiator_idle_time>(10, kDayMs)},
    {"mpr_zero_psns",
     "Packets that may be outstanding to a peer whose ACKs state an MPR of 0 "
     "(Override_MPR_Zero_Value), a number. Use one value in all domains of a network, because no "
     "packet carries the value. 0: an MPR of 0 leaves the last value of the peer.",
     pds_count<&Pds::mpr_zero_psns>(0, wire::kMprUnitPsns - 1)},
    {"syn_retx_safety_ms",
     "Time for which a closed packet delivery context is remembered if its first packet was sent "
     "more than once (Syn_Retx_Safety_Time), in milliseconds. A late copy of that packet opens no "
     "context within this time. 0, or less than 2 seconds: 2 seconds (Tombstone_Time).",
     syn_retx_safety_time()},
    {"ack_trigger_bytes",
     "Bytes received after which the target sends an ACK even if the initiator requests none "
     "(ACK_Gen_Trigger), in bytes.",
     pds_count<&Pds::ack_gen_trigger_bytes>(0, 1 << 20)},
    {"cc_ack_min_packet_bytes",
     "Least number of bytes that a packet counts towards ack_trigger_bytes "
     "(ACK_Gen_Min_Pkt_Add), in bytes.",
     pds_count<&Pds::ack_gen_min_packet_add_bytes>(0, 65536)},
    {"cc_ack_on_ecn", "Send the ACK of a packet with an ECN mark at once.",
     on_off<Config, &Config::pds, &Pds::ack_on_ecn>()},
    {"cc_burst_packets", "Largest number of data packets that one progress pass sends, a number.",
     pds_count<&Pds::packets_per_pass>(1, 4096)},
    {"dscp_data", "DSCP of data packets whose traffic class is FI_TC_UNSPEC, a number of 6 bits.",
     pds_count<&Pds::dscp_data>(0, 63), true},
    {"dscp_control", "DSCP of ACKs and other control packets, a number of 6 bits.",
     pds_count<&Pds::dscp_control>(0, 63)},
    {"dscp_retransmission",
     "DSCP of retransmitted data packets whose traffic class is FI_TC_UNSPEC, a number of 6 bits; "
     "data: the value of FI_UET_DSCP_DATA.",
     Tunable::Choice{set_dscp_retransmission, dscp_retransmission_text, "0 to 63, or data"}},
    {"dscp_no_trim",
     "DSCP of a data packet that switches have trimmed four times, a number of 6 bits. Choose a "
     "DSCP that switches do not trim.",
     pds_count<&Pds::dscp_no_trim>(0, 63)},
    {"dscp_datagram",
     "DSCP of packets of FI_EP_DGRAM endpoints whose traffic class is FI_TC_UNSPEC, a number of 6 "
     "bits.",
     pds_count<&Pds::dscp_datagram>(0, 63)},
};

constexpr Tunable kMessages[] = {
    {"unexpected_bytes",
     "Memory of an endpoint for messages that arrive before their receive is posted, in bytes. A "
     "message of at most 8 bytes takes about 200. If the memory is full, senders must try again "
     "later.",
     ses_count<&Ses::unexpected_bytes_per_context>(64 << 10, kMostMemory), true},
    {"unexpected_bytes_per_peer",
     "Memory that unexpected messages of one host may take in all endpoints of a domain together, "
     "in bytes. 0: three quarters of FI_UET_UNEXPECTED_BYTES.",
     ses_count<&Ses::unexpected_bytes_per_peer>(0, kMostMemory), true},
    {"rendezvous_threshold",
     "Length in bytes above which a message is never refused for lack of memory: the target reads "
     "the bytes that it has not kept from the initiator once a receive has matched. To a peer "
     "whose "
     "receives have always been posted in time, one message at a time of at most eager_bytes may "
     "still be refused, because a peer of another implementation may have no rendezvous.",
     ses_count<&Ses::rendezvous_threshold_bytes>(0, UINT32_MAX)},
    {"eager_bytes",
     "First bytes of a message above rendezvous_threshold that the target keeps while at most half "
     "of the memory for unexpected messages is in use, in bytes.",
     ses_count<&Ses::eager_bytes>(0, UINT32_MAX)},
    {"rendezvous_timeout",
     "Time after which a send that its target has not read fails with FI_ETIMEDOUT, in seconds. 0: "
     "as long as the peer lives.",
     ses_time<seconds, &Ses::rendezvous_timeout>(0, kMostSeconds)},
    {"short_headers",
     "Send single-packet messages with the medium header, or with the small header if the memory "
     "key "
     "is an optimized one (bit 62 set), to peers whose address says that they take it. All headers "
     "are always accepted.",
     on_off<Config, &Config::ses, &Ses::short_headers>()},
    {"staging_chunk_bytes",
     "Memory for copies of device memory is taken from the device's driver in chunks of this size, "
     "in bytes. A message is copied in parts of at most a quarter of a chunk.",
     ses_count<&Ses::staging_chunk_bytes>(64 << 10, 1 << 30)},
    {"staging_bytes",
     "Largest memory of a domain for copies of the memory of one device, in bytes; one chunk at "
     "least. If all of the memory is in use, sends from that device wait until a peer has "
     "acknowledged earlier ones.",
     ses_count<&Ses::staging_bytes>(64 << 10, kMostMemory)},
    {"deferrable_threshold",
     "Length in bytes from which unordered messages are sent deferrable. A target without a "
     "receive "
     "drops such a message, up to 1024 of an endpoint, and asks for it later. Only with "
     "FI_UET_PROFILE=ai_full.",
     ses_count<&Ses::deferrable_threshold_bytes>(1, UINT32_MAX)},
    {"deferred_timeout",
     "Time after which a send that its target has deferred and not asked for fails with "
     "FI_ETIMEDOUT, in seconds. The target forgets the message after this time, too. 0: as long "
     "as the peer lives.",
     ses_time<seconds, &Ses::deferred_timeout>(0, kMostSeconds)},
    {"no_match",
     "If the memory for unexpected messages is full, refuse a message with the return code "
     "NO_MATCH, so that the initiator restarts the message, instead of a NACK, so that it "
     "repeats the packet.",
     on_off<Config, &Config::ses, &Ses::no_match>()},
    {"rma_piece_bytes",
     "Largest message on the wire, in bytes. A longer fi_write or fi_read travels in pieces of "
     "this size and has one completion. The target of a longer send reads the send in such "
     "pieces.",
     ses_count<&Ses::rma_piece_bytes>(4096, ses::kMaxMessageBytes)},
    {"retries",
     "Restarts of an operation that its target refuses for now (NO_MATCH, DISABLED_GEN, "
     "BAD_GENERATION, a transient error) before the operation fails, as a rule with FI_ENORX, a "
     "number.",
     ses_count<&Ses::retries>(0, 65535)},
    {"retry_wait_us",
     "Time before an operation that its target refuses for now is restarted, in microseconds. The "
     "time doubles with each restart, up to 100 ms.",
     ses_time<microseconds, &Ses::retry_wait>(1, 100'000)},
    {"rudi",
     "Use the delivery mode RUDI, which needs no connection state, for RMA with idempotent-safe "
     "keys (bit 63 set) to peers of the HPC profile. Such accesses may be executed more than once "
     "and count on no FI_REMOTE_READ or FI_REMOTE_WRITE counter.",
     on_off<Config, &Config::ses, &Ses::rudi>()},
};

constexpr Tunable kCongestion[] = {
    {"cc_base_rtt_us",
     "Round-trip time of the idle network for congestion control, in microseconds. 0: measured.",
     base_rtt(), true},
    {"cc_trimming",
     "The network trims packets instead of dropping them: packets with dscp_trimmed or "
     "dscp_trimmed_lasthop (FI_UET_TUNING) are answered so that the initiator sends their payload "
     "again at "
     "once.",
     cms_switch<&Cms::trimming>(), true},
    {"cc_remote_rate_mbps",
     "Link rate of the peers if it is lower than the link rate of this host, in Mbit/s. 0: as "
     "this host.",
     rate_mbps<&Cms::remote_rate_bps>()},
    {"cc_receive_rate_mbps",
     "Rate at which rccc allows all peers together to send to this domain, in Mbit/s. 0: the link "
     "rate.",
     rate_mbps<&Cms::receive_rate_bps>()},
    {"cc_path_count",
     "Paths (entropy values) that a congestion context chooses from with each policy but single, a "
     "number.",
     whole<Config, &Config::cms, &Cms::path_count>(1, 1024)},
    {"cc_rtt_cache_s",
     "Time for which the base round-trip time of a peer is cached after its congestion context has "
     "ended, in seconds.",
     duration<Config, seconds, &Config::cms, &Cms::rtt_cache_time>(0, kMostSeconds)},
    {"cc_linger_ms",
     "Time for which a congestion context keeps its window and its path history after its last "
     "packet delivery context, in milliseconds. 0: none. Contexts of rccc and of ordered traffic "
     "end at once.",
     duration<Config, milliseconds, &Config::cms, &Cms::linger>(0, kDayMs)},
    {"cc_base_rtt_probe",
     "Measure the base round-trip time with a Probe after the first answer of a peer, unless "
     "FI_UET_CC_BASE_RTT_US is set.",
     cms_switch<&Cms::probes_base_rtt>()},
    {"cc_synthetic_ecn",
     "If the network has marked no packet of a peer and does not trim, treat a long queueing delay "
     "as an ECN mark.",
     cms_switch<&Cms::synthetic_ecn>()},
    {"cc_synthetic_ecn_at",
     "Queueing delay that cc_synthetic_ecn treats as an ECN mark, in target delays.",
     cc<&Cc::synthetic_ecn_at>(0.1, 100)},
    {"cc_max_window_bdp", "Largest congestion window, in bandwidth-delay products.",
     cc<&Cc::max_window_bdp>(0.1, 64)},
    {"cc_initial_window_bytes", "First congestion window, in bytes. 0: the largest window.",
     cc<&Cc::initial_window_bytes>(0, 1073741824)},
    {"cc_min_window_bytes",
     "Smallest congestion window, in bytes. 0: one packet, which is the least.",
     cc<&Cc::min_window_bytes>(0, 1073741824)},
    {"cc_reference_rate_mbps",
     "Link rate of the reference network that the gains of NSCC are scaled from, in Mbit/s.",
     cc<&Cc::reference_rate_mbps>(1, 10000000)},
    {"cc_reference_rtt_us",
     "Round-trip time of the reference network that the gains of NSCC are scaled from, in "
     "microseconds.",
     cc<&Cc::reference_rtt_us>(0.1, 1000000)},
    {"cc_target_qdelay_us",
     "Target queueing delay, in microseconds. 0: the base round-trip time (at least that of the "
     "reference network where it is measured), 3/4 of it with trimming.",
     cc<&Cc::target_qdelay_us>(0, 1000000)},
    {"cc_alpha_bytes_per_us",
     "Gain of the window increase below the target delay (alpha), in bytes per microsecond. 0: a * "
     "MTU / 3 us, where a is the bandwidth-delay product divided by that of the reference network.",
     cc<&Cc::alpha_bytes_per_us>(0, 1000000000)},
    {"cc_fi_bytes",
     "Gain of the fair increase above the target delay (fi), in bytes. 0: 5 a MTU, where a is the "
     "bandwidth-delay product divided by that of the reference network.",
     cc<&Cc::fi_bytes>(0, 1000000000)},
    {"cc_eta_bytes",
     "Window increase in each period, whatever the delay (eta), in bytes. 0: 0.15 a MTU, where a "
     "is the bandwidth-delay product divided by that of the reference network.",
     cc<&Cc::eta_bytes>(0, 1000000000)},
    {"cc_fi_scale",
     "Gain of the fast increase without queueing delay (fi_scale), a factor. 0: 0.25 a, where a is "
     "the bandwidth-delay product divided by that of the reference network.",
     cc<&Cc::fi_scale>(0, 100)},
    {"cc_gamma", "Gain of a window decrease, a factor.", cc<&Cc::gamma>(0, 1)},
    {"cc_max_md_jump", "Least part of the window that one decrease leaves, a fraction.",
     cc<&Cc::max_md_jump>(0, 1)},
    {"cc_qa_gate",
     "Quick adapt fires if the acknowledged bytes are below the largest window divided by 2 to the "
     "power of this number.",
     cc_count<&Cc::qa_gate>(0, 16)},
    {"cc_qa_threshold_us",
     "Queueing delay from which quick adapt fires in a network without trimming, in microseconds. "
     "0: "
     "four times the target delay.",
     cc<&Cc::qa_threshold_us>(0, 10000000)},
    {"cc_adjust_bytes",
     "Acknowledged bytes after which a window increase is applied, in bytes. 0: 8 packets.",
     cc<&Cc::adjust_bytes>(0, 1073741824)},
    {"cc_adjust_period_us",
     "Longest time between two window updates, in microseconds; scaled up if host delay "
     "dominates. 0: the base round-trip time.",
     cc<&Cc::adjust_period_us>(0, 10000000)},
    {"cc_quiet_us",
     "Queueing delay that counts as no delay, in microseconds. 0: the largest of 1 us, 2 % of the "
     "base round-trip time and the measured jitter.",
     cc<&Cc::quiet_us>(0, 1000000)},
    {"cc_delay_average_rtts", "Memory of the average queueing delay, in base round-trip times.",
     cc<&Cc::delay_average_rtts>(0.01, 1000)},
    {"cc_decrease_spacing_rtts",
     "Least time between two window decreases, in base round-trip times.",
     cc<&Cc::decrease_spacing_rtts>(0, 1000)},
    {"cc_raise_after_rtts",
     "Time without a short round-trip sample after which the base round-trip time is raised, in "
     "base round-trip times.",
     cc<&Cc::raise_after_rtts>(1, 1000000000)},
    {"cc_swift_increase_packets",
     "Window increase of swift in one round trip that is shorter than the target, in packets.",
     cc<&Cc::swift_increase_packets>(0.001, 1000)},
    {"cc_swift_scaling_range",
     "Longest time that swift adds to its target round-trip time because its window is small, a "
     "factor: of base round-trip time and cc_target_qdelay_us together.",
     cc<&Cc::swift_scaling_range>(0, 100)},
    {"cc_sird_credit_bdp",
     "Credit of sird that all peers together may have and not use, in bandwidth-delay products.",
     cc<&Cc::sird_credit_bdp>(0.01, 1000)},
    {"cc_sird_enough_bdp",
     "Credit with which a sender of sird asks for no more, in bandwidth-delay products.",
     cc<&Cc::sird_enough_bdp>(0, 1000)},
    {"cc_speculative_bdp",
     "Bytes that rccc sends before the first credit, in bandwidth-delay products.",
     cc<&Cc::speculative_bdp>(0, 16)},
    {"cc_grant_bytes", "Credit that rccc grants a peer in one turn, in bytes. 0: 4 packets.",
     cc<&Cc::grant_bytes>(0, 1073741824)},
    {"cc_pacer_fraction", "Part of the receive rate that rccc grants, a fraction.",
     cc<&Cc::pacer_fraction>(0.01, 1)},
    {"cc_credit_request_rtts",
     "Time without credit after which a Credit Request is sent, in base round-trip times.",
     cc<&Cc::credit_request_rtts>(0.1, 1000)},
    {"cc_zero_grant_bytes",
     "Bytes of the receive rate that rccc charges for an answer that grants nothing new, in bytes.",
     cc<&Cc::zero_grant_bytes>(0, 1048576)},
    {"cc_unsolicited_bdp",
     "Credit that rccc grants beyond demand while no peer asks, in bandwidth-delay products. 0: "
     "none.",
     cc<&Cc::unsolicited_bdp>(0, 100)},
    {"cc_oversubscription_control",
     "Make rccc grant less if packets arrive that a switch before the last one has trimmed, or "
     "nearly all with ECN marks. Without effect on other algorithms.",
     cms_switch<&Cms::oversubscription_control>()},
    {"cc_oversubscription_period_rtts",
     "Period of the oversubscription control of rccc, in base round-trip times.",
     cc<&Cc::oversubscription_period_rtts>(0.1, 1000)},
    {"cc_oversubscription_gain",
     "Weight of one period in the average of ECN marks of the oversubscription control, a "
     "fraction.",
     cc<&Cc::oversubscription_gain>(0, 1)},
    {"cc_oversubscription_target",
     "Part of the packets that may be marked before the oversubscription control lowers the rate, "
     "a fraction.",
     cc<&Cc::oversubscription_target>(0, 1)},
    {"cc_oversubscription_cut",
     "Part of the rate that the oversubscription control takes away if all packets were trimmed, "
     "or for marks beyond cc_oversubscription_target, a fraction.",
     cc<&Cc::oversubscription_cut>(0, 1)},
    {"cc_oversubscription_step",
     "Increase of the rate by the oversubscription control in one period, a fraction of the link "
     "rate.",
     cc<&Cc::oversubscription_step>(0, 1)},
    {"cc_backlog_low_bytes",
     "Bytes received and not yet placed from which rccc grants less, in bytes. Less than "
     "cc_backlog_high_bytes.",
     cc<&Cc::backlog_low_bytes>(0, 1000000000)},
    {"cc_backlog_high_bytes",
     "Bytes received and not yet placed at which rccc grants next to nothing, in bytes.",
     cc<&Cc::backlog_high_bytes>(1, 1000000000)},
    {"cc_pend_low",
     "Part of the receive memory in use from which peers are asked to send less, a fraction. Less "
     "than cc_pend_high.",
     cc<&Cc::pend_low>(0, 1)},
    {"cc_pend_high",
     "Part of the receive memory in use from which peers are asked for one packet per round trip, "
     "a fraction.",
     cc<&Cc::pend_high>(0, 1)},
    {"cc_restore_below",
     "Part of the receive memory in use below which peers may send as before, a fraction. At most "
     "cc_pend_low.",
     cc<&Cc::restore_below>(0, 1)},
};

constexpr Tunable kPaths[] = {
    {"cc_penalty_ecn",
     "Penalty that an ECN mark adds to its path with the policies bitmap and mixed, a number. A "
     "packet without mark clears the penalty.",
     cc_count<&Cc::penalty_ecn>(0, 255)},
    {"cc_penalty_nack",
     "Penalty that a trimmed packet adds to its path with the policies bitmap and mixed, a number.",
     cc_count<&Cc::penalty_nack>(0, 255)},
    {"cc_penalty_timeout",
     "Penalty that a lost packet adds to its path with the policies bitmap and mixed, a number.",
     cc_count<&Cc::penalty_timeout>(0, 255)},
    {"cc_penalty_limit", "Largest penalty of a path, a number.",
     cc_count<&Cc::penalty_limit>(1, 255)},
    {"cc_reps_ring", "Good paths that the policies reps and mixed remember, a number.",
     cc_count<&Cc::reps_ring>(1, 1024)},
    {"cc_reps_explore_bdp",
     "Bytes that the policy reps sends on random paths at first, in bandwidth-delay products.",
     cc<&Cc::reps_explore_bdp>(0, 1000)},
    {"cc_reps_freeze_us",
     "Time for which the policy reps uses only known paths after a loss, in microseconds. 0: 8 "
     "base round-trip times, 100 us at least.",
     cc<&Cc::reps_freeze_us>(0, 1000000000)},
    {"cc_reps_explore_packets",
     "Packets that the policy reps sends on random paths after the time of cc_reps_freeze_us, a "
     "number.",
     cc_count<&Cc::reps_explore_packets>(0, 1000000)},
    {"cc_path_rest_rtts",
     "Longest time for which a path with an ECN mark or a trimmed packet is skipped, in base "
     "round-trip times. The path is used again earlier if one of its packets arrives without mark "
     "or if more than half of the paths are skipped.",
     cc<&Cc::path_rest_rtts>(0, 1000)},
    {"cc_path_silence_rtts",
     "Time without an answer on a path, while other paths answer, that counts as a loss, in base "
     "round-trip times. 0: never.",
     cc<&Cc::path_silence_rtts>(0, 1000)},
    {"cc_path_ban_after", "Losses in a row after which a path is banned, a number. 0: never.",
     cc_count<&Cc::path_ban_after>(0, 255)},
    {"cc_path_ban_s",
     "First ban of a path, in seconds. Each further ban in a row is twice as long, up to "
     "cc_path_ban_longest_s.",
     cc<&Cc::path_ban_s>(0.000001, 1800)},
    {"cc_path_ban_longest_s", "Longest ban of a path, in seconds.",
     cc<&Cc::path_ban_longest_s>(0.000001, 1800)},
    {"cc_reroute_rtts",
     "Least time between two changes of the path of ordered or single-path traffic after a "
     "time-out, in base round-trip times. 0: the path never changes.",
     cc<&Cc::reroute_rtts>(0, 1000000)},
    {"cc_path_inference",
     "Treat a packet as lost if a later packet of the same path has arrived. Turn this off if "
     "switches choose a path for each packet.",
     cms_switch<&Cms::path_inference>()},
    {"cc_path_inference_wait_rtts",
     "Time that cc_path_inference waits for an overtaken packet, in base round-trip times. A "
     "spurious loss doubles the time, up to 16 times.",
     cc<&Cc::path_inference_wait_rtts>(0, 1000)},
    {"cc_recovery",
     "Send a Probe if no answer comes, to learn which packets have arrived. On several paths "
     "without trimming, or with credit, treat a packet as lost if many later packets have arrived.",
     cms_switch<&Cms::recovery>()},
    {"cc_recovery_windows",
     "Later packets that prove a loss for cc_recovery, in congestion windows.",
     cc<&Cc::recovery_windows>(0, 64)},
    {"cc_recovery_packets",
     "Least number of later packets that prove a loss for cc_recovery, a number.",
     cc_count<&Cc::recovery_packets>(1, 4096)},
    {"cc_recovery_silence_rtts",
     "Time without an answer after which cc_recovery sends a Probe, in base round-trip times.",
     cc<&Cc::recovery_silence_rtts>(0.1, 1000)},
    {"cc_recovery_retry_rtts", "Time between two Probes of cc_recovery, in base round-trip times.",
     cc<&Cc::recovery_retry_rtts>(0.1, 1000)},
};

constexpr auto kAll = [] {
  constexpr std::size_t kCount =
      std::size(kDelivery) + std::size(kMessages) + std::size(kCongestion) + std::size(kPaths);
  std::array<Tunable, kCount> all{};
  auto* end = std::copy(std::begin(kDelivery), std::end(kDelivery), all.begin());
  end = std::copy(std::begin(kMessages), std::end(kMessages), end);
  end = std::copy(std::begin(kCongestion), std::end(kCongestion), end);
  std::copy(std::begin(kPaths), std::end(kPaths), end);
  return all;
}();

}  // namespace

std::span<const Tunable> tunables() { return kAll; }

std::optional<std::string> tune(Config& config, std::string_view list) {
  return for_each_setting(
      list, [&](std::string_view name, std::string_view value) -> std::optional<std::string> {
        for (const Tunable& row : kAll) {
          if (name != row.name) continue;
          if (set_value(config, row, value)) return {};
          return std::string(name) + "=" + std::string(value) +
                 " is not valid; allowed: " + range_text(row);
        }
        std::vector<std::string_view> names;
        names.reserve(kAll.size());
        for (const Tunable& row : kAll) names.emplace_back(row.name);
        return "'" + std::string(name) + "' is not a parameter" + near_names_text(name, names);
      });
}

// CMS-304, CMS-231, CMS-419.
std::optional<std::string> find_conflict(const Config& config) {
  const cms::Tuning& cc = config.cms.tuning;
  if (cc.pend_low >= cc.pend_high) return "cc_pend_low must be less than cc_pend_high";
  if (cc.restore_below > cc.pend_low) return "cc_restore_below must not be more than cc_pend_low";
  if (cc.backlog_low_bytes >= cc.backlog_high_bytes) {
    return "cc_backlog_low_bytes must be less than cc_backlog_high_bytes";
  }
  if (cc.path_ban_s > cc.path_ban_longest_s) {
    return "cc_path_ban_s must not be more than cc_path_ban_longest_s";
  }
  return {};
}

}  // namespace uet::fep
