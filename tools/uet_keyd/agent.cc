// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "agent.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "tss/key_file.h"

namespace uet::keyd {
namespace {

constexpr std::size_t kMostRequest = 128;
constexpr std::size_t kMostAnswer = 8192;
constexpr const char* kOk = "ok ";

sockaddr_un address_of(const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (name.size() >= sizeof address.sun_path) throw std::runtime_error(name + ": name too long");
  std::memcpy(address.sun_path, name.data(), name.size());
  return address;
}

bool connects(const sockaddr_un& address) {
  const nic::FileDescriptor fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  return connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ||
         errno == EAGAIN;
}

nic::FileDescriptor listen_on(const std::string& name) {
  const sockaddr_un address = address_of(name);
  if (connects(address)) throw std::runtime_error(name + ": another agent serves there");
  struct stat info {};
  if (lstat(name.c_str(), &info) == 0 && S_ISSOCK(info.st_mode)) unlink(name.c_str());
  nic::FileDescriptor fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid() ||
      bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      chmod(name.c_str(), 0666) != 0 || listen(fd.get(), 128) != 0) {
    throw std::runtime_error(name + ": " + std::strerror(errno));
  }
  return fd;
}

std::chrono::seconds time_of_day() {
  return std::chrono::floor<std::chrono::seconds>(
      std::chrono::system_clock::now().time_since_epoch());
}

std::string error_answer(const std::string& why) { return "error " + why; }

// Takes the next word from `text`.
std::string_view take_word(std::string_view& text) {
  const std::size_t end = std::min(text.find(' '), text.size());
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return word;
}

bool take_number(std::string_view& text, std::uint32_t& out) {
  const std::string_view word = take_word(text);
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), out);
  return error == std::errc{} && end == word.data() + word.size();
}

}  // namespace

bool parse_request(std::string_view text, Request& out) {
  out.verb = take_word(text);
  constexpr std::array<std::string_view, 4> kVerbs = {"begin", "end", "where", "keys"};
  if (std::find(kVerbs.begin(), kVerbs.end(), out.verb) == kVerbs.end()) return false;
  if (!take_number(text, out.job)) return false;
  return text.empty() || (take_number(text, out.user.emplace()) && text.empty());
}

std::string socket_of(const std::string& run_directory) { return run_directory + "/socket"; }

Agent::Agent(const std::string& run_directory, const std::string& state_directory,
             const tss::Key& secret, const Rotation& rotation)
    : store_(run_directory, state_directory),
      secret_(secret),
      rotation_(rotation),
      socket_name_(socket_of(run_directory)),
      listener_(listen_on(socket_name_)) {}

Agent::~Agent() { unlink(socket_name_.c_str()); }

std::string Agent::keys_of(const Job& job, const LiveKeys& live) const {
  tss::KeyFile file;
  if (!key_file_of(secret_, job, store_.jobs().at(job).epoch, live, rotation_, file)) {
    throw std::runtime_error("no memory for a key");
  }
  return to_text(file, tss::KeyText::Secret);
}

void Agent::write_keys(const Job& job, const LiveKeys& live) {
  std::string text = keys_of(job, live);
  const std::chrono::seconds active_since =
      rotation_.every * static_cast<std::int64_t>(live.active);
  store_.write_keys(job, text, std::max(store_.jobs().at(job).begun, active_since));
  explicit_bzero(text.data(), text.size());
  written_[job] = live;
}

// A job whose file cannot be written does not stop the others, and is tried again.
void Agent::update(std::chrono::seconds now) {
  const LiveKeys live = keys_at(now, rotation_);
  for (const auto& [job, state] : store_.jobs()) {
    const auto said = written_.find(job);
    if (said != written_.end() && said->second == live) continue;
    try {
      write_keys(job, live);
    } catch (const std::exception& error) {
      if (reported_ == live) continue;
      std::fprintf(stderr, "uet_keyd: job %u of user %u: %s\n", job.number, job.user, error.what());
    }
  }
  reported_ = live;
}

std::string Agent::begin(const Job& job, bool by_root, std::chrono::seconds now) {
  if (store_.jobs().contains(job)) return kOk;
  const auto of_user = [&job](const auto& entry) { return entry.first.user == job.user; };
  if (!by_root && std::count_if(store_.jobs().begin(), store_.jobs().end(), of_user) >=
                      static_cast<std::ptrdiff_t>(kMostJobsOfUser)) {
    return error_answer("this user has 64 jobs: end one of them first");
  }
  store_.add(job);
  write_keys(job, keys_at(now, rotation_));
  return kOk;
}

std::string Agent::answer(const Request& request, uid_t asking, std::chrono::seconds now) {
  const bool by_root = asking == 0 || asking == geteuid();
  const Job job{request.job, request.user.value_or(asking)};
  if (job.user != asking && !by_root) return error_answer("this is a job of another user");
  if (request.verb == "begin") return begin(job, by_root, now);
  if (!store_.jobs().contains(job)) return error_answer("this user has no such job on this host");
  if (request.verb == "end") {
    written_.erase(job);
    store_.remove(job);
    return kOk;
  }
  if (request.verb == "where") {
    return kOk + store_.key_file_of(job) + "\n" + store_.directory_of(job);
  }
  return kOk + keys_of(job, keys_at(now, rotation_));
}

void Agent::serve(const Client& client) {
  std::array<char, kMostRequest> text;
  const ssize_t bytes = recv(client.socket.get(), text.data(), text.size(), MSG_DONTWAIT);
  if (bytes <= 0) return;
  Request request;
  std::string told;
  try {
    const std::string_view words(text.data(), static_cast<std::size_t>(bytes));
    told = parse_request(words, request) ? answer(request, client.user, time_of_day())
                                         : error_answer("there is no such request");
  } catch (const std::exception& error) {
    told = error_answer(error.what());
  }
  (void)send(client.socket.get(), told.data(), told.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  explicit_bzero(told.data(), told.size());
}

// One user takes no place of another: the oldest client of the user leaves for the next one.
void Agent::accept_client() {
  nic::FileDescriptor socket(
      accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  ucred peer{};
  socklen_t length = sizeof peer;
  if (!socket.valid() || getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) {
    return;
  }
  const auto of_user = [&peer](const Client& client) { return client.user == peer.uid; };
  if (std::count_if(clients_.begin(), clients_.end(), of_user) >=
      static_cast<std::ptrdiff_t>(kMostClientsOfUser)) {
    clients_.erase(std::find_if(clients_.begin(), clients_.end(), of_user));
  } else if (clients_.size() == kMostClients) {
    clients_.erase(clients_.begin());
  }
  clients_.push_back({std::move(socket), peer.uid});
}

void Agent::run(int stop) {
  for (;;) {
    update(time_of_day());
    std::vector<pollfd> watched = {{stop, POLLIN, 0}, {listener_.get(), POLLIN, 0}};
    for (const Client& client : clients_) watched.push_back({client.socket.get(), POLLIN, 0});
    // The time of day may be set: it is looked at again after a second at most.
    poll(watched.data(), watched.size(), 1000);
    if (watched[0].revents != 0) return;
    for (std::size_t i = watched.size(); i-- > 2;) {
      if (watched[i].revents == 0) continue;
      serve(clients_[i - 2]);
      clients_.erase(clients_.begin() + static_cast<std::ptrdiff_t>(i - 2));
    }
    if (watched[1].revents != 0) accept_client();
  }
}

std::string ask(const std::string& name, const std::string& request) {
  const sockaddr_un address = address_of(name);
  const nic::FileDescriptor fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  const timeval patience{10, 0};
  setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    throw std::runtime_error(name + ": " + std::strerror(errno) + "; does uet_keyd run?");
  }
  std::string text(kMostAnswer, '\0');
  if (send(fd.get(), request.data(), request.size(), MSG_NOSIGNAL) < 0) {
    throw std::runtime_error(name + ": " + std::strerror(errno));
  }
  const ssize_t bytes = recv(fd.get(), text.data(), text.size(), 0);
  if (bytes <= 0) throw std::runtime_error(name + ": the agent does not answer");
  text.resize(static_cast<std::size_t>(bytes));
  if (text.starts_with(kOk)) return text.substr(std::strlen(kOk));
  throw std::runtime_error(text.substr(std::min(text.find(' ') + 1, text.size())));
}

}  // namespace uet::keyd
