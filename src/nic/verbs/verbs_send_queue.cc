// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "nic/verbs_send_queue.h"

#include <infiniband/verbs.h>

#include <algorithm>
#include <chrono>

namespace uet::nic {
namespace {

// Requests without a completion of their own, at most this part of all.
constexpr std::uint64_t kSignalPart = 4;
// Posted frames leave within this time, or the queue pair is restarted.
constexpr std::chrono::seconds kDrainLimit{1};

}  // namespace

struct VerbsSendQueue::WorkRequests {
  std::array<ibv_send_wr, kTxBurst> sends{};
  std::array<std::array<ibv_sge, kPieces>, kTxBurst> pieces{};
};

VerbsSendQueue::VerbsSendQueue(const VerbsQueuePair& pair, const Slots& slots, Regions* regions)
    : pair_(pair), slots_(slots), regions_(regions), requests_(std::make_unique<WorkRequests>()) {}

VerbsSendQueue::~VerbsSendQueue() = default;

void VerbsSendQueue::poll() {
  std::array<ibv_wc, 16> done;
  for (int count = static_cast<int>(done.size()); count == static_cast<int>(done.size());) {
    count = ibv_poll_cq(pair_.sent.get(), count, done.data());
    if (count < 0) broken_ = true;
    for (int i = 0; i < count; ++i) {
      const ibv_wc& completion = done[static_cast<std::size_t>(i)];
      if (completion.status != IBV_WC_SUCCESS) broken_ = true;
      completed_ = std::max(completed_, completion.wr_id);
    }
  }
}

// The work request for the next number to be posted, `place` of this burst. True: the device reads
// registered memory for it.
bool VerbsSendQueue::fill(std::size_t place, const FrameToSend& frame) {
  const std::uint64_t number = posted_ + place + 1;
  ibv_send_wr& request = requests_->sends[place];
  auto& pieces = requests_->pieces[place];
  request = {};
  request.wr_id = number;
  request.sg_list = pieces.data();
  request.opcode = IBV_WR_SEND;

  std::byte* to = slot(number);
  std::byte* piece_begin = to;
  const auto end_piece = [&] {
    if (to == piece_begin) return;
    pieces[static_cast<std::size_t>(request.num_sge++)] = {
        .addr = reinterpret_cast<std::uintptr_t>(piece_begin),
        .length = static_cast<std::uint32_t>(to - piece_begin),
        .lkey = slots_.key};
    piece_begin = to;
  };
  to = std::copy(frame.headers.begin(), frame.headers.end(), to);
  const bool gather = frame.payload_stays && regions_ != nullptr;
  bool gathered = false;
  for (std::size_t i = 0; i < frame.pieces.size(); ++i) {
    const Slice& piece = frame.pieces[i];
    DeviceMemory* const memory = i == 1 || i == 2 ? frame.memory : nullptr;
    const std::uint32_t least = memory != nullptr ? 1 : kLeastGathered;
    Region* const region = gather && piece.length >= least ? regions_->find(piece) : nullptr;
    if (region == nullptr) {
      fetch(memory, {to, piece.length}, piece.data);
      to += piece.length;
      continue;
    }
    end_piece();
    pieces[static_cast<std::size_t>(request.num_sge++)] = {
        .addr = reinterpret_cast<std::uintptr_t>(piece.data),
        .length = piece.length,
        .lkey = region->registered->lkey};
    region->last_used = number;
    gathered = true;
  }
  end_piece();
  if (!gathered && frame.length <= pair_.sizes.inline_bytes) request.send_flags |= IBV_SEND_INLINE;
  if (gathered) ++gathered_;
  return gathered;
}

std::size_t VerbsSendQueue::send(std::span<const FrameToSend> in) {
  // If it receives too, receives tell that the queue pair has failed.
  const bool watched = pair_.sizes.receives > 0;
  if (!watched || posted_ - completed_ + in.size() > slots_.count / 2) poll();
  const std::size_t room = slots_.count - static_cast<std::size_t>(posted_ - completed_);
  const std::size_t count = broken_ ? 0 : std::min({in.size(), room, kTxBurst});
  if (count == 0) return 0;
  bool gathered = false;
  auto& sends = requests_->sends;
  for (std::size_t i = 0; i < count; ++i) {
    gathered |= fill(i, in[i]);
    if (i > 0) sends[i - 1].next = &sends[i];
  }
  // One completion covers all requests before it. wait_for() waits for the one of a gathered frame,
  // so that this one must come soon.
  const std::uint64_t last = posted_ + count;
  if (gathered || last - signaled_ >= slots_.count / kSignalPart) {
    sends[count - 1].send_flags |= IBV_SEND_SIGNALED;
    signaled_ = last;
  }
  ibv_send_wr* refused = nullptr;
  if (ibv_post_send(pair_.queue.get(), sends.data(), &refused) != 0) broken_ = true;
  posted_ = last;
  return count;
}

void VerbsSendQueue::wait_for(std::uint64_t number) {
  const auto limit = std::chrono::steady_clock::now() + kDrainLimit;
  while (completed_ < number && !broken_) {
    poll();
    if (std::chrono::steady_clock::now() > limit) broken_ = true;
  }
}

void VerbsSendQueue::restart() {
  ibv_wc completion;
  while (ibv_poll_cq(pair_.sent.get(), 1, &completion) > 0) continue;
  completed_ = signaled_ = posted_;
  broken_ = false;
}

}  // namespace uet::nic
