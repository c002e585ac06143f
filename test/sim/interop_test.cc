// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Two Feps that are configured differently understand each other: every pair of the table below, in
// both delivery modes, with a little loss, carries every kind of operation both ways.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <string_view>
#include <tuple>

#include "sim/stage.h"

namespace uet::sim {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr std::uint32_t kMtu = 1024;  // the smallest
// The payload MTU is the one number both must agree on: each pair has one of these.
constexpr std::array<std::uint32_t, 4> kMtus = {kMtu, 2048, 4096, 8192};

struct Implementation {
  std::string_view name;
  void (*configure)(fep::Config& config);
  // The operations that its address allows to its peers.
  bool hpc = false;        // what can be read
  bool ai_full = false;    // what can be deferred
  bool optimized = false;  // medium and small headers
};

constexpr std::array kImplementations{
    Implementation{"defaults", [](fep::Config&) {}, true},
    // No rendezvous, no congestion control, the smallest window.
    Implementation{"base",
                   [](fep::Config& c) {
                     c.pds.default_mpr = 1;
                     c.cms.algorithm = cms::Algorithm::None;
                     c.ses.rendezvous_threshold_bytes = UINT64_MAX;
                   },
                   false},
    // Large window, seldom an ACK, everything can be read.
    Implementation{"lazy",
                   [](fep::Config& c) {
                     c.pds.default_mpr = 32;
                     c.pds.ack_gen_trigger_bytes = 32 * 1024;
                     c.pds.ack_gen_min_packet_add_bytes = 0;
                     c.pds.ack_on_ecn = false;
                     c.ses.rendezvous_threshold_bytes = 0;
                     c.ses.eager_bytes = 0;
                   },
                   true},
    // An ACK for each packet, and impatient.
    Implementation{"eager",
                   [](fep::Config& c) {
                     c.pds.ack_per_packet = true;
                     c.pds.rto_init = milliseconds(2);
                     c.pds.rto_cap = milliseconds(8);
                     c.pds.nack_retransmission_time = microseconds(100);
                     c.ses.rendezvous_threshold_bytes = 64 << 10;
                   },
                   true},
    // Little of everything: few PDCs, few buffers, few messages.
    Implementation{"small",
                   [](fep::Config& c) {
                     c.pds.default_mpr = 1;
                     c.pds.pdc_count = 8;
                     c.pds.reserved_target_pdcs = 2;
                     c.pds.reserved_pool_pdcs = 1;
                     c.packets = 256;
                     c.buffers = 48;
                     c.ses.tx_messages = c.ses.rx_messages = c.ses.return_messages = 16;
                     c.ses.posted_receives = 32;
                     c.ses.outstanding_reads_bytes = 4 * kMtu;
                     c.ses.unexpected_bytes_per_context = 16 * kMtu;
                     c.ses.unexpected_bytes_per_peer = 16 * kMtu;
                     c.ses.eager_bytes = 2 * kMtu;
                   },
                   true},
    // Next to the wraps of both number spaces.
    Implementation{"wrapping",
                   [](fep::Config& c) {
                     c.pds.start_psn = UINT32_MAX - 3;
                     c.pds.first_pdc_id = UINT16_MAX;
                     c.pds.out_of_order_threshold = 2;
                   },
                   true},
    // The AI Full profile: long sends are deferrable, nothing is read.
    Implementation{"ai_full",
                   [](fep::Config& c) {
                     c.ses.rendezvous = false;
                     c.ses.deferrable = true;
                   },
                   false, true},
    // Every profile, and short headers.
    Implementation{"all", [](fep::Config& c) { c.ses.deferrable = true; }, true, true, true},
    // PDS-219: an MP_RANGE that no mpr can say, and the smallest there is.
    Implementation{"range64",
                   [](fep::Config& c) {
                     c.pds.default_mpr = 0;
                     c.pds.mpr_zero_psns = 64;
                   },
                   true},
    Implementation{"range1",
                   [](fep::Config& c) {
                     c.pds.default_mpr = 0;
                     c.pds.mpr_zero_psns = 1;
                   },
                   true},
};

using Pair = std::tuple<std::size_t, std::size_t, DeliveryMode>;

class Interop : public testing::TestWithParam<Pair> {
 protected:
  static constexpr std::size_t kRegion = 1 << 16;  // of each kind of operation
  static constexpr std::size_t kLong = 40'000;

  static StageConfig config() {
    const auto& [left, right, mode] = GetParam();
    StageConfig config;
    config.mode = mode;
    config.set_payload_mtu(kMtus[(left + 3 * right) % kMtus.size()]);
    config.fep.pds.start_psn.reset();
    config.fep.cms.algorithm = cms::Algorithm::Nscc;
    config.fep.cms.max_window_bytes = 1 << 20;
    config.link.loss = 0.01;
    config.link.reordering = mode == DeliveryMode::Rud ? 0.02 : 0;
    const std::array implementations{kImplementations[left], kImplementations[right]};
    std::uint8_t mpr_zero_psns = 0;  // the same in both (PDS-218): that of the smaller window
    for (const Implementation& implementation : implementations) {
      fep::Config fep;
      implementation.configure(fep);
      const std::uint8_t own = fep.pds.mpr_zero_psns;
      if (mpr_zero_psns == 0 || (own > 0 && own < mpr_zero_psns)) mpr_zero_psns = own;
    }
    config.configure = [implementations, mpr_zero_psns](int node, fep::Config& fep) {
      implementations[static_cast<std::size_t>(node)].configure(fep);
      fep.pds.mpr_zero_psns = mpr_zero_psns;
    };
    return config;
  }
  Interop() : stage_(config()) {
    const auto& [left, right, mode] = GetParam();
    say(stage_.actor(0).peer, kImplementations[left]);
    say(stage_.actor(1).peer, kImplementations[right]);
  }

  static void say(ses::Peer& peer, const Implementation& implementation) {
    peer.hpc = implementation.hpc;
    peer.ai_full = implementation.ai_full;
    peer.optimized = implementation.optimized;
  }

  bool same(std::size_t offset, std::size_t length) {
    return std::memcmp(stage_.actor(0).memory.data() + offset,
                       stage_.actor(1).memory.data() + offset, length) == 0;
  }
  // The data of node `from` at this offset arrive at the other node.
  void write_and_read(int from, std::size_t offset) {
    const int to = 1 - from;
    ASSERT_TRUE(stage_.write(from, to, offset, kLong, 7).ok());
    ASSERT_TRUE(stage_.completes(from, 1));
    ASSERT_TRUE(stage_.completes(to, 1)) << "the data of the write";
    EXPECT_TRUE(same(offset, kLong));
    ASSERT_TRUE(stage_.read(to, from, offset + kLong, 20'000).ok());
    ASSERT_TRUE(stage_.completes(to, 2));
    EXPECT_TRUE(same(offset + kLong, 20'000));
    expect_all_ok();
  }
  // `length` bytes, the receive posted before or only after they have left.
  void send_and_receive(int from, std::size_t offset, std::size_t length, bool expected) {
    const int to = 1 - from;
    const auto receive = [&] { ASSERT_TRUE(stage_.receive(to, offset, kRegion).ok()); };
    if (expected) receive();
    ASSERT_TRUE(stage_.send(from, to, offset, length).ok());
    if (!expected) {
      stage_.world().run_for(milliseconds(30));
      receive();
    }
    ASSERT_TRUE(stage_.completes(to, 1)) << length;
    ASSERT_TRUE(stage_.completes(from, 1)) << length;
    EXPECT_EQ(stage_.actor(to).sink.completions[0].length, length);
    EXPECT_TRUE(same(offset, length)) << length;
    expect_all_ok();
  }
  void expect_all_ok() {
    for (const int node : {0, 1}) {
      for (const ses::Completion& done : stage_.actor(node).sink.completions) {
        EXPECT_EQ(done.status, ses::Status::Ok) << ses_text(done);
      }
      stage_.actor(node).sink.completions.clear();
    }
  }
  static std::string ses_text(const ses::Completion& done) {
    return "kind " + std::to_string(static_cast<int>(done.kind)) + ", return code " +
           std::to_string(static_cast<int>(done.return_code)) + ", PDS error " +
           std::to_string(static_cast<int>(done.pds_error));
  }

  Stage stage_;
};

TEST_P(Interop, EveryOperationWorksBothWaysAndThePdcsClose) {
  std::size_t offset = 0;
  for (const int from : {0, 1}) {
    write_and_read(from, offset);
    offset += kRegion;
    for (const bool expected : {true, false}) {
      for (const std::size_t length : {std::size_t{0}, std::size_t{100}, kLong}) {
        send_and_receive(from, offset, length, expected);
        offset += kRegion;
      }
    }
  }
  for (const int node : {0, 1}) stage_.fep(node).begin_close(stage_.world().now());
  stage_.world().run_for(std::chrono::seconds(5));
  for (const int node : {0, 1}) {
    EXPECT_TRUE(stage_.fep(node).closed());
    EXPECT_TRUE(stage_.fep(node).quiescent());
    EXPECT_EQ(stage_.counters(node).pdcs_failed, 0U);
  }
}

// ---- payload MTUs that do not agree (WIRE 1.5) --------------------------------------------------

using Mtus = std::tuple<std::uint32_t, std::uint32_t, DeliveryMode>;

// A message that fits one packet of both nodes works. A longer one is refused, in either direction,
// and does no harm.
class InteropMtu : public testing::TestWithParam<Mtus> {
 protected:
  static StageConfig config() {
    const auto [left, right, mode] = GetParam();
    StageConfig config;
    config.mode = mode;
    config.set_payload_mtu(std::max(left, right));
    const std::array mtus{left, right};
    config.configure = [mtus](int node, fep::Config& fep) {
      fep.ses.payload_mtu = mtus[static_cast<std::size_t>(node)];
    };
    return config;
  }
  ses::Completion ended(int node) {
    EXPECT_TRUE(stage_.completes(node, 1));
    auto& all = stage_.actor(node).sink.completions;
    const ses::Completion completion = all.empty() ? ses::Completion{} : all[0];
    all.clear();
    return completion;
  }
  void expect_refused(int node) {
    const ses::Completion completion = ended(node);
    EXPECT_EQ(completion.status, ses::Status::ReturnCode);
    EXPECT_EQ(completion.return_code, wire::ReturnCode::OpViolation);
  }
  void expect_short_ones_work(int from, std::size_t bytes) {
    const int to = 1 - from;
    const auto same = [&](std::size_t at) {
      return std::memcmp(stage_.actor(0).memory.data() + at, stage_.actor(1).memory.data() + at,
                         bytes) == 0;
    };
    next_ += 1 << 14;
    ASSERT_TRUE(stage_.write(from, to, next_, bytes).ok());
    EXPECT_EQ(ended(from).status, ses::Status::Ok);
    EXPECT_TRUE(same(next_));
    ASSERT_TRUE(stage_.read(from, to, next_ + (1 << 13), bytes).ok());
    EXPECT_EQ(ended(from).status, ses::Status::Ok);
    EXPECT_TRUE(same(next_ + (1 << 13)));
    next_ += 1 << 14;
    ASSERT_TRUE(stage_.receive(to, next_, bytes).ok());
    ASSERT_TRUE(stage_.send(from, to, next_, bytes).ok());
    EXPECT_EQ(ended(from).status, ses::Status::Ok);
    EXPECT_EQ(ended(to).status, ses::Status::Ok);
    EXPECT_TRUE(same(next_));
  }

  Stage stage_{config()};
  std::size_t next_ = 0;
};

TEST_P(InteropMtu, Ses25_Ses26_TooLongForOnePacket_OnlyItIsRefused) {
  const auto [left, right, mode] = GetParam();
  const std::size_t small = std::min(left, right);
  const std::size_t large = std::max(left, right);
  for (const int from : {0, 1}) {
    expect_short_ones_work(from, small);
    for (const std::size_t length : {small + 1, large, large + 1, 3 * large}) {
      const std::vector<std::byte> before = stage_.actor(1 - from).memory;
      ASSERT_TRUE(stage_.write(from, 1 - from, next_, length).ok());
      expect_refused(from);
      EXPECT_EQ(stage_.actor(1 - from).memory, before) << "a write of " << length;
      ASSERT_TRUE(stage_.read(from, 1 - from, next_, length).ok());
      expect_refused(from);
      ASSERT_TRUE(stage_.send(from, 1 - from, next_, length).ok());
      expect_refused(from);
    }
    expect_short_ones_work(from, small);
  }
  for (const int node : {0, 1}) stage_.fep(node).begin_close(stage_.world().now());
  stage_.world().run_for(std::chrono::seconds(5));
  for (const int node : {0, 1}) {
    EXPECT_TRUE(stage_.fep(node).closed());
    EXPECT_TRUE(stage_.fep(node).quiescent());
  }
}

std::string name_of_mtus(const testing::TestParamInfo<Mtus>& info) {
  const auto& [left, right, mode] = info.param;
  return std::to_string(left) + "_and_" + std::to_string(right) +
         (mode == DeliveryMode::Rod ? "_ROD" : "_RUD");
}

INSTANTIATE_TEST_SUITE_P(Mtus, InteropMtu,
                         testing::Combine(testing::Values(kMtu), testing::Values(2048, 8192),
                                          testing::Values(DeliveryMode::Rud, DeliveryMode::Rod)),
                         name_of_mtus);

// ---- the table ---------------------------------------------------------------------------------

std::string name_of(const testing::TestParamInfo<Pair>& info) {
  const auto& [left, right, mode] = info.param;
  return std::string(kImplementations[left].name) + "_and_" +
         std::string(kImplementations[right].name) + (mode == DeliveryMode::Rod ? "_ROD" : "_RUD");
}

INSTANTIATE_TEST_SUITE_P(Table, Interop,
                         testing::Combine(testing::Range(std::size_t{0}, kImplementations.size()),
                                          testing::Range(std::size_t{0}, kImplementations.size()),
                                          testing::Values(DeliveryMode::Rud, DeliveryMode::Rod)),
                         name_of);

}  // namespace
}  // namespace uet::sim
