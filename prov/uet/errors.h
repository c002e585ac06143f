// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The only place that knows which libfabric errno stands for what.
#pragma once

#include <cstddef>

#include "cm/connections.h"
#include "uet/base/result.h"
#include "uet/pds/api.h"
#include "uet/ses/api.h"

namespace uet::prov {

// Negative fi_errno of an operation refused locally.
int to_fi_errno(Error error);

// Positive fi_errno of a target's refusal (SES section 9); 0 for Null and Ok.
int to_fi_errno(wire::ReturnCode code);
// Positive fi_errno of a transport failure (SES-121).
int to_fi_errno(pds::PdsError error);

struct CompletionError {
  int err = 0;         // positive fi_errno, 0 for success
  int prov_errno = 0;  // return code, or kPdsErrorBase + PdsError, or 0 (SES-121)
};
inline constexpr int kPdsErrorBase = 0x1000;

CompletionError to_completion_error(const ses::Completion& completion);

// The prov_errno of a connection that was not established, and words for it, for fi_eq_strerror.
int cm_prov_errno(cm::Failure failure);
const char* describe_cm_prov_errno(int prov_errno) noexcept;

// Words for a prov_errno, for fi_cq_strerror; cut to `length` bytes with the final 0.
void describe_prov_errno(int prov_errno, char* buffer, std::size_t length) noexcept;

}  // namespace uet::prov
