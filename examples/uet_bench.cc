// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Measures bandwidth, message rate and latency between two processes over any provider with
// FI_EP_RDM. The client prints one line: "result: NUMBER UNIT name=value ...".
//
//   uet_bench --server               [options]
//   uet_bench --client ADDRESS       [options, the same as the server's]
//   --mode bw      one-way messages of --size, --window in flight, in MB/s (10^6 bytes)
//          rate    the same in messages per second
//          lat     ping-pong, microseconds one way
//          write   fi_write, --window in flight, in MB/s
//          read    fi_read, --window in flight, in MB/s
//   --tagged       tagged messages (bw, rate, lat)
//   --size BYTES (64)  --iterations N (10000)  --window N (64)  --provider NAME (uet)
//   --port PORT (7472, TCP, for the introduction)
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include <charconv>
#include <cstdio>
#include <string_view>
#include <vector>

#include "common.h"

namespace {

using example::Endpoint;
using example::Introduction;
using example::Socket;

constexpr std::uint64_t kTag = 42;

struct Options {
  bool server = false;
  bool tagged = false;
  std::string client_of;
  std::string mode = "bw";
  std::string provider = "uet";
  std::string port = "7472";
  std::uint64_t size = 64;
  std::uint64_t iterations = 10000;
  std::uint64_t window = 64;

  bool rma() const { return mode == "write" || mode == "read"; }
};

// Two processes and what they do to each other. Slot i of the memory belongs to operation
// i modulo window; the upper half of the slots is for receiving.
class Bench {
 public:
  Bench(const Options& options, Socket socket)
      : options_(options),
        socket_(std::move(socket)),
        memory_(2 * options.window * options.size),
        endpoint_(options.provider, options.rma() ? FI_MSG | FI_RMA : FI_MSG | FI_TAGGED,
                  socket_.local_host()) {
    socket_.send(endpoint_.introduce(memory_.data(), memory_.size()));
    peer_ = socket_.receive<Introduction>();
    endpoint_.meet(peer_);
  }

  // Returns the seconds that the client measured; meaningless at the server.
  double run() {
    if (!options_.rma()) {
      while (receives_posted_ < std::min(options_.window, options_.iterations)) post_receive();
    }
    // Both are ready; a first exchange of messages also sets up what the provider sets up lazily.
    meet_at_socket();
    const auto start = std::chrono::steady_clock::now();
    if (options_.mode == "lat") {
      ping_pong();
    } else if (options_.server) {
      if (!options_.rma()) take_all();
      serve_until_client_is_done();
    } else {
      stream();
    }
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
    meet_at_socket();
    return time.count();
  }

 private:
  std::byte* slot(std::uint64_t index) {
    return memory_.data() + (index % options_.window) * options_.size;
  }
  std::byte* receive_slot(std::uint64_t index) {
    return slot(index) + options_.window * options_.size;
  }

  void post_receive() {
    std::byte* buffer = receive_slot(receives_posted_);
    endpoint_.post("posting a receive", [&] {
      return options_.tagged ? fi_trecv(endpoint_.ep(), buffer, options_.size,
                                        endpoint_.descriptor(), FI_ADDR_UNSPEC, kTag, 0, nullptr)
                             : fi_recv(endpoint_.ep(), buffer, options_.size,
                                       endpoint_.descriptor(), FI_ADDR_UNSPEC, nullptr);
    });
    ++receives_posted_;
  }

  void post_operation() {
    std::byte* buffer = slot(posted_);
    const std::uint64_t offset = static_cast<std::uint64_t>(buffer - memory_.data());
    fid_ep* ep = endpoint_.ep();
    void* descriptor = endpoint_.descriptor();
    const fi_addr_t to = endpoint_.peer();
    endpoint_.post("posting an operation", [&] {
      if (options_.mode == "write") {
        return fi_write(ep, buffer, options_.size, descriptor, to, peer_.memory_address + offset,
                        peer_.memory_key, nullptr);
      }
      if (options_.mode == "read") {
        return fi_read(ep, buffer, options_.size, descriptor, to, peer_.memory_address + offset,
                       peer_.memory_key, nullptr);
      }
      return options_.tagged ? fi_tsend(ep, buffer, options_.size, descriptor, to, kTag, nullptr)
                             : fi_send(ep, buffer, options_.size, descriptor, to, nullptr);
    });
    ++posted_;
  }

  // Client: everything out, never more than the window in flight; then, for messages, the word of
  // the server that all have arrived.
  void stream() {
    while (posted_ < options_.iterations) {
      if (posted_ - endpoint_.sent() < options_.window) {
        post_operation();
      } else {
        endpoint_.poll();
      }
    }
    example::wait_until(endpoint_, "completions",
                        [&] { return endpoint_.sent() == options_.iterations; });
    if (!options_.rma()) wait_for_word();
    socket_.send(std::uint8_t{1});
  }

  // Server: receives are posted again as soon as they complete.
  void take_all() {
    example::wait_until(endpoint_, "messages", [&] {
      while (receives_posted_ < options_.iterations &&
             receives_posted_ - endpoint_.received() < options_.window) {
        post_receive();
      }
      return endpoint_.received() == options_.iterations;
    });
    socket_.send(std::uint8_t{1});
  }

  // The provider must be called for as long as the client may need it.
  void serve_until_client_is_done() {
    for (std::uint64_t round = 0; round % 256 != 0 || !socket_.readable(); ++round) {
      endpoint_.poll();
    }
    socket_.receive<std::uint8_t>();
  }

  void ping_pong() {
    for (std::uint64_t i = 0; i < options_.iterations; ++i) {
      if (!options_.server) post_operation();
      example::wait_until(endpoint_, "the other's message",
                          [&] { return endpoint_.received() > i; });
      if (receives_posted_ < options_.iterations) post_receive();
      if (options_.server) post_operation();
    }
    example::wait_until(endpoint_, "completions",
                        [&] { return endpoint_.sent() == options_.iterations; });
  }

  void wait_for_word() {
    example::wait_until(endpoint_, "the other process", [&] { return socket_.readable(); });
    socket_.receive<std::uint8_t>();
  }
  void meet_at_socket() {
    socket_.send(std::uint8_t{1});
    wait_for_word();
  }

  const Options& options_;
  Socket socket_;
  std::vector<std::byte> memory_;
  Endpoint endpoint_;
  Introduction peer_;
  std::uint64_t posted_ = 0;
  std::uint64_t receives_posted_ = 0;
};

void print_result(const Options& options, double seconds) {
  const auto count = static_cast<double>(options.iterations);
  double value = count * static_cast<double>(options.size) / seconds / 1e6;
  const char* unit = "MB/s";
  if (options.mode == "rate") {
    value = count / seconds;
    unit = "messages/s";
  } else if (options.mode == "lat") {
    value = seconds / count / 2 * 1e6;
    unit = "us";
  }
  std::printf(
      "result: %.3f %s mode=%s tagged=%d size=%llu iterations=%llu window=%llu provider=%s\n",
      value, unit, options.mode.c_str(), options.tagged,
      static_cast<unsigned long long>(options.size),
      static_cast<unsigned long long>(options.iterations),
      static_cast<unsigned long long>(options.window), options.provider.c_str());
}

// ---- command line ------------------------------------------------------------------------------

bool parse_number(std::string_view text, std::uint64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && number > 0;
}

bool parse(int argc, char** argv, Options& options) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view name = argv[i];
    if (name == "--server" || name == "--tagged") {
      (name == "--server" ? options.server : options.tagged) = true;
      continue;
    }
    if (++i == argc) return false;
    const std::string_view value = argv[i];
    if (name == "--client") {
      options.client_of = value;
    } else if (name == "--mode") {
      options.mode = value;
    } else if (name == "--provider") {
      options.provider = value;
    } else if (name == "--port") {
      options.port = value;
    } else if (name == "--size") {
      if (!parse_number(value, options.size)) return false;
    } else if (name == "--iterations") {
      if (!parse_number(value, options.iterations)) return false;
    } else if (name == "--window") {
      if (!parse_number(value, options.window)) return false;
    } else {
      return false;
    }
  }
  const std::string& mode = options.mode;
  return options.server == options.client_of.empty() &&
         (options.rma() || mode == "bw" || mode == "rate" || mode == "lat");
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  if (!parse(argc, argv, options)) {
    std::fprintf(stderr,
                 "use: %s --server | --client ADDRESS\n"
                 "  [--mode bw|rate|lat|write|read] [--tagged] [--size BYTES] [--iterations N]\n"
                 "  [--window N] [--provider NAME] [--port PORT]\n",
                 argv[0]);
    return 2;
  }
  try {
    Bench bench(options, options.server ? Socket::accept_one(options.port)
                                        : Socket::connect_to(options.client_of, options.port));
    const double seconds = bench.run();
    if (!options.server) print_result(options, seconds);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
    return 1;
  }
}
