// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "ses/target_errors.h"

#include "ses/return_code.h"

namespace uet::ses {

using pds::Response;
using wire::ReturnCode;

Response TargetErrors::answer(const wire::SesRequest& request, ReturnCode code,
                              RiGeneration generation) {
  ++counters_.errors_answered;
  return explicit_response(request, code, wire::List::Expected, 0, generation, true);
}

Response TargetErrors::refuse(const pds::RequestView& view, const wire::SesRequest& request,
                              Context& context, ReturnCode code) {
  // Without it a later packet could be remembered as the first one, and its state would wait for
  // this one for ever.
  if (!messages_.refuse(view, request, context, code)) {
    return nack_response(pds::NackCode::NoSesMsgAvail);
  }
  return answer(request, code, context.generation.value);
}

Response TargetErrors::malformed() {
  ++counters_.malformed;
  return answer(wire::SesRequest{}, ReturnCode::Uncor);
}

}  // namespace uet::ses
