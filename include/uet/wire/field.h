// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A run of bits inside one integer member of a header struct, named once where the struct is
// defined. Replaces C bit-fields, whose order the language leaves open.
#pragma once

#include <cstdint>
#include <type_traits>

#include "uet/wire/be.h"

namespace uet::wire {

namespace detail {
template <class>
struct MemberOf;
template <class S, class M>
struct MemberOf<M S::*> {
  using Struct = S;
  using Word = typename M::value_type;
  static constexpr unsigned kBits = M::kBits;
};
template <class S>
struct MemberOf<std::uint8_t S::*> {
  using Struct = S;
  using Word = std::uint8_t;
  static constexpr unsigned kBits = 8;
};
}  // namespace detail

// Bits High down to Low (0 = least significant) of the word `Member`. Setting a value too wide for
// the field keeps its low-order bits and leaves the neighbours alone.
template <auto Member, unsigned High, unsigned Low>
struct Field {
  using Struct = typename detail::MemberOf<decltype(Member)>::Struct;
  using Word = typename detail::MemberOf<decltype(Member)>::Word;
  static_assert(High >= Low && High < detail::MemberOf<decltype(Member)>::kBits);

  static constexpr unsigned kWidth = High - Low + 1;
  static constexpr Word kMax =
      static_cast<Word>(static_cast<Word>(~Word{0}) >> (8 * sizeof(Word) - kWidth));

  // The word with this value in the field and 0 in all other bits.
  static constexpr Word bits(Word value) { return static_cast<Word>((value & kMax) << Low); }
  static constexpr Word get(const Struct& s) {
    return static_cast<Word>(static_cast<Word>(s.*Member) >> Low & kMax);
  }
  static constexpr void set(Struct& s, Word value) {
    const Word others = static_cast<Word>(static_cast<Word>(s.*Member) &
                                          static_cast<Word>(~static_cast<Word>(kMax << Low)));
    s.*Member = static_cast<Word>(others | bits(value));
  }
};

}  // namespace uet::wire
