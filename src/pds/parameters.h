// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The configuration values of PDS section 21, named as there, with a software provider's defaults.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "cms/ccc.h"
#include "uet/base/address.h"
#include "uet/base/time.h"
#include "uet/base/types.h"
#include "uet/pds/api.h"
#include "uet/wire/pds.h"

namespace uet::pds {

inline constexpr std::uint8_t kLeastMpr = 8;

// The MPR, in units of 128 PSNs, with which a window of so many bytes in packets of `packet_bytes`
// is not cut short by the PSNs that may be outstanding (CMS-310); kLeastMpr to 32, which is all
// that there is.
constexpr std::uint8_t mpr_for_window(std::uint64_t window_bytes, std::uint32_t packet_bytes) {
  const std::uint64_t unit_bytes = std::uint64_t{128} * packet_bytes;
  const std::uint64_t units = (window_bytes + unit_bytes - 1) / unit_bytes;
  return static_cast<std::uint8_t>(std::clamp<std::uint64_t>(units, kLeastMpr, 32));
}

struct Parameters {
  std::uint8_t default_mpr = kLeastMpr;  // Default_MPR, units of 128 PSNs, 0 to 32
  // Override_MPR_Zero_Value (PDS-218): the MP_RANGE in PSNs that an mpr of 0 stands for, 1 to 127,
  // in peers' ACKs and in default_mpr (PDS-219); 0: an mpr of 0 says nothing (PDS-43), and
  // a default_mpr of 0 is 1. The same in all FEPs of a network, since nothing on the wire tells it.
  std::uint8_t mpr_zero_psns = 0;
  bool ack_on_ecn = true;                                         // ACK_On_ECN
  bool ack_per_packet = false;                                    // Enb_ACK_Per_Pkt
  std::uint32_t ack_gen_trigger_bytes = cms::kDefaultAckTrigger;  // ACK_Gen_Trigger
  std::uint32_t ack_gen_min_packet_add_bytes = 1024;              // ACK_Gen_Min_Pkt_Add
  Duration rto_init = std::chrono::milliseconds(20);              // RTO_Init_Time
  Duration rto_cap = std::chrono::seconds(1);                     // largest time-out after back-off
  std::uint32_t max_rto_retransmissions = 14;  // Max_RTO_Retx_Cnt; kUnlimited = for ever
  // Tail_Loss_Time (PDS-128): when the peer is asked for the ACK of a message without prompt ACK,
  // if none has come by itself; 0: each message requests an ACK. At most a 32nd of
  // RTO_Init_Time, so that a lost message is sent again long before its time-out.
  Duration tail_loss_time = std::chrono::milliseconds(1);
  Duration nack_retransmission_time = std::chrono::milliseconds(1);  // NACK_Retx_Time
  std::uint32_t max_nack_retransmissions = UINT32_MAX;               // Max_NACK_Retx_Cnt
  // Close_REQ_Time (PDS-177): the longer, the longer strangers that ignore the Close Request hold a
  // PDC. A peer that has proved its address has at least silence_limit().
  Duration close_request_time = std::chrono::seconds(3);
  Duration clear_time = std::chrono::milliseconds(1);  // PDS_Clear_Time (PDS-118)
  // PDCs that RUD messages to one destination may use at a time, so that none waits behind one of
  // a larger size class (PDS-9, Message::size_class). 1: they follow each other.
  std::size_t pdcs_per_destination = kSizeClasses;
  std::uint32_t out_of_order_threshold = 64;  // OOO_Threshold (PDS-130)
  // A gap that so many PSNs have arrived above is reported with RCVR_INFER_LOSS (PDS-133); 0 =
  // never: the source sees the gap in the SACK bitmap itself.
  std::uint32_t receiver_infers_loss_psns = 0;
  Duration ses_processing_timeout = std::chrono::seconds(30);  // SES_Proc_Timeout (PDS-143)
  Duration initiator_idle_time = std::chrono::seconds(10);     // PDC_Idle_Time of the initiator
  Duration target_idle_time = std::chrono::seconds(60);        // PDC_Idle_Time of the target
  Duration keepalive_time = std::chrono::milliseconds(500);    // NOOP interval of a waiting PDC
  // With a PeerWatcher: an idle peer is asked so often whether it lives, and its PDCs stay open; 0:
  // never (PDS-234).
  Duration peer_probe_period{};
  Duration pending_timeout = std::chrono::milliseconds(100);  // Pend_Timeout (PDS-181)
  Duration tombstone_time = std::chrono::seconds(2);          // Tombstone_Time
  // Syn_Retx_Safety_Time (PDS-217): how long a closed PDC is remembered, if that is more, when a
  // packet with SYN was sent again, of which late copies may come; empty: Tombstone_Time.
  std::optional<Duration> syn_retx_safety_time;
  // Data packets made in one pass of the FEP. A NIC that takes them one by one wants few: what
  // waits in its line is counted as delay of the network and cannot be overtaken by an ACK
  // (CMS-720).
  std::uint32_t packets_per_pass = 128;
  std::size_t pdc_count = 1024;           // PDCs of a FEP, both roles together
  std::size_t ccc_count = 4096;           // congestion contexts of a FEP
  std::size_t bitmap_count = 65536;       // receive windows of a FEP: one for each PDC (PDS-66)
  std::size_t reserved_target_pdcs = 32;  // kept for accepting SYNs (PDS-182)
  std::size_t reserved_pool_pdcs = 16;    // kept in each role for Destination::reserved_pool
  std::uint8_t dscp_data = 0;             // PDS-160
  std::optional<std::uint8_t> dscp_retransmission;  // of data (CMS-504); empty: as dscp_data
  std::uint8_t dscp_no_trim = 0;                    // of data that was trimmed too often (CMS-507)
  std::uint8_t dscp_control = 46;
  std::uint8_t dscp_datagram = 10;            // UUD: not the class of what UET-CC controls (PDS-12)
  std::optional<std::uint32_t> start_psn;     // first Start_PSN; empty = random (PDS-53)
  std::optional<std::uint16_t> first_pdc_id;  // first PDC id given out; empty = random
  // Of a FEP that shares a UDP port with others: its PDC ids and the ids of its RUDI requests begin
  // with these bits, so that the kernel tells by them whose an answer is. pdc_count is half of
  // id_share.size() at most.
  PdcIdShare id_share;
  std::uint16_t first_udp_port = kUetUdpPort;  // of our processes (PeerPorts)
  // The NIC protects every packet (TSS-9): destinations may name a secure domain. Set by the Fep.
  bool secured = false;
  // If it is secured: PDS section 7. Which Start_PSNs are accepted, and how long a peer has to take
  // the one that it was told (New_PDC_Time).
  bool random_start = false;  // 1-RTT, until StartPsns::key_changed; else expected start, 0-RTT
  Duration new_pdc_time = std::chrono::seconds(1);
  // Limit_PSN_Range (PDS-80): a secured PDC begins to close when it has used so many PSNs, long
  // before 2^31, because its messages end on it.
  std::uint32_t psn_limit = std::uint32_t{1} << 30;
  // Neither RUDI nor UUD, which have no protection against replay (TSS-50).
  bool refuses_replayable = false;
};

// MP_RANGE of a FEP that says `mpr` (PDS-39, PDS-218).
constexpr std::uint16_t range_psns(const Parameters& parameters, std::uint8_t mpr) {
  const std::uint32_t range =
      mpr > 0 ? mpr * std::uint32_t{wire::kMprUnitPsns} : parameters.mpr_zero_psns;
  return static_cast<std::uint16_t>(std::max<std::uint32_t>(range, 1));
}
// The smallest MP_RANGE that a peer may have.
constexpr std::uint16_t least_range_psns(const Parameters& parameters) {
  return range_psns(parameters, parameters.mpr_zero_psns > 0 ? 0 : 1);
}

inline constexpr std::uint32_t kUnlimited = UINT32_MAX;

}  // namespace uet::pds
