// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Frames through a DPDK port: a NIC that DPDK drives, or one of its virtual devices (net_af_packet,
// net_memif). A kernel interface beside the port keeps the addresses and finds the next
// hops.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "nic/dpdk_driver.h"
#include "nic/dpdk_peer.h"
#include "nic/dpdk_pool.h"
#include "nic/dpdk_regions.h"
#include "nic/dpdk_xdp.h"
#include "nic/framed/frame_device.h"
#include "nic/framed/framed_nic.h"
#include "nic/registry.h"

struct rte_eth_conf;
struct rte_eth_dev_info;
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
  const FrameDeviceTraits& traits() const override { return traits_; }
  NicCounters counters() const override;

 private:
  DpdkDevice();
  static Result<std::unique_ptr<DpdkDevice>> open_once(const FrameDeviceRequest& request,
                                                       const DpdkOptions& options,
                                                       std::string& message);
  bool probe(const DpdkOptions& options, const std::string& arguments, std::string& message);
  bool start(const DpdkDriver& driver, std::uint32_t frame_bytes, std::string& message);
  int configure(const DpdkDriver& driver, const rte_eth_dev_info& info, const rte_eth_conf& conf);
  void give_back();
  rte_mempool* pool_to_send() const;
  bool fill(rte_mbuf* packet, const FrameToSend& frame);
  std::size_t hand_over(std::span<rte_mbuf*> packets, std::size_t control);
  bool usable() const;
  std::unique_lock<std::mutex> lock_of_peer();  // holds nothing if there is no peer_

  std::string name_;  // of a virtual device, which goes with this object
  std::uint16_t port_ = 0;
  bool started_ = false;
  std::uint16_t control_queue_ = 0;  // of frames with FrameToSend::control; 0: that of all
  std::unique_ptr<DpdkPeer> peer_;
  std::unique_ptr<DpdkXdpProgram> xdp_program_;
  unsigned forks_;  // of this process and its ancestors: a child must not touch the port
  DpdkPool receive_pool_;
  DpdkPool send_pool_;  // nullptr: the driver wants to send from the memory that it receives into
  std::unique_ptr<DpdkRegions> regions_;  // where the port sends several segments
  FrameDeviceTraits traits_;
  std::array<rte_mbuf*, kRxBurst> lent_{};  // handed out by the latest receive
  std::size_t lent_count_ = 0;
  NicCounters counters_;
};

}  // namespace uet::nic
