// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// See common.h. Knows sockets and processes; of libfabric only the public interface.
#include "common.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

namespace fabtests {
namespace {

constexpr const char* kPort = "47930";  // TCP, between the two processes
constexpr unsigned kLifetimeSeconds = 100;

std::string provider_name = "uet";
const char* current_case = "start";
bool is_server = false;

[[noreturn]] void die(const std::string& what) {
  std::fprintf(stderr, "%s: %s: %s\n", is_server ? "server" : "client", current_case, what.c_str());
  _exit(1);
}

// A TCP socket that listens on, or is connected to, `host`.
int open_socket(const char* host, bool listening) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = listening ? AI_PASSIVE : 0;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(host, kPort, &hints, &found)) die(gai_strerror(error));
  const Clock::time_point end = Clock::now() + kPatience;
  for (;;) {
    const int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int on = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    const int result = listening ? bind(fd, found->ai_addr, found->ai_addrlen)
                                 : ::connect(fd, found->ai_addr, found->ai_addrlen);
    if (result == 0 && (!listening || listen(fd, 1) == 0)) {
      freeaddrinfo(found);
      return fd;
    }
    // The server may not be there yet.
    if (listening || Clock::now() > end) die(std::string("TCP: ") + std::strerror(errno));
    close(fd);
    usleep(50'000);
  }
}

struct Options {
  const char* host = nullptr;     // of the server: this is the client
  const char* address = nullptr;  // of our endpoints
  const char* only = nullptr;     // the one case to run
  bool server = false;
};

int usage(const char* program, std::span<const Case> cases) {
  std::fprintf(stderr, "Use: %s [-p PROVIDER] [-c CASE] [-s | HOST] [-a ADDRESS]\nCases:", program);
  for (const Case& entry : cases) std::fprintf(stderr, " %s", entry.name);
  std::fputs("\n", stderr);
  return 2;
}

int run_side(Link link, std::span<const Case> cases, const char* only) {
  is_server = link.server();
  alarm(kLifetimeSeconds);
  bool found = false;
  for (const Case& entry : cases) {
    if (only != nullptr && std::strcmp(only, entry.name) != 0) continue;
    found = true;
    current_case = entry.name;
    entry.run(link);
    link.meet();
    if (link.server()) std::printf("ok %s\n", entry.name);
  }
  std::fflush(stdout);
  if (!found) die(std::string("no case named ") + (only != nullptr ? only : ""));
  return 0;
}

int run_both(const char* address, std::span<const Case> cases, const char* only) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) die("socketpair");
  pid_t children[2];
  for (int side = 0; side < 2; ++side) {
    children[side] = fork();
    if (children[side] != 0) continue;
    close(ends[1 - side]);
    std::exit(run_side(Link(ends[side], side == 0, address), cases, only));
  }
  close(ends[0]);
  close(ends[1]);
  int result = 0;
  for (int ended = 0; ended < 2; ++ended) {
    int status = 0;
    const pid_t pid = wait(&status);
    if (WIFSIGNALED(status)) {
      std::fprintf(stderr, "%s: ended by signal %d (%s)\n",
                   pid == children[0] ? "server" : "client", WTERMSIG(status),
                   strsignal(WTERMSIG(status)));
    }
    if (status != 0) result = 1;
  }
  return result;
}

}  // namespace

// ---- checks ------------------------------------------------------------------------------------

void fail(const char* file, int line, const std::string& what) {
  const char* slash = std::strrchr(file, '/');
  die(std::string(slash != nullptr ? slash + 1 : file) + ":" + std::to_string(line) + ": " + what);
}

std::string strerror(ssize_t result) {
  if (result >= 0) return std::to_string(result);
  return std::to_string(result) + " (" + fi_strerror(static_cast<int>(-result)) + ")";
}

Bytes pattern(std::size_t bytes, std::uint64_t seed) {
  Bytes made(bytes);
  std::uint64_t state = seed * 0x9e3779b97f4a7c15U + 1;
  for (std::byte& value : made) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    value = static_cast<std::byte>(state >> 56);
  }
  return made;
}

bool same(std::span<const std::byte> memory, std::uint64_t seed) {
  const Bytes wanted = pattern(memory.size(), seed);
  return std::equal(memory.begin(), memory.end(), wanted.begin());
}

// ---- the two processes
// ---------------------------------------------------------------------------

void Link::wait_readable(Node* node) {
  const Clock::time_point end = Clock::now() + kPatience;
  pollfd ready{.fd = fd_, .events = POLLIN, .revents = 0};
  // A node that makes progress must not sleep for long.
  while (poll(&ready, 1, node != nullptr ? 0 : 100) == 0) {
    if (node != nullptr) node->progress();
    if (Clock::now() > end) die("the other side does not come");
  }
}

void Link::send(std::span<const std::byte> bytes) {
  const std::uint64_t size = bytes.size();
  const bool sent = ::send(fd_, &size, sizeof size, MSG_NOSIGNAL) == ssize_t{sizeof size} &&
                    ::send(fd_, bytes.data(), size, MSG_NOSIGNAL) == static_cast<ssize_t>(size);
  if (!sent) die("the other side has ended");
}

Bytes Link::receive(Node* node) {
  wait_readable(node);
  std::uint64_t size = 0;
  if (recv(fd_, &size, sizeof size, MSG_WAITALL) != ssize_t{sizeof size}) {
    die("the other side has ended");
  }
  Bytes bytes(size);
  if (recv(fd_, bytes.data(), size, MSG_WAITALL) != static_cast<ssize_t>(size)) {
    die("the other side has ended");
  }
  return bytes;
}

void Link::meet(Node* node) {
  send_value('m');
  receive_value<char>(node);
}

const std::string& provider() { return provider_name; }

int run_cases(int argc, char** argv, std::span<const Case> cases) {
  Options options;
  for (int option; (option = getopt(argc, argv, "p:c:a:s")) != -1;) {
    switch (option) {
      case 'p':
        provider_name = optarg;
        break;
      case 'c':
        options.only = optarg;
        break;
      case 'a':
        options.address = optarg;
        break;
      case 's':
        options.server = true;
        break;
      default:
        return usage(argv[0], cases);
    }
  }
  if (optind < argc) options.host = argv[optind];
  const char* address = options.address != nullptr ? options.address : "127.0.0.1";
  if (options.server) {
    const int listener = open_socket(options.address, true);
    const int connection = accept(listener, nullptr, nullptr);
    return run_side(Link(connection, true, address), cases, options.only);
  }
  if (options.host != nullptr) {
    return run_side(Link(open_socket(options.host, false), false, address), cases, options.only);
  }
  return run_both(address, cases, options.only);
}

// ---- an endpoint with its objects
// ----------------------------------------------------------------

Node::Node(Link& link, Setup setup) : link_(link) {
  fi_info* hints = fi_allocinfo();
  hints->fabric_attr->prov_name = strdup(provider_name.c_str());
  hints->caps = FI_MSG | FI_TAGGED | FI_RMA;
  hints->mode = FI_CONTEXT | FI_CONTEXT2;
  hints->ep_attr->type = FI_EP_RDM;
  hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
  if (setup.hints) setup.hints(*hints);
  const std::string& address = setup.address.empty() ? link.address() : setup.address;
  const char* service = setup.service.empty() ? nullptr : setup.service.c_str();
  OK(fi_getinfo(setup.version, address.c_str(), service, FI_SOURCE, hints, &info));
  fi_freeinfo(hints);

  OK(fi_fabric(info->fabric_attr, &fabric, nullptr));
  OK(fi_domain(fabric, info, &domain, nullptr));
  fi_av_attr av_attr{};
  av_attr.type = info->domain_attr->av_type;
  OK(fi_av_open(domain, &av_attr, &av, nullptr));
  if (setup.cq.format == FI_CQ_FORMAT_UNSPEC) setup.cq.format = FI_CQ_FORMAT_TAGGED;
  fi_cq_attr attr = setup.cq;
  OK(fi_cq_open(domain, &attr, &tx, nullptr));
  rx = tx;
  if (!setup.one_cq) {
    attr = setup.cq;
    OK(fi_cq_open(domain, &attr, &rx, nullptr));
  }
  if (!setup.endpoint) return;
  OK(fi_endpoint(domain, info, &ep, nullptr));
  OK(fi_ep_bind(ep, &av->fid, 0));
  OK(fi_ep_bind(ep, &tx->fid, FI_TRANSMIT | setup.tx_bind_flags));
  OK(fi_ep_bind(ep, &rx->fid, FI_RECV | setup.rx_bind_flags));
}

Node::~Node() {
  if (ep != nullptr) OK(fi_close(&ep->fid));
  for (auto object = owned_.rbegin(); object != owned_.rend(); ++object) OK(fi_close(*object));
  if (rx != tx) OK(fi_close(&rx->fid));
  OK(fi_close(&tx->fid));
  OK(fi_close(&av->fid));
  OK(fi_close(&domain->fid));
  OK(fi_close(&fabric->fid));
  fi_freeinfo(info);
}

void Node::connect() {
  OK(fi_enable(ep));
  peer = exchange(ep);
}

fi_addr_t Node::exchange(fid_ep* endpoint) {
  link_.send(name_of(endpoint));
  return insert(link_.receive(this));
}

fid_cntr* Node::counter(std::uint64_t counts) {
  fi_cntr_attr attr{};
  attr.events = FI_CNTR_EVENTS_COMP;
  attr.wait_obj = FI_WAIT_UNSPEC;
  fid_cntr* opened = nullptr;
  OK(fi_cntr_open(domain, &attr, &opened, nullptr));
  if (counts != 0) OK(fi_ep_bind(ep, &opened->fid, counts));
  close_later(&opened->fid);
  return opened;
}

Bytes Node::name_of(fid_ep* endpoint) {
  std::size_t length = 0;
  RETURNS(-FI_ETOOSMALL, fi_getname(&endpoint->fid, nullptr, &length));
  Bytes name(length);
  OK(fi_getname(&endpoint->fid, name.data(), &length));
  CHECK(length == name.size());
  return name;
}

fi_addr_t Node::insert(const Bytes& name) {
  fi_addr_t address = FI_ADDR_NOTAVAIL;
  RETURNS(1, fi_av_insert(av, name.data(), 1, &address, 0, nullptr));
  return address;
}

fi_cq_tagged_entry Node::completion(fid_cq* queue) {
  fi_addr_t source;
  return completion(queue, source);
}

fi_cq_tagged_entry Node::completion(fid_cq* queue, fi_addr_t& source) {
  fi_cq_tagged_entry entry{};
  const ssize_t result = repeat([&] { return fi_cq_readfrom(queue, &entry, 1, &source); });
  if (result == -FI_EAVAIL) {
    fi_cq_err_entry error{};
    RETURNS(1, fi_cq_readerr(queue, &error, 0));
    die("operation failed: " + strerror(-error.err) + ": " +
        fi_cq_strerror(queue, error.prov_errno, error.err_data, nullptr, 0));
  }
  if (result != 1) die("no completion: " + strerror(result));
  return entry;
}

fi_cq_err_entry Node::error(fid_cq* queue) {
  fi_cq_tagged_entry entry{};
  RETURNS(-FI_EAVAIL, repeat([&] { return fi_cq_read(queue, &entry, 1); }));
  fi_cq_err_entry error{};
  RETURNS(1, fi_cq_readerr(queue, &error, 0));
  return error;
}

bool Node::stays_empty(fid_cq* queue) {
  const Clock::time_point end = Clock::now() + std::chrono::milliseconds(100);
  fi_cq_tagged_entry entry{};
  while (Clock::now() < end) {
    if (fi_cq_read(queue, &entry, 1) != -FI_EAGAIN) return false;
  }
  return true;
}

ssize_t Node::repeat(const std::function<ssize_t()>& call) {
  const Clock::time_point end = Clock::now() + kPatience;
  for (;;) {
    const ssize_t result = call();
    if (result != -FI_EAGAIN || Clock::now() > end) return result;
    progress();
  }
}

void Node::progress() {
  // Neither an empty queue nor a waiting error is of interest here.
  static_cast<void>(fi_cq_read(tx, nullptr, 0));
  if (rx != tx) static_cast<void>(fi_cq_read(rx, nullptr, 0));
  if (events == nullptr) return;
  std::uint32_t number = 0;
  alignas(fi_eq_cm_entry) std::array<char, 1024> entry{};
  static_cast<void>(fi_eq_read(events, &number, entry.data(), entry.size(), FI_PEEK));
}

Region::Region(Node& node, std::span<std::byte> memory, std::uint64_t access, std::uint64_t key) {
  OK(fi_mr_reg(node.domain, memory.data(), memory.size(), access, 0, key, 0, &mr, nullptr));
  const auto mode = static_cast<std::uint64_t>(node.info->domain_attr->mr_mode);
  if ((mode & FI_MR_ENDPOINT) != 0) {
    OK(fi_mr_bind(mr, &node.ep->fid, 0));
    OK(fi_mr_enable(mr));
  }
  remote.address =
      (mode & FI_MR_VIRT_ADDR) != 0 ? reinterpret_cast<std::uint64_t>(memory.data()) : 0;
  remote.key = fi_mr_key(mr);
}

Region::~Region() { OK(fi_close(&mr->fid)); }

}  // namespace fabtests
