// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Which queues a process gets, and bursts over all of them.
#include "nic/xdp_device.h"

#include <linux/ethtool.h>
#include <linux/if_xdp.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/utsname.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>

#include "nic/framed/framed_nic.h"
#include "nic/xdp_redirect.h"

namespace uet::nic {
namespace {

constexpr std::uint8_t kUdpProtocol = IPPROTO_UDP;
constexpr std::uint32_t kChunkBytes = 4096;
// Frame bytes in one chunk: the kernel keeps 256 bytes in front of a frame.
constexpr std::uint32_t kChunkFrameBytes = kChunkBytes - 256;
constexpr std::uint32_t kMaxFrameBytes = 16'000;
constexpr std::uint32_t kLeastChunks = 256;
constexpr std::uint32_t kMostChunks = 16'384;
// Since Linux 6.6; Debian 12's headers are older.
constexpr std::uint16_t kUseSeveralChunks = 1U << 4;  // XDP_USE_SG
// The kernel frees the queue of a socket some time after the socket was closed, later on a busy
// host. open() waits so long for a queue that none of our living processes has.
constexpr std::chrono::seconds kPatience(10);

bool kernel_takes_several_chunks() {
  utsname name{};
  int major = 0;
  int minor = 0;
  if (::uname(&name) != 0 || std::sscanf(name.release, "%d.%d", &major, &minor) != 2) return false;
  return major > 6 || (major == 6 && minor >= 6);
}

// The longest frame that we carry over the interface.
std::uint32_t frame_bytes_of(const Interface& interface) {
  const std::uint32_t most = kernel_takes_several_chunks() ? kMaxFrameBytes : kChunkFrameBytes;
  return std::min(kEthernetBytes + interface.mtu, most);
}

struct QueueCounts {
  std::uint32_t receive = 1;
  std::uint32_t send = 1;
};

QueueCounts count_queues(const Interface& interface) {
  const FileDescriptor socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ethtool_channels channels{};
  channels.cmd = ETHTOOL_GCHANNELS;
  ifreq request{};
  interface.name.copy(request.ifr_name, sizeof request.ifr_name - 1);
  request.ifr_data = reinterpret_cast<char*>(&channels);
  if (::ioctl(socket.get(), SIOCETHTOOL, &request) != 0) return {};
  const auto count = [](std::uint32_t alone, std::uint32_t combined) {
    return std::clamp<std::uint32_t>(alone + combined, 1, UET_XDP_QUEUES);
  };
  return {count(channels.rx_count, channels.combined_count),
          count(channels.tx_count, channels.combined_count)};
}

// A power of two.
std::uint32_t chunks_for(std::uint32_t bytes) {
  return std::bit_floor(std::clamp(bytes / kChunkBytes, kLeastChunks, kMostChunks));
}

// A result of open_queue that is not a value of errno.
constexpr int kNotFreed = -1;  // none of our processes has the queue, but the kernel refused it

Error explain(int error, const Interface& interface, const QueueCounts& counts,
              std::size_t memory_bytes, std::string& message) {
  message = "FI_UET_NIC=xdp on " + interface.name + ": ";
  const std::string& name = interface.name;
  switch (error) {
    case EBUSY:
      message += "no receive queue is free, of " + std::to_string(counts.receive) +
                 ": other processes have them, and each needs one of its own. Give the interface "
                 "more ('ethtool -L " +
                 name +
                 " combined N' or 'rx N tx N') and each process a part of them with "
                 "FI_UET_NIC=xdp:queues=1, or use FI_UET_NIC=udp";
      return Error::AddressInUse;
    case kNotFreed:
      message +=
          "a receive queue is taken, but by no process of uet: another program has an AF_XDP "
          "socket there, or the kernel has not freed it within " +
          std::to_string(kPatience.count()) +
          " s of its closing; choose another one with FI_UET_NIC=xdp:queue=N (see "
          "'ethtool -l " +
          name + "'), end that program, or use FI_UET_NIC=udp";
      return Error::AddressInUse;
    case EPERM:
    case EACCES:
      message +=
          "cannot open an AF_XDP socket: " + error_text(error) +
          "; it needs CAP_NET_RAW: run as root, give the program the rights with "
          "'setcap cap_net_raw,cap_bpf,cap_net_admin,cap_sys_admin+ep', or use FI_UET_NIC=udp";
      return Error::NotSupported;
    case ENOBUFS:
    case ENOMEM:
      message += "no memory for packets: " + error_text(error) + "; allow the process to lock " +
                 std::to_string(memory_bytes / 1024) +
                 " KiB (ulimit -l), or give it CAP_IPC_LOCK; a smaller "
                 "FI_UET_SOCKET_BUFFER_BYTES needs less";
      return Error::NoMemory;
    case EOPNOTSUPP:
      message += "the driver has no zero-copy: leave out the option 'zerocopy'";
      return Error::NotSupported;
    default:
      message += "cannot bind an AF_XDP socket: " + error_text(error) + "; see 'ip link show " +
                 name + "' and 'ethtool -l " + name + "', or use FI_UET_NIC=udp";
      if (error == EMFILE || error == ENFILE) return error_of(error);
      return error == ENODEV || error == ENETDOWN ? Error::NoDevice : Error::NotSupported;
  }
}

bool parse_number(std::string_view text, std::uint32_t most, std::uint32_t& number) {
  const auto result = std::from_chars(text.data(), text.data() + text.size(), number);
  return result.ec == std::errc() && result.ptr == text.data() + text.size() && number <= most;
}

bool parse_option(std::string_view option, XdpOptions& options) {
  if (option == "generic") {
    options.generic = true;
  } else if (option == "copy") {
    options.copy = true;
  } else if (option == "zerocopy") {
    options.zero_copy = true;
  } else if (option.starts_with("queue=")) {
    return parse_number(option.substr(6), UET_XDP_QUEUES - 1, options.queue.emplace());
  } else if (option.starts_with("queues=")) {
    return parse_number(option.substr(7), UET_XDP_QUEUES, options.queues) && options.queues > 0;
  } else {
    return false;
  }
  return true;
}

}  // namespace

Result<XdpOptions> parse_xdp_options(std::string_view text, std::string& message) {
  XdpOptions options;
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = std::min(text.find(',', start), text.size());
    const std::string_view option = text.substr(start, end - start);
    if (!parse_option(option, options)) {
      message = "FI_UET_NIC=xdp: '" + std::string(option) +
                "' is no option of it; allowed: native, generic, copy, zerocopy, queue=N, queues=N";
      return Error::Invalid;
    }
    start = end + 1;
  }
  if (options.zero_copy && (options.copy || options.generic)) {
    message = "FI_UET_NIC=xdp: zerocopy goes neither with copy nor with generic: leave out one";
    return Error::Invalid;
  }
  return options;
}

Result<std::uint32_t> XdpDevice::ip_mtu(const NicConfig& config, const Interface& interface,
                                        std::string& message) {
  const auto carried = FramedNic::interface_mtu(config, interface, message);
  if (!carried) return carried;
  return std::min(carried.value(), frame_bytes_of(interface) - kEthernetBytes);
}

Result<std::unique_ptr<FrameDevice>> XdpDevice::open(const FrameDeviceRequest& request,
                                                     std::string& message) {
  const auto options = parse_xdp_options(request.options, message);
  if (!options) return options.error();
  auto program = XdpProgram::open(request.interface, options.value().generic, message);
  if (!program) return program.error();
  std::unique_ptr<XdpDevice> device(new XdpDevice(std::move(program).value()));
  device->frame_bytes_ = frame_bytes_of(request.interface);
  device->guard_ = GuardMap::make();
  if (device->guard_ == nullptr) {
    message = "FI_UET_NIC=xdp: no memory for the list of open PDCs: " + error_text(errno) +
              "; raise the limit of locked memory (ulimit -l), or use FI_UET_NIC=udp";
    return error_of(errno);
  }
  const auto opened = device->open_queues(request, options.value(), message);
  if (!opened) return opened.error();
  const bool several_chunks = device->frame_bytes_ > kChunkFrameBytes;
  if (several_chunks) device->room_.resize(kRxBurst * device->frame_bytes_);

  device->epoll_ = FileDescriptor(::epoll_create1(EPOLL_CLOEXEC));
  for (const auto& queue : device->queues_) {
    epoll_event event{.events = EPOLLIN, .data = {.fd = queue->fd()}};
    if (::epoll_ctl(device->epoll_.get(), EPOLL_CTL_ADD, queue->fd(), &event) != 0) {
      const int error = errno;
      message = "cannot watch the sockets of the queues: " + error_text(error);
      return error_of(error);
    }
  }
  return std::unique_ptr<FrameDevice>(std::move(device));
}

Result<bool> XdpDevice::open_queues(const FrameDeviceRequest& request, const XdpOptions& options,
                                    std::string& message) {
  const Interface& interface = request.interface;
  const QueueCounts counts = count_queues(interface);
  const bool native = request.format.encapsulation == wire::Encapsulation::NativeIp;
  const std::uint32_t from = options.queue.value_or(0);
  const std::uint32_t left = counts.receive - std::min(from, counts.receive);
  const std::uint32_t share = std::max(left / request.sharers, 1U);
  const std::uint32_t wanted = options.queues != 0 ? options.queues : options.queue ? 1 : share;
  if (wanted > left) {
    message = "FI_UET_NIC=xdp: " + interface.name + " has receive queues 0 to " +
              std::to_string(counts.receive - 1) +
              ": choose queue and queues within them, or see "
              "'ethtool -L'";
    return Error::Invalid;
  }
  if (native && wanted < counts.receive) {
    message =
        "FI_UET_NIC=xdp: the native form has no ports, so that one process must have all "
        "receive queues: leave out queue and queues, or native";
    return Error::Invalid;
  }
  XdpQueue::Request each{.interface = interface,
                         .queue = 0,
                         .receive_chunks = chunks_for(request.receive_buffer_bytes / wanted),
                         .send_chunks = chunks_for(request.send_buffer_bytes),
                         .bind_flags = XDP_USE_NEED_WAKEUP,
                         .until = {}};
  const bool several_chunks = frame_bytes_ > kChunkFrameBytes;
  if (several_chunks) each.bind_flags |= kUseSeveralChunks;
  if (options.copy || program_.generic()) each.bind_flags |= XDP_COPY;
  if (options.zero_copy) each.bind_flags |= XDP_ZEROCOPY;
  const std::uint8_t protocol = native ? request.format.native_protocol : kUdpProtocol;

  // First those that are free, then those that will be.
  const bool exact = options.queue.has_value() || native;
  const std::uint32_t end = exact ? from + wanted : counts.receive;
  std::vector<bool> ours(counts.receive);
  int refused = 0;
  for (const auto patience : {std::chrono::seconds(0), kPatience}) {
    each.until = std::chrono::steady_clock::now() + patience;
    refused = EBUSY;
    for (each.queue = from; each.queue < end && queues_.size() < wanted; ++each.queue) {
      if (ours[each.queue]) continue;
      if (queues_.empty() && each.queue >= counts.send) break;  // none could be sent on
      const int error = open_queue(each, request.self, protocol);
      if (error == kNotFreed) refused = kNotFreed;
      if (error == EBUSY || error == kNotFreed) continue;
      if (error != 0) {
        const std::size_t chunks = std::size_t{each.receive_chunks} * wanted + each.send_chunks;
        return explain(error, interface, counts, chunks * kChunkBytes, message);
      }
      ours[each.queue] = true;
      each.send_chunks = 0;
    }
  }
  const bool all = queues_.size() == wanted;
  if (queues_.empty() || (!all && (options.queues != 0 || native))) {
    return explain(refused, interface, counts, 0, message);
  }
  const std::uint32_t chunks_each = (frame_bytes_ + kChunkFrameBytes - 1) / kChunkFrameBytes;
  traits_.max_frame_bytes = frame_bytes_;
  traits_.receive_credit_bytes = std::uint64_t{each.receive_chunks / chunks_each} * interface.mtu;
  describe(interface, ours);
  return true;
}

// Returns 0, errno (EBUSY: a living process has the queue), or kNotFreed. The claim keeps our other
// processes away, so that only the kernel can delay this call.
int XdpDevice::open_queue(const XdpQueue::Request& request, const FepAddress& self,
                          std::uint8_t protocol) {
  const FileDescriptor claim(::socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0));
  if (!claim.valid()) return errno;
  if (!program_.claim_queue(request.queue, claim.get())) return errno == EEXIST ? EBUSY : errno;
  int error = 0;
  auto queue = XdpQueue::open(request, error);
  if (queue == nullptr) return error == EBUSY ? kNotFreed : error;
  const XdpProgram::Owner owner{queue->fd(), guard_->fd(), self, protocol};
  if (!program_.give_queue(request.queue, owner)) return errno;
  queues_.push_back(std::move(queue));
  return 0;
}

void XdpDevice::describe(const Interface& interface, const std::vector<bool>& ours) {
  std::string names;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    if (ours[i]) names += (names.empty() ? "" : ", ") + std::to_string(i);
  }
  traits_.way = std::string("XDP ") + (program_.generic() ? "behind" : "in") + " the driver of " +
                interface.name + ", " + (queues_[0]->zero_copy() ? "zero-copy" : "copied") +
                ", receive queues " + names + " of " + std::to_string(ours.size());
}

// ---- bursts -------------------------------------------------------------------------------------

std::size_t XdpDevice::receive(std::span<ArrivedFrame> out) {
  if (send_pending_) kick();
  for (const auto& queue : queues_) queue->give_back();
  std::size_t filled = 0;
  const std::size_t count = queues_.size();
  const std::span<std::byte> room(room_);
  for (std::size_t i = 0; i < count && filled < out.size(); ++i) {
    XdpQueue& queue = *queues_[(first_ + i) % count];
    const auto left = room.subspan(room.empty() ? 0 : filled * frame_bytes_);
    filled += queue.receive(out.subspan(filled), left, frame_bytes_, counters_.receive_truncated);
  }
  if (count > 1) first_ = (first_ + 1) % count;
  return filled;
}

std::size_t XdpDevice::send(std::span<const FrameToSend> in) {
  const std::size_t taken = queues_[0]->send(in);
  if (taken > 0 || send_pending_) kick();
  return taken;
}

void XdpDevice::kick() {
  const int error = queues_[0]->kick();
  send_pending_ = error == EAGAIN;
  if (error != 0 && error != EAGAIN) ++counters_.kernel_errors;
}

int XdpDevice::wait_fd() const { return epoll_.get(); }

bool XdpDevice::prepare_wait() {
  if (send_pending_) kick();
  return send_pending_;
}

NicCounters XdpDevice::counters() const {
  NicCounters all = counters_;
  for (const auto& queue : queues_) all.receive_overflows += queue->overflows();
  guard_->add_counts(all);
  return all;
}

}  // namespace uet::nic
