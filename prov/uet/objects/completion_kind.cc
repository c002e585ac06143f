// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "objects/completion_kind.h"

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

namespace uet::prov {

std::uint64_t entry_flags(const ses::Completion& completion) {
  std::uint64_t flags = 0;
  switch (completion.kind) {
    case ses::Kind::Send:
      return FI_SEND | FI_MSG;
    case ses::Kind::TaggedSend:
      return FI_SEND | FI_TAGGED;
    case ses::Kind::Write:
      return FI_WRITE | FI_RMA;
    case ses::Kind::Read:
      return FI_READ | FI_RMA;
    case ses::Kind::Atomic:
      return FI_WRITE | FI_ATOMIC;
    case ses::Kind::FetchAtomic:
    case ses::Kind::CompareAtomic:
      return FI_READ | FI_ATOMIC;
    case ses::Kind::Receive:
      flags = FI_RECV | FI_MSG;
      break;
    case ses::Kind::TaggedReceive:
      flags = FI_RECV | FI_TAGGED;
      break;
    case ses::Kind::RemoteWrite:
      flags = FI_REMOTE_WRITE | FI_RMA;
      break;
  }
  return completion.has_data ? flags | FI_REMOTE_CQ_DATA : flags;
}

CounterIndex counter_index(ses::Kind kind) {
  switch (kind) {
    case ses::Kind::Send:
    case ses::Kind::TaggedSend:
      return kSend;
    case ses::Kind::Write:
    case ses::Kind::Atomic:
      return kWrite;
    case ses::Kind::Read:
    case ses::Kind::FetchAtomic:
    case ses::Kind::CompareAtomic:
      return kRead;
    case ses::Kind::Receive:
    case ses::Kind::TaggedReceive:
      return kRecv;
    case ses::Kind::RemoteWrite:
      return kRemoteWrite;
  }
  return kSend;
}

bool counts(const ses::Completion& completion) {
  if (!is_receive(completion.kind)) return true;
  const bool only_releases = completion.released && !completion.multi;
  return (completion.user_flags & (FI_PEEK | FI_DISCARD)) == 0 &&
         (!only_releases || completion.status != ses::Status::Ok);
}

}  // namespace uet::prov
