// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Numbers are those of the list in CMS 8.4.
#include "netsim/checks.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "cms/ccc.h"
#include "cms/credit_pacer.h"
#include "cms/nscc.h"
#include "cms/rccc.h"
#include "cms/rtt.h"
#include "netsim/network.h"
#include "pds/pdc.h"

namespace uet::netsim {
namespace {

constexpr std::size_t kFewContexts = 16;  // looked at after every pass; more: now and then
constexpr std::uint64_t kNowAndThen = 64;
constexpr double kBarrenEveryUs = 5;  // passes without any packet: one in so many us
constexpr std::uint64_t kBarrenAllowed = 1000;
constexpr double kRaiseLimit = 4;  // CMS-142

// Packets that a target refused leave no trace in what it reports (PDS-211).
bool refused_any(const pds::Counters& counters) {
  std::uint64_t refused = 0;
  for (const std::uint64_t count : counters.nacks_sent) refused += count;
  for (const auto trimmed : {wire::NackCode::Trimmed, wire::NackCode::TrimmedLastHop}) {
    refused -= counters.nacks_sent[static_cast<std::size_t>(trimmed)];
  }
  return refused + counters.no_packet > 0;
}

// Did the context of this key send it?
bool sent_by(const Sent& sent, const pds::CccKey& key, const pds::Parameters& pds) {
  return sent.destination == host_of(key.address) && sent.rod_pdc == key.rod_pdc &&
         sent.dscp == pds::dscp_of_class(key.traffic_class, pds.dscp_data);
}

}  // namespace

void Checks::complain(std::uint32_t host, const std::string& what) {
  network_.violation("host " + std::to_string(host) + ": " + what);
}

void Checks::before_pass(bool held) {
  held_ = held;
  sent_.clear();
}

void Checks::on_sent(const NetPacket& packet) {
  wire::RequestHeader request;
  if (packet.traffic_class == TrafficClass::Data) {
    if (wire::RequestHeader::decode(packet.head(), request)) request_sent(packet, request);
    return;
  }
  wire::AckHeader ack;
  wire::ControlHeader control;
  if (wire::AckHeader::decode(packet.head(), ack)) {
    ack_sent(packet, ack);
  } else if (wire::ControlHeader::decode(packet.head(), control)) {
    using wire::CpType;
    // A control packet with a PSN takes the values of the PDC in turn with its requests.
    Stream* const stream = find_stream(packet.source, control.spdcid);
    if (stream != nullptr) note_entropy(*stream, packet.entropy);
    if (control.ctl_type == CpType::Credit) credit_given(packet, control.dpdcid, control.payload);
  }
}

Checks::Stream* Checks::find_stream(std::uint32_t source, PdcId pdc) {
  if (source >= newest_.size()) newest_.resize(network_.host_count());
  Newest& newest = newest_[source];
  if (newest.stream != nullptr && newest.pdc == pdc) return newest.stream;
  const auto entry = streams_.find(key(source, pdc));
  if (entry == streams_.end()) return nullptr;
  newest = {pdc, &entry->second};
  return newest.stream;
}

Checks::Stream& Checks::make_stream(std::uint32_t source, PdcId pdc) {
  if (Stream* const stream = find_stream(source, pdc); stream != nullptr) return *stream;
  Stream& made = streams_[key(source, pdc)];
  newest_[source] = {pdc, &made};
  return made;
}

void Checks::note_entropy(Stream& stream, std::uint16_t entropy) {
  const auto place = std::lower_bound(stream.entropies.begin(), stream.entropies.end(), entropy);
  if (place == stream.entropies.end() || *place != entropy) stream.entropies.insert(place, entropy);
}

void Checks::request_sent(const NetPacket& packet, const wire::RequestHeader& request) {
  Stream& stream = make_stream(packet.source, request.spdcid);
  if (request.syn && stream.start != request.start_psn()) {
    stream = Stream{};
    stream.start = request.start_psn();
    stream.destination = packet.destination;
  }
  if (!request.retx) {
    sent_.push_back({packet.destination, packet.dscp, request.rod() ? request.spdcid : PdcId{}});
  }
  ++stream.sends;
  note_entropy(stream, packet.entropy);
  check_entropy(packet, request.rod(), stream);
}

Checks::Credit& Checks::credit_of(std::uint32_t source, std::uint32_t destination,
                                  const Incoming& incoming) {
  return credits_[std::uint64_t{source} << 32 | std::uint64_t{destination} << 8 | incoming.ccc_id];
}

// A request for credit has arrived.
void Checks::credit_asked(const NetPacket& packet, const Incoming& incoming, std::uint32_t target) {
  Credit& credit = credit_of(packet.source, packet.destination, incoming);
  if (cms::credit_ahead(target, credit.target) > 0) credit.target = target;
}

// 3: credit is never taken back, and no more is given than was asked for. (A target may fall, which
// means nothing: CMS-214.)
void Checks::credit_given(const NetPacket& packet, PdcId pdc, std::uint32_t granted) {
  const Incoming* const incoming = find_incoming(packet.destination, packet.source, pdc);
  if (incoming == nullptr) return;
  Credit& credit = credit_of(packet.destination, packet.source, *incoming);
  const bool back = granted != credit.granted && cms::credit_ahead(granted, credit.granted) == 0;
  if (back) {
    complain(packet.source, "takes credit back: " + std::to_string(granted) + " units after " +
                                std::to_string(credit.granted));
  }
  credit.granted = granted;
  const std::uint32_t unsolicited = cms::unsolicited_units(network_.config().fep.cms);
  if (cms::credit_ahead(granted, credit.target) > unsolicited) {
    complain(packet.source, "gives " + std::to_string(granted) + " units of credit where " +
                                std::to_string(credit.target) + " were asked for, and " +
                                std::to_string(unsolicited) + " more are allowed");
  }
}

// 6: entropy values are those of the set, and a policy without feedback uses all of it.
void Checks::check_entropy(const NetPacket& packet, bool rod, Stream& stream) {
  const cms::Parameters& cms = network_.config().fep.cms;
  const bool single = rod || cms.paths == cms::PathPolicy::Single;
  if (single) return check_single_entropy(packet, stream);
  const std::size_t most = cms.path_count;
  const std::size_t used = stream.entropies.size();
  if (used > most) {
    complain(packet.source,
             "a PDC uses " + std::to_string(used) + " entropy values of " + std::to_string(most));
  }
  // PDCs of one context take turns with the values, so that each of two may see every other one.
  const bool all = cms.paths == cms::PathPolicy::Oblivious;
  if (all && stream.sends == 2 * most && used < most && is_alone(packet)) {
    complain(packet.source, "of " + std::to_string(most) + " entropy values only " +
                                std::to_string(used) + " were used in twice as many packets");
  }
}

// No other PDC has sent requests between the hosts of the packet.
bool Checks::is_alone(const NetPacket& packet) const {
  const auto pdcs = std::count_if(streams_.begin(), streams_.end(), [&](const auto& entry) {
    return entry.first >> 16 == packet.source && entry.second.destination == packet.destination;
  });
  return pdcs == 1;
}

// CMS-401.
void Checks::check_single_entropy(const NetPacket& packet, Stream& stream) {
  const bool changed = stream.sends > 1 && packet.entropy != stream.entropy;
  if (changed || stream.sends == 1) {
    const cms::Parameters& cms = network_.config().fep.cms;
    const double spacing_us = cms.tuning.reroute_rtts * to_us(cms.base_rtt.value_or(Duration{}));
    const double span_us = microseconds(network_.now() - stream.entropy_since);
    if (changed && (cms.tuning.reroute_rtts == 0 || span_us < spacing_us)) {
      complain(packet.source,
               "a PDC with one entropy value has another after " + std::to_string(span_us) + " us");
    }
    stream.entropy = packet.entropy;
    stream.entropy_since = network_.now();
  }
}

// 4: what a target reports is what has arrived whole and for the first time.
void Checks::ack_sent(const NetPacket& packet, const wire::AckHeader& ack) {
  if (ack.type != wire::PdsType::AckCc) return;
  if (ack.cc_type == wire::CcType::Credit) return credit_given(packet, ack.dpdcid, ack.credit);
  if (ack.cc_type != wire::CcType::Nscc || held_) return;
  const Incoming* const incoming = find_incoming(packet.destination, packet.source, ack.dpdcid);
  if (incoming == nullptr) return;
  const std::uint64_t arrived = incoming->nominal_bytes;
  const auto expected =
      static_cast<std::uint32_t>((arrived + wire::kCcByteUnit - 1) / wire::kCcByteUnit) & 0xFFFFFF;
  if (ack.rcvd_bytes == expected) return;
  const bool more = ((ack.rcvd_bytes - expected) & 0xFFFFFF) < 0x800000;
  const fep::Stats stats = network_.host(packet.source).fep().stats();
  if (!more && refused_any(stats.pds)) return;
  complain(packet.source, "reports " + std::to_string(ack.rcvd_bytes) + " units of " +
                              std::to_string(expected) + " that arrived");
}

Checks::Incoming* Checks::find_incoming(std::uint32_t source, std::uint32_t destination,
                                        PdcId pdc) {
  if (destination >= newest_incoming_.size()) newest_incoming_.resize(network_.host_count());
  NewestIncoming& newest = newest_incoming_[destination];
  const std::uint64_t wanted = key(source, destination, pdc);
  if (newest.incoming != nullptr && newest.key == wanted) return newest.incoming;
  const auto entry = incoming_.find(wanted);
  if (entry == incoming_.end()) return nullptr;
  newest = {wanted, &entry->second};
  return newest.incoming;
}

// A PDC begins with requests that have SYN, and stays without until one has been acknowledged.
Checks::Incoming* Checks::incoming_of(const NetPacket& packet, const wire::RequestHeader& request) {
  Incoming* incoming = find_incoming(packet.source, packet.destination, request.spdcid);
  if (!request.syn) return incoming;
  const Psn start = request.start_psn();
  if (incoming != nullptr && incoming->start == start) return incoming;
  if (incoming == nullptr) {
    incoming = &incoming_[key(packet.source, packet.destination, request.spdcid)];
  }
  *incoming = {};
  incoming->start = start;
  return incoming;
}

void Checks::note_arrival(const NetPacket& packet, Psn psn, Incoming& incoming) {
  const auto place = static_cast<std::size_t>(psn - incoming.start);
  if (place >= incoming.arrived.size()) incoming.arrived.resize(place + 1);
  if (incoming.arrived[place]) return;
  incoming.arrived[place] = true;
  incoming.nominal_bytes += cms::nominal_packet_bytes(packet.pds_bytes);
}

void Checks::on_delivered(const NetPacket& packet) {
  using wire::CpType;
  wire::RequestHeader request;
  wire::ControlHeader control;
  if (packet.trimmed || packet.traffic_class == TrafficClass::Data) {
    if (!wire::RequestHeader::decode(packet.head(), request)) return;
    Incoming* const incoming = incoming_of(packet, request);
    if (incoming == nullptr) return;
    if (cms::uses_credit(network_.config().fep.cms.algorithm)) {
      incoming->ccc_id = request.ccc_id;
      credit_asked(packet, *incoming, request.credit_target);
    }
    if (!packet.trimmed) note_arrival(packet, request.psn, *incoming);
  } else if (wire::ControlHeader::decode(packet.head(), control)) {
    Incoming* const incoming = find_incoming(packet.source, packet.destination, control.spdcid);
    if (incoming == nullptr) return;
    if (control.ctl_type == CpType::Noop) note_arrival(packet, control.psn, *incoming);
    if (control.ctl_type == CpType::CreditRequest) {
      credit_asked(packet, *incoming, control.payload);
    }
  }
}

void Checks::after_pass(std::uint32_t host) {
  const std::size_t contexts = network_.host(host).fep().contexts().in_use();
  if (passes_.empty()) passes_.resize(network_.host_count());
  const std::uint32_t passes = ++passes_[host];
  if (contexts <= kFewContexts || passes % kNowAndThen == 0) check_contexts(host);
}

// 2: nothing waits for leave that it has.
void Checks::check_waiting(std::uint32_t host, const pds::SharedCcc& shared) {
  if (!shared.ccc->may_send(network_.config().fep.cms.mtu_bytes)) return;
  const auto forgotten = [](const pds::Pdc& pdc) {
    return !static_cast<const ListNode<pds::ReadyTag>&>(pdc).linked();
  };
  if (!shared.waiting.any_of(forgotten)) return;
  complain(host, "data wait though they may be sent (window " +
                     std::to_string(shared.ccc->window_bytes()) + ", in flight " +
                     std::to_string(shared.ccc->inflight_bytes()) + ")");
}

// 1: no round trip is shorter than four idle links (CMS-113), unless a spoilt ACK has told it.
void Checks::check_base_rtt(std::uint32_t host, const cms::Ccc& ccc) {
  const NetworkConfig& config = network_.config();
  const Duration four_links(4 * config.topology.hop_delay / kPsPerNs);
  const std::optional<Duration> measured = ccc.base_rtt();
  if (config.garbage > 0 || !measured || *measured >= four_links - cms::kServiceTimeUnit) return;
  complain(host, "a base RTT of " + std::to_string(measured->count()) + " ns");
}

// 1: W within its bounds, F not far below zero. 2: what was sent was permitted.
void Checks::check_contexts(std::uint32_t host) {
  const fep::Config& config = network_.host(host).fep().config();
  if (config.cms.algorithm == cms::Algorithm::None) return;
  // One that is measured may be a queue.
  const double rtt_us = to_us(config.cms.base_rtt.value_or(cms::BaseRttMeasurement::kHighest));
  const double bdp = static_cast<double>(config.cms.link_rate_bps) / 8e6 * rtt_us;
  const double raised = network_.simulated_us() < 1000 * rtt_us ? 1 : kRaiseLimit;
  // Windows are made for base RTT and the time in hosts, here that behind one packet in the line
  // of either end, and some in the line of a slow one.
  const TopologyConfig& topology = network_.config().topology;
  const double slower = static_cast<double>(topology.host_rate_bps) /
                        static_cast<double>(topology.slowest_host_bps());
  const double line_bytes = (2 + 8 * (slower - 1)) * config.cms.mtu_bytes;
  const double highest = 1.5 * (bdp * raised + line_bytes) + 1;
  const auto residue = static_cast<std::int64_t>(wire::kCcByteUnit * config.pds.pdc_count);
  network_.host(host).fep().contexts().for_each([&](const pds::SharedCcc& shared) {
    check_waiting(host, shared);
    const cms::Ccc& ccc = *shared.ccc;
    check_base_rtt(host, ccc);
    const std::uint64_t window = ccc.window_bytes();
    const std::int64_t flight = ccc.inflight_bytes();
    const auto complain_of = [&](const char* what) {
      complain(host, std::string(what) + " (window " + std::to_string(window) + ", in flight " +
                         std::to_string(flight) + ")");
    };
    if (window < config.cms.mtu_bytes || static_cast<double>(window) > highest) {
      complain_of("a window is out of its bounds");
    }
    // Below zero while what was given up as lost is reported after all (CMS-104).
    const auto most = static_cast<std::int64_t>(highest) + config.cms.mtu_bytes;
    const bool by_window = !cms::needs_credit_alone(config.cms.algorithm);  // else by credit alone
    if (by_window && (flight < -residue - most || flight > most)) {
      complain_of("bytes in flight are out of their bounds");
    }
    const auto by_this = [&](const Sent& sent) { return sent_by(sent, *shared.key, config.pds); };
    const bool sent = std::any_of(sent_.begin(), sent_.end(), by_this);
    const auto permitted =
        static_cast<std::int64_t>(std::max<std::uint64_t>(window + 1, config.cms.mtu_bytes));
    if (by_window && sent && !held_ && flight > permitted) {
      complain_of("a packet left without permission");
    }
  });
}

// 1: at rest only the rounding of rcvd_bytes is left in flight. 5: nothing spins.
void Checks::check_rest(std::size_t number) {
  const Host& host = network_.host(number);
  const auto name = static_cast<std::uint32_t>(number);
  if (!host.fep().quiescent()) complain(name, "is not at rest after the last flow");
  const auto residue =
      static_cast<std::int64_t>(wire::kCcByteUnit * host.fep().config().pds.pdc_count);
  host.fep().contexts().for_each([&](const pds::SharedCcc& shared) {
    const cms::Ccc& ccc = *shared.ccc;
    if (std::abs(ccc.inflight_bytes()) > residue) {
      complain(name, std::to_string(ccc.inflight_bytes()) + " bytes are in flight at rest");
    }
  });
}

void Checks::at_end(bool finished) {
  const double allowed = kBarrenAllowed + network_.simulated_us() / kBarrenEveryUs;
  for (std::size_t i = 0; i < network_.host_count(); ++i) {
    if (!network_.has_host(i)) continue;
    if (finished) check_rest(i);
    const std::uint64_t barren = network_.host(i).barren_passes();
    if (static_cast<double>(barren) > allowed) {
      complain(static_cast<std::uint32_t>(i),
               "was woken " + std::to_string(barren) + " times and had nothing to do");
    }
  }
}

}  // namespace uet::netsim
