// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Frames through a DPDK port: a NIC that DPDK drives, or one of its virtual devices (net_af_packet,
// net_memif), beside an interface of the kernel's, which keeps the addresses and finds the next
// hops.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "uet/nic/framed/frame_device.h"
#include "uet/nic/registry.h"

struct rte_mbuf;
struct rte_mempool;

namespace uet::nic {

class DpdkDevice final : public FrameDevice {
 public:
  // request.options: DEVICE[,ARGUMENT=VALUE...] as DPDK writes it. DEVICE is a PCI address, or the
  // driver of a virtual device; net_af_packet is put on the interface of the request. Errors:
  // Invalid (options), NotSupported (DPDK cannot start, or cannot open the device).
  static Result<std::unique_ptr<FrameDevice>> open(const FrameDeviceRequest& request,
                                                   std::string& message);
  // What Module::ip_mtu answers: no more than the interface and the driver of the device carry.
  static Result<std::uint32_t> ip_mtu(const NicConfig& config, const Interface& interface,
                                      std::string& message);
  ~DpdkDevice() override;

  std::size_t receive(std::span<ArrivedFrame> out) override;
  std::size_t send(std::span<const FrameToSend> in) override;
  const FrameDeviceTraits& traits() const override { return traits_; }
  NicCounters counters() const override;

 private:
  DpdkDevice() = default;
  bool start(std::uint32_t frame_bytes, std::uint32_t data_bytes, std::uint32_t mbufs,
             std::string& message);
  void give_back();
  bool usable() const;

  std::string name_;  // of a virtual device, which goes with this object
  std::uint16_t port_ = 0;
  bool started_ = false;
  unsigned forks_ = 0;  // of this process and its ancestors: a child must not touch the port
  rte_mempool* receive_pool_ = nullptr;
  rte_mempool* send_pool_ = nullptr;
  FrameDeviceTraits traits_;
  std::array<rte_mbuf*, kRxBurst> lent_{};  // handed out by the latest receive
  std::size_t lent_count_ = 0;
  NicCounters counters_;
};

}  // namespace uet::nic
