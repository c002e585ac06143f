// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The error answers of a target: counted, and remembered for the rest of a message (SES-35).
#pragma once

#include "ses/arriving.h"
#include "ses/context.h"
#include "ses/counters.h"
#include "uet/pds/api.h"
#include "uet/wire/ses.h"

namespace uet::ses {

class TargetErrors {
 public:
  // The referenced objects outlive this one.
  TargetErrors(ArrivingMessages& messages, Counters& counters)
      : messages_(messages), counters_(counters) {}

  // The answer `code` to this request. `generation`: of the context, if one was found.
  pds::Response answer(const wire::SesRequest& request, wire::ReturnCode code,
                       RiGeneration generation = {});
  // The same answer to the first packet of a message, whose later packets get it, too; a NACK if no
  // state is free to remember it in.
  pds::Response refuse(const pds::RequestView& view, const wire::SesRequest& request,
                       Context& context, wire::ReturnCode code);
  // A packet that cannot be decoded (SES-115 step 1).
  pds::Response malformed();

 private:
  ArrivingMessages& messages_;
  Counters& counters_;
};

}  // namespace uet::ses
