// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// uet_copy --serve: a thread for each connection; connections with one session share its files.
#include <poll.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <list>
#include <map>
#include <mutex>
#include <thread>

#include "stream.h"
#include "transfer.h"

namespace uet::copy {
namespace {

constexpr std::size_t kMostConnections = 64;
constexpr int kNapMs = 100;

volatile std::sig_atomic_t stop_signal = 0;
void on_signal(int) { stop_signal = 1; }

std::string hex(const Session& session) {
  std::string text;
  for (const std::uint8_t byte : session) {
    constexpr char kDigits[] = "0123456789abcdef";
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

// One transfer, of one or several connections.
class Transfer {
 public:
  Transfer(const ServeOptions& options, const Hello& hello) : options_(options), hello_(hello) {}
  ~Transfer() {
    sink_.reset();
    const Failure outcome = tally_.outcome();
    std::printf("%s %s: %llu files, %llu bytes%s%s\n", hello_.client_sends != 0 ? "put" : "get",
                path_.empty() ? "." : path_.c_str(), static_cast<unsigned long long>(tally_.files),
                static_cast<unsigned long long>(tally_.bytes), *outcome.what() == 0 ? "" : ": ",
                outcome.what());
    std::fflush(stdout);
  }
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  // All connections of a session agree.
  bool fits(const Hello& hello) const {
    return hello.client_sends == hello_.client_sends && hello.streams == hello_.streams &&
           hello.slots.bytes == hello_.slots.bytes && hello.sync == hello_.sync &&
           hello.verify == hello_.verify;
  }

  void run(Connection& connection) {
    try {
      start(receive_request(connection));
      if (sink_ != nullptr) {
        receive_files(connection, *sink_, tally_);
      } else {
        send_files(connection, *source_, tally_, hello_.verify != 0);
      }
    } catch (const Failure& failure) {
      tally_.stop(failure);
      send_failure(connection, tally_.outcome());
    }
  }
  void stop() { tally_.stop({Status::NoConnection, "the server ends"}); }

 private:
  // The first connection says what to do.
  void start(const Message& request) {
    const std::lock_guard lock(mutex_);
    if (sink_ != nullptr || source_ != nullptr) return;
    path_ = clean_path(request.path);
    const std::size_t piece_bytes = hello_.slots.bytes - kPage;
    Directory directory(options_.directory);
    if (hello_.client_sends == 0) {
      source_ = std::make_unique<Source>(tally_, std::move(directory), path_, request.mode != 0,
                                         options_.direct, piece_bytes);
      return;
    }
    if (options_.read_only) {
      throw Failure(Status::NoPermission, path_ + ": the server only reads (--read-only)");
    }
    Sink::Options sink;
    sink.tree = request.mode != 0;
    sink.sync = hello_.sync != 0;
    sink.verify = hello_.verify != 0;
    sink.direct = options_.direct;
    sink.unique = hex(hello_.session);
    sink.piece_bytes = piece_bytes;
    sink.streams = hello_.streams;
    sink_ = std::make_unique<Sink>(tally_, std::move(directory), path_, request.name, sink);
  }

  const ServeOptions& options_;
  const Hello hello_;
  Tally tally_;
  std::mutex mutex_;
  std::string path_;
  std::unique_ptr<Source> source_;
  std::unique_ptr<Sink> sink_;
};

class Server {
 public:
  explicit Server(const ServeOptions& options) : options_(options) {
    Directory check_directory(options.directory);
    info_ = find_info(options.listen.empty() ? nullptr : options.listen.c_str(), options.port,
                      FI_SOURCE, options.provider);
    fid_fabric* fabric = nullptr;
    check(fi_fabric(info_->fabric_attr, &fabric, nullptr), "fi_fabric");
    fabric_.reset(fabric);
    fi_eq_attr attr{};
    attr.wait_obj = FI_WAIT_FD;
    fid_eq* eq = nullptr;
    check(fi_eq_open(fabric, &attr, &eq, nullptr), "fi_eq_open");
    eq_.reset(eq);
    fid_pep* pep = nullptr;
    check(fi_passive_ep(fabric, info_.get(), &pep, nullptr), "listening at port " + options.port);
    pep_.reset(pep);
    check(fi_pep_bind(pep, &eq->fid, 0), "fi_pep_bind");
    check(fi_listen(pep), "fi_listen at port " + options.port);
  }

  ~Server() {
    {
      const std::lock_guard lock(mutex_);
      for (auto& [session, transfer] : transfers_) {
        if (const auto running = transfer.lock()) running->stop();
      }
    }
    workers_.clear();
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  void run() {
    std::printf("serving %s at port %s\n", options_.directory.c_str(), options_.port.c_str());
    std::fflush(stdout);
    int fd = -1;
    check(fi_control(&eq_->fid, FI_GETWAIT, &fd), "fi_control");
    while (stop_signal == 0) {
      workers_.remove_if([](const Worker& worker) { return worker.ended.load(); });
      if (std::optional<CmEvent> event = read_event(*eq_)) {
        if (event->number == FI_CONNREQ) on_request(std::move(*event));
        continue;
      }
      fid* fid = &eq_->fid;
      if (fi_trywait(fabric_.get(), &fid, 1) == FI_SUCCESS) {
        pollfd waiting{fd, POLLIN, 0};
        ::poll(&waiting, 1, kNapMs);
      }
    }
  }

 private:
  struct Worker {
    std::atomic<bool> ended{false};
    std::jthread thread;
  };

  void on_request(CmEvent event) {
    try {
      const Hello hello = parse_hello(event.data);
      if (workers_.size() >= kMostConnections) {
        throw Failure(Status::NoConnection, "the server has too many connections");
      }
      Worker& worker = workers_.emplace_back();
      worker.thread = std::jthread([this, &worker, hello, info = std::move(event.info)] {
        serve_connection(hello, *info);
        worker.ended = true;
      });
    } catch (const Failure& failure) {
      std::string data(sizeof failure.status, '\0');
      std::memcpy(data.data(), &failure.status, sizeof failure.status);
      data += std::string(failure.what()).substr(0, 200);
      fi_reject(pep_.get(), event.info->handle, data.data(), data.size());
    }
  }

  void serve_connection(const Hello& hello, fi_info& info) {
    try {
      const std::shared_ptr<Transfer> transfer = transfer_of(hello);
      Connection connection(*fabric_, info, hello.slots.bytes, hello.slots.count);
      connection.set_peer_slots(hello.slots);
      connection.accept();
      transfer->run(connection);
    } catch (const Failure& failure) {
      std::fprintf(stderr, "uet_copy: %s\n", failure.what());
    }
  }

  std::shared_ptr<Transfer> transfer_of(const Hello& hello) {
    const std::lock_guard lock(mutex_);
    std::erase_if(transfers_, [](const auto& one) { return one.second.expired(); });
    if (const auto known = transfers_.find(hello.session); known != transfers_.end()) {
      if (auto transfer = known->second.lock()) {
        if (!transfer->fits(hello)) {
          throw Failure(Status::BadPeer, "connections of one session contradict each other");
        }
        return transfer;
      }
    }
    auto transfer = std::make_shared<Transfer>(options_, hello);
    transfers_[hello.session] = transfer;
    return transfer;
  }

  const ServeOptions& options_;
  Info info_;
  Owned<fid_fabric> fabric_;
  Owned<fid_eq> eq_;
  Owned<fid_pep> pep_;
  std::mutex mutex_;
  std::map<Session, std::weak_ptr<Transfer>> transfers_;
  std::list<Worker> workers_;
};

}  // namespace

void serve(const ServeOptions& options) {
  struct sigaction action {};
  action.sa_handler = on_signal;
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
  Server(options).run();
}

}  // namespace uet::copy
