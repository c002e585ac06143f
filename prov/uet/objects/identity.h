// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Who an endpoint is on the wire: its JobID, its UET address, and a run of resource indices of the
// domain's FEP. The contexts of a scalable endpoint share one.
#pragma once

#include <rdma/fabric.h>

#include <memory>
#include <optional>

#include "av/address.h"
#include "objects/domain.h"
#include "objects/references.h"

namespace uet::prov {

class AddressFormat;

class Identity {
 public:
  // Takes `count` resource indices in a row: from the one in info.src_addr on, if it names one,
  // else the first that are free (SES-15). An index that only follows from a port says where to
  // look first, so that several endpoints can be opened with one fi_info. 0 or a negative fi_errno,
  // with the reason logged: -FI_EADDRINUSE; -FI_EADDRNOTAVAIL for another IP address or UDP port
  // than the domain's, and for ids that its address format cannot express. Of several engines
  // (FI_UET_CORES) the one whose port is named, else the one with fewest endpoints; the first for
  // what endpoints share.
  static int take(Domain& domain, const fi_info& info, std::size_t count,
                  std::shared_ptr<Identity>& out);
  // The first index of the first engine that is free, whether or not the address format can express
  // it: for endpoints whose peers learn the address otherwise.
  static int take_any(Domain& domain, const fi_info& info, std::shared_ptr<Identity>& out);
  // Takes another name instead, exactly as `wanted` says. Names that take refuses are refused
  // here too; the old name stays then.
  int rename(const av::UetAddress& wanted);
  // Gives the resource indices back.
  ~Identity();
  Identity(const Identity&) = delete;
  Identity& operator=(const Identity&) = delete;

  Engine& engine() const { return engine_; }
  JobId job() const { return job_; }
  // The job was given as auth_key: no other may send to it.
  bool has_auth_key() const { return has_auth_key_; }
  // The name that fi_getname gives: complete from the start, because the port is bound when the
  // domain opens (SES-149).
  const av::UetAddress& name() const { return name_; }
  std::size_t count() const { return count_; }
  // Of the context number `index`.
  ResourceIndex resource_index(std::size_t index) const {
    return {static_cast<std::uint16_t>(name_.start_resource_index.value + index)};
  }
  // Of the first context.
  ri::ContextName context_name() const { return {name_.pid_on_fep, name_.start_resource_index}; }

  // How names are shown and taken.
  const AddressFormat& format() const;
  // Implements fi_getname.
  // `shown`: another address to show; nullptr: that of name().
  int get_name(void* address, std::size_t* length, const av::UetAddress* shown = nullptr) const;

 private:
  // `choose`: gives the engine, in which it is counted then.
  template <class Choose>
  static int make(Domain& domain, const fi_info& info, std::shared_ptr<Identity>& out,
                  Choose choose);
  int take_name(const av::UetAddress& wanted, std::size_t count, bool exact)
      UET_REQUIRES(engine_.lock());
  int take_first() UET_REQUIRES(engine_.lock());
  void move_regions(const ri::ContextName& from, const std::optional<ri::ContextName>& to)
      UET_REQUIRES(engine_.lock());
  Identity(Domain& domain, Engine& engine, JobId job, bool has_auth_key);

  Domain& domain_;
  Engine& engine_;
  Hold hold_;
  JobId job_;
  const bool has_auth_key_;
  av::UetAddress name_;
  std::size_t count_ = 0;
};

}  // namespace uet::prov
