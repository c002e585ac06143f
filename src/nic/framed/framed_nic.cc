// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Sending: runs of packets whose next hop is known become frames, the others go through the kernel.
// Receiving: frames first, then what the kernel's socket has, which is asked seldom while it is
// silent.
#include "nic/framed/framed_nic.h"

#include <sys/timerfd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "nic/clock.h"
#include "nic/framed/socket_filter.h"

namespace uet::nic {

bool take_native(std::string_view options, std::string& rest) {
  bool native = false;
  for (std::size_t start = 0; start <= options.size();) {
    const std::size_t end = std::min(options.find(',', start), options.size());
    const std::string_view option = options.substr(start, end - start);
    if (option == "native") {
      native = true;
    } else if (!option.empty()) {
      rest += (rest.empty() ? "" : ",") + std::string(option);
    }
    start = end + 1;
  }
  return native;
}

namespace {

constexpr std::uint32_t kUdpBytes = 8;  // UDP header; the entropy header is shorter

// The kernel answers packets of a protocol without a raw socket with an ICMP error; this socket
// prevents the answer and receives nothing.
FileDescriptor hold_protocol(const FabricAddress& ip, std::uint8_t protocol, std::string& message) {
  const int family = ip.is_ipv6 ? AF_INET6 : AF_INET;
  FileDescriptor fd(::socket(family, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, protocol));
  if (!fd.valid() || !drop_everything(fd.get())) {
    message = "the native IP form needs a raw socket, which is refused: " + error_text(errno) +
              "; give the program CAP_NET_RAW with 'setcap cap_net_raw+ep', or leave out the "
              "option 'native'";
    return FileDescriptor();
  }
  return fd;
}

FileDescriptor watch(int a, int b) {
  FileDescriptor epoll(::epoll_create1(EPOLL_CLOEXEC));
  for (const int fd : {a, b}) {
    epoll_event event{.events = EPOLLIN, .data = {.fd = fd}};
    if (::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, fd, &event) != 0) return FileDescriptor();
  }
  return epoll;
}

std::uint32_t ipv4_number(const FabricAddress& ip) {
  const auto& bytes = ip.bytes;
  return std::uint32_t{bytes[0]} << 24 | std::uint32_t{bytes[1]} << 16 |
         std::uint32_t{bytes[2]} << 8 | bytes[3];
}

// The bits that tell hosts of the subnet apart; 0 where it has no broadcast address.
std::uint32_t host_bits_of(const Interface& interface, const FabricAddress& self) {
  if (self.is_ipv6) return 0;
  for (const InterfaceAddress& held : interface.addresses) {
    if (held.ip == self && held.prefix_length <= 30) return 0xFFFFFFFFU >> held.prefix_length;
  }
  return 0;
}

}  // namespace

// ---- opening ------------------------------------------------------------------------------------

Result<std::uint32_t> FramedNic::interface_mtu(const NicConfig& config, const Interface& interface,
                                               std::string& message) {
  if (!interface.loopback && interface.mac != wire::MacAddress{}) return interface.mtu;
  message = "FI_UET_NIC=" + config.back_end + " sends Ethernet frames, which " + interface.name +
            " does not carry: name another interface by FI_UET_IFACE, or use FI_UET_NIC=udp";
  return Error::NoDevice;
}

Result<std::unique_ptr<Nic>> FramedNic::open(const NicConfig& config,
                                             const OpenFrameDevice& open_device,
                                             std::string& message, KernelSees kernel_sees,
                                             const OpenKernelNic& open_kernel) {
  const auto found = find_interface(config.ip, message);
  if (!found && found.error() != Error::NotFound) return found.error();
  if (!found) {
    message = to_text(config.ip) + " is not an address of this host: see 'ip address'";
    return Error::NoDevice;
  }
  const Interface& interface = found.value();
  if (const auto mtu = interface_mtu(config, interface, message); !mtu) return mtu.error();

  std::string options;
  wire::FrameFormat format;
  if (take_native(config.options, options)) format.encapsulation = wire::Encapsulation::NativeIp;
  const bool native = format.encapsulation == wire::Encapsulation::NativeIp;
  format.crc = native && config.crc;

  if (native && config.port != 0 && config.port != kUetUdpPort) {
    message = "the native IP form has no ports, so that a FEP cannot be at port " +
              std::to_string(config.port) + ": leave out the service, or the option 'native'";
    return Error::Invalid;
  }

  Parts parts;
  UdpOptions kernel_options = udp_options(config);
  if (native) kernel_options.port = kUetUdpPort;  // the native form has no ports
  kernel_options.source_ports = 1;
  kernel_options.zero_checksum = true;
  kernel_options.gso = false;  // a virtual link would hand the other end's device whole trains,
  kernel_options.gro = false;  // and the kernel would merge what our device then sees
  if (kernel_sees == KernelSees::Copies) kernel_options.excluded_interface = interface.index;
  auto kernel = open_kernel(kernel_options, message);
  if (!kernel) return kernel.error();
  parts.kernel = std::move(kernel).value();
  if (native) {
    parts.protocol_holder = hold_protocol(config.ip, format.native_protocol, message);
    if (!parts.protocol_holder.valid()) return Error::NotSupported;
  }

  std::string why;
  auto hops = NextHops::open(interface.index, config.ip, why);
  if (hops) {
    parts.hops = std::move(hops).value();
  } else {
    message = why;
    return hops.error();
  }
  auto device = open_device({.interface = interface,
                             .self = parts.kernel->local_address(),
                             .format = format,
                             .options = options,
                             .receive_buffer_bytes = config.receive_buffer_bytes,
                             .send_buffer_bytes = config.send_buffer_bytes,
                             .sharers = config.sharers},
                            why);
  if (!device) {
    message = why;
    return device.error();
  }
  parts.device = std::move(device).value();
  if (!why.empty()) message += (message.empty() ? "" : "; ") + why;
  const std::string& way = parts.device->traits().way;
  if (config.report_mode && !way.empty()) config.report_mode(way);

  int device_fd = parts.device->wait_fd();
  if (device_fd < 0) {
    parts.timer = FileDescriptor(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
    device_fd = parts.timer.get();
  }
  parts.epoll = watch(parts.kernel->wait_fd(), device_fd);
  if (!parts.epoll.valid()) {
    const int error = errno;
    message = "cannot watch the descriptors of the NIC: " + error_text(error);
    return error_of(error);
  }
  return std::unique_ptr<Nic>(new FramedNic(std::move(parts), config, interface, format));
}

FramedNic::FramedNic(Parts parts, const NicConfig& config, const Interface& interface,
                     const wire::FrameFormat& format)
    : kernel_(std::move(parts.kernel)),
      hops_(std::move(parts.hops)),
      device_(std::move(parts.device)),
      protocol_holder_(std::move(parts.protocol_holder)),
      epoll_(std::move(parts.epoll)),
      timer_(std::move(parts.timer)),
      local_(kernel_->local_address()),
      format_(format),
      tells_native_(format.encapsulation == wire::Encapsulation::NativeIp && config.secure),
      marks_(config.trimming ? config.trim_marks : wire::TrimMarks{}),
      mac_(interface.mac),
      host_bits_(host_bits_of(interface, local_.ip)) {
  const FrameDeviceTraits& traits = device_->traits();
  vlan_ = traits.vlan;
  caps_.ip_mtu = interface.mtu;
  if (traits.max_frame_bytes != 0) {
    caps_.ip_mtu = std::min(caps_.ip_mtu, traits.max_frame_bytes - kEthernetBytes);
  }
  caps_.link_rate_bps = interface.link_rate_bps;
  caps_.receive_credit_bytes = traits.receive_credit_bytes;
  // At any other port, answers find this process only by its source port (port per process).
  caps_.per_packet_entropy = local_.port == kUetUdpPort;
  caps_.ecn = true;
  caps_.crc = format.crc;
  caps_.reads_registered_memory = traits.reads_registered_memory;
  caps_.sends_by_kernel = traits.sends_by_kernel;
  format_.udp_checksum = false;
  const std::uint32_t ip_bytes = local_.ip.is_ipv6 ? 40 : 20;
  const std::uint32_t trailer_bytes = format.crc ? wire::kCrcTrailerBytes : 0;
  max_packet_bytes_ = caps_.ip_mtu - ip_bytes - kUdpBytes - trailer_bytes;
}

// ---- sending ------------------------------------------------------------------------------------

// On a path inside this host sending carries the packets over, one after the other, so each gets
// its share of the time that it takes.
std::size_t FramedNic::tx_burst(std::span<const Packet* const> in) {
  const NoCancel no_cancel;
  std::size_t done = 0;
  while (done < in.size()) {
    const Time begin = monotonic_now();
    std::size_t offered = 0;
    const std::size_t sent = send_frames(in.subspan(done), offered);
    const Duration each = (monotonic_now() - begin) / std::max<std::size_t>(sent, 1);
    for (std::size_t i = 0; i < sent; ++i) in[done + i]->sent = begin + each * i;
    done += sent;
    if (sent < offered) {
      ++counters_.sends_refused;
      break;
    }
    if (offered > 0) continue;
    const std::size_t passed = send_through_kernel(in.subspan(done));
    done += passed;
    if (passed == 0) break;
  }
  return done;
}

// Packets sent through the kernel leave from the local port, which peers know.
std::uint16_t FramedNic::source_port_for(const Packet& packet) {
  if (packet.to.ip.is_ipv6 != local_.ip.is_ipv6) return local_.port;
  const NextHops::Way way = hops_->find(packet.to.ip).way;
  // Without a next hop yet it waits for one, in the native form.
  if (tells_native_ && way != NextHops::Way::Kernel) return 0;
  const bool known = way == NextHops::Way::Frame;
  return known ? Nic::source_port_for(packet) : local_.port;
}

// Sends the leading packets whose next hop is known. `offered`: the number of these packets.
std::size_t FramedNic::send_frames(std::span<const Packet* const> in, std::size_t& offered) {
  std::size_t frames = 0;
  std::size_t dropped = 0;  // too long; they count as sent where they stand
  std::uint64_t bytes = 0;
  for (const Packet* packet : in.first(std::min(in.size(), kTxBurst))) {
    if (packet->to.ip.is_ipv6 != local_.ip.is_ipv6) break;
    if (packet->length() > max_packet_bytes_) {
      if (frames > 0) break;
      ++dropped;
      continue;
    }
    const NextHops::Hop hop = hops_->find(packet->to.ip);
    if (hop.way != NextHops::Way::Frame) break;
    if (hops_->take_doubt()) let_kernel_ask(packet->to);
    build_frame(frames++, *packet, hop.mac);
  }
  counters_.packets_dropped += dropped;
  const std::size_t sent = frames > 0 ? device_->send(std::span(frames_).first(frames)) : 0;
  for (std::size_t i = 0; i < sent; ++i) bytes += in[dropped + i]->length();
  counters_.packets_sent += sent;
  counters_.bytes_sent += bytes;
  offered = dropped + frames;
  return dropped + sent;
}

void FramedNic::build_frame(std::size_t place, const Packet& packet, const wire::MacAddress& mac) {
  FrameToSend& frame = frames_[place];
  const std::span<const std::byte> head = packet.head();
  frame.pieces = {Slice{head.data(), static_cast<std::uint32_t>(head.size())}, packet.payload[0],
                  packet.payload[1], Slice{}};
  wire::FrameFields fields;
  fields.source_mac = mac_;
  fields.destination_mac = mac;
  fields.vlan = vlan_;
  fields.source = local_.ip;
  fields.destination = packet.to.ip;
  fields.entropy = source_port(caps_, local_.port, packet.entropy);
  fields.port = wire_address(packet.to).port;
  fields.dscp = packet.dscp;
  fields.ecn = packet.ecn;
  std::byte* const headers = headers_[place].data();
  const auto pieces = std::span(frame.pieces).first(3);
  const std::size_t length = wire::write_frame_headers(headers, format_, fields, pieces);
  frame.headers = {headers, length};
  frame.length = static_cast<std::uint32_t>(length) + packet.length();
  frame.payload_stays = packet.payload_stays;
  frame.control = packet.control;
  frame.memory = packet.device;
  if (!format_.crc) return;
  trailers_[place] = wire::frame_trailer(frame.headers, pieces);
  frame.pieces[3] = {trailers_[place].data(), wire::kCrcTrailerBytes};
  frame.length += wire::kCrcTrailerBytes;
}

// Sends the leading packet, and those behind it to the same address, through the kernel's socket.
std::size_t FramedNic::send_through_kernel(std::span<const Packet* const> in) {
  const Packet& first = *in[0];
  const bool native = format_.encapsulation == wire::Encapsulation::NativeIp;
  std::size_t run = 1;
  if (first.to.ip.is_ipv6 == local_.ip.is_ipv6) {
    const NextHops::Way way = hops_->find(first.to.ip).way;
    if (native && way != NextHops::Way::Kernel) return hold_until_resolved(first) ? 0 : 1;
    const auto joins = [&](const Packet& next) { return next.to == first.to && !next.device; };
    while (run < in.size() && joins(*in[run])) ++run;
  }
  kernel_active_until_ = monotonic_now() + kKernelActive;
  if (first.device != nullptr) return send_copy_through_kernel(first);
  return kernel_->tx_burst(in.first(run));
}

// The kernel cannot read a device's memory. Seldom: the first packets to a neighbour.
std::size_t FramedNic::send_copy_through_kernel(const Packet& packet) {
  const auto payload = std::make_unique_for_overwrite<std::byte[]>(packet.payload_length());
  copy_payload(packet, payload.get());
  Packet copy;
  copy.copy_headers(packet);
  copy.payload = {Slice{payload.get(), packet.payload_length()}, Slice{}};
  const std::array<const Packet*, 1> burst{&copy};
  const std::size_t sent = kernel_->tx_burst(burst);
  packet.sent = copy.sent;
  return sent;
}

// Sends an empty datagram, which peers ignore: it makes the kernel resolve the next hop.
void FramedNic::let_kernel_ask(const FepAddress& to) const {
  SocketAddress address;
  write_socket_address(wire_address(to), address);
  ::sendto(kernel_->wait_fd(), nullptr, 0, MSG_DONTWAIT, &address.any,
           socket_address_length(to.ip.is_ipv6));
}

// True: the packet shall be offered again. Otherwise it has been dropped: what could not be
// resolved in time shall not hold up others.
bool FramedNic::hold_until_resolved(const Packet& packet) {
  const Time now = monotonic_now();
  let_kernel_ask(packet.to);
  if (now >= resolve_until_ + kResolvePause) resolve_until_ = now + kResolveWait;
  hops_->refresh();
  if (now < resolve_until_ || hops_->find(packet.to.ip).way == NextHops::Way::Frame) return true;
  ++counters_.packets_dropped;
  return false;
}

// ---- receiving ----------------------------------------------------------------------------------

std::size_t FramedNic::rx_burst(std::span<RxPacket> out, Time now) {
  const NoCancel no_cancel;
  if (now >= next_refresh_) {
    hops_->refresh();
    next_refresh_ = now + kRefreshInterval;
  }
  std::size_t filled = receive_frames(out);
  const bool look =
      now >= next_kernel_look_ || now < kernel_active_until_ || kernel_->next_deadline() != kNever;
  if (!look || filled == out.size()) return filled;
  const std::size_t more = kernel_->rx_burst(out.subspan(filled), now);
  if (more > 0) kernel_active_until_ = now + kKernelActive;
  next_kernel_look_ = now + kKernelInterval;
  return filled + more;
}

std::size_t FramedNic::receive_frames(std::span<RxPacket> out) {
  const std::size_t room = std::min(out.size(), arrived_.size());
  const std::size_t frames = device_->receive(std::span(arrived_).first(room));
  std::size_t filled = 0;
  for (const ArrivedFrame& frame : std::span(arrived_).first(frames)) {
    if (!read_frame(frame, out[filled])) continue;
    counters_.bytes_received += out[filled].bytes.size();
    ++filled;
  }
  counters_.packets_received += filled;
  return filled;
}

// Can a host have sent it? The kernel asks the same of what it takes (martians): answers to a
// group, or to this host itself, are what a stranger wants.
bool FramedNic::is_host(const FabricAddress& source) const {
  const auto& bytes = source.bytes;
  if (source == local_.ip) return false;
  if (!source.is_ipv6) {
    const std::uint32_t ip = ipv4_number(source);
    const bool here = host_bits_ != 0 && ((ip ^ ipv4_number(local_.ip)) & ~host_bits_) == 0;
    const std::uint32_t host = ip & host_bits_;
    if (here && (host == 0 || host == host_bits_)) return false;  // broadcast, old and new
    return bytes[0] != 0 && bytes[0] != 127 && bytes[0] < 224;
  }
  constexpr std::array<std::uint8_t, 10> kNone{};
  const bool special =
      std::equal(kNone.begin(), kNone.end(), bytes.begin());  // ::1, ::ffff:a.b.c.d
  return bytes[0] != 0xFF && !special;
}

// False if the frame is not ours, or broken.
bool FramedNic::read_frame(const ArrivedFrame& frame, RxPacket& out) {
  wire::ParsedFrame parsed;
  const wire::FrameVerdict verdict = wire::parse_frame(frame.bytes, format_, marks_, parsed);
  if (verdict == wire::FrameVerdict::NotUet) return false;
  if (verdict == wire::FrameVerdict::BadCrc) {
    ++counters_.crc_errors;
    return false;
  }
  if (verdict != wire::FrameVerdict::Ok) {
    ++counters_.frames_refused;
    return false;
  }
  const wire::FrameFields& fields = parsed.fields;
  const bool udp = format_.encapsulation == wire::Encapsulation::Udp;
  if (vlan_ && (fields.vlan.value_or(0) & wire::kVlanIdMask) != *vlan_) return false;
  if (!(fields.destination == local_.ip) || (udp && fields.port != wire_address(local_).port))
    return false;
  if (!is_host(fields.source)) {
    ++counters_.frames_refused;
    return false;
  }
  if (parsed.packet.empty()) return false;  // sent to find a next hop
  out.bytes = parsed.packet;
  const std::uint16_t native_port = tells_native_ ? 0 : kUetUdpPort;
  out.source = {fields.source, udp ? fields.entropy : native_port};
  out.entropy = fields.entropy;
  out.ecn = fields.ecn;
  out.dscp = fields.dscp;
  out.arrived = frame.arrived;
  out.trimmed = false;
  return true;
}

// ---- waiting ------------------------------------------------------------------------------------

bool FramedNic::prepare_wait() {
  next_kernel_look_ = Time{};  // the kernel's socket may be the one that wakes us
  if (device_->prepare_wait()) return true;
  if (timer_.valid()) nap();
  return false;
}

// The timer runs on even if another thread polls for packets meanwhile: a thread sleeps on it.
void FramedNic::nap() {
  const itimerspec when{.it_interval = {}, .it_value = {.tv_sec = 0, .tv_nsec = kNap.count()}};
  ::timerfd_settime(timer_.get(), 0, &when, nullptr);
}

NicCounters FramedNic::counters() const {
  const NicCounters through_kernel = kernel_->counters();
  NicCounters all = counters_ + through_kernel + device_->counters();
  all.kernel_packets_sent = through_kernel.packets_sent;
  all.kernel_packets_received = through_kernel.packets_received;
  return all;
}

}  // namespace uet::nic
