// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// fi_getopt and fi_setopt of an endpoint. FI_OPT_CM_DATA_SIZE cannot be set: it is always 0.
#include "objects/ep_options.h"

#include <cstring>

#include "compat.h"
#include "hmem/cuda.h"
#include "objects/endpoint.h"
#include "provider.h"
#include "settings/hints.h"

namespace uet::prov {
namespace {

bool is_size_limit(int name) { return name >= kOptMaxMsgSize && name <= kOptLast; }

}  // namespace

std::size_t& SizeLimits::of_option(int name) {
  const auto number = static_cast<std::size_t>(name - kOptMaxMsgSize);
  return number < kTransferKinds ? most[number] : inject[number - kTransferKinds];
}

int Endpoint::get_option(int name, void* value, std::size_t* length) noexcept {
  if (engine_.dead()) return -FI_EOPNOTSUPP;
  if (value == nullptr || length == nullptr) return refuse(-FI_EINVAL, "fi_getopt: NULL argument");
  if (is_size_limit(name)) return give_option(limits_.of_option(name), value, length);
  switch (name) {
    case FI_OPT_MIN_MULTI_RECV:
      return give_option(receive_settings_.min_multi_receive, value, length);
    case FI_OPT_CM_DATA_SIZE:
      return give_option(std::size_t{0}, value, length);
    case FI_OPT_TX_SIZE:
      return give_option(ses_config_.tx_size, value, length);
    case FI_OPT_RX_SIZE:
      return give_option(ses_config_.rx_size, value, length);
    case FI_OPT_FI_HMEM_P2P:
      return give_option(hmem_p2p_, value, length);
    case kOptCudaApiPermitted:
      return give_option(engine_.knows_hmem() && Cuda::driver() != nullptr, value, length);
    case kOptSharedMemoryPermitted:
      return give_option(engine_.params().local_rings, value, length);
    default:
      return -FI_ENOPROTOOPT;
  }
}

// Limits the bytes that operations of one kind may carry; the data path checks the limit.
int Endpoint::set_limit(int name, std::size_t wanted) noexcept {
  const bool atomic = name == kOptMaxMsgSize + static_cast<int>(kAtomic);
  const std::size_t most = atomic ? engine_.payload_mtu() : max_msg_size_;
  if (wanted > (name < kOptInjectMsgSize ? most : inject_size_)) {
    return refuse(-FI_EINVAL, "fi_setopt: at most max_msg_size or inject_size is possible");
  }
  limits_.of_option(name) = wanted;
  return 0;
}

int Endpoint::set_queue_size(int name, std::size_t wanted) noexcept {
  if (enabled_) return refuse(-FI_EOPBADSTATE, "fi_setopt: set queue sizes before fi_enable");
  const bool tx = name == FI_OPT_TX_SIZE;
  if (wanted == 0 || wanted > (tx ? kMaxTxSize : kMaxRxSize)) {
    return refuse(-FI_EINVAL, "fi_setopt: the queue size is 0 or too large");
  }
  if (tx && stx_ != nullptr) {
    return refuse(-FI_EINVAL, "fi_setopt: set the size in the attributes of fi_stx_context");
  }
  (tx ? ses_config_.tx_size : ses_config_.rx_size) = wanted;
  return open_context();
}

int Endpoint::set_size(int name, std::size_t wanted) noexcept {
  if (name == FI_OPT_MIN_MULTI_RECV) {
    receive_settings_.min_multi_receive = wanted;  // counts for buffers posted from now on
    return 0;
  }
  return is_size_limit(name) ? set_limit(name, wanted) : set_queue_size(name, wanted);
}

// Memory is always copied by the CPU, so that only "required" fails.
int Endpoint::set_hmem_p2p(int wanted) noexcept {
  if (wanted < FI_HMEM_P2P_ENABLED || wanted > FI_HMEM_P2P_DISABLED) {
    return refuse(-FI_EINVAL, "fi_setopt: not a value of FI_OPT_FI_HMEM_P2P");
  }
  if (wanted == FI_HMEM_P2P_REQUIRED) {
    return refuse(-FI_EOPNOTSUPP, "fi_setopt: uet cannot transfer from device to device");
  }
  hmem_p2p_ = wanted;
  return 0;
}

int Endpoint::set_permission(int name, bool permitted) noexcept {
  if (name == kOptCudaApiPermitted) {
    if (Cuda::driver() == nullptr) {
      return refuse(-FI_EINVAL, "fi_setopt: FI_OPT_CUDA_API_PERMITTED: CUDA was not found");
    }
    return permitted || !engine_.knows_hmem()
               ? 0
               : refuse(-FI_EOPNOTSUPP, "fi_setopt: FI_HMEM_CUDA needs calls of CUDA");
  }
  // The rings to peers on this host are the domain's.
  if (!permitted && engine_.params().local_rings) {
    return refuse(-FI_EOPNOTSUPP, "fi_setopt: only FI_UET_LOCAL=off turns shared memory off");
  }
  return 0;
}

int Endpoint::set_option(int name, const void* value, std::size_t length) noexcept {
  if (engine_.dead()) return -FI_EOPNOTSUPP;
  constexpr const char* kWrongLength = "fi_setopt: optlen is not that of the option's type";
  if (is_size_limit(name) || name == FI_OPT_TX_SIZE || name == FI_OPT_RX_SIZE ||
      name == FI_OPT_MIN_MULTI_RECV) {
    const auto wanted = read_option<std::size_t>(value, length);
    return wanted ? set_size(name, *wanted) : refuse(-FI_EINVAL, kWrongLength);
  }
  if (name == FI_OPT_FI_HMEM_P2P) {
    const auto wanted = read_option<int>(value, length);
    return wanted ? set_hmem_p2p(*wanted) : refuse(-FI_EINVAL, kWrongLength);
  }
  if (name == kOptCudaApiPermitted || name == kOptSharedMemoryPermitted) {
    const auto permitted = read_option<unsigned char>(value, length);
    return permitted ? set_permission(name, *permitted != 0) : refuse(-FI_EINVAL, kWrongLength);
  }
  return -FI_ENOPROTOOPT;
}

}  // namespace uet::prov
