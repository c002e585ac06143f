// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// FI_UET_PROFILE: what is offered, what addresses say, and what goes onto the wire.
#include <gtest/gtest.h>
#include <rdma/fi_atomic.h>
#include <unistd.h>

#include <fstream>
#include <iterator>

#include "harness.h"

namespace uet::e2e {
namespace {

constexpr std::size_t kLong = 200'000;
constexpr std::size_t kCapabilitiesAt = 2;  // in an FI_ADDR_UET

struct Profile {
  const char* name;
  std::uint64_t missing;  // of the capabilities
  int profiles;           // bits of the address (WIRE 4.2)
  int long_send;          // opcode of a long unordered send (WIRE 3.1)
};
constexpr Profile kProfiles[] = {
    {"ai_base", FI_TAGGED, 0x01, 0x05}, {"ai_full", 0, 0x03, 0x08}, {"hpc", 0, 0x07, 0x06}};

bool offered(std::uint64_t caps, std::uint64_t tx_flags) {
  fi_info* hints = fi_allocinfo();
  hints->caps = caps;
  hints->ep_attr->type = FI_EP_RDM;
  hints->tx_attr->op_flags = tx_flags;
  hints->fabric_attr->prov_name = strdup("uet");
  fi_info* info = nullptr;
  const int result = fi_getinfo(FI_VERSION(1, 17), nullptr, nullptr, 0, hints, &info);
  require(result == 0 || result == -FI_ENODATA, "fi_getinfo");
  const bool all = result == 0 && (info->caps & caps) == caps;
  if (info != nullptr) fi_freeinfo(info);
  fi_freeinfo(hints);
  return all;
}

// A first packet of several in the capture, with a standard header of this opcode (WIRE 3.2): flags
// REL and SOM, generation 0, job 1.
bool has_request(const std::string& capture, int opcode) {
  std::ifstream file(capture, std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(file), {});
  const std::string flags{static_cast<char>(opcode), 0x09};
  const std::string job{0, 0, 0, 1};
  for (std::size_t at = bytes.find(flags); at != std::string::npos;
       at = bytes.find(flags, at + 1)) {
    if (bytes.compare(at + 4, job.size(), job) == 0) return true;
  }
  return false;
}

NodeOptions options_of(const Profile& profile) {
  NodeOptions options;
  options.capabilities = (FI_MSG | FI_RMA | FI_TAGGED) & ~profile.missing;
  return options;
}

class ProfileTest : public ::testing::TestWithParam<Profile> {
 protected:
  void SetUp() override {
    if (provider() != "uet") GTEST_SKIP() << "a parameter of uet";
  }
};

TEST_P(ProfileTest, Ses159_Ses160_LimitsWhatIsOffered) {
  const Profile& profile = GetParam();
  Process child("child", {{"FI_UET_PROFILE", profile.name}}, [&] {
    for (const std::uint64_t caps : {FI_MSG, FI_RMA, FI_TAGGED, FI_ATOMIC, FI_FENCE}) {
      require(offered(caps, 0) == ((caps & profile.missing) == 0), "a capability");
    }
    require(offered(FI_MSG, FI_DELIVERY_COMPLETE), "delivery complete");
    Node node(options_of(profile));
    std::uint8_t name[64];
    std::size_t length = sizeof name;
    require(fi_getname(&node.ep->fid, name, &length) == 0, "fi_getname");
    require((name[kCapabilitiesAt] & 0x07) == profile.profiles, "the address");
  });
  EXPECT_EQ(child.wait(), "");
}

TEST_P(ProfileTest, Ses159_AiBaseHasNoFetchingAtomics) {
  const Profile& profile = GetParam();
  const bool fetching = std::string(profile.name) != "ai_base";
  Process child("child", {{"FI_UET_PROFILE", profile.name}}, [&] {
    NodeOptions options = options_of(profile);
    options.capabilities |= FI_ATOMIC;
    Node node(options);
    fid_ep* const ep = node.ep.get();
    std::size_t count = 0;
    require(fi_atomicvalid(ep, FI_UINT64, FI_SUM, &count) == 0, "an atomic");
    const int other = fetching ? 0 : -FI_EOPNOTSUPP;
    require(fi_fetch_atomicvalid(ep, FI_UINT64, FI_SUM, &count) == other, "a fetching one");
    require(fi_compare_atomicvalid(ep, FI_UINT64, FI_CSWAP, &count) == other, "one that compares");
    fi_atomic_attr attr{};
    const auto query = [&](std::uint64_t flags) {
      return fi_query_atomic(node.domain.get(), FI_UINT64, FI_SUM, &attr, flags);
    };
    require(query(0) == 0, "asking for an atomic");
    require(query(FI_FETCH_ATOMIC) == other, "asking for a fetching one");
  });
  EXPECT_EQ(child.wait(), "");
}

TEST_P(ProfileTest, Ses41_OnlyHpcIgnoresBitsOfATag) {
  const Profile& profile = GetParam();
  const bool tags = (profile.missing & FI_TAGGED) == 0;
  Process child("child", {{"FI_UET_PROFILE", profile.name}}, [&] {
    Node node(options_of(profile));
    char byte = 0;
    const auto post = [&](std::uint64_t ignore) {
      return fi_trecv(node.ep.get(), &byte, 1, nullptr, FI_ADDR_UNSPEC, 5, ignore, nullptr);
    };
    require(post(0) == (tags ? 0 : -FI_EOPNOTSUPP), "a receive with an exact tag");
    const bool all = std::string(profile.name) == "hpc";
    require(post(1) == (all ? 0 : tags ? -FI_EINVAL : -FI_EOPNOTSUPP), "one that ignores bits");
  });
  EXPECT_EQ(child.wait(), "");
}

TEST_P(ProfileTest, Ses161_DecidesHowLongMessagesAreSent) {
  const Profile& profile = GetParam();
  const std::string capture = ::testing::TempDir() + "uet_profile_" + std::to_string(::getpid());
  ChannelPair channels;
  Process receiver("receiver", {{"FI_UET_PROFILE", profile.name}}, [&] {
    Node node(options_of(profile));
    node.connect(channels.left);
    std::vector<std::byte> memory(kLong);
    channels.left.meet(&node);  // the message has come before its receive
    node.post("receiving", [&] {
      return fi_recv(node.ep.get(), memory.data(), memory.size(), nullptr, FI_ADDR_UNSPEC, nullptr);
    });
    node.next("a receive");
    require_pattern(memory, 1, "the message");
    channels.left.meet(&node);
  });
  const Environment sending = {{"FI_UET_PROFILE", profile.name},
                               {"FI_UET_PCAP", capture + ",clear"}};  // TSS-70
  Process sender("sender", sending, [&] {
    Node node(options_of(profile));
    const fi_addr_t peer = node.connect(channels.right);
    std::vector<std::byte> memory(kLong);
    fill_pattern(memory, 1);
    node.post("sending", [&] {
      return fi_send(node.ep.get(), memory.data(), memory.size(), nullptr, peer, nullptr);
    });
    channels.right.meet(&node);
    node.next("a send");
    channels.right.meet(&node);
  });
  EXPECT_EQ(wait_for_all({&receiver, &sender}), "");
  const std::string clear = captures_are_encrypted() ? capture + ".clear" : capture;
  for (const int opcode : {0x05, 0x06, 0x08}) {
    EXPECT_EQ(has_request(clear, opcode), opcode == profile.long_send) << opcode;
  }
  ::unlink(capture.c_str());
  ::unlink((capture + ".clear").c_str());
}

constexpr std::size_t kPutOff = 8;

class PutOffTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (provider() != "uet") GTEST_SKIP() << "a parameter of uet";
  }
};

// Messages that come before their receives, which are posted in the other order.
TEST_P(PutOffTest, Ses66_Ses70_NoReceive_TargetAsksWhenItHasOne) {
  const Environment environment{{"FI_UET_PROFILE", "ai_full"}, {"FI_UET_FAULTS", GetParam()}};
  ChannelPair channels;
  NodeOptions options;
  options.capabilities = FI_MSG | FI_TAGGED;
  Process receiver("receiver", environment, [&] {
    Node node(options);
    node.connect(channels.left);
    while (node.counter("ses_messages_parked") < kPutOff) node.keep_events();
    std::vector<std::byte> memory(kLong);
    for (std::size_t i = kPutOff; i-- > 0;) {
      node.post("receiving", [&] {
        return fi_trecv(node.ep.get(), memory.data(), memory.size(), nullptr, FI_ADDR_UNSPEC, i, 0,
                        nullptr);
      });
      node.next("a receive");
      require_pattern(memory, i, "the message");
    }
    require(node.counter("ses_messages_parked") == kPutOff, "one was put off twice");
    channels.left.meet(&node);
  });
  Process sender("sender", environment, [&] {
    Node node(options);
    const fi_addr_t peer = node.connect(channels.right);
    std::vector<std::vector<std::byte>> memory(kPutOff, std::vector<std::byte>(kLong));
    for (std::size_t i = 0; i < kPutOff; ++i) {
      fill_pattern(memory[i], i);
      node.post("sending", [&] {
        return fi_tsend(node.ep.get(), memory[i].data(), kLong, nullptr, peer, i, nullptr);
      });
    }
    for (std::size_t i = 0; i < kPutOff; ++i) node.next("a send");
    channels.right.meet(&node);
  });
  EXPECT_EQ(wait_for_all({&receiver, &sender}), "");
}

INSTANTIATE_TEST_SUITE_P(Faults, PutOffTest,
                         ::testing::Values("", "loss=2%,dup=1%,reorder=2%,seed=11"),
                         [](const auto& info) { return info.index == 0 ? "None" : "Lossy"; });

INSTANTIATE_TEST_SUITE_P(All, ProfileTest, ::testing::ValuesIn(kProfiles),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace uet::e2e
