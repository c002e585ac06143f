// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Which path (entropy value) a packet takes: the schemes of CMS 5.2. ROD always keeps one value
// (PDS-161, CMS-401). PDS derives the feedback for a path from ACKs and losses (CMS-20).
//
// Entropy values come from the dynamic ports 49152 to 65535 (CMS-404) and are therefore never 0.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "cms/ccc.h"
#include "cms/path_health.h"
#include "cms/recycled_paths.h"
#include "uet/base/time.h"

namespace uet::cms {

// The names of the schemes in options.
inline constexpr std::pair<std::string_view, PathPolicy> kPathPolicyNames[] = {
    {"single", PathPolicy::Single},
    {"oblivious", PathPolicy::Oblivious},
    {"round_robin", PathPolicy::RoundRobin},
    {"bitmap", PathPolicy::Bitmap},
    {"reps", PathPolicy::Reps},
    {"mixed", PathPolicy::Mixed}};

// Where packets can take several paths. The table "Path schemes" of netsim/README.md is the reason:
// it is the best or next to it in each line, faults and slow links included.
inline constexpr PathPolicy kDefaultPaths = PathPolicy::Mixed;

// CMS-20. Timeout: a loss that was inferred.
enum class PathFeedback : std::uint8_t { Good, Ecn, Nack, Timeout };

class PathSelector {
 public:
  static constexpr std::uint16_t kFirstEntropy = 49152;
  static constexpr std::uint16_t kEntropyValues = 16384;  // a power of two
  static constexpr std::uint16_t kMaxPaths = 1024;        // CMS-404
  static constexpr Duration kLeastFreeze = std::chrono::microseconds(100);

  // `single` forces one value whatever the policy says (CMS-416). Parameters::path_count is taken
  // within 1 to kMaxPaths.
  PathSelector(const Parameters& parameters, bool single, Rng& rng);

  // The entropy value of the next data packet. Up to `train` packets in a row get the same one if
  // they are asked for at the same time: that many can leave as one (CMS-700).
  std::uint16_t next(Rng& rng, Time now, std::uint32_t train = 1);
  // That of a packet that timed out: the value whose own answer came last, since it is known to
  // work there and back. As next() if none is.
  std::uint16_t next_answered(Rng& rng, Time now);
  // That of a packet whose fate teaches nothing: it uses up no recycled value.
  std::uint16_t next_for_control(Rng& rng);
  // Takes another value from now on if there is a single one, and it was taken `spacing` ago or
  // longer (CMS-401). True if so.
  bool reroute(Rng& rng, Time now, Duration spacing);
  // Is there any use in calling the three below?
  bool uses_feedback() const { return learnt_ != nullptr; }
  // The fate of a packet that took this value. Values that are not in the set are ignored.
  void on_feedback(std::uint16_t entropy, PathFeedback feedback, Time now);
  // A packet that took this value is reported for the first time, marked or not.
  void on_acknowledged(std::uint16_t entropy, Time now);
  // The ACK of a packet that took this value has come, by the same value (CMS-402). Other values
  // that it reports may work one way only.
  void on_answered(std::uint16_t entropy);

  std::uint16_t path_count() const { return count_; }
  bool frozen() const { return learnt_ != nullptr && learnt_->frozen_until.has_value(); }
  // Fills in the counters of paths if the scheme learns.
  void count(Counters& counters) const;
  // Paths that are banned at the moment, as far as they were looked at.
  std::size_t banned_count() const { return learnt_ ? learnt_->health.banned_count() : 0; }

 private:
  // The state of the schemes that learn.
  struct Learnt {
    Learnt(const Parameters& parameters, PathPolicy policy, std::uint16_t count);

    bool may_freeze;
    std::uint16_t current = 0;            // bitmap: where the walk stands
    std::vector<std::uint8_t> penalties;  // bitmap, mixed: one for each value
    RecycledPaths recycled;               // reps, mixed
    PathHealth health;
    std::array<std::uint8_t, 4> penalty_of;  // by PathFeedback
    std::uint8_t penalty_limit;
    std::uint32_t explore_after_freeze;
    std::uint32_t explore_left;        // reps: packets that still take random values
    std::uint64_t taken_recycled = 0;  // for count()
    std::uint64_t taken_random = 0;
    std::uint64_t freezes = 0;
    Duration freeze_time;
    std::optional<Time> frozen_until;
    std::optional<std::uint16_t> answered;  // of on_answered(), the last
  };

  std::uint16_t value(std::uint32_t index) const;
  std::optional<std::uint16_t> index_of(std::uint16_t entropy) const;
  std::uint16_t walk(Rng& rng);               // oblivious, round_robin
  std::uint16_t least_bad(Time now);          // bitmap
  std::uint16_t explore(Rng& rng) const;      // any of the set
  std::uint16_t explore(Rng& rng, Time now);  // any that is usable
  std::optional<std::uint16_t> recycled(Time now);
  std::uint16_t choose(Rng& rng, Time now);
  void penalise(std::uint16_t index, PathFeedback feedback);
  void forgive(std::uint16_t index);       // a packet of it came back unmarked
  std::uint16_t reps(Rng& rng, Time now);  // reps

  std::uint16_t begin_train(Rng& rng, Time now);

  PathPolicy policy_;
  std::uint16_t base_;       // where the values begin, 0 to kEntropyValues - 1
  std::uint16_t stride_;     // from one value to the next; odd, so that no value comes twice
  std::uint16_t count_;      // values in use; 1 = single path
  std::uint16_t start_ = 0;  // of this round
  std::uint16_t taken_ = 0;  // values used in this round
  std::uint16_t train_entropy_ = 0;  // of the train that began ...
  std::uint16_t train_packets_ = 0;  // ... and has so many packets now
  Time since_{};                     // the train began, or the single value was taken
  std::unique_ptr<Learnt> learnt_;
};

}  // namespace uet::cms
