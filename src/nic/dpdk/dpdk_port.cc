// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "nic/dpdk_port.h"

#include <linux/capability.h>
#include <netinet/in.h>
#include <pthread.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_ring.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include "nic/dpdk_eal.h"
#include "nic/xdp_endpoint.h"

namespace uet::nic {
namespace {

constexpr std::uint16_t kDescriptors = 512;
constexpr unsigned kInboxFrames = 1024;
constexpr std::uint32_t kMostDataQueues = 16;  // to send; more FEPs share them
// The kernel frees the queue of an AF_XDP socket some time after it was closed.
constexpr std::chrono::seconds kQueueFreed{2};
constexpr std::chrono::milliseconds kQueuePause{20};
// The driver releases sent packets within this time, or the port is restarted.
constexpr std::chrono::seconds kDrainLimit{1};

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

// The address and port that a frame goes to, also if a switch has trimmed it; frames of the native
// form have the first port.
FepAddress destination_of(const rte_mbuf& frame) {
  const std::span bytes(rte_pktmbuf_mtod(&frame, const std::byte*), frame.data_len);
  constexpr wire::FrameFormat kAny{.udp_checksum = false, .ip_checksum_may_be_0 = true};
  wire::ParsedFrame parsed;
  const auto verdict = wire::parse_frame(bytes, kAny, {}, parsed);
  if (verdict != wire::FrameVerdict::Ok && verdict != wire::FrameVerdict::NotUet) {
    wire::parse_frame(bytes, kAny, {.trimmed = parsed.fields.dscp, .trimmed_last_hop = {}}, parsed);
  }
  return {.ip = parsed.fields.destination, .port = parsed.fields.port};
}

}  // namespace

// ---- inboxes ------------------------------------------------------------------------------------

void DpdkRingFree::operator()(rte_ring* ring) const { rte_ring_free(ring); }

std::unique_ptr<DpdkInbox> DpdkInbox::open(const FepAddress& self, const UetXdpEndpoint& endpoint,
                                           int socket) {
  static std::atomic<unsigned> opened{0};
  std::unique_ptr<DpdkInbox> inbox(new DpdkInbox(opened++, self, endpoint));
  const std::string name = "uet_inbox" + std::to_string(inbox->number());
  constexpr unsigned kOneWriterOneReader = RING_F_SP_ENQ | RING_F_SC_DEQ;
  inbox->ring_.reset(rte_ring_create(name.c_str(), kInboxFrames, socket, kOneWriterOneReader));
  if (inbox->ring_ == nullptr) return nullptr;
  return inbox;
}

DpdkInbox::~DpdkInbox() {
  void* frame = nullptr;
  while (ring_ != nullptr && rte_ring_dequeue(ring_.get(), &frame) == 0) {
    rte_pktmbuf_free(static_cast<rte_mbuf*>(frame));
  }
}

void DpdkInbox::put(rte_mbuf* frame, std::size_t most) {
  if (rte_ring_count(ring_.get()) < most && rte_ring_enqueue(ring_.get(), frame) == 0) return;
  rte_pktmbuf_free(frame);
  overflows_.fetch_add(1, std::memory_order_relaxed);
}

std::size_t DpdkInbox::take(std::span<rte_mbuf*> out) {
  return rte_ring_dequeue_burst(ring_.get(), reinterpret_cast<void**>(out.data()),
                                static_cast<unsigned>(out.size()), nullptr);
}

// ---- opening and closing ------------------------------------------------------------------------

// Never destroyed: ports may be closed when the process ends.
DpdkPort::Registry& DpdkPort::registry() {
  static Registry& all = *new Registry;
  return all;
}

DpdkPort::DpdkPort(Key key) : key_(std::move(key)), forks_(watched_forks()) {}

Result<std::shared_ptr<DpdkPort>> DpdkPort::open(const FrameDeviceRequest& request,
                                                 const DpdkOptions& options, std::string& message) {
  const std::lock_guard guard(registry().lock);
  const Key key{request.interface.index, std::string(request.options)};
  for (const auto& known : registry().ports) {
    const auto port = known.lock();
    if (port != nullptr && port->key_ == key && port->usable()) return port;
  }
  const bool pci = options.driver.name.empty();
  if (!start_eal({pci ? std::string(options.device) : std::string()}, message)) {
    return Error::NotSupported;
  }
  const auto limit = std::chrono::steady_clock::now() + kQueueFreed;
  while (true) {
    auto port = open_once(request, options, key, message);
    if (port) {
      message.clear();
      registry().ports.push_back(port.value());
      return port;
    }
    const bool again = options.driver.xdp_program && port.error() == Error::NotSupported;
    if (!again || std::chrono::steady_clock::now() > limit) return port;
    std::this_thread::sleep_for(kQueuePause);
  }
}

void DpdkPort::close(std::shared_ptr<DpdkPort> port) {
  if (!port->usable()) return;  // another thread of the parent may have had the lock
  const std::lock_guard guard(registry().lock);
  port.reset();
  std::erase_if(registry().ports, [](const auto& known) { return known.expired(); });
}

Result<std::shared_ptr<DpdkPort>> DpdkPort::open_once(const FrameDeviceRequest& request,
                                                      const DpdkOptions& options, const Key& key,
                                                      std::string& message) {
  const DpdkDriver& driver = options.driver;
  const std::uint32_t frame_bytes =
      std::min(kEthernetBytes + request.interface.mtu, driver.most_frame_bytes);
  std::shared_ptr<DpdkPort> port(new DpdkPort(key));
  if (driver.to_one_peer) {
    port->peer_ = DpdkPeer::open(options.value_of("role"), options.value_of("socket"), message);
    if (port->peer_ == nullptr) return Error::NotSupported;
  }
  std::string xdp_program;
  if (driver.xdp_program) {
    auto program = DpdkXdpProgram::open(request.interface, message);
    if (!program) return program.error();
    port->xdp_program_ = std::move(program).value();
    xdp_program = port->xdp_program_->path();
  }
  bool ready = false;
  without_signals([&] {
    // A server listens from the beginning, and its thread refuses who comes before it has started:
    // it gets no turn until then.
    const auto held = port->lock_of_peer();
    ready =
        port->probe(options, device_arguments(options, request.interface, frame_bytes, xdp_program),
                    message) &&
        port->start(driver, frame_bytes, request.sharers, message);
  });
  if (ready) return port;
  message += explain_rights(driver.rights);
  return Error::NotSupported;
}

// Makes a virtual device, or finds the PCI device. False, with a message, if there is none.
bool DpdkPort::probe(const DpdkOptions& options, const std::string& arguments,
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

// One queue to receive; to send, where the driver has them, one for each of `senders` and one for
// control packets. Some have a second one only beside a second one to receive; the one peer of a
// memif receives from one.
int DpdkPort::configure(const DpdkDriver& driver, std::uint32_t senders,
                        const rte_eth_dev_info& info, const rte_eth_conf& conf) {
  const auto wished = static_cast<std::uint16_t>(std::clamp(senders, 1U, kMostDataQueues));
  for (const std::uint16_t data_queues : {wished, std::uint16_t{1}}) {
    const auto queues = static_cast<std::uint16_t>(data_queues + 1);
    if (driver.to_one_peer || info.max_tx_queues < queues) continue;
    if (rte_eth_dev_configure(port_, 1, queues, &conf) != 0) continue;
    data_queues_ = control_queue_ = data_queues;
    return 0;
  }
  return rte_eth_dev_configure(port_, 1, 1, &conf);
}

// False, with a message, if the port cannot be brought up.
bool DpdkPort::start(const DpdkDriver& driver, std::uint32_t frame_bytes, std::uint32_t senders,
                     std::string& message) {
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
  // The rest is the driver's: descriptors, and with pages of its own what it sends.
  spare_frames_ = driver.own_pages ? driver.mbufs / 4 : driver.mbufs - kDescriptors;
  rte_eth_dev_info info{};
  int error = rte_eth_dev_info_get(port_, &info);
  rte_eth_conf conf{};
  // Some drivers say 1518, or 1522, although they carry more.
  const bool told = info.max_rx_pktlen > RTE_ETHER_MAX_VLAN_FRAME_LEN &&
                    info.max_mtu >= frame_bytes - kEthernetBytes;
  if (told) conf.rxmode.mtu = frame_bytes - kEthernetBytes;
  conf.txmode.offloads = info.tx_offload_capa & RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
  if (error == 0) error = configure(driver, senders, info, conf);
  if (xdp_program_ != nullptr) xdp_program_->expect_driver();
  if (error == 0) {
    error = rte_eth_rx_queue_setup(port_, 0, kDescriptors, static_cast<unsigned>(socket), nullptr,
                                   receive_pool_.get());
  }
  if (xdp_program_ != nullptr) xdp_program_->find_driver();
  send_locks_ = std::vector<std::mutex>(control_queue_ + 1U);
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

bool DpdkPort::usable() const { return forks_ == g_forks.load(std::memory_order_relaxed); }

DpdkPort::~DpdkPort() {
  if (!usable()) {
    for (auto& inbox : inboxes_) static_cast<void>(inbox.release());
    static_cast<void>(receive_pool_.release());
    static_cast<void>(send_pool_.release());
    static_cast<void>(regions_.release());
    return;
  }
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

bool DpdkPort::join(const FepAddress& self, const wire::FrameFormat& format, DpdkInbox*& inbox,
                    std::string& message) {
  const bool udp = format.encapsulation == wire::Encapsulation::Udp;
  const std::uint8_t protocol = udp ? std::uint8_t{IPPROTO_UDP} : format.native_protocol;
  auto opened = DpdkInbox::open(wire_address(self), xdp_endpoint(self, protocol),
                                rte_eth_dev_socket_id(port_));
  if (opened == nullptr) {
    message = explain("no memory for a further user of the port", rte_errno);
    return false;
  }
  const std::lock_guard guard(receive_lock_);
  if (xdp_program_ != nullptr && !xdp_program_->list(opened->endpoint())) {
    message = explain("the XDP program cannot take a further address", errno);
    return false;
  }
  inbox = inboxes_.emplace_back(std::move(opened)).get();
  return true;
}

void DpdkPort::leave(DpdkInbox* inbox) {
  const std::lock_guard guard(receive_lock_);
  if (xdp_program_ != nullptr) xdp_program_->strike(inbox->endpoint());
  std::erase_if(inboxes_, [inbox](const auto& one) { return one.get() == inbox; });
}

std::unique_lock<std::mutex> DpdkPort::lock_of_peer() const {
  return peer_ != nullptr ? peer_->lock() : std::unique_lock<std::mutex>();
}

// ---- frames -------------------------------------------------------------------------------------

// Frames wait in the inbox only until the next call, so that they stay in their order.
std::size_t DpdkPort::receive(DpdkInbox& inbox, std::span<rte_mbuf*> out) {
  const std::unique_lock guard(receive_lock_, std::try_to_lock);
  const std::size_t taken = inbox.take(out);
  if (!guard.owns_lock() || (peer_ != nullptr && !peer_->connected())) return taken;
  const auto rest = out.subspan(taken);
  const std::size_t received =
      rte_eth_rx_burst(port_, 0, rest.data(), static_cast<std::uint16_t>(rest.size()));
  return taken + (inboxes_.size() > 1 ? sort(inbox, rest.first(received)) : received);
}

// Moves what is for the reader, or for none of the others, to the front; returns its number.
std::size_t DpdkPort::sort(const DpdkInbox& reader, std::span<rte_mbuf*> frames) {
  // Each FEP reads kRxBurst of them at a time.
  const std::size_t share = std::max(spare_frames_ / inboxes_.size(), kRxBurst + 1);
  const std::size_t most = share - kRxBurst;
  std::size_t kept = 0;
  for (rte_mbuf* const frame : frames) {
    const FepAddress to = destination_of(*frame);
    const auto found = std::find_if(inboxes_.begin(), inboxes_.end(),
                                    [&](const auto& inbox) { return inbox->self() == to; });
    if (found != inboxes_.end() && found->get() != &reader) {
      (*found)->put(frame, most);
    } else {
      frames[kept++] = frame;
    }
  }
  return kept;
}

std::size_t DpdkPort::send(const DpdkInbox& inbox, std::span<rte_mbuf*> packets,
                           std::size_t control) {
  std::size_t sent = send_by(control_queue_, packets.first(control));
  if (sent == control) {
    sent += send_by(static_cast<std::uint16_t>(inbox.number() % data_queues_),
                    packets.subspan(control));
  }
  return sent;
}

std::size_t DpdkPort::send_by(std::uint16_t queue, std::span<rte_mbuf*> packets) {
  if (packets.empty()) return 0;
  const std::lock_guard guard(send_locks_[queue]);
  return rte_eth_tx_burst(port_, queue, packets.data(), static_cast<std::uint16_t>(packets.size()));
}

// The driver releases packets that were sent. False if it does not do that when it is asked.
bool DpdkPort::clean_up() {
  for (std::uint16_t queue = 0; queue < data_queues_; ++queue) {
    const std::lock_guard guard(send_locks_[queue]);
    if (rte_eth_tx_done_cleanup(port_, queue, 0) < 0) return false;
  }
  return true;
}

// A port that stops releases all packets. Packets not sent yet are lost; PDS recovers.
void DpdkPort::restart() {
  const std::lock_guard receiving(receive_lock_);
  std::vector<std::unique_lock<std::mutex>> sending;
  for (std::mutex& lock : send_locks_) sending.emplace_back(lock);
  rte_eth_dev_stop(port_);
  rte_eth_dev_start(port_);
}

void DpdkPort::forget_memory(std::uint64_t id) {
  const auto held = lock_of_peer();
  const auto limit = std::chrono::steady_clock::now() + kDrainLimit;
  while (regions_->in_use(id)) {
    if (clean_up() && std::chrono::steady_clock::now() < limit) continue;
    restart();
    break;
  }
  regions_->remove(id);
}

NicCounters DpdkPort::counters(const DpdkInbox& inbox) {
  NicCounters all;
  all.receive_overflows = inbox.overflows();
  const std::lock_guard guard(receive_lock_);
  if (inboxes_.front().get() != &inbox) return all;
  rte_eth_stats stats{};
  if (rte_eth_stats_get(port_, &stats) == 0) {
    all.receive_overflows += stats.imissed + stats.rx_nombuf;
    all.kernel_errors += stats.oerrors;
  }
  return all;
}

}  // namespace uet::nic
