// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A DPDK port, which a process opens once, with the FEPs that share it: those of the engines of a
// domain (FI_UET_CORES), and those of further domains. The port has one receive queue. Each FEP
// reads it when it polls, keeps its own frames and puts the others into the inboxes of their FEPs,
// so that the NIC needs no flow rules, and no frame waits for a FEP that does not poll. All FEPs
// together never hold more of the packet memory than leaves the receive queue filled.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "nic/dpdk_driver.h"
#include "nic/dpdk_peer.h"
#include "nic/dpdk_pool.h"
#include "nic/dpdk_regions.h"
#include "nic/dpdk_xdp.h"
#include "nic/framed/frame_device.h"
#include "nic/registry.h"

struct rte_eth_conf;
struct rte_eth_dev_info;
struct rte_mbuf;
struct rte_ring;

namespace uet::nic {

struct DpdkRingFree {
  void operator()(rte_ring* ring) const;
};

// The frames for one FEP that others have received. Filled with the port's receive lock, emptied by
// the thread of the FEP.
class DpdkInbox {
 public:
  // nullptr, with rte_errno, for lack of memory. `self`: as frames have it. `endpoint`: the same
  // for XDP programs.
  static std::unique_ptr<DpdkInbox> open(const FepAddress& self, const UetXdpEndpoint& endpoint,
                                         int socket);
  ~DpdkInbox();
  DpdkInbox(const DpdkInbox&) = delete;
  DpdkInbox& operator=(const DpdkInbox&) = delete;

  const FepAddress& self() const { return self_; }
  const UetXdpEndpoint& endpoint() const { return endpoint_; }
  // Frees the frame, and counts it, if there are `most` in it.
  void put(rte_mbuf* frame, std::size_t most);
  std::size_t take(std::span<rte_mbuf*> out);
  std::uint64_t overflows() const { return overflows_.load(std::memory_order_relaxed); }
  // Of all that the process has opened.
  unsigned number() const { return number_; }

 private:
  DpdkInbox(unsigned number, const FepAddress& self, const UetXdpEndpoint& endpoint)
      : number_(number), self_(self), endpoint_(endpoint) {}

  const unsigned number_;
  const FepAddress self_;
  const UetXdpEndpoint endpoint_;
  std::unique_ptr<rte_ring, DpdkRingFree> ring_;
  std::atomic<std::uint64_t> overflows_{0};
};

// Thread-safe, except that a FEP calls with one thread at a time.
class DpdkPort {
 public:
  // The port of this device on this interface, which the process may have open already. The first
  // one's request.sharers FEPs get queues of their own to send. Errors as for DpdkDevice::open.
  static Result<std::shared_ptr<DpdkPort>> open(const FrameDeviceRequest& request,
                                                const DpdkOptions& options, std::string& message);
  // Gives up this user's share; the last one closes the port.
  static void close(std::shared_ptr<DpdkPort> port);
  ~DpdkPort();
  DpdkPort(const DpdkPort&) = delete;
  DpdkPort& operator=(const DpdkPort&) = delete;

  // False in a child of the process that opened it: there the port must not be touched, and all
  // other calls but close are forbidden.
  bool usable() const;
  // From join to leave the port receives for the FEP. False, with a message, for lack of memory.
  bool join(const FepAddress& self, const wire::FrameFormat& format, DpdkInbox*& inbox,
            std::string& message);
  void leave(DpdkInbox* inbox);

  // Frames for the FEP, and those for none.
  std::size_t receive(DpdkInbox& inbox, std::span<rte_mbuf*> out);
  // Returns how many the port has taken; the others are the caller's. The first `control` ones go
  // to the control queue. `inbox`: of the FEP that sends.
  std::size_t send(const DpdkInbox& inbox, std::span<rte_mbuf*> packets, std::size_t control);
  bool has_control_queue() const { return control_queue_ != 0; }

  rte_mempool* pool_to_send() const {
    return send_pool_ != nullptr ? send_pool_.get() : receive_pool_.get();
  }
  // nullptr: the port does not send packets of several segments.
  DpdkRegions* regions() const { return regions_.get(); }
  // As FrameDevice::forget_memory.
  void forget_memory(std::uint64_t id);

  // Of a port that leads to one other process, with the lock below; else nullptr.
  DpdkPeer* peer() const { return peer_.get(); }
  // To be held during all calls to send and receive; holds nothing if there is no peer().
  std::unique_lock<std::mutex> lock_of_peer() const;

  const FrameDeviceTraits& traits() const { return traits_; }
  // Of the FEP; one of the FEPs adds the counts that the port has for all together.
  NicCounters counters(const DpdkInbox& inbox);

 private:
  struct Key {
    int interface_index;
    std::string device;  // with its arguments
    bool operator==(const Key&) const = default;
  };

  explicit DpdkPort(Key key);
  static Result<std::shared_ptr<DpdkPort>> open_once(const FrameDeviceRequest& request,
                                                     const DpdkOptions& options, const Key& key,
                                                     std::string& message);
  bool probe(const DpdkOptions& options, const std::string& arguments, std::string& message);
  bool start(const DpdkDriver& driver, std::uint32_t frame_bytes, std::uint32_t senders,
             std::string& message);
  int configure(const DpdkDriver& driver, std::uint32_t senders, const rte_eth_dev_info& info,
                const rte_eth_conf& conf);
  std::size_t sort(const DpdkInbox& reader, std::span<rte_mbuf*> frames);
  std::size_t send_by(std::uint16_t queue, std::span<rte_mbuf*> packets);
  bool clean_up();
  void restart();

  // The ports of the process.
  struct Registry {
    std::mutex lock;
    std::vector<std::weak_ptr<DpdkPort>> ports;
  };
  static Registry& registry();

  const Key key_;
  const unsigned forks_;  // of this process and its ancestors
  std::string name_;      // of a virtual device, which goes with this object
  std::uint16_t port_ = 0;
  bool started_ = false;
  std::uint16_t data_queues_ = 1;    // to send: 0, 1, ...
  std::uint16_t control_queue_ = 0;  // of frames with FrameToSend::control; 0: there is none
  std::unique_ptr<DpdkPeer> peer_;
  std::unique_ptr<DpdkXdpProgram> xdp_program_;
  std::size_t spare_frames_ = 0;  // that FEPs may hold
  DpdkPool receive_pool_;
  DpdkPool send_pool_;  // nullptr: the driver wants to send from the memory that it receives into
  std::unique_ptr<DpdkRegions> regions_;
  FrameDeviceTraits traits_;

  // In this order, after that of the peer, if several are taken.
  std::mutex receive_lock_;             // of the receive queue and inboxes_
  std::vector<std::mutex> send_locks_;  // of each queue
  std::vector<std::unique_ptr<DpdkInbox>> inboxes_;
};

}  // namespace uet::nic
