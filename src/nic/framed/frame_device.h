// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The duty of a back end that owns the frame: to move bursts of whole Ethernet frames over one
// interface. FramedNic does the rest (headers, addresses, next hops, peers on this host, waiting).
// A device reads no more of a frame than it needs to decide whether the frame is for this FEP.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "nic/interface.h"
#include "uet/base/result.h"
#include "uet/nic/nic.h"
#include "wire/frame.h"

namespace uet::nic {

// The header in front of IP, without a VLAN's tag.
inline constexpr std::uint32_t kEthernetBytes = 14;

// A frame from the Ethernet header on, without its check sequence; may end in padding. A view of
// the device's memory.
struct ArrivedFrame {
  std::span<const std::byte> bytes;
  Time arrived{};  // on the core's time line; Time{} = not known
};

// A frame to send: the headers and up to four pieces, in this order.
struct FrameToSend {
  std::span<const std::byte> headers;
  std::array<Slice, 4> pieces{};  // length 0 = unused
  std::uint32_t length = 0;       // of all together
  // Whose memory the second and third piece are; nullptr: the CPU's. As Packet::device.
  DeviceMemory* memory = nullptr;
  // The pieces may be read, where they lie in registered memory, after send has returned.
  bool payload_stays = false;
  bool control = false;  // as Packet::control
};

// How many frames at the beginning of a burst may take a queue of their own past the others, which
// takes `longest` bytes.
inline std::size_t count_control(std::span<const FrameToSend> burst,
                                 std::size_t longest = SIZE_MAX) {
  const auto other = std::find_if_not(burst.begin(), burst.end(), [&](const FrameToSend& frame) {
    return frame.control && frame.length <= longest;
  });
  return static_cast<std::size_t>(other - burst.begin());
}

struct FrameDeviceTraits {
  std::uint32_t max_frame_bytes = 0;       // without the check sequence; 0 = as the interface's MTU
  std::uint64_t receive_credit_bytes = 0;  // as in NicCaps
  std::string way;                         // for NicConfig::report_mode; may be empty
  bool reads_registered_memory = false;    // as in NicCaps
  bool reads_device_memory = false;        // as in Nic
  bool sends_by_kernel = true;             // as in NicCaps
  // Its frames bear a tag of this VLAN, though the interface takes care of none: max_frame_bytes
  // does not count it.
  std::optional<std::uint16_t> vlan;
};

class FrameDevice {
 public:
  virtual ~FrameDevice() = default;
  // As Nic::rx_burst: views are valid until the next receive. Frames that are not ours may come
  // too; they are thrown away above.
  virtual std::size_t receive(std::span<ArrivedFrame> out) = 0;
  // As Nic::tx_burst: takes a prefix, and refers to none of its memory afterwards, except
  // registered memory. Frames are never longer than max_frame_bytes.
  virtual std::size_t send(std::span<const FrameToSend> in) = 0;
  // As in Nic.
  virtual std::uint64_t register_memory(std::span<const std::byte>) { return 0; }
  virtual void forget_memory(std::uint64_t) {}
  virtual std::uint64_t register_device_memory(const DmabufRange&) { return 0; }
  // As in Nic. If there is no descriptor, FramedNic makes waiters sleep for short intervals.
  virtual int wait_fd() const { return -1; }
  virtual bool prepare_wait() { return false; }
  // As in Nic. It does not see packets that come through the kernel.
  virtual PdcGuard* guard() { return nullptr; }
  virtual const FrameDeviceTraits& traits() const = 0;
  // Only the counts that the device alone can know: receive_truncated, receive_overflows,
  // kernel_errors, packets_gathered, packets_dropped for lack of a carrier, and what the guard has
  // dropped.
  virtual NicCounters counters() const { return {}; }
};

// The parameters with which a device is opened.
struct FrameDeviceRequest {
  const Interface& interface;
  FepAddress self;                     // frames to this address and port are ours
  const wire::FrameFormat& format;     // which of the two forms, and the protocol number
  std::string_view options;            // of FI_UET_NIC, except the ones that FramedNic took
  std::uint32_t receive_buffer_bytes;  // wished
  std::uint32_t send_buffer_bytes;     // wished
  std::uint32_t sharers = 1;           // as NicConfig::sharers
};

// Errors as for Module::open.
using OpenFrameDevice =
    std::function<Result<std::unique_ptr<FrameDevice>>(const FrameDeviceRequest&, std::string&)>;

}  // namespace uet::nic
