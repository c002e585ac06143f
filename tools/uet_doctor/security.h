// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Transport security of both ends of a path: the doctors compare what they have over TCP, since a
// secured end answers nothing to packets that it cannot open (TSS-39). Only fingerprints of keys
// are compared.
#pragma once

#include <rdma/fi_domain.h>

#include <array>
#include <cstdint>
#include <string>

#include "uet/fi_ext_uet.h"

namespace uet::doctor {

// As one end sends it to the other, which has the byte order of the same kind of host.
struct SecurityState {
  std::uint8_t secured = 0;
  std::array<std::uint8_t, 3> unused{};
  fi_uet_tss_state keys{};
  std::int64_t time_of_day = 0;  // seconds since 1970
};

// Of the secure domain of `domain`, now.
SecurityState security_of(fid_domain* domain);

// The result of a comparison; `problem` is empty if packets can pass.
struct Agreement {
  std::string problem;
  std::string advice;
  std::string good;  // the protection in force if there is no problem
};
Agreement compare(const SecurityState& here, const SecurityState& there);

}  // namespace uet::doctor
