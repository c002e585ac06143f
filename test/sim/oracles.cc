// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What must be true during and after a run (see workload.h).
#include <algorithm>
#include <cstring>

#include "sim/run_plan.h"

namespace uet::sim {
namespace {

std::uint64_t number_of(void* pointer) {
  std::uint64_t number = 0;
  std::memcpy(&number, &pointer, sizeof number);
  return number;
}

bool is_send(Flavour flavour) {
  return flavour == Flavour::Send || flavour == Flavour::TaggedSend || flavour == Flavour::Datagram;
}

ses::Kind kind_of(Flavour flavour) {
  switch (flavour) {
    case Flavour::Send:
    case Flavour::Datagram:
      return ses::Kind::Send;
    case Flavour::TaggedSend:
      return ses::Kind::TaggedSend;
    case Flavour::Read:
    case Flavour::SlotRead:
      return ses::Kind::Read;
    case Flavour::Add:
      return ses::Kind::Atomic;
    case Flavour::FetchAdd:
      return ses::Kind::FetchAtomic;
    case Flavour::Swap:
      return ses::Kind::CompareAtomic;
    default:
      return ses::Kind::Write;
  }
}

// The return code that the operation must fail with (SES-115), Ok if it must succeed.
wire::ReturnCode code_of(Flavour flavour) {
  switch (flavour) {
    case Flavour::BadKey:
      return wire::ReturnCode::BadMkey;
    case Flavour::BadRight:
      return wire::ReturnCode::OpViolation;
    case Flavour::BadBounds:
      return wire::ReturnCode::BadAddr;
    case Flavour::BadIndex:
      return wire::ReturnCode::BadIndex;
    default:
      return wire::ReturnCode::Ok;
  }
}

}  // namespace

void Run::Sink::complete(const ses::Completion& completion) noexcept {
  run_.on_completion(context_, completion);
}

bool Run::Sink::can_take_event() noexcept {
  return run_.world_.now() >= run_.end_of_faults_ || !run_.rng_.chance(run_.plan_.refuse_events);
}

bool Run::operation_counts(std::size_t number) const {
  const OperationPlan& op = plan_.operations[number];
  return serves(context_of(op.from).node) && serves(context_of(op.to).node);
}

bool Run::must_be_heard_of(std::size_t number) const {
  const OperationPlan& op = plan_.operations[number];
  if (!operation_counts(number) || op.flavour == Flavour::Datagram) return false;
  return is_send(op.flavour) || (op.flavour == Flavour::Write && op.with_data);
}

void Run::on_completion(int context, const ses::Completion& completion) {
  if (!lives(context_of(context).node)) return;
  if (completion.kind == ses::Kind::RemoteWrite) return on_remote_write(context, completion);
  const std::uint64_t number = number_of(completion.context);
  if (number >= kReceiveTag) {
    if (number - kReceiveTag >= receives_.size()) return fail("completion of no receive");
    on_receive(number - kReceiveTag, completion);
  } else if (number == 0 || number > operations_.size()) {
    fail("completion with a context of no operation");
  } else {
    on_operation(number - 1, completion);
  }
}

void Run::on_operation(std::size_t number, const ses::Completion& completion) {
  const OperationPlan& plan = plan_.operations[number];
  Operation& operation = operations_[number];
  const std::string name = "operation " + std::to_string(number);
  if (!operation.posted) fail(name + " completes but was not posted");
  if (++operation.completions > 1) fail(name + " completes twice");
  if (completion.kind != kind_of(plan.flavour)) fail(name + " completes as another kind");
  if (completion.user_flags != number * 3) fail(name + " completes with wrong user_flags");
  const bool to_dead = !lives(context_of(plan.to).node);
  const wire::ReturnCode expected = code_of(plan.flavour);
  operation.ok = completion.status == ses::Status::Ok;
  // An operation that had left whole may succeed despite its cancel; if it fails, it counts as
  // cancelled.
  if (operation.cancelled && operation.ok) operation.cancelled = false;
  if (operation.cancelled) {
    if (completion.status != ses::Status::Cancelled) fail(name + " is not Cancelled");
    return;
  }
  if (!operation_counts(number) && completion.status == ses::Status::PdsError) return;
  const bool sends = completion.kind == ses::Kind::Send || completion.kind == ses::Kind::TaggedSend;
  const bool unread = sends && completion.status == ses::Status::ReturnCode &&
                      completion.return_code == wire::ReturnCode::Dropped;
  if (!operation_counts(number) && !to_dead && unread) return;  // SES-64
  const bool successor = to_dead && plan_.returns_after != Duration{0};
  if (successor && completion.status == ses::Status::ReturnCode) return;  // it has no such endpoint
  if (operation_counts(number) || to_dead) check_fence(number);
  if (expected == wire::ReturnCode::Ok
          ? !operation.ok
          : completion.status != ses::Status::ReturnCode || completion.return_code != expected) {
    fail(name + " (flavour " + std::to_string(static_cast<int>(plan.flavour)) + ", context " +
         std::to_string(plan.from) + " to " + std::to_string(plan.to) + ", " +
         std::to_string(plan.length) + " B) completes with status " +
         std::to_string(static_cast<int>(completion.status)) + ", return code " +
         std::to_string(static_cast<int>(completion.return_code)) + ", PDS error " +
         std::to_string(static_cast<int>(completion.pds_error)));
  }
  if (plan.flavour == Flavour::Read || plan.flavour == Flavour::SlotRead) {
    check_read(number);
  } else {
    const bool delivered = operation.events > 0 || !must_be_heard_of(number);
    if (plan.delivery_complete && !delivered) {  // SES-110
      fail(name + " completes before it is delivered");
    }
    if (plan.flavour == Flavour::Swap) check_swap(number);
    // The buffer is the application's again; a late look at it by the core would send rubbish.
    if (!operation.memory->guards_intact()) fail(name + ": guard bytes overwritten");
    std::fill_n(operation.memory->data(), operation.memory->length(), kScribble);
  }
}

// All that was posted before a fence that stands before the operation has completed.
void Run::check_fence(std::size_t number) {
  const OperationPlan& plan = plan_.operations[number];
  const auto to_same_peer = [&](std::size_t other) {
    const OperationPlan& op = plan_.operations[other];
    return op.from == plan.from && op.to == plan.to &&
           (op.flavour == Flavour::BadIndex) == (plan.flavour == Flavour::BadIndex);
  };
  const auto is_fence = [&](std::size_t i) {
    return plan_.operations[i].fence && !operations_[i].cancelled && to_same_peer(i);
  };
  std::size_t fence = number + 1;
  while (fence > 0 && !is_fence(fence - 1)) --fence;
  for (std::size_t i = 0; i + 1 < fence; ++i) {
    if (to_same_peer(i) && operations_[i].completions == 0) {
      fail("operation " + std::to_string(number) + " did not wait for " + std::to_string(i));
    }
  }
}

void Run::check_read(std::size_t number) {
  const OperationPlan& plan = plan_.operations[number];
  GuardedMemory& memory = *operations_[number].memory;
  const std::string name = "read " + std::to_string(number);
  if (!memory.guards_intact()) return fail(name + ": guard bytes overwritten");
  const int node = context_of(plan.to).node;
  if (plan.flavour == Flavour::Read) {
    const std::byte* source = libraries_[static_cast<std::size_t>(node)]->data() + plan.offset;
    if (!std::equal(source, source + plan.length, memory.data())) fail(name + ": wrong data");
    return;
  }
  if (!operation_counts(number)) return;
  // ROD: exactly what the last write posted before the read put there (RAW, WAR; SES-126).
  int writer = -1;
  for (std::size_t i = 0; i < number; ++i) {
    const OperationPlan& other = plan_.operations[i];
    if (other.flavour == Flavour::SlotWrite && other.from == plan.from &&
        context_of(other.to).node == node) {
      writer = static_cast<int>(i);
    }
  }
  const bool right =
      writer >= 0 ? has_pattern(static_cast<std::uint64_t>(writer), memory.data(), plan.length)
                  : std::all_of(memory.data(), memory.data() + plan.length,
                                [](std::byte b) { return b == kUntouched; });
  if (!right) fail(name + ": not the data of the write before it");
}

void Run::on_receive(std::size_t number, const ses::Completion& completion) {
  const ReceivePlan& plan = plan_.receives[number];
  Receive& receive = receives_[number];
  const std::string name = "receive " + std::to_string(number);
  if (receive.looking) return on_look(number, completion);
  if (!receive.posted) fail(name + " completes but was not posted");
  const auto kind = plan.tagged ? ses::Kind::TaggedReceive : ses::Kind::Receive;
  if (completion.kind != kind) fail(name + " completes as another kind");
  if (completion.user_flags != number * 5) fail(name + " completes with wrong user_flags");
  if (!receive.memory->guards_intact()) fail(name + ": guard bytes overwritten");
  if (plan.multi) return on_multi_receive(number, completion);
  if (++receive.completions > 1) return fail(name + " completes twice");
  if (completion.status == ses::Status::Cancelled && cancelling_) return;
  if (completion.status == ses::Status::PeerLost && may_lose_peer()) return;
  if (completion.status == ses::Status::Abandoned && may_abandon()) return;
  if (completion.status != ses::Status::Ok && completion.status != ses::Status::Truncated) {
    return fail(name + " completes with status " +
                std::to_string(static_cast<int>(completion.status)));
  }
  if (completion.buffer != receive.memory->data()) fail(name + ": wrong buffer pointer");
  if (completion.length > plan.capacity) return fail(name + ": more bytes than its buffer holds");
  const auto message = message_of(completion);
  if (!message) return fail(name + ": took a message that no operation sent");
  receive.message = static_cast<int>(*message);
  on_message(number, completion, *message);
  const std::uint64_t placed = completion.length;
  if (!receive.memory->untouched_from(placed)) fail(name + ": bytes written behind the message");
}

// The number that the message carries as remote data or in its first bytes.
std::optional<std::size_t> Run::message_of(const ses::Completion& completion) const {
  std::uint64_t message = operations_.size();
  if (completion.has_data) {
    message = completion.data;
  } else if (completion.length >= sizeof message) {
    std::memcpy(&message, completion.buffer, sizeof message);
  }
  if (message >= operations_.size()) return {};
  return message;
}

void Run::on_message(std::size_t number, const ses::Completion& completion, std::size_t index) {
  const ReceivePlan& plan = plan_.receives[number];
  const OperationPlan& sent = plan_.operations[index];
  const ContextPlan& sender = context_of(sent.from);
  const std::string name =
      "receive " + std::to_string(number) + " of message " + std::to_string(index);
  if (!operations_[index].posted) fail(name + ": it was not sent");
  if (!is_send(sent.flavour) || sent.to != plan.context ||
      (sent.flavour == Flavour::TaggedSend) != plan.tagged) {
    fail(name + ": it was sent to another context");
  }
  // UUD does not remove copies of a datagram that the network made (PDS section 2).
  const bool copies = sent.flavour == Flavour::Datagram && plan_.link.duplication > 0;
  if (++operations_[index].events > 1 && !copies) fail(name + ": taken before");
  const std::uint64_t placed = std::min(sent.length, plan.capacity);
  if (completion.length != placed || completion.excess != sent.length - placed) {
    fail(name + ": wrong length " + std::to_string(completion.length) + " + " +
         std::to_string(completion.excess));
  }
  const auto status = placed < sent.length ? ses::Status::Truncated : ses::Status::Ok;
  if (completion.status != status) fail(name + ": wrong status");
  if (!has_pattern(index, static_cast<const std::byte*>(completion.buffer), placed)) {
    fail(name + ": wrong data");
  }
  if (completion.has_data != sent.with_data) fail(name + ": remote data lost or made up");
  if (plan.tagged && completion.tag != sent.tag) fail(name + ": wrong tag");
  if (plan.tagged && ((sent.tag ^ plan.tag) & ~plan.ignore) != 0) fail(name + ": no match");
  if (plan.source >= 0 && plan.source != sent.from) fail(name + ": not from the peer wanted");
  if (completion.source != address_of(static_cast<std::uint8_t>(sender.node), 1) ||
      completion.source_initiator.value != sender.initiator) {
    fail(name + ": wrong source");
  }
  if (sender.mode == DeliveryMode::Rod && operation_counts(index)) check_writes_before(index);
}

// ROD: what the sender wrote before it sent the message is in memory now (SAW, SES-126).
void Run::check_writes_before(std::size_t message) {
  const OperationPlan& sent = plan_.operations[message];
  for (std::size_t i = 0; i < message; ++i) {
    const OperationPlan& write = plan_.operations[i];
    if (write.flavour != Flavour::Write || write.from != sent.from ||
        context_of(write.to).node != context_of(sent.to).node) {
      continue;
    }
    if (plan_.fep.ses.no_match && write.to != sent.to) continue;  // not ordered
    if (!has_pattern(i, window(context_of(write.to).node) + write.offset, write.length)) {
      fail("message " + std::to_string(message) + " overtook write " + std::to_string(i));
    }
  }
}

void Run::on_remote_write(int context, const ses::Completion& completion) {
  if (!completion.has_data || completion.data >= operations_.size()) {
    return fail("remote write that no operation sent");
  }
  const auto number = static_cast<std::size_t>(completion.data);
  const OperationPlan& write = plan_.operations[number];
  const ContextPlan& sender = context_of(write.from);
  const std::string name = "remote write " + std::to_string(number);
  if (write.flavour != Flavour::Write || !write.with_data || write.to != context) {
    return fail(name + ": not meant for here");
  }
  if (completion.status != ses::Status::Ok) fail(name + ": not Ok");
  if (++operations_[number].events > 1) fail(name + ": reported twice");
  if (completion.length != write.length) fail(name + ": wrong length");
  if (completion.source != address_of(static_cast<std::uint8_t>(sender.node), 1) ||
      completion.source_initiator.value != sender.initiator) {
    fail(name + ": wrong source");
  }
  // SES-79: only when the whole message has been placed.
  if (!has_pattern(number, window(context_of(context).node) + write.offset, write.length)) {
    fail(name + ": reported before the data was there");
  }
}

bool Run::all_done() const {
  if (!closing_.all_closed()) return false;
  for (std::size_t i = 0; i < operations_.size(); ++i) {
    const OperationPlan& plan = plan_.operations[i];
    if (lives(context_of(plan.from).node) && operations_[i].completions == 0) return false;
    if (operations_[i].cancelled) continue;
    if (must_be_heard_of(i) && operations_[i].events == 0) return false;
  }
  // The receives that found no message are cancelled at the end, once all have been posted.
  // Receives of datagrams may stay without a message.
  for (std::size_t i = 0; i < receives_.size(); ++i) {
    const ContextPlan& context = context_of(plan_.receives[i].context);
    if (!lives(context.node)) continue;
    const bool posted_suffices =
        context.mode == DeliveryMode::Uud || (some_receives_stay() && !cancelling_);
    if (!receives_[i].posted || (!posted_suffices && receives_[i].completions == 0)) return false;
  }
  return true;
}

bool Run::at_rest() {
  for (int node = 0; node < world_.node_count(); ++node) {  // and who came to a dead one's address
    if (!lives(node)) continue;
    if (!world_.fep(node).quiescent() || !world_.fep(node).ses().idle()) return false;
  }
  return true;
}

std::string Run::unfinished() {
  std::string text;
  for (std::size_t i = 0; i < operations_.size(); ++i) {
    const OperationPlan& plan = plan_.operations[i];
    if (!lives(context_of(plan.from).node)) continue;
    const bool heard =
        operations_[i].cancelled || !must_be_heard_of(i) || operations_[i].events > 0;
    if (operations_[i].completions > 0 && heard) continue;
    text += " operation " + std::to_string(i) + " (flavour " +
            std::to_string(static_cast<int>(plan.flavour)) + ", context " +
            std::to_string(plan.from) + " to " + std::to_string(plan.to) + ", " +
            std::to_string(plan.length) + " B" + (operations_[i].posted ? "" : ", not posted") +
            (operations_[i].completions > 0 ? ", not received" : "") + ")";
    if (text.size() > 600) return text + " ...";
  }
  for (std::size_t i = 0; i < receives_.size(); ++i) {
    const bool alive = lives(context_of(plan_.receives[i].context).node);
    if (alive && receives_[i].posted && receives_[i].completions == 0) {
      text += " receive " + std::to_string(i);
    }
  }
  for (int node = 0; node < world_.node_count(); ++node) {
    if (!lives(node)) continue;
    if (!world_.fep(node).quiescent()) text += " node " + std::to_string(node) + " not quiescent";
    if (!world_.fep(node).ses().idle()) text += " node " + std::to_string(node) + " SES not idle";
  }
  return text;
}

// The promise of ROD for matching: of two messages of one sender the earlier one takes the earlier
// of the receives that it could take. A receive whose message was cancelled waits again (SES-113),
// so a run that cancels sends cannot be checked afterwards.
void Run::check_order() {
  if (plan_.cancels) return;
  for (std::size_t a = 0; a < receives_.size(); ++a) {
    for (std::size_t b = a + 1; b < receives_.size(); ++b) {
      const int early = receives_[b].message, late = receives_[a].message;
      if (early < 0 || late < 0 || early >= late) continue;
      const ReceivePlan& first = plan_.receives[a];
      const OperationPlan& sent = plan_.operations[static_cast<std::size_t>(early)];
      if (first.context != plan_.receives[b].context || first.tagged != plan_.receives[b].tagged ||
          sent.from != plan_.operations[static_cast<std::size_t>(late)].from ||
          context_of(sent.from).mode != DeliveryMode::Rod) {
        continue;
      }
      const bool matches = (!first.tagged || ((sent.tag ^ first.tag) & ~first.ignore) == 0) &&
                           (first.source < 0 || first.source == sent.from);
      if (matches) {
        fail("message " + std::to_string(late) + " overtook message " + std::to_string(early));
      }
    }
  }
}

// Every byte of every region is what the operations say, and no other byte was touched.
void Run::check_memory() {
  for (int node = 0; node < plan_.nodes; ++node) {
    if (!serves(node)) continue;
    const auto n = static_cast<std::size_t>(node);
    std::vector<std::byte> expected(plan_.window_bytes, kUntouched);
    for (std::size_t i = 0; i < operations_.size(); ++i) {
      const OperationPlan& op = plan_.operations[i];
      if (context_of(op.to).node != node) continue;
      if (op.flavour != Flavour::Write && op.flavour != Flavour::SlotWrite) continue;
      std::byte* place = expected.data() + op.offset;
      if (serves(context_of(op.from).node)) {
        fill_pattern(i, place, op.length);
      } else {  // whatever part of it came
        std::copy_n(windows_[n]->data() + op.offset, op.length, place);
      }
    }
    expect_counters(node, expected);
    const auto differs = std::mismatch(expected.begin(), expected.end(), windows_[n]->data()).first;
    if (differs != expected.end()) {
      fail("node " + std::to_string(node) + ": wrong byte in the region at " +
           std::to_string(differs - expected.begin()));
    }
    if (!windows_[n]->guards_intact()) fail("a byte before or behind the region was touched");
    if (!has_pattern(kLibraryNumber, libraries_[n]->data(), plan_.library_bytes)) {
      fail("the read-only region was touched");
    }
  }
}

}  // namespace uet::sim
