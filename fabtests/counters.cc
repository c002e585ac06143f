// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Counters, fi_cntr(3): each kind counts its operations, waits end in time, errors count apart.
#include <array>

#include "common.h"

using namespace fabtests;

namespace {

constexpr int kTimeoutMs = 20'000;

// One counter for each kind of operation; the client does everything, the server is its target.
void kinds(Link& link) {
  Node node(link);
  fid_cntr* sends = node.counter(FI_SEND);
  fid_cntr* receives = node.counter(FI_RECV);
  fid_cntr* writes = node.counter(FI_WRITE);
  fid_cntr* reads = node.counter(FI_READ);
  fid_cntr* remote_writes = node.counter(FI_REMOTE_WRITE);
  fid_cntr* remote_reads = node.counter(FI_REMOTE_READ);
  node.connect();
  Bytes memory = pattern(2000, 1);
  if (link.server()) {
    const Region region(node, memory, FI_REMOTE_READ | FI_REMOTE_WRITE, 5);
    link.send_value(region.remote);
    std::array<int, 3> values{};
    for (int& value : values) {
      POST(node, fi_recv(node.ep, &value, sizeof value, nullptr, node.peer, nullptr));
    }
    OK(fi_cntr_wait(receives, 3, kTimeoutMs));
    OK(fi_cntr_wait(remote_writes, 2, kTimeoutMs));
    OK(fi_cntr_wait(remote_reads, 1, kTimeoutMs));
    CHECK(fi_cntr_read(receives) == 3);
    CHECK(fi_cntr_read(remote_writes) == 2);
    CHECK(fi_cntr_read(remote_reads) == 1);
    CHECK(fi_cntr_read(sends) + fi_cntr_read(writes) + fi_cntr_read(reads) == 0);
    node.meet();
    return;
  }
  const Remote there = link.receive_value<Remote>(&node);
  const int value = 1;
  POST(node, fi_send(node.ep, &value, sizeof value, nullptr, node.peer, nullptr));
  POST(node, fi_send(node.ep, &value, sizeof value, nullptr, node.peer, nullptr));
  POST(node, fi_inject(node.ep, &value, sizeof value, node.peer));
  for (int i = 0; i < 2; ++i) {
    POST(node, fi_write(node.ep, memory.data(), 2000, nullptr, node.peer, there.address, there.key,
                        nullptr));
  }
  OK(fi_cntr_wait(writes, 2, kTimeoutMs));
  POST(node, fi_read(node.ep, memory.data(), 2000, nullptr, node.peer, there.address, there.key,
                     nullptr));
  OK(fi_cntr_wait(reads, 1, kTimeoutMs));
  OK(fi_cntr_wait(sends, 3, kTimeoutMs));  // injected messages count as well
  CHECK(fi_cntr_read(sends) == 3);
  CHECK(fi_cntr_read(writes) == 2);
  CHECK(fi_cntr_read(reads) == 1);
  CHECK(fi_cntr_read(receives) + fi_cntr_read(remote_writes) + fi_cntr_read(remote_reads) == 0);
  node.meet();
}

// A failed operation counts in the error value, and wakes who waits for the other one.
void errors(Link& link) {
  Node node(link);
  fid_cntr* writes = node.counter(FI_WRITE);
  node.connect();
  if (!link.server()) {
    Bytes memory(10);
    POST(node, fi_write(node.ep, memory.data(), 10, nullptr, node.peer, 0, 0x0dead, nullptr));
    RETURNS(-FI_EAVAIL, fi_cntr_wait(writes, 1, kTimeoutMs));
    CHECK(fi_cntr_read(writes) == 0);
    CHECK(fi_cntr_readerr(writes) == 1);
    static_cast<void>(node.error(node.tx));
  }
  node.meet();
}

// The program's own arithmetic, and a wait that ends by time.
void local(Link& link) {
  Node node(link);
  fid_cntr* counter = node.counter(0);
  node.connect();
  OK(fi_cntr_set(counter, 10));
  OK(fi_cntr_add(counter, 5));
  CHECK(fi_cntr_read(counter) == 15);
  OK(fi_cntr_seterr(counter, 2));
  OK(fi_cntr_adderr(counter, 1));
  CHECK(fi_cntr_readerr(counter) == 3);
  OK(fi_cntr_set(counter, 0));
  OK(fi_cntr_seterr(counter, 0));
  const Clock::time_point start = Clock::now();
  RETURNS(-FI_ETIMEDOUT, fi_cntr_wait(counter, 1, 50));
  CHECK(Clock::now() - start >= std::chrono::milliseconds(50));
  node.meet();
}

constexpr Case kCases[] = {{"kinds", kinds}, {"errors", errors}, {"local", local}};

}  // namespace

int main(int argc, char** argv) { return run_cases(argc, argv, kCases); }
