// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Each domain's activity descriptor in one epoll descriptor, and a pass of each in turn.
#include "objects/domain_group.h"

#include <sys/epoll.h>

#include <algorithm>

#include "objects/engines.h"
#include "provider.h"

namespace uet::prov {

int DomainGroup::open() noexcept {
  epoll_ = open_epoll(-1, -1);
  return epoll_.valid() ? 0 : -errno;
}

int DomainGroup::add(Engine& engine) noexcept {
  return guarded([&] {
    const std::lock_guard mutex(mutex_);
    for (Part& part : parts_) {
      if (part.engine != &engine) continue;
      ++part.count;
      return 0;
    }
    engine.lock().need();
    const Guard guard(engine.lock());
    const int fd = engine.activity();
    epoll_event event{.events = EPOLLIN, .data = {.fd = fd}};
    if (fd >= 0 && epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) return -errno;
    parts_.push_back({&engine, 1});
    return 0;
  });
}

int DomainGroup::add(Engines& engines) noexcept {
  for (std::size_t number = 0; number < engines.size(); ++number) {
    const int result = add(engines.at(number));
    if (result == 0) continue;
    while (number-- > 0) remove(engines.at(number));
    return result;
  }
  return 0;
}

void DomainGroup::remove(Engine& engine) noexcept {
  const std::lock_guard mutex(mutex_);
  const auto part = std::find_if(parts_.begin(), parts_.end(),
                                 [&](const Part& each) { return each.engine == &engine; });
  if (part == parts_.end() || --part->count > 0) return;
  parts_.erase(part);
  // Not there if the domain had a thread from the start; a forked child must leave the parent's be.
  if (!engine.dead()) epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, engine.watched().fd(), nullptr);
}

// The latest first: domains of connections come after their listener, and what is known of a
// connection is told before the next request (CM-38).
void DomainGroup::progress() noexcept {
  const std::lock_guard mutex(mutex_);
  for (auto part = parts_.rbegin(); part != parts_.rend(); ++part) {
    Engine& engine = *part->engine;
    if (engine.dead()) continue;
    const Guard guard(engine.lock());
    engine.progress(clock_now());
  }
}

int DomainGroup::activity() noexcept {
  const std::lock_guard mutex(mutex_);
  for (const Part& part : parts_) {
    const Guard guard(part.engine->lock());
    part.engine->activity();
  }
  return epoll_.get();
}

}  // namespace uet::prov
