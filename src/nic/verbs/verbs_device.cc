// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Slots of one frame each, in one memory region. Receive slots are posted to the device or lent to
// the caller. Send slots are used in turn, one for each work request, so that the number of a
// request determines its slot. Pieces that are short or not registered are copied into the slot.
#include "nic/verbs_device.h"

#include <infiniband/verbs.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <numeric>

#include "nic/framed/framed_nic.h"

namespace uet::nic {
namespace {

constexpr std::uint32_t kTagBytes = 4;
constexpr std::uint32_t kCacheLine = 64;
constexpr std::uint32_t kLeastSlots = 128;
constexpr std::uint32_t kMostReceives = 4096;
constexpr std::uint32_t kMostSends = 512;
constexpr std::uint32_t kInlineBytes = 256;
// Headers, two pieces of registered memory, trailer.
constexpr std::uint32_t kPieces = 4;
// Less is copied sooner than another piece is read by the device.
constexpr std::uint32_t kLeastGathered = 1024;
// Requests without a completion of their own, at most this part of all.
constexpr std::uint64_t kSignalPart = 4;
// Posted frames leave within this time, or the queue pair is restarted.
constexpr std::chrono::seconds kDrainLimit{1};

std::uint32_t slots_for(std::uint32_t bytes, std::size_t slot_bytes, std::uint32_t most) {
  return std::clamp(static_cast<std::uint32_t>(bytes / slot_bytes), kLeastSlots, most);
}

}  // namespace

struct VerbsDevice::WorkRequests {
  std::array<ibv_send_wr, kTxBurst> sends{};
  std::array<std::array<ibv_sge, kPieces>, kTxBurst> pieces{};
};

// Completions that have been polled, and how many of them have been handed out.
struct VerbsDevice::Completions {
  std::array<ibv_wc, kRxBurst> all{};
  std::size_t count = 0;
  std::size_t taken = 0;
  bool empty() const { return taken == count; }
};

// ---- opening ------------------------------------------------------------------------------------

Result<std::uint32_t> VerbsDevice::ip_mtu(const NicConfig& config, const Interface& interface,
                                          std::string& message) {
  std::string options;
  take_native(config.options, options);
  if (const auto parsed = parse_verbs_options(options, message); !parsed) return parsed.error();
  return FramedNic::interface_mtu(config, interface, message);
}

VerbsDevice::VerbsDevice()
    : owner_pid_(::getpid()),
      requests_(std::make_unique<WorkRequests>()),
      arrived_(std::make_unique<Completions>()) {}

Result<std::unique_ptr<FrameDevice>> VerbsDevice::open(const FrameDeviceRequest& request,
                                                       std::string& message) {
  const auto options = parse_verbs_options(request.options, message);
  if (!options) return options.error();
  std::unique_ptr<VerbsDevice> device(new VerbsDevice);
  const std::uint32_t frame_bytes = kEthernetBytes + request.interface.mtu;
  device->slot_bytes_ =
      (frame_bytes + kTagBytes + kCacheLine - 1) / kCacheLine * std::size_t{kCacheLine};
  const VerbsQueues wished{
      .sends = slots_for(request.send_buffer_bytes, device->slot_bytes_, kMostSends),
      .receives = slots_for(request.receive_buffer_bytes, device->slot_bytes_, kMostReceives),
      .pieces = kPieces,
      .inline_bytes = kInlineBytes};
  auto port = VerbsPort::open(request.interface, options.value(), wished, message);
  if (!port) return port.error();
  device->port_ = std::move(port).value();
  device->traits_.max_frame_bytes = frame_bytes;
  if (request.interface.vlan) device->traits_.vlan = request.interface.vlan->id;
  if (!device->start(request, message)) return Error::NotSupported;
  if (const auto error =
          device->port_->steer(request.interface, request.self, request.format, message)) {
    return *error;
  }
  return std::unique_ptr<FrameDevice>(std::move(device));
}

bool VerbsDevice::start(const FrameDeviceRequest& request, std::string& message) {
  const VerbsQueues& queues = port_->queues();
  receive_slots_ = queues.receives;
  send_slots_ = queues.sends;
  memory_bytes_ = (receive_slots_ + send_slots_) * slot_bytes_;
  // Shared: a fork does not move it away from the device.
  void* const memory =
      ::mmap(nullptr, memory_bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  const auto refused = [&](const char* what) {
    message = "FI_UET_NIC=verbs on " + request.interface.name + ": " + what + ": " +
              error_text(errno) +
              "; allow more locked memory (ulimit -l), or a smaller FI_UET_SOCKET_BUFFER_BYTES";
    return false;
  };
  if (memory == MAP_FAILED) return refused("no memory for packets");
  memory_ = static_cast<std::byte*>(memory);
  slots_ = port_->add_region({memory_, memory_bytes_}, true);
  if (slots_ == nullptr) return refused("cannot register memory for packets");
  traits_.receive_credit_bytes = std::uint64_t{receive_slots_} * slot_bytes_;
  traits_.reads_registered_memory = queues.pieces == kPieces;
  traits_.reads_device_memory = traits_.reads_registered_memory;
  traits_.sends_by_kernel = false;
  return bring_up() || refused("cannot start the queue pair");
}

// Posts every slot but those that the caller still reads.
bool VerbsDevice::bring_up() {
  if (!port_->reset_and_init()) return false;
  std::vector<std::uint32_t> free(receive_slots_);
  std::iota(free.begin(), free.end(), 0U);
  const auto lent = std::span(lent_).first(lent_count_);
  std::erase_if(free, [&](std::uint32_t slot) {
    return std::find(lent.begin(), lent.end(), slot) != lent.end();
  });
  post_receives(free);
  return port_->start();
}

// A failed request stops the whole queue pair. Posted frames are lost; PDS recovers.
void VerbsDevice::recover() {
  ++counters_.kernel_errors;
  for (ibv_cq* queue : {port_->sent(), port_->received()}) {
    ibv_wc completion;
    while (ibv_poll_cq(queue, 1, &completion) > 0) continue;
  }
  *arrived_ = {};
  completed_ = signaled_ = posted_;
  broken_ = !bring_up();
}

VerbsDevice::~VerbsDevice() {
  if (::getpid() == owner_pid_) {
    regions_.clear();
    slots_.reset();
    port_.reset();
  } else {
    regions_.for_each([](Region& region) { static_cast<void>(region.registered.release()); });
    static_cast<void>(slots_.release());
    if (port_ != nullptr) port_->abandon();
  }
  if (memory_ != nullptr) ::munmap(memory_, memory_bytes_);
}

// ---- receiving ----------------------------------------------------------------------------------

void VerbsDevice::post_receives(std::span<const std::uint32_t> slots) {
  std::array<ibv_recv_wr, kRxBurst> requests;
  std::array<ibv_sge, kRxBurst> pieces;
  while (!slots.empty()) {
    const std::size_t count = std::min(slots.size(), requests.size());
    for (std::size_t i = 0; i < count; ++i) {
      pieces[i] = {.addr = reinterpret_cast<std::uintptr_t>(receive_slot(slots[i])),
                   .length = static_cast<std::uint32_t>(slot_bytes_),
                   .lkey = slots_->lkey};
      requests[i] = {.wr_id = slots[i],
                     .next = i + 1 < count ? &requests[i + 1] : nullptr,
                     .sg_list = &pieces[i],
                     .num_sge = 1};
    }
    ibv_recv_wr* refused = nullptr;
    if (ibv_post_recv(port_->queue_pair(), requests.data(), &refused) != 0) broken_ = true;
    slots = slots.subspan(count);
  }
}

void VerbsDevice::give_back() {
  if (lent_count_ == 0) return;
  post_receives(std::span(lent_).first(lent_count_));
  lent_count_ = 0;
}

void VerbsDevice::poll_received(std::size_t most) {
  Completions& arrived = *arrived_;
  if (!arrived.empty()) return;
  const auto room = static_cast<int>(std::min(most, arrived.all.size()));
  const int count = ibv_poll_cq(port_->received(), room, arrived.all.data());
  arrived.taken = 0;
  arrived.count = static_cast<std::size_t>(std::max(count, 0));
  if (count < 0) broken_ = true;
}

std::size_t VerbsDevice::receive(std::span<ArrivedFrame> out) {
  give_back();
  if (broken_) recover();
  poll_received(out.size());
  Completions& arrived = *arrived_;
  std::size_t filled = 0;
  while (!arrived.empty() && filled < out.size()) {
    const ibv_wc& completion = arrived.all[arrived.taken++];
    if (completion.status != IBV_WC_SUCCESS) {
      if (completion.status == IBV_WC_LOC_LEN_ERR) ++counters_.receive_truncated;
      broken_ = true;
      continue;
    }
    const auto slot = static_cast<std::uint32_t>(completion.wr_id);
    lent_[lent_count_++] = slot;
    ArrivedFrame& frame = out[filled++];
    frame.bytes = {receive_slot(slot), completion.byte_len};
    frame.arrived = Time{};
  }
  return filled;
}

// ---- sending ------------------------------------------------------------------------------------

void VerbsDevice::poll_sent() {
  std::array<ibv_wc, 16> done;
  for (int count = static_cast<int>(done.size()); count == static_cast<int>(done.size());) {
    count = ibv_poll_cq(port_->sent(), count, done.data());
    if (count < 0) broken_ = true;
    for (int i = 0; i < count; ++i) {
      const ibv_wc& completion = done[static_cast<std::size_t>(i)];
      if (completion.status != IBV_WC_SUCCESS) broken_ = true;
      completed_ = std::max(completed_, completion.wr_id);
    }
  }
}

// The work request for the next number to be posted, `place` of this burst.
bool VerbsDevice::fill(std::size_t place, const FrameToSend& frame) {
  const std::uint64_t number = posted_ + place + 1;
  ibv_send_wr& request = requests_->sends[place];
  auto& pieces = requests_->pieces[place];
  request = {};
  request.wr_id = number;
  request.sg_list = pieces.data();
  request.opcode = IBV_WR_SEND;

  std::byte* to = send_slot(number);
  std::byte* piece_begin = to;
  const auto end_piece = [&] {
    if (to == piece_begin) return;
    pieces[static_cast<std::size_t>(request.num_sge++)] = {
        .addr = reinterpret_cast<std::uintptr_t>(piece_begin),
        .length = static_cast<std::uint32_t>(to - piece_begin),
        .lkey = slots_->lkey};
    piece_begin = to;
  };
  to = std::copy(frame.headers.begin(), frame.headers.end(), to);
  const bool gather = frame.payload_stays && traits_.reads_registered_memory;
  bool gathered = false;
  for (std::size_t i = 0; i < frame.pieces.size(); ++i) {
    const Slice& piece = frame.pieces[i];
    DeviceMemory* const memory = i == 1 || i == 2 ? frame.memory : nullptr;
    const std::uint32_t least = memory != nullptr ? 1 : kLeastGathered;
    Region* const region = gather && piece.length >= least ? regions_.find(piece) : nullptr;
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
  if (!gathered && frame.length <= port_->queues().inline_bytes)
    request.send_flags |= IBV_SEND_INLINE;
  if (gathered) ++counters_.packets_gathered;
  return gathered;
}

std::size_t VerbsDevice::send(std::span<const FrameToSend> in) {
  if (posted_ - completed_ + in.size() > send_slots_ / 2) poll_sent();
  if (broken_) recover();
  const std::size_t room = send_slots_ - static_cast<std::size_t>(posted_ - completed_);
  const std::size_t count = std::min({in.size(), room, kTxBurst});
  if (count == 0) return 0;
  bool gathered = false;
  auto& sends = requests_->sends;
  for (std::size_t i = 0; i < count; ++i) {
    gathered |= fill(i, in[i]);
    if (i > 0) sends[i - 1].next = &sends[i];
  }
  // One completion covers all requests before it. forget_memory() waits for the one of a gathered
  // frame, so that this one must come soon.
  const std::uint64_t last = posted_ + count;
  if (gathered || last - signaled_ >= send_slots_ / kSignalPart) {
    sends[count - 1].send_flags |= IBV_SEND_SIGNALED;
    signaled_ = last;
  }
  ibv_send_wr* refused = nullptr;
  if (ibv_post_send(port_->queue_pair(), sends.data(), &refused) != 0) broken_ = true;
  posted_ = last;
  return count;
}

// ---- registered memory --------------------------------------------------------------------------

std::uint64_t VerbsDevice::register_memory(std::span<const std::byte> memory) {
  if (memory.size() < kLeastGathered) return 0;
  VerbsPointer<ibv_mr> registered = port_->add_region(memory, false);
  if (registered == nullptr) return 0;
  return regions_.add(memory, Region{std::move(registered), 0});
}

std::uint64_t VerbsDevice::register_device_memory(const DmabufRange& range) {
  if (!traits_.reads_device_memory) return 0;
  VerbsPointer<ibv_mr> registered = port_->add_dmabuf(range);
  if (registered == nullptr) return 0;
  return regions_.add(range.memory, Region{std::move(registered), 0});
}

void VerbsDevice::forget_memory(std::uint64_t id) {
  const Region* const region = regions_.get(id);
  if (region == nullptr) return;
  const auto limit = std::chrono::steady_clock::now() + kDrainLimit;
  while (completed_ < region->last_used && !broken_) {
    poll_sent();
    if (std::chrono::steady_clock::now() > limit) broken_ = true;
  }
  if (broken_) recover();
  regions_.remove(id);
}

// ---- waiting ------------------------------------------------------------------------------------

int VerbsDevice::wait_fd() const { return port_->channel()->fd; }

void VerbsDevice::take_event() {
  ibv_cq* queue = nullptr;
  void* context = nullptr;
  if (!armed_ || ibv_get_cq_event(port_->channel(), &queue, &context) != 0) return;
  ibv_ack_cq_events(queue, 1);
  armed_ = false;
}

// Between the arming and the look nothing is missed; an event of an earlier arming is taken, so
// that the descriptor does not stay readable for it.
bool VerbsDevice::prepare_wait() {
  take_event();
  if (!armed_) armed_ = ibv_req_notify_cq(port_->received(), 0) == 0;
  poll_received(kRxBurst);
  return !arrived_->empty() || broken_ || !armed_;
}

}  // namespace uet::nic
