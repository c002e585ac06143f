// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Atomic operations element by element. Integers wrap around; half precision types are computed as
// float and rounded to nearest even, which is exact rounding for one operation; values are compared
// as numbers, so that a NaN equals nothing.
#include "ses/atomic.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <complex>
#include <cstring>
#include <limits>
#include <type_traits>

#include "uet/base/check.h"
#include "uet/wire/be.h"

namespace uet::ses {

using wire::AmoDatatype;
using wire::AmoOp;
using wire::ReturnCode;

namespace {

__extension__ using Int128 = __int128;
__extension__ using Uint128 = unsigned __int128;

// ---- half precision ----------------------------------------------------------------------------

// A 16-bit floating point number with `MantissaBits` behind the point.
template <int MantissaBits>
struct Half {
  std::uint16_t bits = 0;
};
using Bf16 = Half<7>;
using Fp16 = Half<10>;

float to_float(Bf16 value) { return std::bit_cast<float>(std::uint32_t{value.bits} << 16); }

float to_float(Fp16 value) {
  const std::uint32_t sign = (value.bits & 0x8000U) << 16;
  const std::uint32_t exponent = value.bits >> 10 & 0x1FU;
  const std::uint32_t mantissa = value.bits & 0x3FFU;
  if (exponent == 0) {  // zero and subnormal: mantissa * 2^-24
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24F;
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(magnitude) | sign);
  }
  const std::uint32_t rebased = exponent == 0x1F ? 0xFF : exponent + 127 - 15;
  return std::bit_cast<float>(sign | rebased << 23 | mantissa << 13);
}

// `value` without its `drop` low bits, rounded to nearest, ties to even.
std::uint32_t round_off(std::uint32_t value, unsigned drop) {
  const std::uint32_t half = (std::uint32_t{1} << (drop - 1)) - 1;
  return (value + half + (value >> drop & 1)) >> drop;
}

void from_float(float value, Bf16& out) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const bool nan = value != value;
  out.bits = static_cast<std::uint16_t>(nan ? bits >> 16 | 0x40U : round_off(bits, 16));
}

void from_float(float value, Fp16& out) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = bits >> 16 & 0x8000U;
  const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
  std::uint32_t rounded = 0;
  if (magnitude > 0x7F800000U) {
    rounded = 0x7E00;  // NaN
  } else if (magnitude >= 0x47800000U) {
    rounded = 0x7C00;  // 65536 and more, infinity
  } else if (magnitude >= 0x38800000U) {
    rounded = round_off(magnitude - (std::uint32_t{127 - 15} << 23), 13);  // may become infinity
  } else if (magnitude >= 0x33000000U) {  // subnormal: at least half of 2^-24
    const unsigned drop = 126 - (magnitude >> 23);
    rounded = round_off((magnitude & 0x7FFFFFU) | 0x800000U, drop);
  }
  out.bits = static_cast<std::uint16_t>(sign | rounded);
}

// ---- arithmetic --------------------------------------------------------------------------------

enum class Class : std::uint8_t { None, Integer, Real, Complex };

template <class T>
struct Number {  // float, double, long double
  static constexpr Class kClass = Class::Real;
  static T sum(T a, T b) { return a + b; }
  static T difference(T a, T b) { return a - b; }
  static T product(T a, T b) { return a * b; }
  static bool truth(T a) { return a != T{}; }
  static T from_bool(bool a) { return a ? T{1} : T{0}; }
  static bool equal(T a, T b) { return a == b; }
  static bool less(T a, T b) { return a < b; }
  static bool less_equal(T a, T b) { return a <= b; }
};

template <class T>
inline constexpr bool kIsInteger =
    std::is_integral_v<T> || std::is_same_v<T, Int128> || std::is_same_v<T, Uint128>;

template <class T>
requires kIsInteger<T>
struct Number<T> {
  // Wide enough not to be promoted to a signed type, whose overflow is undefined.
  using Wide = std::conditional_t<sizeof(T) <= 4, std::uint32_t,
                                  std::conditional_t<sizeof(T) == 8, std::uint64_t, Uint128>>;
  static constexpr Class kClass = Class::Integer;
  static T sum(T a, T b) { return static_cast<T>(static_cast<Wide>(a) + static_cast<Wide>(b)); }
  static T difference(T a, T b) {
    return static_cast<T>(static_cast<Wide>(a) - static_cast<Wide>(b));
  }
  static T product(T a, T b) { return static_cast<T>(static_cast<Wide>(a) * static_cast<Wide>(b)); }
  static bool truth(T a) { return a != 0; }
  static T from_bool(bool a) { return static_cast<T>(a ? 1 : 0); }
  static bool equal(T a, T b) { return a == b; }
  static bool less(T a, T b) { return a < b; }
  static bool less_equal(T a, T b) { return a <= b; }
};

template <class T>
struct Number<std::complex<T>> {
  using C = std::complex<T>;
  static constexpr Class kClass = Class::Complex;
  static C sum(C a, C b) { return a + b; }
  static C difference(C a, C b) { return a - b; }
  // By the definition; operator* would call the compiler's library to mend infinities.
  static C product(C a, C b) {
    return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
  }
  static bool truth(C a) { return a != C{}; }
  static C from_bool(bool a) { return C{a ? T{1} : T{0}}; }
  static bool equal(C a, C b) { return a == b; }
};

template <int MantissaBits>
struct Number<Half<MantissaBits>> {
  using H = Half<MantissaBits>;
  static constexpr Class kClass = Class::Real;
  static H rounded(float value) {
    H out;
    from_float(value, out);
    return out;
  }
  static H sum(H a, H b) { return rounded(to_float(a) + to_float(b)); }
  static H difference(H a, H b) { return rounded(to_float(a) - to_float(b)); }
  static H product(H a, H b) { return rounded(to_float(a) * to_float(b)); }
  static bool truth(H a) { return to_float(a) != 0.0F; }
  static H from_bool(bool a) { return rounded(a ? 1.0F : 0.0F); }
  static bool equal(H a, H b) { return to_float(a) == to_float(b); }
  static bool less(H a, H b) { return to_float(a) < to_float(b); }
  static bool less_equal(H a, H b) { return to_float(a) <= to_float(b); }
};

template <class T>
T bitwise(AmoOp op, T old, T operand, T compare) {
  switch (op) {
    case AmoOp::Bor:
      return static_cast<T>(old | operand);
    case AmoOp::Band:
      return static_cast<T>(old & operand);
    case AmoOp::Bxor:
      return static_cast<T>(old ^ operand);
    default:  // Mswap
      return static_cast<T>((operand & compare) | (old & ~compare));
  }
}

// Does an operation that only chooses between the two values choose the operand?
template <class T>
bool takes_operand(AmoOp op, const T& old, const T& operand, const T& compare) {
  using N = Number<T>;
  switch (op) {
    case AmoOp::Write:
      return true;
    case AmoOp::Cswap:
      return N::equal(compare, old);
    case AmoOp::CswapNe:
      return !N::equal(compare, old);
    default:
      break;
  }
  if constexpr (N::kClass != Class::Complex) {
    switch (op) {
      case AmoOp::Min:
        return N::less(operand, old);
      case AmoOp::Max:
        return N::less(old, operand);
      case AmoOp::CswapLe:
        return N::less_equal(compare, old);
      case AmoOp::CswapLt:
        return N::less(compare, old);
      case AmoOp::CswapGe:
        return N::less_equal(old, compare);
      case AmoOp::CswapGt:
        return N::less(old, compare);
      default:
        break;
    }
  }
  return false;  // Read
}

// The new value of an element.
template <class T>
T combine(AmoOp op, const T& old, const T& operand, const T& compare) {
  using N = Number<T>;
  switch (op) {
    case AmoOp::Sum:
      return N::sum(old, operand);
    case AmoOp::Diff:
      return N::difference(old, operand);
    case AmoOp::Prod:
      return N::product(old, operand);
    case AmoOp::Lor:
      return N::from_bool(N::truth(old) || N::truth(operand));
    case AmoOp::Land:
      return N::from_bool(N::truth(old) && N::truth(operand));
    case AmoOp::Lxor:
      return N::from_bool(N::truth(old) != N::truth(operand));
    case AmoOp::Bor:
    case AmoOp::Band:
    case AmoOp::Bxor:
    case AmoOp::Mswap:
      if constexpr (N::kClass == Class::Integer) return bitwise(op, old, operand, compare);
      return old;  // check_atomic refuses the others
    default:
      return takes_operand(op, old, operand, compare) ? operand : old;
  }
}

// ---- memory ------------------------------------------------------------------------------------

template <std::size_t Bytes>
struct WordOf;
template <>
struct WordOf<1> {
  using type = std::uint8_t;
};
template <>
struct WordOf<2> {
  using type = std::uint16_t;
};
template <>
struct WordOf<4> {
  using type = std::uint32_t;
};
template <>
struct WordOf<8> {
  using type = std::uint64_t;
};

template <class T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

// Changes the element at `at`; returns what it was.
template <class T>
T update(AmoOp op, std::byte* at, const T& operand, const T& compare) {
  if constexpr (sizeof(T) <= 8 && Number<T>::kClass != Class::Complex) {
    using Word = typename WordOf<sizeof(T)>::type;
    const std::atomic_ref<Word> word(*reinterpret_cast<Word*>(at));
    Word old_bits = word.load();
    for (;;) {
      const T old = std::bit_cast<T>(old_bits);
      const Word new_bits = std::bit_cast<Word>(combine(op, old, operand, compare));
      if (new_bits == old_bits || word.compare_exchange_weak(old_bits, new_bits)) return old;
    }
  } else {
    const T old = load<T>(at);
    const T now = combine(op, old, operand, compare);
    std::memcpy(at, &now, sizeof now);
    return old;
  }
}

template <class T>
void run(const AtomicWork& work) {
  const bool reads_operands = work.op != AmoOp::Read;
  std::array<std::byte, sizeof(T)> image;
  for (std::size_t i = 0; i < work.count; ++i) {
    const std::size_t offset = i * sizeof(T);
    T operand{};
    T compare{};
    if (reads_operands) {
      elements_from_wire(work.datatype, {work.operands + offset, sizeof(T)}, image.data());
      operand = load<T>(image.data());
    }
    if (wire::is_compare_swap(work.op)) {
      elements_from_wire(work.datatype, {work.compare + offset, sizeof(T)}, image.data());
      compare = load<T>(image.data());
    }
    const T old = update<T>(work.op, work.target + offset, operand, compare);
    if (work.results == nullptr) continue;
    std::memcpy(image.data(), &old, sizeof old);
    elements_to_wire(work.datatype, image, work.results + offset);
  }
}

// ---- the types ---------------------------------------------------------------------------------

struct Datatype {
  std::uint8_t bytes = 0;
  std::uint8_t component_bytes = 0;
  Class element_class = Class::None;
  void (*run)(const AtomicWork&) = nullptr;
};

template <class T>
constexpr Datatype entry() {
  constexpr Class kClass = Number<T>::kClass;
  return {sizeof(T), kClass == Class::Complex ? sizeof(T) / 2 : sizeof(T), kClass, &run<T>};
}

// The format that a long double has on the wire (SES-100): 80 bits in 16 bytes.
constexpr bool kLongDouble =
    std::numeric_limits<long double>::digits == 64 && sizeof(long double) == 16;
constexpr std::size_t kLongDoublePadding = 6;

constexpr std::array<Datatype, 0x12> kDatatypes = [] {
  std::array<Datatype, 0x12> table{};
  table[to_underlying(AmoDatatype::Int8)] = entry<std::int8_t>();
  table[to_underlying(AmoDatatype::Uint8)] = entry<std::uint8_t>();
  table[to_underlying(AmoDatatype::Int16)] = entry<std::int16_t>();
  table[to_underlying(AmoDatatype::Uint16)] = entry<std::uint16_t>();
  table[to_underlying(AmoDatatype::Int32)] = entry<std::int32_t>();
  table[to_underlying(AmoDatatype::Uint32)] = entry<std::uint32_t>();
  table[to_underlying(AmoDatatype::Int64)] = entry<std::int64_t>();
  table[to_underlying(AmoDatatype::Uint64)] = entry<std::uint64_t>();
  table[to_underlying(AmoDatatype::Int128)] = entry<Int128>();
  table[to_underlying(AmoDatatype::Uint128)] = entry<Uint128>();
  table[to_underlying(AmoDatatype::Float)] = entry<float>();
  table[to_underlying(AmoDatatype::Double)] = entry<double>();
  table[to_underlying(AmoDatatype::FloatComplex)] = entry<std::complex<float>>();
  table[to_underlying(AmoDatatype::DoubleComplex)] = entry<std::complex<double>>();
  if (kLongDouble) {
    table[to_underlying(AmoDatatype::LongDouble)] = entry<long double>();
    table[to_underlying(AmoDatatype::LongDoubleComplex)] = entry<std::complex<long double>>();
  }
  table[to_underlying(AmoDatatype::Bf16)] = entry<Bf16>();
  table[to_underlying(AmoDatatype::Fp16)] = entry<Fp16>();
  return table;
}();

const Datatype& lookup(AmoDatatype datatype) {
  static constexpr Datatype kNone;
  const std::size_t number = to_underlying(datatype);
  return number < kDatatypes.size() ? kDatatypes[number] : kNone;
}

bool is_known(AmoOp op) { return op < AmoOp::Inval; }

bool is_defined_for(AmoOp op, Class element_class) {
  switch (op) {
    case AmoOp::Bor:
    case AmoOp::Band:
    case AmoOp::Bxor:
    case AmoOp::Mswap:
      return element_class == Class::Integer;
    case AmoOp::Min:
    case AmoOp::Max:
    case AmoOp::CswapLe:
    case AmoOp::CswapLt:
    case AmoOp::CswapGe:
    case AmoOp::CswapGt:
      return element_class != Class::Complex;
    default:
      return true;
  }
}

void reverse_components(std::size_t component_bytes, std::span<const std::byte> from,
                        std::byte* to) {
  std::array<std::byte, 16> image;
  for (std::size_t at = 0; at < from.size(); at += component_bytes) {
    std::memcpy(image.data(), from.data() + at, component_bytes);
    if constexpr (std::endian::native == std::endian::little) {
      std::reverse(image.begin(), image.begin() + static_cast<std::ptrdiff_t>(component_bytes));
    }
    std::memcpy(to + at, image.data(), component_bytes);
  }
}

}  // namespace

std::uint32_t element_bytes(AmoDatatype datatype) { return lookup(datatype).bytes; }
std::uint32_t element_alignment(AmoDatatype datatype) { return lookup(datatype).component_bytes; }

ReturnCode check_atomic(Kind form, AmoOp op, AmoDatatype datatype) {
  const bool compares = form == Kind::CompareAtomic;
  if (!is_known(op) || wire::is_compare_swap(op) != compares) return ReturnCode::AmoUnsupportedOp;
  if (op == AmoOp::Read && form != Kind::FetchAtomic) return ReturnCode::AmoUnsupportedOp;
  const Datatype& type = lookup(datatype);
  const bool fits = type.bytes != 0 && (!compares || type.bytes <= sizeof(Uint128));
  if (!fits) return ReturnCode::AmoUnsupportedDt;
  return is_defined_for(op, type.element_class) ? ReturnCode::Ok : ReturnCode::AmoUnsupportedOp;
}

void elements_to_wire(AmoDatatype datatype, std::span<const std::byte> from, std::byte* to) {
  reverse_components(lookup(datatype).component_bytes, from, to);
  const bool padded =
      datatype == AmoDatatype::LongDouble || datatype == AmoDatatype::LongDoubleComplex;
  if (!padded) return;
  for (std::size_t at = 0; at < from.size(); at += sizeof(long double)) {
    std::memset(to + at, 0, kLongDoublePadding);
  }
}

void elements_from_wire(AmoDatatype datatype, std::span<const std::byte> from, std::byte* to) {
  reverse_components(lookup(datatype).component_bytes, from, to);
}

wire::AtomicOperand operand_of(AmoDatatype datatype, const std::byte* element) {
  const std::uint32_t bytes = element_bytes(datatype);
  UET_ASSERT(bytes <= sizeof(Uint128));
  std::array<std::byte, sizeof(Uint128)> image{};
  elements_to_wire(datatype, {element, bytes}, image.data() + (image.size() - bytes));
  const auto high = wire::load<wire::be64>(std::span(image).first(sizeof(std::uint64_t)));
  const auto low = wire::load<wire::be64>(std::span(image).last(sizeof(std::uint64_t)));
  return {.high = high, .low = low};
}

void operand_to_wire(const wire::AtomicOperand& operand, std::span<std::byte, 16> to) {
  wire::store(to.data(), wire::be64{operand.high});
  wire::store(to.data() + sizeof(std::uint64_t), wire::be64{operand.low});
}

void execute(const AtomicWork& work) {
  const Datatype& type = lookup(work.datatype);
  UET_ASSERT(type.run != nullptr);
  type.run(work);  // NOLINT(clang-analyzer-core.CallAndMessage): asserted
}

}  // namespace uet::ses
