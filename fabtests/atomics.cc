// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Atomics, fi_atomic(3): every call; and fi_query_atomic tells the truth about every operation on
// every datatype.
#include <array>
#include <numeric>
#include <utility>

#include "common.h"

using namespace fabtests;

namespace {

constexpr std::uint64_t kAccess = FI_REMOTE_READ | FI_REMOTE_WRITE;
constexpr int kOperations = FI_MSWAP + 1;
constexpr int kDatatypes = FI_LONG_DOUBLE_COMPLEX + 1;

void with_atomics(fi_info& hints) { hints.caps = FI_MSG | FI_ATOMIC; }

// The client works on eight numbers in the server's memory, which begin as 100 to 107.
struct Numbers {
  Numbers() { std::iota(values.begin(), values.end(), 100); }
  std::array<std::int64_t, 8> values;
};

class Client {
 public:
  Client(Node& node, const Remote& there) : node_(node), there_(there) {}

  std::array<std::int64_t, 8> read() {
    std::array<std::int64_t, 8> now{};
    POST(node_, fi_fetch_atomic(node_.ep, nullptr, 8, nullptr, now.data(), nullptr, node_.peer,
                                there_.address, there_.key, FI_INT64, FI_ATOMIC_READ, nullptr));
    done(FI_READ);
    return now;
  }

  // fi_atomic, fi_atomicv, fi_atomicmsg, fi_inject_atomic.
  void base() {
    std::array<std::int64_t, 8> add{1, 2, 3, 4, 5, 6, 7, 8};
    POST(node_, fi_atomic(node_.ep, add.data(), 8, nullptr, node_.peer, there_.address, there_.key,
                          FI_INT64, FI_SUM, nullptr));
    done(FI_WRITE);
    CHECK(read()[0] == 101 && read()[7] == 115);
    std::array<fi_ioc, 2> pieces{{{add.data(), 3}, {add.data() + 3, 5}}};
    POST(node_, fi_atomicv(node_.ep, pieces.data(), nullptr, 2, node_.peer, there_.address,
                           there_.key, FI_INT64, FI_SUM, nullptr));
    done(FI_WRITE);
    CHECK(read()[0] == 102 && read()[7] == 123);
    add.fill(110);
    const fi_msg_atomic message = describe(pieces.data(), 2, FI_MIN);
    POST(node_, fi_atomicmsg(node_.ep, &message, FI_DELIVERY_COMPLETE));
    done(FI_WRITE);
    CHECK(read()[0] == 102 && read()[7] == 110);
    POST(node_, fi_inject_atomic(node_.ep, add.data(), 1, node_.peer, there_.address, there_.key,
                                 FI_INT64, FI_ATOMIC_WRITE));
    while (read()[0] != 110) {
    }
  }

  // fi_fetch_atomic, -v, -msg: the numbers from before come back.
  void fetch() {
    std::array<std::int64_t, 8> add{};
    add.fill(1);
    const std::array<std::int64_t, 8> before = read();
    std::array<std::int64_t, 8> old{};
    POST(node_, fi_fetch_atomic(node_.ep, add.data(), 8, nullptr, old.data(), nullptr, node_.peer,
                                there_.address, there_.key, FI_INT64, FI_SUM, nullptr));
    done(FI_READ);
    CHECK(old == before);
    fi_ioc piece{add.data(), 8};
    std::array<fi_ioc, 2> results{{{old.data(), 6}, {old.data() + 6, 2}}};
    POST(node_,
         fi_fetch_atomicv(node_.ep, &piece, nullptr, 1, results.data(), nullptr, 2, node_.peer,
                          there_.address, there_.key, FI_INT64, FI_SUM, nullptr));
    done(FI_READ);
    CHECK(old[0] == before[0] + 1 && old[7] == before[7] + 1);
    const fi_msg_atomic message = describe(&piece, 1, FI_SUM);
    POST(node_, fi_fetch_atomicmsg(node_.ep, &message, results.data(), nullptr, 2, 0));
    done(FI_READ);
    CHECK(old[0] == before[0] + 2 && old[7] == before[7] + 2);
  }

  // fi_compare_atomic, -v, -msg: nothing is changed unless the number is as expected.
  void compare() {
    std::int64_t old = 0;
    std::int64_t wanted = 7000;
    std::int64_t guess = 6999;
    const auto call = [&] {
      return fi_compare_atomic(node_.ep, &wanted, 1, nullptr, &guess, nullptr, &old, nullptr,
                               node_.peer, there_.address, there_.key, FI_INT64, FI_CSWAP, nullptr);
    };
    POST(node_, call());
    done(FI_READ);
    CHECK(old != guess && read()[0] == old);
    guess = old;
    POST(node_, call());
    done(FI_READ);
    CHECK(old == guess && read()[0] == 7000);
    guess = std::exchange(wanted, 8000);
    fi_ioc piece{&wanted, 1};
    fi_ioc expected{&guess, 1};
    fi_ioc result{&old, 1};
    POST(node_, fi_compare_atomicv(node_.ep, &piece, nullptr, 1, &expected, nullptr, 1, &result,
                                   nullptr, 1, node_.peer, there_.address, there_.key, FI_INT64,
                                   FI_CSWAP, nullptr));
    done(FI_READ);
    CHECK(old == 7000 && read()[0] == 8000);
    guess = std::exchange(wanted, 9000);
    const fi_msg_atomic message = describe(&piece, 1, FI_CSWAP);
    target_.count = 1;
    POST(node_,
         fi_compare_atomicmsg(node_.ep, &message, &expected, nullptr, 1, &result, nullptr, 1, 0));
    done(FI_READ);
    CHECK(old == 8000 && read()[0] == 9000);
  }

 private:
  void done(std::uint64_t direction) {
    CHECK((node_.completion(node_.tx).flags & (FI_ATOMIC | direction)) == (FI_ATOMIC | direction));
  }
  fi_msg_atomic describe(const fi_ioc* pieces, std::size_t count, fi_op operation) {
    target_ = {there_.address, 8, there_.key};
    fi_msg_atomic message{};
    message.msg_iov = pieces;
    message.iov_count = count;
    message.addr = node_.peer;
    message.rma_iov = &target_;
    message.rma_iov_count = 1;
    message.datatype = FI_INT64;
    message.op = operation;
    return message;
  }

  Node& node_;
  Remote there_;
  fi_rma_ioc target_{};
};

void every_call(Link& link) {
  Setup setup;
  setup.hints = with_atomics;
  Node node(link, setup);
  node.connect();
  if (link.server()) {
    Numbers numbers;
    const Region region(node, std::as_writable_bytes(std::span(numbers.values)), kAccess, 1);
    link.send_value(region.remote);
    node.meet();
    return;
  }
  Client client(node, link.receive_value<Remote>(&node));
  client.base();
  client.fetch();
  client.compare();
  node.meet();
}

// For each operation and datatype: if the query says it works it does, else the call refuses it.
class Truth {
 public:
  Truth(Node& node, const Remote& there) : node_(node), there_(there) {}

  void base(fi_datatype datatype, fi_op operation) {
    std::size_t count = 0;
    const int valid = fi_atomicvalid(node_.ep, datatype, operation, &count);
    expect(valid, count, [&] {
      return fi_atomic(node_.ep, operand_.data(), 1, nullptr, node_.peer, there_.address,
                       there_.key, datatype, operation, nullptr);
    });
  }
  void fetch(fi_datatype datatype, fi_op operation) {
    std::size_t count = 0;
    const int valid = fi_fetch_atomicvalid(node_.ep, datatype, operation, &count);
    expect(valid, count, [&] {
      return fi_fetch_atomic(node_.ep, operand_.data(), 1, nullptr, result_.data(), nullptr,
                             node_.peer, there_.address, there_.key, datatype, operation, nullptr);
    });
  }
  void compare(fi_datatype datatype, fi_op operation) {
    std::size_t count = 0;
    const int valid = fi_compare_atomicvalid(node_.ep, datatype, operation, &count);
    expect(valid, count, [&] {
      return fi_compare_atomic(node_.ep, operand_.data(), 1, nullptr, compare_.data(), nullptr,
                               result_.data(), nullptr, node_.peer, there_.address, there_.key,
                               datatype, operation, nullptr);
    });
  }
  int valid() const { return valid_; }

 private:
  void expect(int query, std::size_t count, const std::function<ssize_t()>& call) {
    const ssize_t result = node_.repeat(call);
    if (query == 0) {
      CHECK(count >= 1);
      CHECK(result == 0);
      node_.completion(node_.tx);
      ++valid_;
    } else {
      CHECK(query == -FI_EOPNOTSUPP);
      CHECK(result == -FI_EOPNOTSUPP);
    }
  }

  Node& node_;
  Remote there_;
  std::array<std::byte, 32> operand_{};
  std::array<std::byte, 32> compare_{};
  std::array<std::byte, 32> result_{};
  int valid_ = 0;
};

void query_tells_the_truth(Link& link) {
  Setup setup;
  setup.hints = with_atomics;
  Node node(link, setup);
  node.connect();
  Bytes memory(32);
  if (link.server()) {
    const Region region(node, memory, kAccess, 2);
    link.send_value(region.remote);
    node.meet();
    return;
  }
  Truth truth(node, link.receive_value<Remote>(&node));
  for (int datatype = 0; datatype < kDatatypes; ++datatype) {
    for (int operation = 0; operation < kOperations; ++operation) {
      truth.base(static_cast<fi_datatype>(datatype), static_cast<fi_op>(operation));
      truth.fetch(static_cast<fi_datatype>(datatype), static_cast<fi_op>(operation));
      truth.compare(static_cast<fi_datatype>(datatype), static_cast<fi_op>(operation));
    }
  }
  CHECK(truth.valid() > 100);
  CHECK(node.stays_empty(node.tx));
  node.meet();
}

// Many initiations of both sides on one number: none is lost, none is done twice.
void sum_of_all(Link& link) {
  Setup setup;
  setup.hints = with_atomics;
  Node node(link, setup);
  node.connect();
  constexpr std::uint64_t kAdditions = 500;
  std::array<std::uint64_t, 1> sum{};
  const Region region(node, std::as_writable_bytes(std::span(sum)), kAccess, 3);
  link.send_value(region.remote);
  const Remote there = link.receive_value<Remote>(&node);
  const std::uint64_t one = 1;
  for (std::uint64_t i = 0; i < kAdditions; ++i) {
    POST(node, fi_atomic(node.ep, &one, 1, nullptr, node.peer, there.address, there.key, FI_UINT64,
                         FI_SUM, nullptr));
  }
  for (std::uint64_t i = 0; i < kAdditions; ++i) node.completion(node.tx);
  node.meet();
  CHECK(sum[0] == kAdditions);
  node.meet();
}

constexpr Case kCases[] = {{"every_call", every_call},
                           {"query_tells_the_truth", query_tells_the_truth},
                           {"sum_of_all", sum_of_all}};

}  // namespace

int main(int argc, char** argv) { return run_cases(argc, argv, kCases); }
