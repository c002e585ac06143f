// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Carries the messages of connection management: a context of SES with a resource index of its own,
// whose sends and receives are those of a cm::Machine. Everything with the domain's lock.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "av/address.h"
#include "cm/machine.h"
#include "objects/engine.h"
#include "process/linked_contexts.h"
#include "uet/ses/api.h"

namespace uet::prov {

class CmPort final : public ses::CompletionSink {
 public:
  // `receives`: messages that may wait for run() before others wait in SES.
  CmPort(Engine& engine, cm::Machine& machine, std::size_t receives);
  ~CmPort() { close(); }

  // Opens the context `name` of the job. 0 or a negative fi_errno. Throws bad_alloc.
  int open(const av::UetAddress& name, JobId job) UET_REQUIRES(engine_.lock());
  // Sends in progress are dropped.
  void close() noexcept UET_NO_THREAD_ANALYSIS;

  // Hands over what has come and is due.
  void take(Time now) noexcept UET_REQUIRES(engine_.lock());
  // Sends what the machine has to send.
  void send(Time now) noexcept UET_REQUIRES(engine_.lock());
  void run(Time now) noexcept UET_REQUIRES(engine_.lock()) {
    take(now);
    send(now);
  }
  Time next_deadline() const noexcept { return machine_.next_deadline(); }
  // Nothing is to be sent, and no send is in progress.
  bool idle() const { return machine_.next_message() == nullptr && free_.size() == sends_.size(); }

  // ses::CompletionSink.
  void complete(const ses::Completion& completion) noexcept override;
  bool can_take_event() noexcept override { return false; }
  bool reserve_receive() noexcept override { return true; }
  void release_receive() noexcept override {}
  void remote_access(ses::Kind, std::uint64_t) noexcept override {}

 private:
  struct Receive {
    cm::MessageBytes bytes;
    std::size_t length = 0;  // 0: no message
    FepAddress source;
  };
  struct Send {
    cm::ConnectionId about = 0;
    cm::MessageType type{};
    cm::Outcome outcome{};
  };
  static constexpr std::size_t kSends = 256;  // in progress

  bool is_open() const { return context_ != nullptr || linked_.has_value(); }
  void post(Receive& receive, Time now) noexcept UET_REQUIRES(engine_.lock());
  void take_messages(Time now) noexcept UET_REQUIRES(engine_.lock());
  void take_outcomes(Time now) noexcept UET_REQUIRES(engine_.lock());
  bool send_all(Time now) noexcept UET_REQUIRES(engine_.lock());

  Engine& engine_;
  cm::Machine& machine_;
  ses::Context* context_ = nullptr;
  std::optional<ContextNumber> linked_;  // FI_UET_ENGINE=process: instead of `context_`
  std::vector<Receive> receives_;
  std::vector<Send> sends_;
  // With memory for all: completions allocate nothing.
  std::vector<Receive*> arrived_;
  std::vector<Receive*> unposted_;
  std::vector<Send*> ended_;
  std::vector<Send*> free_;
};

}  // namespace uet::prov
