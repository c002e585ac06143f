// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// uet_copy: copies files over the fabric. The command line and the exit status.
#include <cstdlib>
#include <string>

#include "../command_line.h"
#include "failure.h"
#include "transfer.h"

namespace {

using namespace uet::copy;  // NOLINT(google-build-using-namespace)

// A peer that dies while this end only waits is noticed within two of these periods.
void ask_for_keep_alive() {
  const char* given = std::getenv("FI_UET_TUNING");
  std::string tuning = given == nullptr ? "" : given;
  if (tuning.find("keep_alive_ms") != std::string::npos) return;
  if (!tuning.empty()) tuning += ',';
  ::setenv("FI_UET_TUNING", (tuning + "keep_alive_ms=1000").c_str(), 1);
}

int run(int argc, char** argv) {
  CLI::App app{"Copies files over the fabric, through libfabric"};
  ServeOptions serving;
  CopyOptions copying;
  Common common;
  common.port = "5800";
  bool buffered = false;
  app.add_option("--serve", serving.directory, "Serve the files below this directory")
      ->type_name("DIR");
  app.add_option("from", copying.from, "HOST:PATH, or a path of this host");
  app.add_option("to", copying.to, "The same; one of the two has a host");
  app.add_flag("-r,--recursive", copying.tree, "Copy a directory with all below it");
  app.add_option("--streams", copying.streams, "Connections, each with a thread at both ends")
      ->check(CLI::Range(1, 16));
  app.add_option("--slot-mib", copying.slot_mib, "MiB of a slot")->check(CLI::Range(1, 16));
  app.add_option("--slots", copying.slots, "Slots of each stream")->check(CLI::Range(2, 64));
  app.add_flag("--sync", copying.sync, "The receiver writes all to the disk before the end");
  app.add_flag("--verify", copying.verify,
               "Compare the CRC-32C of the received bytes with the sender's");
  app.add_flag("--buffered", buffered, "Use the page cache (no O_DIRECT)");
  app.add_option("--gpu", copying.gpu, "CUDA device whose memory the file goes to, or through")
      ->type_name("DEVICE")
      ->check(CLI::NonNegativeNumber);
  app.add_flag("--json", common.json, "Print the report as JSON");
  app.add_flag("-q,--quiet", copying.quiet, "No progress line");
  app.add_option("--port", common.port, "UDP port of the server");
  app.add_option("--listen", serving.listen, "Serve at this address only");
  app.add_flag("--read-only", serving.read_only, "Refuse to receive files");
  app.add_option("--provider", common.provider, "libfabric provider with FI_EP_MSG");
  if (const auto status = uet::tools::parse(app, argc, argv)) return *status;
  const bool serves = !serving.directory.empty();
  const bool copies = !copying.from.empty() && (!copying.to.empty() || copying.gpu);
  if (serves == copies || (copying.gpu && (serves || copying.tree))) {
    std::fprintf(stderr,
                 "uet_copy: give --serve DIR, or FROM and TO, or FROM [TO] --gpu DEVICE without "
                 "-r; see --help\n");
    return uet::tools::kUsedWrongly;
  }
  common.direct = !buffered;
  ask_for_keep_alive();
  try {
    if (!serves) {
      static_cast<Common&>(copying) = common;
      return static_cast<int>(copy(copying));
    }
    static_cast<Common&>(serving) = common;
    serve(serving);
    return 0;
  } catch (const Failure& failure) {
    std::fprintf(stderr, "uet_copy: %s\n", failure.what());
    return static_cast<int>(failure.status);
  }
}

}  // namespace

int main(int argc, char** argv) { return uet::tools::run_program("uet_copy", run, argc, argv); }
