// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Measures what a provider with FI_EP_RDM costs a process that opens a domain and an endpoint, and
// has nothing to do. A line for each: "result: NUMBER UNIT NAME".
//   getinfo    us: the first fi_getinfo, which loads providers
//   domain     us: fi_fabric and fi_domain, the first ones
//   endpoint   us: queue, address vector and endpoint, enabled
//   memory     KiB resident that all of that added
//   idle       us of processor time a second while the process sleeps (--idle)
//
//   uet_start_cost [--provider NAME (uet)] [--address ADDRESS (127.0.0.1)] [--idle SECONDS (0)]
#include <rdma/fabric.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "examples/common.h"

namespace {

using Clock = std::chrono::steady_clock;
using Microseconds = std::chrono::duration<double, std::micro>;

struct FreeInfo {
  void operator()(fi_info* info) const { fi_freeinfo(info); }
};
using Info = std::unique_ptr<fi_info, FreeInfo>;

void print(double value, const char* unit, const char* name) {
  std::printf("result: %.1f %s %s\n", value, unit, name);
}

// The time since `start`, which begins again.
double lap(Clock::time_point& start) {
  const Clock::time_point now = Clock::now();
  return Microseconds(now - std::exchange(start, now)).count();
}

double resident_kib() {
  std::ifstream file("/proc/self/statm");
  double pages = 0;
  file >> pages >> pages;
  return pages * static_cast<double>(::sysconf(_SC_PAGESIZE)) / 1024;
}

double processor_us() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  const auto us = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_usec);
  };
  return us(used.ru_utime) + us(used.ru_stime);
}

Info find(const std::string& provider, const std::string& address) {
  Info hints(fi_allocinfo());
  hints->ep_attr->type = FI_EP_RDM;
  hints->caps = FI_MSG | FI_TAGGED | FI_RMA;
  hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
  hints->fabric_attr->prov_name = ::strdup(provider.c_str());  // fi_freeinfo frees it
  fi_info* found = nullptr;
  const bool in_memory = provider == "shm";  // to which a node is no interface
  example::check(fi_getinfo(FI_VERSION(1, 17), in_memory ? nullptr : address.c_str(), nullptr,
                            in_memory ? 0 : FI_SOURCE, hints.get(), &found),
                 "fi_getinfo");
  return Info(found);
}

void measure(const std::string& provider, const std::string& address, double idle_s) {
  const double before_kib = resident_kib();
  Clock::time_point start = Clock::now();
  const Info info = find(provider, address);
  print(lap(start), "us", "getinfo");

  fid_fabric* fabric = nullptr;
  example::check(fi_fabric(info->fabric_attr, &fabric, nullptr), "fi_fabric");
  const example::Owned<fid_fabric> own_fabric(fabric);
  fid_domain* domain = nullptr;
  example::check(fi_domain(fabric, info.get(), &domain, nullptr), "fi_domain");
  const example::Owned<fid_domain> own_domain(domain);
  print(lap(start), "us", "domain");

  fi_cq_attr cq_attr{};
  cq_attr.format = FI_CQ_FORMAT_DATA;
  fid_cq* cq = nullptr;
  example::check(fi_cq_open(domain, &cq_attr, &cq, nullptr), "fi_cq_open");
  const example::Owned<fid_cq> own_cq(cq);
  fi_av_attr av_attr{};
  av_attr.type = FI_AV_TABLE;
  fid_av* av = nullptr;
  example::check(fi_av_open(domain, &av_attr, &av, nullptr), "fi_av_open");
  const example::Owned<fid_av> own_av(av);
  fid_ep* ep = nullptr;
  example::check(fi_endpoint(domain, info.get(), &ep, nullptr), "fi_endpoint");
  const example::Owned<fid_ep> own_ep(ep);
  example::check(fi_ep_bind(ep, &av->fid, 0), "fi_ep_bind");
  example::check(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
  example::check(fi_enable(ep), "fi_enable");
  print(lap(start), "us", "endpoint");
  print(resident_kib() - before_kib, "KiB", "memory");

  if (idle_s > 0) {
    const double before_us = processor_us();
    std::this_thread::sleep_for(std::chrono::duration<double>(idle_s));
    print((processor_us() - before_us) / idle_s, "us/s", "idle");
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::string provider = "uet";
  std::string address = "127.0.0.1";
  double idle_s = 0;
  for (int i = 1; i < argc; i += 2) {
    const std::string name = argv[i];
    const char* const value = i + 1 < argc ? argv[i + 1] : "";
    if (name == "--provider" && *value != '\0') {
      provider = value;
    } else if (name == "--address" && *value != '\0') {
      address = value;
    } else if (name == "--idle" && std::atof(value) > 0) {
      idle_s = std::atof(value);
    } else {
      std::fprintf(stderr, "use: %s [--provider NAME] [--address ADDRESS] [--idle SECONDS]\n",
                   argv[0]);
      return 2;
    }
  }
  try {
    measure(provider, address, idle_s);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
    return 1;
  }
}
