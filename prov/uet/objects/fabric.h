// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// fid_fabric: the name of a network and the parent of domains and event queues.
#pragma once

#include <rdma/fabric.h>

#include "objects/references.h"

namespace uet::prov {

// fi_provider.fabric: fi_fabric(3).
int prov_fabric(fi_fabric_attr* attr, fid_fabric** fabric, void* context) noexcept;

class Fabric final : public fid_fabric {
 public:
  Fabric(std::uint32_t version, void* fabric_context);
  static Fabric& from(fid_fabric* fid) { return static_cast<Fabric&>(*fid); }
  static Fabric& from(struct fid* fid) { return from(reinterpret_cast<fid_fabric*>(fid)); }

  References& references() { return references_; }
  // The API version that the application asked for: which members of its structs exist.
  std::uint32_t version() const { return version_; }

 private:
  References references_;
  std::uint32_t version_;
};

}  // namespace uet::prov
