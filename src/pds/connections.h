// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Opens, accepts and frees the PDCs of a FEP: chooses the PDC of a message (PDS-9, PDS-23), accepts
// or refuses a SYN (PDS-58, PDS-66), and leaves a tombstone of an ended PDC (PDS-175). Joins the
// table of PDCs, the destinations, the congestion contexts and the rules of Admission. Must not
// know what a PDC does with its packets.
#pragma once

#include "base/keyed_sequence.h"
#include "pds/admission.h"
#include "pds/ccc_pool.h"
#include "pds/destinations.h"
#include "pds/environment.h"
#include "pds/incoming.h"
#include "pds/pdc_table.h"
#include "pds/rudi.h"
#include "pds/start_psns.h"
#include "uet/base/result.h"
#include "uet/base/time.h"
#include "uet/pds/api.h"

namespace uet::pds {

class Connections {
 public:
  // Both arguments outlive it. `secret` gives PDC ids and first PSNs.
  Connections(Environment& environment, KeyedSequence& secret);
  // Ends all PDCs without a word to the client.
  ~Connections() { pdcs_.discard_all(); }
  Connections(const Connections&) = delete;
  Connections& operator=(const Connections&) = delete;

  // The PDC with this id; nullptr if there is none or it has finished.
  Pdc* find(PdcId id) { return pdcs_.find(id); }
  // As find(), for callers that no PDC is on the stack of: frees one that has finished.
  Pdc* live(PdcId id, Time now);

  // The PDC for the next message to there; nullptr if there is none now. A message of a RUD
  // destination waits for none of a larger size class (Message::size_class): if all PDCs to there
  // carry such, another one is opened, up to pdcs_per_destination (PDS-9). May throw bad_alloc;
  // then nothing has changed.
  Pdc* for_message(const Destination& destination, std::uint8_t size_class, Time now);
  // A PDC to there, which is opened if there is none. Again: none can be had now.
  Result<PdcId> connect(const Destination& destination, Time now);
  // The PDC that the peer opens with this SYN; nullptr: refusal() says why not.
  Pdc* accept(const PeerKey& peer, DeliveryMode mode, const Incoming& syn, Psn start_psn, Time now);
  NackCode refusal() const { return refusal_; }
  // The RUDI packets to there; nullptr if no congestion context is to be had for them now. May
  // throw bad_alloc.
  RudiFlow* rudi_flow(const Destination& destination, Time now);

  // Frees a PDC and remembers it for a while. The client hears of its end.
  void free(Pdc& pdc, Time now);
  // Frees a target PDC that is not proved, without a word to its peer.
  void drop_unproved(Pdc& pdc, Time now);
  // Begins to close the PDCs that lead to `address`.
  void forget(const FepAddress& address, Time now);

  // Some PDC leads to the FEP at `address`, or came from there.
  bool has_pdc_with(const FepAddress& address) const;

  PdcTable& pdcs() { return pdcs_; }
  const PdcTable& pdcs() const { return pdcs_; }
  Destinations& destinations() { return destinations_; }
  // Of secured PDCs.
  StartPsns& start_psns() { return start_psns_; }
  Admission& admission() { return admission_; }
  const Admission& admission() const { return admission_; }
  const CccPool& contexts() const { return cccs_; }
  CccPool& contexts() { return cccs_; }

 private:
  static bool gives_up_peer(const Pdc& pdc);
  static std::uint32_t rank_of(Backlog& backlog, std::uint8_t size_class);
  bool may_open_another(const FepAddress& peer, Time now) const;
  Pdc* create(Role role, PdcId peer_id, const Destination& destination, Psn start_psn, Time now);
  // A PDC to there, at the expense of idle and unproved ones if need be.
  Pdc* open(const Destination& destination, Time now);
  // As open(), but nothing gives way to it.
  Pdc* start(const Destination& destination, Time now);
  bool drop_oldest_unproved(Time now);
  void drop_idle_rudi_flows(Time now);
  void relieve_shortage(Time now);

  Environment& env_;
  PdcTable pdcs_;
  Destinations destinations_;
  StartPsns start_psns_;
  Admission admission_;
  CccPool cccs_;
  NackCode refusal_ = NackCode::NoPdcAvail;  // why create() last failed
};

}  // namespace uet::pds
