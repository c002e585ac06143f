// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The identity of a PDC: its end, its ids, its destination, and the PSN that its direction began
// with.
#pragma once

#include "pds/quota.h"
#include "uet/base/types.h"
#include "uet/pds/api.h"

namespace uet::pds {

class PdcIdentity {
 public:
  PdcIdentity(Role role, PdcId id, PdcId peer_id, const Destination& destination, Psn start_psn)
      : role_(role), id_(id), peer_id_(peer_id), destination_(destination), start_psn_(start_psn) {}

  PdcId id() const { return id_; }
  // 0 until the initiator has learnt it.
  PdcId peer_id() const { return peer_id_; }
  Role role() const { return role_; }
  Use use() const { return {role_, destination_.reserved_pool}; }
  Psn start_psn() const { return start_psn_; }
  const Destination& destination() const { return destination_; }
  bool ordered() const { return destination_.mode == DeliveryMode::Rod; }
  // Of a target PDC: the job of the last request.
  void set_job(JobId job) { destination_.job = job; }
  // The target names another Start_PSN (PDS-77).
  void move_start(Psn start_psn) { start_psn_ = start_psn; }
  // Another one that leads to the same destination, for Destinations; 0: none.
  PdcId next_there() const { return next_there_; }
  void set_next_there(PdcId id) { next_there_ = id; }
  // A packet with SYN was sent or received more than once (PDS-217).
  bool syn_came_again() const { return syn_came_again_; }
  void note_syn_came_again() { syn_came_again_ = true; }

 protected:
  const Role role_;
  bool syn_came_again_ = false;
  const PdcId id_;
  PdcId peer_id_;
  PdcId next_there_;
  Destination destination_;
  Psn start_psn_;
};

}  // namespace uet::pds
