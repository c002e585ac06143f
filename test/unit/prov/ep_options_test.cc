// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// fi_getopt and fi_setopt of fi_endpoint(3), without an endpoint.
#include "objects/ep_options.h"

#include <gtest/gtest.h>
#include <rdma/fi_endpoint.h>

namespace uet::prov {
namespace {

struct Options : ::testing::Test {
  static constexpr EpOptions::Bounds kBounds{.max_msg_size = 1000,
                                             .max_rma_size = 5000,
                                             .max_atomic_size = 100,
                                             .inject_size = 10,
                                             .tx_iov_limit = 3,
                                             .local_rings = true};
  EpOptions options{kBounds, 0};

  template <class T>
  int set(int name, T value) {
    return options.set(name, &value, sizeof value);
  }
  template <class T>
  T get(int name) const {
    T value{};
    std::size_t length = sizeof value;
    EXPECT_EQ(options.get(name, &value, &length), 0);
    EXPECT_EQ(length, sizeof value);
    return value;
  }
};

constexpr int kMessageLimit = kOptMaxMsgSize + int{kMessage};
constexpr int kRmaLimit = kOptMaxMsgSize + int{kRma};
constexpr int kAtomicLimit = kOptMaxMsgSize + int{kAtomic};
constexpr int kTaggedInjectLimit = kOptInjectMsgSize + int{kTagged};

TEST_F(Options, LimitsBeginAtTheBounds) {
  EXPECT_EQ(get<std::size_t>(kMessageLimit), 1000U);
  EXPECT_EQ(get<std::size_t>(kRmaLimit), 5000U);
  EXPECT_EQ(get<std::size_t>(kAtomicLimit), 100U);
  EXPECT_EQ(get<std::size_t>(kTaggedInjectLimit), 10U);
  EXPECT_EQ(options.limits().iov_count, 3U);
  EXPECT_EQ(options.receive().iov_count, ses::kMaxIoSlices) << "none was asked for";
}

TEST_F(Options, LimitIsThatOfOneKindOfTransfer) {
  EXPECT_EQ(set<std::size_t>(kMessageLimit, 5), 0);
  EXPECT_EQ(set<std::size_t>(kTaggedInjectLimit, 3), 0);
  EXPECT_EQ(options.limits().most[kMessage], 5U);
  EXPECT_EQ(options.limits().most[kTagged], 1000U);
  EXPECT_EQ(options.limits().inject[kTagged], 3U);
  EXPECT_EQ(options.limits().inject[kMessage], 10U);
}

TEST_F(Options, LimitBeyondItsBoundIsRefused) {
  EXPECT_EQ(set<std::size_t>(kMessageLimit, 1001), -FI_EINVAL);
  EXPECT_EQ(set<std::size_t>(kRmaLimit, 5000), 0);
  EXPECT_EQ(set<std::size_t>(kRmaLimit, 5001), -FI_EINVAL);
  EXPECT_EQ(set<std::size_t>(kAtomicLimit, 101), -FI_EINVAL);
  EXPECT_EQ(set<std::size_t>(kTaggedInjectLimit, 11), -FI_EINVAL);
  EXPECT_EQ(get<std::size_t>(kAtomicLimit), 100U);
}

TEST_F(Options, ValueOfAnotherTypeIsRefused) {
  EXPECT_EQ(set<int>(kMessageLimit, 5), -FI_EINVAL);
  EXPECT_EQ(options.set(kMessageLimit, nullptr, sizeof(std::size_t)), -FI_EINVAL);
  EXPECT_EQ(set<std::size_t>(FI_OPT_FI_HMEM_P2P, FI_HMEM_P2P_ENABLED), -FI_EINVAL);
}

TEST_F(Options, ShortBufferLearnsTheLength) {
  std::size_t length = 3;
  int value = 0;
  EXPECT_EQ(options.get(kMessageLimit, &value, &length), -FI_ETOOSMALL);
  EXPECT_EQ(length, sizeof(std::size_t));
}

TEST_F(Options, MinMultiReceiveIsKept) {
  EXPECT_EQ(get<std::size_t>(FI_OPT_MIN_MULTI_RECV), kDefaultMinMultiReceive);
  EXPECT_EQ(set<std::size_t>(FI_OPT_MIN_MULTI_RECV, 77), 0);
  EXPECT_EQ(options.receive().min_multi_receive, 77U);
}

TEST_F(Options, DeviceToDeviceCannotBeRequired) {
  EXPECT_EQ(set<int>(FI_OPT_FI_HMEM_P2P, FI_HMEM_P2P_REQUIRED), -FI_EOPNOTSUPP);
  EXPECT_EQ(set<int>(FI_OPT_FI_HMEM_P2P, 17), -FI_EINVAL);
  EXPECT_EQ(set<int>(FI_OPT_FI_HMEM_P2P, FI_HMEM_P2P_DISABLED), 0);
  EXPECT_EQ(get<int>(FI_OPT_FI_HMEM_P2P), FI_HMEM_P2P_DISABLED);
}

TEST_F(Options, HmemP2p_TellsWhetherTheNicReads) {
  const int preferred = FI_HMEM_P2P_PREFERRED;
  int value = -1;
  std::size_t length = sizeof value;
  EpOptions reads({.max_msg_size = 1, .p2p = true}, 0);
  EXPECT_EQ(reads.get(FI_OPT_FI_HMEM_P2P, &value, &length), 0);
  EXPECT_EQ(value, FI_HMEM_P2P_ENABLED);
  EXPECT_TRUE(reads.may_use_p2p());
  EXPECT_EQ(reads.set(FI_OPT_FI_HMEM_P2P, &preferred, sizeof preferred), 0);
  EXPECT_EQ(reads.get(FI_OPT_FI_HMEM_P2P, &value, &length), 0);
  EXPECT_EQ(value, FI_HMEM_P2P_PREFERRED);
  EXPECT_EQ(set<int>(FI_OPT_FI_HMEM_P2P, FI_HMEM_P2P_PREFERRED), 0);
  EXPECT_EQ(get<int>(FI_OPT_FI_HMEM_P2P), FI_HMEM_P2P_DISABLED) << "this NIC does not";
  EXPECT_FALSE(options.may_use_p2p());
}

TEST_F(Options, SharedMemoryIsTheDomains) {
  EXPECT_TRUE(get<bool>(kOptSharedMemoryPermitted));
  EXPECT_EQ(set<unsigned char>(kOptSharedMemoryPermitted, 0), -FI_EOPNOTSUPP);
  EXPECT_EQ(set<unsigned char>(kOptSharedMemoryPermitted, 1), 0);
  EpOptions without({.max_msg_size = 1}, 0);
  const unsigned char no = 0;
  EXPECT_EQ(without.set(kOptSharedMemoryPermitted, &no, sizeof no), 0);
}

TEST_F(Options, CmDataSizeIsReadOnly) {
  EXPECT_EQ(get<std::size_t>(FI_OPT_CM_DATA_SIZE), 0U);
  EXPECT_EQ(set<std::size_t>(FI_OPT_CM_DATA_SIZE, 1), -FI_ENOPROTOOPT);
}

TEST_F(Options, UnknownOptionIsNoOption) {
  std::size_t length = 8;
  std::size_t value = 0;
  EXPECT_EQ(options.get(9999, &value, &length), -FI_ENOPROTOOPT);
  EXPECT_EQ(set<std::size_t>(9999, 1), -FI_ENOPROTOOPT);
}

}  // namespace
}  // namespace uet::prov
