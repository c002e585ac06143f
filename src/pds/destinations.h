// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Remembers each destination that messages have gone to: the PDCs that are open to it, the oldest
// first, where the PSNs of the last one ended (PDS-53), and its RUDI packets. Never
// forgets a destination. Decides nothing about messages (Connections).
#pragma once

#include <cstddef>
#include <memory>
#include <optional>

#include "base/growing_table.h"
#include "base/keyed_sequence.h"
#include "base/rng.h"
#include "pds/parameters.h"
#include "pds/pdc_table.h"
#include "pds/rudi.h"
#include "uet/pds/api.h"

namespace uet::pds {

// One destination.
struct Outgoing {
  std::optional<Psn> last_psn;  // of the previous PDC (PDS-53)
  // Of secured PDCs: the newest Expected_PSN that the target has reported (PDS-79).
  std::optional<Psn> expected;
  PdcId first;  // of those open, the oldest; 0: none is
  std::unique_ptr<RudiFlow> rudi;
};

class Destinations {
  struct Hash {
    std::size_t operator()(const Destination& destination) const noexcept;
  };
  using Table = GrowingTable<Destination, Outgoing, Hash>;

 public:
  // The arguments outlive it. `secret` and `rng` give first PSNs.
  Destinations(const Parameters& parameters, PdcTable& pdcs, KeyedSequence& secret, Rng& rng)
      : parameters_(parameters), pdcs_(pdcs), secret_(secret), rng_(rng) {}

  // The entry of the destination, which is made if there is none. May throw bad_alloc.
  Outgoing& at(const Destination& destination);
  // The PDC after `id` among those of its destination; 0 after the last.
  PdcId next(PdcId id) const { return pdcs_.at(id)->next_there(); }
  // The PDC leads to there. It is the newest one.
  void append(Outgoing& outgoing, Pdc& pdc);
  // The Start_PSN of the next PDC to there: random, not below 2^16, and as far from where the
  // previous one ended (PDS-53). Of a secured PDC, what its target expects, if that is known.
  Psn next_start_psn(Outgoing& outgoing);
  // The target of the secured PDC reports that it expects this Start_PSN next (PDS-78).
  void note_expected(const Pdc& pdc, Psn expected);
  // The PDC ends. Without effect for one that the peer has opened.
  void leave(Pdc& pdc);

  // {key: Destination, value: Outgoing} of each destination.
  auto begin() { return table_.begin(); }
  auto end() { return table_.end(); }

 private:
  void remove(Outgoing& outgoing, Pdc& pdc);

  const Parameters& parameters_;
  PdcTable& pdcs_;
  KeyedSequence& secret_;
  Rng& rng_;
  Table table_;
  Table::Element* last_ = nullptr;  // that was asked for
};

}  // namespace uet::pds
