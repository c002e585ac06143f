// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// One queue in each direction. Packets to send are copied into mbufs, except registered memory,
// since nothing may refer to other memory when send returns. Packets that arrive are read in the
// mbufs of the driver.
#include "nic/dpdk_device.h"

#include <linux/capability.h>
#include <pthread.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <optional>
#include <string_view>
#include <thread>

#include "nic/dpdk_driver.h"
#include "nic/dpdk_eal.h"

namespace uet::nic {
namespace {

constexpr std::uint16_t kDescriptors = 512;
// Less is copied sooner than another segment is made.
constexpr std::uint32_t kLeastGathered = 1024;
// The kernel frees the queue of an AF_XDP socket some time after it was closed.
constexpr std::chrono::seconds kQueueFreed{2};
constexpr std::chrono::milliseconds kQueuePause{20};

// In a child of the process that opened it a port is the parent's.
std::atomic<unsigned> g_forks{0};

unsigned watched_forks() {
  static const int kWatching =
      ::pthread_atfork(nullptr, nullptr, [] { g_forks.fetch_add(1, std::memory_order_relaxed); });
  return kWatching == 0 ? g_forks.load(std::memory_order_relaxed) : 0;
}

std::string explain(const std::string& what, int error) {
  const std::string line = take_last_log_line();
  return "FI_UET_NIC=dpdk: " + what + ": " + rte_strerror(error) +
         (line.empty() ? "" : " (" + line + ")") +
         "; see the arguments of the device, or use FI_UET_NIC=udp";
}

// Drivers do not tell that a right is missing.
std::string explain_rights(std::uint64_t wanted) {
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> sets{};
  if (::syscall(SYS_capget, &header, sets.data()) != 0) return {};
  const std::uint64_t has = std::uint64_t{sets[1].effective} << 32 | sets[0].effective;
  if ((wanted & ~has) == 0) return {};
  constexpr std::array<std::pair<unsigned, const char*>, 3> kNames = {
      {{CAP_NET_RAW, "net_raw"}, {CAP_NET_ADMIN, "net_admin"}, {CAP_BPF, "bpf"}}};
  std::string names;
  for (const auto& [number, name] : kNames) {
    if ((wanted >> number & 1) != 0)
      names += (names.empty() ? "cap_" : ",cap_") + std::string(name);
  }
  return "; the driver needs rights that the process lacks: run it as root, or give the program "
         "them with 'setcap " +
         names + "+ep'";
}

std::optional<DpdkOptions> options_of_device(std::string_view options) {
  std::string rest;
  take_native(options, rest);
  return parse_dpdk_options(rest);
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
  const auto parsed = options_of_device(config.options);
  if (!parsed) return explain_options(config.options, message);
  return std::min(carried.value(), parsed->driver.most_frame_bytes - kEthernetBytes);
}

FramedNic::KernelSees DpdkDevice::kernel_sees(const NicConfig& config) {
  const auto options = options_of_device(config.options);
  const bool taken = options && (options->driver.xdp_program || options->driver.fed_by_rule);
  return taken ? FramedNic::KernelSees::TheRest : FramedNic::KernelSees::Copies;
}

Result<std::unique_ptr<FrameDevice>> DpdkDevice::open(const FrameDeviceRequest& request,
                                                      std::string& message) {
  const auto options = parse_dpdk_options(request.options);
  if (!options) return explain_options(request.options, message);
  const bool pci = options->driver.name.empty();
  if (!start_eal({pci ? std::string(options->device) : std::string()}, message)) {
    return Error::NotSupported;
  }
  const auto limit = std::chrono::steady_clock::now() + kQueueFreed;
  while (true) {
    auto device = open_once(request, *options, message);
    if (device) {
      message.clear();
      return std::unique_ptr<FrameDevice>(std::move(device).value());
    }
    const bool again = options->driver.xdp_program && device.error() == Error::NotSupported;
    if (!again || std::chrono::steady_clock::now() > limit) return device.error();
    std::this_thread::sleep_for(kQueuePause);
  }
}

DpdkDevice::DpdkDevice() : forks_(watched_forks()) {}

Result<std::unique_ptr<DpdkDevice>> DpdkDevice::open_once(const FrameDeviceRequest& request,
                                                          const DpdkOptions& options,
                                                          std::string& message) {
  const DpdkDriver& driver = options.driver;
  const std::uint32_t frame_bytes =
      std::min(kEthernetBytes + request.interface.mtu, driver.most_frame_bytes);
  std::unique_ptr<DpdkDevice> device(new DpdkDevice);
  if (driver.to_one_peer) {
    device->peer_ = DpdkPeer::open(options.value_of("role"), options.value_of("socket"), message);
    if (device->peer_ == nullptr) return Error::NotSupported;
  }
  std::string xdp_program;
  if (driver.xdp_program) {
    auto program = DpdkXdpProgram::open(request, message);
    if (!program) return program.error();
    device->xdp_program_ = std::move(program).value();
    xdp_program = device->xdp_program_->path();
  }
  bool ready = false;
  without_signals([&] {
    // A server listens from the beginning, and its thread refuses who comes before it has started:
    // it gets no turn until then.
    const auto held = device->lock_of_peer();
    ready = device->probe(options,
                          device_arguments(options, request.interface, frame_bytes, xdp_program),
                          message) &&
            device->start(driver, frame_bytes, message);
  });
  if (ready) return device;
  message += explain_rights(driver.rights);
  return Error::NotSupported;
}

// Makes a virtual device, or finds the PCI device. False, with a message, if there is none.
bool DpdkDevice::probe(const DpdkOptions& options, const std::string& arguments,
                       std::string& message) {
  static std::atomic<unsigned> opened{0};
  const bool pci = options.driver.name.empty();
  std::string name(options.device);
  if (!pci) {
    name += "_uet" + std::to_string(opened++);
    const int error = rte_eal_hotplug_add("vdev", name.c_str(), arguments.c_str());
    if (error != 0) {
      message =
          explain("cannot make " + std::string(options.device) + " with " + arguments, -error);
      return false;
    }
    name_ = name;
  }
  const int error = rte_eth_dev_get_port_by_name(name.c_str(), &port_);
  if (error == 0) return true;
  message =
      explain("there is no device " + name +
                  (pci ? "; is it bound to a driver of DPDK (dpdk-devbind.py --status)?" : ""),
              -error);
  return false;
}

// One queue to receive, and two to send where the driver has them. Some have a second one only
// beside a second one to receive; the one peer of a memif receives from one.
int DpdkDevice::configure(const DpdkDriver& driver, const rte_eth_dev_info& info,
                          const rte_eth_conf& conf) {
  if (!driver.to_one_peer && info.max_tx_queues > 1 &&
      rte_eth_dev_configure(port_, 1, 2, &conf) == 0) {
    control_queue_ = 1;
    return 0;
  }
  return rte_eth_dev_configure(port_, 1, 1, &conf);
}

// False, with a message, if the port cannot be brought up.
bool DpdkDevice::start(const DpdkDriver& driver, std::uint32_t frame_bytes, std::string& message) {
  const int socket = rte_eth_dev_socket_id(port_);
  const std::string number = std::to_string(port_);
  if (driver.own_pages) {
    receive_pool_ = make_dpdk_page_pool("uet_rx" + number, driver.mbufs, socket);
  } else {
    const std::uint32_t bytes = mbuf_data_bytes(driver, frame_bytes);
    receive_pool_ = make_dpdk_pool("uet_rx" + number, driver.mbufs, bytes, socket);
    // A separate pool, so that sent packets that the driver still holds never block receiving.
    send_pool_ = make_dpdk_pool("uet_tx" + number, 3 * kDescriptors, bytes, socket);
  }
  if (receive_pool_ == nullptr || (send_pool_ == nullptr && !driver.own_pages)) {
    message = explain("no memory for " + std::to_string(driver.mbufs) + " packets", rte_errno);
    return false;
  }
  rte_eth_dev_info info{};
  int error = rte_eth_dev_info_get(port_, &info);
  rte_eth_conf conf{};
  // Some drivers say 1518, or 1522, although they carry more.
  const bool told = info.max_rx_pktlen > RTE_ETHER_MAX_VLAN_FRAME_LEN &&
                    info.max_mtu >= frame_bytes - kEthernetBytes;
  if (told) conf.rxmode.mtu = frame_bytes - kEthernetBytes;
  conf.txmode.offloads = info.tx_offload_capa & RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
  if (error == 0) error = configure(driver, info, conf);
  if (xdp_program_ != nullptr) xdp_program_->expect_socket();
  if (error == 0) {
    error = rte_eth_rx_queue_setup(port_, 0, kDescriptors, static_cast<unsigned>(socket), nullptr,
                                   receive_pool_.get());
  }
  if (xdp_program_ != nullptr) xdp_program_->find_socket();
  for (std::uint16_t queue = 0; error == 0 && queue <= control_queue_; ++queue) {
    error =
        rte_eth_tx_queue_setup(port_, queue, kDescriptors, static_cast<unsigned>(socket), nullptr);
  }
  if (error == 0) error = peer_ != nullptr ? peer_->start(port_) : rte_eth_dev_start(port_);
  if (error != 0) {
    message = explain("cannot start port " + std::to_string(port_), -error);
    return false;
  }
  started_ = true;
  const bool gathers = (conf.txmode.offloads & RTE_ETH_TX_OFFLOAD_MULTI_SEGS) != 0;
  if (gathers) regions_ = DpdkRegions::open(port_, driver.name.empty(), socket);
  traits_.reads_registered_memory = regions_ != nullptr;
  traits_.sends_by_kernel = driver.sends_by_kernel;
  traits_.max_frame_bytes = frame_bytes;
  traits_.receive_credit_bytes = std::uint64_t{kDescriptors} * frame_bytes;
  return true;
}

bool DpdkDevice::usable() const { return forks_ == g_forks.load(std::memory_order_relaxed); }

DpdkDevice::~DpdkDevice() {
  if (!usable()) {
    static_cast<void>(receive_pool_.release());
    static_cast<void>(send_pool_.release());
    static_cast<void>(regions_.release());
    return;
  }
  give_back();
  without_signals([this] {
    if (started_) {
      const auto held = lock_of_peer();
      rte_eth_dev_stop(port_);
      rte_eth_dev_close(port_);
    }
    regions_.reset();
    if (!name_.empty()) rte_eal_hotplug_remove("vdev", name_.c_str());
    receive_pool_.reset();
    send_pool_.reset();
  });
}

std::unique_lock<std::mutex> DpdkDevice::lock_of_peer() {
  return peer_ != nullptr ? peer_->lock() : std::unique_lock<std::mutex>();
}

void DpdkDevice::give_back() {
  if (lent_count_ > 0) rte_pktmbuf_free_bulk(lent_.data(), static_cast<unsigned>(lent_count_));
  lent_count_ = 0;
}

std::size_t DpdkDevice::receive(std::span<ArrivedFrame> out) {
  if (!usable()) return 0;
  give_back();
  const auto held = lock_of_peer();
  if (peer_ != nullptr && !peer_->connected()) return 0;
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
    arrived.arrived = Time{};
  }
  return filled;
}

rte_mempool* DpdkDevice::pool_to_send() const {
  return send_pool_ != nullptr ? send_pool_.get() : receive_pool_.get();
}

// False if there is no memory for a further segment.
bool DpdkDevice::fill(rte_mbuf* packet, const FrameToSend& frame) {
  rte_mbuf* last = packet;
  const auto copy = [&](std::span<const std::byte> bytes) {
    auto* const end = rte_pktmbuf_mtod_offset(last, std::byte*, last->data_len);
    std::copy(bytes.begin(), bytes.end(), end);
    last->data_len = static_cast<std::uint16_t>(last->data_len + bytes.size());
  };
  const auto chain = [&](rte_mbuf* segment) {
    last->next = segment;
    last = segment;
    ++packet->nb_segs;
  };
  const bool gather = regions_ != nullptr && frame.payload_stays;
  bool copies = true;  // `last` has space to copy into
  copy(frame.headers);
  for (const Slice& piece : frame.pieces) {
    rte_mbuf* const segment =
        gather && piece.length >= kLeastGathered ? regions_->refer_to(piece) : nullptr;
    if (segment != nullptr) {
      chain(segment);
      copies = false;
    } else if (piece.length > 0) {
      if (!copies) {
        rte_mbuf* const further = rte_pktmbuf_alloc(pool_to_send());
        if (further == nullptr) return false;
        chain(further);
        copies = true;
      }
      copy({piece.data, piece.length});
    }
  }
  packet->pkt_len = frame.length;
  return true;
}

std::uint64_t DpdkDevice::register_memory(std::span<const std::byte> memory) {
  const bool worth = usable() && regions_ != nullptr && memory.size() >= kLeastGathered;
  return worth ? regions_->add(memory) : 0;
}

void DpdkDevice::forget_memory(std::uint64_t id) {
  if (!usable() || regions_ == nullptr) return;
  const auto held = lock_of_peer();
  regions_->forget(id);
}

// Returns how many the port has taken. The first `control` ones go to the control queue.
std::size_t DpdkDevice::hand_over(std::span<rte_mbuf*> packets, std::size_t control) {
  const auto give = [this](std::uint16_t queue, std::span<rte_mbuf*> some) -> std::size_t {
    if (some.empty()) return 0;
    return rte_eth_tx_burst(port_, queue, some.data(), static_cast<std::uint16_t>(some.size()));
  };
  std::size_t sent = give(control_queue_, packets.first(control));
  if (sent == control) sent += give(0, packets.subspan(control));
  const auto rest = packets.subspan(sent);
  if (!rest.empty()) rte_pktmbuf_free_bulk(rest.data(), static_cast<unsigned>(rest.size()));
  return sent;
}

static_assert(kTxBurst <= 64);

std::size_t DpdkDevice::send(std::span<const FrameToSend> in) {
  if (!usable()) return in.size();
  const auto held = lock_of_peer();
  if (peer_ != nullptr) {
    const DpdkPeer::ToSend fate = peer_->to_send();
    if (fate == DpdkPeer::ToSend::Waits) return 0;
    if (fate == DpdkPeer::ToSend::IsDropped) {
      counters_.packets_dropped += in.size();
      return in.size();
    }
  }
  std::array<rte_mbuf*, kTxBurst> mbufs;
  const std::size_t wished = std::min(in.size(), mbufs.size());
  if (rte_pktmbuf_alloc_bulk(pool_to_send(), mbufs.data(), static_cast<unsigned>(wished)) != 0) {
    return 0;
  }
  std::size_t count = 0;
  std::uint64_t gathered = 0;  // a bit for each
  while (count < wished && fill(mbufs[count], in[count])) {
    gathered |= std::uint64_t{mbufs[count]->nb_segs > 1} << count;
    ++count;
  }
  if (count < wished) {
    rte_pktmbuf_free_bulk(mbufs.data() + count, static_cast<unsigned>(wished - count));
  }
  const std::size_t control = control_queue_ != 0 ? count_control(in.first(count)) : 0;
  const std::size_t sent = hand_over(std::span(mbufs).first(count), control);
  const std::uint64_t kept = sent < 64 ? gathered & ((std::uint64_t{1} << sent) - 1) : gathered;
  counters_.packets_gathered += static_cast<std::uint64_t>(std::popcount(kept));
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
