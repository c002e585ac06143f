// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Frames through a DPDK port: a NIC that DPDK drives, or one of its virtual devices (net_af_packet,
// net_memif). A kernel interface beside the port keeps the addresses and finds the next
// hops.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "nic/dpdk_port.h"
#include "nic/framed/frame_device.h"
#include "nic/framed/framed_nic.h"
#include "nic/registry.h"

struct rte_mbuf;

namespace uet::nic {

class DpdkDevice final : public FrameDevice {
 public:
  // request.options: DEVICE[,ARGUMENT=VALUE...] as DPDK writes it. DEVICE is a PCI address, or the
  // driver of a virtual device; net_af_packet is put on the interface of the request. Errors:
  // Invalid (options), NotSupported (DPDK cannot start, or cannot open the device).
  static Result<std::unique_ptr<FrameDevice>> open(const FrameDeviceRequest& request,
                                                   std::string& message);
  // Implements Module::ip_mtu: the largest packet that both the interface and the driver carry.
  static Result<std::uint32_t> ip_mtu(const NicConfig& config, const Interface& interface,
                                      std::string& message);
  // Which of the interface's packets the kernel receives too, with these options.
  static FramedNic::KernelSees kernel_sees(const NicConfig& config);
  ~DpdkDevice() override;

  std::size_t receive(std::span<ArrivedFrame> out) override;
  std::size_t send(std::span<const FrameToSend> in) override;
  std::uint64_t register_memory(std::span<const std::byte> memory) override;
  void forget_memory(std::uint64_t id) override;
  const FrameDeviceTraits& traits() const override { return port_->traits(); }
  NicCounters counters() const override;

 private:
  explicit DpdkDevice(std::shared_ptr<DpdkPort> port) : port_(std::move(port)) {}
  void give_back();
  bool fill(rte_mbuf* packet, const FrameToSend& frame);
  std::size_t hand_over(std::span<rte_mbuf*> packets, std::size_t control);

  std::shared_ptr<DpdkPort> port_;
  DpdkInbox* inbox_ = nullptr;              // of port_
  std::array<rte_mbuf*, kRxBurst> lent_{};  // handed out by the latest receive
  std::size_t lent_count_ = 0;
  NicCounters counters_;
};

}  // namespace uet::nic
