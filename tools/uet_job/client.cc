// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "uet_job/client.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>

#include "uet_job/frames.h"

namespace uet::job {
namespace {

constexpr std::uint32_t kMaxJobId = 0xFFFFFF;
constexpr std::size_t kMostProblemBytes = 1024;

std::optional<std::uint32_t> number_of(std::string_view text, std::uint32_t most) {
  int base = 10;
  if (text.starts_with("0x")) {
    text.remove_prefix(2);
    base = 16;
  }
  std::uint32_t value = 0;
  const auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc{} || at != text.data() + text.size() || value > most) return {};
  return value;
}

int connect_once(const addrinfo& address, int patience_ms) {
  const int fd = socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return -errno;
  int error = 0;
  if (connect(fd, address.ai_addr, address.ai_addrlen) != 0) {
    error = errno;
    if (error == EINPROGRESS) {
      pollfd wait{fd, POLLOUT, 0};
      socklen_t length = sizeof error;
      error = ETIMEDOUT;
      if (poll(&wait, 1, patience_ms) == 1) getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length);
    }
  }
  if (error != 0) {
    close(fd);
    return -error;
  }
  constexpr int kOn = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &kOn, sizeof kOn);
  setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &kOn, sizeof kOn);
  return fd;
}

// "host:port" or "[host]:port".
bool split(const std::string& master, Place& place) {
  const std::size_t colon = master.rfind(':');
  if (colon == std::string::npos || colon + 1 == master.size()) return false;
  place.host = master.substr(0, colon);
  place.port = master.substr(colon + 1);
  if (place.host.starts_with('[') && place.host.ends_with(']')) {
    place.host = place.host.substr(1, place.host.size() - 2);
  }
  return !place.host.empty();
}

}  // namespace

int read_place(const std::function<const char*(const char*)>& get, Place& place,
               std::string& problem) {
  const auto value_of = [&](const char* name) {
    const char* const value = get(name);
    return std::string(value == nullptr ? "" : value);
  };
  const auto complain = [&](const char* name, const char* allowed) {
    problem = std::string(name) + "=" + value_of(name) + " is not valid; allowed: " + allowed +
              "; start the program with uet_run";
    return -EINVAL;
  };
  place = Place{};
  for (const char* const name : {"UET_JOB_ID", "FI_UET_JOB_ID"}) {
    if (value_of(name).empty()) continue;
    const auto number = number_of(value_of(name), kMaxJobId);
    if (!number) return complain(name, "0 to 16777215");
    place.job_id = *number;
  }
  if (value_of("UET_RANK").empty()) return 0;
  const auto size = number_of(value_of("UET_SIZE"), UINT16_MAX);
  if (!size || *size == 0) return complain("UET_SIZE", "1 to 65535");
  place.size = *size;
  const auto rank = number_of(value_of("UET_RANK"), *size - 1);
  if (!rank) return complain("UET_RANK", "0 to UET_SIZE - 1");
  place.rank = *rank;
  if (!split(value_of("UET_MASTER"), place)) return complain("UET_MASTER", "HOST:PORT");
  place.token = value_of("UET_JOB_TOKEN");
  if (place.token.size() != kTokenDigits) {
    problem = "UET_JOB_TOKEN does not have 32 digits; start the program with uet_run";
    return -EINVAL;
  }
  return 0;
}

Client::~Client() {
  if (fd_ >= 0) close(fd_);
}

int Client::fail(int error, std::string problem) {
  problem_ = std::move(problem);
  broken_ = error;
  return error;
}

int Client::connect_to_master(int patience_ms) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const std::string master = place_.host + ":" + place_.port;
  if (const int error = getaddrinfo(place_.host.c_str(), place_.port.c_str(), &hints, &found);
      error != 0) {
    return fail(-ECONNREFUSED, "UET_MASTER=" + master + ": " + gai_strerror(error));
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> all(found, freeaddrinfo);
  int result = -ECONNREFUSED;
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
    result = connect_once(*each, patience_ms);
    if (result >= 0) break;
  }
  if (result < 0) {
    if (result != -ETIMEDOUT) result = -ECONNREFUSED;
    return fail(result,
                "UET_MASTER=" + master + ": uet_run cannot be reached: " + std::strerror(-result));
  }
  fd_ = result;
  return 0;
}

int Client::send_all(const std::string& text) {
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t sent = send(fd_, text.data() + done, text.size() - done, MSG_NOSIGNAL);
    if (sent >= 0) {
      done += static_cast<std::size_t>(sent);
    } else if (errno == EAGAIN) {
      pollfd wait{fd_, POLLOUT, 0};
      poll(&wait, 1, -1);
    } else if (errno != EINTR) {
      return fail(-ECONNABORTED, std::string("uet_run has ended: ") + std::strerror(errno));
    }
  }
  return 0;
}

int Client::receive(char* to, std::size_t bytes) {
  std::size_t done = 0;
  while (done < bytes) {
    const ssize_t got = recv(fd_, to + done, bytes - done, 0);
    if (got > 0) {
      done += static_cast<std::size_t>(got);
    } else if (got < 0 && errno == EAGAIN) {
      pollfd wait{fd_, POLLIN, 0};
      poll(&wait, 1, -1);
    } else if (got == 0 || errno != EINTR) {
      return fail(-ECONNABORTED, "uet_run has ended or closed the connection");
    }
  }
  return 0;
}

int Client::join(const Place& place, int patience_ms) {
  place_ = place;
  if (place.host.empty()) return 0;
  if (const int result = connect_to_master(patience_ms); result != 0) return result;
  if (const int result = send_all(hello(place.rank, place.token)); result != 0) return result;
  pollfd wait{fd_, POLLIN, 0};
  if (poll(&wait, 1, patience_ms) == 0) {
    return fail(-ETIMEDOUT, "uet_run does not answer");
  }
  char header[kFrameBytes];
  if (const int result = receive(header, sizeof header); result != 0) return result;
  if (header[0] == static_cast<char>(Kind::Welcome)) return 0;
  std::string text(std::min<std::size_t>(get32(header + 4), kMostProblemBytes), 0);
  if (const int result = receive(text.data(), text.size()); result != 0) return result;
  return fail(-EACCES, "uet_run refuses this rank: " + text);
}

int Client::all_gather(std::span<const char> blob, char* all) {
  if (broken_ != 0) return broken_;
  if (blob.size() > kMostBlobBytes) {
    problem_ = "a blob of " + std::to_string(blob.size()) + " bytes; most: 1 MiB";
    return -EMSGSIZE;
  }
  if (fd_ < 0) {
    std::copy(blob.begin(), blob.end(), all);
    return 0;
  }
  const std::string text = frame(Kind::Blob, {blob.data(), blob.size()});
  if (const int result = send_all(text); result != 0) return result;
  char header[kFrameBytes];
  if (const int result = receive(header, sizeof header); result != 0) return result;
  const std::size_t bytes = get32(header + 4);
  switch (static_cast<Kind>(header[0])) {
    case Kind::Table:
      if (bytes != blob.size() * place_.size) break;
      return receive(all, bytes);
    case Kind::Unequal:
      problem_ = "the ranks gave blobs of different length, or more than 256 MiB together";
      return -EMSGSIZE;
    case Kind::Deserted: {
      std::string why(std::min(bytes, kMostProblemBytes), 0);
      if (const int result = receive(why.data(), why.size()); result != 0) return result;
      return fail(-ECONNABORTED, why);
    }
    default:
      break;
  }
  return fail(-ECONNABORTED, "uet_run gave an answer that is not understood");
}

}  // namespace uet::job
