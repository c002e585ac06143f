// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// FI_UET_ENGINE=process: stands below the FEP of a domain whose packets its engine sends. It
// tells sleepers that completions have come.
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "process/engine_link.h"
#include "uet/nic/nic.h"

namespace uet::prov {

class LinkNic final : public nic::Nic {
 public:
  explicit LinkNic(std::unique_ptr<EngineLink> link) : link_(std::move(link)) {}
  EngineLink& link() { return *link_; }

  // No packets come, and the FEP has none to send.
  std::size_t rx_burst(std::span<RxPacket>, Time) override { return 0; }
  std::size_t tx_burst(std::span<const Packet* const> in) override { return in.size(); }
  int wait_fd() const override { return link_->wait_fd(); }
  bool prepare_wait() override { return link_->prepare_wait(); }
  void learn_further(const FepAddress& first, std::span<const FabricAddress> further) override {
    link_->requests().learn_further(first, further);
  }
  void watch_refusals() override { link_->requests().ask(request_of(Request::WatchRefusals)); }
  std::optional<FepAddress> take_refusal() override { return link_->contexts().take_refusal(); }
  const nic::NicCaps& caps() const override { return link_->caps(); }
  FepAddress local_address() const override { return link_->local_address(); }

 private:
  std::unique_ptr<EngineLink> link_;
};

}  // namespace uet::prov
