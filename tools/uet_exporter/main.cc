// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// uet_exporter: the domains of this user for Prometheus. The command line.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <stdexcept>
#include <string>

#include "live_view/command.h"
#include "live_view/domain.h"
#include "uet_exporter/metrics.h"
#include "uet_exporter/server.h"

namespace {

using namespace uet;  // NOLINT(google-build-using-namespace)

constexpr std::uint16_t kPort = 9793;

struct Arguments {
  std::string listen = "127.0.0.1";
  std::uint16_t port = kPort;
  exporter::Choice choice;
  std::string textfile;
  unsigned interval = 0;
};

std::string text_now(const Arguments& arguments) {
  return exporter::exposition(view::read_domains(), arguments.choice);
}

[[noreturn]] void fail(const std::string& file) {
  throw std::runtime_error(file + ": " + std::strerror(errno));
}

// node_exporter never sees a part of the text: the file appears whole, in one step.
void write_textfile(const std::string& file, const std::string& text) {
  std::string temporary = file + ".XXXXXX";
  const int fd = ::mkostemp(temporary.data(), O_CLOEXEC);
  if (fd < 0) fail(temporary);
  std::FILE* const out = ::fdopen(fd, "w");
  const bool written = out != nullptr && std::fputs(text.c_str(), out) >= 0 &&
                       ::fchmod(fd, 0644) == 0;  // node_exporter is another user
  const bool closed = out != nullptr ? std::fclose(out) == 0 : ::close(fd) == 0;
  if (written && closed && std::rename(temporary.c_str(), file.c_str()) == 0) return;
  const int error = errno;
  ::unlink(temporary.c_str());
  errno = error;
  fail(file);
}

// Until SIGTERM, SIGINT or SIGHUP, which the caller has blocked; `seconds` at most. True: a signal
// came.
bool wait_for_signal(const sigset_t& signals, unsigned seconds) {
  const timespec pause{.tv_sec = static_cast<time_t>(seconds), .tv_nsec = 0};
  return ::sigtimedwait(&signals, nullptr, &pause) > 0;
}

void run(const Arguments& arguments) {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int each : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&signals, each);
  sigprocmask(SIG_BLOCK, &signals, nullptr);  // for the server's thread, too
  if (!arguments.textfile.empty()) {
    do {
      write_textfile(arguments.textfile, text_now(arguments));
    } while (arguments.interval != 0 && !wait_for_signal(signals, arguments.interval));
    return;
  }
  const exporter::Server server(arguments.listen, arguments.port,
                                [&] { return text_now(arguments); });
  const bool brackets = arguments.listen.find(':') != std::string::npos;
  std::printf("uet_exporter: http://%s%s%s:%u/metrics\n", brackets ? "[" : "",
              arguments.listen.c_str(), brackets ? "]" : "", unsigned{server.port()});
  std::fflush(stdout);
  while (!wait_for_signal(signals, 3600)) continue;
}

void add_options(CLI::App& app, Arguments& a) {
  app.add_option("-l,--listen", a.listen, "IP address of this host at which the exporter answers")
      ->capture_default_str();
  app.add_option("-p,--port", a.port, "TCP port; 0: any, printed at the start")
      ->capture_default_str();
  app.add_option("-n,--peers", a.choice.peers, "Peers of each domain, those with most traffic")
      ->check(CLI::Range(0, 256))
      ->capture_default_str();
  CLI::Option* const textfile =
      app.add_option("-t,--textfile", a.textfile, "Write this file (NAME.prom) instead of serving");
  app.add_option("-i,--interval", a.interval, "Write the file again after so many seconds; 0: once")
      ->needs(textfile)
      ->check(CLI::Range(0, 86400));
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  return view::run_command(
      "uet_exporter", "Shows the uet domains of this user to Prometheus", argc, argv,
      [&](CLI::App& app) { add_options(app, arguments); },
      [&] {
        run(arguments);
        return 0;
      });
}
