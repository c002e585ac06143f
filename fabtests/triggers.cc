// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Triggered operations and the deferred work queue, fi_trigger(3): a transfer that was posted
// begins when its counter reaches the threshold, without another call of the application.
#include <rdma/fi_trigger.h>

#include "common.h"

using namespace fabtests;

namespace {

constexpr int kTimeoutMs = 20'000;

void with_triggers(fi_info& hints) { hints.caps |= FI_TRIGGER; }

// A triggered send waits for two receives: the server answers the client's second message with what
// it had posted before the first one came.
void triggered_send(Link& link) {
  Setup setup;
  setup.hints = with_triggers;
  Node node(link, setup);
  fid_cntr* received = node.counter(FI_RECV);
  node.connect();
  int value = 0;
  if (link.server()) {
    fi_triggered_context2 context{};
    context.event_type = FI_TRIGGER_THRESHOLD;
    context.trigger.threshold = {received, 2};
    int answer = 77;
    const iovec piece{&answer, sizeof answer};
    fi_msg message{};
    message.msg_iov = &piece;
    message.iov_count = 1;
    message.addr = node.peer;
    message.context = &context;
    POST(node, fi_sendmsg(node.ep, &message, FI_TRIGGER));
    for (int i = 0; i < 2; ++i) {
      CHECK(node.stays_empty(node.tx));
      POST(node, fi_recv(node.ep, &value, sizeof value, nullptr, node.peer, nullptr));
      node.meet();
      node.completion(node.rx);
    }
    CHECK(node.completion(node.tx).op_context == &context);
  } else {
    POST(node, fi_recv(node.ep, &value, sizeof value, nullptr, node.peer, &value));
    for (int i = 0; i < 2; ++i) {
      CHECK(value == 0);
      node.meet();
      POST(node, fi_inject(node.ep, &i, sizeof i, node.peer));
    }
    node.completion(node.rx);
    CHECK(value == 77);
  }
  node.meet();
}

// The work queue: when a message has come, a write into the client's memory begins; when that is
// done, a counter is raised. Completions are counted, not queued.
void deferred_work(Link& link) {
  Setup setup;
  setup.hints = with_triggers;
  Node node(link, setup);
  fid_cntr* received = node.counter(FI_RECV);
  fid_cntr* done = node.counter(0);
  fid_cntr* raised = node.counter(0);
  node.connect();
  Bytes memory = pattern(5000, 5);
  if (!link.server()) {
    memory.assign(5000, std::byte{0});
    const Region region(node, memory, FI_REMOTE_WRITE, 1);
    link.send_value(region.remote);
    node.meet();
    POST(node, fi_inject(node.ep, memory.data(), 4, node.peer));
    node.meet();
    CHECK(same(memory, 5));
    node.meet();
    return;
  }
  const Remote there = link.receive_value<Remote>(&node);
  const iovec piece{memory.data(), memory.size()};
  const fi_rma_iov target{there.address, memory.size(), there.key};
  fi_op_rma write{};
  write.ep = node.ep;
  write.msg.msg_iov = &piece;
  write.msg.iov_count = 1;
  write.msg.addr = node.peer;
  write.msg.rma_iov = &target;
  write.msg.rma_iov_count = 1;
  write.flags = FI_DELIVERY_COMPLETE;
  fi_deferred_work first{};
  first.threshold = 1;
  first.triggering_cntr = received;
  first.completion_cntr = done;
  first.op_type = FI_OP_WRITE;
  first.op.rma = &write;
  OK(fi_control(&node.domain->fid, FI_QUEUE_WORK, &first));
  fi_op_cntr add{raised, 10};
  fi_deferred_work second{};
  second.threshold = 1;
  second.triggering_cntr = done;
  second.op_type = FI_OP_CNTR_ADD;
  second.op.cntr = &add;
  OK(fi_control(&node.domain->fid, FI_QUEUE_WORK, &second));
  // A third one that is taken back before its time.
  fi_op_cntr never{raised, 1000};
  fi_deferred_work third = second;
  third.threshold = 100;
  third.op.cntr = &never;
  OK(fi_control(&node.domain->fid, FI_QUEUE_WORK, &third));
  OK(fi_control(&node.domain->fid, FI_CANCEL_WORK, &third));

  int value = 0;
  POST(node, fi_recv(node.ep, &value, sizeof value, nullptr, node.peer, nullptr));
  CHECK(fi_cntr_read(done) == 0);
  node.meet();
  OK(fi_cntr_wait(raised, 10, kTimeoutMs));
  CHECK(fi_cntr_read(done) == 1 && fi_cntr_read(raised) == 10);
  node.completion(node.rx);
  node.meet();
  OK(fi_control(&node.domain->fid, FI_FLUSH_WORK, nullptr));
  node.meet();
}

constexpr Case kCases[] = {{"triggered_send", triggered_send}, {"deferred_work", deferred_work}};

}  // namespace

int main(int argc, char** argv) { return run_cases(argc, argv, kCases); }
