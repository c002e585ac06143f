// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// RMA at the target: checks, registered memory, completions. RUDI (SES-137 to 139) is RMA whose
// packets may be executed more than once, each by itself: the target keeps no state of them and
// counts none, because it cannot recognise a copy.
#pragma once

#include <cstdint>

#include "ri/mr_table.h"
#include "ses/arriving.h"
#include "ses/context.h"
#include "ses/counters.h"
#include "ses/message.h"
#include "ses/parameters.h"
#include "ses/read_answers.h"
#include "ses/receiver.h"
#include "ses/request_checks.h"
#include "ses/target_errors.h"
#include "uet/base/device_memory.h"
#include "uet/base/time.h"
#include "uet/pds/api.h"

namespace uet::ses {

class RmaTarget {
 public:
  // The referenced objects outlive this one.
  RmaTarget(const Parameters& parameters, const RequestChecks& checks, ArrivingMessages& messages,
            Receiver& receiver, ReadAnswers& answers, TargetErrors& errors, Counters& counters);

  // The first packet that arrives of a write; steps 2 to 10 of SES-115 are passed.
  pds::Response write(const pds::RequestView& view, const wire::SesRequest& request,
                      Context& context);
  // A packet of a write that has passed all checks. `memory`: where byte 0 of the message lies.
  // With immediate data the last byte is taken only when its completion can be taken too (SES-79),
  // and the receive is there that the data need (ContextConfig::data_takes_receive).
  pds::Response place(const wire::SesRequest& request, RxMessage& message,
                      const ri::MrAccess& memory);
  // Executes a read at once, so that a write that follows cannot change what is read (SES-126). Few
  // data ride in the ACK, others in the return direction; the response then only accepts the
  // request (PDS-195).
  pds::Response read(const pds::RequestView& view, const wire::SesRequest& request,
                     Context& context, Time now);
  // A packet of mode RUDI: all checks; nothing is remembered of what is refused.
  pds::Response rudi(const pds::RequestView& view, const wire::SesRequest& request, Time now);

 private:
  void complete_write(RxMessage& message, bool has_data, PostedReceive* receive,
                      const ri::MrAccess& memory);

  const std::uint32_t payload_mtu_;
  HostCopy* const host_copy_;
  const RequestChecks& checks_;
  ArrivingMessages& messages_;
  Receiver& receiver_;
  ReadAnswers& answers_;
  TargetErrors& errors_;
  Counters& counters_;
};

}  // namespace uet::ses
