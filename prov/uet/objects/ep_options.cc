// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// FI_OPT_CM_DATA_SIZE cannot be set: it is always 0.
#include "objects/ep_options.h"

#include <rdma/fi_endpoint.h>

#include <utility>

#include "hmem/cuda.h"
#include "objects/ep_state.h"

namespace uet::prov {
namespace {

bool is_size_limit(int name) { return name >= kOptMaxMsgSize && name <= kOptLast; }

}  // namespace

std::size_t SizeLimits::of_option(int name) const {
  const auto number = static_cast<std::size_t>(name - kOptMaxMsgSize);
  return number < kTransferKinds ? most[number] : inject[number - kTransferKinds];
}

std::size_t& SizeLimits::of_option(int name) {
  const auto number = static_cast<std::size_t>(name - kOptMaxMsgSize);
  return number < kTransferKinds ? most[number] : inject[number - kTransferKinds];
}

int refuse_option_length() noexcept {
  return refuse_endpoint(
      -FI_EINVAL,
      "fi_setopt: endpoint: optlen is not that of the option; pass the size of its type");
}

EpOptions::EpOptions(const Bounds& bounds, std::uint64_t caps)
    : bounds_(bounds),
      receive_(ReceiveSettings::of(caps)),
      hmem_p2p_(bounds.p2p ? FI_HMEM_P2P_ENABLED : FI_HMEM_P2P_DISABLED) {
  limits_.most.fill(bounds.max_msg_size);
  limits_.most[kRma] = bounds.max_rma_size;
  limits_.most[kAtomic] = bounds.max_atomic_size;
  limits_.inject.fill(bounds.inject_size);
  if (bounds.tx_iov_limit != 0) limits_.iov_count = bounds.tx_iov_limit;
  if (bounds.rx_iov_limit != 0) receive_.iov_count = bounds.rx_iov_limit;
}

int EpOptions::get(int name, void* value, std::size_t* length) const noexcept {
  if (is_size_limit(name)) return give_option(limits_.of_option(name), value, length);
  switch (name) {
    case FI_OPT_MIN_MULTI_RECV:
      return give_option(receive_.min_multi_receive, value, length);
    case FI_OPT_CM_DATA_SIZE:
      return give_option(std::size_t{0}, value, length);
    case FI_OPT_FI_HMEM_P2P:
      return give_option(hmem_p2p_, value, length);
    case kOptCudaApiPermitted:
      return give_option(bounds_.knows_hmem && Cuda::driver() != nullptr, value, length);
    case kOptSharedMemoryPermitted:
      return give_option(bounds_.local_rings, value, length);
    default:
      return -FI_ENOPROTOOPT;
  }
}

// The largest value that the limit may be set to.
std::size_t EpOptions::most_of(int name) const noexcept {
  if (name >= kOptInjectMsgSize) return bounds_.inject_size;
  const auto kind = static_cast<std::size_t>(name - kOptMaxMsgSize);
  if (kind == kAtomic) return bounds_.max_atomic_size;
  return kind == kRma ? bounds_.max_rma_size : bounds_.max_msg_size;
}

// A limit is that of operations of one kind; the data path checks it.
int EpOptions::set_size(int name, std::size_t wanted) noexcept {
  if (name == FI_OPT_MIN_MULTI_RECV) {
    receive_.min_multi_receive = wanted;  // counts for buffers posted from now on
    return 0;
  }
  if (wanted > most_of(name)) {
    return refuse_endpoint(
        -FI_EINVAL,
        "fi_setopt: endpoint: the size is too large; pass at most max_msg_size or inject_size");
  }
  limits_.of_option(name) = wanted;
  return 0;
}

// Received bytes are always copied by the driver, so that "required" fails.
int EpOptions::set_hmem_p2p(int wanted) noexcept {
  if (wanted < FI_HMEM_P2P_ENABLED || wanted > FI_HMEM_P2P_DISABLED) {
    return refuse_endpoint(
        -FI_EINVAL, "fi_setopt: endpoint: not a value of FI_OPT_FI_HMEM_P2P; see fi_endpoint(3)");
  }
  if (wanted == FI_HMEM_P2P_REQUIRED) {
    return refuse_endpoint(
        -FI_EOPNOTSUPP,
        "fi_setopt: endpoint: received data are copied to devices; use FI_HMEM_P2P_ENABLED");
  }
  hmem_p2p_ = bounds_.p2p ? wanted : FI_HMEM_P2P_DISABLED;
  return 0;
}

int EpOptions::set_permission(int name, bool permitted) const noexcept {
  if (name == kOptCudaApiPermitted) {
    if (Cuda::driver() == nullptr) {
      return refuse_endpoint(-FI_EINVAL,
                             "fi_setopt: endpoint: FI_OPT_CUDA_API_PERMITTED without CUDA; install "
                             "its driver library");
    }
    return permitted || !bounds_.knows_hmem
               ? 0
               : refuse_endpoint(
                     -FI_EOPNOTSUPP,
                     "fi_setopt: endpoint: FI_HMEM_CUDA needs calls of CUDA; permit them");
  }
  // The rings to peers on this host are the domain's.
  if (!permitted && bounds_.local_rings) {
    return refuse_endpoint(
        -FI_EOPNOTSUPP,
        "fi_setopt: endpoint: shared memory belongs to the domain; set FI_UET_LOCAL=off");
  }
  return 0;
}

int EpOptions::set(int name, const void* value, std::size_t length) noexcept {
  if (is_size_limit(name) || name == FI_OPT_MIN_MULTI_RECV) {
    const auto wanted = read_option<std::size_t>(value, length);
    return wanted ? set_size(name, *wanted) : refuse_option_length();
  }
  if (name == FI_OPT_FI_HMEM_P2P) {
    const auto wanted = read_option<int>(value, length);
    return wanted ? set_hmem_p2p(*wanted) : refuse_option_length();
  }
  if (name == kOptCudaApiPermitted || name == kOptSharedMemoryPermitted) {
    const auto permitted = read_option<unsigned char>(value, length);
    return permitted ? set_permission(name, *permitted != 0) : refuse_option_length();
  }
  return -FI_ENOPROTOOPT;
}

}  // namespace uet::prov
