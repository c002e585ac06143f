// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Triggered operations and the deferred work queue, in one process that talks to itself.
#include <gtest/gtest.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_trigger.h>

#include <array>
#include <deque>

#include "harness.h"

namespace uet::e2e {
namespace {

void in_child(const std::function<void()>& body) {
  Process process("child", {}, body);
  EXPECT_EQ(process.wait(), "");
}

Owned<fid_cntr> open_counter(fid_domain* domain) {
  fid_cntr* counter = nullptr;
  check(fi_cntr_open(domain, nullptr, &counter, nullptr), "fi_cntr_open");
  return Owned<fid_cntr>(counter);
}

NodeOptions options() {
  NodeOptions options;
  options.capabilities = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_TRIGGER;
  options.order = FI_ORDER_SAS;
  options.counters = true;
  return options;
}

fi_triggered_context at(fid_cntr* counter, std::size_t threshold) {
  fi_triggered_context context{};
  context.event_type = FI_TRIGGER_THRESHOLD;
  context.trigger.threshold.cntr = counter;
  context.trigger.threshold.threshold = threshold;
  return context;
}

struct Loop {
  explicit Loop(const NodeOptions& node_options = options())
      : node(node_options),
        self(node.insert(node.name())),
        counter(open_counter(node.domain.get())),
        done(open_counter(node.domain.get())) {}

  fid_ep* ep() { return node.ep.get(); }
  void post_receive(void* buffer, std::size_t bytes, void* context) {
    check(fi_recv(ep(), buffer, bytes, nullptr, FI_ADDR_UNSPEC, context), "fi_recv");
  }
  // A triggered send of `data` that becomes due at `threshold`.
  ssize_t send_at(std::span<std::byte> data, fi_triggered_context& context,
                  std::uint64_t flags = 0) {
    const iovec iov{data.data(), data.size()};
    fi_msg msg{};
    msg.msg_iov = &iov;
    msg.iov_count = 1;
    msg.addr = self;
    msg.context = &context;
    return fi_sendmsg(ep(), &msg, flags | FI_TRIGGER);
  }
  // Progress for as long as something that is not to happen would take.
  void settle() {
    for (int i = 0; i < 1000; ++i) node.keep_events();
  }
  void require_nothing(const char* what) {
    settle();
    require(!node.poll(), what);
  }

  Node node;
  fi_addr_t self;
  Owned<fid_cntr> counter;  // what triggers
  Owned<fid_cntr> done;     // what deferred work counts on
};

// ---- triggered operations ----------------------------------------------------------------------

TEST(Trigger, Operations_LeaveByThresholdThenPostingOrder) {
  in_child([] {
    Loop loop;
    constexpr std::array<std::size_t, 8> kThresholds{5, 2, 7, 2, 5, 1, 2, 5};
    constexpr std::array<std::size_t, 8> kOrder{5, 1, 3, 6, 0, 4, 7, 2};
    std::array<std::uint64_t, 8> in{};
    std::array<std::uint64_t, 8> out{};
    std::array<fi_triggered_context, 8> contexts{};
    for (std::uint64_t& place : in) loop.post_receive(&place, sizeof place, &place);
    for (std::size_t i = 0; i < 8; ++i) {
      out[i] = i;
      contexts[i] = at(loop.counter.get(), kThresholds[i]);
      check(loop.send_at(std::as_writable_bytes(std::span(&out[i], 1)), contexts[i]), "fi_sendmsg");
    }
    loop.require_nothing("sent before the counter moved");
    check(fi_cntr_set(loop.counter.get(), 10), "fi_cntr_set");
    loop.node.drain(16, "sends and receives");
    for (std::size_t i = 0; i < 8; ++i) {
      require(in[i] == kOrder[i],
              "message " + std::to_string(i) + " is number " + std::to_string(in[i]));
    }
    require(fi_cntr_read(loop.node.sent.get()) == 8, "triggered sends count like others");
  });
}

TEST(Trigger, ACompletionReleasesWhatWaitsForItsCounter) {
  in_child([] {
    Loop loop;
    std::array<std::byte, 100> out{};
    std::array<std::byte, 100> in{};
    fill_pattern(out, 3);
    // Received twice, forwarded from one to the other: each send waits for the message before it.
    std::array<fi_triggered_context, 10> contexts{};
    for (std::size_t i = 0; i < 10; ++i) {
      loop.post_receive(in.data(), in.size(), nullptr);
      contexts[i] = at(loop.node.received.get(), i + 1);
      if (i < 9) check(loop.send_at(out, contexts[i]), "fi_sendmsg");
    }
    check(fi_send(loop.ep(), out.data(), out.size(), nullptr, loop.self, nullptr), "fi_send");
    loop.node.drain(20, "sends and receives");
    require_pattern(in, 3, "message");
  });
}

TEST(Trigger, EveryKindOfOperationCanWait) {
  in_child([] {
    Loop loop;
    std::array<std::byte, 64> memory{};
    const Region region = loop.node.expose(memory.data(), memory.size(), 5);
    std::array<std::byte, 64> out{};
    std::array<std::byte, 64> in{};
    std::array<std::byte, 64> fetched{};
    fill_pattern(out, 4);
    std::deque<fi_triggered_context> contexts;
    const auto context = [&](std::size_t threshold) {
      return &contexts.emplace_back(at(loop.counter.get(), threshold));
    };
    const iovec from_out{out.data(), out.size()};
    const iovec to_in{in.data(), in.size()};
    const iovec to_fetched{fetched.data(), fetched.size()};
    const fi_rma_iov remote{region.address, memory.size(), region.key};
    fi_msg_rma write{&from_out, nullptr, 1, loop.self, &remote, 1, context(1), 0};
    check(fi_writemsg(loop.ep(), &write, FI_TRIGGER), "fi_writemsg");
    fi_msg_rma read{&to_fetched, nullptr, 1, loop.self, &remote, 1, context(2), 0};
    check(fi_readmsg(loop.ep(), &read, FI_TRIGGER), "fi_readmsg");
    fi_msg_tagged receive{&to_in, nullptr, 1, FI_ADDR_UNSPEC, 77, 0, context(3), 0};
    check(fi_trecvmsg(loop.ep(), &receive, FI_TRIGGER), "fi_trecvmsg");
    fi_msg_tagged send{&from_out, nullptr, 1, loop.self, 77, 0, context(4), 0};
    check(fi_tsendmsg(loop.ep(), &send, FI_TRIGGER), "fi_tsendmsg");
    loop.require_nothing("done before the counter moved");
    const auto step = [&](const char* what, std::size_t completions) {
      check(fi_cntr_add(loop.counter.get(), 1), "fi_cntr_add");
      loop.node.drain(completions, what);
    };
    step("a write", 1);
    require_pattern(memory, 4, "written memory");
    step("a read", 1);
    require_pattern(fetched, 4, "what was read");
    check(fi_cntr_add(loop.counter.get(), 1), "fi_cntr_add");
    step("a tagged send and its receive", 2);
    require_pattern(in, 4, "message");
  });
}

TEST(Trigger, DueOperationsLeaveAtOnce) {
  in_child([] {
    Loop loop;
    check(fi_cntr_add(loop.counter.get(), 3), "fi_cntr_add");
    std::uint64_t in = 0;
    std::uint64_t out = 9;
    loop.post_receive(&in, sizeof in, nullptr);
    fi_triggered_context context = at(loop.counter.get(), 3);
    check(loop.send_at(std::as_writable_bytes(std::span(&out, 1)), context), "fi_sendmsg");
    loop.node.drain(2, "a send and its receive");
    require(in == 9, "wrong data");
  });
}

TEST(Trigger, AliasTriggersAllOperations_InjectIsCopied) {
  in_child([] {
    Loop loop;
    fid_ep* alias = nullptr;
    check(fi_ep_alias(loop.ep(), &alias, FI_TRANSMIT | FI_TRIGGER), "fi_ep_alias");
    const Owned<fid_ep> owned(alias);
    std::array<std::uint64_t, 2> in{};
    std::array<std::uint64_t, 2> out{11, 12};
    for (std::uint64_t& place : in) loop.post_receive(&place, sizeof place, nullptr);
    std::array<fi_triggered_context, 2> contexts{at(loop.counter.get(), 1),
                                                 at(loop.counter.get(), 2)};
    check(fi_send(alias, &out[0], sizeof out[0], nullptr, loop.self, &contexts[0]), "fi_send");
    check(loop.send_at(std::as_writable_bytes(std::span(&out[1], 1)), contexts[1], FI_INJECT),
          "fi_sendmsg");
    out[1] = 0;
    require(fi_inject(alias, &out[0], sizeof out[0], loop.self) == -FI_EINVAL,
            "an inject without context was triggered");
    check(fi_cntr_add(loop.counter.get(), 2), "fi_cntr_add");
    loop.node.drain(4, "sends and receives");
    require(in[0] == 11 && in[1] == 12, "wrong data");
  });
}

TEST(Trigger, MoreThanTheQueueHoldsLeaveAsItDrains) {
  in_child([] {
    NodeOptions small = options();
    small.queue_size = 32;
    Loop loop(small);
    constexpr std::size_t kSends = 500;
    std::vector<fi_triggered_context> contexts(kSends, at(loop.counter.get(), 1));
    std::vector<std::uint64_t> out(kSends);
    for (std::size_t i = 0; i < kSends; ++i) {
      out[i] = i;
      check(loop.send_at(std::as_writable_bytes(std::span(&out[i], 1)), contexts[i]), "fi_sendmsg");
    }
    check(fi_cntr_add(loop.counter.get(), 1), "fi_cntr_add");
    std::uint64_t in = 0;
    std::size_t sent = 0;
    for (std::size_t received = 0; received < kSends;) {
      loop.post_receive(&in, sizeof in, &in);
      for (bool got = false; !got;) {
        const Event event = loop.node.next("a completion");
        got = event.context == &in;
        if (!got) ++sent;
      }
      require(in == received++, "out of order");
    }
    loop.node.drain(kSends - sent, "sends");
  });
}

TEST(Trigger, ErrorsAreToldWhenPosting) {
  in_child([] {
    Loop loop;
    Node other(options());
    std::uint64_t out = 0;
    const auto data = std::as_writable_bytes(std::span(&out, 1));
    fi_triggered_context context = at(loop.counter.get(), 1);
    context.event_type = static_cast<fi_trigger_event>(1);  // FI_TRIGGER_XPU, which 2.x lacks
    require(loop.send_at(data, context) == -FI_EINVAL, "an event that is not served");
    context = at(nullptr, 1);
    require(loop.send_at(data, context) == -FI_EINVAL, "no counter was accepted");
    context = at(other.sent.get(), 1);
    require(loop.send_at(data, context) == -FI_EDOMAIN, "a counter of another domain");
    context = at(loop.counter.get(), 1);
    require(loop.send_at(data, context, FI_PEEK) == -FI_EINVAL, "a flag without meaning");
    check(fi_cntr_add(loop.counter.get(), 9), "fi_cntr_add");
    loop.require_nothing("something was posted");
  });
}

TEST(Trigger, CancelEndsAWaitingOperation) {
  in_child([] {
    Loop loop;
    std::uint64_t out = 0;
    fi_triggered_context context = at(loop.counter.get(), 1);
    check(loop.send_at(std::as_writable_bytes(std::span(&out, 1)), context), "fi_sendmsg");
    check(fi_cancel(&loop.ep()->fid, &context), "fi_cancel");
    const std::optional<Event> event = loop.node.poll();
    require(event && event->error == FI_ECANCELED && event->context == &context,
            "no error entry of the cancelled operation");
    check(fi_cntr_add(loop.counter.get(), 1), "fi_cntr_add");
    loop.require_nothing("sent in spite of fi_cancel");
  });
}

TEST(Trigger, AnUnknownPeerIsToldByACompletion) {
  in_child([] {
    Loop loop;
    loop.self = 1000;
    std::uint64_t out = 0;
    fi_triggered_context context = at(loop.counter.get(), 1);
    check(loop.send_at(std::as_writable_bytes(std::span(&out, 1)), context), "fi_sendmsg");
    check(fi_cntr_add(loop.counter.get(), 1), "fi_cntr_add");
    const std::optional<Event> event = loop.node.poll();
    require(event && event->error != 0 && event->context == &context, "no error entry");
    require(fi_cntr_readerr(loop.node.sent.get()) == 1, "the error was not counted");
  });
}

TEST(Trigger, CountersOutliveWhatWaitsForThem) {
  in_child([] {
    Loop loop;
    std::uint64_t out = 0;
    fi_triggered_context context = at(loop.counter.get(), 1);
    check(loop.send_at(std::as_writable_bytes(std::span(&out, 1)), context), "fi_sendmsg");
    require(fi_close(&loop.counter->fid) == -FI_EBUSY, "a counter was closed that is waited for");
    check(fi_close(&loop.node.ep.release()->fid), "closing the endpoint");
    check(fi_close(&loop.counter.release()->fid), "closing the counter");
  });
}

// ---- deferred work -----------------------------------------------------------------------------

struct Deferred {
  explicit Deferred(Loop& owner) : loop(owner) {
    work.threshold = 1;
    work.triggering_cntr = loop.counter.get();
    work.completion_cntr = loop.done.get();
  }
  int queue(fi_op_type type) {
    work.op_type = type;
    return fi_control(&loop.node.domain->fid, FI_QUEUE_WORK, &work);
  }
  // Everything the queue needs to know is copied: the pieces on this stack are gone at once.
  int message(fi_op_type type, void* buffer, std::size_t bytes, std::uint64_t flags = 0) {
    const iovec iov{buffer, bytes};
    fi_op_msg op{};
    op.ep = loop.ep();
    op.msg.msg_iov = &iov;
    op.msg.iov_count = 1;
    op.msg.addr = type == FI_OP_SEND ? loop.self : FI_ADDR_UNSPEC;
    op.msg.context = &work.context;
    op.flags = flags;
    work.op.msg = &op;
    return queue(type);
  }
  int tagged(fi_op_type type, void* buffer, std::size_t bytes) {
    const iovec iov{buffer, bytes};
    fi_op_tagged op{};
    op.ep = loop.ep();
    op.msg.msg_iov = &iov;
    op.msg.iov_count = 1;
    op.msg.addr = type == FI_OP_TSEND ? loop.self : FI_ADDR_UNSPEC;
    op.msg.tag = 5;
    work.op.tagged = &op;
    return queue(type);
  }
  int rma(fi_op_type type, void* buffer, std::size_t bytes, const Region& region) {
    const iovec iov{buffer, bytes};
    const fi_rma_iov remote{region.address, bytes, region.key};
    fi_op_rma op{};
    op.ep = loop.ep();
    op.msg.msg_iov = &iov;
    op.msg.iov_count = 1;
    op.msg.addr = loop.self;
    op.msg.rma_iov = &remote;
    op.msg.rma_iov_count = 1;
    work.op.rma = &op;
    return queue(type);
  }
  int atomic(fi_op_type type, std::uint64_t& operand, std::uint64_t& fetched, fi_op op_code,
             const Region& region) {
    const fi_ioc iov{&operand, 1};
    const fi_ioc result{&fetched, 1};
    const fi_rma_ioc remote{region.address, 1, region.key};
    fi_msg_atomic msg{};
    msg.msg_iov = &iov;
    msg.iov_count = 1;
    msg.addr = loop.self;
    msg.rma_iov = &remote;
    msg.rma_iov_count = 1;
    msg.datatype = FI_UINT64;
    msg.op = op_code;
    fi_msg_fetch fetch{};
    fetch.msg_iov = const_cast<fi_ioc*>(&result);
    fetch.iov_count = 1;
    static std::uint64_t expected = 40;  // read when the work is due
    const fi_ioc comparison{&expected, 1};
    fi_msg_compare compare{};
    compare.msg_iov = &comparison;
    compare.iov_count = 1;
    fi_op_atomic base{loop.ep(), msg, 0};
    fi_op_fetch_atomic fetching{loop.ep(), msg, fetch, 0};
    fi_op_compare_atomic comparing{loop.ep(), msg, fetch, compare, 0};
    if (type == FI_OP_ATOMIC) work.op.atomic = &base;
    if (type == FI_OP_FETCH_ATOMIC) work.op.fetch_atomic = &fetching;
    if (type == FI_OP_COMPARE_ATOMIC) work.op.compare_atomic = &comparing;
    return queue(type);
  }
  int on_counter(fi_op_type type, fid_cntr* target, std::uint64_t value) {
    fi_op_cntr op{target, value};
    work.completion_cntr = nullptr;
    work.op.cntr = &op;
    return queue(type);
  }
  Loop& loop;
  fi_deferred_work work{};
};

TEST(DeferredWork, EveryTransferCountsOnItsCounterOnly) {
  in_child([] {
    Loop loop;
    std::array<std::byte, 64> memory{};
    const Region region = loop.node.expose(memory.data(), memory.size(), 5);
    std::array<std::byte, 64> out{};
    std::array<std::array<std::byte, 64>, 3> in{};
    fill_pattern(out, 6);
    std::deque<Deferred> works;
    const auto next = [&]() -> Deferred& { return works.emplace_back(loop); };
    check(next().message(FI_OP_RECV, in[0].data(), 64), "queueing a receive");
    check(next().message(FI_OP_SEND, out.data(), 64), "queueing a send");
    check(next().tagged(FI_OP_TRECV, in[1].data(), 64), "queueing a tagged receive");
    check(next().tagged(FI_OP_TSEND, out.data(), 64), "queueing a tagged send");
    check(next().rma(FI_OP_WRITE, out.data(), 64, region), "queueing a write");
    loop.settle();
    require(fi_cntr_read(loop.done.get()) == 0, "done before the counter moved");
    check(fi_cntr_add(loop.counter.get(), 1), "fi_cntr_add");
    check(fi_cntr_wait(loop.done.get(), 5, 10000), "waiting for the works");
    check(next().rma(FI_OP_READ, in[2].data(), 64, region), "queueing a read");
    check(fi_cntr_wait(loop.done.get(), 6, 10000), "waiting for the read");
    for (const auto& buffer : in) require_pattern(buffer, 6, "what arrived");
    require_pattern(memory, 6, "written memory");
    require(fi_cntr_read(loop.node.sent.get()) == 0, "the endpoint's counter has counted");
    require(fi_cntr_read(loop.node.received.get()) == 0, "the endpoint's counter has counted");
    loop.require_nothing("an unexpected entry");
  });
}

TEST(DeferredWork, AtomicsOfEveryForm) {
  in_child([] {
    Loop loop;
    std::uint64_t memory = 1;
    const Region region = loop.node.expose(&memory, sizeof memory, 5);
    std::array<std::uint64_t, 2> operands{9, 30};
    std::array<std::uint64_t, 2> fetched{};
    Deferred add(loop);
    Deferred fetch(loop);
    fetch.work.triggering_cntr = loop.done.get();  // one after the other
    check(fetch.atomic(FI_OP_FETCH_ATOMIC, operands[1], fetched[1], FI_SUM, region), "queueing");
    check(add.atomic(FI_OP_ATOMIC, operands[0], fetched[0], FI_SUM, region), "queueing");
    check(fi_cntr_add(loop.counter.get(), 1), "fi_cntr_add");
    check(fi_cntr_wait(loop.done.get(), 2, 10000), "waiting for two works");
    require(memory == 40 && fetched[1] == 10, "wrong sums");
    std::uint64_t other = 0;
    std::uint64_t desired = 7;
    Deferred swap(loop);
    check(swap.atomic(FI_OP_COMPARE_ATOMIC, desired, other, FI_CSWAP, region), "queueing");
    check(fi_cntr_wait(loop.done.get(), 3, 10000), "waiting for the swap");
    require(other == 40 && memory == 7, "the swap did not happen");
    loop.require_nothing("an unexpected entry");
  });
}

TEST(DeferredWork, TellsTheEndpointTooIfAskedWithFiCompletion) {
  in_child([] {
    Loop loop;
    std::uint64_t out = 8;
    std::uint64_t in = 0;
    loop.post_receive(&in, sizeof in, &in);
    Deferred send(loop);
    check(send.message(FI_OP_SEND, &out, sizeof out, FI_COMPLETION), "queueing a send");
    check(fi_cntr_add(loop.counter.get(), 1), "fi_cntr_add");
    std::array<Event, 2> events{loop.node.next("a completion"), loop.node.next("a completion")};
    require(events[0].context == &send.work.context || events[1].context == &send.work.context,
            "no entry with the context of the work");
    require(fi_cntr_read(loop.done.get()) == 1, "the work's counter has not counted");
    require(fi_cntr_read(loop.node.sent.get()) == 1, "the endpoint's counter has not counted");
  });
}

TEST(DeferredWork, LongChainOfSetsAndAdds_KeepsItsOrder) {
  in_child([] {
    Loop loop;
    constexpr std::uint64_t kLinks = 5000;
    std::vector<Owned<fid_cntr>> counters;
    for (std::uint64_t i = 0; i <= kLinks; ++i) {
      counters.push_back(open_counter(loop.node.domain.get()));
    }
    for (std::uint64_t i = 0; i < kLinks; ++i) {
      Deferred link(loop);
      link.work.triggering_cntr = counters[i].get();
      check(link.on_counter(FI_OP_CNTR_ADD, counters[i + 1].get(), 1), "queueing an addition");
    }
    check(fi_cntr_add(counters[0].get(), 1), "fi_cntr_add");
    require(fi_cntr_read(counters[kLinks].get()) == 1, "the chain has not ended with the call");

    Deferred set(loop);
    Deferred add(loop);
    check(set.on_counter(FI_OP_CNTR_SET, loop.done.get(), 5), "queueing a set");
    check(add.on_counter(FI_OP_CNTR_ADD, loop.done.get(), 5), "queueing an addition");
    check(fi_cntr_adderr(loop.counter.get(), 1), "fi_cntr_adderr");  // errors count as well
    require(fi_cntr_read(loop.done.get()) == 10, "set and add in another order");
    Deferred wrong(loop);
    fi_op_cntr op{loop.done.get(), 1};
    wrong.work.op.cntr = &op;
    require(wrong.queue(FI_OP_CNTR_ADD) == -FI_EINVAL, "a completion counter was accepted");
    wrong.work.op.cntr = nullptr;
    require(wrong.queue(FI_OP_CNTR_ADD) == -FI_EINVAL, "no operation was accepted");
    require(wrong.queue(FI_OP_SEND) == -FI_EINVAL, "no message was accepted");
  });
}

TEST(DeferredWork, CancelAndFlushTakeWorkOffTheQueue) {
  in_child([] {
    Loop loop;
    const auto control = [&](int command, void* argument) {
      return fi_control(&loop.node.domain->fid, command, argument);
    };
    std::deque<Deferred> works;
    const auto queue_on = [&](fid_cntr* trigger) -> Deferred& {
      Deferred& work = works.emplace_back(loop);
      work.work.triggering_cntr = trigger;
      check(work.on_counter(FI_OP_CNTR_ADD, loop.done.get(), 1), "queueing an addition");
      return work;
    };
    const Owned<fid_cntr> other = open_counter(loop.node.domain.get());
    Deferred& first = queue_on(loop.counter.get());
    queue_on(loop.counter.get());
    queue_on(other.get());
    require(fi_close(&loop.done->fid) == -FI_EBUSY, "a counter was closed that work changes");
    check(control(FI_CANCEL_WORK, &first.work), "FI_CANCEL_WORK");
    require(control(FI_CANCEL_WORK, &first.work) == -FI_ENOENT, "cancelled twice");
    fi_deferred_work which{};
    which.triggering_cntr = other.get();
    check(control(FI_FLUSH_WORK, &which), "FI_FLUSH_WORK of one counter");
    check(fi_cntr_add(other.get(), 1), "fi_cntr_add");
    require(fi_cntr_read(loop.done.get()) == 0, "flushed work was done");
    check(fi_cntr_add(loop.counter.get(), 1), "fi_cntr_add");
    require(fi_cntr_read(loop.done.get()) == 1, "other work than the one left was done");
    queue_on(loop.counter.get());  // due: done at once
    require(fi_cntr_read(loop.done.get()) == 2, "work that was due was not done");
    Deferred& late = works.emplace_back(loop);
    late.work.threshold = 100;
    check(late.on_counter(FI_OP_CNTR_ADD, loop.done.get(), 1), "queueing an addition");
    check(control(FI_FLUSH_WORK, nullptr), "FI_FLUSH_WORK of all");
    check(fi_cntr_set(loop.counter.get(), 100), "fi_cntr_set");
    require(fi_cntr_read(loop.done.get()) == 2, "flushed work was done");
  });
}

}  // namespace
}  // namespace uet::e2e
