// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The arguments are those that were found to leave a host program alone: --lcores with the
// processors of the process (any other choice pins or starts threads), no telemetry, no files.
// Drivers find no signal to take.
#include "nic/dpdk_eal.h"

#include <fcntl.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_log.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace uet::nic {
namespace {

constexpr const char* kMegabytesWithout = "96";  // no huge pages: taken at once
constexpr const char* kMegabytesWith = "32";     // grows when more is needed

std::mutex g_log_lock;
// Never destroyed: threads of DPDK's may still log when the process ends.
std::string& g_log_line = *new std::string;

ssize_t keep_log_line(void*, const char* text, std::size_t length) {
  std::string_view line(text, length);
  while (!line.empty() && line.back() == '\n') line.remove_suffix(1);
  if (line.empty()) return static_cast<ssize_t>(length);
  const std::lock_guard lock(g_log_lock);
  g_log_line = line;
  return static_cast<ssize_t>(length);
}

// DPDK would write to the program's standard error.
void take_log() {
  cookie_io_functions_t functions{};
  functions.write = keep_log_line;
  FILE* stream = ::fopencookie(nullptr, "w", functions);
  if (stream == nullptr) return;
  ::setvbuf(stream, nullptr, _IOLBF, 0);
  rte_openlog_stream(stream);
}

bool free_huge_pages() {
  std::error_code error;
  for (const auto& size : std::filesystem::directory_iterator("/sys/kernel/mm/hugepages", error)) {
    std::ifstream file(size.path() / "free_hugepages");
    unsigned long count = 0;
    if (file >> count && count > 0) return true;
  }
  return false;
}

// One lcore that may run wherever the process may: "0@(0,1,...)".
std::string lcores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  ::sched_getaffinity(0, sizeof set, &set);
  std::string list;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) list += (list.empty() ? "" : ",") + std::to_string(cpu);
  }
  return "0@(" + list + ")";
}

std::vector<std::string> arguments(const EalChoice& choice) {
  std::vector<std::string> all = {"uet",           "--lcores",
                                  lcores(),        "--no-telemetry",
                                  "--file-prefix", "uet-" + std::to_string(::getpid()),
                                  "--log-level",   "error"};
  if (free_huge_pages()) {
    all.insert(all.end(), {"--in-memory", "-m", kMegabytesWith});
  } else {
    all.insert(all.end(), {"--no-huge", "--no-shconf", "-m", kMegabytesWithout});
  }
  if (choice.pci_address.empty()) {
    all.push_back("--no-pci");
  } else {
    all.insert(all.end(), {"-a", choice.pci_address});
  }
  return all;
}

// 0, or what went wrong; EALREADY: the program itself has started EAL, and it is used.
int init(const EalChoice& choice) {
  std::vector<std::string> texts = arguments(choice);
  std::vector<char*> pointers;
  pointers.reserve(texts.size());
  for (std::string& text : texts) pointers.push_back(text.data());
  if (rte_eal_init(static_cast<int>(pointers.size()), pointers.data()) >= 0) return 0;
  return rte_errno != 0 ? rte_errno : EINVAL;
}

struct Eal {
  pid_t process = 0;  // that has tried; 0: none
  bool runs = false;
  std::string pci_address;
  std::string why;
};

void take_nothing(int) {}

// Installs a handler for each real-time signal without one, and removes it again. Pending signals
// stay pending, unlike with SIG_IGN.
class RealTimeSignals {
 public:
  RealTimeSignals() {
    struct sigaction ours {};
    ours.sa_handler = take_nothing;
    ours.sa_flags = SA_RESTART;
    for (int signal = SIGRTMIN; signal <= SIGRTMAX; ++signal) {
      struct sigaction before {};
      if (::sigaction(signal, nullptr, &before) != 0 || before.sa_handler != SIG_DFL) continue;
      if (::sigaction(signal, &ours, nullptr) == 0) taken_.push_back(signal);
    }
  }
  RealTimeSignals(const RealTimeSignals&) = delete;
  RealTimeSignals& operator=(const RealTimeSignals&) = delete;
  ~RealTimeSignals() {
    struct sigaction none {};
    none.sa_handler = SIG_DFL;
    for (const int signal : taken_) {
      struct sigaction now {};
      const bool still_ours =
          ::sigaction(signal, nullptr, &now) == 0 && now.sa_handler == take_nothing;
      if (still_ours) ::sigaction(signal, &none, nullptr);
    }
  }

 private:
  std::vector<int> taken_;
};

// Descriptors that are opened during its lifetime are closed on exec: otherwise an executed program
// would keep ports, queues and memory. Pipes and files are left alone: they keep nothing, and
// another thread may be opening them to pass them to a child.
class Descriptors {
 public:
  Descriptors() : before_(all()) {}
  Descriptors(const Descriptors&) = delete;
  Descriptors& operator=(const Descriptors&) = delete;
  ~Descriptors() {
    for (const auto& [descriptor, what] : all()) {
      const auto known = before_.find(descriptor);
      if (known != before_.end() && known->second == what) continue;
      const bool keeps = what.starts_with("socket:") || what.starts_with("anon_inode:") ||
                         what.starts_with("/memfd:") || what.starts_with("/dev/");
      if (keeps) ::fcntl(descriptor, F_SETFD, FD_CLOEXEC);
    }
  }

 private:
  static std::map<int, std::string> all() {
    namespace fs = std::filesystem;
    std::map<int, std::string> found;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator("/proc/self/fd", error)) {
      std::error_code gone;
      const std::string what = fs::read_symlink(entry.path(), gone).string();
      if (!gone) found[std::atoi(entry.path().filename().c_str())] = what;
    }
    return found;
  }

  std::map<int, std::string> before_;
};

}  // namespace

void without_signals(const std::function<void()>& work) {
  static std::mutex lock;  // of the signals' handlers
  const std::lock_guard guard(lock);
  const RealTimeSignals taken;
  const Descriptors opened;
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, &before);  // the thread begins with this mask
  std::thread thread(work);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  thread.join();
}

std::string take_last_log_line() {
  const std::lock_guard lock(g_log_lock);
  return std::exchange(g_log_line, {});
}

bool start_eal(const EalChoice& choice, std::string& message) {
  static std::mutex lock;
  static Eal& eal = *new Eal;
  const std::lock_guard guard(lock);
  if (eal.process != 0 && eal.process != ::getpid()) {
    message =
        "a process that was forked from one that uses DPDK shares its memory: it must execute a "
        "program before it uses DPDK itself; use another FI_UET_NIC";
    return false;
  }
  if (eal.process == 0) {
    eal.process = ::getpid();
    eal.pci_address = choice.pci_address;
    int error = 0;
    without_signals([&] {
      take_log();
      error = init(choice);
    });
    eal.runs = error == 0 || error == EALREADY;
    if (!eal.runs) {
      eal.why = "DPDK does not start (" + std::string(rte_strerror(error)) +
                "): " + take_last_log_line() +
                "; this process cannot try again. See that memory is free, or use FI_UET_NIC=udp";
    }
  }
  if (!eal.runs) {
    message = eal.why;
    return false;
  }
  if (choice.pci_address.empty() || choice.pci_address == eal.pci_address) return true;
  message = "DPDK was started for another device in this process, and " + choice.pci_address +
            " cannot be added: open it first";
  return false;
}

}  // namespace uet::nic
