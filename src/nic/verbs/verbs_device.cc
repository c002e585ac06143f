// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Slots of one frame each, in one memory region: first those to receive, which are posted to the
// device or lent to the caller, then those to send (verbs_send_queue.h), at last the shorter ones
// for control packets.
#include "nic/verbs_device.h"

#include <infiniband/verbs.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
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
// All that is in front of payload, with transport security and a trailer.
constexpr std::size_t kControlSlotBytes = 512;

std::uint32_t slots_for(std::uint32_t bytes, std::size_t slot_bytes, std::uint32_t most) {
  return std::clamp(static_cast<std::uint32_t>(bytes / slot_bytes), kLeastSlots, most);
}

}  // namespace

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

VerbsDevice::VerbsDevice() : owner_pid_(::getpid()), arrived_(std::make_unique<Completions>()) {}

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
      .pieces = VerbsSendQueue::kPieces,
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
  const VerbsQueues& queues = port_->main().sizes;
  const VerbsQueuePair* const control = port_->control();
  const std::size_t control_slots = control != nullptr ? control->sizes.sends : 0;
  receive_slots_ = queues.receives;
  const std::size_t control_begin = (receive_slots_ + queues.sends) * slot_bytes_;
  memory_bytes_ = control_begin + control_slots * kControlSlotBytes;
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
  traits_.reads_registered_memory = queues.pieces == VerbsSendQueue::kPieces;
  traits_.reads_device_memory = traits_.reads_registered_memory;
  traits_.sends_by_kernel = false;
  const std::uint32_t key = slots_->lkey;
  data_.emplace(port_->main(),
                VerbsSendQueue::Slots{receive_slot(receive_slots_), slot_bytes_, queues.sends, key},
                traits_.reads_registered_memory ? &regions_ : nullptr);
  if (control != nullptr) {
    control_.emplace(
        *control,
        VerbsSendQueue::Slots{memory_ + control_begin, kControlSlotBytes, control_slots, key},
        nullptr);
  }
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

// A failed request stops its whole queue pair; both are restarted. Posted frames are lost; PDS
// recovers.
void VerbsDevice::recover() {
  ++counters_.kernel_errors;
  ibv_wc completion;
  while (ibv_poll_cq(port_->received(), 1, &completion) > 0) continue;
  *arrived_ = {};
  data_->restart();
  if (control_) control_->restart();
  broken_ = !bring_up();
}

VerbsDevice::~VerbsDevice() {
  if (::getpid() == owner_pid_) {
    regions_.clear();
    slots_.reset();
    port_.reset();
  } else {
    regions_.for_each(
        [](VerbsSendQueue::Region& region) { static_cast<void>(region.registered.release()); });
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
    if (ibv_post_recv(port_->main().queue.get(), requests.data(), &refused) != 0) broken_ = true;
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
  if (is_broken()) recover();
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

std::size_t VerbsDevice::send(std::span<const FrameToSend> in) {
  if (is_broken()) recover();
  const std::size_t ahead = control_ ? count_control(in, kControlSlotBytes) : 0;
  const std::size_t sent = ahead > 0 ? control_->send(in.first(ahead)) : 0;
  return sent < ahead ? sent : sent + data_->send(in.subspan(ahead));
}

NicCounters VerbsDevice::counters() const {
  NicCounters all = counters_;
  all.packets_gathered = data_->gathered();
  return all;
}

// ---- registered memory --------------------------------------------------------------------------

std::uint64_t VerbsDevice::register_memory(std::span<const std::byte> memory) {
  if (memory.size() < VerbsSendQueue::kLeastGathered) return 0;
  VerbsPointer<ibv_mr> registered = port_->add_region(memory, false);
  if (registered == nullptr) return 0;
  return regions_.add(memory, VerbsSendQueue::Region{std::move(registered), 0});
}

std::uint64_t VerbsDevice::register_device_memory(const DmabufRange& range) {
  if (!traits_.reads_device_memory) return 0;
  VerbsPointer<ibv_mr> registered = port_->add_dmabuf(range);
  if (registered == nullptr) return 0;
  return regions_.add(range.memory, VerbsSendQueue::Region{std::move(registered), 0});
}

void VerbsDevice::forget_memory(std::uint64_t id) {
  const VerbsSendQueue::Region* const region = regions_.get(id);
  if (region == nullptr) return;
  data_->wait_for(region->last_used);
  if (is_broken()) recover();
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
  return !arrived_->empty() || is_broken() || !armed_;
}

}  // namespace uet::nic
