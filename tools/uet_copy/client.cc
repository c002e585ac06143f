// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// uet_copy FROM TO: a thread for each stream, a progress line, and the report.
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <climits>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "gpu_stream.h"
#include "stream.h"
#include "transfer.h"

namespace uet::copy {
namespace {

using std::chrono::steady_clock;
namespace fs = std::filesystem;

constexpr std::chrono::milliseconds kProgressPeriod{250};

double seconds_since(steady_clock::time_point start) {
  return std::chrono::duration<double>(steady_clock::now() - start).count();
}

double cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// A local path as a directory and a name in it. Links on the way are the user's own.
struct LocalPath {
  std::string directory;
  std::string name;
};

LocalPath source_path(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> real(::realpath(path.c_str(), nullptr),
                                                         &std::free);
  if (real == nullptr) fail_file(errno, path);
  const fs::path resolved(real.get());
  return {resolved.parent_path().string(), resolved.filename().string()};
}

// A target may not be there yet.
LocalPath target_path(const std::string& path, bool tree) {
  std::error_code ignored;
  if (tree) {
    if (!fs::exists(path, ignored) && ::mkdir(path.c_str(), 0777) != 0) fail_file(errno, path);
    return {path, ""};
  }
  if (fs::is_directory(path, ignored)) return {path, ""};
  const fs::path whole(path);
  const std::string parent = whole.parent_path().string();
  return {parent.empty() ? "." : parent, whole.filename().string()};
}

class Client {
 public:
  // `gpu`: takes the place of the path that names no host.
  explicit Client(const CopyOptions& options, GpuFile* gpu = nullptr)
      : options_(options), gpu_(gpu) {
    const Place from = parse_place(options.from);
    const Place to = parse_place(options.to);
    if (from.host.empty() == to.host.empty()) {
      throw Failure(Status::UsedWrongly, "one of FROM and TO must be HOST:PATH");
    }
    sends_ = from.host.empty();
    host_ = sends_ ? to.host : from.host;
    hello_.client_sends = sends_ ? 1 : 0;
    hello_.streams = options.streams;
    hello_.sync = options.sync ? 1 : 0;
    hello_.verify = options.verify ? 1 : 0;
    if (::getrandom(hello_.session.data(), hello_.session.size(), 0) !=
        static_cast<ssize_t>(hello_.session.size())) {
      throw Failure(Status::Failed, "no random bytes");
    }
    request_ = {.kind = Kind::Request, .mode = options.tree ? 1U : 0U};
    const std::uint32_t slot_bytes = options.slot_mib << 20;
    hello_.slots = {.bytes = slot_bytes, .count = options.slots};
    const std::size_t piece_bytes = slot_bytes - kPage;
    request_.path = sends_ ? to.path : from.path;
    if (gpu != nullptr) {
      request_.name = from.path;
    } else if (sends_) {
      const LocalPath path = source_path(from.path);
      request_.name = path.name;
      source_ = std::make_unique<Source>(tally_, Directory(path.directory), path.name, options.tree,
                                         options.direct, piece_bytes);
    } else {
      const LocalPath path = target_path(to.path, options.tree);
      Sink::Options sink;
      sink.tree = options.tree;
      sink.sync = options.sync;
      sink.verify = options.verify;
      sink.direct = options.direct;
      sink.piece_bytes = piece_bytes;
      sink.streams = options.streams;
      for (const std::uint8_t byte : hello_.session) sink.unique += std::to_string(byte);
      const std::string name = fs::path(from.path).filename().string();
      sink_ = std::make_unique<Sink>(tally_, Directory(path.directory), path.name, name, sink);
    }
    info_ = find_info(host_.c_str(), options.port, 0, options.provider, gpu != nullptr);
    fid_fabric* fabric = nullptr;
    check(fi_fabric(info_->fabric_attr, &fabric, nullptr), "fi_fabric");
    fabric_.reset(fabric);
  }

  Status run() {
    const auto start = steady_clock::now();
    {
      std::vector<std::jthread> threads;
      for (unsigned i = 0; i < options_.streams; ++i) {
        threads.emplace_back([this, i] { run_stream(i); });
      }
      show_progress(start);
    }
    const double seconds = seconds_since(start);
    if (gpu_ != nullptr && !sends_ && !gpu_->whole()) {
      tally_.problem(
          {Status::BadPeer, "the peer broke the protocol: the end came before all bytes"});
    }
    sink_.reset();  // parts of a transfer that failed are kept or removed now
    report(seconds);
    return tally_.outcome().status;
  }

 private:
  void run_stream(unsigned stream) {
    try {
      Gpu* const gpu = gpu_ != nullptr ? &gpu_->gpu() : nullptr;
      Connection connection(*fabric_, *info_, hello_.slots.bytes, hello_.slots.count, gpu);
      try {
        Hello hello = hello_;
        hello.stream = stream;
        hello.slots = connection.own_slots();
        const std::string server = host_ + " port " + options_.port;
        connection.set_peer_slots(connection.connect(info_->dest_addr, hello, server).slots);
        connection.send(request_);
        if (gpu_ != nullptr) {
          if (sends_) send_from_gpu(connection, *gpu_, tally_, options_.verify, stream == 0);
          if (!sends_) receive_to_gpu(connection, *gpu_, tally_, options_.verify);
        } else if (sends_) {
          send_files(connection, *source_, tally_, options_.verify);
        } else {
          receive_files(connection, *sink_, tally_);
        }
      } catch (const Failure& failure) {
        tally_.stop(failure);
        send_failure(connection, tally_.outcome());
      }
    } catch (const Failure& failure) {
      tally_.stop(failure);
    }
    const std::lock_guard lock(mutex_);
    ++ended_;
    change_.notify_one();
  }

  void show_progress(steady_clock::time_point start) {
    const bool shown = !options_.quiet && !options_.json && ::isatty(STDERR_FILENO) == 1;
    std::unique_lock lock(mutex_);
    while (
        !change_.wait_for(lock, kProgressPeriod, [this] { return ended_ == options_.streams; })) {
      if (!shown) continue;
      const double done = static_cast<double>(tally_.bytes + tally_.resumed);
      const double rate = static_cast<double>(tally_.bytes) / seconds_since(start);
      const auto expected = static_cast<double>(tally_.expected);
      std::fprintf(stderr, "\r%.1f MB", done / 1e6);
      if (expected > 0)
        std::fprintf(stderr, " of %.1f MB (%.0f %%)", expected / 1e6, 100 * done / expected);
      std::fprintf(stderr, ", %llu files, %.1f MB/s   ",
                   static_cast<unsigned long long>(tally_.files), rate / 1e6);
    }
    if (shown) std::fputs("\r\033[K", stderr);
  }

  void report(double seconds) const {
    const Failure outcome = tally_.outcome();
    const std::string disk = tally_.disk();
    if (options_.json) {
      nlohmann::ordered_json json;
      json["status"] = static_cast<unsigned>(outcome.status);
      json["error"] = outcome.what();
      json["files"] = tally_.files.load();
      json["bytes"] = tally_.bytes.load();
      json["resumed_bytes"] = tally_.resumed.load();
      json["left_out"] = tally_.left_out.load();
      json["seconds"] = seconds;
      json["bytes_per_second"] = static_cast<double>(tally_.bytes) / seconds;
      json["cpu_seconds"] = cpu_seconds();
      json["streams"] = options_.streams;
      json["verified"] = options_.verify;
      json["synced"] = options_.sync;
      json["disk"] = disk;
      if (gpu_ != nullptr) json["gpu"] = gpu_->gpu().device();
      if (gpu_ != nullptr && outcome.status == Status::Done) json["crc32c"] = crc_text();
      std::printf("%s\n",
                  json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
    } else if (outcome.status == Status::Done) {
      std::printf("%llu files, %.1f MB in %.2f s: %.1f MB/s",
                  static_cast<unsigned long long>(tally_.files),
                  static_cast<double>(tally_.bytes) / 1e6, seconds,
                  static_cast<double>(tally_.bytes) / 1e6 / seconds);
      if (tally_.resumed > 0) {
        std::printf("; %.1f MB were there", static_cast<double>(tally_.resumed) / 1e6);
      }
      if (options_.verify) std::printf("; verified");
      if (gpu_ != nullptr) {
        std::printf("; in memory of CUDA device %d, CRC-32C %s", gpu_->gpu().device(),
                    crc_text().c_str());
      }
      std::printf("\n");
    }
    if (outcome.status != Status::Done) std::fprintf(stderr, "uet_copy: %s\n", outcome.what());
    if (!disk.empty() && options_.direct) {
      std::fprintf(stderr, "uet_copy: note: %s; the disk is used the ordinary way\n", disk.c_str());
    }
    if (tally_.left_out > 0) {
      std::fprintf(stderr, "uet_copy: note: %llu links or special files were left out\n",
                   static_cast<unsigned long long>(tally_.left_out));
    }
  }

  // Of the bytes as they are in the device's memory.
  std::string crc_text() const {
    std::array<char, 16> text{};
    std::snprintf(text.data(), text.size(), "%08x", gpu_->crc32c());
    return text.data();
  }

  const CopyOptions& options_;
  GpuFile* const gpu_;
  Tally tally_;
  bool sends_ = false;
  std::string host_;
  Hello hello_;
  Message request_;
  std::unique_ptr<Source> source_;
  std::unique_ptr<Sink> sink_;
  Info info_;
  Owned<fid_fabric> fabric_;
  std::mutex mutex_;
  std::condition_variable change_;
  unsigned ended_ = 0;
};

}  // namespace

Place parse_place(const std::string& text) {
  if (text.starts_with('[')) {
    const std::size_t end = text.find("]:");
    if (end != std::string::npos) return {text.substr(1, end - 1), text.substr(end + 2)};
  }
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos || colon == 0 || text.find('/') < colon) return {"", text};
  return {text.substr(0, colon), text.substr(colon + 1)};
}

// Into the device's memory, and from there to TO if there is one.
Status copy_by_gpu(const CopyOptions& options) {
  GpuFile file(*options.gpu);
  const bool from_host = !parse_place(options.from).host.empty();
  if (options.to.empty() ? !from_host : parse_place(options.to).host.empty()) {
    throw Failure(Status::UsedWrongly,
                  "--gpu: FROM is HOST:PATH or a file of this host, TO is HOST:PATH");
  }
  CopyOptions part = options;
  if (from_host) {
    part.to.clear();
    const Status status = Client(part, &file).run();
    if (status != Status::Done || options.to.empty()) return status;
  } else {
    file.load(options.from);
  }
  part.from = "./" + fs::path(parse_place(options.from).path).filename().string();
  part.to = options.to;
  return Client(part, &file).run();
}

Status copy(const CopyOptions& options) {
  return options.gpu ? copy_by_gpu(options) : Client(options).run();
}

}  // namespace uet::copy
