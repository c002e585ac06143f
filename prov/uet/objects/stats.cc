// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// How counters leave the process: as text, as numbers through fi_open_ops, and when a signal asks.
#include "objects/stats.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <mutex>
#include <vector>

#include "nic/interface.h"
#include "nic/middleware.h"
#include "objects/domain.h"
#include "objects/profile.h"
#include "objects/tss_ops.h"
#include "process/engine_link.h"
#include "provider.h"
#include "security/security_counters.h"
#include "security/transport_security.h"
#include "settings/params.h"
#include "uet/fi_ext_uet.h"

namespace uet::prov {

// ---- FI_UET_STATS -------------------------------------------------------------------------------

std::span<const fep::CounterName> counter_names() {
  // Never destroyed: statistics may be written when the process ends.
  static const std::vector<fep::CounterName>& all = *[] {
    const auto of_fep = fep::counter_names();
    const auto of_security = security_counter_names();
    auto names = std::make_unique<std::vector<fep::CounterName>>(of_fep.begin(), of_fep.end());
    names->insert(names->end(), of_security.begin(), of_security.end());
    return names.release();
  }();
  return all;
}

std::vector<std::uint64_t> counter_values(Engine& engine) UET_NO_THREAD_ANALYSIS {
  std::vector<std::uint64_t> values(counter_names().size());
  const std::size_t of_fep = fep::counter_names().size();
  fep::read_counters(engine.fep().stats(), std::span(values).first(of_fep));
  TransportSecurity* const security = engine.security();
  read_security_counters(security != nullptr ? &security->table() : nullptr,
                         security != nullptr ? security->sdi() : 0,
                         std::span(values).subspan(of_fep));
  return values;
}

std::vector<std::uint64_t> counter_values(Engines& engines) {
  std::vector<std::uint64_t> sums(counter_names().size());
  for (const auto& engine : engines) {
    const Guard guard(engine->lock());
    EngineLink* const link = engine->link();
    const std::vector<std::uint64_t> values =
        link != nullptr ? link->requests().counters() : counter_values(*engine);
    for (std::size_t i = 0; i < std::min(sums.size(), values.size()); ++i) sums[i] += values[i];
  }
  return sums;
}

void write_stats(const StatsDump& dump, const FepAddress& domain, const char* why,
                 std::span<const std::uint64_t> values) {
  const auto names = counter_names();
  std::string text = "uet statistics: process " + std::to_string(::getpid()) + ", domain " +
                     nic::to_text(domain) + ", " + why + "\n";
  for (std::size_t i = 0; i < names.size(); ++i) {
    text += std::string(names[i].name) + " " + std::to_string(values[i]) + "\n";
  }
  write_dump(dump.file, text);
}

int write_dump(const std::string& pattern, const std::string& text) {
  const std::string file = nic::with_process_id(pattern);
  nic::FileDescriptor opened;
  if (!file.empty()) {
    opened = nic::FileDescriptor(nic::open_for_owner(file, O_WRONLY | O_APPEND));
  }
  const int fd = file.empty() ? STDERR_FILENO : opened.get();
  if (fd >= 0 && ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size())) {
    return 0;
  }
  const int error = errno;
  FI_WARN(&provider, FI_LOG_DOMAIN, "FI_UET_STATS: cannot write to '%s': %s\n",
          file.empty() ? "standard error" : file.c_str(), std::strerror(error));
  return error != 0 ? -error : -FI_EIO;
}

int write_page(const std::string& pattern, const std::string& number,
               std::span<const std::byte> page) {
  const std::string directory = nic::with_process_id(pattern);
  char host[256] = "";
  ::gethostname(host, sizeof host - 1);
  const std::string file = directory + "/" + host + "." + std::to_string(::getpid()) + "." + number;
  ::mkdir(directory.c_str(), S_IRWXU);  // if it fails, so does the next call
  const nic::FileDescriptor opened(nic::open_for_owner(file, O_WRONLY | O_TRUNC));
  ssize_t written = 0;
  while (opened.get() >= 0 && !page.empty()) {
    written = ::write(opened.get(), page.data(), page.size());
    if (written <= 0) break;
    page = page.subspan(static_cast<std::size_t>(written));
  }
  if (opened.get() >= 0 && page.empty()) return 0;
  const int error = errno;
  FI_WARN(&provider, FI_LOG_DOMAIN, "FI_UET_STATS: cannot write to '%s': %s\n", file.c_str(),
          std::strerror(error));
  return error != 0 ? -error : -FI_EIO;
}

// ---- fi_open_ops --------------------------------------------------------------------------------

namespace {

std::size_t stats_count(fid_domain*) noexcept { return counter_names().size(); }

int stats_describe(fid_domain*, std::size_t index, fi_uet_counter* counter) noexcept {
  const auto names = counter_names();
  if (index >= names.size() || counter == nullptr) return -FI_EINVAL;
  *counter = {names[index].name.data(), names[index].meaning.data()};
  return 0;
}

ssize_t stats_read(fid_domain* fid, std::uint64_t* values, std::size_t count) noexcept {
  return guarded([&]() -> ssize_t {
    Engines& engines = Domain::from(fid).engines();
    if (engines.first().dead()) return -FI_EOPNOTSUPP;
    if (values == nullptr && count != 0) return -FI_EINVAL;
    const std::vector<std::uint64_t> all = counter_values(engines);
    const std::size_t given = std::min(count, all.size());
    std::copy_n(all.begin(), given, values);
    return static_cast<ssize_t>(given);
  });
}

int trace_dump(fid_domain* fid, const char* file) noexcept {
  return guarded([&]() -> int {
    if (Domain::from(fid).engine().dead()) return -FI_EOPNOTSUPP;
    const nic::NoCancel no_cancel;
    int result = 0;
    for (const auto& engine : Domain::from(fid).engines()) {
      const Guard guard(engine->lock());
      const int written = engine->live().write_trace(*engine, file != nullptr ? file : "",
                                                     "fi_open_ops", clock_now());
      if (result == 0) result = written;
    }
    return result;
  });
}

fi_uet_trace_ops trace_ops = {.size = sizeof(fi_uet_trace_ops), .dump = trace_dump};

fi_uet_stats_ops stats_ops = {
    .size = sizeof(fi_uet_stats_ops),
    .count = stats_count,
    .describe = stats_describe,
    .read = stats_read,
};

}  // namespace

int open_domain_ops(struct fid* fid, const char* name, std::uint64_t flags, void** ops,
                    void* context) noexcept {
  if (name == nullptr || ops == nullptr || flags != 0) return -FI_EINVAL;
  const bool counts = std::strcmp(name, FI_UET_STATS_OPS) == 0;
  if (!counts && Domain::from(fid).engine().link() != nullptr) {
    FI_WARN(&provider, FI_LOG_DOMAIN,
            "fi_open_ops: not with FI_UET_ENGINE=process; trace and keys are the engine's\n");
    return -FI_ENOSYS;
  }
  if (std::strcmp(name, FI_UET_TSS_OPS) == 0) {
    *ops = &tss_ops();
    return 0;
  }
  if (std::strcmp(name, FI_UET_TRACE_OPS) == 0) {
    *ops = &trace_ops;
    return 0;
  }
  if (name == kProfileOps) {
    return guarded([&] { return DomainProfile::open(Domain::from(fid), flags, ops, context); });
  }
  if (std::strcmp(name, FI_UET_STATS_OPS) != 0) {
    FI_WARN(&provider, FI_LOG_DOMAIN, "fi_open_ops: unknown name '%s'; use '%s', '%s' or '%s'\n",
            name, FI_UET_STATS_OPS, FI_UET_TRACE_OPS, FI_UET_TSS_OPS);
    return -FI_ENOSYS;
  }
  return guarded([&] {
    counter_names();  // built now, where memory may be short
    *ops = &stats_ops;
    return 0;
  });
}

// ---- the signal ---------------------------------------------------------------------------------

namespace {

constexpr int kSignal = SIGUSR2;
constexpr std::size_t kPlaces = 64;

std::array<StatsSignal::Place, kPlaces> places;
std::atomic<pid_t> subscriber{0};
static_assert(std::atomic<int>::is_always_lock_free);
static_assert(std::atomic<pid_t>::is_always_lock_free);

// Async-signal-safe. A forked child shares the parent's events and must leave them alone.
void on_signal(int) {
  if (::getpid() != subscriber.load(std::memory_order_relaxed)) return;
  const int saved = errno;
  for (StatsSignal::Place& place : places) {
    if (!place.used.load(std::memory_order_acquire)) continue;
    place.requests.fetch_add(1, std::memory_order_relaxed);
    const eventfd_t one = 1;
    // Fails only when the counter is full, and then it is readable anyway.
    [[maybe_unused]] const ssize_t result =
        ::write(place.event.load(std::memory_order_relaxed), &one, sizeof one);
  }
  errno = saved;
}

// Puts the handler in place; false if the program has another one. It stays: a late signal must not
// end the process.
bool handle_signal() {
  struct sigaction now {};
  if (::sigaction(kSignal, nullptr, &now) != 0) return false;
  if ((now.sa_flags & SA_SIGINFO) == 0 && now.sa_handler == on_signal) return true;
  if ((now.sa_flags & SA_SIGINFO) != 0 || now.sa_handler != SIG_DFL) return false;
  struct sigaction ours {};
  ours.sa_handler = on_signal;
  ours.sa_flags = SA_RESTART | SA_ONSTACK;
  sigemptyset(&ours.sa_mask);
  return ::sigaction(kSignal, &ours, nullptr) == 0;
}

}  // namespace

bool StatsSignal::subscribe() noexcept {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  if (!handle_signal()) {
    FI_WARN(&provider, FI_LOG_DOMAIN,
            "FI_UET_STATS=signal has no effect: the program uses SIGUSR2 itself or ignores it; use "
            "exit\n");
    return false;
  }
  subscriber.store(::getpid(), std::memory_order_relaxed);
  for (Place& place : places) {
    if (place.used.load(std::memory_order_relaxed)) continue;
    if (place.event.load(std::memory_order_relaxed) < 0) {
      place.event.store(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), std::memory_order_relaxed);
    }
    if (place.event.load(std::memory_order_relaxed) < 0) break;
    place_ = &place;
    take();  // what came after the last owner had gone
    place.used.store(true, std::memory_order_release);
    return true;
  }
  FI_WARN(&provider, FI_LOG_DOMAIN,
          "FI_UET_STATS=signal has no effect on this domain: no descriptor is free, or more than "
          "%zu domains are open\n",
          kPlaces);
  return false;
}

StatsSignal::~StatsSignal() {
  if (place_ != nullptr) place_->used.store(false, std::memory_order_release);
}

int StatsSignal::fd() const {
  return place_ != nullptr ? place_->event.load(std::memory_order_relaxed) : -1;
}

// The event first: a request that comes in between leaves both set.
bool StatsSignal::take() noexcept {
  const nic::NoCancel no_cancel;
  eventfd_t count = 0;
  [[maybe_unused]] const int result = ::eventfd_read(place_->event.load(), &count);
  return place_->requests.exchange(0, std::memory_order_relaxed) != 0;
}

}  // namespace uet::prov
