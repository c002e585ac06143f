// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// FI_UET_ENGINE=process: applications and engines that end, in any order, and applications that the
// engine may not trust. The tests of the data path run with such an engine, too (e2e.process.*).
#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <pwd.h>
#include <rdma/fi_errno.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "harness.h"
#include "objects.h"
#include "process/control.h"

namespace uet::e2e {
namespace {

namespace fs = std::filesystem;

constexpr uid_t kOtherUser = 65534;

std::size_t entries_of(const fs::path& directory) {
  std::size_t count = 0;
  std::error_code gone;
  for (const auto& entry : fs::directory_iterator(directory, gone)) count += !entry.path().empty();
  return count;
}

// The program uet_engine, until it is ended.
class Engine {
 public:
  explicit Engine(const std::string& option = "") {
    std::string pattern = "/tmp/uet_engine_XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
    ::chmod(directory_.c_str(), 0755);
    socket_ = directory_ / "socket";
    setting_ = "process:" + socket_.string();
    pid_ = ::fork();
    if (pid_ == 0) {
      ::setenv("FI_UET_IFACE", "lo", 1);
      ::unsetenv("FI_UET_ENGINE");
      ::execl(UET_ENGINE, UET_ENGINE, "--socket", socket_.c_str(),
              option.empty() ? nullptr : option.c_str(), nullptr);
      ::_exit(127);
    }
    const Clock::time_point start = Clock::now();
    std::string why;
    while (!prov::connect_to_engine({socket_}, why).valid()) {
      require(runs() && Clock::now() - start < kDeadline, "the engine does not start");
      ::usleep(1000);
    }
  }
  ~Engine() {
    end(SIGKILL);
    fs::remove_all(directory_);
  }
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  const char* setting() const { return setting_.c_str(); }
  std::string socket() const { return socket_; }
  bool runs() const { return ::waitpid(pid_, nullptr, WNOHANG) == 0; }
  std::size_t descriptors() const { return entries_of(proc("fd")); }
  std::size_t threads() const { return entries_of(proc("task")); }
  // Returns when it stands still.
  void stop() const {
    ::kill(pid_, SIGSTOP);
    ::waitpid(pid_, nullptr, WUNTRACED);
  }
  void go_on() const { ::kill(pid_, SIGCONT); }
  int end(int signal) {
    if (pid_ <= 0) return 0;
    ::kill(pid_, signal);
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = -1;
    return status;
  }

 private:
  fs::path proc(const char* what) const { return fs::path("/proc") / std::to_string(pid_) / what; }

  fs::path directory_;
  fs::path socket_;
  std::string setting_;
  pid_t pid_ = -1;
};

// Two domains of one process exchange messages until it is killed.
void exchange_forever() {
  Side a;
  Side b;
  const Owned<fid_ep> from = a.open_endpoint(0);
  const Owned<fid_ep> to = b.open_endpoint(0);
  const fi_addr_t peer = a.insert(*to);
  std::vector<char> out(100'000);
  std::vector<char> in(out.size());
  for (;;) {
    fi_recv(to.get(), in.data(), in.size(), nullptr, FI_ADDR_UNSPEC, nullptr);
    fi_send(from.get(), out.data(), out.size(), nullptr, peer, nullptr);
    a.poll();
    b.poll();
  }
}

void expect_exchange() {
  Side a;
  Side b;
  const Owned<fid_ep> from = a.open_endpoint(0);
  const Owned<fid_ep> to = b.open_endpoint(0);
  const std::uint64_t out = 0x1234;
  std::uint64_t in = 0;
  ASSERT_EQ(fi_recv(to.get(), &in, sizeof in, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
  ASSERT_EQ(fi_send(from.get(), &out, sizeof out, nullptr, a.insert(*to), nullptr), 0);
  EXPECT_EQ(b.next(a).error, 0);
  EXPECT_EQ(a.next(b).error, 0);
  EXPECT_EQ(in, out);
}

// The result of fi_domain.
int try_domain() {
  const std::unique_ptr<fi_info, Node::FreeInfo> hints(fi_allocinfo());
  hints->fabric_attr->prov_name = strdup("uet");
  hints->ep_attr->type = FI_EP_RDM;
  fi_info* found = nullptr;
  check(fi_getinfo(FI_VERSION(1, 17), "127.0.0.1", nullptr, FI_SOURCE, hints.get(), &found),
        "fi_getinfo");
  const std::unique_ptr<fi_info, Node::FreeInfo> info(found);
  return open_and_close_domain(*info);
}

// 1,000 with the label full.
int kills() {
  const char* const wanted = std::getenv("UET_E2E_KILLS");
  return wanted != nullptr ? std::atoi(wanted) : 20;
}

// At any instruction; memory, keys and PDCs go with it.
TEST(EngineProcess, OutlivesKilledApplications) {
  Engine engine;
  const Variable setting("FI_UET_ENGINE", engine.setting());
  expect_exchange();
  const std::size_t descriptors = engine.descriptors();
  std::mt19937 random(4711);
  for (int i = 0; i < kills(); ++i) {
    {
      const Process application("application", {}, exchange_forever);
      ::usleep(std::uniform_int_distribution<useconds_t>(0, 400'000)(random));
    }  // killed
    ASSERT_TRUE(engine.runs()) << "kill " << i;
  }
  const Clock::time_point start = Clock::now();
  while (engine.threads() > 1 && Clock::now() - start < kDeadline) ::usleep(10'000);
  EXPECT_EQ(engine.threads(), 1u) << "domains of killed applications are still open";
  EXPECT_LE(engine.descriptors(), descriptors);
  expect_exchange();
}

// A message that is under way, and one that begins when the application has long gone.
TEST(EngineProcess, TellsThePeersOfAKilledApplication) {
  Engine engine;
  ChannelPair channels;
  Process target("target", {{"FI_UET_ENGINE", engine.setting()}}, [&] {
    Side side;
    const Owned<fid_ep> ep = side.open_endpoint(0);
    channels.right.send_bytes(Side::name_of(*ep));
    for (;;) side.poll();
  });
  const std::vector<std::byte> name = channels.left.receive_bytes();
  const Variable setting("FI_UET_ENGINE", "caller");
  Side side;
  const Owned<fid_ep> ep = side.open_endpoint(0);
  fi_addr_t to = FI_ADDR_UNSPEC;
  ASSERT_EQ(fi_av_insert(side.av.get(), name.data(), 1, &to, 0, nullptr), 1);
  // Messages wait there for receives, until the engine has seen the end of the process.
  const auto send = [&] {
    EXPECT_EQ(fi_send(ep.get(), "x", 1, nullptr, to, nullptr), 0);
    return side.next(side).error;
  };
  ASSERT_EQ(send(), 0);
  ::kill(target.pid(), SIGKILL);
  target.wait();
  int error = 0;
  const Clock::time_point killed = Clock::now();
  while (error == 0 && Clock::now() - killed < kDeadline) error = send();
  EXPECT_EQ(error, FI_EADDRNOTAVAIL) << "its engine answers that the endpoint has gone";
  ::sleep(2);
  const Clock::time_point late = Clock::now();
  EXPECT_EQ(send(), FI_EADDRNOTAVAIL);
  EXPECT_LT(Clock::now() - late, std::chrono::seconds(2));
}

TEST(EngineProcess, OperationsFailWhenItEnds) {
  Engine engine;
  const Variable setting("FI_UET_ENGINE", engine.setting());
  Side side;
  const Owned<fid_ep> ep = side.open_endpoint(0);
  char room = 0;
  int context = 0;
  ASSERT_EQ(fi_recv(ep.get(), &room, 1, nullptr, FI_ADDR_UNSPEC, &context), 0);
  engine.end(SIGKILL);
  std::optional<Event> event;
  const Clock::time_point start = Clock::now();
  while (!event && Clock::now() - start < kDeadline) event = side.poll();
  ASSERT_TRUE(event.has_value());
  EXPECT_EQ(event->error, FI_EIO);
  EXPECT_EQ(event->context, &context);
  EXPECT_EQ(fi_recv(ep.get(), &room, 1, nullptr, FI_ADDR_UNSPEC, &context), -FI_EIO);
}

// A post waits for the engine, but not for ever, and only the first one.
TEST(EngineProcess, PostsEndWhenItStandsStill) {
  Engine engine;
  const Variable setting("FI_UET_ENGINE", engine.setting());
  Side side;
  const Owned<fid_ep> ep = side.open_endpoint(0);
  char room = 0;
  const auto post = [&] { return fi_recv(ep.get(), &room, 1, nullptr, FI_ADDR_UNSPEC, nullptr); };
  ASSERT_EQ(post(), 0);
  engine.stop();
  std::size_t posted = 0;
  while (posted < 1000 && post() == 0) ++posted;
  EXPECT_GE(posted, prov::kShareCommands - 1);
  EXPECT_LT(posted, 1000u);
  const Clock::time_point start = Clock::now();
  for (int i = 0; i < 100; ++i) EXPECT_EQ(post(), -FI_EAGAIN);
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(1));
  engine.go_on();
  ssize_t result = -FI_EAGAIN;
  while (result == -FI_EAGAIN && Clock::now() - start < kDeadline) result = post();
  EXPECT_EQ(result, 0);
}

// Peers write data for a queue that is not read, far more than it holds.
TEST(EngineProcess, AFullQueueHoldsBackNoOther) {
  constexpr std::size_t kQueue = 8;
  constexpr std::size_t kWrites = 3000;  // more than are set aside before peers must wait
  Engine engine;
  const Variable setting("FI_UET_ENGINE", engine.setting());
  Side writer;
  Side reader;
  fi_cq_attr small{};
  small.format = FI_CQ_FORMAT_TAGGED;
  small.size = kQueue;
  Owned<fid_cq> full;
  Side::open(full, "fi_cq_open",
             [&](auto** out) { return fi_cq_open(reader.domain.get(), &small, out, nullptr); });
  const Owned<fid_ep> other = reader.open_endpoint(0);
  std::swap(reader.cq, full);
  const Owned<fid_ep> to = reader.open_endpoint(0);
  std::swap(reader.cq, full);
  char memory = 0;
  Owned<fid_mr> region;
  Side::open(region, "fi_mr_reg", [&](auto** out) {
    return fi_mr_reg(reader.domain.get(), &memory, 1, FI_REMOTE_WRITE, 0, 5, 0, out, nullptr);
  });
  const Owned<fid_ep> from = writer.open_endpoint(0);
  const fi_addr_t address = writer.insert(*to);
  const fi_addr_t other_address = writer.insert(*other);
  std::size_t posted = 0;
  std::size_t done = 0;
  const auto write = [&] {
    while (posted < kWrites && posted - done < 64 &&
           fi_writedata(from.get(), "x", 1, nullptr, posted, address, 0, 5, nullptr) == 0) {
      ++posted;
    }
    const auto event = writer.poll();
    if (!event) return;
    ASSERT_EQ(event->error, 0) << "write " << done;
    ++done;
  };
  // Messages to the other endpoint arrive meanwhile, once per 100 writes while any are taken.
  for (std::size_t i = 0; i < 10; ++i) {
    const std::size_t until = std::min<std::size_t>(done + 100, 1000);
    while (done < until) {
      write();
      reader.poll();
    }
    char received = 0;
    ASSERT_EQ(fi_recv(other.get(), &received, 1, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
    ASSERT_EQ(fi_inject(from.get(), "m", 1, other_address), 0);
    EXPECT_EQ(reader.next(writer).error, 0);
    EXPECT_EQ(received, 'm');
  }
  // Nothing is lost.
  std::vector<bool> told(kWrites);
  std::size_t count = 0;
  const Clock::time_point start = Clock::now();
  while (count < kWrites && Clock::now() - start < kDeadline) {
    write();
    const auto event = Side::poll(*full);
    if (!event) continue;
    ASSERT_EQ(event->error, 0);
    ASSERT_LT(event->data, kWrites);
    EXPECT_FALSE(told[event->data]) << "told twice";
    told[event->data] = true;
    ++count;
  }
  EXPECT_EQ(count, kWrites);
}

TEST(EngineProcess, ClosesAllDomainsWhenItIsAskedToEnd) {
  Engine engine;
  const Variable setting("FI_UET_ENGINE", engine.setting());
  Side side;
  const int status = engine.end(SIGTERM);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_FALSE(fs::exists(engine.socket()));
}

TEST(EngineProcess, ADomainWithoutOneSaysSo) {
  const Variable setting("FI_UET_ENGINE", "process:/nonexistent/engine");
  EXPECT_EQ(try_domain(), -FI_ECONNREFUSED);
}

TEST(EngineProcess, AnotherProfileIsRefused) {
  Engine engine;
  const Variable setting("FI_UET_ENGINE", engine.setting());
  const Variable profile("FI_UET_PROFILE", "ai_base");
  EXPECT_EQ(try_domain(), -FI_EINVAL);
}

TEST(EngineProcess, ServesOtherUsersOnlyIfItIsToldSo) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  Engine own;
  Engine for_all("--all-users");
  Process other("other user", {}, [&] {
    require(::setgid(kOtherUser) == 0 && ::setuid(kOtherUser) == 0, "becoming another user");
    ::setenv("FI_UET_ENGINE", own.setting(), 1);
    require(try_domain() == -FI_ECONNREFUSED, "an engine of root serves another user");
    ::setenv("FI_UET_ENGINE", for_all.setting(), 1);
    require(try_domain() == 0, "an engine of all users serves not all");
    expect_exchange();
  });
  EXPECT_EQ(other.wait(), "");
}

// An application that has gone mad, or is hostile: whatever it writes and asks for, the engine
// lives, and serves others.
// An application that writes to the socket and the shared memory as it likes.
class HostileDomain {
 public:
  explicit HostileDomain(const std::string& path, std::uint16_t at_port = 0) {
    std::string why;
    socket_ = prov::connect_to_engine({path}, why);
    require(socket_.valid(), why);
    prov::ControlRequest request = prov::request_of(prov::Request::Open);
    request.open.ip = {127, 0, 0, 1};
    request.open.port = at_port;
    request.open.profile = static_cast<std::uint8_t>(prov::Profile::Hpc);
    prov::ControlAnswer answer;
    require(prov::send_message(socket_.get(), &request, sizeof request) &&
                prov::receive_message(socket_.get(), &answer, sizeof answer, &descriptors_) &&
                answer.error == 0,
            "opening a domain");
    port_ = answer.open.port;
    void* const memory = ::mmap(nullptr, sizeof(prov::Share), PROT_READ | PROT_WRITE, MAP_SHARED,
                                descriptors_[0].get(), 0);
    require(memory != MAP_FAILED, "mmap");
    share_ = static_cast<prov::Share*>(memory);
  }
  HostileDomain(const HostileDomain&) = delete;
  HostileDomain& operator=(const HostileDomain&) = delete;
  ~HostileDomain() { ::munmap(share_, sizeof(prov::Share)); }

  std::uint16_t port() const { return port_; }
  prov::Share& share() const { return *share_; }
  void ring() const { ::eventfd_write(descriptors_[1].get(), 1); }
  std::optional<prov::ControlAnswer> ask(const prov::ControlRequest& request) const {
    prov::ControlAnswer answer;
    if (!prov::send_message(socket_.get(), &request, sizeof request) ||
        !prov::receive_message(socket_.get(), &answer, sizeof answer)) {
      return {};
    }
    return answer;
  }
  std::uint16_t open_context() const {
    prov::ControlRequest request = prov::request_of(prov::Request::OpenContext);
    request.config.tx_size = 4096;
    const auto answer = ask(request);
    require(answer && answer->error == 0, "opening a context");
    request = prov::request_of(prov::Request::EnableContext);
    request.context = answer->context;
    require(ask(request).has_value(), "enabling a context");
    return answer->context;
  }

 private:
  nic::FileDescriptor socket_;
  std::vector<nic::FileDescriptor> descriptors_;
  prov::Share* share_ = nullptr;
  std::uint16_t port_ = 0;
};

// Posts `command` `count` times, `numbered` with a number of its own each, or until
// the engine says that the first one in the ring has to wait. How many it has taken.
std::uint64_t post_many(const HostileDomain& domain, prov::SharedCommand command,
                        std::uint64_t count, bool numbered = false) {
  prov::CommandQueue& queue = domain.share().transmits;
  prov::CommandWriter writer(queue.commands, queue.head);
  const Clock::time_point start = Clock::now();
  for (std::uint64_t posted = 0; posted < count;) {
    prov::SharedCommand* const place = writer.claim();
    if (place != nullptr) {
      *place = command;
      writer.publish();
      ++posted;
      if (numbered) ++command.operation;
    } else if (std::atomic_ref(queue.waits).load() != 0) {
      break;
    } else {
      require(Clock::now() - start < kDeadline, "the engine takes no commands");
      ::usleep(100);
    }
    domain.ring();
  }
  return std::atomic_ref(queue.head).load();
}

TEST(EngineProcess, FewClosedDomainsKeepTheirPorts) {
  Engine engine;
  {
    std::vector<std::unique_ptr<HostileDomain>> domains;
    while (domains.size() < 40) {
      domains.push_back(std::make_unique<HostileDomain>(engine.socket()));
    }
  }
  constexpr std::size_t kMostThreads = 1 + 16 * 2;  // each has two
  const Clock::time_point start = Clock::now();
  while (engine.threads() > kMostThreads && Clock::now() - start < kDeadline) ::usleep(10'000);
  EXPECT_LE(engine.threads(), kMostThreads);
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(8)) << "closed for their number";
  EXPECT_GT(engine.threads(), 1u);
}

TEST(EngineProcess, ClosedDomainMakesWayForOneAtItsPort) {
  Engine engine;
  std::uint16_t port = 0;
  {
    const HostileDomain domain(engine.socket());
    port = domain.port();
  }
  for (int i = 0; i < 3; ++i) EXPECT_EQ(HostileDomain(engine.socket(), port).port(), port);
}

TEST(EngineProcess, DomainAtAnyPortGetsThatOfTheClosedOne) {
  Engine engine;
  const Variable setting("FI_UET_ENGINE", engine.setting());
  std::vector<std::byte> names[2];
  for (auto& name : names) {
    Side side;
    name = Side::name_of(*side.open_endpoint(0));
  }
  EXPECT_EQ(names[0], names[1]);
}

TEST(EngineProcess, ApplicationThatTakesNoEventsIsServedNoFurther) {
  Engine engine;
  const HostileDomain domain(engine.socket());
  prov::SharedCommand broken{};  // of no kind
  broken.context = domain.open_context();
  constexpr std::uint64_t kEvents = 3 * prov::kShareEvents;  // in the ring and before it
  const std::uint64_t taken = post_many(domain, broken, 2 * kEvents);
  EXPECT_GE(taken, prov::kShareEvents);
  EXPECT_LT(taken, kEvents);
}

prov::SharedCommand atomic_to_nowhere(std::uint16_t context) {
  prov::SharedCommand atomic{};
  atomic.context = context;
  atomic.kind = static_cast<std::uint8_t>(prov::CommandKind::Atomic);
  atomic.access = static_cast<std::uint8_t>(ses::Kind::Atomic);
  atomic.op = static_cast<std::uint8_t>(wire::AmoOp::Sum);
  atomic.datatype = static_cast<std::uint8_t>(wire::AmoDatatype::Uint64);
  atomic.inlined_bytes = 8;
  atomic.operation = 7;
  atomic.peer.ip = {127, 0, 0, 1};
  atomic.peer.port = 9;
  return atomic;
}

// The first atomic is under way, to a peer that is not there: its memory stays its own.
TEST(EngineProcess, AtomicWithANumberInUseIsRefused) {
  Engine engine;
  const HostileDomain domain(engine.socket());
  const prov::SharedCommand atomic = atomic_to_nowhere(domain.open_context());
  (void)post_many(domain, atomic, 2);
  prov::EventReader events(domain.share().events, domain.share().event_head);
  const Clock::time_point start = Clock::now();
  while (events.front() == nullptr && Clock::now() - start < kDeadline) ::usleep(1000);
  ASSERT_NE(events.front(), nullptr);
  EXPECT_EQ(events.front()->number, 7U);
  EXPECT_EQ(events.front()->host_error, FI_EINVAL);
}

// A peer that is not there ends none of them.
TEST(EngineProcess, MemoryOfAtomicsIsBounded) {
  Engine engine;
  const HostileDomain domain(engine.socket());
  prov::SharedCommand atomic = atomic_to_nowhere(domain.open_context());
  atomic.access = static_cast<std::uint8_t>(ses::Kind::FetchAtomic);
  atomic.inlined_bytes = 2048;
  atomic.pieces = 1;
  atomic.piece[0].length = 2048;
  const std::uint64_t taken = post_many(domain, atomic, 2000, true);
  EXPECT_GT(taken, 800U);
  EXPECT_LT(taken, 1024U) << "4 MiB of them";
}

TEST(EngineProcess, BrokenCommandsAndRequestsHarmNoOthers) {
  Engine engine;
  Process hostile("hostile", {}, [&] {
    std::mt19937_64 random(4711);
    for (int round = 0; round < 20; ++round) {
      const HostileDomain domain(engine.socket());
      prov::Share& share = domain.share();
      for (int i = 0; i < 300; ++i) {
        prov::ControlRequest any = prov::request_of(static_cast<prov::Request>(1 + random() % 22));
        auto* const bytes = reinterpret_cast<std::uint64_t*>(&any.config);
        for (std::size_t k = 0; k < 16; ++k) bytes[k] = random() % 4 == 0 ? random() : random() % 3;
        any.context = static_cast<std::uint16_t>(random() % 4);
        any.operation = static_cast<std::uint32_t>(random() % 8);
        if (!domain.ask(any)) break;
        for (prov::CommandQueue* queue : {&share.transmits, &share.receives}) {
          prov::SharedCommand& command = queue->commands[queue->head % prov::kShareCommands];
          auto* const words = reinterpret_cast<std::uint64_t*>(&command);
          for (std::size_t k = 1; k < sizeof command / 8; ++k) {
            words[k] = random() % 4 == 0 ? random() : random() % 5;
          }
          command.kind = static_cast<std::uint8_t>(random() % 6);
          command.context = static_cast<std::uint16_t>(random() % 4);
          std::atomic_ref(command.sequence).store(queue->head + 1, std::memory_order_release);
        }
        std::atomic_ref(share.event_head).store(random());
        domain.ring();
      }
    }
  });
  const Variable setting("FI_UET_ENGINE", engine.setting());
  for (int i = 0; i < 10; ++i) expect_exchange();
  EXPECT_EQ(hostile.wait(), "");
  EXPECT_TRUE(engine.runs());
  expect_exchange();
}

}  // namespace
}  // namespace uet::e2e
