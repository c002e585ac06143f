// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// No memory: each call is made with its first, second, third ... allocation failing, until it makes
// fewer. It must refuse (control calls with -FI_ENOMEM, data calls with -FI_EAGAIN) or work, never
// end the process, and afterwards everything works.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <rdma/fi_trigger.h>
#include <rdma/providers/fi_prov.h>

#include <cerrno>
#include <cstdlib>
#include <functional>
#include <optional>
#include <utility>

#include "cm_pair.h"
#include "objects.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define UET_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define UET_SANITIZED 1
#endif
#endif

#ifdef UET_SANITIZED
TEST(NoMemory, IsNotTriedWithSanitizers) { GTEST_SKIP() << "they have their own malloc"; }
#else
// These functions replace those of the C library, for all libraries of this program.
extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
}

namespace {

// The allocation of this thread that fails next; 0: none does.
thread_local long failing = 0;

bool fails() {
  if (failing <= 0 || --failing > 0) return false;
  failing = -1;  // it has
  errno = ENOMEM;
  return true;
}

}  // namespace

extern "C" {
#define UET_SHOWN __attribute__((visibility("default")))
UET_SHOWN void* malloc(std::size_t bytes) { return fails() ? nullptr : __libc_malloc(bytes); }
UET_SHOWN void* calloc(std::size_t count, std::size_t bytes) {
  return fails() ? nullptr : __libc_calloc(count, bytes);
}
UET_SHOWN void* realloc(void* memory, std::size_t bytes) {
  return fails() ? nullptr : __libc_realloc(memory, bytes);
}
UET_SHOWN void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  return fails() ? nullptr : __libc_memalign(alignment, bytes);
}
UET_SHOWN int posix_memalign(void** out, std::size_t alignment, std::size_t bytes) {
  *out = fails() ? nullptr : __libc_memalign(alignment, bytes);
  return *out != nullptr ? 0 : ENOMEM;
}
}

namespace uet::e2e {
namespace {

constexpr long kMost = 20'000;

// `call` gives 0 or a negative error, of which `allowed` is one; `undo` takes back what it did.
// Returns how many allocations it makes.
long sweep(const char* what, int allowed, const std::function<int()>& call,
           const std::function<void()>& undo) {
  for (long number = 1; number < kMost; ++number) {
    failing = number;
    const int result = call();
    const bool made_fewer = failing > 0;
    failing = 0;
    require(result == 0 || result == allowed || (result == -FI_EAGAIN && allowed == -FI_ENOMEM),
            std::string(what) + ", allocation " + std::to_string(number) + " fails: gives " +
                std::to_string(result));
    if (result == 0) undo();
    if (made_fewer) {
      require(result == 0, std::string(what) + " fails with memory");
      return number - 1;
    }
  }
  require(false, std::string(what) + ": too many allocations");
  return 0;
}

// Both get on until the two completions of a message have come, good or bad.
void finish(Side& a, Side& b, const char* what) {
  int sent = 0;
  int received = 0;
  const Clock::time_point start = Clock::now();
  while (sent == 0 || received == 0) {
    if (a.poll()) ++sent;
    if (b.poll()) ++received;
    require(Clock::now() - start < kDeadline, std::string(what) + ": no completion came");
  }
}

void open_objects() {
  Side a;
  const auto ep = a.open_endpoint(0);
  fid_domain* domain = nullptr;
  sweep(
      "fi_domain", -FI_ENOMEM,
      [&] { return fi_domain(a.fabric.get(), a.info.get(), &domain, nullptr); },
      [&] { check(fi_close(&domain->fid), "closing the domain"); });
  fid_ep* endpoint = nullptr;
  const auto close_endpoint = [&] { check(fi_close(&endpoint->fid), "closing the endpoint"); };
  sweep(
      "fi_endpoint", -FI_ENOMEM,
      [&] { return fi_endpoint(a.domain.get(), a.info.get(), &endpoint, nullptr); },
      close_endpoint);
  sweep(
      "fi_scalable_ep", -FI_ENOMEM,
      [&] { return fi_scalable_ep(a.domain.get(), a.info.get(), &endpoint, nullptr); },
      close_endpoint);
  sweep(
      "fi_srx_context", -FI_ENOMEM,
      [&] { return fi_srx_context(a.domain.get(), a.info->rx_attr, &endpoint, nullptr); },
      close_endpoint);
  Owned<fid_ep> srx;
  Side::open(srx, "fi_srx_context", [&](auto** out) {
    return fi_srx_context(a.domain.get(), a.info->rx_attr, out, nullptr);
  });
  sweep(
      "bind and enable", -FI_ENOMEM,
      [&] {
        int result = fi_endpoint(a.domain.get(), a.info.get(), &endpoint, nullptr);
        if (result != 0) return result;
        for (fid* object : {&a.av->fid, &srx->fid}) {
          if (result == 0) result = fi_ep_bind(endpoint, object, 0);
        }
        if (result == 0) result = fi_ep_bind(endpoint, &a.cq->fid, FI_TRANSMIT | FI_RECV);
        if (result == 0) result = fi_enable(endpoint);
        if (fi_close(&endpoint->fid) != 0) std::abort();  // a text would need memory
        return result;
      },
      [] {});
  // A bind that was refused for lack of memory is made again.
  for (long number = 1, left = 0; left == 0; ++number) {
    check(fi_endpoint(a.domain.get(), a.info.get(), &endpoint, nullptr), "fi_endpoint");
    failing = number;
    const int result = fi_ep_bind(endpoint, &srx->fid, 0);
    left = failing > 0 ? 1 : 0;
    failing = 0;
    if (result != 0) check(fi_ep_bind(endpoint, &srx->fid, 0), "binding once more");
    check(fi_ep_bind(endpoint, &a.av->fid, 0), "binding the AV");
    check(fi_ep_bind(endpoint, &a.cq->fid, FI_TRANSMIT | FI_RECV), "binding the CQ");
    check(fi_enable(endpoint), "fi_enable");
    close_endpoint();
  }
  fid_stx* stx = nullptr;
  sweep(
      "fi_stx_context", -FI_ENOMEM,
      [&] { return fi_stx_context(a.domain.get(), a.info->tx_attr, &stx, nullptr); },
      [&] { fi_close(&stx->fid); });
  fid_ep* alias = nullptr;
  sweep(
      "fi_ep_alias", -FI_ENOMEM, [&] { return fi_ep_alias(ep.get(), &alias, FI_TRANSMIT); },
      [&] { fi_close(&alias->fid); });
  fid_av* av = nullptr;
  fi_av_attr av_attr{};
  sweep(
      "fi_av_open", -FI_ENOMEM, [&] { return fi_av_open(a.domain.get(), &av_attr, &av, nullptr); },
      [&] { fi_close(&av->fid); });
  const auto name = Side::name_of(*ep);
  fi_addr_t address = FI_ADDR_UNSPEC;
  sweep(
      "fi_av_insert", -FI_ENOMEM,
      [&] {
        const int result = fi_av_insert(a.av.get(), name.data(), 1, &address, 0, nullptr);
        return result == 1 ? 0 : result < 0 ? result : -FI_ENOMEM;
      },
      [&] { fi_av_remove(a.av.get(), &address, 1, 0); });
  fid_cntr* counter = nullptr;
  fi_cntr_attr counter_attr{};
  counter_attr.wait_obj = FI_WAIT_FD;
  sweep(
      "fi_cntr_open", -FI_ENOMEM,
      [&] { return fi_cntr_open(a.domain.get(), &counter_attr, &counter, nullptr); },
      [&] { fi_close(&counter->fid); });
  fid_eq* eq = nullptr;
  fi_eq_attr eq_attr{};
  eq_attr.wait_obj = FI_WAIT_FD;
  eq_attr.flags = FI_WRITE;
  sweep(
      "fi_eq_open and fi_eq_write", -FI_ENOMEM,
      [&] {
        int result = fi_eq_open(a.fabric.get(), &eq_attr, &eq, nullptr);
        if (result != 0) return result;
        const fi_eq_entry entry{};
        const ssize_t written = fi_eq_write(eq, FI_NOTIFY, &entry, sizeof entry, 0);
        if (written < 0) fi_close(&eq->fid);
        return written < 0 ? static_cast<int>(written) : 0;
      },
      [&] { fi_close(&eq->fid); });
  fid_wait* set = nullptr;
  fi_wait_attr set_attr{};
  set_attr.wait_obj = FI_WAIT_FD;
  sweep(
      "fi_wait_open", -FI_ENOMEM, [&] { return fi_wait_open(a.fabric.get(), &set_attr, &set); },
      [&] { fi_close(&set->fid); });
  fid_poll* poll_set = nullptr;
  fi_poll_attr poll_attr{};
  sweep(
      "fi_poll_open", -FI_ENOMEM,
      [&] { return fi_poll_open(a.domain.get(), &poll_attr, &poll_set); },
      [&] { fi_close(&poll_set->fid); });
  fid_mr* mr = nullptr;
  char memory[64];
  sweep(
      "fi_mr_reg", -FI_ENOMEM,
      [&] {
        return fi_mr_reg(a.domain.get(), memory, sizeof memory, FI_REMOTE_READ, 0, 5, 0, &mr,
                         nullptr);
      },
      [&] { fi_close(&mr->fid); });
  const iovec piece{memory, sizeof memory};
  fi_mr_attr mr_attr{};
  mr_attr.mr_iov = &piece;
  mr_attr.iov_count = 1;
  mr_attr.access = FI_REMOTE_WRITE;
  mr_attr.requested_key = 6;
  sweep(
      "fi_mr_regattr", -FI_ENOMEM, [&] { return fi_mr_regattr(a.domain.get(), &mr_attr, 0, &mr); },
      [&] { fi_close(&mr->fid); });
  fid_cq* cq = nullptr;
  fi_cq_attr attr{};
  attr.wait_obj = FI_WAIT_FD;
  sweep(
      "fi_cq_open", -FI_ENOMEM, [&] { return fi_cq_open(a.domain.get(), &attr, &cq, nullptr); },
      [&] { fi_close(&cq->fid); });
}

// A domain of its own for each allocation that fails: all is new to both.
void talk_for_the_first_time() {
  char in = 0;
  for (long number = 1, left = 0; left == 0; ++number) {
    require(number < kMost, "too many allocations");
    Side a;
    Side b;
    const auto from = a.open_endpoint(0);
    const auto to = b.open_endpoint(0);
    const fi_addr_t address = a.insert(*to);
    check(fi_trecv(to.get(), &in, 1, nullptr, FI_ADDR_UNSPEC, 7, 0, nullptr), "fi_trecv");
    failing = number;
    ssize_t result = fi_tsend(from.get(), "x", 1, nullptr, address, 7, nullptr);
    for (int pass = 0; pass < 20; ++pass) {  // and what the target allocates for a new peer
      fi_cq_read(b.cq.get(), nullptr, 0);
      fi_cq_read(a.cq.get(), nullptr, 0);
    }
    left = failing > 0 ? 1 : 0;
    failing = 0;
    require(result == 0 || result == -FI_EAGAIN, "fi_tsend gives " + std::to_string(result));
    const Clock::time_point start = Clock::now();
    while (result == -FI_EAGAIN) {
      result = fi_tsend(from.get(), "x", 1, nullptr, address, 7, nullptr);
      require(Clock::now() - start < kDeadline, "FI_EAGAIN until the deadline");
    }
    finish(a, b, "a message to a new peer");
  }
}

// The first long unexpected message, write, read and atomic of two domains. Each operation is
// posted again when it is refused, and completes.
void work_for_the_first_time() {
  constexpr std::size_t kLong = 300'000;
  std::vector<std::byte> out(kLong);
  std::vector<std::byte> in(kLong);
  std::vector<std::byte> region(kLong);
  fill_pattern(out, 1);
  for (long number = 1, left = 0; left == 0; ++number) {
    require(number < kMost, "too many allocations");
    Side a;
    Side b;
    const auto from = a.open_endpoint(0);
    const auto to = b.open_endpoint(0);
    const fi_addr_t address = a.insert(*to);
    fid_mr* registered = nullptr;
    check(fi_mr_reg(b.domain.get(), region.data(), kLong, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 5, 0,
                    &registered, nullptr),
          "fi_mr_reg");
    const Owned<fid_mr> mr(registered);
    std::uint64_t one = 1;
    const std::function<ssize_t()> posts[] = {
        [&] { return fi_tsend(from.get(), out.data(), kLong, nullptr, address, 7, nullptr); },
        [&] { return fi_write(from.get(), out.data(), 100, nullptr, address, 0, 5, nullptr); },
        [&] { return fi_read(from.get(), in.data(), 5000, nullptr, address, 0, 5, nullptr); },
        [&] {
          return fi_atomic(from.get(), &one, 1, nullptr, address, 8, 5, FI_UINT64, FI_SUM, nullptr);
        }};
    ssize_t results[std::size(posts)] = {};
    failing = number;
    for (std::size_t i = 0; i < std::size(posts); ++i) results[i] = posts[i]();
    for (int pass = 0; pass < 20; ++pass) {
      fi_cq_read(b.cq.get(), nullptr, 0);
      fi_cq_read(a.cq.get(), nullptr, 0);
    }
    left = failing > 0 ? 1 : 0;
    failing = 0;
    const Clock::time_point start = Clock::now();
    for (std::size_t i = 0; i < std::size(posts); ++i) {
      while (results[i] == -FI_EAGAIN) {
        results[i] = posts[i]();
        require(Clock::now() - start < kDeadline, "FI_EAGAIN until the deadline");
      }
      require(results[i] == 0,
              "post " + std::to_string(i) + " gives " + std::to_string(results[i]));
    }
    check(fi_trecv(to.get(), in.data(), kLong, nullptr, FI_ADDR_UNSPEC, 7, 0, nullptr), "fi_trecv");
    std::size_t done = 0;
    for (bool received = false; done < std::size(posts) || !received;) {
      if (const auto event = a.poll()) {
        check(event->error, "an operation");
        ++done;
      }
      if (const auto event = b.poll()) received = event->error == 0;
      require(Clock::now() - start < kDeadline, "no completion came");
    }
  }
}

// Calls of connections. The other side and the clean-up have their memory.
class WithMemory {
 public:
  WithMemory() : kept_(failing) { failing = 0; }
  ~WithMemory() { failing = kept_; }
  WithMemory(const WithMemory&) = delete;
  WithMemory& operator=(const WithMemory&) = delete;

 private:
  long kept_;
};

void connect_endpoints() {
  Pair pair;
  const auto clear_events = [&] {
    for (int i = 0; i < 100; ++i) {
      pair.progress();
      while (poll_eq(*pair.server.eq)) continue;
      while (poll_eq(*pair.client.eq)) continue;
    }
  };
  sweep(
      "fi_passive_ep and fi_listen", -FI_ENOMEM,
      [&] {
        fid_pep* pep = nullptr;
        int result = fi_passive_ep(pair.server.fabric.get(), pair.server.info.get(), &pep, nullptr);
        if (result != 0) return result;
        result = fi_pep_bind(pep, &pair.server.eq->fid, 0);
        if (result == 0) result = fi_listen(pep);
        const WithMemory with;
        fi_close(&pep->fid);
        return result;
      },
      [] {});
  sweep(
      "fi_connect", -FI_ENOMEM,
      [&] {
        std::optional<WithMemory> with(std::in_place);
        pair.client.ep = pair.client.open_endpoint(*pair.client.info);
        with.reset();
        const int result = fi_connect(pair.client.ep.get(), &pair.address, "data", 4);
        with.emplace();
        pair.client.ep.reset();
        clear_events();
        return result;
      },
      [] {});
  sweep(
      "fi_accept", -FI_ENOMEM,
      [&] {
        std::optional<WithMemory> with(std::in_place);
        pair.connect();
        pair.open_acceptor(pair.request());
        with.reset();
        const int result = fi_accept(pair.server.ep.get(), "data", 4);
        with.emplace();
        pair.server.ep.reset();
        pair.client.ep.reset();
        clear_events();
        return result;
      },
      [] {});
}

void defer_work() {
  NodeOptions options;
  options.capabilities = FI_MSG | FI_TRIGGER;
  options.counters = true;
  Node node(options);
  const fi_addr_t self = node.insert(node.name());
  char text[] = "text";
  const iovec iov{text, sizeof text};
  fi_op_msg op{};
  op.ep = node.ep.get();
  op.msg.msg_iov = &iov;
  op.msg.iov_count = 1;
  op.msg.addr = self;
  fi_deferred_work work{};
  work.threshold = 1;
  work.triggering_cntr = node.received.get();
  work.completion_cntr = node.sent.get();
  work.op_type = FI_OP_SEND;
  work.op.msg = &op;
  op.msg.context = &work.context;
  sweep(
      "FI_QUEUE_WORK", -FI_ENOMEM,
      [&] { return static_cast<int>(fi_control(&node.domain->fid, FI_QUEUE_WORK, &work)); },
      [&] { check(fi_control(&node.domain->fid, FI_FLUSH_WORK, nullptr), "FI_FLUSH_WORK"); });
}

// The entry function, as libfabric calls it when it loads the plug-in, and what it tells.
void load() {
  const std::string file = std::string(std::getenv("FI_PROVIDER_PATH")) + "/libuet-fi.so";
  void* const library = ::dlopen(file.c_str(), RTLD_NOW);
  require(library != nullptr, "cannot load " + file);
  const auto entry = reinterpret_cast<fi_provider* (*)()>(::dlsym(library, "fi_prov_ini"));
  sweep(
      "fi_prov_ini", -FI_ENOMEM, [&] { return entry() != nullptr ? 0 : -FI_ENOMEM; }, [] {});
  const fi_provider* const uet = entry();
  fi_info* found = nullptr;
  sweep(
      "fi_getinfo", -FI_ENOMEM,
      [&] {
        const int result = uet->getinfo(FI_VERSION(1, 17), nullptr, nullptr, 0, nullptr, &found);
        return result == -FI_ENODATA ? -FI_ENOMEM : result;  // the C library lists no interface
      },
      [&] { fi_freeinfo(found); });
  check(uet->getinfo(FI_VERSION(1, 17), nullptr, nullptr, 0, nullptr, &found), "fi_getinfo");
  fid_fabric* fabric = nullptr;
  sweep(
      "fi_fabric", -FI_ENOMEM, [&] { return uet->fabric(found->fabric_attr, &fabric, nullptr); },
      [&] { fi_close(&fabric->fid); });
  fi_freeinfo(found);
}

TEST(NoMemory, ThePlugInIsNotLoaded) {
  if (std::getenv("FI_PROVIDER_PATH") == nullptr) GTEST_SKIP() << "needs the plug-in's place";
  Process process("process", {}, load);
  EXPECT_EQ(process.wait(), "");
}

TEST(NoMemory, ControlCallsRefuse) {
  if (provider() != "uet") GTEST_SKIP() << "about uet";
  Process process("process", {}, open_objects);
  EXPECT_EQ(process.wait(), "");
}

TEST(NoMemory, ConnectionsAreRefused) {
  if (provider() != "uet") GTEST_SKIP() << "about uet";
  Process process("process", {}, connect_endpoints, 4 * kDeadline);
  EXPECT_EQ(process.wait(), "");
}

TEST(NoMemory, DeferredWorkIsRefused) {
  if (provider() != "uet") GTEST_SKIP() << "about uet";
  Process process("process", {}, defer_work);
  EXPECT_EQ(process.wait(), "");
}

TEST(NoMemory, FirstContactIsMadeLater) {
  Process process("process", {}, talk_for_the_first_time);
  EXPECT_EQ(process.wait(), "");
}

TEST(NoMemory, OperationsAreMadeLater) {
  Process process("process", {}, work_for_the_first_time);
  EXPECT_EQ(process.wait(), "");
}

// With receiver credit both ends keep more about each other.
TEST(NoMemory, FirstContactWithCreditIsMadeLater) {
  Process process("process", {{"FI_UET_CC_ALGORITHM", "both"}, {"FI_UET_PATHS", "mixed"}},
                  talk_for_the_first_time);
  EXPECT_EQ(process.wait(), "");
}

}  // namespace
}  // namespace uet::e2e
#endif
