// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Atomics at the target: all checks and the allocation of the answer come first, because an atomic
// must be answered once it has been executed, and must never run again (SES-93, SES-94).
#pragma once

#include <cstdint>

#include "ses/context.h"
#include "ses/counters.h"
#include "ses/read_answers.h"
#include "ses/request_checks.h"
#include "ses/target_errors.h"
#include "uet/base/time.h"
#include "uet/pds/api.h"

namespace uet::ses {

class AtomicTarget {
 public:
  // The referenced objects outlive this one.
  // `host_copy`: as Parameters::host_copy.
  AtomicTarget(std::uint32_t payload_mtu, const RequestChecks& checks, ReadAnswers& answers,
               TargetErrors& errors, Counters& counters, HostCopy* host_copy)
      : payload_mtu_(payload_mtu),
        checks_(checks),
        answers_(answers),
        errors_(errors),
        counters_(counters),
        host_copy_(host_copy) {}

  // An ATOMIC or FETCHING_ATOMIC; steps 2 to 10 of SES-115 are passed. NACK: no memory for the
  // answer; nothing was executed.
  pds::Response execute(const pds::RequestView& view, const wire::SesRequest& request,
                        Context& context, Time now);

 private:
  const std::uint32_t payload_mtu_;
  const RequestChecks& checks_;
  ReadAnswers& answers_;
  TargetErrors& errors_;
  Counters& counters_;
  HostCopy* const host_copy_;
};

}  // namespace uet::ses
