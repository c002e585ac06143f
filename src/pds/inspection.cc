// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Lists of peers and of PDCs that wait.
#include "pds/inspection.h"

#include <algorithm>

#include "pds/connections.h"
#include "pds/credits.h"
#include "pds/pdc.h"

namespace uet::pds {

namespace {

void note_wait(WaitingPdc& out, Pdc& pdc, Time packets_short_since) {
  const SharedCcc& shared = pdc.ccc();
  const bool queued =
      !pdc.send_side().backlog().empty() || pdc.send_side().outstanding().queued() > 0;
  if (!queued) return;
  if (const Time since = pdc.send_side().wait().outside_peer_window_since(); since != Time{}) {
    out.wait = trace::Wait::PeerWindow;
    out.wait_since = since;
  } else if (pdc.ListNode<WaitingForCccTag>::linked() && shared.blocked_since != Time{}) {
    out.wait = shared.blocked_by_credit ? trace::Wait::Credit : trace::Wait::Window;
    out.wait_since = shared.blocked_since;
  } else if (packets_short_since != Time{}) {
    out.wait = trace::Wait::Packets;
    out.wait_since = packets_short_since;
  }
}

}  // namespace

WaitingPdc waiting_pdc(Pdc& pdc, Time packets_short_since) {
  SendSide& side = pdc.send_side();
  const SharedCcc& shared = pdc.ccc();
  WaitingPdc out;
  out.peer = pdc.destination().address;
  out.id = pdc.id();
  out.target = pdc.role() == Role::Target;
  out.ordered = pdc.ordered();
  out.state = pdc.state();
  out.packets_outstanding = side.window().span();
  out.messages_queued = side.backlog().count();
  out.peer_heard = pdc.peer_counts().last_heard;
  out.window_bytes = shared.ccc->window_bytes();
  out.inflight_bytes = shared.ccc->inflight_bytes();
  if (const TxRecord* const oldest = side.window().find(side.window().base())) {
    out.oldest_psn = side.window().base();
    out.oldest_transmissions = oldest->sent_count;
    out.oldest_message = oldest->message != nullptr ? oldest->message->id_in_trace : 0;
    out.oldest_sacked = oldest->sacked || oldest->provisional;
    out.oldest_first_sent = oldest->first_sent;
    out.oldest_last_sent = oldest->last_sent;
  }
  note_wait(out, pdc, packets_short_since);
  return out;
}

void Inspection::list_peers(std::vector<PeerView>& out) {
  CccPool& contexts = connections_.contexts();
  out.clear();
  out.reserve(contexts.peers().size());
  contexts.peers().for_each([&](Peer& peer) {
    peer.position = out.size();
    out.push_back({.peer = &peer});
  });
  contexts.for_each([&](const SharedCcc& shared) {
    PeerView& view = out[shared.peer->position];
    view.base_rtt = std::max(view.base_rtt, shared.ccc->base_rtt().value_or(Duration{}));
    view.window_bytes += shared.ccc->window_bytes();
    view.inflight_bytes += shared.ccc->inflight_bytes();
    if (shared.credit != nullptr) view.credit_bytes += shared.credit->credit_bytes();
    if (!shared.paths) return;
    cms::Counters paths;
    shared.paths->count(paths);
    view.paths += shared.paths->path_count();
    view.paths_banned += paths.paths_banned;
  });
  connections_.pdcs().for_each([&](Pdc& pdc) {
    if (pdc.finished()) return;
    PeerView& view = out[pdc.ccc().peer->position];
    ++view.pdcs;
    if (!pdc.ccc().paths) ++view.paths;  // one of its own
    TxWindow& window = pdc.send_side().window();
    view.packets_outstanding += static_cast<std::uint32_t>(window.span());
    const TxRecord* const oldest = window.find(window.base());
    if (oldest == nullptr) return;
    const bool older = view.oldest_sent == Time{} || oldest->first_sent < view.oldest_sent;
    if (older) view.oldest_sent = oldest->first_sent;
  });
}

void Inspection::list_waiting(std::vector<WaitingPdc>& out) {
  out.clear();
  connections_.pdcs().for_each([&](Pdc& pdc) {
    if (pdc.finished() || pdc.send_side().idle()) return;
    out.push_back(waiting_pdc(pdc, env_.packets_short_since));
  });
}

}  // namespace uet::pds
