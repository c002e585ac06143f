// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A rank's side of the conversation with uet_run: the connection, and one all-gather after the
// other. Blocks. Knows no libfabric; results are 0 or a negative errno, the reason in problem().
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

namespace uet::job {

// The rank, as its environment describes it.
struct Place {
  std::uint32_t rank = 0;
  std::uint32_t size = 1;
  std::uint32_t job_id = 1;
  std::string host;  // of the master; empty: a job of one rank without uet_run
  std::string port;
  std::string token;
};

// From UET_RANK and so on, FI_UET_JOB_ID before UET_JOB_ID. `get` gives a variable's value or
// nullptr, as getenv does. 0, or -EINVAL with the reason in `problem`.
int read_place(const std::function<const char*(const char*)>& get, Place& place,
               std::string& problem);

class Client {
 public:
  Client() = default;
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // Waits at most `patience_ms`.
  int join(const Place& place, int patience_ms);
  // `all` holds size * bytes.
  int all_gather(std::span<const char> blob, char* all);

  const Place& place() const { return place_; }
  const std::string& problem() const { return problem_; }

 private:
  int fail(int error, std::string problem);
  int connect_to_master(int patience_ms);
  int send_all(const std::string& text);
  int receive(char* to, std::size_t bytes);

  Place place_;
  int fd_ = -1;
  int broken_ = 0;  // the error that ended the conversation
  std::string problem_;
};

}  // namespace uet::job
