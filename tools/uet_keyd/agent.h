// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The key agent of a host: answers requests on a Unix socket and keeps the key files of its jobs up
// to date. The kernel tells which user asks (SO_PEERCRED).
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nic/socket.h"
#include "schedule.h"
#include "store.h"

namespace uet::keyd {

// One message of words on the socket (SOCK_SEQPACKET): "begin JOB", "end JOB", "where JOB" or
// "keys JOB", then the number of the job's user, if that is not the one that asks. The answer is
// one message that begins with "ok " or "error ".
struct Request {
  std::string verb;
  std::uint32_t job = 0;
  std::optional<uid_t> user;
};
bool parse_request(std::string_view text, Request& out);

class Agent {
 public:
  static constexpr std::size_t kMostJobsOfUser = 64;  // that the user has begun without root
  static constexpr std::size_t kMostClients = 256;    // that are connected
  static constexpr std::size_t kMostClientsOfUser = 16;

  // Listens on RUN_DIRECTORY/socket, which is replaced if an earlier agent left it behind. Throws
  // std::runtime_error, also if another agent serves there.
  Agent(const std::string& run_directory, const std::string& state_directory,
        const tss::Key& secret, const Rotation& rotation);
  ~Agent();
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;

  // Serves until `stop` is readable.
  void run(int stop);

  // The answer to `request` of a process of user `asking`: a user has its own jobs only, root and
  // the agent's own user those of all. begin (again): nothing, or why not; where: the key file, a
  // line end and the directory for TSCs; keys: the text of the key file. `now`: since 1970.
  std::string answer(const Request& request, uid_t asking, std::chrono::seconds now);
  // Writes the key files that are not up to date at `now`.
  void update(std::chrono::seconds now);

 private:
  struct Client {
    nic::FileDescriptor socket;
    uid_t user;
  };

  std::string begin(const Job& job, bool by_root, std::chrono::seconds now);
  std::string keys_of(const Job& job, const LiveKeys& live) const;
  void write_keys(const Job& job, const LiveKeys& live);
  void accept_client();
  void serve(const Client& client);

  Store store_;
  tss::Key secret_;
  Rotation rotation_;
  std::map<Job, LiveKeys> written_;  // what the key file of a job says
  LiveKeys reported_;                // problems with these were logged
  std::string socket_name_;
  nic::FileDescriptor listener_;
  std::vector<Client> clients_;  // the oldest first
};

// The name of the socket below a run directory.
std::string socket_of(const std::string& run_directory);
// Sends `request` to the agent at `socket`. The text behind "ok "; throws std::runtime_error.
std::string ask(const std::string& socket, const std::string& request);

}  // namespace uet::keyd
