// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Contexts that several endpoints share: fid_stx, slots for operations in progress, and a fid_ep
// of class FI_CLASS_SRX_CTX, a queue of receives.
#pragma once

#include <rdma/fi_endpoint.h>

#include <memory>
#include <optional>
#include <vector>

#include "objects/engine.h"
#include "objects/ep_options.h"
#include "objects/peer_receives.h"
#include "objects/post_receive.h"
#include "objects/references.h"
#include "uet/ses/api.h"

namespace uet::prov {

class Domain;

// fi_ops_domain.stx_ctx: fi_stx_context(3).
int stx_open(fid_domain* domain, fi_tx_attr* attr, fid_stx** stx, void* context) noexcept;
// fi_ops_domain.srx_ctx: fi_srx_context(3).
int srx_open(fid_domain* domain, fi_rx_attr* attr, fid_ep** srx, void* context) noexcept;

class Endpoint;

// Slots for the operations in progress of several endpoints. Belongs to the fid_stx and to each
// endpoint bound to it, also to its parts at other engines (tx_division.h): by any thread.
class TxSlots {
 public:
  explicit TxSlots(std::size_t size) : size_(size) {}
  std::size_t size() const { return size_; }
  std::size_t left() const {
    const std::size_t taken = in_progress_.load(std::memory_order_relaxed);
    return taken < size_ ? size_ - taken : 0;
  }
  // Adds the operations that an endpoint has in progress when it is bound; may exceed `size`.
  void take_over(std::size_t count) { in_progress_.fetch_add(count, std::memory_order_relaxed); }
  // False if no slot is free now.
  bool take() {
    std::size_t taken = in_progress_.load(std::memory_order_relaxed);
    while (taken < size_) {
      if (in_progress_.compare_exchange_weak(taken, taken + 1, std::memory_order_relaxed)) {
        return true;
      }
    }
    return false;
  }
  void give_back(std::size_t count = 1) {
    in_progress_.fetch_sub(count, std::memory_order_relaxed);
  }

 private:
  const std::size_t size_;
  std::atomic<std::size_t> in_progress_{0};
};

// All its endpoints together have as many operations in progress as one context. Completions go to
// each endpoint's own CQ. It may be closed before its endpoints, as Sandia OpenSHMEM does: those
// keep the slots.
class Stx final : public fid_stx {
 public:
  static Stx& from(struct fid* fid) { return static_cast<Stx&>(*reinterpret_cast<fid_stx*>(fid)); }
  // attr.size 0: the domain's default.
  Stx(Domain& domain, const fi_tx_attr& attr, void* context);
  int close() noexcept;

  Engine& engine() { return engine_; }
  const std::shared_ptr<TxSlots>& slots() const { return slots_; }

 private:
  Engine& engine_;
  Hold hold_;
  std::shared_ptr<TxSlots> slots_;
};

// Messages to any of its endpoints take the receives posted here; each completes in the CQ of the
// endpoint it was sent to. Completions without a message (cancelled receives, peeks, multi-receive
// buffers given back) are reported by the endpoint that was enabled first, while there is one.
class Srx final : public fid_ep, public ses::CompletionSink {
 public:
  static Srx& from(fid_ep* fid) { return static_cast<Srx&>(*fid); }
  static Srx& from(struct fid* fid) { return from(reinterpret_cast<fid_ep*>(fid)); }
  // attr.size 0: the domain's default.
  Srx(Domain& domain, const fi_rx_attr& attr, void* context);
  // fi_peer(3): receives are posted to `owner`, none to this one.
  Srx(Domain& domain, PeerSrx& owner);
  // Once, after the first constructor: its receives in the engine's process, if there is one. 0 or
  // a negative fi_errno. Throws bad_alloc.
  int open_linked();
  int close() noexcept;

  // Implementations of the calls of the same name.
  ssize_t receive(const RxCall& call) noexcept;
  ssize_t cancel(void* operation_context) noexcept;
  int control(int command, void* argument) noexcept;
  int get_option(int name, void* value, std::size_t* length) const noexcept;
  int set_option(int name, const void* value, std::size_t length) noexcept;
  std::uint64_t op_flags() const { return op_flags_; }
  std::uint64_t tagged_op_flags() const { return settings_.tagged_defaults(op_flags_); }

  Engine& engine() { return engine_; }
  References& references() { return references_; }

  // The rest with the domain's lock.
  ses::ReceiveQueue* queue() const { return queue_; }
  // Of the engine's process.
  std::optional<ContextNumber> linked() const { return linked_; }
  // From fi_enable to the end of an endpoint that takes its receives from here.
  void join(Endpoint& endpoint);
  void leave(Endpoint& endpoint) noexcept;
  // That of the endpoints; nullptr without one.
  const AvFid* av() const;
  // Not nullptr: its receives are another provider's.
  PeerReceives* peer() const { return peer_.get(); }

  // ses::CompletionSink for what belongs to no message.
  void complete(const ses::Completion& completion) noexcept override;
  bool reserve_receive() noexcept override;
  void release_receive() noexcept override;
  // Only endpoints are written to.
  bool can_take_event() noexcept override { return false; }
  void remote_access(ses::Kind, std::uint64_t) noexcept override {}

 private:
  void set_ops() noexcept;
  ~Srx() override = default;
  void hold_places() noexcept;

  Engine& engine_;
  Hold hold_;
  References references_;
  std::uint64_t op_flags_;
  const std::size_t size_;
  ReceiveSettings settings_;
  const std::unique_ptr<PeerReceives> peer_;
  ses::ReceiveQueue* queue_ = nullptr;
  std::optional<ContextNumber> linked_;
  std::vector<Endpoint*> endpoints_;  // the first one tells
  std::size_t owed_ = 0;              // completions that will come without a message
  std::size_t held_ = 0;              // places that the first endpoint has reserved for them
};

}  // namespace uet::prov
