// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// All parameters are strings to libfabric, whose own number types read "abc" as 0 without a word.
#include "settings/params.h"

#include <sys/auxv.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <sstream>
#include <utility>

#include "base/parameter.h"
#include "provider.h"
#include "settings/default_job.h"

namespace uet::prov {
namespace {

constexpr std::string_view kPrefix = "FI_UET_";

// A program with more rights than its user (AT_SECURE) opens no files of the user's choice.
bool has_foreign_rights() { return ::getauxval(AT_SECURE) != 0; }

// Calls `use` with name and value of each FI_UET_ variable in the environment.
template <class Use>
void for_each_variable(Use use) {
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    const std::string_view text(*variable);
    const std::size_t equals = text.find('=');
    if (!text.starts_with(kPrefix) || equals == std::string_view::npos) continue;
    use(text.substr(0, equals), text.substr(equals + 1));
  }
}

// Differs when a FI_UET_ variable or one of the launcher does.
std::size_t environment_mark() {
  std::size_t mark = 0;
  for_each_variable([&](std::string_view name, std::string_view value) {
    mark = mark * 31 + std::hash<std::string_view>{}(name);
    mark = mark * 31 + std::hash<std::string_view>{}(value);
  });
  for (const char* const name : launcher_variables()) {
    const char* const value = std::getenv(name);
    mark = mark * 31 + std::hash<std::string_view>{}(value == nullptr ? "" : value);
  }
  return mark;
}

// Variables that are misspelt, or from an earlier release: they must not be ignored in silence.
std::vector<std::string> find_strays() {
  std::vector<std::string> complaints;
  for_each_variable([&](std::string_view name, std::string_view value) {
    if (value.empty()) return;
    if (auto why = find_stray(name)) complaints.push_back(std::move(*why));
  });
  return complaints;
}

std::atomic<std::uint16_t> first_port{kUetUdpPort};

std::optional<Params> read_params() {
  Params params;
  const DefaultJob job = default_job(launch_of_this_process());
  params.job_id = job.job.value;
  FI_INFO(&provider, FI_LOG_CORE, "JobID without auth_key and FI_UET_JOB_ID: %u (%s)\n",
          job.job.value, job.source.c_str());
  const bool secure = has_foreign_rights();
  const std::vector<std::string> strays = find_strays();
  for (const std::string& why : strays) FI_WARN(&provider, FI_LOG_CORE, "%s\n", why.c_str());
  bool good = strays.empty();
  for (const ParamText& row : param_texts()) {
    char* value = nullptr;
    if (!row.variable || fi_param_get(&provider, row.name.c_str(), &value) != 0 ||
        value == nullptr || *value == '\0') {
      continue;
    }
    if (secure && names_file(row.name, value)) {
      FI_WARN(&provider, FI_LOG_CORE, "%s is ignored: the program has other rights\n",
              variable_name(row.name).c_str());
      continue;
    }
    if (const auto why = set_param(params, row.name, value)) {
      FI_WARN(&provider, FI_LOG_CORE, "%s\n", why->c_str());
      good = false;
    }
  }
  if (const auto why = find_conflict(params); good && why) {
    FI_WARN(&provider, FI_LOG_CORE, "%s\n", why->c_str());
    good = false;
  }
  if (!good) return {};
  params.core.pds.rto_cap = std::max(params.core.pds.rto_cap, params.core.pds.rto_init);
  return params;
}

// Names, ranges and defaults of FI_UET_TUNING, as fi_info -e shows them.
std::string list_of_names(const std::vector<ParamText>& texts) {
  std::string list = " Names: ";
  const char* between = "";
  for (const ParamText& row : texts) {
    if (row.variable) continue;
    list += between + row.name + " (" + row.range + "; default: " + row.preset + ")";
    between = ", ";
  }
  return list + ". man fi_uet describes each of them";
}

}  // namespace

void define_params() {
  const std::vector<ParamText> texts = param_texts();
  for (const ParamText& row : texts) {
    if (!row.variable) continue;
    std::string help = row.help;
    if (help.ends_with('.')) help.pop_back();
    help += " (" + row.range + "; default: " + row.preset + ")";
    if (row.name == "tuning") help += "." + list_of_names(texts);
    // libfabric takes lower case here and shows FI_UET_ with upper case.
    fi_param_define(&provider, row.name.c_str(), FI_PARAM_STRING, "%s", help.c_str());
  }
}

std::uint16_t first_udp_port() { return first_port.load(std::memory_order_relaxed); }

std::optional<Params> load_params() {
  // fi_param_get searches and logs each variable, which is too much for every fi_getinfo. Its
  // answers change only when the environment does: libfabric reads its own file once.
  static std::mutex mutex;
  static std::size_t seen = 0;
  // Never destroyed: other threads may still be in here when the process ends.
  static std::optional<Params>& params = *new std::optional<Params>;
  const std::lock_guard lock(mutex);
  const std::size_t now = environment_mark();
  if (!params || seen != now) params = read_params();  // broken values warn each time
  if (params) first_port.store(params->udp_port, std::memory_order_relaxed);
  seen = now;
  return params;
}

std::optional<cpu_set_t> parse_cpus(std::string_view text) {
  cpu_set_t processors;
  CPU_ZERO(&processors);
  std::istringstream list{std::string(text)};
  for (std::string range; std::getline(list, range, ',');) {
    const std::size_t dash = range.find('-');
    const auto first = parse_whole(range.substr(0, dash));
    const auto last = dash != std::string::npos ? parse_whole(range.substr(dash + 1)) : first;
    if (!first || !last || *first > *last || *last >= CPU_SETSIZE) return {};
    for (std::uint64_t each = *first; each <= *last; ++each) CPU_SET(each, &processors);
  }
  if (CPU_COUNT(&processors) == 0 || text.back() == ',') return {};
  return processors;
}

}  // namespace uet::prov
