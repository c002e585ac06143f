// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// How the rate of one process grows with its threads. Each thread has an endpoint of its own in one
// domain and its peer in another, with a queue each, and does the work of both ends: its processor
// carries the load of the peer, too.
//
//   uet_bench_threads --threads 2 --mode rate|write --size 8 --window 64 --milliseconds 1000
//   --operations N   of each thread, as fast as they go, instead of a time: to count instructions
//   --peers N        all threads use one endpoint, with N peers, which they divide among them
//
// Prints the operations per second of all threads, and the processor time of an operation.
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <sched.h>
#include <sys/resource.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kKey = 7;

struct Options {
  std::size_t threads = 1;
  bool writes = false;
  std::size_t size = 8;
  std::size_t window = 64;
  std::uint64_t milliseconds = 1000;
  std::uint64_t operations = UINT64_MAX;
  std::size_t peers = 0;  // 0: an endpoint and a peer for each thread
};

ssize_t check(ssize_t result, const char* what) {
  if (result >= 0) return result;
  throw std::runtime_error(std::string(what) + ": " + fi_strerror(static_cast<int>(-result)));
}

struct Close {
  template <class T>
  void operator()(T* object) const {
    fi_close(&object->fid);
  }
};
template <class T>
using Owned = std::unique_ptr<T, Close>;

template <class Fid, class Call>
Owned<Fid> open(const char* what, Call call) {
  Fid* object = nullptr;
  check(call(&object), what);
  return Owned<Fid>(object);
}

struct FreeInfo {
  void operator()(fi_info* info) const { fi_freeinfo(info); }
};

// One domain with an address vector.
struct Side {
  Side() {
    const std::unique_ptr<fi_info, FreeInfo> hints(fi_allocinfo());
    hints->fabric_attr->prov_name = strdup("uet");
    hints->ep_attr->type = FI_EP_RDM;
    hints->caps = FI_MSG | FI_RMA;
    hints->domain_attr->threading = FI_THREAD_SAFE;
    fi_info* found = nullptr;
    check(fi_getinfo(FI_VERSION(1, 17), "127.0.0.1", nullptr, FI_SOURCE, hints.get(), &found),
          "fi_getinfo");
    info.reset(found);
    fabric = open<fid_fabric>(
        "fi_fabric", [&](fid_fabric** out) { return fi_fabric(info->fabric_attr, out, nullptr); });
    domain = open<fid_domain>("fi_domain", [&](fid_domain** out) {
      return fi_domain(fabric.get(), info.get(), out, nullptr);
    });
    fi_av_attr attr{};
    attr.type = FI_AV_TABLE;
    av = open<fid_av>("fi_av_open",
                      [&](fid_av** out) { return fi_av_open(domain.get(), &attr, out, nullptr); });
  }
  std::unique_ptr<fi_info, FreeInfo> info;
  Owned<fid_fabric> fabric;
  Owned<fid_domain> domain;
  Owned<fid_av> av;
};

Owned<fid_cq> open_queue(Side& side) {
  fi_cq_attr attr{};
  attr.format = FI_CQ_FORMAT_CONTEXT;
  return open<fid_cq>("fi_cq_open", [&](fid_cq** out) {
    return fi_cq_open(side.domain.get(), &attr, out, nullptr);
  });
}

// An endpoint with a queue, which may be that of others, too.
struct End {
  explicit End(Side& side, std::shared_ptr<fid_cq> its_queue) : queue(std::move(its_queue)) {
    ep = open<fid_ep>("fi_endpoint", [&](fid_ep** out) {
      return fi_endpoint(side.domain.get(), side.info.get(), out, nullptr);
    });
    check(fi_ep_bind(ep.get(), &side.av->fid, 0), "fi_ep_bind");
    check(fi_ep_bind(ep.get(), &queue->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
    check(fi_enable(ep.get()), "fi_enable");
  }
  fi_addr_t in(Side& side) {
    std::array<std::byte, 256> name;
    std::size_t length = name.size();
    check(fi_getname(&ep->fid, name.data(), &length), "fi_getname");
    fi_addr_t address = FI_ADDR_UNSPEC;
    check(fi_av_insert(side.av.get(), name.data(), 1, &address, 0, nullptr) - 1, "fi_av_insert");
    return address;
  }
  std::shared_ptr<fid_cq> queue;
  Owned<fid_ep> ep;
};

// The operations that have ended since the last call; use(void* context) for each.
template <class Use>
std::size_t take(fid_cq& queue, Use use) {
  std::array<fi_cq_entry, 64> entries;
  const ssize_t result = fi_cq_read(&queue, entries.data(), entries.size());
  const std::size_t taken =
      result == -FI_EAGAIN ? 0 : static_cast<std::size_t>(check(result, "fi_cq_read"));
  for (std::size_t i = 0; i < taken; ++i) use(entries[i].op_context);
  return taken;
}

// Memory that begins a page, so that copies cost the same in all runs.
class Pages {
 public:
  explicit Pages(std::size_t bytes)
      : size_((bytes + kPage - 1) / kPage * kPage),
        first_(static_cast<std::byte*>(std::aligned_alloc(kPage, size_))) {
    if (first_ == nullptr) throw std::bad_alloc();
    std::memset(first_.get(), 0, size_);
  }
  std::byte* data() const { return first_.get(); }
  std::size_t size() const { return size_; }

 private:
  static constexpr std::size_t kPage = 4096;
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  std::size_t size_;
  std::unique_ptr<std::byte, Free> first_;
};

// A peer of one thread, with the memory for its operations.
class Peer {
 public:
  Peer(const Options& options, Side& a, Side& b, std::shared_ptr<fid_cq> queue)
      : options_(options),
        at_(b, std::move(queue)),
        to_(at_.in(a)),
        bytes_(options.size),
        into_(options.size * (options.writes ? 1 : 2 * options.window)) {
    static std::atomic<std::uint64_t> next_key{kKey};
    key_ = next_key++;
    region_ = open<fid_mr>("fi_mr_reg", [&](fid_mr** out) {
      return fi_mr_reg(b.domain.get(), into_.data(), into_.size(), FI_REMOTE_WRITE, 0, key_, 0, out,
                       nullptr);
    });
    if (options.writes) return;
    for (std::size_t i = 0; i < 2 * options.window; ++i) post_receive();
  }

  // Operations of `from` until as many are under way as the options say.
  void fill(fid_ep& from) {
    for (; under_way_.load(std::memory_order_relaxed) < options_.window; ++under_way_) {
      const ssize_t result =
          options_.writes
              ? fi_write(&from, bytes_.data(), options_.size, nullptr, to_, 0, key_, this)
              : fi_send(&from, bytes_.data(), options_.size, nullptr, to_, this);
      if (result == -FI_EAGAIN) return;
      check(result, "post");
    }
  }
  void sent() { --under_way_; }
  void post_receive() {
    std::byte* const slot = into_.data() + received_++ % (2 * options_.window) * options_.size;
    check(fi_recv(at_.ep.get(), slot, options_.size, nullptr, FI_ADDR_UNSPEC, this), "fi_recv");
  }

 private:
  const Options& options_;
  End at_;
  fi_addr_t to_;
  Pages bytes_;
  Pages into_;
  std::uint64_t key_ = 0;
  Owned<fid_mr> region_;
  std::size_t received_ = 0;
  alignas(64) std::atomic<std::size_t> under_way_{0};
};

// One thread with both ends: an endpoint, which may be that of other threads, too, and its peers.
class Lane {
 public:
  Lane(const Options& options, std::shared_ptr<End> from, Side& b)
      : options_(options), from_(std::move(from)), received_(open_queue(b)) {}
  void add_peer(Side& a, Side& b) {
    peers_.push_back(std::make_unique<Peer>(options_, a, b, received_));
  }

  // Until `stop`, or as many operations as the options say.
  void run(const std::atomic<bool>& stop) {
    while (!stop.load(std::memory_order_relaxed) && done() < options_.operations) step();
  }
  std::uint64_t done() const { return done_.load(std::memory_order_relaxed); }

 private:
  void step() {
    for (const auto& peer : peers_) peer->fill(*from_->ep);
    take(*received_, [&](void* peer) {
      if (!options_.writes) static_cast<Peer*>(peer)->post_receive();
    });
    const std::size_t sent =
        take(*from_->queue, [](void* peer) { static_cast<Peer*>(peer)->sent(); });
    done_.store(done() + sent, std::memory_order_relaxed);
  }

  const Options& options_;
  std::shared_ptr<End> from_;
  std::shared_ptr<fid_cq> received_;
  std::vector<std::unique_ptr<Peer>> peers_;
  alignas(64) std::atomic<std::uint64_t> done_{0};
};

// Thread i has the i-th processor that the process may use.
void pin(std::size_t number) {
  cpu_set_t all;
  if (::sched_getaffinity(0, sizeof all, &all) != 0) return;
  std::size_t left = number % static_cast<std::size_t>(CPU_COUNT(&all));
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &all) || left-- > 0) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    ::sched_setaffinity(0, sizeof one, &one);
    return;
  }
}

double processor_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

void measure(const Options& options) {
  Side a;
  Side b;
  std::vector<std::unique_ptr<Lane>> lanes;
  std::shared_ptr<End> from;
  for (std::size_t i = 0; i < options.threads; ++i) {
    if (from == nullptr || options.peers == 0) from = std::make_shared<End>(a, open_queue(a));
    lanes.push_back(std::make_unique<Lane>(options, from, b));
  }
  // Entries of the address vector in the order in which a domain divides them among its engines.
  const std::size_t peers = options.peers != 0 ? options.peers : options.threads;
  for (std::size_t i = 0; i < peers; ++i) lanes[i % options.threads]->add_peer(a, b);
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < options.threads; ++i) {
    threads.emplace_back([&, i] {
      pin(i);
      try {
        lanes[i]->run(stop);
      } catch (const std::exception& error) {
        std::fprintf(stderr, "uet_bench_threads: %s\n", error.what());
        std::_Exit(1);
      }
    });
  }
  if (options.operations != UINT64_MAX) {
    for (std::thread& thread : threads) thread.join();
    return;
  }
  const auto done = [&] {
    std::uint64_t sum = 0;
    for (const auto& lane : lanes) sum += lane->done();
    return sum;
  };
  std::this_thread::sleep_for(std::chrono::milliseconds(200));  // PDCs and pools are set up
  const std::uint64_t before = done();
  const double processor_before = processor_seconds();
  const auto start = Clock::now();
  std::this_thread::sleep_for(std::chrono::milliseconds(options.milliseconds));
  const auto operations = static_cast<double>(done() - before);
  const std::chrono::duration<double> time = Clock::now() - start;
  const double processor = processor_seconds() - processor_before;
  stop = true;
  for (std::thread& thread : threads) thread.join();
  std::printf(
      "result: %.0f operations/s %.1f MB/s processor_us=%.3f processors=%.2f threads=%zu "
      "mode=%s size=%zu peers=%zu\n",
      operations / time.count(),
      operations * static_cast<double>(options.size) / 1e6 / time.count(),
      processor * 1e6 / operations, processor / time.count(), options.threads,
      options.writes ? "write" : "rate", options.size, peers);
}

Options read_options(int argc, char** argv) {
  Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view name = argv[i];
    const std::uint64_t number = std::strtoull(argv[i + 1], nullptr, 10);
    if (name == "--threads") options.threads = number;
    if (name == "--mode") options.writes = std::string_view(argv[i + 1]) == "write";
    if (name == "--size") options.size = number;
    if (name == "--window") options.window = number;
    if (name == "--milliseconds") options.milliseconds = number;
    if (name == "--operations") options.operations = number;
    if (name == "--peers") options.peers = number;
  }
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    measure(read_options(argc, argv));
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "uet_bench_threads: %s\n", error.what());
    return 1;
  }
}
