// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Remote memory access over libfabric, from end to end: one process (the target) registers memory,
// the other (the initiator) writes into it with fi_write, reads it back with fi_read, and rings the
// target with fi_writedata, which the target sees in its completion queue. Every byte is checked.
//
//   rma_example --server                    on one machine
//   rma_example --client ADDRESS            on another, or in another terminal with 127.0.0.1
//   --provider NAME (uet)  --port PORT (7471, TCP, for the introduction)
//   --count N (client: operations of each kind and size; 1000 up to 4 KiB, 100 above)
//
// The exit status is 0 only if every byte was right at both ends.
#include <rdma/fi_rma.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <span>
#include <string_view>
#include <vector>

#include "common.h"

namespace {

using example::Endpoint;
using example::Introduction;
using example::Socket;

constexpr std::size_t kMaxBytes = 1 << 20;
constexpr std::size_t kInFlight = 16;  // operations at a time when bandwidth is measured
constexpr std::uint64_t kCheckRequest = 1U << 31;  // in the CQ data: "look at your memory now"

struct Options {
  bool server = false;
  std::string client_of;  // the server's address
  std::string provider = "uet";
  std::string port = "7471";
  std::size_t count = 0;  // 0: by size
};

// Each size has its own bytes, so that data left over from an earlier round never looks right.
std::byte pattern(std::size_t index, std::size_t bytes) {
  return static_cast<std::byte>(index * 31 + index / 256 + bytes / 64);
}

void fill(std::span<std::byte> memory) {
  for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = pattern(i, memory.size());
}

bool is_right(std::span<const std::byte> memory, const char* where) {
  for (std::size_t i = 0; i < memory.size(); ++i) {
    if (memory[i] != pattern(i, memory.size())) {
      std::fprintf(stderr, "wrong byte %zu of %zu %s: %02x, not %02x\n", i, memory.size(), where,
                   static_cast<unsigned>(memory[i]),
                   static_cast<unsigned>(pattern(i, memory.size())));
      return false;
    }
  }
  return true;
}

// ---- target ------------------------------------------------------------------------------------

// The target posts nothing. It only makes progress (fi_cq_read, in poll) and answers
// each check request over TCP with "right" or "wrong".
bool run_target(const Options& options) {
  Socket socket = Socket::accept_one(options.port);
  std::vector<std::byte> memory(kMaxBytes);
  Endpoint endpoint(options.provider, FI_MSG | FI_RMA, socket.local_host());
  socket.send(endpoint.introduce(memory.data(), memory.size()));
  endpoint.meet(socket.receive<Introduction>());

  bool all_right = true;
  std::uint64_t bytes_checked = 0;
  for (std::uint64_t round = 0; round % 256 != 0 || !socket.at_end(); ++round) {
    const std::uint64_t seen = endpoint.data_events();
    endpoint.poll();
    if (endpoint.data_events() == seen || (endpoint.last_data() & kCheckRequest) == 0) continue;
    const std::size_t bytes = endpoint.last_data() & ~kCheckRequest;
    if (bytes > memory.size()) example::fail("the CQ data names more memory than there is");
    const bool right = is_right(std::span(memory).first(bytes), "in the target's memory");
    socket.send(static_cast<std::uint8_t>(right));
    all_right = all_right && right;
    bytes_checked += bytes;
  }
  std::printf("%llu writes with data seen, %llu bytes checked, %s\n",
              static_cast<unsigned long long>(endpoint.data_events()),
              static_cast<unsigned long long>(bytes_checked), all_right ? "all right" : "WRONG");
  return all_right && bytes_checked > 0;
}

// ---- initiator ---------------------------------------------------------------------------------

// Microseconds for `count` operations, at most `in_flight` at a time. `operation` posts one.
template <class Operation>
double time_of(Endpoint& endpoint, const char* what, std::size_t count, std::size_t in_flight,
               Operation&& operation) {
  const std::uint64_t before = endpoint.sent();
  const auto start = std::chrono::steady_clock::now();
  for (std::size_t posted = 0; posted < count; ++posted) {
    example::wait_until(endpoint, what,
                        [&] { return posted - (endpoint.sent() - before) < in_flight; });
    endpoint.post(what, operation);
  }
  example::wait_until(endpoint, what, [&] { return endpoint.sent() - before == count; });
  const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - start;
  return time.count();
}

// One operation at a time gives the latency, several in flight the bandwidth.
template <class Operation>
void measure(Endpoint& endpoint, const Options& options, const char* what, std::size_t bytes,
             Operation&& operation) {
  const std::size_t by_size = bytes <= 4096 ? 1000 : 100;
  const std::size_t count = options.count != 0 ? options.count : by_size;
  time_of(endpoint, what, std::min(count, kInFlight), 1, operation);  // warm up
  const double one_at_a_time = time_of(endpoint, what, count, 1, operation);
  const double several = time_of(endpoint, what, count, kInFlight, operation);
  std::printf("%-12s %10zu %14.2f %16.1f\n", what, bytes,
              one_at_a_time / static_cast<double>(count),
              static_cast<double>(bytes * count) / several);
}

bool run_initiator(const Options& options) {
  Socket socket = Socket::connect_to(options.client_of, options.port);
  std::vector<std::byte> memory(2 * kMaxBytes);
  Endpoint endpoint(options.provider, FI_MSG | FI_RMA, socket.local_host());
  socket.send(endpoint.introduce(memory.data(), memory.size()));
  const auto target = socket.receive<Introduction>();
  endpoint.meet(target);

  std::printf("%-12s %10s %14s %16s\n", "operation", "bytes", "latency us", "bandwidth MB/s");
  for (std::size_t bytes = 64; bytes <= kMaxBytes; bytes *= 4) {
    const std::span<std::byte> source = std::span(memory).first(bytes);
    const std::span<std::byte> copy = std::span(memory).subspan(kMaxBytes, bytes);
    fill(source);
    measure(endpoint, options, "fi_write", bytes, [&] {
      return fi_write(endpoint.ep(), source.data(), bytes, endpoint.descriptor(), endpoint.peer(),
                      target.memory_address, target.memory_key, nullptr);
    });

    measure(endpoint, options, "fi_read", bytes, [&] {
      return fi_read(endpoint.ep(), copy.data(), bytes, endpoint.descriptor(), endpoint.peer(),
                     target.memory_address, target.memory_key, nullptr);
    });
    if (!is_right(copy, "read back")) return false;

    const auto write_with = [&](std::uint64_t data) {
      return fi_writedata(endpoint.ep(), source.data(), bytes, endpoint.descriptor(), data,
                          endpoint.peer(), target.memory_address, target.memory_key, nullptr);
    };
    measure(endpoint, options, "fi_writedata", bytes, [&] { return write_with(bytes); });
    // A last one asks the target to compare what it has with what it should have.
    time_of(endpoint, "fi_writedata", 1, 1, [&] { return write_with(bytes | kCheckRequest); });
    example::wait_until(endpoint, "the target's verdict", [&] { return socket.readable(); });
    if (socket.receive<std::uint8_t>() == 0) example::fail("the target found wrong bytes");
  }
  return true;
}

// ---- command line ------------------------------------------------------------------------------

bool parse(int argc, char** argv, Options& options) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view name = argv[i];
    const char* value = i + 1 < argc ? argv[i + 1] : nullptr;
    if (name == "--server") {
      options.server = true;
      continue;
    }
    if (value == nullptr) return false;
    if (name == "--client") {
      options.client_of = value;
    } else if (name == "--provider") {
      options.provider = value;
    } else if (name == "--port") {
      options.port = value;
    } else if (name == "--count") {
      const std::string_view digits = value;
      const auto [end, error] =
          std::from_chars(digits.data(), digits.data() + digits.size(), options.count);
      if (error != std::errc() || end != digits.data() + digits.size()) return false;
    } else {
      return false;
    }
    ++i;
  }
  return options.server == options.client_of.empty();
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  if (!parse(argc, argv, options)) {
    std::fprintf(
        stderr,
        "use: %s --server | --client ADDRESS  [--provider NAME] [--port PORT] [--count N]\n",
        argv[0]);
    return 2;
  }
  try {
    return (options.server ? run_target(options) : run_initiator(options)) ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
    return 1;
  }
}
