// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The module libuet-sim-mpi.so: ranks are processes of MPI.
#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <stdexcept>

#include "netsim/mpi_module.h"

namespace uet::netsim {
namespace {

constexpr int kFirstTag = 1, kRestTag = 2;

void check(int status) {
  if (status != MPI_SUCCESS) throw std::runtime_error("a call of MPI failed");
}

// Of each pair of ranks a first message says how many bytes there are and has as many as fit, which
// are all of most windows. The rest follows when the receiver has memory for them.
class MpiExchange final : public Exchange {
 public:
  MpiExchange() {
    int rank = 0, ranks = 1;
    check(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    check(MPI_Comm_size(MPI_COMM_WORLD, &ranks));
    rank_ = static_cast<std::uint32_t>(rank);
    first_out_.resize(static_cast<std::size_t>(ranks));
    first_in_.resize(static_cast<std::size_t>(ranks));
  }

  std::uint32_t rank() const override { return rank_; }
  std::uint32_t ranks() const override { return static_cast<std::uint32_t>(first_in_.size()); }

  void all_to_all(std::vector<Bytes>& out, std::vector<Bytes>& in) override {
    for (std::uint32_t peer = 0; peer < ranks(); ++peer) {
      if (peer != rank_) exchange_first(peer, out[peer]);
    }
    wait();
    for (std::uint32_t peer = 0; peer < ranks(); ++peer) {
      if (peer != rank_) exchange_rest(peer, out[peer], in[peer]);
    }
    wait();
    for (Bytes& bytes : out) bytes.clear();
  }

 private:
  static constexpr std::size_t kFits = 4096;
  struct First {
    std::uint64_t bytes = 0;
    std::array<std::byte, kFits> begin;
  };

  void exchange_first(std::uint32_t peer, const Bytes& out) {
    First& first = first_out_[peer];
    first.bytes = out.size();
    const std::size_t used = std::min(out.size(), kFits);
    std::copy_n(out.begin(), used, first.begin.begin());
    const int other = static_cast<int>(peer);
    check(MPI_Irecv(&first_in_[peer], sizeof(First), MPI_BYTE, other, kFirstTag, MPI_COMM_WORLD,
                    &requests_.emplace_back()));
    check(MPI_Isend(&first, static_cast<int>(offsetof(First, begin) + used), MPI_BYTE, other,
                    kFirstTag, MPI_COMM_WORLD, &requests_.emplace_back()));
  }

  // A message counts its bytes in an int, so that very many bytes go as several.
  void exchange_rest(std::uint32_t peer, Bytes& out, Bytes& in) {
    constexpr std::size_t kMost = 1 << 30;
    const First& first = first_in_[peer];
    const int other = static_cast<int>(peer);
    in.resize(first.bytes);
    std::copy_n(first.begin.begin(), std::min(in.size(), kFits), in.begin());
    for (std::size_t at = kFits; at < in.size(); at += kMost) {
      const auto count = static_cast<int>(std::min(kMost, in.size() - at));
      check(MPI_Irecv(in.data() + at, count, MPI_BYTE, other, kRestTag, MPI_COMM_WORLD,
                      &requests_.emplace_back()));
    }
    for (std::size_t at = kFits; at < out.size(); at += kMost) {
      const auto count = static_cast<int>(std::min(kMost, out.size() - at));
      check(MPI_Isend(out.data() + at, count, MPI_BYTE, other, kRestTag, MPI_COMM_WORLD,
                      &requests_.emplace_back()));
    }
  }

  void wait() {
    const auto count = static_cast<int>(requests_.size());
    check(MPI_Waitall(count, requests_.data(), MPI_STATUSES_IGNORE));
    requests_.clear();
  }

  std::uint32_t rank_ = 0;
  std::vector<First> first_out_, first_in_;  // by rank
  std::vector<MPI_Request> requests_;
};

}  // namespace
}  // namespace uet::netsim

extern "C" __attribute__((visibility("default"))) uet::netsim::Exchange* uet_sim_mpi(
    const char* build) {
  if (std::strcmp(build, __VERSION__) != 0) return nullptr;
  if (MPI_Init(nullptr, nullptr) != MPI_SUCCESS) return nullptr;
  static uet::netsim::MpiExchange exchange;
  return &exchange;
}

extern "C" __attribute__((visibility("default"))) void uet_sim_mpi_end() { MPI_Finalize(); }
