// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A hostile member of a secure domain (TSS-71): its packets are sealed with a valid key, because
// otherwise they would never reach the code behind the ICV check. Some are spoiled after that, or
// not sealed at all.
#include <cstddef>
#include <cstdint>
#include <memory>

#include "fep_rig.h"
#include "tss/sd_table.h"
#include "tss/secure_nic.h"

namespace {

using namespace uet;  // a test program of one file

constexpr std::uint32_t kSdi = 5;
constexpr std::uint8_t kSpoiled = 0x20;   // a bit is flipped behind the seal
constexpr std::uint8_t kInClear = 0x40;   // the packet is not sealed
constexpr std::uint8_t kOtherKey = 0x80;  // sealed under the key that is replaced

tss::Key key_of(std::uint8_t fill) {
  tss::Key key;
  for (std::byte& byte : key.writable()) byte = std::byte{fill};
  return key;
}

// Two keys are live.
void fill(tss::SdTable& table, bool active) {
  tss::DomainConfig config;
  config.sdi = kSdi;
  fuzz::require(table.add(config).ok());
  tss::SecureDomain& domain = *table.find(kSdi);
  fuzz::require(domain.install(false, key_of(1), {}).ok());
  fuzz::require(domain.install(true, key_of(2), {}).ok());
  fuzz::require(domain.activate(active, fuzz::kBegin).ok());
}

class Member {
 public:
  Member() {
    fill(first_, false);
    fill(second_, true);
  }
  void finish(std::vector<std::byte>& packet, std::uint8_t control) {
    if ((control & kInClear) != 0 || packet.empty()) return;
    const Slice text{packet.data(), static_cast<std::uint32_t>(packet.size())};
    std::vector<std::byte> sealed(packet.size() + tss::kMaxHeaderBytes + tss::kIcvBytes);
    tss::SdTable& table = (control & kOtherKey) != 0 ? second_ : first_;
    const auto outer = tss::udp_fields(fuzz::address_of(2), fuzz::address_of(1));
    const tss::SealResult result = table.seal(kSdi, outer, {&text, 1}, sealed);
    fuzz::require(result.verdict == tss::SealVerdict::Sealed);
    sealed.resize(result.bytes);
    if ((control & kSpoiled) == 0) {
      ++whole_;
    } else {
      const std::size_t at = std::to_integer<std::size_t>(packet[0]) % sealed.size();
      sealed[at] ^= std::byte{0x10};
    }
    packet = std::move(sealed);
  }
  // Packets that were sealed and not spoiled.
  std::uint64_t whole() const { return whole_; }

 private:
  std::uint64_t whole_ = 0;
  tss::SdTable first_;
  tss::SdTable second_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::OnePacketNic nic;
  tss::SdTable table;
  fill(table, false);
  tss::SecureNic secure(nic, table, kSdi, false, wire::kDefaultTrimMarks);
  Member member;
  fuzz::talk(nic, secure, {data, size}, [&](std::vector<std::byte>& packet, std::uint8_t control) {
    member.finish(packet, control);
  });
  fuzz::require(table.find(kSdi)->counters().in_auth == member.whole());
  return 0;
}
