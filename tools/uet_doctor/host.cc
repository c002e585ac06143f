// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "host.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <string_view>

#include "uet/fi_ext_uet.h"

namespace uet::doctor {

namespace {

namespace fs = std::filesystem;

constexpr std::uint16_t kFirstPort = 4793;
constexpr std::uint16_t kLastPort = 5816;
// Of processes that share the first (FI_UET_NIC=shared), each has one of these besides.
constexpr std::uint16_t kFirstSlotPort = 5817;
constexpr std::uint16_t kLastSlotPort = 5848;
constexpr std::size_t kLeastMtu = 1280;
constexpr std::size_t kJumboMtu = 9000;

// Bytes of FI_ADDR_UET (fi_ext_uet.h).
constexpr std::size_t kFlags = 1;
constexpr std::uint8_t kIpv6Flag = 0x40;
constexpr std::size_t kFabricAddress = 4;

std::optional<LocalAddress> address_of(const fi_info& info) {
  if (info.addr_format != FI_ADDR_UET || info.src_addrlen != FI_ADDR_UET_SIZE) return std::nullopt;
  const auto* const bytes = static_cast<const std::uint8_t*>(info.src_addr);
  LocalAddress address;
  address.interface = info.domain_attr->name;
  address.ipv6 = (bytes[kFlags] & kIpv6Flag) != 0;
  std::array<char, INET6_ADDRSTRLEN> text{};
  ::inet_ntop(address.ipv6 ? AF_INET6 : AF_INET, bytes + kFabricAddress, text.data(), text.size());
  address.host = text.data();
  address.loopback = address.host == "::1" || address.host.starts_with("127.");
  return address;
}

struct UdpAddress {
  sockaddr_storage storage{};
  socklen_t length = 0;
};

UdpAddress udp_address(const LocalAddress& address, std::uint16_t port) {
  UdpAddress result;
  if (address.ipv6) {
    auto* const in6 = reinterpret_cast<sockaddr_in6*>(&result.storage);
    in6->sin6_family = AF_INET6;
    in6->sin6_port = htons(port);
    ::inet_pton(AF_INET6, address.host.c_str(), &in6->sin6_addr);
    result.length = sizeof *in6;
  } else {
    auto* const in = reinterpret_cast<sockaddr_in*>(&result.storage);
    in->sin_family = AF_INET;
    in->sin_port = htons(port);
    ::inet_pton(AF_INET, address.host.c_str(), &in->sin_addr);
    result.length = sizeof *in;
  }
  return result;
}

// 0, or the errno of binding a UDP socket.
int try_port(const LocalAddress& address, std::uint16_t port) {
  const UdpAddress wanted = udp_address(address, port);
  const int fd = ::socket(wanted.storage.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return errno;
  const int result =
      ::bind(fd, reinterpret_cast<const sockaddr*>(&wanted.storage), wanted.length) == 0 ? 0
                                                                                         : errno;
  ::close(fd);
  return result;
}

// Inodes of the UDP sockets of a port; the columns of /proc/net/udp are local address and inode.
std::vector<std::string> inodes_of(std::uint16_t port) {
  std::array<char, 8> wanted{};
  std::snprintf(wanted.data(), wanted.size(), ":%04X", port);
  std::vector<std::string> inodes;
  for (const char* table : {"/proc/net/udp", "/proc/net/udp6"}) {
    std::ifstream in(table);
    for (std::string line; std::getline(in, line);) {
      std::istringstream columns(line);
      std::vector<std::string> words;
      for (std::string word; columns >> word;) words.push_back(word);
      if (words.size() > 9 && words[1].ends_with(wanted.data())) inodes.push_back(words[9]);
    }
  }
  return inodes;
}

// "fi_pingpong (process 4711)", as far as this user may see.
std::string owner_of(std::uint16_t port) {
  const std::vector<std::string> inodes = inodes_of(port);
  std::error_code error;
  for (const auto& process : fs::directory_iterator("/proc", error)) {
    const std::string id = process.path().filename().string();
    if (!std::all_of(id.begin(), id.end(), [](unsigned char c) { return std::isdigit(c) != 0; })) {
      continue;
    }
    for (const auto& entry : fs::directory_iterator(process.path() / "fd", error)) {
      const std::string target = fs::read_symlink(entry.path(), error).string();
      for (const std::string& inode : inodes) {
        if (target != "socket:[" + inode + "]") continue;
        std::ifstream command(process.path() / "comm");
        std::string name;
        std::getline(command, name);
        return name + " (process " + id + ")";
      }
    }
  }
  return "a process of another user";
}

// "4194304" of a help text that ends with "(65536 to 1073741824; default: 4194304)".
std::string default_in(std::string_view help) {
  constexpr std::string_view kBefore = "; default: ";
  const auto begin = help.rfind(kBefore);
  if (begin == std::string_view::npos) return "";
  help.remove_prefix(begin + kBefore.size());
  return std::string(help.substr(0, help.find(')')));
}

// One of the provider's parameters, as libfabric knows it.
struct Parameter {
  std::string value;   // from environment or configuration file; empty: not set
  std::string preset;  // its default
};

Parameter parameter(const std::string& name) {
  fi_param* parameters = nullptr;
  int count = 0;
  if (fi_getparams(&parameters, &count) != 0) return {};
  Parameter found;
  for (int i = 0; i < count; ++i) {
    if (parameters[i].name != name) continue;
    if (parameters[i].value != nullptr) found.value = parameters[i].value;
    if (parameters[i].help_string != nullptr) found.preset = default_in(parameters[i].help_string);
  }
  fi_freeparams(parameters);
  return found;
}

struct BufferKind {
  const char* name;
  int force;
  int plain;
  const char* limit;  // under /proc/sys, with dots
};
constexpr std::array<BufferKind, 2> kBuffers = {
    BufferKind{"receive", SO_RCVBUFFORCE, SO_RCVBUF, "net.core.rmem_max"},
    BufferKind{"send", SO_SNDBUFFORCE, SO_SNDBUF, "net.core.wmem_max"},
};

void examine_buffer(Report& report, const BufferKind& kind, int wished) {
  const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (::setsockopt(fd, SOL_SOCKET, kind.force, &wished, sizeof wished) != 0) {
    ::setsockopt(fd, SOL_SOCKET, kind.plain, &wished, sizeof wished);
  }
  int reported = 0;
  socklen_t length = sizeof reported;
  ::getsockopt(fd, SOL_SOCKET, kind.plain, &reported, &length);
  ::close(fd);
  const int granted = reported / 2;  // the kernel doubles it for its own records
  const std::string what =
      std::string(kind.name) + " buffer of a UDP socket: " + std::to_string(granted) + " bytes";
  if (granted >= wished) {
    report.good(what);
    return;
  }
  const std::string setting = std::string(kind.limit) + "=" + std::to_string(wished);
  report.warn(what + " of " + std::to_string(wished) + " wished; bursts are lost sooner",
              "as root: sysctl -w " + setting + " ; to keep it: echo '" + setting +
                  "' > /etc/sysctl.d/90-uet-" + kind.name + ".conf");
}

}  // namespace

std::vector<LocalAddress> examine_interfaces(Report& report, const fi_info& infos) {
  report.begin("Interfaces");
  std::vector<LocalAddress> addresses;
  bool small = false;
  for (const fi_info* info = &infos; info != nullptr; info = info->next) {
    const auto address = address_of(*info);
    if (!address) continue;
    std::string text = address->interface + " " + address->host;
    const bool told = info->nic != nullptr && info->nic->link_attr != nullptr;
    const std::size_t mtu = told ? info->nic->link_attr->mtu : 0;
    const std::size_t speed_bps = told ? info->nic->link_attr->speed : 0;
    if (mtu > 0) text += ", MTU " + std::to_string(mtu);
    if (speed_bps > 0) text += ", " + std::to_string(speed_bps / 1'000'000) + " Mbit/s";
    if (mtu > 0 && mtu < kLeastMtu) {
      report.warn(text + ": too small for a packet with 1024 bytes of data",
                  "ip link set " + address->interface + " mtu 1500, or more, at all hosts");
    } else {
      report.good(text);
    }
    small = small || (mtu > 0 && mtu < kJumboMtu && !address->loopback);
    addresses.push_back(*address);
  }
  const std::string security = parameter("FI_UET_TSS").value;
  if (!security.empty() && security != "off") {
    report.note("transport security: FI_UET_TSS=" + security +
                ", so that FI_UET_CC_TRIMMING has no effect");
  }
  if (small) report.note("with an MTU of 9000 at all hosts and switches, packets carry 8192 bytes");
  if (std::all_of(addresses.begin(), addresses.end(), [](const auto& a) { return a.loopback; })) {
    const std::string iface = parameter("FI_UET_IFACE").value;
    report.warn("only loopback: other hosts cannot be reached",
                iface.empty() ? "give an interface an address and set it up: ip address, ip link"
                              : "FI_UET_IFACE=" + iface + " leaves the others out: unset it");
  }
  return addresses;
}

int count_sharing(const LocalAddress& address) {
  int count = 0;
  for (std::uint16_t port = kFirstSlotPort; port <= kLastSlotPort; ++port) {
    if (try_port(address, port) == EADDRINUSE) ++count;
  }
  return count;
}

void examine_ports(Report& report, const std::vector<LocalAddress>& addresses) {
  report.begin("UDP ports 4793 to 5816");
  for (const LocalAddress& address : addresses) {
    std::uint16_t port = kFirstPort;
    int error = try_port(address, port);
    while (error == EADDRINUSE && port < kLastPort) error = try_port(address, ++port);
    const std::string where = address.host + ": ";
    if (error == EADDRINUSE) {
      report.fail(where + "all are taken, 4793 by " + owner_of(kFirstPort),
                  "end the processes that hold them, or use another address");
    } else if (error != 0) {
      report.fail(where + "a socket cannot be bound: " + std::strerror(error),
                  "look at 'ip address'; is the address new, or gone?");
    } else if (const int sharing = port != kFirstPort ? count_sharing(address) : 0; sharing > 0) {
      report.note(where + "4793 is shared by " + std::to_string(sharing) +
                  " of 32 processes (FI_UET_NIC=shared); one that does not share gets " +
                  std::to_string(port) + ", which firewalls must allow");
    } else if (port != kFirstPort) {
      report.note(where + "4793 is taken by " + owner_of(kFirstPort) + "; the next process gets " +
                  std::to_string(port) + ", which firewalls must allow");
    } else {
      report.good(where + "4793 is free");
    }
  }
}

void examine_buffers(Report& report) {
  report.begin("Socket buffers");
  const Parameter bytes = parameter("FI_UET_SOCKET_BUFFER_BYTES");
  const int wished = std::atoi((bytes.value.empty() ? bytes.preset : bytes.value).c_str());
  if (wished <= 0) {
    report.note("libfabric does not list FI_UET_SOCKET_BUFFER_BYTES: no buffer was asked for");
    return;
  }
  for (const BufferKind& kind : kBuffers) examine_buffer(report, kind, wished);
}

void examine_rights(Report& report) {
  report.begin("Rights");
  std::uint64_t effective = 0;
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("CapEff:")) effective = std::strtoull(line.c_str() + 7, nullptr, 16);
  }
  struct Capability {
    const char* name;
    int bit;
  };
  std::string lacking;
  for (const Capability& c : {Capability{"CAP_NET_ADMIN", 12}, Capability{"CAP_NET_RAW", 13},
                              Capability{"CAP_SYS_ADMIN", 21}, Capability{"CAP_PERFMON", 38},
                              Capability{"CAP_BPF", 39}}) {
    if ((effective >> c.bit & 1) == 0) lacking += std::string(lacking.empty() ? "" : ", ") + c.name;
  }
  report.good("the back end udp, the sockets of the kernel, needs none");
  report.note(
      "packet, dpdk and verbs need CAP_NET_RAW; xdp also CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN, "
      "and "
      "CAP_SYS_ADMIN where another process has its interface; shared CAP_BPF and CAP_SYS_ADMIN: "
      "this process " +
      (lacking.empty() ? "has them" : "lacks " + lacking));
}

}  // namespace uet::doctor
