// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "objects/fabric_events.h"

#include <rdma/fi_errno.h>

#include <cstring>
#include <new>

#include "objects/av_fid.h"
#include "objects/eq.h"
#include "provider.h"
#include "uet/fi_ext_uet.h"

namespace uet::prov {
namespace {

// The kernel is asked no more often: each time costs a system call.
constexpr Duration kLookEvery = std::chrono::milliseconds(10);

// Calls `tell` for each subscriber; an event for which there is no memory is lost, and logged.
template <class List, class Tell>
void tell_all(List& subscribers, Tell tell) noexcept {
  for (const EventSubscriber& subscriber : subscribers) {
    try {
      tell(subscriber);
    } catch (const std::bad_alloc&) {
      FI_WARN(&provider, FI_LOG_EQ, "an event of the fabric is lost: no memory\n");
    }
  }
}

}  // namespace

int FabricEvents::add(EventSubscriber& subscriber, const std::string& interface) noexcept {
  if (link_.fd() < 0 && subscriber.kinds == EventKinds::All) {
    if (const int error = link_.open(interface); error != 0) {
      FI_WARN(&provider, FI_LOG_EQ, "FI_UET_FABRIC_EVENTS: interface %s cannot be watched: %s\n",
              interface.c_str(), std::strerror(error));
      return -error;
    }
  }
  subscribers_.push_back(subscriber);
  return 0;
}

void FabricEvents::remove(EventSubscriber& subscriber) noexcept {
  if (subscriber.linked()) subscribers_.remove(subscriber);
}

void FabricEvents::peer_given_up(const FepAddress& address, pds::PdsError error) noexcept {
  const int number = error == pds::PdsError::PeerLost ? FI_ECONNRESET : FI_ETIMEDOUT;
  FepAddress peer = address;
  peer.via = 0;  // as in address vectors
  tell_all(subscribers_, [&](const EventSubscriber& to) { tell_peer(to, peer, number); });
}

void FabricEvents::tell_peer(const EventSubscriber& to, const FepAddress& peer, int error) {
  fi_eq_err_entry entry{};
  entry.fid = to.fid;
  entry.context = to.fid->context;
  entry.err = error;
  bool known = false;
  const auto tell = [&](fi_addr_t index, const av::UetAddress& address) {
    known = true;
    entry.data = index;
    to.eq->write_error(entry, to.format.encode(address));
  };
  if (to.av != nullptr && *to.av != nullptr) (*to.av)->for_each_at(peer, tell);
  if (known) return;
  entry.data = FI_ADDR_NOTAVAIL;
  to.eq->write_error(entry, to.format.encode(av::default_address(peer)));
}

void FabricEvents::tell_link(const EventSubscriber& to, bool up) {
  if (up) {
    const fi_eq_entry back{.fid = to.fid, .context = to.fid->context, .data = 0};
    return to.eq->write(FI_UET_LINK_UP, &back, sizeof back);
  }
  fi_eq_err_entry entry{};
  entry.fid = to.fid;
  entry.context = to.fid->context;
  entry.data = FI_ADDR_NOTAVAIL;
  entry.err = FI_ENETDOWN;
  to.eq->write_error(entry);
}

void FabricEvents::look_now(Time now) noexcept {
  next_look_ = now + kLookEvery;
  const std::optional<bool> up = link_.changed();
  if (!up) return;
  FI_WARN(&provider, FI_LOG_DOMAIN, "the interface is %s\n", *up ? "up again" : "down");
  tell_all(subscribers_, [&](const EventSubscriber& to) {
    if (to.kinds == EventKinds::All) tell_link(to, *up);
  });
}

}  // namespace uet::prov
