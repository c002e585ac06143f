// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The table of peer_fields(), and texts of addresses and NACK codes.
#include "live/fields.h"

#include <arpa/inet.h>

#include <cctype>

#include "wire/dissect.h"

namespace uet::live {

namespace {

using P = PeerRecord;

constexpr PeerField kFields[] = {
    {"pdcs", "open PDCs with the peer", false, &P::pdcs},
    {"base_rtt_ns", "base round trip time, ns; 0: not known", false, &P::base_rtt_ns},
    {"rtt_ns", "newest round trip time, ns; 0: none yet", false, &P::rtt_ns},
    {"window_bytes", "congestion windows, bytes", false, &P::window_bytes},
    {"inflight_bytes", "bytes in flight", false, &P::inflight_bytes},
    {"credit_bytes", "credit of the receiver that is left, bytes", false, &P::credit_bytes},
    {"paths", "entropy values in use", false, &P::paths},
    {"paths_banned", "entropy values that are banned now", false, &P::paths_banned},
    {"packets_outstanding", "packets sent and not answered", false, &P::packets_outstanding},
    {"oldest_outstanding_ns", "age of the oldest packet without an answer, ns; 0: there is none",
     false, &P::oldest_outstanding_ns},
    {"silent_ns", "time since a packet came from the peer, ns; 0: none has come", false,
     &P::silent_ns},
    {"packets_sent", "request packets sent, retransmissions included", true, &P::packets_sent},
    {"bytes_sent", "bytes of request packets sent", true, &P::bytes_sent},
    {"packets_received", "request packets received", true, &P::packets_received},
    {"bytes_received", "bytes of request packets received", true, &P::bytes_received},
    {"acks_received", "ACKs received", true, &P::acks_received},
    {"rto_retransmissions", "packets sent again because a time-out expired", true,
     &P::rto_retransmissions},
    {"nack_retransmissions", "packets sent again because of a NACK", true,
     &P::nack_retransmissions},
    {"inferred_loss_retransmissions",
     "packets sent again because later ones arrived, or their rail was lost", true,
     &P::inferred_loss_retransmissions},
    {"marks_received", "ACKs that echo the mark ECN CE", true, &P::marks_received},
    {"trimmed_received", "request packets that arrived trimmed", true, &P::trimmed_received},
};

}  // namespace

std::span<const PeerField> peer_fields() { return kFields; }

std::string nack_name(std::size_t code) {
  std::string name;
  if (code + 1 < kNackCodes) name = wire::name_of(static_cast<wire::NackCode>(code));
  for (char& c : name) {
    c = std::isalnum(static_cast<unsigned char>(c)) != 0
            ? static_cast<char>(std::tolower(static_cast<unsigned char>(c)))
            : '_';
  }
  const bool named = !name.empty() && std::isalpha(static_cast<unsigned char>(name[0])) != 0;
  return named && name != "reserved" ? name : "other";
}

std::string peer_name(const PeerRecord& peer) {
  char text[INET6_ADDRSTRLEN] = "?";
  inet_ntop(peer.is_ipv6 != 0 ? AF_INET6 : AF_INET, peer.ip.data(), text, sizeof text);
  std::string name = peer.is_ipv6 != 0 ? "[" + std::string(text) + "]" : text;
  name += ":" + std::to_string(peer.port);
  if (peer.sdi != 0) name += "/" + std::to_string(peer.sdi);
  return name;
}

}  // namespace uet::live
