// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// May a request packet do what it asks for? The steps of SES-115 in their order, one list for each
// kind of request: resource index, key, rights, range. The steps themselves are the functions of
// return_code.h. Changes nothing.
#pragma once

#include <cstdint>

#include "ri/mr_table.h"
#include "ri/ri_table.h"
#include "ses/context.h"
#include "ses/message.h"
#include "ses/return_code.h"

namespace uet::ses {

class RequestChecks {
 public:
  using Request = wire::SesRequest;

  struct Addressed {
    wire::ReturnCode code = wire::ReturnCode::Ok;
    Context* context = nullptr;  // if the code is Ok
  };
  struct Permission {
    wire::ReturnCode code = wire::ReturnCode::Ok;
    ri::MrAccess memory;  // if the code is Ok: where byte 0 of the message lies
  };

  RequestChecks(std::uint32_t payload_mtu, ri::MrTable& regions, const ri::RiTable& contexts)
      : payload_mtu_(payload_mtu), regions_(regions), contexts_(contexts) {}

  // Step 1. Some initiators leave EOM out of a READ that is one packet (WIRE 3.12).
  bool decode(const pds::RequestView& view, Request& request) const;
  // The memory key that an RMA request names.
  Rkey key(const Request& request) const { return memory_key(request, regions_); }
  // Steps 3 and 4: the context that is addressed.
  Addressed address(const Request& request) const;

  // The first packet of a message, from step 11 on; steps 2 to 10 are passed.
  wire::ReturnCode send(const Request& request, const Context& context) const;
  Permission write(const Request& request, const Context& context) const;
  Permission read(const Request& request, const Context& context) const;
  Permission atomic(const Request& request, const Context& context,
                    const AtomicExtent& extent) const;
  // A packet of a message that has begun to arrive, from step 15 on.
  wire::ReturnCode later(const Request& request, const RxMessage& message) const;
  // The memory that a later packet of a write goes to: its region may have been closed (SES-140).
  Permission later_write(const Request& request, const Context& context) const {
    const ri::MrAccess memory = access(request, context, ri::kRemoteWrite, request.request_length);
    return {check_access(memory.verdict), memory};
  }

  // A request of mode RUDI to this context, all steps (SES-137).
  Permission rudi(const Request& request, const Context& context) const;
  // A datagram to this context; it has no generation (SES-77). False: it is dropped.
  bool datagram(const Request& request, const Context& context) const;

 private:
  // Of another job than the context's, if the context serves its own alone, only a job that a
  // region names may pass (SES-16, SES-17).
  ri::MrAccess access(const Request& request, const Context& context, std::uint8_t rights,
                      std::uint64_t length) const {
    const Rkey key = memory_key(request, regions_);
    if (check_job(context.config, request) != wire::ReturnCode::Ok) {
      const ri::MemoryRegion* region = regions_.find(key);
      if (region == nullptr || !region->job) return {ri::MrVerdict::BadJob};
    }
    const ri::ContextName through{context.config.pid_on_fep, context.config.resource_index};
    return regions_.check(key, request.job_id, through, rights, request.buffer_offset, length);
  }

  const std::uint32_t payload_mtu_;
  ri::MrTable& regions_;
  const ri::RiTable& contexts_;
};

}  // namespace uet::ses
