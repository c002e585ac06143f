// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "process/engine_link.h"

#include <poll.h>
#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include <cstring>
#include <new>

#include "process/command_encoding.h"
#include "ses/operation_check.h"

namespace uet::prov {

namespace {

// An answer may wait until peers have answered the end of a domain.
constexpr timeval kPatience{.tv_sec = 10, .tv_usec = 0};
// Between two looks whether the engine still runs.
constexpr Duration kLook = std::chrono::milliseconds(10);
// Events that are set aside before the engine is told that the queues are full.
constexpr std::size_t kMostSetAside = 1024;
// See patience().
constexpr Duration kPatienceWithEngine = std::chrono::milliseconds(500);
constexpr Duration kPatienceWithOthers = std::chrono::milliseconds(3);

}  // namespace

struct ShareMapping {
  explicit ShareMapping(Share* memory)
      : share(*memory),
        transmits(share.transmits.commands, share.transmits.head),
        receives(share.receives.commands, share.receives.head),
        events(share.events, share.event_head) {}
  ShareMapping(const ShareMapping&) = delete;
  ShareMapping& operator=(const ShareMapping&) = delete;
  ~ShareMapping() { ::munmap(&share, sizeof share); }

  Share& share;
  CommandWriter transmits;
  CommandWriter receives;
  EventReader events;
};

// ---- begin and end ------------------------------------------------------------------------------

EngineLink::EngineLink() = default;

// A forked child has a copy of the socket, and leaves the parent's domain alone.
EngineLink::~EngineLink() {
  if (!requests_.is_own() || !requests_.connected()) return;
  const nic::NoCancel no_cancel;
  ::shutdown(requests_.socket(), SHUT_WR);
  pollfd end{.fd = requests_.socket(), .events = POLLIN, .revents = 0};
  ::poll(&end, 1, static_cast<int>(kPatience.tv_sec) * 1000);  // the engine closes when it is done
}

int EngineLink::open(const fi_info& info, const Params& params, const FepAddress& at,
                     std::unique_ptr<EngineLink>& out, std::string& message) {
  std::unique_ptr<EngineLink> link(new EngineLink);
  std::string why;
  link->requests_.use(connect_to_engine(engine_sockets(params.engine_socket), why));
  if (!link->requests_.connected()) {
    const bool no_descriptor = errno == EMFILE || errno == ENFILE;
    message = "FI_UET_ENGINE=process: no engine answers (" + why + "); start uet_engine";
    return no_descriptor ? -errno : -FI_ECONNREFUSED;
  }
  // Where processes may only trace their children (Yama), the engine may reach this one's memory.
  ::prctl(PR_SET_PTRACER, process_at(link->requests_.socket()).pid, 0, 0, 0);
  ::setsockopt(link->requests_.socket(), SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof kPatience);
  ControlRequest request = request_of(Request::Open);
  const char* const name = info.domain_attr->name;
  if (name != nullptr) {
    const std::size_t length = std::strlen(name);
    if (length >= request.open.interface.size()) return -FI_EINVAL;
    std::memcpy(request.open.interface.data(), name, length);
  }
  request.open.auth_key_bytes = static_cast<std::uint32_t>(info.domain_attr->auth_key_size);
  if (info.domain_attr->auth_key != nullptr) {
    std::memcpy(request.open.auth_key.data(), info.domain_attr->auth_key,
                std::min<std::size_t>(request.open.auth_key_bytes, request.open.auth_key.size()));
  }
  request.open.ip = at.ip.bytes;
  request.open.is_ipv6 = at.ip.is_ipv6;
  request.open.port = at.port;
  request.open.profile = static_cast<std::uint8_t>(params.profile);
  const int result = link->open_domain(request, message);
  if (result == 0) out = std::move(link);
  return result;
}

int EngineLink::open_domain(ControlRequest& request, std::string& message) {
  ControlAnswer answer;
  std::vector<nic::FileDescriptor> descriptors;
  if (!send_message(requests_.socket(), &request, sizeof request) ||
      !receive_message(requests_.socket(), &answer, sizeof answer, &descriptors) ||
      answer.version != control_version()) {
    message = "FI_UET_ENGINE=process: the engine is of another build; install both from one";
    return -FI_ENOSYS;
  }
  if (answer.error != 0) {
    message = "FI_UET_ENGINE=process: the engine: ";
    message += answer.open.message.data();
    return answer.error;
  }
  if (!map(descriptors)) {
    message = "FI_UET_ENGINE=process: the memory of the engine cannot be mapped";
    return -FI_ENOMEM;
  }
  caps_ = answer.open.caps;
  address_.ip.bytes = answer.open.ip;
  address_.ip.is_ipv6 = answer.open.is_ipv6 != 0;
  address_.port = answer.open.port;
  limits_ = {.inject_bytes = kMostInjected,
             .payload_mtu = answer.open.payload_mtu,
             .rendezvous = static_cast<Profile>(request.open.profile) == Profile::Hpc};
  return 0;
}

bool EngineLink::map(std::vector<nic::FileDescriptor>& descriptors) {
  if (descriptors.size() != 3) return false;
  struct stat size {};
  if (::fstat(descriptors[0].get(), &size) != 0 || size.st_size != sizeof(Share)) return false;
  void* const memory =
      ::mmap(nullptr, sizeof(Share), PROT_READ | PROT_WRITE, MAP_SHARED, descriptors[0].get(), 0);
  if (memory == MAP_FAILED) return false;
  share_ = std::make_unique<ShareMapping>(static_cast<Share*>(memory));
  doorbell_ = std::move(descriptors[1]);
  event_fd_ = std::move(descriptors[2]);
  wait_fd_ = nic::FileDescriptor(::epoll_create1(EPOLL_CLOEXEC));
  for (const int fd : {event_fd_.get(), requests_.socket()}) {
    epoll_event event{.events = EPOLLIN, .data = {.fd = fd}};
    if (::epoll_ctl(wait_fd_.get(), EPOLL_CTL_ADD, fd, &event) != 0) return false;
  }
  return true;
}

// ---- contexts -----------------------------------------------------------------------------------

Result<ContextNumber> EngineLink::open_context(const ses::ContextConfig& config,
                                               ses::CompletionSink& sink,
                                               std::optional<ContextNumber> queue) {
  if (config.more_jobs.size() > kMostSharedJobs) return Error::TooLong;
  ControlRequest request = request_of(Request::OpenContext);
  ContextRequest& asked = request.config;
  asked.tx_size = config.tx_size;
  asked.rx_size = config.rx_size;
  asked.job = config.job.value;
  asked.initiator = config.initiator.value;
  asked.pid_on_fep = config.pid_on_fep.value;
  asked.resource_index = config.resource_index.value;
  asked.receives = config.receives;
  asked.relative = config.relative;
  asked.own_job_only = config.own_job_only;
  asked.mode = static_cast<std::uint8_t>(config.mode);
  asked.traffic_class = config.traffic_class;
  asked.directed_receive = config.directed_receive;
  asked.connected = config.connected;
  asked.remote_cq_data = config.remote_cq_data;
  asked.data_takes_receive = config.data_takes_receive;
  asked.has_queue = queue.has_value();
  asked.queue = queue.value_or(0);
  for (const JobId job : config.more_jobs) asked.jobs[asked.more_jobs++] = job.value;
  return open(request, {.sink = &sink, .mode = config.mode, .rx_size = config.rx_size});
}

Result<ContextNumber> EngineLink::open_queue(std::size_t size, bool directed,
                                             ses::CompletionSink& sink) {
  ControlRequest request = request_of(Request::OpenQueue);
  request.config.rx_size = size;
  request.config.directed_receive = directed;
  return open(request, {.sink = &sink, .rx_size = size, .is_queue = true});
}

Result<ContextNumber> EngineLink::open(const ControlRequest& request,
                                       const LinkedContexts::Context& context) {
  const ControlAnswer answer = requests_.ask(request);
  if (answer.error != 0) return result_of(answer.error).error();
  contexts_.open(answer.context, context);
  return answer.context;
}

void EngineLink::tell(Request kind, ContextNumber context) {
  ControlRequest request = request_of(kind);
  request.context = context;
  requests_.ask(request);
}

void EngineLink::connect(ContextNumber context, const ses::Peer& peer) {
  ControlRequest request = request_of(Request::ConnectContext);
  request.context = context;
  request.peer.peer = share(peer);
  requests_.ask(request);
}

void EngineLink::rebind(ContextNumber context, std::size_t tx_size, bool remote_cq_data) {
  ControlRequest request = request_of(Request::RebindContext);
  request.context = context;
  request.config.tx_size = tx_size;
  request.config.remote_cq_data = remote_cq_data;
  requests_.ask(request);
}

void EngineLink::close_context(ContextNumber context) {
  tell(Request::CloseContext, context);
  contexts_.close(context);
}

Result<void> EngineLink::cancel(ContextNumber context, const void* operation_context) {
  const auto number = contexts_.operations().oldest(context, operation_context, false);
  if (!number) return Error::NotFound;
  ControlRequest request = request_of(Request::Cancel);
  request.context = context;
  request.operation = *number;
  return result_of(requests_.ask(request).error);
}

Result<void> EngineLink::peek(ContextNumber context, const ses::PeekOp& op) {
  std::optional<OperationNumber> number;
  if (op.claimed) number = contexts_.operations().oldest(context, op.context, true);
  if (op.claimed && !number) return Error::NotFound;
  try {
    if (!number) {
      number = contexts_.operations().add(
          {.context = op.context,
           .user_flags = op.user_flags,
           .kind = op.tagged ? ses::Kind::TaggedReceive : ses::Kind::Receive,
           .owner = context,
           .claims = op.claim});
    }
  } catch (const std::bad_alloc&) {
    return Error::NoMemory;
  }
  ControlRequest request = request_of(Request::Peek);
  request.context = context;
  request.peek.operation = *number;
  request.peek.tag = op.tag;
  request.peek.ignore = op.ignore;
  request.peek.tagged = op.tagged;
  request.peek.has_source = op.source != nullptr;
  if (op.source != nullptr) request.peek.source = share(*op.source);
  request.peek.has_job = op.job.has_value();
  request.peek.job = op.job.value_or(JobId{}).value;
  request.peek.claimed = op.claimed;
  request.peek.claim = op.claim;
  request.peek.discard = op.discard;
  if (op.claimed) contexts_.operations().find(*number)->claims = false;
  const Result<void> result = result_of(requests_.ask(request).error);
  if (!result && contexts_.operations().find(*number) != nullptr)
    contexts_.operations().remove(*number);
  return result;
}

// ---- operations ---------------------------------------------------------------------------------

SharedCommand* EngineLink::claim(bool transmit) {
  SharedCommand* const command = (transmit ? share_->transmits : share_->receives).claim();
  if (command != nullptr) stalled_ = false;
  return command;
}

// A full ring is empty again in a moment if the engine has a processor, and soon if it has space
// for events again. A command that waits for the end of others may wait long.
Duration EngineLink::patience(bool transmit) const {
  const CommandQueue& queue = transmit ? share_->share.transmits : share_->share.receives;
  auto& waits = const_cast<std::uint32_t&>(queue.waits);
  if (std::atomic_ref(waits).load(std::memory_order_relaxed) != 0) return kPatienceWithOthers;
  return stalled_ ? Duration{} : kPatienceWithEngine;
}

// A command to fill in, with the number of its operation. Again: the ring is full.
template <class Op>
Result<SharedCommand*> EngineLink::begin(ContextNumber context, ses::Kind kind, const Op& op) {
  if (requests_.gone()) return Error::Io;
  SharedCommand* const command = claim(is_transmit(kind));
  if (command == nullptr) return Error::Again;
  const std::uint64_t sequence = command->sequence;
  *command = {};
  command->sequence = sequence;
  command->context = context;
  try {
    command->operation = contexts_.operations().add(
        {.context = op.context, .user_flags = op.user_flags, .kind = kind, .owner = context});
  } catch (const std::bad_alloc&) {
    return Error::NoMemory;
  }
  return command;
}

void EngineLink::finish(SharedCommand& command) {
  const bool transmit = contexts_.count(command.operation);
  (transmit ? share_->transmits : share_->receives).publish();
  if (must_wake(share_->share.engine_sleeps)) {
    const nic::NoCancel no_cancel;
    ::eventfd_write(doorbell_.get(), 1);
  }
}

template <class Op>
Result<void> EngineLink::post(ContextNumber context, const Op& op) {
  const Result<void> possible = ses::check_operation(op, contexts_.of(context).mode, limits_);
  if (!possible) return possible;
  const auto begun = begin(context, kind_of(op), op);
  if (!begun) return begun.error();
  encode(op, *begun.value(), share_->share.inlined[share_->transmits.place()]);
  finish(*begun.value());
  return {};
}

template Result<void> EngineLink::post(ContextNumber, const ses::SendOp&);
template Result<void> EngineLink::post(ContextNumber, const ses::RmaOp&);
template Result<void> EngineLink::post(ContextNumber, const ses::AtomicOp&);

Result<void> EngineLink::receive(ContextNumber context, const ses::ReceiveOp& op) {
  const ses::Kind kind = op.tagged ? ses::Kind::TaggedReceive : ses::Kind::Receive;
  std::optional<OperationNumber> claimed;
  if (op.claim) {
    claimed = contexts_.operations().oldest(context, op.context, true);
    if (!claimed) return Error::NotFound;
  }
  const auto begun = begin(context, kind, op);
  if (!begun) return begun.error();
  SharedCommand& command = *begun.value();
  encode(op, command);
  if (claimed) {
    contexts_.operations().remove(command.operation);
    command.operation = *claimed;
    LinkedOperation& operation = *contexts_.operations().find(*claimed);
    operation.claims = false;
    operation.user_flags = op.user_flags;
  }
  contexts_.operations().find(command.operation)->multi = op.multi;
  finish(command);
  return {};
}

// ---- events -------------------------------------------------------------------------------------

void EngineLink::drain() {
  const nic::NoCancel no_cancel;
  eventfd_t count;
  ::eventfd_read(event_fd_.get(), &count);
}

// From the first sleep on: threads may take events while another one sleeps, which the next ones
// have to wake.
bool EngineLink::prepare_wait() {
  slept_ = true;
  drain();
  note_sleep(share_->share.application_sleeps);
  return requests_.gone() || share_->events.front() != nullptr;
}

bool EngineLink::take_events(Time now) {
  if (slept_ && !sleeps_now(share_->share.application_sleeps)) {
    drain();
    note_sleep(share_->share.application_sleeps);
  }
  bool any = contexts_.set_aside() > 0 && contexts_.give_set_aside();
  while (const SharedEvent* const event = share_->events.front()) {
    if (!contexts_.take(*event, requests_)) break;
    share_->events.pop();
    any = true;
  }
  note_full_queues();
  if (now >= next_look_) look_at_engine(now);
  return any;
}

void EngineLink::note_full_queues() {
  const bool full = contexts_.set_aside() >= kMostSetAside;
  if (full == full_) return;
  full_ = full;
  std::atomic_ref(share_->share.queues_full).store(full ? 1 : 0, std::memory_order_relaxed);
}

bool take_events(EngineLink& link, Time now) { return link.take_events(now); }

void EngineLink::look_at_engine(Time now) {
  next_look_ = now + kLook;
  if (!requests_.gone()) {
    const nic::NoCancel no_cancel;
    pollfd end{.fd = requests_.socket(), .events = POLLIN, .revents = 0};
    if (::poll(&end, 1, 0) <= 0) return;  // it sends nothing unasked
    requests_.give_up();
  }
  contexts_.fail_all();
}

}  // namespace uet::prov
