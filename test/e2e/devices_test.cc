// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// FI_HMEM_ROCR and FI_HMEM_ZE through libfabric, with stand-ins instead of the drivers' libraries:
// the memory cannot be touched but through them, so that what arrives has been copied by them.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include <cstring>
#include <span>
#include <string>

#include "objects.h"

namespace uet::e2e {
namespace {

constexpr std::uint64_t kKey = 9;
constexpr std::size_t kBytes = 300'000;
constexpr std::size_t kSizes[] = {0, 1, 4097, kBytes};

// A driver's library as an application uses it.
class StandIn {
 public:
  StandIn(const char* path, fi_hmem_iface iface, int device) : iface_(iface), device_(device) {
    void* const library = dlopen(path, RTLD_NOW);
    require(library != nullptr, path);
    find(library, "fake_device_allocate", allocate_);
    find(library, "fake_device_behind", behind_);
    find(library, "fake_device_copied", copied_);
  }
  fi_hmem_iface iface() const { return iface_; }
  int device() const { return device_; }
  std::byte* allocate(std::size_t bytes) const { return allocate_(bytes); }
  std::span<std::byte> behind(std::byte* memory, std::size_t bytes) const {
    return {behind_(memory), bytes};
  }
  std::size_t copied() const { return copied_(); }

 private:
  template <class Function>
  static void find(void* library, const char* name, Function*& function) {
    function = reinterpret_cast<Function*>(dlsym(library, name));
    require(function != nullptr, name);
  }
  const fi_hmem_iface iface_;
  const int device_;
  std::byte* (*allocate_)(std::size_t) = nullptr;
  std::byte* (*behind_)(const void*) = nullptr;
  std::size_t (*copied_)() = nullptr;
};

// Before the plug-in looks for libraries of these names: it then gets those that are there.
const StandIn& rocr() {
  static const StandIn one(UET_FAKE_HSA, FI_HMEM_ROCR, 0);
  return one;
}
// Driver 1, device 1.
const StandIn& ze() {
  static const StandIn one(UET_FAKE_ZE, FI_HMEM_ZE, 1 << 16 | 1);
  return one;
}
[[maybe_unused]] const StandIn& first_loaded = rocr();
[[maybe_unused]] const StandIn& second_loaded = ze();

int reg(Side& side, void* memory, std::size_t bytes, fi_hmem_iface iface, int device,
        std::uint64_t key, Owned<fid_mr>& out) {
  const iovec iov{memory, bytes};
  fi_mr_attr attr{};
  attr.mr_iov = &iov;
  attr.iov_count = 1;
  attr.access = FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
  attr.requested_key = key;
  attr.iface = iface;
  attr.device.ze = device;
  fid_mr* mr = nullptr;
  const int result = fi_mr_regattr(side.domain.get(), &attr, 0, &mr);
  out.reset(mr);
  return result;
}

class DeviceBuffer {
 public:
  DeviceBuffer(const StandIn& driver, Side& side, std::uint64_t key)
      : data(driver.allocate(kBytes)), driver_(driver) {
    check(reg(side, data, kBytes, driver.iface(), driver.device(), key, mr), "fi_mr_regattr");
  }
  void* desc() const { return fi_mr_desc(mr.get()); }
  std::span<std::byte> behind(std::size_t bytes) const { return driver_.behind(data, bytes); }

  std::byte* const data;
  Owned<fid_mr> mr;

 private:
  const StandIn& driver_;
};

struct Drivers {
  const StandIn& (*from)();
  const StandIn& (*into)();
  const char* name;
};

SideOptions options() {
  return {.capabilities = FI_MSG | FI_TAGGED | FI_RMA | FI_HMEM,
          .hints = [](fi_info& hints) { hints.domain_attr->mr_mode = FI_MR_HMEM; }};
}

class Devices : public testing::TestWithParam<Drivers> {
 protected:
  Devices() {
    ep_ = a_.open_endpoint(0);
    target_ = b_.open_endpoint(0);
    to_ = a_.insert(*target_);
    fill_pattern(from_.behind(kBytes), 3);
  }
  void expect_arrived(std::size_t bytes, const char* what) {
    EXPECT_EQ(std::memcmp(from_.behind(bytes).data(), into_.behind(bytes).data(), bytes), 0)
        << what << " of " << bytes;
    std::memset(into_.behind(kBytes).data(), 0, kBytes);
  }

  Side a_{options()};
  Side b_{options()};
  Owned<fid_ep> ep_;
  Owned<fid_ep> target_;
  fi_addr_t to_ = 0;
  DeviceBuffer from_{GetParam().from(), a_, kKey};
  DeviceBuffer into_{GetParam().into(), b_, kKey};
};

TEST_P(Devices, MessagesGoFromDeviceToDevice) {
  const std::size_t before = GetParam().from().copied();
  for (const std::size_t bytes : kSizes) {
    check(fi_recv(target_.get(), into_.data, bytes, into_.desc(), FI_ADDR_UNSPEC, nullptr),
          "fi_recv");
    check(fi_send(ep_.get(), from_.data, bytes, from_.desc(), to_, nullptr), "fi_send");
    EXPECT_EQ(a_.next(b_).error, 0);
    EXPECT_EQ(b_.next(a_).error, 0);
    expect_arrived(bytes, "a message");
    check(fi_tsend(ep_.get(), from_.data, bytes, from_.desc(), to_, 7, nullptr), "fi_tsend");
    for (int i = 0; i < 100; ++i) fi_cq_read(b_.cq.get(), nullptr, 0);  // before its receive
    check(fi_trecv(target_.get(), into_.data, bytes, into_.desc(), FI_ADDR_UNSPEC, 7, 0, nullptr),
          "fi_trecv");
    EXPECT_EQ(b_.next(a_).error, 0);
    EXPECT_EQ(a_.next(b_).error, 0);
    expect_arrived(bytes, "an unexpected message");
  }
  EXPECT_GE(GetParam().from().copied(), before + 2 * kBytes);
}

TEST_P(Devices, RmaReachesDeviceMemory) {
  for (const std::size_t bytes : kSizes) {
    check(fi_write(ep_.get(), from_.data, bytes, from_.desc(), to_, 0, kKey, nullptr), "fi_write");
    EXPECT_EQ(a_.next(b_).error, 0);
    expect_arrived(bytes, "a write");
  }
  std::memcpy(into_.behind(kBytes).data(), from_.behind(kBytes).data(), kBytes);
  std::memset(from_.behind(kBytes).data(), 0, kBytes);
  check(fi_read(ep_.get(), from_.data, kBytes, from_.desc(), to_, 0, kKey, nullptr), "fi_read");
  EXPECT_EQ(a_.next(b_).error, 0);
  expect_arrived(kBytes, "a read");
}

TEST_P(Devices, RegionsAreChecked) {
  const StandIn& driver = GetParam().from();
  Owned<fid_mr> mr;
  std::byte on_the_cpu{};
  EXPECT_EQ(reg(a_, &on_the_cpu, 1, driver.iface(), driver.device(), 11, mr), -FI_EINVAL);
  EXPECT_EQ(reg(a_, from_.data, kBytes + 1, driver.iface(), driver.device(), 11, mr), -FI_EINVAL);
  EXPECT_EQ(reg(a_, from_.data, kBytes, FI_HMEM_NEURON, 0, 11, mr), -FI_ENOSYS);
  if (driver.iface() == FI_HMEM_ZE) {
    for (const int device : {0, 1 << 16 | 2, 2 << 16, -1}) {
      EXPECT_EQ(reg(a_, from_.data, kBytes, FI_HMEM_ZE, device, 11, mr), -FI_EINVAL) << device;
    }
    EXPECT_EQ(reg(a_, from_.data, kBytes, FI_HMEM_ZE, 1 << 16, 11, mr), 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Drivers, Devices,
                         testing::Values(Drivers{rocr, rocr, "Rocr"}, Drivers{ze, ze, "Ze"},
                                         Drivers{rocr, ze, "RocrToZe"}),
                         [](const auto& info) { return std::string(info.param.name); });

// Without a device FI_HMEM is for memory of the system alone, and needs no descriptors.
TEST(NoDevices, AreNotOffered) {
  Process process("process", {{"FAKE_HSA_NO_DEVICE", "1"}, {"FAKE_ZE_NO_DEVICE", "1"}}, [] {
    Side a(options());
    require((a.info->domain_attr->mr_mode & FI_MR_HMEM) == 0, "FI_MR_HMEM is required");
    Owned<fid_mr> mr;
    std::byte byte{};
    require(reg(a, &byte, 1, FI_HMEM_ROCR, 0, 1, mr) == -FI_ENOSYS, "ROCr without a device");
    require(reg(a, &byte, 1, FI_HMEM_ZE, 0, 1, mr) == -FI_ENOSYS, "Level Zero without a device");
  });
  EXPECT_EQ(process.wait(), "");
}

}  // namespace
}  // namespace uet::e2e
