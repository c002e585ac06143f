// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The line of PDCs that may have something to send. Congestion contexts take turns, so that a peer
// and class gets no more by using more PDCs (CMS-11); the PDCs of one context take turns in the
// turn of their context. Must not know what a PDC does in its turn.
#pragma once

#include "pds/ccc_pool.h"
#include "uet/base/intrusive_list.h"

namespace uet::pds {

class Turns {
 public:
  bool empty() const { return contexts_.empty(); }
  // Puts the PDC at the end of the line of its context, and that context at the end of the line of
  // contexts. Without effect if the PDC is in line already.
  void add(Pdc& pdc);
  // Puts the PDCs that wait for the context first in its line, in the order of their wait: none of
  // the others takes the window that they wait for before them.
  void add_waiting(SharedCcc& context);
  // Takes the PDC out of the line. Without effect if it is not in line.
  void remove(Pdc& pdc);
  // Takes out and returns the PDC that is next. The line must not be empty.
  Pdc& next();
  // Takes out the PDCs that have finished (PdcCore::finished) and lists them in the order of the
  // line. The caller takes each out of the list before it frees the PDC; others stay in the list.
  IntrusiveList<Pdc, ReadyTag>& finished();

 private:
  IntrusiveList<SharedCcc, ReadyTag> contexts_;  // those with PDCs in line
  IntrusiveList<Pdc, ReadyTag> finished_;        // in no line any more
};

}  // namespace uet::pds
