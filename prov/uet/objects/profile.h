// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// fid_profile: the counters of a domain as variables of fi_profile(3), which libfabric 2.0 added.
// The structures are written out here, so that older headers serve, too.
#pragma once

#include <rdma/fi_atomic.h>
#include <rdma/fi_domain.h>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "objects/references.h"

namespace uet::prov {

class Domain;
struct ProfileFid;

// The name for fi_open_ops that fi_profile_open gives.
inline constexpr std::string_view kProfileOps = "fi_profile_ops";

// struct fi_profile_desc.
struct ProfileDesc {
  std::uint32_t id;
  int kind;      // enum fi_profile_type: 0, a value of enum fi_datatype
  int datatype;  // a union of two enums
  std::uint64_t flags;
  std::size_t size;
  const char* name;
  const char* text;
};

// struct fi_profile_ops.
struct ProfileOps {
  using Callback = int (*)(ProfileFid*, ProfileDesc*, void*, std::size_t, void*);
  std::size_t size;
  void (*reset)(ProfileFid* profile, std::uint64_t flags);
  ssize_t (*query_vars)(ProfileFid* profile, ProfileDesc* list, std::size_t* count);
  ssize_t (*query_events)(ProfileFid* profile, ProfileDesc* list, std::size_t* count);
  ssize_t (*read_var)(ProfileFid* profile, std::uint32_t id, void* data, std::size_t* size);
  int (*reg_callback)(ProfileFid* profile, std::uint32_t event, Callback callback, void* context);
  void (*start_reads)(ProfileFid* profile, std::uint64_t flags);
  void (*end_reads)(ProfileFid* profile, std::uint64_t flags);
};

// struct fid_profile. fi_open_ops returns the address of `ops`, by which libfabric finds the rest.
struct ProfileFid {
  struct fid fid;
  ProfileOps* ops;
};

// The id of a variable of uet: that of counter 0, and the next ones.
inline constexpr std::uint32_t kFirstVariable = 0x00550000;

class DomainProfile final : public ProfileFid {
 public:
  // Implements fi_open_ops for kProfileOps; the profile holds its domain until fi_close. Throws
  // bad_alloc.
  static int open(Domain& domain, std::uint64_t flags, void** ops, void* context);
  static DomainProfile& from(ProfileFid* fid) { return static_cast<DomainProfile&>(*fid); }

  // Implementations of the calls of the same name. Counters that grow begin at 0 after reset().
  void reset();
  ssize_t query_vars(ProfileDesc* list, std::size_t* count);
  ssize_t read_var(std::uint32_t id, void* data, std::size_t* size);
  void start_reads();
  void end_reads() { snapshot_.clear(); }
  int close() noexcept;

 private:
  DomainProfile(Domain& domain, void* context);
  std::vector<std::uint64_t> values();

  Domain& domain_;
  Hold hold_;
  std::vector<std::uint64_t> before_;    // at reset(); empty: never
  std::vector<std::uint64_t> snapshot_;  // of start_reads(); empty: none
};

}  // namespace uet::prov
