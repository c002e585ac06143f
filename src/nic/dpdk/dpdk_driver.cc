// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// From the drivers' documentation, and from what they were found to need.
#include "nic/dpdk_driver.h"

#include <linux/capability.h>

#include <algorithm>
#include <bit>

namespace uet::nic {
namespace {

// net_af_packet: what a frame of its ring holds beside the packet, its smallest and largest, and
// how many there are.
constexpr std::uint32_t kRingFrameHead = 96;
constexpr std::uint32_t kRingFrameLeast = 2048;
constexpr std::uint32_t kRingFrameMost = 16'384;
constexpr std::uint32_t kRingFrames = 512;

constexpr std::uint32_t kManyMbufs = 8191;

constexpr std::uint64_t right(unsigned number) { return std::uint64_t{1} << number; }

constexpr DpdkDriver kPacketRings{.name = "net_af_packet",
                                  .most_frame_bytes = kRingFrameMost - kRingFrameHead,
                                  .sends_by_kernel = true,
                                  .rights = right(CAP_NET_RAW)};
// It tells the kernel that its packets lie in the first (number x size) bytes of their memory,
// which gaps between them make wrong: what lies behind that is lost for good as soon as the driver
// has given it to the kernel, and after some thousand packets nothing arrives any more. Of a page
// the driver, DPDK and the kernel take 576 bytes.
constexpr DpdkDriver kXdp{.name = "net_af_xdp",
                          .most_frame_bytes = 4096 - 576,
                          .mbufs = kManyMbufs,
                          .own_pages = true,
                          .xdp_program = true,
                          .sends_by_kernel = true,
                          .rights = right(CAP_NET_RAW) | right(CAP_NET_ADMIN) | right(CAP_BPF)};
constexpr DpdkDriver kSharedMemory{.name = "net_memif", .to_one_peer = true};
// It sends no more than its MTU, and DPDK refuses an MTU above the longest frame that the driver
// claims to receive, which is 1522 bytes.
constexpr DpdkDriver kTap{.name = "net_tap",
                          .most_frame_bytes = 1514,
                          .sends_by_kernel = true,
                          .fed_by_rule = true,
                          .rights = right(CAP_NET_ADMIN)};

std::uint32_t ring_frame_bytes(std::uint32_t frame_bytes) {
  return std::max(kRingFrameLeast, std::bit_ceil(frame_bytes + kRingFrameHead));
}

std::optional<DpdkDriver> driver_of(std::string_view device) {
  for (const DpdkDriver& known : {kPacketRings, kSharedMemory, kXdp, kTap}) {
    if (device == known.name) return known;
  }
  if (device.starts_with("net_")) return DpdkDriver{.name = device};
  const bool pci = device.find(':') != std::string_view::npos &&
                   device.find_first_not_of("0123456789abcdefABCDEF:.") == std::string_view::npos;
  return pci ? std::optional(DpdkDriver{.mbufs = kManyMbufs}) : std::nullopt;
}

}  // namespace

std::string_view DpdkOptions::value_of(std::string_view name) const {
  for (std::string_view rest = arguments; !rest.empty();) {
    const std::string_view argument = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(argument.size() + 1, rest.size()));
    if (argument.starts_with(name) && argument.substr(name.size()).starts_with('=')) {
      return argument.substr(name.size() + 1);
    }
  }
  return {};
}

std::optional<DpdkOptions> parse_dpdk_options(std::string_view options) {
  DpdkOptions parsed;
  parsed.device = options.substr(0, options.find(','));
  parsed.arguments = options.substr(std::min(parsed.device.size() + 1, options.size()));
  const std::optional<DpdkDriver> driver = driver_of(parsed.device);
  if (!driver) return {};
  parsed.driver = *driver;
  return parsed;
}

std::string device_arguments(const DpdkOptions& options, const Interface& interface,
                             std::uint32_t frame_bytes, std::string_view xdp_program) {
  std::string text;
  const auto add = [&](const std::string& argument) {
    text += (text.empty() ? "" : ",") + argument;
  };
  if (options.driver.name == kPacketRings.name) {
    add("iface=" + interface.name);
    add("framesz=" + std::to_string(ring_frame_bytes(frame_bytes)) +
        ",blocksz=262144,framecnt=" + std::to_string(kRingFrames) + ",qdisc_bypass=1");
  }
  if (options.driver.name == kXdp.name) {
    add("iface=" + interface.name + ",xdp_prog=" + std::string(xdp_program));
  }
  if (options.driver.name == kSharedMemory.name) {
    if (options.value_of("bsize").empty()) {
      add("bsize=" + std::to_string(std::bit_ceil(frame_bytes)));
    }
    // A path reaches other name spaces; an abstract name the driver never gives free again.
    if (options.value_of("socket-abstract").empty()) add("socket-abstract=no");
  }
  if (!options.arguments.empty()) add(std::string(options.arguments));
  return text;
}

std::uint32_t mbuf_data_bytes(const DpdkDriver& driver, std::uint32_t frame_bytes) {
  // It wants what a frame of its ring could hold.
  return driver.name == kPacketRings.name ? ring_frame_bytes(frame_bytes) : frame_bytes;
}

}  // namespace uet::nic
