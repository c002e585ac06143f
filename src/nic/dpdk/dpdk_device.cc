// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Packets to send are copied into mbufs, except registered memory, since nothing may refer to other
// memory when send returns. Packets that arrive are read in the mbufs of the driver.
#include "nic/dpdk_device.h"

#include <rte_mbuf.h>

#include <algorithm>
#include <bit>
#include <mutex>
#include <optional>
#include <string_view>

#include "nic/dpdk_driver.h"

namespace uet::nic {
namespace {

// Less is copied sooner than another segment is made.
constexpr std::uint32_t kLeastGathered = 1024;

std::optional<DpdkOptions> options_of_device(std::string_view options) {
  std::string rest;
  take_native(options, rest);
  return parse_dpdk_options(rest);
}

Error explain_options(std::string_view options, std::string& message) {
  message = "FI_UET_NIC=dpdk" + (options.empty() ? "" : ":" + std::string(options)) +
            ": a device is wanted: dpdk:net_af_packet, "
            "dpdk:net_memif,role=server|client,id=N,socket=PATH, another net_... driver with its "
            "arguments, or dpdk:PCI-ADDRESS";
  return Error::Invalid;
}

}  // namespace

Result<std::uint32_t> DpdkDevice::ip_mtu(const NicConfig& config, const Interface& interface,
                                         std::string& message) {
  const auto carried = FramedNic::interface_mtu(config, interface, message);
  if (!carried) return carried;
  const auto parsed = options_of_device(config.options);
  if (!parsed) return explain_options(config.options, message);
  return std::min(carried.value(), parsed->driver.most_frame_bytes - kEthernetBytes);
}

FramedNic::KernelSees DpdkDevice::kernel_sees(const NicConfig& config) {
  const auto options = options_of_device(config.options);
  const bool taken = options && (options->driver.xdp_program || options->driver.fed_by_rule);
  return taken ? FramedNic::KernelSees::TheRest : FramedNic::KernelSees::Copies;
}

Result<std::unique_ptr<FrameDevice>> DpdkDevice::open(const FrameDeviceRequest& request,
                                                      std::string& message) {
  const auto options = parse_dpdk_options(request.options);
  if (!options) return explain_options(request.options, message);
  auto port = DpdkPort::open(request, *options, message);
  if (!port) return port.error();
  std::unique_ptr<DpdkDevice> device(new DpdkDevice(std::move(port).value()));
  if (!device->port_->join(request.self, request.format, device->inbox_, message)) {
    return Error::NotSupported;
  }
  return std::unique_ptr<FrameDevice>(std::move(device));
}

DpdkDevice::~DpdkDevice() {
  if (port_->usable()) {
    give_back();
    if (inbox_ != nullptr) port_->leave(inbox_);
  }
  DpdkPort::close(std::move(port_));
}

void DpdkDevice::give_back() {
  if (lent_count_ > 0) rte_pktmbuf_free_bulk(lent_.data(), static_cast<unsigned>(lent_count_));
  lent_count_ = 0;
}

std::size_t DpdkDevice::receive(std::span<ArrivedFrame> out) {
  if (!port_->usable()) return 0;
  give_back();
  const auto held = port_->lock_of_peer();
  lent_count_ = port_->receive(*inbox_, std::span(lent_).first(std::min(out.size(), lent_.size())));
  std::size_t filled = 0;
  for (std::size_t i = 0; i < lent_count_; ++i) {
    const rte_mbuf& mbuf = *lent_[i];
    if (mbuf.nb_segs > 1) {
      ++counters_.receive_truncated;
      continue;
    }
    ArrivedFrame& arrived = out[filled++];
    arrived.bytes = {rte_pktmbuf_mtod(&mbuf, const std::byte*), mbuf.data_len};
    arrived.arrived = Time{};
  }
  return filled;
}

// False if there is no memory for a further segment.
bool DpdkDevice::fill(rte_mbuf* packet, const FrameToSend& frame) {
  rte_mbuf* last = packet;
  const auto copy = [&](std::span<const std::byte> bytes) {
    auto* const end = rte_pktmbuf_mtod_offset(last, std::byte*, last->data_len);
    std::copy(bytes.begin(), bytes.end(), end);
    last->data_len = static_cast<std::uint16_t>(last->data_len + bytes.size());
  };
  const auto chain = [&](rte_mbuf* segment) {
    last->next = segment;
    last = segment;
    ++packet->nb_segs;
  };
  DpdkRegions* const regions = frame.payload_stays ? port_->regions() : nullptr;
  bool copies = true;  // `last` has space to copy into
  copy(frame.headers);
  for (const Slice& piece : frame.pieces) {
    rte_mbuf* const segment =
        regions != nullptr && piece.length >= kLeastGathered ? regions->refer_to(piece) : nullptr;
    if (segment != nullptr) {
      chain(segment);
      copies = false;
    } else if (piece.length > 0) {
      if (!copies) {
        rte_mbuf* const further = rte_pktmbuf_alloc(port_->pool_to_send());
        if (further == nullptr) return false;
        chain(further);
        copies = true;
      }
      copy({piece.data, piece.length});
    }
  }
  packet->pkt_len = frame.length;
  return true;
}

std::uint64_t DpdkDevice::register_memory(std::span<const std::byte> memory) {
  const bool worth =
      port_->usable() && port_->regions() != nullptr && memory.size() >= kLeastGathered;
  return worth ? port_->regions()->add(memory) : 0;
}

void DpdkDevice::forget_memory(std::uint64_t id) {
  if (port_->usable() && port_->regions() != nullptr) port_->forget_memory(id);
}

// Returns how many the port has taken. The first `control` ones go to the control queue.
std::size_t DpdkDevice::hand_over(std::span<rte_mbuf*> packets, std::size_t control) {
  const std::size_t sent = port_->send(*inbox_, packets, control);
  const auto rest = packets.subspan(sent);
  if (!rest.empty()) rte_pktmbuf_free_bulk(rest.data(), static_cast<unsigned>(rest.size()));
  return sent;
}

static_assert(kTxBurst <= 64);

std::size_t DpdkDevice::send(std::span<const FrameToSend> in) {
  if (!port_->usable()) return in.size();
  const auto held = port_->lock_of_peer();
  if (port_->peer() != nullptr) {
    const DpdkPeer::ToSend fate = port_->peer()->to_send();
    if (fate == DpdkPeer::ToSend::Waits) return 0;
    if (fate == DpdkPeer::ToSend::IsDropped) {
      counters_.packets_dropped += in.size();
      return in.size();
    }
  }
  std::array<rte_mbuf*, kTxBurst> mbufs;
  const std::size_t wished = std::min(in.size(), mbufs.size());
  if (rte_pktmbuf_alloc_bulk(port_->pool_to_send(), mbufs.data(), static_cast<unsigned>(wished)) !=
      0) {
    return 0;
  }
  std::size_t count = 0;
  std::uint64_t gathered = 0;  // a bit for each
  while (count < wished && fill(mbufs[count], in[count])) {
    gathered |= std::uint64_t{mbufs[count]->nb_segs > 1} << count;
    ++count;
  }
  if (count < wished) {
    rte_pktmbuf_free_bulk(mbufs.data() + count, static_cast<unsigned>(wished - count));
  }
  const std::size_t control = port_->has_control_queue() ? count_control(in.first(count)) : 0;
  const std::size_t sent = hand_over(std::span(mbufs).first(count), control);
  const std::uint64_t kept = sent < 64 ? gathered & ((std::uint64_t{1} << sent) - 1) : gathered;
  counters_.packets_gathered += static_cast<std::uint64_t>(std::popcount(kept));
  return sent;
}

NicCounters DpdkDevice::counters() const {
  return port_->usable() ? counters_ + port_->counters(*inbox_) : counters_;
}

}  // namespace uet::nic
