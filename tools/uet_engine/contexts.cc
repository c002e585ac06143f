// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "contexts.h"

#include <algorithm>
#include <utility>

#include "settings/params.h"

namespace uet::engine {

namespace {

// Values out of range are those of a broken application; `jobs` outlive the context.
ses::ContextConfig config_of(const prov::ContextRequest& request, std::span<const JobId> jobs) {
  ses::ContextConfig config;
  config.job = JobId{request.job & kMaxJobId};
  config.more_jobs = jobs;
  config.pid_on_fep = PidOnFep{static_cast<std::uint16_t>(request.pid_on_fep & kMaxPidOnFep)};
  config.resource_index =
      ResourceIndex{static_cast<std::uint16_t>(request.resource_index & kMaxResourceIndex)};
  config.initiator = InitiatorId{request.initiator};
  config.receives = request.receives != 0;
  config.relative = request.relative != 0;
  config.own_job_only = request.own_job_only != 0;
  const auto mode = static_cast<DeliveryMode>(request.mode);
  const bool known = mode == DeliveryMode::Rod || mode == DeliveryMode::Uud;
  config.mode = known ? mode : DeliveryMode::Rud;
  config.connected = request.connected != 0;
  config.traffic_class = request.traffic_class;
  config.tx_size = std::clamp<std::size_t>(request.tx_size, 1, prov::kMaxTxSize);
  config.rx_size = std::clamp<std::size_t>(request.rx_size, 1, prov::kMaxRxSize);
  config.directed_receive = request.directed_receive != 0;
  config.remote_cq_data = request.remote_cq_data != 0;
  config.data_takes_receive = request.data_takes_receive != 0;
  return config;
}

}  // namespace

void Context::complete(const ses::Completion& completion) noexcept {
  if (ses::is_atomic(completion.kind)) atomics_.end(completion);
  events_.complete(completion, number_);
}

void Context::note(ses::Kind kind, std::uint64_t events, std::uint64_t bytes) noexcept {
  events_.note_access({.of = number_,
                       .kind = prov::EventKind::ContextAccess,
                       .operation = static_cast<std::uint8_t>(kind),
                       .part = events == 0},
                      events, bytes);
}

// Numbers go round, so that events of a closed context are not taken for those of the next one.
// nullptr: all are in use.
std::unique_ptr<Context> Contexts::take_number() {
  if (all_.empty()) all_.resize(kMost);
  for (std::size_t tried = 0; tried < kMost; ++tried) {
    const auto number = static_cast<std::uint16_t>(next_++ % kMost);
    if (all_[number] == nullptr) return std::make_unique<Context>(events_, atomics_, number);
  }
  return nullptr;
}

Result<void> Contexts::open(ses::Ses& ses, const prov::ContextRequest& request,
                            std::uint16_t& number) {
  Context* const queue = request.has_queue != 0 ? find(request.queue) : nullptr;
  if (request.has_queue != 0 && (queue == nullptr || queue->queue == nullptr)) {
    return Error::Invalid;
  }
  auto context = take_number();
  if (context == nullptr) return Error::NoMemory;
  const std::size_t jobs = std::min<std::size_t>(request.more_jobs, prov::kMostSharedJobs);
  for (std::size_t i = 0; i < jobs; ++i) {
    context->jobs.push_back(JobId{request.jobs[i] & kMaxJobId});
  }
  ses::ContextConfig config = config_of(request, context->jobs);
  if (queue != nullptr) config.shared = queue->queue;
  const auto opened = ses.open_context(config, *context);
  if (!opened) return opened.error();
  context->context = opened.value();
  context->receives_from = queue;
  number = context->number();
  all_[number] = std::move(context);
  return {};
}

Result<void> Contexts::open_queue(ses::Ses& ses, const prov::ContextRequest& request,
                                  std::uint16_t& number) {
  auto queue = take_number();
  if (queue == nullptr) return Error::NoMemory;
  const std::size_t size = std::clamp<std::size_t>(request.rx_size, 1, prov::kMaxRxSize);
  queue->queue = ses.open_receive_queue(size, request.directed_receive != 0, *queue);
  number = queue->number();
  all_[number] = std::move(queue);
  return {};
}

Result<void> Contexts::close(ses::Ses& ses, Context& context, Time now) {
  if (context.queue != nullptr) {
    const auto uses = [&](const auto& other) {
      return other != nullptr && other->receives_from == &context;
    };
    if (std::any_of(all_.begin(), all_.end(), uses)) return Error::Invalid;
    ses.close_receive_queue(*context.queue);
  } else {
    ses.close_context(*context.context, now);
    atomics_.forget_context(context.number());
  }
  all_[context.number()].reset();
  return {};
}

void Contexts::close_all(ses::Ses& ses, Time now) {
  for (const bool queues : {false, true}) {
    for (const auto& context : all_) {
      if (context == nullptr || (context->queue != nullptr) != queues) continue;
      (void)close(ses, *context, now);
    }
  }
}

}  // namespace uet::engine
