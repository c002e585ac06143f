// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "netsim/threads.h"

#include <condition_variable>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

namespace uet::netsim {
namespace {

// The meeting place of all threads.
class Table {
 public:
  explicit Table(std::uint32_t ranks) : ranks_(ranks), given_(ranks, std::vector<Bytes>(ranks)) {}

  std::uint32_t ranks() const { return ranks_; }
  // The bytes that `from` gives to `to`; to be touched by `from` before the first of two meetings,
  // and by `to` between them.
  Bytes& given(std::uint32_t from, std::uint32_t to) { return given_[from][to]; }

  // Returns when all ranks have come.
  void meet() {
    std::unique_lock lock(mutex_);
    if (failed_) throw std::runtime_error("another rank has failed");
    const std::uint64_t meeting = meetings_;
    if (++here_ == ranks_) {
      here_ = 0;
      ++meetings_;
      all_here_.notify_all();
      return;
    }
    all_here_.wait(lock, [&] { return meetings_ != meeting || failed_; });
    if (meetings_ == meeting) throw std::runtime_error("another rank has failed");
  }
  // A rank will not come any more.
  void fail(const std::exception_ptr& why) {
    const std::lock_guard lock(mutex_);
    if (!failed_) why_ = why;
    failed_ = true;
    all_here_.notify_all();
  }
  std::exception_ptr why() const { return why_; }

 private:
  const std::uint32_t ranks_;
  std::vector<std::vector<Bytes>> given_;
  std::mutex mutex_;
  std::condition_variable all_here_;
  std::uint32_t here_ = 0;
  std::uint64_t meetings_ = 0;
  bool failed_ = false;
  std::exception_ptr why_;
};

class ThreadExchange final : public Exchange {
 public:
  ThreadExchange(Table& table, std::uint32_t rank) : table_(table), rank_(rank) {}

  std::uint32_t rank() const override { return rank_; }
  std::uint32_t ranks() const override { return table_.ranks(); }
  // Buffers change hands, so that they keep their memory.
  void all_to_all(std::vector<Bytes>& out, std::vector<Bytes>& in) override {
    for (std::uint32_t to = 0; to < ranks(); ++to) {
      if (to != rank_) table_.given(rank_, to).swap(out[to]);
    }
    table_.meet();
    for (std::uint32_t from = 0; from < ranks(); ++from) {
      if (from != rank_) table_.given(from, rank_).swap(in[from]);
    }
    table_.meet();
    for (Bytes& bytes : out) bytes.clear();
  }

 private:
  Table& table_;
  const std::uint32_t rank_;
};

}  // namespace

void run_in_threads(std::uint32_t ranks, const std::function<void(Exchange&)>& rank) {
  Table table(ranks);
  const auto run = [&](std::uint32_t number) {
    try {
      ThreadExchange exchange(table, number);
      rank(exchange);
    } catch (...) {
      table.fail(std::current_exception());
    }
  };
  {
    std::vector<std::jthread> threads;
    for (std::uint32_t i = 1; i < ranks; ++i) threads.emplace_back(run, i);
    run(0);
  }
  if (table.why()) std::rethrow_exception(table.why());
}

}  // namespace uet::netsim
