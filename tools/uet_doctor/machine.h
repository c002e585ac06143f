// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The machine around the NIC, as the kernel describes it in files: NUMA nodes, IOMMU, locked
// memory, huge pages, PCI roots of NIC and GPU, udmabuf, and the disk below a directory. Reads the
// files below a root that a test can make, and prints nothing itself.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "report.h"

namespace uet::doctor {

struct Finding {
  enum class Kind { Good, Note, Warn } kind = Kind::Note;
  std::string text;
  std::string advice;  // of Warn
};
using Findings = std::vector<Finding>;

struct Machine {
  std::filesystem::path root = "/";
  std::vector<std::string> interfaces;  // by name, each once
  std::vector<int> cpus;                // on which this process may run
  std::uint64_t memlock_bytes = 0;      // limit of locked memory; ~0: none
};

// The numbers of a list such as "0-3,8"; what is no such list gives none.
std::vector<int> parse_cpu_list(const std::string& text);

Findings look_at_machine(const Machine& machine);

// The disk of a directory. `device` is st_dev of the directory, `direct_error` the errno of opening
// a file there with O_DIRECT, or 0.
Findings look_at_disk(const std::filesystem::path& root, const std::string& directory, dev_t device,
                      int direct_error);

// The same of this machine, into the report.
void examine_machine(Report& report, const std::vector<std::string>& interfaces);
void examine_directory(Report& report, const std::string& directory);

}  // namespace uet::doctor
