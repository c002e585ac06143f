// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The configuration of a secure domain at one member (TSS section 9), without keys.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "tss/kdf.h"
#include "tss/sender_state.h"
#include "uet/base/address.h"
#include "uet/base/time.h"

namespace uet::tss {

// A client of a server-mode domain that is named by SSI: only packets from `address` may carry
// `ssi`, and packets to `address` carry it (TSS-17).
struct Client {
  FabricAddress address;
  std::uint32_t ssi = 0;
  friend bool operator==(const Client&, const Client&) = default;
};

struct DomainConfig {
  static constexpr std::size_t kMostClients = 65536;
  static constexpr std::size_t kMostJobs = 65536;

  std::uint32_t sdi = 0;  // 24 bits
  KeyMode mode = KeyMode::Cluster;
  bool client = false;                // server mode: this FEP has a derived key, not the SDK
  std::optional<std::uint32_t> ssi;   // own SSI; a server has none
  std::vector<Client> clients;        // of a server whose domain uses SSIs
  std::vector<std::uint32_t> jobs;    // JobIDs that may use the domain (TSS-67); empty: all
  bool ipv6 = false;                  // the FEP has an IPv6 address
  bool pdc_only = false;              // neither RUDI nor UUD (TSS-50)
  RekeyRule rekey;                    // cluster mode
  std::optional<TscRange> tsc;        // nullopt: default_range()
  bool check_epoch = false;           // drop packets of old epochs (TSS-41)
  std::uint16_t max_epoch_age = 16;   // rx_max_epoch_lifetime
  std::uint32_t auth_fail_alarm = 0;  // failures in one second that raise an alarm; 0: none
  std::uint64_t auth_fail_latch = 0;  // more failures than this latch the domain; 0: never (TSS-44)
  Duration guard = std::chrono::seconds(10);  // how long a replaced key still opens packets

  bool server() const { return mode == KeyMode::Server && !client; }
  bool uses_ssi() const { return ssi.has_value() || !clients.empty(); }
  friend bool operator==(const DomainConfig&, const DomainConfig&) = default;
};

// The TSCs of this member if the configuration names none (TSS-32).
TscRange default_range(const DomainConfig& config);

// Why a configuration is refused, as a sentence without secrets; nullptr if it is good. Rules:
// TSS-22 (IPv6 in direct and server mode needs SSI), 24-bit SDI, valid ranges, and members that
// contradict the mode.
const char* reason_against(const DomainConfig& config);

}  // namespace uet::tss
