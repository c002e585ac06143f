// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The applications of an engine: accepts their connections, each in a thread of its own, and says
// how many domains a user may have. The port of a closed domain answers for a while, so that peers
// learn of its end.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <condition_variable>
#include <list>
#include <mutex>
#include <string>

#include "nic/socket.h"
#include "process/control.h"
#include "uet/base/types.h"

namespace uet::engine {

class Tenant;

class Host {
 public:
  static constexpr std::size_t kMostDomains = 1024;
  static constexpr std::size_t kMostDomainsOfUser = 256;
  // A closed domain answers peers so long; as long as a peer would wait for an answer.
  static constexpr std::chrono::seconds kAfterlife{10};
  // So many closed domains answer, the latest ones: each has a port, a thread and memory.
  static constexpr std::size_t kMostClosed = 64;
  static constexpr std::size_t kMostClosedOfUser = 16;

  // `all_users`: applications of other users are served, too.
  explicit Host(bool all_users) : all_users_(all_users) {}

  // Serves until `stop` is readable, and then until all domains are closed.
  void run(int listener, int stop);

 private:
  enum class State : std::uint8_t { Serving, Closed, Leaving };
  struct Client {
    nic::FileDescriptor socket;
    prov::PeerProcess process;
    State state = State::Serving;
    FepAddress address;  // once its domain is open
  };
  using Place = std::list<Client>::iterator;

  void accept_one(int listener);
  bool admit(const prov::PeerProcess& process, std::string& why);
  static void refuse(int socket, int error, const std::string& why);
  void serve(Place client) noexcept;
  void serve_domain(Place client);
  int open(Tenant& tenant, const prov::ControlRequest& request, const prov::PeerProcess& process,
           prov::ControlAnswer& answer);
  void outlive(Place client);
  void limit_closed(uid_t user);
  std::uint16_t first_closed_port(const prov::OpenRequest& wanted);
  bool end_closed_at(const prov::OpenRequest& wanted);
  void leave(Place client);

  const bool all_users_;
  std::mutex lock_;
  std::condition_variable changed_;  // the state of a client, or it has left
  std::list<Client> clients_;        // closed ones at the end, the latest last
  bool stops_ = false;
};

}  // namespace uet::engine
