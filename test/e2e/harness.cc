// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// See harness.h.
#include "harness.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <sstream>
#include <stdexcept>

#include "uet/fi_ext_uet.h"

namespace uet::e2e {

void fail(const std::string& what) { throw std::runtime_error(what); }

ssize_t check(ssize_t result, const std::string& what) {
  if (result < 0) fail(what + ": " + fi_strerror(static_cast<int>(-result)));
  return result;
}

void require(bool condition, const std::string& what) {
  if (!condition) fail(what);
}

std::string provider() {
  const char* other = std::getenv("UET_E2E_PROVIDER");
  return other == nullptr ? "uet" : other;
}

bool captures_are_encrypted() {
  const char* mode = std::getenv("FI_UET_TSS");
  return mode != nullptr && std::string(mode) == "require";
}

// For FI_PROVIDER: the core provider that does the work.
static std::string filter() { return provider().substr(0, provider().find(';')); }

bool built_with_sanitizer() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return true;
#elif defined(__has_feature)
  return __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
  return false;
#endif
}

// ---- processes ---------------------------------------------------------------------------------

std::pair<int, int> ChannelPair::open() {
  int fds[2];
  require(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) == 0, "socketpair");
  return {fds[0], fds[1]};
}

Channel::~Channel() {
  if (fd_ >= 0) ::close(fd_);
}

Channel::Channel(Channel&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

void Channel::send_bytes(std::span<const std::byte> bytes) {
  require(::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL) == std::ssize(bytes),
          "sending through the channel");
}

bool Channel::readable() const {
  pollfd entry{fd_, POLLIN, 0};
  return ::poll(&entry, 1, 0) > 0;
}

std::vector<std::byte> Channel::receive_bytes(Node* node) {
  while (node != nullptr && !readable()) {
    for (int i = 0; i < 64; ++i) node->keep_events();
  }
  std::vector<std::byte> bytes(4096);
  const ssize_t count = ::recv(fd_, bytes.data(), bytes.size(), 0);
  require(count > 0, "receiving from the channel");
  bytes.resize(static_cast<std::size_t>(count));
  return bytes;
}

namespace {

std::string address_of_host = "127.0.0.1";

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

// All keys "tune.NAME" as one FI_UET_TUNING.
Environment with_tuning(const Environment& environment) {
  constexpr std::string_view kPrefix = "tune.";
  Environment plain;
  std::string list;
  for (const auto& [key, value] : environment) {
    if (key.starts_with(kPrefix)) {
      list += "," + key.substr(kPrefix.size()) + "=" + value;
    } else {
      plain[key] = value;
    }
  }
  if (list.empty()) return plain;
  const char* present = std::getenv("FI_UET_TUNING");
  if (!plain.contains("FI_UET_TUNING") && present != nullptr) plain["FI_UET_TUNING"] = present;
  std::string& tuning = plain["FI_UET_TUNING"];
  tuning += tuning.empty() ? list.substr(1) : list;
  return plain;
}

// Moves this process to the host whose turn it is; without hosts to loopback.
void enter_host(std::size_t turn) {
  ::setenv("FI_UET_IFACE", "lo", 1);
  const char* hosts = std::getenv("UET_E2E_HOSTS");
  if (hosts == nullptr) return;
  const std::vector<std::string> all = split(hosts, ';');
  const std::vector<std::string> host = split(all.at(turn % all.size()), ',');
  const int fd = ::open(("/run/netns/" + host.at(0)).c_str(), O_RDONLY | O_CLOEXEC);
  require(fd >= 0 && ::setns(fd, CLONE_NEWNET) == 0, "entering the host " + host[0]);
  ::close(fd);
  address_of_host = host.at(1);
  std::string nic = host.at(2);  // may have commas of its own
  for (std::size_t i = 3; i < host.size(); ++i) nic += "," + host[i];
  ::setenv("FI_UET_NIC", nic.c_str(), 1);
  ::setenv("FI_UET_IFACE", std::getenv("UET_E2E_RAILS") != nullptr ? "eth0+eth1" : "eth0", 1);
}

}  // namespace

std::string own_address() { return address_of_host; }

Process::Process(std::string name, const Environment& environment, std::function<void()> body,
                 std::chrono::seconds deadline)
    : name_(std::move(name)) {
  static std::size_t turn = 0;
  ++turn;
  std::fflush(nullptr);
  pid_ = ::fork();
  if (pid_ < 0) throw std::runtime_error("fork");
  if (pid_ > 0) return;

  ::alarm(static_cast<unsigned>(deadline.count()));
  ::setenv("FI_PROVIDER", filter().c_str(), 1);
  int status = 0;
  try {
    enter_host(turn);
    for (const auto& [key, value] : with_tuning(environment)) {
      ::setenv(key.c_str(), value.c_str(), 1);
    }
    body();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", name_.c_str(), error.what());
    status = 1;
  }
  std::fflush(nullptr);
  // exit runs the leak check; a child that failed in mid-work would only add noise to its message.
  if (status == 0) std::exit(0);
  ::_exit(status);
}

Process::~Process() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

std::string Process::describe(int status) {
  pid_ = -1;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) return name_ + " passed its deadline";
  if (WIFSIGNALED(status)) return name_ + " died by signal " + ::strsignal(WTERMSIG(status));
  return name_ + " ended with status " + std::to_string(WEXITSTATUS(status));
}

std::string Process::wait() {
  int status = 0;
  if (::waitpid(pid_, &status, 0) != pid_) return name_ + ": waitpid failed";
  return describe(status);
}

std::string wait_for_all(std::initializer_list<Process*> processes) {
  std::string problem;
  for (bool running = true; running;) {
    running = false;
    for (Process* process : processes) {
      if (process->pid_ <= 0) continue;
      int status = 0;
      if (::waitpid(process->pid_, &status, WNOHANG) == 0) {
        running = true;
        continue;
      }
      const std::string outcome = process->describe(status);
      if (outcome.empty() || !problem.empty()) continue;
      problem = outcome;
      for (Process* other : processes) {
        if (other->pid_ > 0) ::kill(other->pid_, SIGKILL);
      }
    }
    if (running) ::usleep(2000);
  }
  return problem;
}

void wait_for_exit(pid_t process) {
  const int fd = static_cast<int>(::syscall(SYS_pidfd_open, process, 0));
  pollfd exited{.fd = fd, .events = POLLIN, .revents = 0};
  require(::poll(&exited, 1, 20'000) == 1, "a process does not exit");
  ::close(fd);
}

Output run_program(const std::string& command, const Environment& given) {
  const Environment environment = with_tuning(given);
  std::string line = "env FI_PROVIDER='" + filter() + '\'';
  for (const auto& [key, value] : environment) {
    if (!value.empty()) line += ' ' + key + "='" + value + '\'';
  }
  for (const auto& [key, value] : environment) {
    if (value.empty()) line += " env -u " + key;
  }
  line += " timeout 300 " + command;
  Output output;
  std::FILE* pipe = ::popen(line.c_str(), "r");
  if (pipe == nullptr) throw std::runtime_error("popen");
  std::array<char, 4096> buffer;
  while (const std::size_t count = std::fread(buffer.data(), 1, buffer.size(), pipe)) {
    output.text.append(buffer.data(), count);
  }
  output.status = ::pclose(pipe);
  return output;
}

// ---- data --------------------------------------------------------------------------------------

namespace {

// splitmix64: eight good bytes for a position and a seed.
std::uint64_t mix(std::uint64_t value) {
  value += 0x9E3779B97F4A7C15ULL;
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9ULL;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EBULL;
  return value ^ (value >> 31);
}

// Calls visit(offset, eight pattern bytes, how many of them count) from the front to the end.
template <class Visit>
void each_word(std::size_t bytes, std::uint64_t seed, Visit&& visit) {
  const std::uint64_t key = mix(seed);
  for (std::size_t at = 0; at < bytes; at += 8) {
    visit(at, mix(key + at), std::min<std::size_t>(8, bytes - at));
  }
}

}  // namespace

void fill_pattern(std::span<std::byte> memory, std::uint64_t seed) {
  each_word(memory.size(), seed, [&](std::size_t at, std::uint64_t word, std::size_t count) {
    std::memcpy(memory.data() + at, &word, count);
  });
}

void require_pattern(std::span<const std::byte> memory, std::uint64_t seed,
                     const std::string& what) {
  each_word(memory.size(), seed, [&](std::size_t at, std::uint64_t word, std::size_t count) {
    if (std::memcmp(memory.data() + at, &word, count) == 0) return;
    fail(what + ": wrong data in bytes " + std::to_string(at) + " to " +
         std::to_string(at + count - 1) + " of " + std::to_string(memory.size()));
  });
}

// ---- libfabric ---------------------------------------------------------------------------------

namespace {

fi_info* get_info(const NodeOptions& options) {
  std::unique_ptr<fi_info, Node::FreeInfo> hints(fi_allocinfo());
  hints->ep_attr->type = options.type;
  hints->caps = options.capabilities;
  hints->tx_attr->msg_order = options.order;
  hints->rx_attr->msg_order = options.order;
  hints->tx_attr->size = options.queue_size;
  hints->rx_attr->size = options.queue_size;
  hints->domain_attr->mr_mode = options.mr_mode;
  hints->domain_attr->threading = options.threading;
  hints->domain_attr->control_progress = options.progress;
  hints->domain_attr->data_progress = options.progress;
  hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
  hints->fabric_attr->prov_name = ::strdup(provider().c_str());
  fi_info* found = nullptr;
  check(fi_getinfo(options.version, own_address().c_str(), options.service, FI_SOURCE, hints.get(),
                   &found),
        "fi_getinfo");
  return found;
}

Owned<fid_cntr> open_counter(fid_domain* domain, fi_wait_obj wait, fid_wait* set) {
  fi_cntr_attr attr{};
  attr.events = FI_CNTR_EVENTS_COMP;
  attr.wait_obj = wait == FI_WAIT_NONE ? FI_WAIT_UNSPEC : wait;
  attr.wait_set = set;
  fid_cntr* counter = nullptr;
  check(fi_cntr_open(domain, &attr, &counter, nullptr), "fi_cntr_open");
  return Owned<fid_cntr>(counter);
}

}  // namespace

// fi_freeinfo frees it.
void set_key(const std::vector<std::uint8_t>& key, std::uint8_t*& out, std::size_t& size) {
  if (key.empty()) return;
  out = static_cast<std::uint8_t*>(std::malloc(key.size()));
  std::copy(key.begin(), key.end(), out);
  size = key.size();
}

Node::Node(const NodeOptions& options) : info(get_info(options)) {
  set_key(options.domain_key, info->domain_attr->auth_key, info->domain_attr->auth_key_size);
  set_key(options.endpoint_key, info->ep_attr->auth_key, info->ep_attr->auth_key_size);
  fid_fabric* fabric_fid = nullptr;
  check(fi_fabric(info->fabric_attr, &fabric_fid, nullptr), "fi_fabric");
  fabric.reset(fabric_fid);

  if (options.wait_set != FI_WAIT_NONE) {
    fi_wait_attr set_attr{};
    set_attr.wait_obj = options.wait_set;
    fid_wait* set_fid = nullptr;
    // Not by the inline call, which 2.x warns about.
    check(fabric_fid->ops->wait_open(fabric_fid, &set_attr, &set_fid), "fi_wait_open");
    wait_set.reset(set_fid);
  }

  fid_domain* domain_fid = nullptr;
  check(fi_domain(fabric_fid, info.get(), &domain_fid, nullptr), "fi_domain");
  domain.reset(domain_fid);

  fi_av_attr av_attr{};
  av_attr.type = FI_AV_TABLE;
  fid_av* av_fid = nullptr;
  check(fi_av_open(domain_fid, &av_attr, &av_fid, nullptr), "fi_av_open");
  av.reset(av_fid);
  // A peer that is never spoken to: where several engines send for the endpoint, the next entry is
  // that of another engine than its own.
  if (std::getenv("UET_E2E_SECOND_PEER") != nullptr) {
    require(fi_av_insertsvc(av_fid, "192.0.2.1", "4793", nullptr, 0, nullptr) == 1,
            "fi_av_insertsvc");
  }

  fi_cq_attr cq_attr{};
  cq_attr.format = FI_CQ_FORMAT_TAGGED;
  cq_attr.size = options.cq_size;
  cq_attr.wait_obj = options.wait;
  cq_attr.wait_cond = options.wait_cond;
  cq_attr.wait_set = wait_set.get();
  fid_cq* cq_fid = nullptr;
  check(fi_cq_open(domain_fid, &cq_attr, &cq_fid, nullptr), "fi_cq_open");
  cq.reset(cq_fid);

  fid_ep* ep_fid = nullptr;
  check(fi_endpoint(domain_fid, info.get(), &ep_fid, nullptr), "fi_endpoint");
  ep.reset(ep_fid);
  check(fi_ep_bind(ep_fid, &av_fid->fid, 0), "fi_ep_bind to the AV");
  check(fi_ep_bind(ep_fid, &cq_fid->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind to the CQ");
  if (options.counters) {
    sent = open_counter(domain_fid, options.wait, wait_set.get());
    received = open_counter(domain_fid, options.wait, wait_set.get());
    remote_writes = open_counter(domain_fid, options.wait, wait_set.get());
    check(fi_ep_bind(ep_fid, &sent->fid, FI_SEND | FI_WRITE | FI_READ), "fi_ep_bind to a counter");
    check(fi_ep_bind(ep_fid, &received->fid, FI_RECV), "fi_ep_bind to a counter");
    check(fi_ep_bind(ep_fid, &remote_writes->fid, FI_REMOTE_WRITE), "fi_ep_bind to a counter");
  }
  check(fi_enable(ep_fid), "fi_enable");
}

std::vector<std::byte> Node::name() const {
  std::vector<std::byte> bytes(256);
  std::size_t count = bytes.size();
  check(fi_getname(&ep->fid, bytes.data(), &count), "fi_getname");
  bytes.resize(count);
  return bytes;
}

fi_addr_t Node::insert(std::span<const std::byte> name) {
  fi_addr_t address = FI_ADDR_UNSPEC;
  require(fi_av_insert(av.get(), name.data(), 1, &address, 0, nullptr) == 1, "fi_av_insert");
  return address;
}

fi_addr_t Node::connect(Channel& channel) {
  channel.send_bytes(name());
  return insert(channel.receive_bytes(this));
}

Region Node::expose(void* memory, std::size_t bytes, std::uint64_t key) {
  fid_mr* mr = nullptr;
  check(fi_mr_reg(domain.get(), memory, bytes, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, key, 0, &mr,
                  nullptr),
        "fi_mr_reg");
  const bool virtual_addresses = (info->domain_attr->mr_mode & FI_MR_VIRT_ADDR) != 0;
  return {Owned<fid_mr>(mr), virtual_addresses ? reinterpret_cast<std::uintptr_t>(memory) : 0,
          fi_mr_key(mr)};
}

void Node::see_memory() {
  fi_wait_obj kind = FI_WAIT_NONE;
  check(fi_control(&cq->fid, FI_GETWAITOBJ, &kind), "fi_control");
}

std::optional<Event> Node::read_one() {
  fi_cq_tagged_entry entry{};
  const ssize_t count = fi_cq_read(cq.get(), &entry, 1);
  if (count == 1) {
    return Event{entry.op_context, entry.flags, entry.len, entry.data, entry.tag, 0};
  }
  if (count == -FI_EAGAIN) return std::nullopt;
  require(count == -FI_EAVAIL, "fi_cq_read returned " + std::to_string(count));
  fi_cq_err_entry error{};
  check(fi_cq_readerr(cq.get(), &error, 0), "fi_cq_readerr");
  require(error.err > 0, "an error entry without an error code");
  return Event{error.op_context, error.flags, error.len, error.data, error.tag, error.err};
}

std::uint64_t read_counter(fid_domain& domain, const std::string& name) {
  fi_uet_stats_ops* stats = nullptr;
  check(fi_open_ops(&domain.fid, FI_UET_STATS_OPS, 0, reinterpret_cast<void**>(&stats), nullptr),
        "fi_open_ops");
  std::vector<std::uint64_t> values(stats->count(&domain));
  stats->read(&domain, values.data(), values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    fi_uet_counter description{};
    check(stats->describe(&domain, i, &description), "describe");
    if (name == description.name) return values[i];
  }
  fail("there is no counter " + name);
}

void Node::write_and_read_back(fi_addr_t peer, const RemoteRegion& remote, std::size_t bytes,
                               std::uint64_t rounds) {
  std::vector<std::byte> out(bytes);
  std::vector<std::byte> in(bytes);
  for (std::uint64_t round = 0; round < rounds; ++round) {
    fill_pattern(out, round);
    post("writing", [&] {
      return fi_write(ep.get(), out.data(), out.size(), nullptr, peer, remote.address, remote.key,
                      nullptr);
    });
    next("a write");
    post("reading", [&] {
      return fi_read(ep.get(), in.data(), in.size(), nullptr, peer, remote.address, remote.key,
                     nullptr);
    });
    next("a read");
    require_pattern(in, round, "what was written");
  }
}

std::optional<Event> Node::poll() {
  if (kept_begin_ == kept_.size()) return read_one();
  const Event event = kept_[kept_begin_++];
  if (kept_begin_ == kept_.size()) {
    kept_.clear();
    kept_begin_ = 0;
  }
  return event;
}

void Node::keep_events() {
  if (const auto event = read_one()) kept_.push_back(*event);
}

Event Node::next(const char* what) {
  while (true) {
    const auto event = poll();
    if (!event) continue;
    require(event->error == 0, std::string(what) + " failed: " + fi_strerror(event->error));
    return *event;
  }
}

void Node::drain(std::size_t count, const char* what) {
  while (count-- > 0) next(what);
}

sockaddr_in udp_address(std::span<const std::byte> name) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(udp_port(name));
  std::memcpy(&address.sin_addr, name.data() + 4, sizeof address.sin_addr);
  return address;
}

std::uint16_t udp_port(std::span<const std::byte> name) {
  require(name.size() == 32, "the endpoint's name is not the 32-byte UET address");
  const auto port = static_cast<std::uint16_t>(std::to_integer<unsigned>(name[26]) << 8 |
                                               std::to_integer<unsigned>(name[27]));
  return port == 0 ? 4793 : port;
}

}  // namespace uet::e2e
