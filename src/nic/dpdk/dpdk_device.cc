// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// One queue in each direction. What is sent is copied into mbufs, since nothing may refer to it
// when send returns; what arrives is looked at where the driver has put it.
#include "uet/nic/dpdk_device.h"

#include <pthread.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <optional>
#include <string_view>

#include "uet/nic/dpdk_eal.h"
#include "uet/nic/framed/framed_nic.h"

namespace uet::nic {
namespace {

constexpr std::uint32_t kEthernetBytes = 14;
constexpr std::uint16_t kDescriptors = 512;
constexpr std::uint32_t kMaxFrameBytes = 16'000;
// net_af_packet: what a frame of its ring holds beside the packet, and its smallest and largest.
constexpr std::uint32_t kRingFrameHead = 96;
constexpr std::uint32_t kRingFrameLeast = 2048;
constexpr std::uint32_t kRingFrameMost = 16'384;

// What has to be known of a device.
struct Driver {
  std::string_view name{};  // of a virtual device: begins its name; empty = a PCI device
  std::uint32_t most_frame_bytes = kMaxFrameBytes;
  std::uint32_t mbufs = 3 * kDescriptors;
};
constexpr Driver kPacketRings{"net_af_packet", kRingFrameMost - kRingFrameHead};
constexpr std::uint32_t kManyMbufs = 8191;

// DEVICE of the options; nothing if it is no device, or one that does not work: net_af_xdp of
// DPDK 22.11 receives no more after some thousand packets.
std::optional<Driver> driver_of(std::string_view device) {
  if (device == kPacketRings.name) return kPacketRings;
  if (device.starts_with("net_") && device != "net_af_xdp") return Driver{.name = device};
  const bool pci = device.find(':') != std::string_view::npos &&
                   device.find_first_not_of("0123456789abcdefABCDEF:.") == std::string_view::npos;
  return pci ? std::optional(Driver{.mbufs = kManyMbufs}) : std::nullopt;
}

std::string_view device_of(std::string_view options) {
  return options.substr(0, std::min(options.find(','), options.size()));
}

// In a child of the process that opened it a port is the parent's.
std::atomic<unsigned> g_forks{0};

unsigned watched_forks() {
  static const int kWatching =
      ::pthread_atfork(nullptr, nullptr, [] { g_forks.fetch_add(1, std::memory_order_relaxed); });
  return kWatching == 0 ? g_forks.load(std::memory_order_relaxed) : 0;
}

std::uint32_t ring_frame_bytes(std::uint32_t frame_bytes) {
  return std::max(kRingFrameLeast, std::bit_ceil(frame_bytes + kRingFrameHead));
}

// Room for data in an mbuf: net_af_packet wants what a frame of its ring could hold.
std::uint32_t data_bytes(const Driver& driver, std::uint32_t frame_bytes) {
  return driver.name == kPacketRings.name ? ring_frame_bytes(frame_bytes) : frame_bytes;
}

// Everything behind DEVICE, with what has to be added.
std::string device_arguments(const Driver& driver, const Interface& interface,
                             std::uint32_t frame_bytes, std::string_view given) {
  std::string text;
  const auto add = [&](const std::string& argument) {
    text += (text.empty() ? "" : ",") + argument;
  };
  if (driver.name == kPacketRings.name) {
    add("iface=" + interface.name);
    add("framesz=" + std::to_string(ring_frame_bytes(frame_bytes)) +
        ",blocksz=262144,framecnt=" + std::to_string(kDescriptors) + ",qdisc_bypass=1");
  }
  if (driver.name == "net_memif" && given.find("bsize=") == std::string_view::npos) {
    add("bsize=" + std::to_string(std::bit_ceil(frame_bytes)));
  }
  if (!given.empty()) add(std::string(given));
  return text;
}

std::string explain(const std::string& what, int error) {
  const std::string line = take_last_log_line();
  return "FI_UET_NIC=dpdk: " + what + ": " + rte_strerror(error) +
         (line.empty() ? "" : " (" + line + ")") +
         "; see the arguments of the device, or use FI_UET_NIC=udp";
}

Error explain_options(std::string_view options, std::string& message) {
  message = "FI_UET_NIC=dpdk" + (options.empty() ? "" : ":" + std::string(options)) +
            ": a device is wanted: dpdk:net_af_packet, "
            "dpdk:net_memif,role=server|client,id=N,socket=PATH, another net_... driver with its "
            "arguments, or dpdk:PCI-ADDRESS";
  return Error::Invalid;
}

}  // namespace

Result<std::uint32_t> DpdkDevice::ip_mtu(const NicConfig& config, const Interface& interface,
                                         std::string& message) {
  const auto carried = FramedNic::interface_mtu(config, interface, message);
  if (!carried) return carried;
  std::string_view options = config.options;
  if (options.starts_with("native,")) options.remove_prefix(7);
  const std::optional<Driver> driver = driver_of(device_of(options));
  if (!driver) return explain_options(options, message);
  return std::min(carried.value(), driver->most_frame_bytes - kEthernetBytes);
}

Result<std::unique_ptr<FrameDevice>> DpdkDevice::open(const FrameDeviceRequest& request,
                                                      std::string& message) {
  const std::string_view options = request.options;
  const std::string device_name(device_of(options));
  const std::string_view given =
      device_name.size() < options.size() ? options.substr(device_name.size() + 1) : "";
  const std::optional<Driver> driver = driver_of(device_name);
  if (!driver) return explain_options(options, message);
  const bool pci = driver->name.empty();
  if (!start_eal({pci ? device_name : std::string()}, message)) return Error::NotSupported;

  const std::uint32_t frame_bytes =
      std::min(kEthernetBytes + request.interface.mtu, driver->most_frame_bytes);
  static std::atomic<unsigned> opened{0};
  std::unique_ptr<DpdkDevice> device(new DpdkDevice);
  std::string name = device_name;
  bool ready = false;
  without_signals([&] {
    if (!pci) {
      name += "_uet" + std::to_string(opened++);
      const std::string arguments =
          device_arguments(*driver, request.interface, frame_bytes, given);
      const int error = rte_eal_hotplug_add("vdev", name.c_str(), arguments.c_str());
      if (error != 0) {
        message = explain("cannot make " + device_name + " with " + arguments, -error);
        return;
      }
      device->name_ = name;
    }
    if (const int error = rte_eth_dev_get_port_by_name(name.c_str(), &device->port_); error != 0) {
      message =
          explain("there is no device " + name +
                      (pci ? "; is it bound to a driver of DPDK (dpdk-devbind.py --status)?" : ""),
                  -error);
      return;
    }
    ready = device->start(frame_bytes, data_bytes(*driver, frame_bytes), driver->mbufs, message);
  });
  if (!ready) return Error::NotSupported;
  return std::unique_ptr<FrameDevice>(std::move(device));
}

// False, with a message, if the port cannot be brought up.
bool DpdkDevice::start(std::uint32_t frame_bytes, std::uint32_t data_bytes, std::uint32_t mbufs,
                       std::string& message) {
  forks_ = watched_forks();
  const int socket = rte_eth_dev_socket_id(port_);
  const auto make_pool = [&](const char* use, std::uint32_t count) {
    const std::string name = std::string("uet_") + use + std::to_string(port_);
    const auto room = static_cast<std::uint16_t>(data_bytes + RTE_PKTMBUF_HEADROOM);
    return rte_pktmbuf_pool_create(name.c_str(), count, 0, 0, room, socket);
  };
  // Two, so that what a driver has not let go of yet never keeps packets from arriving.
  receive_pool_ = make_pool("rx", mbufs);
  send_pool_ = make_pool("tx", 3 * kDescriptors);
  if (receive_pool_ == nullptr || send_pool_ == nullptr) {
    message = explain("no memory for " + std::to_string(mbufs) + " packets", rte_errno);
    return false;
  }
  rte_eth_dev_info info{};
  int error = rte_eth_dev_info_get(port_, &info);
  rte_eth_conf conf{};
  // Some drivers say 1518 although they carry more.
  const bool told = info.max_rx_pktlen > 1518 && info.max_mtu >= frame_bytes - kEthernetBytes;
  if (told) conf.rxmode.mtu = frame_bytes - kEthernetBytes;
  conf.rxmode.offloads = info.rx_offload_capa & RTE_ETH_RX_OFFLOAD_UDP_CKSUM;
  if (error == 0) error = rte_eth_dev_configure(port_, 1, 1, &conf);
  if (error == 0) {
    error = rte_eth_rx_queue_setup(port_, 0, kDescriptors, static_cast<unsigned>(socket), nullptr,
                                   receive_pool_);
  }
  if (error == 0) {
    error = rte_eth_tx_queue_setup(port_, 0, kDescriptors, static_cast<unsigned>(socket), nullptr);
  }
  if (error == 0) error = rte_eth_dev_start(port_);
  if (error != 0) {
    message = explain("cannot start port " + std::to_string(port_), -error);
    return false;
  }
  started_ = true;
  traits_.max_frame_bytes = frame_bytes;
  traits_.receive_credit_bytes = std::uint64_t{kDescriptors} * frame_bytes;
  return true;
}

bool DpdkDevice::usable() const { return forks_ == g_forks.load(std::memory_order_relaxed); }

DpdkDevice::~DpdkDevice() {
  if (!usable()) return;
  give_back();
  without_signals([this] {
    if (started_) {
      rte_eth_dev_stop(port_);
      rte_eth_dev_close(port_);
    }
    if (!name_.empty()) rte_eal_hotplug_remove("vdev", name_.c_str());
    rte_mempool_free(receive_pool_);
    rte_mempool_free(send_pool_);
  });
}

void DpdkDevice::give_back() {
  if (lent_count_ > 0) rte_pktmbuf_free_bulk(lent_.data(), static_cast<unsigned>(lent_count_));
  lent_count_ = 0;
}

std::size_t DpdkDevice::receive(std::span<ArrivedFrame> out) {
  if (!usable()) return 0;
  give_back();
  const auto room = static_cast<std::uint16_t>(std::min(out.size(), lent_.size()));
  lent_count_ = rte_eth_rx_burst(port_, 0, lent_.data(), room);
  std::size_t filled = 0;
  for (std::size_t i = 0; i < lent_count_; ++i) {
    const rte_mbuf& mbuf = *lent_[i];
    if (mbuf.nb_segs > 1) {
      ++counters_.receive_truncated;
      continue;
    }
    ArrivedFrame& arrived = out[filled++];
    arrived.bytes = {rte_pktmbuf_mtod(&mbuf, const std::byte*), mbuf.data_len};
    arrived.checksum_verified =
        (mbuf.ol_flags & RTE_MBUF_F_RX_L4_CKSUM_MASK) == RTE_MBUF_F_RX_L4_CKSUM_GOOD;
    arrived.arrived = Time{};
  }
  return filled;
}

std::size_t DpdkDevice::send(std::span<const FrameToSend> in) {
  if (!usable()) return in.size();
  std::array<rte_mbuf*, kTxBurst> mbufs;
  const std::size_t count = std::min(in.size(), mbufs.size());
  if (rte_pktmbuf_alloc_bulk(send_pool_, mbufs.data(), static_cast<unsigned>(count)) != 0) return 0;
  for (std::size_t i = 0; i < count; ++i) {
    const FrameToSend& frame = in[i];
    auto* to = reinterpret_cast<std::byte*>(
        rte_pktmbuf_append(mbufs[i], static_cast<std::uint16_t>(frame.length)));
    to = std::copy(frame.headers.begin(), frame.headers.end(), to);
    for (const Slice& piece : frame.pieces) to = std::copy_n(piece.data, piece.length, to);
  }
  const std::size_t sent =
      rte_eth_tx_burst(port_, 0, mbufs.data(), static_cast<std::uint16_t>(count));
  if (sent < count) {
    rte_pktmbuf_free_bulk(mbufs.data() + sent, static_cast<unsigned>(count - sent));
  }
  return sent;
}

NicCounters DpdkDevice::counters() const {
  NicCounters all = counters_;
  rte_eth_stats stats{};
  if (usable() && rte_eth_stats_get(port_, &stats) == 0) {
    all.receive_overflows += stats.imissed + stats.rx_nombuf;
    all.kernel_errors += stats.oerrors;
  }
  return all;
}

}  // namespace uet::nic
