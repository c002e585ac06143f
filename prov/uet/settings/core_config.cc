// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// See core_config.h.
#include "settings/core_config.h"

#include <sys/random.h>

#include <algorithm>

#include "cms/path.h"
#include "nic/clock.h"
#include "provider.h"
#include "settings/address_format.h"
#include "settings/getinfo.h"

namespace uet::prov {

std::uint64_t random_seed() {
  std::uint64_t seed = 0;
  if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) != sizeof seed) {
    seed = static_cast<std::uint64_t>(to_ns(nic::monotonic_now()));
  }
  return seed;
}

namespace {

// Also where FI_UET_SEED makes all else repeat itself.
ri::KeySecret random_secret() {
  ri::KeySecret secret{};
  if (getrandom(&secret, sizeof secret, 0) != sizeof secret)
    secret = {random_seed(), random_seed()};
  return secret;
}

// Bytes in flight to a peer on this host. More wait in its socket, where short messages wait behind
// them, and no longer fit the processors' caches (decision 067).
constexpr std::uint64_t kSameHostWindow = 512 << 10;

cms::Parameters cms_parameters(const Params& params, const nic::Nic& nic,
                               std::uint32_t payload_mtu) {
  const nic::NicCaps& caps = nic.caps();
  cms::Parameters cms = params.core.cms;
  const auto preset = caps.loopback ? cms::Algorithm::None : cms::Algorithm::Nscc;
  cms.algorithm = params.cc_algorithm.value_or(preset);
  // Rails without entropy of their own. A policy that recycles the entropy of ACKs would come to
  // use one of few values alone, as an ACK stands for several packets; and packets of one value
  // change their path when a rail comes or goes, so that their order tells nothing of losses.
  const bool rails_alone = !nic.further_addresses().empty() && caps.source_ports != 0;
  cms.path_inference &= !rails_alone;
  cms.paths = caps.per_packet_entropy ? params.paths.value_or(rails_alone ? cms::PathPolicy::Bitmap
                                                                          : cms::kDefaultPaths)
                                      : cms::PathPolicy::Single;
  if (caps.source_ports != 0) {
    cms.path_count = std::min(cms.path_count, caps.source_ports);
    cms.train_packets = params.gso ? static_cast<std::uint32_t>(params.cc_train_packets) : 1;
  }
  cms.mtu_bytes = payload_mtu + 128;  // largest headers above IP, and IP itself
  if (caps.link_rate_bps != 0) cms.link_rate_bps = caps.link_rate_bps;
  cms.rate_is_stated = params.cc_link_rate_mbps != 0;
  if (cms.rate_is_stated) cms.link_rate_bps = params.cc_link_rate_mbps * 1'000'000;
  // Half of what the peer's socket can hold, taken to be like ours: the other half is for others.
  const std::uint64_t smallest = 4 * std::uint64_t{cms.mtu_bytes};
  if (caps.receive_credit_bytes != 0) {
    cms.max_window_bytes = std::max(smallest, caps.receive_credit_bytes / 2);
    cms.fixed_window_bytes = cms.max_window_bytes;
  }
  const std::uint64_t window = params.cc_loopback_window_bytes != 0
                                   ? std::max(smallest, params.cc_loopback_window_bytes)
                                   : std::min(cms.fixed_window_bytes, kSameHostWindow);
  if (caps.loopback) {
    cms.fixed_window_bytes = window;
    cms.max_window_bytes = std::max(cms.max_window_bytes, window);
  } else if (!params.cc_algorithm) {
    cms.same_host = {.ip = nic.local_address().ip, .fixed_window_bytes = window};
  }
  cms.ack_gen_trigger_bytes = params.core.pds.ack_gen_trigger_bytes;  // of peers like us
  return cms;
}

// Bytes that one context may have in flight.
std::uint64_t largest_window(const cms::Parameters& cms) {
  const double rtt_us = to_us(cms.base_rtt.value_or(cms.default_base_rtt));
  const double bdp = static_cast<double>(cms.path_rate_bps()) / 8e6 * rtt_us;
  const auto by_rate = static_cast<std::uint64_t>(cms.tuning.max_window_bdp * bdp);
  return std::min(by_rate, cms.max_window_bytes);
}

// CMS-310: MPR is not what bounds the rate.
std::uint8_t default_mpr(const Params& params, const cms::Parameters& cms) {
  if (params.mpr_zero) return 0;  // PDS-219
  const std::uint8_t by_rule = pds::mpr_for_window(largest_window(cms), cms.mtu_bytes);
  if (params.mpr == 0) return by_rule;
  if (params.mpr < by_rule) {
    FI_INFO(&provider, FI_LOG_DOMAIN,
            "FI_UET_TUNING: mpr=%d bounds what is in flight: the congestion window may need %d\n",
            static_cast<int>(params.mpr), static_cast<int>(by_rule));
  }
  return static_cast<std::uint8_t>(params.mpr);
}

pds::Parameters pds_parameters(const Params& params, const cms::Parameters& cms) {
  pds::Parameters pds = params.core.pds;
  pds.default_mpr = default_mpr(params, cms);
  pds.ccc_count = 2 * pds.pdc_count;  // one for each ROD PDC, and those that RUDI shares
  pds.reserved_target_pdcs = std::min(pds.reserved_target_pdcs, pds.pdc_count / 2);
  if (params.keep_alive_ms > 0) {  // PDS-234, as CM-37
    pds.peer_probe_period =
        std::chrono::milliseconds(std::max<std::uint64_t>(500, params.keep_alive_ms));
  }
  return pds;
}

}  // namespace

nic::NicConfig nic_config(const Params& params, const std::string& back_end,
                          const av::UetAddress& source) {
  nic::NicConfig config;
  nic::set_back_end(config, back_end);
  config.ip = source.fabric_address;
  config.port = source.udp_port;
  config.first_port = params.udp_port;
  config.receive_buffer_bytes = static_cast<std::uint32_t>(params.socket_buffer_bytes);
  config.send_buffer_bytes = config.receive_buffer_bytes;
  config.source_ports = source_ports(params);
  config.gso = params.gso;
  config.gro = params.gro;
  // Only to a controller that was asked for do they say something there (cms_parameters).
  config.arrival_times_on_loopback =
      params.cc_algorithm.value_or(cms::Algorithm::None) != cms::Algorithm::None;
  config.local_rings = params.local_rings;
  config.faults = params.faults;
  config.crc = params.crc;
  config.dscp_data = params.core.pds.dscp_data;
  config.trimming = params.core.cms.trimming;
  config.trim_marks = trim_marks(params);
  const PcapFiles captures = pcap_files(params);
  config.pcap_file = captures.wire;
  config.clear_pcap_file = captures.clear;
  return config;
}

fep::Config fep_config(const Params& params, const nic::Nic& nic, std::uint32_t payload_mtu,
                       std::size_t engine) {
  fep::Config config = params.core;
  config.cms = cms_parameters(params, nic, payload_mtu);
  config.pds = pds_parameters(params, config.cms);
  config.pds.first_udp_port = params.udp_port;
  if (const auto slot = slot_of_port(nic.local_address().port)) {
    config.pds.id_share = {.number = *slot, .bits = kSlotBits};
  } else if (nic.caps().lends_port) {
    config.pds.id_share = {.number = static_cast<std::uint8_t>(engine),
                           .bits = static_cast<std::uint8_t>(std::bit_width(params.cores - 1))};
  }
  config.pds.pdc_count =
      std::min<std::size_t>(config.pds.pdc_count, config.pds.id_share.size() / 2);
  config.trim_marks = recognized_trim_marks(params);
  config.ses.payload_mtu = payload_mtu;
  config.ses.rudi = config.ses.rudi && params.profile == Profile::Hpc;  // SES-138
  config.ses.rendezvous = params.profile == Profile::Hpc;
  config.ses.deferrable = params.profile == Profile::AiFull;
  // Each endpoint's queues have their own sizes.
  config.ses.tx_messages = 65535;
  config.ses.posted_receives = std::size_t{1} << 32;
  // Buffers for unexpected messages of one endpoint, beside SES's share for other traffic (1/8).
  config.buffers += config.ses.unexpected_bytes_per_context / payload_mtu * 8 / 7;
  config.seed = params.seed != 0 ? params.seed : random_seed();
  config.key_secret = random_secret();
  config.ses.key_secret = random_secret();
  // Drawn separately: peers see values from the other seed (start PSNs) and might compute it.
  config.ses.seed = params.seed != 0 ? params.seed : random_seed();
  return config;
}

}  // namespace uet::prov
