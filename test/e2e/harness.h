// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The ground the end-to-end tests stand on: child processes with a deadline, a channel between them
// beside the fabric, and one endpoint with its objects. Knows nothing but libfabric's public
// interface; UET_E2E_PROVIDER names another provider to run the same tests over.
//
// UET_E2E_HOSTS, as test/nic/in_network sets it, spreads the children over hosts in turn instead of
// having all on loopback: "NAME,ADDRESS,NIC" for each, separated by ';'. NAME is that of a network
// name space, NIC a value of FI_UET_NIC.
//
// The test process itself never calls libfabric: each role runs in a child that sets its
// environment (FI_UET_*) first.
#pragma once

#include <netinet/in.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace uet::e2e {

using Clock = std::chrono::steady_clock;
// Variables of a process. A key "tune.NAME" sets a parameter that has no variable of its own: it
// goes into FI_UET_TUNING, behind what this process has there.
using Environment = std::map<std::string, std::string>;

// Of a child, unless it is given another: a busy machine gives it a twentieth of a processor.
inline constexpr std::chrono::seconds kDeadline{240};

// Ends the child with a message: the test that started it fails.
[[noreturn]] void fail(const std::string& what);
// Fails on a negative result of libfabric; else returns it.
ssize_t check(ssize_t result, const std::string& what);
// Fails unless `condition`.
void require(bool condition, const std::string& what);

std::string provider();
bool built_with_sanitizer();
// Packets of captures are encrypted (FI_UET_TSS).
bool captures_are_encrypted();

// ---- processes ---------------------------------------------------------------------------------

class Node;

// One end of a connection between two processes; keeps message boundaries.
class Channel {
 public:
  ~Channel();
  Channel(Channel&& other) noexcept;
  Channel& operator=(Channel&&) = delete;

  void send_bytes(std::span<const std::byte> bytes);
  // Waits for a message; makes progress of `node`, if there is one, meanwhile.
  std::vector<std::byte> receive_bytes(Node* node = nullptr);
  bool readable() const;

  template <class T>
  void send(const T& value) {
    send_bytes(std::as_bytes(std::span(&value, 1)));
  }
  template <class T>
  T receive(Node* node = nullptr) {
    const std::vector<std::byte> bytes = receive_bytes(node);
    require(bytes.size() == sizeof(T), "a message of another size came through the channel");
    T value{};
    std::copy_n(bytes.begin(), sizeof value, reinterpret_cast<std::byte*>(&value));
    return value;
  }
  // Both sides arrive here before either goes on.
  void meet(Node* node = nullptr) {
    send('m');
    receive<char>(node);
  }

 private:
  friend struct ChannelPair;
  explicit Channel(int fd) : fd_(fd) {}
  int fd_;
};

// Both ends of a new connection, made before the processes that use it.
struct ChannelPair {
  ChannelPair() : ChannelPair(open()) {}
  Channel left;
  Channel right;

 private:
  explicit ChannelPair(std::pair<int, int> fds) : left(fds.first), right(fds.second) {}
  static std::pair<int, int> open();
};

// A forked child that runs `body` in the given environment. It ends with status 0 when `body`
// returns, with a message and status 1 when it throws, and by SIGALRM at its deadline.
class Process {
 public:
  Process(std::string name, const Environment& environment, std::function<void()> body,
          std::chrono::seconds deadline = kDeadline);
  ~Process();  // kills it if it still runs
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }
  // Waits for its end; the text says what went wrong, empty if nothing did.
  std::string wait();

 private:
  friend std::string wait_for_all(std::initializer_list<Process*> processes);
  std::string describe(int status);

  std::string name_;
  pid_t pid_;
};

// Waits for all; the first that fails has the others killed. Empty when all ended well.
std::string wait_for_all(std::initializer_list<Process*> processes);

// Waits until a process, no matter whose child, has closed all that it had open. A killed one takes
// a while: the kernel waits for the readers of each packet socket, and keeps the ports until then.
void wait_for_exit(pid_t process);

// The output of a program, run by the shell within five minutes. FI_PROVIDER is set to provider();
// an empty value in `environment` removes the variable.
struct Output {
  int status = 0;  // as waitpid gives it
  std::string text;
};
Output run_program(const std::string& command, const Environment& environment);

// ---- data --------------------------------------------------------------------------------------

// Bytes that depend on every bit of `seed` and on their position.
void fill_pattern(std::span<std::byte> memory, std::uint64_t seed);
// Fails, naming `what` and the first wrong byte, unless the memory holds fill_pattern's bytes.
void require_pattern(std::span<const std::byte> memory, std::uint64_t seed,
                     const std::string& what);

// ---- libfabric ---------------------------------------------------------------------------------

struct NodeOptions {
  fi_ep_type type = FI_EP_RDM;
  const char* service = nullptr;  // at which to be found; null: any
  std::uint64_t capabilities = FI_MSG | FI_TAGGED | FI_RMA;
  std::uint64_t order = 0;  // FI_ORDER_SAS and the like: reliable ordered delivery
  int mr_mode = 0;
  fi_threading threading = FI_THREAD_DOMAIN;
  fi_progress progress = FI_PROGRESS_MANUAL;
  fi_wait_obj wait = FI_WAIT_NONE;
  fi_cq_wait_cond wait_cond = FI_CQ_COND_NONE;
  fi_wait_obj wait_set = FI_WAIT_NONE;  // of the set that queue and counters join with FI_WAIT_SET
  std::size_t cq_size = 0;
  bool counters = false;
  std::size_t queue_size = 0;                // operations of each direction; 0 = the provider's own
  std::vector<std::uint8_t> domain_key{};    // auth_key of the domain
  std::vector<std::uint8_t> endpoint_key{};  // and of the endpoint
  std::uint32_t version = FI_VERSION(1, 17);  // of the API
};

struct CloseFid {
  template <class T>
  void operator()(T* object) const {
    fi_close(&object->fid);
  }
};
template <class T>
using Owned = std::unique_ptr<T, CloseFid>;

// One completion, good or bad.
struct Event {
  void* context = nullptr;
  std::uint64_t flags = 0;
  std::size_t length = 0;
  std::uint64_t data = 0;
  std::uint64_t tag = 0;
  int error = 0;  // 0, or FI_E...
  void* buffer = nullptr;
};

struct Region {
  Owned<fid_mr> mr;
  std::uint64_t address = 0;  // what the peer's RMA calls give as address
  std::uint64_t key = 0;
};

struct RemoteRegion {
  std::uint64_t address = 0;
  std::uint64_t key = 0;
};

// This process's own address: 127.0.0.1, or that of its host.
std::string own_address();

// The counter of the domain with this name (fi_ext_uet.h); fails if there is none.
std::uint64_t read_counter(fid_domain& domain, const std::string& name);

// Everything one process needs: fabric, domain, AV, CQ, endpoint on own_address(), enabled.
class Node {
 public:
  explicit Node(const NodeOptions& options = {});

  std::vector<std::byte> name() const;
  fi_addr_t insert(std::span<const std::byte> name);
  // Exchanges names with the process at the other end.
  fi_addr_t connect(Channel& channel);

  Region expose(void* memory, std::size_t bytes, std::uint64_t key);
  // Takes the domain's lock: what its thread wrote is visible to the caller from now on.
  void see_memory();

  // Repeats `call` while it returns -FI_EAGAIN, making progress; fails on any other error.
  template <class Call>
  void post(const char* what, Call&& call) {
    const Clock::time_point start = Clock::now();
    for (ssize_t result; (result = call()) != 0;) {
      if (result != -FI_EAGAIN) check(result, what);
      require(Clock::now() - start < kDeadline, std::string(what) + ": queue full for ever");
      keep_events();
    }
  }

  // Writes `rounds` patterns of `bytes` to the region of `peer`, reads each back and checks it.
  void write_and_read_back(fi_addr_t peer, const RemoteRegion& remote, std::size_t bytes,
                           std::uint64_t rounds);

  std::uint64_t counter(const std::string& name) const { return read_counter(*domain, name); }

  // The next completion; nothing when there is none now. Error entries come as events as well.
  std::optional<Event> poll();
  // Waits for the next completion and fails if it is an error.
  Event next(const char* what);
  // Waits for `count` completions without error.
  void drain(std::size_t count, const char* what);
  // Makes progress; completions are kept for poll.
  void keep_events();

  // Sorted by order of destruction.
  struct FreeInfo {
    void operator()(fi_info* info) const { fi_freeinfo(info); }
  };
  std::unique_ptr<fi_info, FreeInfo> info;
  Owned<fid_fabric> fabric;
  Owned<fid_wait> wait_set;  // options.wait_set
  Owned<fid_domain> domain;
  Owned<fid_av> av;
  Owned<fid_cq> cq;
  Owned<fid_cntr> sent;           // options.counters: transmit completions
  Owned<fid_cntr> received;       // receive completions
  Owned<fid_cntr> remote_writes;  // peers' writes into our memory
  Owned<fid_ep> ep;

 private:
  std::optional<Event> read_one();

  std::vector<Event> kept_;
  std::size_t kept_begin_ = 0;
};

// Where an endpoint of this name listens (uet over IPv4 only).
sockaddr_in udp_address(std::span<const std::byte> name);
std::uint16_t udp_port(std::span<const std::byte> name);

}  // namespace uet::e2e
