// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Registered memory through libfabric: every mr_mode, enabling, restriction to an endpoint,
// counters of remote operations, asynchronous registration. Two domains in one process.
#include <gtest/gtest.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_eq.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "objects.h"

namespace uet::e2e {
namespace {

constexpr std::uint64_t kRegMr = 1ULL << 59;  // FI_REG_MR, a warning in 2.x
constexpr std::uint64_t kKey = 5;

// fi_mr_reg with all that does not change.
int reg(Side& side, const void* memory, std::size_t bytes, std::uint64_t access, std::uint64_t key,
        std::uint64_t flags, fid_mr** mr) {
  return fi_mr_reg(side.domain.get(), memory, bytes, access, 0, key, flags, mr, nullptr);
}

class MemoryRegion : public testing::Test {
 protected:
  // The target's domain is opened with `mr_mode` in its info.
  explicit MemoryRegion(int mr_mode = 0)
      : b_({.info = [mr_mode](fi_info& info) { info.domain_attr->mr_mode = mr_mode; }}) {
    ep_ = a_.open_endpoint(0);
    target_ = b_.open_endpoint(0);
    to_ = a_.insert(*target_);
  }
  Owned<fid_mr> expose(std::uint64_t flags = 0, std::uint64_t key = kKey) {
    fid_mr* mr = nullptr;
    EXPECT_EQ(reg(b_, memory_, sizeof memory_, FI_REMOTE_READ | FI_REMOTE_WRITE, key, flags, &mr),
              0);
    return Owned<fid_mr>(mr);
  }
  Owned<fid_cntr> open_counter(Side& side) {
    Owned<fid_cntr> counter;
    Side::open(counter, "fi_cntr_open",
               [&](auto** out) { return fi_cntr_open(side.domain.get(), nullptr, out, nullptr); });
    return counter;
  }
  // The error of a write of "x" there, 0 if it arrives.
  int write(fi_addr_t to, std::uint64_t key, std::uint64_t remote = 0) {
    check(fi_write(ep_.get(), "x", 1, nullptr, to, remote, key, nullptr), "fi_write");
    return a_.next(b_).error;
  }

  Side a_;
  Side b_;
  Owned<fid_ep> ep_;
  Owned<fid_ep> target_;
  fi_addr_t to_ = 0;
  alignas(16) char memory_[64] = "";
};

// ---- closing ------------------------------------------------------------------------------------

// Answers that have not left when the region closes bring the bytes of that time, or an error. The
// application changes the memory afterwards.
TEST_F(MemoryRegion, RegionClosesUnderReads_NoReadBringsLaterBytes) {
  constexpr std::size_t kReads = 16;
  constexpr std::ptrdiff_t kBytes = 256 << 10;
  std::vector<char> large(kReads * kBytes, 'x');
  std::vector<char> local(large.size());
  fid_mr* mr = nullptr;
  ASSERT_EQ(reg(b_, large.data(), large.size(), FI_REMOTE_READ, kKey, 0, &mr), 0);
  for (std::size_t i = 0; i < kReads; ++i) {
    ASSERT_EQ(fi_read(ep_.get(), local.data() + i * kBytes, kBytes, nullptr, to_, i * kBytes, kKey,
                      local.data() + i * kBytes),
              0);
  }
  a_.poll();
  b_.poll();  // has the first requests, and some answers under way
  ASSERT_EQ(fi_close(&mr->fid), 0);
  std::fill(large.begin(), large.end(), 'y');
  for (std::size_t i = 0; i < kReads; ++i) {
    const Event event = a_.next(b_);
    const auto* const from = static_cast<const char*>(event.context);
    const auto later = std::count(from, from + kBytes, 'y');
    EXPECT_EQ(later, 0) << "read " << i << ", error " << event.error;
    if (event.error == 0) {
      EXPECT_EQ(std::count(from, from + kBytes, 'x'), kBytes);
    }
  }
}

// ---- persistent memory -------------------------------------------------------------------------

// The write-back itself is in the unit test (persistent_test.cc).
TEST(PersistentRegion, CommitCompleteWritesAndPartsOfIt) {
  const SideOptions options{.capabilities = FI_RMA | FI_RMA_PMEM};
  Side a(options);
  Side b(options);
  ASSERT_NE(a.info->caps & FI_RMA_PMEM, 0U);
  const auto ep = a.open_endpoint(0);
  const auto target = b.open_endpoint(0);
  const fi_addr_t to = a.insert(*target);
  std::vector<char> memory(100'000);
  fid_mr* mr = nullptr;
  ASSERT_EQ(reg(b, memory.data(), memory.size(), FI_REMOTE_READ | FI_REMOTE_WRITE, kKey,
                FI_RMA_PMEM, &mr),
            0);
  const Owned<fid_mr> owned(mr);
  std::vector<char> source(memory.size(), 'p');
  const iovec piece{source.data(), source.size()};
  const fi_rma_iov remote{0, source.size(), kKey};
  fi_msg_rma msg{};
  msg.msg_iov = &piece;
  msg.iov_count = 1;
  msg.addr = to;
  msg.rma_iov = &remote;
  msg.rma_iov_count = 1;
  ASSERT_EQ(fi_writemsg(ep.get(), &msg, FI_COMMIT_COMPLETE | FI_COMPLETION), 0);
  EXPECT_EQ(a.next(b).error, 0);
  EXPECT_EQ(memory, source);
  source.assign(source.size(), ' ');
  ASSERT_EQ(fi_readmsg(ep.get(), &msg, FI_COMPLETION), 0);
  EXPECT_EQ(a.next(b).error, 0);
  EXPECT_EQ(memory, source);
}

// ---- no bytes -----------------------------------------------------------------------------------

// As Open MPI's alltoallw posts them: no address, no bytes, and a region all the same.
TEST_F(MemoryRegion, NullBufferWithoutBytesIsTaken) {
  const auto mr = expose();
  fid_mr* local = nullptr;
  ASSERT_EQ(reg(a_, &to_, sizeof to_, FI_SEND | FI_RECV | FI_READ | FI_WRITE, kKey, 0, &local), 0);
  const Owned<fid_mr> owned(local);
  void* desc = fi_mr_desc(local);
  void* target_desc = fi_mr_desc(mr.get());
  ASSERT_EQ(fi_write(ep_.get(), nullptr, 0, desc, to_, 0, kKey, nullptr), 0);
  EXPECT_EQ(a_.next(b_).error, 0);
  ASSERT_EQ(fi_read(ep_.get(), nullptr, 0, desc, to_, 0, kKey, nullptr), 0);
  EXPECT_EQ(a_.next(b_).error, 0);
  const iovec piece{};
  const fi_rma_iov remote{0, 0, kKey};
  const fi_msg_rma msg{&piece, &desc, 1, to_, &remote, 1, nullptr, 0};
  ASSERT_EQ(fi_writemsg(ep_.get(), &msg, FI_COMPLETION), 0);
  EXPECT_EQ(a_.next(b_).error, 0);
  ASSERT_EQ(fi_readmsg(ep_.get(), &msg, FI_COMPLETION), 0);
  EXPECT_EQ(a_.next(b_).error, 0);
  ASSERT_EQ(fi_recv(target_.get(), nullptr, 0, target_desc, FI_ADDR_UNSPEC, nullptr), 0);
  ASSERT_EQ(fi_send(ep_.get(), nullptr, 0, desc, to_, nullptr), 0);
  EXPECT_EQ(a_.next(b_).error, 0);
  const Event received = b_.next(a_);
  EXPECT_EQ(received.error, 0);
  EXPECT_EQ(received.length, 0U);
}

// ---- counters of remote operations -------------------------------------------------------------

TEST_F(MemoryRegion, CountersCountWhatTouchesTheRegion) {
  auto reads = open_counter(b_);
  auto writes = open_counter(b_);
  const auto mr = expose();
  const auto other = expose(0, kKey + 1);
  ASSERT_EQ(fi_mr_bind(mr.get(), &writes->fid, FI_REMOTE_WRITE), 0);
  ASSERT_EQ(fi_mr_bind(mr.get(), &reads->fid, FI_REMOTE_READ), 0);
  EXPECT_EQ(write(to_, kKey), 0);
  EXPECT_EQ(write(to_, kKey + 1), 0) << "another region";
  char byte = 0;
  ASSERT_EQ(fi_read(ep_.get(), &byte, 1, nullptr, to_, 0, kKey, nullptr), 0);
  EXPECT_EQ(a_.next(b_).error, 0);
  std::uint64_t one = 1;
  std::uint64_t old = 0;
  ASSERT_EQ(fi_atomic(ep_.get(), &one, 1, nullptr, to_, 8, kKey, FI_UINT64, FI_SUM, nullptr), 0);
  EXPECT_EQ(a_.next(b_).error, 0);
  ASSERT_EQ(fi_fetch_atomic(ep_.get(), &one, 1, nullptr, &old, nullptr, to_, 8, kKey, FI_UINT64,
                            FI_SUM, nullptr),
            0);
  EXPECT_EQ(a_.next(b_).error, 0);
  ASSERT_EQ(fi_writedata(ep_.get(), "y", 1, nullptr, 9, to_, 0, kKey, nullptr), 0);
  EXPECT_EQ(a_.next(b_).error, 0);
  // An engine in another process may tell the target later than the initiator.
  fi_cntr_wait(writes.get(), 4, 60'000);
  fi_cntr_wait(reads.get(), 2, 60'000);
  EXPECT_EQ(fi_cntr_read(writes.get()), 4U) << "two writes, two atomics";
  EXPECT_EQ(fi_cntr_read(reads.get()), 2U) << "a read, a fetch";
}

TEST_F(MemoryRegion, ManyPacketsCountAsOneOperation) {
  std::vector<char> large(100'000);
  const auto writes = open_counter(b_);
  fid_mr* mr = nullptr;
  ASSERT_EQ(reg(b_, large.data(), large.size(), FI_REMOTE_WRITE, kKey, 0, &mr), 0);
  const Owned<fid_mr> owned(mr);
  ASSERT_EQ(fi_mr_bind(mr, &writes->fid, FI_REMOTE_WRITE), 0);
  const std::vector<char> source(large.size(), 'z');
  ASSERT_EQ(fi_write(ep_.get(), source.data(), source.size(), nullptr, to_, 0, kKey, nullptr), 0);
  EXPECT_EQ(a_.next(b_).error, 0);
  EXPECT_EQ(large, source);
  fi_cntr_wait(writes.get(), 1, 60'000);
  EXPECT_EQ(fi_cntr_read(writes.get()), 1U);
}

TEST_F(MemoryRegion, BindTakesOneCounterOfItsDomain) {
  auto counter = open_counter(b_);
  const auto foreign = open_counter(a_);
  auto mr = expose();
  EXPECT_EQ(fi_mr_bind(mr.get(), &counter->fid, 0), -FI_EBADFLAGS);
  EXPECT_EQ(fi_mr_bind(mr.get(), &counter->fid, FI_SEND), -FI_EBADFLAGS);
  EXPECT_EQ(fi_mr_bind(mr.get(), &foreign->fid, FI_REMOTE_WRITE), -FI_EDOMAIN);
  EXPECT_EQ(fi_mr_bind(mr.get(), &b_.cq->fid, 0), -FI_EINVAL);
  EXPECT_EQ(fi_mr_bind(mr.get(), &target_->fid, FI_REMOTE_WRITE), -FI_EBADFLAGS);
  EXPECT_EQ(fi_mr_bind(mr.get(), &counter->fid, FI_REMOTE_WRITE | FI_REMOTE_READ), 0);
  EXPECT_EQ(fi_mr_bind(mr.get(), &counter->fid, FI_REMOTE_READ), -FI_EINVAL) << "bound already";
  EXPECT_EQ(fi_close(&counter->fid), -FI_EBUSY);
  mr.reset();
  EXPECT_EQ(fi_close(&counter.release()->fid), 0);
}

// ---- enabling ----------------------------------------------------------------------------------

struct EndpointMode : MemoryRegion {
  EndpointMode() : MemoryRegion(FI_MR_ENDPOINT) {}
};

TEST_F(EndpointMode, Ses134_KeyIsValidFromEnablingOn) {
  const auto mr = expose();
  EXPECT_EQ(write(to_, kKey), FI_ENOKEY);
  EXPECT_EQ(fi_mr_enable(mr.get()), -FI_EOPBADSTATE) << "no endpoint is bound";
  ASSERT_EQ(fi_mr_bind(mr.get(), &target_->fid, 0), 0);
  EXPECT_EQ(write(to_, kKey), FI_ENOKEY);
  ASSERT_EQ(fi_mr_enable(mr.get()), 0);
  EXPECT_EQ(write(to_, kKey), 0);
  EXPECT_EQ(memory_[0], 'x');
}

TEST_F(EndpointMode, Ses135_OnlyThatEndpointReachesTheRegion) {
  const auto other = b_.open_endpoint(0);
  const fi_addr_t to_other = a_.insert(*other);
  auto mr = expose();
  ASSERT_EQ(fi_mr_bind(mr.get(), &target_->fid, 0), 0);
  EXPECT_EQ(fi_mr_bind(mr.get(), &other->fid, 0), -FI_EINVAL) << "bound already";
  ASSERT_EQ(fi_mr_enable(mr.get()), 0);
  EXPECT_EQ(fi_mr_bind(mr.get(), &other->fid, 0), -FI_EINVAL);
  EXPECT_EQ(write(to_other, kKey), FI_ENOKEY);
  EXPECT_EQ(write(to_, kKey), 0);
  mr.reset();
  EXPECT_EQ(fi_close(&target_.release()->fid), 0);
}

// fi_mr(3): the endpoint closes before the region that is bound to it.
TEST_F(EndpointMode, Ses134_EndpointMayCloseFirst) {
  const auto mr = expose();
  ASSERT_EQ(fi_mr_bind(mr.get(), &target_->fid, 0), 0);
  ASSERT_EQ(fi_mr_enable(mr.get()), 0);
  EXPECT_EQ(write(to_, kKey), 0);
  memory_[0] = 0;
  EXPECT_EQ(fi_close(&target_.release()->fid), 0);
  const auto next = b_.open_endpoint(0);  // has the same resource index
  const fi_addr_t to_next = a_.insert(*next);
  EXPECT_NE(write(to_next, kKey), 0) << "the next endpoint does not inherit the region";
  EXPECT_EQ(fi_mr_enable(mr.get()), 0);
  EXPECT_NE(write(to_next, kKey), 0);
  EXPECT_EQ(memory_[0], 0);
}

TEST_F(EndpointMode, ScalableEndpoint_RegionReachedByAnyContext) {
  Owned<fid_ep> sep;
  Side::open(sep, "fi_scalable_ep", [&](auto** out) {
    return fi_scalable_ep(b_.domain.get(), b_.info.get(), out, nullptr);
  });
  auto mr = expose();
  ASSERT_EQ(fi_mr_bind(mr.get(), &sep->fid, 0), 0);
  ASSERT_EQ(fi_mr_enable(mr.get()), 0);
  EXPECT_EQ(write(to_, kKey), FI_ENOKEY) << "another endpoint";
  EXPECT_EQ(fi_close(&sep.release()->fid), 0);
}

struct RmaEventMode : MemoryRegion {
  RmaEventMode() : MemoryRegion(FI_MR_RMA_EVENT) {}
};

TEST_F(RmaEventMode, RegionsWithCountersWaitForThem) {
  const auto counter = open_counter(b_);
  const auto plain = expose();
  EXPECT_EQ(write(to_, kKey), 0) << "registered without FI_RMA_EVENT: enabled at once";
  EXPECT_EQ(fi_mr_bind(plain.get(), &counter->fid, FI_REMOTE_WRITE), -FI_EOPBADSTATE);
  const auto mr = expose(FI_RMA_EVENT, kKey + 1);
  EXPECT_EQ(write(to_, kKey + 1), FI_ENOKEY);
  ASSERT_EQ(fi_mr_bind(mr.get(), &counter->fid, FI_REMOTE_WRITE), 0);
  ASSERT_EQ(fi_mr_enable(mr.get()), 0);
  EXPECT_EQ(fi_mr_bind(mr.get(), &counter->fid, FI_REMOTE_READ), -FI_EOPBADSTATE);
  EXPECT_EQ(write(to_, kKey + 1), 0);
  fi_cntr_wait(counter.get(), 1, 60'000);
  EXPECT_EQ(fi_cntr_read(counter.get()), 1U);
}

// ---- modes and keys ----------------------------------------------------------------------------

// A bit that comes back from getinfo is one that the application must obey: none does.
TEST(MemoryRegionModes, EveryMaskMayBeOfferedAndNoBitIsRequired) {
  constexpr int kBits[] = {FI_MR_LOCAL,    FI_MR_RAW,        FI_MR_VIRT_ADDR, FI_MR_ALLOCATED,
                           FI_MR_PROV_KEY, FI_MR_MMU_NOTIFY, FI_MR_RMA_EVENT, FI_MR_ENDPOINT,
                           FI_MR_HMEM,     FI_MR_COLLECTIVE};
  const std::unique_ptr<fi_info, Node::FreeInfo> hints(fi_allocinfo());
  hints->fabric_attr->prov_name = strdup(provider().c_str());
  hints->ep_attr->type = FI_EP_RDM;
  for (unsigned choice = 0; choice < 1U << std::size(kBits); ++choice) {
    int mask = 0;
    for (std::size_t i = 0; i < std::size(kBits); ++i)
      mask |= (choice >> i & 1) != 0 ? kBits[i] : 0;
    hints->domain_attr->mr_mode = mask;
    fi_info* info = nullptr;
    ASSERT_EQ(fi_getinfo(FI_VERSION(1, 17), "127.0.0.1", nullptr, FI_SOURCE, hints.get(), &info), 0)
        << mask;
    EXPECT_EQ(info->domain_attr->mr_mode, 0) << mask;
    fi_freeinfo(info);
  }
}

// The application gets the mode bits that it sets, in any combination.
TEST(MemoryRegionModes, EveryCombinationWorks) {
  constexpr int kBits[] = {FI_MR_VIRT_ADDR, FI_MR_PROV_KEY, FI_MR_RMA_EVENT, FI_MR_ENDPOINT};
  constexpr int kNoMatter = FI_MR_LOCAL | FI_MR_ALLOCATED | FI_MR_MMU_NOTIFY | FI_MR_HMEM;
  for (unsigned choice = 0; choice < 1U << std::size(kBits); ++choice) {
    int mode = choice % 2 == 0 ? kNoMatter : 0;
    for (std::size_t i = 0; i < std::size(kBits); ++i)
      mode |= (choice >> i & 1) != 0 ? kBits[i] : 0;
    Side a;
    Side b({.info = [mode](fi_info& info) { info.domain_attr->mr_mode = mode; }});
    const auto ep = a.open_endpoint(0);
    const auto target = b.open_endpoint(0);
    const fi_addr_t to = a.insert(*target);
    char memory[16] = "";
    fid_mr* mr = nullptr;
    const std::uint64_t flags = (mode & FI_MR_RMA_EVENT) != 0 ? FI_RMA_EVENT : 0;
    ASSERT_EQ(reg(b, memory, sizeof memory, FI_REMOTE_WRITE, kKey, flags, &mr), 0) << mode;
    const Owned<fid_mr> owned(mr);
    if ((mode & FI_MR_ENDPOINT) != 0) check(fi_mr_bind(mr, &target->fid, 0), "fi_mr_bind");
    if ((mode & (FI_MR_ENDPOINT | FI_MR_RMA_EVENT)) != 0) check(fi_mr_enable(mr), "fi_mr_enable");
    EXPECT_EQ(fi_mr_key(mr) == kKey, (mode & FI_MR_PROV_KEY) == 0) << mode;
    const std::uint64_t base =
        (mode & FI_MR_VIRT_ADDR) != 0 ? reinterpret_cast<std::uintptr_t>(memory) : 0;
    ASSERT_EQ(fi_write(ep.get(), "mode", 5, nullptr, to, base + 3, fi_mr_key(mr), nullptr), 0);
    EXPECT_EQ(a.next(b).error, 0) << mode;
    EXPECT_STREQ(memory + 3, "mode") << mode;
  }
}

TEST_F(MemoryRegion, KeysOfTheApplication) {
  const auto mr = expose();
  fid_mr* second = nullptr;
  EXPECT_EQ(reg(b_, memory_, 8, FI_REMOTE_READ, kKey, 0, &second), -FI_ENOKEY);
  EXPECT_EQ(reg(b_, memory_, 8, FI_REMOTE_READ, std::uint64_t{1} << 50, 0, &second),
            -FI_EKEYREJECTED);
  // No peer uses the key of memory without remote rights.
  ASSERT_EQ(reg(b_, memory_, 8, FI_SEND | FI_RECV | FI_COLLECTIVE, kKey, 0, &second), 0);
  EXPECT_NE(fi_mr_desc(second), nullptr);
  EXPECT_EQ(fi_close(&second->fid), 0);
  EXPECT_EQ(reg(b_, memory_, 8, FI_REMOTE_READ, kKey + 1, FI_MULTI_RECV, &second), -FI_EBADFLAGS);
  EXPECT_EQ(reg(b_, memory_, 8, std::uint64_t{1} << 62, kKey + 1, 0, &second), -FI_EINVAL);
}

TEST_F(MemoryRegion, NothingAndEverythingMayBeRegistered) {
  fid_mr* mr = nullptr;
  ASSERT_EQ(reg(b_, nullptr, 0, FI_REMOTE_WRITE, kKey, 0, &mr), 0);
  EXPECT_EQ(write(to_, kKey), FI_EFAULT);
  EXPECT_EQ(fi_close(&mr->fid), 0);
  ASSERT_EQ(reg(b_, nullptr, UINT64_MAX, FI_REMOTE_WRITE, kKey, 0, &mr), 0);
  EXPECT_EQ(write(to_, kKey, reinterpret_cast<std::uintptr_t>(memory_ + 5)), 0);
  EXPECT_EQ(memory_[5], 'x');
  EXPECT_EQ(fi_mr_refresh(mr, nullptr, 0, 0), 0);
  EXPECT_EQ(fi_close(&mr->fid), 0);
}

TEST_F(MemoryRegion, RawKeysAreKeys) {
  const auto mr = expose();
  std::array<std::uint8_t, 16> raw{};
  std::size_t size = 4;
  std::uint64_t base = 1;
  EXPECT_EQ(fi_mr_raw_attr(mr.get(), &base, raw.data(), &size, 0), -FI_ETOOSMALL);
  EXPECT_EQ(size, 8U);
  size = raw.size();
  ASSERT_EQ(fi_mr_raw_attr(mr.get(), &base, raw.data(), &size, 0), 0);
  EXPECT_EQ(size, 8U);
  EXPECT_EQ(base, 0U);
  std::uint64_t key = 0;
  EXPECT_EQ(fi_mr_map_raw(a_.domain.get(), base, raw.data(), 7, &key, 0), -FI_EINVAL);
  ASSERT_EQ(fi_mr_map_raw(a_.domain.get(), base, raw.data(), size, &key, 0), 0);
  EXPECT_EQ(key, kKey);
  EXPECT_EQ(write(to_, key), 0);
  EXPECT_EQ(fi_mr_unmap_key(a_.domain.get(), key), 0);
}

// SES-19: the JobID is what the auth_key says.
TEST_F(MemoryRegion, Ses17_RegionOfAnotherJobIsNotThere) {
  const iovec iov{memory_, sizeof memory_};
  std::array<std::uint8_t, 3> job = {0, 0, 99};
  fi_mr_attr attr{};
  attr.mr_iov = &iov;
  attr.iov_count = 1;
  attr.access = FI_REMOTE_WRITE;
  attr.requested_key = kKey;
  attr.auth_key = job.data();
  attr.auth_key_size = 2;
  fid_mr* mr = nullptr;
  EXPECT_EQ(fi_mr_regattr(b_.domain.get(), &attr, 0, &mr), -FI_EINVAL);
  std::array<std::uint8_t, 4> wide = {1, 0, 0, 99};  // more than 24 bits (SES-145)
  attr.auth_key = wide.data();
  attr.auth_key_size = wide.size();
  EXPECT_EQ(fi_mr_regattr(b_.domain.get(), &attr, 0, &mr), -FI_EINVAL);
  attr.auth_key = job.data();
  attr.auth_key_size = job.size();
  ASSERT_EQ(fi_mr_regattr(b_.domain.get(), &attr, 0, &mr), 0);
  EXPECT_EQ(write(to_, kKey), FI_ENOKEY);
  EXPECT_EQ(fi_close(&mr->fid), 0);
  job[2] = 1;  // FI_UET_JOB_ID's default
  ASSERT_EQ(fi_mr_regattr(b_.domain.get(), &attr, 0, &mr), 0);
  EXPECT_EQ(write(to_, kKey), 0);
  EXPECT_EQ(fi_close(&mr->fid), 0);
}

// ---- asynchronous registration -----------------------------------------------------------------

TEST_F(MemoryRegion, RegistrationIsReportedByTheEqOfTheDomain) {
  fid_eq* opened = nullptr;
  fi_eq_attr attr{};
  ASSERT_EQ(fi_eq_open(b_.fabric.get(), &attr, &opened, nullptr), 0);
  const Owned<fid_eq> eq(opened);
  EXPECT_EQ(fi_domain_bind(b_.domain.get(), &b_.cq->fid, 0), -FI_EINVAL);
  ASSERT_EQ(fi_domain_bind(b_.domain.get(), &eq->fid, kRegMr), 0);
  fid_mr* mr = nullptr;
  ASSERT_EQ(fi_mr_reg(b_.domain.get(), memory_, sizeof memory_, FI_REMOTE_WRITE, 0, kKey, 0, &mr,
                      memory_),
            0);
  std::uint32_t event = 0;
  fi_eq_entry entry{};
  ASSERT_EQ(fi_eq_read(eq.get(), &event, &entry, sizeof entry, 0),
            static_cast<ssize_t>(sizeof entry));
  EXPECT_EQ(event, static_cast<std::uint32_t>(FI_MR_COMPLETE));
  EXPECT_EQ(entry.fid, &mr->fid);
  EXPECT_EQ(entry.context, memory_);
  EXPECT_EQ(write(to_, kKey), 0);
  EXPECT_EQ(fi_close(&mr->fid), 0);
  target_.reset();
  b_.cq.reset();
  b_.av.reset();
  EXPECT_EQ(fi_close(&b_.domain.release()->fid), 0);  // the domain before its EQ
}

}  // namespace
}  // namespace uet::e2e
