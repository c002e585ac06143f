// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Requests of applications at the limits: lengths that wrap, no descriptors left, numbers that no
// enumeration has, errors that the application has not read, threads that are cancelled.
#include <gtest/gtest.h>
#include <pthread.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <rdma/fi_trigger.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "objects.h"

namespace uet::e2e {
namespace {

constexpr std::uint64_t kKey = 5;

// An endpoint that talks to itself, and a region of its own.
class Limits : public testing::Test {
 protected:
  Limits() {
    ep_ = a_.open_endpoint(0);
    to_ = a_.insert(*ep_);
    Side::open(mr_, "fi_mr_reg", [&](auto** out) {
      return fi_mr_reg(a_.domain.get(), cells_.data(), sizeof cells_,
                       FI_REMOTE_READ | FI_REMOTE_WRITE, 0, kKey, 0, out, nullptr);
    });
  }

  Side a_;
  Owned<fid_ep> ep_;
  fi_addr_t to_ = 0;
  alignas(16) std::array<std::uint64_t, 64> cells_{};
  Owned<fid_mr> mr_;
};

// ---- lengths that wrap -------------------------------------------------------------------------

constexpr std::size_t kHalf = std::size_t{1} << 63;
constexpr std::size_t kWraps = (std::size_t{1} << 61) + 1;  // times 8 bytes: 8

TEST_F(Limits, ElementsOfAtomicsDoNotWrap) {
  std::uint64_t v = 1;
  std::uint64_t r = 2;
  fid_ep* ep = ep_.get();
  EXPECT_EQ(fi_atomic(ep, &v, kWraps, nullptr, to_, 0, kKey, FI_UINT64, FI_SUM, this), -FI_EINVAL);
  EXPECT_EQ(fi_atomic(ep, &v, kHalf + 1, nullptr, to_, 0, kKey, FI_UINT64, FI_SUM, this),
            -FI_EINVAL);
  EXPECT_EQ(fi_inject_atomic(ep, &v, kWraps, to_, 0, kKey, FI_UINT64, FI_SUM), -FI_EINVAL);
  EXPECT_EQ(fi_fetch_atomic(ep, nullptr, kWraps, nullptr, &r, nullptr, to_, 0, kKey, FI_UINT64,
                            FI_ATOMIC_READ, this),
            -FI_EINVAL);
  EXPECT_EQ(fi_compare_atomic(ep, &v, kWraps, nullptr, &v, nullptr, &r, nullptr, to_, 0, kKey,
                              FI_UINT64, FI_CSWAP, this),
            -FI_EINVAL);
  const fi_ioc one{&v, 1};
  fi_ioc result{&r, kWraps};
  EXPECT_EQ(fi_fetch_atomicv(ep, &one, nullptr, 1, &result, nullptr, 1, to_, 0, kKey, FI_UINT64,
                             FI_SUM, this),
            -FI_EINVAL);
  const fi_ioc pieces[] = {{&v, kHalf}, {&v, kHalf + 1}};  // bytes: 0 and 8 where they wrap
  EXPECT_EQ(fi_atomicv(ep, pieces, nullptr, 2, to_, 0, kKey, FI_UINT64, FI_SUM, this), -FI_EINVAL);
  EXPECT_EQ(fi_atomicv(ep, pieces, nullptr, 2, to_, 0, kKey, FI_UINT8, FI_SUM, this), -FI_EINVAL);
  const fi_rma_ioc remote{0, 1, kKey};
  fi_msg_atomic msg{};
  msg.msg_iov = pieces;
  msg.iov_count = 2;
  msg.addr = to_;
  msg.rma_iov = &remote;
  msg.rma_iov_count = 1;
  msg.datatype = FI_UINT8;
  msg.op = FI_SUM;
  EXPECT_EQ(fi_atomicmsg(ep, &msg, 0), -FI_EINVAL);
  EXPECT_EQ(cells_[0], 0U);
}

TEST_F(Limits, PiecesOfMessagesAndRmaDoNotWrap) {
  fid_ep* ep = ep_.get();
  const iovec pieces[] = {{cells_.data(), kHalf}, {cells_.data(), kHalf + 8}};  // together 8
  EXPECT_EQ(fi_sendv(ep, pieces, nullptr, 2, to_, this), -FI_EINVAL);
  EXPECT_EQ(fi_tsendv(ep, pieces, nullptr, 2, to_, 1, this), -FI_EINVAL);
  EXPECT_EQ(fi_recvv(ep, pieces, nullptr, 2, FI_ADDR_UNSPEC, this), -FI_EINVAL);
  EXPECT_EQ(fi_trecvv(ep, pieces, nullptr, 2, FI_ADDR_UNSPEC, 1, 0, this), -FI_EINVAL);
  EXPECT_EQ(fi_writev(ep, pieces, nullptr, 2, to_, 0, kKey, this), -FI_EINVAL);
  EXPECT_EQ(fi_readv(ep, pieces, nullptr, 2, to_, 0, kKey, this), -FI_EINVAL);
  const fi_rma_iov remote{0, 8, kKey};
  fi_msg_rma msg{};
  msg.msg_iov = pieces;
  msg.iov_count = 2;
  msg.addr = to_;
  msg.rma_iov = &remote;
  msg.rma_iov_count = 1;
  EXPECT_EQ(fi_writemsg(ep, &msg, 0), -FI_EINVAL);
  EXPECT_EQ(fi_readmsg(ep, &msg, 0), -FI_EINVAL);
  msg.iov_count = kHalf;  // the provider does not read so many
  EXPECT_EQ(fi_writemsg(ep, &msg, 0), -FI_EINVAL);
}

// The bytes of a triggered inject are copied when it is posted.
TEST(TriggeredInject, IsNotLongerThanInjectSize) {
  Side a({.capabilities = FI_MSG | FI_TRIGGER});
  const auto ep = a.open_endpoint(0);
  const fi_addr_t to = a.insert(*ep);
  Owned<fid_cntr> counter;
  Side::open(counter, "fi_cntr_open",
             [&](auto** out) { return fi_cntr_open(a.domain.get(), nullptr, out, nullptr); });
  fi_triggered_context context{};
  context.event_type = FI_TRIGGER_THRESHOLD;
  context.trigger.threshold.cntr = counter.get();
  context.trigger.threshold.threshold = 1;
  char byte = 0;
  iovec piece{&byte, kHalf};
  fi_msg msg{};
  msg.msg_iov = &piece;
  msg.iov_count = 1;
  msg.addr = to;
  msg.context = &context;
  EXPECT_EQ(fi_sendmsg(ep.get(), &msg, FI_TRIGGER | FI_INJECT), -FI_EINVAL);
}

// ---- no descriptors ----------------------------------------------------------------------------

TEST(Descriptors, ADomainWithoutThemSaysSo) {
  Process process("opener", {}, [] {
    const Side a;
    const int first = ::dup(0);
    ::close(first);
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = static_cast<rlim_t>(first);
    check(::setrlimit(RLIMIT_NOFILE, &limit), "setrlimit");
    fid_domain* domain = nullptr;
    const int result = fi_domain(a.fabric.get(), a.info.get(), &domain, nullptr);
    require(result == -EMFILE, "fi_domain gives " + std::to_string(result));
  });
  EXPECT_EQ(process.wait(), "");
}

// The call works without a descriptor, or says that there is none; so does FI_GETWAIT afterwards,
// if `waits`. Returns what was said last.
template <class Fid, class Call>
int open_without(const char* what, bool waits, Call call) {
  Fid* object = nullptr;
  int result = call(&object);
  if (result == 0) {
    int fd = -1;
    if (waits) result = fi_control(&object->fid, FI_GETWAIT, &fd);
    fi_close(&object->fid);
  }
  require(result == 0 || result == -EMFILE, std::string(what) + " gives " + std::to_string(result));
  return result;
}

TEST(Descriptors, CallsThatNeedOneSaySo) {
  Process process("process", {}, [] {
    Side a;
    const int first = ::dup(0);
    ::close(first);
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = static_cast<rlim_t>(first);
    check(::setrlimit(RLIMIT_NOFILE, &limit), "setrlimit");
    fid_domain* domain = a.domain.get();
    fid_fabric* fabric = a.fabric.get();
    fi_cq_attr cq{};
    fi_cntr_attr counter{};
    fi_eq_attr eq{};
    fi_wait_attr set{};
    cq.wait_obj = counter.wait_obj = eq.wait_obj = set.wait_obj = FI_WAIT_FD;
    const int told[] = {
        open_without<fid_cq>("a CQ", true,
                             [&](auto** out) { return fi_cq_open(domain, &cq, out, nullptr); }),
        open_without<fid_cntr>(
            "a counter", true,
            [&](auto** out) { return fi_cntr_open(domain, &counter, out, nullptr); }),
        open_without<fid_eq>("an EQ", true,
                             [&](auto** out) { return fi_eq_open(fabric, &eq, out, nullptr); }),
        open_without<fid_wait>("a wait set", true,
                               [&](auto** out) { return fi_wait_open(fabric, &set, out); })};
    for (const int result : told) require(result == -EMFILE, "a wait object without a descriptor");
    open_without<fid_ep>("fi_endpoint", false, [&](auto** out) {
      return fi_endpoint(domain, a.info.get(), out, nullptr);
    });
    // Of a provider that does not answer, libfabric itself says no more than FI_ENODATA.
    fi_info* found = nullptr;
    const int asked =
        fi_getinfo(FI_VERSION(1, 17), "127.0.0.1", nullptr, FI_SOURCE, a.info.get(), &found);
    require(asked == 0 || asked == -EMFILE || asked == -FI_ENODATA,
            "fi_getinfo gives " + std::to_string(asked));
    fi_freeinfo(found);
  });
  EXPECT_EQ(process.wait(), "");
}

// ---- many endpoints ----------------------------------------------------------------------------

std::size_t resident_bytes() {
  std::size_t pages = 0;
  if (FILE* file = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(file, "%*u %zu", &pages) != 1) pages = 0;
    std::fclose(file);
  }
  return pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

// More than the 4,095 resource indices of one PIDonFEP. UET_TEST_ENDPOINTS=32768 takes the most.
TEST(ManyEndpoints, GoOnUnderFurtherPids) {
  const char* const asked = std::getenv("UET_TEST_ENDPOINTS");
  const std::size_t count = asked != nullptr ? std::stoul(asked) : 4200;
  Side a({.hints = [&](fi_info& hints) {
    hints.domain_attr->ep_cnt = count;
    hints.rx_attr->size = 64;  // each endpoint has tables for as many receives
  }});
  EXPECT_EQ(a.info->domain_attr->ep_cnt, 32768U);
  const std::size_t before = resident_bytes();
  Clock::time_point start = Clock::now();
  std::vector<Owned<fid_ep>> all;
  for (std::size_t i = 0; i < count; ++i) all.push_back(a.open_endpoint(0));
  const auto ms = [&] {
    return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start).count();
  };
  std::printf("%zu endpoints: %lld ms, %zu bytes each\n", count, static_cast<long long>(ms()),
              (resident_bytes() - before) / count);
  // The first index of the second PIDonFEP is the first's, too; regions are apart.
  fid_ep& first = *all.front();
  fid_ep& second = *all[4095];
  const fi_addr_t to_first = a.insert(first);
  const fi_addr_t to_second = a.insert(second);
  const fi_addr_t to_last = a.insert(*all.back());
  char in = 0;
  check(fi_recv(&second, &in, 1, nullptr, to_last, &in), "fi_recv");
  check(fi_send(all.back().get(), "x", 1, nullptr, to_second, nullptr), "fi_send");
  EXPECT_EQ(a.next(a).error, 0);
  EXPECT_EQ(a.next(a).error, 0);
  EXPECT_EQ(in, 'x');
  fid_mr* mr = nullptr;
  check(fi_mr_reg(a.domain.get(), &in, 1, FI_REMOTE_WRITE, 0, kKey, 0, &mr, nullptr), "fi_mr_reg");
  const Owned<fid_mr> region(mr);
  check(fi_mr_bind(mr, &second.fid, 0), "fi_mr_bind");
  check(fi_write(&first, "y", 1, nullptr, to_first, 0, kKey, nullptr), "fi_write");
  EXPECT_NE(a.next(a).error, 0) << "through the same index of another PIDonFEP";
  check(fi_write(&first, "y", 1, nullptr, to_second, 0, kKey, nullptr), "fi_write");
  EXPECT_EQ(a.next(a).error, 0);
  EXPECT_EQ(in, 'y');
  start = Clock::now();
  all.clear();
  std::printf("closed in %lld ms\n", static_cast<long long>(ms()));
}

// ---- errors that the application has not read --------------------------------------------------

TEST_F(Limits, CounterWaitReportsAnEarlierError) {
  Owned<fid_cntr> counter;
  Side::open(counter, "fi_cntr_open",
             [&](auto** out) { return fi_cntr_open(a_.domain.get(), nullptr, out, nullptr); });
  ASSERT_EQ(fi_cntr_adderr(counter.get(), 1), 0);
  EXPECT_EQ(fi_cntr_wait(counter.get(), 0, 0), 0) << "reached";
  EXPECT_EQ(fi_cntr_wait(counter.get(), 1, 100), -FI_EAVAIL);
  EXPECT_EQ(fi_cntr_wait(counter.get(), 1, 100), -FI_EAVAIL) << "until it has been read";
  EXPECT_EQ(fi_cntr_readerr(counter.get()), 1U);
  EXPECT_EQ(fi_cntr_wait(counter.get(), 1, 10), -FI_ETIMEDOUT);
  ASSERT_EQ(fi_cntr_seterr(counter.get(), 0), 0);
  EXPECT_EQ(fi_cntr_wait(counter.get(), 1, 10), -FI_ETIMEDOUT);
  ASSERT_EQ(fi_cntr_adderr(counter.get(), 1), 0);
  EXPECT_EQ(fi_cntr_wait(counter.get(), 1, 100), -FI_EAVAIL) << "a new one";
}

// ---- numbers that no enumeration has -----------------------------------------------------------

template <class Enum>
Enum number(int value) {
  Enum out{};
  static_assert(sizeof out == sizeof value);
  std::memcpy(&out, &value, sizeof out);
  return out;
}

TEST_F(Limits, QueueAttributesOutOfRangeAreInvalid) {
  const auto open_cq = [&](const auto& change) {
    fi_cq_attr attr{};
    change(attr);
    fid_cq* cq = nullptr;
    return fi_cq_open(a_.domain.get(), &attr, &cq, nullptr);
  };
  for (const int value : {-1, 99, INT32_MAX, INT32_MIN}) {
    EXPECT_EQ(open_cq([&](fi_cq_attr& a) { a.format = number<fi_cq_format>(value); }), -FI_EINVAL);
    EXPECT_EQ(open_cq([&](fi_cq_attr& a) { a.wait_obj = number<fi_wait_obj>(value); }), -FI_EINVAL);
    EXPECT_EQ(open_cq([&](fi_cq_attr& a) { a.wait_cond = number<fi_cq_wait_cond>(value); }),
              -FI_EINVAL);
    fi_av_attr av_attr{};
    av_attr.type = number<fi_av_type>(value);
    fid_av* av = nullptr;
    EXPECT_EQ(fi_av_open(a_.domain.get(), &av_attr, &av, nullptr), -FI_EINVAL);
    fi_cntr_attr counter_attr{};
    counter_attr.wait_obj = number<fi_wait_obj>(value);
    fid_cntr* counter = nullptr;
    EXPECT_EQ(fi_cntr_open(a_.domain.get(), &counter_attr, &counter, nullptr), -FI_EINVAL);
    fi_eq_attr eq_attr{};
    eq_attr.wait_obj = number<fi_wait_obj>(value);
    fid_eq* eq = nullptr;
    EXPECT_EQ(fi_eq_open(a_.fabric.get(), &eq_attr, &eq, nullptr), -FI_EINVAL);
    fi_wait_attr wait_attr{};
    wait_attr.wait_obj = number<fi_wait_obj>(value);
    fid_wait* set = nullptr;
    EXPECT_EQ(fi_wait_open(a_.fabric.get(), &wait_attr, &set), -FI_EINVAL);
  }
}

// ---- threads that are cancelled ----------------------------------------------------------------

// Cancels a thread that makes `call` again and again. It ends between two calls.
void cancel_in(const char* what, const std::function<void()>& call) {
  const auto body = [](void* argument) -> void* {
    const auto& again = *static_cast<const std::function<void()>*>(argument);
    for (;;) {
      again();
      pthread_testcancel();
    }
  };
  for (int round = 0; round < 5; ++round) {
    pthread_t thread{};
    check(::pthread_create(&thread, nullptr, body, const_cast<std::function<void()>*>(&call)),
          "pthread_create");
    std::this_thread::sleep_for(std::chrono::milliseconds(15));
    check(::pthread_cancel(thread), "pthread_cancel");
    void* result = nullptr;
    check(::pthread_join(thread, &result), "pthread_join");
    require(result == PTHREAD_CANCELED, std::string(what) + ": not cancelled");
  }
}

TEST(CancelledThreads, EndBehindTheCallThatTheyAreIn) {
  Process process("process", {}, [] {
    Side a;
    fi_cq_attr cq_attr{};
    cq_attr.wait_obj = FI_WAIT_FD;
    Owned<fid_cq> cq;
    Side::open(cq, "fi_cq_open",
               [&](auto** out) { return fi_cq_open(a.domain.get(), &cq_attr, out, nullptr); });
    fi_cntr_attr counter_attr{};
    counter_attr.wait_obj = FI_WAIT_FD;
    Owned<fid_cntr> counter;
    Side::open(counter, "fi_cntr_open", [&](auto** out) {
      return fi_cntr_open(a.domain.get(), &counter_attr, out, nullptr);
    });
    fi_eq_attr eq_attr{};
    eq_attr.wait_obj = FI_WAIT_FD;
    Owned<fid_eq> eq;
    Side::open(eq, "fi_eq_open",
               [&](auto** out) { return fi_eq_open(a.fabric.get(), &eq_attr, out, nullptr); });
    fi_wait_attr wait_attr{};
    wait_attr.wait_obj = FI_WAIT_FD;
    Owned<fid_wait> set;
    Side::open(set, "fi_wait_open",
               [&](auto** out) { return fi_wait_open(a.fabric.get(), &wait_attr, out); });
    fi_cq_entry entry{};
    std::uint32_t event = 0;
    fi_eq_entry eq_entry{};
    cancel_in("fi_cq_read", [&] { fi_cq_read(cq.get(), &entry, 1); });
    fid* object = &cq->fid;
    int descriptor = 0;
    check(fi_control(object, FI_GETWAIT, &descriptor), "FI_GETWAIT");
    cancel_in("fi_trywait", [&] { fi_trywait(a.fabric.get(), &object, 1); });
    cancel_in("fi_cq_open", [&] {
      fid_cq* another = nullptr;
      if (fi_cq_open(a.domain.get(), &cq_attr, &another, nullptr) == 0) fi_close(&another->fid);
    });
    cancel_in("fi_domain", [&] {
      fid_domain* another = nullptr;
      if (fi_domain(a.fabric.get(), a.info.get(), &another, nullptr) == 0) fi_close(&another->fid);
    });
    const auto ep = a.open_endpoint(0);
    const fi_addr_t self = a.insert(*ep);
    char byte = 0;
    fi_cq_tagged_entry told{};
    cancel_in("fi_send and fi_recv", [&] {
      fi_recv(ep.get(), &byte, 1, nullptr, FI_ADDR_UNSPEC, nullptr);
      fi_send(ep.get(), "x", 1, nullptr, self, nullptr);
      fi_cq_read(a.cq.get(), &told, 1);
      fi_cq_read(a.cq.get(), &told, 1);
    });
    cancel_in("fi_cntr_read", [&] { fi_cntr_read(counter.get()); });
    cancel_in("fi_cq_sread", [&] { fi_cq_sread(cq.get(), &entry, 1, nullptr, 40); });
    cancel_in("fi_cntr_wait", [&] { fi_cntr_wait(counter.get(), 1, 40); });
    cancel_in("fi_eq_sread",
              [&] { fi_eq_sread(eq.get(), &event, &eq_entry, sizeof eq_entry, 40, 0); });
    cancel_in("fi_wait", [&] { fi_wait(set.get(), 40); });
  });
  EXPECT_EQ(process.wait(), "");
}

}  // namespace
}  // namespace uet::e2e
