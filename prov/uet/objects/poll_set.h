// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// fid_poll: which of some queues and counters of one domain have news.
#pragma once

#include <rdma/fi_domain.h>
#include <rdma/fi_eq.h>

#include <vector>

#include "objects/engines.h"
#include "objects/references.h"

namespace uet::prov {

class Domain;

// fi_ops_domain.poll_open: fi_poll_open(3).
int poll_open(fid_domain* domain, fi_poll_attr* attr, fid_poll** set) noexcept;

class PollSet final : public fid_poll {
 public:
  static PollSet& from(fid_poll* fid) { return static_cast<PollSet&>(*fid); }
  static PollSet& from(struct fid* fid) { return from(reinterpret_cast<fid_poll*>(fid)); }
  explicit PollSet(Domain& domain);
  int close() noexcept;

  // Implementations of fi_poll_add, fi_poll_del and fi_poll.
  int add(struct fid* member, std::uint64_t flags) noexcept;
  int remove(struct fid* member, std::uint64_t flags) noexcept;
  int poll(void** contexts, int count) noexcept;

 private:
  struct Member {
    struct fid* fid;
    Hold hold;
  };
  Engines& engines_;
  Engine& engine_;  // the first
  Hold hold_;
  std::vector<Member> members_;  // with its lock
};

}  // namespace uet::prov
