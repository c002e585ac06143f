// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Both ends of sends that their target can read again, small enough to count packets.
#pragma once

#include "ses/context.h"
#include "ses/rendezvous.h"
#include "unit/ses/harness.h"

namespace uet::ses::test {

inline constexpr std::size_t kThreshold = 4 * kMtu;
inline constexpr std::size_t kKept = 2 * kMtu;

inline Parameters rendezvous_parameters() {
  Parameters parameters = small_parameters();
  parameters.rendezvous_threshold_bytes = kThreshold;
  parameters.eager_bytes = kKept;
  parameters.pulls = 4;
  return parameters;
}

// Two nodes whose long sends can be read.
class RendezvousTest : public TwoNodes {
 protected:
  explicit RendezvousTest(const Parameters& parameters = rendezvous_parameters())
      : TwoNodes(parameters) {}
  Peer to_b() const {
    Peer peer = b.peer();
    peer.hpc = true;
    return peer;
  }
  Result<void> send(Bytes& memory, bool delivery_complete = false, void* operation = nullptr,
                    std::size_t slices = 1, bool inject = false) {
    const Peer peer = to_b();
    std::vector<IoSlice> local;
    const std::size_t part = memory.size() / slices;
    for (std::size_t i = 0; i < slices; ++i) {
      local.push_back({memory.data() + i * part, i + 1 < slices ? part : memory.size() - i * part});
    }
    SendOp op;
    op.peer = &peer;
    op.local = local;
    op.delivery_complete = delivery_complete;
    op.context = operation;
    op.inject = inject;
    return a.ses.initiator().post(*a.context, op, kNow);
  }
  // Sends `memory`, of which b has kept the first part and dropped the rest.
  void send_unexpected(Bytes& memory, bool delivery_complete = false, void* operation = nullptr) {
    ASSERT_TRUE(send(memory, delivery_complete, operation));
    exchange();
    EXPECT_TRUE(a.sink.all.empty()) << "completes only when it has been read";
    EXPECT_GT(a.delivery.locks, 0) << "its sender watches whether the target lives";
    EXPECT_GT(b.delivery.locks, 0) << "and the other way";
  }
  static ReturnCode read_code(Node& source, Rkey key, std::uint64_t offset, std::uint32_t length,
                              std::uint8_t from = 2, std::uint32_t job = 101) {
    SesRequest read = source.request_for(SesOpcode::Read);
    read.match_bits = key.value;
    read.buffer_offset = offset;
    read.request_length = length;
    read.job_id = JobId{job};
    return code_of(source.take(read, {}, from));
  }
};

}  // namespace uet::ses::test
