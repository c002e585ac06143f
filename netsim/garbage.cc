// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "netsim/garbage.h"

#include "uet/wire/pds.h"

namespace uet::netsim {
namespace {

constexpr std::uint32_t kJumpUnits = 1 << 22;
constexpr std::uint32_t kUnitsMask = 0xFFFFFF;
constexpr std::uint16_t kLongServiceTime = 0xFFFE;  // 8.388 ms
constexpr std::uint8_t kMostPend = 127;

bool spoil(wire::AckHeader& ack, Garbage what) {
  const bool nscc = ack.cc_type == wire::CcType::Nscc;
  switch (what) {
    case Garbage::ReceivedBytes:
      ack.rcvd_bytes = (ack.rcvd_bytes + kJumpUnits) & kUnitsMask;
      return nscc;
    case Garbage::ServiceTime:
      ack.service_time = kLongServiceTime;
      return nscc;
    case Garbage::Pend:
      ack.rcv_cwnd_pend = kMostPend;
      return nscc;
    case Garbage::Credit:
      ack.credit = (ack.credit + kJumpUnits) & kUnitsMask;
      return ack.cc_type == wire::CcType::Credit;
    default:
      ack.ce = true;
      return true;
  }
}

}  // namespace

bool spoil(NetPacket& packet, Garbage what, Rng& rng) {
  if (what == Garbage::Any) what = static_cast<Garbage>(1 + rng.below(5));
  const std::span<std::byte> head = packet.head();
  wire::AckHeader ack;
  wire::ControlHeader control;
  if (wire::AckHeader::decode(head, ack)) {
    if (ack.type != wire::PdsType::AckCc || !spoil(ack, what)) return false;
    ack.encode(head.data());
    return true;
  }
  const bool credit = what == Garbage::Credit && wire::ControlHeader::decode(head, control) &&
                      control.ctl_type == wire::CpType::Credit;
  if (!credit) return false;
  control.payload = (control.payload + kJumpUnits) & kUnitsMask;
  control.encode(head.data());
  return true;
}

}  // namespace uet::netsim
