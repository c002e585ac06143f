// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "tss/job_of.h"

#include "uet/wire/be.h"
#include "uet/wire/pds.h"
#include "uet/wire/ses.h"

namespace uet::tss {
namespace {

bool carries_request(wire::PdsType type) {
  switch (type) {
    case wire::PdsType::RudReq:
    case wire::PdsType::RodReq:
    case wire::PdsType::RudCcReq:
    case wire::PdsType::RodCcReq:
    case wire::PdsType::RudiReq:
    case wire::PdsType::UudReq:
      return true;
    default:
      return false;
  }
}

}  // namespace

// The three forms of a request begin with the same fields (WIRE 3.2 to 3.4).
std::optional<JobId> job_of(std::span<const std::byte> packet) {
  if (packet.size() < sizeof(wire::PdsPrologue)) return {};
  const auto& prologue = wire::load<wire::PdsPrologue>(packet);
  const auto type = static_cast<wire::PdsType>(wire::PdsPrologue::Type::get(prologue));
  const auto next = static_cast<wire::NextHdr>(wire::PdsPrologue::NextHdrField::get(prologue));
  if (!carries_request(type) || !wire::is_request(next)) return {};
  const std::size_t at = wire::pds_header_bytes(type);
  if (packet.size() < at + sizeof(wire::SesCommon)) return {};
  const auto& common = wire::load<wire::SesCommon>(packet.subspan(at));
  return JobId{static_cast<std::uint32_t>(wire::SesCommon::JobIdField::get(common))};
}

}  // namespace uet::tss
