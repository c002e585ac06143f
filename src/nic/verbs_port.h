// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A port of an RDMA device with one raw-packet queue pair: found by name or by its interface, and
// brought to the state in which frames pass. Must not read the frames.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "nic/framed/frame_device.h"
#include "uet/base/result.h"

struct ibv_comp_channel;
struct ibv_context;
struct ibv_cq;
struct ibv_flow;
struct ibv_mr;
struct ibv_pd;
struct ibv_qp;
struct ibv_qp_attr;

namespace uet::nic {

struct VerbsDelete {
  void operator()(ibv_context* object) const;
  void operator()(ibv_pd* object) const;
  void operator()(ibv_mr* object) const;
  void operator()(ibv_comp_channel* object) const;
  void operator()(ibv_cq* object) const;
  void operator()(ibv_qp* object) const;
  void operator()(ibv_flow* object) const;
};
template <class Object>
using VerbsPointer = std::unique_ptr<Object, VerbsDelete>;

// The options behind "verbs:": [DEVICE][,port=N].
struct VerbsOptions {
  std::string device;     // "mlx5_0"; empty = the one that the interface belongs to
  std::uint8_t port = 0;  // 0 = that of the interface, or 1
};
// Error::Invalid: `message` says what is allowed.
Result<VerbsOptions> parse_verbs_options(std::string_view text, std::string& message);

// Sizes of the queue pair: first the requested ones, then the actual ones.
struct VerbsQueues {
  std::uint32_t sends = 0;
  std::uint32_t receives = 0;      // 0: sends alone
  std::uint32_t pieces = 0;        // of a frame to send, each in a memory region
  std::uint32_t inline_bytes = 0;  // frames up to this length are copied when they are posted
};

// A raw-packet queue pair with what it sends completing in a queue of its own.
struct VerbsQueuePair {
  VerbsPointer<ibv_cq> sent;
  VerbsPointer<ibv_qp> queue;  // goes first
  VerbsQueues sizes;
};

// Everything closes in the order that verbs demand. Not thread-safe.
class VerbsPort {
 public:
  // `queues`: wished; less is taken where the device has less. On return the queue pairs are in the
  // state RESET. Errors: NoDevice (no RDMA device, none of that name or interface, or it is down),
  // NotSupported (no right, no raw-packet queue pairs), NoMemory; `message` says what to do.
  static Result<std::unique_ptr<VerbsPort>> open(const Interface& interface,
                                                 const VerbsOptions& options, VerbsQueues queues,
                                                 std::string& message);
  ~VerbsPort();

  // Memory that the device may read, or also write. Null, with errno, if it is refused.
  VerbsPointer<ibv_mr> add_region(std::span<const std::byte> memory, bool write);
  // Memory of a device, which the NIC may read. Null, with errno, if it is refused.
  VerbsPointer<ibv_mr> add_dmabuf(const DmabufRange& range);
  // The two halves of bringing the queue pairs up; in between receives are posted. False, with
  // errno, if the device refuses.
  bool reset_and_init();
  bool start();
  // From now on the device hands us the frames to `self`. Errors: NotSupported.
  std::optional<Error> steer(const Interface& interface, const FepAddress& self,
                             const wire::FrameFormat& format, std::string& message);
  // After a fork the objects are the parent's: nothing of them may be touched.
  void abandon();

  const VerbsQueuePair& main() const { return main_; }
  // Sends alone, of frames with FrameToSend::control. nullptr: the device gives none.
  const VerbsQueuePair* control() const { return control_.queue ? &control_ : nullptr; }
  ibv_cq* received() const { return received_.get(); }
  ibv_comp_channel* channel() const { return channel_.get(); }

 private:
  VerbsPort() = default;
  std::optional<Error> create(const Interface& interface, VerbsQueues wished, std::string& message);
  // `received`: nullptr where nothing is received. False, with errno, if the device refuses.
  bool create_queue_pair(VerbsQueues wished, ibv_cq* received, VerbsQueuePair& pair);
  // To one of the states of bringing up, both queue pairs.
  bool modify(ibv_qp_attr& attributes, int mask);

  // In this order they are made, and in the other one they go.
  VerbsPointer<ibv_context> context_;
  std::uint8_t port_ = 0;
  VerbsPointer<ibv_pd> domain_;
  VerbsPointer<ibv_comp_channel> channel_;
  VerbsPointer<ibv_cq> received_;
  VerbsQueuePair main_;
  VerbsQueuePair control_;
  VerbsPointer<ibv_flow> flow_;
};

}  // namespace uet::nic
