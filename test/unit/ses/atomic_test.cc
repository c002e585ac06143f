// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Every operation on every datatype against what fi_atomic(3) says, computed here in another way:
// integers as 128-bit numbers cut to size, half precision by search for the nearest value.
#include "ses/atomic.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <optional>
#include <thread>
#include <vector>

namespace uet::ses {
namespace {

using wire::AmoDatatype;
using wire::AmoOp;
using wire::ReturnCode;

__extension__ using Int128 = __int128;
__extension__ using Uint128 = unsigned __int128;

constexpr int kOps = 0x15;
constexpr int kDatatypes = 0x12;

template <class T>
std::vector<std::byte> on_wire(AmoDatatype datatype, const T& value) {
  std::vector<std::byte> bytes(sizeof(T));
  elements_to_wire(datatype, std::as_bytes(std::span(&value, 1)), bytes.data());
  return bytes;
}

template <class T>
T from_wire(AmoDatatype datatype, const std::vector<std::byte>& bytes) {
  std::array<std::byte, sizeof(T)> image;
  elements_from_wire(datatype, bytes, image.data());
  T value;
  std::memcpy(&value, image.data(), sizeof value);
  return value;
}

template <class T>
struct Outcome {
  T target;
  T fetched;
};

template <class T>
Outcome<T> done(AmoOp op, AmoDatatype datatype, T target, T operand, T compare) {
  const auto operands = on_wire(datatype, operand);
  const auto compares = on_wire(datatype, compare);
  std::vector<std::byte> results(sizeof(T));
  alignas(16) T memory = target;
  execute({.op = op,
           .datatype = datatype,
           .target = reinterpret_cast<std::byte*>(&memory),
           .operands = operands.data(),
           .compare = compares.data(),
           .results = results.data(),
           .count = 1});
  return {memory, from_wire<T>(datatype, results)};
}

// The result of the pseudo code of fi_atomic(3); nullopt: the operation is not defined there.
template <class T>
std::optional<T> arithmetic_by_the_book(AmoOp op, T addr, T buf) {
  const bool a = addr != T{};
  const bool b = buf != T{};
  switch (op) {
    case AmoOp::Lor:
      return T(a || b ? 1 : 0);
    case AmoOp::Land:
      return T(a && b ? 1 : 0);
    case AmoOp::Lxor:
      return T((a && !b) || (!a && b) ? 1 : 0);
    case AmoOp::Sum:
      return T(addr + buf);
    case AmoOp::Diff:
      return T(addr - buf);
    case AmoOp::Prod:
      return T(addr * buf);
    case AmoOp::Read:
      return addr;
    case AmoOp::Write:
      return buf;
    default:
      return {};
  }
}

template <class T>
std::optional<T> choice_by_the_book(AmoOp op, T addr, T buf, T compare) {
  switch (op) {
    case AmoOp::Min:
      return buf < addr ? buf : addr;
    case AmoOp::Max:
      return buf > addr ? buf : addr;
    case AmoOp::Cswap:
      return compare == addr ? buf : addr;
    case AmoOp::CswapNe:
      return compare != addr ? buf : addr;
    case AmoOp::CswapLe:
      return compare <= addr ? buf : addr;
    case AmoOp::CswapLt:
      return compare < addr ? buf : addr;
    case AmoOp::CswapGe:
      return compare >= addr ? buf : addr;
    case AmoOp::CswapGt:
      return compare > addr ? buf : addr;
    default:
      return {};
  }
}

template <class T>
std::optional<T> bits_by_the_book(AmoOp op, T addr, T buf, T compare) {
  switch (op) {
    case AmoOp::Bor:
      return T(addr | buf);
    case AmoOp::Band:
      return T(addr & buf);
    case AmoOp::Bxor:
      return T(addr ^ buf);
    case AmoOp::Mswap:
      return T((buf & compare) | (addr & ~compare));
    default:
      return {};
  }
}

// Integers: sums and products of 128 unsigned bits, cut to the size of T.
template <class T>
void check_integer(AmoDatatype datatype) {
  const T low = std::is_same_v<T, Int128> ? T(Uint128{1} << 127)
                                          : T(T(-1) < T(0) ? T(1) << (8 * sizeof(T) - 1) : T(0));
  const T high = T(~low);
  const std::array<T, 9> values = {T(0), T(1), T(2), T(-1), T(3), T(100), low, high, T(high - 1)};
  for (int number = 0; number < kOps; ++number) {
    const auto op = static_cast<AmoOp>(number);
    for (const T addr : values) {
      for (const T buf : values) {
        for (const T compare : values) {
          auto expected = bits_by_the_book(op, addr, buf, compare);
          if (!expected) expected = choice_by_the_book(op, addr, buf, compare);
          if (!expected) {
            const auto wide = arithmetic_by_the_book<Uint128>(op, Uint128(addr), Uint128(buf));
            if (wide) expected = T(*wide);
          }
          if (!expected) continue;
          const auto outcome = done(op, datatype, addr, buf, compare);
          ASSERT_TRUE(outcome.target == *expected) << "op " << number << " size " << sizeof(T);
          ASSERT_TRUE(outcome.fetched == addr) << "op " << number << " size " << sizeof(T);
        }
      }
    }
  }
}

TEST(Atomic, IntegersFollowTheManPage) {
  check_integer<std::int8_t>(AmoDatatype::Int8);
  check_integer<std::uint8_t>(AmoDatatype::Uint8);
  check_integer<std::int16_t>(AmoDatatype::Int16);
  check_integer<std::uint16_t>(AmoDatatype::Uint16);
  check_integer<std::int32_t>(AmoDatatype::Int32);
  check_integer<std::uint32_t>(AmoDatatype::Uint32);
  check_integer<std::int64_t>(AmoDatatype::Int64);
  check_integer<std::uint64_t>(AmoDatatype::Uint64);
  check_integer<Int128>(AmoDatatype::Int128);
  check_integer<Uint128>(AmoDatatype::Uint128);
}

// Equal as numbers: both signs of zero are equal, and all NaNs are equal to each other.
template <class T>
bool same(T a, T b) {
  return a == b || (a != a && b != b);
}

template <class T>
void check_real(AmoDatatype datatype) {
  using Limits = std::numeric_limits<T>;
  const std::array<T, 9> values = {T(0),
                                   T(1),
                                   T(-1),
                                   T(0.1),
                                   T(-3.75),
                                   Limits::max(),
                                   Limits::denorm_min(),
                                   Limits::infinity(),
                                   Limits::quiet_NaN()};
  for (int number = 0; number < kOps; ++number) {
    const auto op = static_cast<AmoOp>(number);
    for (const T addr : values) {
      for (const T buf : values) {
        for (const T compare : values) {
          auto expected = choice_by_the_book(op, addr, buf, compare);
          if (!expected) expected = arithmetic_by_the_book(op, addr, buf);
          if (!expected) continue;
          const auto outcome = done(op, datatype, addr, buf, compare);
          ASSERT_TRUE(same(outcome.target, *expected))
              << "op " << number << ": " << addr << " " << buf << " " << compare;
          ASSERT_TRUE(same(outcome.fetched, addr)) << "op " << number;
        }
      }
    }
  }
}

TEST(Atomic, RealNumbersFollowTheManPage) {
  check_real<float>(AmoDatatype::Float);
  check_real<double>(AmoDatatype::Double);
  check_real<long double>(AmoDatatype::LongDouble);
}

template <class T>
void check_complex(AmoDatatype datatype) {
  using C = std::complex<T>;
  const std::array<C, 5> values = {C(0, 0), C(1, 0), C(0, 1), C(-2, T(0.5)), C(3, -4)};
  for (int number = 0; number < kOps; ++number) {
    const auto op = static_cast<AmoOp>(number);
    for (const C addr : values) {
      for (const C buf : values) {
        for (const C compare : values) {
          std::optional<C> expected;
          if (op == AmoOp::Cswap) expected = compare == addr ? buf : addr;
          if (op == AmoOp::CswapNe) expected = compare != addr ? buf : addr;
          if (op == AmoOp::Prod) {
            expected = C(addr.real() * buf.real() - addr.imag() * buf.imag(),
                         addr.real() * buf.imag() + addr.imag() * buf.real());
          } else if (!expected) {
            expected = arithmetic_by_the_book(op, addr, buf);
          }
          if (!expected) continue;
          const auto outcome = done(op, datatype, addr, buf, compare);
          ASSERT_EQ(outcome.target, *expected) << "op " << number;
          ASSERT_EQ(outcome.fetched, addr) << "op " << number;
        }
      }
    }
  }
}

TEST(Atomic, ComplexNumbersFollowTheManPage) {
  check_complex<float>(AmoDatatype::FloatComplex);
  check_complex<double>(AmoDatatype::DoubleComplex);
  check_complex<long double>(AmoDatatype::LongDoubleComplex);
}

// ---- half precision: values from the definition of the formats ---------------------------------

struct HalfFormat {
  AmoDatatype datatype;
  int exponent_bits;
  int mantissa_bits;
};
constexpr HalfFormat kBf16{AmoDatatype::Bf16, 8, 7};
constexpr HalfFormat kFp16{AmoDatatype::Fp16, 5, 10};

double value_of(const HalfFormat& format, std::uint16_t bits) {
  const int bias = (1 << (format.exponent_bits - 1)) - 1;
  const int exponent = bits >> format.mantissa_bits & ((1 << format.exponent_bits) - 1);
  const int mantissa = bits & ((1 << format.mantissa_bits) - 1);
  const double sign = (bits & 0x8000) != 0 ? -1.0 : 1.0;
  if (exponent == (1 << format.exponent_bits) - 1) {
    return mantissa != 0 ? std::nan("") : sign * std::numeric_limits<double>::infinity();
  }
  const int scaled = exponent == 0 ? mantissa : mantissa + (1 << format.mantissa_bits);
  return sign * std::ldexp(scaled, std::max(exponent, 1) - bias - format.mantissa_bits);
}

// The finite value next to `exact`, the even one of two; infinity from half a step above the
// largest on.
double nearest(const HalfFormat& format, double exact) {
  if (std::isnan(exact) || std::isinf(exact)) return exact;
  std::uint16_t best = 0;
  const auto infinity =
      static_cast<std::uint16_t>(((1 << format.exponent_bits) - 1) << format.mantissa_bits);
  const double magnitude = std::fabs(exact);
  // Positive values grow with their bits.
  std::uint16_t low = 0;
  std::uint16_t high = infinity;
  while (high - low > 1) {
    const auto middle = static_cast<std::uint16_t>((low + high) / 2);
    (value_of(format, middle) <= magnitude ? low : high) = middle;
  }
  const double below = value_of(format, low);
  const double above = high == infinity
                           ? below + (below - value_of(format, static_cast<std::uint16_t>(low - 1)))
                           : value_of(format, high);
  const double gap = (magnitude - below) - (above - magnitude);
  best = gap < 0 || (gap == 0 && low % 2 == 0) ? low : high;
  return std::copysign(value_of(format, best), exact);
}

TEST(Atomic, HalfPrecisionRoundsToNearestEven) {
  for (const HalfFormat& format : {kBf16, kFp16}) {
    std::uint32_t state = 12345;
    for (int round = 0; round < 20000; ++round) {
      state = state * 1664525 + 1013904223;
      const auto addr = static_cast<std::uint16_t>(state >> 16);
      state = state * 1664525 + 1013904223;
      const auto buf = static_cast<std::uint16_t>(state >> 16);
      const double a = value_of(format, addr);
      const double b = value_of(format, buf);
      for (const AmoOp op : {AmoOp::Sum, AmoOp::Diff, AmoOp::Prod}) {
        const double exact = op == AmoOp::Sum ? a + b : op == AmoOp::Diff ? a - b : a * b;
        // A product of bfloat16 below the smallest normal float is rounded twice: not compared.
        if (exact != 0 && std::fabs(exact) < std::ldexp(1, -126)) continue;
        // float first: that is how the operation is defined here.
        const double expected = nearest(format, static_cast<float>(exact));
        const auto outcome = done<std::uint16_t>(op, format.datatype, addr, buf, 0);
        ASSERT_TRUE(same(value_of(format, outcome.target), expected))
            << "op " << static_cast<int>(op) << ": " << a << " and " << b << " gave "
            << value_of(format, outcome.target) << ", not " << expected;
        ASSERT_EQ(outcome.fetched, addr);
      }
    }
  }
}

TEST(Atomic, HalfPrecisionComparesByValue) {
  for (const HalfFormat& format : {kBf16, kFp16}) {
    const auto one =
        static_cast<std::uint16_t>(((1 << (format.exponent_bits - 1)) - 1) << format.mantissa_bits);
    const std::array<std::uint16_t, 7> values = {0,
                                                 0x8000,
                                                 one,
                                                 static_cast<std::uint16_t>(one | 0x8000),
                                                 0x0001,
                                                 0x7FFF,
                                                 static_cast<std::uint16_t>(one + 1)};
    for (int number = 0; number < kOps; ++number) {
      const auto op = static_cast<AmoOp>(number);
      for (const auto addr : values) {
        for (const auto buf : values) {
          for (const auto compare : values) {
            const double a = value_of(format, addr);
            const double b = value_of(format, buf);
            auto expected = choice_by_the_book(op, a, b, value_of(format, compare));
            const bool logical = op == AmoOp::Lor || op == AmoOp::Land || op == AmoOp::Lxor;
            if (!expected && logical) expected = arithmetic_by_the_book(op, a, b);
            if (!expected) continue;
            const auto outcome = done(op, format.datatype, addr, buf, compare);
            ASSERT_TRUE(same(value_of(format, outcome.target), *expected)) << "op " << number;
          }
        }
      }
    }
  }
}

// ---- which pairs there are ---------------------------------------------------------------------

// Rows of fi_atomic(3) and of libfabric's tables: r real and integer, i integer, a all.
char domain_of(AmoOp op) {
  switch (op) {
    case AmoOp::Min:
    case AmoOp::Max:
    case AmoOp::CswapLe:
    case AmoOp::CswapLt:
    case AmoOp::CswapGe:
    case AmoOp::CswapGt:
      return 'r';
    case AmoOp::Bor:
    case AmoOp::Band:
    case AmoOp::Bxor:
    case AmoOp::Mswap:
      return 'i';
    default:
      return 'a';
  }
}

TEST(Atomic, Ses101PairsAreThoseOfLibfabric) {
  for (int number = 0; number < kOps; ++number) {
    const auto op = static_cast<AmoOp>(number);
    const bool swap = number >= 0x0D && number <= 0x13;
    for (int type = 0; type < kDatatypes; ++type) {
      const auto datatype = static_cast<AmoDatatype>(type);
      const bool integer = type <= 0x09;
      const bool complex = type == 0x0C || type == 0x0D || type == 0x0F;
      const char domain = domain_of(op);
      const bool defined =
          op != AmoOp::Inval && (domain == 'a' || integer || (domain == 'r' && !complex));
      const bool too_wide = datatype == AmoDatatype::LongDoubleComplex;
      EXPECT_EQ(check_atomic(Kind::Atomic, op, datatype) == ReturnCode::Ok,
                defined && !swap && op != AmoOp::Read)
          << number << " " << type;
      EXPECT_EQ(check_atomic(Kind::FetchAtomic, op, datatype) == ReturnCode::Ok, defined && !swap)
          << number << " " << type;
      EXPECT_EQ(check_atomic(Kind::CompareAtomic, op, datatype) == ReturnCode::Ok,
                defined && swap && !too_wide)
          << number << " " << type;
    }
  }
}

TEST(Atomic, Ses101SaysWhetherTheOperationOrTheTypeIsWrong) {
  EXPECT_EQ(check_atomic(Kind::Atomic, AmoOp::Inval, AmoDatatype::Int8),
            ReturnCode::AmoUnsupportedOp);
  EXPECT_EQ(check_atomic(Kind::Atomic, static_cast<AmoOp>(0xE0), AmoDatatype::Int8),
            ReturnCode::AmoUnsupportedOp);
  EXPECT_EQ(check_atomic(Kind::Atomic, AmoOp::Bor, AmoDatatype::Float),
            ReturnCode::AmoUnsupportedOp);
  EXPECT_EQ(check_atomic(Kind::Atomic, AmoOp::Sum, static_cast<AmoDatatype>(0x12)),
            ReturnCode::AmoUnsupportedDt);
  EXPECT_EQ(check_atomic(Kind::CompareAtomic, AmoOp::Cswap, AmoDatatype::LongDoubleComplex),
            ReturnCode::AmoUnsupportedDt);
}

// ---- wire order --------------------------------------------------------------------------------

TEST(Atomic, Ses96ElementsAreBigEndianByComponent) {
  using Bytes = std::vector<std::byte>;
  const auto bytes = [](std::initializer_list<int> values) {
    Bytes out;
    for (const int value : values) out.push_back(static_cast<std::byte>(value));
    return out;
  };
  EXPECT_EQ(on_wire(AmoDatatype::Uint8, std::uint8_t{0x12}), bytes({0x12}));
  EXPECT_EQ(on_wire(AmoDatatype::Uint16, std::uint16_t{0x1234}), bytes({0x12, 0x34}));
  EXPECT_EQ(on_wire(AmoDatatype::Int32, std::int32_t{-2}), bytes({0xFF, 0xFF, 0xFF, 0xFE}));
  EXPECT_EQ(on_wire(AmoDatatype::Float, 1.0F), bytes({0x3F, 0x80, 0, 0}));
  EXPECT_EQ(on_wire(AmoDatatype::FloatComplex, std::complex<float>(1.0F, -2.0F)),
            bytes({0x3F, 0x80, 0, 0, 0xC0, 0, 0, 0}));
  EXPECT_EQ(on_wire(AmoDatatype::Uint128, Uint128{1} << 64 | 2),
            bytes({0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2}));
  // SES-100: long double is 80 bits in 16 bytes, the padding zero whatever it is in memory.
  std::array<long double, 1> one;
  std::memset(one.data(), 0xAA, sizeof one);
  one[0] = 1.0L;
  EXPECT_EQ(on_wire(AmoDatatype::LongDouble, one),
            bytes({0, 0, 0, 0, 0, 0, 0x3F, 0xFF, 0x80, 0, 0, 0, 0, 0, 0, 0}));
}

TEST(Atomic, OperandsOfCompareAndSwapAreRightAligned) {
  const std::uint32_t value = 0x01020304;
  const auto operand = operand_of(AmoDatatype::Uint32, reinterpret_cast<const std::byte*>(&value));
  EXPECT_EQ(operand, (wire::AtomicOperand{.high = 0, .low = 0x01020304}));
  const std::complex<double> pair(1.0, 2.0);
  EXPECT_EQ(operand_of(AmoDatatype::DoubleComplex, reinterpret_cast<const std::byte*>(&pair)),
            (wire::AtomicOperand{.high = 0x3FF0000000000000, .low = 0x4000000000000000}));
  std::array<std::byte, 16> image;
  operand_to_wire(operand, image);
  EXPECT_EQ(image[12], std::byte{1});
  EXPECT_EQ(image[15], std::byte{4});
  EXPECT_EQ(image[0], std::byte{0});
}

TEST(Atomic, SizesAndAlignmentOfTypes) {
  constexpr std::array<std::uint32_t, kDatatypes> kBytes = {1,  1, 2, 2, 4,  4,  8,  8, 16,
                                                            16, 4, 8, 8, 16, 16, 32, 2, 2};
  constexpr std::array<std::uint32_t, kDatatypes> kAlignment = {1,  1, 2, 2, 4, 4,  8,  8, 16,
                                                                16, 4, 8, 4, 8, 16, 16, 2, 2};
  for (int type = 0; type < kDatatypes; ++type) {
    const auto datatype = static_cast<AmoDatatype>(type);
    EXPECT_EQ(element_bytes(datatype), kBytes[static_cast<std::size_t>(type)]) << type;
    EXPECT_EQ(element_alignment(datatype), kAlignment[static_cast<std::size_t>(type)]) << type;
  }
  EXPECT_EQ(element_bytes(static_cast<AmoDatatype>(0x12)), 0U);
  EXPECT_EQ(element_bytes(static_cast<AmoDatatype>(0xFF)), 0U);
}

TEST(Atomic, ArraysGoElementByElement) {
  std::array<std::uint32_t, 3> memory = {1, 2, 3};
  const std::array<std::uint32_t, 3> add = {10, 20, 30};
  std::array<std::byte, sizeof add> operands;
  std::array<std::byte, sizeof add> results;
  elements_to_wire(AmoDatatype::Uint32, std::as_bytes(std::span(add)), operands.data());
  execute({.op = AmoOp::Sum,
           .datatype = AmoDatatype::Uint32,
           .target = reinterpret_cast<std::byte*>(memory.data()),
           .operands = operands.data(),
           .results = results.data(),
           .count = 3});
  EXPECT_EQ(memory, (std::array<std::uint32_t, 3>{11, 22, 33}));
  std::array<std::uint32_t, 3> old;
  elements_from_wire(AmoDatatype::Uint32, results, reinterpret_cast<std::byte*>(old.data()));
  EXPECT_EQ(old, (std::array<std::uint32_t, 3>{1, 2, 3}));
}

TEST(Atomic, Ses98HoldsAgainstAtomicsOfTheCpu) {
  alignas(8) std::uint64_t memory = 0;
  constexpr std::uint64_t kRounds = 20000;
  std::thread cpu([&] {
    for (std::uint64_t i = 0; i < kRounds; ++i) std::atomic_ref(memory).fetch_add(1);
  });
  const auto operand = on_wire(AmoDatatype::Uint64, std::uint64_t{1});
  for (std::uint64_t i = 0; i < kRounds; ++i) {
    execute({.op = AmoOp::Sum,
             .datatype = AmoDatatype::Uint64,
             .target = reinterpret_cast<std::byte*>(&memory),
             .operands = operand.data(),
             .count = 1});
  }
  cpu.join();
  EXPECT_EQ(memory, 2 * kRounds);
}

}  // namespace
}  // namespace uet::ses
