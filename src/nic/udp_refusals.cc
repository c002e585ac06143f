// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "nic/udp_refusals.h"

#include <sys/socket.h>
#include <time.h>
// The kernel's header needs the C library's timespec.
#include <linux/errqueue.h>
#include <netinet/icmp6.h>
#include <netinet/in.h>
#include <netinet/ip_icmp.h>

#include <cstring>

#include "nic/socket.h"

namespace uet::nic {
namespace {

bool is_port_unreachable(const sock_extended_err& report) {
  switch (report.ee_origin) {
    case SO_EE_ORIGIN_ICMP:
      return report.ee_type == ICMP_DEST_UNREACH && report.ee_code == ICMP_PORT_UNREACH;
    case SO_EE_ORIGIN_ICMP6:
      return report.ee_type == ICMP6_DST_UNREACH && report.ee_code == ICMP6_DST_UNREACH_NOPORT;
    default:
      return false;
  }
}

// nullopt: not of a host on the path. The kernel's own errors follow from a packet of this call.
std::optional<sock_extended_err> report_of(msghdr& message) {
  for (cmsghdr* at = CMSG_FIRSTHDR(&message); at != nullptr; at = CMSG_NXTHDR(&message, at)) {
    const bool is_report = (at->cmsg_level == IPPROTO_IP && at->cmsg_type == IP_RECVERR) ||
                           (at->cmsg_level == IPPROTO_IPV6 && at->cmsg_type == IPV6_RECVERR);
    if (!is_report) continue;
    sock_extended_err report{};
    std::memcpy(&report, CMSG_DATA(at), sizeof report);
    const bool local =
        report.ee_origin != SO_EE_ORIGIN_ICMP && report.ee_origin != SO_EE_ORIGIN_ICMP6;
    if (!local) return report;
  }
  return {};
}

}  // namespace

bool UdpRefusals::watch(int fd, bool is_ipv6) {
  const int on = 1;
  watching_ = is_ipv6 ? ::setsockopt(fd, IPPROTO_IPV6, IPV6_RECVERR, &on, sizeof on) == 0
                      : ::setsockopt(fd, IPPROTO_IP, IP_RECVERR, &on, sizeof on) == 0;
  return watching_;
}

bool UdpRefusals::read(int fd, std::uint8_t via) {
  bool any = false;
  while (true) {
    SocketAddress to{};  // of the packet that the report is about
    alignas(cmsghdr) std::array<std::byte, 512> control;
    msghdr message{};
    message.msg_name = &to;
    message.msg_namelen = sizeof to;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    if (::recvmsg(fd, &message, MSG_ERRQUEUE | MSG_DONTWAIT) < 0) return any;
    const auto report = report_of(message);
    any |= report.has_value();
    if (!report || !is_port_unreachable(*report) || count_ == kMost) continue;
    FepAddress& refused = addresses_[(first_ + count_++) % kMost];
    refused = read_socket_address(to);
    refused.via = via;
  }
}

std::optional<FepAddress> UdpRefusals::take() {
  if (count_ == 0) return {};
  const FepAddress address = addresses_[first_];
  first_ = (first_ + 1) % kMost;
  --count_;
  return address;
}

}  // namespace uet::nic
