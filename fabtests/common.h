// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What the test programs of this folder share: two processes, a connection between them beside the
// fabric, and one endpoint with its objects, ready for use. Plain libfabric, public headers only:
// the members of Node are libfabric's own objects, and the programs call them directly.
//
// A program is a list of cases. Both processes run the same cases one after the other; each case
// asks link.server() which side it is on. Whatever goes wrong ends the process with the place and
// the reason, and the other one with it.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace fabtests {

using Clock = std::chrono::steady_clock;
using Bytes = std::vector<std::byte>;

inline constexpr std::chrono::seconds kPatience{20};  // the longest wait for anything

// ---- checks ------------------------------------------------------------------------------------

// Ends this process with `what`, which names the place.
[[noreturn]] void fail(const char* file, int line, const std::string& what);
std::string strerror(ssize_t result);  // of a libfabric call

// Holds, or the test has failed.
#define CHECK(condition)                                                         \
  do {                                                                           \
    if (!(condition)) fabtests::fail(__FILE__, __LINE__, "not so: " #condition); \
  } while (false)
// A call that returns `expected`: 0, a count, or -FI_E....
#define RETURNS(expected, call)                                                           \
  do {                                                                                    \
    const auto wanted_ = static_cast<ssize_t>(expected);                                  \
    const auto got_ = static_cast<ssize_t>(call);                                         \
    if (got_ != wanted_) {                                                                \
      fabtests::fail(__FILE__, __LINE__,                                                  \
                     #call " returned " + fabtests::strerror(got_) + ", not " #expected); \
    }                                                                                     \
  } while (false)
#define OK(call) RETURNS(0, call)
// A data transfer call, repeated while it says -FI_EAGAIN; `node` makes progress meanwhile.
#define POST(node, call)                                                                      \
  do {                                                                                        \
    const ssize_t got_ = (node).repeat([&]() -> ssize_t { return call; });                    \
    if (got_ != 0) fabtests::fail(__FILE__, __LINE__, #call ": " + fabtests::strerror(got_)); \
  } while (false)

// Bytes that depend on `seed` and on their position; both sides can make and compare them.
Bytes pattern(std::size_t bytes, std::uint64_t seed);
bool same(std::span<const std::byte> memory, std::uint64_t seed);  // as pattern() made it

// ---- the two processes
// ---------------------------------------------------------------------------

class Node;

// This process's end of the connection beside the fabric.
class Link {
 public:
  Link(int fd, bool server, std::string address)
      : fd_(fd), server_(server), address_(std::move(address)) {}
  bool server() const { return server_; }
  // Where this side's endpoints are: an IP address of this host.
  const std::string& address() const { return address_; }

  // A message to the other side; while waiting for one, `node` (if any) makes progress.
  void send(std::span<const std::byte> bytes);
  Bytes receive(Node* node = nullptr);
  template <class T>
  void send_value(const T& value) {
    send(std::as_bytes(std::span(&value, 1)));
  }
  template <class T>
  T receive_value(Node* node = nullptr);
  // Both sides come here before either goes on.
  void meet(Node* node = nullptr);

 private:
  void wait_readable(Node* node);

  int fd_;
  bool server_;
  std::string address_;
};

struct Case {
  const char* name;
  void (*run)(Link& link);
};

// main() of every program. Without arguments it starts both sides itself on 127.0.0.1.
//   -s [ADDRESS]   only the server, its endpoints on ADDRESS
//   HOST           only the client of the server at HOST; -a ADDRESS says where its endpoints are
//   -c NAME        only this case;  -p PROVIDER: another than uet
int run_cases(int argc, char** argv, std::span<const Case> cases);

// The provider in hints->fabric_attr->prov_name: uet, or as -p said.
const std::string& provider();

// ---- an endpoint with its objects
// ----------------------------------------------------------------

struct Setup {
  std::function<void(fi_info& hints)> hints;  // changes what Node asks for
  fi_cq_attr cq{};                            // of both queues; format TAGGED if not said
  std::uint64_t tx_bind_flags = 0;            // beside FI_TRANSMIT: FI_SELECTIVE_COMPLETION
  std::uint64_t rx_bind_flags = 0;            // beside FI_RECV
  bool one_cq = false;                        // one queue for both directions
  std::string address;                        // IP address of this side, if not link.address()
  std::string service;                        // with it, to be found by host and service
  std::uint32_t version = FI_VERSION(1, 17);  // of the API that is asked for
  bool endpoint = true;                       // false: `ep` stays null, the program opens its own
};

// fabric, domain, AV, a CQ for each direction, and an endpoint bound to them: FI_EP_RDM with
// FI_MSG, FI_TAGGED and FI_RMA unless setup.hints says otherwise. Closes all of it in the right
// order.
class Node {
 public:
  explicit Node(Link& link, Setup setup = {});
  ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  // Enables the endpoint, exchanges names with the other side and inserts its name as `peer`.
  // All else must be bound to the endpoint before.
  void connect();
  // The second half of it, for an endpoint of the program's own: the other side's address.
  fi_addr_t exchange(fid_ep* endpoint);
  // Closes `object` after the endpoint and before the domain; last given, first closed.
  void close_later(fid_t object) { owned_.push_back(object); }
  // A counter of the operations in `counts` (FI_SEND, FI_REMOTE_WRITE, ...) of this endpoint, which
  // is not enabled yet; 0 binds it to nothing. Closed by the node.
  fid_cntr* counter(std::uint64_t counts);

  // fi_getname of any endpoint; inserts a name into the AV.
  static Bytes name_of(fid_ep* endpoint);
  fi_addr_t insert(const Bytes& name);

  // Both sides come here before either goes on; this one makes progress while it waits.
  void meet() { link_.meet(this); }

  // The next completion of `queue`, which must come and be a success.
  fi_cq_tagged_entry completion(fid_cq* queue);
  fi_cq_tagged_entry completion(fid_cq* queue, fi_addr_t& source);
  // The next entry of `queue`, which must come and be an error.
  fi_cq_err_entry error(fid_cq* queue);
  // True if `queue` stays empty for a while (100 ms) in which this side makes progress.
  bool stays_empty(fid_cq* queue);

  // Calls `call` until it returns something else than -FI_EAGAIN or patience ends.
  ssize_t repeat(const std::function<ssize_t()>& call);
  void progress();  // reads no completion

  fi_info* info = nullptr;
  fid_fabric* fabric = nullptr;
  fid_domain* domain = nullptr;
  fid_av* av = nullptr;
  fid_cq* tx = nullptr;
  fid_cq* rx = nullptr;      // the same as tx if setup.one_cq
  fid_eq* events = nullptr;  // progress() looks into it, too
  fid_ep* ep = nullptr;
  fi_addr_t peer = FI_ADDR_UNSPEC;

 private:
  Link& link_;
  std::vector<fid_t> owned_;
};

// Memory registered for the other side's RMA and atomics, and what it needs to reach it.
struct Remote {
  std::uint64_t address;
  std::uint64_t key;
};
class Region {
 public:
  Region(Node& node, std::span<std::byte> memory, std::uint64_t access, std::uint64_t key);
  ~Region();
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

  fid_mr* mr = nullptr;
  Remote remote{};
};

template <class T>
T Link::receive_value(Node* node) {
  const Bytes bytes = receive(node);
  CHECK(bytes.size() == sizeof(T));
  T value;
  std::copy(bytes.begin(), bytes.end(), reinterpret_cast<std::byte*>(&value));
  return value;
}

}  // namespace fabtests
