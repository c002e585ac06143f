// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The two lines behind each other: of contexts, and of the PDCs of each context.
#include "pds/turns.h"

#include "pds/pdc.h"

namespace uet::pds {

namespace {

bool in_line(const Pdc& pdc) { return pdc.ListNode<ReadyTag>::linked(); }
bool in_line(const SharedCcc& context) { return context.ListNode<ReadyTag>::linked(); }

}  // namespace

void Turns::add(Pdc& pdc) {
  if (in_line(pdc)) return;
  SharedCcc& context = pdc.ccc();
  context.ready.push_back(pdc);
  if (!in_line(context)) contexts_.push_back(context);
}

void Turns::add_waiting(SharedCcc& context) {
  auto next = context.ready.begin();
  for (Pdc& pdc : context.waiting) {
    if (next != context.ready.end() && &*next == &pdc) {
      ++next;
      continue;
    }
    if (in_line(pdc)) context.ready.remove(pdc);
    context.ready.insert(next, pdc);
  }
  if (!context.ready.empty() && !in_line(context)) contexts_.push_back(context);
}

void Turns::remove(Pdc& pdc) {
  if (!in_line(pdc)) return;
  SharedCcc& context = pdc.ccc();
  context.ready.remove(pdc);
  if (context.ready.empty() && in_line(context)) contexts_.remove(context);
}

Pdc& Turns::next() {
  SharedCcc& context = contexts_.pop_front();
  Pdc& pdc = context.ready.pop_front();
  if (!context.ready.empty()) contexts_.push_back(context);
  return pdc;
}

IntrusiveList<Pdc, ReadyTag>& Turns::finished() {
  for (auto context = contexts_.begin(); context != contexts_.end();) {
    SharedCcc& shared = *context;
    ++context;
    for (auto at = shared.ready.begin(); at != shared.ready.end();) {
      Pdc& pdc = *at;
      ++at;
      if (!pdc.finished()) continue;
      remove(pdc);
      finished_.push_back(pdc);
    }
  }
  return finished_;
}

}  // namespace uet::pds
