// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What the example programs share: a reliable-datagram endpoint with its completion queue and
// address vector, and a TCP connection over which the two processes tell each other where they are.
// Uses nothing but libfabric's public interface, so it runs over any provider with FI_EP_RDM.
#pragma once

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

namespace example {

inline constexpr std::chrono::seconds kPatience{30};  // longest wait for anything the peer does
inline constexpr std::chrono::milliseconds kNap{1};   // longest sleep with nothing else looked at

[[noreturn]] inline void fail(const std::string& what) { throw std::runtime_error(what); }

// Passes on the result of a libfabric call; a negative one ends the program with its meaning.
inline ssize_t check(ssize_t result, const std::string& what) {
  if (result < 0) fail(what + ": " + fi_strerror(static_cast<int>(-result)));
  return result;
}

// Owner of a libfabric object. Members are destroyed last to first, as libfabric demands.
struct Close {
  template <class T>
  void operator()(T* object) const {
    fi_close(&object->fid);
  }
};
template <class T>
using Owned = std::unique_ptr<T, Close>;

// ---- the connection beside the fabric ----------------------------------------------------------

class Socket {
 public:
  // Waits for one client on `port` / connects to `host`:`port`.
  static Socket accept_one(const std::string& port) { return listen_on(port).accept(); }
  static Socket connect_to(const std::string& host, const std::string& port);
  // Clients wait in line at `port` / the next of them, who may have yet to come.
  static Socket listen_on(const std::string& port);
  Socket accept() const;
  bool has_client() const {
    pollfd waiting{fd_, POLLIN, 0};
    return ::poll(&waiting, 1, 0) == 1;
  }
  // Two ends of one connection inside this process.
  static std::pair<Socket, Socket> pair();
  ~Socket() {
    if (fd_ >= 0) ::close(fd_);
  }
  Socket(Socket&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  Socket& operator=(Socket&&) = delete;

  template <class T>
  void send(const T& value) {
    if (::send(fd_, &value, sizeof value, MSG_NOSIGNAL) != ssize_t{sizeof value}) {
      fail(std::string("sending to the other process: ") + std::strerror(errno));
    }
  }
  template <class T>
  T receive() {
    T value;
    if (::recv(fd_, &value, sizeof value, MSG_WAITALL) != ssize_t{sizeof value}) {
      fail("the other process closed the connection; it says why");
    }
    return value;
  }
  // Something to receive, or the end of the connection; does not wait.
  bool readable() const {
    char byte;
    return ::recv(fd_, &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0 || errno != EAGAIN;
  }
  bool at_end() const {
    char byte;
    return ::recv(fd_, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
  }
  // Our IP address on this connection: the interface that leads to the peer.
  std::string local_host() const;
  int fd() const { return fd_; }

 private:
  explicit Socket(int fd) : fd_(fd) {}
  // A word behind another would wait for up to 40 ms until the peer has acknowledged that one, and
  // what is measured between two words would seem to last that long. Accepted sockets inherit it.
  void send_words_at_once() {
    const int on = 1;
    ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
  int fd_;
};

using AddressList = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

inline AddressList look_up(const char* host, const std::string& port, int flags) {
  addrinfo hints{};
  hints.ai_family = host == nullptr ? AF_INET : AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* found = nullptr;
  if (const int error = ::getaddrinfo(host, port.c_str(), &hints, &found); error != 0) {
    fail((host == nullptr ? "port " + port : std::string(host)) + ": " + ::gai_strerror(error));
  }
  return {found, &::freeaddrinfo};
}

inline Socket Socket::listen_on(const std::string& port) {
  const AddressList address = look_up(nullptr, port, AI_PASSIVE);
  Socket listener(::socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  ::setsockopt(listener.fd_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  listener.send_words_at_once();
  if (::bind(listener.fd_, address->ai_addr, address->ai_addrlen) != 0 ||
      ::listen(listener.fd_, 8) != 0) {
    fail("TCP port " + port + ": " + std::strerror(errno));
  }
  return listener;
}

inline Socket Socket::accept() const {
  Socket connection(::accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC));
  if (connection.fd_ < 0) fail(std::string("waiting for the client: ") + std::strerror(errno));
  return connection;
}

inline std::pair<Socket, Socket> Socket::pair() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    fail(std::string("socketpair: ") + std::strerror(errno));
  }
  return {Socket(ends[0]), Socket(ends[1])};
}

inline Socket Socket::connect_to(const std::string& host, const std::string& port) {
  const AddressList address = look_up(host.c_str(), port, 0);
  Socket connection(::socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const timeval patience{kPatience.count(), 0};  // connect fails with EINPROGRESS after that
  ::setsockopt(connection.fd_, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  if (::connect(connection.fd_, address->ai_addr, address->ai_addrlen) != 0) {
    const std::string why = errno == EINPROGRESS ? "no answer" : std::strerror(errno);
    fail("connecting to " + host + " port " + port + ": " + why);
  }
  connection.send_words_at_once();
  return connection;
}

inline std::string Socket::local_host() const {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  std::array<char, NI_MAXHOST> host{};
  if (::getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &length) != 0 ||
      ::getnameinfo(reinterpret_cast<sockaddr*>(&address), length, host.data(), host.size(),
                    nullptr, 0, NI_NUMERICHOST) != 0) {
    fail("cannot tell the local address of the TCP connection");
  }
  return host.data();
}

// ---- the endpoint ------------------------------------------------------------------------------

// Sent by each process to the other: the name of its endpoint, and address and key of its memory.
struct Introduction {
  std::array<std::byte, 64> name{};  // fi_getname
  std::uint64_t name_bytes = 0;
  std::uint64_t memory_address = 0;  // what the peer's RMA calls give as `addr`
  std::uint64_t memory_key = 0;      // and as `key`
};

// How an endpoint makes progress: when it is polled, in fi_cq_sread, where the process sleeps, or
// by the provider itself, so that the process may sleep until fd() is readable.
enum class Progress { WhenPolled, Sleeping, Automatic };

struct EndpointOptions {
  Progress progress = Progress::WhenPolled;
  bool ordered = false;  // messages to a peer arrive in the order of their sends
};

// One endpoint, its completion queue and its one peer.
class Endpoint {
 public:
  // `capabilities`: FI_MSG, FI_TAGGED, FI_RMA; `local_host`: the address to use, hence the
  // interface.
  Endpoint(const std::string& provider, std::uint64_t capabilities, const std::string& local_host,
           EndpointOptions options = {});

  // Registers memory that lives longer than this object, and returns what the peer needs to know.
  // The key is `key` unless the provider chooses keys.
  Introduction introduce(void* memory, std::size_t bytes, std::uint64_t key = 1);
  void meet(const Introduction& peer);

  // Repeats `post` for as long as the provider's queues are full.
  template <class Post>
  void post(const char* what, Post&& post) {
    const auto start = std::chrono::steady_clock::now();
    for (ssize_t result; (result = post()) != 0;) {
      if (result != -FI_EAGAIN) check(result, what);
      if (std::chrono::steady_clock::now() - start > kPatience) fail(what + std::string(": stuck"));
      poll();
    }
  }
  // Reads completions if there are any, and counts them. Progress::Sleeping: waits for one, at most
  // for kNap.
  void poll();
  // Completions of our own operations (sends, writes, reads), of receives, and of a peer's writes
  // with data (whose last data is kept): so many since the endpoint was opened.
  std::uint64_t sent() const { return sent_; }
  std::uint64_t received() const { return received_; }
  std::uint64_t data_events() const { return data_events_; }
  std::uint64_t last_data() const { return last_data_; }

  // Progress::Automatic: sleeps until there are completions, at most `patience`; calls nothing of
  // libfabric while it sleeps. False: there are none.
  bool sleep(std::chrono::milliseconds patience);

  fid_ep* ep() { return ep_.get(); }
  fid_domain* domain() { return domain_.get(); }
  fi_addr_t peer() const { return peer_; }
  void* descriptor() { return region_ ? fi_mr_desc(region_.get()) : nullptr; }
  const fi_info& info() const { return *info_; }

 private:
  struct FreeInfo {
    void operator()(fi_info* info) const { fi_freeinfo(info); }
  };
  std::unique_ptr<fi_info, FreeInfo> info_;
  Progress progress_;
  Owned<fid_fabric> fabric_;
  Owned<fid_domain> domain_;
  Owned<fid_cq> cq_;
  Owned<fid_av> av_;
  Owned<fid_mr> region_;
  Owned<fid_ep> ep_;
  fi_addr_t peer_ = FI_ADDR_UNSPEC;
  std::uint64_t sent_ = 0;
  std::uint64_t received_ = 0;
  std::uint64_t data_events_ = 0;
  std::uint64_t last_data_ = 0;
};

inline Endpoint::Endpoint(const std::string& provider, std::uint64_t capabilities,
                          const std::string& local_host, EndpointOptions options)
    : progress_(options.progress) {
  // mr_mode lists all modes that we support. The answer holds only those that the provider needs.
  std::unique_ptr<fi_info, FreeInfo> hints(fi_allocinfo());
  hints->ep_attr->type = FI_EP_RDM;
  hints->caps = capabilities;
  hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
  if (progress_ == Progress::Automatic) hints->domain_attr->data_progress = FI_PROGRESS_AUTO;
  if (options.ordered) hints->tx_attr->msg_order = hints->rx_attr->msg_order = FI_ORDER_SAS;
  hints->fabric_attr->prov_name = ::strdup(provider.c_str());  // fi_freeinfo frees it

  fi_info* found = nullptr;
  // To shm a node is no interface but the name of this endpoint.
  const bool in_memory = provider == "shm";
  check(fi_getinfo(FI_VERSION(1, 17), in_memory ? nullptr : local_host.c_str(), nullptr,
                   in_memory ? 0 : FI_SOURCE, hints.get(), &found),
        "fi_getinfo for provider " + provider + " at " + local_host);
  info_.reset(found);

  fid_fabric* fabric = nullptr;
  check(fi_fabric(info_->fabric_attr, &fabric, nullptr), "fi_fabric");
  fabric_.reset(fabric);

  fid_domain* domain = nullptr;
  check(fi_domain(fabric, info_.get(), &domain, nullptr), "fi_domain");
  domain_.reset(domain);

  fi_cq_attr cq_attr{};
  cq_attr.format = FI_CQ_FORMAT_DATA;
  cq_attr.wait_obj = progress_ == Progress::Automatic  ? FI_WAIT_FD
                     : progress_ == Progress::Sleeping ? FI_WAIT_UNSPEC
                                                       : FI_WAIT_NONE;
  fid_cq* cq = nullptr;
  check(fi_cq_open(domain, &cq_attr, &cq, nullptr), "fi_cq_open");
  cq_.reset(cq);

  fi_av_attr av_attr{};
  av_attr.type = FI_AV_TABLE;
  fid_av* av = nullptr;
  check(fi_av_open(domain, &av_attr, &av, nullptr), "fi_av_open");
  av_.reset(av);

  fid_ep* ep = nullptr;
  check(fi_endpoint(domain, info_.get(), &ep, nullptr), "fi_endpoint");
  ep_.reset(ep);
  check(fi_ep_bind(ep, &av->fid, 0), "binding the address vector");
  check(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV), "binding the completion queue");
  check(fi_enable(ep), "fi_enable");
}

inline Introduction Endpoint::introduce(void* memory, std::size_t bytes, std::uint64_t key) {
  // A key of our choice, unless the provider chooses (FI_MR_PROV_KEY). Peers address the memory by
  // offset, unless the provider wants our addresses (FI_MR_VIRT_ADDR).
  fid_mr* region = nullptr;
  check(fi_mr_reg(domain_.get(), memory, bytes,
                  FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE, 0, key,
                  0, &region, nullptr),
        "fi_mr_reg");
  region_.reset(region);

  Introduction introduction;
  introduction.memory_key = fi_mr_key(region);
  const bool virtual_addresses = (info_->domain_attr->mr_mode & FI_MR_VIRT_ADDR) != 0;
  introduction.memory_address = virtual_addresses ? reinterpret_cast<std::uintptr_t>(memory) : 0;
  std::size_t name_bytes = introduction.name.size();
  check(fi_getname(&ep_->fid, introduction.name.data(), &name_bytes), "fi_getname");
  introduction.name_bytes = name_bytes;
  return introduction;
}

inline void Endpoint::meet(const Introduction& peer) {
  if (fi_av_insert(av_.get(), peer.name.data(), 1, &peer_, 0, nullptr) != 1) {
    fail("fi_av_insert refused the peer's address");
  }
}

inline bool Endpoint::sleep(std::chrono::milliseconds patience) {
  fid* queue = &cq_->fid;
  const int result = fi_trywait(fabric_.get(), &queue, 1);
  if (result == -FI_EAGAIN) return true;  // there are some already
  check(result, "fi_trywait");
  pollfd waiting{-1, POLLIN, 0};
  check(fi_control(queue, FI_GETWAIT, &waiting.fd), "FI_GETWAIT");
  return ::poll(&waiting, 1, static_cast<int>(patience.count())) == 1;
}

inline void Endpoint::poll() {
  std::array<fi_cq_data_entry, 64> entries;
  const int nap_ms = static_cast<int>(kNap.count());
  const ssize_t count =
      progress_ == Progress::Sleeping
          ? fi_cq_sread(cq_.get(), entries.data(), entries.size(), nullptr, nap_ms)
          : fi_cq_read(cq_.get(), entries.data(), entries.size());
  if (count == -FI_EAGAIN) return;
  if (count == -FI_EAVAIL) {
    fi_cq_err_entry error{};
    check(fi_cq_readerr(cq_.get(), &error, 0), "fi_cq_readerr");
    std::array<char, 128> detail{};
    fi_cq_strerror(cq_.get(), error.prov_errno, error.err_data, detail.data(), detail.size());
    fail(std::string("an operation failed: ") + fi_strerror(error.err) + " (" + detail.data() +
         ")");
  }
  check(count, "fi_cq_read");
  for (ssize_t i = 0; i < count; ++i) {
    const fi_cq_data_entry& entry = entries[static_cast<std::size_t>(i)];
    if ((entry.flags & FI_RECV) != 0) {
      ++received_;
    } else if ((entry.flags & FI_REMOTE_CQ_DATA) != 0) {
      ++data_events_;
      last_data_ = entry.data;
    } else {
      ++sent_;
    }
  }
}

// Makes progress until `done()`. Looks at the clock now and then only, since that takes as long as
// many an empty poll.
template <class Done>
void wait_until(Endpoint& endpoint, const char* what, Done&& done) {
  constexpr std::uint64_t kPollsPerLook = 4096;
  std::uint64_t news = 0;
  std::chrono::steady_clock::time_point last_news{};
  for (std::uint64_t polls = 1; !done(); ++polls) {
    endpoint.poll();
    if (polls % kPollsPerLook != 0) continue;
    const auto now = std::chrono::steady_clock::now();
    const std::uint64_t seen = endpoint.sent() + endpoint.received() + endpoint.data_events();
    if (seen != news || polls == kPollsPerLook) {
      news = seen;
      last_news = now;
    } else if (now - last_news > kPatience) {
      fail(std::string("timed out waiting for ") + what);
    }
  }
}

}  // namespace example
