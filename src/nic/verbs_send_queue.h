// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The side to send of a raw-packet queue pair. Slots of one frame each are used in turn, one for
// each work request, so that the number of a request determines its slot. Pieces that are short or
// not registered are copied into the slot.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "nic/framed/frame_device.h"
#include "nic/framed/registered_regions.h"
#include "nic/verbs_port.h"

namespace uet::nic {

class VerbsSendQueue {
 public:
  // Pieces of a frame: headers, two pieces of registered memory, trailer.
  static constexpr std::uint32_t kPieces = 4;
  // Less is copied sooner than another piece is read by the device.
  static constexpr std::uint32_t kLeastGathered = 1024;

  // Registered memory of the application.
  struct Region {
    VerbsPointer<ibv_mr> registered;
    std::uint64_t last_used = 0;  // number of the latest work request that refers to it
  };
  using Regions = RegisteredRegions<Region>;

  // Memory of the queue, registered as `key`.
  struct Slots {
    std::byte* begin = nullptr;
    std::size_t bytes = 0;  // of each: no frame is longer
    std::size_t count = 0;
    std::uint32_t key = 0;
  };

  // `regions`: where pieces of frames with payload_stays may lie; nullptr: all are copied.
  VerbsSendQueue(const VerbsQueuePair& pair, const Slots& slots, Regions* regions);
  ~VerbsSendQueue();

  // As FrameDevice::send. Nothing is taken while the queue is broken.
  std::size_t send(std::span<const FrameToSend> in);
  // Waits until request `number` is over. A queue on which that takes too long is broken.
  void wait_for(std::uint64_t number);
  // A request has failed, and with it the queue pair.
  bool broken() const { return broken_; }
  // The queue pair has been restarted. Frames posted before are lost, and PDS sends them again.
  void restart();
  std::uint64_t gathered() const { return gathered_; }  // frames of several pieces, so far

 private:
  struct WorkRequests;
  void poll();
  bool fill(std::size_t place, const FrameToSend& frame);
  std::byte* slot(std::uint64_t number) const {
    return slots_.begin + number % slots_.count * slots_.bytes;
  }

  const VerbsQueuePair& pair_;
  const Slots slots_;
  Regions* const regions_;
  bool broken_ = false;
  std::uint64_t posted_ = 0;     // work requests, from the beginning
  std::uint64_t completed_ = 0;  // of them those that are over
  std::uint64_t signaled_ = 0;   // the latest one that will tell when it is over
  std::uint64_t gathered_ = 0;
  std::unique_ptr<WorkRequests> requests_;
};

}  // namespace uet::nic
