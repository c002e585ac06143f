// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// From a receive call to an operation of SES: the same for an endpoint's own queue of receives and
// for one that endpoints share.
#pragma once

#include <rdma/fi_errno.h>
#include <sys/uio.h>

#include <array>
#include <optional>
#include <span>

#include "av_fid.h"
#include "domain.h"
#include "errors.h"
#include "hints.h"
#include "provider.h"
#include "uet/ses/api.h"

namespace uet::prov {

struct RxCall {
  const iovec* iov = nullptr;
  std::size_t count = 0;
  fi_addr_t from = FI_ADDR_UNSPEC;
  void* context = nullptr;
  std::uint64_t flags = 0;
  bool tagged = false;
  std::uint64_t tag = 0;
  std::uint64_t ignore = 0;
};

inline constexpr std::uint64_t kRxCallFlags = kRxOpFlags | FI_MORE;

using Slices = std::array<ses::IoSlice, ses::kMaxIoSlices>;

// Bytes of all pieces together.
inline std::size_t fill_slices(const iovec* iov, std::size_t count, Slices& slices) {
  std::size_t total = 0;
  for (std::size_t i = 0; i < count; ++i) {
    slices[i] = {static_cast<std::byte*>(iov[i].iov_base), iov[i].iov_len};
    total += iov[i].iov_len;
  }
  return total;
}

// `directed`: honour the source of the receive, which the AV that `av` gives resolves. `post` hands
// the operation over, having reserved room for what completes. Both are called with the lock.
template <class GetAv, class Post>
ssize_t post_receive(Domain& domain, const RxCall& call, bool directed, GetAv av,
                     Post post) noexcept {
  const auto refuse = [](const char* why) {
    FI_WARN(&provider, FI_LOG_EP_DATA, "receive: %s\n", why);
    return -FI_EINVAL;
  };
  if (call.count > ses::kMaxIoSlices || (call.flags & ~kRxCallFlags) != 0) {
    return refuse("more than iov_limit pieces, or a flag that is not supported");
  }
  Slices slices;
  fill_slices(call.iov, call.count, slices);
  ses::ReceiveOp op;
  op.local = std::span(slices.data(), call.count);
  op.tagged = call.tagged;
  op.tag = call.tag;
  op.ignore = call.ignore;
  op.context = call.context;
  op.user_flags = call.flags;

  const Guard guard(domain.lock());
  std::optional<ses::Peer> source;
  if (directed && call.from != FI_ADDR_UNSPEC) {
    if (const AvFid* known = av()) source = known->peer(call.from);
    if (!source) return refuse("its source is not in the AV");
    op.source = &*source;
  }
  const Time now = clock_now();
  const Result<void> posted = post(domain.fep().ses(), op, now);
  if (posted) {
    domain.posted(now, (call.flags & FI_MORE) != 0);
    return 0;
  }
  // Whoever repeats a post without reading a queue must get on all the same.
  if (posted.error() == Error::Again) domain.progress(now);
  return to_fi_errno(posted.error());
}

}  // namespace uet::prov
