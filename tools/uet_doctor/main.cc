// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// uet_doctor: is this machine ready for the libfabric provider uet, and if not, why not?
#include <getopt.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include "back_ends.h"
#include "host.h"
#include "machine.h"
#include "path.h"
#include "plug_in.h"
#include "provider_log.h"
#include "report.h"

namespace {

constexpr const char* kUsage =
    "usage: uet_doctor [--peer HOST | --serve] [--port N] [--path DIR]\n"
    "Says whether this machine is ready for the libfabric provider uet, and why not.\n"
    "  --peer HOST  examines this host and the path to HOST, where 'uet_doctor --serve' runs\n"
    "  --serve      then serves such examinations until it is ended\n"
    "  --port N     TCP port on which the two meet, 1 to 65535 (7474)\n"
    "  --path DIR   examines this host and the disk of DIR: O_DIRECT, queue depth\n"
    "Ends with 0: ready, 1: not ready, 2: used wrongly.\n";

struct Options {
  std::string peer;
  std::string port = "7474";
  std::string path;
  bool serve = false;
  bool help = false;
};

bool is_port(const std::string& text) {
  char* end = nullptr;
  const long number = std::strtol(text.c_str(), &end, 10);
  return end != text.c_str() && *end == '\0' && number > 0 && number < 65536;
}

bool parse_options(int argc, char** argv, Options& options) {
  const option known[] = {
      {"peer", required_argument, nullptr, 'p'}, {"serve", no_argument, nullptr, 's'},
      {"port", required_argument, nullptr, 'n'}, {"path", required_argument, nullptr, 'd'},
      {"help", no_argument, nullptr, 'h'},       {nullptr, 0, nullptr, 0}};
  for (int c; (c = getopt_long(argc, argv, "", known, nullptr)) != -1;) {
    if (c == '?') return false;
    if (c == 'p') options.peer = optarg;
    if (c == 's') options.serve = true;
    if (c == 'n') options.port = optarg;
    if (c == 'd') options.path = optarg;
    if (c == 'h') options.help = true;
    if (c == 'p' && options.peer.empty()) return false;
  }
  const bool both = options.serve && !options.peer.empty();
  return optind == argc && !both && is_port(options.port);
}

// One address is enough: packets to any address of this host stay inside it.
void examine_self(uet::doctor::Report& report,
                  const std::vector<uet::doctor::LocalAddress>& addresses) {
  if (addresses.empty()) return;
  const auto outside = std::find_if(addresses.begin(), addresses.end(),
                                    [](const auto& address) { return !address.loopback; });
  uet::doctor::examine_self(report, outside != addresses.end() ? *outside : addresses.front());
}

// A signal ends the program at once. Debian's libfabric is linked with libinfinipath, whose handler
// calls exit() and then waits forever for the lock of malloc where the signal interrupted free.
void end_on_signals() {
  for (const int number : {SIGINT, SIGTERM}) {
    struct sigaction now {};
    if (::sigaction(number, nullptr, &now) == 0 && now.sa_handler != SIG_IGN) {
      std::signal(number, SIG_DFL);
    }
  }
}

int run(const Options& options) {
  uet::doctor::Report report;
  uet::doctor::ProviderLog log;
  const uet::doctor::Infos infos = uet::doctor::examine_plug_in(report);
  end_on_signals();  // providers that libfabric has loaded may have their own handlers
  log.flush(report);
  if (infos) {
    const auto addresses = uet::doctor::examine_interfaces(report, *infos);
    uet::doctor::examine_ports(report, addresses);
    uet::doctor::examine_buffers(report);
    uet::doctor::examine_rights(report);
    std::vector<std::string> interfaces;
    interfaces.reserve(addresses.size());
    for (const auto& address : addresses) interfaces.push_back(address.interface);
    uet::doctor::examine_machine(report, interfaces);
    uet::doctor::examine_back_ends(report);
    examine_self(report, addresses);
    if (!options.peer.empty()) uet::doctor::examine_peer(report, options.peer, options.port);
  }
  if (!options.path.empty()) uet::doctor::examine_directory(report, options.path);
  log.flush(report);
  report.conclude();
  if (report.failed()) return 1;
  if (options.serve) uet::doctor::serve(options.port, report, log);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  if (!parse_options(argc, argv, options)) {
    std::fputs(kUsage, stderr);
    return 2;
  }
  if (options.help) {
    std::fputs(kUsage, stdout);
    return 0;
  }
  try {
    return run(options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "uet_doctor: %s\n", error.what());
    return 1;
  }
}
