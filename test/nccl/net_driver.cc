// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Drives a collectives library's network plug-in (aws-ofi-nccl) as that library would: two ranks,
// several communicators each way and one of each rank with itself, many requests in flight, every
// byte checked. It knows the plug-in's table only; which provider carries the bytes is what
// FI_PROVIDER says, and is checked by the counters that test/nccl/run looks at.
//
// Use: net_driver PLUGIN                  both ranks as two processes of this machine
//      net_driver PLUGIN --serve PORT     rank 0; waits for rank 1 at this TCP port
//      net_driver PLUGIN --peer IP PORT   rank 1
#include <arpa/inet.h>
#include <dlfcn.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "net_table.h"

namespace uet::nccl {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kPairs = 4;        // communicators to the other rank, and as many from it
constexpr std::size_t kInFlight = 16;    // requests of each communicator
constexpr std::size_t kFlushBytes = 64;  // a flush reads so many, however short the message
constexpr unsigned kDeadlineSeconds = 240;
// Bytes of messages, in turn: around the limits of packets, of eager messages and of stripes.
constexpr std::size_t kSizes[] = {0,    1,    8,     64,     100,     4095,    4096,   4097,
                                  8191, 8192, 8193,  20000,  65536,   131072,  131073, 262144,
                                  3,    512,  70000, 999999, 1 << 20, 3 << 20, 5,      4 << 20};
constexpr std::size_t kLargest = 4 << 20;
constexpr std::size_t kMessages = 3 * std::size(kSizes);  // of each communicator

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "net_driver[%d]: %s\n", getpid(), what.c_str());
  std::exit(1);
}

void require(bool condition, const std::string& what) {
  if (!condition) fail(what);
}

void check(int result, const char* what) {
  require(result == kSuccess, std::string(what) + " returned " + std::to_string(result));
}

__attribute__((format(printf, 5, 6))) void log_message(int level, unsigned long /*flags*/,
                                                       const char* file, int line,
                                                       const char* format, ...) {
  if (level > kLogWarning && std::getenv("UET_NCCL_VERBOSE") == nullptr) return;
  va_list arguments;
  va_start(arguments, format);
  std::fprintf(stderr, "plug-in[%d] %s:%d ", getpid(), file, line);
  std::vfprintf(stderr, format, arguments);
  std::fputc('\n', stderr);
  va_end(arguments);
}

// ---- the other rank, beside the fabric ---------------------------------------------------------

class Sideband {
 public:
  explicit Sideband(int fd) : fd_(fd) {}
  template <class T>
  T exchange(const T& mine) {
    require(write(fd_, &mine, sizeof mine) == sizeof mine, "the other rank is gone");
    T theirs{};
    const auto got = recv(fd_, &theirs, sizeof theirs, MSG_WAITALL);
    require(got == sizeof theirs, "the other rank is gone");
    return theirs;
  }
  // Is there something of exchange to read?
  bool has_arrived() const {
    char byte = 0;
    const auto got = recv(fd_, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    require(got != 0, "the other rank is gone");
    return got == 1;
  }
  void say() { require(write(fd_, "", 1) == 1, "the other rank is gone"); }
  void hear() {
    char byte = 0;
    require(recv(fd_, &byte, 1, MSG_WAITALL) == 1, "the other rank is gone");
  }

 private:
  int fd_;
};

int listen_for_peer(std::uint16_t port) {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  const int on = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in any{};
  any.sin_family = AF_INET;
  any.sin_port = htons(port);
  require(bind(listener, reinterpret_cast<sockaddr*>(&any), sizeof any) == 0 &&
              listen(listener, 1) == 0,
          "cannot listen at this TCP port");
  return accept(listener, nullptr, nullptr);
}

int connect_to_peer(const char* ip, std::uint16_t port) {
  sockaddr_in there{};
  there.sin_family = AF_INET;
  there.sin_port = htons(port);
  require(inet_pton(AF_INET, ip, &there.sin_addr) == 1, "not an IPv4 address");
  for (;;) {  // until the deadline of the process
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(fd, reinterpret_cast<sockaddr*>(&there), sizeof there) == 0) return fd;
    close(fd);
    usleep(20'000);
  }
}

// ---- data --------------------------------------------------------------------------------------

std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ x >> 31) * 0x7FB5D329728EA185;
  x = (x ^ x >> 27) * 0x81DADEF4BC2DD44D;
  return x ^ x >> 33;
}

void fill(std::span<std::byte> memory, std::uint64_t seed) {
  std::uint64_t word = 0;
  for (std::size_t i = 0; i < memory.size(); ++i) {
    if (i % 8 == 0) word = mixed(seed * 0x9E3779B97F4A7C15 + i);
    memory[i] = static_cast<std::byte>(word >> i % 8 * 8);
  }
}

void require_filled(std::span<const std::byte> memory, std::uint64_t seed, const char* what) {
  std::vector<std::byte> expected(memory.size());
  fill(expected, seed);
  const auto wrong = std::mismatch(memory.begin(), memory.end(), expected.begin()).first;
  require(wrong == memory.end(), std::string(what) + " " + std::to_string(seed) + ": byte " +
                                     std::to_string(wrong - memory.begin()) + " is wrong");
}

constexpr std::byte kUntouched{0xEE};

// Of the receive for a message: some have more than comes.
std::size_t room_of(std::size_t number, std::size_t bytes) {
  return number % 3 == 0 ? std::min(kLargest, bytes + 64) : bytes;
}

// ---- communicators -----------------------------------------------------------------------------

// One way between two ranks: at this rank the sending or the receiving end, or both of the one
// with itself.
struct Link {
  void* sender = nullptr;
  void* receiver = nullptr;
  std::uint64_t id = 0;  // the same at both ends
};

using Handle = std::array<std::byte, kHandleBytes>;

class Rank {
 public:
  Rank(const NetTable& net, Sideband sideband, int rank)
      : net_(net), sideband_(sideband), rank_(rank) {}
  void run();

 private:
  struct Request {
    void* request = nullptr;
    std::size_t number = 0;  // of the message
    bool flushing = false;
  };
  // One end of a link and its requests in flight, each with a slot of the end's memory.
  struct End {
    Link* link = nullptr;
    bool sends = false;
    std::vector<std::byte> memory;
    void* region = nullptr;
    std::size_t next = 0;
    std::deque<Request> flying;
    std::size_t slot_bytes = 0;
    void* communicator() const { return sends ? link->sender : link->receiver; }
    std::span<std::byte> slot(std::size_t number) {
      return std::span(memory).subspan(number % kInFlight * slot_bytes, slot_bytes);
    }
  };

  void start();
  void connect_all();
  void make_ends(std::size_t slot_bytes);
  void drop_ends();
  bool start_next(End& end, std::size_t bytes);
  bool finish_oldest(End& end, std::size_t bytes, std::uint64_t seed, bool verify);
  void exchange_messages();
  void measure(std::size_t bytes, std::size_t count);
  void exchange_rma();
  void wait_for(void* request);
  template <class Post>
  void complete(const char* what, Post post);
  void meet();

  const NetTable& net_;
  Sideband sideband_;
  const int rank_;
  NetProperties properties_{};
  void* idle_listener_ = nullptr;
  std::vector<Link> links_;
  std::vector<std::unique_ptr<End>> ends_;
};

void Rank::start() {
  check(net_.init(log_message), "init");
  int devices = 0;
  check(net_.devices(&devices), "devices");
  require(devices > 0, "the plug-in has no device");
  check(net_.get_properties(0, &properties_), "getProperties");
  require(properties_.max_communicators >= static_cast<int>(2 * kPairs + 2), "too few maxComms");
  require(properties_.max_group >= 1 && properties_.max_group <= kMaxGroup, "maxRecvs is wrong");
  if (rank_ == 0) {
    std::printf("device %s of %d, %d Mb/s, grouped receives %d, RMA %s\n", properties_.name,
                devices, properties_.speed_mbps, properties_.max_group,
                properties_.has_rma != 0 ? "yes" : "no");
  }
}

// Every link is made at once, as ranks of a job do; the last one is to ourselves.
void Rank::connect_all() {
  Handle unused{};
  check(net_.listen(0, unused.data(), &idle_listener_), "listen");
  struct Pending {
    void* listener = nullptr;
    Handle mine{};
    Handle theirs{};
    Link out;
    Link in;
  };
  std::array<Pending, kPairs + 1> pending;
  for (std::size_t i = 0; i < pending.size(); ++i) {
    Pending& one = pending[i];
    check(net_.listen(0, one.mine.data(), &one.listener), "listen");
    const bool to_self = i == kPairs;
    one.theirs = to_self ? one.mine : sideband_.exchange(one.mine);
    const auto us = static_cast<std::uint64_t>(rank_);
    one.out.id = to_self ? 100 + us : i * 2 + us;
    one.in.id = to_self ? one.out.id : i * 2 + (1 - us);
  }
  for (bool all = false; !all;) {
    all = true;
    for (Pending& one : pending) {
      if (one.out.sender == nullptr) {
        check(net_.connect(0, one.theirs.data(), &one.out.sender), "connect");
      }
      if (one.in.receiver == nullptr) check(net_.accept(one.listener, &one.in.receiver), "accept");
      all = all && one.out.sender != nullptr && one.in.receiver != nullptr;
    }
  }
  for (Pending& one : pending) {
    check(net_.close_listen(one.listener), "closeListen");
    links_.push_back(one.out);
    links_.push_back(one.in);
  }
}

void Rank::make_ends(std::size_t slot_bytes) {
  for (Link& link : links_) {
    auto end = std::make_unique<End>();
    end->link = &link;
    end->sends = link.sender != nullptr;
    end->slot_bytes = std::max(slot_bytes, kFlushBytes);
    end->memory.resize(end->slot_bytes * kInFlight);
    check(net_.reg_mr(end->communicator(), end->memory.data(), end->memory.size(), kHostMemory,
                      &end->region),
          "regMr");
    ends_.push_back(std::move(end));
  }
}

void Rank::drop_ends() {
  for (const auto& end : ends_) {
    require(end->flying.empty(), "a request is left");
    check(net_.dereg_mr(end->communicator(), end->region), "deregMr");
  }
  ends_.clear();
}

// False: the plug-in says "not now". The plug-in gets copies of the arguments of a receive, because
// it changes them for receives of 0 bytes.
bool Rank::start_next(End& end, std::size_t bytes) {
  void* data = end.slot(end.next).data();
  void* region = end.region;
  void* request = nullptr;
  int size = static_cast<int>(bytes);
  int tag = 0;
  if (end.sends) {
    check(net_.isend(end.link->sender, data, size, tag, region, &request), "isend");
  } else {
    check(net_.irecv(end.link->receiver, 1, &data, &size, &tag, &region, &request), "irecv");
  }
  if (request == nullptr) return false;
  end.flying.push_back({request, end.next++, false});
  return true;
}

// Requests of a communicator end in order. A received message is flushed, then verified.
bool Rank::finish_oldest(End& end, std::size_t bytes, std::uint64_t seed, bool verify) {
  Request& oldest = end.flying.front();
  int done = 0;
  int moved = -1;
  check(net_.test(oldest.request, &done, &moved), "test");
  if (done == 0) return false;
  void* data = end.slot(oldest.number).data();
  if (!end.sends && !oldest.flushing) {
    require(moved == static_cast<int>(bytes), "message " + std::to_string(seed) + " has " +
                                                  std::to_string(moved) + " bytes, not " +
                                                  std::to_string(bytes));
    void* region = end.region;
    check(net_.iflush(end.link->receiver, 1, &data, &moved, &region, &oldest.request), "iflush");
    oldest.flushing = true;
    if (oldest.request != nullptr) return true;  // null: there is nothing to flush
  }
  if (!end.sends && verify) {
    const auto slot = end.slot(oldest.number);
    require_filled(slot.first(bytes), seed, "message");
    require(room_of(oldest.number, bytes) == bytes || slot[bytes] == kUntouched,
            "a message went beyond its end");
  }
  end.flying.pop_front();
  return true;
}

std::size_t size_of(const Link& link, std::size_t number) {
  return kSizes[(number + link.id * 5) % std::size(kSizes)];
}

// All links at once. Receives are posted late in every other third, so that messages come both
// before and after them, and may be larger than what comes.
void Rank::exchange_messages() {
  make_ends(kLargest);
  std::size_t open = 0;
  for (const auto& end : ends_) open += end->next < kMessages ? 1 : 0;
  std::size_t round = 0;
  while (open > 0) {
    open = 0;
    ++round;
    for (const auto& owned : ends_) {
      End& end = *owned;
      const auto seed_of = [&](std::size_t number) { return end.link->id * 10'000 + number; };
      const bool late = !end.sends && end.next / std::size(kSizes) == 1 && round % 64 != 0;
      if (end.next < kMessages && end.flying.size() < kInFlight && !late) {
        const std::size_t bytes = size_of(*end.link, end.next);
        const std::span<std::byte> slot = end.slot(end.next);
        if (end.sends) {
          fill(slot.first(bytes), seed_of(end.next));
          start_next(end, bytes);
        } else {
          const std::size_t room = room_of(end.next, bytes);
          std::fill_n(slot.begin(), room, kUntouched);
          start_next(end, room);
        }
      }
      while (!end.flying.empty()) {
        const std::size_t number = end.flying.front().number;
        if (!finish_oldest(end, size_of(*end.link, number), seed_of(number), true)) break;
      }
      if (end.next < kMessages || !end.flying.empty()) ++open;
    }
  }
  drop_ends();
}

// One link, one way, from rank 0.
void Rank::measure(std::size_t bytes, std::size_t count) {
  make_ends(bytes);
  const auto mine =
      std::find_if(ends_.begin(), ends_.end(), [](const auto& end) { return end->link->id == 0; });
  meet();
  const auto start = Clock::now();
  for (End& end = **mine; end.next < count || !end.flying.empty();) {
    if (end.next < count && end.flying.size() < kInFlight) start_next(end, bytes);
    while (!end.flying.empty() && finish_oldest(end, bytes, 0, false)) {
    }
  }
  meet();
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  if (rank_ == 0) {
    std::printf("%zu x %zu bytes, %zu in flight: %.1f us each, %.1f MB/s\n", count, bytes,
                kInFlight, seconds / static_cast<double>(count) * 1e6,
                static_cast<double>(bytes * count) / seconds / 1e6);
  }
  drop_ends();
}

void Rank::wait_for(void* request) {
  for (int done = 0; done == 0;) {
    int bytes = 0;
    check(net_.test(request, &done, &bytes), "test");
  }
}

template <class Post>
void Rank::complete(const char* what, Post post) {
  void* request = nullptr;
  while (request == nullptr) check(post(&request), what);
  wait_for(request);
}

// Writes, short writes and reads on every sending and receiving end, against the other end's
// memory.
void Rank::exchange_rma() {
  if (properties_.has_rma == 0) return;
  constexpr std::size_t kBytes = 300'000;
  struct Place {
    std::uint64_t address;
    std::uint64_t key;
  };
  make_ends(3 * kBytes);
  for (std::size_t i = 0; i < ends_.size(); i += 2) {
    End& out = *ends_[i];
    End& in = *ends_[i + 1];
    const bool to_self = i + 2 == ends_.size();
    // The plug-in hands the address through as it is; over uet it is an offset in the region.
    const auto place = [&](End& end) {
      Place at{0, 0};
      check(net_.get_mr_key(end.region, &at.key), "getMrKey");
      return at;
    };
    fill(std::span(out.memory).subspan(kBytes, kBytes), out.link->id);  // what reads find
    const Place my_in = place(in);
    const Place my_out = place(out);
    const Place there = to_self ? my_in : sideband_.exchange(my_in);
    const Place source = to_self ? my_out : sideband_.exchange(my_out);
    fill(std::span(out.memory).first(kBytes), out.link->id + 500);
    complete("iwrite", [&](void** request) {
      return net_.iwrite(out.link->sender, out.memory.data(), kBytes, out.region, there.address,
                         there.key, request);
    });
    const std::size_t short_bytes = std::min<std::size_t>(properties_.max_inline_write, 32);
    if (short_bytes != 0) {
      complete("iwriteInline", [&](void** request) {
        return net_.iwrite_inline(out.link->sender, out.memory.data(), short_bytes,
                                  there.address + kBytes, there.key, request);
      });
    }
    complete("iread", [&](void** request) {
      return net_.iread(in.link->receiver, in.memory.data() + 2 * kBytes, kBytes, in.region,
                        source.address + kBytes, source.key, request);
    });
    require_filled(std::span(in.memory).subspan(2 * kBytes, kBytes), in.link->id, "read");
    if (!to_self) meet();
    require_filled(std::span(in.memory).first(kBytes), in.link->id + 500, "write");
    require_filled(std::span(in.memory).subspan(kBytes, short_bytes), in.link->id + 500,
                   "short write");
  }
  meet();
  drop_ends();
}

// Both ranks arrive. Meanwhile our plug-in must answer the other rank, and it makes progress in its
// calls alone: accept from a listener that no rank connects to changes nothing else.
void Rank::meet() {
  sideband_.say();
  while (!sideband_.has_arrived()) {
    void* nobody = nullptr;
    check(net_.accept(idle_listener_, &nobody), "accept");
    require(nobody == nullptr, "accepted a connection without a handle");
  }
  sideband_.hear();
}

void Rank::run() {
  start();
  connect_all();
  exchange_messages();
  meet();
  exchange_rma();
  measure(8, 2000);
  measure(1 << 20, 200);
  for (const Link& link : links_) {
    if (link.sender != nullptr) check(net_.close_send(link.sender), "closeSend");
    if (link.receiver != nullptr) check(net_.close_recv(link.receiver), "closeRecv");
  }
  meet();
  check(net_.close_listen(idle_listener_), "closeListen");
  check(net_.fini(), "fini");
}

int run_rank(const char* plugin, int fd, int rank) {
  alarm(kDeadlineSeconds);
  void* library = dlopen(plugin, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) fail(dlerror());
  const auto* net = static_cast<const NetTable*>(dlsym(library, kTableSymbol));
  require(net != nullptr, std::string("the plug-in has no ") + kTableSymbol);
  Rank(*net, Sideband(fd), rank).run();
  std::printf("rank %d: %zu messages on each of %zu communicators, all as sent\n", rank, kMessages,
              2 * kPairs + 2);
  return 0;
}

int run_both(const char* plugin) {
  int fds[2];
  require(socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0, "socketpair");
  const pid_t child = fork();
  require(child >= 0, "fork");
  close(fds[child == 0 ? 0 : 1]);
  if (child == 0) return run_rank(plugin, fds[1], 1);
  run_rank(plugin, fds[0], 0);
  int status = 0;
  require(waitpid(child, &status, 0) == child, "waitpid");
  return status == 0 ? 0 : 1;
}

int run(std::span<char*> arguments) {
  const auto port = [&](std::size_t i) {
    return static_cast<std::uint16_t>(std::atoi(arguments[i]));
  };
  if (arguments.size() == 2) return run_both(arguments[1]);
  if (arguments.size() == 4 && std::strcmp(arguments[2], "--serve") == 0) {
    return run_rank(arguments[1], listen_for_peer(port(3)), 0);
  }
  if (arguments.size() == 5 && std::strcmp(arguments[2], "--peer") == 0) {
    return run_rank(arguments[1], connect_to_peer(arguments[3], port(4)), 1);
  }
  std::fprintf(stderr, "use: net_driver PLUGIN [--serve PORT | --peer IP PORT]\n");
  return 2;
}

}  // namespace
}  // namespace uet::nccl

int main(int count, char** arguments) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  return uet::nccl::run({arguments, static_cast<std::size_t>(count)});
}
