// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// RMA over RUDI: with keys whose owner promised that repeating is harmless, and only with those.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <iterator>

#include "harness.h"

namespace uet::e2e {
namespace {

constexpr std::uint64_t kSafe = std::uint64_t{1} << 63;
constexpr std::size_t kBytes = 100'000;

// Writes, reads back and checks, under the key that the target names.
void initiate(Channel& channel) {
  Node node;
  const fi_addr_t peer = node.connect(channel);
  const auto remote = channel.receive<RemoteRegion>(&node);
  node.write_and_read_back(peer, remote, kBytes, 10);
  const std::vector<std::byte> out(kBytes);
  node.post("writing outside", [&] {
    return fi_write(node.ep.get(), out.data(), out.size(), nullptr, peer, remote.address + 1,
                    remote.key, nullptr);
  });
  std::optional<Event> event;
  while (!event) event = node.poll();
  require(event->error == FI_EFAULT, "a write behind the end of the region");
  channel.meet(&node);
}

void serve(Channel& channel, std::uint64_t key) {
  Node node;
  node.connect(channel);
  std::vector<std::byte> memory(kBytes);
  const Region region = node.expose(memory.data(), memory.size(), key);
  channel.send(RemoteRegion{region.address, region.key});
  channel.meet(&node);
  require_pattern(memory, 9, "the region");
}

// Bytes of a RUDI_REQ with a standard request behind it (WIRE 2.7).
bool has_rudi_requests(const std::string& capture) {
  std::ifstream file(capture, std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(file), {});
  return bytes.find(std::string("\x21\x80\x00\x00", 4)) != std::string::npos;
}

class Rudi : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(Rudi, CarriesAccessesUnderSafeKeysAndNoOthers) {
  if (provider() != "uet") GTEST_SKIP() << "a parameter of uet";
  const std::uint64_t key = GetParam();
  const std::string capture = ::testing::TempDir() + "uet_rudi_" + std::to_string(::getpid());
  ChannelPair channels;
  Process target("target", {{"FI_UET_FAULTS", "loss=5%,dup=5%,reorder=5%,seed=3"}},
                 [&] { serve(channels.left, key); });
  Process initiator(
      "initiator",
      {{"tune.rudi", "yes"}, {"FI_UET_PCAP", capture}, {"FI_UET_FAULTS", "loss=5%,dup=5%,seed=4"}},
      [&] { initiate(channels.right); });
  EXPECT_EQ(wait_for_all({&target, &initiator}), "");
  if (!captures_are_encrypted()) {
    EXPECT_EQ(has_rudi_requests(capture), key == (kSafe | 7));
  }
  ::unlink(capture.c_str());
}

INSTANTIATE_TEST_SUITE_P(Keys, Rudi, ::testing::Values(kSafe | 7, std::uint64_t{7}),
                         [](const auto& info) {
                           return info.param == 7 ? std::string("Plain") : std::string("Safe");
                         });

}  // namespace
}  // namespace uet::e2e
