// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Use: uet_impair SPEC INTERFACE[,INTERFACE...] COMMAND...
// Runs COMMAND while UET packets that come in over the interfaces, or leave over those that ":out"
// stands behind, are impaired (impair.bpf.c), and says what was done to them. SPEC: drop=RATE,
// drop_other=RATE (of IP packets that are not UET), duplicate=RATE (of what comes in), mark=RATE,
// trim=RATE (1% or 0.01), seed=N, dscp_trimmable=N (8), dscp_trimmed=N (12), separated by commas;
// and of the queue in front of a link that something behind the program makes slow: queue_rate=BITS
// PER SECOND, queue_mark_from=BYTES, queue_mark_to=BYTES (between them ever more packets are
// marked), queue_limit=BYTES (what does not fit is dropped). All interfaces have one queue
// together. Ends as COMMAND does; with 1 if an impairment that SPEC asks for never happened, so
// that a test does not pass without it; with 77 where the program cannot be loaded (needs root, or
// CAP_BPF and CAP_NET_ADMIN).
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <net/if.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "impair_map.h"

namespace {

constexpr int kSkipped = 77;
constexpr std::array<const char*, kImpairCounts> kNames = {
    "seen",         "dropped",    "duplicated",          "marked",
    "trimmed",      "overflowed", "marked by the queue", "other seen",
    "other dropped"};

struct CloseObject {
  void operator()(bpf_object* object) const { bpf_object__close(object); }
};
using Object = std::unique_ptr<bpf_object, CloseObject>;

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');) parts.push_back(part);
  return parts;
}

struct Item {
  const char* key;
  __u32 impair_settings::*rate;  // one of these
  __u32 impair_settings::*small;
  __u64 impair_settings::*large;
};
constexpr Item kItems[] = {
    {"drop", &impair_settings::drop, nullptr, nullptr},
    {"drop_other", &impair_settings::drop_other, nullptr, nullptr},
    {"duplicate", &impair_settings::duplicate, nullptr, nullptr},
    {"mark", &impair_settings::mark, nullptr, nullptr},
    {"trim", &impair_settings::trim, nullptr, nullptr},
    {"seed", nullptr, &impair_settings::seed, nullptr},
    {"dscp_trimmable", nullptr, &impair_settings::dscp_trimmable, nullptr},
    {"dscp_trimmed", nullptr, &impair_settings::dscp_trimmed, nullptr},
    {"queue_rate", nullptr, nullptr, &impair_settings::queue_bytes_per_second},
    {"queue_mark_from", nullptr, nullptr, &impair_settings::queue_mark_from},
    {"queue_mark_to", nullptr, nullptr, &impair_settings::queue_mark_to},
    {"queue_limit", nullptr, nullptr, &impair_settings::queue_limit}};

bool set(const std::string& key, double value, impair_settings& out) {
  for (const Item& item : kItems) {
    if (key != item.key) continue;
    if (item.rate != nullptr) {
      out.*item.rate = value >= 1 ? UINT32_MAX : static_cast<__u32>(value * 4294967296.0);
    } else if (item.small != nullptr) {
      out.*item.small = static_cast<__u32>(value);
    } else {
      out.*item.large = static_cast<__u64>(value);
    }
    return true;
  }
  return false;
}

bool parse(const std::string& spec, impair_settings& out) {
  out = {};
  out.seed = 1;
  out.dscp_trimmable = 8;
  out.dscp_trimmed = 12;
  out.native_protocol = 253;
  for (const std::string& item : split(spec)) {
    const std::size_t equal = item.find('=');
    if (equal == std::string::npos) return false;
    char* end = nullptr;
    double value = std::strtod(item.c_str() + equal + 1, &end);
    if (end == item.c_str() + equal + 1 || value < 0) return false;
    if (*end == '%') {
      value /= 100;
      ++end;
    }
    if (*end != '\0' || !set(item.substr(0, equal), value, out)) return false;
  }
  out.queue_bytes_per_second /= 8;  // given in bits
  return out.queue_mark_from <= out.queue_mark_to &&
         (out.queue_bytes_per_second != 0 || (out.queue_mark_to == 0 && out.queue_limit == 0));
}

int skip(const char* what) {
  std::printf("SKIPPED: %s: %s; run as root\n", what, std::strerror(errno));
  return kSkipped;
}

// The hooks go with the network name space, or when this is destroyed.
class Hooks {
 public:
  Hooks() = default;
  Hooks(const Hooks&) = delete;
  Hooks& operator=(const Hooks&) = delete;
  ~Hooks() {
    for (bpf_tc_hook& hook : hooks_) bpf_tc_hook_destroy(&hook);
  }
  // `place`: the name of an interface, and ":out" for what leaves over it.
  bool attach(const std::string& place, int program) {
    const std::size_t colon = place.find(':');
    const bool out = colon != std::string::npos;
    if (out && place.substr(colon) != ":out") {
      errno = EINVAL;
      return false;
    }
    const bpf_tc_attach_point direction = out ? BPF_TC_EGRESS : BPF_TC_INGRESS;
    DECLARE_LIBBPF_OPTS(bpf_tc_hook, hook, .attach_point = direction);
    DECLARE_LIBBPF_OPTS(bpf_tc_opts, options, .prog_fd = program);
    hook.ifindex = static_cast<int>(::if_nametoindex(place.substr(0, colon).c_str()));
    if (hook.ifindex == 0) return false;
    if (const int result = bpf_tc_hook_create(&hook); result != 0) {
      errno = -result;
      return false;
    }
    hook.attach_point = static_cast<bpf_tc_attach_point>(BPF_TC_INGRESS | BPF_TC_EGRESS);
    hooks_.push_back(hook);
    hook.attach_point = direction;
    const int result = bpf_tc_attach(&hook, &options);
    errno = -result;
    return result == 0;
  }

 private:
  std::vector<bpf_tc_hook> hooks_;
};

int run(char** command) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::execvp(command[0], command);
    std::perror(command[0]);
    ::_exit(127);
  }
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) != child) return 1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// False if something that was asked for has not happened.
bool report(const impair_settings& settings, int map) {
  const std::array<bool, kImpairCounts> wanted = {
      settings.drop_other == 0, settings.drop > 0, settings.duplicate > 0, settings.mark > 0,
      settings.trim > 0,
      // With marks the limit is there for the worst case only.
      settings.queue_limit > 0 && settings.queue_mark_to == 0, settings.queue_mark_to > 0,
      settings.drop_other > 0, settings.drop_other > 0};
  bool all = true;
  std::string text = "uet_impair:";
  for (__u32 i = 0; i < kImpairCounts; ++i) {
    __u64 value = 0;
    bpf_map_lookup_elem(map, &i, &value);
    text += " " + std::to_string(value) + " " + kNames[i];
    all = all && (!wanted[i] || value > 0);
  }
  std::printf("%s%s\n", text.c_str(), all ? "" : ": not all that was asked for");
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  impair_settings settings;
  if (argc < 4 || !parse(argv[1], settings)) {
    std::fprintf(
        stderr,
        "use: uet_impair drop=RATE,drop_other=RATE,duplicate=RATE,mark=RATE,trim=RATE,seed=N,"
        "dscp_trimmable=N,dscp_trimmed=N,queue_rate=BITS,queue_mark_from=BYTES,"
        "queue_mark_to=BYTES,queue_limit=BYTES INTERFACE[:out][,...] COMMAND...\n");
    return 2;
  }
  const char* const other = std::getenv("UET_IMPAIR_OBJECT");
  const char* const file = other != nullptr ? other : UET_IMPAIR_OBJECT;
  const Object object(bpf_object__open_file(file, nullptr));
  if (object == nullptr) {
    std::perror(file);
    return 2;
  }
  if (bpf_object__load(object.get()) != 0) return skip("the eBPF program cannot be loaded");
  const __u32 first = 0;
  const int map = bpf_object__find_map_fd_by_name(object.get(), "settings");
  if (bpf_map_update_elem(map, &first, &settings, BPF_ANY) != 0) return skip("no map");
  const bpf_program* program = bpf_object__find_program_by_name(object.get(), "impair");
  Hooks hooks;
  for (const std::string& interface : split(argv[2])) {
    if (!hooks.attach(interface, bpf_program__fd(program))) return skip(interface.c_str());
  }
  const int status = run(argv + 3);
  const bool all = report(settings, bpf_object__find_map_fd_by_name(object.get(), "counts"));
  return status == 0 && !all ? 1 : status;
}
