// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "uet/nic/ring_copy.h"

#include <algorithm>
#include <cstring>

#include "uet/nic/clock.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace uet::nic {
namespace {

// Shorter pieces are stored: their few lines are not worth the reader's trip to memory.
constexpr std::size_t kLeastStreamed = 2048;
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

// Streaming stores are not ordered by the release of what announces them.
void order_streamed() { _mm_sfence(); }
#else
constexpr bool kCanStream = false;
void stream(std::byte* to, const std::byte* from, std::size_t bytes) {
  std::memcpy(to, from, bytes);
}
void order_streamed() {}
#endif

}  // namespace

CopyChoice::Turn CopyChoice::next() {
  ++copies_;
  if (copies_ % kOtherEvery == 0) return {.streams = !streams_, .timed = true};
  return {.streams = streams_, .timed = copies_ % kTimedEvery == 0};
}

void CopyChoice::took(const Turn& turn, Duration time, std::size_t bytes) {
  Recent& recent = turn.streams ? streamed_ : stored_;
  recent.ns_per_kib[recent.next] =
      static_cast<double>(time.count()) * 1024 / static_cast<double>(bytes);
  recent.next = (recent.next + 1) % recent.ns_per_kib.size();
  streams_ = kWorthIt * streamed_.least() < stored_.least();
}

double CopyChoice::Recent::least() const {
  return *std::min_element(ns_per_kib.begin(), ns_per_kib.end());
}

std::byte* RingCopy::write(std::byte* to, const Slice& from) {
  if (!kCanStream || from.length < kLeastStreamed) {
    if (from.length != 0) std::memcpy(to, from.data, from.length);
    return to + from.length;
  }
  const CopyChoice::Turn turn = choice_.next();
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

void RingCopy::finish() {
  if (unfinished_) order_streamed();
  unfinished_ = false;
}

}  // namespace uet::nic
