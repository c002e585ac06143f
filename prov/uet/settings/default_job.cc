// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "settings/default_job.h"

#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <optional>
#include <vector>

#include "base/parameter.h"
#include "live/place.h"

namespace uet::prov {
namespace {

constexpr const char* kUetRun = "UET_JOB_ID";
constexpr const char* kPmix = "PMIX_NAMESPACE";
constexpr const char* kOpenMpi = "OMPI_MCA_ess_base_jobid";
constexpr const char* kSlurmJob = "SLURM_JOB_ID";
constexpr const char* kSlurmHetJob = "SLURM_HET_JOB_ID";
constexpr const char* kSlurmStep = "SLURM_STEP_ID";

// Names of a job that stand alone: Intel MPI, Cray PALS, PMI-2 (Slurm, PALS), Flux.
constexpr const char* kWholeNames[] = {"I_MPI_HYDRA_UUID", "PALS_APID", "PMI_JOBID", "FLUX_JOB_ID"};
// Launchers that number their ranks and give no name to the job.
constexpr const char* kRanks[] = {"PMI_RANK", "PMI_ID", "OMPI_COMM_WORLD_RANK", "MPI_LOCALRANKID"};

constexpr const char* kVariables[] = {
    kUetRun,    kPmix,          kOpenMpi,       kSlurmJob,      kSlurmHetJob,
    kSlurmStep, kWholeNames[0], kWholeNames[1], kWholeNames[2], kWholeNames[3],
    kRanks[0],  kRanks[1],      kRanks[2],      kRanks[3]};

constexpr int kMostAncestors = 16;
constexpr std::uint32_t kHashed = 0x800000;  // the first JobID that is a hash
constexpr std::uint32_t kHashes = 0x7FFFFF;  // how many there are: 0xFFFFFF is none of them

// FNV-1a, 64 bits.
std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 0xCBF29CE484222325;
  for (const char letter : text) {
    hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001B3;
  }
  return hash;
}

DefaultJob named(const std::string& kind, const std::string& name) {
  const std::uint64_t hash = hash_of(kind + "=" + name);
  const auto low = static_cast<std::uint32_t>((hash ^ (hash >> 32)) % kHashes);
  return {JobId{kHashed + low}, kind + "=" + name};
}

// Spawned jobs belong to the job that spawned them: PRRTE counts them behind '@', Open MPI 4 in the
// lower 16 bits of a number.
std::string family_of(const std::string& name) {
  if (const auto number = parse_whole(name)) return std::to_string(*number >> 16);
  return name.substr(0, name.rfind('@'));
}

std::string value_of(const Launch& launch, std::string_view name) {
  const auto found = launch.variables.find(name);
  return found == launch.variables.end() ? std::string() : found->second;
}

std::optional<DefaultJob> job_of_slurm(const Launch& launch) {
  const std::string het = value_of(launch, kSlurmHetJob);
  const std::string job = het.empty() ? value_of(launch, kSlurmJob) : het;
  const std::string step = value_of(launch, kSlurmStep);
  if (job.empty()) return {};
  return named("Slurm job and step", job + "." + step);
}

std::string words_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::string find_hydra_port() {
  pid_t pid = getppid();
  for (int i = 0; i < kMostAncestors && pid > 1; ++i) {
    std::string port = hydra_port_of(words_of("/proc/" + std::to_string(pid) + "/cmdline"));
    if (!port.empty()) return port;
    pid = live::process_stat(pid).value_or(live::ProcessStat{}).parent;
  }
  return {};
}

}  // namespace

DefaultJob default_job(const Launch& launch) {
  if (const std::string own = value_of(launch, kUetRun); !own.empty()) {
    const auto number = parse_whole(own);
    if (!number || *number > kMaxJobId) return named(kUetRun, own);
    return {JobId{static_cast<std::uint32_t>(*number)}, kUetRun + ("=" + own)};
  }
  for (const char* const name : {kPmix, kOpenMpi}) {
    const std::string value = value_of(launch, name);
    if (!value.empty()) return named("job of PMIx", family_of(value));
  }
  if (!launch.hydra_port.empty()) return named("mpiexec of Hydra", launch.hydra_port);
  for (const char* const name : kWholeNames) {
    const std::string value = value_of(launch, name);
    if (!value.empty()) return named(name, value);
  }
  if (const auto job = job_of_slurm(launch)) return *job;
  for (const char* const name : kRanks) {
    if (value_of(launch, name).empty()) continue;
    return named("jobs without a name, of user", std::to_string(launch.uid));
  }
  return {kWellKnownJob, "no launcher"};
}

std::span<const char* const> launcher_variables() { return kVariables; }

Launch launch_of_this_process() {
  Launch launch;
  for (const char* const name : kVariables) {
    if (const char* const value = std::getenv(name)) launch.variables.emplace(name, value);
  }
  for (const char* const name : kRanks) {
    if (value_of(launch, name).empty()) continue;
    launch.hydra_port = find_hydra_port();
    break;
  }
  launch.uid = getuid();
  return launch;
}

std::string hydra_port_of(std::string_view command_line) {
  std::vector<std::string_view> words;
  while (!command_line.empty()) {
    const std::size_t end = command_line.find('\0');
    words.push_back(command_line.substr(0, end));
    if (end == std::string_view::npos) break;
    command_line.remove_prefix(end + 1);
  }
  if (words.empty() || !words[0].ends_with("hydra_pmi_proxy")) return {};
  for (std::size_t i = 1; i + 1 < words.size(); ++i) {
    if (words[i] == "--control-port") return std::string(words[i + 1]);
  }
  return {};
}

}  // namespace uet::prov
