// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// FI_WAIT_MUTEX_COND: a condition that the application sleeps on with a mutex of its own. A thread
// with news may hold a lock that the application takes while it holds that mutex (fi_trywait). To
// avoid the deadlock, a separate thread takes the mutex: it uses no object but the bell.
#pragma once

#include <pthread.h>
#include <rdma/fi_eq.h>
#include <semaphore.h>
#include <sys/types.h>

#include <atomic>

namespace uet::prov {

class Bell {
 public:
  Bell();
  ~Bell();
  Bell(const Bell&) = delete;
  Bell& operator=(const Bell&) = delete;

  // 0 or a negative fi_errno.
  int open() noexcept;
  // Wakes all who sleep on the condition, soon; never waits.
  void ring() noexcept { sem_post(&rung_); }
  fi_mutex_cond handles() { return {.mutex = &mutex_, .cond = &condition_}; }

 private:
  static void* main(void* self) noexcept;

  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t condition_ = PTHREAD_COND_INITIALIZER;
  sem_t rung_;
  std::atomic<bool> stop_{false};
  pthread_t thread_{};
  pid_t process_ = 0;  // where the thread lives; a forked child has none
};

}  // namespace uet::prov
