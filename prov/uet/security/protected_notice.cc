// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "security/protected_notice.h"

#include "provider.h"

namespace uet::prov {

void ProtectedNotice::tell(std::uint64_t count, Time now) noexcept {
  FI_WARN(&provider, FI_LOG_DOMAIN,
          "%llu packets dropped: their sender has FI_UET_TSS on, and this domain is in clear; set "
          "FI_UET_TSS=require and FI_UET_TSS_KEYS here, too\n",
          static_cast<unsigned long long>(count - told_));
  told_ = count;
  silent_until_ = now + kInterval;
}

}  // namespace uet::prov
