// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Frames through a raw-packet queue pair of an RDMA NIC: its hardware hands our packets over
// without the kernel, which keeps everything else that comes over the interface. Payload in
// registered memory is read by the NIC itself.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "nic/framed/frame_device.h"
#include "nic/registry.h"
#include "nic/verbs_port.h"
#include "nic/verbs_send_queue.h"

struct ibv_send_wr;
struct ibv_sge;
struct ibv_wc;

namespace uet::nic {

class VerbsDevice final : public FrameDevice {
 public:
  // request.options: as parse_verbs_options. Errors: those of VerbsPort.
  static Result<std::unique_ptr<FrameDevice>> open(const FrameDeviceRequest& request,
                                                   std::string& message);
  // Implements Module::ip_mtu: the interface's MTU, or an error if the options are invalid.
  static Result<std::uint32_t> ip_mtu(const NicConfig& config, const Interface& interface,
                                      std::string& message);
  ~VerbsDevice() override;

  std::size_t receive(std::span<ArrivedFrame> out) override;
  std::size_t send(std::span<const FrameToSend> in) override;
  std::uint64_t register_memory(std::span<const std::byte> memory) override;
  void forget_memory(std::uint64_t id) override;
  std::uint64_t register_device_memory(const DmabufRange& range) override;
  int wait_fd() const override;
  bool prepare_wait() override;
  const FrameDeviceTraits& traits() const override { return traits_; }
  NicCounters counters() const override;

 private:
  VerbsDevice();
  bool start(const FrameDeviceRequest& request, std::string& message);
  bool bring_up();
  void recover();
  bool is_broken() const { return broken_ || data_->broken() || (control_ && control_->broken()); }
  void post_receives(std::span<const std::uint32_t> slots);
  void give_back();
  void poll_received(std::size_t most);
  void take_event();
  std::byte* receive_slot(std::size_t slot) const { return memory_ + slot * slot_bytes_; }

  struct Completions;

  const int owner_pid_;
  std::byte* memory_ = nullptr;  // all slots
  std::size_t memory_bytes_ = 0;
  std::size_t slot_bytes_ = 0;
  std::size_t receive_slots_ = 0;
  std::unique_ptr<VerbsPort> port_;
  VerbsPointer<ibv_mr> slots_;
  VerbsSendQueue::Regions regions_;  // go before the port
  std::optional<VerbsSendQueue> data_;
  std::optional<VerbsSendQueue> control_;

  FrameDeviceTraits traits_;
  bool broken_ = false;                         // a receive has failed, and with it the queue pair
  bool armed_ = false;                          // the next arrival makes the channel readable
  std::array<std::uint32_t, kRxBurst> lent_{};  // slots handed out by the latest receive
  std::size_t lent_count_ = 0;
  std::unique_ptr<Completions> arrived_;
  NicCounters counters_;
};

}  // namespace uet::nic
