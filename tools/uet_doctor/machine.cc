// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "machine.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>

namespace uet::doctor {

namespace {

namespace fs = std::filesystem;
using Kind = Finding::Kind;

constexpr std::uint64_t kMiB = 1 << 20;
constexpr std::uint64_t kEnoughMemlock = 64 * kMiB;

std::string first_line(const fs::path& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

// "none" of "[none] mq-deadline".
std::string chosen(const std::string& list) {
  const std::size_t begin = list.find('[');
  const std::size_t end = list.find(']');
  if (begin == std::string::npos || end == std::string::npos || end < begin) return list;
  return list.substr(begin + 1, end - begin - 1);
}

// The host bridge in the path of a PCI device, such as "pci0000:00"; empty: it is no PCI device.
std::string pci_root_of(const fs::path& device) {
  std::error_code error;
  const fs::path real = fs::canonical(device, error);
  if (error) return "";
  for (const fs::path& part : real) {
    if (part.string().starts_with("pci") && part.string().find(':') != std::string::npos) {
      return part.string();
    }
  }
  return "";
}

void look_at_numa(const Machine& machine, const std::string& interface, Findings& findings) {
  const fs::path device = machine.root / "sys/class/net" / interface / "device";
  const std::string node = first_line(device / "numa_node");
  if (node.empty() || node.starts_with('-')) return;  // virtual, or a machine with one node
  const std::string list =
      first_line(machine.root / ("sys/devices/system/node/node" + node) / "cpulist");
  const std::vector<int> near = parse_cpu_list(list);
  const auto is_allowed = [&](int cpu) {
    return std::find(machine.cpus.begin(), machine.cpus.end(), cpu) != machine.cpus.end();
  };
  const std::string where = interface + " is at NUMA node " + node + " (CPUs " + list + ")";
  if (near.empty()) return;
  if (std::none_of(near.begin(), near.end(), is_allowed)) {
    findings.push_back(
        {Kind::Warn, where + ", and this process may run on none of them",
         "start applications with: numactl --cpunodebind=" + node + " --membind=" + node});
  } else {
    findings.push_back({Kind::Good, where + ", this process may run there", ""});
  }
}

void look_at_iommu(const Machine& machine, Findings& findings) {
  std::error_code error;
  const bool on = !fs::is_empty(machine.root / "sys/class/iommu", error) && !error;
  const std::string options = " " + first_line(machine.root / "proc/cmdline") + " ";
  std::set<std::string> types;
  for (const auto& group :
       fs::directory_iterator(machine.root / "sys/kernel/iommu_groups", error)) {
    types.insert(first_line(group.path() / "type"));
  }
  const bool passes = options.find(" iommu=pt ") != std::string::npos ||
                      options.find(" iommu.passthrough=1 ") != std::string::npos ||
                      (types.size() == 1 && types.contains("identity"));
  if (!on) {
    findings.push_back({Kind::Good, "no IOMMU: devices read memory without translation", ""});
  } else if (passes) {
    findings.push_back({Kind::Good, "the IOMMU is in passthrough", ""});
  } else {
    findings.push_back({Kind::Note,
                        "the IOMMU translates each access of a device; back ends that bypass the "
                        "kernel are faster with the kernel option iommu=pt",
                        ""});
  }
}

void look_at_memory(const Machine& machine, Findings& findings) {
  if (machine.memlock_bytes == ~std::uint64_t{0}) {
    findings.push_back({Kind::Good, "locked memory has no limit", ""});
  } else {
    const std::string text =
        "locked memory is limited to " + std::to_string(machine.memlock_bytes >> 10) + " KiB";
    if (machine.memlock_bytes >= kEnoughMemlock) {
      findings.push_back({Kind::Good, text, ""});
    } else {
      findings.push_back({Kind::Note,
                          text + "; the back ends verbs, dpdk and xdp lock their buffers: ulimit "
                                 "-l unlimited, or memlock in /etc/security/limits.conf",
                          ""});
    }
  }
  std::ifstream in(machine.root / "proc/meminfo");
  long total = 0;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("HugePages_Total:")) total = std::strtol(line.c_str() + 16, nullptr, 10);
  }
  if (total > 0) {
    findings.push_back({Kind::Good, std::to_string(total) + " huge pages are reserved", ""});
  } else {
    findings.push_back({Kind::Note,
                        "no huge pages are reserved; the back end dpdk is faster with them: sysctl "
                        "-w vm.nr_hugepages=512",
                        ""});
  }
}

// Display controllers and processing accelerators.
bool is_gpu(const std::string& device_class) {
  return device_class.starts_with("0x03") || device_class.starts_with("0x12");
}

void look_at_gpus(const Machine& machine, Findings& findings) {
  std::error_code error;
  std::vector<fs::path> gpus;
  for (const auto& device : fs::directory_iterator(machine.root / "sys/bus/pci/devices", error)) {
    if (is_gpu(first_line(device.path() / "class"))) gpus.push_back(device.path());
  }
  std::sort(gpus.begin(), gpus.end());
  for (const fs::path& gpu : gpus) {
    const std::string gpu_root = pci_root_of(gpu);
    for (const std::string& interface : machine.interfaces) {
      const std::string root = pci_root_of(machine.root / "sys/class/net" / interface / "device");
      if (root.empty()) continue;
      const std::string both = interface + " and the GPU " + gpu.filename().string();
      if (root == gpu_root) {
        findings.push_back({Kind::Good, both + " have one PCI root, " + root, ""});
      } else {
        findings.push_back({Kind::Note,
                            both + " have different PCI roots (" + root + ", " + gpu_root +
                                "): data between them cross the processor",
                            ""});
      }
    }
  }
}

}  // namespace

std::vector<int> parse_cpu_list(const std::string& text) {
  std::vector<int> cpus;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, ',');) {
    int first = 0;
    int last = 0;
    char dash = 0;
    std::istringstream range(part);
    if (!(range >> first) || first < 0) return {};
    last = first;
    if (range >> dash && (dash != '-' || !(range >> last) || last < first || last > 65535)) {
      return {};
    }
    for (int cpu = first; cpu <= last; ++cpu) cpus.push_back(cpu);
  }
  return cpus;
}

Findings look_at_machine(const Machine& machine) {
  Findings findings;
  for (const std::string& interface : machine.interfaces) {
    look_at_numa(machine, interface, findings);
  }
  look_at_iommu(machine, findings);
  look_at_memory(machine, findings);
  look_at_gpus(machine, findings);
  std::error_code error;
  const bool udmabuf = fs::exists(machine.root / "dev/udmabuf", error);
  findings.push_back({Kind::Note,
                      udmabuf ? "udmabuf is there: tests can make dmabufs without a device"
                              : "no udmabuf (modprobe udmabuf): only devices make dmabufs",
                      ""});
  return findings;
}

Findings look_at_disk(const fs::path& root, const std::string& directory, dev_t device,
                      int direct_error) {
  Findings findings;
  if (direct_error == 0) {
    findings.push_back({Kind::Good, directory + ": O_DIRECT works", ""});
  } else if (direct_error == EINVAL || direct_error == EOPNOTSUPP) {
    findings.push_back({Kind::Note,
                        directory + ": the file system has no O_DIRECT; uet_copy uses the page "
                                    "cache",
                        ""});
  } else {
    findings.push_back(
        {Kind::Warn,
         directory + ": no file can be made there (" + std::strerror(direct_error) + ")",
         "check its permissions and free space"});
  }
  const std::string number =
      std::to_string(::major(device)) + ':' + std::to_string(::minor(device));
  std::error_code error;
  fs::path disk = fs::canonical(root / "sys/dev/block" / number, error);
  if (error) {
    findings.push_back({Kind::Note, directory + ": not on a block device", ""});
    return findings;
  }
  if (!fs::exists(disk / "queue", error)) disk = disk.parent_path();  // of a partition
  const std::string depth = first_line(disk / "queue/nr_requests");
  const std::string scheduler = chosen(first_line(disk / "queue/scheduler"));
  const bool turns = first_line(disk / "queue/rotational") == "1";
  if (depth.empty()) return findings;
  findings.push_back({Kind::Good,
                      directory + ": disk " + disk.filename().string() + ", queue depth " + depth +
                          (scheduler.empty() ? "" : ", scheduler " + scheduler) +
                          (turns ? ", rotating" : ""),
                      ""});
  return findings;
}

namespace {

void tell(Report& report, const Findings& findings) {
  for (const Finding& finding : findings) {
    if (finding.kind == Kind::Good) report.good(finding.text);
    if (finding.kind == Kind::Note) report.note(finding.text);
    if (finding.kind == Kind::Warn) report.warn(finding.text, finding.advice);
  }
}

}  // namespace

void examine_machine(Report& report, const std::vector<std::string>& interfaces) {
  report.begin("Machine");
  Machine machine;
  for (const std::string& interface : interfaces) {
    if (std::find(machine.interfaces.begin(), machine.interfaces.end(), interface) ==
        machine.interfaces.end()) {
      machine.interfaces.push_back(interface);
    }
  }
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) == 0) {
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (CPU_ISSET(cpu, &set)) machine.cpus.push_back(cpu);
    }
  }
  rlimit limit{};
  ::getrlimit(RLIMIT_MEMLOCK, &limit);
  machine.memlock_bytes = limit.rlim_cur == RLIM_INFINITY ? ~std::uint64_t{0} : limit.rlim_cur;
  tell(report, look_at_machine(machine));
}

void examine_directory(Report& report, const std::string& directory) {
  report.begin("Directory");
  struct stat status {};
  if (::stat(directory.c_str(), &status) != 0) {
    report.fail(directory + ": " + std::strerror(errno), "give an existing directory");
    return;
  }
  // A file without a name, so that nothing is left.
  int fd = ::open(directory.c_str(), O_TMPFILE | O_RDWR | O_DIRECT | O_CLOEXEC, 0600);
  const int error = fd < 0 ? errno : 0;
  if (fd >= 0) ::close(fd);
  tell(report, look_at_disk("/", directory, status.st_dev, error));
}

}  // namespace uet::doctor
