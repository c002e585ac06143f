// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// uet_keys: makes, rotates and shows key files of transport security. The command line, the files
// and the random numbers; what a file says, uet/tss knows.
#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>

#include "command_line.h"
#include "settings/key_source.h"
#include "tss/key_rotation.h"

namespace {

using namespace uet;  // NOLINT(google-build-using-namespace)

struct Arguments {
  std::string file;
  tss::DomainConfig config;
  std::uint32_t sdi = 0;
  std::uint32_t ssi = 0;
  std::uint32_t guard_seconds = 10;
};

tss::Key random_key() {
  tss::Key key;
  const auto bytes = key.writable();
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    throw std::runtime_error(std::string("random numbers: ") + std::strerror(errno));
  }
  return key;
}

void check(const std::string& problem) {
  if (!problem.empty()) throw std::runtime_error(problem);
}

tss::KeyFile read_file(const std::string& name) {
  const prov::KeySource source(name);
  check(source.problem());
  tss::KeyFile file;
  const std::string problem = tss::parse_key_file(source.text(), file);
  if (!problem.empty()) throw std::runtime_error(name + ": " + problem);
  return file;
}

[[noreturn]] void throw_errno(const std::string& name) {
  throw std::runtime_error(name + ": " + std::strerror(errno));
}

// Writes a new file for its owner alone, and has it on the disk.
void write_new(const std::string& name, const tss::KeyFile& file) {
  const int fd = open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) throw_errno(name);
  std::string text = to_text(file, tss::KeyText::Secret);
  const bool good =
      write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()) && fsync(fd) == 0;
  explicit_bzero(text.data(), text.size());
  const int error = errno;
  close(fd);
  if (good) return;
  unlink(name.c_str());
  errno = error;
  throw_errno(name);
}

enum class Age { Now, AsBefore };

// A reader finds the old file or the new one, whole. Providers take the time of the file for the
// age of the active key (TSS-37): a file that keeps this key keeps its time.
void replace(const std::string& name, const tss::KeyFile& file, Age age) {
  const std::string next = name + ".new";
  struct stat before {};
  if (stat(name.c_str(), &before) != 0) throw_errno(name);
  write_new(next, file);
  const timespec times[] = {before.st_atim, before.st_mtim};
  if (age == Age::AsBefore && utimensat(AT_FDCWD, next.c_str(), times, 0) != 0) throw_errno(next);
  if (rename(next.c_str(), name.c_str()) != 0) throw_errno(name);
}

void make(const Arguments& a, bool has_ssi) {
  tss::DomainConfig config = a.config;
  config.sdi = a.sdi;
  config.guard = std::chrono::seconds(a.guard_seconds);
  if (has_ssi) config.ssi = a.ssi;
  tss::KeyFile file;
  check(new_key_file(config, random_key(), file));
  write_new(a.file, file);
}

void add_file(CLI::App& command, Arguments& a) {
  command.add_option("file", a.file, "the key file")->required();
}

int run(int argc, char** argv) {
  CLI::App app("Makes, rotates and shows key files of transport security (TSS)");
  app.require_subcommand(1);
  Arguments a;
  CLI::App* const fresh = app.add_subcommand("new", "make a file with one domain and a random key");
  add_file(*fresh, a);
  fresh->add_option("--sdi", a.sdi, "secure domain identifier, 24 bits")
      ->required()
      ->check(CLI::Range(0U, tss::kMaxSdi));
  const std::map<std::string, tss::KeyMode> modes = {{"direct", tss::KeyMode::Direct},
                                                     {"cluster", tss::KeyMode::Cluster},
                                                     {"server", tss::KeyMode::Server}};
  fresh->add_option("--mode", a.config.mode, "direct, cluster (default) or server")
      ->transform(CLI::CheckedTransformer(modes));
  const auto* const ssi = fresh->add_option("--ssi", a.ssi, "secure source identifier, 32 bits");
  fresh->add_flag("--ipv6", a.config.ipv6, "the FEP has an IPv6 address");
  fresh->add_flag("--pdc-only", a.config.pdc_only, "neither datagrams (UUD) nor RUDI");
  fresh->add_option("--guard", a.guard_seconds, "seconds that a replaced key still opens packets")
      ->check(CLI::Range(0U, 86400U))
      ->capture_default_str();
  CLI::App* const rotate =
      app.add_subcommand("rotate", "first step: put a random key into the slot that is not active");
  CLI::App* const activate =
      app.add_subcommand("activate", "second step, when all members have read the file");
  CLI::App* const show = app.add_subcommand("show", "print the file with fingerprints for keys");
  for (CLI::App* const command : {rotate, activate, show}) add_file(*command, a);
  for (CLI::App* const command : {rotate, activate}) {
    command->add_option("--sdi", a.sdi, "which domain, if the file has several");
  }
  if (const auto status = tools::parse(app, argc, argv)) return *status;
  if (fresh->parsed()) {
    make(a, ssi->count() > 0);
    return 0;
  }
  tss::KeyFile file = read_file(a.file);
  const auto named = [&a](const CLI::App& command) {
    return command.count("--sdi") > 0 ? std::optional<std::uint32_t>(a.sdi) : std::nullopt;
  };
  if (rotate->parsed()) {
    check(install_next_key(file, named(*rotate), random_key()));
    replace(a.file, file, Age::AsBefore);
  } else if (activate->parsed()) {
    check(activate_next_key(file, named(*activate)));
    replace(a.file, file, Age::Now);
  } else {
    std::fputs(to_text(file, tss::KeyText::Recognised).c_str(), stdout);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return tools::run_program("uet_keys", run, argc, argv); }
