// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Device memory that an RDMA NIC reads itself, and the copies where it does not: fake_cuda below a
// process on each of two hosts, fake_verbs as the NIC. An access of the CPU to a device's address
// ends the process. Runs inside in_network.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/udmabuf.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "e2e/fake_cuda/driver.h"
#include "e2e/harness.h"
#include "exchange.h"

namespace uet::e2e {
namespace {

constexpr std::size_t kBytes = 1 << 20;
constexpr std::size_t kSkew = 100;        // a message does not begin with a page
constexpr std::size_t kLongest = 10'000;  // no packet is longer
constexpr std::uint64_t kKey = 5;
constexpr std::uint64_t kMrDmabuf = 1ULL << 40;  // FI_MR_DMABUF of libfabric 1.20
const NodeOptions kWithHmem{.capabilities = FI_MSG | FI_TAGGED | FI_RMA | FI_HMEM};

Owned<fid_mr> reg(Node& node, fi_mr_attr attr, std::uint64_t flags) {
  fid_mr* mr = nullptr;
  attr.iov_count = 1;
  attr.access = FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_WRITE;
  check(fi_mr_regattr(node.domain.get(), &attr, flags, &mr), "fi_mr_regattr");
  return Owned<fid_mr>(mr);
}

// Registered memory of the device.
struct DeviceBuffer {
  DeviceBuffer(Node& node, std::uint64_t key) : data(Driver::get().allocate(kBytes + kSkew)) {
    const iovec iov{data, kBytes + kSkew};
    fi_mr_attr attr{};
    attr.mr_iov = &iov;
    attr.requested_key = key;
    attr.iface = FI_HMEM_CUDA;
    mr = reg(node, attr, 0);
  }
  void* desc() const { return fi_mr_desc(mr.get()); }
  std::span<std::byte> behind(std::size_t offset, std::size_t bytes) const {
    return Driver::get().behind(data, kBytes + kSkew).subspan(offset, bytes);
  }

  std::byte* data;
  Owned<fid_mr> mr;
};

struct Counts {
  std::uint64_t gathered;  // packets
  std::uint64_t staged;    // bytes
  std::uint64_t copied;    // bytes that the driver has copied from the device
};
Counts counts(const Node& node) {
  return {node.counter("nic_packets_gathered"), node.counter("ses_staged_bytes"),
          Driver::get().copied().from_device};
}

// Each side sends what its device holds to the other's device, by messages and by writes.
Counts send_from_device(Node& node, fi_addr_t peer, Channel& channel, std::size_t bytes) {
  const DeviceBuffer from(node, 1);
  const DeviceBuffer into(node, 2);
  const DeviceBuffer exposed(node, kKey);
  fill_pattern(from.behind(kSkew, bytes), bytes);
  channel.meet(&node);
  const Counts before = counts(node);
  node.post("receiving", [&] {
    return fi_recv(node.ep.get(), into.data, bytes, into.desc(), FI_ADDR_UNSPEC, nullptr);
  });
  node.post("sending", [&] {
    return fi_send(node.ep.get(), from.data + kSkew, bytes, from.desc(), peer, nullptr);
  });
  node.post("writing", [&] {
    return fi_write(node.ep.get(), from.data + kSkew, bytes, from.desc(), peer, kSkew, kKey,
                    nullptr);
  });
  node.drain(3, "messages and writes");
  channel.meet(&node);
  require_pattern(into.behind(0, bytes), bytes, "message");
  require_pattern(exposed.behind(kSkew, bytes), bytes, "write");
  const Counts after = counts(node);
  channel.meet(&node);
  return {after.gathered - before.gathered, after.staged - before.staged,
          after.copied - before.copied};
}

enum class Expected { Gathered, Copied };

void exchange_between_devices(Channel& channel, Expected expected,
                              const std::function<void(Node&)>& prepare = {}) {
  Driver::get();  // before the plug-in looks for a driver
  Node node(kWithHmem);
  const fi_addr_t peer = node.connect(channel);
  exchange(node, peer, kLongest, 5);  // the next hop is known now
  if (prepare) prepare(node);
  for (const std::size_t bytes : {kBytes, std::size_t{40'000}, std::size_t{10}}) {
    const Counts sent = send_from_device(node, peer, channel, bytes);
    if (expected == Expected::Gathered) {
      require(sent.copied == 0 && sent.staged == 0, std::to_string(sent.copied) + " bytes copied");
      require(sent.gathered >= 2 * bytes / kLongest && sent.gathered > 0, "the NIC has read");
    } else {
      require(sent.copied >= 2 * bytes && sent.gathered == 0, "the driver has copied all");
      require(bytes < kLongest || sent.staged >= 2 * bytes, "by trains");
    }
  }
  require(node.counter("nic_kernel_errors") == 0, "the device failed");
}

int p2p_of(Node& node) {
  int mode = -1;
  std::size_t length = sizeof mode;
  check(fi_getopt(&node.ep->fid, FI_OPT_ENDPOINT, FI_OPT_FI_HMEM_P2P, &mode, &length), "fi_getopt");
  return mode;
}

TEST(DeviceMemory, Nic_ReadsItItself) {
  const auto run = [](Channel& channel) {
    exchange_between_devices(channel, Expected::Gathered, [](Node& node) {
      require(p2p_of(node) == FI_HMEM_P2P_ENABLED, "FI_OPT_FI_HMEM_P2P says so");
    });
  };
  EXPECT_EQ(run_on_both(run), "");
}

TEST(DeviceMemory, LossyNetwork_NicReadsItAgain) {
  const auto run = [](Channel& channel) { exchange_between_devices(channel, Expected::Gathered); };
  EXPECT_EQ(run_on_both(run, {{"FI_UET_FAULTS", "loss=5%"}}), "");
}

TEST(DeviceMemory, NicRefusesDmabufs_DriverCopies) {
  const auto run = [](Channel& channel) { exchange_between_devices(channel, Expected::Copied); };
  EXPECT_EQ(run_on_both(run, {{"UET_FAKE_VERBS", "no_dmabuf"}}), "");
}

TEST(DeviceMemory, DeviceHasNoDmabufs_DriverCopies) {
  const auto run = [](Channel& channel) { exchange_between_devices(channel, Expected::Copied); };
  EXPECT_EQ(run_on_both(run, {{"FAKE_CUDA_NO_DMABUF", "1"}}), "");
}

// Code that reads packets by the CPU stands between.
TEST(DeviceMemory, CaptureReadsPackets_DriverCopies) {
  const auto run = [](Channel& channel) {
    exchange_between_devices(channel, Expected::Copied, [](Node& node) {
      require(p2p_of(node) == FI_HMEM_P2P_DISABLED, "FI_OPT_FI_HMEM_P2P says so");
    });
  };
  EXPECT_EQ(run_on_both(run, {{"FI_UET_PCAP", "/dev/null"}}), "");
}

TEST(DeviceMemory, P2pDisabled_DriverCopies) {
  const auto by_option = [](Channel& channel) {
    exchange_between_devices(channel, Expected::Copied, [](Node& node) {
      const int mode = FI_HMEM_P2P_DISABLED;
      check(fi_setopt(&node.ep->fid, FI_OPT_ENDPOINT, FI_OPT_FI_HMEM_P2P, &mode, sizeof mode),
            "fi_setopt");
    });
  };
  EXPECT_EQ(run_on_both(by_option), "");
  const auto by_variable = [](Channel& channel) {
    exchange_between_devices(channel, Expected::Copied, [](Node& node) {
      require(p2p_of(node) == FI_HMEM_P2P_DISABLED, "FI_OPT_FI_HMEM_P2P says so");
    });
  };
  EXPECT_EQ(run_on_both(by_variable, {{"FI_HMEM_DISABLE_P2P", "1"}}), "");
}

// ---- dmabufs that the application brings -------------------------------------------------------

// As fi_mr(3) lays fi_mr_dmabuf out, which 1.17 does not know.
struct MrDmabuf {
  int fd;
  std::uint64_t offset;
  std::size_t length;
  void* base;
};

// `fd`: a dmabuf of kBytes. The device's addresses are those of memory that nothing may touch.
void send_dmabuf(Channel& channel, int fd) {
  NodeOptions options = kWithHmem;
  options.version = FI_VERSION(1, 20);
  Node node(options);
  const fi_addr_t peer = node.connect(channel);
  exchange(node, peer, kLongest, 5);
  void* const base = mmap(nullptr, kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const MrDmabuf buffer{fd, kSkew, kBytes - kSkew, base};
  fi_mr_attr attr{};
  attr.mr_iov = reinterpret_cast<const iovec*>(&buffer);
  attr.requested_key = kKey;
  const Owned<fid_mr> mr = reg(node, attr, kMrDmabuf);
  auto* const memory =
      static_cast<std::byte*>(mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
  require(memory != MAP_FAILED, "mmap of the dmabuf");
  fill_pattern({memory + kSkew, kBytes - kSkew}, 7);
  std::vector<std::byte> in(kBytes - kSkew);
  const std::uint64_t before = node.counter("nic_packets_gathered");
  node.post("receiving", [&] {
    return fi_recv(node.ep.get(), in.data(), in.size(), nullptr, FI_ADDR_UNSPEC, nullptr);
  });
  node.post("sending", [&] {
    return fi_send(node.ep.get(), static_cast<std::byte*>(base) + kSkew, in.size(),
                   fi_mr_desc(mr.get()), peer, nullptr);
  });
  node.drain(2, "a message");
  require_pattern(in, 7, "message");
  require(node.counter("nic_packets_gathered") - before >= in.size() / kLongest,
          "the NIC has read");
  require(node.counter("ses_staged_bytes") == 0, "nothing is staged");
  channel.meet(&node);
}

// A memory file serves fake_verbs as well as a dmabuf.
TEST(DeviceMemory, DmabufOfTheApplication_NicReadsIt) {
  if (fi_version() < FI_VERSION(1, 20)) GTEST_SKIP() << "libfabric before 1.20 has no dmabuf";
  const auto run = [](Channel& channel) {
    const int fd = memfd_create("dmabuf", 0);
    require(ftruncate(fd, kBytes) == 0, "ftruncate");
    send_dmabuf(channel, fd);
  };
  EXPECT_EQ(run_on_both(run), "");
}

int open_udmabuf(int device) {
  const int memory = memfd_create("udmabuf", MFD_ALLOW_SEALING);
  require(ftruncate(memory, kBytes) == 0 && fcntl(memory, F_ADD_SEALS, F_SEAL_SHRINK) == 0,
          "memfd");
  udmabuf_create create{};
  create.memfd = static_cast<std::uint32_t>(memory);
  create.size = kBytes;
  const int fd = ioctl(device, UDMABUF_CREATE, &create);
  require(fd >= 0, "UDMABUF_CREATE");
  return fd;
}

TEST(DeviceMemory, Udmabuf_NicReadsIt) {
  if (fi_version() < FI_VERSION(1, 20)) GTEST_SKIP() << "libfabric before 1.20 has no dmabuf";
  const int device = open("/dev/udmabuf", O_RDWR | O_CLOEXEC);
  if (device < 0) GTEST_SKIP() << "no /dev/udmabuf: modprobe udmabuf (CONFIG_UDMABUF)";
  EXPECT_EQ(run_on_both([&](Channel& channel) { send_dmabuf(channel, open_udmabuf(device)); }), "");
  close(device);
}

}  // namespace
}  // namespace uet::e2e
