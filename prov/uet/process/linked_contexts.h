// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// FI_UET_ENGINE=process, in the application: the contexts that the engine has opened for a domain,
// their operations, and what the events of the engine mean to them.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "process/engine_requests.h"
#include "process/operation_table.h"
#include "process/share.h"
#include "uet/base/types.h"
#include "uet/pds/api.h"
#include "uet/ses/api.h"

namespace uet::prov {

using ContextNumber = std::uint16_t;

class LinkedContexts {
 public:
  struct Context {
    ses::CompletionSink* sink = nullptr;  // nullptr: closed
    DeliveryMode mode{};
    std::size_t rx_size = 0;
    bool is_queue = false;      // receives that several contexts share
    std::size_t transmits = 0;  // in progress
    std::size_t receives = 0;
  };

  // Throws bad_alloc.
  void open(ContextNumber number, const Context& context);
  // Its operations end without completions.
  void close(ContextNumber number);
  const Context& of(ContextNumber number) const { return all_[number]; }
  // It has as many receives as its rx_size.
  bool is_full(ContextNumber number) const { return all_[number].receives >= all_[number].rx_size; }

  OperationTable& operations() { return operations_; }
  // The operation has been posted. Does it transmit?
  bool count(OperationNumber number);

  // A completion that its queue cannot take now is set aside, so that it does not hold back those
  // of other queues. False: there is no memory for that.
  bool take(const SharedEvent& event, const EngineRequests& requests);
  // Gives queues with space what has been set aside for them. True: there was something.
  bool give_set_aside();
  std::size_t set_aside() const { return set_aside_count_; }
  // The engine has ended: all operations fail.
  void fail_all();
  // As nic::Nic.
  std::optional<FepAddress> take_refusal();
  // As fep::Fep; the engine has been asked to watch, too.
  void watch_peers(pds::PeerWatcher* watcher) { watcher_ = watcher; }

 private:
  ses::CompletionSink* sink_of(ContextNumber number) const {
    return number < all_.size() ? all_[number].sink : nullptr;
  }
  struct SetAside {
    ses::Completion completion;
    bool reserves;  // no post has reserved an entry of the queue
  };

  bool complete(const SharedEvent& event);
  static bool has_place(ses::CompletionSink& sink, const ses::Completion& completion,
                        bool reserves);
  void count_access(const SharedEvent& event, const EngineRequests& requests);
  void end(OperationNumber number, const ses::Completion& completion);
  void remove(OperationNumber number);

  std::vector<Context> all_;
  OperationTable operations_;
  std::map<ContextNumber, std::deque<SetAside>> set_aside_;  // in order; none is empty
  std::size_t set_aside_count_ = 0;
  std::deque<FepAddress> refusals_;
  pds::PeerWatcher* watcher_ = nullptr;
};

// Of an operation; false: it receives.
inline bool is_transmit(ses::Kind kind) {
  return kind != ses::Kind::Receive && kind != ses::Kind::TaggedReceive &&
         kind != ses::Kind::RemoteWrite;
}

}  // namespace uet::prov
