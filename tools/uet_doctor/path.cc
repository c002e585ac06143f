// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Both ends take the same steps: greeting, probes, endpoints, messages back and forth, writes. The
// client leads; the server answers until the TCP connection says that the step is over.
#include "path.h"

#include <arpa/inet.h>
#include <rdma/fi_rma.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <exception>
#include <thread>
#include <vector>

#include "common.h"
#include "probe.h"
#include "security.h"
#include "uet/fi_ext_uet.h"

namespace uet::doctor {

namespace {

using example::Endpoint;
using example::Introduction;
using example::Socket;
using Clock = std::chrono::steady_clock;
using Microseconds = std::chrono::duration<double, std::micro>;

constexpr std::size_t kPingBytes = 64;
constexpr std::size_t kReceives = 4;
constexpr std::size_t kMostPings = 2000;
constexpr std::size_t kWriteBytes = 1 << 20;
constexpr std::uint64_t kWindow = 4;
constexpr std::chrono::seconds kEachTest{1};
constexpr std::chrono::seconds kLongest{60};  // that a client may take for a step
constexpr std::uint8_t kNext = 1;

// Two programs of different versions do not understand each other's steps.
struct Greeting {
  std::array<char, 16> magic{'u', 'e', 't', '_', 'd', 'o', 'c', 't', 'o', 'r', ' ', '2'};
  friend bool operator==(const Greeting&, const Greeting&) = default;
};

void greet(Socket& socket) {
  timeval patience{example::kPatience.count(), 0};
  ::setsockopt(socket.fd(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  socket.send(Greeting{});
  if (socket.receive<Greeting>() != Greeting{}) {
    example::fail("the other end is not a uet_doctor of this version");
  }
}

std::uint64_t counter(fid_domain* domain, const std::string& name) {
  fi_uet_stats_ops* stats = nullptr;
  if (fi_open_ops(&domain->fid, FI_UET_STATS_OPS, 0, reinterpret_cast<void**>(&stats), nullptr)) {
    return 0;
  }
  std::vector<std::uint64_t> values(stats->count(domain));
  stats->read(domain, values.data(), values.size());
  fi_uet_counter told{};
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (stats->describe(domain, i, &told) == 0 && told.name == name) return values[i];
  }
  return 0;
}

// Both ends' endpoint and memory: places for pings, then the target of writes.
class Meeting {
 public:
  Meeting(Socket& socket, const std::string& host)
      : socket_(socket),
        memory_(kReceives * kPingBytes + kWindow * kWriteBytes),
        endpoint_("uet", FI_MSG | FI_RMA, host) {
    socket.send(endpoint_.introduce(memory_.data(), memory_.size()));
    peer_ = socket.receive<Introduction>();
    endpoint_.meet(peer_);
    for (std::size_t i = 0; i < kReceives; ++i) post_receive();
    socket.send(kNext);
    example::wait_until(endpoint_, "the other end", [&] { return socket_.readable(); });
    socket.receive<std::uint8_t>();
  }

  // Both ends know the result: no end waits for packets that cannot pass.
  Agreement agree() {
    const SecurityState here = security_of(endpoint_.domain());
    socket_.send(here);
    return compare(here, socket_.receive<SecurityState>());
  }

  void answer() {
    std::uint64_t answered = 0;
    const auto end = Clock::now() + kLongest;
    while (!socket_.readable()) {
      if (Clock::now() > end) example::fail("the other end has fallen silent");
      endpoint_.poll();
      for (; answered < endpoint_.received(); ++answered) {
        post_receive();
        post_message();
      }
    }
    socket_.receive<std::uint8_t>();
    socket_.send(counter(endpoint_.domain(), "nic_receive_overflows"));
    // The client closes first; until then its last packets are acknowledged.
    while (!socket_.at_end() && Clock::now() < end) endpoint_.poll();
  }

  void examine(Report& report) {
    report_latency(report, ping());
    const double mb_s = write();
    char text[80];
    std::snprintf(text, sizeof text, "bandwidth: %.0f MB/s with writes of 1 MiB", mb_s);
    report.good(text);
    socket_.send(kNext);
    const auto overflows_there = socket_.receive<std::uint64_t>();
    report_losses(report, overflows_there);
  }

 private:
  void post_receive() {
    std::byte* const place = memory_.data() + (posted_++ % kReceives) * kPingBytes;
    endpoint_.post("posting a receive", [&] {
      return fi_recv(endpoint_.ep(), place, kPingBytes, endpoint_.descriptor(), FI_ADDR_UNSPEC,
                     nullptr);
    });
  }
  void post_message() {
    endpoint_.post("sending a message", [&] {
      return fi_inject(endpoint_.ep(), memory_.data(), kPingBytes, endpoint_.peer());
    });
  }

  std::vector<Microseconds> ping() {
    std::vector<Microseconds> times;
    const auto end = Clock::now() + kEachTest;
    while (times.size() < 10 || (times.size() < kMostPings && Clock::now() < end)) {
      const auto start = Clock::now();
      post_message();
      example::wait_until(endpoint_, "the answer to a message",
                          [&] { return endpoint_.received() > times.size(); });
      times.push_back(Clock::now() - start);
      post_receive();
    }
    std::sort(times.begin(), times.end());
    return times;
  }

  // MB/s, 10^6 bytes.
  double write() {
    std::uint64_t posted = 0;
    const std::uint64_t before = endpoint_.sent();
    const std::size_t area = kReceives * kPingBytes;
    const auto start = Clock::now();
    while (posted < kWindow || Clock::now() < start + kEachTest) {
      const std::size_t offset = area + posted++ % kWindow * kWriteBytes;
      endpoint_.post("writing", [&] {
        return fi_write(endpoint_.ep(), memory_.data() + offset, kWriteBytes,
                        endpoint_.descriptor(), endpoint_.peer(), peer_.memory_address + offset,
                        peer_.memory_key, nullptr);
      });
      example::wait_until(endpoint_, "writes",
                          [&] { return posted - (endpoint_.sent() - before) < kWindow; });
    }
    example::wait_until(endpoint_, "writes", [&] { return endpoint_.sent() - before == posted; });
    const std::chrono::duration<double> time = Clock::now() - start;
    return static_cast<double>(posted) * kWriteBytes / time.count() / 1e6;
  }

  static void report_latency(Report& report, const std::vector<Microseconds>& times) {
    char text[120];
    std::snprintf(text, sizeof text,
                  "latency: %.1f us one way for 64 bytes (median of %zu; 99 %% below %.1f us)",
                  times[times.size() / 2].count() / 2, times.size(),
                  times[times.size() * 99 / 100].count() / 2);
    report.good(text);
  }

  void report_losses(Report& report, std::uint64_t overflows_there) {
    fid_domain* const domain = endpoint_.domain();
    const std::uint64_t again = counter(domain, "pds_rto_retransmissions") +
                                counter(domain, "pds_nack_retransmissions") +
                                counter(domain, "pds_inferred_loss_retransmissions");
    report.note(std::to_string(again) + " of " +
                std::to_string(counter(domain, "pds_requests_sent")) + " packets were sent again");
    const std::uint64_t here = counter(domain, "nic_receive_overflows");
    if (here + overflows_there > 0) {
      report.warn("receive buffers overflowed: " + std::to_string(here) + " packets lost here, " +
                      std::to_string(overflows_there) + " at the other end",
                  "sysctl -w net.core.rmem_max=4194304 or more at both; fewer programs per core");
    }
  }

  Socket& socket_;
  std::vector<std::byte> memory_;
  Endpoint endpoint_;
  Introduction peer_;
  std::size_t posted_ = 0;
};

void report_probes(Report& report, const ProbeResult& result) {
  const int lost = result.sent - result.answered;
  const std::string counts = std::to_string(lost) + " of " + std::to_string(result.sent);
  if (lost == 0) {
    report.good("loss: none of " + std::to_string(result.sent) + " UDP packets and their answers");
  } else {
    report.warn("loss: " + counts + " UDP packets or their answers",
                "look for errors with 'ip -s link' at both ends and at the switches");
  }
  if (result.passed_bytes == result.wished_bytes) {
    report.good("MTU: packets of " + std::to_string(result.wished_bytes) + " bytes pass");
  } else {
    report.fail("MTU: packets of " + std::to_string(result.wished_bytes) +
                    " bytes do not pass, at most " + std::to_string(result.passed_bytes) + " do",
                "set the interfaces' MTU to what the path carries at both ends, "
                "or FI_UET_PAYLOAD_MTU to fit");
  }
  const bool there = result.ect_arrives && result.ce_arrives;
  if (there && result.ect_returns && result.ce_returns) {
    report.good("ECN: marks are seen in both directions");
  } else {
    report.warn(std::string("ECN: marks are erased on the way ") + (there ? "back" : "there") +
                    ", so that congestion shows as loss only",
                "make tunnels and routers copy the ECN field; look for rules that rewrite TOS");
  }
  if (!result.dscp_kept) {
    report.note(
        "DSCP 46 is rewritten on the way: priorities of the network are not what "
        "FI_UET_DSCP_DATA and dscp_control of FI_UET_TUNING say");
  }
}

std::string peer_host(const Socket& socket) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  std::array<char, NI_MAXHOST> host{};
  if (::getpeername(socket.fd(), reinterpret_cast<sockaddr*>(&address), &length) != 0 ||
      ::getnameinfo(reinterpret_cast<sockaddr*>(&address), length, host.data(), host.size(),
                    nullptr, 0, NI_NUMERICHOST) != 0) {
    example::fail("cannot tell the address of the other end");
  }
  return host.data();
}

void lead(Report& report, Socket& socket, const std::string& here, const std::string& there) {
  greet(socket);
  {
    ProbeSocket probes(here);
    const ProbeResult result = probes.examine(there, socket.receive<std::uint16_t>());
    socket.send(kNext);
    if (result.answered == 0) {
      report.fail("UDP packets to port " + std::to_string(probes.port()) + " of " + there +
                      " do not come back",
                  "allow UDP 4793 to 5816 in the firewalls of both hosts and between them");
      return;
    }
    report_probes(report, result);
    // Full packets would be sent again and again until both give up.
    if (result.passed_bytes < result.wished_bytes) return;
  }
  Meeting meeting(socket, here);
  const Agreement security = meeting.agree();
  if (!security.problem.empty()) return report.fail(security.problem, security.advice);
  report.good("security: " + security.good);
  meeting.examine(report);
}

void follow(Socket& socket, const std::string& here) {
  greet(socket);
  {
    ProbeSocket probes(here);
    socket.send(probes.port());
    const auto end = Clock::now() + kLongest;
    probes.answer([&] { return socket.readable() || Clock::now() > end; });
    socket.receive<std::uint8_t>();
  }
  if (socket.at_end()) return;
  Meeting meeting(socket, here);
  const Agreement security = meeting.agree();
  if (!security.problem.empty()) example::fail(security.problem);
  meeting.answer();
}

}  // namespace

void examine_self(Report& report, const LocalAddress& address) {
  report.begin("Self-test at " + address.host);
  auto [near, far] = Socket::pair();
  std::string trouble;
  std::thread other([&trouble, &address, end = std::move(far)]() mutable {
    try {
      Socket socket = std::move(end);
      follow(socket, address.host);
    } catch (const std::exception& error) {
      trouble = error.what();
    }
  });
  try {
    Socket socket = std::move(near);  // closed when this block is left, so that the other ends too
    lead(report, socket, address.host, address.host);
  } catch (const std::exception& error) {
    report.fail(error.what(), "FI_LOG_LEVEL=info shows what the provider does");
  }
  other.join();
  if (!trouble.empty()) report.note("the other end: " + trouble);
}

void examine_peer(Report& report, const std::string& host, const std::string& port) {
  report.begin("Path to " + host);
  try {
    Socket socket = Socket::connect_to(host, port);
    lead(report, socket, socket.local_host(), peer_host(socket));
  } catch (const std::exception& error) {
    report.fail(error.what(),
                "run 'uet_doctor --serve' there, and nothing else with it; look at "
                "what it says; allow TCP " +
                    port + " and UDP 4793 to 5816");
  }
}

void serve(const std::string& port, Report& report, ProviderLog& log) {
  const Socket listener = Socket::listen_on(port);
  std::printf("serving on TCP port %s; end with Ctrl-C\n", port.c_str());
  std::fflush(stdout);
  for (;;) {
    Socket socket = listener.accept();
    std::string client = "a client that has gone";
    try {
      client = peer_host(socket);
      follow(socket, socket.local_host());
      std::printf("served %s\n", client.c_str());
    } catch (const std::exception& error) {
      std::printf("serving %s: %s\n", client.c_str(), error.what());
    }
    log.flush(report);
    std::fflush(stdout);
  }
}

}  // namespace uet::doctor
