// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Interface discovery through libnl-route. netlink does not tell the link speed and the PCI device,
// so these come from sysfs.
#include "nic/interface.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <linux/if_addr.h>
#include <linux/if_ether.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netlink/addr.h>
#include <netlink/cache.h>
#include <netlink/errno.h>
#include <netlink/route/addr.h>
#include <netlink/route/link.h>
#include <netlink/route/link/vlan.h>
#include <netlink/socket.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>

#include "nic/socket.h"

namespace uet::nic {
namespace {

struct SocketFree {
  void operator()(nl_sock* socket) const { nl_socket_free(socket); }
};
struct CacheFree {
  void operator()(nl_cache* cache) const { nl_cache_free(cache); }
};
using NetlinkSocket = std::unique_ptr<nl_sock, SocketFree>;
using NetlinkCache = std::unique_ptr<nl_cache, CacheFree>;

// The first `prefix_length` bits of `ip`, the rest zero.
FabricAddress subnet_of(FabricAddress ip, std::uint8_t prefix_length) {
  for (std::size_t i = 0; i < ip.bytes.size(); ++i) {
    const int kept = std::clamp(prefix_length - static_cast<int>(8 * i), 0, 8);
    ip.bytes[i] = static_cast<std::uint8_t>(ip.bytes[i] & (0xFF00 >> kept));
  }
  return ip;
}

// A veth pair is memory of this host, and its driver states 10 Gb/s whatever that carries: a window
// for so little is two packets. This is more than a processor copies. Senders to something slower
// behind it find that out by congestion control.
constexpr std::uint64_t kVethRateBps = 100'000'000'000;

bool is_veth(rtnl_link* link) {
  const char* kind = rtnl_link_get_type(link);
  return kind != nullptr && std::string_view(kind) == "veth";
}

// Drivers without a speed answer -1 or refuse the read.
std::uint64_t link_rate_from_sysfs(const std::string& name) {
  std::ifstream file("/sys/class/net/" + name + "/speed");
  std::int64_t megabits = 0;
  if (!(file >> megabits) || megabits <= 0) return 0;
  return static_cast<std::uint64_t>(megabits) * 1'000'000;
}

std::optional<PciAddress> pci_address_from_sysfs(const std::string& name) {
  std::error_code none;
  const auto path = std::filesystem::canonical("/sys/class/net/" + name + "/device", none);
  return none ? std::nullopt : pci_address_of(path.native());
}

Interface describe(rtnl_link* link) {
  Interface interface;
  interface.name = rtnl_link_get_name(link);
  interface.index = rtnl_link_get_ifindex(link);
  interface.mtu = rtnl_link_get_mtu(link);
  const unsigned flags = rtnl_link_get_flags(link);
  interface.link_up = (flags & IFF_RUNNING) != 0;
  interface.loopback = (flags & IFF_LOOPBACK) != 0;
  nl_addr* mac = rtnl_link_get_addr(link);
  if (mac != nullptr && nl_addr_get_len(mac) == interface.mac.size()) {
    std::memcpy(interface.mac.data(), nl_addr_get_binary_addr(mac), interface.mac.size());
  }
  if (rtnl_link_is_vlan(link) != 0 && rtnl_link_vlan_get_protocol(link) == htons(ETH_P_8021Q)) {
    interface.vlan =
        VlanOf{rtnl_link_get_link(link), static_cast<std::uint16_t>(rtnl_link_vlan_get_id(link))};
  }
  interface.link_rate_bps = is_veth(link) ? kVethRateBps : link_rate_from_sysfs(interface.name);
  interface.pci = pci_address_from_sysfs(interface.name);
  return interface;
}

// The address of an entry, if it is one that list_interfaces() shows.
std::optional<InterfaceAddress> usable_address(rtnl_addr* entry) {
  nl_addr* local = rtnl_addr_get_local(entry);
  if (local == nullptr || rtnl_addr_get_scope(entry) == RT_SCOPE_LINK) return {};
  if ((rtnl_addr_get_flags(entry) & (IFA_F_TENTATIVE | IFA_F_DADFAILED)) != 0) return {};
  const int family = nl_addr_get_family(local);
  const std::size_t length = family == AF_INET ? 4 : 16;
  if ((family != AF_INET && family != AF_INET6) || nl_addr_get_len(local) != length) return {};
  InterfaceAddress address;
  address.ip.is_ipv6 = family == AF_INET6;
  std::memcpy(address.ip.bytes.data(), nl_addr_get_binary_addr(local), length);
  address.prefix_length = static_cast<std::uint8_t>(rtnl_addr_get_prefixlen(entry));
  return address;
}

// Addresses of all interfaces, and links, as netlink tells them.
class Netlink {
 public:
  // 0, or an error of libnl.
  int open() {
    if (!socket_) return -NLE_NOMEM;
    const int error = nl_connect(socket_.get(), NETLINK_ROUTE);
    return error != 0 ? error : fill(addresses_, &rtnl_addr_alloc_cache);
  }
  // visit(rtnl_link*) for each link. 0, or an error of libnl.
  template <class Visit>
  int for_each_link(Visit visit) {
    NetlinkCache links;
    const auto all = [](nl_sock* socket, nl_cache** cache) {
      return rtnl_link_alloc_cache(socket, AF_UNSPEC, cache);
    };
    if (const int error = fill(links, all); error != 0) return error;
    for (nl_object* o = nl_cache_get_first(links.get()); o != nullptr; o = nl_cache_get_next(o)) {
      visit(reinterpret_cast<rtnl_link*>(o));
    }
    return 0;
  }
  // visit(interface index, const InterfaceAddress&) for each usable address.
  template <class Visit>
  void for_each_address(Visit visit) {
    for (nl_object* o = nl_cache_get_first(addresses_.get()); o != nullptr;
         o = nl_cache_get_next(o)) {
      auto* const entry = reinterpret_cast<rtnl_addr*>(o);
      if (const auto address = usable_address(entry)) {
        visit(rtnl_addr_get_ifindex(entry), *address);
      }
    }
  }
  // The interface without its addresses; nothing if it is gone, or switched off.
  std::optional<Interface> link(int index) {
    rtnl_link* link = nullptr;
    if (rtnl_link_get_kernel(socket_.get(), index, nullptr, &link) != 0) return {};
    const std::unique_ptr<rtnl_link, LinkPut> owned(link);
    if ((rtnl_link_get_flags(link) & IFF_UP) == 0) return {};
    return describe(link);
  }

 private:
  struct LinkPut {
    void operator()(rtnl_link* link) const { rtnl_link_put(link); }
  };

  template <class Allocate>
  int fill(NetlinkCache& into, Allocate allocate) {
    nl_cache* cache = nullptr;
    const int error = allocate(socket_.get(), &cache);
    if (error == 0) into.reset(cache);
    return error;
  }

  NetlinkSocket socket_{nl_socket_alloc()};
  NetlinkCache addresses_;
};

Error explain(int error, std::string& message) {
  message =
      std::string("cannot list the network interfaces through netlink: ") + nl_geterror(error);
  return Error::Io;
}

}  // namespace

std::optional<PciAddress> pci_address_of(std::string_view device_path) {
  while (!device_path.empty()) {
    const std::size_t slash = device_path.rfind('/');
    const std::string part(device_path.substr(slash == device_path.npos ? 0 : slash + 1));
    unsigned domain = 0;
    PciAddress address;
    int length = 0;
    if (std::sscanf(part.c_str(), "%4x:%2hhx:%2hhx.%1hhx%n", &domain, &address.bus, &address.device,
                    &address.function, &length) == 4 &&
        static_cast<std::size_t>(length) == part.size()) {
      address.domain = static_cast<std::uint16_t>(domain);
      return address;
    }
    device_path = device_path.substr(0, slash == device_path.npos ? 0 : slash);
  }
  return {};
}

Result<std::vector<Interface>> list_interfaces(std::string& message) {
  Netlink netlink;
  if (const int error = netlink.open(); error != 0) return explain(error, message);
  std::vector<Interface> interfaces;
  const int error = netlink.for_each_link([&](rtnl_link* link) {
    if ((rtnl_link_get_flags(link) & IFF_UP) != 0) interfaces.push_back(describe(link));
  });
  if (error != 0) return explain(error, message);
  netlink.for_each_address([&](int index, const InterfaceAddress& address) {
    const auto owner = std::find_if(interfaces.begin(), interfaces.end(),
                                    [index](const Interface& i) { return i.index == index; });
    if (owner != interfaces.end()) owner->addresses.push_back(address);
  });
  std::erase_if(interfaces, [](const Interface& i) { return i.addresses.empty(); });
  std::sort(interfaces.begin(), interfaces.end(), [](const Interface& a, const Interface& b) {
    return a.loopback != b.loopback ? b.loopback : a.index < b.index;
  });
  return interfaces;
}

Result<Interface> find_interface(const FabricAddress& ip, std::string& message) {
  Netlink netlink;
  if (const int error = netlink.open(); error != 0) return explain(error, message);
  std::optional<Interface> found;
  netlink.for_each_address([&](int index, const InterfaceAddress& address) {
    if (!found && address.ip == ip) found = netlink.link(index);
  });
  if (!found) {  // an address of the loopback network that no interface names
    const auto all = list_interfaces(message);
    if (!all) return all.error();
    const Interface* const interface = interface_of(all.value(), ip);
    if (interface == nullptr) return Error::NotFound;
    return *interface;
  }
  netlink.for_each_address([&](int index, const InterfaceAddress& address) {
    if (index == found->index) found->addresses.push_back(address);
  });
  return std::move(*found);
}

const Interface* interface_of(const std::vector<Interface>& interfaces, const FabricAddress& ip) {
  for (const Interface& interface : interfaces) {
    for (const InterfaceAddress& held : interface.addresses) {
      if (held.ip == ip) return &interface;
    }
  }
  for (const Interface& interface : interfaces) {
    if (!interface.loopback) continue;
    for (const InterfaceAddress& held : interface.addresses) {
      if (subnet_of(held.ip, held.prefix_length) == subnet_of(ip, held.prefix_length)) {
        return &interface;
      }
    }
  }
  return nullptr;
}

std::vector<FabricAddress> addresses_of_host() {
  std::vector<FabricAddress> all;
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) return all;
  for (const ifaddrs* entry = first; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr) continue;
    const int family = entry->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    SocketAddress address{};
    std::memcpy(&address, entry->ifa_addr, socket_address_length(family == AF_INET6));
    all.push_back(read_socket_address(address).ip);
  }
  ::freeifaddrs(first);
  return all;
}

bool is_loopback(const FabricAddress& ip) {
  if (!ip.is_ipv6) return ip.bytes[0] == 127;
  FabricAddress loopback;
  loopback.is_ipv6 = true;
  loopback.bytes[15] = 1;
  return ip == loopback;
}

Result<FabricAddress> source_address_for(const FabricAddress& destination) {
  // Connecting a datagram socket sends nothing; it makes the kernel choose route and source.
  const int family = destination.is_ipv6 ? AF_INET6 : AF_INET;
  const FileDescriptor fd(::socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return error_of(errno);
  SocketAddress address;
  write_socket_address(FepAddress{destination, kUetUdpPort}, address);
  socklen_t length = socket_address_length(destination.is_ipv6);
  if (::connect(fd.get(), &address.any, length) != 0) return Error::NotFound;
  length = sizeof address;
  if (::getsockname(fd.get(), &address.any, &length) != 0) return Error::Io;
  return read_socket_address(address).ip;
}

std::string InterfaceAddress::subnet() const {
  return to_text(subnet_of(ip, prefix_length)) + "/" + std::to_string(prefix_length);
}

std::string to_text(const FabricAddress& ip) {
  char text[INET6_ADDRSTRLEN] = {};
  ::inet_ntop(ip.is_ipv6 ? AF_INET6 : AF_INET, ip.bytes.data(), text, sizeof text);
  return text;
}

std::string to_text(const FepAddress& address) {
  const std::string ip = to_text(address.ip);
  return (address.ip.is_ipv6 ? "[" + ip + "]" : ip) + ":" + std::to_string(address.port);
}

}  // namespace uet::nic
