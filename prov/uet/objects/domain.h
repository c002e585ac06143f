// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// fid_domain: engines, and what its objects have in common: attributes, the format of addresses,
// resource indices.
#pragma once

#include <rdma/fi_domain.h>

#include <memory>
#include <optional>
#include <vector>

#include "av/address.h"
#include "objects/cm_hub.h"
#include "objects/engines.h"
#include "objects/eq.h"
#include "objects/fabric.h"
#include "objects/index_table.h"
#include "objects/references.h"
#include "settings/address_format.h"
#include "settings/params.h"

namespace uet::prov {

struct Protection;

// fi_ops_fabric.domain: fi_domain(3).
int domain_open(fid_fabric* fabric, fi_info* info, fid_domain** domain, void* context) noexcept;

class Domain final : public fid_domain {
 public:
  static Domain& from(fid_domain* fid) { return static_cast<Domain&>(*fid); }
  static Domain& from(struct fid* fid) { return from(reinterpret_cast<fid_domain*>(fid)); }

  // Implements fi_domain; 0 or a negative fi_errno, with the reason logged.
  static int open(Fabric& fabric, const fi_info& info, void* context, Domain*& out);
  // Implements fi_close.
  int close() noexcept;

  Engines& engines() { return engines_; }
  // The first of them: see Engines::first().
  Engine& engine() { return engines_.first(); }
  References& references() { return references_; }
  std::uint32_t version() const { return version_; }
  // How its endpoints and AVs show and take addresses.
  const AddressFormat& format() const { return format_; }
  // Is this bit in force? It is if the info that the domain was opened with says so: getinfo
  // requires none, and the application may set those that it wants. FI_MR_BASIC stands for three.
  bool mr_mode_has(int bit) const;
  // Was it opened with FI_PEER? Only then does it take another provider's queues; and with
  // FI_AV_USER_ID? Then its AVs take ids of the application's own.
  bool is_peer() const { return (caps_ & FI_PEER) != 0; }
  bool has_user_ids() const { return (caps_ & FI_AV_USER_ID) != 0; }
  // Was it opened with FI_AV_AUTH_KEY? Then its AVs hold the keys (SES-146).
  bool has_av_keys() const { return has_av_keys_; }
  // An object of this domain has been registered: the EQ bound with FI_REG_MR is told.
  void registered(fid_mr& mr);
  // fi_domain_bind: reading this EQ makes our progress.
  int bind(struct fid& other, std::uint64_t flags);
  // The connections of its endpoints, from the first call on. 0 or a negative fi_errno, with the
  // reason logged.
  int connections(CmHub*& out);
  // JobID of endpoints without an auth_key of their own.
  JobId job() const { return job_; }
  // The one that the domain was opened with as auth_key.
  std::optional<JobId> auth_job() const { return auth_job_; }

  // JobID of an auth_key of an object of this domain. nullptr, or why the auth_key is refused: it
  // is neither 3 bytes, nor 4 with a zero first byte (SES-145), nor of the long form with the SDI
  // and SSI of this domain (TSS-68).
  const char* read_job(const std::uint8_t* auth_key, std::size_t size, JobId& job) const;

  // As IndexTable::take(), of the FEP of `engine`, with its lock. `any`: also names that the
  // address format cannot express.
  Result<ri::ContextName> take_resource_indices(Engine& engine,
                                                std::optional<ri::ContextName> wanted,
                                                std::size_t count, bool any = false)
      UET_REQUIRES(engine.lock());
  void give_back(const Engine& engine, const ri::ContextName& first, std::size_t count) {
    indices_[engine.place().number].give_back(first, count);
  }

 private:
  Domain(Fabric& fabric, const fi_info& info, const Params& params, void* context);
  int open_engines(const fi_info& info, const fi_info& at, Protection& protection);
  int open_engine(const fi_info& info, const fi_info& at, Engine& engine, Protection& protection);

  Hold fabric_;
  References references_;
  const std::uint32_t version_;
  const int mr_mode_;
  const std::uint64_t caps_;
  const bool has_av_keys_;
  AddressFormat format_;
  Eq* registration_eq_ = nullptr;  // FI_REG_MR
  JobId job_;
  std::optional<JobId> auth_job_;
  std::optional<std::uint32_t> sdi_;  // of its auth_key or key file
  bool secured_ = false;
  std::optional<std::uint32_t> ssi_;  // likewise, of a secured domain
  Engines engines_;
  std::vector<IndexTable> indices_;              // of the FEP of each engine, with its lock
  std::vector<std::unique_ptr<EqBinding>> eqs_;  // of each engine to the domain's EQ
  std::unique_ptr<CmHub> hub_;                   // nullptr: no endpoint has needed it
};

}  // namespace uet::prov
