// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A back end of uet's without a protocol above.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "raw_wire.h"
#include "uet/nic/registry.h"

namespace uet::bench {
namespace {

static_assert(kRawBurst <= nic::kTxBurst && kRawBurst <= nic::kRxBurst);

class RawNic final : public RawWire {
 public:
  RawNic(std::unique_ptr<nic::Nic> nic, const RawChoice& choice)
      : nic_(std::move(nic)), peer_(choice.peer), payload_(choice.bytes, std::byte{0x5A}) {
    for (auto& packet : packets_) packet = std::make_unique<Packet>();
    region_ = nic_->register_memory(payload_);
  }
  ~RawNic() override {
    if (region_ != 0) nic_->forget_memory(region_);
  }

  std::size_t send(std::span<const RawMessage> messages, bool with_payload) override {
    std::array<const Packet*, kRawBurst> burst;
    const std::size_t count = std::min(messages.size(), burst.size());
    for (std::size_t i = 0; i < count; ++i) {
      Packet& packet = *packets_[i];
      packet.reset();
      write_raw(packet.append(kRawHeaderBytes), messages[i], 0);
      packet.to = {peer_, kRawPort};
      packet.payload_stays = true;
      const auto length = static_cast<std::uint32_t>(with_payload ? payload_.size() : 0);
      packet.payload[0] = {payload_.data(), length};
      burst[i] = &packet;
    }
    return nic_->tx_burst(std::span(burst).first(count));
  }

  std::size_t receive(std::span<RawMessage> out) override {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    const std::size_t count =
        nic_->rx_burst(arrived_, Time(std::chrono::duration_cast<Duration>(now)));
    std::size_t filled = 0;
    for (const RxPacket& packet : std::span(arrived_).first(count)) {
      if (packet.bytes.size() < kRawHeaderBytes) continue;
      std::memcpy(&out[filled++], packet.bytes.data(), sizeof(RawMessage));
    }
    return filled;
  }

 private:
  std::unique_ptr<nic::Nic> nic_;
  FabricAddress peer_;
  std::vector<std::byte> payload_;
  std::uint64_t region_ = 0;
  std::array<std::unique_ptr<Packet>, kRawBurst> packets_;
  std::array<RxPacket, kRawBurst> arrived_;
};

}  // namespace

std::unique_ptr<RawWire> open_raw_nic(const RawChoice& choice) {
  nic::NicConfig config;
  const char* const modules = std::getenv("UET_MODULES");
  config.modules = modules != nullptr ? modules : "";
  config.ip = choice.self;
  std::string message = choice.nic + " is no value of FI_UET_NIC";
  if (nic::set_back_end(config, choice.nic)) {
    auto opened = nic::open_nic(config, message);
    if (opened) return std::make_unique<RawNic>(std::move(opened).value(), choice);
  }
  std::fprintf(stderr, "%s\n", message.c_str());
  return nullptr;
}

}  // namespace uet::bench
