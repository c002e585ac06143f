// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Use: uet_long_wire INTERFACE INTERFACE SPEC
// Carries frames between two interfaces as a long wire would, until it is killed. The kernel's
// netem does so too, but not each kernel has it. SPEC, separated by commas: delay_us=N, of each
// direction; jitter_us=N, more for each frame, drawn by a seed, so that frames overtake each other;
// rate_mbps=N and queue_bytes=N of the queue in front of the wire, which drops frames that do not
// fit. Both interfaces must be up, and in no bridge. Ends with 1 if it is used wrongly, 77 without
// the right.
#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>
#include <sstream>
#include <string>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::nanoseconds;

constexpr int kSkipped = 77;
constexpr std::size_t kLargestFrame = 128 * 1024;  // a train of packets counts as one frame

struct Settings {
  double delay_us = 0;
  double jitter_us = 0;
  double rate_mbps = 10000;
  double queue_bytes = 1e9;
};

bool parse(const std::string& spec, Settings& out) {
  std::istringstream stream(spec);
  for (std::string item; std::getline(stream, item, ',');) {
    const std::size_t equal = item.find('=');
    if (equal == std::string::npos) return false;
    const std::string name = item.substr(0, equal);
    const double value = std::atof(item.c_str() + equal + 1);
    if (name == "delay_us") {
      out.delay_us = value;
    } else if (name == "jitter_us") {
      out.jitter_us = value;
    } else if (name == "rate_mbps" && value > 0) {
      out.rate_mbps = value;
    } else if (name == "queue_bytes") {
      out.queue_bytes = value;
    } else {
      return false;
    }
  }
  return true;
}

// A packet socket at an interface. The kernel's notes on each frame (checksum not computed yet,
// packets of a train) stand in front of it, in both directions; -1 on failure.
int open_socket(const char* interface) {
  const int fd = ::socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK, 0);
  if (fd < 0) return -1;
  const int on = 1;
  const int memory = 64 << 20;
  sockaddr_ll where{};
  where.sll_family = AF_PACKET;
  where.sll_protocol = htons(ETH_P_ALL);
  where.sll_ifindex = static_cast<int>(::if_nametoindex(interface));
  ::setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &memory, sizeof memory);
  ::setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &memory, sizeof memory);
  if (::setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof on) != 0 ||
      ::setsockopt(fd, SOL_PACKET, PACKET_VNET_HDR, &on, sizeof on) != 0 ||
      ::bind(fd, reinterpret_cast<const sockaddr*>(&where), sizeof where) != 0) {
    ::close(fd);
    return -1;
  }
  return fd;
}

class Direction {
 public:
  Direction(int from, int to, const Settings& settings) : from_(from), to_(to), set_(settings) {}

  void take(Clock::time_point now) {
    static std::array<char, kLargestFrame> frame;
    for (ssize_t bytes = 0; (bytes = ::recv(from_, frame.data(), frame.size(), 0)) > 0;) {
      free_ = std::max(free_, now);
      const double waiting =
          std::chrono::duration<double>(free_ - now).count() * set_.rate_mbps * 1e6 / 8;
      if (waiting + static_cast<double>(bytes) > set_.queue_bytes) continue;
      free_ +=
          nanoseconds(static_cast<std::int64_t>(static_cast<double>(bytes) * 8e3 / set_.rate_mbps));
      const double late =
          set_.delay_us + std::uniform_real_distribution<>(0, set_.jitter_us)(random_);
      frames_.emplace(free_ + nanoseconds(static_cast<std::int64_t>(late * 1000)),
                      std::vector<char>(frame.data(), frame.data() + bytes));
    }
  }
  void give(Clock::time_point now) {
    while (!frames_.empty() && frames_.begin()->first <= now) {
      const std::vector<char>& frame = frames_.begin()->second;
      if (::send(to_, frame.data(), frame.size(), 0) < 0) ++refused_;
      frames_.erase(frames_.begin());
    }
  }
  Clock::time_point next() const {
    return frames_.empty() ? Clock::time_point::max() : frames_.begin()->first;
  }

 private:
  int from_;
  int to_;
  Settings set_;
  Clock::time_point free_;                                      // the sending end of the wire
  std::multimap<Clock::time_point, std::vector<char>> frames_;  // by the time of their arrival
  std::mt19937 random_{1};
  std::uint64_t refused_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  if (argc != 4 || !parse(argv[3], settings)) {
    std::fprintf(stderr,
                 "use: uet_long_wire INTERFACE INTERFACE "
                 "delay_us=N,jitter_us=N,rate_mbps=N,queue_bytes=N\n");
    return 1;
  }
  std::array<pollfd, 2> sockets{};
  for (std::size_t i = 0; i < 2; ++i) {
    sockets[i] = {.fd = open_socket(argv[i + 1]), .events = POLLIN, .revents = 0};
    if (sockets[i].fd >= 0) continue;
    std::perror(argv[i + 1]);
    std::printf("SKIPPED: no packet socket at %s; run as root\n", argv[i + 1]);
    return kSkipped;
  }
  std::array directions{Direction(sockets[0].fd, sockets[1].fd, settings),
                        Direction(sockets[1].fd, sockets[0].fd, settings)};
  for (;;) {
    const auto next = std::min(directions[0].next(), directions[1].next());
    const auto now = Clock::now();
    timespec wait{.tv_sec = 1, .tv_nsec = 0};
    if (next <= now) {
      wait = {};
    } else if (next - now < std::chrono::seconds(1)) {
      wait = {.tv_sec = 0, .tv_nsec = nanoseconds(next - now).count()};
    }
    ::ppoll(sockets.data(), sockets.size(), &wait, nullptr);
    for (Direction& direction : directions) {
      direction.take(Clock::now());
      direction.give(Clock::now());
    }
  }
}
