// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// FI_UET_ENGINE=process, in the application: the way of one domain to its engine, the program
// uet_engine, which has the FEP, its NIC and its keys. The domain's own FEP only keeps the tables
// by which calls are checked; it sends nothing.
//
// All with the domain's lock.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "process/engine_requests.h"
#include "process/linked_contexts.h"
#include "process/share.h"
#include "ri/mr_table.h"
#include "ses/operation_check.h"
#include "uet/base/result.h"
#include "uet/base/time.h"
#include "uet/ses/api.h"

struct fi_info;

namespace uet::prov {

struct ShareMapping;

class EngineLink {
 public:
  // Connects to the engine that `params` name and asks for a domain at `ip` and `port` (0: any) for
  // `info`. 0, or a negative fi_errno and the reason in `message`: -FI_ECONNREFUSED if no engine
  // listens, else the one that the engine gives.
  static int open(const fi_info& info, const Params& params, const FepAddress& at,
                  std::unique_ptr<EngineLink>& out, std::string& message);
  // Ends the domain in the engine.
  ~EngineLink();
  EngineLink(const EngineLink&) = delete;
  EngineLink& operator=(const EngineLink&) = delete;

  // Of the engine's NIC.
  const nic::NicCaps& caps() const { return caps_; }
  FepAddress local_address() const { return address_; }
  std::uint32_t payload_mtu() const { return limits_.payload_mtu; }

  // Readable when there may be events, after prepare_wait(), which says whether there are already.
  int wait_fd() const { return wait_fd_.get(); }
  bool prepare_wait();
  // Completes what the engine has completed; what queues cannot take now waits for them. If the
  // engine has ended, all operations fail with FI_EIO. True: there was something.
  bool take_events(Time now);

  // As the calls of ses::Ses and ses::Initiator. `queue`: an open_queue() that the context takes
  // its receives from.
  Result<ContextNumber> open_context(const ses::ContextConfig& config, ses::CompletionSink& sink,
                                     std::optional<ContextNumber> queue = {});
  void enable(ContextNumber context) { tell(Request::EnableContext, context); }
  void connect(ContextNumber context, const ses::Peer& peer);
  void rebind(ContextNumber context, std::size_t tx_size, bool remote_cq_data);
  void close_context(ContextNumber context);
  void request_acks_now(ContextNumber context) { tell(Request::RequestAcks, context); }
  void cancel_receives(ContextNumber context) { tell(Request::CancelReceives, context); }
  // Of several contexts. Has a number as a context, which receive(), peek() and cancel() take, and
  // close_context() when its contexts have been closed.
  Result<ContextNumber> open_queue(std::size_t size, bool directed, ses::CompletionSink& sink);
  // `op`: a ses::SendOp, RmaOp or AtomicOp. Again: the ring is full; see post_again.h.
  template <class Op>
  Result<void> post(ContextNumber context, const Op& op);
  Result<void> receive(ContextNumber context, const ses::ReceiveOp& op);
  Result<void> peek(ContextNumber context, const ses::PeekOp& op);
  Result<void> cancel(ContextNumber context, const void* operation_context);

  // How long a post to a full ring may wait for nothing to happen; none once it gave_up(), until
  // the engine takes commands again.
  Duration patience(bool transmit) const;
  void gave_up() { stalled_ = true; }

  LinkedContexts& contexts() { return contexts_; }
  // For all that is no operation.
  EngineRequests& requests() { return requests_; }

 private:
  EngineLink();
  int open_domain(ControlRequest& request, std::string& message);
  bool map(std::vector<nic::FileDescriptor>& descriptors);
  Result<ContextNumber> open(const ControlRequest& request, const LinkedContexts::Context& context);
  void tell(Request kind, ContextNumber context);
  SharedCommand* claim(bool transmit);
  template <class Op>
  Result<SharedCommand*> begin(ContextNumber context, ses::Kind kind, const Op& op);
  void finish(SharedCommand& command);
  void drain();
  void look_at_engine(Time now);
  void note_full_queues();

  EngineRequests requests_;
  nic::FileDescriptor doorbell_;
  nic::FileDescriptor event_fd_;
  nic::FileDescriptor wait_fd_;  // epoll: events, and the end of the engine
  std::unique_ptr<ShareMapping> share_;
  nic::NicCaps caps_;
  FepAddress address_;
  ses::OperationLimits limits_;
  LinkedContexts contexts_;
  Time next_look_{};
  bool full_ = false;     // the engine has been told so (Share::queues_full)
  bool slept_ = false;    // some thread has
  bool stalled_ = false;  // see patience()
};

}  // namespace uet::prov
