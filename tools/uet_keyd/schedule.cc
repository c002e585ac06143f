// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "schedule.h"

#include <array>
#include <cstddef>

#include "tss/kdf.h"
#include "uet/wire/be.h"

namespace uet::keyd {

using std::chrono::seconds;

const char* reason_against(const Rotation& rotation) {
  constexpr seconds kShortest{8};
  constexpr seconds kLook{2};  // a provider looks at the file once a second
  if (rotation.every < kShortest) return "keys must last for 8 seconds or more";
  if (rotation.guard < seconds(1)) return "the guard time must be 1 second or more";
  if (rotation.guard + kLook > rotation.every / 2) {
    return "the guard time must end 2 seconds before half of the interval is over: the next key "
           "takes the place of the old one then";
  }
  return nullptr;
}

LiveKeys keys_at(seconds now, const Rotation& rotation) {
  const seconds inside = now % rotation.every;
  return {.active = static_cast<std::uint64_t>(now / rotation.every),
          .previous = inside < rotation.guard,
          .next = inside >= rotation.every / 2};
}

std::uint32_t sdi_of(std::uint32_t job) {
  const std::uint32_t low = job & tss::kMaxSdi;
  return low != 0 ? low : tss::kMaxSdi;
}

bool derive_key(const tss::Key& secret, const Job& job, std::uint64_t number, tss::Key& out) {
  std::array<std::byte, 8 + 4 + 4 + 8> fixed{};
  constexpr std::array<char, 8> kLabel = {'u', 'e', 't', '-', 'k', 'e', 'y', 'd'};
  for (std::size_t i = 0; i < kLabel.size(); ++i) fixed[i] = static_cast<std::byte>(kLabel[i]);
  wire::store(fixed.data() + 8, wire::be32(job.number));
  wire::store(fixed.data() + 12, wire::be32(job.user));
  wire::store(fixed.data() + 16, wire::be64(number));
  auto prf = tss::Cmac::make(secret);
  return prf.ok() && tss::expand(prf.value(), fixed, out.writable());
}

bool key_file_of(const tss::Key& secret, const Job& job, std::uint16_t epoch, const LiveKeys& keys,
                 const Rotation& rotation, tss::KeyFile& out) {
  tss::DomainEntry entry;
  entry.config.sdi = sdi_of(job.number);
  entry.config.guard = rotation.guard;
  const auto put = [&](std::uint64_t number) {
    tss::KeyEntry& key = entry.keys[number & 1].emplace();
    key.start.epoch = epoch;
    return derive_key(secret, job, number, key.material.key);
  };
  if (!put(keys.active) || (keys.previous && !put(keys.active - 1)) ||
      (keys.next && !put(keys.active + 1))) {
    return false;
  }
  entry.active = (keys.active & 1) != 0;
  out.domains.assign(1, entry);
  return true;
}

}  // namespace uet::keyd
