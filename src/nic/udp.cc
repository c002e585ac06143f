// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Kernel UDP. Sending: packets become messages (single datagrams or trains), messages go out with
// one call; whatever the kernel refuses for now is offered again by the caller. Receiving: one
// call fills up to 16 buffers, which are handed out packet by packet.
#include "nic/udp.h"

#include <linux/filter.h>
#include <linux/udp.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "nic/clock.h"
#include "nic/interface.h"
#include "nic/registry.h"
#include "nic/source_ports.h"
#include "uet/wire/pds.h"

namespace uet::nic {
namespace {

bool set_option(int fd, int level, int name, int value) {
  return ::setsockopt(fd, level, name, &value, sizeof value) == 0;
}

// Options without which the protocol would be wrong. Returns the name of the one that failed.
const char* set_required_options(int fd, bool is_ipv6, std::uint8_t tos) {
  if (is_ipv6) {
    if (!set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1)) return "IPV6_V6ONLY";
    if (!set_option(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_DO)) {
      return "IPV6_MTU_DISCOVER";
    }
    if (!set_option(fd, IPPROTO_IPV6, IPV6_RECVTCLASS, 1)) return "IPV6_RECVTCLASS";
    if (!set_option(fd, IPPROTO_IPV6, IPV6_TCLASS, tos)) return "IPV6_TCLASS";
    // A peer may send checksum 0 (WIRE 1.1); without this the kernel hides such packets.
    if (!set_option(fd, IPPROTO_UDP, UDP_NO_CHECK6_RX, 1)) return "UDP_NO_CHECK6_RX";
    return nullptr;
  }
  if (!set_option(fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO)) return "IP_MTU_DISCOVER";
  if (!set_option(fd, IPPROTO_IP, IP_RECVTOS, 1)) return "IP_RECVTOS";
  if (!set_option(fd, IPPROTO_IP, IP_TOS, tos)) return "IP_TOS";
  return nullptr;
}

// Throws away what comes in over one interface.
bool exclude_interface(int fd, int index) {
  constexpr auto kIndexAt = static_cast<std::uint32_t>(SKF_AD_OFF + SKF_AD_IFINDEX);
  std::array<sock_filter, 4> program = {{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kIndexAt),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(index), 1, 0),
      BPF_STMT(BPF_RET | BPF_K, 0xFFFFFFFF),
      BPF_STMT(BPF_RET | BPF_K, 0),
  }};
  const sock_fprog filter{.len = program.size(), .filter = program.data()};
  return ::setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter) == 0;
}

// The socket drops what has no security header (TSS-3, the type in the first five bits), except a
// random part. A filter of a UDP socket sees the UDP header at offset 0.
bool attach_flood_filter(int fd) {
  constexpr auto kRandomAt = static_cast<std::uint32_t>(SKF_AD_OFF + SKF_AD_RANDOM);
  constexpr auto kTss = static_cast<std::uint32_t>(wire::PdsType::Tss);
  std::array<sock_filter, 8> program = {{
      BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 8),
      BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, 3),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kTss, 3, 0),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kRandomAt),
      BPF_STMT(BPF_ALU | BPF_AND | BPF_K, Nic::kFloodSample - 1),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, 0xFFFFFFFF),
      BPF_STMT(BPF_RET | BPF_K, 0),
  }};
  const sock_fprog filter{.len = program.size(), .filter = program.data()};
  return ::setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter) == 0;
}

struct BufferKind {
  int force;
  int plain;
  const char* what;
  const char* sysctl;
};
constexpr BufferKind kReceiveBuffer{SO_RCVBUFFORCE, SO_RCVBUF, "receive", "net.core.rmem_max"};
constexpr BufferKind kSendBuffer{SO_SNDBUFFORCE, SO_SNDBUF, "send", "net.core.wmem_max"};

// Asks for a buffer and returns what was granted. The kernel grants and reports twice the wish, for
// its own records; half of the report is what payload can count on.
std::uint64_t size_buffer(int fd, const BufferKind& kind, std::uint32_t wished,
                          std::string& message) {
  const int value = static_cast<int>(std::min<std::uint32_t>(wished, 1U << 30));
  if (!set_option(fd, SOL_SOCKET, kind.force, value)) set_option(fd, SOL_SOCKET, kind.plain, value);
  int reported = 0;
  socklen_t length = sizeof reported;
  ::getsockopt(fd, SOL_SOCKET, kind.plain, &reported, &length);
  const auto granted = static_cast<std::uint64_t>(reported) / 2;
  if (granted < wished / 2) {
    if (!message.empty()) message += "; ";
    message += std::string("the ") + kind.what + " buffer of the UDP socket is " +
               std::to_string(granted) + " bytes instead of " + std::to_string(wished) +
               ", which costs bandwidth: raise it with 'sysctl -w " + kind.sysctl + "=" +
               std::to_string(wished) + "'";
  }
  return granted;
}

std::uint32_t last_port(const UdpOptions& options) {
  return std::uint32_t{options.first_port} + kUetUdpPorts - 1;
}

// Binds to the requested port, or to the first free one (port per process). Returns 0 or errno.
int bind_port(int fd, const UdpOptions& options) {
  const std::uint16_t first = options.port != 0 ? options.port : options.first_port;
  const std::uint32_t last = options.port != 0 ? options.port : last_port(options);
  for (std::uint32_t port = first; port <= last; ++port) {
    SocketAddress address;
    write_socket_address(FepAddress{options.ip, static_cast<std::uint16_t>(port)}, address);
    if (::bind(fd, &address.any, socket_address_length(options.ip.is_ipv6)) == 0) return 0;
    if (errno != EADDRINUSE) return errno;
  }
  return EADDRINUSE;
}

Error explain_bind_error(int error, const UdpOptions& options, std::string& message) {
  const std::string ip = to_text(options.ip);
  if (error == EADDRINUSE && options.port != 0) {
    message = "UDP port " + std::to_string(options.port) + " of " + ip +
              " is taken by another socket: choose another service, or none to get a free one";
    return Error::AddressInUse;
  }
  if (error == EADDRINUSE) {
    message = "all UDP ports from " + std::to_string(options.first_port) + " to " +
              std::to_string(last_port(options)) + " of " + ip +
              " are taken: use another local address";
    return Error::AddressInUse;
  }
  if (error == EADDRNOTAVAIL) {
    message = ip + " is not an address of this host, or not ready yet: see 'ip address'";
    return Error::NoDevice;
  }
  message = "cannot bind a UDP socket to " + ip + ": " + error_text(error);
  return error_of(error);
}

NicCaps find_caps(const FabricAddress& ip, std::string& message) {
  NicCaps caps;
  caps.ecn = true;
  std::string why;
  const auto interface = find_interface(ip, why);
  if (!interface) {
    message = "MTU of " + to_text(ip) + " is not known, 1500 is assumed";
    if (!why.empty()) message += " (" + why + ")";
    return caps;
  }
  caps.ip_mtu = interface.value().mtu;
  caps.link_rate_bps = interface.value().link_rate_bps;
  caps.loopback = interface.value().loopback;
  return caps;
}

bool queue_full(int error) { return error == EAGAIN || error == ENOBUFS || error == ENOMEM; }

// Errors that a train may get although its packets would be sent one by one.
bool may_blame_train(int error) { return error == EINVAL || error == EIO || error == EMSGSIZE; }

// A socket with all its options, not bound.
Result<FileDescriptor> open_socket(const UdpOptions& options, std::string& message) {
  const bool is_ipv6 = options.ip.is_ipv6;
  FileDescriptor fd(
      ::socket(is_ipv6 ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) {
    const int error = errno;
    message = "cannot open a UDP socket: " + error_text(error);
    return error_of(error);
  }
  if (const char* failed = set_required_options(fd.get(), is_ipv6, options.usual_tos)) {
    message = std::string("the kernel refuses socket option ") + failed + ": " + error_text(errno);
    return Error::Io;
  }
  if (options.excluded_interface != 0 && !exclude_interface(fd.get(), options.excluded_interface)) {
    message = "the kernel refuses a filter on a UDP socket: " + error_text(errno);
    return Error::Io;
  }
  if (options.zero_checksum) {
    set_option(fd.get(), SOL_SOCKET, SO_NO_CHECK, 1);
    if (options.ip.is_ipv6) set_option(fd.get(), IPPROTO_UDP, UDP_NO_CHECK6_TX, 1);
  }
  // For speed: an old kernel may refuse it.
  if (options.gro) set_option(fd.get(), IPPROTO_UDP, UDP_GRO, 1);
  return fd;
}

// Another socket, to send from alone.
Result<FileDescriptor> open_sender(const UdpOptions& options, std::string& message) {
  auto opened = open_socket(options, message);
  std::string ignored;  // the first socket has reported small buffers
  if (opened) {
    size_buffer(opened.value().get(), kSendBuffer, options.send_buffer_bytes, ignored);
  }
  return opened;
}

// Binds a socket to a port of its own.
Result<UdpBinding> bind_alone(int fd, const UdpOptions& options, std::string& message) {
  if (slot_of_port(options.port)) {
    message = "port " + std::to_string(options.port) +
              " names a slot at the shared port 4793 and is no port of one process: "
              "use FI_UET_NIC=shared, or leave out the port";
    return Error::Invalid;
  }
  if (const int error = bind_port(fd, options)) return explain_bind_error(error, options, message);
  SocketAddress bound;
  socklen_t length = sizeof bound;
  if (::getsockname(fd, &bound.any, &length) != 0) {
    message = "cannot read the port of the UDP socket: " + error_text(errno);
    return Error::Io;
  }
  return UdpBinding{.address = read_socket_address(bound), .dropped = {}};
}

}  // namespace

// The kernel looks at the description of a message, and at each piece and control of it, for longer
// than it takes to put a short packet together here.
int send_to_kernel(int fd, mmsghdr* messages, unsigned count, int flags) {
  constexpr std::size_t kShortBytes = 512;
  const msghdr& first = messages[0].msg_hdr;
  if (count != 1 || first.msg_controllen != 0) return ::sendmmsg(fd, messages, count, flags);
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < first.msg_iovlen; ++i) bytes += first.msg_iov[i].iov_len;
  if (bytes > kShortBytes) return ::sendmmsg(fd, messages, count, flags);
  std::array<std::byte, kShortBytes> packet{};
  std::byte* end = packet.data();
  for (std::size_t i = 0; i < first.msg_iovlen; ++i) {
    const iovec& piece = first.msg_iov[i];
    std::memcpy(end, piece.iov_base, piece.iov_len);
    end += piece.iov_len;
  }
  const auto* to = static_cast<const sockaddr*>(first.msg_name);
  return ::sendto(fd, packet.data(), bytes, flags, to, first.msg_namelen) < 0 ? -1 : 1;
}

UdpOptions udp_options(const NicConfig& config) {
  UdpOptions options;
  options.ip = config.ip;
  options.port = config.port;
  options.first_port = config.first_port;
  options.receive_buffer_bytes = config.receive_buffer_bytes;
  options.send_buffer_bytes = config.send_buffer_bytes;
  options.source_ports = config.source_ports;
  options.usual_tos = tos_of(config.dscp_data, Ecn::Ect0);  // CMS-31
  options.gso = config.gso;
  options.gro = config.gro;
  options.arrival_times_on_loopback = config.arrival_times_on_loopback;
  return options;
}

Result<std::unique_ptr<UdpNic>> UdpNic::open(const UdpOptions& options, std::string& message) {
  message.clear();
  if (options.ip.is_wildcard()) {
    message = "a UDP back end needs one specific local address, not the wildcard";
    return Error::Invalid;
  }
  auto opened = open_socket(options, message);
  if (!opened) return opened.error();
  FileDescriptor fd = std::move(opened).value();
  Senders senders;
  if (options.bind) {
    auto another = open_socket(options, message);
    if (!another) return another.error();
    senders.push_back(std::move(another).value());
  }
  const int sending_fd = senders.empty() ? fd.get() : senders[0].get();
  UdpOptions usable = options;
  usable.gso = options.gso && set_option(sending_fd, IPPROTO_UDP, UDP_SEGMENT, 0);

  auto bound = options.bind ? options.bind(fd.get(), sending_fd, message)
                            : bind_alone(fd.get(), options, message);
  if (!bound) return bound.error();
  NicCaps caps = find_caps(options.ip, message);
  if (!caps.loopback || options.arrival_times_on_loopback) {  // an old kernel may refuse them
    set_option(fd.get(), SOL_SOCKET, SO_TIMESTAMPNS, 1);
  }
  caps.receive_credit_bytes =
      size_buffer(fd.get(), kReceiveBuffer, options.receive_buffer_bytes, message);
  size_buffer(sending_fd, kSendBuffer, options.send_buffer_bytes, message);
  const std::uint16_t port = bound.value().address.port;
  if (options.source_ports > 1 && port != kUetUdpPort) {
    if (!message.empty()) message += "; ";
    message += "packets leave from port " + std::to_string(port) +
               " alone, by which peers know this process: several source ports are for processes "
               "at port 4793 of an address of their own";
  } else if (options.source_ports > 1) {
    auto ports = open_source_ports(
        options.ip, options.source_ports, [&] { return open_sender(options, message); }, message);
    if (!ports) return ports.error();
    senders = std::move(ports.value().sockets);
    caps.per_packet_entropy = true;
    caps.source_ports = options.source_ports;
    caps.first_source_port = ports.value().first;
  }
  caps.lends_port = !options.bind && options.excluded_interface == 0;
  return std::unique_ptr<UdpNic>(
      new UdpNic(std::move(fd), std::move(senders), usable, std::move(bound).value(), caps));
}

UdpNic::UdpNic(FileDescriptor fd, Senders senders, const UdpOptions& options, UdpBinding binding,
               NicCaps caps)
    : senders_(std::move(senders)),
      fd_(std::move(fd)),
      options_(options),
      local_(binding.address),
      caps_(caps),
      port_dropped_(std::move(binding.dropped)),
      port_dropped_before_(port_dropped_ ? port_dropped_() : 0),
      guard_(std::move(binding.guard)),
      gso_(options.gso),
      excludes_interface_(options.excluded_interface != 0),
      batch_(local_.ip.is_ipv6, options.usual_tos) {}

// On a path inside this host the call itself carries the packets over, one after the other, so each
// gets its share of the time that it takes.
std::size_t UdpNic::tx_burst(std::span<const Packet* const> in) {
  const NoCancel no_cancel;
  const Time begin = monotonic_now();
  std::size_t done = 0;
  std::size_t suspects = 0;  // packets of a refused train, which are tried one by one
  while (done < in.size()) {
    const std::size_t offered = std::min(suspects != 0 ? suspects : kTxBurst, in.size() - done);
    const auto batch = run_of_one_sender(in.subspan(done, offered));
    const std::size_t messages = batch_.fill(batch, gso_ && suspects == 0);
    if (messages == 0) {  // an address of the other family
      ++counters_.packets_dropped;
      ++done;
      continue;
    }
    const int sent = options_.send_messages(sender_of(*in[done]), batch_.messages(),
                                            static_cast<unsigned>(messages), 0);
    if (sent > 0) {
      done += account_sent(static_cast<std::size_t>(sent));
      if (suspects != 0) switch_gso_off();  // they can leave alone: segmentation was at fault
      suspects = 0;
      continue;
    }
    const std::size_t refused = batch_.packets_of_first();
    const Refusal refusal = on_refused(errno, refused);
    if (refusal == Refusal::Full) break;
    if (refusal == Refusal::Interrupted) continue;
    suspects = refusal == Refusal::Train ? refused : 0;
    if (refusal == Refusal::Dropped) done += refused;  // alone too: segmentation was not at fault
  }
  share_out(monotonic_now() - begin, begin, in.first(done));
  return done;
}

UdpNic::Refusal UdpNic::on_refused(int error, std::size_t packets) {
  if (error == EINTR) return Refusal::Interrupted;
  // The error of a report is that of an earlier packet.
  if (!queue_full(error) && read_refusals()) return Refusal::Interrupted;
  if (queue_full(error)) {
    ++counters_.sends_refused;
    return Refusal::Full;
  }
  ++counters_.kernel_errors;
  if (packets > 1 && may_blame_train(error)) return Refusal::Train;
  counters_.packets_dropped += packets;
  return Refusal::Dropped;
}

void UdpNic::switch_gso_off() {
  gso_ = false;
  ++counters_.gso_switched_off;
}

// A sender that lost its processor in the call had its packets carried over before or after that,
// and with equal shares of the whole some would seem to have left after their answer: an RTT so
// small makes a queue of every later one. Large packets and slow memory take several times longer
// than usual, too; those shares are true.
void UdpNic::share_out(Duration call, Time begin, std::span<const Packet* const> sent) {
  constexpr int kSlowlyForgotten = 64;
  constexpr int kPaused = 16;  // times as long
  const Duration share = call / std::max<std::size_t>(sent.size(), 1);
  const Duration grown = usual_share_ + usual_share_ / kSlowlyForgotten + Duration(1);
  usual_share_ = usual_share_ == Duration{} ? share : std::min(share, grown);
  const Duration each = share > kPaused * usual_share_ ? usual_share_ : share;
  for (std::size_t i = 0; i < sent.size(); ++i) sent[i]->sent = begin + each * i;
}

// Packets whose entropy is unknown to a path selector, or none, leave from the port that all know.
int UdpNic::sender_of(const Packet& packet) const {
  if (packet.to.via != 0) return borrowed_.socket(packet.to.via);
  if (senders_.empty()) return fd_.get();
  if (caps_.source_ports == 0) return senders_[0].get();
  const std::uint16_t port = source_port(caps_, local_.port, packet.entropy);
  return port == local_.port ? fd_.get() : senders_[port - caps_.first_source_port].get();
}

// The packets that leave from the socket of the first one.
std::span<const Packet* const> UdpNic::run_of_one_sender(std::span<const Packet* const> in) const {
  if (caps_.source_ports == 0 && !borrowed_.any()) return in;
  const int sender = sender_of(*in.front());
  std::size_t length = 1;
  while (length < in.size() && sender_of(*in[length]) == sender) ++length;
  return in.first(length);
}

// The first `messages` messages have left; returns how many packets that were.
std::size_t UdpNic::account_sent(std::size_t messages) {
  const UdpSendBatch::Sent sent = batch_.contents(messages);
  counters_.bytes_sent += sent.bytes;
  counters_.packets_sent += sent.packets;
  return sent.packets;
}

// Own and borrowed ports fill a burst first in turn, so that none takes it whole every time.
std::size_t UdpNic::rx_burst(std::span<RxPacket> out, Time now) {
  if (!borrowed_.any()) return receive(out, now);
  const auto note = [this](UdpReceiveBuffers::Filled filled, int fd) { note_filled(filled, fd); };
  borrowed_turn_ = !borrowed_turn_;
  std::size_t filled = borrowed_turn_ ? borrowed_.receive(out, now, counters_, note) : 0;
  filled += receive(out.subspan(filled), now);
  if (!borrowed_turn_) filled += borrowed_.receive(out.subspan(filled), now, counters_, note);
  return filled;
}

// The buffers are filled again when their former contents have all been handed out in an earlier
// burst.
std::size_t UdpNic::receive(std::span<RxPacket> out, Time now) {
  if (out.empty()) return 0;
  if (buffers_.empty()) {
    const NoCancel no_cancel;
    note_filled(buffers_.fill(fd_.get(), now), fd_.get());
  }
  const std::size_t filled = lent_.sort_out(out, buffers_.hand_out(out, counters_));
  counters_.packets_received += filled;
  return filled;
}

void UdpNic::note_filled(UdpReceiveBuffers::Filled filled, int fd) {
  switch (filled) {
    case UdpReceiveBuffers::Filled::Nothing:
      break;
    case UdpReceiveBuffers::Filled::Some:
      backlog_bytes_ = 0;
      break;
    case UdpReceiveBuffers::Filled::All:
      backlog_bytes_ = socket_backlog_bytes(fd);
      break;
    case UdpReceiveBuffers::Filled::Failed:
      if (!read_refusals()) ++counters_.kernel_errors;
      break;
  }
}

// Of the sockets that send.
void UdpNic::watch_refusals() {
  refusals_.watch(fd_.get(), local_.ip.is_ipv6);
  for (const FileDescriptor& sender : senders_) refusals_.watch(sender.get(), local_.ip.is_ipv6);
  borrowed_.for_each([this](int fd, std::uint8_t) { refusals_.watch(fd, local_.ip.is_ipv6); });
}

// A socket has one filter: that of an excluded interface stays.
void UdpNic::thin_out_unprotected(bool on) {
  if (excludes_interface_) return;
  if (on) {
    attach_flood_filter(fd_.get());  // refused: the flood comes in as before
  } else {
    set_option(fd_.get(), SOL_SOCKET, SO_DETACH_FILTER, 0);
  }
}

// True: there was a report, which explains an error of the socket.
bool UdpNic::read_refusals() {
  if (!refusals_.watching()) return false;
  bool any = refusals_.read(fd_.get());
  for (const FileDescriptor& sender : senders_) any |= refusals_.read(sender.get());
  borrowed_.for_each([&](int fd, std::uint8_t via) { any |= refusals_.read(fd, via); });
  return any;
}

// All zero if an old kernel does not tell.
UdpNic::SocketMemory UdpNic::socket_memory(int fd) {
  SocketMemory memory{};
  socklen_t length = sizeof memory;
  ::getsockopt(fd, SOL_SOCKET, SO_MEMINFO, memory.data(), &length);
  return memory;
}

// As a part of the socket's buffer, applied to what that holds (NicCaps::receive_credit_bytes): the
// kernel counts its own memory, not the packets' bytes.
std::uint64_t UdpNic::socket_backlog_bytes(int fd) const {
  const SocketMemory memory = socket_memory(fd);
  const std::uint64_t limit = memory[SK_MEMINFO_RCVBUF];
  if (limit == 0) return 0;
  return caps_.receive_credit_bytes * memory[SK_MEMINFO_RMEM_ALLOC] / limit;
}

NicCounters UdpNic::counters() const {
  NicCounters all = counters_;
  all.receive_overflows = socket_memory(fd_.get())[SK_MEMINFO_DROPS];
  borrowed_.for_each(
      [&](int fd, std::uint8_t) { all.receive_overflows += socket_memory(fd)[SK_MEMINFO_DROPS]; });
  if (guard_ != nullptr) guard_->add_counts(all);
  if (port_dropped_) all.shared_port_dropped = port_dropped_() - port_dropped_before_;
  return all;
}

LentSocket UdpNic::lend_port(const PdcIdShare& share) {
  const NoCancel no_cancel;
  std::string message;
  auto opened = open_socket(options_, message);
  if (!opened) return {.fd = -EMFILE, .exchange = {}};
  const int fd = opened.value().get();
  if (!caps_.loopback || options_.arrival_times_on_loopback) {
    set_option(fd, SOL_SOCKET, SO_TIMESTAMPNS, 1);
  }
  size_buffer(fd, kReceiveBuffer, options_.receive_buffer_bytes, message);
  size_buffer(fd, kSendBuffer, options_.send_buffer_bytes, message);
  if (const int error = lent_.join(fd_.get(), fd, local_, share); error != 0) {
    return {.fd = -error, .exchange = {}};
  }
  return {.fd = opened.value().release(), .exchange = lent_.exchange()};
}

bool UdpNic::borrow_port(const LentSocket& lent, std::uint8_t via, const PdcIdShare& share) {
  if (!borrowed_.add(lent, via, share)) return false;
  if (refusals_.watching()) refusals_.watch(lent.fd, local_.ip.is_ipv6);
  return true;
}

}  // namespace uet::nic
