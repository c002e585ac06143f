// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The peer process of a virtual DPDK device that connects two processes (net_memif): it may start
// later than this process, exit at any time, killed or not, and start again.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

namespace uet::nic {

// While one of these exists DPDK's interrupt thread, which ends connections and then takes the
// memory of their rings away, does nothing without lock(). It naps kNap at a time in between.
class DpdkInterrupts {
 public:
  static constexpr std::chrono::milliseconds kNap{1};

  // nullptr, with a message, if that thread does not run, as in a child of the process that
  // started DPDK.
  static std::unique_ptr<DpdkInterrupts> open(std::string& message);
  ~DpdkInterrupts();
  DpdkInterrupts(const DpdkInterrupts&) = delete;
  DpdkInterrupts& operator=(const DpdkInterrupts&) = delete;

  std::unique_lock<std::mutex> lock();
  // As lock(), but if the thread waits for the lock too, that has it first.
  std::unique_lock<std::mutex> lock_in_turn();

 private:
  DpdkInterrupts() = default;
};

// Thread-safe with its lock.
class DpdkPeer {
 public:
  enum class ToSend : std::uint8_t {
    Goes,
    Waits,      // for the other end, which is not there yet, or was there a short while ago
    IsDropped,  // as by a NIC without carrier
  };

  // The process with the role "server" listens at a socket; a process with another role connects.
  // Removes the socket that a killed server has left. nullptr, with a message, as above.
  static std::unique_ptr<DpdkPeer> open(std::string_view role, std::string_view socket,
                                        std::string& message);

  // Must be held in every call for the port. To connect, the interrupt threads of both sides need
  // many turns; while there is no connection, this lock leaves them their turns.
  std::unique_lock<std::mutex> lock() {
    return connected_ ? interrupts_->lock() : interrupts_->lock_in_turn();
  }
  // After the port was configured, with the lock held: as rte_eth_dev_start, but that the other
  // end need not be there.
  int start(std::uint16_t port);
  // With the lock held. While there is no connection this tries to make one now and then.
  bool connected();
  // With the lock held, when there is something to send: what happens to it.
  ToSend to_send();

 private:
  using Clock = std::chrono::steady_clock;
  // How long packets wait for a peer that was never there, and for one that may come again.
  static constexpr std::chrono::seconds kPatienceAtFirst{10};
  static constexpr std::chrono::seconds kPatience{1};
  static constexpr std::chrono::milliseconds kTryInterval{10};
  // If a connection is not made within this time, it is begun again with twice the time: a host
  // with far more threads than processors may take long.
  static constexpr std::chrono::seconds kHandshake{3};
  static constexpr std::chrono::seconds kLongestHandshake{24};

  DpdkPeer() = default;
  void connect(Clock::time_point now);
  // Starts the port; of a client, a connection too. 0 or what DPDK says.
  int begin(Clock::time_point now);

  std::unique_ptr<DpdkInterrupts> interrupts_;
  std::uint16_t port_ = 0;
  bool comes_to_server_ = false;
  std::atomic<bool> connected_{false};
  bool started_ = false;
  Clock::time_point next_try_;
  std::chrono::seconds handshake_ = kHandshake;
  std::chrono::seconds patience_ = kPatienceAtFirst;
  Clock::time_point waits_since_{};  // the first packet; 0 = none does
};

}  // namespace uet::nic
