// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A raw-packet queue pair: work requests and completions. The device is found, and its queue pair
// brought up, as for uet.
#include <infiniband/verbs.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "nic/socket.h"
#include "nic/verbs_port.h"
#include "raw_frame.h"

namespace uet::bench {
namespace {

constexpr std::size_t kFrameBytes = 16'384;
constexpr std::uint32_t kReceives = 512;
constexpr std::uint32_t kSends = 256;
constexpr nic::VerbsQueues kWished{
    .sends = kSends, .receives = kReceives, .pieces = 1, .inline_bytes = 128};

class RawVerbs final : public RawWire {
 public:
  RawVerbs(const RawFrame& frame, std::unique_ptr<nic::VerbsPort> port)
      : frame_(frame), port_(std::move(port)), memory_((kReceives + kSends) * kFrameBytes) {}
  ~RawVerbs() override {
    port_->reset_and_init();  // what is posted refers to the region
    region_.reset();
  }

  bool open(const FabricAddress& self, std::string& message) {
    region_ = port_->add_region(memory_, true);
    const bool up = region_ != nullptr && port_->reset_and_init() && post_all() && port_->start();
    if (!up) {
      message = "the queue pair does not start: " + nic::error_text(errno);
      return false;
    }
    return !port_->steer(frame_.interface(), {self, kRawPort}, {}, message);
  }

  std::size_t send(std::span<const RawMessage> messages, bool with_payload) override {
    take_completions();
    const auto bytes = static_cast<std::uint32_t>(frame_.bytes(with_payload));
    const std::size_t count = std::min({messages.size(), kRawBurst, std::size_t{kSends} - posted_});
    if (count == 0) return 0;
    for (std::size_t i = 0; i < count; ++i) {
      std::byte* const at = memory_.data() + (kReceives + next_) * kFrameBytes;
      next_ = (next_ + 1) % kSends;
      frame_.write(at, messages[i], with_payload);
      pieces_[i] = piece(at, bytes);
      ibv_send_wr& request = requests_[i];
      request = {};
      request.sg_list = &pieces_[i];
      request.num_sge = 1;
      request.opcode = IBV_WR_SEND;
      if (bytes <= port_->main().sizes.inline_bytes) request.send_flags = IBV_SEND_INLINE;
      request.next = i + 1 < count ? &requests_[i + 1] : nullptr;
    }
    requests_[count - 1].send_flags |= IBV_SEND_SIGNALED;
    requests_[count - 1].wr_id = count;
    ibv_send_wr* refused = nullptr;
    if (ibv_post_send(port_->main().queue.get(), requests_.data(), &refused) != 0) return 0;
    posted_ += count;
    return count;
  }

  std::size_t receive(std::span<RawMessage> out) override {
    std::array<ibv_wc, kRawBurst> arrived;
    const auto most = static_cast<int>(std::min(out.size(), arrived.size()));
    const int count = ibv_poll_cq(port_->received(), most, arrived.data());
    std::size_t filled = 0;
    for (int i = 0; i < count; ++i) {
      const ibv_wc& completion = arrived[static_cast<std::size_t>(i)];
      const std::byte* const at = memory_.data() + completion.wr_id * kFrameBytes;
      const bool good = completion.status == IBV_WC_SUCCESS;
      if (good && frame_.read({at, completion.byte_len}, out[filled])) ++filled;
      post(completion.wr_id);
    }
    return filled;
  }

 private:
  ibv_sge piece(std::byte* at, std::uint32_t bytes) const {
    return {.addr = reinterpret_cast<std::uintptr_t>(at), .length = bytes, .lkey = region_->lkey};
  }

  bool post(std::uint64_t frame) {
    ibv_sge place = piece(memory_.data() + frame * kFrameBytes, kFrameBytes);
    ibv_recv_wr request{.wr_id = frame, .next = nullptr, .sg_list = &place, .num_sge = 1};
    ibv_recv_wr* refused = nullptr;
    return ibv_post_recv(port_->main().queue.get(), &request, &refused) == 0;
  }
  bool post_all() {
    for (std::uint32_t i = 0; i < port_->main().sizes.receives; ++i) {
      if (!post(i)) return false;
    }
    return true;
  }

  void take_completions() {
    std::array<ibv_wc, 16> done;
    const int count =
        ibv_poll_cq(port_->main().sent.get(), static_cast<int>(done.size()), done.data());
    for (int i = 0; i < count; ++i) posted_ -= done[static_cast<std::size_t>(i)].wr_id;
  }

  RawFrame frame_;
  std::unique_ptr<nic::VerbsPort> port_;
  std::vector<std::byte> memory_;
  nic::VerbsPointer<ibv_mr> region_;
  std::array<ibv_send_wr, kRawBurst> requests_;
  std::array<ibv_sge, kRawBurst> pieces_;
  std::size_t posted_ = 0;  // to send, and not known to have been
  std::size_t next_ = 0;
};

}  // namespace

std::unique_ptr<RawWire> open_raw_verbs(const RawChoice& choice) {
  const auto frame = RawFrame::open(choice);
  if (!frame) return nullptr;
  std::string message;
  auto port = nic::VerbsPort::open(frame->interface(), {}, kWished, message);
  if (port) {
    auto wire = std::make_unique<RawVerbs>(*frame, std::move(port).value());
    if (wire->open(choice.self, message)) return wire;
  }
  std::fprintf(stderr, "%s\n", message.c_str());
  return nullptr;
}

}  // namespace uet::bench
