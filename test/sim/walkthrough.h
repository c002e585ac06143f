// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// One fi_write of 16,384 bytes from rank 0 to rank 2 of job 101, with the numbers of the well-known
// story: the exchange itself, for the test that asserts each value and the program that tells it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sim/stage.h"

namespace uet::sim {

struct WalkthroughCast {
  static constexpr JobId kJob{101};
  static constexpr PidOnFep kInitiatorPid{0};
  static constexpr PidOnFep kTargetPid{2};
  static constexpr ResourceIndex kTargetIndex{0x00A};
  static constexpr Rkey kKey{0xACCE5};
  static constexpr RiGeneration kGeneration{1};
  static constexpr std::uint32_t kPayloadMtu = 4096;
  static constexpr std::size_t kLength = 16384;
  static constexpr PdcId kInitiatorPdc{0x4001};
  static constexpr PdcId kTargetPdc{0x8001};
  static constexpr Psn kStartPsn{0x12000};
};

class Walkthrough {
 public:
  Walkthrough();
  ~Walkthrough();
  Walkthrough(const Walkthrough&) = delete;
  Walkthrough& operator=(const Walkthrough&) = delete;

  // Posts the write and runs until it is complete and the network is silent. The first call opens
  // the PDC; later ones use it. `context` comes back in the completion.
  void write(void* context);

  std::vector<Seen> sent;  // every packet, both directions
  RecordingSink initiator, target;
  std::vector<std::byte> source, region;  // what is written from, what is written to
  const fep::Config& config() const { return config_; }

 private:
  fep::Config config_;
  SimWorld world_;
  ses::Context* from_ = nullptr;
  ses::Context* to_ = nullptr;
  ses::Peer peer_;
};

// The story in plain words, with one line for each packet.
std::string tell_walkthrough();

}  // namespace uet::sim
