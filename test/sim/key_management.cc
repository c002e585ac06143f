// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "sim/key_management.h"

#include <array>
#include <utility>

namespace uet::sim {
namespace {

constexpr std::uint32_t kSdi = 0x5D1;
// A new process takes an epoch above all that the one before may have used (TSS-37).
constexpr std::uint16_t kEpochsOfAProcess = 1024;

}  // namespace

KeyManagement::KeyManagement(SimWorld& world, const SecurityPlan& plan, std::uint64_t seed,
                             std::function<void(const std::string&)> broken)
    : world_(world), plan_(plan), rng_(seed), broken_(std::move(broken)), current_(draw_key()) {}

tss::Key KeyManagement::draw_key() {
  std::array<std::byte, tss::kKeyBytes> bytes;
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(rng_.next());
  return tss::Key(std::span<const std::byte, tss::kKeyBytes>(bytes));
}

void KeyManagement::check(const Result<void>& result, const char* step) {
  if (!result.ok()) broken_(std::string("a member refuses to ") + step);
}

NodeSecurity KeyManagement::security_of(int number, std::uint16_t incarnation) const {
  NodeSecurity security;
  security.domain.sdi = kSdi;
  security.domain.mode = plan_.mode;
  if (plan_.ssi) security.domain.ssi = 0x100 + static_cast<std::uint32_t>(number);
  security.domain.rekey = plan_.rekey;
  security.domain.check_epoch = plan_.check_epoch;
  security.domain.max_epoch_age = 2 * kEpochsOfAProcess;
  security.domain.guard = plan_.guard;
  const auto epoch = static_cast<std::uint16_t>(epoch_ + incarnation * kEpochsOfAProcess);
  security.keys.push_back({.an = an_, .key = current_, .epoch = epoch});
  if (next_) security.keys.push_back({.an = !an_, .key = *next_, .epoch = epoch});
  return security;
}

void KeyManagement::each(std::function<void(int node)> step) {
  for (int node = 0; node < world_.node_count(); ++node) {
    const auto most = static_cast<std::uint64_t>(plan_.skew.count()) + 1;
    world_.after(Duration(static_cast<std::int64_t>(rng_.below(most))), [this, node, step] {
      if (world_.alive(node)) step(node);
    });
  }
}

void KeyManagement::start() {
  Duration first{0};
  if (plan_.misconfigured >= 0) {
    world_.after(plan_.wrong_from, [this] { confuse(); });
    first = plan_.wrong_from + plan_.wrong_for + plan_.guard;
  }
  if (plan_.rotation > Duration(0)) {
    world_.after(first + plan_.rotation, [this] { rotate(); });
  }
  if (plan_.epochs > Duration(0)) world_.after(plan_.epochs, [this] { advance_epochs(); });
}

// TSS-53, TSS-54: all have the key before the first one uses it.
void KeyManagement::rotate() {
  next_ = draw_key();
  const bool an = !an_;
  each([this, an](int node) {
    SecuredNic& nic = *world_.secured(node);
    nic.expire(world_.now());
    check(nic.install(an, *next_, 0), "install the next key");
    // With the second new key, the guard time of the last key older than the node has ended.
    if (++keys_seen_[node] == 2) world_.fep(node).key_changed(0);
  });
  world_.after(plan_.skew + Duration(1), [this, an] {
    current_ = *std::exchange(next_, {});
    an_ = an;
    epoch_ = 0;
    ++rotations_;
    each([this, an](int node) {
      check(world_.secured(node)->domain().activate(an, world_.now()), "activate the next key");
    });
  });
  world_.after(plan_.rotation, [this] { rotate(); });
}

void KeyManagement::advance_epochs() {
  if (next_) return world_.after(plan_.skew + Duration(1), [this] { advance_epochs(); });
  ++epoch_;
  each([this](int node) {
    tss::SecureDomain& domain = world_.secured(node)->domain();
    const bool an = *domain.active();
    const auto newer = static_cast<std::uint16_t>(domain.position(an)->epoch + 1);
    check(domain.set_epoch(an, newer), "take a newer epoch");
  });
  if (epoch_ + 1 < kEpochsOfAProcess) {
    world_.after(plan_.epochs, [this] { advance_epochs(); });
  }
}

// The packets of the node are noise to the others; it still opens theirs.
void KeyManagement::confuse() {
  const int node = plan_.misconfigured;
  if (!world_.alive(node)) return;
  SecuredNic& nic = *world_.secured(node);
  check(nic.install(!an_, draw_key(), 0), "install a wrong key");
  check(nic.domain().activate(!an_, world_.now()), "use a wrong key");
  world_.after(plan_.wrong_for, [this, node] {
    if (!world_.alive(node)) return;
    check(world_.secured(node)->domain().activate(an_, world_.now()), "use the right key again");
  });
}

}  // namespace uet::sim
