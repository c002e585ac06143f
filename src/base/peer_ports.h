// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The UDP ports of peers. A source port is an entropy value, not a return address (WIRE 1.1), so a
// FEP at another port than 4793 is answered there only if it is known to be there.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "uet/base/address.h"

namespace uet {

class PeerPorts {
 public:
  // `first`: the first of the kUetUdpPorts UDP ports of our own processes (FI_UET_UDP_PORT), which
  // send from the port that they listen on.
  explicit PeerPorts(std::uint16_t first = kUetUdpPort) : first_(first) {}

  // The application knows a peer at `fep`, or knows it no more. Calls are counted: each add() needs
  // its remove(). A FEP at 4793 or at a port of our range takes no memory.
  void add(const FepAddress& fep);
  void remove(const FepAddress& fep);

  // The address, and SDI (TSS-10), for an answer to a packet from `source`: its source port, if
  // that is in our range; else the port of a known peer at that IP address, preferably the source
  // port of the packet, then the lowest; else 4793.
  FepAddress reply_address(const FepAddress& source) const {
    if (is_ours(source.port)) return source;
    if (!known_.empty()) return find(source);
    return standard(source);
  }

  // The first FEP for which `is_wanted` holds, among the FEPs that may have sent a packet from
  // `source`: if several share one IP address, the source port alone may not identify the sender.
  template <class Predicate>
  std::optional<FepAddress> find_if(const FepAddress& source, Predicate is_wanted) const {
    if (is_ours(source.port) || known_.empty()) return {};
    for (auto at = first_at(source); at != known_.end() && is_at(at->fep, source); ++at) {
      const FepAddress known = by_way_of(source, at->fep);
      if (is_wanted(known)) return known;
    }
    if (is_wanted(standard(source))) return standard(source);
    return {};
  }

  // May the peer at `fep` have sent a packet from `source`? Not under another SDI. A process of
  // this provider sends only from its own port, any other FEP from any port outside our range.
  bool may_be_from(const FepAddress& fep, const FepAddress& source) const {
    if (!is_at(fep, source) || fep.via != source.via) return false;
    if (fep.port == source.port) return true;
    return !is_ours(source.port) && (fep.port == kUetUdpPort || !is_ours(fep.port));
  }

 private:
  struct Known {
    FepAddress fep;
    std::uint32_t count = 0;
  };

  bool is_ours(std::uint16_t port) const {
    return names_process(port) || (port >= first_ && port - first_ < kUetUdpPorts);
  }
  // The same IP address and secure domain.
  static bool is_at(const FepAddress& fep, const FepAddress& source) {
    return fep.ip == source.ip && fep.sdi == source.sdi;
  }
  static FepAddress standard(const FepAddress& source) {
    return {source.ip, kUetUdpPort, source.sdi, source.via};
  }
  // An answer leaves from the port that the packet came to.
  static FepAddress by_way_of(const FepAddress& source, FepAddress fep) {
    fep.via = source.via;
    return fep;
  }
  FepAddress find(const FepAddress& source) const;
  std::vector<Known>::const_iterator first_at(const FepAddress& source) const;
  std::vector<Known>::iterator place(const FepAddress& fep);

  std::uint16_t first_;
  std::vector<Known> known_;  // sorted by IP address, SDI, port
};

}  // namespace uet
