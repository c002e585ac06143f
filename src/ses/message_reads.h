// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Reads of a message that is being sent: the part that its target has not kept (SES-57). They name
// a message of the initiator instead of a region and are answered out of the sender's memory,
// without a copy.
#pragma once

#include <cstdint>

#include "ses/initiator.h"
#include "ses/read_answers.h"
#include "ses/request_checks.h"
#include "ses/target_errors.h"
#include "uet/base/time.h"
#include "uet/pds/api.h"

namespace uet::ses {

class MessageReads {
 public:
  // The referenced objects outlive this one.
  MessageReads(std::uint32_t payload_mtu, const RequestChecks& checks, Initiator& initiator,
               ReadAnswers& answers, TargetErrors& errors)
      : payload_mtu_(payload_mtu),
        checks_(checks),
        initiator_(initiator),
        answers_(answers),
        errors_(errors) {}

  // The request is such a read.
  bool is_meant(const wire::SesRequest& request) const;
  // Answers it. NACK: no memory for the answer now.
  pds::Response serve(const pds::RequestView& view, const wire::SesRequest& request, Time now);
  // PDS needs the read answer no longer, of whatever request.
  void answer_done(ReadAnswer& answer);

 private:
  const std::uint32_t payload_mtu_;
  const RequestChecks& checks_;
  Initiator& initiator_;
  ReadAnswers& answers_;
  TargetErrors& errors_;
};

}  // namespace uet::ses
