// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Waiting instead of polling, fi_cq(3) and fi_poll(3): every wait object, file descriptors with
// fi_trywait, signals, thresholds, and the wait and poll sets of libfabric 1.x.
#include <poll.h>

#include <array>
#include <thread>

#include "common.h"

using namespace fabtests;

namespace {

using std::chrono::milliseconds;

constexpr int kTimeoutMs = 20'000;
constexpr fi_wait_obj kWaitObjects[] = {FI_WAIT_UNSPEC, FI_WAIT_FD, FI_WAIT_MUTEX_COND,
                                        FI_WAIT_YIELD};

// Sends `count` messages, one every 20 ms, so that the receiver has to wait for each.
void send_slowly(Node& node, int count) {
  for (int i = 0; i < count; ++i) {
    std::this_thread::sleep_for(milliseconds(20));
    POST(node, fi_inject(node.ep, &i, sizeof i, node.peer));
    node.progress();
  }
}

// fi_cq_sread with every wait object: it returns with what comes, or when its time is over.
void blocking_reads(Link& link) {
  for (const fi_wait_obj object : kWaitObjects) {
    Setup setup;
    setup.cq.wait_obj = object;
    Node node(link, setup);
    node.connect();
    if (link.server()) {
      fi_cq_tagged_entry entry{};
      const Clock::time_point start = Clock::now();
      RETURNS(-FI_EAGAIN, fi_cq_sread(node.rx, &entry, 1, nullptr, 30));
      CHECK(Clock::now() - start >= milliseconds(30));
      node.meet();
      for (int i = 0; i < 5; ++i) {
        int value = -1;
        POST(node, fi_recv(node.ep, &value, sizeof value, nullptr, node.peer, nullptr));
        RETURNS(1, fi_cq_sread(node.rx, &entry, 1, nullptr, kTimeoutMs));
        CHECK(value == i);
      }
    } else {
      node.meet();
      send_slowly(node, 5);
    }
    node.meet();
  }
}

// The application sleeps in poll(2) on the queue's descriptor, as fi_trywait allows.
void descriptor(Link& link) {
  Setup setup;
  setup.cq.wait_obj = FI_WAIT_FD;
  Node node(link, setup);
  node.connect();
  node.meet();
  if (link.server()) {
    int fd = -1;
    OK(fi_control(&node.rx->fid, FI_GETWAIT, &fd));
    for (int i = 0; i < 5; ++i) {
      int value = -1;
      POST(node, fi_recv(node.ep, &value, sizeof value, nullptr, node.peer, nullptr));
      fi_cq_tagged_entry entry{};
      const Clock::time_point end = Clock::now() + kPatience;
      while (fi_cq_read(node.rx, &entry, 1) != 1) {
        CHECK(Clock::now() < end);
        fid* queue = &node.rx->fid;
        if (fi_trywait(node.fabric, &queue, 1) != 0) continue;  // something to read first
        pollfd waiting{.fd = fd, .events = POLLIN, .revents = 0};
        CHECK(poll(&waiting, 1, kTimeoutMs) >= 0);
      }
      CHECK(value == i);
    }
  } else {
    send_slowly(node, 5);
  }
  node.meet();
}

// fi_cq_signal ends the wait of another thread.
void signal(Link& link) {
  Setup setup;
  setup.cq.wait_obj = FI_WAIT_UNSPEC;
  setup.hints = [](fi_info& hints) { hints.domain_attr->threading = FI_THREAD_SAFE; };
  Node node(link, setup);
  node.connect();
  std::thread waker([&] {
    std::this_thread::sleep_for(milliseconds(50));
    OK(fi_cq_signal(node.rx));
  });
  fi_cq_tagged_entry entry{};
  const Clock::time_point start = Clock::now();
  RETURNS(-FI_EAGAIN, fi_cq_sread(node.rx, &entry, 1, nullptr, kTimeoutMs));
  CHECK(Clock::now() - start < kPatience / 2);
  waker.join();
  node.meet();
}

// FI_CQ_COND_THRESHOLD: the wait ends when so many completions are there.
void threshold(Link& link) {
  Setup setup;
  setup.cq.wait_obj = FI_WAIT_UNSPEC;
  setup.cq.wait_cond = FI_CQ_COND_THRESHOLD;
  Node node(link, setup);
  node.connect();
  node.meet();
  if (link.server()) {
    std::array<int, 4> values{};
    for (int& value : values) {
      POST(node, fi_recv(node.ep, &value, sizeof value, nullptr, node.peer, nullptr));
    }
    std::array<fi_cq_tagged_entry, 8> entries{};
    const std::uintptr_t wanted = 4;
    RETURNS(4, fi_cq_sread(node.rx, entries.data(), entries.size(),
                           reinterpret_cast<const void*>(wanted), kTimeoutMs));
  } else {
    send_slowly(node, 4);
  }
  node.meet();
}

// A poll set says which of its queues and counters have something.
void poll_set(Link& link) {
  Node node(link);
  fid_cntr* received = node.counter(FI_RECV);
  fid_poll* set = nullptr;
  fi_poll_attr attr{};
  OK(fi_poll_open(node.domain, &attr, &set));
  OK(fi_poll_add(set, &received->fid, 0));
  OK(fi_poll_add(set, &node.rx->fid, 0));
  RETURNS(-FI_EBUSY, fi_close(&received->fid));
  node.connect();
  node.meet();
  std::array<void*, 4> contexts{};
  if (link.server()) {
    RETURNS(0, fi_poll(set, contexts.data(), 4));
    int value = 0;
    POST(node, fi_recv(node.ep, &value, sizeof value, nullptr, node.peer, nullptr));
    const Clock::time_point end = Clock::now() + kPatience;
    int events = 0;
    while ((events = fi_poll(set, contexts.data(), 4)) == 0) CHECK(Clock::now() < end);
    CHECK(events > 0);
    node.completion(node.rx);
    CHECK(fi_cntr_read(received) == 1);
  } else {
    send_slowly(node, 1);
  }
  OK(fi_poll_del(set, &received->fid, 0));
  OK(fi_poll_del(set, &node.rx->fid, 0));
  OK(fi_close(&set->fid));
  node.meet();
}

// One wait set for several queues: fi_wait ends when any of them has something.
void wait_set(Link& link) {
  Node node(link);  // its own queues do not wait
  fi_wait_attr wait_attr{};
  wait_attr.wait_obj = FI_WAIT_UNSPEC;
  fid_wait* set = nullptr;
  OK(fi_wait_open(node.fabric, &wait_attr, &set));
  fi_cntr_attr attr{};
  attr.wait_obj = FI_WAIT_SET;
  attr.wait_set = set;
  fid_cntr* received = nullptr;
  OK(fi_cntr_open(node.domain, &attr, &received, nullptr));
  OK(fi_ep_bind(node.ep, &received->fid, FI_RECV));
  // The counter is closed before its wait set; the set before the fabric.
  node.close_later(&set->fid);
  node.close_later(&received->fid);
  node.connect();
  if (link.server()) {
    RETURNS(-FI_ETIMEDOUT, fi_wait(set, 30));
    node.meet();
    int value = 0;
    POST(node, fi_recv(node.ep, &value, sizeof value, nullptr, node.peer, nullptr));
    const Clock::time_point end = Clock::now() + kPatience;
    while (fi_cntr_read(received) == 0) {
      CHECK(Clock::now() < end);
      OK(fi_wait(set, kTimeoutMs));
    }
  } else {
    node.meet();
    send_slowly(node, 1);
  }
  node.meet();
}

constexpr Case kCases[] = {
    {"blocking_reads", blocking_reads}, {"descriptor", descriptor}, {"signal", signal},
    {"threshold", threshold},           {"poll_set", poll_set},     {"wait_set", wait_set}};

}  // namespace

int main(int argc, char** argv) { return run_cases(argc, argv, kCases); }
