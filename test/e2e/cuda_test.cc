// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// FI_HMEM_CUDA through libfabric, with fake_cuda in the place of CUDA's driver library: its memory
// cannot be touched but through the driver, so that what arrives has been copied by it.
#include <gtest/gtest.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_trigger.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <span>

#include "fake_cuda/driver.h"
#include "objects.h"

namespace uet::e2e {
namespace {

constexpr std::uint64_t kCapabilities =
    FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_MULTI_RECV | FI_TRIGGER | FI_HMEM;
constexpr std::uint64_t kMrDmabuf = 1ULL << 40;   // FI_MR_DMABUF of libfabric 1.20
constexpr std::uint64_t kHostAlloc = 1ULL << 45;  // FI_HMEM_HOST_ALLOC; 2.x moves the name
constexpr int kCudaApiPermitted = 10;             // FI_OPT_CUDA_API_PERMITTED of 1.18

// Before the plug-in looks for libcuda.so.1: it then gets the one that is there.
[[maybe_unused]] const Driver& loaded = Driver::get();

int reg(Side& side, std::byte* memory, std::size_t bytes, fi_hmem_iface iface, int device,
        std::uint64_t key, std::uint64_t flags, Owned<fid_mr>& out) {
  const iovec iov{memory, bytes};
  fi_mr_attr attr{};
  attr.mr_iov = &iov;
  attr.iov_count = 1;
  attr.access = FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
  attr.requested_key = key;
  attr.iface = iface;
  attr.device.cuda = device;
  fid_mr* mr = nullptr;
  const int result = fi_mr_regattr(side.domain.get(), &attr, flags, &mr);
  out.reset(mr);
  return result;
}

// Registered memory of the device.
class DeviceBuffer {
 public:
  DeviceBuffer(Side& side, std::size_t bytes, std::uint64_t key)
      : data(Driver::get().allocate(bytes)), bytes_(bytes) {
    check(reg(side, data, bytes, FI_HMEM_CUDA, 0, key, 0, mr), "fi_mr_regattr");
  }
  ~DeviceBuffer() {
    mr.reset();
    Driver::get().free(data);
  }
  void* desc() const { return fi_mr_desc(mr.get()); }
  std::span<std::byte> behind(std::size_t offset, std::size_t bytes) const {
    return Driver::get().behind(data, bytes_).subspan(offset, bytes);
  }
  void clear() const { std::memset(behind(0, bytes_).data(), 0, bytes_); }

  std::byte* const data;
  Owned<fid_mr> mr;

 private:
  const std::size_t bytes_;
};

constexpr std::size_t kBytes = 400'000;
constexpr std::uint64_t kKey = 9;
constexpr std::size_t kSizes[] = {0, 1, 100, 4097, 70'000, kBytes};

class Cuda : public testing::Test {
 protected:
  Cuda() {
    ep_ = a_.open_endpoint(0);
    target_ = b_.open_endpoint(0);
    to_ = a_.insert(*target_);
    fill_pattern(from_.behind(0, kBytes), 3);
  }
  void expect_arrived(std::size_t bytes, const char* what) {
    EXPECT_EQ(std::memcmp(from_.behind(0, bytes).data(), into_.behind(0, bytes).data(), bytes), 0)
        << what << " of " << bytes;
    into_.clear();
  }

  Side a_{{.capabilities = kCapabilities}};
  Side b_{{.capabilities = kCapabilities}};
  DeviceBuffer from_{a_, kBytes, kKey};
  DeviceBuffer into_{b_, kBytes, kKey};
  Owned<fid_ep> ep_;
  Owned<fid_ep> target_;
  fi_addr_t to_ = 0;
};

// ---- what is offered, and to whom --------------------------------------------------------------

int get_info(std::uint64_t caps, int mr_mode, int& returned_mode) {
  const std::unique_ptr<fi_info, Node::FreeInfo> hints(fi_allocinfo());
  hints->fabric_attr->prov_name = strdup(provider().c_str());
  hints->ep_attr->type = FI_EP_RDM;
  hints->caps = caps;
  hints->domain_attr->mr_mode = mr_mode;
  fi_info* info = nullptr;
  const int result =
      fi_getinfo(FI_VERSION(1, 17), "127.0.0.1", nullptr, FI_SOURCE, hints.get(), &info);
  if (result == 0) returned_mode = info->domain_attr->mr_mode;
  fi_freeinfo(info);
  return result;
}

// The first test of the file: its child must not inherit a driver that has found its device.
TEST(CudaAbsence, IsThatOfADeviceToo) {
  Process without("without", {{"FAKE_CUDA_NO_DEVICE", "1"}}, [] {
    int mode = -1;
    require(get_info(FI_MSG | FI_HMEM, FI_MR_LOCAL, mode) == 0 && mode == 0, "system memory");
    Side side({.capabilities = kCapabilities});
    Owned<fid_mr> mr;
    require(reg(side, Driver::get().allocate(8), 8, FI_HMEM_CUDA, 0, 1, 0, mr) == -FI_ENOSYS,
            "memory of a device that is not there was registered");
  });
  EXPECT_EQ(without.wait(), "");
}

TEST(CudaOffer, NeedsDescriptors) {
  int mode = 0;
  EXPECT_EQ(get_info(FI_MSG | FI_HMEM, FI_MR_LOCAL, mode), -FI_ENODATA);
  EXPECT_EQ(get_info(FI_MSG | FI_HMEM, FI_MR_LOCAL | FI_MR_HMEM, mode), 0);
  EXPECT_EQ(mode, FI_MR_HMEM);
  EXPECT_EQ(get_info(FI_MSG | FI_HMEM, 0, mode), 0);
  EXPECT_EQ(mode, FI_MR_HMEM);
  EXPECT_EQ(get_info(FI_MSG, FI_MR_LOCAL, mode), 0);
  EXPECT_EQ(mode, 0) << "without FI_HMEM";
}

TEST_F(Cuda, OnlyMemoryOfTheDeviceIsRegistered) {
  Owned<fid_mr> mr;
  std::byte here[64];
  EXPECT_EQ(reg(a_, from_.data, 8, FI_HMEM_CUDA, 1, 1, 0, mr), -FI_EINVAL) << "no such device";
  EXPECT_EQ(reg(a_, from_.data, 8, FI_HMEM_CUDA, -1, 1, 0, mr), -FI_EINVAL);
  EXPECT_EQ(reg(a_, here, 8, FI_HMEM_CUDA, 0, 1, 0, mr), -FI_EINVAL);
  EXPECT_EQ(reg(a_, from_.data, kBytes + 1, FI_HMEM_CUDA, 0, 1, 0, mr), -FI_EINVAL);
  EXPECT_EQ(reg(a_, from_.data, 8, FI_HMEM_ROCR, 0, 1, 0, mr), -FI_ENOSYS);
  EXPECT_EQ(reg(a_, here, sizeof here, FI_HMEM_CUDA, 0, 1, kHostAlloc, mr), 0) << "cuMemAllocHost";
  EXPECT_EQ(reg(a_, from_.data + 8, kBytes - 8, FI_HMEM_CUDA, 0, 2, 0, mr), 0);
}

TEST_F(Cuda, CallsOfCudaCannotBeForbidden) {
  const auto set = [](fid_ep& ep, bool permitted) {
    return fi_setopt(&ep.fid, FI_OPT_ENDPOINT, kCudaApiPermitted, &permitted, 1);
  };
  EXPECT_EQ(set(*ep_, true), 0);
  EXPECT_EQ(set(*ep_, false), -FI_EOPNOTSUPP);
  Side without;
  EXPECT_EQ(set(*without.open_endpoint(0), false), 0) << "FI_HMEM was not asked for";
}

// ---- messages ----------------------------------------------------------------------------------

TEST_F(Cuda, MessagesGoFromDeviceToDevice) {
  for (const std::size_t bytes : kSizes) {
    for (const bool expected : {true, false}) {
      const auto receive = [&] {
        ASSERT_EQ(fi_trecv(target_.get(), into_.data, bytes, into_.desc(), FI_ADDR_UNSPEC, bytes, 0,
                           &into_),
                  0);
      };
      if (expected) receive();
      const auto before = Driver::get().copied();
      ASSERT_EQ(fi_tsend(ep_.get(), from_.data, bytes, from_.desc(), to_, bytes, &from_), 0);
      for (int i = 0; i < 50 && !expected; ++i) fi_cq_read(b_.cq.get(), nullptr, 0);
      if (!expected) receive();
      const Event event = b_.next(a_);
      EXPECT_EQ(event.error, 0);
      EXPECT_EQ(event.length, bytes);
      EXPECT_EQ(event.context, &into_);
      const Event sent = a_.next(b_);
      EXPECT_EQ(sent.error, 0);
      EXPECT_EQ(sent.context, &from_);
      const auto after = Driver::get().copied();
      const std::size_t copied = after.from_device - before.from_device;
      EXPECT_GE(copied, bytes);
      EXPECT_LE(copied, expected ? bytes : 2 * bytes) << "the target may have read all of it";
      EXPECT_EQ(after.to_device - before.to_device, bytes);
      expect_arrived(bytes, expected ? "expected message" : "unexpected message");
    }
  }
}

TEST_F(Cuda, AMessageOfPiecesHereAndThere) {
  char here[] = "from the host, ";
  iovec pieces[] = {{from_.data + 7, 5000}, {here, 15}, {from_.data, 3}};
  void* descriptors[] = {from_.desc(), nullptr, from_.desc()};
  char host[15];
  iovec into[] = {{into_.data, 5000}, {host, 15}, {into_.data + 6000, 3}};
  void* into_descriptors[] = {into_.desc(), nullptr, into_.desc()};
  ASSERT_EQ(fi_recvv(target_.get(), into, into_descriptors, 3, FI_ADDR_UNSPEC, nullptr), 0);
  ASSERT_EQ(fi_sendv(ep_.get(), pieces, descriptors, 3, to_, nullptr), 0);
  EXPECT_EQ(b_.next(a_).length, 5018U);
  EXPECT_EQ(std::memcmp(into_.behind(0, 5000).data(), from_.behind(7, 5000).data(), 5000), 0);
  EXPECT_EQ(std::memcmp(host, here, 15), 0);
  EXPECT_EQ(std::memcmp(into_.behind(6000, 3).data(), from_.behind(0, 3).data(), 3), 0);
}

TEST_F(Cuda, AMultiReceiveTellsAddressesOfTheDevice) {
  const iovec iov{into_.data, kBytes};
  void* desc = into_.desc();
  fi_msg msg{};
  msg.msg_iov = &iov;
  msg.iov_count = 1;
  msg.desc = &desc;
  msg.addr = FI_ADDR_UNSPEC;
  ASSERT_EQ(fi_recvmsg(target_.get(), &msg, FI_MULTI_RECV), 0);
  std::size_t offset = 0;
  for (const std::size_t bytes : {10, 6000}) {
    ASSERT_EQ(fi_send(ep_.get(), from_.data, bytes, from_.desc(), to_, nullptr), 0);
    EXPECT_EQ(b_.next(a_).buffer, into_.data + offset);
    EXPECT_EQ(std::memcmp(into_.behind(offset, bytes).data(), from_.behind(0, bytes).data(), bytes),
              0);
    EXPECT_EQ(a_.next(b_).error, 0);
    offset += bytes;
  }
}

TEST_F(Cuda, ATriggeredSendCopiesWhenItIsDue) {
  Owned<fid_cntr> counter;
  Side::open(counter, "fi_cntr_open",
             [&](auto** out) { return fi_cntr_open(a_.domain.get(), nullptr, out, nullptr); });
  fi_triggered_context trigger{};
  trigger.event_type = FI_TRIGGER_THRESHOLD;
  trigger.trigger.threshold.cntr = counter.get();
  trigger.trigger.threshold.threshold = 1;
  const iovec iov{from_.data, 9000};
  void* desc = from_.desc();
  fi_msg msg{};
  msg.msg_iov = &iov;
  msg.iov_count = 1;
  msg.desc = &desc;
  msg.addr = to_;
  msg.context = &trigger;
  ASSERT_EQ(fi_recv(target_.get(), into_.data, 9000, into_.desc(), FI_ADDR_UNSPEC, nullptr), 0);
  ASSERT_EQ(fi_sendmsg(ep_.get(), &msg, FI_TRIGGER | FI_COMPLETION), 0);
  desc = nullptr;
  fill_pattern(from_.behind(0, kBytes), 4);
  ASSERT_EQ(fi_cntr_add(counter.get(), 1), 0);
  EXPECT_EQ(a_.next(b_).context, &trigger);
  EXPECT_EQ(b_.next(a_).length, 9000U);
  expect_arrived(9000, "triggered message");
  desc = from_.desc();
  EXPECT_EQ(fi_sendmsg(ep_.get(), &msg, FI_TRIGGER | FI_INJECT), -FI_EINVAL);
}

// A long message that the target has no receive for waits there.
TEST_F(Cuda, ACancelledSendHasItsOwnContext) {
  ASSERT_EQ(fi_send(ep_.get(), from_.data, kBytes, from_.desc(), to_, &to_), 0);
  for (int i = 0; i < 50; ++i) {
    fi_cq_read(b_.cq.get(), nullptr, 0);
    fi_cq_read(a_.cq.get(), nullptr, 0);
  }
  ASSERT_EQ(fi_cancel(&ep_->fid, &to_), 0);
  const Event event = a_.next(b_);
  EXPECT_EQ(event.error, FI_ECANCELED);
  EXPECT_EQ(event.context, &to_);
}

// ---- RMA and atomics ---------------------------------------------------------------------------

TEST_F(Cuda, WritesAndReadsGoFromDeviceToDevice) {
  for (const std::size_t bytes : kSizes) {
    const auto before = Driver::get().copied();
    ASSERT_EQ(fi_write(ep_.get(), from_.data, bytes, from_.desc(), to_, 0, kKey, nullptr), 0);
    EXPECT_EQ(a_.next(b_).error, 0);
    const auto after = Driver::get().copied();
    EXPECT_EQ(after.from_device - before.from_device, bytes);
    EXPECT_EQ(after.to_device - before.to_device, bytes);
    expect_arrived(bytes, "write");

    fill_pattern(into_.behind(0, bytes), bytes);
    ASSERT_EQ(fi_read(ep_.get(), from_.data, bytes, from_.desc(), to_, 0, kKey, nullptr), 0);
    EXPECT_EQ(a_.next(b_).error, 0);
    expect_arrived(bytes, "read");
  }
}

TEST_F(Cuda, AtomicsAreForSystemMemory) {
  std::uint64_t one = 1;
  EXPECT_EQ(
      fi_atomic(ep_.get(), from_.data, 1, from_.desc(), to_, 0, kKey, FI_UINT64, FI_SUM, nullptr),
      -FI_EOPNOTSUPP);
  EXPECT_EQ(fi_fetch_atomic(ep_.get(), &one, 1, nullptr, from_.data, from_.desc(), to_, 0, kKey,
                            FI_UINT64, FI_SUM, nullptr),
            -FI_EOPNOTSUPP);
  ASSERT_EQ(fi_atomic(ep_.get(), &one, 1, nullptr, to_, 0, kKey, FI_UINT64, FI_SUM, nullptr), 0);
  EXPECT_EQ(a_.next(b_).error, FI_EOPNOTSUPP) << "the target's region is in device memory";
}

// ---- sends in trains ---------------------------------------------------------------------------

constexpr std::size_t kStream = 4 << 20;
constexpr std::size_t kLimit = 128 << 10;
// Pinned by each side for receives, the second as long as there is the device.
constexpr std::size_t kReceives = 2 * (256 << 10) + (64 << 10);
const char* const kTuning = "staging_chunk_bytes=65536,staging_bytes=131072";

class CudaTrains : public testing::Test {
 protected:
  CudaTrains() {
    ep_ = a_.open_endpoint(0);
    target_ = b_.open_endpoint(0);
    to_ = a_.insert(*target_);
    fill_pattern(from_.behind(0, kStream), 3);
    before_ = Driver::get().pinned();
  }
  void write(std::size_t bytes = kStream, void* context = nullptr) {
    ssize_t result = 0;
    while ((result = fi_write(ep_.get(), from_.data, bytes, from_.desc(), to_, 0, kKey, context)) ==
           -FI_EAGAIN) {
      fi_cq_read(b_.cq.get(), nullptr, 0);
    }
    check(static_cast<int>(result), "fi_write");
  }
  void expect_arrived() {
    EXPECT_EQ(
        std::memcmp(from_.behind(0, kStream).data(), into_.behind(0, kStream).data(), kStream), 0);
  }
  // All copies have been given back, and never was more pinned than the limit.
  void expect_within_limit() {
    EXPECT_EQ(read_counter(*a_.domain, "ses_staging_bytes"), 0U);
    EXPECT_LE(Driver::get().pinned().most, before_.now + kLimit + kReceives);
  }

  Variable tuning_{"FI_UET_TUNING", kTuning};
  Side a_{{.capabilities = kCapabilities}};
  Side b_{{.capabilities = kCapabilities}};
  DeviceBuffer from_{a_, kStream, kKey};
  DeviceBuffer into_{b_, kStream, kKey};
  Owned<fid_ep> ep_;
  Owned<fid_ep> target_;
  fi_addr_t to_ = 0;
  Driver::Pinned before_{};
};

struct Lossy {
  Variable faults{"FI_UET_FAULTS", "loss=5%,seed=39"};
};
struct CudaLossyTrains : Lossy, CudaTrains {};

TEST_F(CudaTrains, TheFirstPacketLeavesBeforeTheLastCopy) {
  const auto before = Driver::get().copied();
  write();
  while (Driver::get().copied().to_device == before.to_device) {
    ASSERT_FALSE(a_.poll().has_value());
    fi_cq_read(b_.cq.get(), nullptr, 0);
  }
  EXPECT_LT(Driver::get().copied().from_device - before.from_device, kStream);
  EXPECT_EQ(a_.next(b_).error, 0);
  EXPECT_EQ(Driver::get().copied().from_device - before.from_device, kStream);
  expect_arrived();
  expect_within_limit();
}

TEST_F(CudaTrains, ManyLongWritesPinNoMoreThanTheLimit) {
  constexpr int kWrites = 64;
  for (int i = 0; i < kWrites; ++i) write(kStream / 4);
  for (int i = 0; i < kWrites; ++i) ASSERT_EQ(a_.next(b_).error, 0);
  EXPECT_EQ(read_counter(*a_.domain, "ses_staged_bytes"), kWrites * kStream / 4);
  EXPECT_GT(read_counter(*a_.domain, "ses_staging_waits"), 0U);
  expect_within_limit();
}

TEST_F(CudaLossyTrains, RetransmissionsAreNotCopiedAgain) {
  write();
  EXPECT_EQ(a_.next(b_).error, 0);
  EXPECT_EQ(read_counter(*a_.domain, "ses_staged_bytes"), kStream);
  expect_arrived();
  expect_within_limit();
}

TEST_F(CudaTrains, PacketsThatArriveTogetherArePlacedTogether) {
  const std::size_t before = Driver::get().copies_to_device();
  write();
  EXPECT_EQ(a_.next(b_).error, 0);
  const std::size_t copies = Driver::get().copies_to_device() - before;
  const std::uint64_t packets = read_counter(*b_.domain, "pds_requests_delivered");
  EXPECT_LT(copies * 4, packets) << copies;
  expect_arrived();
}

// The receive comes late, so that the target reads the rest of the message.
TEST_F(CudaTrains, ALongMessageIsReadFromTrains) {
  ASSERT_EQ(fi_send(ep_.get(), from_.data, kStream, from_.desc(), to_, nullptr), 0);
  for (int i = 0; i < 1000; ++i) {
    fi_cq_read(a_.cq.get(), nullptr, 0);
    fi_cq_read(b_.cq.get(), nullptr, 0);
  }
  ASSERT_EQ(fi_recv(target_.get(), into_.data, kStream, into_.desc(), FI_ADDR_UNSPEC, nullptr), 0);
  EXPECT_EQ(b_.next(a_).length, kStream);
  EXPECT_EQ(a_.next(b_).error, 0);
  EXPECT_LE(read_counter(*a_.domain, "ses_staged_bytes"), 2 * kStream);
  expect_arrived();
  expect_within_limit();
}

TEST_F(CudaTrains, ACancelledWriteGivesItsCopiesBack) {
  int context = 0;
  write(kStream, &context);
  for (int i = 0; i < 3; ++i) fi_cq_read(b_.cq.get(), nullptr, 0);
  EXPECT_GT(read_counter(*a_.domain, "ses_staging_bytes"), 0U);
  ASSERT_EQ(fi_cancel(&ep_->fid, &context), 0);
  EXPECT_EQ(a_.next(b_).error, FI_ECANCELED);
  expect_within_limit();
  write();
  EXPECT_EQ(a_.next(b_).error, 0);
  expect_arrived();
}

// Of what it has sent, part is on its way and part waits for a receive, to be read.
TEST_F(CudaTrains, Ses165_AnEndpointThatClosesGivesItsCopiesBack) {
  write();
  ASSERT_EQ(fi_send(ep_.get(), from_.data, kStream, from_.desc(), to_, nullptr), 0);
  for (int i = 0; i < 3; ++i) fi_cq_read(b_.cq.get(), nullptr, 0);
  EXPECT_GT(read_counter(*a_.domain, "ses_staging_bytes"), 0U);
  ep_ = a_.open_endpoint(0);  // closes the old one
  write();
  EXPECT_EQ(a_.next(b_).error, 0);
  expect_arrived();
  EXPECT_EQ(read_counter(*a_.domain, "pds_pdcs_failed"), 0U);
  expect_within_limit();
}

TEST(CudaPeer, ADeadOneKeepsNoCopies) {
  ChannelPair channels;
  const Environment environment{{"FI_UET_LOCAL", "auto"},
                                {"tune.staging_chunk_bytes", "65536"},
                                {"tune.staging_bytes", "131072"}};
  Process victim("victim", environment, [&] {
    Side side({.capabilities = kCapabilities});
    const DeviceBuffer into(side, kStream, kKey);
    const auto target = side.open_endpoint(0);
    channels.left.send_bytes(Side::name_of(*target));
    for (;;) fi_cq_read(side.cq.get(), nullptr, 0);
  });
  Process sender("sender", environment, [&] {
    constexpr std::size_t kWrites = 8;
    Side side({.capabilities = kCapabilities});
    const DeviceBuffer from(side, kStream, kKey);
    const auto ep = side.open_endpoint(0);
    fi_addr_t to = FI_ADDR_UNSPEC;
    const std::vector<std::byte> name = channels.right.receive_bytes();
    require(fi_av_insert(side.av.get(), name.data(), 1, &to, 0, nullptr) == 1, "fi_av_insert");
    for (std::size_t i = 0; i < kWrites; ++i) {
      check(fi_write(ep.get(), from.data, kStream, from.desc(), to, 0, kKey, nullptr), "fi_write");
    }
    std::size_t ended = 0;
    while (read_counter(*side.domain, "ses_staged_bytes") < 3 * kLimit) {
      if (side.poll()) ++ended;
    }
    require(ended < kWrites, "all writes ended too early");
    require(::kill(victim.pid(), SIGKILL) == 0, "kill");
    while (ended < kWrites) {
      if (side.poll()) ++ended;
    }
    require(read_counter(*side.domain, "ses_staging_bytes") == 0, "copies are left");
  });
  EXPECT_EQ(sender.wait(), "");
}

// ---- wrong calls -------------------------------------------------------------------------------

TEST_F(Cuda, InjectIsForSystemMemory) {
  const iovec iov{from_.data, 8};
  void* desc = from_.desc();
  fi_msg msg{};
  msg.msg_iov = &iov;
  msg.iov_count = 1;
  msg.desc = &desc;
  msg.addr = to_;
  EXPECT_EQ(fi_sendmsg(ep_.get(), &msg, FI_INJECT), -FI_EINVAL);
}

TEST_F(Cuda, BuffersLieInTheRegionOfTheirDescriptor) {
  void* desc = from_.desc();
  EXPECT_EQ(fi_send(ep_.get(), from_.data + 1, kBytes, desc, to_, nullptr), -FI_EINVAL);
  EXPECT_EQ(fi_send(ep_.get(), from_.data - 1, 1, desc, to_, nullptr), -FI_EINVAL);
  EXPECT_EQ(fi_read(ep_.get(), from_.data + kBytes, 1, desc, to_, 0, kKey, nullptr), -FI_EINVAL);
  EXPECT_EQ(fi_recv(target_.get(), into_.data, kBytes + 1, into_.desc(), FI_ADDR_UNSPEC, nullptr),
            -FI_EINVAL);
}

// ---- dmabuf ------------------------------------------------------------------------------------

// As fi_mr(3) lays fi_mr_dmabuf out, which 1.17 does not know.
struct MrDmabuf {
  int fd;
  std::uint64_t offset;
  std::size_t length;
  void* base;
};

TEST(CudaDmabuf, IsMappedAndNamedByTheDevicesAddresses) {
  if (fi_version() < FI_VERSION(1, 20)) GTEST_SKIP() << "libfabric before 1.20 has no dmabuf";
  Side a({.capabilities = kCapabilities, .version = FI_VERSION(1, 20)});
  const auto ep = a.open_endpoint(0);
  const fi_addr_t self = a.insert(*ep);
  const int fd = memfd_create("dmabuf", 0);
  ASSERT_EQ(ftruncate(fd, 20'000), 0);
  std::byte* base = Driver::get().allocate(20'000);  // what only the device could use
  MrDmabuf dmabuf{fd, 100, 12'000, base};
  fi_mr_attr attr{};
  attr.mr_iov = reinterpret_cast<const iovec*>(&dmabuf);
  attr.iov_count = 1;
  attr.access = FI_SEND | FI_RECV | FI_REMOTE_READ | FI_REMOTE_WRITE;
  attr.requested_key = 5;
  attr.iface = FI_HMEM_CUDA;
  fid_mr* mr = nullptr;
  ASSERT_EQ(fi_mr_regattr(a.domain.get(), &attr, kMrDmabuf, &mr), 0);
  const Owned<fid_mr> owned(mr);
  std::vector<char> source(9000, 'd');
  ASSERT_EQ(fi_write(ep.get(), source.data(), source.size(), nullptr, self, 10, 5, nullptr), 0);
  EXPECT_EQ(a.next(a).error, 0);
  std::vector<char> file(20'000);
  ASSERT_EQ(pread(fd, file.data(), file.size(), 0), 20'000);
  EXPECT_EQ(std::memcmp(file.data() + 110, source.data(), source.size()), 0);
  EXPECT_EQ(file[109], 0);

  char received[4] = "";
  ASSERT_EQ(fi_recv(ep.get(), received, 3, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
  ASSERT_EQ(fi_send(ep.get(), base + 110, 3, fi_mr_desc(mr), self, nullptr), 0);
  EXPECT_EQ(a.next(a).error, 0);
  EXPECT_EQ(a.next(a).error, 0);
  EXPECT_STREQ(received, "ddd");
  dmabuf.fd = 0x7FFF;
  attr.requested_key = 6;
  EXPECT_EQ(fi_mr_regattr(a.domain.get(), &attr, kMrDmabuf, &mr), -FI_EOPNOTSUPP);
  close(fd);
}

}  // namespace
}  // namespace uet::e2e
