// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Which MAC address a packet to an IP address goes to: the kernel's routing and neighbour tables,
// asked once for each address and updated by the kernel's change notifications. Resolves nothing
// itself: the kernel does ARP and neighbour discovery when a packet is sent through its socket.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

#include "uet/base/address.h"
#include "uet/base/result.h"
#include "wire/frame.h"

struct nl_msg;
struct nl_sock;

namespace uet::nic {

struct NetlinkSocketFree {
  void operator()(nl_sock* socket) const;
};

// Not thread-safe.
class NextHops {
 public:
  enum class Way : std::uint8_t {
    Frame,       // to the MAC address
    Unresolved,  // through this interface, but the kernel must find the MAC address first
    Kernel,      // to this host, through another interface, or no way at all
  };
  struct Hop {
    Way way = Way::Kernel;
    wire::MacAddress mac{};
  };

  // For packets from `source` that leave over the interface of this index. Error::Io: netlink
  // fails, `message` says how.
  static Result<std::unique_ptr<NextHops>> open(int interface_index, const FabricAddress& source,
                                                std::string& message);

  // Where to send what goes to `destination`. The first call for an address asks the kernel, which
  // takes some microseconds.
  Hop find(const FabricAddress& destination) {
    if (last_ == nullptr || last_destination_ != destination) look_up(destination);
    return last_->hop;
  }
  // Now and then, once: the kernel has not heard of the neighbour that find() has just told for
  // long. Frames keep it from noticing; whatever is sent through it makes it ask.
  bool take_doubt() {
    if (!last_->doubtful) [[likely]]
      return false;
    last_->doubtful = false;
    return true;
  }
  // Takes in what has changed; one system call when nothing has. To be called every few
  // milliseconds.
  void refresh();

  // Destinations known. For tests.
  std::size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    Hop hop;
    FabricAddress next;     // the gateway or the destination itself
    bool doubtful = false;  // the kernel has not heard of it for long
  };
  struct Hash {
    std::size_t operator()(const FabricAddress& ip) const noexcept {
      return FepAddressHash{}(FepAddress{ip, 0});
    }
  };
  using Socket = std::unique_ptr<nl_sock, NetlinkSocketFree>;
  // More than any job has; a flood of invented addresses only costs the memory of these.
  static constexpr std::size_t kMostEntries = 65536;

  NextHops(Socket queries, Socket changes, int interface_index, const FabricAddress& source);
  void look_up(const FabricAddress& destination);
  std::optional<FabricAddress> ask_route(const FabricAddress& destination);
  void ask_neighbour(const FabricAddress& next, Entry& entry);
  void on_change(nl_msg* message);
  void forget_all();

  Socket queries_;
  Socket changes_;
  int interface_index_;
  FabricAddress source_;
  std::unordered_map<FabricAddress, Entry, Hash> entries_;
  FabricAddress last_destination_;
  Entry* last_ = nullptr;
};

}  // namespace uet::nic
