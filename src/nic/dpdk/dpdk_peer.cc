// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// DPDK has one interrupt thread, which runs the handlers of all descriptors that are ready, one
// after the other. In our handler, of a descriptor that is always ready, the thread releases the
// lock and naps; between two calls of our handler the thread holds the lock.
#define ALLOW_EXPERIMENTAL_API  // functions rte_intr_..., for our descriptor
#include "nic/dpdk_peer.h"

#include <rte_ethdev.h>
#include <rte_interrupts.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <thread>

#include "nic/socket.h"

namespace uet::nic {
namespace {

constexpr std::chrono::seconds kThreadAnswers{5};

// One for the process, as is the thread; stays.
struct InterruptThread {
  std::mutex turn;  // held by the thread that gets the lock next
  std::mutex lock;  // held by the interrupt thread, except while it naps
  bool has_lock = false;

  std::mutex users_lock;
  std::condition_variable napped;
  unsigned users = 0;
  bool naps = false;  // the interrupt thread has called our handler since there are users
  int ready = -1;     // the descriptor
};
// Never destroyed: the thread goes on when the process ends.
InterruptThread& g_thread = *new InterruptThread;

void nap(void*) {
  InterruptThread& thread = g_thread;
  if (thread.has_lock) thread.lock.unlock();
  thread.has_lock = false;
  {
    const std::lock_guard guard(thread.users_lock);
    thread.naps = thread.users > 0;
    thread.napped.notify_all();
    std::uint64_t count = 0;
    if (!thread.naps && ::read(thread.ready, &count, sizeof count) >= 0) return;
  }
  std::this_thread::sleep_for(DpdkInterrupts::kNap);
  const std::lock_guard turn(thread.turn);
  thread.lock.lock();
  thread.has_lock = true;
}

bool watch(InterruptThread& thread) {
  thread.ready = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  rte_intr_handle* const handle = rte_intr_instance_alloc(RTE_INTR_INSTANCE_F_PRIVATE);
  return handle != nullptr && rte_intr_fd_set(handle, thread.ready) == 0 &&
         rte_intr_type_set(handle, RTE_INTR_HANDLE_EXT) == 0 &&
         rte_intr_callback_register(handle, nap, nullptr) == 0;
}

// Removes a socket at `path` without a listener: its server was killed.
void remove_stale(const std::string& path) {
  sockaddr_un address{};
  struct stat status {};
  if (path.size() >= sizeof address.sun_path) return;
  if (::stat(path.c_str(), &status) != 0 || !S_ISSOCK(status.st_mode)) return;
  address.sun_family = AF_UNIX;
  std::copy(path.begin(), path.end(), address.sun_path);
  const FileDescriptor fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 &&
      errno == ECONNREFUSED) {
    ::unlink(path.c_str());
  }
}

}  // namespace

std::unique_ptr<DpdkInterrupts> DpdkInterrupts::open(std::string& message) {
  InterruptThread& thread = g_thread;
  std::unique_lock guard(thread.users_lock);
  if (thread.ready < 0 && !watch(thread)) {
    message = "DPDK refuses to watch our descriptor; use another FI_UET_NIC";
    return nullptr;
  }
  std::unique_ptr<DpdkInterrupts> opened(new DpdkInterrupts);
  ++thread.users;
  const std::uint64_t one = 1;
  const bool told = ::write(thread.ready, &one, sizeof one) == sizeof one;
  if (!told || !thread.napped.wait_for(guard, kThreadAnswers, [&] { return thread.naps; })) {
    guard.unlock();
    message =
        "the interrupt thread of DPDK does not run: a process that was forked from one that uses "
        "DPDK must execute a program before it uses it itself";
    return nullptr;
  }
  return opened;
}

DpdkInterrupts::~DpdkInterrupts() {
  const std::lock_guard guard(g_thread.users_lock);
  if (--g_thread.users == 0) g_thread.naps = false;
}

std::unique_lock<std::mutex> DpdkInterrupts::lock() { return std::unique_lock(g_thread.lock); }

std::unique_lock<std::mutex> DpdkInterrupts::lock_in_turn() {
  const std::lock_guard turn(g_thread.turn);
  return std::unique_lock(g_thread.lock);
}

std::unique_ptr<DpdkPeer> DpdkPeer::open(std::string_view role, std::string_view socket,
                                         std::string& message) {
  std::unique_ptr<DpdkPeer> peer(new DpdkPeer);
  peer->interrupts_ = DpdkInterrupts::open(message);
  if (peer->interrupts_ == nullptr) return nullptr;
  peer->comes_to_server_ = role != "server";
  if (!peer->comes_to_server_ && !socket.empty()) remove_stale(std::string(socket));
  return peer;
}

int DpdkPeer::start(std::uint16_t port) {
  port_ = port;
  const int error = begin(Clock::now());
  return comes_to_server_ ? 0 : error;
}

bool DpdkPeer::connected() {
  rte_eth_link link{};
  if (rte_eth_link_get_nowait(port_, &link) == 0 && link.link_status == RTE_ETH_LINK_UP) {
    connected_ = true;
    handshake_ = kHandshake;
    return true;
  }
  if (!comes_to_server_ && !connected_) return false;
  const Clock::time_point now = Clock::now();
  if (connected_) {
    connected_ = false;
    patience_ = kPatience;
    waits_since_ = {};
    next_try_ = now;
  }
  if (comes_to_server_ && now >= next_try_) connect(now);
  return false;
}

DpdkPeer::ToSend DpdkPeer::to_send() {
  if (connected()) return ToSend::Goes;
  const Clock::time_point now = Clock::now();
  if (waits_since_ == Clock::time_point{}) waits_since_ = now;
  return now - waits_since_ < patience_ ? ToSend::Waits : ToSend::IsDropped;
}

void DpdkPeer::connect(Clock::time_point now) {
  if (started_) rte_eth_dev_stop(port_);
  begin(now);
}

// If a client closes before its server has accepted it, net_memif's server watches the closed
// descriptor for ever. As soon as another connection gets the same number, the server's thread
// waits for messages that never come. Therefore a connection that has begun is not closed early.
int DpdkPeer::begin(Clock::time_point now) {
  const int error = rte_eth_dev_start(port_);
  started_ = error == 0;
  next_try_ = now + (started_ ? handshake_ : kTryInterval);
  if (started_) handshake_ = std::min(2 * handshake_, kLongestHandshake);
  return error;
}

}  // namespace uet::nic
