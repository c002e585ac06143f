// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "objects/thread.h"

#include <signal.h>

#include <cerrno>

namespace uet::prov {

int start_thread(pthread_t& thread, void* (*main)(void*), void* argument) noexcept {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const int error = pthread_create(&thread, nullptr, main, argument);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return error;
}

int Thread::start(Loop loop, void* owner) noexcept {
  loop_ = loop;
  owner_ = owner;
  const int error = wake_.open() ? start_thread(thread_, main, this) : errno;
  running_ = error == 0;
  return error;
}

void Thread::stop() noexcept {
  if (!running_) return;
  stop_.store(true, std::memory_order_relaxed);
  wake_.signal();
  pthread_join(thread_, nullptr);
  running_ = false;
}

void* Thread::main(void* self) noexcept {
  Thread& thread = *static_cast<Thread*>(self);
  thread.loop_(thread.owner_);
  return nullptr;
}

}  // namespace uet::prov
