// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Options of fi_getopt and fi_setopt: how much one operation may carry, and reading and writing the
// values of all.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>

#include "compat.h"
#include "uet/ses/api.h"

namespace uet::prov {

// FI_OPT_MIN_MULTI_RECV, in bytes, until it is set.
inline constexpr std::size_t kDefaultMinMultiReceive = 16384;

// In the order of the options.
enum TransferKind : std::size_t { kMessage, kTagged, kRma, kAtomic, kTransferKinds };

// The most bytes of one operation, by kind.
struct SizeLimits {
  std::array<std::size_t, kTransferKinds> most{};
  std::array<std::size_t, kTransferKinds> inject{};
  std::size_t iov_count = ses::kMaxIoSlices;  // local buffers: tx_attr.iov_limit
  // That which a LaterOption from kOptMaxMsgSize on is about.
  std::size_t& of_option(int name);
  std::size_t of_option(int name) const;
};

// How receives behave where they are posted.
struct ReceiveSettings {
  bool directed = false;         // honour the source (FI_DIRECTED_RECV)
  bool tagged_directed = false;  // the same, of tagged receives
  bool tagged_multi = false;     // FI_MULTI_RECV means something to tagged receives
  std::size_t min_multi_receive = kDefaultMinMultiReceive;
  std::size_t iov_count = ses::kMaxIoSlices;  // buffers: rx_attr.iov_limit

  static ReceiveSettings of(std::uint64_t caps) {
    ReceiveSettings settings;
    settings.directed = (caps & FI_DIRECTED_RECV) != 0;
    settings.tagged_directed = (caps & (FI_DIRECTED_RECV | kTaggedDirectedRecv)) != 0;
    settings.tagged_multi = (caps & kTaggedMultiRecv) != 0;
    return settings;
  }
  // FI_MULTI_RECV as a default flag is for untagged receives, unless FI_TAGGED_MULTI_RECV says
  // otherwise.
  std::uint64_t tagged_defaults(std::uint64_t flags) const {
    return tagged_multi ? flags : flags & ~static_cast<std::uint64_t>(FI_MULTI_RECV);
  }
};

// Answers fi_getopt: -FI_ETOOSMALL, with the size that is needed, if the buffer is too small.
template <class T>
int give_option(const T& answer, void* value, std::size_t* length) {
  const std::size_t room = *length;
  *length = sizeof answer;
  if (room < sizeof answer) return -FI_ETOOSMALL;
  std::memcpy(value, &answer, sizeof answer);
  return 0;
}

// fi_setopt's value, if it is of this type.
template <class T>
std::optional<T> read_option(const void* value, std::size_t length) {
  if (value == nullptr || length != sizeof(T)) return {};
  T out;
  std::memcpy(&out, value, sizeof out);
  return out;
}

// The values of fi_setopt(3) that an endpoint keeps, except the sizes of its queues, which are
// those of its context of SES.
class EpOptions {
 public:
  struct Bounds {
    std::size_t max_msg_size = 0;
    std::size_t max_rma_size = 0;
    std::size_t max_atomic_size = 0;
    std::size_t inject_size = 0;
    std::size_t tx_iov_limit = 0;  // 0: kMaxIoSlices
    std::size_t rx_iov_limit = 0;
    bool knows_hmem = false;   // the domain was opened with FI_HMEM
    bool p2p = false;          // the NIC may read device memory itself
    bool local_rings = false;  // peers on this host are reached through shared memory
  };
  EpOptions(const Bounds& bounds, std::uint64_t caps);

  const SizeLimits& limits() const { return limits_; }
  const ReceiveSettings& receive() const { return receive_; }
  // FI_OPT_FI_HMEM_P2P allows the NIC to read device memory.
  bool may_use_p2p() const { return hmem_p2p_ != FI_HMEM_P2P_DISABLED; }

  // fi_getopt and fi_setopt for one option: 0 or a negative fi_errno, -FI_ENOPROTOOPT for options
  // that it does not keep. A refusal is logged.
  int get(int name, void* value, std::size_t* length) const noexcept;
  int set(int name, const void* value, std::size_t length) noexcept;

 private:
  std::size_t most_of(int name) const noexcept;
  int set_size(int name, std::size_t wanted) noexcept;
  int set_hmem_p2p(int wanted) noexcept;
  int set_permission(int name, bool permitted) const noexcept;

  const Bounds bounds_;
  SizeLimits limits_;
  ReceiveSettings receive_;
  int hmem_p2p_;  // FI_OPT_FI_HMEM_P2P
};

// For a value of the wrong length; returns the error.
int refuse_option_length() noexcept;

}  // namespace uet::prov
