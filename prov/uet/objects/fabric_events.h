// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Events of the fabric for the EQs whose binding asks for them (FI_UET_FABRIC_EVENTS): a peer was
// given up, the process of a peer on this host has ended, the interface went down or came back.
#pragma once

#include <rdma/fi_eq.h>

#include <cstdint>
#include <optional>
#include <string>

#include "nic/link_watch.h"
#include "settings/address_format.h"
#include "uet/base/intrusive_list.h"
#include "uet/base/time.h"
#include "uet/pds/api.h"

namespace uet::prov {

class AvFid;
class Eq;
struct EventSubscriberTag;

// Events of peers, or of the interface, too.
enum class EventKinds : std::uint8_t { All, Peers };

// One binding. It is removed before the EQ or the AV ends.
struct EventSubscriber : ListNode<EventSubscriberTag> {
  Eq* eq = nullptr;
  struct fid* fid = nullptr;         // the endpoint or domain
  const AvFid* const* av = nullptr;  // where the AV of the endpoint is named; nullptr: a domain
  AddressFormat format;
  EventKinds kinds = EventKinds::All;
};

// Of one domain, with its lock.
class FabricEvents final : public pds::PeerWatcher {
 public:
  // `interface`: that of the domain. 0 or a negative fi_errno, with the reason logged.
  int add(EventSubscriber& subscriber, const std::string& interface) noexcept;
  // Does nothing for one that was not added.
  void remove(EventSubscriber& subscriber) noexcept;

  // An EQ hears of the end of each peer once for each entry of the endpoint's AV that names it.
  void peer_given_up(const FepAddress& address, pds::PdsError error) noexcept override;
  // Looks after the interface from time to time.
  void look(Time now) noexcept {
    if (link_.fd() >= 0 && now >= next_look_) look_now(now);
  }
  // Readable when the interface may have changed; -1: not watched.
  int fd() const { return link_.fd(); }

 private:
  void look_now(Time now) noexcept;
  static void tell_peer(const EventSubscriber& to, const FepAddress& peer, int error);
  static void tell_link(const EventSubscriber& to, bool up);

  IntrusiveList<EventSubscriber, EventSubscriberTag> subscribers_;
  nic::LinkWatch link_;
  Time next_look_{};
};

}  // namespace uet::prov
