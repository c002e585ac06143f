// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Seeded faults on the receive side. The same eight numbers are drawn for every arrival whatever
// happens to it, so that changing one rate does not change the fate that another rate decides.
#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>

#include "nic/middleware.h"

namespace uet::nic {
namespace {

constexpr std::string_view kAllowed =
    "allowed are loss=, dup=, reorder=, corrupt=, trim=, mark= (a rate such as 1% or 0.01, at most "
    "100% or 1) and seed= (a whole number), each once, separated by commas";

std::optional<double> parse_rate(std::string_view text) {
  const bool percent = text.ends_with('%');
  if (percent) text.remove_suffix(1);
  double rate = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), rate);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  if (percent) rate /= 100;
  if (!(rate >= 0 && rate <= 1)) return std::nullopt;
  return rate;
}

std::optional<std::uint64_t> parse_seed(std::string_view text) {
  std::uint64_t seed = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seed);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return seed;
}

constexpr std::array<std::string_view, 7> kKeys = {"loss", "dup",  "reorder", "corrupt",
                                                   "trim", "mark", "seed"};

// Reads one "key=value" into `spec`; false if the key is not in kKeys or the value is invalid.
bool parse_item(std::string_view item, FaultSpec& spec, std::array<bool, kKeys.size()>& seen) {
  const std::size_t equals = item.find('=');
  if (equals == std::string_view::npos) return false;
  const std::string_view value = item.substr(equals + 1);
  const auto key = std::find(kKeys.begin(), kKeys.end(), item.substr(0, equals));
  if (key == kKeys.end()) return false;
  const auto index = static_cast<std::size_t>(key - kKeys.begin());
  if (std::exchange(seen[index], true)) return false;
  if (*key == "seed") {
    const auto seed = parse_seed(value);
    spec.seed = seed.value_or(0);
    return seed.has_value();
  }
  const std::array<double*, kKeys.size() - 1> rates = {
      &spec.loss, &spec.duplicate, &spec.reorder, &spec.corrupt, &spec.trim, &spec.mark};
  const auto rate = parse_rate(value);
  *rates[index] = rate.value_or(0);
  return rate.has_value();
}

}  // namespace

Result<FaultSpec> parse_fault_spec(std::string_view text, std::string& message) {
  FaultSpec spec;
  std::array<bool, kKeys.size()> seen{};
  while (true) {
    const std::size_t comma = text.find(',');
    const std::string_view item = text.substr(0, comma);
    if (!parse_item(item, spec, seen)) {
      message = "bad fault '" + std::string(item) + "': " + std::string(kAllowed);
      return Error::Invalid;
    }
    if (comma == std::string_view::npos) return spec;
    text.remove_prefix(comma + 1);
  }
}

FaultNic::FaultNic(std::unique_ptr<Nic> inner_nic, const FaultSpec& spec,
                   const FaultSurroundings& surroundings)
    : Middleware(std::move(inner_nic)),
      spec_(spec),
      surroundings_(surroundings),
      rng_(spec.seed),
      storage_(std::make_unique_for_overwrite<std::byte[]>(kHeld * kMaxDatagramBytes)) {
  if (spec.corrupt == 0 || !surroundings.crc) return;
  corrupted_ = std::make_unique_for_overwrite<std::byte[]>(kRxBurst * kMaxDatagramBytes);
}

std::size_t FaultNic::rx_burst(std::span<RxPacket> out, Time now) {
  for (Place& place : places_) {
    if (places_used_ == 0) break;
    if (place.state != State::Lent) continue;
    place.state = State::Free;
    --places_used_;
  }
  std::size_t filled = release_due(out, now);
  const std::size_t room = std::min(out.size() - filled, arrived_.size());
  if (room == 0) return filled;
  const std::size_t count = inner().rx_burst(std::span(arrived_).first(room), now);
  for (std::size_t i = 0; i < count; ++i) {
    if (keep(arrived_[i], i, now)) out[filled++] = arrived_[i];
    // Each packet that still waits in arrived_ may need its place in `out`.
    const std::size_t spare = out.size() - filled - (count - i - 1);
    filled += release_due(out.subspan(filled, spare), now);
  }
  return filled;
}

// Decides the fate of an arrival; true if it is delivered now.
bool FaultNic::keep(RxPacket& packet, std::size_t index, Time now) {
  const bool loss = rng_.chance(spec_.loss);
  const bool corrupt = rng_.chance(spec_.corrupt);
  const bool duplicate = rng_.chance(spec_.duplicate);
  const bool reorder = rng_.chance(spec_.reorder);
  const std::uint64_t delay = rng_.between(1, 8);
  const bool cut = rng_.chance(spec_.trim);
  const std::uint64_t detail = rng_.next();
  const bool congested = rng_.chance(spec_.mark);
  ++fault_counters_.seen;
  const bool broken = corrupt && corrupted_ == nullptr;
  if (loss || broken) {
    ++(loss ? fault_counters_.lost : fault_counters_.corrupted);
    if (witness_) {
      witness_(packet, loss ? "lost by fault injection" : "corrupted by fault injection");
    }
    return false;
  }
  if (cut) trim(packet, detail % 4 == 0);
  if (congested) mark(packet);
  if (corrupt) flip_bit(packet, index, detail);
  ++arrivals_;
  if (duplicate && hold(packet, delay, now)) ++fault_counters_.duplicated;
  if (!reorder || !hold(packet, delay, now)) return true;
  ++fault_counters_.reordered;
  return false;
}

void FaultNic::flip_bit(RxPacket& packet, std::size_t index, std::uint64_t which) {
  if (packet.bytes.empty() || packet.bytes.size() > kMaxDatagramBytes) return;
  std::byte* copy = corrupted_.get() + index * kMaxDatagramBytes;
  std::copy(packet.bytes.begin(), packet.bytes.end(), copy);
  const std::uint64_t bit = which % (packet.bytes.size() * 8);
  copy[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
  packet.bytes = {copy, packet.bytes.size()};
  ++fault_counters_.corrupted;
}

void FaultNic::trim(RxPacket& packet, bool last_hop) {
  if (packet.dscp != surroundings_.dscp_trimmable || packet.bytes.size() <= kTrimmedBytes) return;
  const auto& marks = surroundings_.marks;
  packet.trimmed = true;
  packet.trimmed_last_hop = last_hop && marks.trimmed_last_hop.has_value();
  packet.dscp = packet.trimmed_last_hop ? *marks.trimmed_last_hop : marks.trimmed.value_or(0);
  packet.bytes = packet.bytes.first(kTrimmedBytes);
  ++fault_counters_.trimmed;
}

void FaultNic::mark(RxPacket& packet) {
  if (packet.ecn != Ecn::Ect0 && packet.ecn != Ecn::Ect1) return;
  packet.ecn = Ecn::Ce;
  ++fault_counters_.marked;
}

// Keeps a copy that is due after `delay` more packets; false if there is no place.
bool FaultNic::hold(const RxPacket& packet, std::uint64_t delay, Time now) {
  if (packet.bytes.size() > kMaxDatagramBytes) return false;
  const auto place = std::find_if(places_.begin(), places_.end(),
                                  [](const Place& p) { return p.state == State::Free; });
  if (place == places_.end()) return false;
  std::byte* copy =
      storage_.get() + static_cast<std::size_t>(place - places_.begin()) * kMaxDatagramBytes;
  std::copy(packet.bytes.begin(), packet.bytes.end(), copy);
  place->packet = packet;
  place->packet.bytes = {copy, packet.bytes.size()};
  place->state = State::Held;
  place->release_after = arrivals_ + delay;
  place->release_at = now + kLongestHold;
  ++places_used_;
  return true;
}

bool FaultNic::due(const Place& place, Time now) const {
  return place.state == State::Held &&
         (place.release_after <= arrivals_ || place.release_at <= now);
}

std::size_t FaultNic::release_due(std::span<RxPacket> out, Time now) {
  std::size_t filled = 0;
  if (places_used_ == 0) return 0;
  for (Place& place : places_) {
    if (filled == out.size()) break;
    if (!due(place, now)) continue;
    out[filled++] = place.packet;
    place.state = State::Lent;
  }
  return filled;
}

Time FaultNic::next_deadline() const {
  Time next = Middleware::next_deadline();
  if (places_used_ == 0) return next;
  for (const Place& place : places_) {
    if (place.state != State::Held) continue;
    next = std::min(next, place.release_after <= arrivals_ ? Time{} : place.release_at);
  }
  return next;
}

}  // namespace uet::nic
