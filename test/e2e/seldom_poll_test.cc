// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A target that calls libfabric seldom: one call takes all that has come before it. Two domains in
// one process, on loopback.
#include <gtest/gtest.h>
#include <rdma/fi_rma.h>
#include <unistd.h>

#include <array>
#include <vector>

#include "objects.h"

namespace uet::e2e {
namespace {

constexpr std::size_t kMessages = 500;  // more than a burst holds

class SeldomPoll : public testing::Test {
 protected:
  SeldomPoll() : sender(a.open_endpoint(0)), receiver(b.open_endpoint(0)) {
    to_receiver = a.insert(*receiver);
  }
  // The completions that one call of the receiver finds, without the progress of another call.
  std::size_t completions() {
    std::array<fi_cq_tagged_entry, kMessages> entries;
    const ssize_t count = fi_cq_read(b.cq.get(), entries.data(), entries.size());
    return count > 0 ? static_cast<std::size_t>(count) : 0;
  }
  void send_all() {
    for (std::size_t i = 0; i < kMessages; ++i) {
      ssize_t result = 0;
      while ((result = fi_send(sender.get(), "text", 4, nullptr, to_receiver, nullptr)) ==
             -FI_EAGAIN) {
        fi_cq_read(a.cq.get(), nullptr, 0);
      }
      ASSERT_EQ(result, 0);
    }
    fi_cq_read(a.cq.get(), nullptr, 0);
  }

  Side a{SideOptions{.capabilities = FI_MSG}};
  Side b{SideOptions{.capabilities = FI_MSG}};
  Owned<fid_ep> sender;
  Owned<fid_ep> receiver;
  fi_addr_t to_receiver = 0;
  std::vector<char> room = std::vector<char>(4 * kMessages);
};

TEST_F(SeldomPoll, OneCallTakesAllThatHasCome) {
  for (std::size_t i = 0; i < kMessages; ++i) {
    ASSERT_EQ(fi_recv(receiver.get(), &room[4 * i], 4, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
  }
  send_all();  // the kernel has them now
  EXPECT_EQ(completions(), kMessages);
}

// Reads that find as many entries as they ask for make progress, too, if they come seldom.
TEST_F(SeldomPoll, ReadsOfAFullQueueMakeProgress) {
  for (std::size_t i = 0; i < kMessages; ++i) {
    ASSERT_EQ(fi_recv(receiver.get(), &room[4 * i], 4, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
  }
  send_all();
  fi_cq_tagged_entry entry{};
  ASSERT_EQ(fi_cq_read(b.cq.get(), &entry, 1), 1);
  std::size_t sent = 0;
  for (; sent < kMessages; ++sent) {
    if (a.next(b).error != 0) break;
  }
  ASSERT_EQ(sent, kMessages);
  ASSERT_EQ(fi_recv(receiver.get(), room.data(), 4, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
  ASSERT_EQ(fi_send(sender.get(), "text", 4, nullptr, to_receiver, nullptr), 0);
  usleep(1000);
  ASSERT_EQ(fi_cq_read(b.cq.get(), &entry, 1), 1);
  const Clock::time_point begun = Clock::now();
  while (!a.poll()) ASSERT_LT(Clock::now() - begun, kDeadline) << "the call took nothing";
}

// One look a second is life enough: no write of a peer fails.
TEST(SeldomTarget, WritesToOneThatLooksOnceASecondAreDone) {
  constexpr std::size_t kBytes = 300'000;
  constexpr int kWrites = 8;
  Side a;
  Side b;
  const auto source = a.open_endpoint(0);
  const auto target = b.open_endpoint(0);
  const fi_addr_t to = a.insert(*target);
  std::vector<std::byte> out(kBytes * kWrites);
  std::vector<std::byte> in(out.size());
  fill_pattern(out, 5);
  fid_mr* registered = nullptr;
  ASSERT_EQ(fi_mr_reg(b.domain.get(), in.data(), in.size(), FI_REMOTE_WRITE, 0, 5, 0, &registered,
                      nullptr),
            0);
  const Owned<fid_mr> mr(registered);
  for (std::size_t i = 0; i < kWrites; ++i) {
    ASSERT_EQ(fi_write(source.get(), &out[i * kBytes], kBytes, nullptr, to, i * kBytes, 5, nullptr),
              0);
  }
  Clock::time_point look = Clock::now() + std::chrono::seconds(1);
  const Clock::time_point end = Clock::now() + 2 * kDeadline;
  for (int done = 0; done < kWrites;) {
    if (const auto event = a.poll()) {
      ASSERT_EQ(event->error, 0) << "write " << done;
      ++done;
    }
    if (Clock::now() >= look) {
      fi_cq_read(b.cq.get(), nullptr, 0);
      look = Clock::now() + std::chrono::seconds(1);
    }
    ASSERT_LT(Clock::now(), end) << done << " writes are done";
  }
  require_pattern(in, 5, "what was written");
}

}  // namespace
}  // namespace uet::e2e
