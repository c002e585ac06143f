// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The table of counters. A new member of a module's Counters needs a row here; a test finds a
// member that no row reads.
#include "fep/stats.h"

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "uet/base/check.h"
#include "wire/dissect.h"

namespace uet::fep {

namespace {

struct Row {
  const char* name;
  const char* meaning;
  std::uint64_t (*read)(const Stats&);
  bool gauge = false;
};

template <auto Member>
constexpr Row pds(const char* name, const char* meaning) {
  return {name, meaning, [](const Stats& stats) { return stats.pds.*Member; }};
}
template <auto Member>
constexpr Row cms(const char* name, const char* meaning) {
  return {name, meaning, [](const Stats& stats) { return stats.cms.*Member; }};
}
template <auto Member>
constexpr Row cms_now(const char* name, const char* meaning) {
  Row row = cms<Member>(name, meaning);
  row.gauge = true;
  return row;
}
template <auto Member>
constexpr Row ses(const char* name, const char* meaning) {
  return {name, meaning, [](const Stats& stats) { return stats.ses.*Member; }};
}
template <auto Member>
constexpr Row ses_now(const char* name, const char* meaning) {
  Row row = ses<Member>(name, meaning);
  row.gauge = true;
  return row;
}
template <auto Member>
constexpr Row nic(const char* name, const char* meaning) {
  return {name, meaning, [](const Stats& stats) { return stats.nic.*Member; }};
}

using P = pds::Counters;
using C = uet::cms::Counters;
using S = ses::Counters;
using N = nic::NicCounters;

constexpr Row kRows[] = {
    pds<&P::packets_received>("pds_packets_received", "packets that reached PDS"),
    pds<&P::malformed>("pds_malformed", "packets dropped: header cut short or not possible"),
    pds<&P::unsupported_type>("pds_unsupported_type",
                              "packets dropped: a type that this FEP does not take (reserved)"),
    pds<&P::protected_dropped>("pds_protected_dropped",
                               "packets dropped: protected, and this FEP is in clear"),
    pds<&P::stray_packets>("pds_stray_packets",
                           "packets dropped: for a PDC that is closed or never existed"),
    pds<&P::binding_failures>("pds_binding_failures",
                              "packets dropped: of another secure domain than their PDC"),
    pds<&P::pending_expired>("pds_pending_expired",
                             "PDCs that a peer did not open with the Start_PSN that it was told"),
    pds<&P::replayable_refused>("pds_replayable_refused",
                                "RUDI and UUD packets dropped because they could be replayed"),
    pds<&P::requests_sent>("pds_requests_sent", "RUD and ROD requests, first transmissions"),
    pds<&P::requests_delivered>("pds_requests_delivered", "RUD and ROD requests given to SES"),
    pds<&P::rto_retransmissions>("pds_rto_retransmissions",
                                 "packets sent again because a time-out expired"),
    pds<&P::reroutes>("pds_reroutes", "changes of a single path because a packet timed out"),
    pds<&P::nack_retransmissions>("pds_nack_retransmissions",
                                  "packets sent again because of a NACK"),
    pds<&P::inferred_loss_retransmissions>("pds_inferred_loss_retransmissions",
                                           "packets sent again because later ones arrived, or "
                                           "because their rail was lost"),
    pds<&P::lost_rail_retransmissions>("pds_lost_rail_retransmissions",
                                       "inferred losses whose cause is a lost rail"),
    pds<&P::inferred_losses_spurious>("pds_inferred_losses_spurious",
                                      "packets taken for lost by path that arrived after all"),
    pds<&P::duplicates_dropped>("pds_duplicates_dropped", "copies made by the network, dropped"),
    pds<&P::duplicates_acked>("pds_duplicates_acked",
                              "retransmissions of packets that had arrived, acknowledged again"),
    pds<&P::rod_buffered>("pds_rod_buffered", "ROD requests kept until their predecessors came"),
    pds<&P::acks_sent>("pds_acks_sent", "ACKs sent"),
    pds<&P::acks_received>("pds_acks_received", "valid ACKs received"),
    pds<&P::acks_invalid>("pds_acks_invalid", "ACKs dropped: they match no packet that was sent"),
    pds<&P::ack_requests_sent>("pds_ack_requests_sent", "ACK Requests sent"),
    pds<&P::probes_sent>("pds_probes_sent",
                         "Probes sent: to measure the base round trip time, or to find losses"),
    pds<&P::nacks_ignored>("pds_nacks_ignored",
                           "NACKs dropped: they match no packet that was sent"),
    pds<&P::trimmed_received>("pds_trimmed_received", "packets that arrived trimmed"),
    pds<&P::datagrams_trimmed>("pds_datagrams_trimmed", "UUD packets dropped because trimmed"),
    pds<&P::marked_received>("pds_marked_received", "packets that arrived with the mark ECN CE"),
    pds<&P::credits_sent>("pds_credits_sent",
                          "Credit control packets sent: permission for peers to send"),
    pds<&P::credits_received>("pds_credits_received", "Credit control packets received"),
    pds<&P::credit_requests_sent>("pds_credit_requests_sent", "Credit Requests sent"),
    pds<&P::credit_requests_received>("pds_credit_requests_received", "Credit Requests received"),
    pds<&P::credit_ignored>("pds_credit_ignored",
                            "Credits and Credit Requests dropped: RCCC is off or knows no context"),
    pds<&P::credit_fallbacks>(
        "pds_credit_fallbacks",
        "contexts that continued with NSCC because their peer grants nothing"),
    pds<&P::credit_granted_bytes>("pds_credit_granted_bytes", "credit granted to peers"),
    pds<&P::pend_sent>("pds_pend_sent",
                       "ACKs sent that ask the peer for less because memory here fills up"),
    pds<&P::restores_sent>("pds_restores_sent", "ACKs sent that lift destination flow control"),
    pds<&P::blocked_by_window_ns>("pds_blocked_by_window_ns",
                                  "time that data waited for a congestion window, ns, added up"),
    pds<&P::blocked_by_credit_ns>("pds_blocked_by_credit_ns",
                                  "time that data waited for credit, ns, added up"),
    pds<&P::blocked_by_peer_window_ns>(
        "pds_blocked_by_peer_window_ns",
        "time that data waited for the peer's PSN range, ns, added up"),
    pds<&P::blocked_by_nic_ns>("pds_blocked_by_nic_ns",
                               "time that packets waited for the NIC to take them, ns"),
    pds<&P::no_packet>("pds_no_packet", "ACKs and NACKs that found no packet buffer"),
    pds<&P::pdcs_opened>("pds_pdcs_opened", "PDCs opened"),
    pds<&P::pdcs_accepted>("pds_pdcs_accepted", "PDCs that peers opened"),
    pds<&P::pdcs_closed>("pds_pdcs_closed", "PDCs closed"),
    pds<&P::pdcs_unproved_dropped>("pds_pdcs_unproved_dropped",
                                   "target PDCs dropped in a shortage before their peer answered"),
    pds<&P::pdcs_uncleared_closed>("pds_pdcs_uncleared_closed",
                                   "PDCs closed because their peer did not clear responses"),
    pds<&P::pdcs_failed>("pds_pdcs_failed", "PDCs given up, with all their outstanding operations"),
    pds<&P::additional_pdcs_refused>(
        "pds_additional_pdcs_refused",
        "PDCs beside others that the peer refused; their messages went to the others"),
    pds<&P::rto_exhausted>("pds_rto_exhausted",
                           "PDCs and RUDI packets given up because no answer came"),
    pds<&P::close_in_error>("pds_close_in_error", "PDCs whose close handshake did not complete"),
    pds<&P::datagrams_sent>("pds_datagrams_sent", "UUD packets sent"),
    pds<&P::datagrams_received>("pds_datagrams_received", "UUD packets given to SES"),
    pds<&P::rudi_requests_sent>("pds_rudi_requests_sent", "RUDI requests, first transmissions"),
    pds<&P::rudi_requests_received>("pds_rudi_requests_received",
                                    "RUDI requests given to SES, copies included"),
    pds<&P::rudi_responses_sent>("pds_rudi_responses_sent", "RUDI responses sent"),
    pds<&P::rudi_unproved_refused>(
        "pds_rudi_unproved_refused",
        "RUDI reads refused because their source has shown no PDC that it answers"),

    cms_now<&C::contexts>("cms_contexts", "congestion contexts that exist now"),
    cms_now<&C::window_bytes>("cms_window_bytes", "sum of the congestion windows of all contexts"),
    cms_now<&C::inflight_bytes>("cms_inflight_bytes", "sum of the bytes in flight of all contexts"),
    cms_now<&C::base_rtt_ns>("cms_base_rtt_ns", "longest base round trip time of all contexts, ns"),
    cms_now<&C::avg_delay_ns>("cms_avg_delay_ns",
                              "longest averaged queueing delay of all contexts, ns"),
    cms<&C::acks_without_sample>("cms_acks_without_sample",
                                 "ACKs without a round trip time: bytes counted only"),
    cms<&C::acks_fair>("cms_acks_fair", "ACKs with delay and without mark: even increase"),
    cms<&C::acks_rise>("cms_acks_rise",
                       "ACKs without delay and mark: increase by the distance to the target delay"),
    cms<&C::acks_fast_increase>("cms_acks_fast_increase",
                                "ACKs after a whole window without delay: fast increase"),
    cms<&C::acks_limited>("cms_acks_limited",
                          "ACKs whose window increase a busy destination prevented"),
    cms<&C::acks_cut>("cms_acks_cut", "ACKs with both delay and mark"),
    cms<&C::acks_hold>("cms_acks_hold", "ACKs with mark and without delay"),
    cms<&C::acks_quick_adapt>("cms_acks_quick_adapt", "ACKs that triggered quick adapt"),
    cms<&C::acks_ignored>("cms_acks_ignored", "ACKs for packets older than the last quick adapt"),
    cms<&C::quick_adapts>("cms_quick_adapts", "windows set to the bytes that had arrived"),
    cms<&C::cuts>("cms_cuts", "windows cut because of marks and delay"),
    cms<&C::fast_increase_bytes>("cms_fast_increase_bytes",
                                 "bytes acknowledged during fast increase"),
    cms<&C::bytes_ignored>("cms_bytes_ignored",
                           "bytes reported of packets older than the last quick adapt"),
    cms<&C::marks_received>("cms_marks_received", "ACKs and NACKs that echo a mark"),
    cms<&C::trims_in_fabric>("cms_trims_in_fabric",
                             "NACKs for packets that a switch on the way trimmed"),
    cms<&C::trims_at_last_hop>("cms_trims_at_last_hop",
                               "NACKs for packets that the last switch trimmed"),
    cms<&C::losses_by_rto>("cms_losses_by_rto",
                           "packets taken for lost because a time-out expired"),
    cms<&C::losses_by_path>("cms_losses_by_path",
                            "packets taken for lost because later ones arrived"),
    cms<&C::losses_out_of_order>("cms_losses_out_of_order",
                                 "packets taken for lost because the peer keeps order"),
    cms<&C::losses_spurious>("cms_losses_spurious", "packets taken for lost that had arrived"),
    cms<&C::rtt_samples>("cms_rtt_samples", "valid samples of the round trip time"),
    cms<&C::rtt_invalid>("cms_rtt_invalid", "ACKs without a valid RTT sample"),
    cms<&C::pend_received>("cms_pend_received",
                           "ACKs by which a peer asked for less (destination flow control)"),
    cms<&C::restores_received>("cms_restores_received",
                               "ACKs by which a peer lifted destination flow control"),
    cms<&C::credit_received_bytes>("cms_credit_received_bytes", "credit received"),
    cms<&C::credit_spent_bytes>("cms_credit_spent_bytes", "credit used"),
    cms<&C::credit_dropped_bytes>("cms_credit_dropped_bytes",
                                  "speculative credit given up with the first answer"),
    cms_now<&C::paths>("cms_paths", "entropy values in use by contexts that learn from their fate"),
    cms_now<&C::paths_penalised>("cms_paths_penalised", "entropy values avoided at the moment"),
    cms_now<&C::paths_banned>(
        "cms_paths_banned",
        "entropy values not used at the moment because all their packets were lost"),
    cms<&C::paths_recycled>("cms_paths_recycled",
                            "packets sent on a path because it had just proved good"),
    cms<&C::paths_random>("cms_paths_random", "packets of reps sent on a path at random"),
    cms<&C::paths_frozen>("cms_paths_frozen",
                          "times that reps kept to its known paths after a loss"),

    ses<&S::messages_sent>("ses_messages_sent",
                           "messages, RMA and atomics of this domain that succeeded"),
    ses<&S::messages_received>("ses_messages_received", "messages, RMA and atomics of peers"),
    ses<&S::unexpected_messages>("ses_unexpected_messages",
                                 "messages kept because no receive was posted"),
    ses<&S::messages_parked>("ses_messages_parked",
                             "unexpected messages deferred without data until a receive has them"),
    ses<&S::unexpected_refused>("ses_unexpected_refused",
                                "messages refused because neither receive nor memory was there"),
    ses<&S::no_match_answered>("ses_no_match_answered", "messages refused with NO_MATCH"),
    ses<&S::messages_retried>("ses_messages_retried",
                              "messages sent again because their target asked for it"),
    ses<&S::truncated>("ses_truncated", "messages longer than the receive they met"),
    ses<&S::malformed>("ses_malformed", "packets dropped: SES header or payload not possible"),
    ses<&S::errors_answered>("ses_errors_answered", "error codes sent to peers"),
    ses<&S::errors_received>("ses_errors_received", "error codes received from peers"),
    ses<&S::datagrams_dropped>("ses_datagrams_dropped",
                               "datagrams dropped: no receive to take them, or no memory"),
    ses<&S::stray_responses>("ses_stray_responses",
                             "packets dropped: data or response that belongs to no operation"),
    ses<&S::staged_bytes>("ses_staged_bytes",
                          "bytes copied from device memory to be sent or read from the copy"),
    ses_now<&S::staging_bytes>("ses_staging_bytes",
                               "memory in use now for copies of device memory, in bytes"),
    ses<&S::staging_waits>("ses_staging_waits",
                           "times that a send from device memory waited for memory for its copy"),

    nic<&N::packets_sent>("nic_packets_sent", "packets sent"),
    nic<&N::bytes_sent>("nic_bytes_sent", "bytes sent, from the PDS header on"),
    nic<&N::packets_received>("nic_packets_received", "packets received"),
    nic<&N::bytes_received>("nic_bytes_received", "bytes received, from the PDS header on"),
    nic<&N::sends_refused>("nic_sends_refused", "bursts that the full send queue cut short"),
    nic<&N::packets_dropped>(
        "nic_packets_dropped",
        "packets dropped on sending: too long, no route, forbidden, no carrier"),
    nic<&N::receive_truncated>("nic_receive_truncated",
                               "packets dropped on arrival: longer than any UET packet"),
    nic<&N::receive_overflows>(
        "nic_receive_overflows",
        "packets dropped on arrival: receive buffer full, or a flood (TSS-73)"),
    nic<&N::kernel_errors>("nic_kernel_errors", "system calls that failed"),
    nic<&N::crc_errors>("nic_crc_errors", "packets dropped on arrival: CRC missing or wrong"),
    nic<&N::gso_switched_off>("nic_gso_switched_off", "1 after the kernel refused segmented sends"),
    nic<&N::local_packets_sent>("nic_local_packets_sent",
                                "packets sent through rings on this host"),
    nic<&N::local_packets_received>("nic_local_packets_received",
                                    "packets received through rings on this host"),
    nic<&N::kernel_packets_sent>("nic_kernel_packets_sent",
                                 "packets sent that a bypass back end left to the kernel"),
    nic<&N::kernel_packets_received>("nic_kernel_packets_received",
                                     "packets of a bypass back end that came through the kernel"),
    nic<&N::frames_refused>(
        "nic_frames_refused",
        "frames dropped on arrival: malformed, wrong checksum, or a source that is no host"),
    nic<&N::packets_gathered>("nic_packets_gathered",
                              "packets sent whose payload the device read from registered memory"),
    nic<&N::shared_port_dropped>("nic_shared_port_dropped",
                                 "packets dropped at the shared port: for no process of it"),
    nic<&N::strays_dropped>(
        "nic_strays_dropped",
        "packets that the guard dropped on arrival: for a PDC that is not open"),
    nic<&N::syns_dropped>("nic_syns_dropped",
                          "packets that the guard dropped on arrival: SYN beyond the share"),
};

constexpr std::size_t kCodes = 256;

bool has_name(std::size_t code) {
  return wire::name_of(static_cast<wire::NackCode>(code)) != "reserved";
}

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
  return lower;
}

// The texts of the counters of NACKs. One direction: a counter for each code that has a name, and
// one for the rest.
class NackNames {
 public:
  void add(const std::string& direction) {
    const std::string prefix = "pds_nacks_" + direction + "_";
    const std::string help = "NACKs " + direction;
    for (std::size_t code = 0; code < kCodes; ++code) {
      if (!has_name(code)) continue;
      const std::string name(wire::name_of(static_cast<wire::NackCode>(code)));
      texts_.emplace_back(prefix + lower_case(name), help + ", code " + name);
    }
    texts_.emplace_back(prefix + "other", help + ", reserved codes");
  }
  void append_to(std::vector<CounterName>& names) const {
    for (const auto& [name, meaning] : texts_) names.push_back({name, meaning});
  }

 private:
  std::vector<std::pair<std::string, std::string>> texts_;
};

std::uint64_t* read_nacks(const pds::NackCounts& counts, std::uint64_t* out) {
  std::uint64_t all = 0, named = 0;
  for (const std::uint64_t count : counts) all += count;
  for (std::size_t code = 0; code < kCodes; ++code) {
    if (!has_name(code)) continue;
    named += counts[code];
    *out++ = counts[code];
  }
  *out++ = all - named;
  return out;
}

}  // namespace

std::span<const CounterName> counter_names() {
  // Never destroyed: statistics may be written when the process ends.
  struct All {
    NackNames nacks;
    std::vector<CounterName> names;
  };
  static const All& all = *[] {
    auto made = std::make_unique<All>();
    for (const Row& row : kRows) made->names.push_back({row.name, row.meaning, row.gauge});
    made->nacks.add("sent");
    made->nacks.add("received");
    made->nacks.append_to(made->names);
    return made.release();
  }();
  return all.names;
}

void read_counters(const Stats& stats, std::span<std::uint64_t> values) {
  UET_ASSERT(values.size() == counter_names().size());
  std::uint64_t* out = values.data();
  for (const Row& row : kRows) *out++ = row.read(stats);
  out = read_nacks(stats.pds.nacks_sent, out);
  read_nacks(stats.pds.nacks_received, out);
}

}  // namespace uet::fep
