// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The machine as uet_doctor sees it, in trees of files that look like the kernel's.
#include "uet_doctor/machine.h"

#include <gmock/gmock.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>

namespace uet::doctor {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;

class FakeMachine : public testing::Test {
 protected:
  FakeMachine() {
    std::string pattern = testing::TempDir() + "uet_machine_XXXXXX";
    root_ = ::mkdtemp(pattern.data());
    machine_.root = root_;
    machine_.interfaces = {"eth0"};
    machine_.cpus = {0, 1};
    machine_.memlock_bytes = 8 << 20;
    // A NIC at node 1, behind a bridge.
    write("sys/devices/pci0000:40/0000:40:01.0/0000:41:00.0/numa_node", "1");
    link("sys/devices/pci0000:40/0000:40:01.0/0000:41:00.0", "sys/class/net/eth0/device");
    write("sys/devices/system/node/node1/cpulist", "8-15,24");
  }
  ~FakeMachine() override { fs::remove_all(root_); }

  void write(const std::string& file, const std::string& text) {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text << '\n';
  }
  void link(const std::string& to, const std::string& from) {
    fs::create_directories((root_ / from).parent_path());
    fs::create_symlink(root_ / to, root_ / from);
  }
  void add_gpu(const std::string& pci_root) {
    write("sys/devices/" + pci_root + "/0000:99:00.0/class", "0x030200");
    link("sys/devices/" + pci_root + "/0000:99:00.0", "sys/bus/pci/devices/0000:99:00.0");
  }
  static testing::Matcher<const Finding&> finding(Finding::Kind kind, const std::string& words) {
    return testing::AllOf(testing::Field(&Finding::kind, kind),
                          testing::Field(&Finding::text, testing::HasSubstr(words)));
  }
  static auto good(const std::string& words) { return finding(Finding::Kind::Good, words); }
  static auto note(const std::string& words) { return finding(Finding::Kind::Note, words); }
  static auto warning(const std::string& words) { return finding(Finding::Kind::Warn, words); }
  Findings look() const { return look_at_machine(machine_); }

  fs::path root_;
  Machine machine_;
};

TEST_F(FakeMachine, Numa_CpusElsewhereWarn) {
  EXPECT_THAT(look(), Contains(warning("eth0 is at NUMA node 1 (CPUs 8-15,24)")));
  machine_.cpus = {24};
  EXPECT_THAT(look(), Contains(good("eth0 is at NUMA node 1")));
  write("sys/devices/pci0000:40/0000:40:01.0/0000:41:00.0/numa_node", "-1");
  EXPECT_THAT(look(), Not(Contains(good("NUMA"))));
}

TEST_F(FakeMachine, Iommu_OffPassthroughOrOn) {
  EXPECT_THAT(look(), Contains(good("no IOMMU")));
  write("sys/class/iommu/dmar0/name", "");
  write("sys/kernel/iommu_groups/0/type", "DMA-FQ");
  EXPECT_THAT(look(), Contains(note("iommu=pt")));
  write("proc/cmdline", "root=/dev/sda iommu=pt ro");
  EXPECT_THAT(look(), Contains(good("passthrough")));
  write("proc/cmdline", "root=/dev/sda");
  write("sys/kernel/iommu_groups/0/type", "identity");
  EXPECT_THAT(look(), Contains(good("passthrough")));
}

TEST_F(FakeMachine, Memory_LimitsAndHugePages) {
  EXPECT_THAT(look(), Contains(note("limited to 8192 KiB")));
  EXPECT_THAT(look(), Contains(note("no huge pages")));
  machine_.memlock_bytes = ~std::uint64_t{0};
  write("proc/meminfo", "MemTotal: 1 kB\nHugePages_Total:      12");
  EXPECT_THAT(look(), Contains(good("no limit")));
  EXPECT_THAT(look(), Contains(good("12 huge pages")));
}

TEST_F(FakeMachine, Gpu_PciRootsAreCompared) {
  EXPECT_THAT(look(), Not(Contains(note("PCI roots"))));
  add_gpu("pci0000:80");
  EXPECT_THAT(look(), Contains(note("different PCI roots (pci0000:40, pci0000:80)")));
  fs::remove(root_ / "sys/bus/pci/devices/0000:99:00.0");
  add_gpu("pci0000:40");
  EXPECT_THAT(look(), Contains(good("GPU 0000:99:00.0 have one PCI root")));
}

TEST_F(FakeMachine, Udmabuf_IsNoted) {
  EXPECT_THAT(look(), Contains(note("no udmabuf")));
  write("dev/udmabuf", "");
  EXPECT_THAT(look(), Contains(note("udmabuf is there")));
}

TEST_F(FakeMachine, Disk_QueueOfDiskAndPartition) {
  const dev_t device = ::makedev(259, 3);
  EXPECT_THAT(look_at_disk(root_, "/data", device, EINVAL),
              ElementsAre(note("no O_DIRECT"), note("not on a block device")));
  write("sys/devices/nvme0n1/queue/nr_requests", "1023");
  write("sys/devices/nvme0n1/queue/scheduler", "[none] mq-deadline");
  write("sys/devices/nvme0n1/nvme0n1p2/partition", "2");
  link("sys/devices/nvme0n1/nvme0n1p2", "sys/dev/block/259:3");
  EXPECT_THAT(
      look_at_disk(root_, "/data", device, 0),
      ElementsAre(good("O_DIRECT works"), good("disk nvme0n1, queue depth 1023, scheduler none")));
  EXPECT_THAT(look_at_disk(root_, "/data", device, EACCES),
              Contains(warning("no file can be made there")));
}

TEST(DoctorCpuList, RangesAndNonsense) {
  EXPECT_THAT(parse_cpu_list("0-2,7"), ElementsAre(0, 1, 2, 7));
  EXPECT_THAT(parse_cpu_list(""), IsEmpty());
  EXPECT_THAT(parse_cpu_list("3-1"), IsEmpty());
  EXPECT_THAT(parse_cpu_list("0-99999999"), IsEmpty());
  EXPECT_THAT(parse_cpu_list("x"), IsEmpty());
}

}  // namespace
}  // namespace uet::doctor
