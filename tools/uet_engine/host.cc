// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "host.h"

#include <poll.h>
#include <rdma/fi_errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <new>
#include <system_error>
#include <thread>

#include "tenant.h"

namespace uet::engine {

namespace {

constexpr int kLookMs = 1000;                            // for a domain that has been cut off
constexpr timeval kPatience{.tv_sec = 5, .tv_usec = 0};  // with a request that has begun
constexpr std::chrono::seconds kPatienceWithClosed{2};   // until they have left

void say(const prov::PeerProcess& process, const char* what, const std::string& why) {
  std::fprintf(stderr, "uet_engine: process %d of user %u: %s%s%s\n", process.pid, process.uid,
               what, why.empty() ? "" : ": ", why.c_str());
}

bool is_free(const FepAddress& at) {
  const int family = at.ip.is_ipv6 ? AF_INET6 : AF_INET;
  const nic::FileDescriptor socket(::socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  nic::SocketAddress address{};
  nic::write_socket_address(at, address);
  return socket.valid() && ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address),
                                  nic::socket_address_length(at.ip.is_ipv6)) == 0;
}

}  // namespace

void Host::run(int listener, int stop) {
  for (;;) {
    std::array<pollfd, 2> fds{pollfd{.fd = listener, .events = POLLIN, .revents = 0},
                              pollfd{.fd = stop, .events = POLLIN, .revents = 0}};
    if (::poll(fds.data(), fds.size(), -1) < 0) continue;
    if (fds[1].revents != 0) break;
    if (fds[0].revents != 0) accept_one(listener);
  }
  std::unique_lock guard(lock_);
  stops_ = true;
  for (const Client& client : clients_) ::shutdown(client.socket.get(), SHUT_RDWR);
  for (Client& client : clients_) {
    if (client.state == State::Closed) client.state = State::Leaving;
  }
  changed_.notify_all();
  changed_.wait(guard, [this] { return clients_.empty(); });
}

void Host::accept_one(int listener) {
  nic::FileDescriptor socket(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
  if (!socket.valid()) return;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &kPatience, sizeof kPatience);
  const prov::PeerProcess process = prov::process_at(socket.get());
  std::string why;
  if (!admit(process, why)) {
    say(process, "refused", why);
    return refuse(socket.get(), -FI_EACCES, why);
  }
  const std::lock_guard guard(lock_);
  const auto client = clients_.insert(
      clients_.end(), {.socket = std::move(socket), .process = process, .address = {}});
  try {
    std::thread([this, client] {
      serve(client);
      leave(client);
    }).detach();
  } catch (const std::system_error& error) {
    say(process, "no thread", error.what());
    refuse(client->socket.get(), -FI_ENOMEM, "no thread for another domain");
    clients_.erase(client);
  }
}

bool Host::admit(const prov::PeerProcess& process, std::string& why) {
  const std::lock_guard guard(lock_);
  if (process.pid <= 0) {
    why = "the process is in a PID name space that this engine does not see";
  } else if (!all_users_ && process.uid != ::geteuid()) {
    why = "the engine is another user's; start one of your own, or uet_engine --all-users as root";
  } else {
    std::size_t all = 0;
    std::size_t own = 0;
    for (const Client& client : clients_) {
      if (client.state == State::Closed) continue;
      ++all;
      if (client.process.uid == process.uid) ++own;
    }
    if (all >= kMostDomains || own >= kMostDomainsOfUser) why = "too many domains";
  }
  return why.empty();
}

void Host::refuse(int socket, int error, const std::string& why) {
  prov::ControlAnswer answer;
  std::memset(static_cast<void*>(&answer), 0, sizeof answer);
  answer.version = prov::control_version();
  answer.error = error;
  std::memcpy(answer.open.message.data(), why.data(),
              std::min(why.size(), answer.open.message.size() - 1));
  prov::send_message(socket, &answer, sizeof answer);
}

void Host::leave(Place client) {
  const std::lock_guard guard(lock_);
  clients_.erase(client);
  changed_.notify_all();
}

void Host::serve(Place client) noexcept {
  try {
    serve_domain(client);
  } catch (const std::exception& error) {
    say(client->process, "ended", error.what());
  }
}

void Host::serve_domain(Place client) {
  const int socket = client->socket.get();
  ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof kPatience);
  prov::ControlRequest request;
  if (!prov::receive_message(socket, &request, sizeof request)) return;
  const bool is_open = request.request == static_cast<std::uint8_t>(prov::Request::Open);
  if (request.version != prov::control_version() || !is_open) {
    return refuse(socket, -FI_ENOSYS, "application and engine are of different builds");
  }
  Tenant tenant;
  prov::ControlAnswer answer;
  std::memset(static_cast<void*>(&answer), 0, sizeof answer);
  answer.version = prov::control_version();
  answer.error = open(tenant, request, client->process, answer);
  if (answer.error != 0) {
    say(client->process, "no domain", answer.open.message.data());
    prov::send_message(socket, &answer, sizeof answer);
    return;
  }
  {
    const std::lock_guard guard(lock_);
    client->address = tenant.address();
  }
  bool goes_on = prov::send_message(socket, &answer, sizeof answer, tenant.descriptors());
  while (goes_on && !tenant.cut_off()) {
    std::array<pollfd, 2> fds{pollfd{.fd = socket, .events = POLLIN, .revents = 0},
                              pollfd{.fd = tenant.process_fd(), .events = POLLIN, .revents = 0}};
    if (::poll(fds.data(), fds.size(), kLookMs) <= 0) continue;
    if (fds[1].revents != 0) break;
    goes_on = prov::receive_message(socket, &request, sizeof request);
    if (!goes_on) break;
    answer = tenant.handle(request);
    goes_on = prov::send_message(socket, &answer, sizeof answer);
  }
  tenant.end();
  outlive(client);
  tenant.close();
}

// A closed domain makes way for one that needs its port, or what else its NIC has.
int Host::open(Tenant& tenant, const prov::ControlRequest& request,
               const prov::PeerProcess& process, prov::ControlAnswer& answer) {
  if (const std::uint16_t port = first_closed_port(request.open); port != 0) {
    prov::ControlRequest there = request;
    there.open.port = port;
    end_closed_at(there.open);
    if (tenant.open(there, process, answer) == 0) return 0;
  }
  const int result = tenant.open(request, process, answer);
  if (result == 0 || result == -FI_EINVAL || !end_closed_at(request.open)) return result;
  return tenant.open(request, process, answer);
}

// A domain that may have any port gets the first one, as if closed domains had none: peers may
// expect it there again. 0: no closed domain has that port.
std::uint16_t Host::first_closed_port(const prov::OpenRequest& wanted) {
  if (wanted.port != 0) return 0;
  FepAddress at{.ip = {.bytes = wanted.ip, .is_ipv6 = wanted.is_ipv6 != 0}};
  {
    const std::lock_guard guard(lock_);
    for (const Client& client : clients_) {
      if (client.state != State::Closed || client.address.ip != at.ip) continue;
      if (at.port == 0 || client.address.port < at.port) at.port = client.address.port;
    }
  }
  const std::uint16_t first_closed = at.port;
  for (at.port = prov::first_udp_port(); at.port < first_closed; ++at.port) {
    if (is_free(at)) return 0;
  }
  return first_closed;
}

// The application sees the end of its domain in that of the socket.
void Host::outlive(Place client) {
  std::unique_lock guard(lock_);
  client->socket = nic::FileDescriptor();
  client->state = stops_ ? State::Leaving : State::Closed;
  clients_.splice(clients_.end(), clients_, client);
  limit_closed(client->process.uid);
  changed_.wait_for(guard, kAfterlife, [&] { return client->state == State::Leaving; });
  client->state = State::Leaving;
}

// With the lock.
void Host::limit_closed(uid_t user) {
  std::size_t all = 0;
  std::size_t own = 0;
  for (auto client = clients_.rbegin(); client != clients_.rend(); ++client) {
    if (client->state != State::Closed) continue;
    const bool is_own = client->process.uid == user;
    if (all == kMostClosed || (is_own && own == kMostClosedOfUser)) {
      client->state = State::Leaving;
    } else {
      ++all;
      if (is_own) ++own;
    }
  }
  changed_.notify_all();
}

// False: there was none at this address and, unless any will do, at this port. One whose
// application has just gone is about to be closed.
bool Host::end_closed_at(const prov::OpenRequest& wanted) {
  const auto is_in_the_way = [&](const Client& client) {
    pollfd socket{.fd = client.socket.get(), .events = POLLRDHUP, .revents = 0};
    return client.address.ip.bytes == wanted.ip &&
           (wanted.port == 0 || client.address.port == wanted.port) &&
           (client.state != State::Serving || ::poll(&socket, 1, 0) > 0);
  };
  bool any = false;
  const auto none_left = [&] {
    bool left = false;
    for (Client& client : clients_) {
      if (!is_in_the_way(client)) continue;
      left = true;
      if (client.state != State::Closed) continue;
      client.state = State::Leaving;
      changed_.notify_all();
    }
    any = any || left;
    return !left;
  };
  std::unique_lock guard(lock_);
  changed_.wait_for(guard, kPatienceWithClosed, none_left);
  return any;
}

}  // namespace uet::engine
