// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// FI_HMEM through libfabric: who is offered it, how regions say whose memory they are, and
// transfers with the descriptors that FI_MR_HMEM and FI_MR_LOCAL make applications give.
#include <gtest/gtest.h>
#include <rdma/fi_atomic.h>

#include <array>
#include <cstring>
#include <span>

#include "objects.h"

namespace uet::e2e {
namespace {

constexpr std::uint64_t kDeviceOnly = 1ULL << 46;  // FI_HMEM_DEVICE_ONLY; 2.x moves the name
constexpr std::uint64_t kHostAlloc = 1ULL << 45;   // FI_HMEM_HOST_ALLOC
constexpr std::uint64_t kCapabilities = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC;

using Info = std::unique_ptr<fi_info, Node::FreeInfo>;

Info get_info(std::uint32_t version, const std::function<void(fi_info&)>& wish) {
  const Info hints(fi_allocinfo());
  hints->fabric_attr->prov_name = strdup(provider().c_str());
  hints->ep_attr->type = FI_EP_RDM;
  wish(*hints);
  fi_info* found = nullptr;
  const int result = fi_getinfo(version, "127.0.0.1", nullptr, FI_SOURCE, hints.get(), &found);
  require(result == 0 || result == -FI_ENODATA, "fi_getinfo");
  return Info(found);
}

// ---- applications that are offered FI_HMEM -----------------------------------------------------

TEST(HmemOffer, IsMadeOnRequestInAllCapabilities) {
  for (const int mr_mode : {0, FI_MR_HMEM, FI_MR_HMEM | FI_MR_LOCAL | FI_MR_ENDPOINT}) {
    const Info info = get_info(FI_VERSION(1, 17), [&](fi_info& hints) {
      hints.caps = kCapabilities | FI_HMEM;
      hints.domain_attr->mr_mode = mr_mode;
    });
    ASSERT_NE(info, nullptr) << mr_mode;
    EXPECT_NE(info->caps & FI_HMEM, 0U);
    EXPECT_NE(info->tx_attr->caps & FI_HMEM, 0U);
    EXPECT_NE(info->rx_attr->caps & FI_HMEM, 0U);
    EXPECT_EQ(info->domain_attr->mr_mode, 0) << "system memory needs no descriptor";
  }
}

TEST(HmemOffer, IsNotMadeWithoutARequest) {
  for (const std::uint64_t caps : {std::uint64_t{0}, kCapabilities}) {
    const Info info = get_info(FI_VERSION(1, 17), [&](fi_info& hints) { hints.caps = caps; });
    ASSERT_NE(info, nullptr);
    EXPECT_EQ((info->caps | info->tx_attr->caps | info->rx_attr->caps) & FI_HMEM, 0U);
  }
}

TEST(HmemOffer, OldApiWithoutMemoryInterface_NotOffered) {
  const auto wish = [](fi_info& hints) { hints.caps = FI_MSG | FI_HMEM; };
  EXPECT_EQ(get_info(FI_VERSION(1, 8), wish), nullptr);
  EXPECT_NE(get_info(FI_VERSION(1, 9), wish), nullptr);
}

// ---- registration ------------------------------------------------------------------------------

class Hmem : public testing::Test {
 protected:
  explicit Hmem(std::uint64_t more = FI_HMEM)
      : a_({.capabilities = kCapabilities | more}), b_({.capabilities = kCapabilities | more}) {}

  // The result of fi_mr_regattr for `memory` of this interface.
  int reg(Side& side, std::span<char> memory, fi_hmem_iface iface, std::uint64_t flags,
          Owned<fid_mr>& out) {
    const iovec iov{memory.data(), memory.size()};
    fi_mr_attr attr{};
    attr.mr_iov = &iov;
    attr.iov_count = 1;
    attr.access = FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
    attr.requested_key = ++key_;
    attr.iface = iface;
    attr.device.reserved = 17;  // fi_mr(3): ignored for FI_HMEM_SYSTEM
    fid_mr* mr = nullptr;
    const int result = fi_mr_regattr(side.domain.get(), &attr, flags, &mr);
    out.reset(mr);
    return result;
  }
  int reg(fi_hmem_iface iface, std::uint64_t flags) {
    Owned<fid_mr> mr;
    return reg(a_, memory_, iface, flags, mr);
  }

  Side a_;
  Side b_;
  std::array<char, 64> memory_{};
  std::uint64_t key_ = 0;
};

struct NoHmem : Hmem {
  NoHmem() : Hmem(0) {}
};

TEST_F(Hmem, RegionOfMissingInterface_NotSupported) {
  EXPECT_EQ(reg(FI_HMEM_SYSTEM, 0), 0);
  for (const fi_hmem_iface iface : {FI_HMEM_CUDA, FI_HMEM_ROCR, FI_HMEM_ZE, FI_HMEM_NEURON,
                                    FI_HMEM_SYNAPSEAI, static_cast<fi_hmem_iface>(7)}) {
    EXPECT_EQ(reg(iface, 0), -FI_ENOSYS) << iface;
  }
}

TEST_F(Hmem, FlagsSayHowMemoryWasAllocated) {
  EXPECT_EQ(reg(FI_HMEM_SYSTEM, kHostAlloc), 0);
  EXPECT_EQ(reg(FI_HMEM_SYSTEM, kDeviceOnly), -FI_EINVAL) << "system memory is on no device";
  EXPECT_EQ(reg(FI_HMEM_SYSTEM, FI_TRIGGER), -FI_EBADFLAGS);
}

// fi_mr(3): without FI_HMEM the interface is ignored, and its flags are not usable.
TEST_F(NoHmem, RegionsSayNothingOfTheirMemory) {
  EXPECT_EQ(reg(FI_HMEM_CUDA, 0), 0);
  EXPECT_EQ(reg(FI_HMEM_SYSTEM, kHostAlloc), -FI_EBADFLAGS);
  EXPECT_EQ(reg(FI_HMEM_SYSTEM, kDeviceOnly), -FI_EBADFLAGS);
}

// ---- transfers ---------------------------------------------------------------------------------

// As clients with FI_MR_HMEM and FI_MR_LOCAL do: a descriptor with every buffer.
TEST_F(Hmem, EveryTransferTakesDescriptors) {
  const auto from = a_.open_endpoint(0);
  const auto to = b_.open_endpoint(0);
  const fi_addr_t address = a_.insert(*to);
  std::vector<char> source(200'000);
  std::vector<char> target(source.size());
  fill_pattern(std::as_writable_bytes(std::span(source)), 7);
  Owned<fid_mr> here;
  Owned<fid_mr> there;
  ASSERT_EQ(reg(a_, source, FI_HMEM_SYSTEM, 0, here), 0);
  ASSERT_EQ(reg(b_, target, FI_HMEM_SYSTEM, 0, there), 0);
  const auto arrived = [&](std::size_t bytes, const char* what) {
    EXPECT_EQ(std::memcmp(source.data(), target.data(), bytes), 0) << what;
    std::fill(target.begin(), target.end(), '\0');
  };
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, source.size()}) {
    ASSERT_EQ(
        fi_recv(to.get(), target.data(), bytes, fi_mr_desc(there.get()), FI_ADDR_UNSPEC, nullptr),
        0);
    ASSERT_EQ(fi_send(from.get(), source.data(), bytes, fi_mr_desc(here.get()), address, nullptr),
              0);
    EXPECT_EQ(b_.next(a_).length, bytes);
    EXPECT_EQ(a_.next(b_).error, 0);
    arrived(bytes, "message");
    ASSERT_EQ(fi_write(from.get(), source.data(), bytes, fi_mr_desc(here.get()), address, 0,
                       fi_mr_key(there.get()), nullptr),
              0);
    EXPECT_EQ(a_.next(b_).error, 0);
    arrived(bytes, "write");
  }
  std::memcpy(target.data(), "what a read finds", 18);
  ASSERT_EQ(fi_read(from.get(), source.data(), 18, fi_mr_desc(here.get()), address, 0,
                    fi_mr_key(there.get()), nullptr),
            0);
  EXPECT_EQ(a_.next(b_).error, 0);
  EXPECT_STREQ(source.data(), "what a read finds");
}

}  // namespace
}  // namespace uet::e2e
