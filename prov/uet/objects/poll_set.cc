// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// One pass of progress for all, then a look at each.
#include "objects/poll_set.h"

#include <algorithm>

#include "objects/cntr.h"
#include "objects/cq.h"
#include "objects/domain.h"
#include "ops.h"

namespace uet::prov {
namespace {

int close_poll_set(fid* fid) noexcept { return PollSet::from(fid).close(); }

int set_add(fid_poll* set, fid* member, std::uint64_t flags) noexcept {
  return PollSet::from(set).add(member, flags);
}

int set_del(fid_poll* set, fid* member, std::uint64_t flags) noexcept {
  return PollSet::from(set).remove(member, flags);
}

int set_poll(fid_poll* set, void** contexts, int count) noexcept {
  return PollSet::from(set).poll(contexts, count);
}

fi_ops poll_set_fid_ops = {
    .size = sizeof(fi_ops),
    .close = close_poll_set,
    .bind = no_bind,
    .control = no_control,
    .ops_open = no_ops_open,
    .tostr = no_tostr,
    .ops_set = no_ops_set,
};

fi_ops_poll poll_set_ops = {
    .size = sizeof(fi_ops_poll),
    .poll = set_poll,
    .poll_add = set_add,
    .poll_del = set_del,
};

int refuse_poll_set(int error, const char* why) noexcept {
  FI_WARN(&provider, FI_LOG_DOMAIN, "%s\n", why);
  return error;
}

}  // namespace

PollSet::PollSet(Domain& domain)
    : fid_poll{}, engines_(domain.engines()), engine_(domain.engine()), hold_(domain.references()) {
  fid.fclass = FI_CLASS_POLL;
  fid.ops = &poll_set_fid_ops;
  ops = &poll_set_ops;
}

int PollSet::close() noexcept {
  if (!members_.empty()) return -FI_EBUSY;
  delete this;
  return 0;
}

int PollSet::add(struct fid* member, std::uint64_t flags) noexcept {
  if (engine_.dead()) return -FI_EOPNOTSUPP;
  const bool is_queue = member->fclass == FI_CLASS_CQ;
  if (flags != 0 || (!is_queue && member->fclass != FI_CLASS_CNTR)) {
    return refuse_poll_set(-FI_EINVAL,
                           "fi_poll_add: poll set: neither CQ nor counter, or flags; add CQs and "
                           "counters with flags 0");
  }
  const Engines& its = is_queue ? Cq::from(member).engines() : Cntr::from(member).engines();
  if (&its != &engines_)
    return refuse_poll_set(
        -FI_EDOMAIN,
        "fi_poll_add: poll set: the object belongs to another domain; add those of one domain");
  References& references =
      is_queue ? Cq::from(member).references() : Cntr::from(member).references();
  return guarded([&] {
    const Guard guard(engine_.lock());
    members_.push_back({member, Hold(references)});
    return 0;
  });
}

int PollSet::remove(struct fid* member, std::uint64_t flags) noexcept {
  if (engine_.dead()) return -FI_EOPNOTSUPP;
  if (flags != 0)
    return refuse_poll_set(-FI_EINVAL, "fi_poll_del: poll set: flags are not supported; pass 0");
  const Guard guard(engine_.lock());
  const auto found = std::find_if(members_.begin(), members_.end(),
                                  [&](const Member& each) { return each.fid == member; });
  if (found == members_.end())
    return refuse_poll_set(
        -FI_EINVAL, "fi_poll_del: poll set: the object is not in the set; call fi_poll_add first");
  members_.erase(found);
  return 0;
}

int PollSet::poll(void** contexts, int count) noexcept {
  if (engine_.dead()) return -FI_EOPNOTSUPP;
  if (engines_.several()) engines_.progress_others(engine_);
  const Guard guard(engine_.lock());
  engine_.progress(clock_now());
  int found = 0;
  for (const Member& member : members_) {
    if (found >= count) break;
    const bool news = member.fid->fclass == FI_CLASS_CQ ? !Cq::from(member.fid).empty()
                                                        : Cntr::from(member.fid).poll_changed();
    if (news) contexts[found++] = member.fid->context;
  }
  return found;
}

int poll_open(fid_domain* domain, fi_poll_attr* attr, fid_poll** set) noexcept {
  return guarded([&] {
    Domain& parent = Domain::from(domain);
    if (parent.engine().dead()) return -FI_EOPNOTSUPP;
    if (attr != nullptr && attr->flags != 0)
      return refuse_poll_set(-FI_EINVAL, "fi_poll_open: poll set: flags are not supported; pass 0");
    *set = create<PollSet>(parent);
    return 0;
  });
}

}  // namespace uet::prov
