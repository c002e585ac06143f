// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "nic/adaptive_copy.h"

#include <algorithm>
#include <cstring>

#include "nic/clock.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace uet::nic {
namespace {

// Shorter pieces are stored: their few lines are not worth the reader's trip to memory.
constexpr std::size_t kLeastStreamed = HostCopy::kLeastBytes;
constexpr std::size_t kLine = 64;

#ifdef __SSE2__
constexpr bool kCanStream = true;

// Whole lines past the caches, the rest of the first and the last one as usual: part of a line
// would have to be read from memory first.
void stream(std::byte* to, const std::byte* from, std::size_t bytes) {
  const std::size_t lead = -reinterpret_cast<std::uintptr_t>(to) % kLine;
  std::memcpy(to, from, lead);
  std::size_t done = lead;
  for (; done + kLine <= bytes; done += kLine) {
    const auto* source = reinterpret_cast<const __m128i*>(from + done);
    auto* line = reinterpret_cast<__m128i*>(to + done);
    const __m128i first = _mm_loadu_si128(source);
    const __m128i second = _mm_loadu_si128(source + 1);
    const __m128i third = _mm_loadu_si128(source + 2);
    const __m128i fourth = _mm_loadu_si128(source + 3);
    _mm_stream_si128(line, first);
    _mm_stream_si128(line + 1, second);
    _mm_stream_si128(line + 2, third);
    _mm_stream_si128(line + 3, fourth);
  }
  std::memcpy(to + done, from + done, bytes - done);
}

// Non-temporal stores are not ordered by the release store that announces the data.
void order_streamed() { _mm_sfence(); }
#else
constexpr bool kCanStream = false;
void stream(std::byte* to, const std::byte* from, std::size_t bytes) {
  std::memcpy(to, from, bytes);
}
void order_streamed() {}
#endif

double ns_per_kib(Duration time, std::size_t bytes) {
  return static_cast<double>(time.count()) * 1024 / static_cast<double>(bytes);
}

}  // namespace

CopyTurn RingChoice::next() {
  ++copies_;
  if (copies_ % kOtherEvery == 0) return {.streams = !streams_, .timed = true};
  return {.streams = streams_, .timed = copies_ % kTimedEvery == 0};
}

void RingChoice::took(const CopyTurn& turn, Duration time, std::size_t bytes) {
  Recent& recent = turn.streams ? streamed_ : stored_;
  recent.ns_per_kib[recent.next] = ns_per_kib(time, bytes);
  recent.next = (recent.next + 1) % recent.ns_per_kib.size();
  streams_ = kWorthIt * streamed_.least() < stored_.least();
}

double RingChoice::Recent::least() const {
  return *std::min_element(ns_per_kib.begin(), ns_per_kib.end());
}

// Both ways are timed in the same stretch of time, or storing at the end of its trial, when the
// caches are full.
CopyTurn PlacingChoice::next() {
  ++copies_;
  if (!streams_) {
    const bool other = copies_ % kOtherEvery == 0;
    return {.streams = other, .timed = other || copies_ % kOtherEvery == kOtherEvery / 2};
  }
  const bool trial = copies_ > kBetweenTrials;
  return {.streams = !trial, .timed = copies_ % (trial ? kTimedInTrial : kTimedStreams) == 0};
}

void PlacingChoice::took(const CopyTurn& turn, Duration time, std::size_t bytes) {
  Recent& recent = turn.streams ? streamed_ : stored_;
  recent.ns_per_kib[recent.next] = ns_per_kib(time, bytes);
  recent.next = (recent.next + 1) % recent.ns_per_kib.size();
  if (copies_ < (streams_ ? kBetweenTrials + kTrial : kStoredRound)) return;
  in_favour_ = kWorthIt * streamed_.median() < stored_.median() ? in_favour_ + 1 : 0;
  streams_ = in_favour_ >= kAgreeing;
  copies_ = 0;
}

double PlacingChoice::Recent::median() const {
  auto sorted = ns_per_kib;
  const auto middle = sorted.begin() + sorted.size() / 2;
  std::nth_element(sorted.begin(), middle, sorted.end());
  return *middle;
}

template <class Choice>
std::byte* AdaptiveCopy<Choice>::write(std::byte* to, const Slice& from) {
  if (!kCanStream || from.length < kLeastStreamed) {
    if (from.length != 0) std::memcpy(to, from.data, from.length);
    return to + from.length;
  }
  const CopyTurn turn = choice_.next();
  const Time begin = turn.timed ? monotonic_now() : Time{};
  if (turn.streams) {
    stream(to, from.data, from.length);
    unfinished_ = true;
  } else {
    std::memcpy(to, from.data, from.length);
  }
  if (turn.timed) choice_.took(turn, monotonic_now() - begin, from.length);
  return to + from.length;
}

template <class Choice>
void AdaptiveCopy<Choice>::finish() {
  if (unfinished_) order_streamed();
  unfinished_ = false;
}

template class AdaptiveCopy<RingChoice>;
template class AdaptiveCopy<PlacingChoice>;

void PlacingCopy::copy(std::byte* there, std::span<const std::byte> bytes) noexcept {
  if (memory_ == nullptr || !memory_->contains(bytes.data())) {
    std::memcpy(there, bytes.data(), bytes.size());
    return;
  }
  copy_.write(there, {bytes.data(), static_cast<std::uint32_t>(bytes.size())});
  copy_.finish();  // another thread may read it next
}

}  // namespace uet::nic
