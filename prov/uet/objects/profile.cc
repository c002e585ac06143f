// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "objects/profile.h"

#include <rdma/fi_errno.h>

#include <algorithm>
#include <cstring>

#include "errors.h"
#include "objects/domain.h"
#include "objects/stats.h"
#include "ops.h"

namespace uet::prov {
namespace {

int close_profile(struct fid* fid) noexcept {
  return DomainProfile::from(reinterpret_cast<ProfileFid*>(fid)).close();
}

// Calls without a result keep what there was if memory is short.
template <class Call>
void try_to(Call call) noexcept {
  (void)guarded([&] {
    call();
    return 0;
  });
}

fi_ops profile_fid_ops = {
    .size = sizeof(fi_ops),
    .close = close_profile,
    .bind = no_bind,
    .control = no_control,
    .ops_open = no_ops_open,
    .tostr = no_tostr,
    .ops_set = no_ops_set,
};

// There are no events: what counts is per packet, too often for a callback.
ProfileOps profile_ops = {
    .size = sizeof(ProfileOps),
    .reset = [](ProfileFid* fid,
                std::uint64_t) noexcept { try_to([&] { DomainProfile::from(fid).reset(); }); },
    .query_vars = [](ProfileFid* fid, ProfileDesc* list, std::size_t* count) noexcept -> ssize_t {
      return guarded([&] { return DomainProfile::from(fid).query_vars(list, count); });
    },
    .query_events = [](ProfileFid*, ProfileDesc*, std::size_t* count) noexcept -> ssize_t {
      *count = 0;
      return 0;
    },
    .read_var = [](ProfileFid* fid, std::uint32_t id, void* data,
                   std::size_t* size) noexcept -> ssize_t {
      return guarded([&] { return DomainProfile::from(fid).read_var(id, data, size); });
    },
    .reg_callback = [](ProfileFid*, std::uint32_t, ProfileOps::Callback,
                       void*) noexcept { return -FI_EINVAL; },
    .start_reads =
        [](ProfileFid* fid, std::uint64_t) noexcept {
          try_to([&] { DomainProfile::from(fid).start_reads(); });
        },
    .end_reads = [](ProfileFid* fid,
                    std::uint64_t) noexcept { DomainProfile::from(fid).end_reads(); },
};

}  // namespace

DomainProfile::DomainProfile(Domain& domain, void* context)
    : ProfileFid{}, domain_(domain), hold_(domain.references()) {
  fid.context = context;
  fid.ops = &profile_fid_ops;
  ops = &profile_ops;
}

int DomainProfile::open(Domain& domain, std::uint64_t flags, void** out, void* context) {
  if (flags != 0) return -FI_EINVAL;
  counter_names();  // built now, where memory may be short
  auto* const profile = new DomainProfile(domain, context);
  *out = &profile->ops;
  return 0;
}

int DomainProfile::close() noexcept {
  delete this;
  return 0;
}

std::vector<std::uint64_t> DomainProfile::values() {
  Engine& engine = domain_.engine();
  if (engine.dead()) return std::vector<std::uint64_t>(counter_names().size());
  return counter_values(domain_.engines());
}

void DomainProfile::reset() { before_ = values(); }
void DomainProfile::start_reads() { snapshot_ = values(); }

ssize_t DomainProfile::query_vars(ProfileDesc* list, std::size_t* count) {
  const auto names = counter_names();
  const std::size_t room = list != nullptr ? *count : 0;
  *count = names.size();
  const std::size_t given = std::min(room, names.size());
  for (std::size_t i = 0; i < given; ++i) {
    list[i] = {};
    list[i].id = kFirstVariable + static_cast<std::uint32_t>(i);
    list[i].datatype = FI_UINT64;
    list[i].size = sizeof(std::uint64_t);
    list[i].name = names[i].name.data();
    list[i].text = names[i].meaning.data();
  }
  return static_cast<ssize_t>(given);
}

// A value that falls is a level, not a count: it is told as it is.
ssize_t DomainProfile::read_var(std::uint32_t id, void* data, std::size_t* size) {
  if (id < kFirstVariable || id - kFirstVariable >= counter_names().size()) return -FI_EINVAL;
  const std::size_t index = id - kFirstVariable;
  if (*size < sizeof(std::uint64_t)) return -FI_ETOOSMALL;
  std::uint64_t value = snapshot_.empty() ? values()[index] : snapshot_[index];
  if (!before_.empty() && value >= before_[index]) value -= before_[index];
  std::memcpy(data, &value, sizeof value);
  *size = sizeof value;
  return static_cast<ssize_t>(sizeof value);
}

}  // namespace uet::prov
