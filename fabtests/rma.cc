// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Remote memory: every call of fi_rma(3), data for the target's queue, and what a target refuses.
#include <array>

#include "common.h"

using namespace fabtests;

namespace {

constexpr std::size_t kBytes = 1 << 20;
constexpr std::uint64_t kAllAccess = FI_REMOTE_READ | FI_REMOTE_WRITE;

// The server exposes `memory`; the client learns where it is.
Remote expose(Link& link, Node& node, const Region* region) {
  if (link.server()) {
    link.send_value(region->remote);
    return {};
  }
  return link.receive_value<Remote>(&node);
}

// The client calls, the server looks at its memory between two meetings.
void write_every_way(Node& node, const Remote& there) {
  Bytes buffer = pattern(kBytes, 1);
  std::array<iovec, 2> pieces{{{buffer.data(), 4000}, {buffer.data() + 4000, kBytes - 4000}}};
  int context = 0;
  POST(node, fi_write(node.ep, buffer.data(), kBytes, nullptr, node.peer, there.address, there.key,
                      &context));
  const fi_cq_tagged_entry entry = node.completion(node.tx);
  CHECK(entry.op_context == &context);
  CHECK((entry.flags & (FI_RMA | FI_WRITE)) == (FI_RMA | FI_WRITE));
  node.meet();

  node.meet();
  POST(node, fi_writev(node.ep, pieces.data(), nullptr, 2, node.peer, there.address, there.key,
                       &context));
  node.completion(node.tx);
  node.meet();

  node.meet();
  fi_rma_iov target{there.address, kBytes, there.key};
  fi_msg_rma message{};
  message.msg_iov = pieces.data();
  message.iov_count = 2;
  message.addr = node.peer;
  message.rma_iov = &target;
  message.rma_iov_count = 1;
  message.context = &context;
  POST(node, fi_writemsg(node.ep, &message, FI_DELIVERY_COMPLETE));
  node.completion(node.tx);
  node.meet();

  node.meet();
  POST(node, fi_inject_write(node.ep, buffer.data(), 64, node.peer, there.address, there.key));
  // No completion tells when it is there; what is read back does.
  Bytes back(64);
  do {
    POST(node,
         fi_read(node.ep, back.data(), 64, nullptr, node.peer, there.address, there.key, &context));
    node.completion(node.tx);
  } while (!same(back, 1));
  node.meet();
}

void writes(Link& link) {
  Node node(link);
  node.connect();
  if (!link.server()) {
    write_every_way(node, expose(link, node, nullptr));
  } else {
    Bytes memory(kBytes);
    const Region region(node, memory, kAllAccess, 77);
    expose(link, node, &region);
    for (const std::size_t size : {kBytes, kBytes, kBytes, std::size_t{64}}) {
      node.meet();
      CHECK(same(std::span(memory).first(size), 1));
      if (size == 64) break;
      memory.assign(kBytes, std::byte{0});
      node.meet();
    }
  }
  node.meet();
}

void reads(Link& link) {
  Node node(link);
  node.connect();
  if (link.server()) {
    Bytes memory = pattern(kBytes, 2);
    const Region region(node, memory, FI_REMOTE_READ, 78);
    expose(link, node, &region);
    node.meet();
    return;
  }
  const Remote there = expose(link, node, nullptr);
  Bytes buffer(kBytes);
  std::array<iovec, 2> pieces{{{buffer.data(), 5000}, {buffer.data() + 5000, kBytes - 5000}}};
  int context = 0;
  POST(node, fi_read(node.ep, buffer.data(), kBytes, nullptr, node.peer, there.address, there.key,
                     &context));
  const fi_cq_tagged_entry entry = node.completion(node.tx);
  CHECK(entry.op_context == &context);
  CHECK((entry.flags & (FI_RMA | FI_READ)) == (FI_RMA | FI_READ));
  CHECK(same(buffer, 2));

  buffer.assign(kBytes, std::byte{0});
  POST(node,
       fi_readv(node.ep, pieces.data(), nullptr, 2, node.peer, there.address, there.key, &context));
  node.completion(node.tx);
  CHECK(same(buffer, 2));

  buffer.assign(kBytes, std::byte{0});
  const fi_rma_iov source{there.address, kBytes, there.key};
  fi_msg_rma message{};
  message.msg_iov = pieces.data();
  message.iov_count = 2;
  message.addr = node.peer;
  message.rma_iov = &source;
  message.rma_iov_count = 1;
  message.context = &context;
  POST(node, fi_readmsg(node.ep, &message, 0));
  node.completion(node.tx);
  CHECK(same(buffer, 2));
  node.meet();
}

// FI_REMOTE_CQ_DATA: the target's receive queue tells that the data are there, and takes no
// receive.
void data_for_the_target(Link& link) {
  Node node(link);
  node.connect();
  constexpr std::uint64_t kData = 0x1122'3344'5566'7788;
  if (link.server()) {
    Bytes memory(3000);
    const Region region(node, memory, FI_REMOTE_WRITE, 79);
    expose(link, node, &region);
    for (std::uint64_t i = 0; i < 3; ++i) {
      const fi_cq_tagged_entry entry = node.completion(node.rx);
      CHECK((entry.flags & FI_REMOTE_CQ_DATA) != 0);
      CHECK((entry.flags & (FI_RMA | FI_REMOTE_WRITE)) == (FI_RMA | FI_REMOTE_WRITE));
      CHECK(entry.data == kData + i);
      CHECK(same(std::span(memory).first(i == 1 ? 64 : 3000), 3 + i));
      node.meet();
    }
    return;
  }
  const Remote there = expose(link, node, nullptr);
  Bytes buffer = pattern(3000, 3);
  POST(node, fi_writedata(node.ep, buffer.data(), 3000, nullptr, kData, node.peer, there.address,
                          there.key, nullptr));
  node.completion(node.tx);
  node.meet();
  const Bytes small = pattern(64, 4);
  POST(node, fi_inject_writedata(node.ep, small.data(), 64, kData + 1, node.peer, there.address,
                                 there.key));
  node.meet();
  buffer = pattern(3000, 5);
  const iovec piece{buffer.data(), 3000};
  const fi_rma_iov target{there.address, 3000, there.key};
  fi_msg_rma message{};
  message.msg_iov = &piece;
  message.iov_count = 1;
  message.addr = node.peer;
  message.rma_iov = &target;
  message.rma_iov_count = 1;
  message.data = kData + 2;
  POST(node, fi_writemsg(node.ep, &message, FI_REMOTE_CQ_DATA));
  node.completion(node.tx);
  node.meet();
}

// An operation that the target refuses ends with an error at the initiator, and nothing is changed.
void refusals(Link& link) {
  Node node(link);
  node.connect();
  Bytes memory = pattern(1000, 6);
  if (link.server()) {
    const Region writable(node, memory, FI_REMOTE_WRITE, 80);
    Bytes other = pattern(1000, 7);
    const Region readable(node, other, FI_REMOTE_READ, 81);
    link.send_value(writable.remote);
    link.send_value(readable.remote);
    node.meet();
    CHECK(same(memory, 6) && same(other, 7));
    return;
  }
  const Remote writable = link.receive_value<Remote>(&node);
  const Remote readable = link.receive_value<Remote>(&node);
  int context = 0;
  const auto expect_error = [&] {
    const fi_cq_err_entry error = node.error(node.tx);
    CHECK(error.err != 0);
    CHECK(error.op_context == &context);
    CHECK(error.prov_errno == 0 || fi_cq_strerror(node.tx, error.prov_errno, nullptr, nullptr, 0));
  };
  // Beyond the end, a right that was not given, a key that is not there.
  POST(node, fi_write(node.ep, memory.data(), 1000, nullptr, node.peer, writable.address + 1,
                      writable.key, &context));
  expect_error();
  POST(node, fi_read(node.ep, memory.data(), 1000, nullptr, node.peer, writable.address,
                     writable.key, &context));
  expect_error();
  POST(node, fi_write(node.ep, memory.data(), 1000, nullptr, node.peer, readable.address,
                      readable.key, &context));
  expect_error();
  POST(node, fi_write(node.ep, memory.data(), 1000, nullptr, node.peer, 0, 0x0dead, &context));
  expect_error();
  CHECK(node.stays_empty(node.tx));
  node.meet();
}

constexpr Case kCases[] = {
    {"writes", writes},
    {"reads", reads},
    {"data_for_the_target", data_for_the_target},
    {"refusals", refusals},
};

}  // namespace

int main(int argc, char** argv) { return run_cases(argc, argv, kCases); }
