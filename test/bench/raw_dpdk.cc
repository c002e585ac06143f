// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A port with a queue in each direction. EAL, memory and the driver's arguments are as for uet.
#include <rte_dev.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include <algorithm>
#include <cstdio>

#include "nic/dpdk_driver.h"
#include "nic/dpdk_eal.h"
#include "nic/dpdk_pool.h"
#include "raw_frame.h"

namespace uet::bench {
namespace {

constexpr std::uint16_t kDescriptors = 512;
constexpr std::uint32_t kPackets = 2048;
constexpr std::uint32_t kEthernetBytes = 14;

class RawDpdk final : public RawWire {
 public:
  explicit RawDpdk(const RawFrame& frame) : frame_(frame) {}
  ~RawDpdk() override {
    rte_eth_dev_stop(port_);
    rte_eth_dev_close(port_);
  }

  bool open(const std::string& name, std::uint32_t data_bytes) {
    if (rte_eth_dev_get_port_by_name(name.c_str(), &port_) != 0) return false;
    in_ = nic::make_dpdk_pool("raw_rx", kPackets, data_bytes, SOCKET_ID_ANY);
    out_ = nic::make_dpdk_pool("raw_tx", kPackets, data_bytes, SOCKET_ID_ANY);
    const rte_eth_conf conf{};
    return in_ != nullptr && out_ != nullptr && rte_eth_dev_configure(port_, 1, 1, &conf) == 0 &&
           rte_eth_rx_queue_setup(port_, 0, kDescriptors, 0, nullptr, in_.get()) == 0 &&
           rte_eth_tx_queue_setup(port_, 0, kDescriptors, 0, nullptr) == 0 &&
           rte_eth_dev_start(port_) == 0;
  }

  std::size_t send(std::span<const RawMessage> messages, bool with_payload) override {
    std::array<rte_mbuf*, kRawBurst> packets;
    const auto count = static_cast<std::uint16_t>(std::min(messages.size(), packets.size()));
    if (rte_pktmbuf_alloc_bulk(out_.get(), packets.data(), count) != 0) return 0;
    const auto bytes = static_cast<std::uint16_t>(frame_.bytes(with_payload));
    for (std::size_t i = 0; i < count; ++i) {
      auto* const to = reinterpret_cast<std::byte*>(rte_pktmbuf_append(packets[i], bytes));
      frame_.write(to, messages[i], with_payload);
    }
    const std::uint16_t sent = rte_eth_tx_burst(port_, 0, packets.data(), count);
    rte_pktmbuf_free_bulk(packets.data() + sent, static_cast<unsigned>(count - sent));
    return sent;
  }

  std::size_t receive(std::span<RawMessage> out) override {
    std::array<rte_mbuf*, kRawBurst> packets;
    const auto room = static_cast<std::uint16_t>(std::min(out.size(), packets.size()));
    const std::uint16_t count = rte_eth_rx_burst(port_, 0, packets.data(), room);
    std::size_t filled = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const rte_mbuf& packet = *packets[i];
      const auto* const begin = rte_pktmbuf_mtod(&packet, const std::byte*);
      if (frame_.read({begin, packet.data_len}, out[filled])) ++filled;
    }
    rte_pktmbuf_free_bulk(packets.data(), count);
    return filled;
  }

 private:
  RawFrame frame_;
  std::uint16_t port_ = 0;
  nic::DpdkPool in_;
  nic::DpdkPool out_;
};

}  // namespace

std::unique_ptr<RawWire> open_raw_dpdk(const RawChoice& choice) {
  const std::string text = choice.nic.substr(choice.nic.find(':') + 1);  // options refer to it
  const auto options = nic::parse_dpdk_options(text);
  const auto frame = RawFrame::open(choice);
  std::string message = choice.nic + " is no virtual device of DPDK";
  std::unique_ptr<RawDpdk> wire;
  if (frame && options && nic::start_eal({}, message)) {
    nic::Interface interface;
    interface.name = choice.interface;
    const auto most = static_cast<std::uint32_t>(frame->bytes(true)) + kEthernetBytes;
    const std::string name = std::string(options->device) + "_raw";
    const std::string arguments = nic::device_arguments(*options, interface, most, {});
    wire = std::make_unique<RawDpdk>(*frame);
    if (rte_eal_hotplug_add("vdev", name.c_str(), arguments.c_str()) == 0 &&
        wire->open(name, nic::mbuf_data_bytes(options->driver, most))) {
      return wire;
    }
    message = "the port does not start: " + nic::take_last_log_line();
  }
  std::fprintf(stderr, "%s\n", message.c_str());
  return nullptr;
}

}  // namespace uet::bench
