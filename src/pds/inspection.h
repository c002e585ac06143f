// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The PDS of a FEP as people see it: its trace, its peers, and the PDCs that wait. No decision
// reads what it says.
#pragma once

#include <vector>

#include "base/trace.h"
#include "pds/environment.h"
#include "pds/peer_table.h"
#include "pds/waiting_pdc.h"

namespace uet::pds {

class Connections;

class Inspection {
 public:
  // Both outlive it.
  Inspection(Environment& environment, Connections& connections)
      : env_(environment), connections_(connections) {}

  // Where the parts of the FEP write what happens.
  trace::Trace& trace() { return env_.trace; }
  // Replaces `out` by all peers, in no order. Reads every PDC: not for the data path. May throw
  // bad_alloc.
  void list_peers(std::vector<PeerView>& out);
  // Replaces `out` by the PDCs that wait: packets are outstanding, or messages are queued. In no
  // order; otherwise as list_peers.
  void list_waiting(std::vector<WaitingPdc>& out);

 private:
  Environment& env_;
  Connections& connections_;
};

}  // namespace uet::pds
