// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Measures bandwidth, message rate and latency between processes over any provider with FI_EP_RDM.
// The client prints a line for each measurement: "result: NUMBER UNIT name=value ...".
//
//   uet_bench --server               [options]
//   uet_bench --client ADDRESS       [options, the same as the server's]
//   --mode bw      one-way messages of --size, --window in flight, in MB/s (10^6 bytes)
//          bidir   the same both ways at a time, the sum of both
//          rate    the same in messages per second
//          lat     ping-pong, microseconds one way: the mean, and percentiles; injected up to the
//                  provider's inject_size, as fabtests and MPI do
//          beside  the same, while the client has --window writes of 1 MiB to the server in flight;
//                  --size up to the provider's inject_size
//          write   fi_write, --window in flight, in MB/s
//          read    fi_read, --window in flight, in MB/s
//   --tagged       tagged messages (bw, bidir, rate, lat, beside)
//   --ordered      messages arrive in the order that they were sent in (FI_ORDER_SAS)
//   --sleep        wait for completions in fi_cq_sread instead of polling
//   --megabytes N  bw: send so many MB/s at most
//   --size BYTES (64)  --iterations N (10000)  --window N (64)  --provider NAME (uet)
//   --plan MODE:SIZE:ITERATIONS:WINDOW[,...]   several measurements, one after the other
//   --clients N (1)  of one server; bw and rate only; the server prints the result, the sum of all
//   --port PORT (7472, TCP, for the introduction)
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <string_view>
#include <utility>
#include <vector>

#include "common.h"

namespace {

using example::Endpoint;
using example::Introduction;
using example::Socket;

constexpr std::uint64_t kTag = 42;

constexpr std::uint64_t kStreamed = 1 << 20;  // bytes of a write beside a ping-pong

struct Measurement {
  bool rma() const { return mode == "write" || mode == "read"; }
  bool beside() const { return mode == "beside"; }
  bool ping_pong() const { return mode == "lat" || beside(); }
  bool one_way() const { return mode == "bw" || mode == "rate"; }

  std::string mode = "bw";
  std::uint64_t size = 64;
  std::uint64_t iterations = 10000;
  std::uint64_t window = 64;
};

struct Options {
  bool server = false;
  bool tagged = false;
  bool ordered = false;
  bool sleep = false;
  std::string client_of;
  std::string provider = "uet";
  std::string port = "7472";
  std::uint64_t clients = 1;
  std::uint64_t megabytes = 0;  // per second; 0: as many as possible
  std::vector<Measurement> plan;

  std::uint64_t most_bytes() const {
    std::uint64_t most = 0;
    for (const Measurement& one : plan) {
      most = std::max(most, one.window * (2 * one.size + (one.beside() ? kStreamed : 0)));
    }
    return most;
  }
  std::uint64_t capabilities() const {
    std::uint64_t needed = 0;
    for (const Measurement& one : plan) {
      needed |= FI_MSG | (one.rma() || one.beside() ? FI_RMA : 0) | (one.rma() ? 0 : FI_TAGGED);
    }
    return needed;
  }
  example::EndpointOptions endpoint() const {
    return {sleep ? example::Progress::Sleeping : example::Progress::WhenPolled, ordered};
  }
};

// The processes and what they do to each other. Slot i of the memory belongs to operation
// i modulo window; the upper half of the slots is for receiving.
class Bench {
 public:
  // `sockets`: to the server, or to all clients.
  Bench(const Options& options, std::vector<Socket> sockets)
      : options_(options),
        sockets_(std::move(sockets)),
        memory_(options.most_bytes()),
        endpoint_(options.provider, options.capabilities(), sockets_[0].local_host(),
                  options.endpoint()) {
    const Introduction own = endpoint_.introduce(memory_.data(), memory_.size());
    for (Socket& socket : sockets_) {
      socket.send(own);
      peer_ = socket.receive<Introduction>();
      endpoint_.meet(peer_);
    }
  }

  // Microseconds one way of each ping-pong of the last run(), from the shortest to the longest.
  const std::vector<double>& latencies() const { return latencies_; }
  // Returns the seconds that it took.
  double run(const Measurement& now) {
    now_ = now;
    if (options_.server) now_.iterations *= sockets_.size();
    posted_ = receives_posted_ = streamed_ = 0;
    latencies_.clear();
    latencies_.reserve(now_.ping_pong() ? now_.iterations : 0);
    if (now_.beside() && !injects()) {
      example::fail("beside a stream the provider must be able to inject --size");
    }
    sent_before_ = endpoint_.sent();
    received_before_ = endpoint_.received();
    if (receives()) {
      while (receives_posted_ < std::min(now_.window, now_.iterations)) post_receive();
    }
    // All are ready; a first exchange of messages also sets up what the provider sets up lazily.
    meet_at_socket();
    const auto start = std::chrono::steady_clock::now();
    if (now_.ping_pong()) {
      ping_pong();
    } else if (now_.mode == "bidir") {
      exchange();
    } else if (options_.server) {
      if (!now_.rma()) take_all();
      serve_until_clients_are_done();
    } else {
      stream();
    }
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
    meet_at_socket();
    std::sort(latencies_.begin(), latencies_.end());
    return time.count();
  }

 private:
  std::byte* slot(std::uint64_t index) {
    return memory_.data() + (index % now_.window) * now_.size;
  }
  std::byte* receive_slot(std::uint64_t index) { return slot(index) + now_.window * now_.size; }

  void post_receive() {
    std::byte* buffer = receive_slot(receives_posted_);
    endpoint_.post("posting a receive", [&] {
      return options_.tagged ? fi_trecv(endpoint_.ep(), buffer, now_.size, endpoint_.descriptor(),
                                        FI_ADDR_UNSPEC, kTag, 0, nullptr)
                             : fi_recv(endpoint_.ep(), buffer, now_.size, endpoint_.descriptor(),
                                       FI_ADDR_UNSPEC, nullptr);
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
      if (now_.mode == "write") {
        return fi_write(ep, buffer, now_.size, descriptor, to, peer_.memory_address + offset,
                        peer_.memory_key, nullptr);
      }
      if (now_.mode == "read") {
        return fi_read(ep, buffer, now_.size, descriptor, to, peer_.memory_address + offset,
                       peer_.memory_key, nullptr);
      }
      if (injects()) {
        return options_.tagged ? fi_tinject(ep, buffer, now_.size, to, kTag)
                               : fi_inject(ep, buffer, now_.size, to);
      }
      return options_.tagged ? fi_tsend(ep, buffer, now_.size, descriptor, to, kTag, nullptr)
                             : fi_send(ep, buffer, now_.size, descriptor, to, nullptr);
    });
    ++posted_;
  }

  // Client: everything out, never more than the window in flight; then, for messages, the word of
  // the server that all have arrived.
  void stream() {
    using Seconds = std::chrono::duration<double>;
    const auto start = std::chrono::steady_clock::now();
    const double per_post = options_.megabytes == 0 ? 0
                                                    : static_cast<double>(now_.size) / 1e6 /
                                                          static_cast<double>(options_.megabytes);
    // The time that belongs to the last message passes too: the rate is never above the option.
    for (;;) {
      const bool due = per_post == 0 || Seconds(std::chrono::steady_clock::now() - start).count() >=
                                            static_cast<double>(posted_) * per_post;
      if (due && posted_ == now_.iterations) break;
      if (due && posted_ - sent() < now_.window) {
        post_operation();
      } else {
        endpoint_.poll();
      }
    }
    example::wait_until(endpoint_, "completions", [&] { return sent() == now_.iterations; });
    if (!now_.rma()) wait_for_word();
    say_to_all();
  }

  // Server: receives are posted again as soon as they complete.
  void take_all() {
    example::wait_until(endpoint_, "messages", [&] {
      post_receives_again();
      return received() == now_.iterations;
    });
    say_to_all();
  }

  // The provider must be called for as long as a client may need it.
  void serve_until_clients_are_done() {
    for (Socket& socket : sockets_) {
      for (std::uint64_t round = 0; round % (options_.sleep ? 1 : 256) != 0 || !socket.readable();
           ++round) {
        endpoint_.poll();
      }
      socket.receive<std::uint8_t>();
    }
  }

  // Both ends at a time.
  void exchange() {
    example::wait_until(endpoint_, "messages both ways", [&] {
      post_receives_again();
      while (posted_ < now_.iterations && posted_ - sent() < now_.window) post_operation();
      return received() == now_.iterations && sent() == now_.iterations;
    });
  }

  void post_receives_again() {
    while (receives_posted_ < now_.iterations && receives_posted_ - received() < now_.window) {
      post_receive();
    }
  }

  void ping_pong() {
    using Microseconds = std::chrono::duration<double, std::micro>;
    auto before = std::chrono::steady_clock::now();
    for (std::uint64_t i = 0; i < now_.iterations; ++i) {
      if (!options_.server) post_operation();
      example::wait_until(endpoint_, "the other's message", [&] {
        keep_streaming();
        return received() > i;
      });
      if (receives_posted_ < now_.iterations) post_receive();
      if (options_.server) post_operation();
      const auto now = std::chrono::steady_clock::now();
      latencies_.push_back(Microseconds(now - before).count() / 2);
      before = now;
    }
    if (now_.beside()) {
      example::wait_until(endpoint_, "the writes", [&] { return sent() == streamed_; });
      if (options_.server) return serve_until_clients_are_done();
      return say_to_all();
    }
    if (injects()) return;  // which completes nothing
    example::wait_until(endpoint_, "completions", [&] { return sent() == now_.iterations; });
  }

  // The client of a ping-pong beside a stream: as many writes in flight as the window allows.
  void keep_streaming() {
    if (!now_.beside() || options_.server) return;
    while (streamed_ - sent() < now_.window) {
      const std::uint64_t offset =
          2 * now_.window * now_.size + streamed_ % now_.window * kStreamed;
      endpoint_.post("posting a write", [&] {
        return fi_write(endpoint_.ep(), memory_.data() + offset, kStreamed, endpoint_.descriptor(),
                        endpoint_.peer(), peer_.memory_address + offset, peer_.memory_key, nullptr);
      });
      ++streamed_;
    }
  }

  void say_to_all() {
    for (Socket& socket : sockets_) socket.send(std::uint8_t{1});
  }
  void wait_for_word() {
    for (Socket& socket : sockets_) {
      example::wait_until(endpoint_, "the other process", [&] { return socket.readable(); });
      socket.receive<std::uint8_t>();
    }
  }
  // A server answers when all have come, so that all begin together.
  void meet_at_socket() {
    if (!options_.server) say_to_all();
    wait_for_word();
    if (options_.server) say_to_all();
  }
  bool receives() const { return !now_.rma() && (options_.server || !now_.one_way()); }
  bool injects() const {
    return now_.ping_pong() && now_.size <= endpoint_.info().tx_attr->inject_size;
  }
  std::uint64_t sent() const { return endpoint_.sent() - sent_before_; }
  std::uint64_t received() const { return endpoint_.received() - received_before_; }

  const Options& options_;
  Measurement now_;
  std::vector<Socket> sockets_;
  std::vector<std::byte> memory_;
  Endpoint endpoint_;
  Introduction peer_;
  std::vector<double> latencies_;
  std::uint64_t posted_ = 0;
  std::uint64_t streamed_ = 0;  // writes beside a ping-pong
  std::uint64_t receives_posted_ = 0;
  std::uint64_t sent_before_ = 0;
  std::uint64_t received_before_ = 0;
};

// The smallest of the sorted values that at least `part` of all do not exceed.
double percentile(const std::vector<double>& sorted, double part) {
  const double rank = std::ceil(part * static_cast<double>(sorted.size()));
  return sorted[static_cast<std::size_t>(std::max(rank, 1.0)) - 1];
}

void print_result(const Options& options, const Measurement& one, double seconds,
                  const std::vector<double>& latencies) {
  const auto count = static_cast<double>(one.iterations * options.clients);
  double value = count * static_cast<double>(one.size) / seconds / 1e6;
  const char* unit = "MB/s";
  if (one.mode == "rate") {
    value = count / seconds;
    unit = "messages/s";
  } else if (one.ping_pong()) {
    value = seconds / count / 2 * 1e6;
    unit = "us";
  } else if (one.mode == "bidir") {
    value *= 2;
  }
  std::printf(
      "result: %.3f %s mode=%s tagged=%d size=%llu iterations=%llu window=%llu "
      "clients=%llu provider=%s",
      value, unit, one.mode.c_str(), options.tagged, static_cast<unsigned long long>(one.size),
      static_cast<unsigned long long>(one.iterations), static_cast<unsigned long long>(one.window),
      static_cast<unsigned long long>(options.clients), options.provider.c_str());
  if (!latencies.empty()) {
    std::printf(" p50=%.3f p99=%.3f p999=%.3f", percentile(latencies, 0.5),
                percentile(latencies, 0.99), percentile(latencies, 0.999));
  }
  std::printf("\n");
  std::fflush(stdout);
}

// ---- command line ------------------------------------------------------------------------------

bool parse_number(std::string_view text, std::uint64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && number > 0;
}

bool parse_plan(std::string_view text, std::vector<Measurement>& plan) {
  while (!text.empty()) {
    std::array<std::string_view, 4> fields;
    std::string_view item = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), item.size() + 1));
    for (std::string_view& field : fields) {
      field = item.substr(0, item.find(':'));
      item.remove_prefix(std::min(item.size(), field.size() + 1));
    }
    Measurement& one = plan.emplace_back();
    one.mode = fields[0];
    if (!item.empty() || !parse_number(fields[1], one.size) ||
        !parse_number(fields[2], one.iterations) || !parse_number(fields[3], one.window)) {
      return false;
    }
  }
  return true;
}

bool is_possible(const Options& options, const Measurement& one) {
  if (options.clients > 1) return one.one_way();
  return one.rma() || one.one_way() || one.ping_pong() || one.mode == "bidir";
}

bool parse(int argc, char** argv, Options& options) {
  Measurement only;
  const std::pair<std::string_view, std::string*> texts[] = {{"--client", &options.client_of},
                                                             {"--mode", &only.mode},
                                                             {"--provider", &options.provider},
                                                             {"--port", &options.port}};
  const std::pair<std::string_view, std::uint64_t*> numbers[] = {
      {"--size", &only.size},
      {"--iterations", &only.iterations},
      {"--window", &only.window},
      {"--clients", &options.clients},
      {"--megabytes", &options.megabytes}};
  const std::pair<std::string_view, bool*> switches[] = {{"--server", &options.server},
                                                         {"--tagged", &options.tagged},
                                                         {"--ordered", &options.ordered},
                                                         {"--sleep", &options.sleep}};
  for (int i = 1; i < argc; ++i) {
    const std::string_view name = argv[i];
    const auto* const found = std::find_if(std::begin(switches), std::end(switches),
                                           [&](const auto& one) { return one.first == name; });
    if (found != std::end(switches)) {
      *found->second = true;
      continue;
    }
    if (++i == argc) return false;
    const std::string_view value = argv[i];
    bool known = name == "--plan";
    if (known && !parse_plan(value, options.plan)) return false;
    for (const auto& [option, text] : texts) {
      if (option != name) continue;
      *text = value;
      known = true;
    }
    for (const auto& [option, number] : numbers) {
      if (option != name) continue;
      if (!parse_number(value, *number)) return false;
      known = true;
    }
    if (!known) return false;
  }
  if (options.plan.empty()) options.plan.push_back(only);
  if (options.server != options.client_of.empty()) return false;
  return std::all_of(options.plan.begin(), options.plan.end(),
                     [&](const Measurement& one) { return is_possible(options, one); });
}

std::vector<Socket> meet(const Options& options) {
  std::vector<Socket> sockets;
  if (!options.server) {
    sockets.push_back(Socket::connect_to(options.client_of, options.port));
    return sockets;
  }
  const Socket listener = Socket::listen_on(options.port);
  for (std::uint64_t i = 0; i < options.clients; ++i) sockets.push_back(listener.accept());
  return sockets;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  if (!parse(argc, argv, options)) {
    std::fprintf(stderr,
                 "use: %s --server | --client ADDRESS\n"
                 "  [--mode bw|bidir|rate|lat|beside|write|read] [--tagged] [--ordered] [--sleep]\n"
                 "  [--size BYTES] [--iterations N] [--window N] [--megabytes N]\n"
                 "  [--plan MODE:SIZE:ITERATIONS:WINDOW,...] [--clients N] [--provider NAME]\n"
                 "  [--port PORT]\n",
                 argv[0]);
    return 2;
  }
  try {
    Bench bench(options, meet(options));
    for (const Measurement& one : options.plan) {
      const double seconds = bench.run(one);
      if (options.server == (options.clients > 1))
        print_result(options, one, seconds, bench.latencies());
    }
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
    return 1;
  }
}
