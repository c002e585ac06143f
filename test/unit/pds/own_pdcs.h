// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// PDCs in a table that the test owns, for tests of objects that Manager consists of. The node lends
// its Environment and a congestion context, and knows nothing of these PDCs.
#pragma once

#include <optional>

#include "pds/pdc_table.h"
#include "unit/pds/pds_harness.h"

namespace uet::pds::testing {

class OwnPdcs : public Bench {
 protected:
  OwnPdcs() { own(test_parameters()); }
  ~OwnPdcs() override { discard(); }

  // A node and an empty table with these parameters.
  void own(const Parameters& parameters) {
    discard();
    build(parameters);
    lender = &open();
    env().tx_records.reserve(env().parameters.pdc_count);
    env().rx_entries.reserve(env().parameters.pdc_count);
    table.emplace(env().parameters, secret);
  }
  void own(std::size_t count) {
    Parameters parameters = test_parameters();
    parameters.pdc_count = count;
    own(parameters);
  }
  Environment& env() { return lender->env(); }
  // A PDC that was opened here, as if its peer had answered it, opened at `now`.
  Pdc& initiator(std::uint8_t host = 2) {
    Pdc& pdc = add(Role::Initiator, PdcId{}, host, lender->ccc());
    pdc.send_side().learn_peer(next_peer_id(), now);
    return pdc;
  }
  // A PDC that was opened by a host which has not proved itself.
  Pdc& unproved(std::uint8_t host = 3) {
    return add(Role::Target, next_peer_id(), host, lender->ccc());
  }
  Pdc& target(std::uint8_t host = 3) {
    Pdc& pdc = unproved(host);
    pdc.note_proved();
    return pdc;
  }
  Pdc& add(Role role, PdcId peer_id, std::uint8_t host, SharedCcc& ccc) {
    const Destination to{.address = address_of(host), .job = JobId{7}, .mode = DeliveryMode::Rud};
    return table->emplace(table->reserve().value(), env(), role, peer_id, to, Psn{333}, ccc, now);
  }
  PdcId next_peer_id() { return PdcId{++last_peer_id}; }

  Pdc* lender = nullptr;  // of the node
  KeyedSequence secret{5};
  std::optional<PdcTable> table;
  std::uint16_t last_peer_id = 2000;

 private:
  void discard() {
    if (table) table->discard_all();
    table.reset();
  }
};

}  // namespace uet::pds::testing
