// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The interface between the semantic sublayer (SES, above) and the packet delivery sublayer (PDS).
// PDS moves packets and never looks into SES headers (PDS-1); SES never sees PSNs or windows.
//
// Names follow the specification's SES-PDS interface: rx_req, rx_rsp, ses_nack, pds_error.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include "uet/base/address.h"
#include "uet/base/intrusive_list.h"
#include "uet/base/packet.h"
#include "uet/base/result.h"
#include "uet/base/time.h"
#include "uet/base/types.h"
#include "uet/wire/pds.h"

namespace uet::pds {

using wire::NackCode;
using wire::NextHdr;

// A traffic class is 0, whose packets have the DSCP of Parameters, or names a DSCP (SES-130).
// Packets of different classes travel on different PDCs.
constexpr std::uint8_t class_of_dscp(std::uint8_t dscp) {
  return static_cast<std::uint8_t>(0x80 | (dscp & 0x3F));
}
// `otherwise`: the DSCP of a class that names none.
constexpr std::uint8_t dscp_of_class(std::uint8_t traffic_class, std::uint8_t otherwise) {
  return (traffic_class & 0x80) != 0 ? traffic_class & 0x3F : otherwise;
}

// Where a message goes and how: the key that selects a PDC (PDS-23).
struct Destination {
  FepAddress address;
  JobId job;
  DeliveryMode mode = DeliveryMode::Rud;
  std::uint8_t traffic_class = 0;
  // On PDCs of its own, for which both ends keep a pool (pdc_info, WIRE 2.2): traffic without which
  // what fills the other PDCs, packets and buffers would never drain (PDS-9).
  bool reserved_pool = false;

  friend constexpr bool operator==(const Destination&, const Destination&) = default;
};

// Why PDS gave up on a packet or a PDC. Numbers are part of the application's prov_errno (SES-121).
enum class PdsError : std::uint8_t {
  RtoExhausted = 1,   // the peer did not answer in time
  NackExhausted = 2,  // the peer kept refusing for lack of resources
  ClosedInError = 3,  // the peer closed the PDC, or lost a stored response
  ProtocolError = 4,  // fatal NACK: header, mode or state did not fit
  LocalClose = 5,     // this FEP is being closed
  // The peer closed the PDC and is known not to have consumed the packet, or any packet of the
  // message: SES may send it again, which opens a new PDC (PDS-142).
  NotConsumed = 6,
  PeerLost = 7,  // the back end knows that the peer's process is gone
};

// Messages of up to 8 packets are of class 0, up to 64 of class 1, up to 512 of class 2, longer
// ones of class 3. `payload_bytes`: of a full packet, more than 0.
constexpr std::uint8_t kSizeClasses = 4;
constexpr std::uint8_t size_class_of(std::uint64_t length, std::uint64_t payload_bytes) {
  std::uint8_t size_class = 0;
  for (std::uint64_t most = 8 * payload_bytes; length > most && size_class + 1 < kSizeClasses;
       most *= 8) {
    ++size_class;
  }
  return size_class;
}

struct BacklogTag;
class MessageOwner;

// A message on its way out: SES derives from it, PDS keeps it in the backlog of one PDC and asks
// its owner for its packets one by one (PDS-7, PDS-8). It must live until PDS has answered for
// every packet of it, or cancel() returned true.
class Message : public ListNode<BacklogTag> {
 public:
  MessageOwner* owner = nullptr;  // set before sending
  PdcId pdc{};                    // the PDC it was assigned to; set by Manager
  // 0 to kSizeClasses - 1: a message does not wait behind one of a larger class if there may be
  // several PDCs to its destination (PDS-9). See size_class_of().
  std::uint8_t size_class = 0;
  // Prompt ACK: the last packet requests an ACK, as the application waits for it (PDS-101). Without
  // it the ACK may come with later ones, after Parameters::tail_loss_time at the latest.
  bool prompt_ack = true;
  // Its only packet ends a message that has begun (SES-113), and goes before the messages that have
  // not begun: the target may hold for it the state that they need.
  bool ends_message = false;
  // Bytes of payload that packets will carry: set it before sending, PDS counts it down. Only what
  // is asked of the receiver's credit depends on it, and a wrong number costs no more than time.
  std::uint64_t backlog_bytes = 0;
  // Of the owner, for people: its name in the trace (0: none), and when it was posted.
  std::uint16_t id_in_trace = 0;
  Time posted{};
};

// Result of next_packet.
enum class PacketPlan : std::uint8_t {
  More,    // a packet was written, others follow
  Last,    // a packet was written and it was the message's last one (EOM)
  NotNow,  // nothing was written; ask again after Manager::kick (limit on outstanding reads)
};

// Properties of the packet that next_packet has written.
struct PreparedPacket {
  NextHdr next_hdr = NextHdr::RequestStd;  // of the SES header that it appended
  std::uint32_t tag = 0;                   // comes back with the packet's response
};

// A delivered request packet: in the forward direction an SES request, in the return direction an
// SES response with data (PDS-2). `bytes` starts at the SES header and is valid during the call.
struct RequestView {
  PdcId pdc;          // local PDC id: names the PDC until pdc_closed; 0 in modes Rudi and Uud
  FepAddress source;  // address of the peer FEP, as answers reach it
  DeliveryMode mode = DeliveryMode::Rud;
  NextHdr next_hdr{};
  Psn psn;
  // RUD: CACK cannot move before this packet is taken, so that its sender's window may be closed
  // until then.
  bool holds_cack = false;
  std::span<const std::byte> bytes;
};

// The fields of a default response that name the request.
struct RequestName {
  MsgId message{};  // 0 where its header has none
  JobId job{};
};

// The answer of SES to one request packet (PDS-18). It rides in the ACK.
struct Response {
  // RESPONSE_DATA (20) plus data that may ride in an ACK.
  static constexpr std::size_t kMaxBytes = 96;
  Response() {}             // leaves `bytes` as they are, even where {} is asked for
  NextHdr next_hdr{};       // NextHdr::None: an ACK without SES header
  bool guaranteed = false;  // must not be lost: stored until cleared (PDS-111)
  // The answer that counts follows by Delivery::answer; until then the PSN cannot be cleared, and
  // CACK stays below it (SES-46, SES-48).
  bool provisional = false;
  // With `guaranteed`: the request matches no endpoint here. Few such responses are stored for one
  // host, so that a host without authorization uses little memory.
  bool matches_no_endpoint = false;
  std::optional<NackCode> nack;  // set: refuse instead, the packet leaves no trace (PDS-211)
  RequestName request;           // kept by PDS, for Client::default_rsp
  std::uint8_t length = 0;
  std::array<std::byte, kMaxBytes> bytes;  // SES response header and data: `length` of them

  // As `*this = other`, without the bytes that are not used.
  void assign(const Response& other) {
    next_hdr = other.next_hdr;
    guaranteed = other.guaranteed;
    provisional = other.provisional;
    matches_no_endpoint = other.matches_no_endpoint;
    nack = other.nack;
    request = other.request;
    length = other.length;
    other.copy_bytes(bytes.data());
  }
  // The `length` bytes. In blocks of a known size: where the length varies, an instruction copies
  // that the processor takes longer to begin than to carry out. Of no more than what wrote them: a
  // block that was written in pieces just before cannot be read before all are in the cache.
  void copy_bytes(std::byte* to) const {
    constexpr std::size_t kBlock = 4;
    std::size_t at = 0;
    for (; at + kBlock <= length; at += kBlock) std::memcpy(to + at, bytes.data() + at, kBlock);
    for (; at < length; ++at) to[at] = bytes[at];
  }
};

// The answer that came back for one packet.
struct ResponseView {
  NextHdr next_hdr{};                // None: implied by a cumulative ACK or a bare ACK: default, OK
  std::span<const std::byte> bytes;  // SES response header and data; empty if None
  Psn psn;                           // PSN of the packet answered (SES-6)
};

// How SES classifies a response.
enum class Verdict : std::uint8_t {
  Final,        // it was the answer: no other comes for this packet
  Provisional,  // the packet was accepted, its meaning follows in another response (NO_RESPONSE)
};

// The calls that PDS makes to SES about a message on its way out.
class MessageOwner {
 public:
  virtual ~MessageOwner() = default;
  // Appends the SES header of the message's next packet to `packet` (which is reset and has its
  // head at the SES position) and points its payload.
  virtual PacketPlan next_packet(Message& message, Packet& packet, PreparedPacket& prepared) = 0;
  // The response of one packet. Exactly one of pds_error and an rx_rsp that is Final comes for each
  // packet (PDS-22). After Provisional PDS keeps the PSN unacknowledged, asks the peer from time to
  // time, and delivers what comes; a cumulative ACK over the PSN is Final whatever SES says
  // (PDS-87).
  virtual Verdict rx_rsp(Message& message, std::uint32_t tag, const ResponseView& response,
                         Time now) = 0;
  virtual void pds_error(Message& message, std::uint32_t tag, PdsError error, Time now) = 0;
  // The message was dropped before its last packet was made; packets already made are answered
  // for separately (before this call). Nothing of it is in PDS any more afterwards.
  virtual void message_failed(Message& message, PdsError error, Time now) = 0;
};

// The other calls that PDS makes to SES.
class Client {
 public:
  virtual ~Client() = default;
  // A request packet arrived, in order if the mode is ROD, never twice. If it is UUD, the response
  // is discarded; if it is RUDI, the packet may be a repetition (PDS-184).
  virtual Response rx_req(const RequestView& request, Time now) = 0;
  // The name of a request that arrived before; empty if its header does not tell.
  virtual std::optional<RequestName> name_of(const RequestView& request) const = 0;
  // A default response: for a request that was consumed and asks for its answer again (PDS-204).
  virtual Response default_rsp(const RequestName& name) const = 0;
  // Delivery::proved() holds for a PDC that the peer opened, from now on.
  virtual void pdc_proved(PdcId) {}
  // The PDC is gone: the rest of half-received messages and outstanding return data will not come.
  // `error` is empty after an orderly close.
  virtual void pdc_closed(PdcId pdc, std::optional<PdsError> error, Time now) = 0;
};

// Hears of peers that are given up. No PDC to the peer works then; a later message opens another.
class PeerWatcher {
 public:
  virtual ~PeerWatcher() = default;
  // The FEP at `address` does not answer (RtoExhausted), or its process is gone (PeerLost). Called
  // once for each time that the last PDC with it fails; it must not call PDS or SES.
  virtual void peer_given_up(const FepAddress& address, PdsError error) noexcept = 0;
};

// Changes packets that were made and are not yet answered for; see Delivery::edit_packets.
class PacketEditor {
 public:
  virtual ~PacketEditor() = default;
  // `packet` holds what next_packet wrote, and `prepared` states its properties. False: both stay.
  // True: the editor has replaced the SES header (Packet::drop_appended), the payload and the
  // properties; the payload is not longer than before.
  virtual bool edit(Packet& packet, PreparedPacket& prepared) = 0;
};

// The calls that SES makes to PDS; pds::Manager is the implementation.
class Delivery {
 public:
  virtual ~Delivery() = default;
  // Queues the message on a PDC for `destination`, opening one if there is none. Error::Again when
  // no PDC is to be had now (PDS-180): nothing was queued. A message with mode Uud is one packet,
  // made during the call; its response comes when the NIC has taken it (PDS-192). The packets of
  // one with mode Rudi are requests of their own: each may reach the peer's SES more than once.
  virtual Result<void> send(Message& message, const Destination& destination, Time now) = 0;
  // Sends the message's only packet as the response to the RUDI request that rx_req is being called
  // for (PDS-189); rx_req's own answer is not sent then. Again if no packet is free, or if the data
  // exceed the allowance of a source address that may be forged (PDS-222).
  virtual Result<void> respond(Message& message, Time now) = 0;
  // Queues the message on the PDC `pdc` in the return direction (PDS-194). NotFound if it is gone,
  // Busy if its Close Command has left.
  virtual Result<void> send_on(PdcId pdc, Message& message, Time now) = 0;
  // Answers the request `psn`, whose response was provisional: this one is stored until it is
  // cleared. Nothing happens if the PDC is gone.
  virtual void answer(PdcId pdc, Psn psn, const Response& response) = 0;
  // Takes the message out of its backlog. True: PDS makes no further packet of it (packets made
  // before are still answered for). False: it was not in a backlog. A datagram (Uud) is withdrawn
  // packet and all, unless the NIC has it already: then false, and its answer comes. Of a Rudi
  // message nothing is answered any more.
  virtual bool cancel(Message& message) = 0;
  // Calls editor.edit() for each packet of the message on its PDC that PDS may send (again), in the
  // order of their PSNs, also for those that wait for the NIC. The peer accepts the first version
  // or the edited one, whichever arrives first; its answer does not say which.
  virtual void edit_packets(const Message& message, PacketEditor& editor) = 0;
  // The message at the head of the backlog can make packets again (after PacketPlan::NotNow).
  virtual void kick(PdcId pdc) = 0;
  // From now on the application waits for the answers to all messages of the PDC.
  virtual void request_acks_now(PdcId pdc) = 0;
  // Keeps the PDC from closing while return data is outstanding on it (PDS-15), and makes it ask a
  // silent peer for a sign of life: a dead peer fails the PDC. Counted: one unlock for each
  // lock.
  virtual void lock(PdcId pdc) = 0;
  virtual void unlock(PdcId pdc) = 0;
  // As lock(), for a wait that ends without this PDC: nothing has to come on it. If PDCs are short,
  // here or at the peer, it closes all the same (pdc_closed without an error), and the wait goes on
  // on another one (connect). Counted: one unwatch for each watch.
  virtual void watch(PdcId pdc) = 0;
  virtual void unwatch(PdcId pdc) = 0;
  // A PDC to `destination` that takes messages; it is opened with a NOOP if there is none (PDS-57).
  // Again: none is to be had now. Invalid: the mode uses no PDC.
  virtual Result<PdcId> connect(const Destination& destination, Time now) = 0;
  // Has the peer shown that it hears what is sent to its address? If not, it is asked to, and
  // Client::pdc_proved tells when it has. Before, whatever is sent to that address for its sake may
  // go to a host that has asked for nothing. True of a PDC that is gone.
  virtual bool proved(PdcId pdc) = 0;
  // Fails the PDC at once: everything on it ends in pds_error with LocalClose (PDS-134).
  virtual void abort(PdcId pdc, Time now) = 0;
};

}  // namespace uet::pds
