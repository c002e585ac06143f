// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// How the ranks that share one network speak to each other: threads of a process (threads.h) or
// processes of MPI (mpi_module.h). Knows nothing of networks. Bytes have the layout of the machine:
// all ranks run one build.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <type_traits>
#include <vector>

namespace uet::netsim {

using Bytes = std::vector<std::byte>;

class Exchange {
 public:
  virtual ~Exchange() = default;
  virtual std::uint32_t rank() const = 0;
  virtual std::uint32_t ranks() const = 0;
  // Gives out[r] to each rank r, and fills in[r] with the bytes that r gave to this rank. Every
  // rank calls it, in the same order; `out` and `in` have an element for each rank. Elements of
  // this rank itself are not read. `out` is empty afterwards. Throws if a rank has failed.
  virtual void all_to_all(std::vector<Bytes>& out, std::vector<Bytes>& in) = 0;
};

inline void append_bytes(Bytes& to, std::span<const std::byte> bytes) {
  const std::size_t before = to.size();
  to.resize(before + bytes.size());
  if (!bytes.empty()) std::memcpy(to.data() + before, bytes.data(), bytes.size());
}
// Numbers and plain structs.
template <class T>
void append(Bytes& to, const T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  append_bytes(to, std::as_bytes(std::span(&value, 1)));
}

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : left_(bytes) {}

  bool done() const { return left_.empty(); }
  template <class T>
  T take() {
    static_assert(std::is_trivially_copyable_v<T>);
    T value;
    std::memcpy(&value, take(sizeof(T)).data(), sizeof(T));
    return value;
  }
  std::span<const std::byte> take(std::size_t bytes) {
    if (bytes > left_.size()) throw std::runtime_error("a rank sent too few bytes");
    const std::span<const std::byte> taken = left_.first(bytes);
    left_ = left_.subspan(bytes);
    return taken;
  }

 private:
  std::span<const std::byte> left_;
};

}  // namespace uet::netsim
