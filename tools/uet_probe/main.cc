// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// uet_probe: is this FEP's UET right? The command line and the exit status.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <random>
#include <string>

#include "probe.h"
#include "sockets.h"

namespace {

using namespace uet;         // NOLINT(google-build-using-namespace)
using namespace uet::probe;  // NOLINT(google-build-using-namespace)

constexpr int kDeviations = 1;
constexpr int kUsedWrongly = 2;
constexpr int kSilence = 3;

struct Arguments {
  std::string peer;
  std::string from;
  std::uint16_t port = kUetUdpPort;
  int native = 0;
  std::uint64_t key = 0;
  int patience_ms = 1000;
  Ends ends;
  Settings settings;
};

CLI::App& add_options(CLI::App& app, Arguments& a) {
  app.add_option("peer", a.peer, "IP address or name of the FEP")->required();
  app.add_option("--port", a.port, "its UDP port")->capture_default_str();
  app.add_option("--native", a.native, "native form: the IP protocol number (253), instead of UDP")
      ->check(CLI::Range(1, 255))
      ->excludes("--port");
  app.add_option("--from", a.from, "address of this host (the one that leads to the peer)");
  app.add_option("--own-port", a.ends.own_port, "UDP port at which answers are expected")
      ->capture_default_str();
  app.add_option("--entropy", a.ends.entropy, "UDP source port, or value of the entropy header")
      ->check(CLI::Range(1, 65535))
      ->capture_default_str();
  app.add_flag("--crc", a.ends.crc, "packets both ways end with a CRC-32C");
  app.add_option("--job", a.settings.job.value, "JobID")
      ->check(CLI::Range(0U, kMaxJobId))
      ->capture_default_str();
  app.add_option("--pid", a.settings.pid.value, "PIDonFEP")
      ->check(CLI::Range(0, int{kMaxPidOnFep}))
      ->capture_default_str();
  app.add_option("--ri", a.settings.index.value, "resource index that takes SENDs, WRITEs, READs")
      ->check(CLI::Range(0, int{kMaxResourceIndex}))
      ->capture_default_str();
  app.add_option("--initiator", a.settings.initiator.value, "our initiator id")
      ->capture_default_str();
  app.add_flag("--absolute", a.settings.absolute, "PIDonFEP counts on the FEP, not in the job");
  app.add_option(
      "--key", a.key,
      "memory key (decimal or 0x...): 256 bytes of that memory are overwritten and read; "
      "without it WRITE and READ are left out");
  app.add_option("--offset", a.settings.offset, "where in that memory, in bytes")
      ->capture_default_str();
  app.add_option("--mtu", a.settings.payload_mtu, "payload MTU of the peer in bytes")
      ->check(CLI::Range(1, 16383 - 16))
      ->capture_default_str();
  app.add_flag("--rod", a.settings.ordered, "an ordered PDC (ROD) instead of an unordered one");
  app.add_option("--patience", a.patience_ms, "milliseconds to wait for each answer")
      ->check(CLI::Range(1, 600'000))
      ->capture_default_str();
  app.footer(
      "Ends with 0: no deviation from UET 1.0.3 was found, 1: some were, 2: used wrongly, or this "
      "host cannot, 3: nothing answers.");
  return app;
}

int run(const Arguments& a) {
  Report report([](const std::string& line) { std::printf("%s\n", line.c_str()); });
  const auto line =
      a.native != 0 ? open_native(a.ends, static_cast<std::uint8_t>(a.native)) : open_udp(a.ends);
  Probe probe(*line, a.settings, report);
  if (!probe.run()) return kSilence;
  const std::size_t deviations = report.deviations();
  if (deviations == 0) {
    std::puts("No deviation from UET 1.0.3 found.");
    return 0;
  }
  std::printf("%zu deviations from UET 1.0.3 found.\n", deviations);
  return kDeviations;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    CLI::App app("Opens a PDC at a FEP by hand and says whether its answers are UET 1.0.3");
    Arguments arguments;
    try {
      add_options(app, arguments).parse(argc, argv);
    } catch (const CLI::ParseError& error) {
      return app.exit(error) == 0 ? 0 : kUsedWrongly;
    }
    arguments.ends.peer = {resolve(arguments.peer), arguments.port};
    arguments.ends.own =
        arguments.from.empty() ? local_address_to(arguments.ends.peer.ip) : resolve(arguments.from);
    if (arguments.ends.own.is_ipv6 != arguments.ends.peer.ip.is_ipv6) {
      throw std::runtime_error("--from and the peer are of different IP versions");
    }
    if (app.count("--key") > 0) arguments.settings.key = Rkey{arguments.key};
    // The peer may remember an earlier PDC of the same ids (PDS-175).
    std::random_device random;
    arguments.settings.start = Psn{static_cast<std::uint32_t>(random()) | 0x0001'0000};
    arguments.settings.pdc = PdcId{static_cast<std::uint16_t>(0x0100 + random() % 0xF000)};
    arguments.settings.patience = std::chrono::milliseconds(arguments.patience_ms);
    std::setvbuf(stdout, nullptr, _IOLBF, 0);
    return run(arguments);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "uet_probe: %s\n", error.what());
    return kUsedWrongly;
  }
}
