// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Puts initiator, target and contexts together.
#include "ses/ses.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "ri/ri_table.h"
#include "ses/context.h"
#include "ses/initiator.h"
#include "ses/return_code.h"
#include "ses/target.h"

namespace uet::ses {

// PDS that has ended: nothing can be sent, and no PDC is left to do anything with.
class NoDelivery final : public pds::Delivery {
 public:
  Result<void> send(pds::Message&, const pds::Destination&, Time) override { return Error::Again; }
  Result<void> respond(pds::Message&, Time) override { return Error::Again; }
  Result<void> send_on(PdcId, pds::Message&, Time) override { return Error::NotFound; }
  void answer(PdcId, Psn, const pds::Response&) override {}
  bool cancel(pds::Message&) override { return false; }
  void edit_packets(const pds::Message&, pds::PacketEditor&) override {}
  void kick(PdcId) override {}
  void request_acks_now(PdcId) override {}
  void lock(PdcId) override {}
  void unlock(PdcId) override {}
  void watch(PdcId) override {}
  void unwatch(PdcId) override {}
  Result<PdcId> connect(const pds::Destination&, Time) override { return Error::Again; }
  bool proved(PdcId) override { return true; }
  void abort(PdcId, Time) override {}
};

struct Ses::Implementation final : pds::Client {
  Implementation(const Parameters& parameters, BufferPool& buffers, ri::MrTable& regions)
      : context_table(parameters.contexts),
        pieces(buffers),
        initiator(parameters, pieces, counters),
        target(parameters, pieces, regions, context_table, initiator, counters) {
    initiator.pulls().attach(target.receiver());
  }

  ~Implementation() override {
    for (const auto& context : contexts) target.receiver().close_context(*context);
    for (const auto& queue : queues) target.receiver().close_queue(*queue);
  }

  pds::Response rx_req(const pds::RequestView& request, Time now) override {
    if (!wire::is_response(request.next_hdr)) return target.rx_req(request, now);
    return initiator.rx_data(request, now);
  }

  std::optional<pds::RequestName> name_of(const pds::RequestView& request) const override {
    wire::SesRequest forward;
    wire::SesResponseHeader data;
    if (wire::is_response(request.next_hdr)) {
      if (!wire::SesResponseHeader::decode(request.next_hdr, request.bytes, data)) return {};
      return pds::RequestName{data.response_message_id, data.job_id};
    }
    if (!wire::SesRequest::decode(request.next_hdr, request.bytes, forward)) return {};
    return pds::RequestName{forward.message_id, forward.job_id};
  }

  pds::Response default_rsp(const pds::RequestName& name) const override {
    return default_response(name);
  }

  void pdc_proved(PdcId) override { target.receiver().try_now(); }

  void pdc_closed(PdcId pdc, std::optional<pds::PdsError> error, Time now) override {
    initiator.pdc_closed(pdc, error, now);
    target.pdc_closed(pdc, !error);
  }

  // In the table under all its keys, or, with the error, under none. Throws bad_alloc: likewise.
  Result<void> enter(Context& context) {
    std::vector<ri::RiKey> done;
    done.reserve(1 + context.config.more_jobs.size());
    const auto undo = [&] {
      for (const ri::RiKey& key : done) (void)context_table.remove(key);
    };
    Result<void> added{};
    try {
      context.for_each_key([&](const ri::RiKey& key) {
        added = context_table.add(key, &context);
        if (added) done.push_back(key);
        return added.ok();
      });
    } catch (const std::bad_alloc&) {
      undo();
      throw;
    }
    if (!added) undo();
    return added;
  }

  NoDelivery no_delivery;
  Counters counters;
  ri::RiTable context_table;
  std::vector<std::unique_ptr<ReceiveQueue>> queues;
  std::vector<std::unique_ptr<Context>> contexts;
  PieceStore pieces;
  Initiator initiator;
  Target target;
};

Ses::Ses(const Parameters& parameters, BufferPool& buffers, ri::MrTable& regions)
    : implementation_(std::make_unique<Implementation>(parameters, buffers, regions)) {}
Ses::~Ses() = default;

pds::Client& Ses::client() { return *implementation_; }

Initiator& Ses::initiator() { return implementation_->initiator; }

void Ses::attach(pds::Delivery& delivery) {
  implementation_->initiator.attach(delivery);
  implementation_->target.attach(delivery);
}

void Ses::detach() { attach(implementation_->no_delivery); }

void Ses::keep_trace_in(trace::Ring* ring, const Time* clock) {
  implementation_->initiator.keep_trace_in(ring, clock);
}

Result<Context*> Ses::open_context(const ContextConfig& config, CompletionSink& sink) {
  auto& contexts = implementation_->contexts;
  contexts.push_back(std::make_unique<Context>(config, sink));
  Context* const context = contexts.back().get();
  if (!config.receives) return context;
  try {
    const Result<void> added = implementation_->enter(*context);
    if (added) return context;
    contexts.pop_back();
    return added.error();
  } catch (const std::bad_alloc&) {
    contexts.pop_back();
    throw;
  }
}

namespace {

OperationWait wait_of(const TxMessage& message) {
  if (Fences::is_held(message)) return OperationWait::Fence;
  if (message.try_again) return OperationWait::Retry;
  if (message.deferred) return OperationWait::Deferred;
  if (message.packets_answered < message.packets_made || !message.ended) {
    return OperationWait::Packets;
  }
  if (message.awaits_read && !message.read_out) return OperationWait::Read;
  return message.pieces_awaited > 0 ? OperationWait::Data : OperationWait::Packets;
}

}  // namespace

std::size_t Ses::list_waiting(std::vector<WaitingOperation>& out, std::size_t most) const {
  out.clear();
  std::size_t known = 0;
  for (const auto& context : implementation_->contexts) {
    known += context->transmitting_count;
    for (const TxMessage& message : context->transmitting) {
      if (out.size() == most) break;
      out.push_back({.to = message.to,
                     .kind = message.kind,
                     .message_id = message.header.message_id,
                     .pdc = message.pdc,
                     .waits = wait_of(message),
                     .posted = message.posted,
                     .bytes = message.length,
                     .packets_made = message.packets_made,
                     .packets_answered = message.packets_answered});
    }
  }
  return known;
}

void Ses::enable(Context& context) { context.enabled = true; }

std::size_t Ses::outstanding(const Context& context) const { return context.transmitting_count; }

void Ses::connect(Context& context, const Peer& peer) { context.peer = {peer.fep, peer.initiator}; }

void Ses::rebind(Context& context, std::size_t tx_size, bool remote_cq_data) {
  context.config.tx_size = tx_size;
  context.config.remote_cq_data = remote_cq_data;
}

void Ses::close_context(Context& context, Time now) {
  implementation_->initiator.close_context(context, now);
  implementation_->target.receiver().close_context(context);
  if (context.config.receives) {
    context.for_each_key([&](const ri::RiKey& key) {
      const auto removed = implementation_->context_table.remove(key);
      UET_ASSERT(removed.ok());
      (void)removed;
      return true;
    });
  }
  std::erase_if(implementation_->contexts,
                [&](const auto& owned) { return owned.get() == &context; });
}

const ContextConfig& Ses::config(const Context& context) const { return context.config; }

ReceiveQueue* Ses::open_receive_queue(std::size_t size, bool directed, CompletionSink& sink,
                                      ReceiveOwner* owner) {
  auto& queues = implementation_->queues;
  queues.push_back(std::make_unique<ReceiveQueue>(size, directed, true, sink, owner));
  return queues.back().get();
}

void Ses::close_receive_queue(ReceiveQueue& queue) {
  implementation_->target.receiver().close_queue(queue);
  std::erase_if(implementation_->queues, [&](const auto& owned) { return owned.get() == &queue; });
}

Result<void> Ses::receive(Context& context, const ReceiveOp& op, Time now) {
  return receive(context.receives, op, now);
}

Result<void> Ses::receive(ReceiveQueue& queue, const ReceiveOp& op, Time) {
  return implementation_->target.receiver().receive(queue, op);
}

Result<void> Ses::receive_kept(Envelope& message, const ReceiveOp& op, Time) {
  return implementation_->target.receiver().receive_kept(message, op);
}

void Ses::discard_kept(Envelope& message, Time) {
  implementation_->target.receiver().discard_kept(message);
}

Result<void> Ses::peek(Context& context, const PeekOp& op, Time now) {
  return peek(context.receives, op, now);
}

Result<void> Ses::peek(ReceiveQueue& queue, const PeekOp& op, Time) {
  return implementation_->target.receiver().peek(queue, op);
}

Result<void> Ses::cancel(Context& context, void* operation_context, Time now) {
  const Result<void> receive = cancel(context.receives, operation_context, now);
  if (receive || receive.error() != Error::NotFound) return receive;
  if (implementation_->initiator.cancel(context, operation_context, now)) return {};
  return Error::NotFound;
}

Result<void> Ses::cancel(ReceiveQueue& queue, void* operation_context, Time) {
  return implementation_->target.receiver().cancel(queue, operation_context);
}

void Ses::cancel_receives(Context& context) {
  implementation_->target.receiver().cancel_all(context.own_receives);
}

void Ses::progress(Time now) {
  Receiver& receiver = implementation_->target.receiver();
  if (receiver.waits()) receiver.progress(now);
  if (implementation_->initiator.waits()) implementation_->initiator.progress(now);
}

Time Ses::next_deadline() const {
  return std::min(implementation_->initiator.next_deadline(),
                  implementation_->target.receiver().next_deadline());
}

std::size_t Ses::max_inject_bytes() const {
  return implementation_->initiator.limits().inject_bytes;
}

std::size_t Ses::max_atomic_bytes() const {
  return implementation_->initiator.limits().payload_mtu;
}

std::size_t Ses::unexpected_bytes() const {
  return implementation_->target.receiver().unexpected().bytes();
}

double Ses::unexpected_occupancy() const {
  const Unexpected& unexpected = std::as_const(implementation_->target).receiver().unexpected();
  if (unexpected.bytes() == 0) return 0;
  double most = 0;
  for (const auto& context : implementation_->contexts) {
    most = std::max(most, unexpected.occupancy(*context));
  }
  return most;
}

const Counters& Ses::counters() const { return implementation_->counters; }

bool Ses::idle() const {
  return implementation_->initiator.idle() && implementation_->target.idle() &&
         implementation_->pieces.in_use() == 0;
}

}  // namespace uet::ses
