// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Datagrams on their way to the NIC. The outbox keeps its packets in order, so those that have left
// it are the oldest ones.
#include "pds/datagrams.h"

#include <algorithm>
#include <new>

#include "cms/path.h"

namespace uet::pds {

Datagrams::Datagrams(Environment& environment) : env_(environment) {}

Datagrams::~Datagrams() {
  for (; oldest_ != end_; ++oldest_) withdraw(at(oldest_));
}

void Datagrams::withdraw(Entry& entry) {
  if (entry.packet != nullptr) {
    env_.outbox.withdraw(*entry.packet);
    env_.packets.give_back(entry.packet);
  }
  entry = {};
}

// The message's packet, without a PDS header.
Result<Packet*> Datagrams::make(Message& message, PreparedPacket& prepared) {
  if (end_ - oldest_ == kCapacity) return Error::Again;
  try {
    if (entries_.empty()) entries_.resize(kCapacity);
  } catch (const std::bad_alloc&) {
    return Error::Again;
  }
  if (env_.packets.available() <= env_.control_reserve) return Error::Again;
  Packet* packet = env_.packets.take();
  if (packet == nullptr) return Error::Again;
  packet->reset();
  const PacketPlan plan = message.owner->next_packet(message, *packet, prepared);
  UET_ASSERT(plan == PacketPlan::Last);  // PDS-191, PDS-189
  (void)plan;
  packet->ecn = Ecn::NotEct;  // no ACK would report a mark (CMS-4, CMS-31)
  return packet;
}

Result<void> Datagrams::send(Message& message, const Destination& destination) {
  PreparedPacket prepared;
  const auto made = make(message, prepared);
  if (!made) return made.error();
  Packet& packet = *made.value();
  const wire::UudHeader header{.next_hdr = prepared.next_hdr};
  header.encode(packet.prepend(sizeof(wire::PdsUud)));
  packet.to = destination.address;
  packet.entropy = static_cast<std::uint16_t>(  // any path will do (CMS-401)
      cms::PathSelector::kFirstEntropy + env_.rng.below(cms::PathSelector::kEntropyValues));
  packet.dscp = dscp_of_class(destination.traffic_class, env_.parameters.dscp_datagram);
  queue(packet, message, prepared.tag);
  ++env_.counters.datagrams_sent;
  return {};
}

Result<void> Datagrams::respond(Message& message, const wire::RudiHeader& header,
                                const FepAddress& to, std::uint16_t entropy) {
  PreparedPacket prepared;
  const auto made = make(message, prepared);
  if (!made) return made.error();
  Packet& packet = *made.value();
  wire::RudiHeader response = header;
  response.next_hdr = prepared.next_hdr;
  response.encode(packet.prepend(sizeof(wire::PdsRudi)));
  packet.to = to;
  packet.entropy = entropy;  // WIRE 1.1
  packet.dscp = env_.parameters.dscp_data;
  queue(packet, message, prepared.tag);
  return {};
}

bool Datagrams::cancel(const Message& message) {
  for (std::size_t number = oldest_; number != end_; ++number) {
    Entry& entry = at(number);
    if (entry.message != &message) continue;
    const bool taken = number < queued_ && !Outbox::holds(*entry.packet);
    if (taken) return false;
    withdraw(entry);
    while (oldest_ != end_ && at(oldest_).packet == nullptr) ++oldest_;
    queued_ = std::max(queued_, oldest_);
    return true;
  }
  return false;
}

bool Datagrams::pump(std::size_t limit) {
  const std::size_t before = queued_;
  for (; limit > 0 && queued_ != end_; --limit, ++queued_) {
    if (Packet* packet = at(queued_).packet; packet != nullptr) env_.outbox.push(*packet);
  }
  return queued_ != before;
}

void Datagrams::answer_taken(Time now) {
  while (oldest_ != queued_) {
    Entry& oldest = at(oldest_);
    if (oldest.packet != nullptr && Outbox::holds(*oldest.packet)) return;
    const Entry entry = oldest;
    oldest = {};
    ++oldest_;  // first, because the client may send the next one
    if (entry.packet == nullptr) continue;
    env_.packets.give_back(entry.packet);
    entry.message->owner->rx_rsp(*entry.message, entry.tag, ResponseView{}, now);
  }
}

}  // namespace uet::pds
